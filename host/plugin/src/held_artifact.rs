//! An artifact in the table of a guest: what the resource `artifact` of the contract stands for.

use std::sync::Arc;

/// An artifact that a guest holds.
#[expect(unreachable_pub, reason = "the generated bindings name it again as public, inside this crate")]
pub struct HeldArtifact {
    pub(crate) found: Arc<dyn orangery_ocm::Artifact>,
    /// Its content, once it was read.
    pub(crate) content: Option<Arc<Vec<u8>>>,
}
