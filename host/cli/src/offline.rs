//! Rendering installations without a cluster: objects of manifests stand for those of the cluster, and what one
//! installation writes is there for the next. The rendering itself is that of the controller (`orangery-render`).

mod given;
mod tree;
mod world;

use orangery_core::{blueprint::BlueprintError, blueprint::FileSystemError, import::ImportError};
use orangery_render::RenderError;

pub(crate) use self::given::imports;
pub use self::{
    given::{Given, GivenError},
    tree::{Offline, Rendered, Subject},
    world::{World, WorldError},
};

/// Why an installation cannot be rendered.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {why}")]
pub struct OfflineError {
    /// Which installation: the names from the root down, separated by `/`.
    pub path: String,
    /// Why.
    #[source]
    pub why: Why,
}

/// What is wrong with an installation.
#[derive(Debug, thiserror::Error)]
pub enum Why {
    /// Its blueprint is in a component version.
    #[error(
        "the blueprint comes from a component version, which cannot be fetched here; write its files into the installation, or render the blueprint's own folder"
    )]
    NotHere,
    /// Its files cannot be read.
    #[error(transparent)]
    Files(#[from] FileSystemError),
    /// Its blueprint is invalid.
    #[error("{0}; orangery blueprint check shows where")]
    Blueprint(#[from] Box<BlueprintError>),
    /// An import cannot be read.
    #[error("{0}; or give it with --imports")]
    Imports(#[from] ImportError),
    /// Rendering failed.
    #[error(transparent)]
    Render(#[from] Box<RenderError>),
    /// What is kept from an earlier job is no state.
    #[error("the given state cannot be used: {0}")]
    State(String),
}
