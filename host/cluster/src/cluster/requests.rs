//! How one API server is asked: so many requests at once, none before it wants to be asked again, and none in vain while it
//! is known to be silent.

use std::{
    collections::BTreeMap,
    future::poll_fn,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use http::{Request, StatusCode, header::RETRY_AFTER};
use http_body::Body as _;
use kube::{Client, client::Body, core::Status};
use orangery_core::memory;
use orangery_turns::{HeldBytes, SharedBytes, Tenant, Turns};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::{
    Error,
    answer::MOST_ANSWER_BYTES,
    object_memory::{VALUES_HELD_BY_NOBODY, share_of},
};

/// The most requests to one cluster that are under way at once, watches apart. Namespaces take turns (C-44).
pub const MOST_REQUESTS: usize = 64;

/// The most bytes of an answer that is no page of objects. API servers store objects of 1.5 MiB.
const MOST_SINGLE_ANSWER: u64 = 8 << 20;

/// So many bytes of an answer take nothing of what namespaces share: most answers have no more.
const HELD_BY_NOBODY: u64 = 32 << 10;

/// How often a request is sent again that the server wants to have later.
const SENT_AGAIN: usize = 5;

/// The longest time for which a server is left alone because it says so.
const PAUSE_CEILING: Duration = Duration::from_secs(60);

/// A request that failed after this long, while nothing else was answered, has met a silent server.
const OUTAGE_AFTER: Duration = Duration::from_secs(1);

/// How long a silent server is left alone after the first such request; twice as long after each further one.
const FIRST_REST: Duration = Duration::from_secs(1);

/// The most of that.
const REST_CEILING: Duration = Duration::from_secs(30);

/// The requests to one API server with one set of credentials.
#[derive(Default)]
pub(super) struct RequestGate {
    server: Arc<ServerGate>,
    /// Protects until when the server wants to be left alone: it says so to one user. Held for one look or one change.
    pause: Mutex<Option<Instant>>,
}

/// What all share who ask one API server, with whatever credentials: how many requests are under way, and whether it answers.
pub(crate) struct ServerGate {
    places: Arc<Turns>,
    /// Protects what is known of the server. Held for one look or one change.
    health: Mutex<Health>,
}

#[derive(Default)]
struct Health {
    /// When it has answered last.
    answered: Option<Instant>,
    /// By whose requests it did not answer: those of one namespace may be what it never answers, as where a webhook hangs.
    outages: BTreeMap<Tenant, Outage>,
}

/// What is known of a server that does not answer.
struct Outage {
    /// Requests in a row that it did not answer.
    failures: u32,
    /// Until when it is not asked.
    until: Instant,
    /// What the last of them failed with.
    error: Error,
    /// Whether one request is under way that finds out whether it answers again.
    is_tried: bool,
}

/// A request that may be sent; says at its end what became of it.
pub(super) struct RequestAttempt<'a> {
    of: &'a ServerGate,
    tenant: &'a Tenant,
    /// When it had its turn.
    sent: OnceLock<Instant>,
    /// Whether it waits until the server wants to be asked again.
    is_left_alone: AtomicBool,
    tries: bool,
}

impl Default for ServerGate {
    fn default() -> Self {
        Self { places: Turns::new(MOST_REQUESTS), health: Mutex::default() }
    }
}

impl ServerGate {
    /// Whether it is known that the server does not answer somebody.
    pub(crate) fn is_silent(&self) -> bool {
        let now = Instant::now();
        self.health().outages.values().any(|outage| outage.is_tried || now < outage.until + REST_CEILING)
    }

    fn health(&self) -> MutexGuard<'_, Health> {
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RequestGate {
    /// The requests to a server that others ask, too.
    pub(super) fn of(server: &Arc<ServerGate>) -> Self {
        Self { server: Arc::clone(server), pause: Mutex::default() }
    }

    /// A request is about to be sent.
    ///
    /// # Errors
    /// The server is silent: what the last request to it failed with. One request at a time finds out whether it still is.
    pub(super) fn attempt<'a>(&'a self, tenant: &'a Tenant) -> Result<RequestAttempt<'a>, Error> {
        let mut tries = false;
        if let Some(outage) = self.server.health().outages.get_mut(tenant) {
            if outage.is_tried || Instant::now() < outage.until {
                return Err(outage.error.clone());
            }
            outage.is_tried = true;
            tries = true;
        }
        let is_left_alone = AtomicBool::new(false);
        Ok(RequestAttempt { of: &self.server, tenant, sent: OnceLock::new(), is_left_alone, tries })
    }

    /// Sends a request as soon as its namespace has its turn, and again where the server wants to have it later (`Retry-After`).
    /// The answer holds what its values take of the memory that all clusters share, unless it is a page (C-201).
    pub(super) async fn send<T: DeserializeOwned>(
        &self,
        attempt: &RequestAttempt<'_>,
        (client, objects): (&Client, &Arc<SharedBytes>),
        request: Request<Vec<u8>>,
    ) -> Result<(T, HeldBytes), kube::Error> {
        let mut again = SENT_AGAIN;
        let is_page = is_page(&request);
        loop {
            attempt.is_left_alone.store(true, Ordering::Relaxed);
            self.pause().await;
            attempt.is_left_alone.store(false, Ordering::Relaxed);
            let answer = {
                let _turn = self.server.places.acquire(attempt.tenant).await;
                attempt.begin();
                self.exchange(client, request.clone(), objects.none_of(attempt.tenant)).await
            };
            match answer {
                Err(RefusedAnswer { later: Some(later), .. }) if again > 0 => self.leave_alone(later),
                // Whoever asks for pages holds what it keeps of them.
                Ok((bytes, held)) if is_page => return Ok((decoded(&bytes)?, held)),
                Ok((bytes, held)) => return decoded_in(held, bytes),
                Err(RefusedAnswer { error, later }) => {
                    later.into_iter().for_each(|later| self.leave_alone(later));
                    return Err(error);
                }
            }
            again -= 1;
        }
    }

    /// The answer, which holds what its text takes of the memory that all clusters share.
    async fn exchange(
        &self,
        client: &Client,
        request: Request<Vec<u8>>,
        held: HeldBytes,
    ) -> Result<(Vec<u8>, HeldBytes), RefusedAnswer> {
        let is_page = is_page(&request);
        let answer = client.send(request.map(Body::from)).await?;
        let (status, later) = (answer.status(), answer.headers().get(RETRY_AFTER).cloned());
        let (bytes, held) = collected(answer.into_body(), is_page, held).await?;
        self.server.health().answered = Some(Instant::now());
        if status.is_success() {
            return Ok((bytes, held));
        }
        let refusal = refusal(status, &bytes);
        let is_busy = matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
        let seconds = later.and_then(|value| value.to_str().ok()?.trim().parse().ok());
        let later = seconds.map(Duration::from_secs).filter(|_| is_busy);
        Err(RefusedAnswer { error: kube::Error::Api(refusal.boxed()), later })
    }

    fn leave_alone(&self, time: Duration) {
        let until = Instant::now() + time.min(PAUSE_CEILING);
        let mut pause = self.pause.lock().unwrap_or_else(PoisonError::into_inner);
        *pause = (*pause).max(Some(until));
    }

    /// For how long a request waits from now on, because the server wants to be left alone; `None` where it waits for something else.
    pub(super) fn left_alone_for(&self, attempt: &RequestAttempt<'_>) -> Option<Duration> {
        attempt.is_left_alone.load(Ordering::Relaxed).then(|| self.left())?
    }

    /// For how long the server wants to be left alone; `None` where it may be asked.
    fn left(&self) -> Option<Duration> {
        let until = *self.pause.lock().unwrap_or_else(PoisonError::into_inner);
        let left = until?.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }

    async fn pause(&self) {
        while let Some(left) = self.left() {
            sleep(left).await;
        }
    }
}

/// Whether the answer is a page of objects: no other request asks for so many.
fn is_page(request: &Request<Vec<u8>>) -> bool {
    request.uri().query().unwrap_or_default().split('&').any(|part| part.starts_with("limit="))
}

/// A whole answer. What it takes as it comes in is held, but for the first bytes of it.
async fn collected(mut body: Body, is_page: bool, mut held: HeldBytes) -> Result<(Vec<u8>, HeldBytes), kube::Error> {
    let most = if is_page { MOST_ANSWER_BYTES } else { MOST_SINGLE_ANSWER };
    let no_room = |limit| kube::Error::Service(Box::new(NoRoom { limit, is_page }));
    let mut bytes = Vec::new();
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let Ok(data) = frame?.into_data() else { continue };
        let size = bytes.len() as u64 + data.len() as u64;
        if size > most {
            return Err(no_room(format!("{most} bytes")));
        }
        if size > HELD_BY_NOBODY && !held.set(size) {
            return Err(no_room(share_of(held.of())));
        }
        bytes.extend_from_slice(&data);
    }
    Ok((bytes, held))
}

/// The values of an answer that is no page. What they take is held before they are made, beside the text, which goes then.
fn decoded_in<T: DeserializeOwned>(mut held: HeldBytes, bytes: Vec<u8>) -> Result<(T, HeldBytes), kube::Error> {
    let values = Some(memory::of_json(&bytes)).filter(|values| *values > VALUES_HELD_BY_NOBODY);
    if let Some(values) = values
        && !held.set(values.saturating_add(bytes.len() as u64))
    {
        return Err(kube::Error::Service(Box::new(NoRoom { limit: share_of(held.of()), is_page: false })));
    }
    let answer = decoded(&bytes)?;
    drop(bytes);
    held.put(values.unwrap_or_default());
    Ok((answer, held))
}

/// An answer for which there is no room.
#[derive(Debug, thiserror::Error)]
#[error("its answer takes more than the {limit} that are allowed")]
pub(super) struct NoRoom {
    pub(super) limit: String,
    /// Whether it is a page of objects, of which fewer may be asked for.
    pub(super) is_page: bool,
}

/// An answer that is none.
struct RefusedAnswer {
    error: kube::Error,
    /// When the server wants to be asked again.
    later: Option<Duration>,
}

impl From<kube::Error> for RefusedAnswer {
    fn from(error: kube::Error) -> Self {
        Self { error, later: None }
    }
}

/// What a server answers. The error of the decoder quotes it, so its place alone is told (C-68).
fn decoded<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, kube::Error> {
    serde_json::from_slice(bytes).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        let message = format!("its answer is none of Kubernetes, at line {line}, column {column}");
        kube::Error::SerdeError(serde::de::Error::custom(message))
    })
}

/// What a server says that refuses: the words of a Status of Kubernetes. Of any other answer only its code is shown: who wrote the
/// Target chose the server, which may be one that he cannot ask himself (C-68).
fn refusal(status: StatusCode, bytes: &[u8]) -> Status {
    let is_status = |said: &Value| said["kind"] == "Status" && said["apiVersion"] == "v1";
    let said = serde_json::from_slice::<Value>(bytes)
        .ok()
        .filter(is_status)
        .and_then(|said| serde_json::from_value(said).ok());
    let said: Status = said.unwrap_or_else(|| {
        let message = format!("it answered {status}, and no Status of Kubernetes, so its words are not shown");
        Status::failure(&message, status.canonical_reason().unwrap_or_default())
    });
    if said.code == 0 { said.with_code(status.as_u16()) } else { said }
}

impl RequestAttempt<'_> {
    /// It is sent now.
    fn begin(&self) {
        self.sent.get_or_init(Instant::now);
    }

    /// Whether it had its turn.
    pub(super) fn was_sent(&self) -> bool {
        self.sent.get().is_some()
    }

    /// The server has answered.
    pub(super) fn answered(self) {
        self.of.health().outages.remove(self.tenant);
    }

    /// The server has not answered: where that took long, it is not asked again for a while by this namespace.
    pub(super) fn failed(self, error: &Error) {
        let Some(sent) = self.sent.get().copied() else { return };
        let now = Instant::now();
        let mut health = self.of.health();
        let is_silent = health.answered.is_none_or(|answered| answered < sent);
        if !is_silent {
            health.outages.remove(self.tenant);
            return;
        }
        if now.saturating_duration_since(sent) < OUTAGE_AFTER {
            return;
        }
        let failures = health.outages.get(self.tenant).map_or(0, |outage| outage.failures);
        // Of those that were sent together the first counts.
        let failures = if self.tries || failures == 0 { failures.saturating_add(1) } else { failures };
        let rest = FIRST_REST.saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1))).min(REST_CEILING);
        // Whoever has not asked for that long begins anew.
        health.outages.retain(|_, outage| outage.is_tried || now < outage.until + REST_CEILING);
        let outage = Outage { failures, until: now + rest, error: error.clone(), is_tried: false };
        health.outages.insert(self.tenant.clone(), outage);
    }
}

impl Drop for RequestAttempt<'_> {
    fn drop(&mut self) {
        if self.tries
            && let Some(outage) = self.of.health().outages.get_mut(self.tenant)
        {
            outage.is_tried = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use orangery_proposal::ObjectKey;
    use tokio::time::advance;

    use super::*;

    fn silent() -> Error {
        let key = ObjectKey { api_version: "v1".into(), kind: "K".into(), namespace: None, name: "x".into() };
        Error::Unanswered { cluster: "c".into(), key: Box::new(key), seconds: 30 }
    }

    /// A request that is not answered for so long.
    async fn fails_after(requests: &RequestGate, time: Duration) {
        let attempt = requests.attempt(&None).unwrap();
        attempt.begin();
        advance(time).await;
        attempt.failed(&silent());
    }

    #[test]
    fn c_68_only_a_status_of_kubernetes_is_shown_of_what_a_server_answers() {
        let said = |body: &str| {
            let said = refusal(StatusCode::FORBIDDEN, body.as_bytes());
            (said.code, said.message)
        };
        let status = r#"{"kind": "Status", "apiVersion": "v1", "message": "no room", "code": 403}"#;
        assert_eq!(said(status), (403, "no room".to_owned()));
        let hidden = "it answered 403 Forbidden, and no Status of Kubernetes, so its words are not shown";
        for body in [
            "internal admin console; db_password=s3cr3t",
            r#"{"message": "s3cr3t", "code": 403}"#,
            r#"{"kind": "Status", "apiVersion": "v2", "message": "s3cr3t"}"#,
            r#"{"kind": "Status", "apiVersion": "v1", "message": {"a": "s3cr3t"}}"#,
            r#"["s3cr3t"]"#,
            "",
        ] {
            assert_eq!(said(body), (403, hidden.to_owned()), "{body}");
        }
        let error = decoded::<Vec<u64>>(br#"["s3cr3t"]"#).unwrap_err().to_string();
        assert_eq!(error, "Error deserializing response: its answer is none of Kubernetes, at line 1, column 9");
    }

    #[tokio::test(start_paused = true)]
    async fn c_39_a_silent_server_is_left_alone_and_one_request_finds_out_whether_it_answers_again() {
        let requests = RequestGate::default();
        fails_after(&requests, OUTAGE_AFTER / 2).await;
        assert!(requests.attempt(&None).is_ok(), "what fails fast may be asked again");
        fails_after(&requests, OUTAGE_AFTER).await;
        assert!(requests.server.is_silent());
        assert_eq!(requests.attempt(&None).err().map(|error| error.to_string()), Some(silent().to_string()));
        advance(FIRST_REST).await;
        let trying = requests.attempt(&None).unwrap();
        assert!(requests.attempt(&None).is_err(), "one is enough");
        drop(trying);
        // Twice as long from now on.
        fails_after(&requests, OUTAGE_AFTER).await;
        advance(FIRST_REST).await;
        assert!(requests.attempt(&None).is_err());
        advance(FIRST_REST).await;
        requests.attempt(&None).unwrap().answered();
        assert!(requests.attempt(&None).is_ok() && requests.attempt(&None).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn c_39_one_slow_request_makes_no_silent_server_while_others_are_answered() {
        let requests = RequestGate::default();
        let attempt = requests.attempt(&None).unwrap();
        attempt.begin();
        advance(OUTAGE_AFTER).await;
        requests.server.health().answered = Some(Instant::now());
        attempt.failed(&silent());
        assert!(requests.attempt(&None).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn c_44_a_server_is_silent_for_the_namespace_alone_whose_requests_it_let_wait() {
        let requests = RequestGate::default();
        let neighbour = Some("neighbour".into());
        fails_after(&requests, OUTAGE_AFTER).await;
        assert!(requests.attempt(&None).is_err());
        let attempt = requests.attempt(&neighbour).unwrap();
        advance(REST_CEILING).await;
        attempt.failed(&silent());
        assert!(requests.attempt(&neighbour).is_ok(), "what had no turn says nothing of the server");
        assert_eq!(requests.server.health().outages.keys().collect::<Vec<_>>(), [&None]);
    }
}
