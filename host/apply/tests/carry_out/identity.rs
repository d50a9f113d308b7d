//! What an object is: its group, kind, place and cluster, in whatever version it is named.

use std::collections::BTreeSet;

use orangery_apply::{ClusterIdentity, Outcome, has_stray_namespaces, without_stray_namespaces};
use orangery_core::step::{Halt, Step};
use orangery_proposal::{ClusterRef, Proposal, inventory::Inventory};
use serde_json::{Value, json};

use crate::world::{World, key, proposal, stage, write};

fn autoscaler(version: &str) -> Value {
    json!({"apiVersion": format!("autoscaling/{version}"), "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "a", "namespace": "default"},
        "spec": {"maxReplicas": 2, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}}})
}

fn of(objects: &[Value]) -> Proposal {
    let writes: Vec<Value> = objects.iter().map(|object| json!({"object": object, "how": "replace"})).collect();
    proposal(json!({"stages": [stage(&writes)]}))
}

const AUTOSCALER: &str = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers/a";

#[tokio::test]
async fn c_35_an_object_that_is_written_in_another_version_is_the_same_object() {
    let mut world = World::new().await;
    world.run("j", &of(&[autoscaler("v1")])).await;
    let first = world.get(AUTOSCALER).await.unwrap();
    assert_eq!(world.run("k", &of(&[autoscaler("v2")])).await, Outcome::Finished);
    let second = world.get(AUTOSCALER).await.expect("it is still there");
    assert_eq!(second["metadata"]["uid"], first["metadata"]["uid"]);
    let versions: Vec<String> =
        world.status.state.inventory.0.keys().map(|located| located.key.api_version.to_string()).collect();
    assert_eq!(versions, ["autoscaling/v2"], "one entry, in the version that was written last");
    world.delete().await;
    assert_eq!(world.get(AUTOSCALER).await, None);
}

/// A definition of a kind with two versions, of which those are served.
pub(crate) fn definition(served: [bool; 2]) -> Value {
    let version = |name: &str, served: bool, storage: bool| {
        let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
        json!({"name": name, "served": served, "storage": storage, "schema": schema})
    };
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.org"},
        "spec": {"group": "example.org", "scope": "Namespaced", "names": {"kind": "Thing", "plural": "things"},
            "versions": [version("v1", served[0], false), version("v2", served[1], true)]}})
}

pub(crate) const DEFINITION: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.example.org";
pub(crate) const THING: &str = "/apis/example.org/v2/namespaces/default/things/x";

/// An object of the kind that was written as `v1`, which is not served any more.
pub(crate) async fn unserved(is_known: bool) -> World {
    let mut world = World::new().await;
    world.send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition([true, true])).await;
    let thing =
        json!({"apiVersion": "example.org/v1", "kind": "Thing", "metadata": {"name": "x", "namespace": "default"}});
    world.run("j", &of(&[thing])).await;
    assert!(world.get(THING).await.is_some());
    world.send("PATCH", DEFINITION, &json!({"spec": definition([false, true])["spec"]})).await;
    if !is_known {
        world.restart();
    }
    world
}

#[tokio::test]
async fn c_35_an_object_whose_version_is_not_served_any_more_is_found_in_one_that_is() {
    let mut world = unserved(false).await;
    world.delete().await;
    assert_eq!((world.get(THING).await, world.inventory().len()), (None, 0));
}

#[tokio::test]
async fn c_35_a_version_that_was_served_when_it_was_last_asked_for_is_no_proof_that_an_object_is_gone() {
    let mut world = unserved(true).await;
    world.run("k", &proposal(json!({}))).await;
    assert_eq!((world.get(THING).await, world.inventory().len()), (None, 0), "it is pruned");
}

/// What is switched off for a while is not gone, and a deletion waits for it.
#[tokio::test]
async fn c_191_an_object_whose_kind_is_defined_and_not_served_is_waited_for() {
    let mut world = unserved(true).await;
    world.send("PATCH", DEFINITION, &json!({"spec": definition([false, false])["spec"]})).await;
    world.restart();
    let waiting = "waiting for CustomResourceDefinition things.example.org (it serves no version of Thing x, which may still be \
                   there) to become ready";
    let told = loop {
        match world.look_at_deletion().await {
            Err(Halt::Wait(wait)) if wait.to_string().contains("Definition") => break wait.to_string(),
            // The definitions are not listed yet.
            Err(Halt::Wait(_)) => world.wait().await,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(told, waiting);
    assert_eq!(world.inventory(), ["x"]);
    world.send("PATCH", DEFINITION, &json!({"spec": definition([false, true])["spec"]})).await;
    world.delete().await;
    assert_eq!((world.get(THING).await, world.inventory().len()), (None, 0));
}

/// With the definition all its objects went.
#[tokio::test]
async fn c_191_an_object_of_a_kind_that_has_namespaces_by_now_and_had_none_is_gone() {
    let mut world = World::new().await;
    let mut without = definition([true, true]);
    without["spec"]["scope"] = json!("Cluster");
    const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    world.send("POST", DEFINITIONS, &without).await;
    world.run("j", &of(&[json!({"apiVersion": "example.org/v1", "kind": "Thing", "metadata": {"name": "x"}})])).await;
    world.send("DELETE", DEFINITION, &json!({})).await;
    world.send("POST", DEFINITIONS, &definition([true, true])).await;
    world.restart();
    world.delete().await;
    assert_eq!(world.inventory().len(), 0);
}

fn path(name: &str) -> String {
    format!("/api/v1/namespaces/default/configmaps/{name}")
}

async fn names(world: &World) -> Vec<String> {
    world.config_maps().await.into_keys().collect()
}

#[tokio::test]
async fn c_35_where_the_target_names_another_cluster_nothing_is_deleted_there_and_nothing_is_forgotten() {
    let mut world = World::new().await;
    let both = proposal(json!({"stages": [stage(&[write("x", "1"), write("y", "1")])]}));
    world.run("j", &both).await;
    let first = world.get(&path("y")).await.unwrap();
    world.swap_cluster().await;
    // The same name, even with the mark of the item: it is another object of another cluster.
    copy(&world, &first).await;
    let only = proposal(json!({"stages": [stage(&[write("x", "2")])]}));
    assert_eq!(world.run("k", &only).await, Outcome::Finished);
    assert_eq!((names(&world).await, world.inventory()), (vec!["x".to_owned(), "y".to_owned()], vec!["x".to_owned()]));
    assert_eq!(world.status.state.former.values().map(named).collect::<Vec<_>>(), [["x", "y"]]);
    // Back again, what was left there is known, and what is left in the other cluster as well.
    world.swap_back();
    assert_eq!(names(&world).await, ["x", "y"]);
    assert_eq!(world.run("l", &only).await, Outcome::Finished);
    assert_eq!((names(&world).await, world.inventory()), (vec!["x".to_owned()], vec!["x".to_owned()]));
    assert_eq!(world.status.state.former.values().map(named).collect::<Vec<_>>(), [["x"]]);
}

/// Why an item does not go on: its target is at this address, and nobody may know which cluster that is.
fn unknown(address: &str, before: &str) -> String {
    format!(
        "the target cluster is the cluster of the test, {address} now, {before}, and whether that is the same cluster cannot be told: its \
         credentials may not get the Namespace kube-system. Let them, or have the Target be what it was; where the objects are not \
         wanted any more, delete the item with the annotation landscaper.gardener.cloud/delete-without-uninstall"
    )
}

pub(crate) fn why<T: std::fmt::Debug>(stalled: Step<T>) -> String {
    match stalled {
        Err(Halt::Stall(failure)) => failure.message,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn c_321_a_cluster_that_may_not_be_known_is_the_same_as_long_as_its_address_is() {
    let mut world = World::new().await;
    world.traffic.hide_identity(true);
    let both = proposal(json!({"stages": [stage(&[write("x", "1"), write("y", "1")])]}));
    world.run("j", &both).await;
    assert_eq!(world.run("k", &both).await, Outcome::Finished);
    let first = world.get(&path("y")).await.unwrap();
    world.swap_cluster().await;
    copy(&world, &first).await;
    let only = proposal(json!({"stages": [stage(&[write("x", "2")])]}));
    let expected = unknown("second", "it was the cluster of the test, first before");
    assert_eq!(why(world.reconcile("l", &only).await), expected);
    assert_eq!(why(world.look_at_deletion().await), expected);
    assert_eq!((names(&world).await, world.inventory()), (vec!["y".to_owned()], vec!["x".to_owned(), "y".to_owned()]));
    world.swap_back();
    assert_eq!(world.run("m", &only).await, Outcome::Finished);
    assert_eq!((names(&world).await, world.inventory()), (vec!["x".to_owned()], vec!["x".to_owned()]));
    world.delete().await;
    assert_eq!((names(&world).await.len(), world.inventory().len(), &world.status.state.notes), (0, 0, &vec![]));
}

#[tokio::test]
async fn c_321_where_a_cluster_is_known_again_what_may_be_elsewhere_is_told() {
    let mut world = World::new().await;
    world.traffic.hide_identity(true);
    let both = proposal(json!({"stages": [stage(&[write("x", "1"), write("y", "1")])]}));
    world.run("j", &both).await;
    world.traffic.hide_identity(false);
    world.restart();
    assert_eq!(world.run("k", &both).await, Outcome::Finished);
    assert_eq!(world.status.state.notes, Vec::<String>::new(), "it is where it was");
    world.traffic.hide_identity(true);
    world.restart();
    let expected = unknown("first", "which one it was before is known");
    assert_eq!(why(world.reconcile("l", &both).await), expected);

    let mut world = World::new().await;
    world.traffic.hide_identity(true);
    world.run("j", &both).await;
    world.swap_cluster().await;
    world.traffic.hide_identity(false);
    assert_eq!(world.run("k", &both).await, Outcome::Finished);
    let told = "the target cluster was the cluster of the test, first before, and which cluster that was could not be known: what this \
                job does not find may still be there";
    assert_eq!(world.status.state.notes, [told]);
    let known: Vec<Option<&str>> = world.status.state.clusters.values().map(ClusterIdentity::address).collect();
    assert_eq!(known, [None], "the uid counts from now on");
}

#[tokio::test]
async fn c_321_an_item_without_objects_goes_on_wherever_its_target_leads() {
    let one = proposal(json!({"stages": [stage(&[write("x", "1")])]}));
    for is_hidden in [true, false] {
        let mut world = World::new().await;
        world.traffic.hide_identity(true);
        world.run("j", &one).await;
        world.delete().await;
        world.swap_cluster().await;
        world.traffic.hide_identity(is_hidden);
        assert_eq!(world.run("k", &one).await, Outcome::Finished);
        assert_eq!((world.inventory(), &world.status.state.notes), (vec!["x".to_owned()], &vec![]), "{is_hidden}");
    }
    // What is made while it is not known is in no former cluster once it is known again.
    let mut world = World::new().await;
    world.run("j", &one).await;
    world.delete().await;
    world.swap_cluster().await;
    world.traffic.hide_identity(true);
    assert_eq!(world.run("k", &one).await, Outcome::Finished);
    world.traffic.hide_identity(false);
    world.restart();
    assert_eq!(world.run("l", &one).await, Outcome::Finished);
    assert_eq!((world.inventory(), world.status.state.former.len()), (vec!["x".to_owned()], 0));
}

#[tokio::test]
async fn c_321_objects_of_another_cluster_do_not_hold_up_a_target_that_has_none() {
    let mut world = World::new().await;
    world.traffic.hide_identity(true);
    let mut on_host = write("x", "1");
    on_host["on"] = json!("host");
    world.run("j", &proposal(json!({"stages": [stage(&[on_host.clone()])]}))).await;
    world.status.state.clusters.insert(ClusterRef::Target, ClusterIdentity::Address("another address".to_owned()));
    let both = proposal(json!({"stages": [stage(&[on_host, write("y", "1")])]}));
    assert_eq!(world.run("k", &both).await, Outcome::Finished);
    assert_eq!(world.inventory().len(), 2);
}

/// Each cluster that is left costs what its credentials take in the operator's namespace.
#[tokio::test]
async fn c_129_limits_state_an_item_leaves_objects_in_so_many_clusters_and_goes_into_no_other_one() {
    const MOST: usize = 16;
    let mut world = World::new().await;
    let one = proposal(json!({"stages": [stage(&[write("x", "1")])]}));
    world.run("j", &one).await;
    let left = world.status.state.inventory.clone();
    let others = |count: usize| (0..count).map(|number| (format!("cluster-{number}"), left.clone())).collect();
    world.status.state.former = others(MOST);
    world.swap_cluster().await;
    let refused = world.reconcile("k", &one).await.unwrap_err();
    assert_eq!(
        refused.failure().map(|failure| failure.message.as_str()),
        Some(
            "the target cluster names another cluster than before, and this item has left objects in 16 others, which is the \
             most: have these clusters answer, so that what is there is deleted, or delete the item and make it anew"
        )
    );
    assert_eq!((names(&world).await, world.inventory()), (Vec::new(), vec!["x".to_owned()]));
    world.status.state.former = others(MOST - 1);
    assert_eq!(world.run("l", &one).await, Outcome::Finished);
    assert_eq!((names(&world).await, world.status.state.former.len()), (vec!["x".to_owned()], MOST));
    // Whatever it has left, it can be deleted.
    world.swap_back();
    world.status.state.former = others(MOST);
    world.delete().await;
}

/// Somebody makes an object of the same name and with the same marks.
async fn copy(world: &World, of: &Value) {
    let metadata = &of["metadata"];
    let copy = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": metadata["name"],
        "namespace": "default", "annotations": metadata["annotations"], "labels": metadata["labels"]}});
    world.send("POST", "/api/v1/namespaces/default/configmaps", &copy).await;
}

fn named(inventory: &Inventory) -> Vec<String> {
    inventory.0.keys().map(|located| located.key.name.to_string()).collect()
}

#[tokio::test]
async fn c_35_a_deletion_deletes_nothing_in_a_cluster_that_the_item_has_not_written_to() {
    let mut world = World::new().await;
    world.run("j", &proposal(json!({"stages": [stage(&[write("x", "1")])]}))).await;
    let live = world.get(&path("x")).await.unwrap();
    world.swap_cluster().await;
    copy(&world, &live).await;
    world.delete().await;
    assert_eq!(names(&world).await, ["x"], "a copy with the mark of the item is none of its objects");
    assert_eq!(world.status.state.former.values().map(named).collect::<Vec<_>>(), [["x"]]);
}

#[tokio::test]
async fn c_35_a_proposal_that_waits_begins_anew_where_its_target_names_another_cluster() {
    let mut world = World::new().await;
    let check = json!({"ready": [{"name": "r", "scope": "stage", "rule": {"requirements": [
        {"path": ".data.k", "operator": "in", "values": ["ready"]}]}}]});
    let mut plan = json!({"stages": [stage(&[write("x", "1")])]});
    plan["stages"][0]["gate"] = check;
    let plan = proposal(plan);
    assert!(world.reconcile("j", &plan).await.is_err(), "it waits");
    world.swap_cluster().await;
    assert!(world.reconcile("j", &plan).await.is_err(), "it waits");
    assert_eq!((names(&world).await, world.inventory()), (vec!["x".to_owned()], vec!["x".to_owned()]));
    world.send("PATCH", &path("x"), &json!({"data": {"k": "ready"}})).await;
    assert_eq!(world.run("j", &plan).await, Outcome::Finished);
}

fn role(namespace: Option<&str>) -> Value {
    json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "r", "namespace": namespace}, "rules": []})
}

const ROLE: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles/r";

#[tokio::test]
async fn c_35_a_namespace_of_a_cluster_scoped_object_is_dropped_as_api_servers_do() {
    let mut world = World::new().await;
    let placed = without_stray_namespaces(&world.clusters(), of(&[role(Some("default"))])).await.unwrap();
    assert_eq!(world.run("j", &placed).await, Outcome::Finished);
    assert_eq!(world.get(ROLE).await.unwrap()["metadata"].get("namespace"), None);
    // Without it, it is the same object.
    assert_eq!(world.run("k", &of(&[role(None)])).await, Outcome::Finished);
    assert!(world.get(ROLE).await.is_some(), "it is not pruned");
    world.delete().await;
    assert_eq!(world.get(ROLE).await, None);
}

#[tokio::test]
async fn c_35_an_adopted_inventory_may_name_a_namespace_where_there_is_none() {
    let mut world = World::new().await;
    world.run("j", &of(&[role(None)])).await;
    let resource = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "name": "r",
        "namespace": "default"});
    let adopted = Inventory::read(Some(&json!([{"policy": "manage", "resource": resource}]))).unwrap();
    world.status.state.inventory = adopted.clone();
    assert_eq!(world.run("k", &of(&[role(None)])).await, Outcome::Finished);
    assert!(world.get(ROLE).await.is_some(), "it is planned, so it is not pruned");
    world.status.state.inventory = adopted;
    world.delete().await;
    assert_eq!(world.get(ROLE).await, None);
}

/// What the API server would take for an object of no namespace was checked as one of a namespace: by another line of the policy.
#[tokio::test]
async fn c_78_a_kind_that_is_served_after_the_check_is_not_written_outside_of_the_namespace_that_was_checked() {
    let mut world = World::new().await;
    let thing =
        json!({"apiVersion": "example.org/v2", "kind": "Thing", "metadata": {"name": "x", "namespace": "default"}});
    let checked = without_stray_namespaces(&world.clusters(), of(std::slice::from_ref(&thing))).await.unwrap();
    assert_eq!(checked, of(std::slice::from_ref(&thing)), "it is not known yet which sort the kind is of");
    let key = json!({"apiVersion": "example.org/v2", "kind": "Thing", "namespace": "default", "name": "x"});
    let removes =
        proposal(json!({"stages": [{"name": "s", "removals": [{"key": key, "force": true}], "gate": "accepted"}]}));
    let mut scoped = definition([true, true]);
    scoped["spec"]["scope"] = json!("Cluster");
    world.send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &scoped).await;
    let sentence = "Thing default/x was checked as an object of that namespace, before its kind was served, and the kind has no \
                    namespaces; it is checked again, or leave metadata.namespace out";
    let refused = |step: orangery_core::step::Step<Outcome>| match step {
        Err(Halt::Retry(failure)) => (failure.reason, failure.message),
        other => panic!("{other:?}"),
    };
    let (reason, message) = refused(world.reconcile("j", &checked).await);
    assert_eq!(reason, "ScopeChanged");
    assert!(message.contains(sentence), "{message}");
    assert_eq!(world.get("/apis/example.org/v2/things/x").await, None);
    assert!(has_stray_namespaces(&world.clusters(), &checked).await.unwrap());
    let again = without_stray_namespaces(&world.clusters(), checked).await.unwrap();
    assert!(!has_stray_namespaces(&world.clusters(), &again).await.unwrap());
    assert_eq!(world.run("j", &again).await, Outcome::Finished);
    assert!(world.get("/apis/example.org/v2/things/x").await.is_some());
    assert!(has_stray_namespaces(&world.clusters(), &removes).await.unwrap());
    let (reason, _) = refused(world.reconcile("k", &removes).await);
    assert_eq!(reason, "ScopeChanged");
    assert!(world.get("/apis/example.org/v2/things/x").await.is_some());
}

/// Between the check of a stored proposal and the look at its inventory, a kind comes to be served, and has no namespaces: what is
/// planned under one is checked anew, and not left out as somebody else's.
#[tokio::test]
async fn c_78_what_is_planned_is_not_left_out_where_its_kind_comes_to_be_served_after_the_check() {
    let mut world = World::new().await;
    let thing =
        json!({"apiVersion": "example.org/v2", "kind": "Thing", "metadata": {"name": "x", "namespace": "default"}});
    let gate = json!({"ready": [{"name": "mine", "scope": {"keys": [key("a")]},
        "rule": {"requirements": [{"path": ".data.k", "operator": "==", "values": ["ready"]}]}}]});
    let waiting = json!({"name": "first", "writes": [write("a", "waiting")], "gate": gate});
    let checked = proposal(json!({"stages": [waiting, stage(&[json!({"object": thing, "how": "replace"})])]}));
    assert!(matches!(world.reconcile("j", &checked).await, Err(Halt::Wait(_))));
    let mut scoped = definition([true, true]);
    scoped["spec"]["scope"] = json!("Cluster");
    world.send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &scoped).await;
    world.send("PATCH", "/api/v1/namespaces/default/configmaps/a", &json!({"data": {"k": "ready"}})).await;
    let Err(Halt::Retry(failure)) = world.reconcile("j", &checked).await else { panic!("it is to be checked anew") };
    assert_eq!(failure.reason, "ScopeChanged");
    assert!(failure.message.contains("Thing default/x was checked as an object of that namespace"), "{failure}");
    let again = without_stray_namespaces(&world.clusters(), checked).await.unwrap();
    world.store(&again);
    assert_eq!(world.run("j", &again).await, Outcome::Finished);
    assert!(world.get("/apis/example.org/v2/things/x").await.is_some());
    let planned: BTreeSet<String> = world.inventory().into_iter().collect();
    assert_eq!(planned, ["a", "x"].map(str::to_owned).into());
}
