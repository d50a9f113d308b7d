//! Why `orangery up` ends without having deployed: one sentence with the fix, and an exit code.

use std::{io, path::PathBuf};

use orangery_cli::{Exit, apply::ApplyError, folder::FolderError, repositories::RepositoriesError};
use orangery_embedded::StartError;

use crate::{components::ComponentsError, logging::FilterError, operator::OperatorError, recordings::RecordError};

/// Why `up` ends without having deployed.
#[derive(Debug, thiserror::Error)]
pub enum UpError {
    /// The folder cannot be read.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// An object of it cannot be applied.
    #[error(transparent)]
    Apply(#[from] ApplyError),
    /// The log filter cannot be read.
    #[error(transparent)]
    Filter(#[from] FilterError),
    /// A component cannot be registered.
    #[error(transparent)]
    Components(#[from] ComponentsError),
    /// Component versions cannot be had as the flags say.
    #[error(transparent)]
    Repositories(#[from] RepositoriesError),
    /// Calls cannot be recorded.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// Somebody else listens on the port.
    #[error(
        "port {port} of 127.0.0.1 is in use; stop the program that has it, or choose another with --port (0 takes any that is free)"
    )]
    Port {
        /// The port.
        port: u16,
    },
    /// The server cannot be started for another reason, such as its data folder.
    #[error(transparent)]
    Server(StartError),
    /// The definitions of our kinds cannot be installed in it, or the operator's key not be kept there.
    #[error(transparent)]
    Operator(#[from] OperatorError),
    /// The Target `cluster` cannot be written.
    #[error("the Target cluster cannot be put into namespace default: {0}")]
    Target(#[source] kube::Error),
    /// A file or folder of the server cannot be written.
    #[error("{} cannot be written: {source}; choose another --data folder, or make room and permissions", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Others may have put there what is in the data folder.
    #[error(
        "{} {why}, so its objects, its credentials and its keys may be of somebody else; {fix}", path.display()
    )]
    Planted {
        /// The data folder.
        path: PathBuf,
        /// Why that may be.
        why: &'static str,
        /// What to do if the data is one's own, and what if it is not.
        fix: String,
    },
    /// Not everything was final in time.
    #[error(
        "not everything is final after {timeout}; what is shown above as running is unfinished, and a longer --timeout or an up without --once lets it go on"
    )]
    TimedOut {
        /// What `--timeout` says.
        timeout: String,
    },
    /// The terminal, or the signals of the process.
    #[error("the output cannot be written: {0}")]
    Output(#[from] io::Error),
}

impl UpError {
    /// The exit code that tells of it.
    pub fn exit(&self) -> Exit {
        match self {
            UpError::Folder(_)
            | UpError::Filter(_)
            | UpError::Components(_)
            | UpError::Repositories(_)
            | UpError::Record(_)
            | UpError::Port { .. }
            | UpError::Server(_)
            | UpError::Planted { .. }
            | UpError::Write { .. } => Exit::Usage,
            UpError::Apply(error) => match error {
                ApplyError::UnknownKind { .. }
                | ApplyError::ApiVersion { .. }
                | ApplyError::NoNamespace { .. }
                | ApplyError::Refused { .. } => Exit::Usage,
                ApplyError::Call { .. } | ApplyError::NotServed { .. } => Exit::Failed,
            },
            UpError::TimedOut { .. } => Exit::TimedOut,
            UpError::Operator(_) | UpError::Target(_) | UpError::Output(_) => Exit::Failed,
        }
    }
}

impl From<StartError> for UpError {
    fn from(error: StartError) -> Self {
        match error {
            StartError::AddressInUse { address } => UpError::Port { port: address.port() },
            StartError::Folder(_)
            | StartError::Identity(_)
            | StartError::Address { .. }
            | StartError::Object { .. } => UpError::Server(error),
        }
    }
}
