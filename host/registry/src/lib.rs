//! Component versions where they are kept: registries, archives, folders, and a cache on disk.
//!
//! [`Repositories`] implements the port `orangery_ocm::ComponentVersions`. A component version is found with
//! all that it refers to ([`graph`]), in one of the sources: [`registry`], [`transport`] archives, [`folder`]s, or the
//! installation itself ([`search`]). Its resources are fetched when they are asked for ([`access`]).

mod access;
pub mod archive;
mod artifacts;
mod blueprint;
mod cache;
mod charts;
mod folder;
mod graph;
mod held_manifest;
mod image;
mod keyless;
mod memory;
mod named;
pub mod oci;
mod registry;
mod repositories;
mod roots;
mod search;
mod shared;
mod source;
mod store;
mod transport;
mod verify;
mod version;
mod version_memory;
pub mod wasm;

use orangery_core::error::{Code, Fault, Problem};

pub use self::{
    blueprint::{MOST_OF_A_BLUEPRINT, blueprint},
    charts::chart_in_index,
    keyless::check as check_bundle,
    named::NamedContent,
    repositories::{Repositories, RepositorySettings},
};

/// The same fault, with what it happened to before it.
fn within(fault: Fault, place: &str) -> Fault {
    let text = |problem: Problem| Problem { message: format!("{place}: {}", problem.message), ..problem };
    match fault {
        Fault::Invalid(problem) => Fault::Invalid(text(problem)),
        Fault::Later(problem) => Fault::Later(text(problem)),
        Fault::Denied(problem) => Fault::Denied(text(problem)),
    }
}

/// Work on a disk that ended without an answer: the process is going down, or the work panicked.
fn interrupted(what: &str, error: &tokio::task::JoinError) -> Fault {
    Fault::later(Code::InternalProblem, format!("reading {what} was interrupted: {error}"))
}
