//! Candidates of Plugins: called beside the version in use, and what is told of them to whom (C-344 to C-346).

use std::{fs, path::Path};

use orangery_core::digest::sha256;
use orangery_tests::{
    cluster::Cluster,
    objects::NAMESPACE,
    tree::{blueprint, executions, in_phase, installation, mocks},
};
use serde_json::{Value, json};

use super::{TYPE, component, config_map, in_use, install, is_named, item, plugin, renewed};
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

/// A Plugin that serves the type otherwise than as a deployer, with a candidate in the ConfigMap `next`.
fn served_as(kind: &str) -> Value {
    let mut served = plugin("mine", tried(false));
    if let Some(spec) = served["spec"].as_object_mut() {
        spec.remove("deployer");
        spec.insert(kind.to_owned(), json!({"types": [TYPE]}));
    }
    served
}

/// Deploys an Installation with a mock item, of this template type and with these fields of the item.
async fn deploy_root(cluster: &Cluster, name: &str, template_type: &str, fields: Value) {
    let mut item = mocks(name, &[], "Succeeded", "x");
    if let (Some(item), Value::Object(fields)) = (item.as_object_mut(), fields) {
        item.extend(fields);
    }
    let mut executions = executions(&[item]);
    executions[0]["type"] = json!(template_type);
    cluster.apply(&installation(name, &blueprint(json!({"deployExecutions": executions})))).await;
    cluster.expect(&in_phase("Installation", name, "Succeeded")).await;
}

fn guest(name: &str) -> Vec<u8> {
    fs::read(Path::new(env!("OUT_DIR")).join(format!("{name}.wasm"))).expect("the guest was built")
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
    event_note_of(cluster, "DeployItem", name).await
}

/// The same of an object of another kind.
async fn event_note_of(cluster: &Cluster, kind: &str, name: &str) -> String {
    let event = json!({"apiVersion": "events.k8s.io/v1", "kind": "Event"});
    let regarding = json!({"kind": kind, "name": name, "namespace": NAMESPACE});
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

#[tokio::test]
async fn c_356_a_candidate_of_an_engine_renders_beside_the_one_in_use_and_nothing_of_an_output_is_told() {
    let cluster = crate::cluster().await;
    let renders = guest("renders");
    cluster.apply(&config_map("mine", &renders)).await;
    cluster.apply(&config_map("next", &renewed(renders.clone()))).await;
    cluster.apply(&served_as("template")).await;
    in_use(&cluster, "mine", &renders).await;
    try_out(&cluster, &renewed(renders)).await;
    let deploy_root = async |name: &str| {
        let executions = json!([{"name": "d", "type": TYPE, "template": "nothing answer"}]);
        cluster.apply(&installation(name, &blueprint(json!({"deployExecutions": executions})))).await;
        cluster.expect(&in_phase("Installation", name, "Succeeded")).await;
    };
    deploy_root("same").await;
    let figures = candidate(&cluster, "has no figures", |told| told["same"].as_u64() > Some(0)).await;
    assert_eq!((&figures["different"], &figures["notCompared"]), (&json!(0), &json!(0)));

    // Another engine takes other templates.
    let other =
        fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("contracts/0.1.0/templater.wasm")).expect("it is kept");
    try_out(&cluster, &other).await;
    deploy_root("other").await;
    let note = event_note_of(&cluster, "Installation", "other").await;
    let begin = " answers otherwise, and is not used: the version in use renders, the candidate fails: ";
    assert!(note.contains(begin), "{note}");
}

#[tokio::test]
async fn c_356_a_candidate_of_a_gate_is_asked_beside_the_one_in_use_and_decides_nothing() {
    let cluster = crate::cluster().await;
    let judges = guest("judges");
    cluster.apply(&config_map("mine", &judges)).await;
    cluster.apply(&config_map("next", &renewed(judges.clone()))).await;
    cluster.apply(&served_as("gate")).await;
    in_use(&cluster, "mine", &judges).await;
    try_out(&cluster, &renewed(judges)).await;
    let gate = json!({"when": {"component": {"type": TYPE, "config": "met"}}});
    deploy_root(&cluster, "same", "Jinja", gate.clone()).await;
    let figures = candidate(&cluster, "has no figures", |told| told["same"].as_u64() > Some(0)).await;
    assert_eq!((&figures["different"], &figures["notCompared"]), (&json!(0), &json!(0)));

    let other = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("contracts/0.1.0/gate.wasm")).expect("it is kept");
    try_out(&cluster, &other).await;
    deploy_root(&cluster, "other", "Jinja", gate).await;
    let note = event_note_of(&cluster, "Execution", "other").await;
    let difference =
        "when of other: /answer/reason: the version in use answers \"AsConfigured\", the candidate \"When\"";
    assert!(note.contains(" answers otherwise, and is not used: ") && note.contains(difference), "{note}");
}
