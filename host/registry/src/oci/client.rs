//! Pulling from registries: limits, credentials, and what is checked while content passes by.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use http::{HeaderMap, HeaderValue, StatusCode, header};
use orangery_core::{
    digest::content::{Algorithm, ContentDigest, Hasher},
    error::{Code, Fault},
};
use rustls::pki_types::{CertificateDer, pem::PemObject};
use serde::Deserialize;
use tokio::{
    io::{AsyncWrite, AsyncWriteExt},
    time::Instant,
};

use super::{
    auth::{self, SessionKey, Sessions},
    connection::{Answer, Ask, Connections, Deadline},
    flight::Flights,
    keyring::{Key, Keyring, Login},
    manifest::{self, Descriptor, Document, Manifest},
    reference::{Reference, Repository, Selector},
    refusal::{Refusal, is_passing},
};

/// The body of an error answer that is looked into.
const MOST_OF_AN_ERROR: u64 = 64 * 1024;
/// The longest wait that a registry may ask for.
const LONGEST_WAIT: Duration = Duration::from_secs(10 * 60);
/// The manifests of an index may be indexes themselves.
const MOST_LEVELS: usize = 3;

/// What a pull may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one manifest.
    pub manifest: u64,
    /// Bytes of one blob.
    pub blob: u64,
    /// Until a connection is there.
    pub connect: Duration,
    /// Until the next bytes come.
    pub idle: Duration,
    /// Until a manifest is complete, credentials and redirects included.
    pub manifest_time: Duration,
    /// Until a blob is complete.
    pub blob_time: Duration,
    /// Redirects that are followed for one answer.
    pub redirects: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            manifest: 4 << 20,
            blob: 512 << 20,
            connect: Duration::from_secs(10),
            idle: Duration::from_secs(30),
            manifest_time: Duration::from_secs(60),
            blob_time: Duration::from_secs(15 * 60),
            redirects: 5,
        }
    }
}

/// What the operator says about registries.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// What a pull may take.
    pub limits: Limits,
    /// Authorities that are accepted beside those of this machine.
    pub certificates: Vec<CertificateDer<'static>>,
    /// Registries that may be asked without TLS, as `host` or `host:port`; this machine may always be.
    pub plain_http: BTreeSet<String>,
}

impl Settings {
    /// Accepts the certificate authorities of a PEM file as well. The error is one sentence.
    pub fn with_certificates(mut self, pem: &[u8]) -> Result<Self, String> {
        let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
        let found = read.map_err(|error| format!("the certificates are no PEM: {error}"))?;
        if found.is_empty() {
            return Err("there is no certificate in it; it has to begin with -----BEGIN CERTIFICATE-----".to_owned());
        }
        self.certificates.extend(found);
        Ok(self)
    }
}

/// Why there is no manifest.
#[derive(Clone)]
enum Unanswered {
    /// The registry says that there is none.
    Missing(Fault),
    Failed(Fault),
}

/// Pulls from all registries that Contexts name. Every call may be dropped at any time.
pub struct Client {
    connections: Connections,
    settings: Arc<Settings>,
    sessions: Sessions,
    manifests: Flights<(Reference, ContentDigest), Result<Arc<Manifest>, Unanswered>>,
    /// When a registry wants to be asked again, by credentials.
    closed: Mutex<HashMap<SessionKey, Instant>>,
}

impl Client {
    /// Reads the certificates of this machine. A certificate authority that cannot be used is a fault.
    pub fn new(settings: Settings) -> Result<Self, Fault> {
        let settings = Arc::new(settings);
        let connections = Connections::new(Arc::clone(&settings)).map_err(|error| {
            let message =
                format!("a certificate authority for registries cannot be used: {error}; check --registry-ca");
            Fault::invalid(Code::ConfigurationProblem, message)
        })?;
        let (sessions, manifests, closed) = (Sessions::default(), Flights::new(), Mutex::default());
        Ok(Self { connections, settings, sessions, manifests, closed })
    }

    /// What the operator says about registries.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The manifest of an artifact, its digest checked where the reference has one; of an index, its first manifest.
    /// Who asks for the same with the same credentials at the same time shares one request.
    pub async fn manifest(&self, reference: &Reference, keyring: &Keyring) -> Result<Arc<Manifest>, Fault> {
        self.shared_manifest(reference, keyring).await.map_err(|unanswered| match unanswered {
            Unanswered::Missing(fault) | Unanswered::Failed(fault) => fault,
        })
    }

    /// The same; `None` where the registry says that there is no such artifact.
    pub async fn manifest_if_any(
        &self,
        reference: &Reference,
        keyring: &Keyring,
    ) -> Result<Option<Arc<Manifest>>, Fault> {
        match self.shared_manifest(reference, keyring).await {
            Ok(manifest) => Ok(Some(manifest)),
            Err(Unanswered::Missing(_)) => Ok(None),
            Err(Unanswered::Failed(fault)) => Err(fault),
        }
    }

    async fn shared_manifest(&self, reference: &Reference, keyring: &Keyring) -> Result<Arc<Manifest>, Unanswered> {
        let key = (reference.clone(), keyring.fingerprint(&reference.repository));
        let ask = || async {
            self.pull_manifest(reference, keyring).await.map_err(|refusal| {
                let is_missing = matches!(refusal, Refusal::NotFound { .. });
                let fault = refusal.fault(&format!("the manifest of {reference}"));
                if is_missing { Unanswered::Missing(fault) } else { Unanswered::Failed(fault) }
            })
        };
        self.manifests.join(key, ask).await
    }

    /// A blob that is kept in memory: at most `most` bytes.
    pub async fn small_blob(
        &self,
        repository: &Repository,
        blob: &Descriptor,
        most: u64,
        keyring: &Keyring,
    ) -> Result<Vec<u8>, Fault> {
        if blob.size > most {
            let refusal = Refusal::TooBig { most, size: Some(blob.size) };
            return Err(refusal.fault(&format!("the blob {} of {repository}", blob.digest)));
        }
        let mut bytes = Vec::new();
        self.blob(repository, &blob.digest, Some(blob.size), keyring, &mut bytes).await?;
        Ok(bytes)
    }

    /// Writes a blob to `into` and gives its size. Size and digest are checked while it passes: on an error, what was
    /// written is worth nothing. `size` is what the manifest says, where it says something.
    pub async fn blob(
        &self,
        repository: &Repository,
        digest: &ContentDigest,
        size: Option<u64>,
        keyring: &Keyring,
        into: &mut (dyn AsyncWrite + Send + Unpin),
    ) -> Result<u64, Fault> {
        let pulled = self.pull_blob(repository, digest, size, keyring, into).await;
        pulled.map_err(|refusal| refusal.fault(&format!("the blob {digest} of {repository}")))
    }

    async fn pull_manifest(&self, reference: &Reference, keyring: &Keyring) -> Result<Arc<Manifest>, Refusal> {
        let until = Deadline::after(self.settings.limits.manifest_time);
        let mut selector = reference.selector.clone();
        for _ in 0..MOST_LEVELS {
            match self.document(&reference.repository, &selector, keyring, until).await? {
                Document::Manifest(manifest) => return Ok(Arc::from(manifest)),
                Document::Index(manifests) => {
                    let first = manifests.into_iter().next();
                    let first = first.ok_or_else(|| Refusal::Malformed("its index names no manifest".to_owned()))?;
                    selector = Selector::Digest(first.digest);
                }
            }
        }
        Err(Refusal::Malformed(format!("more than {MOST_LEVELS} indexes stand in one another")))
    }

    async fn document(
        &self,
        repository: &Repository,
        selector: &Selector,
        keyring: &Keyring,
        until: Deadline,
    ) -> Result<Document, Refusal> {
        let path = format!("manifests/{selector}");
        let answer = self.get(repository, &path, manifest::ACCEPTED, keyring, until).await?;
        let content_type = answer.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let content_type: String = content_type.unwrap_or_default().chars().take(200).collect();
        let bytes = answer.bytes(self.settings.limits.manifest).await?;
        let algorithm = match selector {
            Selector::Digest(digest) => digest.algorithm(),
            Selector::Tag(_) => Algorithm::Sha256,
        };
        let got = ContentDigest::of(algorithm, &bytes);
        if let Selector::Digest(expected) = selector
            && *expected != got
        {
            return Err(Refusal::WrongDigest { expected: expected.clone(), got });
        }
        manifest::read(&bytes, got, &content_type).map_err(Refusal::Malformed)
    }

    async fn pull_blob(
        &self,
        repository: &Repository,
        digest: &ContentDigest,
        size: Option<u64>,
        keyring: &Keyring,
        into: &mut (dyn AsyncWrite + Send + Unpin),
    ) -> Result<u64, Refusal> {
        let most = self.settings.limits.blob;
        if let Some(size) = size.filter(|size| *size > most) {
            return Err(Refusal::TooBig { most, size: Some(size) });
        }
        let until = Deadline::after(self.settings.limits.blob_time);
        let mut answer = self.get(repository, &format!("blobs/{digest}"), "*/*", keyring, until).await?;
        match (size, answer.expected()) {
            (Some(expected), Some(got)) if expected != got => return Err(Refusal::WrongSize { expected, got }),
            (None, Some(size)) if size > most => return Err(Refusal::TooBig { most, size: Some(size) }),
            _ => {}
        }
        let (mut hasher, mut got) = (Hasher::new(digest.algorithm()), 0);
        while let Some(piece) = answer.piece().await? {
            got += piece.len() as u64;
            match size {
                // However much comes: one byte more than announced is a lie.
                Some(expected) if got > expected => return Err(Refusal::WrongSize { expected, got }),
                None if got > most => return Err(Refusal::TooBig { most, size: None }),
                _ => {}
            }
            hasher.update(&piece);
            into.write_all(&piece).await.map_err(Refusal::Sink)?;
        }
        if let Some(expected) = size.filter(|size| *size != got) {
            return Err(Refusal::WrongSize { expected, got });
        }
        let found = hasher.finish();
        if found != *digest {
            return Err(Refusal::WrongDigest { expected: digest.clone(), got: found });
        }
        into.flush().await.map_err(Refusal::Sink)?;
        Ok(got)
    }

    /// Asks with each of the credentials that are for the repository until one is accepted; without any, without.
    async fn get(
        &self,
        repository: &Repository,
        path: &str,
        accept: &'static str,
        keyring: &Keyring,
        until: Deadline,
    ) -> Result<Answer, Refusal> {
        let mut url = self.connections.address(&repository.registry)?;
        url.set_path(&format!("/v2/{}/{path}", repository.path));
        let ask = Ask { url, accept, authorization: None, form: None };
        let keys = keyring.matching(repository);
        let mut attempts: Vec<Option<&Key>> = keys.iter().copied().map(Some).collect();
        if attempts.is_empty() {
            attempts.push(None);
        }
        let (mut last, mut tried) = (StatusCode::UNAUTHORIZED, Vec::new());
        for key in attempts {
            let answer = self.attempt(repository, ask.clone(), key.map(|key| (&key.login, key)), until).await?;
            if let Some(key) = key {
                tried.push(told(key));
            }
            match answer {
                Some(answer) if !is_refused(answer.status) => return self.usable(answer, tried).await,
                Some(answer) => last = answer.status,
                None => {}
            }
        }
        Err(Refusal::Unauthorized { status: last.as_u16(), tried })
    }

    /// One set of credentials: first with what was accepted lately, then with an answer to what the registry asks for.
    /// `None` where the credentials are no answer.
    async fn attempt(
        &self,
        repository: &Repository,
        mut ask: Ask,
        login: Option<(&Login, &Key)>,
        until: Deadline,
    ) -> Result<Option<Answer>, Refusal> {
        let key = SessionKey { repository: repository.clone(), login: login.map(|(_, key)| key.fingerprint()) };
        self.is_open(&key)?;
        ask.authorization = self.sessions.header(&key);
        let answer = self.connections.ask(&repository.registry, &ask, until).await?;
        let answer = if answer.status == StatusCode::UNAUTHORIZED && !answer.is_of_another {
            self.sessions.forget(&key);
            let login = login.map(|(login, _)| login);
            let granted = auth::answer(&self.connections, repository, &answer.headers, login, until).await?;
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
            self.close(key, &answer)?;
        }
        Ok(Some(answer))
    }

    /// Only what was asked for is content; anything else is a refusal.
    async fn usable(&self, answer: Answer, tried: Vec<String>) -> Result<Answer, Refusal> {
        match answer.status {
            StatusCode::OK => Ok(answer),
            StatusCode::NOT_FOUND => Err(Refusal::NotFound { tried }),
            StatusCode::TOO_MANY_REQUESTS => Err(Refusal::LimitedForAWhile),
            status => {
                let codes_told = if is_passing(status.as_u16()) { Vec::new() } else { codes(answer).await };
                Err(Refusal::Status { status: status.as_u16(), codes_told })
            }
        }
    }

    /// A registry that asked for a pause is not asked before it is over, by nobody who would come with the same.
    fn is_open(&self, key: &SessionKey) -> Result<(), Refusal> {
        let now = Instant::now();
        let mut closed = self.closed.lock().unwrap_or_else(PoisonError::into_inner);
        closed.retain(|_, until| *until > now);
        match closed.get(&whole_registry(key)) {
            Some(until) => Err(Refusal::Limited(round_up(until.saturating_duration_since(now)))),
            None => Ok(()),
        }
    }

    fn close(&self, key: SessionKey, answer: &Answer) -> Result<(), Refusal> {
        let Some(wait) = retry_after(&answer.headers) else { return Ok(()) };
        let wait = wait.min(LONGEST_WAIT);
        let mut closed = self.closed.lock().unwrap_or_else(PoisonError::into_inner);
        closed.insert(whole_registry(&key), Instant::now() + wait);
        Err(Refusal::Limited(round_up(wait)))
    }
}

/// The pause of a registry is for all of its repositories.
fn whole_registry(key: &SessionKey) -> SessionKey {
    let mut key = key.clone();
    key.repository.path.clear();
    key
}

fn round_up(wait: Duration) -> Duration {
    Duration::from_secs(wait.as_secs() + u64::from(wait.subsec_nanos() > 0))
}

fn is_refused(status: StatusCode) -> bool {
    matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
}

fn told(key: &Key) -> String {
    match &key.login {
        Login::Elsewhere(kind) => format!("{} (of type {kind}, which is not supported)", key.origin),
        _ => key.origin.to_string(),
    }
}

/// Seconds, or a date, which is told apart from the answer's own date: the clocks of two machines differ.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let wanted = text(header::RETRY_AFTER)?.trim();
    if let Ok(seconds) = wanted.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = |text: &str| jiff::fmt::rfc2822::parse(text).ok().map(|date| date.timestamp());
    let wait = date(wanted)?.duration_since(date(text(header::DATE)?)?);
    Duration::try_from(wait).ok()
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
async fn codes(answer: Answer) -> Vec<String> {
    let Ok(bytes) = answer.bytes(MOST_OF_AN_ERROR).await else { return Vec::new() };
    let Ok(errors) = serde_json::from_slice::<Errors>(&bytes) else { return Vec::new() };
    let is_code =
        |code: &String| code.len() <= 40 && code.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
    errors.errors.into_iter().map(|error| error.code).filter(is_code).take(3).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_read_as_seconds_and_as_a_date() {
        let headers = |values: &[(header::HeaderName, &str)]| -> HeaderMap {
            let value = |text: &str| HeaderValue::from_str(text).expect("a header");
            values.iter().map(|(name, text)| (name.clone(), value(text))).collect()
        };
        let date = (header::DATE, "Wed, 21 Oct 2026 07:28:00 GMT");
        let cases = [
            (headers(&[(header::RETRY_AFTER, "30")]), Some(30)),
            (headers(&[(header::RETRY_AFTER, "Wed, 21 Oct 2026 07:29:30 GMT"), date.clone()]), Some(90)),
            (headers(&[(header::RETRY_AFTER, "Wed, 21 Oct 2026 07:27:30 GMT"), date.clone()]), None),
            (headers(&[(header::RETRY_AFTER, "Wed, 21 Oct 2026 07:29:30 GMT")]), None),
            (headers(&[(header::RETRY_AFTER, "-1"), date.clone()]), None),
            (headers(&[date]), None),
        ];
        for (headers, expected) in cases {
            assert_eq!(retry_after(&headers), expected.map(Duration::from_secs), "{headers:?}");
        }
    }

    #[test]
    fn certificates_that_are_none_are_told() {
        for pem in ["", "x", "-----BEGIN CERTIFICATE-----\n%\n-----END CERTIFICATE-----"] {
            assert!(Settings::default().with_certificates(pem.as_bytes()).is_err(), "{pem}");
        }
    }
}
