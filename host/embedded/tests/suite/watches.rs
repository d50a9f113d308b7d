//! Watching: from a version on, with selectors, bookmarks and initial events; and what is too old.

use axum::{
    body::{Body, BodyDataStream},
    http::Request,
};
use futures::{Stream, StreamExt, TryStreamExt};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, WatchEvent, WatchParams},
    runtime::{WatchStreamExt, watcher},
};
use orangery_embedded::Server;
use serde_json::json;
use tower::ServiceExt as _;

use crate::scaffold::*;

type Event = WatchEvent<DynamicObject>;

fn display(event: &Event) -> String {
    match event {
        WatchEvent::Added(object) => format!("added {}", object.name_any()),
        WatchEvent::Modified(object) => format!("modified {}", object.name_any()),
        WatchEvent::Deleted(object) => format!("deleted {}", object.name_any()),
        WatchEvent::Bookmark(_) => "bookmark".to_owned(),
        WatchEvent::Error(status) => format!("error {} {}", status.code, status.reason),
    }
}

async fn next(events: &mut (impl Stream<Item = kube::Result<Event>> + Unpin)) -> Option<String> {
    let next = tokio::time::timeout(PATIENCE, events.next()).await.expect("no event came");
    next.map(|event| display(&event.unwrap()))
}

async fn version(api: &Api<DynamicObject>) -> String {
    api.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap()
}

#[tokio::test]
async fn changes_are_told_in_order_from_a_version_on() {
    let (server, client) = serve().await;
    let maps = config_maps(&client, "default");
    becomes(&maps, "kube-root-ca.crt", |_| true).await;
    let from = version(&maps).await;
    create(&maps, config_map("one", json!({}))).await.unwrap();
    maps.patch("one", &PatchParams::default(), &Patch::Merge(json!({"data": {"a": "1"}}))).await.unwrap();
    create(&config_maps(&client, "kube-public"), config_map("elsewhere", json!({}))).await.unwrap();
    maps.delete("one", &DeleteParams::default()).await.unwrap();
    let mut events = maps.watch(&WatchParams::default(), &from).await.unwrap().boxed();
    let mut message = Vec::new();
    for _ in 0..3 {
        message.push(next(&mut events).await.unwrap());
    }
    assert_eq!(message, ["added one", "modified one", "deleted one"]);
    create(&maps, config_map("two", json!({}))).await.unwrap();
    assert_eq!(next(&mut events).await.as_deref(), Some("added two"));
    server.stop().await;
    assert_eq!(events.next().await.map(|event| event.is_ok()), None, "a stopping server ends its watches");
}

#[tokio::test]
async fn an_object_that_stops_to_match_is_deleted_for_the_watch() {
    let (server, client) = serve().await;
    let maps = config_maps(&client, "default");
    let from = version(&maps).await;
    let label = |value: &str| Patch::Merge(json!({"metadata": {"labels": {"l": value}}}));
    create(&maps, config_map("one", json!({}))).await.unwrap();
    for value in ["x", "y", "x"] {
        maps.patch("one", &PatchParams::default(), &label(value)).await.unwrap();
    }
    let mut events = maps.watch(&WatchParams::default().labels("l=x"), &from).await.unwrap().boxed();
    let message =
        [next(&mut events).await.unwrap(), next(&mut events).await.unwrap(), next(&mut events).await.unwrap()];
    assert_eq!(message, ["added one", "deleted one", "added one"]);
    server.stop().await;
}

#[tokio::test]
async fn a_watch_ends_with_a_bookmark_when_its_time_is_over() {
    let (server, client) = serve().await;
    let maps = config_maps(&client, "default");
    becomes(&maps, "kube-root-ca.crt", |_| true).await;
    let mut events = maps.watch(&WatchParams::default().timeout(1), &version(&maps).await).await.unwrap().boxed();
    assert_eq!(next(&mut events).await.as_deref(), Some("bookmark"));
    assert_eq!(next(&mut events).await, None);
    server.stop().await;
}

#[tokio::test]
async fn initial_events_end_with_a_bookmark_that_says_so() {
    let (server, client) = serve().await;
    let maps = config_maps(&client, "default");
    becomes(&maps, "kube-root-ca.crt", |_| true).await;
    let mut events = maps.watch(&WatchParams::default().initial_events(), "0").await.unwrap().boxed();
    assert_eq!(next(&mut events).await.as_deref(), Some("added kube-root-ca.crt"));
    let Some(Ok(WatchEvent::Bookmark(bookmark))) = events.next().await else { panic!("a bookmark was expected") };
    assert_eq!(bookmark.metadata.annotations["k8s.io/initial-events-end"], "true");
    server.stop().await;
}

#[tokio::test]
async fn a_version_that_is_forgotten_is_refused_as_expired() {
    let (server, client) = serve().await;
    let maps = config_maps(&client, "default");
    let from = version(&maps).await;
    // The history of a kind holds some megabytes.
    let large = "x".repeat(100_000);
    for n in 0..150 {
        create(&maps, config_map(&format!("large-{n}"), json!({"a": large}))).await.unwrap();
    }
    let (code, message) = match maps.watch(&WatchParams::default(), &from).await {
        Ok(events) => match events.boxed().next().await {
            Some(Ok(WatchEvent::Error(status))) => (status.code, status.message),
            other => panic!("a refusal was expected: {other:?}"),
        },
        refused => refusal(refused.map(|_| ())),
    };
    assert_eq!(code, 410);
    assert!(message.starts_with(&format!("too old resource version: {from} (")), "{message}");
    let ahead = maps.watch(&WatchParams::default(), "999999").await.map(|_| ());
    assert_eq!(refusal(ahead).0, 410);
    server.stop().await;
}

#[tokio::test]
async fn the_watchers_of_kube_follow_in_both_ways() {
    for config in [watcher::Config::default(), watcher::Config::default().streaming_lists()] {
        let (server, client) = serve_things().await;
        let api = things(&client, "ns");
        create(&api, thing("old", json!({"size": 1}))).await.unwrap();
        let mut objects = watcher(api.clone(), config).applied_objects().boxed();
        let first = tokio::time::timeout(PATIENCE, objects.try_next()).await.unwrap().unwrap().unwrap();
        create(&api, thing("new", json!({"size": 1}))).await.unwrap();
        let second = tokio::time::timeout(PATIENCE, objects.try_next()).await.unwrap().unwrap().unwrap();
        assert_eq!((first.name_any(), second.name_any()), ("old".to_owned(), "new".to_owned()));
        server.stop().await;
    }
}

#[tokio::test]
async fn metadata_alone_is_listed_and_watched() {
    let (server, client) = serve().await;
    let maps = config_maps(&client, "default");
    create(&maps, config_map("one", json!({"a": "1"}))).await.unwrap();
    let listed = maps.list_metadata(&ListParams::default().fields("metadata.name=one")).await.unwrap();
    assert_eq!(listed.items[0].name_any(), "one");
    let mut events = maps.watch_metadata(&WatchParams::default(), "0").await.unwrap().boxed();
    let event = tokio::time::timeout(PATIENCE, events.try_next()).await.unwrap().unwrap().unwrap();
    assert!(
        matches!(event, WatchEvent::Added(object) if object.types.as_ref().unwrap().kind == "PartialObjectMetadata")
    );
    server.stop().await;
}

/// A watch of the Secrets of a namespace.
async fn watched(server: &Server, namespace: &str, more: &str) -> BodyDataStream {
    let path = format!("/api/v1/namespaces/{namespace}/secrets?watch=true{more}");
    let answer = server.router().oneshot(Request::get(path).body(Body::empty()).unwrap()).await.unwrap();
    answer.into_body().into_data_stream()
}

/// How many events each of the first pieces has, of so many events in all.
async fn pieces(mut watch: BodyDataStream, events: usize) -> Vec<usize> {
    let mut pieces = Vec::new();
    while pieces.iter().sum::<usize>() < events {
        let piece = tokio::time::timeout(PATIENCE, watch.next()).await.unwrap().unwrap().unwrap();
        pieces.push(piece.iter().filter(|byte| **byte == b'\n').count());
    }
    pieces
}

#[tokio::test]
async fn c_300_limits_embedded_what_a_watch_tells_is_made_in_pieces() {
    let (server, client) = serve().await;
    let secrets = |namespace: &str| dynamic(&client, "", "v1", "Secret", Some(namespace));
    for (of, count, length) in [("many", 130, 1), ("long", 3, 700_000)] {
        namespace(&client, of).await;
        for number in 0..count {
            let metadata = json!({"name": format!("s-{number}")});
            let data = json!({"k": "x".repeat(length)});
            let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": data});
            create(&secrets(of), secret).await.unwrap();
        }
    }
    assert_eq!(pieces(watched(&server, "many", "").await, 130).await, [64, 64, 2]);
    assert_eq!(pieces(watched(&server, "long", "").await, 3).await, [2, 1]);
    // What changes is told in the same way.
    let later = watched(&server, "long", "&sendInitialEvents=false").await;
    for number in 0..3 {
        let patch = Patch::Merge(json!({"metadata": {"labels": {"l": "v"}}}));
        secrets("long").patch(&format!("s-{number}"), &PatchParams::default(), &patch).await.unwrap();
    }
    assert_eq!(pieces(later, 3).await, [2, 1]);
    server.stop().await;
}
