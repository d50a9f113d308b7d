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
