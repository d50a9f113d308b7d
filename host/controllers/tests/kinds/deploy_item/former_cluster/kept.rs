//! What was kept of a cluster is used where its Target is gone (C-28, C-110, C-120).

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::{
    Api, Client,
    api::{DeleteParams, Patch, PatchParams},
};
use orangery_embedded::Server;
use serde_json::{Value, json};

use super::{
    super::items::{Items, key, proposal},
    exported, has, kept, made_by_another, retarget, second, swap_kept,
};
use crate::{
    objects::{SCRIPTED, item, object},
    world::{FINALIZER, Setup, message, name_of},
};

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
    swap_kept(&world, &server.kubeconfig()).await;
    world.lose_target("cluster").await;
    world.delete("item").await;
    world.trigger("item", "two").await;
    let status = world.finished("item", "two").await;
    let message = status["lastError"]["message"].as_str().unwrap();
    assert_eq!(status["phase"], "DeleteFailed", "{status:#}");
    assert!(message.contains(" is another one than before: ConfigMap default/x stay in the one whose"), "{message}");
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
