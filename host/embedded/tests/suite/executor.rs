//! What takes long holds up nobody else: an executor of one thread goes on while it is done.

use std::{
    sync::{Arc, Mutex, mpsc::sync_channel},
    time::Duration,
};

use axum::{
    Router,
    body::Body,
    http::{Request, StatusCode},
};
use futures::StreamExt as _;
use orangery_embedded::{Options, Storage, start};
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tower::ServiceExt as _;

use crate::scaffold::{config_map, options};

/// How long whoever computes waits for the others.
const PATIENCE: Duration = Duration::from_secs(5);

/// Whether each time at which the server asked for the time somebody else's request was answered meanwhile. The server asks where
/// it works on a write, and gets no answer before.
#[derive(Clone, Default)]
struct Meanwhile {
    neighbour: Arc<Mutex<Option<(Router, Handle)>>>,
    went_on: Arc<Mutex<Vec<bool>>>,
}

impl Meanwhile {
    fn ask(&self) {
        let Some((router, executor)) = self.neighbour.lock().unwrap().take() else { return };
        let (sender, receiver) = sync_channel(1);
        executor.spawn(async move {
            let request = Request::get("/api/v1/namespaces/default").body(Body::empty()).unwrap();
            sender.send(router.oneshot(request).await.unwrap().status().is_success())
        });
        self.went_on.lock().unwrap().push(receiver.recv_timeout(PATIENCE) == Ok(true));
    }

    /// Whether the neighbour went on while the server worked on this request, which it has to grant, until the begin of its answer.
    async fn during(&self, router: &Router, request: Request<Body>) -> bool {
        *self.neighbour.lock().unwrap() = Some((router.clone(), Handle::current()));
        let answer = router.clone().oneshot(request);
        let begin = tokio::spawn(async move {
            let answer = answer.await.unwrap();
            (answer.status(), answer.into_body().into_data_stream().next().await.is_some())
        });
        let (status, says_something) = begin.await.unwrap();
        assert!(status.is_success() && says_something, "{status}");
        self.neighbour.lock().unwrap().take();
        self.went_on.lock().unwrap().pop().expect("the server asked for the time")
    }
}

/// How a request is answered, which the only thread of the executor works on.
async fn status(router: &Router, request: Request<Body>) -> StatusCode {
    tokio::spawn(router.clone().oneshot(request)).await.unwrap().unwrap().status()
}

fn write(method: &str, path: &str, body: &Value) -> Request<Body> {
    let media = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let request = Request::builder().method(method).uri(path).header("content-type", media);
    request.body(Body::from(body.to_string())).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn c_112_a_neighbour_is_answered_while_a_large_request_is_worked_on() {
    const MAPS: &str = "/api/v1/namespaces/default/configmaps";
    let meanwhile = Meanwhile::default();
    let asked = meanwhile.clone();
    let clock = Arc::new(move || {
        asked.ask();
        jiff::Timestamp::from_second(1_800_000_000).unwrap()
    });
    let server = start(Options { clock, ..options(Storage::Memory) }).await.unwrap();
    let router = server.router();
    let of = |name: &str, length: usize| config_map(name, json!({"k": "x".repeat(length)}));
    let during = async |request| meanwhile.during(&router, request).await;
    let small = [
        during(write("POST", MAPS, &of("small", 10))).await,
        during(write("PATCH", &format!("{MAPS}/small"), &json!({"data": {"l": "m"}}))).await,
    ];
    let table = |path: &str| {
        let request = Request::get(path).header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io");
        request.body(Body::empty()).unwrap()
    };
    let unknown = "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"unknown\"}}";
    let of_unknown_length = Body::from_stream(futures::stream::iter([Ok::<_, std::io::Error>(unknown)]));
    let large = [
        during(write("POST", MAPS, &of("large", 64 << 10))).await,
        during(write("PATCH", &format!("{MAPS}/large"), &json!({"data": {"l": "m"}}))).await,
        during(write("PUT", &format!("{MAPS}/small"), &of("small", 64 << 10))).await,
        during(Request::post(MAPS).header("content-type", "application/json").body(of_unknown_length).unwrap()).await,
        during(table(MAPS)).await,
        during(table(&format!("{MAPS}?watch=true"))).await,
    ];
    assert_eq!((small, large), ([false; 2], [true; 6]));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn c_112_a_neighbour_is_answered_while_policies_are_evaluated() {
    let server = start(options(Storage::Memory)).await.unwrap();
    let router = server.router();
    let list: Vec<usize> = (0..60).collect();
    let loops = format!("{list:?}.all(x, {list:?}.all(y, {list:?}.all(z, x + y + z >= 0)))");
    let rules =
        json!([{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]);
    let group = "/apis/admissionregistration.k8s.io/v1";
    for (plural, kind, spec) in [
        (
            "validatingadmissionpolicies",
            "ValidatingAdmissionPolicy",
            json!({"matchConstraints": {"resourceRules": rules}, "validations": [{"expression": loops}]}),
        ),
        (
            "validatingadmissionpolicybindings",
            "ValidatingAdmissionPolicyBinding",
            json!({"policyName": "loops", "validationActions": ["Deny"]}),
        ),
    ] {
        let version = "admissionregistration.k8s.io/v1";
        let object = json!({"apiVersion": version, "kind": kind, "metadata": {"name": "loops"}, "spec": spec});
        let status = status(&router, write("POST", &format!("{group}/{plural}"), &object)).await;
        assert!(status.is_success(), "{kind}: {status}");
    }
    // The first is worked on when the second comes to the only thread.
    let ended = Arc::new(Mutex::new(Vec::new()));
    let asked = [
        ("judged", write("POST", "/api/v1/namespaces/default/configmaps", &config_map("a", json!({})))),
        ("neighbour", Request::get("/api/v1/namespaces/default").body(Body::empty()).unwrap()),
    ]
    .map(|(who, request)| {
        let (router, ended) = (router.clone(), Arc::clone(&ended));
        tokio::spawn(async move {
            assert!(router.oneshot(request).await.unwrap().status().is_success(), "{who}");
            ended.lock().unwrap().push(who);
        })
    });
    for task in asked {
        task.await.unwrap();
    }
    assert_eq!(*ended.lock().unwrap(), ["neighbour", "judged"]);
    server.stop().await;
}
