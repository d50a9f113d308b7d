//! What a tree costs the API server.

use orangery_tests::{cluster::Cluster, repository, requests::Requests};
use serde_json::{Value, json};

fn hello() -> Value {
    json!({
        "apiVersion": "landscaper.gardener.cloud/v1alpha1",
        "kind": "Installation",
        "metadata": {"name": "hello"},
        "status": {"phase": "Succeeded", "observedGeneration": 2},
    })
}

/// A server whose operator has done what it does once: every namespace has its Context.
async fn settled() -> Cluster {
    let cluster = crate::cluster().await;
    for namespace in cluster.list(&json!({"apiVersion": "v1", "kind": "Namespace"})).await {
        let metadata = json!({"name": "default", "namespace": namespace["metadata"]["name"]});
        let kind = json!({"apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "Context", "metadata": metadata});
        cluster.expect(&kind).await;
    }
    cluster
}

async fn deploy_hello(cluster: &Cluster) {
    let file = repository().join("examples/hello-world/installation.yaml");
    for object in orangery_tests::yaml::read(&file) {
        cluster.apply(&object).await;
    }
    cluster.expect(&hello()).await;
}

#[tokio::test]
async fn a_triple_costs_at_most_sixteen_writes_and_two_reads() {
    let cluster = settled().await;
    let before = Requests::counted(cluster.client()).await;
    deploy_hello(&cluster).await;
    let during = Requests::counted(cluster.client()).await - before;
    // The suite itself: one list to begin its watch.
    let (writes, reads) = (during.writes(), during.reads().saturating_sub(1));
    assert!(writes <= 16 && reads <= 2, "{writes} writes and {reads} reads: {during:#?}");
}

#[tokio::test]
async fn orc_04_orc_34_nobody_asks_anything_while_nothing_of_ours_changes() {
    let cluster = settled().await;
    deploy_hello(&cluster).await;
    let before = Requests::counted(cluster.client()).await;
    // Time passes in which a stranger writes two hundred times, and only the stranger is counted.
    for number in 0..200 {
        let metadata = json!({"name": "stranger"});
        let content = json!({"number": number.to_string()});
        cluster.apply(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": content})).await;
    }
    let during = Requests::counted(cluster.client()).await - before;
    assert_eq!((during.writes(), during.reads()), (200, 0), "{during:#?}");
}
