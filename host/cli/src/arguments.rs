//! The command line.

use std::sync::LazyLock;

use clap::{CommandFactory as _, Parser, Subcommand};

use crate::{
    command::{Tool, plan::PlanArguments, run::RunArguments, up::Up},
    exit::EXIT_CODES,
};

#[cfg(test)]
mod tests;

/// The command line of the binary.
#[derive(Debug, Parser)]
#[command(
    name = "orangery",
    version = version(),
    about = "Deploys blueprints to Kubernetes with sandboxed WebAssembly components",
    after_help = EXIT_CODES,
    disable_help_subcommand = true,
    subcommand_required = true,
    arg_required_else_help = true
)]
pub struct Cli {
    /// Write without colours; so does NO_COLOR in the environment, and any output that is no terminal
    #[arg(long, global = true, display_order = 1000)]
    pub no_color: bool,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do: what `runtime` carries out, and what this crate does itself.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Start a server and the operator in one process, and deploy a folder
    Up(Up),
    /// Run the operator against a cluster
    Run(RunArguments),
    /// Show what the next job of a deploy item would do
    Plan(Box<PlanArguments>),
    #[expect(missing_docs, reason = "a doc comment of a flattened variant would become the about text")]
    #[command(flatten)]
    Tool(Tool),
}

impl Cli {
    /// Reads the process's command line. Help, version and bad usage (exit code 2) are answered here, and the process
    /// ends.
    pub fn from_process() -> Self {
        Self::parse()
    }

    /// The command line as clap describes it, for completion and documentation.
    pub fn description() -> clap::Command {
        Self::command()
    }
}

/// The host's version and that of its engine. Made once: clap keeps it for ever.
fn version() -> &'static str {
    static VERSION: LazyLock<String> =
        LazyLock::new(|| format!("{} (wasmtime {})", env!("CARGO_PKG_VERSION"), orangery_plugin::WASMTIME_VERSION));
    VERSION.as_str()
}
