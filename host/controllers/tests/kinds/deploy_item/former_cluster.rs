//! A Target that names another cluster than before: nothing is deleted there, and what is left in the former one is deleted
//! with the credentials of that time (C-35).

mod kept;
mod released;
mod renewed;

use k8s_openapi::{
    ByteString,
    api::core::v1::{ConfigMap, Namespace, Secret},
};
use kube::{
    Api, Client, Config,
    api::{DeleteParams, Patch, PatchParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
    runtime::wait::await_condition,
};
use orangery_api::{job::Job as _, target::Target};
use orangery_embedded::{Options, Server, Storage, start};
use orangery_reconcile::Key;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{
    hostile::event_says,
    items::{Items, gated_on, proposal},
};
use crate::{
    objects::{installation, with},
    world::DEADLINE,
};

/// Another cluster, and how it is asked.
pub(super) async fn second() -> (Server, Client) {
    let clock = std::sync::Arc::new(|| jiff::Timestamp::UNIX_EPOCH);
    let options = Options { storage: Storage::Memory, address: "127.0.0.1:0".parse().unwrap(), clock };
    let server = start(options).await.unwrap();
    let kubeconfig = Kubeconfig::from_yaml(&server.kubeconfig()).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    (server, Client::try_from(config).unwrap())
}

/// Has the Target of the items name another cluster, and waits until the controller knows.
pub(super) async fn retarget(world: &Items, kubeconfig: &str) {
    patch_target(world, "cluster", json!({"spec": {"config": {"kubeconfig": kubeconfig}}})).await;
}

/// Changes a Target, and waits until the controller knows.
pub(super) async fn patch_target(world: &Items, name: &str, patch: Value) {
    let targets: Api<Target> = Api::default_namespaced(world.client.clone());
    let patched = targets.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    let host = world.host.as_ref().unwrap();
    let known = host.stores.targets.clone();
    drop(known.upsert(patched));
}

/// Deletes a Target, and waits until the controllers know.
async fn lose(world: &Items, name: &str) {
    let targets: Api<Target> = Api::default_namespaced(world.client.clone());
    targets.delete(name, &DeleteParams::default()).await.unwrap();
    let known = world.host.as_ref().unwrap().stores.targets.clone();
    let is_gone = async || known.get(&Key::new("default", name)).is_none().then_some(());
    assert!(world.in_time(is_gone).await.is_some(), "the controllers know Target {name}");
}

pub(super) async fn has(client: &Client, name: &str) -> bool {
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    maps.get_opt(name).await.unwrap().is_some()
}

/// How many Secrets have credentials that were kept.
async fn kept(world: &Items) -> usize {
    world.kept().await.len()
}

/// What was kept is this from now on.
async fn swap_kept(world: &Items, kubeconfig: &str) {
    let secrets: Api<Secret> = Api::default_namespaced(world.client.clone());
    for secret in world.kept().await {
        let other = Patch::Merge(json!({"data": {"kubeconfig": ByteString(kubeconfig.as_bytes().to_vec())}}));
        secrets.patch(&secret.metadata.name.unwrap(), &PatchParams::default(), &other).await.unwrap();
    }
}

/// A config map of somebody else.
async fn made_by_another(client: &Client, name: &str) {
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let object = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
    maps.create(&PostParams::default(), &object).await.unwrap();
}

/// A proposal of the config maps `x` and `y`.
pub(super) fn two() -> Value {
    let mut both = proposal("x", json!({}));
    let more = proposal("y", json!({}))["stages"][0]["writes"][0].clone();
    both["stages"][0]["writes"].as_array_mut().unwrap().push(more);
    both
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_35_what_is_left_in_a_former_cluster_is_deleted_there_and_nothing_in_the_new_one() {
    let world = Items::new().await;
    world.create("item", &[two()], json!({})).await;
    world.job("item", "one").await;
    assert_eq!(kept(&world).await, 1);
    let (server, second) = second().await;
    made_by_another(&second, "y").await;
    retarget(&world, &server.kubeconfig()).await;
    world.patch("item", json!({"spec": {"config": {"proposals": [proposal("x", json!({}))]}}})).await;
    let status = world.job("item", "two").await;
    assert_eq!(status["phase"], "Succeeded", "{status:#}");
    assert!(has(&second, "x").await && has(&second, "y").await, "the unrelated y stays");
    assert!(!has(&world.client, "x").await && !has(&world.client, "y").await, "what was left is deleted");
    assert_eq!(status["providerStatus"].pointer("/orangery/former"), None);
    assert_eq!(kept(&world).await, 1, "those of the new cluster");
    world.delete("item").await;
    world.trigger("item", "three").await;
    world.gone("item").await;
    assert_eq!((has(&second, "x").await, has(&second, "y").await, kept(&world).await), (false, true, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_272_what_is_kept_in_a_former_cluster_is_told_and_holds_nothing_up() {
    let world = Items::new().await;
    let mut both = two();
    both["stages"][0]["writes"][1]["owned"] = json!("kept");
    world.create("item", &[both], json!({})).await;
    world.job("item", "one").await;
    let (server, second) = second().await;
    retarget(&world, &server.kubeconfig()).await;
    world.patch("item", json!({"spec": {"config": {"proposals": [proposal("x", json!({}))]}}})).await;
    let status = world.job("item", "two").await;
    assert_eq!((&status["phase"], status["providerStatus"].pointer("/orangery/former")), (&json!("Succeeded"), None));
    event_says(&world, "ObjectsStay", "ConfigMap default/y stay in the cluster whose kube-system has the uid").await;
    assert_eq!((has(&world.client, "x").await, has(&world.client, "y").await, kept(&world).await), (false, true, 1));
    world.delete("item").await;
    world.trigger("item", "three").await;
    world.gone("item").await;
    assert_eq!((has(&second, "x").await, has(&world.client, "y").await, kept(&world).await), (false, true, 0));
}

/// What Helm keeps of a release is for nobody once that is gone; what else is kept stays.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_207_revisions_of_a_release_in_a_former_cluster_go_after_its_objects() {
    let world = Items::new().await;
    let mut release = two();
    release["stages"][0]["writes"][1]["owned"] = json!("kept");
    let name = "sh.helm.release.v1.r.v1";
    let revision = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "default"}});
    let write = json!({"object": revision, "how": "replace", "owned": "kept"});
    release["stages"][0]["writes"].as_array_mut().unwrap().push(write);
    world.create("item", &[release], json!({})).await;
    world.job("item", "one").await;
    let has_revision = async || {
        let secrets: Api<Secret> = Api::default_namespaced(world.client.clone());
        secrets.get_opt(name).await.unwrap().is_some()
    };
    world.patch_config_map("x", json!({"metadata": {"finalizers": ["example.org/hold"]}})).await;
    let (server, _second) = second().await;
    retarget(&world, &server.kubeconfig()).await;
    world.patch("item", json!({"spec": {"config": {"proposals": [proposal("x", json!({}))]}}})).await;
    assert_eq!(world.job("item", "two").await["phase"], "Succeeded");
    assert!(has_revision().await, "an object of the release is still there");
    world.patch_config_map("x", json!({"metadata": {"finalizers": null}})).await;
    let status = world.job("item", "three").await;
    assert_eq!((&status["phase"], status["providerStatus"].pointer("/orangery/former")), (&json!("Succeeded"), None));
    assert!(!has_revision().await);
    event_says(&world, "ObjectsStay", "ConfigMap default/y stay in the cluster whose kube-system has the uid").await;
    assert_eq!((has(&world.client, "x").await, has(&world.client, "y").await, kept(&world).await), (false, true, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_275_a_job_that_fails_on_its_way_to_another_cluster_leaves_the_credentials_of_the_former_one() {
    let world = Items::new().await;
    world.create("item", &[two()], json!({})).await;
    world.job("item", "one").await;
    let (server, second) = second().await;
    retarget(&world, &server.kubeconfig()).await;
    let mut broken = two();
    broken["stages"][0]["writes"][0]["object"]["metadata"].as_object_mut().unwrap().remove("namespace");
    world.patch("item", json!({"spec": {"config": {"proposals": [broken]}}})).await;
    let status = world.job("item", "two").await;
    assert_eq!(status["phase"], "Failed", "{status:#}");
    world.patch("item", json!({"spec": {"config": {"proposals": [proposal("x", json!({}))]}}})).await;
    let status = world.job("item", "three").await;
    assert_eq!(status["phase"], "Succeeded", "{status:#}");
    assert!(has(&second, "x").await);
    assert!(!has(&world.client, "x").await && !has(&world.client, "y").await, "what was left is deleted");
    assert_eq!(status["providerStatus"].pointer("/orangery/former"), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_35_a_deletion_waits_for_a_former_cluster_that_does_not_let_go() {
    let world = Items::new().await;
    world.create("item", &[proposal("x", json!({}))], json!({})).await;
    world.job("item", "one").await;
    world.patch_config_map("x", json!({"metadata": {"finalizers": ["example.org/hold"]}})).await;
    let (server, second) = second().await;
    retarget(&world, &server.kubeconfig()).await;
    let status = world.job("item", "two").await;
    assert_eq!(status["phase"], "Succeeded", "{status:#}");
    assert!(status["providerStatus"].pointer("/orangery/former/0/managedResources/0").is_some(), "{status:#}");
    world.delete("item").await;
    world.trigger("item", "three").await;
    world.waiting("item", "ConfigMap default/x to be gone").await;
    assert!(!has(&second, "x").await);
    world.patch_config_map("x", json!({"metadata": {"finalizers": null}})).await;
    world.gone("item").await;
    assert_eq!((has(&world.client, "x").await, kept(&world).await), (false, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_35_a_former_cluster_that_nobody_knows_how_to_reach_fails_the_deletion_with_a_way_out() {
    let world = Items::new().await;
    world.create("item", &[proposal("x", json!({}))], json!({})).await;
    world.job("item", "one").await;
    let (server, _second) = second().await;
    retarget(&world, &server.kubeconfig()).await;
    world.lose_kept().await;
    world.delete("item").await;
    world.trigger("item", "two").await;
    let status = world.finished("item", "two").await;
    let message = status["lastError"]["message"].as_str().unwrap();
    assert!(
        message.starts_with("the target names another cluster than before: ConfigMap default/x stay in the cluster"),
        "{message}"
    );
    assert!(message.ends_with("landscaper.gardener.cloud/delete-without-uninstall"), "{message}");
    assert!(has(&world.client, "x").await);
    let annotations = json!({"landscaper.gardener.cloud/delete-without-uninstall": "true"});
    world.patch("item", json!({"metadata": {"annotations": annotations}})).await;
    world.trigger("item", "three").await;
    world.gone("item").await;
    assert_eq!(kept(&world).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_35_a_cluster_that_is_swapped_in_the_middle_of_a_job_has_the_job_begin_anew_there() {
    let world = Items::new().await;
    world.create("item", &[gated_on("x", "ready")], json!({})).await;
    world.trigger("item", "one").await;
    world.waiting("item", "to become ready").await;
    let (server, second) = second().await;
    retarget(&world, &server.kubeconfig()).await;
    world.touch("item", "the target is another one").await;
    let maps: Api<ConfigMap> = Api::default_namespaced(second.clone());
    let there = timeout(DEADLINE, await_condition(maps.clone(), "x", |map: Option<&ConfigMap>| map.is_some()));
    there.await.expect("it is deployed to the new cluster").unwrap();
    // The job may write it once more before it rests.
    let ended = world.in_time(async || {
        let ready = Patch::Merge(json!({"data": {"k": "ready"}}));
        maps.patch("x", &PatchParams::default(), &ready).await.unwrap();
        let item = world.items().get("item").await.unwrap();
        item.finished_job(&"one".into()).then_some(item)
    });
    let status = json!(ended.await.expect("the job ends in the new cluster").status);
    assert_eq!((&status["phase"], &status["lastError"]), (&json!("Succeeded"), &Value::Null), "{status:#}");
    assert!(has(&second, "x").await && !has(&world.client, "x").await, "what the first cluster had is deleted there");
    assert_eq!(status["providerStatus"].pointer("/orangery/former"), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_35_a_deletion_says_what_is_left_in_a_former_cluster_that_is_gone_and_the_way_out() {
    let world = Items::new().await;
    let targets: Api<Target> = Api::default_namespaced(world.client.clone());
    let here = json!(targets.get("cluster").await.unwrap())["spec"]["config"]["kubeconfig"].clone();
    let (server, client) = second().await;
    let uid = Api::<Namespace>::all(client).get("kube-system").await.unwrap().metadata.uid.unwrap();
    retarget(&world, &server.kubeconfig()).await;
    world.create("item", &[proposal("x", json!({}))], json!({"timeout": "1s"})).await;
    world.job("item", "one").await;
    retarget(&world, here.as_str().unwrap()).await;
    server.stop().await;
    world.delete("item").await;
    world.trigger("item", "two").await;
    let status = world.finished("item", "two").await;
    let message = status["lastError"]["message"].as_str().unwrap();
    assert_eq!(status["phase"], "DeleteFailed", "{status:#}");
    let what = format!(
        "the target names another cluster than before: ConfigMap default/x stay in the cluster whose kube-system has the uid {uid}: "
    );
    let way_out = "; where that cluster is gone for good, delete the item with the annotation \
                   landscaper.gardener.cloud/delete-without-uninstall";
    assert!(message.contains(&what) && message.ends_with(way_out), "{message}");
    let without = json!({"metadata": {"annotations": {"landscaper.gardener.cloud/delete-without-uninstall": "true"}}});
    world.patch("item", without).await;
    world.trigger("item", "three").await;
    world.gone("item").await;
}

/// Why an item cannot be deleted whose Target names this cluster by now, where what was kept leads to that one.
async fn replaced(target: &Server, kept: &Server) -> String {
    let world = Items::new().await;
    world.create("item", &[proposal("x", json!({}))], json!({})).await;
    world.job("item", "one").await;
    retarget(&world, &target.kubeconfig()).await;
    swap_kept(&world, &kept.kubeconfig()).await;
    world.delete("item").await;
    world.trigger("item", "two").await;
    let status = world.finished("item", "two").await;
    assert_eq!(status["phase"], "DeleteFailed", "{status:#}");
    assert!(has(&world.client, "x").await);
    status["lastError"]["message"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_173_another_cluster_at_the_address_of_the_target_is_told_as_that() {
    let ((server, client), (other, _client)) = (second().await, second().await);
    made_by_another(&client, "x").await;
    let message = replaced(&server, &server).await;
    let kubeconfig = Kubeconfig::from_yaml(&server.kubeconfig()).unwrap();
    let address = kubeconfig.clusters[0].cluster.as_ref().unwrap().server.clone().unwrap();
    let begin =
        format!("cluster {address} is another one than before: ConfigMap default/x stay in the one whose kube-system");
    assert!(message.starts_with(&begin), "{message}");
    assert!(message.ends_with("landscaper.gardener.cloud/delete-without-uninstall"), "{message}");
    assert!(has(&client, "x").await);
    let message = replaced(&server, &other).await;
    assert!(message.starts_with("the target names another cluster than before: "), "{message}");
    assert!(message.ends_with("but its credentials lead to another cluster now"), "{message}");
}

/// An Installation, which has no job, that exports a Target.
async fn exported(world: &Items, target: &str) {
    let exports = json!({"exports": {"targets": [{"name": "out", "target": target}]}});
    let mut exporter = with(installation("exporter", &json!({})), &exports);
    exporter["metadata"]["annotations"] = json!({});
    world.objects().apply(&exporter).await;
    let known = world.host.as_ref().unwrap().stores.installations.clone();
    let is_known = async || known.get(&Key::new("default", "exporter")).map(drop);
    assert!(world.in_time(is_known).await.is_some(), "the controllers do not know the exporter");
}
