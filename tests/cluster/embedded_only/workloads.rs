//! Workloads without containers: `orangery up --simulate-workloads`.

use orangery_tests::{
    objects::NAMESPACE,
    tree::{any, blueprint, executions, imports_cluster, in_phase, installation, on_cluster, wait_until_idle},
};
use serde_json::{Value, json};

/// A tree with one item, whose Deployment has to be ready; its pods take the given time.
fn tree(delay: &str) -> Value {
    let template = json!({"metadata": {"labels": {"app": "d"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let metadata = json!({"name": "d", "namespace": NAMESPACE, "annotations": {"simulate.orangery.dev/delay": delay}});
    let manifest = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata,
        "spec": {"selector": {"matchLabels": {"app": "d"}}, "template": template},
    });
    let config = json!({
        "apiVersion": "manifest.deployer.landscaper.gardener.cloud/v1alpha2", "kind": "ProviderConfiguration",
        "updateStrategy": "update", "manifests": [{"policy": "manage", "manifest": manifest}],
    });
    let item = json!({
        "name": "item", "type": "landscaper.gardener.cloud/kubernetes-manifest", "target": {"import": "cluster"},
        "config": config,
    });
    let fields = json!({"imports": imports_cluster(), "deployExecutions": executions(&[item])});
    on_cluster(installation("tree", &blueprint(fields)))
}

#[tokio::test]
async fn a_deployment_becomes_ready_where_workloads_are_simulated() {
    let cluster = crate::cluster_with(&["--simulate-workloads"]).await;
    cluster.apply(&tree("100ms")).await;
    cluster.expect(&in_phase("Installation", "tree", "Succeeded")).await;
}

#[tokio::test]
async fn a_deployment_is_waited_for_where_they_are_not() {
    let cluster = crate::cluster().await;
    cluster.apply(&tree("0s")).await;
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}});
    cluster.expect(&deployment).await;
    wait_until_idle(&cluster).await;
    let installation = cluster.expect(&any("Installation", "tree")).await;
    assert_eq!(installation["status"]["phase"], json!("Progressing"));
    let deployment = cluster.expect(&deployment).await;
    assert_eq!(deployment["status"], json!({}), "the server says nothing of it");
}

#[tokio::test]
async fn up_says_that_no_container_runs() {
    let binary = crate::binary().await;
    let ended = binary.run(&["up", "--ephemeral", "--port", "0", "--once", "--simulate-workloads"]).await;
    let report = "Workloads are simulated: they are marked ready or complete, and no container runs.";
    assert!(ended.stdout.lines().any(|line| line == report), "{}", ended.stdout);
    let ended = binary.run(&["up", "--ephemeral", "--port", "0", "--once"]).await;
    assert!(!ended.stdout.contains("simulated"), "{}", ended.stdout);
}
