//! Builds guest components from build scripts, as wasmtime builds its test programs: a nested cargo for `wasm32-wasip2`;
//! and, with the feature `go`, from Go.
//!
//! The nested cargo has a target folder of its own, `guests` inside the workspace's, so that it never waits for the lock of
//! the cargo that runs the build script, and so that debug and release builds share its result.

mod cargo;
#[cfg(feature = "go")]
mod go;
#[cfg(feature = "go")]
mod snapshot;
mod target;

use std::{
    env, fmt,
    path::{Path, PathBuf},
};

use sha2::{Digest, Sha256};

#[cfg(feature = "go")]
pub use go::{GoComponent, GoKit, go_component, go_component_in, go_kit, wit_package};

/// What guests are compiled for.
pub const TARGET: &str = "wasm32-wasip2";

/// Which guests to build.
pub struct Request<'a> {
    /// The `Cargo.toml` of the workspace (or package) that the guests belong to.
    pub manifest: &'a Path,
    /// What is built of it.
    pub what: What<'a>,
    /// Files and folders whose change builds the guests again, besides the packages' own sources.
    pub watch: &'a [&'a Path],
}

/// Packages or examples, all of crate type `cdylib`.
pub enum What<'a> {
    /// The library of each of these packages of a workspace.
    Packages(&'a [&'a str]),
    /// These examples of one package.
    Examples(&'a [&'a str]),
}

/// Why there are no guests.
#[derive(Debug)]
pub enum Error {
    /// The variable that cargo sets for build scripts is absent.
    NoBuildScript {
        /// The variable.
        variable: &'static str,
    },
    /// The target is not installed and could not be added.
    Target {
        /// What `rustup` said.
        reason: String,
    },
    /// Cargo could not be started.
    Start {
        /// The program.
        program: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Cargo failed.
    Build {
        /// What it said.
        output: String,
    },
    /// This machine cannot build Go at the moment.
    NoGo {
        /// Why not.
        reason: String,
    },
    /// Go failed.
    Go {
        /// What it said.
        output: String,
    },
    /// The module cannot be pre-initialised.
    Snapshot {
        /// Why not.
        why: String,
    },
    /// The module makes no component.
    Component {
        /// Why not.
        why: String,
    },
    /// A file could not be read or written.
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Cargo succeeded without making a component.
    Missing {
        /// Where it should be.
        component: PathBuf,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NoBuildScript { variable } => {
                write!(f, "{variable} is not set: call this from a build script that cargo runs")
            }
            Error::Target { reason } => write!(
                f,
                "the Rust target {TARGET} is missing and could not be added ({reason}); run `rustup target add {TARGET}` and build again"
            ),
            Error::Start { program, source } => {
                write!(f, "the guests were not built: {} did not start: {source}", program.display())
            }
            Error::Build { output } => write!(f, "the guests were not built; cargo said: {output}"),
            Error::NoGo { reason } => write!(f, "{reason}; install Go 1.26 or later and build again"),
            Error::Go { output } => write!(f, "the Go guests were not built; go said: {output}"),
            Error::Snapshot { why } => write!(f, "a module cannot be pre-initialised: {why}"),
            Error::Component { why } => write!(f, "a module makes no component: {why}"),
            Error::File { path, source } => write!(f, "{}: {source}", path.display()),
            Error::Missing { component } => {
                write!(f, "cargo built no {}; give the package `crate-type = [\"cdylib\"]`", component.display())
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Start { source, .. } | Error::File { source, .. } => Some(source),
            Error::NoBuildScript { .. }
            | Error::Target { .. }
            | Error::Build { .. }
            | Error::NoGo { .. }
            | Error::Go { .. }
            | Error::Snapshot { .. }
            | Error::Component { .. }
            | Error::Missing { .. } => None,
        }
    }
}

impl Error {
    /// Whether it says something of this machine, not of what was to be built: the build may go on without the guest.
    pub fn is_of_the_machine(&self) -> bool {
        matches!(self, Error::NoGo { .. })
    }
}

/// Builds guests with the profile `guest` and answers their components, in the order asked.
///
/// # Errors
///
/// See [`Error`]. A build script prints it with [`report`].
pub fn guests(request: &Request<'_>) -> Result<Vec<PathBuf>, Error> {
    cargo::watch(request);
    target::ensure()?;
    cargo::build(request)
}

/// Tells cargo, and so the user, why there are no guests: the build fails with these words and without a backtrace.
pub fn report(error: &Error) {
    for line in error.to_string().lines().filter(|line| !line.trim().is_empty()) {
        cargo::instruct(&format!("error={line}"));
    }
}

/// Tells the user, through cargo, what the build goes on without.
pub fn warn(sentence: &str) {
    cargo::instruct(&format!("warning={sentence}"));
}

/// `sha256:…` of bytes.
pub fn digest(bytes: &[u8]) -> String {
    let hex: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

pub(crate) fn variable(name: &'static str) -> Result<PathBuf, Error> {
    env::var_os(name).map(PathBuf::from).ok_or(Error::NoBuildScript { variable: name })
}
