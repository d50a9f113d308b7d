//! Roots under `reconcilePolicy: OnChange`: what they import starts their jobs.

use orangery_policy::Profile;
use serde_json::{Value, json};

use crate::{
    objects::{both, data, data_import, data_object, deploying, exporting, input, installation, object, with},
    world::{Setup, World, is_deleting, message},
};

const CLUSTER: &str = "landscaper.gardener.cloud/kubernetes-cluster";

/// A root under the policy that imports `v` from this source, exports it under its own name, and never asks for a job itself.
fn root(name: &str, source: &Value) -> Value {
    let mut import = source.clone();
    import["name"] = json!("v");
    let blueprint = both(&exporting("out", &input("/imports/v")), &json!({"imports": [data_import("v")]}));
    let exports = json!({"data": [{"name": "out", "dataRef": name}]});
    let spec = json!({"imports": {"data": [import]}, "exports": exports, "reconcilePolicy": "OnChange"});
    let mut root = with(installation(name, &blueprint), &spec);
    root["metadata"]["annotations"] = json!({});
    root
}

async fn exported(world: &World, name: &str) -> Value {
    world.find("DataObject", name).await.map(|object| object["data"].clone()).unwrap_or_default()
}

/// Applies the import, waits for the first job of a root over it, and for the one that another content starts.
async fn check(import: impl Fn(&str) -> Value, source: &Value) {
    let world = World::new().await;
    world.apply(&import("one")).await;
    world.apply(&root("a", source)).await;
    let first = world.ended("Installation", "a", "Succeeded").await;
    assert_eq!(exported(&world, "a").await, "one");
    world.apply(&import("two")).await;
    world.ended_after("Installation", "a", "Succeeded", &first).await;
    assert_eq!(exported(&world, "a").await, "two");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_05_orc_33_a_data_object_with_another_content_starts_a_job() {
    check(|content| data_object("v", &json!(content)), &json!({"dataRef": "v"})).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_05_orc_33_a_secret_with_another_content_starts_a_job() {
    let secret = |content: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"k": content}});
    check(secret, &json!({"secretRef": {"name": "s", "key": "k"}})).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_05_orc_33_a_config_map_with_another_content_starts_a_job() {
    let map = |content: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"k": content}});
    check(map, &json!({"configMapRef": {"name": "m", "key": "k"}})).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_05_orc_33_a_target_with_another_content_starts_a_job() {
    let world = World::new().await;
    let target = |content: &str| object("Target", "t", &json!({"type": CLUSTER, "config": {"kubeconfig": content}}));
    let import = json!({"name": "t", "type": "target", "targetType": CLUSTER});
    let imports = json!({"targets": [{"name": "t", "target": "t"}]});
    let mut root = with(
        installation("a", &json!({"imports": [import]})),
        &json!({"imports": imports, "reconcilePolicy": "OnChange"}),
    );
    root["metadata"]["annotations"] = json!({});
    world.apply(&target("one")).await;
    world.apply(&root).await;
    let first = world.ended("Installation", "a", "Succeeded").await;
    world.apply(&target("two")).await;
    world.ended_after("Installation", "a", "Succeeded", &first).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn orc_33_c_364_a_job_does_not_begin_with_a_spec_that_has_changed_before_it_could() {
    let world = World::new().await;
    world.apply(&data_object("v", &json!("one"))).await;
    world.apply(&root("a", &json!({"dataRef": "v"}))).await;
    let first = world.ended("Installation", "a", "Succeeded").await;
    world.delay_write("/installations/a/status");
    world.apply(&data_object("v", &json!("two"))).await;
    world.held().await;
    let mut manual = root("a", &json!({"dataRef": "v"}));
    manual["spec"]["reconcilePolicy"] = json!("Manual");
    world.apply(&manual).await;
    world.let_pass();
    // What comes later has come to rest, too.
    world.apply(&data_object("w", &json!("one"))).await;
    world.apply(&root("b", &json!({"dataRef": "w"}))).await;
    world.ended("Installation", "b", "Succeeded").await;
    world.says("Installation", "a", "AwaitingTrigger").await;
    assert_eq!(world.find("Installation", "a").await.unwrap()["status"]["jobID"], first["status"]["jobID"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_196_under_the_restricted_profile_changes_start_jobs_a_minute_after_each_other() {
    let mut world = World::with(Setup { profile: Profile::Restricted, ..Setup::default() }).await;
    world.apply(&data_object("v", &json!("one"))).await;
    world.apply(&root("a", &json!({"dataRef": "v"}))).await;
    let first = world.ended("Installation", "a", "Succeeded").await;
    // The first change after a rest starts one at once.
    world.apply(&data_object("v", &json!("two"))).await;
    let second = world.ended_after("Installation", "a", "Succeeded", &first).await;
    world.apply(&data_object("v", &json!("three"))).await;
    let told = "Warning IntervalStretched: changes start jobs closer to each other than 60 s, which is the least by the default policy, \
                line spec.quotas.minReconcileIntervalSeconds; they start that late; have what is imported change less often, or have \
                an administrator set another one there";
    world.has_events("Installation", "a", &[told]).await;
    let held = world.find("Installation", "a").await.unwrap();
    assert_eq!((&held["status"]["jobID"], exported(&world, "a").await), (&second["status"]["jobID"], json!("two")));
    // Whoever asks gets one all the same.
    world.request("a").await;
    let third = world.ended_after("Installation", "a", "Succeeded", &second).await;
    assert_eq!(exported(&world, "a").await, "three");
    world.apply(&data_object("v", &json!("four"))).await;
    world.restart_after(60);
    world.ended_after("Installation", "a", "Succeeded", &third).await;
    assert_eq!(exported(&world, "a").await, "four");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn orc_33_ins_43_in_a_chain_a_change_goes_from_root_to_root() {
    let world = World::new().await;
    world.apply(&data_object("v", &json!("one"))).await;
    world.apply(&root("a", &json!({"dataRef": "v"}))).await;
    world.ended("Installation", "a", "Succeeded").await;
    world.apply(&root("b", &json!({"dataRef": "a"}))).await;
    let first = world.ended("Installation", "b", "Succeeded").await;
    world.apply(&data_object("v", &json!("two"))).await;
    world.ended_after("Installation", "b", "Succeeded", &first).await;
    assert_eq!(exported(&world, "b").await, "two");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn orc_33_a_job_that_failed_starts_again_when_the_missing_import_is_there() {
    let world = World::new().await;
    world.apply(&root("a", &json!({"dataRef": "v"}))).await;
    let failed = world.ended("Installation", "a", "Failed").await;
    assert!(message(&failed).contains("DataObject v does not exist"), "{failed:#}");
    world.apply(&data_object("v", &json!("one"))).await;
    world.ended_after("Installation", "a", "Succeeded", &failed).await;
    assert_eq!(exported(&world, "a").await, "one");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn orc_33_during_a_deletion_a_change_starts_no_job() {
    let world = World::new().await;
    world.apply(&data_object("v", &json!("one"))).await;
    let root = root("a", &json!({"dataRef": "v"}));
    let mut blueprint = both(&deploying(&[("r", &[])]), &exporting("out", &json!("x")));
    blueprint["imports"] = json!([data_import("v")]);
    let mut deploys = with(
        installation("a", &blueprint),
        &json!({"imports": data(&["v"]), "exports": root["spec"]["exports"], "reconcilePolicy": "OnChange"}),
    );
    deploys["metadata"]["annotations"] = json!({});
    world.apply(&deploys).await;
    world.succeed("r").await;
    world.ended("Installation", "a", "Succeeded").await;
    world.delete("Installation", "a").await;
    let item = world.item("r", is_deleting).await;
    world.apply(&data_object("v", &json!("two"))).await;
    let triggered = world.triggered("r").await;
    assert!(is_deleting(&triggered), "{item:#}");
    world.succeed("r").await;
    world.gone("Installation", "a").await;
}
