//! Why a project is not built.

use std::{io, path::PathBuf};

use orangery_plugin::{RegistrationError, World};

use crate::exit::Exit;

/// Why a project is not built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The folder is not there.
    #[error("{} is no folder; name that of a project, as `orangery plugin new` writes one", path.display())]
    NoFolder {
        /// The folder.
        path: PathBuf,
    },
    /// Nothing says which language it is of.
    #[error(
        "{} is no project of a known language: it has none of {marks}; name the folder of one, or write one with: orangery \
         plugin new",
        path.display()
    )]
    NoLanguage {
        /// The folder.
        path: PathBuf,
        /// The files by which languages are known.
        marks: String,
    },
    /// There is no registration.
    #[error(
        "{} has no plugin.yaml, which says what its component is and in which file; write one: docs/plugins/building.md",
        path.display()
    )]
    NoRegistration {
        /// The folder.
        path: PathBuf,
    },
    /// The registration is that of components of blueprints.
    #[error("{} names no file of a component; add `component: {{file: …}}` to its spec", path.display())]
    NoComponent {
        /// The registration.
        path: PathBuf,
    },
    /// The registration cannot be used.
    #[error(transparent)]
    Registration(#[from] RegistrationError),
    /// A tool is not there.
    #[error("{program} is not on the path, and builds projects in {language}; {fix}")]
    NoTool {
        /// The tool.
        program: &'static str,
        /// What for.
        language: &'static str,
        /// How to get it.
        fix: &'static str,
    },
    /// The standard library of Rust is not there for components.
    #[error("Rust cannot build for wasm32-wasip2 yet; add that with: rustup target add wasm32-wasip2")]
    NoTarget,
    /// A tool does not start.
    #[error("{line} did not start: {cause}; check its installation")]
    Start {
        /// The command.
        line: String,
        /// Why.
        #[source]
        cause: io::Error,
    },
    /// A tool has failed, and said why.
    #[error("{line} ended with {how}; correct what it says above: {} is what it was before", component.display())]
    Failed {
        /// The command.
        line: String,
        /// How it ended.
        how: String,
        /// The file of the component.
        component: PathBuf,
    },
    /// No tool has failed, and there is no component.
    #[error("there is no {} after the build; {fix}", path.display())]
    NotBuilt {
        /// The file.
        path: PathBuf,
        /// What to do.
        fix: &'static str,
    },
    /// What was built is no component that this host would load.
    #[error("{}: {cause}", path.display())]
    Component {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        cause: orangery_plugin::Error,
    },
    /// What was built is registered for what it is not.
    #[error("{} exports nothing of a {claimed}, which plugin.yaml claims it is; correct one of them", path.display())]
    OtherWorld {
        /// The component.
        path: PathBuf,
        /// What the registration claims.
        claimed: World,
    },
    /// A file cannot be read or written.
    #[error("{} cannot be read or written: {cause}; check its permissions, and that there is room", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        cause: io::Error,
    },
}

impl BuildError {
    /// The exit code that tells of it.
    pub fn exit(&self) -> Exit {
        match self {
            BuildError::NoFolder { .. }
            | BuildError::NoLanguage { .. }
            | BuildError::NoRegistration { .. }
            | BuildError::NoComponent { .. }
            | BuildError::Registration(_) => Exit::Usage,
            BuildError::NoTool { .. }
            | BuildError::NoTarget
            | BuildError::Start { .. }
            | BuildError::Failed { .. }
            | BuildError::NotBuilt { .. }
            | BuildError::Component { .. }
            | BuildError::OtherWorld { .. }
            | BuildError::File { .. } => Exit::Failed,
        }
    }
}
