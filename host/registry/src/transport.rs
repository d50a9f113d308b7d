//! Transport archives (CommonTransportFormat): what a registry has, in one folder or archive. `artifact-index.json` says
//! which manifest has which name and tag; `blobs` has everything by digest.

use std::{collections::BTreeMap, sync::Arc};

use orangery_core::{
    digest::content::{Algorithm, ContentDigest},
    error::Fault,
    port::BoxFuture,
};
use orangery_turns::blocking;
use serde::Deserialize;

use crate::{
    cache::{Blob, ContentCache},
    oci::{DescriptorLayer, Manifest, ManifestDocument, ReservedContent, manifest_document, tag_of_version},
    source::{self, Blobs, FoundVersion, MOST_OF_A_BLOB, MOST_OF_A_DESCRIPTOR, ReadDescriptor, VersionSource},
    store::BlobStore,
    version_memory::HeldVersionMemory,
};

const INDEX: &str = "artifact-index.json";
const MOST_OF_AN_INDEX: u64 = 64 << 20;
const MOST_OF_A_MANIFEST: u64 = 4 << 20;
/// Indexes that stand in one another.
const MOST_LEVELS: usize = 3;

/// One transport archive.
#[derive(Clone)]
pub(crate) struct TransportArchive {
    content: Arc<TransportContent>,
}

struct TransportContent {
    store: BlobStore,
    /// Of a packed archive: a blob is looked for once, not with each use.
    cache: Arc<ContentCache>,
    /// By repository and tag.
    tags: BTreeMap<(String, String), ContentDigest>,
}

#[derive(Deserialize)]
struct TransportIndex {
    artifacts: Vec<TransportEntry>,
}

#[derive(Deserialize)]
struct TransportEntry {
    repository: String,
    #[serde(default)]
    tag: String,
    digest: String,
}

impl TransportArchive {
    /// Reads the index; it is best kept, since that goes through the whole of a packed archive.
    pub(crate) fn open(store: BlobStore, cache: Arc<ContentCache>) -> Result<Self, Fault> {
        let bytes = store.read(INDEX, MOST_OF_AN_INDEX)?;
        let bytes = bytes.ok_or_else(|| store.fault(&format!("it has no {INDEX}, so it is no transport archive")))?;
        let unusable = |why: String| store.fault(&format!("its {INDEX} cannot be used: {why}"));
        let index: TransportIndex = serde_json::from_slice(&bytes).map_err(|error| unusable(error.to_string()))?;
        let mut tags = BTreeMap::new();
        for TransportEntry { repository, tag, digest } in index.artifacts {
            let digest = digest.parse().map_err(|error| unusable(format!("{error}")))?;
            tags.insert((repository, tag), digest);
        }
        Ok(Self { content: Arc::new(TransportContent { store, cache, tags }) })
    }

    /// The file whose change means that the archive is another one.
    pub(crate) const INDEX: &str = INDEX;
}

impl TransportContent {
    /// A blob by its digest, which is compared.
    async fn blob(self: &Arc<Self>, digest: &ContentDigest, most: u64) -> Result<ReservedContent, Fault> {
        let fetch = || {
            let (content, digest) = (Arc::clone(self), digest.clone());
            async move {
                let text = content.store.display();
                let read = blocking(move || {
                    let name = format!("blobs/{}", digest.to_string().replacen(':', ".", 1));
                    let found = content.store.read(&name, most)?;
                    found.ok_or_else(|| content.store.fault(&format!("it has no blob {digest}")))
                });
                read.await.map_err(|error| crate::interrupted(&text, &error))?.map(ReservedContent::from)
            }
        };
        if self.store.is_folder() {
            let content = fetch().await?;
            if ContentDigest::of(digest.algorithm(), content.bytes()) != *digest {
                return Err(self.store.fault(&format!("its blob {digest} has another content")));
            }
            return Ok(content);
        }
        // Whoever may name the archive may read all of it.
        let place = self.store.display();
        self.cache
            .blob(
                &Blob {
                    place: &place,
                    digest,
                    asker: &ContentDigest::of(Algorithm::Sha256, b""),
                    sources: Arc::default(),
                    tenant: &None,
                    client: None,
                },
                fetch,
            )
            .await
    }

    async fn manifest(self: &Arc<Self>, digest: &ContentDigest) -> Result<Arc<Manifest>, Fault> {
        let mut digest = digest.clone();
        for _ in 0..MOST_LEVELS {
            let bytes = self.blob(&digest, MOST_OF_A_MANIFEST).await?;
            let unusable = |why: String| self.store.fault(&format!("its manifest {digest} cannot be used: {why}"));
            match manifest_document(bytes.bytes(), digest.clone(), "").map_err(unusable)? {
                ManifestDocument::Manifest(manifest) => return Ok(Arc::from(manifest)),
                ManifestDocument::Index(all) => {
                    let first = all.into_iter().next();
                    digest = first.ok_or_else(|| unusable("it is an index without manifests".to_owned()))?.digest;
                }
            }
        }
        Err(self.store.fault(&format!("more than {MOST_LEVELS} indexes stand in one another")))
    }
}

impl VersionSource for TransportArchive {
    fn find<'a>(
        &'a self,
        (name, version): (&'a str, &'a str),
        memory: &'a HeldVersionMemory,
    ) -> BoxFuture<'a, Result<Option<FoundVersion>, Fault>> {
        Box::pin(async move {
            let content = &self.content;
            let tag = tag_of_version(version);
            let hashed = ContentDigest::of(Algorithm::Sha256, name.as_bytes());
            let names = [format!("component-descriptors/{name}"), name.to_owned(), hashed.hex().to_owned()];
            let found = names.into_iter().find_map(|name| content.tags.get(&(name, tag.clone())));
            let Some(digest) = found else { return Ok(None) };
            let manifest = content.manifest(digest).await?;
            let unusable = |why: String| {
                content.store.fault(&format!("its component version {name}:{version} cannot be used: {why}"))
            };
            let config = content.blob(&manifest.config.digest, MOST_OF_A_MANIFEST).await?;
            let layer = DescriptorLayer::of_descriptor(&manifest, config.bytes()).map_err(unusable)?;
            let bytes = content.blob(&layer.blob.digest, MOST_OF_A_DESCRIPTOR).await?;
            let text = layer.text(bytes.into_vec()).map_err(unusable)?;
            let ReadDescriptor { descriptor, bytes } = source::read(&text, name, version, &content.store.display())?;
            memory.add(bytes)?;
            let blobs = Arc::new(LocalBlobs { content: Arc::clone(content) });
            Ok(Some(FoundVersion { descriptor: Arc::new(descriptor), bytes, blobs }))
        })
    }
}

/// The local blobs of a component version.
struct LocalBlobs {
    content: Arc<TransportContent>,
}

impl Blobs for LocalBlobs {
    fn local<'a>(&'a self, reference: &'a str) -> BoxFuture<'a, Result<ReservedContent, Fault>> {
        Box::pin(async move {
            let digest = reference.replacen("sha256.", "sha256:", 1);
            let digest = digest.parse().map_err(|error| self.content.store.fault(&format!("a local blob: {error}")))?;
            self.content.blob(&digest, MOST_OF_A_BLOB).await
        })
    }

    fn relative(&self, _: &str) -> Option<String> {
        None
    }
}
