//! What the jobs of one process share.

use std::sync::Arc;

use orangery_blueprint::FileSystem;
use orangery_core::digest::content::ContentDigest;

use crate::{
    cache::ContentCache, memory::Memory, registry::Registries, roots::Roots, store::Stamp, transport::TransportArchive,
    version_memory::VersionMemory,
};

/// What jobs share.
pub(crate) struct SharedRepositories {
    pub(crate) roots: Roots,
    pub(crate) cache: Arc<ContentCache>,
    pub(crate) registries: Arc<Registries>,
    pub(crate) version_memory: Arc<VersionMemory>,
    pub(crate) archives: Memory<String, (Stamp, TransportArchive)>,
    /// Unpacked blueprints, by the digest of their archive.
    pub(crate) blueprints: Memory<(ContentDigest, bool), Arc<FileSystem>>,
}
