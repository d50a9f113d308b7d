//! An object that moves from one item to another (C-163, C-169, C-271).

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client, ResourceExt as _};
use orangery_api::annotation;
use orangery_apply::OWNER_ANNOTATION;
use serde_json::{Value, json};

use super::{
    former_cluster::{patch_target, second, two},
    hostile::event_says,
    items::{EXECUTION, Items, proposal},
};
use crate::world::FINALIZER;

/// A label that says which Execution an item is of.
pub(super) fn of(execution: &str) -> Value {
    json!({"metadata": {"labels": {"execution.landscaper.gardener.cloud/managed-by": execution}}})
}

/// What becomes of an object that has left the proposals of an item, with another item beside it that names it.
async fn stays(execution: &str, target: &str, is_deleting: bool) -> bool {
    let world = Items::new().await;
    let kubeconfig = world.kubeconfig();
    let spec = json!({"type": "landscaper.gardener.cloud/kubernetes-cluster", "config": {"kubeconfig": kubeconfig}});
    world.target("again", spec).await;
    world.create("item", &[two()], json!({})).await;
    world.patch("item", of("tree")).await;
    world.job("item", "one").await;
    world.create("beside", &[proposal("x", json!({}))], json!({"target": {"name": target}})).await;
    world.patch("beside", of(execution)).await;
    if is_deleting {
        world.patch("beside", json!({"metadata": {"finalizers": ["example.org/hold"]}})).await;
        world.delete("beside").await;
    }
    world.patch("item", json!({"spec": {"config": {"proposals": [proposal("y", json!({}))]}}})).await;
    let status = world.job("item", "two").await;
    assert_eq!(status["phase"], "Succeeded", "{status:#}");
    assert!(world.value("y").await.is_some());
    world.value("x").await.is_some()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_163_c_169_only_an_item_of_the_same_execution_and_cluster_that_is_not_on_its_way_out_takes_an_object_over() {
    let kept = [
        stays("tree", "cluster", false).await,
        stays("other", "cluster", false).await,
        stays("tree", "again", false).await,
        stays("tree", "elsewhere", false).await,
        stays("tree", "cluster", true).await,
    ];
    assert_eq!(kept, [true, false, true, false, false]);
}

/// The item whose mark an object has.
async fn owner_of(world: &Items, name: &str) -> String {
    owner_at(&world.client, name).await
}

/// The same on this cluster.
pub(super) async fn owner_at(client: &Client, name: &str) -> String {
    let object = Api::<ConfigMap>::default_namespaced(client.clone()).get(name).await.unwrap();
    let mark = object.annotations().get(OWNER_ANNOTATION).cloned().unwrap_or_default();
    mark.split('/').nth(1).unwrap_or_default().to_owned()
}

/// The inventory of an item as its status has it: policies and names.
pub(super) async fn inventory_of(world: &Items, name: &str) -> Vec<String> {
    let status = json!(world.items().get(name).await.unwrap().status);
    let listed = status["providerStatus"]["managedResources"].as_array().cloned().unwrap_or_default();
    listed.iter().map(|one| format!("{} {}", one["policy"], one["resource"]["name"]).replace('"', "")).collect()
}

/// An item that deployed `x` and `y`, of an Execution that stays.
async fn leaving() -> Items {
    let world = Items::new().await;
    world.create("leaves", &[two()], json!({})).await;
    world.patch("leaves", of(EXECUTION)).await;
    world.job("leaves", "one").await;
    world
}

/// It goes, and one beside it names `x`: what has been done before that.
async fn left(before: impl AsyncFn(&Items)) -> Items {
    let world = leaving().await;
    before(&world).await;
    world.delete("leaves").await;
    world.trigger("leaves", "two").await;
    world.gone("leaves").await;
    assert!(world.value("x").await.is_some() && world.value("y").await.is_none());
    world
}

pub(super) async fn beside(world: &Items, write: Value, spec: Value) {
    world.create("beside", &[write], spec).await;
    world.patch("beside", of(EXECUTION)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_271_an_item_without_a_job_has_what_is_left_to_it_and_what_is_needed_to_delete_it() {
    let world = left(async |world: &Items| beside(world, proposal("x", json!({})), json!({})).await).await;
    assert_eq!(
        (owner_of(&world, "x").await, inventory_of(&world, "beside").await),
        ("beside".into(), vec!["manage x".into()])
    );
    assert_eq!(world.kept().await.len(), 1, "the credentials of the Target that both have");
    let status = json!(world.items().get("beside").await.unwrap().status);
    assert!(status["providerStatus"]["orangery"]["clusters"][0]["uid"].is_string(), "{status:#}");
    // As its Execution makes it.
    world.patch("beside", json!({"metadata": {"finalizers": [FINALIZER]}})).await;
    world.delete("beside").await;
    world.trigger("beside", "one").await;
    world.gone("beside").await;
    assert_eq!((world.value("x").await, world.kept().await.len()), (None, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_271_credentials_of_another_target_are_not_left() {
    let world = left(async |world: &Items| {
        let spec = json!({"type": "landscaper.gardener.cloud/kubernetes-cluster", "config": {"kubeconfig": world.kubeconfig()}});
        world.target("again", spec).await;
        beside(world, proposal("x", json!({})), json!({"target": {"name": "again"}})).await;
    })
    .await;
    assert_eq!((inventory_of(&world, "beside").await, world.kept().await.len()), (vec!["manage x".to_owned()], 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_271_what_an_item_says_of_an_object_that_it_has_already_stays() {
    let world = left(async |world: &Items| {
        let mut keeps = proposal("x", json!({}));
        keeps["stages"][0]["writes"][0]["owned"] = json!("kept");
        beside(world, keeps, json!({})).await;
        world.job("beside", "one").await;
    })
    .await;
    assert_eq!(inventory_of(&world, "beside").await, ["keep x"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_271_a_state_that_others_have_written_is_left_as_it_is() {
    let world = left(async |world: &Items| {
        beside(world, proposal("z", json!({})), json!({})).await;
        world.job("beside", "one").await;
        world.patch("beside", json!({"spec": {"config": {"proposals": [proposal("x", json!({}))]}}})).await;
        let forged = json!({"providerStatus": {"orangery": {"seal": "forged"}}});
        world.objects().patch_status("DeployItem", "beside", &forged).await;
    })
    .await;
    assert_eq!(
        (owner_of(&world, "x").await, inventory_of(&world, "beside").await),
        ("beside".into(), vec!["manage z".into()])
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_271_an_item_that_has_its_objects_in_another_cluster_gets_nothing_listed_in_this_one() {
    let (server, _second) = second().await;
    let world = left(async |world: &Items| {
        let kubeconfig = |text: String| json!({"kubeconfig": text});
        let spec =
            json!({"type": "landscaper.gardener.cloud/kubernetes-cluster", "config": kubeconfig(server.kubeconfig())});
        world.target("again", spec).await;
        beside(world, proposal("z", json!({})), json!({"target": {"name": "again"}})).await;
        world.job("beside", "one").await;
        world.patch("beside", json!({"spec": {"config": {"proposals": [proposal("x", json!({}))]}}})).await;
        patch_target(world, "again", json!({"spec": {"config": kubeconfig(world.kubeconfig())}})).await;
    })
    .await;
    assert_eq!(
        (owner_of(&world, "x").await, inventory_of(&world, "beside").await),
        ("beside".into(), vec!["manage z".into()])
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_271_an_object_that_a_third_item_has_taken_over_is_not_given_away() {
    let world = left(async |world: &Items| {
        world.create("third", &[proposal("x", json!({}))], json!({})).await;
        world.job("third", "one").await;
        beside(world, proposal("x", json!({})), json!({})).await;
    })
    .await;
    assert_eq!(owner_of(&world, "x").await, "third");
}

/// It goes, and two beside it name one of its objects each; this becomes of the second one, while the first is told what it has.
async fn changed_meanwhile(change: impl AsyncFn(&Items)) -> Items {
    let world = leaving().await;
    for (name, object) in [("first", "x"), ("second", "y")] {
        world.create(name, &[proposal(object, json!({}))], json!({})).await;
        world.patch(name, of(EXECUTION)).await;
    }
    world.delay_write("deployitems/first/status");
    world.delete("leaves").await;
    world.trigger("leaves", "two").await;
    world.held().await;
    change(&world).await;
    world.let_pass();
    world.gone("leaves").await;
    assert_eq!(owner_of(&world, "x").await, "first");
    world
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_271_nothing_is_left_to_an_item_that_has_begun_to_go() {
    let world = changed_meanwhile(async |world: &Items| {
        world.patch("second", json!({"metadata": {"finalizers": ["example.org/hold"]}})).await;
        world.delete("second").await;
    })
    .await;
    assert_eq!((world.value("y").await, inventory_of(&world, "second").await), (None, Vec::new()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_271_nothing_is_left_to_an_item_that_is_another_one_by_then() {
    let world = changed_meanwhile(async |world: &Items| {
        world.delete("second").await;
        world.gone("second").await;
        world.create("second", &[proposal("y", json!({}))], json!({})).await;
        world.patch("second", of(EXECUTION)).await;
    })
    .await;
    let uid = world.items().get("second").await.unwrap().metadata.uid.unwrap();
    let mark = world.config_maps().get("y").await.unwrap().annotations()[OWNER_ANNOTATION].clone();
    assert_eq!(mark, format!("default/second/{uid}"));
}

/// Whether an item that has an order of deletion still has it when something is left to it, where its mark is this one now.
async fn keeps_its_order(mark: Value) -> bool {
    let world = left(async |world: &Items| {
        let selected = json!({"managed": {"apiVersion": "v1", "kind": "ConfigMap", "names": ["x"]}});
        beside(world, proposal("x", json!({"deletionOrder": [{"what": [selected]}]})), json!({})).await;
        world.job("beside", "one").await;
        world.patch("beside", json!({"metadata": {"annotations": {(annotation::SIGNED_ORIGIN): mark}}})).await;
    })
    .await;
    let status = json!(world.items().get("beside").await.unwrap().status);
    assert!(status["providerStatus"]["orangery"]["seal"].is_string(), "{status:#}");
    status["providerStatus"].pointer("/orangery/deletionOrder").is_some()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_270_an_order_of_another_signed_origin_is_not_kept_with_what_is_left() {
    assert_eq!([keeps_its_order(Value::Null).await, keeps_its_order(json!("another")).await], [true, false]);
}

const CHART: &str = "helm.deployer.landscaper.gardener.cloud/v1alpha1";

/// The same whose configuration is one of a chart.
async fn chart(world: &Items, answer: Value) {
    beside(world, answer, json!({"config": {"apiVersion": CHART}})).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_205_what_a_chart_would_write_over_is_left_to_it() {
    let world = left(async |world: &Items| chart(world, proposal("x", json!({}))).await).await;
    assert_eq!(
        (owner_of(&world, "x").await, inventory_of(&world, "beside").await),
        ("beside".into(), vec!["manage x".into()])
    );
    event_says(&world, "ObjectsStay", "DeployItem beside has it in its chart, and goes on with it").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_205_limits_items_so_many_charts_are_asked_and_the_others_are_told() {
    let world = leaving().await;
    for number in 0..34 {
        let (name, writes) = (
            format!("chart-{number:02}"),
            match number {
                31 => "x".to_owned(),
                32 => "y".to_owned(),
                _ => format!("other-{number}"),
            },
        );
        world.create(&name, &[proposal(&writes, json!({}))], json!({"config": {"apiVersion": CHART}})).await;
        world.patch(&name, of(EXECUTION)).await;
    }
    world.delete("leaves").await;
    world.trigger("leaves", "two").await;
    world.gone("leaves").await;
    assert_eq!((owner_of(&world, "x").await, world.value("y").await), ("chart-31".into(), None));
    let asked = world.plugin.calls.lock().unwrap().iter().filter(|item| item.name.as_str() != "leaves").count();
    assert_eq!(asked, 32);
    let told = "of the 34 charts beside this item 32 are asked what they write; what those from DeployItem chart-32 on have of the \
                objects of this item is deleted, and made anew";
    event_says(&world, "ObjectsMadeAnew", told).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_205_what_a_chart_would_only_create_goes_with_the_item_that_has_it() {
    let world = leaving().await;
    let mut creates = proposal("x", json!({}));
    creates["stages"][0]["writes"][0]["how"] = json!("create");
    chart(&world, creates).await;
    world.delete("leaves").await;
    world.trigger("leaves", "two").await;
    world.gone("leaves").await;
    assert_eq!((world.value("x").await, world.value("y").await), (None, None));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_205_nothing_is_deleted_before_it_is_known_what_a_chart_writes() {
    let world = leaving().await;
    chart(&world, json!({"closed": proposal("x", json!({}))})).await;
    world.delete("leaves").await;
    world.trigger("leaves", "two").await;
    let why =
        "what DeployItem beside beside this item writes is not known yet, and nothing of this item is deleted before: ";
    world.waiting("leaves", why).await;
    assert!(world.value("x").await.is_some() && world.value("y").await.is_some());
    world.plugin.open();
    world.touch("leaves", "the chart can be planned").await;
    world.gone("leaves").await;
    assert!(world.value("x").await.is_some() && world.value("y").await.is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_205_what_a_chart_has_that_cannot_be_planned_is_deleted_and_told() {
    let world = leaving().await;
    chart(&world, proposal("x", json!({}))).await;
    world.patch("beside", json!({"spec": {"config": {"proposals": null}}})).await;
    world.delete("leaves").await;
    world.trigger("leaves", "two").await;
    world.gone("leaves").await;
    assert_eq!(world.value("x").await, None);
    let begin = "what DeployItem beside writes is not known, as its chart cannot be planned: plugin scripted: config.proposals is missing";
    event_says(&world, "ObjectsMadeAnew", begin).await;
}
