//! Deletions: with a component that wants something done before, with one that does not, and where they fail or wait.

use kube::api::{Patch, PatchParams, PostParams};
use orangery_api::job::Job;
use serde_json::{Value, json};

use super::{
    hostile::event_says,
    items::{Items, MANAGED_BY, gate, key, proposal},
};

const HOLD: &str = "example.org/hold";

/// An item that has deployed the config map `a`; its component answers these proposals before it is uninstalled.
async fn installed(uninstalls: &[Value]) -> Items {
    let world = Items::new().await;
    let spec = json!({"config": {"uninstalls": uninstalls}, "timeout": "1h"});
    world.create("item", &[proposal("a", json!({}))], spec).await;
    world.job("item", "one").await;
    world
}

async fn delete(world: &Items) {
    world.delete("item").await;
    world.trigger("item", "two").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_28_what_a_component_wants_done_before_is_done_and_deleted_with_the_rest() {
    let first = proposal("hook", json!({"next": {"continueWith": [1]}}));
    let world = installed(&[first, proposal("second", json!({}))]).await;
    delete(&world).await;
    world.gone("item").await;
    let checkpoints: Vec<Option<Vec<u8>>> =
        world.plugin.uninstalls.lock().unwrap().iter().map(|item| item.checkpoint.clone()).collect();
    assert_eq!(checkpoints, [None, Some(vec![1])]);
    let left = (world.value("a").await, world.value("hook").await, world.value("second").await);
    assert_eq!(left, (None, None, None));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_118_a_component_is_asked_once_for_what_no_inventory_tells_of() {
    let world = Items::new().await;
    let spec = json!({"config": {"uninstalls": [proposal("hook", json!({}))]}, "timeout": "1h"});
    world.create("item", &[proposal("a", json!({"stages": []}))], spec).await;
    let status = world.job("item", "one").await;
    assert_eq!(status["providerStatus"]["managedResources"], Value::Null, "{status:#}");
    delete(&world).await;
    world.gone("item").await;
    let asked = world.plugin.uninstalls.lock().unwrap().len();
    assert_eq!((asked, world.value("hook").await), (1, None));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_28_the_own_order_of_an_uninstall_replaces_that_of_the_item_and_none_keeps_it() {
    let order = json!([{"what": [{"managed": {"apiVersion": "v1", "kind": "ConfigMap", "names": ["a"]}}]}]);
    let world = installed(&[proposal("hook", json!({"deletionOrder": order}))]).await;
    delete(&world).await;
    world.gone("item").await;
    assert_eq!((world.value("a").await, world.value("hook").await.is_some()), (None, true), "hook is in no group");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_component_that_fails_a_deletion_leaves_all_in_its_place_and_may_be_asked_again() {
    let fails = json!({"stages": [], "next": {"fail": {"code": "ERR_MINE", "message": "not yet"}}});
    let world = installed(&[fails]).await;
    delete(&world).await;
    let status = world.finished("item", "two").await;
    let message = (&status["phase"], &status["lastError"]["reason"], &status["lastError"]["message"]);
    assert_eq!(message, (&json!("DeleteFailed"), &json!("PluginFailedItem"), &json!("plugin scripted: not yet")));
    assert!(world.value("a").await.is_some());
    world.patch("item", json!({"spec": {"config": {"uninstalls": null}}})).await;
    world.trigger("item", "three").await;
    world.gone("item").await;
    assert_eq!(world.value("a").await, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_140_an_orphaned_item_says_that_nobody_tries_again_and_does_it_when_it_is_asked_to() {
    let fails = json!({"stages": [], "next": {"fail": {"code": "ERR_MINE", "message": "not yet"}}});
    let world = installed(&[fails]).await;
    world.patch("item", json!({"metadata": {"labels": {MANAGED_BY: "gone"}}})).await;
    world.delete("item").await;
    let failed = world.wait("item", |item| item.is_some_and(|item| item.phase() == "DeleteFailed")).await.unwrap();
    let sentence = "plugin scripted: not yet; it has no Execution, so nobody tries again unasked: set the annotation \
        landscaper.gardener.cloud/operation: reconcile on this DeployItem when that is mended";
    let ready = failed.conditions().iter().find(|condition| condition.type_ == "Ready").unwrap();
    assert_eq!((ready.message.as_str(), &json!(failed.status)["lastError"]["message"]), (sentence, &json!(sentence)));
    world.patch("item", json!({"spec": {"config": {"uninstalls": null}}})).await;
    assert!(world.value("a").await.is_some());
    world.objects().annotate("DeployItem", "item", "operation", "reconcile").await;
    world.gone("item").await;
    assert_eq!(world.value("a").await, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_161_an_item_of_ones_own_is_uninstalled_when_it_is_deleted_and_tries_again_when_it_is_asked_to() {
    let fails = json!({"stages": [], "next": {"fail": {"code": "ERR_MINE", "message": "not yet"}}});
    let world = installed(&[fails]).await;
    world.patch("item", json!({"metadata": {"ownerReferences": null}})).await;
    world.delete("item").await;
    world.wait("item", |item| item.is_some_and(|item| item.phase() == "DeleteFailed" && item.job_finished())).await;
    assert!(world.value("a").await.is_some());
    world.patch("item", json!({"spec": {"config": {"uninstalls": null}}})).await;
    world.objects().annotate("DeployItem", "item", "operation", "reconcile").await;
    world.gone("item").await;
    assert_eq!(world.value("a").await, None);
    // Nobody has ever taken this one.
    world.create("untaken", &[], json!({"type": "example.org/absent"})).await;
    let held = json!(["finalizer.landscaper.gardener.cloud"]);
    world.patch("untaken", json!({"metadata": {"ownerReferences": null, "finalizers": held}})).await;
    world.delete("untaken").await;
    world.gone("untaken").await;
}

/// A proposal before an uninstall that waits for the config map `hook` to be ready.
fn waits() -> Value {
    let mut plan = proposal("hook", json!({}));
    plan["stages"][0]["gate"] = gate("hook", "ready");
    plan
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn inv_6_a_deletion_goes_on_after_a_restart_before_and_in_the_deletion_of_the_inventory() {
    let mut world = installed(&[waits()]).await;
    world.patch_config_map("a", json!({"metadata": {"finalizers": [HOLD]}})).await;
    delete(&world).await;
    let stage = json!({"stage": {"stage": 0, "step": "waiting"}});
    world.waiting_in("item", &stage, "ConfigMap default/hook").await;
    world.restart();
    world.patch_config_map("hook", json!({"data": {"k": "ready"}})).await;
    world.waiting_in("item", &json!("deleting"), "ConfigMap default/a to be gone").await;
    world.restart();
    world.patch_config_map("a", json!({"metadata": {"finalizers": null}})).await;
    world.gone("item").await;
    assert_eq!(world.plugin.uninstalls.lock().unwrap().len(), 1, "what was answered is gone on with");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn inv_6_nothing_that_a_stored_proposal_waits_for_is_deleted_before_the_status_says_so() {
    let mut world = installed(&[waits()]).await;
    delete(&world).await;
    world.waiting("item", "ConfigMap default/hook").await;
    world.cut_after(0);
    world.patch_config_map("hook", json!({"data": {"k": "ready"}})).await;
    world.in_time(async || world.is_cut().then_some(())).await.unwrap();
    assert!(world.value("hook").await.is_some());
    world.restart();
    world.gone("item").await;
    assert_eq!((world.value("a").await, world.value("hook").await), (None, None));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_08_a_deletion_whose_time_is_up_fails_with_what_it_waited_for() {
    let world = installed(&[]).await;
    world.patch_config_map("a", json!({"metadata": {"finalizers": [HOLD]}})).await;
    delete(&world).await;
    world.waiting_in("item", &json!("deleting"), "ConfigMap default/a to be gone").await;
    world.jump(2 * 3_600);
    world.touch("item", "the time is up").await;
    let status = world.finished("item", "two").await;
    assert_eq!(
        (&status["phase"], &status["lastError"]["message"]),
        (
            &json!("DeleteFailed"),
            &json!("the item did not finish within its timeout of 60m; waiting for ConfigMap default/a to be gone")
        )
    );
    assert_eq!(status["providerStatus"]["managedResources"].as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_08_a_component_that_goes_on_for_ever_before_an_uninstall_is_ended_also_without_a_timeout() {
    let world = Items::new().await;
    let again = json!({"stages": [], "next": {"continueWith": [0]}});
    let spec = json!({"config": {"uninstalls": [again]}, "timeout": "none"});
    world.create("item", &[proposal("a", json!({}))], spec).await;
    world.job("item", "one").await;
    delete(&world).await;
    let status = world.finished("item", "two").await;
    let message = status["lastError"]["message"].as_str().unwrap();
    assert_eq!(status["phase"], "DeleteFailed", "{status:#}");
    assert!(message.starts_with("plugin scripted was called 256 times in a row and goes on without"), "{message}");
    assert!(world.value("a").await.is_some(), "what it has deployed is still known: {status:#}");
    assert_eq!(status["providerStatus"]["managedResources"].as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_08_a_component_recovers_from_an_uninstall_whose_time_is_up_and_the_inventory_goes() {
    let mut first = waits();
    first["recover"] = json!([1]);
    let mut world = installed(&[first, proposal("second", json!({}))]).await;
    let planned = world.calls();
    delete(&world).await;
    world.waiting("item", "ConfigMap default/hook").await;
    // Nobody writes to the item: a newer version would have the call made again, as its outcome could not be written.
    world.restart_after(2 * 3_600);
    world.gone("item").await;
    let failed: Vec<Option<String>> = {
        let calls = world.plugin.uninstalls.lock().unwrap();
        calls.iter().map(|item| item.failed.as_ref().map(|failed| failed.stage.clone())).collect()
    };
    assert_eq!(failed, [None, Some("all".to_owned())]);
    assert_eq!(world.calls(), planned, "an item that is deleted is not planned again");
    let left = (world.value("a").await, world.value("hook").await, world.value("second").await);
    assert_eq!(left, (None, None, None));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ins_72_an_interrupted_deletion_is_not_gone_on_with() {
    let world = installed(&[]).await;
    world.patch_config_map("a", json!({"metadata": {"finalizers": [HOLD]}})).await;
    delete(&world).await;
    world.waiting_in("item", &json!("deleting"), "ConfigMap default/a to be gone").await;
    let interrupted = json!({"status": {"phase": "DeleteFailed", "jobIDFinished": "two"}});
    world.items().patch_status("item", &PatchParams::default(), &Patch::Merge(interrupted)).await.unwrap();
    world.patch_config_map("a", json!({"metadata": {"finalizers": null}})).await;
    world.create("probe", &[proposal("probe", json!({}))], json!({})).await;
    world.job("probe", "probe").await;
    let item = world.items().get("item").await.unwrap();
    assert_eq!((item.phase(), item.metadata.finalizers.as_ref().map(Vec::len)), ("DeleteFailed", Some(1)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_item_that_has_deployed_nothing_goes_without_its_component() {
    let world = Items::new().await;
    world.create("item", &[], json!({"config": {"uninstalls": [proposal("hook", json!({}))]}})).await;
    world.job("item", "one").await;
    let calls = world.calls();
    delete(&world).await;
    world.gone("item").await;
    let asked = world.plugin.uninstalls.lock().unwrap().len();
    assert_eq!((asked, world.calls(), world.value("hook").await), (0, calls, None));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_item_whose_component_is_gone_is_left_to_others_when_it_is_deleted() {
    let world = Items::new().await;
    let spec = json!({"type": "example.org/absent"});
    world.create("item", &[proposal("a", json!({}))], spec).await;
    let finalizer = json!({"metadata": {"finalizers": [HOLD]}});
    world.patch("item", finalizer).await;
    delete(&world).await;
    world.create("probe", &[proposal("probe", json!({}))], json!({})).await;
    world.job("probe", "probe").await;
    let item = world.items().get("item").await.unwrap();
    assert_eq!(
        (item.phase(), item.job_id_finished().as_str(), item.metadata.finalizers.clone()),
        ("", "", Some(vec![HOLD.to_owned()]))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_that_a_component_removes_before_are_gone_before_the_rest() {
    let mut first = proposal("hook", json!({}));
    first["stages"][0]["removals"] = json!([{"key": key("a")}]);
    let world = installed(&[first]).await;
    world.patch_config_map("a", json!({"metadata": {"finalizers": [HOLD]}})).await;
    delete(&world).await;
    let removing = json!({"stage": {"stage": 0, "step": "removing"}});
    world.waiting_in("item", &removing, "ConfigMap default/a to be gone").await;
    assert_eq!(world.value("hook").await, None, "it is written after the removal");
    world.patch_config_map("a", json!({"metadata": {"finalizers": null}})).await;
    world.gone("item").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_114_what_an_item_of_a_namespace_that_is_not_here_has_written_stays() {
    let world = Items::new().await;
    for (name, mark) in [("left", "default/gone/uid"), ("theirs", "elsewhere/item/uid")] {
        let map = json!({"metadata": {"name": name, "annotations": {"orangery.dev/owner": mark}}});
        world.config_maps().create(&PostParams::default(), &serde_json::from_value(map).unwrap()).await.unwrap();
    }
    let removals = [json!({"key": key("left")}), json!({"key": key("theirs")})];
    let plan = json!({"stages": [{"name": "all", "gate": "gone", "removals": removals}], "next": {"finish": {}}});
    world.create("item", &[plan], json!({})).await;
    assert_eq!(world.job("item", "one").await["phase"], "Succeeded");
    let mut left = Vec::new();
    for name in ["left", "theirs"] {
        left.push(world.config_maps().get_opt(name).await.unwrap().is_some());
    }
    assert_eq!(left, [false, true]);
}

/// Two operators, whose host clusters have namespaces and items of one name, deploy to one cluster.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_137_what_an_item_of_another_host_has_written_stays() {
    let (theirs, ours) = (Items::new().await, Items::new().await);
    let spec =
        json!({"type": "landscaper.gardener.cloud/kubernetes-cluster", "config": {"kubeconfig": ours.kubeconfig()}});
    theirs.target("shared", spec).await;
    theirs.create("item", &[proposal("x", json!({}))], json!({"target": {"name": "shared"}})).await;
    assert_eq!(theirs.job("item", "one").await["phase"], "Succeeded");
    let marks = async || ours.config_maps().get("x").await.unwrap().metadata.annotations.unwrap();
    let uid = theirs.items().get("item").await.unwrap().metadata.uid.unwrap();
    assert_eq!(marks().await["orangery.dev/owner"], format!("default/item/{uid}"));
    assert!(marks().await["orangery.dev/owner-cluster"].ends_with(&format!("/{uid}")));
    let removal = json!({"name": "all", "gate": "gone", "removals": [{"key": key("x")}]});
    ours.create("item", &[json!({"stages": [removal], "next": {"finish": {}}})], json!({})).await;
    assert_eq!(ours.job("item", "one").await["phase"], "Succeeded");
    assert_eq!(ours.value("x").await.as_deref(), Some("v"), "for this host the item of that uid is gone");
    event_says(&ours, "ObjectsStay", "it belongs to DeployItem default/item of another host").await;
    // The other one goes on with what is its own, as an earlier build of it has marked it.
    ours.patch_config_map("x", json!({"metadata": {"annotations": {"orangery.dev/owner-cluster": null}}})).await;
    assert_eq!(theirs.job("item", "two").await["phase"], "Succeeded");
    assert!(marks().await.contains_key("orangery.dev/owner-cluster"), "it is written with the next job");
    theirs.delete("item").await;
    theirs.trigger("item", "three").await;
    theirs.gone("item").await;
    assert_eq!(ours.value("x").await, None);
}
