use http::{Request, Response};
use http_body_util::BodyExt;
use kube::client::Body;
use serde_json::Value;

use super::*;

/// A server that takes events, and writes down what it was asked, as `METHOD note count`. A new one is taken when two say so,
/// or when time is up for the second.
#[derive(Default)]
struct Server {
    asked: Mutex<Vec<String>>,
    /// Whether it has no event any more.
    is_empty: std::sync::atomic::AtomicBool,
}

impl Server {
    fn recorder(self: &Arc<Self>) -> EventRecorder {
        let server = Arc::clone(self);
        let service = tower::service_fn(move |request: Request<Body>| {
            let server = Arc::clone(&server);
            async move {
                let (head, body) = request.into_parts();
                let body: Value = serde_json::from_slice(&body.collect().await?.to_bytes()).unwrap();
                let count = &body["series"]["count"];
                let asked = format!("{} {} {count}", head.method, body["note"].as_str().unwrap_or_default());
                server.asked.lock().unwrap().push(asked);
                // Whoever says the same at once comes here too, unless it is held back.
                tokio::task::yield_now().await;
                let is_gone = head.method == "PATCH" && server.is_empty.load(std::sync::atomic::Ordering::SeqCst);
                let answer = json!({"kind": "Event", "metadata": {"name": "x", "namespace": "ns"}, "eventTime": null});
                let gone =
                    json!({"kind": "Status", "status": "Failure", "code": 404, "reason": "NotFound", "message": ""});
                let (status, answer) = if is_gone { (404, gone) } else { (200, answer) };
                Ok::<_, kube::Error>(
                    Response::builder().status(status).body(Body::from(answer.to_string().into_bytes())).unwrap(),
                )
            }
        });
        EventRecorder::new(Client::new(service, "default"), "test")
    }

    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

fn notice(note: &str, repeated: Repeated) -> Notice {
    let [reason, action] = ["Failed", "Reconcile"].map(str::to_owned);
    Notice { type_: EventType::Warning, reason, note: note.to_owned(), action, repeated }
}

fn object(name: &str) -> ObjectReference {
    ObjectReference { name: Some(name.to_owned()), namespace: Some("ns".to_owned()), ..ObjectReference::default() }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

#[tokio::test]
async fn c_89_what_is_said_twice_at_once_is_one_event() {
    let server = Arc::new(Server::default());
    let recorder = server.recorder();
    let (boom, a) = (notice("boom", Repeated::Counted), object("a"));
    let (one, two) = tokio::join!(recorder.publish(&boom, &a, at(1)), recorder.publish(&boom, &a, at(1)));
    one.and(two).unwrap();
    assert_eq!(server.asked(), ["POST boom null", "PATCH  2"]);
    let lasting = notice("no such hour", Repeated::Passed);
    let (one, two) = tokio::join!(recorder.publish(&lasting, &a, at(1)), recorder.publish(&lasting, &a, at(1)));
    one.and(two).unwrap();
    assert_eq!(server.asked(), ["POST no such hour null"]);
}

#[tokio::test]
async fn c_89_what_says_something_else_is_an_event_of_its_own() {
    let server = Arc::new(Server::default());
    let recorder = server.recorder();
    for (note, name) in [("boom", "a"), ("crash", "a"), ("boom", "b"), ("boom", "a")] {
        recorder.publish(&notice(note, Repeated::Counted), &object(name), at(1)).await.unwrap();
    }
    assert_eq!(server.asked(), ["POST boom null", "POST crash null", "POST boom null", "PATCH  2"]);
    for note in ["used by a, b", "used by b"] {
        recorder.publish(&notice(note, Repeated::PassedWhateverItSays), &object("a"), at(1)).await.unwrap();
    }
    assert_eq!(server.asked(), ["POST used by a, b null"]);
}

#[tokio::test]
async fn c_89_after_six_minutes_or_where_the_event_is_gone_it_is_told_anew() {
    let server = Arc::new(Server::default());
    let recorder = server.recorder();
    for second in [0, 359, 718, 1078] {
        recorder.publish(&notice("boom", Repeated::Counted), &object("a"), at(second)).await.unwrap();
    }
    assert_eq!(server.asked(), ["POST boom null", "PATCH  2", "PATCH  3", "POST boom null"]);
    server.is_empty.store(true, std::sync::atomic::Ordering::SeqCst);
    recorder.publish(&notice("boom", Repeated::Counted), &object("a"), at(1079)).await.unwrap();
    assert_eq!(server.asked(), ["PATCH  2", "POST boom null"]);
    let recent = recorder.recent.lock().unwrap();
    assert_eq!((recent.known.len(), recent.oldest.len()), (1, 1), "what is old is forgotten");
}

#[test]
fn limits_event_a_name_is_one_that_a_server_takes() {
    let long = format!("{}.{}", "x".repeat(LONGEST_NAME - 1), "y".repeat(16));
    let name = name(&object(&long), 1, at(1));
    assert_eq!((name.len(), name.contains("..")), (LONGEST_NAME - 1 + 17, false), "{name}");
}
