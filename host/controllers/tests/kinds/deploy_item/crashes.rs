//! The operator is killed after each write of one item's jobs, whose proposals wait, remove, are gone on with by another call
//! and end with objects of the job alone: every job comes to the same end, and waits for nothing that it has deleted itself.

use std::sync::Arc;

use orangery_cluster::ClusterPool;
use orangery_controllers::deploy_item::DeployItemController;
use orangery_reconcile::{Controller as _, Crash, Queue};
use serde_json::{Value, json};

use super::items::{Items, gate, key, proposal};

/// A stage that writes a config map and waits for its value.
fn stage(name: &str, owned: &str) -> Value {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"},
        "data": {"k": "v"}});
    json!({"name": name, "gate": gate(name, "v"), "writes": [{"object": object, "how": "replace", "owned": owned}]})
}

/// A stage that removes a config map.
fn removal(name: &str) -> Value {
    json!({"name": format!("without-{name}"), "gate": "accepted", "removals": [{"key": key(name)}]})
}

/// Two proposals of one job: with a hook that ends with the job, one that the second call removes, and one that is removed
/// after the exports.
fn install() -> [Value; 2] {
    let export = json!({"key": "e", "source": {"value": 1}});
    let afterwards = [removal("tested"), stage("post", "ephemeral")];
    let finish = json!({"exports": [export], "afterwards": afterwards});
    [
        json!({"stages": [stage("pre", "ephemeral"), stage("old", "managed"), stage("a", "managed")],
            "next": {"continueWith": [1]}}),
        json!({"stages": [removal("old"), stage("b", "managed"), stage("tested", "managed")], "next": {"finish": finish}}),
    ]
}

/// The next job: `a` is pruned.
fn upgrade() -> [Value; 1] {
    [json!({"stages": [stage("pre", "ephemeral"), stage("b", "managed")], "next": {"finish": {}}})]
}

/// Before the uninstall: two hooks, one after the other, that are deleted with the rest.
fn uninstall() -> [Value; 1] {
    [json!({"stages": [stage("last", "managed"), stage("very-last", "managed")], "next": {"finish": {}}})]
}

async fn maps(world: &Items) -> Vec<String> {
    let maps = world.config_maps().list(&Default::default()).await.unwrap();
    let names = maps.items.into_iter().filter_map(|map| map.metadata.name);
    names.filter(|name| name != "kube-root-ca.crt").collect()
}

/// Waits for the end of a job that is cut off after so many writes, beginning anew where it is; whether it was not.
async fn through(
    world: &mut Items,
    writes: usize,
    begin: impl AsyncFn(&Items),
    end: impl AsyncFn(&Items) -> bool,
) -> bool {
    world.cut_after(writes);
    begin(world).await;
    let seen = async || if end(world).await { Some(true) } else { world.is_cut().then_some(false) };
    let is_through = world.in_time(seen).await.expect("neither the end nor the cut");
    if !is_through {
        world.restart();
        let ended = world.in_time(async || end(world).await.then_some(())).await;
        assert!(ended.is_some(), "killed after write {writes}: {:#?}", world.list("DeployItem").await);
    }
    world.cut_after(usize::MAX);
    is_through
}

async fn has_ended(world: &Items, name: &str, job: &str) -> bool {
    let item = world.find("DeployItem", name).await.unwrap();
    item["status"]["jobIDFinished"] == job && item["status"]["phase"] == "Succeeded"
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_157_a_crash_ends_no_job_that_has_ended_meanwhile() {
    let world = Items::new().await;
    world.create("item", &[proposal("a", json!({}))], json!({})).await;
    let status = world.job("item", "one").await;
    let host = world.host.clone().unwrap();
    let controller = DeployItemController::new(host, Arc::new(ClusterPool::new(|_| {})), Queue::default());
    // As it was when the call began that has crashed: its time is up.
    let mut called = world.items().get("item").await.unwrap();
    let before = called.status.as_mut().unwrap();
    before.job_id_finished = "none".into();
    let begun = before.transition_times.as_mut().unwrap();
    begun.init_time.as_mut().unwrap().0 -= jiff::SignedDuration::from_hours(1);
    controller.tell_of_crashes(Arc::new(called), Crash::Panicked).await;
    assert_eq!(json!(world.items().get("item").await.unwrap().status), status);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn inv_6_killed_after_any_write_of_an_item_each_job_ends_and_waits_for_nothing_that_it_deleted() {
    let mut world = Items::new().await;
    let mut longest = [0; 3];
    for writes in 0.. {
        let name = &format!("item-{writes}");
        let spec = json!({"config": {"uninstalls": uninstall()}});
        world.create(name, &install(), spec).await;
        let first = async |world: &Items| world.trigger(name, "one").await;
        let installed = through(&mut world, writes, first, async |world| has_ended(world, name, "one").await).await;
        assert_eq!(maps(&world).await, ["a", "b"], "installed, killed after write {writes}");

        world.patch(name, json!({"spec": {"config": {"proposals": upgrade()}}})).await;
        let second = async |world: &Items| world.trigger(name, "two").await;
        let upgraded = through(&mut world, writes, second, async |world| has_ended(world, name, "two").await).await;
        assert_eq!(maps(&world).await, ["b"], "upgraded, killed after write {writes}");

        let delete = async |world: &Items| {
            world.delete(name).await;
            world.trigger(name, "three").await;
        };
        let is_gone = async |world: &Items| world.find("DeployItem", name).await.is_none();
        let deleted = through(&mut world, writes, delete, is_gone).await;
        assert_eq!(maps(&world).await, [""; 0], "deleted, killed after write {writes}");

        let all = [installed, upgraded, deleted];
        longest.iter_mut().zip(all).for_each(|(longest, through)| *longest += usize::from(!through));
        if all == [true; 3] {
            break;
        }
    }
    assert!(longest[0] > 8 && longest[1] > 3 && longest[2] > 4, "jobs have only {longest:?} writes");
}
