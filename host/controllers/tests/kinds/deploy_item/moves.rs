//! An object that moves from one item to another (C-163, C-169).

use serde_json::{Value, json};

use super::{
    former_cluster::two,
    items::{Items, proposal},
};

/// A label that says which Execution an item is of.
fn of(execution: &str) -> Value {
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
