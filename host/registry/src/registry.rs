//! Component versions in OCI registries, and other artifacts there: asked once, then from memory and from the cache.

use std::{collections::HashMap, sync::Arc};

use orangery_core::{
    component::NameMapping,
    digest::content::ContentDigest,
    error::{Code, Fault},
    port::BoxFuture,
};

use crate::{
    cache::{Bytes, Cache},
    memory::Memory,
    oci::{Client, Descriptor, Keyring, Manifest, Reference, Repository, Versions},
    source::{self, Blobs, Found, MOST_OF_A_BLOB, Source},
};

/// How many manifests and component versions are kept in memory.
const MOST_KEPT: usize = 4096;

/// All registries.
///
/// What a registry answered is kept for those who ask with the same credentials: a component version does not change,
/// so the next job asks nothing. Blobs are shared by all, but are only given to who got their manifest with
/// credentials of his own.
pub(crate) struct Registries {
    pub(crate) client: Arc<Client>,
    pub(crate) cache: Arc<Cache>,
    manifests: Memory<(Reference, ContentDigest), Arc<Manifest>>,
    versions: Memory<VersionKey, Found>,
    /// Blobs that were fetched by their digest alone: repository, credentials, digest.
    proven: Memory<(Repository, ContentDigest, ContentDigest), ()>,
}

/// Repository, credentials, component and version.
type VersionKey = (Repository, ContentDigest, String);

impl Registries {
    pub(crate) fn new(client: Client, cache: Arc<Cache>) -> Self {
        Self {
            client: Arc::new(client),
            cache,
            manifests: Memory::new(MOST_KEPT),
            versions: Memory::new(MOST_KEPT),
            proven: Memory::new(MOST_KEPT),
        }
    }

    /// The manifest of an artifact.
    pub(crate) async fn manifest(&self, reference: &Reference, keyring: &Keyring) -> Result<Arc<Manifest>, Fault> {
        let key = (reference.clone(), keyring.fingerprint(&reference.repository));
        if let Some(manifest) = self.manifests.get(&key) {
            return Ok(manifest);
        }
        let manifest = self.client.manifest(reference, keyring).await?;
        self.manifests.put(key, Arc::clone(&manifest));
        Ok(manifest)
    }

    /// A blob that a manifest of the repository names, which the asker could read.
    pub(crate) async fn blob(&self, at: &Repository, blob: &Descriptor, keyring: &Keyring) -> Result<Bytes, Fault> {
        let fetch = || async {
            let most = MOST_OF_A_BLOB.min(self.client.settings().limits.blob);
            self.client.small_blob(at, blob, most, keyring).await
        };
        self.cache.get(&blob.digest, fetch).await
    }

    /// A blob that only its digest names: it comes from the cache for who has fetched it before.
    pub(crate) async fn unproven_blob(
        &self,
        at: &Repository,
        blob: &Descriptor,
        keyring: &Keyring,
    ) -> Result<Bytes, Fault> {
        let key = (at.clone(), keyring.fingerprint(at), blob.digest.clone());
        if self.proven.get(&key).is_some() {
            return self.blob(at, blob, keyring).await;
        }
        let most = MOST_OF_A_BLOB.min(self.client.settings().limits.blob);
        let bytes = Bytes::from(self.client.small_blob(at, blob, most, keyring).await?);
        // Into the cache: what is not there yet is this.
        let kept = Arc::clone(&bytes);
        let bytes = self.cache.get(&blob.digest, || async move { Ok(kept.to_vec()) }).await?;
        self.proven.put(key, ());
        Ok(bytes)
    }
}

/// The component versions below one address.
pub(crate) struct InRegistry {
    registries: Arc<Registries>,
    keyring: Arc<Keyring>,
    versions: Versions,
    base_url: String,
}

impl InRegistry {
    pub(crate) fn new(
        registries: Arc<Registries>,
        keyring: Arc<Keyring>,
        base_url: &str,
        mapping: NameMapping,
    ) -> Result<Self, Fault> {
        let versions = Versions::new(Arc::clone(&registries.client), Arc::clone(&keyring), base_url, mapping)?;
        Ok(Self { registries, keyring, versions, base_url: base_url.to_owned() })
    }
}

impl Source for InRegistry {
    fn find<'a>(&'a self, name: &'a str, version: &'a str) -> BoxFuture<'a, Result<Option<Found>, Fault>> {
        Box::pin(async move {
            let repository = self.versions.repository(name)?;
            let key = (repository.clone(), self.keyring.fingerprint(&repository), version.to_owned());
            if let Some(found) = self.registries.versions.get(&key) {
                return Ok(Some(found));
            }
            let Some(found) = self.versions.find(name, version).await? else { return Ok(None) };
            let descriptor = source::read(&found.descriptor, name, version, &repository.to_string())?;
            let layers = found.manifest.layers.iter().map(|layer| (layer.digest.clone(), layer.clone())).collect();
            let blobs = Layers {
                registries: Arc::clone(&self.registries),
                keyring: Arc::clone(&self.keyring),
                repository: found.repository,
                layers,
                base_url: self.base_url.clone(),
            };
            let found = Found { descriptor, blobs: Arc::new(blobs) };
            self.registries.versions.put(key, found.clone());
            Ok(Some(found))
        })
    }
}

/// The layers of a component version's manifest.
struct Layers {
    registries: Arc<Registries>,
    keyring: Arc<Keyring>,
    repository: Repository,
    layers: HashMap<ContentDigest, Descriptor>,
    base_url: String,
}

impl Blobs for Layers {
    fn local<'a>(&'a self, reference: &'a str) -> BoxFuture<'a, Result<Bytes, Fault>> {
        Box::pin(async move {
            let missing = |why: String| {
                let message = format!("the local blob {reference:?} is not in {}: {why}", self.repository);
                Fault::invalid(Code::ConfigurationProblem, message)
            };
            let digest: ContentDigest = reference.parse().map_err(|error| missing(format!("{error}")))?;
            let layer = self.layers.get(&digest);
            let layer =
                layer.ok_or_else(|| missing("no layer has this digest; push the component again".to_owned()))?;
            self.registries.blob(&self.repository, layer, &self.keyring).await
        })
    }

    fn relative(&self, reference: &str) -> Option<String> {
        Some(format!("{}/{}", self.base_url, reference.trim_start_matches('/')))
    }
}
