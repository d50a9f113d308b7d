//! A Target that names another cluster than before: nothing is deleted there, and what is left in the former one is deleted
//! with the credentials of that time (C-35).

use k8s_openapi::{
    ByteString,
    api::core::v1::{ConfigMap, Namespace, Secret},
};
use kube::{
    Api, Client, Config,
    api::{DeleteParams, Patch, PatchParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig, NamedAuthInfo},
    runtime::wait::await_condition,
};
use orangery_api::{deploy_item::DeployItem, job::Job as _, target::Target};
use orangery_embedded::{Options, Server, Storage, start};
use orangery_reconcile::Key;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::items::{Items, gated_on, key, proposal};
use crate::{
    objects::{SCRIPTED, installation, item, object, with},
    world::{DEADLINE, FINALIZER, Setup, message, name_of},
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
    let targets: Api<Target> = Api::default_namespaced(world.client.clone());
    let config = json!({"spec": {"config": {"kubeconfig": kubeconfig}}});
    let patched = targets.patch("cluster", &PatchParams::default(), &Patch::Merge(config)).await.unwrap();
    let host = world.host.as_ref().unwrap();
    let known = host.stores.targets.clone();
    drop(known.upsert(patched));
}

pub(super) async fn has(client: &Client, name: &str) -> bool {
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    maps.get_opt(name).await.unwrap().is_some()
}

/// How many Secrets have credentials that were kept.
async fn kept(world: &Items) -> usize {
    world.kept().await.len()
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_28_c_35_an_item_whose_exported_target_is_gone_is_uninstalled_with_what_was_kept_of_it() {
    let world = Items::new().await;
    exported(&world, "cluster").await;
    world.create("item", &[proposal("x", json!({}))], json!({})).await;
    world.job("item", "one").await;
    world.lose_target("cluster").await;
    world.delete("item").await;
    world.trigger("item", "two").await;
    world.gone("item").await;
    assert_eq!((has(&world.client, "x").await, kept(&world).await), (false, 0));
}

/// What was kept of credentials is refused from now on.
async fn expire_kept(world: &Items) {
    let secrets: Api<Secret> = Api::default_namespaced(world.client.clone());
    for secret in world.kept().await {
        let ByteString(content) = secret.data.unwrap().remove("kubeconfig").unwrap();
        let mut kubeconfig: Value = serde_json::from_slice(&content).unwrap();
        kubeconfig["users"][0]["user"] = json!({"token": "expired"});
        let expired = Patch::Merge(json!({"data": {"kubeconfig": ByteString(kubeconfig.to_string().into_bytes())}}));
        secrets.patch(&secret.metadata.name.unwrap(), &PatchParams::default(), &expired).await.unwrap();
    }
}

/// Another kubeconfig that leads to the same place.
fn rotated(world: &Items) -> String {
    let mut kubeconfig = Kubeconfig::from_yaml(&world.kubeconfig()).unwrap();
    kubeconfig.auth_infos.push(NamedAuthInfo { name: "another".to_owned(), ..NamedAuthInfo::default() });
    serde_json::to_string(&kubeconfig).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_190_the_last_credentials_of_a_target_that_is_gone_are_kept_also_where_no_job_used_them() {
    let world = Items::new().await;
    exported(&world, "cluster").await;
    world.create("item", &[proposal("x", json!({}))], json!({})).await;
    world.job("item", "one").await;
    expire_kept(&world).await;
    retarget(&world, &rotated(&world)).await;
    world.lose_target("cluster").await;
    world.delete("item").await;
    world.trigger("item", "two").await;
    world.gone("item").await;
    assert_eq!((has(&world.client, "x").await, kept(&world).await), (false, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_190_a_guarded_secret_goes_when_its_last_credentials_are_kept() {
    let world = Items::with(Setup { guards: true, ..Setup::default() }).await;
    let secret = |kubeconfig: &str| {
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "credentials"},
            "data": {"kubeconfig": ByteString(kubeconfig.as_bytes().to_vec())}})
    };
    world.objects().apply(&secret(&world.kubeconfig())).await;
    let spec = json!({"type": "landscaper.gardener.cloud/kubernetes-cluster", "secretRef": {"name": "credentials"}});
    world.target("copy", spec).await;
    exported(&world, "copy").await;
    let targets: Api<Target> = Api::default_namespaced(world.client.clone());
    let label = json!({"metadata": {"labels": {"data.landscaper.gardener.cloud/sourceType": "import"}}});
    targets.patch("copy", &PatchParams::default(), &Patch::Merge(label)).await.unwrap();
    world.create("item", &[proposal("x", json!({}))], json!({"target": {"name": "copy"}})).await;
    world.job("item", "one").await;
    expire_kept(&world).await;
    world.objects().apply(&secret(&rotated(&world))).await;
    // As a namespace goes.
    world.objects().delete("Secret", "credentials").await;
    world.lose_target("copy").await;
    world.objects().gone("Secret", "credentials").await;
    world.delete("item").await;
    world.trigger("item", "two").await;
    world.gone("item").await;
    assert_eq!((has(&world.client, "x").await, kept(&world).await), (false, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_200_what_was_kept_for_an_item_goes_also_where_somebody_took_its_finalizers_off() {
    let world = Items::new().await;
    for name in ["item", "another"] {
        world.create(name, &[proposal(name, json!({}))], json!({})).await;
        world.job(name, "one").await;
    }
    assert_eq!(kept(&world).await, 1);
    for (name, left) in [("item", 1), ("another", 0)] {
        world.objects().delete_by_force("DeployItem", name).await;
        let is_as_wanted = async || (kept(&world).await == left).then_some(());
        assert!(world.in_time(is_as_wanted).await.is_some(), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_190_what_a_status_names_that_is_of_no_target_of_the_item_is_not_written() {
    let world = Items::new().await;
    exported(&world, "cluster").await;
    world.create("item", &[proposal("x", json!({}))], json!({})).await;
    world.job("item", "one").await;
    let of_another = json!({"metadata": {"name": "orangery-cluster-of-another"}, "type": "orangery.dev/kubeconfig",
        "data": {"kubeconfig": ByteString(world.kubeconfig().into_bytes())}});
    let secrets: Api<Secret> = Api::default_namespaced(world.client.clone());
    let of_another: Secret = serde_json::from_value(of_another).unwrap();
    let before = secrets.create(&PostParams::default(), &of_another).await.unwrap();
    let named =
        json!({"status": {"providerStatus": {"orangery": {"credentials": {"uid": "orangery-cluster-of-another"}}}}});
    world.items().patch_status("item", &PatchParams::default(), &Patch::Merge(named)).await.unwrap();
    retarget(&world, &rotated(&world)).await;
    world.lose_target("cluster").await;
    world.delete("item").await;
    world.trigger("item", "two").await;
    world.gone("item").await;
    let after = secrets.get("orangery-cluster-of-another").await.unwrap();
    assert_eq!(after.data, before.data);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_35_a_deletion_that_is_cut_off_when_its_credentials_are_gone_ends_all_the_same() {
    let mut world = Items::new().await;
    exported(&world, "cluster").await;
    world.create("item", &[proposal("x", json!({}))], json!({})).await;
    world.job("item", "one").await;
    let targets: Api<Target> = Api::default_namespaced(world.client.clone());
    targets.delete("cluster", &DeleteParams::default()).await.unwrap();
    let known = world.host.as_ref().unwrap().stores.targets.clone();
    let is_gone = async || known.get(&Key::new("default", "cluster")).is_none().then_some(());
    assert!(world.in_time(is_gone).await.is_some(), "the controllers know the Target");
    // The write that takes the finalizer away is on its way, and never arrives.
    world.objects().delay_write("/deployitems/item");
    world.delete("item").await;
    world.trigger("item", "two").await;
    world.objects().held().await;
    assert_eq!((has(&world.client, "x").await, kept(&world).await), (false, 0));
    world.restart();
    world.gone("item").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_35_what_was_deleted_in_a_former_cluster_is_recorded_before_its_credentials_go() {
    let world = Items::new().await;
    world.create("item", &[proposal("x", json!({}))], json!({})).await;
    world.job("item", "one").await;
    let secret = world.kept().await.remove(0).metadata.name.unwrap();
    let (server, _second) = second().await;
    retarget(&world, &server.kubeconfig()).await;
    world.objects().delay_write(&format!("/secrets/{secret}"));
    world.trigger("item", "two").await;
    world.objects().held().await;
    let status = json!(world.items().get("item").await.unwrap().status);
    assert_eq!(status["providerStatus"].pointer("/orangery/former"), None, "{status:#}");
    assert!(!has(&world.client, "x").await && status["phase"] == "Progressing", "{status:#}");
    world.objects().let_pass();
    assert_eq!((world.finished("item", "two").await["phase"].clone(), kept(&world).await), (json!("Succeeded"), 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_28_what_was_kept_of_a_target_that_its_user_deleted_is_not_used() {
    let world = Items::new().await;
    world.create("item", &[proposal("x", json!({}))], json!({})).await;
    world.job("item", "one").await;
    world.lose_target("cluster").await;
    world.delete("item").await;
    world.trigger("item", "two").await;
    let status = world.finished("item", "two").await;
    assert_eq!(status["phase"], "DeleteFailed", "{status:#}");
    assert!(has(&world.client, "x").await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_28_c_35_what_was_kept_and_leads_to_another_cluster_deletes_nothing_there() {
    let world = Items::new().await;
    exported(&world, "cluster").await;
    world.create("item", &[proposal("x", json!({}))], json!({})).await;
    world.job("item", "one").await;
    let (server, second) = second().await;
    made_by_another(&second, "x").await;
    let secrets: Api<Secret> = Api::default_namespaced(world.client.clone());
    for secret in world.kept().await {
        let elsewhere = Patch::Merge(json!({"data": {"kubeconfig": ByteString(server.kubeconfig().into_bytes())}}));
        secrets.patch(&secret.metadata.name.unwrap(), &PatchParams::default(), &elsewhere).await.unwrap();
    }
    world.lose_target("cluster").await;
    world.delete("item").await;
    world.trigger("item", "two").await;
    let status = world.finished("item", "two").await;
    let message = status["lastError"]["message"].as_str().unwrap();
    assert_eq!(status["phase"], "DeleteFailed", "{status:#}");
    assert!(message.ends_with("but its credentials lead to another cluster now"), "{message}");
    assert!(has(&world.client, "x").await && has(&second, "x").await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_35_credentials_that_somebody_deleted_are_kept_again_by_the_next_job() {
    let world = Items::new().await;
    world.create("item", &[proposal("x", json!({}))], json!({})).await;
    world.job("item", "one").await;
    let known = world.host.as_ref().unwrap().stores.secrets.clone();
    assert!(world.in_time(async || (known.keys(None).len() == 1).then_some(())).await.is_some(), "it is watched");
    world.lose_kept().await;
    assert!(world.in_time(async || known.keys(None).is_empty().then_some(())).await.is_some(), "it is seen to go");
    world.job("item", "two").await;
    assert_eq!(kept(&world).await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_35_what_another_item_is_about_to_refer_to_is_not_deleted_with_the_last_one_that_did() {
    let world = Items::new().await;
    world.create("first", &[proposal("x", json!({}))], json!({})).await;
    world.job("first", "one").await;
    let secret = world.kept().await.remove(0).metadata.name.unwrap();
    // What the next item keeps is there already; that its status refers to it is on its way.
    world.create("next", &[proposal("y", json!({}))], json!({})).await;
    world.objects().delay_write("/deployitems/next/status");
    world.trigger("next", "one").await;
    world.objects().held().await;
    world.delete("first").await;
    world.trigger("first", "two").await;
    let has_nothing = |item: &DeployItem| {
        let provider_status = item.status.as_ref().and_then(|status| status.provider_status.as_ref());
        provider_status.is_some_and(|status| status.pointer("/managedResources/0").is_none())
    };
    world.wait("first", |item| item.is_none_or(has_nothing)).await;
    world.objects().let_pass();
    world.gone("first").await;
    assert_eq!(world.finished("next", "one").await["phase"], "Succeeded");
    let asked = world.objects().asked_about(&format!("/secrets/{secret}"));
    assert!(asked.iter().all(|asked| asked.method != "DELETE"), "{asked:?}");
    assert_eq!(kept(&world).await, 1);
    world.delete("next").await;
    world.trigger("next", "two").await;
    world.gone("next").await;
    assert_eq!(kept(&world).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_35_two_items_that_go_at_the_same_time_leave_no_credentials() {
    let world = Items::new().await;
    for (item, object) in [("first", "x"), ("next", "y")] {
        world.create(item, &[proposal(object, json!({}))], json!({})).await;
        world.job(item, "one").await;
    }
    assert_eq!(kept(&world).await, 1);
    // The write that takes the finalizer away is on its way.
    world.objects().delay_write("/deployitems/first");
    world.delete("first").await;
    world.trigger("first", "two").await;
    world.objects().held().await;
    world.delete("next").await;
    world.trigger("next", "two").await;
    world.gone("next").await;
    world.objects().let_pass();
    world.gone("first").await;
    assert_eq!(kept(&world).await, 0);
}

/// An item with the ConfigMap `x`, which nobody lets go, in a cluster that its Target does not name any more; then the key of the
/// operator is lost.
async fn former_with_another_key() -> (Items, Server, Client) {
    let mut world = Items::new().await;
    world.create("item", &[proposal("x", json!({}))], json!({})).await;
    world.job("item", "one").await;
    world.patch_config_map("x", json!({"metadata": {"finalizers": ["example.org/hold"]}})).await;
    let (server, second) = second().await;
    retarget(&world, &server.kubeconfig()).await;
    let status = world.job("item", "two").await;
    assert!(status["providerStatus"].pointer("/orangery/former/0/managedResources/0").is_some(), "{status:#}");
    world.restart_with(Setup { key: 1, ..Setup::default() });
    (world, server, second)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_110_what_lies_in_a_former_cluster_outlives_the_key_of_the_operator() {
    let (world, _server, second) = former_with_another_key().await;
    let status = world.job("item", "three").await;
    assert_eq!(status["phase"], "Succeeded", "{status:#}");
    assert!(status["providerStatus"].pointer("/orangery/former/0/managedResources/0").is_some(), "{status:#}");
    world.delete("item").await;
    world.trigger("item", "four").await;
    world.waiting("item", "ConfigMap default/x to be gone").await;
    world.patch_config_map("x", json!({"metadata": {"finalizers": null}})).await;
    world.gone("item").await;
    assert_eq!((has(&world.client, "x").await, has(&second, "x").await, kept(&world).await), (false, false, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_110_a_target_that_changes_while_the_key_is_lost_leaves_nothing_behind() {
    let mut world = Items::new().await;
    world.create("item", &[proposal("x", json!({}))], json!({})).await;
    world.job("item", "one").await;
    world.restart_with(Setup { key: 1, ..Setup::default() });
    let (server, second) = second().await;
    retarget(&world, &server.kubeconfig()).await;
    let status = world.job("item", "two").await;
    assert_eq!(status["phase"], "Succeeded", "{status:#}");
    assert_eq!((has(&world.client, "x").await, has(&second, "x").await), (false, true));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_110_without_key_and_credentials_a_former_cluster_is_told_and_not_forgotten() {
    let (world, _server, _second) = former_with_another_key().await;
    world.lose_kept().await;
    world.delete("item").await;
    world.trigger("item", "three").await;
    let status = world.finished("item", "three").await;
    let message = status["lastError"]["message"].as_str().unwrap();
    assert_eq!(status["phase"], "DeleteFailed", "{status:#}");
    assert!(message.contains("ConfigMap default/x stay in the cluster"), "{message}");
    assert!(has(&world.client, "x").await);
}

/// An Execution `tree` that has deployed `base`, and after it `last`, which is deleted when the ConfigMap `metric` of its cluster is
/// gone. Items on its Target have objects in the first cluster, too, which the Target does not name any more.
async fn deployed_after_another_cluster() -> (Items, Server, Client) {
    let world = Items::new().await;
    world.create("left", &[proposal("x", json!({}))], json!({})).await;
    world.job("left", "one").await;
    world.patch_config_map("x", json!({"metadata": {"finalizers": ["example.org/hold"]}})).await;
    let (server, second) = second().await;
    retarget(&world, &server.kubeconfig()).await;
    world.job("left", "two").await;
    assert_eq!(kept(&world).await, 2, "of one Target and two clusters");
    made_by_another(&second, "metric").await;
    let scripted = |name: &str, after: &[&str], fields: &Value| {
        let whole = json!({"type": SCRIPTED, "target": {"name": "cluster", "namespace": "default"},
            "config": {"kind": "Script", "proposals": [proposal(name, json!({}))]}});
        let mut item = item(name, after, &whole);
        orangery_proposal::overlay::overlay(&mut item, fields);
        item
    };
    let gone = json!({"expression": "objects.metric == null", "objects": {"metric": key("metric")}});
    let items = [scripted("base", &[], &json!({})), scripted("last", &["base"], &json!({"deletedWhen": gone}))];
    let mut execution = object("Execution", "tree", &json!({"context": "default", "deployItems": items}));
    execution["metadata"]["finalizers"] = json!([FINALIZER]);
    let objects = world.objects();
    objects.apply(&execution).await;
    objects.patch_status("Execution", "tree", &json!({"jobID": "one"})).await;
    objects.ended("Execution", "tree", "Succeeded").await;
    assert!(has(&second, "base").await && has(&second, "last").await);
    (world, server, second)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_120_gate_expressions_ask_no_kept_cluster_that_somebody_wrote_into_a_status() {
    let (world, _server, second) = deployed_after_another_cluster().await;
    let namespaces: Api<Namespace> = Api::all(world.client.clone());
    let first = namespaces.get("kube-system").await.unwrap().metadata.uid.unwrap();
    world.lose_target("cluster").await;
    let objects = world.objects();
    let base = objects.find_item("base").await.unwrap();
    let (name, sealed) = (name_of(&base), &base["status"]["providerStatus"]);
    let mut forged = sealed.clone();
    // In the first cluster there is no metric.
    forged["orangery"]["clusters"][0]["uid"] = json!(first);
    assert_ne!(*sealed, forged);
    objects.patch_status("DeployItem", &name, &json!({"providerStatus": forged})).await;
    objects.delete("Execution", "tree").await;
    objects.patch_status("Execution", "tree", &json!({"jobID": "two"})).await;
    let failed = objects.ended("Execution", "tree", "DeleteFailed").await;
    assert_eq!(
        message(&failed),
        "deletedWhen of deploy item last cannot be told: Execution tree needs Target default/cluster, which does not exist; create \
         it and reconcile again"
    );
    assert!(has(&second, "base").await && !has(&second, "last").await, "what last depends on waits for the metric");
    // The controllers know it before they begin the next job.
    let restored = Patch::Merge(json!({"status": {"providerStatus": sealed}}));
    let restored = world.items().patch_status(&name, &PatchParams::default(), &restored).await.unwrap();
    drop(world.host.as_ref().unwrap().stores.deploy_items.upsert(restored));
    objects.patch_status("Execution", "tree", &json!({"jobID": "three"})).await;
    objects.says("Execution", "tree", "waiting for GateExpression last/deletedWhen to be met").await;
    assert!(has(&second, "base").await);
    let metrics: Api<ConfigMap> = Api::default_namespaced(second.clone());
    metrics.delete("metric", &DeleteParams::default()).await.unwrap();
    objects.gone("Execution", "tree").await;
    assert!(!has(&second, "base").await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_126_what_a_gate_expression_has_answered_is_written_before_it_lets_anything_go() {
    let (mut world, _server, second) = deployed_after_another_cluster().await;
    let metrics: Api<ConfigMap> = Api::default_namespaced(second.clone());
    metrics.delete("metric", &DeleteParams::default()).await.unwrap();
    world.lose_target("cluster").await;
    let base = name_of(&world.objects().find_item("base").await.unwrap());
    world.delay_write(&format!("deployitems/{base}/status"));
    world.objects().delete("Execution", "tree").await;
    world.objects().patch_status("Execution", "tree", &json!({"jobID": "two"})).await;
    // The job is about to be handed to base, which has the only credentials by which the expression could be asked again.
    world.held().await;
    let execution = world.objects().find("Execution", "tree").await.unwrap();
    let answered = &execution["status"]["items"][0];
    assert_eq!(
        (&answered["name"], &answered["conditions"][0]["type"], &answered["conditions"][0]["status"]),
        (&json!("last"), &json!("deletedWhen"), &json!("True")),
        "{execution:#}"
    );
    world.restart();
    world.objects().gone("Execution", "tree").await;
    assert!(!has(&second, "base").await);
}
