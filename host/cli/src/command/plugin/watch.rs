//! `orangery plugin watch`: builds a project whenever a file of it is saved.

use std::{
    ffi::OsStr,
    path::{Component, Path, PathBuf},
};

use clap::Args;

use super::build::sentence;
use crate::{
    authoring::build::{BuiltComponent, DRAFT, OF_TOOLS, ProjectFolder, WRITTEN_BY_TOOLS},
    command_error::CommandError,
    exit::Exit,
    file_events::FileEvents,
    terminal::Terminal,
};

const HELP: &str = "\
Examples:
  orangery plugin watch                     the project in the current folder, until Ctrl-C
  orangery up --plugins .                   in another terminal: uses each new build

A save in the folder builds it as `orangery plugin build` does, at once, and again where something is saved meanwhile. What tools
write is no save: the folders target, node_modules, venv and __pycache__, files and folders whose names begin with a dot,
Cargo.lock, package-lock.json, and the component. A build that fails says why and leaves the component as it was.";

/// Builds a project now and whenever a file of it is saved, until Ctrl-C.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = format!("{HELP}\n\n{}", crate::exit::EXIT_CODES))]
pub struct PluginWatch {
    /// The folder of the project
    #[arg(default_value = ".")]
    pub folder: PathBuf,
}

impl PluginWatch {
    /// Builds until the process ends.
    pub async fn execute(self, terminal: &mut Terminal) -> Result<Exit, CommandError> {
        let mut project = ProjectFolder::open(&self.folder)?;
        let unwatched = |cause| CommandError::Unwatched { path: self.folder.clone(), cause };
        let mut events = FileEvents::new().map_err(unwatched)?;
        let mut built: Option<BuiltComponent> = None;
        loop {
            // What is saved from here on is told, so that no save is missed.
            events.watch_tree(&self.folder, |name| !is_of_tools(name)).map_err(unwatched)?;
            let opened = ProjectFolder::open(&self.folder).map(|opened| project = opened);
            match opened.and_then(|()| project.build()) {
                Ok(next) => {
                    terminal.line(message(built.as_ref(), &next))?;
                    built = Some(next);
                }
                Err(error) => terminal.error(error),
            }
            while !events.changed().await.map_err(unwatched)?.iter().any(|file| is_source(&project, file)) {}
        }
    }
}

/// A build in a line.
fn message(before: Option<&BuiltComponent>, built: &BuiltComponent) -> String {
    let same = before.is_some_and(|before| before.digest == built.digest);
    format!("{}{}", sentence(built), if same { ", the same as before" } else { "" })
}

/// Whether tools write into a folder of this name.
fn is_of_tools(name: &str) -> bool {
    name.starts_with('.') || OF_TOOLS.contains(&name)
}

/// Whether a file that has changed is one that a build is made of.
fn is_source(project: &ProjectFolder, file: &Path) -> bool {
    let within = file.strip_prefix(project.folder()).unwrap_or(file);
    let names = || within.components().filter(|part| matches!(part, Component::Normal(_)));
    let is_hidden = names().any(|part| is_of_tools(&part.as_os_str().to_string_lossy()));
    let last = within.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let is_written = WRITTEN_BY_TOOLS.contains(&last.as_str()) || last.ends_with('~');
    let is_component = within == project.component_within() || within.extension() == Some(OsStr::new(DRAFT));
    !is_hidden && !is_written && !is_component
}

#[cfg(test)]
mod tests {
    use std::fs;

    use orangery_plugin::World;

    use super::*;

    #[test]
    fn c_351_what_tools_write_is_no_save() {
        let folder = tempfile::tempdir().unwrap();
        let registration = "apiVersion: orangery.dev/v1alpha1\nkind: Plugin\nmetadata: {name: a}\nspec: {version: 0.1.0, component: \
                            {file: a.wasm}, gate: {types: [a]}}";
        fs::write(folder.path().join("plugin.yaml"), registration).unwrap();
        fs::write(folder.path().join("package.json"), "{}").unwrap();
        let project = ProjectFolder::open(folder.path()).unwrap();
        let is = |name: &str| is_source(&project, &folder.path().join(name));
        for name in ["component.js", "src/a/lib.rs", "plugin.yaml", "package.json", "b.wasm", ""] {
            assert!(is(name), "{name}");
        }
        for name in [
            "a.wasm",
            "a.wasm.draft",
            "target/x",
            "node_modules/a/b.js",
            "venv/x",
            "__pycache__/a",
            ".git/index",
            "src/.a.swp",
            "a.js~",
            "Cargo.lock",
            "package-lock.json",
        ] {
            assert!(!is(name), "{name}");
        }
    }

    #[test]
    fn c_351_a_build_that_made_the_same_component_says_so() {
        let built = |digest: &str| BuiltComponent {
            file: PathBuf::from("a.wasm"),
            size: 5,
            digest: digest.to_owned(),
            world: World::Gate,
        };
        assert_eq!(message(None, &built("a")), "a.wasm: a gate of 5 bytes");
        assert_eq!(message(Some(&built("a")), &built("b")), "a.wasm: a gate of 5 bytes");
        assert_eq!(message(Some(&built("a")), &built("a")), "a.wasm: a gate of 5 bytes, the same as before");
    }
}
