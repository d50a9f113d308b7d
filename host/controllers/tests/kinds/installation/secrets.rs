//! What is read of a Secret is shown by no status and no event, and what holds it is marked (C-41).

use std::sync::Arc;

use k8s_openapi::api::{core::v1::Secret, events::v1::Event};
use kube::{Api, api::DeleteParams};
use orangery_controllers::read_secret_values;
use serde_json::{Value, json};

use crate::{
    objects::{ENGINE, both, data, data_import, exporting, input, installation, object, with},
    world::World,
};

const VALUE: &str = "hunter2-hunter2+hunter2";

/// An Installation that imports the value as `v`, with this blueprint beside.
fn importing(name: &str, blueprint: &Value) -> Value {
    let blueprint = both(blueprint, &json!({"imports": [data_import("v")]}));
    let from = json!([{"name": "v", "secretRef": {"name": "s", "key": "k"}}]);
    with(installation(name, &blueprint), &json!({"imports": {"data": from}}))
}

async fn world() -> World {
    let world = World::new().await;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "default"},
        "stringData": {"k": VALUE}});
    world.apply(&secret).await;
    world
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_41_a_template_that_fails_with_a_value_of_a_secret_shows_it_to_nobody() {
    let world = world().await;
    let template = json!({"$fail": input("/imports/v")}).to_string();
    let fails = json!({"deployExecutions": [{"name": "d", "type": ENGINE, "template": template}]});
    world.apply(&importing("a", &fails)).await;
    let failed = world.ended("Installation", "a", "Failed").await;
    let status = failed["status"].to_string();
    assert!(status.contains("[masked]") && !status.contains("hunter2"), "{status}");
    let events: Api<Event> = Api::default_namespaced(world.client.clone());
    let notes = async || {
        let events = events.list(&Default::default()).await.unwrap().items;
        events
            .into_iter()
            .filter_map(|event| event.note)
            .find(|note| note.contains("[masked]") || note.contains("hunter2"))
    };
    let note = world.wait("no event tells of the failure", notes).await;
    assert!(!note.contains("hunter2"), "{note}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_41_a_credential_that_a_template_has_had_issued_is_shown_to_nobody() {
    let world = World::new().await;
    world.apply(&json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot", "namespace": "default"}})).await;
    let kind = "landscaper.gardener.cloud/kubernetes-cluster";
    let cluster = json!({"type": kind, "config": {"kubeconfig": world.kubeconfig()}});
    world.apply(&object("Target", "cluster", &cluster)).await;
    let target = json!({"metadata": {"name": "cluster"}});
    let arguments = json!({"name": "robot", "namespace": "default", "expirationSeconds": 3600, "target": target});
    let template =
        json!({"$credential": {"kind": "serviceAccount", "arguments": arguments}, "$fail": "the token is TOKEN."});
    let fails = json!({"imports": [{"name": "t", "type": "target", "targetType": kind}],
        "deployExecutions": [{"name": "d", "type": ENGINE, "template": template.to_string()}]});
    let imports = json!({"imports": {"targets": [{"name": "t", "target": "cluster"}]}});
    world.apply(&with(installation("a", &fails), &imports)).await;
    let failed = world.ended("Installation", "a", "Failed").await;
    let message = failed["status"]["lastError"]["message"].as_str().unwrap();
    assert!(message.ends_with("the token is [masked]."), "{message}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_41_copies_and_exports_of_a_value_of_a_secret_are_marked() {
    let world = world().await;
    let exports = both(&exporting("out", &input("/imports/v")), &json!({"imports": [data_import("v")]}));
    world.apply(&with(importing("a", &exports), &json!({"exports": data(&["out"])}))).await;
    world.ended("Installation", "a", "Succeeded").await;
    let objects = world.list("DataObject").await;
    let holding = objects.iter().filter(|object| object["data"] == VALUE);
    let marks: Vec<&Value> = holding.map(|object| &object["metadata"]["labels"]["orangery.dev/secret-data"]).collect();
    assert_eq!(marks, ["whole", "whole"]);
}

/// Whether the controllers that run mask the value.
fn is_masked(world: &World) -> bool {
    let host = world.host.as_ref().expect("controllers run");
    host.secrets.masker(&"default".into()).mask(&format!("it is {VALUE}.")) == "it is [masked]."
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_41_controllers_that_have_just_begun_mask_what_others_have_copied() {
    let mut world = world().await;
    world.apply(&importing("a", &json!({}))).await;
    world.ended("Installation", "a", "Succeeded").await;
    assert!(is_masked(&world));
    // The Secret is gone, so nobody can have read it again.
    let secrets: Api<Secret> = Api::default_namespaced(world.client.clone());
    secrets.delete("s", &DeleteParams::default()).await.unwrap();
    world.restart();
    let known = async || is_masked(&world).then_some(());
    world.wait("the copy is not known to be secret", known).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_41_a_process_that_renders_nothing_reads_what_is_secret() {
    let mut world = world().await;
    let mut root = importing("a", &json!({}));
    root["metadata"]["annotations"] = json!({});
    world.apply(&root).await;
    world.restart();
    assert!(!is_masked(&world), "no job has read the Secret");
    let host = Arc::clone(world.host.as_ref().expect("controllers run"));
    read_secret_values(&host, &"elsewhere".into()).await;
    assert!(!is_masked(&world), "another namespace was read");
    read_secret_values(&host, &"default".into()).await;
    assert!(is_masked(&world));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_293_limits_calls_so_many_read_what_others_name_at_once() {
    let world = world().await;
    world.hold_reads("/secrets/s");
    let names: Vec<String> = (0..20).map(|number| format!("i{number}")).collect();
    for name in &names {
        world.apply(&importing(name, &json!({}))).await;
    }
    // All are under way, as who waits for a turn has lent its slot; of sixteen turns a namespace has seven (C-43).
    let all = async || (world.running()[0] == 20 && world.reads_held() == 7).then_some(());
    world.wait("not all are under way, seven of them reading", all).await;
    world.let_reads_pass(1);
    world.wait("the next one does not read", async || (world.reads_held() == 7).then_some(())).await;
    world.let_reads_pass(1_000);
    for name in &names {
        world.ended("Installation", name, "Succeeded").await;
    }
}
