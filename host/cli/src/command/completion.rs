//! `orangery completion`: completion scripts.

use clap::{Args, ValueEnum};

use crate::{command_error::CommandError, completions, exit::Exit, invocation::Invocation, terminal::Terminal};

const EXAMPLES: &str = "\
Examples:
  source <(orangery completion bash)
  orangery completion zsh > \"${fpath[1]}/_orangery\"
  orangery completion fish > ~/.config/fish/completions/orangery.fish
  orangery completion kubectl > /usr/local/bin/kubectl_complete-orangery; chmod +x /usr/local/bin/kubectl_complete-orangery

The script asks the program orangery in PATH, so write it anew with a new version. Names of installations, jobs, namespaces and
contexts are those that the cluster and the kubeconfig have, by the --kubeconfig, --context and -n of the line, where they answer within a
second; otherwise there are none.

As a plugin of kubectl the program lies in PATH as kubectl-orangery, and the script of the last example beside it.";

/// Prints a script that completes commands, options and names in a shell, or for kubectl.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct CompletionArguments {
    /// The shell
    #[arg(value_enum)]
    pub shell: CompletedShell,
}

/// What asks for completions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CompletedShell {
    /// bash
    Bash,
    /// elvish
    Elvish,
    /// fish
    Fish,
    /// powershell
    Powershell,
    /// zsh
    Zsh,
    /// The program kubectl_complete-orangery
    Kubectl,
}

impl CompletionArguments {
    /// Prints the script.
    pub fn execute(self, terminal: &mut Terminal) -> Result<Exit, CommandError> {
        let shell = self.shell.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned());
        terminal.text(&completions::script(&shell, Invocation::of_process())?)?;
        Ok(Exit::Ok)
    }
}
