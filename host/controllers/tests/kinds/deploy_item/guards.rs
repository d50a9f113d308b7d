//! What a deploy item uses stays until it is gone: its Target, the Secret behind that, its Context.

use serde_json::{Value, json};

use super::items::{Items, proposal};
use crate::{
    objects::object,
    world::{Setup, is_deleting},
};

const GUARD: &str = "orangery.dev/in-use";
const CLUSTER: &str = "landscaper.gardener.cloud/kubernetes-cluster";
/// What an item uses, by kind and name.
const USED: [(&str, &str); 3] = [("Target", "garden"), ("Secret", "kubeconfig"), ("Context", "private")];

async fn guarded() -> Items {
    let world = Items::with(Setup { guards: true, ..Setup::default() }).await;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "kubeconfig"},
        "stringData": {"kubeconfig": world.kubeconfig()}});
    world.apply(&secret).await;
    world.apply(&object("Target", "garden", &json!({"type": CLUSTER, "secretRef": {"name": "kubeconfig"}}))).await;
    world.apply(&object("Context", "private", &json!({}))).await;
    world
}

fn uses() -> Value {
    json!({"target": {"name": "garden", "namespace": "default"}, "context": "private"})
}

fn is_guarded(object: &Value) -> bool {
    object["metadata"]["finalizers"].as_array().is_some_and(|finalizers| finalizers.contains(&json!(GUARD)))
}

/// Which of what is used is guarded.
async fn guards(world: &Items) -> [bool; 3] {
    let mut guards = [false; 3];
    for (guard, (kind, name)) in guards.iter_mut().zip(USED) {
        *guard = world.find(kind, name).await.is_some_and(|object| is_guarded(&object));
    }
    guards
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_67_what_is_used_says_so_when_it_is_deleted_and_not_before() {
    let world = guarded().await;
    world.create("item", &[proposal("a", json!({}))], uses()).await;
    world.job("item", "one").await;
    assert_eq!(guards(&world).await, [true; 3]);
    world.objects().delete("Target", "garden").await;
    let held = "Warning InUse: is deleted as soon as nothing uses it: DeployItem item; orangery why target/garden names what does";
    world.objects().has_events("Target", "garden", &[held]).await;
    for (kind, name) in [("Secret", "kubeconfig"), ("Context", "private")] {
        world.objects().has_events(kind, name, &[]).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn orc_36_to_38_orc_41_what_an_item_uses_is_guarded_from_its_first_write_until_the_item_is_gone() {
    let world = guarded().await;
    world.create("item", &[proposal("a", json!({}))], uses()).await;
    world.create("other", &[proposal("b", json!({}))], json!({})).await;
    world.job("other", "one").await;
    assert_eq!(guards(&world).await, [false; 3], "that it is named is no use");
    world.job("item", "one").await;
    assert_eq!(guards(&world).await, [true; 3]);
    for (kind, name) in USED {
        world.objects().delete(kind, name).await;
        assert!(is_deleting(&world.find(kind, name).await.unwrap()), "{kind} is held");
    }
    world.delete("item").await;
    world.trigger("item", "two").await;
    world.gone("item").await;
    for (kind, name) in USED {
        world.objects().gone(kind, name).await;
    }
    assert_eq!(world.value("a").await, None, "it could be uninstalled");
}

/// A component reads the target to plan: so the last moment is right before it is asked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_220_orc_41_what_an_item_uses_is_guarded_before_its_component_is_asked_and_not_before_its_job() {
    let world = guarded().await;
    world.create("item", &[json!({"closed": proposal("a", json!({}))})], uses()).await;
    world.create("other", &[proposal("b", json!({}))], json!({})).await;
    world.job("other", "one").await;
    assert_eq!((guards(&world).await, world.calls()), ([false; 3], 1), "the item waits for its job");
    world.delay_write("/targets/garden");
    world.trigger("item", "one").await;
    world.held().await;
    assert_eq!(world.calls(), 1, "the component is not asked while its guard is on its way");
    world.let_pass();
    world.waiting("item", "plugin scripted: closed").await;
    assert_eq!(guards(&world).await, [true; 3]);
    assert_eq!(world.value("a").await, None, "and nothing is written yet");
    world.plugin.open();
    world.finished("item", "one").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_220_orc_42_what_an_item_uses_whose_component_failed_to_plan_goes_by_deletes_alone() {
    let world = guarded().await;
    world.create("item", &[], uses()).await;
    let failed = world.job("item", "one").await;
    assert_eq!((&failed["phase"], world.calls()), (&json!("Failed"), 1), "{failed:#}");
    assert_eq!(guards(&world).await, [true; 3]);
    for (kind, name) in USED {
        world.objects().delete(kind, name).await;
    }
    world.delete("item").await;
    world.trigger("item", "two").await;
    world.gone("item").await;
    for (kind, name) in USED {
        world.objects().gone(kind, name).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn orc_39_an_item_that_may_lose_its_cluster_does_not_hold_its_target() {
    let world = guarded().await;
    let mut spec = uses();
    spec["onDelete"] = json!({"skipUninstallIfClusterRemoved": true});
    world.create("item", &[proposal("a", json!({}))], spec).await;
    world.job("item", "one").await;
    assert_eq!(guards(&world).await, [false, false, true]);
    world.objects().delete("Target", "garden").await;
    world.objects().gone("Target", "garden").await;
    world.delete("item").await;
    world.trigger("item", "two").await;
    world.gone("item").await;
    assert_eq!(world.value("a").await.as_deref(), Some("v"), "what was deployed is left where it was");
    let note = "Target default/garden does not exist any more, so its cluster counts as removed \
                (onDelete.skipUninstallIfClusterRemoved): nothing was uninstalled, what DeployItem item had deployed was \
                left where it was";
    let event = format!("Warning UninstallSkipped: {note}");
    world.has_events("DeployItem", "item", &[event.as_str()]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn orc_37_of_two_items_the_last_one_lets_go() {
    let world = guarded().await;
    for name in ["first", "second"] {
        world.create(name, &[proposal(name, json!({}))], uses()).await;
        world.job(name, "one").await;
    }
    for (kind, name) in USED {
        world.objects().delete(kind, name).await;
    }
    world.delete("first").await;
    world.trigger("first", "two").await;
    world.gone("first").await;
    world.create("probe", &[proposal("probe", json!({}))], json!({})).await;
    world.job("probe", "probe").await;
    assert_eq!(guards(&world).await, [true; 3]);
    world.delete("second").await;
    world.trigger("second", "two").await;
    world.gone("second").await;
    for (kind, name) in USED {
        world.objects().gone(kind, name).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_109_a_guard_that_is_being_taken_away_stays_where_a_user_has_come_meanwhile() {
    let world = guarded().await;
    world.create("first", &[proposal("a", json!({}))], uses()).await;
    world.job("first", "one").await;
    world.objects().delete("Target", "garden").await;
    // The guard controller has found no user of the Target, and what it writes is on its way.
    world.objects().delay_write("/targets/garden");
    world.delete("first").await;
    world.trigger("first", "two").await;
    world.gone("first").await;
    world.objects().held().await;
    world.create("second", &[proposal("b", json!({}))], uses()).await;
    assert_eq!(world.job("second", "one").await["phase"], "Succeeded");
    // A conflict has it look at the Target again.
    let reads = || world.asked_about("/targets/garden").iter().filter(|asked| asked.method == "GET").count();
    let (before, mut job) = (reads(), 0);
    world.create("probe", &[proposal("probe", json!({}))], json!({})).await;
    world.objects().let_pass();
    while world.find("Target", "garden").await.is_some() && reads() == before {
        world.job("probe", &format!("probe-{job}")).await;
        job += 1;
    }
    let held = world.find("Target", "garden").await.expect("the Target of an item that is deployed");
    assert!(is_guarded(&held) && is_deleting(&held), "{held:#}");
    world.delete("second").await;
    world.trigger("second", "two").await;
    world.gone("second").await;
    world.objects().gone("Target", "garden").await;
    assert_eq!(world.value("b").await, None, "it could be uninstalled");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_109_what_has_lost_its_guard_and_is_being_deleted_is_not_used_any_more() {
    let world = guarded().await;
    world.create("first", &[proposal("a", json!({}))], uses()).await;
    world.job("first", "one").await;
    world.objects().patch("Target", "garden", &json!({"metadata": {"finalizers": [GUARD, "example.org/hold"]}})).await;
    world.objects().delete("Target", "garden").await;
    world.delete("first").await;
    world.trigger("first", "two").await;
    world.gone("first").await;
    world.objects().sees_no_guard("garden").await;
    world.create("second", &[proposal("b", json!({}))], uses()).await;
    let status = world.job("second", "one").await;
    let message = "Target default/garden is being deleted, and nothing keeps it any more; make it anew once it is gone, or name \
        another one";
    assert_eq!((&status["phase"], &status["lastError"]["message"]), (&json!("Failed"), &json!(message)));
    assert_eq!(world.value("b").await, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn orc_40_a_guard_that_was_taken_away_by_hand_comes_back_with_the_next_job() {
    let world = guarded().await;
    world.create("item", &[proposal("a", json!({}))], uses()).await;
    world.job("item", "one").await;
    for (kind, name) in USED {
        world.objects().patch(kind, name, &json!({"metadata": {"finalizers": null, "labels": {(GUARD): null}}})).await;
        world.objects().sees_no_guard(name).await;
    }
    world.job("item", "two").await;
    assert_eq!(guards(&world).await, [true; 3]);
    let labels = world.find("Secret", "kubeconfig").await.unwrap()["metadata"]["labels"].clone();
    assert_eq!(labels, json!({(GUARD): "true"}), "by which the guards of Secrets are watched");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn orc_35_orc_37_guards_that_are_given_up_go_and_keep_nobody() {
    let mut world = guarded().await;
    world.create("item", &[proposal("a", json!({}))], uses()).await;
    world.job("item", "one").await;
    world.restart_with(Setup::default());
    for (kind, name) in USED {
        world.objects().delete(kind, name).await;
        world.objects().gone(kind, name).await;
    }
}
