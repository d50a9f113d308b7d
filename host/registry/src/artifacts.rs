//! Content by reference, for executions of type `Wasm` and for deployers: what one Context's credentials may read.

use std::sync::Arc;

use orangery_core::{
    digest::content::{Algorithm, ContentDigest},
    error::{Code, Fault},
    port::BoxFuture,
};
use orangery_ocm::{Artifact, ArtifactFuture, Artifacts, ComponentReference, LayerFuture, ResourceContent};

use crate::{
    access::ResourceAccess,
    cache::Bytes,
    held_manifest::HeldManifest,
    named::{self, NamedContent},
    oci::{ArtifactReference, CHART, OciDescriptor, OciRepository, PROVENANCE, ReservedContent},
    wasm::component_layer,
};

/// What the credentials of one Context may read. What a digest names is in the cache once it was fetched.
pub(crate) struct Remote(pub(crate) ResourceAccess);

fn invalid(why: String) -> Fault {
    Fault::invalid(Code::ConfigurationProblem, why)
}

impl Remote {
    fn check(&self, content: NamedContent<'_>) -> Result<(), Fault> {
        content.check(&self.0.keyring.sources())
    }

    /// The artifact that a text names, where it may be named so.
    async fn artifact(&self, text: &str) -> Result<Arc<dyn Artifact>, Fault> {
        self.check(NamedContent::Oci(text))?;
        self.0.content_layer(&named::artifact(text)?).await
    }
}

impl Artifacts for Remote {
    fn component<'a>(&'a self, reference: &'a ComponentReference) -> ArtifactFuture<'a> {
        Box::pin(async move {
            let ResourceAccess { registries, keyring } = &self.0;
            let parsed = named::artifact(&reference.to_string())?;
            let manifest = registries.manifest(&parsed, keyring).await?;
            let layer = component_layer(&manifest, reference)?.clone();
            let layer = RegistryLayer::new(self.0.clone(), parsed.repository, manifest, layer);
            Ok(Arc::new(layer) as Arc<dyn Artifact>)
        })
    }

    fn oci<'a>(&'a self, reference: &'a str) -> ArtifactFuture<'a> {
        Box::pin(self.artifact(reference))
    }

    fn url<'a>(&'a self, url: &'a str) -> ArtifactFuture<'a> {
        Box::pin(async move {
            self.check(NamedContent::Url(url))?;
            let ResourceAccess { registries, keyring } = &self.0;
            let (got, _) = registries.reserved_file(&named::file(url)?, keyring).await?;
            Ok(held(ResourceContent { media_type: got.media_type, bytes: Bytes::new(got.bytes) }))
        })
    }

    fn helm_repository<'a>(&'a self, url: &'a str, chart: &'a str, version: &'a str) -> ArtifactFuture<'a> {
        Box::pin(async move {
            if url.starts_with("oci://") {
                return self.artifact(&named::chart_in_registry(url, chart, version)).await;
            }
            self.check(NamedContent::Chart { repository: url, chart, version })?;
            if version.is_empty() {
                let message = format!("the chart {chart} has no version; say which one, such as 1.2.3");
                return Err(invalid(message));
            }
            let unusable = |why: String| invalid(format!("the address of the chart repository {why}"));
            let bytes = self.0.chart(url, chart, version, None, unusable).await?.into_bytes();
            let content = ResourceContent { media_type: CHART.to_owned(), bytes };
            let (url, chart, version) = (url.to_owned(), chart.to_owned(), version.to_owned());
            Ok(Arc::new(OfRepository {
                chart: CachedContent::new(content),
                reach: self.0.clone(),
                named: (url, chart, version),
            }))
        })
    }
}

impl ResourceAccess {
    /// The layer of an artifact that is its content.
    async fn content_layer(&self, reference: &ArtifactReference) -> Result<Arc<dyn Artifact>, Fault> {
        let manifest = self.registries.current_manifest(reference, &self.keyring).await?;
        self.layer_of(reference, manifest)
    }

    /// The same of an artifact that is known.
    pub(crate) fn layer_of(
        &self,
        reference: &ArtifactReference,
        manifest: HeldManifest,
    ) -> Result<Arc<dyn Artifact>, Fault> {
        let layer = manifest.content_layer().map_err(|why| invalid(format!("{reference} {why}")))?.clone();
        Ok(Arc::new(RegistryLayer::new(self.clone(), reference.repository.clone(), manifest, layer)))
    }
}

/// A layer of an artifact in a registry.
struct RegistryLayer {
    reach: ResourceAccess,
    repository: OciRepository,
    manifest: HeldManifest,
    layer: OciDescriptor,
    digest: String,
}

impl RegistryLayer {
    fn new(reach: ResourceAccess, repository: OciRepository, manifest: HeldManifest, layer: OciDescriptor) -> Self {
        let digest = layer.digest.to_string();
        Self { reach, repository, manifest, layer, digest }
    }
}

impl Artifact for RegistryLayer {
    fn digest(&self) -> &str {
        &self.digest
    }

    fn media_type(&self) -> &str {
        &self.layer.media_type
    }

    fn size(&self) -> u64 {
        self.layer.size
    }

    fn content(&self) -> BoxFuture<'_, Result<Bytes, Fault>> {
        let ResourceAccess { registries, keyring } = &self.reach;
        Box::pin(async {
            registries.blob(&self.repository, &self.layer, keyring).await.map(ReservedContent::into_bytes)
        })
    }

    fn at_hand(&self) -> BoxFuture<'_, Option<Bytes>> {
        let ResourceAccess { registries, keyring } = &self.reach;
        Box::pin(async {
            registries.blob_at_hand(&self.repository, &self.layer, keyring).await.map(ReservedContent::into_bytes)
        })
    }

    fn layer<'a>(&'a self, media_type: &'a str) -> LayerFuture<'a> {
        let other = self.manifest.layers.iter().find(|layer| layer.media_type == media_type);
        let found = other.map(|other| {
            let other = Self::new(self.reach.clone(), self.repository.clone(), self.manifest.clone(), other.clone());
            Arc::new(other) as Arc<dyn Artifact>
        });
        Box::pin(async { Ok(found) })
    }
}

/// Content that is here already.
struct CachedContent {
    digest: String,
    content: ResourceContent,
}

impl CachedContent {
    fn new(content: ResourceContent) -> Self {
        Self { digest: ContentDigest::of(Algorithm::Sha256, &content.bytes).to_string(), content }
    }
}

/// An artifact of one layer.
pub(crate) fn held(content: ResourceContent) -> Arc<dyn Artifact> {
    Arc::new(CachedContent::new(content))
}

/// A chart that is here already.
pub(crate) fn held_chart(bytes: Vec<u8>) -> Arc<dyn Artifact> {
    held(ResourceContent { media_type: CHART.to_owned(), bytes: Bytes::new(bytes) })
}

impl Artifact for CachedContent {
    fn digest(&self) -> &str {
        &self.digest
    }

    fn media_type(&self) -> &str {
        &self.content.media_type
    }

    fn size(&self) -> u64 {
        self.content.bytes.len() as u64
    }

    fn content(&self) -> BoxFuture<'_, Result<Bytes, Fault>> {
        Box::pin(async { Ok(Bytes::clone(&self.content.bytes)) })
    }

    fn is_in_memory(&self) -> bool {
        true
    }

    fn layer<'a>(&'a self, media_type: &'a str) -> LayerFuture<'a> {
        // Its digest is known already.
        let this =
            || Arc::new(Self { digest: self.digest.clone(), content: self.content.clone() }) as Arc<dyn Artifact>;
        let found = (media_type == self.content.media_type).then(this);
        Box::pin(async { Ok(found) })
    }
}

/// A chart of a classic repository, which has its provenance in a file beside it.
struct OfRepository {
    chart: CachedContent,
    reach: ResourceAccess,
    /// Repository, chart and version.
    named: (String, String, String),
}

impl Artifact for OfRepository {
    fn digest(&self) -> &str {
        self.chart.digest()
    }

    fn media_type(&self) -> &str {
        self.chart.media_type()
    }

    fn size(&self) -> u64 {
        self.chart.size()
    }

    fn content(&self) -> BoxFuture<'_, Result<Bytes, Fault>> {
        self.chart.content()
    }

    fn is_in_memory(&self) -> bool {
        true
    }

    fn layer<'a>(&'a self, media_type: &'a str) -> LayerFuture<'a> {
        if media_type != PROVENANCE {
            return self.chart.layer(media_type);
        }
        let (repository, chart, version) = &self.named;
        Box::pin(async move { self.reach.provenance(repository, chart, version).await.map(held).map(Some) })
    }
}
