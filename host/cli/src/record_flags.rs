//! Where calls of components are recorded: the flags of `up` and `run`.

use std::path::PathBuf;

use clap::{Args, value_parser};

/// The flags.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Recordings")]
pub struct RecordFlags {
    /// Folder in which calls of components are kept, as cases for `orangery plugin test` and `orangery plugin replay`; tokens
    /// stand for values of Secrets
    #[arg(long = "record", value_name = "FOLDER")]
    pub folder: Option<PathBuf>,
    /// Keep one call in so many; 0 for none but those that a Plugin (spec.record) or a NamespacePolicy (spec.recordings) asks for, which
    /// are kept in any case
    #[arg(long = "record-one-in", value_name = "NUMBER", default_value_t = 1, requires = "folder", value_parser = value_parser!(u64))]
    pub one_in: u64,
    /// How many calls are kept; the oldest make room
    #[arg(long = "record-calls", value_name = "NUMBER", default_value_t = 1000, value_parser = value_parser!(u32).range(1..=100_000))]
    pub calls: u32,
    /// How much they take together, in mebibytes; the oldest make room
    #[arg(long = "record-size", value_name = "MIB", default_value_t = 256, value_parser = value_parser!(u32).range(1..))]
    pub size: u32,
}
