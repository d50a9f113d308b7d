//! The command line.

use std::{env, ffi::OsString, process::ExitCode, sync::LazyLock};

use clap::{ColorChoice, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::{
    command::{
        Tool, container::ContainerArguments, drift::DriftArguments, explain::ExplainArguments, plan::PlanArguments,
        rollback::RollbackArguments, run::RunArguments, up::Up,
    },
    completions,
    exit::{EXIT_CODES, Exit},
    invocation::Invocation,
    terminal::Colouring,
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
    /// When to write colours: on terminals, unless NO_COLOR is in the environment; also into files and pipes; or never
    #[arg(
        long,
        global = true,
        display_order = 1000,
        value_enum,
        value_name = "WHEN",
        default_value = "auto",
        hide_possible_values = true
    )]
    pub color: Colouring,
    /// The same as --color never
    #[arg(long, global = true, display_order = 1001)]
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
    /// Help, version, bad usage and completions are answered here: the exit code.
    pub fn from_process() -> Result<Self, ExitCode> {
        let invocation = Invocation::of_process();
        if completions::answered(|| Self::described(invocation)) {
            return Err(Exit::Ok.into());
        }
        let mut command = Self::described(invocation).color(colours_of_usage(env::args_os()));
        let parsed = command.try_get_matches_from_mut(env::args_os());
        let parsed = parsed.and_then(|mut matches| Self::from_arg_matches_mut(&mut matches));
        parsed.map_err(|error| {
            let exit = bad_usage(env::args_os(), &error);
            // Nobody reads what cannot be written.
            let _unread = error.format(&mut command).print();
            exit.into()
        })
    }

    /// The command line as clap describes it, for documentation.
    pub fn description() -> clap::Command {
        Self::described(Invocation::Orangery)
    }

    /// The command line in the words of the name that the program was called by.
    pub(crate) fn described(invocation: Invocation) -> clap::Command {
        invocation.describe(Self::command())
    }

    /// When this command writes colours.
    pub fn colouring(&self) -> Colouring {
        if self.no_color { Colouring::Never } else { self.color }
    }
}

/// The colours of help and of what is wrong with a line that cannot be read, as far as it says.
fn colours_of_usage(line: impl Iterator<Item = OsString>) -> ColorChoice {
    let words: Vec<OsString> = line.take_while(|word| word != "--").collect();
    let says = |value: &str| {
        let joined = format!("--color={value}");
        let apart = words.windows(2).any(|pair| matches!(pair, [option, of] if option == "--color" && of == value));
        apart || words.iter().any(|word| *word == *joined)
    };
    match (says("never") || words.iter().any(|word| word == "--no-color"), says("always")) {
        (true, _) => ColorChoice::Never,
        (false, true) => ColorChoice::Always,
        (false, false) => ColorChoice::Auto,
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
