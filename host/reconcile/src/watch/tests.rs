use std::sync::Arc;

use bytes::Bytes;
use futures::stream;
use http::{Request, Response};
use http_body_util::{BodyExt, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::Frame;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Resource as _, client::Body};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::*;

fn object(name: &str, version: u64, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data, "metadata":
        {"namespace": "ns", "name": name, "uid": name, "resourceVersion": version.to_string()}})
}

fn event(sort: &str, object: Value) -> String {
    // As servers write it: the type first.
    format!("{{\"type\":\"{sort}\",\"object\":{object}}}\n")
}

/// A server with one list and one series of watch events, after which the watch stays open.
fn server(list: Vec<Value>, events: Vec<String>) -> Client {
    let list =
        json!({"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"resourceVersion": "10"}, "items": list});
    let service = tower::service_fn(move |request: Request<Body>| {
        let watches = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        let texts = if watches { events.clone() } else { vec![list.to_string()] };
        let message = stream::iter(texts).map(|text| Ok::<_, std::io::Error>(Frame::data(Bytes::from(text))));
        let body: UnsyncBoxBody<Bytes, std::io::Error> = if watches {
            StreamBody::new(message.chain(stream::pending())).boxed_unsync()
        } else {
            StreamBody::new(message).boxed_unsync()
        };
        async move { Ok::<_, std::io::Error>(Response::new(body)) }
    });
    Client::new(service, "default")
}

#[tokio::test]
async fn a_watch_lists_follows_and_steps_over_what_does_not_decode() {
    let store = Store::<ConfigMap>::new();
    let (sender, mut changes) = mpsc::unbounded_channel();
    store.subscribe(move |change| {
        let side = |side: Option<&Arc<ConfigMap>>| side.map(|object| object.data.clone().unwrap_or_default());
        let (before, after) = (side(change.before), side(change.after));
        sender.send(format!("{} {before:?} {after:?}", change.key().unwrap())).unwrap();
    });
    let list = vec![object("a", 1, &json!({"v": "1"})), object("malformed", 2, &json!(7))];
    let events = vec![
        event("MODIFIED", object("malformed", 11, &json!([]))),
        event("ADDED", object("b", 12, &json!({}))),
        event("MODIFIED", object("a", 13, &json!({"v": "2"}))),
        event("BOOKMARK", json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"resourceVersion": "14"}})),
        event("DELETED", object("b", 15, &json!({}))),
    ];
    let stop = CancellationToken::new();
    let watching = tokio::spawn({
        let (store, stop) = (store.clone(), stop.clone());
        async move { watch(server(list, events), &[], store, stop).await }
    });
    let mut message = Vec::new();
    for _ in 0..4 {
        let change = tokio::time::timeout(std::time::Duration::from_secs(10), changes.recv()).await;
        message.push(change.expect("a change is due").unwrap());
    }
    assert_eq!(
        message,
        [
            r#"ns/a None Some({"v": "1"})"#,
            r"ns/b None Some({})",
            r#"ns/a Some({"v": "1"}) Some({"v": "2"})"#,
            r"ns/b Some({}) None",
        ]
    );
    assert!(store.is_synced());
    stop.cancel();
    watching.await.unwrap();
}

/// An object with a value of so many levels that nobody reads, and managed fields of so many.
fn deep(name: &str, version: u64, levels: usize, managed: usize) -> Value {
    let value = |levels: usize| (0..levels).fold(json!(1), |inner, _| json!({"f:a": inner}));
    let mut object = object(name, version, &json!({"v": "1"}));
    object["more"] = value(levels);
    object["metadata"]["managedFields"] = json!([{"manager": "m", "fieldsV1": value(managed)}]);
    object
}

fn deleting(mut object: Value, finalizers: &Value) -> Value {
    object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    object["metadata"]["finalizers"] = finalizers.clone();
    object
}

#[tokio::test]
async fn c_153_what_is_too_deep_keeps_nothing_from_others_and_can_be_deleted() {
    let store = Store::<ConfigMap>::new();
    let (sender, mut changes) = mpsc::unbounded_channel();
    let told = sender.clone();
    store.on_unreadable(move |unreadable| {
        told.send(format!("{}: {}", unreadable.object.name.as_deref().unwrap_or_default(), unreadable.why)).unwrap();
    });
    store.subscribe(move |change| {
        let is_there = change.after.map_or("gone", |object| {
            assert_eq!(object.metadata.managed_fields, None);
            if object.metadata.deletion_timestamp.is_some() { "deleting" } else { "there" }
        });
        sender.send(format!("{} {is_there}", change.key().unwrap())).unwrap();
    });
    let list = vec![
        deep("deep", 1, 1_000, 1_006),
        deep("managed", 2, 0, 1_000),
        deep("was-flat", 3, 118, 124),
        deep("other", 4, 0, 0),
    ];
    let finalizers = json!(["x"]);
    let events = vec![
        event("MODIFIED", deep("deep", 11, 200, 206)),
        event("MODIFIED", deep("was-flat", 12, 300, 306)),
        event("ADDED", deep("new", 13, 119, 0)),
        event("MODIFIED", deleting(deep("was-flat", 14, 300, 306), &finalizers)),
        event("MODIFIED", deleting(deep("deep", 15, 200, 206), &finalizers)),
        event("DELETED", deleting(deep("was-flat", 16, 300, 306), &json!([]))),
    ];
    let stop = CancellationToken::new();
    let watching = tokio::spawn({
        let (store, stop) = (store.clone(), stop.clone());
        async move { watch(server(list, events), &[], store, stop).await }
    });
    let too_deep = |name: &str, levels: usize| {
        format!(
            "{name}: its values stand {levels} levels deep in each other, 120 are allowed; make what stands in it less deep, or delete it"
        )
    };
    let expected = [
        too_deep("deep", 1_001),
        "ns/managed there".to_owned(),
        "ns/was-flat there".to_owned(),
        "ns/other there".to_owned(),
        too_deep("deep", 201),
        too_deep("was-flat", 301),
        "ns/new there".to_owned(),
        "ns/was-flat deleting".to_owned(),
        "ns/deep deleting".to_owned(),
        "ns/was-flat gone".to_owned(),
    ];
    for expected in expected {
        let change = tokio::time::timeout(std::time::Duration::from_secs(10), changes.recv()).await;
        assert_eq!(change.expect("a change is due").unwrap(), expected);
    }
    assert!(store.is_synced());
    stop.cancel();
    watching.await.unwrap();
}

#[test]
fn c_153_megabytes_of_levels_take_no_stack() {
    let deep = format!("{}1{}", "[".repeat(700_000), "]".repeat(700_000));
    let fields = format!("\"managedFields\":[{{\"fieldsV1\":{deep}}}]");
    let text = format!("{{\"metadata\":{{\"name\":\"a\",{fields}}},\"data\":{{\"v\":\"1\"}},\"more\":{deep}}}");
    let message: WatchedObject<ConfigMap> = serde_json::from_str(&text).unwrap();
    let error = message.decode().unwrap_err().to_string();
    assert!(error.starts_with("its values stand 700001 levels deep in each other"), "{error}");
    assert_eq!(message.decode_in_part().unwrap().data, Some([("v".to_owned(), "1".to_owned())].into()));
}

#[tokio::test]
async fn c_153_what_was_known_of_another_object_of_the_name_of_one_that_is_too_deep_is_gone() {
    let store = Store::<ConfigMap>::new();
    let known = |object: Value| store.upsert(serde_json::from_value(object).unwrap());
    let mut before = object("a", 5, &json!({}));
    before["metadata"]["uid"] = json!("another");
    known(before);
    known(object("b", 5, &json!({})));
    let message = |object: Value| serde_json::from_str::<WatchedObject<ConfigMap>>(&object.to_string()).unwrap();
    for name in ["a", "b"] {
        let message = message(deep(name, 6, 200, 200));
        let error = store.hear(&message).unwrap_err();
        store.unread(&message, &error);
    }
    let names: Vec<String> = store.keys(None).iter().map(ToString::to_string).collect();
    assert_eq!(names, ["ns/b"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn c_112_a_large_object_is_decoded_and_told_while_others_go_on() {
    let store = Store::<ConfigMap>::new();
    let (sender, mut changes) = mpsc::unbounded_channel();
    let executor = tokio::runtime::Handle::current();
    // Called where the object was decoded: whether somebody else on the executor goes on meanwhile.
    store.subscribe(move |change| {
        let (goes_on, went_on) = std::sync::mpsc::sync_channel(1);
        executor.spawn(async move { goes_on.send(()) });
        let went_on = went_on.recv_timeout(std::time::Duration::from_secs(5)).is_ok();
        sender.send(format!("{} {went_on}", change.key().unwrap())).unwrap();
    });
    let data = |length: usize| json!({"k": "x".repeat(length)});
    let list = vec![object("listed", 1, &data(32 << 10)), object("small", 2, &data(10))];
    let events =
        vec![event("ADDED", object("large", 11, &data(32 << 10))), event("MODIFIED", object("small", 12, &data(11)))];
    let stop = CancellationToken::new();
    let watching = tokio::spawn({
        let (store, stop) = (store.clone(), stop.clone());
        async move { watch(server(list, events), &[], store, stop).await }
    });
    let mut told = Vec::new();
    for _ in 0..4 {
        let change = tokio::time::timeout(std::time::Duration::from_secs(30), changes.recv()).await;
        told.push(change.expect("a change is due").unwrap());
    }
    // A small one may come while the thread is off the executor all the same.
    told.retain(|line| !line.contains("small"));
    assert_eq!(told, ["ns/listed true", "ns/large true"]);
    stop.cancel();
    watching.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn c_112_a_page_of_a_list_is_read_while_others_go_on() {
    let (sender, mut read) = mpsc::unbounded_channel();
    let executor = tokio::runtime::Handle::current();
    let service = tower::service_fn(move |_: Request<Body>| {
        let (executor, sender) = (executor.clone(), sender.clone());
        // Polled where the page is decoded when it is whole.
        let page = stream::poll_fn(move |_| {
            let (goes_on, went_on) = std::sync::mpsc::sync_channel(1);
            executor.spawn(async move { goes_on.send(()) });
            sender.send(went_on.recv_timeout(std::time::Duration::from_secs(5)).is_ok()).unwrap();
            std::task::Poll::Ready(None::<Result<Frame<Bytes>, std::io::Error>>)
        });
        async move { Ok::<_, std::io::Error>(Response::new(StreamBody::new(page).boxed_unsync())) }
    });
    let stop = CancellationToken::new();
    let watching = tokio::spawn({
        let stop = stop.clone();
        async move { watch(Client::new(service, "default"), &[], Store::<ConfigMap>::new(), stop).await }
    });
    let read = tokio::time::timeout(std::time::Duration::from_secs(30), read.recv()).await;
    assert_eq!(read.expect("in time"), Some(true));
    stop.cancel();
    watching.await.unwrap();
}

#[tokio::test]
async fn a_store_of_several_namespaces_is_synced_when_all_are_listed() {
    let (release, held) = tokio::sync::watch::channel(false);
    let service = tower::service_fn(move |request: Request<Body>| {
        let mut held = held.clone();
        async move {
            let path = request.uri().path().to_owned();
            if path.contains("/slow/") {
                held.wait_for(|released| *released).await.map_err(std::io::Error::other)?;
            }
            let watches = request.uri().query().is_some_and(|query| query.contains("watch=true"));
            let list = json!({"metadata": {"resourceVersion": "10"}, "items": []}).to_string();
            let texts = if watches { vec![] } else { vec![list] };
            let message = stream::iter(texts).map(|text| Ok::<_, std::io::Error>(Frame::data(Bytes::from(text))));
            let open = stream::pending().take(usize::from(watches));
            Ok::<_, std::io::Error>(Response::new(StreamBody::new(message.chain(open)).boxed_unsync()))
        }
    });
    let (store, stop) = (Store::<ConfigMap>::new(), CancellationToken::new());
    let watching = tokio::spawn({
        let (client, store, stop) = (Client::new(service, "default"), store.clone(), stop.clone());
        async move { watch(client, &["quick".into(), "slow".into()], store, stop).await }
    });
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert!(!store.is_synced());
    release.send_replace(true);
    let patience = std::time::Duration::from_secs(10);
    tokio::time::timeout(patience, store.synced()).await.expect("both lists are in");
    stop.cancel();
    watching.await.unwrap();
}

#[test]
fn the_text_of_an_object_is_decoded_only_when_asked() {
    let message: WatchedObject<ConfigMap> = serde_json::from_value::<Value>(object("a", 1, &json!(7)))
        .and_then(|object| serde_json::from_str(&object.to_string()))
        .unwrap();
    assert_eq!(message.meta().name.as_deref(), Some("a"));
    message.decode().unwrap_err();
}

#[tokio::test]
async fn c_99_limits_objects_a_page_of_a_list_has_so_many() {
    let (sender, mut queries) = mpsc::unbounded_channel();
    let service = tower::service_fn(move |request: Request<Body>| {
        sender.send(request.uri().query().unwrap_or_default().to_owned()).unwrap();
        async { Ok::<_, std::io::Error>(Response::new(Body::empty())) }
    });
    let (client, stop) = (Client::new(service, "default"), CancellationToken::new());
    let watching = watch(client, &[], Store::<ConfigMap>::new(), stop.clone());
    let first = async {
        let query = queries.recv().await.expect("a list is asked for");
        stop.cancel();
        query
    };
    let ((), query) = tokio::join!(watching, first);
    assert!(query.split('&').any(|part| part == "limit=20"), "{query}");
}
