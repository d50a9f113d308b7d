//! Rendering installations without a cluster: objects of manifests stand for those of the cluster, and what one
//! installation writes is there for the next. The rendering itself is that of the controller (`orangery-render`).

mod component;
mod given;
mod live;
mod not_wanted;
mod opaque;
mod states;
mod tree;
mod undecided;
mod world;

use orangery_api::convert::{ContextError, NotOneSource};
use orangery_blueprint::{export::ExportError, import::ImportError};
use orangery_ocm::NotSigned;
use orangery_render::{LoadError, RenderError};

pub(crate) use self::given::{descriptor, fields, imported, imports, seed};
pub use self::{
    component::OfflineVersions,
    given::{Given, GivenError, GivenOrigin},
    live::LiveNamespace,
    opaque::OpaqueValues,
    tree::{Offline, RenderSubject, RenderedInstallation},
    world::{NamespaceObjects, WorldError},
};

/// Why an installation cannot be rendered.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {why}")]
pub struct OfflineError {
    /// Which installation: the names from the root down, separated by `/`.
    pub path: String,
    /// Why.
    #[source]
    pub why: Box<OfflineFault>,
}

/// What is wrong with an installation.
#[derive(Debug, thiserror::Error)]
pub enum OfflineFault {
    /// Its Context is not among the manifests.
    #[error("there is no Context {0:?} among the manifests; add it, or correct spec.context")]
    NoContext(String),
    /// What its Context names is not there.
    #[error("{0}; here it must be among the manifests")]
    Context(#[from] ContextError),
    /// Its component version is named in no form, or in both.
    #[error(transparent)]
    Source(#[from] NotOneSource),
    /// Its component version has to be signed.
    #[error(transparent)]
    NotSigned(#[from] NotSigned),
    /// Its blueprint cannot be loaded.
    #[error("{0}; orangery blueprint check shows where")]
    Blueprint(#[source] LoadError),
    /// Something else of its blueprint or component version.
    #[error("{0}")]
    Load(#[source] LoadError),
    /// An import cannot be read.
    #[error("{0}; or give it with --imports")]
    Imports(#[from] ImportError),
    /// Rendering failed.
    #[error(transparent)]
    Render(#[from] Box<RenderError>),
    /// A sub-installation of a folder or an archive comes from a component version.
    #[error("{0}; of a folder or an archive: --component-descriptor FILE")]
    NoComponent(#[source] Box<RenderError>),
    /// Exports cannot be written.
    #[error(transparent)]
    Exports(#[from] ExportError),
    /// Something is given that nothing asks for.
    #[error("--{flag} gives {what} {name:?}, which {whose} not have; known are: {known}")]
    Unknown {
        /// The flag.
        flag: &'static str,
        /// What it is.
        what: &'static str,
        /// Its name.
        name: String,
        /// The object that does not have it.
        whose: &'static str,
        /// The names that there are.
        known: String,
    },
    /// Its blueprint has no end.
    #[error("it is not rendered: {0}, which are as many as may be; look for a blueprint that contains itself")]
    Endless(String),
    /// What is kept from an earlier job is no state.
    #[error("the given state cannot be used: {0}")]
    State(String),
}

impl From<LoadError> for OfflineFault {
    fn from(error: LoadError) -> Self {
        match error {
            LoadError::Blueprint(_) => OfflineFault::Blueprint(error),
            LoadError::NotOneSource
            | LoadError::NoComponent { .. }
            | LoadError::Component(_)
            | LoadError::Files(_)
            | LoadError::Schema { .. } => OfflineFault::Load(error),
        }
    }
}

impl From<RenderError> for OfflineFault {
    fn from(error: RenderError) -> Self {
        match error {
            RenderError::NoComponent { .. } => OfflineFault::NoComponent(Box::new(error)),
            _ => OfflineFault::Render(Box::new(error)),
        }
    }
}

/// The subject of a sentence about what has to be given.
const BLUEPRINT: &str = "the blueprint does";

/// What the command line gives under names, and who must have them.
#[derive(Clone, Copy)]
struct GivenNames<'a> {
    /// The flag.
    flag: &'static str,
    /// What has the names.
    what: &'static str,
    /// The object that must have it.
    whose: &'static str,
    /// The names that there are.
    known: &'a [&'a str],
}

impl GivenNames<'_> {
    /// Refuses a name that nobody has.
    fn check<'n>(self, given: impl IntoIterator<Item = &'n String>) -> Result<(), OfflineFault> {
        let GivenNames { flag, what, whose, known } = self;
        let Some(name) = given.into_iter().find(|name| !known.contains(&name.as_str())) else { return Ok(()) };
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        Err(OfflineFault::Unknown { flag, what, name: name.clone(), whose, known })
    }
}
