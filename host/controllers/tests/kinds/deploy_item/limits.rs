//! The limit of the host on items that are under way at once, and timeouts that cannot be read.

use std::{
    num::NonZeroU32,
    time::{Duration, Instant},
};

use kube::{ResourceExt as _, api::ListParams, runtime::wait::await_condition};
use orangery_api::{deploy_item::DeployItem, job::Job};
use orangery_controllers::CacheMemory;
use serde_json::json;
use tokio::time::timeout;

use super::items::{Items, gated_on, proposal};
use crate::world::Setup;

const QUEUED: &str = "waiting for Host maxParallel=1 to have room";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wf_15_an_item_that_waits_for_the_host_says_so_and_begins_when_another_ends() {
    let world = Items::limited(NonZeroU32::MIN).await;
    world.create("first", &[gated_on("first", "ready")], json!({})).await;
    world.create("second", &[proposal("second", json!({}))], json!({})).await;
    world.trigger("first", "one").await;
    world.waiting("first", "to become ready").await;
    world.trigger("second", "one").await;
    world.waiting("second", QUEUED).await;
    let queued = world.items().get("second").await.unwrap();
    let begun = queued.status.as_ref().and_then(|status| status.last_reconcile_time.as_ref());
    assert_eq!((queued.phase(), begun), ("", None), "its job has not begun");
    assert_eq!((world.calls(), world.value("second").await), (1, None));
    world.patch_config_map("first", json!({"data": {"k": "ready"}})).await;
    for name in ["first", "second"] {
        assert_eq!(world.finished(name, "one").await["phase"], json!("Succeeded"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wf_15_an_item_that_waits_keeps_the_phase_and_the_error_of_its_last_job() {
    let world = Items::limited(NonZeroU32::MIN).await;
    world.create("second", &[], json!({})).await;
    let failed = world.job("second", "one").await;
    world.create("first", &[gated_on("first", "ready")], json!({})).await;
    world.trigger("first", "one").await;
    world.waiting("first", "to become ready").await;
    world.trigger("second", "two").await;
    world.waiting("second", QUEUED).await;
    let status = json!(world.items().get("second").await.unwrap().status);
    assert_eq!((&status["phase"], &status["lastError"]), (&json!("Failed"), &failed["lastError"]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wf_15_an_item_that_had_begun_goes_on_after_a_restart_before_those_that_wait() {
    let mut world = Items::limited(NonZeroU32::MIN).await;
    world.create("first", &[gated_on("first", "ready")], json!({})).await;
    world.create("second", &[proposal("second", json!({}))], json!({})).await;
    world.trigger("first", "one").await;
    world.waiting("first", "to become ready").await;
    world.trigger("second", "one").await;
    world.waiting("second", QUEUED).await;
    world.restart();
    world.patch_config_map("first", json!({"data": {"k": "ready"}})).await;
    for name in ["first", "second"] {
        assert_eq!(world.finished(name, "one").await["phase"], json!("Succeeded"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wf_15_an_item_that_is_interrupted_while_it_waits_gives_its_turn_away() {
    let world = Items::limited(NonZeroU32::MIN).await;
    world.create("first", &[gated_on("first", "ready")], json!({})).await;
    world.trigger("first", "one").await;
    world.waiting("first", "to become ready").await;
    for name in ["second", "third"] {
        world.create(name, &[proposal(name, json!({}))], json!({})).await;
        world.trigger(name, "one").await;
        world.waiting(name, QUEUED).await;
    }
    world.interrupt("second", "one").await;
    world.patch_config_map("first", json!({"data": {"k": "ready"}})).await;
    assert_eq!(world.finished("third", "one").await["phase"], json!("Succeeded"));
    assert_eq!(world.value("second").await, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_08_a_timeout_that_cannot_be_read_fails_the_item_before_its_component_is_asked() {
    let world = Items::new().await;
    world.create("item", &[proposal("a", json!({}))], json!({"timeout": "soon"})).await;
    let status = world.job("item", "one").await;
    assert_eq!((&status["phase"], &status["lastError"]["reason"]), (&json!("Failed"), &json!("InvalidTimeout")));
    let message = status["lastError"]["message"].as_str().unwrap();
    assert!(message.starts_with("spec.timeout of DeployItem item: "), "{message}");
    assert_eq!((world.calls(), world.value("a").await), (0, None));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_08_a_component_that_recovers_has_as_much_time_again_and_no_more() {
    let mut world = Items::new().await;
    let mut first = gated_on("a", "ready");
    first["recover"] = json!([1]);
    world.create("item", &[first, gated_on("b", "ready")], json!({"timeout": "1h"})).await;
    world.trigger("item", "one").await;
    world.waiting("item", "ConfigMap default/a").await;
    world.restart_after(3_700);
    world.waiting("item", "ConfigMap default/b").await;
    let failed: Vec<Option<String>> = {
        let calls = world.plugin.calls.lock().unwrap();
        calls.iter().map(|item| item.failed.as_ref().map(|failed| failed.stage.clone())).collect()
    };
    assert_eq!(failed, [None, Some("all".to_owned())]);
    world.restart_after(3_700);
    let status = world.finished("item", "one").await;
    let message = status["lastError"]["message"].as_str().unwrap();
    assert!(
        message.starts_with("the item did not finish within its timeout of 60m; waiting for ConfigMap default/b"),
        "{message}"
    );
    assert_eq!(world.calls(), 2);
}

/// What items that wait keep beside the store, which has the items themselves: proposals, and what is watched of the cluster, where
/// all that they have written has no room.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_64_c_310_limits_proposals_what_items_of_a_megabyte_keep_while_they_wait_does_not_grow_with_their_number() {
    const FEW: usize = 5;
    const ROOM: u64 = 4 << 20;
    const OBJECTS: u64 = 32 << 20;
    let memory = CacheMemory { proposals: ROOM, objects: OBJECTS, ..CacheMemory::default() };
    let world = Items::with(Setup { memory, ..Setup::default() }).await;
    let mut kept = Vec::new();
    for items in [0..FEW, FEW..4 * FEW] {
        for number in items.clone() {
            let (name, text) = (format!("item-{number}"), "x".repeat(900 << 10));
            let mut whole = gated_on(&name, "ready");
            let large = proposal(&format!("large-{number}"), json!({}))["stages"][0]["writes"][0].clone();
            whole["stages"][0]["writes"].as_array_mut().unwrap().push(large);
            whole["stages"][0]["writes"][1]["object"]["data"]["k"] = json!(text);
            world.create(&name, &[whole], json!({})).await;
            world.trigger(&name, "one").await;
        }
        for number in items {
            world.waiting(&format!("item-{number}"), "to become ready").await;
        }
        kept.push(world.kept_in_memory());
    }
    assert!(kept.iter().all(|(proposals, _)| (ROOM / 2..=ROOM).contains(proposals)), "{kept:?}");
    assert!(kept.iter().all(|(_, objects)| *objects <= OBJECTS / 2), "that of one namespace: {kept:?}");
    // They go on with what lies in their Secrets. Before, one that had no room was asked again (C-325).
    let calls = world.calls();
    for number in [0, 4 * FEW - 1] {
        let name = format!("item-{number}");
        world.patch_config_map(&name, json!({"data": {"k": "ready"}})).await;
        assert_eq!(world.finished(&name, "one").await["phase"], "Succeeded");
    }
    assert_eq!(world.calls(), calls, "no component is asked again");
}

/// How long so many objects may take on a busy machine, with nothing optimised.
const LONG: Duration = Duration::from_secs(560);

/// The objects of an item with the most that it may have.
const MOST_OBJECTS: u64 = 20_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_94_limits_proposal_an_item_of_twenty_thousand_objects_is_deployed_and_deleted() {
    let world = Items::new().await;
    let many = |count: u64| json!({"many": count, "of": proposal("cm", json!({}))});
    world.create("more", &[many(MOST_OBJECTS + 1)], json!({})).await;
    let refused = world.job("more", "one").await;
    let message = refused["lastError"]["message"].as_str().unwrap();
    assert!(message.contains("20001") && message.contains("20000"), "{message}");

    world.create("item", &[many(MOST_OBJECTS)], json!({"timeout": "none"})).await;
    let begun = Instant::now();
    world.trigger("item", "one").await;
    let ended = |item: Option<&DeployItem>| item.is_some_and(|item| item.finished_job(&"one".into()));
    let ended = timeout(LONG, await_condition(world.items(), "item", ended)).await.expect("in time").unwrap();
    let deployed = begun.elapsed();
    let status = json!(ended.unwrap().status);
    assert_eq!(status["phase"], "Succeeded", "{}", status["lastError"]);
    let named = status["providerStatus"]["orangery"]["large"]["secrets"].clone();
    let named: Vec<String> = serde_json::from_value(named).unwrap();
    let stored = world.secrets().await.into_iter().filter(|secret| named.contains(&secret.name_any()));
    let sizes: Vec<usize> = stored.map(|secret| json!(secret).to_string().len()).collect();
    let largest = sizes.iter().copied().chain([status.to_string().len()]).max().unwrap();
    assert!(sizes.len() == named.len() && largest <= 1_000_000, "the status and Secrets of {sizes:?} bytes of JSON");

    // The deletion goes by what lies in the Secrets.
    let begun = Instant::now();
    world.delete("item").await;
    world.trigger("item", "two").await;
    timeout(LONG, await_condition(world.items(), "item", |item: Option<&DeployItem>| item.is_none()))
        .await
        .expect("in time")
        .unwrap();
    let left = world.config_maps().list(&ListParams::default().limit(1)).await.unwrap();
    let named = left.items.into_iter().filter(|map| map.name_any().starts_with("cm-")).count();
    assert_eq!(named, 0);
    println!(
        "{MOST_OBJECTS} objects deployed in {deployed:?}, deleted in {:?}; the largest object has {largest} bytes, Secrets of the \
         state {sizes:?}",
        begun.elapsed()
    );
}
