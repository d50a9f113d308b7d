//! Pushing to registries: blobs first, then the manifest that names them.

use bytes::Bytes;
use http::{Method, StatusCode};
use orangery_core::{
    digest::content::{Algorithm, ContentDigest},
    error::Fault,
};

use super::{
    client::{Client, codes},
    connection::{Ask, Deadline, RegistryResponse, authority, is_another, next},
    keyring::Keyring,
    manifest,
    reference::{ArtifactSelector, OciRepository},
    refusal::{ExchangeRefusal, is_passing},
};

/// The header of a registry that keeps lists of what refers to an artifact by itself.
const SUBJECT: &str = "oci-subject";

/// A manifest that a registry has taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushedManifest {
    /// Its digest.
    pub digest: ContentDigest,
    /// Whether the registry has put it into the list of what refers to its subject.
    pub is_listed: bool,
}

impl Client {
    /// Pushes a blob, where the registry does not have it, and gives its digest.
    ///
    /// # Errors
    /// The registry cannot be reached, or does not take it.
    pub async fn push_blob(
        &self,
        repository: &OciRepository,
        content: Bytes,
        keyring: &Keyring,
    ) -> Result<ContentDigest, Fault> {
        let digest = ContentDigest::of(Algorithm::Sha256, &content);
        let pushed = self.try_push_blob(repository, &digest, content, keyring).await;
        pushed.map_err(|refusal| refusal.fault_of_push(&format!("the blob {digest} to {repository}")))?;
        Ok(digest)
    }

    /// Pushes a manifest of blobs that are there, under a tag, or under its digest alone.
    ///
    /// # Errors
    /// As [`Client::push_blob`].
    pub async fn push_manifest(
        &self,
        repository: &OciRepository,
        tag: Option<&str>,
        (media_type, content): (&str, Bytes),
        keyring: &Keyring,
    ) -> Result<PushedManifest, Fault> {
        let digest = ContentDigest::of(Algorithm::Sha256, &content);
        let selector = match tag {
            Some(tag) => ArtifactSelector::Tag(tag.to_owned()),
            None => ArtifactSelector::Digest(digest.clone()),
        };
        let pushed = self.put_manifest(repository, &selector, (media_type, content), keyring).await;
        let is_listed = pushed.map_err(|refusal| {
            let separator = if tag.is_some() { ':' } else { '@' };
            refusal.fault_of_push(&format!("the manifest {repository}{separator}{selector}"))
        })?;
        Ok(PushedManifest { digest, is_listed })
    }

    async fn try_push_blob(
        &self,
        repository: &OciRepository,
        digest: &ContentDigest,
        content: Bytes,
        keyring: &Keyring,
    ) -> Result<(), ExchangeRefusal> {
        let until = Deadline::after(self.settings().limits.blob_time);
        let there = self.ask_to_push(repository, Method::HEAD, &format!("blobs/{digest}"), keyring)?;
        let (answer, _) = self.authorized(repository, there, keyring, until).await?;
        if answer.status == StatusCode::OK {
            return Ok(());
        }
        let begin = self.ask_to_push(repository, Method::POST, "blobs/uploads/", keyring)?;
        let asked = begin.url.clone();
        let answer = self.accepted(repository, begin, keyring, until, StatusCode::ACCEPTED).await?;
        let mut url = next(&answer.url, &answer.headers)?;
        if is_another(&url, &asked) {
            // With the credentials for this one, which are for no other.
            let why = format!("an upload to another server, {}, to which nothing is pushed", authority(&url));
            return Err(ExchangeRefusal::Redirect(why));
        }
        url.query_pairs_mut().append_pair("digest", &digest.to_string());
        let content = Some(("application/octet-stream".to_owned(), content));
        let upload = Ask { url, method: Method::PUT, content, ..Ask::get(asked, "*/*", keyring.asks_as()) };
        self.accepted(repository, upload, keyring, until, StatusCode::CREATED).await.map(drop)
    }

    async fn put_manifest(
        &self,
        repository: &OciRepository,
        selector: &ArtifactSelector,
        (media_type, content): (&str, Bytes),
        keyring: &Keyring,
    ) -> Result<bool, ExchangeRefusal> {
        let until = Deadline::after(self.settings().limits.manifest_time);
        let mut ask = self.ask_to_push(repository, Method::PUT, &format!("manifests/{selector}"), keyring)?;
        ask.content = Some((media_type.to_owned(), content));
        let answer = self.accepted(repository, ask, keyring, until, StatusCode::CREATED).await?;
        Ok(answer.headers.contains_key(SUBJECT))
    }

    fn ask_to_push(
        &self,
        repository: &OciRepository,
        method: Method,
        path: &str,
        keyring: &Keyring,
    ) -> Result<Ask, ExchangeRefusal> {
        let url = self.address(repository, path)?;
        Ok(Ask { method, ..Ask::get(url, manifest::ACCEPTED, keyring.asks_as()) })
    }

    /// The answer, where it has the status by which a registry says that it has taken something.
    async fn accepted(
        &self,
        repository: &OciRepository,
        ask: Ask,
        keyring: &Keyring,
        until: Deadline,
        expected: StatusCode,
    ) -> Result<RegistryResponse, ExchangeRefusal> {
        let (answer, _) = self.authorized(repository, ask, keyring, until).await?;
        let status = answer.status;
        if status == expected {
            return Ok(answer);
        }
        if status == StatusCode::TOO_MANY_REQUESTS {
            return Err(ExchangeRefusal::LimitedForAWhile);
        }
        let codes_told = if is_passing(status.as_u16()) { Vec::new() } else { codes(answer).await };
        Err(ExchangeRefusal::Status { status: status.as_u16(), codes_told })
    }
}
