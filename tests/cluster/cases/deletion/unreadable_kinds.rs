//! Items that write objects of kinds which a server only creates: what can neither be read nor deleted holds nothing.

use orangery_tests::tree::{any, blueprint, deploys, executions, imports_cluster, in_phase, installation, on_cluster};
use serde_json::{Value, json};

#[tokio::test]
async fn c_199_an_item_that_has_written_what_can_only_be_created_is_deleted() {
    let cluster = crate::cluster().await;
    let mut item = deploys("cm", &[], "1");
    let review = json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "metadata": {"name": "x"}, "spec": {"token": "x"},
    });
    let manifests = item.pointer_mut("/config/manifests").and_then(Value::as_array_mut).expect("manifests");
    manifests.push(json!({"policy": "manage", "manifest": review}));
    let fields = json!({"imports": imports_cluster(), "deployExecutions": executions(&[item])});
    cluster.apply(&on_cluster(installation("root", &blueprint(fields)))).await;
    cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
    cluster.delete(&any("Installation", "root")).await;
    cluster.expect_absent(&json!({"apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "DeployItem"})).await;
    cluster.expect_absent(&any("Installation", "root")).await;
    cluster.expect_absent(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cm"}})).await;
}
