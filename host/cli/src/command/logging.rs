//! What is logged, and how: the arguments that `up` and `run` share.

use clap::{Args, ValueEnum};

/// Where log lines go is fixed: stderr.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Logging (to stderr)")]
pub struct Logging {
    /// What is logged: a level (error, warn, info, debug, trace), or directives such as `info,orangery_apply=debug`
    #[arg(long, value_name = "FILTER", env = "ORANGERY_LOG", hide_env_values = true)]
    pub log: Option<String>,
    /// How a line looks
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
}

/// How a log line looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people
    Text,
    /// One JSON object a line
    Json,
}
