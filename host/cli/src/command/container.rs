//! `orangery container`: what runs beside the program of a container item, in its pod (`docs/containers.md`). Hidden: nobody but the
//! container deployer starts it. [`init`] is carried out here, `wait` by `runtime`.

use std::{
    fs, io,
    io::Write as _,
    path::{Path, PathBuf},
};

use clap::{Args, Subcommand};

pub mod init;
pub mod state;

/// Prepares the files of a program in a pod, or waits for its end.
#[derive(Clone, Debug, Args)]
#[command(arg_required_else_help = true)]
pub struct ContainerArguments {
    /// What to do.
    #[command(subcommand)]
    pub command: ContainerCommand,
}

/// The containers beside the program.
#[derive(Clone, Copy, Debug, Subcommand)]
pub enum ContainerCommand {
    /// Write the files that the program reads
    Init,
    /// Wait for the end of the program, and store what it leaves
    Wait,
}

/// Why the container ends badly: the sentence is what users read of it.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ContainerError(pub String);

impl ContainerError {
    /// What went wrong with a file.
    pub fn file(path: &Path, what: &str, error: &io::Error) -> Self {
        Self(format!("{} cannot be {what}: {error}", path.display()))
    }
}

/// Where a variable of the environment is looked up.
pub type Environment<'e> = &'e dyn Fn(&str) -> Option<String>;

/// A variable that has to be set.
///
/// # Errors
/// It is not.
pub fn variable(environment: Environment<'_>, name: &str) -> Result<String, ContainerError> {
    environment(name).filter(|value| !value.is_empty()).ok_or_else(|| {
        ContainerError(format!("the environment variable {name} is not set; the container deployer sets it"))
    })
}

/// The places that a program may rely on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramPaths {
    /// The document with the imports.
    pub imports: PathBuf,
    /// The document that the program exports.
    pub exports: PathBuf,
    /// The component descriptors.
    pub component_descriptor: PathBuf,
    /// The target.
    pub target: PathBuf,
    /// The folder with the blueprint's files.
    pub content: PathBuf,
    /// The folder with the state.
    pub state: PathBuf,
}

impl ProgramPaths {
    /// As the environment names them.
    ///
    /// # Errors
    /// A variable is not set.
    pub fn read(environment: Environment<'_>) -> Result<Self, ContainerError> {
        let path = |name: &str| variable(environment, name).map(PathBuf::from);
        Ok(Self {
            imports: path("IMPORTS_PATH")?,
            exports: path("EXPORTS_PATH")?,
            component_descriptor: path("COMPONENT_DESCRIPTOR_PATH")?,
            target: path("TARGET_PATH")?,
            content: path("CONTENT_PATH")?,
            state: path("STATE_PATH")?,
        })
    }

    /// Where a path really is, below the folder that containers share; `None` where nothing is there. The program may have put
    /// anything in its place, and what is outside is not its own to hand out.
    ///
    /// # Errors
    /// It leads elsewhere, or cannot be looked at.
    pub fn shared(&self, path: &Path) -> Result<Option<PathBuf>, ContainerError> {
        let unseen = |error: &io::Error| ContainerError::file(path, "looked at", error);
        if let Err(error) = fs::symlink_metadata(path) {
            return if error.kind() == io::ErrorKind::NotFound { Ok(None) } else { Err(unseen(&error)) };
        }
        let shared = self.state.parent().unwrap_or(&self.state);
        let root = fs::canonicalize(shared).map_err(|error| unseen(&error))?;
        let real = fs::canonicalize(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => ContainerError(format!(
                "{} is a link that leads nowhere in this container; leave a file of the program there",
                path.display()
            )),
            _ => unseen(&error),
        })?;
        if real.starts_with(&root) {
            return Ok(Some(real));
        }
        Err(ContainerError(format!(
            "{} leads out of {}; leave a file of the program there",
            path.display(),
            shared.display()
        )))
    }
}

/// What Kubernetes shows of a container that has ended.
const TERMINATION_LOG: &str = "/dev/termination-log";

/// Tells Kubernetes why the container ends. There is such a file in pods alone.
pub fn tell_termination(message: &str) {
    let written = fs::OpenOptions::new()
        .write(true)
        .truncate(true)
        .open(TERMINATION_LOG)
        .and_then(|mut file| file.write_all(message.as_bytes()));
    // The log says the same.
    drop(written);
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn con_10_what_the_program_leaves_is_looked_for_below_the_shared_folder_alone() {
        let folder = tempfile::tempdir().unwrap();
        let shared = folder.path().join("shared");
        fs::create_dir_all(shared.join("exports")).unwrap();
        fs::create_dir_all(shared.join("state")).unwrap();
        let token = folder.path().join("token");
        fs::write(&token, "secret").unwrap();
        let at = |name: &str| Some(shared.join(name).display().to_string());
        let paths = ProgramPaths::read(&|name: &str| match name {
            "EXPORTS_PATH" => at("exports/values"),
            "STATE_PATH" => at("state"),
            _ => at("other"),
        })
        .unwrap();
        assert_eq!(paths.shared(&paths.exports).unwrap(), None);
        fs::write(&paths.exports, "a: 1").unwrap();
        assert!(paths.shared(&paths.exports).unwrap().is_some());
        fs::remove_file(&paths.exports).unwrap();
        symlink(&token, &paths.exports).unwrap();
        let error = paths.shared(&paths.exports).unwrap_err().to_string();
        assert!(error.contains(" leads out of ") && error.ends_with("leave a file of the program there"), "{error}");
        fs::remove_file(&token).unwrap();
        let error = paths.shared(&paths.exports).unwrap_err().to_string();
        assert!(
            error.ends_with("is a link that leads nowhere in this container; leave a file of the program there"),
            "{error}"
        );
    }

    #[test]
    fn con_11_a_variable_that_is_missing_is_named() {
        let error = ProgramPaths::read(&|_| None).unwrap_err().to_string();
        assert_eq!(error, "the environment variable IMPORTS_PATH is not set; the container deployer sets it");
    }
}
