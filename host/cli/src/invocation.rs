//! By which name the program was called: its own one, or that of a plugin of kubectl (C-402).

use std::{env, ffi::OsStr, path::Path};

/// A name of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invocation {
    /// `orangery`, or any other name of the file.
    Orangery,
    /// `kubectl-orangery`, which kubectl calls for `kubectl orangery`.
    KubectlPlugin,
}

impl Invocation {
    /// How this process was called.
    pub fn of_process() -> Self {
        env::args_os().next().map_or(Invocation::Orangery, |program| Self::of(&program))
    }

    /// By the first word of a command line.
    pub fn of(program: &OsStr) -> Self {
        match Path::new(program).file_stem().and_then(OsStr::to_str) {
            Some("kubectl-orangery") => Invocation::KubectlPlugin,
            _ => Invocation::Orangery,
        }
    }

    /// The file that shells and kubectl find in PATH.
    pub fn program(self) -> &'static str {
        match self {
            Invocation::Orangery => "orangery",
            Invocation::KubectlPlugin => "kubectl-orangery",
        }
    }

    /// The command line in the words of this name: usage and examples of all commands.
    pub(crate) fn describe(self, command: clap::Command) -> clap::Command {
        match self {
            Invocation::Orangery => command,
            Invocation::KubectlPlugin => as_plugin(command).bin_name("kubectl orangery"),
        }
    }
}

/// The examples of a command and of all below it, as they are typed for a plugin of kubectl.
fn as_plugin(command: clap::Command) -> clap::Command {
    let typed = |text: String| {
        let lines = text.split('\n').map(|line| match line.strip_prefix("  orangery ") {
            Some(rest) => format!("  kubectl orangery {rest}"),
            None => line.to_owned(),
        });
        lines.collect::<Vec<_>>().join("\n")
    };
    let (short, long) = (command.get_after_help().cloned(), command.get_after_long_help().cloned());
    let command = match short {
        Some(text) => command.after_help(typed(text.to_string())),
        None => command,
    };
    let command = match long {
        Some(text) => command.after_long_help(typed(text.to_string())),
        None => command,
    };
    command.mut_subcommands(as_plugin)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::Cli;

    #[test]
    fn c_402_called_as_a_plugin_usage_and_examples_say_kubectl() {
        for (program, expected) in [
            ("orangery", Invocation::Orangery),
            ("/usr/bin/orangery-under-test", Invocation::Orangery),
            ("/root/.krew/bin/kubectl-orangery", Invocation::KubectlPlugin),
            ("kubectl-orangery.exe", Invocation::KubectlPlugin),
        ] {
            assert_eq!(Invocation::of(OsStr::new(program)), expected, "{program}");
        }
        let mut command = Cli::described(Invocation::KubectlPlugin);
        command.build();
        let help = command.find_subcommand_mut("interrupt").unwrap().render_long_help().to_string();
        assert!(help.contains("Usage: kubectl orangery interrupt [OPTIONS] <NAME>"), "{help}");
        assert!(help.contains("\n  kubectl orangery interrupt hello "), "{help}");
        assert!(!help.contains("\n  orangery "), "{help}");
        let mut own = Cli::described(Invocation::Orangery);
        own.build();
        let help = own.find_subcommand_mut("interrupt").unwrap().render_long_help().to_string();
        assert!(help.contains("Usage: orangery interrupt [OPTIONS] <NAME>") && !help.contains("kubectl"), "{help}");
    }
}
