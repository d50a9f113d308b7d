//! Objects whose values stand deep in each other: what their authors can do with them ends at these objects.

use std::time::Duration;

use kube::{
    Client,
    api::{DeleteParams, Patch, PatchParams, PostParams},
    core::Request,
};
use orangery_tests::{
    cluster::Cluster,
    objects::Objects,
    tree::{API, blueprint, in_phase, installation},
};
use serde_json::{Value, json};
use tokio::time::timeout;

const NAMESPACE: &str = "deep";

fn requests(plural: &str) -> Request {
    Request::new(format!("/apis/{API}/namespaces/{NAMESPACE}/{plural}"))
}

/// A value of so many levels.
fn deep(levels: usize) -> Value {
    (0..levels).fold(json!(1), |inner, _| json!({"a": inner}))
}

/// More levels than the operator reads.
const TOO_DEEP: usize = 300;

/// What this server takes of too many levels: a real one whatever it is, the embedded one what it can read back, which depends on
/// where it stands.
const DEPTHS: [usize; 6] = [TOO_DEEP, 118, 117, 116, 115, 114];

/// Creates what the server takes; what it answers may be too deep for a client. Answers whether it is too deep for the operator,
/// which nothing is on the embedded server.
async fn create(client: &Client, plural: &str, object: impl Fn(usize) -> Value) -> bool {
    for levels in DEPTHS {
        let body = object(levels).to_string().into_bytes();
        let request = requests(plural).create(&PostParams::default(), body).expect("a request");
        if client.request_text(request).await.is_ok() {
            return levels == TOO_DEEP;
        }
    }
    panic!("the server takes no deep {plural}");
}

/// The same of a change.
async fn merge(client: &Client, plural: &str, name: &str, patch: impl Fn(usize) -> Value) {
    for levels in DEPTHS {
        let patch = Patch::Merge(patch(levels));
        let request = requests(plural).patch(name, &PatchParams::default(), &patch).expect("a request");
        if client.request_text(request).await.is_ok() {
            return;
        }
    }
    panic!("the server takes no deep change of {plural}");
}

async fn delete(client: &Client, plural: &str, name: &str) {
    let request = requests(plural).delete(name, &DeleteParams::background()).expect("a request");
    client.request_text(request).await.expect("it can be deleted");
    let gone = async {
        while client.request_text(requests(plural).get(name, &Default::default()).expect("a request")).await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    timeout(Duration::from_secs(60), gone).await.expect("it goes");
}

async fn cluster_with_namespace() -> Cluster {
    let cluster = crate::cluster().await;
    cluster.apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})).await;
    cluster
}

fn within(mut object: Value) -> Value {
    object["metadata"]["namespace"] = json!(NAMESPACE);
    object
}

async fn others_are_worked_on(cluster: &Objects, name: &str) {
    cluster.apply(&installation(name, &blueprint(json!({})))).await;
    cluster.expect(&in_phase("Installation", name, "Succeeded")).await;
}

#[tokio::test]
async fn c_153_an_object_that_is_too_deep_is_told_and_keeps_nothing_from_others() {
    let cluster = cluster_with_namespace().await;
    let is_too_deep = create(cluster.client(), "installations", |levels| {
        let mut object = installation("a", &blueprint(json!({})));
        object["spec"]["importDataMappings"] = json!({"x": deep(levels)});
        object
    })
    .await;
    let both_are = create(
        cluster.client(),
        "dataobjects",
        |levels| json!({"apiVersion": API, "kind": "DataObject", "metadata": {"name": "b"}, "data": deep(levels + 1)}),
    )
    .await;
    assert_eq!(is_too_deep, both_are);
    let told = is_too_deep.then_some([("Installation", "a"), ("DataObject", "b")]);
    for (kind, name) in told.into_iter().flatten() {
        let told = json!({
            "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"namespace": NAMESPACE},
            "reason": "Unreadable", "regarding": {"kind": kind, "name": name},
        });
        let told = cluster.expect(&told).await;
        let note = told["note"].as_str().unwrap_or_default();
        assert!(note.starts_with("it is left as it was read last: its values stand "), "{note}");
        assert!(
            note.ends_with(
                " levels deep in each other, 120 are allowed; make what stands in it less deep, or delete it"
            ),
            "{note}"
        );
    }
    others_are_worked_on(&cluster, "other").await;
    delete(cluster.client(), "installations", "a").await;
    delete(cluster.client(), "dataobjects", "b").await;
}

#[tokio::test]
async fn c_153_an_object_that_has_become_too_deep_is_deleted_as_any_other() {
    let cluster = cluster_with_namespace().await;
    cluster.apply(&within(installation("a", &blueprint(json!({}))))).await;
    cluster.expect(&within(in_phase("Installation", "a", "Succeeded"))).await;
    merge(
        cluster.client(),
        "installations",
        "a",
        |levels| json!({"spec": {"importDataMappings": {"x": deep(levels)}}}),
    )
    .await;
    others_are_worked_on(&cluster, "other").await;
    delete(cluster.client(), "installations", "a").await;
    others_are_worked_on(&cluster, "another").await;
}
