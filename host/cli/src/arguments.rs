//! The command line.

use std::{env, ffi::OsString, process::ExitCode, sync::LazyLock};

use clap::{CommandFactory as _, Parser, Subcommand};

use crate::{
    command::{
        Tool, container::ContainerArguments, drift::DriftArguments, explain::ExplainArguments, plan::PlanArguments,
        rollback::RollbackArguments, run::RunArguments, up::Up,
    },
    exit::{EXIT_CODES, Exit},
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
    /// Go back to what a job deployed
    Rollback(Box<RollbackArguments>),
    /// Show where the fields of an object come from: templates, inputs, managers
    Explain(Box<ExplainArguments>),
    /// Show what is not as deploy items have written it
    Drift(Box<DriftArguments>),
    /// Prepare the files of a program in a pod, or wait for its end. The container deployer runs this in pods of its own
    #[command(hide = true)]
    Container(ContainerArguments),
    #[expect(missing_docs, reason = "a doc comment of a flattened variant would become the about text")]
    #[command(flatten)]
    Tool(Tool),
}

impl Cli {
    /// Reads the process's command line.
    ///
    /// # Errors
    /// Help, version and bad usage are answered here: the exit code.
    pub fn from_process() -> Result<Self, ExitCode> {
        Self::try_parse().map_err(|error| {
            // Nobody reads what cannot be written.
            let _unread = error.print();
            bad_usage(env::args_os(), &error).into()
        })
    }

    /// The command line as clap describes it, for completion and documentation.
    pub fn description() -> clap::Command {
        Self::command()
    }
}

/// The exit code of help, of the version, and of a command line that cannot be used: of `drift` 2 means drift, and of
/// `plan --detailed-exitcode` changes.
fn bad_usage(line: impl Iterator<Item = OsString>, error: &clap::Error) -> Exit {
    let line: Vec<OsString> = line.skip(1).collect();
    let command = line.iter().find(|argument| !argument.as_encoded_bytes().starts_with(b"-"));
    match (error.exit_code(), command) {
        (0, _) => Exit::Ok,
        (_, Some(command)) if command == "drift" => Exit::Failed,
        (_, Some(command)) if command == "plan" && line.iter().any(|word| word == "--detailed-exitcode") => {
            Exit::Failed
        }
        _ => Exit::Usage,
    }
}

/// The host's version and that of its engine. Made once: clap keeps it for ever.
fn version() -> &'static str {
    static VERSION: LazyLock<String> =
        LazyLock::new(|| format!("{} (wasmtime {})", env!("CARGO_PKG_VERSION"), orangery_plugin::WASMTIME_VERSION));
    VERSION.as_str()
}
