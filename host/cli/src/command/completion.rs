//! `orangery completion`: completion scripts.

use std::io;

use clap::Args;
use clap_complete::Shell;

use crate::terminal::Terminal;

const EXAMPLES: &str = "\
Examples:
  source <(orangery completion bash)
  orangery completion zsh > \"${fpath[1]}/_orangery\"
  orangery completion fish > ~/.config/fish/completions/orangery.fish";

/// Prints a script that completes commands and options in a shell.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct CompletionArguments {
    /// The shell
    #[arg(value_enum)]
    pub shell: Shell,
}

impl CompletionArguments {
    /// Prints the script for a command line.
    pub fn execute(self, command: &mut clap::Command, terminal: &mut Terminal) -> io::Result<()> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, command, "orangery", &mut script);
        terminal.text(&String::from_utf8_lossy(&script))
    }
}
