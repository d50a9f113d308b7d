//! What refers to an artifact: signatures, bills of materials, provenance. Listed by the registry, or, where it keeps no such lists,
//! in an index under a tag that is named after the artifact's digest, as the distribution specification has it.

use bytes::Bytes;
use http::StatusCode;
use orangery_core::{
    digest::content::ContentDigest,
    error::{Code, Fault},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    client::Client,
    connection::{Ask, Deadline},
    keyring::Keyring,
    manifest::{self, IMAGE_INDEX, IMAGE_MANIFEST},
    reference::{ArtifactSelector, OciRepository},
    refusal::ExchangeRefusal,
};

/// The most referrers of an artifact that are looked at.
const MOST_REFERRERS: usize = 256;

/// One manifest that refers to an artifact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Referrer {
    /// The manifest's media type.
    #[serde(default)]
    pub media_type: String,
    /// The manifest's digest.
    pub digest: String,
    /// The manifest's size in bytes.
    pub size: u64,
    /// What it is.
    #[serde(default)]
    pub artifact_type: String,
}

#[derive(Deserialize)]
struct ReferrerIndex {
    #[serde(default)]
    manifests: Vec<Referrer>,
}

/// The tag under which what refers to an artifact is listed.
fn fallback_tag(artifact: &ContentDigest) -> String {
    let hex: String = artifact.hex().chars().take(64).collect();
    format!("{}-{hex}", artifact.algorithm().name())
}

impl Client {
    /// What refers to an artifact, in the order of the registry; nothing where it lists nothing.
    ///
    /// # Errors
    /// The registry cannot be reached, refuses, or answers what is no index.
    pub async fn referrers(
        &self,
        repository: &OciRepository,
        artifact: &ContentDigest,
        keyring: &Keyring,
    ) -> Result<Vec<Referrer>, Fault> {
        let place = |refusal: ExchangeRefusal| refusal.fault(&format!("what refers to {repository}@{artifact}"));
        let listed = self.index(repository, &format!("referrers/{artifact}"), keyring).await.map_err(place)?;
        match listed {
            Some(listed) => Ok(listed),
            None => Ok(self.tagged_referrers(repository, artifact, keyring).await.map_err(place)?),
        }
    }

    async fn tagged_referrers(
        &self,
        repository: &OciRepository,
        artifact: &ContentDigest,
        keyring: &Keyring,
    ) -> Result<Vec<Referrer>, ExchangeRefusal> {
        let path = format!("manifests/{}", ArtifactSelector::Tag(fallback_tag(artifact)));
        Ok(self.index(repository, &path, keyring).await?.unwrap_or_default())
    }

    /// The manifests of an index; `None` where there is none.
    async fn index(
        &self,
        repository: &OciRepository,
        path: &str,
        keyring: &Keyring,
    ) -> Result<Option<Vec<Referrer>>, ExchangeRefusal> {
        let limits = &self.settings().limits;
        let until = Deadline::after(limits.manifest_time);
        let ask = Ask::get(self.address(repository, path)?, manifest::ACCEPTED, keyring.asks_as());
        let (answer, tried) = self.authorized(repository, ask, keyring, until).await?;
        // Registries without such lists know no such path, and say so in one of these ways.
        if matches!(answer.status, StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED | StatusCode::BAD_REQUEST) {
            return Ok(None);
        }
        let answer = self.metered(self.usable(answer, tried, keyring).await?, keyring)?;
        let (bytes, _room) = self.document(answer, repository, keyring).await?;
        let index: ReferrerIndex = serde_json::from_slice(&bytes)
            .map_err(|_| ExchangeRefusal::Malformed("what it lists is no index".to_owned()))?;
        if index.manifests.len() > MOST_REFERRERS {
            let why =
                format!("it lists {} referrers, {MOST_REFERRERS} are looked at; delete some", index.manifests.len());
            return Err(ExchangeRefusal::Malformed(why));
        }
        Ok(Some(index.manifests))
    }

    /// Pushes a manifest that refers to an artifact, with one layer, and sees to it that it is listed.
    ///
    /// # Errors
    /// The registry cannot be reached, or does not take it.
    pub async fn push_referrer(
        &self,
        repository: &OciRepository,
        (subject, subject_size): (&ContentDigest, u64),
        (artifact_type, content): (&str, Bytes),
        keyring: &Keyring,
    ) -> Result<ContentDigest, Fault> {
        let size = content.len();
        let layer = self.push_blob(repository, content, keyring).await?;
        let config = self.push_blob(repository, Bytes::from_static(b"{}"), keyring).await?;
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": IMAGE_MANIFEST,
            "artifactType": artifact_type,
            "config": {"mediaType": "application/vnd.oci.empty.v1+json", "digest": config.to_string(), "size": 2},
            "layers": [{"mediaType": artifact_type, "digest": layer.to_string(), "size": size}],
            "subject": {"mediaType": IMAGE_MANIFEST, "digest": subject.to_string(), "size": subject_size},
        });
        let bytes = Bytes::from(manifest.to_string());
        let size = bytes.len() as u64;
        let pushed = self.push_manifest(repository, None, (IMAGE_MANIFEST, bytes), keyring).await?;
        if !pushed.is_listed {
            let digest = pushed.digest.to_string();
            let (media_type, artifact_type) = (IMAGE_MANIFEST.to_owned(), artifact_type.to_owned());
            self.list_referrer(repository, subject, Referrer { media_type, digest, size, artifact_type }, keyring)
                .await?;
        }
        Ok(pushed.digest)
    }

    /// Adds to the index under the tag, for a registry that keeps no lists. Of two who do so at once, one may be lost.
    async fn list_referrer(
        &self,
        repository: &OciRepository,
        subject: &ContentDigest,
        referrer: Referrer,
        keyring: &Keyring,
    ) -> Result<(), Fault> {
        let tag = fallback_tag(subject);
        let listed = self.tagged_referrers(repository, subject, keyring).await;
        let mut listed = listed.map_err(|refusal| refusal.fault(&format!("{repository}:{tag}")))?;
        if listed.contains(&referrer) {
            return Ok(());
        }
        listed.push(referrer);
        let manifests = serde_json::to_value(&listed)
            .map_err(|error| Fault::invalid(Code::InternalProblem, format!("the index cannot be written: {error}")))?;
        let index: Value = json!({"schemaVersion": 2, "mediaType": IMAGE_INDEX, "manifests": manifests});
        let content = (IMAGE_INDEX, Bytes::from(index.to_string()));
        self.push_manifest(repository, Some(&tag), content, keyring).await.map(drop)
    }
}
