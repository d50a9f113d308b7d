//! Deploy items whose Execution was taken away by force: they uninstall themselves, as what lost the Installation above it does.

use orangery_tests::{
    external_deployer::{ExternalDeployer, TYPE, item},
    objects::Objects,
    tree::{any, blueprint, deploys, executions, imports_cluster, in_phase, installation, on_cluster},
};
use serde_json::{Value, json};

/// A root `tree` with an item that deploys the ConfigMap `cm`, and one of another deployer.
async fn tree(cluster: &Objects) {
    let external = json!({"name": "external", "type": TYPE, "config": deploys("x", &[], "1")["config"]});
    let fields =
        json!({"imports": imports_cluster(), "deployExecutions": executions(&[deploys("cm", &[], "1"), external])});
    cluster.apply(&on_cluster(installation("tree", &blueprint(fields)))).await;
    ExternalDeployer(cluster).succeed("external").await;
    cluster.expect(&in_phase("Installation", "tree", "Succeeded")).await;
}

/// Deletes an object as one does who wants it gone at any price.
async fn remove(cluster: &Objects, object: &Value) {
    cluster.delete(object).await;
    let metadata = json!({"name": object["metadata"]["name"], "finalizers": null});
    cluster
        .merge_where_there(&json!({"apiVersion": object["apiVersion"], "kind": object["kind"], "metadata": metadata}))
        .await;
}

async fn expect_uninstalled(cluster: &Objects) {
    ExternalDeployer(cluster).succeed("external").await;
    cluster.expect_absent(&item()).await;
    cluster.expect_absent(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cm"}})).await;
}

#[tokio::test]
async fn exe_43_exe_44_items_without_their_execution_and_installation_delete_themselves() {
    let cluster = crate::cluster().await;
    tree(&cluster).await;
    remove(&cluster, &any("Execution", "tree")).await;
    cluster.delete(&any("Installation", "tree")).await;
    expect_uninstalled(&cluster).await;
}

#[tokio::test]
async fn orc_29_exe_43_items_that_wait_for_their_execution_hear_that_it_is_gone() {
    let cluster = crate::cluster().await;
    tree(&cluster).await;
    for item in cluster.list(&item()).await {
        cluster.delete(&item).await;
    }
    remove(&cluster, &any("Execution", "tree")).await;
    expect_uninstalled(&cluster).await;
}
