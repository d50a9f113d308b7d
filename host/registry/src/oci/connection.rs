//! One HTTP exchange after the other with servers that may lie, hang and send without end.
//!
//! No proxy, cookie or compression: what a URL names is what is asked, and a length is a length.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header, response::Parts};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Incoming};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::Client,
    rt::{TokioExecutor, TokioTimer},
};
use orangery_core::network::AllowedNetworks;
use orangery_egress::{ConnectRefusal, EgressConnector, TlsRefusal, deepest, denial, tls_refusal};
use orangery_ocm::AllowedSources;
use orangery_turns::{Tenant, Turn, Turns};
use rustls::{ClientConfig, RootCertStore, pki_types::CertificateDer};
use tokio::time::{Instant, timeout};
use url::Url;

use super::{
    content::HeldMemory,
    fetch_memory::{ReservedMemory, overdue},
    fetched::FetchMeter,
    reference::{Registry, Scheme},
    refusal::ExchangeRefusal,
    settings::RegistrySettings,
};
use crate::memory::Memory;

/// How long a connection is kept that nobody uses.
const IDLE_CONNECTIONS: Duration = Duration::from_secs(60);

/// Bytes of the head of an answer, of which each connection keeps as many.
const MOST_HEADER_BYTES: usize = 64 << 10;

/// Clients that are kept, one for all who may connect to the same networks by the same lines.
const MOST_CLIENTS: usize = 256;

type RegistryClient = Client<HttpsConnector<EgressConnector>, Full<Bytes>>;

/// What is asked for.
#[derive(Clone)]
pub(super) struct Ask {
    pub(super) url: Url,
    pub(super) accept: &'static str,
    pub(super) authorization: Option<HeaderValue>,
    /// GET, unless there is a form.
    pub(super) method: Method,
    /// What is pushed, and its media type.
    pub(super) content: Option<(String, Bytes)>,
    /// Sent with POST.
    pub(super) form: Option<String>,
    /// Sent as well, to the host that is asked first.
    pub(super) headers: HeaderMap,
    /// Whether redirects are followed.
    pub(super) follows: bool,
    /// Whether http is for the hosts alone that the operator names, and not for this machine.
    pub(super) named_only: bool,
    /// Where the server may lead to.
    pub(super) sources: Arc<AllowedSources>,
    /// Which networks the server may be in.
    pub(super) networks: Arc<AllowedNetworks>,
    /// Whose turn it takes to look names up (C-193).
    pub(super) tenant: Tenant,
}

impl Ask {
    /// GET, of a registry, without credentials.
    pub(super) fn get(url: Url, accept: &'static str, (sources, tenant): (Arc<AllowedSources>, Tenant)) -> Self {
        let (headers, networks) = (HeaderMap::new(), Arc::clone(&sources.networks.registries));
        let (authorization, form, follows, named_only) = (None, None, true, false);
        let (method, content) = (Method::GET, None);
        Self {
            url,
            accept,
            authorization,
            method,
            content,
            form,
            headers,
            follows,
            named_only,
            sources,
            networks,
            tenant,
        }
    }

    /// Whether it changes what the registry has.
    pub(super) fn is_push(&self) -> bool {
        !matches!(self.method, Method::GET | Method::HEAD)
    }
}

/// What was answered; the body is still on its way.
pub(super) struct RegistryResponse {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    /// The server that answered.
    pub(super) url: Url,
    /// Whether another server answered than the one that was asked: its wishes are not for our credentials.
    pub(super) is_of_another: bool,
    body: Incoming,
    expected: Option<u64>,
    got: u64,
    idle: Duration,
    until: Deadline,
    /// Counts its bytes, where the namespace that asks has a quota.
    pub(super) meter: Option<FetchMeter>,
    /// The memory that is reserved for it, which is asked back where it comes too slowly.
    pub(super) reserved: Option<ReservedMemory>,
    /// Its place among the exchanges that are under way.
    #[expect(dead_code, reason = "it is free when the content has come")]
    place: Option<Turn>,
}

/// When the whole of something has to be there.
#[derive(Clone, Copy)]
pub(super) struct Deadline {
    at: Instant,
    after: Duration,
}

impl Deadline {
    pub(super) fn after(after: Duration) -> Self {
        Self { at: Instant::now() + after, after }
    }

    /// Waits for a place among the exchanges under way; the time begins with it.
    pub(super) async fn in_turn(self, exchanges: &Arc<Turns>, tenant: &Tenant) -> (Turn, Self) {
        let since = Instant::now();
        let place = exchanges.acquire(tenant).await;
        (place, Self { at: self.at + since.elapsed(), ..self })
    }

    /// Waits for the next step; the longest wait is `idle`.
    async fn step<T>(
        self,
        idle: Duration,
        doing: &'static str,
        step: impl Future<Output = T>,
    ) -> Result<T, ExchangeRefusal> {
        let left = self.at.saturating_duration_since(Instant::now());
        match timeout(idle.min(left), step).await {
            Ok(done) => Ok(done),
            Err(_) if left < idle => Err(ExchangeRefusal::Slow(self.after)),
            Err(_) => Err(ExchangeRefusal::Silent { after: idle, doing }),
        }
    }
}

/// The connections to all registries, kept for reuse while they are idle: by a namespace, for the networks that it may connect to
/// (C-102, C-193).
pub(super) struct RegistryConnections {
    clients: Memory<(Arc<AllowedNetworks>, Tenant), RegistryClient>,
    tls: ClientConfig,
    settings: Arc<RegistrySettings>,
    /// Hosts that may speak without TLS and were found to do so.
    without_tls: Mutex<HashSet<String>>,
}

impl RegistryConnections {
    pub(super) fn new(settings: Arc<RegistrySettings>) -> Result<Self, rustls::Error> {
        let tls = tls(&settings.certificates)?;
        Ok(Self { clients: Memory::new(MOST_CLIENTS), tls, settings, without_tls: Mutex::default() })
    }

    /// The client of a namespace that may connect to these networks.
    fn client(&self, networks: &Arc<AllowedNetworks>, tenant: &Tenant) -> RegistryClient {
        let key = (Arc::clone(networks), tenant.clone());
        if let Some(client) = self.clients.get(&key) {
            return client;
        }
        let connector = EgressConnector::new(Some(self.settings.limits.connect), networks, tenant);
        let https = HttpsConnectorBuilder::new().with_tls_config(self.tls.clone());
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_CONNECTIONS)
            .http1_max_buf_size(MOST_HEADER_BYTES)
            .build(https.https_or_http().enable_http1().wrap_connector(connector));
        self.clients.put(key, client.clone());
        client
    }

    /// The address of the API of a registry, with the scheme that is tried first.
    pub(super) fn address(&self, registry: &Registry) -> Result<Url, ExchangeRefusal> {
        let is_known = || self.known().contains(&registry.authority());
        let scheme = registry.scheme.unwrap_or(if is_known() { Scheme::Http } else { Scheme::Https });
        let text = format!("{}://{}/v2/", scheme.name(), registry.endpoint());
        let url = Url::parse(&text)
            .map_err(|error| ExchangeRefusal::Malformed(format!("{text:?} is no address: {error}")))?;
        self.permitted(&url, None)?;
        Ok(url)
    }

    /// http is for this machine and for the hosts that the operator names; who was asked with TLS leads nobody out of it.
    pub(super) fn permitted(&self, url: &Url, from: Option<&Url>) -> Result<(), ExchangeRefusal> {
        let host = authority(url);
        let is_named = self.settings.plain_http.contains(&host);
        match url.scheme() {
            "https" => Ok(()),
            "http" if is_named => Ok(()),
            "http" if from.is_some_and(|from| from.scheme() == "https") => Err(ExchangeRefusal::OutOfTls { host }),
            "http" if self.may_be_plain(&host) => Ok(()),
            "http" => Err(ExchangeRefusal::PlainHttp { host }),
            other => Err(ExchangeRefusal::Malformed(format!("{other}:// is no scheme of a registry"))),
        }
    }

    /// The stricter rule for addresses that components choose: http is for the hosts that the operator names.
    pub(super) fn named_only(&self, url: &Url) -> Result<(), ExchangeRefusal> {
        let host = authority(url);
        match url.scheme() {
            "https" => Ok(()),
            "http" if self.settings.plain_http.contains(&host) => Ok(()),
            "http" => Err(ExchangeRefusal::PlainHttp { host }),
            other => Err(ExchangeRefusal::Malformed(format!("{other}:// is no scheme of a web server"))),
        }
    }

    fn may_be_plain(&self, authority: &str) -> bool {
        let is_loopback = || authority.parse::<Registry>().is_ok_and(|registry| registry.is_loopback());
        self.settings.plain_http.contains(authority) || is_loopback()
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashSet<String>> {
        self.without_tls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks, and follows redirects of what is got. A registry for which no scheme was written is asked again without TLS
    /// where it may be and has none.
    pub(super) async fn ask(
        &self,
        registry: &Registry,
        ask: &Ask,
        until: Deadline,
    ) -> Result<RegistryResponse, ExchangeRefusal> {
        match self.follow(ask, until).await {
            Err(ExchangeRefusal::NoTls { host }) if registry.scheme.is_none() && self.may_be_plain(&host) => {
                let mut plain = ask.clone();
                if authority(&plain.url) != host || plain.url.set_scheme("http").is_err() {
                    return Err(ExchangeRefusal::NoTls { host });
                }
                let answer = self.follow(&plain, until).await?;
                self.known().insert(host);
                Ok(answer)
            }
            other => other,
        }
    }

    /// Asks, and follows redirects of what is got.
    pub(super) async fn follow(&self, ask: &Ask, until: Deadline) -> Result<RegistryResponse, ExchangeRefusal> {
        let mut ask = ask.clone();
        let (first, networks, mut passed) = (ask.url.clone(), Arc::clone(&ask.networks), HashSet::new());
        loop {
            let response = self.exchange(&ask, until).await?;
            let is_redirect = matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308);
            if !is_redirect || ask.form.is_some() || ask.is_push() || !ask.follows {
                return Ok(self.answer(response, ask.url, &first, until));
            }
            let next = next(&ask.url, response.headers())?;
            if ask.named_only {
                self.named_only(&next)?;
            } else {
                self.permitted(&next, Some(&ask.url))?;
            }
            ask.networks = Arc::clone(&networks);
            if is_another(&next, &first) {
                ask.networks = led_to(&next, &ask.sources)?;
            }
            if is_another(&next, &ask.url) {
                ask.authorization = None;
                ask.headers.clear();
            }
            if !passed.insert(ask.url.clone()) || passed.contains(&next) {
                return Err(ExchangeRefusal::Redirect("in a circle".to_owned()));
            }
            if passed.len() > self.settings.limits.redirects {
                return Err(ExchangeRefusal::Redirect(format!("more than {} times", self.settings.limits.redirects)));
            }
            ask.url = next;
        }
    }

    async fn exchange(&self, ask: &Ask, until: Deadline) -> Result<Response<Incoming>, ExchangeRefusal> {
        let malformed =
            |error: http::Error| ExchangeRefusal::Malformed(format!("the request cannot be written: {error}"));
        let mut request = Request::builder()
            .method(if ask.form.is_some() { Method::POST } else { ask.method.clone() })
            .uri(ask.url.as_str())
            .header(header::USER_AGENT, concat!("orangery/", env!("CARGO_PKG_VERSION")))
            .header(header::ACCEPT, ask.accept);
        if let Some(authorization) = &ask.authorization {
            request = request.header(header::AUTHORIZATION, authorization);
        }
        for (name, value) in &ask.headers {
            request = request.header(name, value);
        }
        if ask.form.is_some() {
            request = request.header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
        }
        let body = match (&ask.form, &ask.content) {
            (Some(form), _) => Full::from(form.clone()),
            (None, Some((media_type, content))) => {
                request = request.header(header::CONTENT_TYPE, media_type);
                Full::from(content.clone())
            }
            (None, None) => Full::default(),
        };
        let response = self.client(&ask.networks, &ask.tenant).request(request.body(body).map_err(malformed)?);
        // What is pushed is on its way meanwhile.
        let limits = &self.settings.limits;
        let idle = if ask.content.is_some() { limits.blob_time } else { limits.idle };
        let answered = until.step(idle, "waiting for an answer", response).await?;
        answered.map_err(|error| unreached(&error, authority(&ask.url)))
    }

    fn answer(&self, response: Response<Incoming>, url: Url, first: &Url, until: Deadline) -> RegistryResponse {
        let (Parts { status, headers, .. }, body) = response.into_parts();
        let is_of_another = is_another(&url, first);
        let (expected, idle) = (body.size_hint().exact(), self.settings.limits.idle);
        let (got, meter, reserved, place) = (0, None, None, None);
        RegistryResponse {
            status,
            headers,
            url,
            is_of_another,
            body,
            expected,
            got,
            idle,
            until,
            meter,
            reserved,
            place,
        }
    }
}

impl RegistryResponse {
    /// The same, which keeps its place until it is dropped.
    pub(super) fn in_place(self, place: Turn) -> Self {
        Self { place: Some(place), ..self }
    }

    /// How long the body says it is.
    pub(super) fn expected(&self) -> Option<u64> {
        self.expected
    }

    /// The next piece of the body; `None` after the last.
    pub(super) async fn piece(&mut self) -> Result<Option<Bytes>, ExchangeRefusal> {
        loop {
            let step = tokio::select! {
                biased;
                refusal = overdue(self.reserved.as_ref(), self.got) => return Err(refusal),
                step = self.until.step(self.idle, "its content was read", self.body.frame()) => step?,
            };
            let Some(frame) = step else { return Ok(None) };
            // Whatever breaks a body, what came before it counts as cut.
            let frame = frame.map_err(|_| ExchangeRefusal::Cut { got: self.got, expected: self.expected })?;
            if let Ok(bytes) = frame.into_data() {
                self.got += bytes.len() as u64;
                self.meter.as_ref().map_or(Ok(()), |meter| meter.count(bytes.len() as u64))?;
                if let Some(reserved) = &mut self.reserved {
                    reserved.grow_to(self.got).await?;
                }
                return Ok(Some(bytes));
            }
        }
    }

    /// The whole body, where it is not longer than `most`.
    pub(super) async fn bytes(self, most: u64) -> Result<Vec<u8>, ExchangeRefusal> {
        self.reserved_bytes(most).await.map(|(bytes, _)| bytes)
    }

    /// The same with the memory that is reserved for it.
    pub(super) async fn reserved_bytes(mut self, most: u64) -> Result<(Vec<u8>, HeldMemory), ExchangeRefusal> {
        if let Some(size) = self.expected.filter(|size| *size > most) {
            return Err(ExchangeRefusal::TooBig { most, size: Some(size) });
        }
        let mut all = Vec::new();
        while let Some(piece) = self.piece().await? {
            if self.got > most {
                return Err(ExchangeRefusal::TooBig { most, size: None });
            }
            all.extend_from_slice(&piece);
        }
        Ok((all, self.reserved.into()))
    }
}

/// Host and port, as [`Registry`] writes them: without the port of the scheme.
pub(super) fn authority(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// Whether a server is another one than the one that was asked: what is for that one is not for this. With TLS it may be the
/// same as without, and not the other way round.
pub(super) fn is_another(url: &Url, asked: &Url) -> bool {
    authority(url) != authority(asked) || (asked.scheme() == "https" && url.scheme() != "https")
}

/// Whether who is asked may lead to another server (C-104), and which networks that may be in (C-101).
pub(super) fn led_to(url: &Url, sources: &AllowedSources) -> Result<Arc<AllowedNetworks>, ExchangeRefusal> {
    sources.redirect(url.host_str().unwrap_or_default()).map_err(ExchangeRefusal::Led)?;
    Ok(Arc::clone(&sources.networks.redirects))
}

/// Where an answer leads to.
pub(super) fn next(from: &Url, headers: &HeaderMap) -> Result<Url, ExchangeRefusal> {
    let location = headers.get(header::LOCATION).and_then(|value| value.to_str().ok());
    let location = location.ok_or_else(|| ExchangeRefusal::Redirect("without saying where to".to_owned()))?;
    // The address may have a signature in it, which is as good as a password.
    let next = from.join(location).map_err(|_| ExchangeRefusal::Redirect("to what is no address".to_owned()))?;
    if !next.username().is_empty() || next.password().is_some() {
        return Err(ExchangeRefusal::Redirect("to an address with a user in it".to_owned()));
    }
    Ok(next)
}

/// The certificates of this machine and those of the operator, on ring.
fn tls(own: &[CertificateDer<'static>]) -> Result<ClientConfig, rustls::Error> {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::warn!(%error, "a certificate of this machine cannot be read");
    }
    let (_, ignored) = roots.add_parsable_certificates(found.certs);
    if ignored > 0 {
        tracing::warn!(ignored, "certificates of this machine cannot be used");
    }
    for certificate in own {
        roots.add(certificate.clone())?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

/// Why no answer came at all.
fn unreached(error: &hyper_util::client::legacy::Error, host: String) -> ExchangeRefusal {
    match denial(error) {
        Some(refused @ ConnectRefusal::NotAllowed(_)) => return ExchangeRefusal::NotAllowed(refused.to_string()),
        Some(denied) => return ExchangeRefusal::Denied(denied.to_string()),
        None => {}
    }
    match tls_refusal(error) {
        Some(TlsRefusal::NoTls) => ExchangeRefusal::NoTls { host },
        Some(TlsRefusal::Certificate(why)) => ExchangeRefusal::Certificate { host, why },
        Some(TlsRefusal::Other(why)) => ExchangeRefusal::Unreachable(why),
        None => ExchangeRefusal::Unreachable(deepest(error)),
    }
}

#[cfg(test)]
mod tests {
    use orangery_core::{name::Namespace, network::NetworkRule};

    use super::*;

    #[test]
    fn c_102_limits_registry_so_many_clients_are_kept_one_for_each_allowance() {
        let connections = RegistryConnections::new(Arc::default()).expect("connections");
        let networks = |line: usize| {
            let rule = NetworkRule { networks: Vec::new(), servers: Vec::new(), line: line.to_string() };
            Arc::new(AllowedNetworks { rules: vec![rule] })
        };
        for line in 0..=MOST_CLIENTS {
            connections.client(&networks(line), &None);
            connections.client(&networks(line), &None);
        }
        let is_kept = |line: &usize| connections.clients.get(&(networks(*line), None)).is_some();
        let kept: Vec<usize> = (0..=MOST_CLIENTS).filter(is_kept).collect();
        assert_eq!(kept, (1..=MOST_CLIENTS).collect::<Vec<_>>());
        let tenant = Some(Namespace::from_static("a"));
        connections.client(&networks(MOST_CLIENTS), &tenant);
        let kept = connections.clients.get(&(networks(MOST_CLIENTS), tenant));
        assert!(kept.is_some(), "names are looked up for a namespace, so no other one has its client");
    }
}
