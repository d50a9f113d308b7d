//! Container items where no container runs: `orangery up`, with workloads that are simulated and without.

use orangery_tests::{
    objects::NAMESPACE,
    tree::{any, blueprint, executions, installation},
};
use serde_json::{Value, json};

const GROUP: &str = "container.deployer.landscaper.gardener.cloud";

/// A tree with one item that runs a program and has no target.
fn tree() -> Value {
    let config = json!({
        "apiVersion": format!("{GROUP}/v1alpha1"), "kind": "ProviderConfiguration", "image": "ghcr.io/acme/task:1",
        "importValues": {"size": 3},
    });
    let item = json!({"name": "task", "type": "landscaper.gardener.cloud/container", "config": config});
    installation("tree", &blueprint(json!({"deployExecutions": executions(&[item])})))
}

/// What an item has left: the names of all objects with its label.
async fn left(cluster: &orangery_tests::cluster::Cluster) -> Vec<String> {
    let mut left = Vec::new();
    let kinds = [
        ("v1", "Pod"),
        ("v1", "Secret"),
        ("v1", "ServiceAccount"),
        ("rbac.authorization.k8s.io/v1", "Role"),
        ("rbac.authorization.k8s.io/v1", "RoleBinding"),
    ];
    for (version, kind) in kinds {
        let of_kind = json!({"apiVersion": version, "kind": kind, "metadata": {"namespace": NAMESPACE}});
        let label = format!("deployitem.{GROUP}/name");
        let ours = cluster.list(&of_kind).await;
        let ours = ours.iter().filter(|object| object["metadata"]["labels"].get(&label).is_some());
        left.extend(ours.map(|object| object["metadata"]["name"].as_str().unwrap_or_default().to_owned()));
    }
    left
}

#[tokio::test]
async fn c_33_a_simulated_pod_ends_its_item_and_leaves_nothing_and_so_does_that_of_its_deletion() {
    let cluster = crate::cluster_with(&["--simulate-workloads"]).await;
    cluster.apply(&tree()).await;
    let item = json!({"apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "DeployItem",
        "status": {"phase": "Succeeded"}});
    let item = cluster.expect(&item).await;
    let status = &item["status"]["providerStatus"];
    assert_eq!((&status["kind"], &status["lastOperation"]), (&json!("ProviderStatus"), &json!("RECONCILE")));
    assert_eq!(status["podStatus"]["lastSuccessfulJobID"], item["status"]["jobID"], "{status:#}");
    assert_eq!(status["podStatus"]["containerStatus"]["exitCode"], json!(0), "{status:#}");
    assert_eq!(item["status"].get("exportRef"), None);
    assert_eq!(left(&cluster).await, Vec::<String>::new());
    let pod_of = |operation: &Value| operation["providerStatus"]["podStatus"]["podName"].clone();
    let first = pod_of(&item["status"]);
    cluster.delete(&any("Installation", "tree")).await;
    cluster.expect_absent(&any("Installation", "tree")).await;
    assert_eq!(left(&cluster).await, Vec::<String>::new());
    // Another run, in a pod of another name, was the last thing that was heard of the item.
    assert!(first.as_str().is_some_and(|name| name.starts_with("tree-task-")), "{first}");
}

#[tokio::test]
async fn c_33_without_simulated_workloads_a_container_item_says_what_it_needs() {
    let cluster = crate::cluster().await;
    cluster.apply(&tree()).await;
    let item = json!({"apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "DeployItem",
        "status": {"phase": "Failed"}});
    let item = cluster.expect(&item).await;
    let message = item["status"]["lastError"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("containers need a cluster that runs pods"), "{message}");
    assert!(
        message.contains("`orangery up` runs no containers, and plays them with --simulate-workloads"),
        "{message}"
    );
}
