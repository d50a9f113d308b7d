//! `orangery plugin new`: a project for a component of one's own.

use std::path::PathBuf;

use clap::Args;

use crate::{
    authoring::project::{Language, Project, ProjectKind, ProjectName},
    command_error::CommandError,
    exit::Exit,
    terminal::Terminal,
};

const HELP: &str = "\
Examples:
  orangery plugin new lemonade --language rust --kind deployer
  orangery plugin new motd --language python --kind template --folder /tmp/motd

The project builds, and its cases pass, as it is written. It has the contracts in it, in Rust the SDK and in Go the bindings of this version: it
needs this program and the tools of its language, and nothing else of Orangery. README.md in it has the commands.";

/// Writes a project for a component: sources, a registration, recorded cases, and the commands that build and test it.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = format!("{HELP}\n\n{}", crate::exit::EXIT_CODES))]
pub struct PluginNew {
    /// Its name: lower-case letters, digits and `-`
    pub name: ProjectName,
    /// The language that it is written in
    #[arg(long, value_enum)]
    pub language: Language,
    /// What it is for
    #[arg(long, value_enum)]
    pub kind: ProjectKind,
    /// The folder that it is written into [default: the name, in the current folder]
    #[arg(long, value_name = "FOLDER")]
    pub folder: Option<PathBuf>,
}

impl PluginNew {
    /// Writes the files, and prints what to do next.
    pub fn execute(self, terminal: &mut Terminal) -> Result<Exit, CommandError> {
        let Self { name, language, kind, folder } = self;
        let folder = folder.unwrap_or_else(|| PathBuf::from(name.as_str()));
        let project = Project { name, language, kind };
        project.write(&folder)?;
        terminal.line(format_args!("{} is written; build and test it:", folder.display()))?;
        terminal.line(format_args!("  cd {}", folder.display()))?;
        terminal.line("  orangery plugin build")?;
        terminal.line(format_args!("  orangery plugin test {}", project.component()))?;
        Ok(Exit::Ok)
    }
}
