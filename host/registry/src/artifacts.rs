//! WebAssembly components that are artifacts of a registry, for executions of type `Wasm`.

use std::sync::Arc;

use orangery_core::{
    blueprint::ComponentReference,
    error::{Code, Fault},
    port::{Artifacts, BoxFuture},
};

use crate::{
    oci::{Keyring, Reference},
    registry::Registries,
};

/// The components that one Context's credentials may read. What was fetched once is in the cache.
pub(crate) struct WasmArtifacts {
    pub(crate) registries: Arc<Registries>,
    pub(crate) keyring: Keyring,
}

impl Artifacts for WasmArtifacts {
    fn component<'a>(&'a self, reference: &'a ComponentReference) -> BoxFuture<'a, Result<Vec<u8>, Fault>> {
        Box::pin(async move {
            let unusable = |why: String| Fault::invalid(Code::ConfigurationProblem, format!("{reference} {why}"));
            let parsed: Reference = reference.to_string().parse().map_err(|error| unusable(format!("{error}")))?;
            let manifest = self.registries.manifest(&parsed, &self.keyring).await?;
            let layer = manifest.wasm_layer().map_err(unusable)?;
            self.registries.blob(&parsed.repository, layer, &self.keyring).await.map(Arc::unwrap_or_clone)
        })
    }
}
