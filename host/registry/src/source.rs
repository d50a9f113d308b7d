//! Where component versions are found, whatever keeps them.

use std::sync::Arc;

use orangery_core::{
    error::{Code, Fault},
    memory,
    port::BoxFuture,
    yaml,
};
use orangery_ocm::Descriptor;

use crate::{oci::ReservedContent, version_memory::HeldVersionMemory};

/// The most bytes of one descriptor.
pub(crate) const MOST_OF_A_DESCRIPTOR: u64 = 16 << 20;
/// The most bytes of one blob: resources are handed to templates and engines as a whole.
pub(crate) const MOST_OF_A_BLOB: u64 = 512 << 20;

/// A repository of component versions.
pub(crate) trait VersionSource: Send + Sync {
    /// A component version by its name and version; `None` where the repository has none. What it takes is counted in `memory`.
    fn find<'a>(
        &'a self,
        named: (&'a str, &'a str),
        memory: &'a HeldVersionMemory,
    ) -> BoxFuture<'a, Result<Option<FoundVersion>, Fault>>;
}

/// A component version that was found.
#[derive(Clone)]
pub(crate) struct FoundVersion {
    /// Its descriptor.
    pub(crate) descriptor: Arc<Descriptor>,
    /// Bytes of memory that it takes, at most: the descriptor, and what names its blobs.
    pub(crate) bytes: u64,
    /// Its local blobs.
    pub(crate) blobs: Arc<dyn Blobs>,
}

/// A descriptor that was read, and the memory that it takes, at most.
pub(crate) struct ReadDescriptor {
    pub(crate) descriptor: Descriptor,
    pub(crate) bytes: u64,
}

/// The blobs that are kept together with a component version.
pub(crate) trait Blobs: Send + Sync {
    /// A blob by its `localReference`.
    fn local<'a>(&'a self, reference: &'a str) -> BoxFuture<'a, Result<ReservedContent, Fault>>;
    /// The repository of an artifact with a reference relative to this repository (`relativeOciReference`), where it is
    /// a registry.
    fn relative(&self, reference: &str) -> Option<String>;
}

/// Reads a descriptor, and checks that it is the one asked for. `place` says where it was found.
pub(crate) fn read(text: &str, name: &str, version: &str, place: &str) -> Result<ReadDescriptor, Fault> {
    let read = parse(text, place)?;
    let descriptor = &read.descriptor;
    if descriptor.name == name && descriptor.version == version {
        return Ok(read);
    }
    let message = format!("{place} has the descriptor of {descriptor} where {name}:{version} should be; push it again");
    Err(Fault::invalid(Code::ConfigurationProblem, message))
}

/// Reads any descriptor.
pub(crate) fn parse(text: &str, place: &str) -> Result<ReadDescriptor, Fault> {
    let unusable = |why: String| Fault::invalid(Code::ConfigurationProblem, format!("{place}: {why}"));
    let document =
        yaml::decode(text).map_err(|error| unusable(format!("the component descriptor is no YAML: {error}")))?;
    let descriptor = Descriptor::parse(&document).map_err(|error| unusable(error.to_string()))?;
    Ok(ReadDescriptor { descriptor, bytes: memory::of(&document) })
}
