//! What only a real API server has: quotas on how many objects a namespace has (C-197).

use orangery_tests::{
    objects::NAMESPACE,
    tree::{API, any, blueprint, executions, in_phase, installation, mocks},
};
use serde_json::{Value, json};

const DEPLOY_ITEMS: &str = "count/deployitems.landscaper.gardener.cloud";

/// A quota of so many deploy items; its controller, which no case runs, would say what is used.
fn quota(most: &str) -> (Value, Value) {
    let hard = json!({DEPLOY_ITEMS: most});
    let metadata = json!({"name": "orangery", "namespace": NAMESPACE});
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": hard}});
    (quota, json!({"hard": hard, "used": {DEPLOY_ITEMS: "0"}}))
}

#[tokio::test]
async fn c_197_a_quota_of_deploy_items_that_is_full_is_told_and_they_are_made_when_there_is_room() {
    let cluster = crate::cluster().await;
    let items = ["a", "b"].map(|name| mocks(name, &[], "Succeeded", "x"));
    let probe = json!({"apiVersion": API, "kind": "DeployItem", "metadata": {"name": "probe"}, "spec": {"type": "t"}});
    let (none, used) = quota("0");
    cluster.apply(&none).await;
    cluster.patch_status(&none, used).await;
    while !cluster.is_refused(&probe).await {}
    cluster.apply(&installation("root", &blueprint(json!({"deployExecutions": executions(&items)})))).await;
    let is_told = |object: &Value| {
        let error = &object["status"]["lastError"];
        let message = error["message"].as_str().unwrap_or_default();
        object["status"]["jobIDFinished"] != object["status"]["jobID"]
            && message.contains("exceeded quota: orangery")
            && message.contains(DEPLOY_ITEMS)
    };
    cluster.expect_that(&any("Execution", "root"), "does not say that the quota is full", is_told).await;
    let (more, status) = quota("10");
    cluster.apply(&more).await;
    cluster.patch_status(&more, status).await;
    cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
}
