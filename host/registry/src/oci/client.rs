//! Pulling from registries: limits, credentials, and what is checked while content passes by.

use std::sync::Arc;

use http::StatusCode;
use orangery_core::{
    digest::content::{Algorithm, ContentDigest, Hasher},
    error::{Code, Fault},
};
use orangery_ocm::AllowedSources;
use orangery_turns::{Tenant, Turns};
use serde::Deserialize;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use url::Url;

use super::{
    auth::{self, SessionKey, Sessions},
    connection::{Ask, Deadline, RegistryConnections, RegistryResponse},
    content::{HeldMemory, ReservedContent},
    fetch_memory::{FetchMemory, FetchShare, ReservedMemory, overdue},
    fetched::FetchedBytes,
    flight::Flights,
    keyring::{Keyring, KeyringEntry, Login},
    manifest::{Manifest, OciDescriptor},
    pause::Pauses,
    reference::{ArtifactReference, OciRepository},
    refusal::{ExchangeRefusal, is_passing},
    settings::{PullLimits, RegistrySettings},
};

/// The body of an error answer that is looked into.
const MOST_OF_AN_ERROR: u64 = 64 * 1024;
/// Credentials that are tried for one answer.
pub(super) const MOST_TRIED: usize = 10;
/// Exchanges with registries and web servers that are under way at once, whose waiting callers have lent their slots (C-323).
const MOST_EXCHANGES: usize = 128;
/// A blob of so many bytes has the time of a manifest.
const SMALL: u64 = 1 << 20;

/// Why there is no manifest.
#[derive(Clone)]
pub(crate) enum NoAnswer {
    /// The registry says that there is none; it may be pushed later.
    Missing(Fault),
    /// Anything else.
    Failed(Fault),
}

impl NoAnswer {
    /// As a fault, where both are told alike.
    pub(crate) fn fault(self) -> Fault {
        match self {
            NoAnswer::Missing(fault) | NoAnswer::Failed(fault) => fault,
        }
    }
}

impl From<Fault> for NoAnswer {
    fn from(fault: Fault) -> Self {
        NoAnswer::Failed(fault)
    }
}

/// What manifests and small blobs come from: registries themselves, or what remembers their answers.
pub trait Pull: Send + Sync {
    /// The manifest of an artifact, its digest checked where the reference has one; `None` where the registry says that
    /// there is no such artifact.
    fn manifest_if_any(
        &self,
        reference: &ArtifactReference,
        keyring: &Keyring,
    ) -> impl Future<Output = Result<Option<Arc<Manifest>>, Fault>> + Send;

    /// A blob that is kept in memory, of at most `most` bytes, with its room there.
    fn content(
        &self,
        repository: &OciRepository,
        blob: &OciDescriptor,
        most: u64,
        keyring: &Keyring,
    ) -> impl Future<Output = Result<ReservedContent, Fault>> + Send;

    /// The same for one who reads it at once.
    fn small_blob(
        &self,
        repository: &OciRepository,
        blob: &OciDescriptor,
        most: u64,
        keyring: &Keyring,
    ) -> impl Future<Output = Result<Vec<u8>, Fault>> + Send {
        async move { Ok(self.content(repository, blob, most, keyring).await?.into_vec()) }
    }
}

/// An artifact, the fingerprint of the credentials, what the policies of who asks say, and whose turn it is that is waited for.
type ManifestQuestion = (ArtifactReference, ContentDigest, Arc<AllowedSources>, Tenant);

/// Pulls from all registries that Contexts name. Every call may be dropped at any time.
pub struct Client {
    connections: RegistryConnections,
    settings: Arc<RegistrySettings>,
    sessions: Sessions,
    manifests: Flights<ManifestQuestion, Result<Arc<Manifest>, NoAnswer>>,
    pauses: Pauses,
    /// Exchanges that are under way, each until its content has come.
    exchanges: Arc<Turns>,
    /// The bytes that may come in at once.
    memory: Arc<FetchMemory>,
    fetched: Arc<FetchedBytes>,
}

impl Client {
    /// Reads the certificates of this machine. A certificate authority that cannot be used is a fault.
    pub fn new(settings: RegistrySettings) -> Result<Self, Fault> {
        let settings = Arc::new(settings);
        let connections = RegistryConnections::new(Arc::clone(&settings)).map_err(|error| {
            let message =
                format!("a certificate authority for registries cannot be used: {error}; check --registry-ca");
            Fault::invalid(Code::ConfigurationProblem, message)
        })?;
        let (sessions, manifests, pauses) = (Sessions::default(), Flights::new(), Pauses::default());
        let memory = FetchMemory::new(&settings.limits);
        let (fetched, exchanges) = (Arc::default(), Turns::new(MOST_EXCHANGES));
        Ok(Self { connections, settings, sessions, manifests, pauses, exchanges, memory, fetched })
    }

    /// What exchanges take turns for.
    pub(super) fn exchanges(&self) -> &Arc<Turns> {
        &self.exchanges
    }

    pub(super) fn connections(&self) -> &RegistryConnections {
        &self.connections
    }

    /// The bytes that may come in at once.
    pub(super) fn memory(&self) -> &Arc<FetchMemory> {
        &self.memory
    }

    /// Memory for content of so many bytes that is kept on this machine, in the same turns as for what a server sends.
    pub(crate) async fn reserve(&self, bytes: u64, tenant: &Tenant, subject: &str) -> Result<HeldMemory, Fault> {
        let share = FetchShare { tenant: tenant.clone(), server: String::new() };
        let reserved = self.memory.reserve(&share, bytes).await;
        reserved.map(|reserved| Some(reserved).into()).map_err(|refusal| refusal.fault(subject))
    }

    /// What the operator says about registries.
    pub fn settings(&self) -> &RegistrySettings {
        &self.settings
    }

    /// The manifest of an artifact, its digest checked where the reference has one; of an index, its first manifest.
    /// Calls of a namespace for the same manifest with the same credentials at the same time share one request (C-133).
    pub async fn manifest(&self, reference: &ArtifactReference, keyring: &Keyring) -> Result<Arc<Manifest>, Fault> {
        self.shared_manifest(reference, keyring).await.map_err(NoAnswer::fault)
    }

    /// The same; that there is none is told apart.
    pub(crate) async fn shared_manifest(
        &self,
        reference: &ArtifactReference,
        keyring: &Keyring,
    ) -> Result<Arc<Manifest>, NoAnswer> {
        let (sources, tenant) = keyring.asks_as();
        let key = (reference.clone(), keyring.fingerprint(&reference.repository), sources, tenant);
        let ask = || async {
            self.pull_manifest(reference, keyring).await.map_err(|refusal| {
                let is_missing = matches!(refusal, ExchangeRefusal::NotFound { .. });
                let fault = refusal.fault_until_pushed(&format!("the manifest of {reference}"));
                if is_missing { NoAnswer::Missing(fault) } else { NoAnswer::Failed(fault) }
            })
        };
        self.manifests.join(key, ask).await
    }

    /// A blob that is not as long as its manifest says.
    pub(crate) fn wrong_size(repository: &OciRepository, blob: &OciDescriptor, got: u64) -> Fault {
        ExchangeRefusal::WrongSize { expected: blob.size, got }.fault(&message_of(repository, &blob.digest))
    }

    /// Writes a blob to `into` and gives its size. Size and digest are checked while it passes: on an error, what was
    /// written is worth nothing. `size` is what the manifest says, where it says something.
    pub async fn blob(
        &self,
        repository: &OciRepository,
        digest: &ContentDigest,
        size: Option<u64>,
        keyring: &Keyring,
        into: &mut (dyn AsyncWrite + Send + Unpin),
    ) -> Result<u64, Fault> {
        let poured = self.pour_blob(repository, (digest, size), keyring, None, into).await;
        poured.map(|(size, _)| size).map_err(|refusal| refusal.fault(&message_of(repository, digest)))
    }

    async fn pour_blob(
        &self,
        repository: &OciRepository,
        (digest, size): (&ContentDigest, Option<u64>),
        keyring: &Keyring,
        reserved: Option<ReservedMemory>,
        into: &mut (dyn AsyncWrite + Send + Unpin),
    ) -> Result<(u64, Option<ReservedMemory>), ExchangeRefusal> {
        let most = self.settings.limits.blob;
        if let Some(size) = size.filter(|size| *size > most) {
            return Err(ExchangeRefusal::TooBig { most, size: Some(size) });
        }
        let PullLimits { blob_time, manifest_time, .. } = self.settings.limits;
        let is_small = size.is_some_and(|size| size <= SMALL);
        let until = Deadline::after(if is_small { manifest_time } else { blob_time });
        let path = format!("blobs/{digest}");
        let mut answer = tokio::select! {
            biased;
            refusal = overdue(reserved.as_ref(), 0) => return Err(refusal),
            answer = self.get(repository, &path, "*/*", keyring, until) => answer?,
        };
        answer.reserved = reserved;
        let size = pour(&mut answer, Some(digest), size, most, into).await?;
        Ok((size, answer.reserved))
    }

    /// Asks with each of the credentials that are for the repository until one is accepted; without any, without.
    pub(super) async fn get(
        &self,
        repository: &OciRepository,
        path: &str,
        accept: &'static str,
        keyring: &Keyring,
        until: Deadline,
    ) -> Result<RegistryResponse, ExchangeRefusal> {
        let url = self.address(repository, path)?;
        let ask = Ask::get(url, accept, keyring.asks_as());
        let (answer, tried) = self.authorized(repository, ask, keyring, until).await?;
        self.metered(self.usable(answer, tried, keyring).await?, keyring)
    }

    /// The address of something of a repository.
    pub(super) fn address(&self, repository: &OciRepository, path: &str) -> Result<Url, ExchangeRefusal> {
        let mut url = self.connections.address(&repository.registry)?;
        url.set_path(&format!("/v2/{}/{path}", repository.path));
        Ok(url)
    }

    /// The first answer that does not refuse the credentials, whatever it is, and with which credentials was asked.
    pub(super) async fn authorized(
        &self,
        repository: &OciRepository,
        ask: Ask,
        keyring: &Keyring,
        until: Deadline,
    ) -> Result<(RegistryResponse, Vec<String>), ExchangeRefusal> {
        let (place, until) = until.in_turn(&self.exchanges, keyring.tenant()).await;
        let keys = keyring.matching(repository);
        let mut attempts: Vec<Option<&KeyringEntry>> = keys.iter().copied().take(MOST_TRIED).map(Some).collect();
        if attempts.is_empty() {
            attempts.push(None);
        }
        let (mut last, mut tried) = (StatusCode::UNAUTHORIZED, Vec::new());
        for key in attempts {
            let answer = self.attempt(repository, ask.clone(), key.map(|key| (&key.login, key)), until).await?;
            if let Some(key) = key {
                tried.push(key.message_of());
            }
            match answer {
                Some(answer) if !is_refused(answer.status) => return Ok((answer.in_place(place), tried)),
                Some(answer) => last = answer.status,
                None => {}
            }
        }
        let withheld = keyring.withheld(repository);
        Err(ExchangeRefusal::Unauthorized { status: last.as_u16(), tried, withheld, owner: keyring.owner() })
    }

    /// One set of credentials: first with what was accepted lately, then with an answer to what the registry asks for.
    /// `None` where the credentials are no answer.
    async fn attempt(
        &self,
        repository: &OciRepository,
        mut ask: Ask,
        login: Option<(&Login, &KeyringEntry)>,
        until: Deadline,
    ) -> Result<Option<RegistryResponse>, ExchangeRefusal> {
        let (repository_of, networks) = (repository.clone(), ask.sources.networks.clone());
        let login_of = login.map(|(_, key)| key.fingerprint());
        let key = SessionKey { repository: repository_of, login: login_of, networks, pushes: ask.is_push() };
        self.pauses.is_over(&key)?;
        ask.authorization = self.sessions.header(&key);
        let answer = self.connections.ask(&repository.registry, &ask, until).await?;
        let answer = if answer.status == StatusCode::UNAUTHORIZED && !answer.is_of_another {
            self.sessions.forget(&key);
            let login = login.map(|(login, _)| login);
            let granted = auth::answer(&self.connections, repository, &answer, login, (&ask, until)).await?;
            let Some(granted) = granted else { return Ok(None) };
            ask.authorization = Some(granted.header.clone());
            let answer = self.connections.ask(&repository.registry, &ask, until).await?;
            if !is_refused(answer.status) {
                self.sessions.keep(key.clone(), granted);
            }
            answer
        } else {
            answer
        };
        if answer.status == StatusCode::TOO_MANY_REQUESTS || answer.status == StatusCode::SERVICE_UNAVAILABLE {
            self.pauses.begin(key, &answer.headers)?;
        }
        Ok(Some(answer))
    }

    /// An answer whose bytes count for the quota of the namespace that asks.
    pub(super) fn metered(
        &self,
        mut answer: RegistryResponse,
        keyring: &Keyring,
    ) -> Result<RegistryResponse, ExchangeRefusal> {
        if let Some(quota) = keyring.quota() {
            answer.meter = Some(self.fetched.meter(quota, answer.expected())?);
        }
        Ok(answer)
    }

    /// Only what was asked for is content; anything else is a refusal.
    pub(super) async fn usable(
        &self,
        answer: RegistryResponse,
        tried: Vec<String>,
        keyring: &Keyring,
    ) -> Result<RegistryResponse, ExchangeRefusal> {
        match answer.status {
            StatusCode::OK => Ok(answer),
            StatusCode::NOT_FOUND => Err(ExchangeRefusal::NotFound { tried, owner: keyring.owner() }),
            StatusCode::TOO_MANY_REQUESTS => Err(ExchangeRefusal::LimitedForAWhile),
            status => {
                let codes_told = if is_passing(status.as_u16()) { Vec::new() } else { codes(answer).await };
                Err(ExchangeRefusal::Status { status: status.as_u16(), codes_told })
            }
        }
    }
}

impl Pull for Client {
    async fn manifest_if_any(
        &self,
        reference: &ArtifactReference,
        keyring: &Keyring,
    ) -> Result<Option<Arc<Manifest>>, Fault> {
        match self.shared_manifest(reference, keyring).await {
            Ok(manifest) => Ok(Some(manifest)),
            Err(NoAnswer::Missing(_)) => Ok(None),
            Err(NoAnswer::Failed(fault)) => Err(fault),
        }
    }

    async fn content(
        &self,
        repository: &OciRepository,
        blob: &OciDescriptor,
        most: u64,
        keyring: &Keyring,
    ) -> Result<ReservedContent, Fault> {
        let most = most.min(self.settings.limits.at_once);
        if blob.size > most {
            let refusal = ExchangeRefusal::TooBig { most, size: Some(blob.size) };
            return Err(refusal.fault(&message_of(repository, &blob.digest)));
        }
        let pulled = async {
            let share = FetchShare { tenant: keyring.tenant().clone(), server: repository.registry.authority() };
            let reserved = self.memory.reserve(&share, blob.size).await?;
            // As much as it will be: a buffer that grows is twice as large for a while.
            let mut bytes = Vec::with_capacity(usize::try_from(blob.size).unwrap_or_default());
            let of = (&blob.digest, Some(blob.size));
            let (_, reserved) = self.pour_blob(repository, of, keyring, Some(reserved), &mut bytes).await?;
            Ok(ReservedContent::new(bytes, reserved.into()))
        };
        pulled.await.map_err(|refusal: ExchangeRefusal| refusal.fault(&message_of(repository, &blob.digest)))
    }
}

/// What is wanted, in messages.
fn message_of(repository: &OciRepository, digest: &ContentDigest) -> String {
    format!("the blob {digest} of {repository}")
}

/// Writes what is answered to `into` and gives its size, which is `size` where it was announced and at most `most`;
/// the digest is compared where one is wanted.
pub(super) async fn pour(
    answer: &mut RegistryResponse,
    digest: Option<&ContentDigest>,
    size: Option<u64>,
    most: u64,
    into: &mut (dyn AsyncWrite + Send + Unpin),
) -> Result<u64, ExchangeRefusal> {
    match (size, answer.expected()) {
        (Some(expected), Some(got)) if expected != got => return Err(ExchangeRefusal::WrongSize { expected, got }),
        (None, Some(size)) if size > most => return Err(ExchangeRefusal::TooBig { most, size: Some(size) }),
        _ => {}
    }
    let mut hasher = Hasher::new(digest.map_or(Algorithm::Sha256, ContentDigest::algorithm));
    let mut got = 0;
    while let Some(piece) = answer.piece().await? {
        got += piece.len() as u64;
        match size {
            // However much comes: one byte more than announced is a lie.
            Some(expected) if got > expected => return Err(ExchangeRefusal::WrongSize { expected, got }),
            None if got > most => return Err(ExchangeRefusal::TooBig { most, size: None }),
            _ => {}
        }
        hasher.update(&piece);
        into.write_all(&piece).await.map_err(ExchangeRefusal::Sink)?;
    }
    if let Some(expected) = size.filter(|size| *size != got) {
        return Err(ExchangeRefusal::WrongSize { expected, got });
    }
    let found = hasher.finish();
    if let Some(expected) = digest.filter(|digest| **digest != found) {
        return Err(ExchangeRefusal::WrongDigest { expected: expected.clone(), got: found });
    }
    into.flush().await.map_err(ExchangeRefusal::Sink)?;
    Ok(got)
}

fn is_refused(status: StatusCode) -> bool {
    matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
}

#[derive(Deserialize)]
struct Errors {
    errors: Vec<OneError>,
}

#[derive(Deserialize)]
struct OneError {
    code: String,
}

/// The codes of the specification's error document. Its messages are left out: a registry writes what it likes there.
pub(super) async fn codes(answer: RegistryResponse) -> Vec<String> {
    let Ok(bytes) = answer.bytes(MOST_OF_AN_ERROR).await else { return Vec::new() };
    let Ok(errors) = serde_json::from_slice::<Errors>(&bytes) else { return Vec::new() };
    let is_code =
        |code: &String| code.len() <= 40 && code.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
    errors.errors.into_iter().map(|error| error.code).filter(is_code).take(3).collect()
}
