//! Calls during which the operator is killed, again and again (C-283).

use std::fs;

use orangery_tests::{
    cluster::{Cluster, own_target},
    objects::NAMESPACE,
    tree::{any, blueprint, deploys, executions, imports_cluster, in_phase, installation, on_cluster},
};
use serde_json::{Value, json};
use tokio::net::TcpListener;

#[tokio::test]
async fn c_283_an_item_during_whose_calls_the_operator_is_killed_is_set_aside_and_its_neighbour_deploys() {
    let binary = crate::binary().await;
    let start = async || Cluster::start(&binary, &["--data", "state"]).await;
    let cluster = start().await;
    // A server that takes connections and says nothing: the item waits for as long as the test wants.
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = silent.local_addr().expect("an address");
    let kubeconfig = json!({"apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": format!("http://{address}")}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]});
    let mut target = own_target(&kubeconfig.to_string());
    target["metadata"]["name"] = json!("silent");
    cluster.apply(&target).await;
    let fields = json!({"imports": imports_cluster(), "deployExecutions": executions(&[deploys("first", &[], "1")])});
    let mut root = on_cluster(installation("root", &blueprint(fields.clone())));
    root["spec"]["imports"]["targets"][0]["target"] = json!("silent");
    cluster.apply(&root).await;
    drop(silent.accept().await.expect("the item is worked on"));
    let item = cluster.expect_that(&any("DeployItem", ""), "is not there", |_| true).await["metadata"]["name"].clone();
    cluster.kill().await;
    // As a process would have left it that was killed during the call, after another one.
    let mut written = format!("runs 1 deploy-item {NAMESPACE} {}\n", item.as_str().expect("a name")).into_bytes();
    written.resize(512, 0);
    fs::write(binary.folder().join("state/calls-under-way"), written).expect("the file can be written");

    let cluster = start().await;
    let is_told = |item: &Value| item["status"]["lastError"]["reason"] == "OperatorKilled";
    let item = cluster.expect_that(&any("DeployItem", ""), "is not set aside", is_told).await;
    let why = "the operator was killed 2 times while it worked on this, most likely as it needs more memory than there is; \
               it is set aside, and tried again later, alone: make it smaller, or give the operator more memory";
    assert_eq!(item["status"]["lastError"]["message"], why);
    let neighbour = on_cluster(installation("neighbour", &blueprint(fields)));
    cluster.apply(&neighbour).await;
    cluster.expect(&in_phase("Installation", "neighbour", "Succeeded")).await;
}
