//! Candidates of Plugins: called beside the version in use, and what is told of them to whom (C-344 to C-346).

use std::{fs, path::Path};

use orangery_core::digest::sha256;
use orangery_tests::{cluster::Cluster, objects::NAMESPACE, tree::in_phase};
use serde_json::{Value, json};

use super::{component, config_map, in_use, install, is_named, item, plugin, renewed};
use crate::cases::policies::{policy, put};

/// A candidate in the ConfigMap `next`.
fn tried(promoted: bool) -> Value {
    json!({"candidate": {"source": {"configMap": {"name": "next"}}, "promoted": promoted}})
}

/// Waits until this holds of the candidate of a Plugin.
async fn candidate(cluster: &Cluster, why: &str, holds: impl Fn(&Value) -> bool) -> Value {
    let has = |plugin: &Value| is_named(plugin, "mine") && holds(&plugin["status"]["candidate"]);
    cluster.expect_that(&plugin("mine", json!({})), why, has).await["status"]["candidate"].clone()
}

/// Has a component tried, and waits until it is the one that is called.
async fn try_out(cluster: &Cluster, content: &[u8]) {
    cluster.apply(&config_map("next", content)).await;
    let is_called = |told: &Value| told["digest"] == sha256(content) && told["message"] == "";
    candidate(cluster, "is not called", is_called).await;
}

/// Deploys an item, which takes its usual way.
async fn deploy(cluster: &Cluster, name: &str) {
    cluster.apply(&item(name, "Succeeded")).await;
    let deployed = cluster.expect(&in_phase("DeployItem", name, "Succeeded")).await;
    assert_eq!(deployed["status"].get("lastError"), None, "{deployed}");
}

/// What the event of an item says of a candidate with another answer.
async fn event_note(cluster: &Cluster, name: &str) -> String {
    let event = json!({"apiVersion": "events.k8s.io/v1", "kind": "Event"});
    let regarding = json!({"kind": "DeployItem", "name": name, "namespace": NAMESPACE});
    let is_of = |event: &Value| {
        let parts = ["kind", "name", "namespace"].iter();
        event["reason"] == "CandidateDiffers" && parts.clone().all(|part| event["regarding"][*part] == regarding[*part])
    };
    let event = cluster.expect_that(&event, "no event tells the item what differs", is_of).await;
    assert_eq!((&event["type"], &event["metadata"]["namespace"]), (&json!("Normal"), &json!(NAMESPACE)));
    event["note"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn c_344_c_346_a_candidate_is_called_beside_the_version_in_use_and_promoted_by_one_field() {
    let cluster = crate::cluster().await;
    let (mock, next) = (component("mock"), renewed(component("mock")));
    install(&cluster, "mine", &mock, json!({})).await;
    cluster.apply(&plugin("mine", tried(false))).await;
    let is_told = |told: &Value| told.is_object() && told["message"] != "";
    let missing = candidate(&cluster, "tells of no candidate that is nowhere", is_told).await;
    assert!(missing["message"].as_str().unwrap_or_default().contains("the ConfigMap next in namespace"), "{missing}");

    try_out(&cluster, &next).await;
    deploy(&cluster, "a").await;
    let figures = candidate(&cluster, "has no figures", |told| told["same"].as_u64() > Some(0)).await;
    assert_eq!((&figures["different"], &figures["notCompared"]), (&json!(0), &json!(0)));

    // Another deployer takes no such configuration. The Plugin tells how often, and the item what.
    let other = component("manifest");
    try_out(&cluster, &other).await;
    deploy(&cluster, "item-of-a-team").await;
    let figures = candidate(&cluster, "tells no difference", |told| told["different"].as_u64() > Some(0)).await;
    let numbers = json!({
        "digest": sha256(&other), "message": "", "same": 0, "different": figures["different"], "notCompared": 0,
    });
    assert_eq!(figures, numbers, "nothing of an item stands there");
    let note = event_note(&cluster, "item-of-a-team").await;
    let digest: String = sha256(&other).chars().take(19).collect();
    let begin = format!(
        "the candidate {digest} of the Plugin mine answers otherwise, and is not used: the version in use answers a proposal, \
                         the candidate a fault: "
    );
    assert!(note.starts_with(&begin) && note.contains("apiVersion"), "{note}");

    cluster.apply(&config_map("next", &next)).await;
    cluster.apply(&plugin("mine", tried(true))).await;
    let promoted = in_use(&cluster, "mine", &next).await;
    assert_eq!(promoted["status"]["candidate"], Value::Null);
    cluster.apply(&plugin("mine", tried(false))).await;
    in_use(&cluster, "mine", &mock).await;
}

/// The namespace has one place for calls: whoever needed one more would wait for the candidate.
#[tokio::test]
async fn c_345_a_candidate_that_traps_swells_hangs_or_answers_nonsense_touches_no_job_and_says_why() {
    let cluster = crate::cluster().await;
    put(&cluster, &policy("one-call", json!({"profile": "compatible", "quotas": {"calls": 1}}))).await;
    let guest =
        |name: &str| fs::read(Path::new(env!("OUT_DIR")).join(format!("{name}.wasm"))).expect("the guest was built");
    install(&cluster, "mine", &component("mock"), tried(false)).await;
    for (name, why) in [
        ("traps", "the component crashed: wasm trap"),
        ("allocates", "`limits.memoryMiB`"),
        ("loops", "`limits.cpuMilliseconds`"),
        ("answers_nonsense", "the component's answer makes no sense: "),
    ] {
        let item = name.replace('_', "-");
        try_out(&cluster, &guest(name)).await;
        deploy(&cluster, &item).await;
        let note = event_note(&cluster, &item).await;
        let begin =
            " answers otherwise, and is not used: the version in use answers a proposal, the candidate a fault: ";
        assert!(note.contains(begin) && note.contains(why), "{name}: {note}");
    }

    // One that ends never, as far as this test is concerned. Jobs go on beside it, and none of them gets a call of its own compared.
    let hours = json!({"limits": {"wallMilliseconds": 36_000_000}, "candidate": tried(false)["candidate"]});
    cluster.apply(&plugin("mine", hours)).await;
    try_out(&cluster, &guest("waits")).await;
    for name in ["first", "second", "third"] {
        deploy(&cluster, name).await;
    }
    let figures = candidate(&cluster, "is gone", |told| told["digest"] == sha256(&guest("waits"))).await;
    assert_eq!(
        [&figures["same"], &figures["different"], &figures["notCompared"]],
        [0, 0, 0].map(|none| json!(none)).each_ref()
    );

    // With a limit it ends, and is called again.
    let seconds = json!({"limits": {"wallMilliseconds": 3000}, "candidate": tried(false)["candidate"]});
    cluster.apply(&plugin("mine", seconds)).await;
    let is_loaded = |plugin: &Value| {
        is_named(plugin, "mine") && plugin["status"]["loadedGeneration"] == plugin["metadata"]["generation"]
    };
    cluster.expect_that(&plugin("mine", json!({})), "has no shorter limit", is_loaded).await;
    deploy(&cluster, "last").await;
    let note = event_note(&cluster, "last").await;
    assert!(note.contains("the call was stopped: it needs more than 3000 ms; "), "{note}");
}
