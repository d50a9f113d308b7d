//! Files of web servers, for resources that are in no registry: with the connections, limits and refusals of registries.
//!
//! Whoever writes a component chooses such an address freely. So it is asked with TLS only, except of hosts that the
//! operator names, this machine included; credentials are for the host they were written for.

use std::{collections::BTreeMap, sync::Arc};

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use orangery_core::{digest::content::ContentDigest, error::Fault};
use orangery_turns::lending;
use rustls::pki_types::CertificateDer;
use url::Url;

use super::{
    auth,
    client::{Client, MOST_TRIED, pour},
    connection::{Ask, Deadline, RegistryConnections, RegistryResponse, authority},
    content::HeldMemory,
    fetch_memory::FetchShare,
    keyring::{self, Consumer, Keyring, KeyringEntry, Login},
    refusal::ExchangeRefusal,
};

/// Headers that are ours, or the connection's.
const OWN_HEADERS: [&str; 9] = [
    "accept-encoding",
    "authorization",
    "connection",
    "content-length",
    "cookie",
    "host",
    "proxy-authorization",
    "transfer-encoding",
    "user-agent",
];
/// Names and values of all headers of one request, in bytes.
const MOST_OF_HEADERS: usize = 8 << 10;

/// A file that is asked for.
#[derive(Clone, Debug)]
pub struct FileRequest {
    url: Url,
    /// Whose credentials are for it.
    consumer: Consumer,
    /// The address that they were written for, where it is another one.
    named: Option<Url>,
    headers: HeaderMap,
    follows: bool,
    /// The most bytes that it may have, where that is less than of any blob.
    most: u64,
    /// What its bytes must have.
    digest: Option<ContentDigest>,
}

/// A file that came.
#[derive(Debug, PartialEq, Eq)]
pub struct ReceivedFile {
    /// As the server says; empty where it says nothing.
    pub media_type: String,
    /// All of it.
    pub bytes: Vec<u8>,
}

impl FileRequest {
    /// The file under a URL. The error is the end of a sentence about the URL.
    pub fn new(url: &str, consumer: Consumer) -> Result<Self, String> {
        let url = Url::parse(url).map_err(|error| format!("is no address: {error}"))?;
        Self::of(url, consumer)
    }

    /// A file beside this one, or elsewhere, as its server names it: credentials come along to the same host only.
    pub fn beside(&self, relative: &str) -> Result<Self, String> {
        let url = self.url.join(relative).map_err(|error| format!("is no address: {error}"))?;
        Self::of(url, self.consumer)
    }

    fn of(url: Url, consumer: Consumer) -> Result<Self, String> {
        if !matches!(url.scheme(), "https" | "http") || url.host_str().is_none() {
            return Err("is no address of a web server: it has to begin with https://".to_owned());
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("has a user in it; put the credentials into the ocmConfig of the Context".to_owned());
        }
        let headers = HeaderMap::new();
        Ok(Self { url, consumer, named: None, headers, follows: true, most: u64::MAX, digest: None })
    }

    /// Asks with these headers as well. The error is the end of a sentence about the header.
    pub fn with_headers(mut self, headers: &BTreeMap<String, Vec<String>>) -> Result<Self, String> {
        let size: usize =
            headers.iter().map(|(name, values)| name.len() + values.iter().map(String::len).sum::<usize>()).sum();
        if size > MOST_OF_HEADERS {
            return Err(format!("has more than {MOST_OF_HEADERS} bytes"));
        }
        for (name, values) in headers {
            if OWN_HEADERS.contains(&name.to_ascii_lowercase().as_str()) {
                return Err(format!("sets {name}, which is not for components to set"));
            }
            let read: Result<HeaderName, _> = name.parse();
            let read = read.map_err(|_| format!("has {name:?}, which is no name of a header"))?;
            for value in values {
                let value = HeaderValue::from_str(value);
                self.headers.append(read.clone(), value.map_err(|_| format!("has an unusable value for {name}"))?);
            }
        }
        Ok(self)
    }

    /// Whether redirects are followed.
    pub fn following(mut self, follows: bool) -> Self {
        self.follows = follows;
        self
    }

    /// Asks with the credentials for another address; only for one that the same people answer for.
    pub fn with_credentials_of(mut self, address: Url) -> Self {
        self.named = Some(address);
        self
    }

    /// Bounds its size.
    pub fn at_most(mut self, most: u64) -> Self {
        self.most = most;
        self
    }

    /// Says what its bytes have to be.
    pub fn with_digest(mut self, digest: Option<ContentDigest>) -> Self {
        self.digest = digest;
        self
    }

    /// Its address without what may be a password.
    pub fn display(&self) -> String {
        let mut url = self.url.clone();
        url.set_query(None);
        url.set_fragment(None);
        url.to_string()
    }

    /// What tells it apart, with all that is sent: for a cache, not for people.
    pub fn identity(&self) -> String {
        format!("{} {:?}", self.url, self.headers)
    }

    /// Of the credentials that it is asked for with, and of the networks that may be connected to.
    pub fn fingerprint(&self, keyring: &Keyring) -> ContentDigest {
        keyring::fingerprint(&self.keys(keyring), &keyring.sources().networks)
    }

    /// The host that is asked.
    pub(crate) fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default()
    }

    /// Whether content may come from its host.
    pub(crate) fn is_allowed(&self, keyring: &Keyring) -> Result<(), Fault> {
        keyring.allows_host(self.host())
    }

    fn keys<'k>(&self, keyring: &'k Keyring) -> Vec<&'k KeyringEntry> {
        keyring.matching_file(self.consumer, self.named.as_ref().unwrap_or(&self.url))
    }
}

impl Client {
    /// A file, its size bounded and its digest checked.
    pub async fn file(&self, file: &FileRequest, keyring: &Keyring) -> Result<ReceivedFile, Fault> {
        self.reserved_file(file, keyring).await.map(|(file, _)| file)
    }

    /// The same with the memory that is reserved for it, which is free for others when it is dropped.
    pub(crate) async fn reserved_file(
        &self,
        file: &FileRequest,
        keyring: &Keyring,
    ) -> Result<(ReceivedFile, HeldMemory), Fault> {
        file.is_allowed(keyring)?;
        let got = lending(self.receive(file, keyring)).await;
        got.map_err(|refusal| match refusal {
            ExchangeRefusal::Certificate { host, why } if file.consumer == Consumer::Charts => {
                ExchangeRefusal::CertificateOfCharts { host, why }.of_a_server(&file.display())
            }
            refusal => refusal.of_a_server(&file.display()),
        })
    }

    async fn receive(
        &self,
        file: &FileRequest,
        keyring: &Keyring,
    ) -> Result<(ReceivedFile, HeldMemory), ExchangeRefusal> {
        let limits = &self.settings().limits;
        let until = Deadline::after(limits.blob_time);
        let mut answer = self.answered(file, keyring, until).await?;
        let most = limits.blob.min(file.most).min(limits.at_once);
        if let Some(size) = answer.expected().filter(|size| *size > most) {
            return Err(ExchangeRefusal::TooBig { most, size: Some(size) });
        }
        let share = FetchShare { tenant: keyring.tenant().clone(), server: authority(&file.url) };
        answer.reserved = Some(self.memory().reserve_file(&share, answer.expected(), most).await?);
        let media_type = answer.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let media_type = media_type.unwrap_or_default().split(';').next().unwrap_or_default().trim();
        let media_type = media_type.chars().take(200).collect::<String>().to_ascii_lowercase();
        // One that grows is twice as large for a while.
        let mut bytes = Vec::with_capacity(answer.expected().and_then(|size| size.try_into().ok()).unwrap_or_default());
        pour(&mut answer, file.digest.as_ref(), None, most, &mut bytes).await?;
        Ok((ReceivedFile { media_type, bytes }, answer.reserved.into()))
    }

    /// Connections that trust these authorities as well, for one file: nothing of theirs is used for another.
    fn trusting(&self, certificates: &[CertificateDer<'static>]) -> Result<RegistryConnections, ExchangeRefusal> {
        let mut settings = self.settings().clone();
        settings.certificates.extend_from_slice(certificates);
        let unusable = |error| ExchangeRefusal::Unreachable(format!("its customCAData cannot be used: {error}"));
        RegistryConnections::new(Arc::new(settings)).map_err(unusable)
    }

    /// Asks with each of the credentials for the file; without any, without.
    async fn answered(
        &self,
        file: &FileRequest,
        keyring: &Keyring,
        until: Deadline,
    ) -> Result<RegistryResponse, ExchangeRefusal> {
        self.connections().named_only(&file.url)?;
        let (place, until) = until.in_turn(self.exchanges(), keyring.tenant()).await;
        let mut attempts: Vec<Option<&KeyringEntry>> =
            file.keys(keyring).into_iter().take(MOST_TRIED).map(Some).collect();
        if attempts.is_empty() {
            attempts.push(None);
        }
        let (mut last, mut tried) = (StatusCode::UNAUTHORIZED, Vec::new());
        for key in attempts {
            let authorization = match key.map(|key| &key.login) {
                Some(Login::Basic { user, password }) => Some(auth::basic(user, password)?),
                Some(Login::Bearer(token) | Login::Identity(token)) => Some(auth::bearer(token)?),
                Some(Login::Elsewhere(_) | Login::Anonymous) | None => None,
            };
            tried.extend(key.filter(|key| !matches!(key.login, Login::Anonymous)).map(KeyringEntry::message_of));
            if matches!(key.map(|key| &key.login), Some(Login::Elsewhere(_))) {
                continue;
            }
            let asks_as = keyring.asks_as();
            let ask = Ask {
                authorization,
                headers: file.headers.clone(),
                follows: file.follows,
                named_only: true,
                networks: Arc::clone(&asks_as.0.networks.hosts),
                ..Ask::get(file.url.clone(), "*/*", asks_as)
            };
            let answer = match key.map(|key| key.certificates.as_slice()) {
                None | Some([]) => self.connections().follow(&ask, until).await?,
                Some(trusted) => self.trusting(trusted)?.follow(&ask, until).await?,
            };
            match answer.status {
                StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => last = answer.status,
                status if status.is_redirection() => {
                    return Err(ExchangeRefusal::Redirect(
                        "to another address, and the access forbids to follow".to_owned(),
                    ));
                }
                _ => return self.metered(self.usable(answer.in_place(place), tried, keyring).await?, keyring),
            }
        }
        let withheld = keyring.withheld_file(file.consumer, file.named.as_ref().unwrap_or(&file.url));
        Err(ExchangeRefusal::Unauthorized { status: last.as_u16(), tried, withheld, owner: keyring.owner() })
    }
}

impl ExchangeRefusal {
    /// As a fault of a web server: the sentences say `the registry`, which it is not.
    fn of_a_server(self, url: &str) -> Fault {
        let named =
            |text: &str| text.replace("the registry", "the server").replace("push it again", "publish it again");
        match self.fault_until_pushed(&format!("the file {url}")) {
            Fault::Invalid(problem) => Fault::invalid(problem.code, named(&problem.message)),
            Fault::Later(problem) => Fault::later(problem.code, named(&problem.message)),
            Fault::Denied(problem) => Fault::Denied(problem),
        }
    }
}
