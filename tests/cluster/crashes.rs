//! `kill -9` at any moment: the data opens again, and the tree goes on.

use orangery_tests::{binary::Binary, cluster::Cluster, history::History};
use serde_json::{Value, json};

/// A tree of five objects of ours whose ConfigMaps carry the round.
fn installation(round: usize) -> String {
    let text = include_str!("../../examples/dependencies/installation.yaml");
    text.replace("height: 2 m", &format!("height: {round} m"))
}

fn orange(round: usize) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "orange", "namespace": "garden"},
        "data": {"height": format!("{round} m")},
    })
}

fn succeeded() -> Value {
    let status = json!({"phase": "Succeeded"});
    json!({
        "apiVersion": "landscaper.gardener.cloud/v1alpha1",
        "kind": "Installation",
        "metadata": {"name": "garden"},
        "status": status,
    })
}

async fn start(binary: &Binary) -> Cluster {
    Cluster::start(binary, &["--data", "state"]).await
}

#[tokio::test]
async fn a_tree_goes_on_after_a_kill_at_any_moment() {
    let binary = crate::binary();
    let mut cluster = start(&binary).await;
    for round in 1..=10 {
        let history = History::begin(cluster.client()).await;
        let known = history.sights().len();
        cluster.apply_yaml(&installation(round)).await;
        history.wait_for(known + round).await;
        cluster.kill().await;

        cluster = start(&binary).await;
        cluster.expect(&orange(round)).await;
        cluster.expect(&succeeded()).await;
    }
}

#[tokio::test]
async fn a_deletion_goes_on_after_a_kill_at_any_moment() {
    let binary = crate::binary();
    let mut cluster = start(&binary).await;
    for round in 1..=5 {
        cluster.apply_yaml(&installation(round)).await;
        cluster.expect(&succeeded()).await;
        let history = History::begin(cluster.client()).await;
        let known = history.sights().len();
        cluster.delete(&succeeded()).await;
        history.wait_for(known + round).await;
        cluster.kill().await;

        cluster = start(&binary).await;
        for kind in ["Installation", "Execution", "DeployItem", "DataObject"] {
            cluster.expect_absent(&json!({"apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": kind})).await;
        }
        cluster.expect_absent(&orange(round)).await;
    }
}
