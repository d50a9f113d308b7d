//! Projects in JavaScript: what their package.json says, by npm.

use std::process::Command;

use super::{BuildError, ProjectFolder, toolchain::LanguageTool};

const NPM: LanguageTool = LanguageTool {
    program: "npm",
    language: "JavaScript",
    fix: "install Node.js 20 or later with npm: https://nodejs.org, or apt-get install npm",
};

/// What the project is made with.
const PACKAGES: &str = "node_modules";
/// What says what that is.
const PACKAGE: &str = "package.json";

pub(super) fn build(project: &ProjectFolder) -> Result<(), BuildError> {
    let npm = NPM.find()?;
    if project.has_changed(PACKAGE, PACKAGES) {
        project.run(Command::new(&npm).args(["install", "--no-fund", "--no-audit"]))?;
        project.note_made(PACKAGE, PACKAGES)?;
    }
    project.run(Command::new(&npm).args(["run", "build"]))
}
