//! What an item has exported and somebody has deleted.

use orangery_tests::tree::{any, ask, blueprint, executions, in_phase, installation, mocks};
use serde_json::{Value, json};

/// The Execution would wait for them for ever.
#[tokio::test]
async fn c_177_an_unchanged_item_writes_its_exports_again_that_somebody_has_deleted() {
    let cluster = crate::cluster().await;
    let mut item = mocks("a", &[], "Succeeded", "x");
    item["updateOnChangeOnly"] = json!(true);
    cluster.apply(&installation("root", &blueprint(json!({"deployExecutions": executions(&[item])})))).await;
    let job = cluster.expect(&in_phase("Installation", "root", "Succeeded")).await["status"]["jobID"].clone();
    let items = json!({"apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "DeployItem"});
    let name = cluster.expect(&items).await["status"]["exportRef"]["name"].clone();
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}});
    let exported = cluster.expect(&secret).await["data"].clone();
    cluster.delete(&secret).await;
    cluster.expect_absent(&secret).await;
    ask(&cluster, "root").await;
    let is_done = |root: &Value| root["status"]["jobID"] != job && root["status"]["phase"] == "Succeeded";
    cluster.expect_that(&any("Installation", "root"), "did not succeed again", is_done).await;
    assert_eq!(cluster.expect(&secret).await["data"], exported);
}
