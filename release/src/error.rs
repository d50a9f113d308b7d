//! Why there is no release.

use std::{io, path::PathBuf};

/// What went wrong, and where.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or folder that goes into the release cannot be read.
    #[error("{path} cannot be read: {source}; build it first, as release/build does")]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file of the release cannot be written.
    #[error("{path} cannot be written: {source}; name another folder with --out")]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file is not what it should be.
    #[error("{path}: {why}")]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what to do.
        why: String,
    },
    /// A part of the release is larger than it may be.
    #[error("{what} has {found} bytes, and at most {most} are released; find out what made it grow")]
    TooLarge {
        /// What.
        what: String,
        /// Its bytes.
        found: usize,
        /// How many it may have.
        most: usize,
    },
}

impl Error {
    pub(crate) fn content(path: impl Into<PathBuf>, why: impl Into<String>) -> Self {
        Error::Content { path: path.into(), why: why.into() }
    }

    /// Holds a size against the largest that is released.
    pub(crate) fn check_size(what: &str, found: usize, most: usize) -> Result<(), Self> {
        if found > most { Err(Error::TooLarge { what: what.to_owned(), found, most }) } else { Ok(()) }
    }
}
