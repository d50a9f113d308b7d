//! Manifests and indexes as registries give them, each read as a whole: how large, from whom, and with which digest.

use std::sync::Arc;

use http::header;
use orangery_core::{
    digest::content::{Algorithm, ContentDigest},
    error::Fault,
};

use super::{
    client::Client,
    connection::{Deadline, RegistryResponse},
    content::{HeldMemory, ReservedContent},
    fetch_memory::FetchShare,
    keyring::Keyring,
    manifest::{self, Manifest, ManifestDocument},
    reference::{ArtifactReference, ArtifactSelector, OciRepository},
    refusal::ExchangeRefusal,
};

/// The manifests of an index may be indexes themselves.
const MOST_LEVELS: usize = 3;

/// A manifest or an index that came, with its memory until it is read.
struct RawDocument {
    bytes: Vec<u8>,
    digest: ContentDigest,
    /// What the server says that it is.
    content_type: String,
    memory: HeldMemory,
}

impl Client {
    pub(super) async fn pull_manifest(
        &self,
        reference: &ArtifactReference,
        keyring: &Keyring,
    ) -> Result<Arc<Manifest>, ExchangeRefusal> {
        let until = Deadline::after(self.settings().limits.manifest_time);
        let (mut selector, mut artifact) = (reference.selector.clone(), None);
        for _ in 0..MOST_LEVELS {
            let document = self.raw_document(&reference.repository, &selector, keyring, until).await;
            let RawDocument { bytes, digest, content_type, memory: _memory } =
                document.map_err(|refusal| match refusal {
                    // What an index names is pushed before it: without that it is broken, and nobody waits for it (C-148).
                    ExchangeRefusal::NotFound { .. } if artifact.is_some() => ExchangeRefusal::Malformed(format!(
                        "its index names the manifest {selector}, which the registry does not have; push it again"
                    )),
                    refusal => refusal,
                })?;
            let artifact = artifact.get_or_insert_with(|| digest.clone());
            match manifest::read(&bytes, digest, &content_type).map_err(ExchangeRefusal::Malformed)? {
                ManifestDocument::Manifest(manifest) => {
                    return Ok(Arc::new(Manifest { artifact: artifact.clone(), ..*manifest }));
                }
                ManifestDocument::Index(manifests) => {
                    let first = manifests.into_iter().next();
                    let first =
                        first.ok_or_else(|| ExchangeRefusal::Malformed("its index names no manifest".to_owned()))?;
                    selector = ArtifactSelector::Digest(first.digest);
                }
            }
        }
        Err(ExchangeRefusal::Malformed(format!("more than {MOST_LEVELS} indexes stand in one another")))
    }

    /// A manifest or an index as it is, its digest checked: for who keeps it and reads it with [`manifest::read`].
    pub async fn manifest_bytes(
        &self,
        repository: &OciRepository,
        digest: &ContentDigest,
        keyring: &Keyring,
    ) -> Result<ReservedContent, Fault> {
        let until = Deadline::after(self.settings().limits.manifest_time);
        let selector = ArtifactSelector::Digest(digest.clone());
        let raw = self.raw_document(repository, &selector, keyring, until).await;
        let raw = raw.map_err(|refusal| refusal.fault(&format!("the manifest of {repository}@{digest}")))?;
        Ok(ReservedContent::new(raw.bytes, raw.memory))
    }

    /// What a registry has under a tag or a digest.
    async fn raw_document(
        &self,
        repository: &OciRepository,
        selector: &ArtifactSelector,
        keyring: &Keyring,
        until: Deadline,
    ) -> Result<RawDocument, ExchangeRefusal> {
        let path = format!("manifests/{selector}");
        let answer = self.get(repository, &path, manifest::ACCEPTED, keyring, until).await?;
        let content_type = answer.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let content_type = content_type.unwrap_or_default().chars().take(200).collect();
        let (bytes, memory) = self.document(answer, repository, keyring).await?;
        let algorithm = match selector {
            ArtifactSelector::Digest(digest) => digest.algorithm(),
            ArtifactSelector::Tag(_) => Algorithm::Sha256,
        };
        let got = ContentDigest::of(algorithm, &bytes);
        match selector {
            ArtifactSelector::Digest(expected) if *expected != got => {
                Err(ExchangeRefusal::WrongDigest { expected: expected.clone(), got })
            }
            _ => Ok(RawDocument { bytes, digest: got, content_type, memory }),
        }
    }

    /// A document of the size of a manifest, and its room in memory, which a server that is slow gives back (C-133).
    pub(super) async fn document(
        &self,
        mut answer: RegistryResponse,
        repository: &OciRepository,
        keyring: &Keyring,
    ) -> Result<(Vec<u8>, HeldMemory), ExchangeRefusal> {
        let (most, expected) = (self.settings().limits.manifest, answer.expected());
        if expected.is_none_or(|size| size <= most) {
            let share = FetchShare { tenant: keyring.tenant().clone(), server: repository.registry.authority() };
            answer.reserved = Some(self.memory().reserve_file(&share, expected, most).await?);
        }
        answer.reserved_bytes(most).await
    }
}
