//! Builds guest components from build scripts, as wasmtime builds its test programs: a nested cargo for `wasm32-wasip2`.
//!
//! The nested cargo has a target folder of its own, `guests` inside the workspace's, so that it never waits for the lock of
//! the cargo that runs the build script, and so that debug and release builds share its result.

mod cargo;
mod target;

use std::{
    env, fmt,
    path::{Path, PathBuf},
};

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
            Error::Missing { component } => {
                write!(f, "cargo built no {}; give the package `crate-type = [\"cdylib\"]`", component.display())
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Start { source, .. } => Some(source),
            Error::NoBuildScript { .. } | Error::Target { .. } | Error::Build { .. } | Error::Missing { .. } => None,
        }
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

pub(crate) fn variable(name: &'static str) -> Result<PathBuf, Error> {
    env::var_os(name).map(PathBuf::from).ok_or(Error::NoBuildScript { variable: name })
}
