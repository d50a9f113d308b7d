//! Projects in Python: componentize-py, in an environment of the project.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use super::{BuildError, ProjectFolder, toolchain::LanguageTool};
use crate::authoring::project::wit_world;

const PYTHON: LanguageTool = LanguageTool {
    program: "python3",
    language: "Python",
    fix: "install Python 3.10 or later with venv: https://www.python.org, or apt-get install python3-venv",
};

/// The environment.
const ENVIRONMENT: &str = "venv";
/// What it has in it.
const REQUIREMENTS: &str = "requirements.txt";

pub(super) fn build(project: &ProjectFolder) -> Result<(), BuildError> {
    let python = PYTHON.find()?;
    let program =
        |name: &str| project.folder.canonicalize().map(|folder| folder.join(ENVIRONMENT).join("bin").join(name));
    let program = |name: &str| program(name).map_err(|cause| BuildError::File { path: project.folder.clone(), cause });
    let componentize = program("componentize-py")?;
    if !componentize.is_file() || project.has_changed(REQUIREMENTS, ENVIRONMENT) {
        project.run(Command::new(python).args(["-m", "venv", ENVIRONMENT]))?;
        project.run(Command::new(program("pip")?).args(["install", "--quiet", "-r", REQUIREMENTS]))?;
        project.note_made(REQUIREMENTS, ENVIRONMENT)?;
    }
    let draft: PathBuf = project.draft();
    let mut command = Command::new(componentize);
    command.args(["-d", "wit", "-w", wit_world(project.world), "componentize", "app", "-o"]);
    project.run(command.arg::<&Path>(&draft))?;
    project.place(&draft)
}
