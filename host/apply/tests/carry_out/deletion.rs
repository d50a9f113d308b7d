//! Pruning and deletion: what goes, in which order, and what stays.

use orangery_apply::Outcome;
use orangery_cluster::Observed;
use orangery_core::step::Halt;
use orangery_proposal::deployer::ApiResource;
use serde_json::{Value, json};

use crate::world::{LABEL, World, config_map, proposal, stage, write};

fn path(name: &str) -> String {
    format!("/api/v1/namespaces/default/configmaps/{name}")
}

fn group(names: &[&str], force: bool) -> Value {
    json!({"what": [{"managed": {"apiVersion": "v1", "kind": "ConfigMap", "names": names}}], "force": force})
}

async fn names(world: &World) -> Vec<String> {
    world.config_maps().await.into_keys().collect()
}

#[tokio::test]
async fn what_left_the_plan_is_pruned_and_what_is_kept_stays() {
    let mut world = World::new().await;
    let kept = json!({"object": config_map("kept", "1"), "how": "replace", "owned": "kept"});
    world.run("j", &proposal(json!({"stages": [stage(&[write("a", "1"), write("b", "1"), kept])]}))).await;
    world.run("k", &proposal(json!({"stages": [stage(&[write("a", "1")])]}))).await;
    assert_eq!(names(&world).await, ["a", "kept"]);
    assert_eq!(world.inventory(), ["a"]);
}

#[tokio::test]
async fn an_object_that_a_failed_job_planned_is_not_forgotten() {
    let mut world = World::new().await;
    world.run("j", &proposal(json!({"stages": [stage(&[write("a", "1")])]}))).await;
    let lost = json!({"object": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "bad", "namespace": "absent"}}, "how": "replace"});
    let partial = world.reconcile("k", &proposal(json!({"stages": [stage(&[write("new", "1"), lost])]}))).await;
    let Err(Halt::Retry(failure)) = partial else { panic!("{partial:?}") };
    assert!(failure.message.contains("namespaces \"absent\" not found"), "{failure}");
    assert_eq!(world.inventory(), ["bad", "a", "new"]);
    assert_eq!(world.run("l", &proposal(json!({"stages": [stage(&[write("new", "1")])]}))).await, Outcome::Finished);
    assert_eq!(names(&world).await, ["new"]);
    assert_eq!(world.inventory(), ["new"]);
}

#[tokio::test]
async fn pruning_waits_for_a_group_before_it_begins_the_next() {
    let mut world = World::new().await;
    world.run("j", &proposal(json!({"stages": [stage(&[write("a", "1"), write("b", "1"), write("c", "1")])]}))).await;
    world.send("PATCH", &path("b"), &json!({"metadata": {"finalizers": ["example.org/hold"]}})).await;
    let empty = proposal(json!({"pruningOrder": [group(&["b"], false), group(&["a"], false)]}));
    let Err(Halt::Wait(wait)) = world.reconcile("k", &empty).await else { panic!() };
    assert_eq!(wait.to_string(), "waiting for ConfigMap default/b to be gone");
    assert_eq!(names(&world).await, ["a", "b", "c"], "the second group has not begun");
    world.send("PATCH", &path("b"), &json!({"metadata": {"finalizers": null}})).await;
    assert_eq!(world.run("k", &empty).await, Outcome::Finished);
    assert_eq!(names(&world).await, ["c"], "what is in no group stays");
}

#[tokio::test]
async fn force_removes_the_finalizers_of_others() {
    let mut world = World::new().await;
    let plan = proposal(json!({"stages": [stage(&[write("a", "1")])], "deletionOrder": [group(&["a"], true)]}));
    world.run("j", &plan).await;
    world.send("PATCH", &path("a"), &json!({"metadata": {"finalizers": ["example.org/hold"]}})).await;
    world.delete().await;
    assert_eq!((names(&world).await.len(), world.inventory().len()), (0, 0));
}

#[tokio::test]
async fn c_28_deletion_needs_nothing_but_the_inventory() {
    let mut world = World::new().await;
    let namespace =
        json!({"object": {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}, "how": "replace"});
    world.run("j", &proposal(json!({"stages": [stage(&[write("a", "1"), namespace])]}))).await;
    world.restart();
    world.traffic.take();
    world.delete().await;
    let deletions: Vec<String> = world.traffic.take().into_iter().filter(|line| line.starts_with("DELETE")).collect();
    assert_eq!(deletions, ["DELETE configmaps/a", "DELETE namespaces/n"]);
}

#[tokio::test]
async fn an_object_is_changed_as_wanted_before_it_goes() {
    let mut world = World::new().await;
    let last = json!({"object": config_map("a", "1"), "how": "replace", "beforeDeletion": {"data": {"k": "bye"}}});
    world.run("j", &proposal(json!({"stages": [stage(&[last])]}))).await;
    world.send("PATCH", &path("a"), &json!({"metadata": {"finalizers": ["example.org/hold"]}})).await;
    assert!(matches!(world.look_at_deletion().await, Err(Halt::Wait(_))));
    let lines: Vec<String> = world.traffic.take().into_iter().take(3).collect();
    assert_eq!(lines, ["GET configmaps/a", "PUT configmaps/a", "DELETE configmaps/a"]);
    assert_eq!(world.config_maps().await["a"], json!({"k": "bye"}));
}

#[tokio::test]
async fn a_fallback_object_that_somebody_took_over_is_left_to_him() {
    let mut world = World::new().await;
    let fallback = json!({"object": config_map("a", "1"), "how": "replace", "owned": "fallback"});
    world.run("j", &proposal(json!({"stages": [stage(&[fallback])]}))).await;
    world.send("PATCH", &path("a"), &json!({"metadata": {"labels": {LABEL: "other"}}})).await;
    world.delete().await;
    assert_eq!(names(&world).await, ["a"]);
    assert_eq!(world.inventory().len(), 0);
}

#[tokio::test]
async fn a_group_may_take_in_what_nobody_manages() {
    let mut world = World::new().await;
    world.send("POST", "/api/v1/namespaces/default/configmaps", &config_map("foreign", "1")).await;
    let order = json!([{"what": [{"matching": {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "names": ["foreign", "a"]}}]}]);
    world.run("j", &proposal(json!({"stages": [stage(&[write("a", "1")])], "deletionOrder": order}))).await;
    world.delete().await;
    assert!(names(&world).await.is_empty());
}

#[tokio::test]
async fn objects_whose_kind_is_not_served_any_more_are_gone() {
    let mut world = World::new().await;
    let state = &mut world.status.state;
    state.inventory = orangery_proposal::inventory::Inventory::read(Some(&json!([
        {"policy": "manage", "resource": {"apiVersion": "gone.example/v1", "kind": "Gone", "name": "x", "namespace": "default"}}
    ])))
    .unwrap();
    world.delete().await;
    assert_eq!(world.inventory().len(), 0);
}

#[tokio::test]
async fn c_199_what_a_server_only_creates_is_left_and_told() {
    let mut world = World::new().await;
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "LocalSubjectAccessReview",
        "metadata": {"name": "x", "namespace": "default"},
    });
    let plan = proposal(json!({"stages": [stage(&[write("a", "1"), json!({"object": review, "how": "replace"})])]}));
    for job in ["j", "k"] {
        assert_eq!(world.run(job, &plan).await, Outcome::Finished);
    }
    assert_eq!(world.inventory(), ["a", "x"]);
    world.delete().await;
    assert_eq!((names(&world).await.len(), world.inventory().len()), (0, 0));
    let why = "LocalSubjectAccessReview default/x of the target cluster stays: the API server does not read or delete objects of its kind, \
               so nothing of it can be taken away";
    assert_eq!(world.status.state.notes, [why]);
}

/// One of two large objects is read while the other one is being changed: there is room for one.
#[tokio::test]
async fn c_201_an_object_that_is_worked_with_holds_its_memory() {
    let mut world = World::new().await;
    let text = "x".repeat(300 << 10);
    let last = json!({"object": config_map("a", &text), "how": "replace", "beforeDeletion": {"data": {"k": "bye"}}});
    world.run("j", &proposal(json!({"stages": [stage(&[last, write("b", &text)])]}))).await;
    world.restart_with(1_500 << 10);
    world.traffic.send_after("GET configmaps/b", "asked PUT configmaps/a");
    world.traffic.send_after("PUT configmaps/a", "read GET configmaps/b");
    let Err(Halt::Retry(failure)) = world.look_at_deletion().await else { panic!("both were read") };
    let limit = "its answer takes more than the 768000 bytes of memory, shared with other namespaces, that are allowed";
    assert!(failure.message.contains(limit), "{failure}");
    assert_eq!(names(&world).await, ["b"]);
    world.delete().await;
    assert_eq!((names(&world).await.len(), world.inventory().len()), (0, 0));
}

#[tokio::test]
async fn objects_that_others_have_deleted_are_gone_and_nothing_is_asked_of_them() {
    let mut world = World::new().await;
    let last = json!({"object": config_map("a", "1"), "how": "replace", "beforeDeletion": {"data": {"k": "bye"}}});
    world.run("j", &proposal(json!({"stages": [stage(&[last, write("b", "1")])]}))).await;
    for name in ["a", "b"] {
        world.send("DELETE", &path(name), &json!({})).await;
    }
    world.delete().await;
    let lines = world.traffic.take();
    assert_eq!(lines, ["GET configmaps/a", "GET configmaps/b"]);
    assert_eq!(world.inventory().len(), 0);
}

/// The watch that lives has not heard of it when the deletion begins.
#[tokio::test]
async fn c_213_an_object_of_a_write_that_was_never_answered_is_asked_for_at_the_server() {
    for is_answered in [true, false] {
        let mut world = World::new().await;
        world.run("j", &proposal(json!({"stages": [stage(&[write("x", "1")])]}))).await;
        let (inventory, clusters) = (world.status.state.inventory.clone(), world.status.state.clusters.clone());
        let first = world.get(&path("x")).await.unwrap();
        world.send("PATCH", &path("x"), &json!({"metadata": {"finalizers": ["example.org/hold"]}})).await;
        assert!(matches!(world.look_at_deletion().await, Err(Halt::Wait(_))), "it waits, and the watch lives");
        world.send("PATCH", &path("x"), &json!({"metadata": {"finalizers": null}})).await;
        let maps = ApiResource {
            api_version: "v1".into(),
            kind: "ConfigMap".into(),
            plural: "configmaps".to_owned(),
            namespaced: true,
        };
        world.until_observed(&maps, "x", |observed| matches!(observed, Observed::Gone(_))).await;

        (world.status.state.inventory, world.status.state.clusters) = (inventory, clusters);
        if !is_answered {
            world.status.state.inventory.0.values_mut().for_each(|entry| entry.uid = None);
        }
        world.traffic.take();
        world.traffic.send_after("POST default/configmaps", "asked GET configmaps/x");
        world.traffic.send_after("GET configmaps/x", "read POST default/configmaps");
        let metadata = json!({"name": "x", "namespace": "default", "annotations": first["metadata"]["annotations"],
            "labels": first["metadata"]["labels"]});
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}).to_string();
        let late = axum::http::Request::post("/api/v1/namespaces/default/configmaps");
        let late = late.header("content-type", "application/json").body(object.into_bytes()).unwrap();
        let client = world.client.clone();
        if is_answered {
            world.delete().await;
            assert_eq!(world.traffic.take(), Vec::<String>::new(), "the watch is believed");
        } else {
            let ((), made) = tokio::join!(world.delete(), client.request::<Value>(late));
            assert_eq!(made.unwrap()["metadata"]["name"], "x");
            let mut asked = world.traffic.take();
            asked.sort();
            assert_eq!(asked, ["DELETE configmaps/x", "GET configmaps/x", "POST default/configmaps"]);
        }
        assert_eq!((names(&world).await.len(), world.inventory().len()), (0, 0), "{is_answered}");
    }
}

#[tokio::test]
async fn what_is_as_wanted_before_it_goes_is_not_written() {
    let mut world = World::new().await;
    let last = json!({"object": config_map("a", "1"), "how": "replace", "beforeDeletion": {"data": {"k": "1"}}});
    world.run("j", &proposal(json!({"stages": [stage(&[last])]}))).await;
    world.traffic.take();
    world.delete().await;
    assert_eq!(world.traffic.take(), ["GET configmaps/a", "DELETE configmaps/a"]);
}

#[tokio::test]
async fn c_24_a_superseded_deletion_deletes_nothing() {
    let mut world = World::new().await;
    world.run("j", &proposal(json!({"stages": [stage(&[write("a", "1")])]}))).await;
    world.is_current.store(false, std::sync::atomic::Ordering::SeqCst);
    let result = world.look_at_deletion().await;
    assert!(matches!(&result, Err(Halt::Retry(failure)) if failure.reason == "Superseded"), "{result:?}");
    assert_eq!((names(&world).await, world.inventory()), (vec!["a".to_owned()], vec!["a".to_owned()]));
}

#[tokio::test]
async fn an_item_without_an_inventory_asks_no_cluster_when_it_is_deleted() {
    let mut world = World::new().await;
    world.delete().await;
    assert_eq!(world.traffic.take(), [""; 0]);
}
