//! Manifests of artifacts, and the memory that they take (C-281).

use std::{ops::Deref, sync::Arc};

use orangery_core::error::Fault;

use crate::{
    oci::{ArtifactReference, Manifest},
    version_memory::HeldVersionMemory,
};

/// Bytes of memory of a manifest that counts nowhere: most have a few thousand.
const SMALL: u64 = 64 << 10;

/// The manifest of an artifact, and what holds its memory.
#[derive(Clone)]
pub(crate) struct HeldManifest {
    manifest: Arc<Manifest>,
    /// `None` for a small one.
    #[expect(dead_code, reason = "it is held for as long as the manifest is there")]
    memory: Option<Arc<HeldVersionMemory>>,
}

impl HeldManifest {
    /// One that counts for as long as it is needed, with what its namespace reads of component versions; `none` holds nothing yet.
    ///
    /// # Errors
    /// There is no room for it.
    pub(crate) fn of(
        manifest: Arc<Manifest>,
        reference: &ArtifactReference,
        none: impl FnOnce() -> Arc<HeldVersionMemory>,
    ) -> Result<Self, Fault> {
        let bytes = manifest.memory();
        if bytes <= SMALL {
            return Ok(Self { manifest, memory: None });
        }
        let memory = none();
        memory.add(bytes).map_err(|fault| crate::within(fault, &format!("the manifest of {reference}")))?;
        Ok(Self { manifest, memory: Some(memory) })
    }

    /// One that counts nowhere.
    #[cfg(test)]
    pub(crate) fn small(manifest: Arc<Manifest>) -> Self {
        Self { manifest, memory: None }
    }

    /// The manifest alone.
    pub(crate) fn shared(&self) -> &Arc<Manifest> {
        &self.manifest
    }
}

impl Deref for HeldManifest {
    type Target = Manifest;

    fn deref(&self) -> &Manifest {
        &self.manifest
    }
}
