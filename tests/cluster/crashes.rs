//! `kill -9` at any moment: the data opens again, and the tree goes on.

use std::net::TcpListener;

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

/// A port that is free now, for every start of a test: Targets keep the address of their server.
fn port() -> String {
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    free.expect("a free port").port().to_string()
}

async fn start(binary: &Binary, port: &str) -> Cluster {
    Cluster::start(binary, &["--data", "state", "--port", port]).await
}

#[tokio::test]
async fn a_tree_goes_on_after_a_kill_at_any_moment() {
    let (binary, port) = (crate::binary().await, port());
    let mut cluster = start(&binary, &port).await;
    for round in 1..=10 {
        let history = History::begin(cluster.client()).await;
        let known = history.count();
        cluster.apply_yaml(&installation(round)).await;
        history.wait_until(|seen| seen.len() >= known + round).await;
        cluster.kill().await;

        cluster = start(&binary, &port).await;
        cluster.expect(&orange(round)).await;
        cluster.expect(&succeeded()).await;
    }
}

#[tokio::test]
async fn a_deletion_goes_on_after_a_kill_at_any_moment() {
    let (binary, port) = (crate::binary().await, port());
    let mut cluster = start(&binary, &port).await;
    for round in 1..=5 {
        cluster.apply_yaml(&installation(round)).await;
        cluster.expect(&succeeded()).await;
        let history = History::begin(cluster.client()).await;
        let known = history.count();
        cluster.delete(&succeeded()).await;
        history.wait_until(|seen| seen.len() >= known + round).await;
        cluster.kill().await;

        cluster = start(&binary, &port).await;
        for kind in ["Installation", "Execution", "DeployItem", "DataObject"] {
            cluster.expect_absent(&json!({"apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": kind})).await;
        }
        cluster.expect_absent(&orange(round)).await;
    }
}
