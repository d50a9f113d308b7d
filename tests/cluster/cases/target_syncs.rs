//! What another cluster has becomes Targets, to which items deploy (C-371, C-373). The other cluster is a namespace of the same server.

use orangery_tests::{
    objects::NAMESPACE,
    tree::{API, any, blueprint, deploys, executions, imports_cluster, in_phase, installation, on_cluster},
};
use serde_json::{Value, json};

#[tokio::test]
async fn c_371_c_373_an_item_deploys_to_a_target_that_follows_another_cluster_and_keeps_it() {
    let cluster = crate::cluster().await;
    let secret = |namespace: &str, name: &str| {
        let data = json!({"kubeconfig": cluster.kubeconfig()});
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace}, "stringData": data})
    };
    cluster.apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "garden"}})).await;
    cluster.apply(&secret("garden", "made")).await;
    cluster.apply(&secret(NAMESPACE, "access")).await;
    let spec = json!({
        "sourceNamespace": "garden", "secretNameExpression": "^made$", "secretRef": {"name": "access", "key": "kubeconfig"},
    });
    cluster.apply(&json!({"apiVersion": API, "kind": "TargetSync", "metadata": {"name": "sync"}, "spec": spec})).await;
    cluster.expect(&any("Target", "made")).await;
    let fields = json!({"imports": imports_cluster(), "deployExecutions": executions(&[deploys("i", &[], "1")])});
    let mut root = on_cluster(installation("root", &blueprint(fields)));
    root["spec"]["imports"]["targets"][0]["target"] = json!("made");
    cluster.apply(&root).await;
    cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
    cluster.expect(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "i"}})).await;
    // What is in use stays, and is told.
    cluster.delete(&secret("garden", "made")).await;
    let keeps = |sync: &Value| {
        let told = sync["status"]["lastErrors"][0].as_str().unwrap_or_default();
        told.contains("nothing for Target default/made any more, which stays as long as")
    };
    cluster.expect_that(&any("TargetSync", "sync"), "tells what keeps the Target", keeps).await;
    let kept = cluster.expect(&any("Target", "made")).await;
    assert!(kept["metadata"].get("deletionTimestamp").is_none(), "{kept:#}");
    cluster.delete(&any("Installation", "root")).await;
    cluster.expect_absent(&any("Installation", "root")).await;
    cluster.expect_absent(&any("Target", "made")).await;
    cluster.expect_absent(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "i"}})).await;
    cluster.delete(&any("TargetSync", "sync")).await;
    cluster.expect_absent(&any("TargetSync", "sync")).await;
}
