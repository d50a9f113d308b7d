//! Charts of `tests/charts`: what they find out of a server, and what they leave behind on it.

use orangery_tests::{
    chart::{deploy, deploy_well, item, of_folder},
    objects::Objects,
    tree::in_phase,
};
use serde_json::{Value, json};

fn config_map(name: &str, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": data})
}

async fn succeeds(cluster: &Objects, chart: &str, more: &Value) {
    deploy_well(cluster, &item(&of_folder(chart), more)).await;
}

#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn a_chart_sees_the_kinds_and_the_objects_of_its_target() {
    let cluster = crate::cluster().await;
    succeeds(&cluster, "capabilities", &json!({})).await;
    let seen = json!({"modern": "true", "batch": "true", "kind": "false", "engine": "v4.2.3"});
    let found = cluster.expect(&config_map("rel-cluster", json!({"kind": "false"}))).await;
    assert_eq!(found["data"], seen);

    cluster.apply(&config_map("settings", json!({"color": "green"}))).await;
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "gadgets.gadgets.example.org"},
        "spec": {
            "group": "gadgets.example.org", "scope": "Namespaced", "names": {"kind": "Gadget", "plural": "gadgets"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}],
        },
    });
    cluster.apply(&definition).await;
    let established = |object: &Value| object["status"]["conditions"].to_string().contains(r#""Established""#);
    cluster.expect_that(&definition, "is not served", established).await;
    succeeds(&cluster, "capabilities", &json!({})).await;
    cluster.expect(&config_map("rel-cluster", json!({"kind": "true", "found": "green"}))).await;
    cluster
        .expect(&json!({"apiVersion": "gadgets.example.org/v1", "kind": "Gadget", "metadata": {"name": "rel"}}))
        .await;
}

#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn values_that_break_a_schema_are_named_and_the_schema_can_be_skipped() {
    let cluster = crate::cluster().await;
    let values = json!({"replicas": "many", "part": {"port": 0}});
    deploy(&cluster, &item(&of_folder("schema"), &json!({"config": {"values": values}}))).await;
    let failed = cluster.expect(&in_phase("DeployItem", "item", "Failed")).await;
    let error = &failed["status"]["lastError"];
    assert_eq!(error["codes"], json!(["ERR_CONFIGURATION_PROBLEM"]), "{error}");
    assert_eq!(
        error["message"],
        "plugin helm: chart schema 1.0.0: values don't meet the specifications of the schema(s) in the following \
         chart(s): schema: - at '/replicas': got string, want integer part: - at '/port': exclusiveMinimum: got 0, want 0 (at /values)"
    );
    cluster.expect_absent(&json!({"apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1"})).await;

    let skips = json!({"install": {"skipSchemaValidation": true}});
    succeeds(&cluster, "schema", &json!({"config": {"values": values, "helmDeploymentConfig": skips}})).await;
    cluster.expect(&config_map("rel", json!({"replicas": "many"}))).await;
}

#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn what_a_chart_wants_kept_stays_when_it_leaves_the_chart() {
    let cluster = crate::cluster().await;
    succeeds(&cluster, "kept", &json!({})).await;
    cluster.expect(&config_map("rel-goes", Value::Null)).await;
    succeeds(&cluster, "kept", &json!({"config": {"values": {"both": false}}})).await;
    cluster.expect_absent(&config_map("rel-goes", Value::Null)).await;
    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "rel-data"}});
    let claim = cluster.expect(&claim).await;
    assert_eq!(claim["metadata"].get("deletionTimestamp"), None);
}
