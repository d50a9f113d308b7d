//! Counts the requests of a client, and makes clients of servers in the same process.

use std::{
    collections::BTreeMap,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use http::{Method, Request, Response};
use kube::{Client, client::Body};
use orangery_figures::{DurationCounts, Durations};
use tokio::time::Instant;
use tower::{Layer, Service, timeout::TimeoutLayer};

use crate::lease::Fence;

/// How long an API server has to begin its answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// How long a connection may say nothing in the middle of an answer. A watch of which nothing is heard for so long is begun
/// anew: API servers send a bookmark each minute.
const SILENT_FOR: Duration = Duration::from_secs(150);

/// The most different requests that are counted apart; those beyond count as of the resource [`OTHER`] (C-144).
const MOST_COUNTED: usize = 2_000;

/// The most bytes of a resource that is counted apart, as those of a plural name with its group (C-144).
const LONGEST_RESOURCE: usize = 253;

/// The resource of whatever is not counted apart.
const OTHER: &str = "other";

/// What was asked, and how it was answered.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequestRecord {
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete` or `deletecollection`, as in RBAC rules.
    pub verb: &'static str,
    /// The plural name of the kind, with `/status` for the subresource.
    pub resource: String,
    /// The HTTP status; `0` where there was no answer.
    pub status: u16,
}

/// Counts requests by verb, resource and answer. Clones count together.
#[derive(Clone, Debug, Default)]
pub struct Requests {
    /// Protects the counts; held for one increment or one copy.
    counts: Arc<Mutex<BTreeMap<RequestRecord, u64>>>,
    durations: Arc<[Durations; VERBS.len()]>,
}

/// The verbs that durations are counted by; the last one stands for all others.
const VERBS: [&str; 9] = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", OTHER];

impl Requests {
    /// The counts so far.
    pub fn counts(&self) -> BTreeMap<RequestRecord, u64> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How long it took until answers began, by verb: those verbs that were used.
    pub fn durations(&self) -> Vec<(&'static str, DurationCounts)> {
        let counts = VERBS.into_iter().zip(self.durations.iter().map(Durations::counts));
        counts.filter(|(_, counts)| counts.count() > 0).collect()
    }

    fn took(&self, verb: &str, duration: Duration) {
        let at = VERBS.iter().position(|known| *known == verb).unwrap_or(VERBS.len() - 1);
        self.durations.get(at).into_iter().for_each(|durations| durations.add(duration));
    }

    /// Definitions and roles decide what is asked for: each resource would be a series of its own.
    fn count(&self, mut asked: RequestRecord) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = !counts.contains_key(&asked);
        if asked.resource.len() > LONGEST_RESOURCE || is_new && counts.len() >= MOST_COUNTED {
            OTHER.clone_into(&mut asked.resource);
        }
        *counts.entry(asked).or_default() += 1;
    }
}

impl<S> Layer<S> for Requests {
    type Service = CountedService<S>;

    fn layer(&self, service: S) -> CountedService<S> {
        CountedService { service, requests: self.clone() }
    }
}

/// A service whose requests are counted.
#[derive(Clone, Debug)]
pub struct CountedService<S> {
    service: S,
    requests: Requests,
}

impl<S, B, E> Service<Request<Body>> for CountedService<S>
where
    S: Service<Request<Body>, Response = Response<B>, Error = E>,
    S::Future: Send + 'static,
    B: 'static,
    E: 'static,
{
    type Response = Response<B>;
    type Error = E;
    type Future = Pin<Box<dyn Future<Output = Result<Response<B>, E>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), E>> {
        self.service.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (verb, resource) = parse(request.method(), request.uri().path(), request.uri().query().unwrap_or_default());
        let (requests, begun) = (self.requests.clone(), Instant::now());
        let answer = self.service.call(request);
        Box::pin(async move {
            let answer = answer.await;
            let status = answer.as_ref().map_or(0, |answer| answer.status().as_u16());
            requests.took(verb, begun.elapsed());
            requests.count(RequestRecord { verb, resource, status });
            answer
        })
    }
}

/// The verb and the resource of a Kubernetes URL: `/api/v1/…` or `/apis/<group>/<version>/…`, then
/// `namespaces/<namespace>` for what lives in one, then `<plural>[/<name>[/<subresource>]]`.
fn parse(method: &Method, path: &str, query: &str) -> (&'static str, String) {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let rest = match parts.as_slice() {
        ["api", _, rest @ ..] | ["apis", _, _, rest @ ..] => rest,
        _ => return (verb(method, true, query), "none".to_owned()),
    };
    match rest {
        ["namespaces", _, plural] => (verb(method, false, query), (*plural).to_owned()),
        ["namespaces", _, plural, _] => (verb(method, true, query), (*plural).to_owned()),
        ["namespaces", _, plural, _, sub, ..] => (verb(method, true, query), format!("{plural}/{sub}")),
        [plural] => (verb(method, false, query), (*plural).to_owned()),
        [plural, _] => (verb(method, true, query), (*plural).to_owned()),
        [plural, _, sub, ..] => (verb(method, true, query), format!("{plural}/{sub}")),
        [] => (verb(method, true, query), "none".to_owned()),
    }
}

fn verb(method: &Method, named: bool, query: &str) -> &'static str {
    let watches = query.split('&').any(|part| part == "watch=true" || part == "watch=1");
    match (method.as_str(), named) {
        ("GET", _) if watches => "watch",
        ("GET", true) => "get",
        ("GET", false) => "list",
        ("POST", _) => "create",
        ("PUT", _) => "update",
        ("PATCH", _) => "patch",
        ("DELETE", true) => "delete",
        ("DELETE", false) => "deletecollection",
        _ => "other",
    }
}

/// A client of a server in the same process: no connection, no TLS, no copies.
pub fn in_process(router: axum::Router, requests: &Requests) -> Client {
    let service = tower::service_fn(move |request: Request<Body>| {
        let mut router = router.clone();
        async move { Service::call(&mut router, request.map(axum::body::Body::new)).await }
    });
    Client::new(requests.layer(service), "default")
}

/// A client of the cluster that `config` names. An answer begins within [`ANSWER_WITHIN`] and is not silent for longer than
/// [`SILENT_FOR`], so that a server whose machine is gone costs no more than that. No throttle, and no repeats within a
/// call: the loop of the controllers knows better when to try again, and what else to do meanwhile. With a fence it writes
/// only as long as that is open.
///
/// # Errors
/// What the client says about certificates and credentials.
pub fn remote(mut config: kube::Config, requests: &Requests, fence: Option<Fence>) -> Result<Client, kube::Error> {
    config.default_retry = false;
    config.read_timeout = Some(SILENT_FOR);
    let within = TimeoutLayer::new(ANSWER_WITHIN);
    let builder = kube::client::ClientBuilder::try_from(config)?.with_layer(&within);
    Ok(match fence {
        Some(fence) => builder.with_layer(&fence).with_layer(requests).build(),
        None => builder.with_layer(requests).build(),
    })
}

#[cfg(test)]
mod tests {
    use futures::StreamExt as _;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[track_caller]
    fn check(method: Method, path_and_query: &str, verb: &str, resource: &str) {
        let (path, query) = path_and_query.split_once('?').unwrap_or((path_and_query, ""));
        assert_eq!(parse(&method, path, query), (verb_of(verb), resource.to_owned()), "{path_and_query}");
    }

    fn verb_of(verb: &str) -> &'static str {
        ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"]
            .into_iter()
            .find(|known| *known == verb)
            .unwrap()
    }

    /// A server that says this to each request, and nothing more.
    async fn silent_after(beginning: &'static str) -> Client {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            let mut held = Vec::new();
            while let Ok((mut connection, _)) = listener.accept().await {
                let mut asked = Vec::new();
                while !asked.ends_with(b"\r\n\r\n") {
                    asked.push(connection.read_u8().await.unwrap());
                }
                connection.write_all(beginning.as_bytes()).await.unwrap();
                held.push(connection);
            }
        });
        remote(kube::Config::new(format!("http://{address}").parse().unwrap()), &Requests::default(), None).unwrap()
    }

    /// The clock of the test stands still unless everything waits for it, so no test waits for these limits.
    #[tokio::test(start_paused = true)]
    async fn a_server_that_does_not_answer_costs_the_request_and_no_more() {
        let client = silent_after("").await;
        let before = tokio::time::Instant::now();
        let request = Request::get("/api/v1/namespaces/a").body(Vec::new()).unwrap();
        let error = client.request_text(request).await.unwrap_err().to_string();
        assert!(error.contains("timed out"), "{error}");
        assert_eq!(before.elapsed().as_secs(), ANSWER_WITHIN.as_secs());
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_of_which_nothing_is_heard_ends() {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
        let client = silent_after(head).await;
        let before = tokio::time::Instant::now();
        let namespaces: kube::Api<k8s_openapi::api::core::v1::Namespace> = kube::Api::all(client);
        let mut events = std::pin::pin!(namespaces.watch(&kube::api::WatchParams::default(), "0").await.unwrap());
        assert!(matches!(events.next().await, Some(Err(_)) | None));
        assert_eq!(before.elapsed().as_secs(), SILENT_FOR.as_secs());
    }

    #[test]
    fn requests_are_named_as_in_rbac_rules() {
        let (core, group) = ("/api/v1", "/apis/landscaper.gardener.cloud/v1alpha1");
        check(Method::GET, &format!("{core}/namespaces"), "list", "namespaces");
        check(Method::GET, &format!("{core}/namespaces/default"), "get", "namespaces");
        check(Method::GET, &format!("{core}/namespaces/default/secrets/a"), "get", "secrets");
        check(Method::GET, &format!("{group}/installations?limit=500&watch=true"), "watch", "installations");
        check(Method::POST, &format!("{group}/namespaces/ns/executions"), "create", "executions");
        check(Method::PATCH, &format!("{group}/namespaces/ns/executions/a/status"), "patch", "executions/status");
        check(Method::PUT, &format!("{group}/namespaces/ns/executions/a"), "update", "executions");
        check(Method::DELETE, &format!("{group}/namespaces/ns/executions/a?x=1"), "delete", "executions");
        check(Method::DELETE, &format!("{group}/namespaces/ns/executions"), "deletecollection", "executions");
        check(Method::GET, "/version", "get", "none");
        check(Method::GET, group, "get", "none");
    }

    #[test]
    fn c_144_limits_metrics_so_many_resources_are_counted_apart_and_their_names_have_a_length() {
        let requests = Requests::default();
        let count = |resource: String| requests.count(RequestRecord { verb: "get", resource, status: 200 });
        count("x".repeat(LONGEST_RESOURCE));
        count("x".repeat(LONGEST_RESOURCE + 1));
        for number in 2..MOST_COUNTED + 10 {
            count(number.to_string());
        }
        count("2".to_owned());
        let counts = requests.counts();
        let of = |resource: &str| {
            counts.get(&RequestRecord { verb: "get", resource: resource.to_owned(), status: 200 }).copied()
        };
        assert_eq!([of(&"x".repeat(LONGEST_RESOURCE)), of("2"), of(OTHER)], [Some(1), Some(2), Some(11)]);
        assert_eq!((counts.len(), of(&MOST_COUNTED.to_string())), (MOST_COUNTED, None));
    }

    #[tokio::test]
    async fn a_server_in_the_same_process_is_asked_and_counted() {
        let missing = r#"{"kind":"Status","status":"Failure","code":404,"reason":"NotFound"}"#;
        let handler = axum::routing::get(move || async move { (http::StatusCode::NOT_FOUND, missing) });
        let router = axum::Router::new().route("/api/v1/namespaces/{name}", handler);
        let requests = Requests::default();
        let client = in_process(router, &requests);
        let api: kube::Api<k8s_openapi::api::core::v1::Namespace> = kube::Api::all(client);
        assert_eq!(api.get_opt("a").await.unwrap(), None);
        let asked = RequestRecord { verb: "get", resource: "namespaces".to_owned(), status: 404 };
        assert_eq!(requests.counts(), BTreeMap::from([(asked, 1)]));
        let durations: Vec<_> = requests.durations().into_iter().map(|(verb, of)| (verb, of.count())).collect();
        assert_eq!(durations, [("get", 1)]);
    }
}
