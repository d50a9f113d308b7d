//! `orangery plugin build`: a component of a project, by the tools of its language.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use super::inspect::size;
use crate::{
    authoring::build::{BuiltComponent, ProjectFolder},
    command_error::CommandError,
    exit::Exit,
    form::OutputFormat,
    terminal::Terminal,
};

const HELP: &str = "\
Examples:
  orangery plugin build                     the project in the current folder
  orangery plugin build lemonade -o json

A folder with Cargo.toml is built by cargo for wasm32-wasip2, one with go.mod by `go build` for WASI, one with package.json by
`npm run build`, one with requirements.txt by componentize-py in an environment of its own (`venv`). The component is where `component.file` of
plugin.yaml says; where a build fails it is what it was before. What the tools say goes to the standard error.

Output of -o json and -o yaml (fields are added, never renamed or removed):
  file, digest, size, world";

/// Builds a project with the tools of its language, and says where its component is.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = format!("{HELP}\n\n{}", crate::exit::EXIT_CODES))]
pub struct PluginBuild {
    /// The folder of the project
    #[arg(default_value = ".")]
    pub folder: PathBuf,
    /// How it is written [default: for people]
    #[arg(short, long, value_enum, value_name = "FORM")]
    pub output: Option<OutputFormat>,
}

/// The output of `-o json`.
#[derive(Serialize)]
struct PluginBuildOutput<'a> {
    file: String,
    digest: &'a str,
    size: u64,
    world: String,
}

impl PluginBuild {
    /// Builds, and prints where the component is.
    pub fn execute(self, terminal: &mut Terminal) -> Result<Exit, CommandError> {
        let built = ProjectFolder::open(&self.folder)?.build()?;
        match self.output {
            Some(form) => form.write(&document(&built), terminal)?,
            None => terminal.line(sentence(&built))?,
        }
        Ok(Exit::Ok)
    }
}

fn document(built: &BuiltComponent) -> PluginBuildOutput<'_> {
    let BuiltComponent { file, size, digest, world } = built;
    PluginBuildOutput { file: file.display().to_string(), digest, size: *size, world: world.to_string() }
}

/// What was built, in a line.
pub(super) fn sentence(built: &BuiltComponent) -> String {
    format!("{}: a {} of {}", built.file.display(), built.world, size(built.size))
}

#[cfg(test)]
mod tests {
    use orangery_plugin::World;

    use super::*;

    #[test]
    fn c_350_a_built_component_is_told_with_its_file_and_its_size() {
        let (digest, world) = ("sha256:0".to_owned(), World::Templater);
        let built = BuiltComponent { file: PathBuf::from("a/a.wasm"), size: 100_000, digest, world };
        assert_eq!(sentence(&built), "a/a.wasm: a templater of 98 KiB");
        let expected =
            serde_json::json!({"file": "a/a.wasm", "digest": "sha256:0", "size": 100_000, "world": "templater"});
        assert_eq!(serde_json::to_value(document(&built)).unwrap(), expected);
    }
}
