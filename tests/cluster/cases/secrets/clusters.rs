//! What is read of Secrets in clusters: as exports of items, and by charts (C-195); and the Secret that exports are written to
//! (C-194).

use orangery_tests::{
    chart::{deploy, deploy_well, item, packed},
    cluster::Cluster,
    objects::NAMESPACE,
    tree::{API, any, blueprint, deploys, executions, imports_cluster, in_phase, installation, on_cluster},
};
use serde_json::{Value, json};

use super::{CANARY, check, readable, secret};
use crate::cases::policies::{policy, put, refused};

/// An item that writes a ConfigMap of its name, and exports what stands at a path of an object as `out`.
fn exports(name: &str, (kind, of): (&str, &str), path: &str) -> Value {
    let mut item = deploys(name, &[], "content");
    let from = json!({"apiVersion": "v1", "kind": kind, "name": of, "namespace": NAMESPACE});
    item["config"]["exports"] = json!({"exports": [{"key": "out", "fromResource": from, "jsonPath": path}]});
    item
}

/// A root of such an item that exports the value of the Secret, as it stands in it.
fn exporter() -> Value {
    let template = json!({"exports": {"out": "{{ values.deployitems.item.out }}"}}).to_string();
    let fields = json!({
        "imports": imports_cluster(),
        "deployExecutions": executions(&[exports("item", ("Secret", "canary"), "data.value")]),
        "exports": [{"name": "out", "type": "data", "schema": {}}],
        "exportExecutions": [{"name": "e", "type": "Jinja", "template": template}],
    });
    let mut root = on_cluster(installation("root", &blueprint(fields)));
    root["spec"]["exports"] = json!({"data": [{"name": "out", "dataRef": "out"}]});
    root
}

/// A root that has the export as a label of an object, which no server takes.
fn naming() -> Value {
    let mut item = deploys("item", &[], "content");
    item["config"]["manifests"][0]["manifest"]["metadata"]["labels"] = json!({"of": "{{ imports.out }}"});
    let mut imports = imports_cluster();
    imports.as_array_mut().expect("a list").push(json!({"name": "out", "type": "data", "schema": {}}));
    let fields = json!({"imports": imports, "deployExecutions": executions(&[item])});
    let mut root = on_cluster(installation("naming", &blueprint(fields)));
    root["spec"]["imports"]["data"] = json!([{"name": "out", "dataRef": "out"}]);
    root
}

async fn data_objects(cluster: &Cluster) -> Vec<Value> {
    cluster.list(&any("DataObject", "")).await
}

#[tokio::test]
async fn c_195_exports_of_a_secret_are_encrypted_and_an_error_with_their_value_does_not_show_it() {
    let cluster = crate::cluster().await;
    put(&cluster, &policy("team", json!({}))).await;
    cluster.apply(&secret()).await;
    cluster.apply(&exporter()).await;
    cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
    let found = data_objects(&cluster).await;
    let encrypted = found.iter().filter(|object| object["data"]["orangery.dev/encrypted"].is_string());
    // What the items export, and the export.
    assert_eq!((encrypted.count(), found.len()), (2, 2), "{found:#?}");
    check("a DataObject", &json!(found).to_string());
    let written = cluster.list(&json!({"apiVersion": "v1", "kind": "Secret"})).await;
    let told =
        written.iter().filter_map(|secret| secret["metadata"]["annotations"]["orangery.dev/secret-exports"].as_str());
    assert_eq!(told.collect::<Vec<_>>(), [r#"["/out"]"#]);
    cluster.apply(&naming()).await;
    let failed = cluster.expect(&in_phase("Installation", "naming", "Failed")).await;
    assert!(failed["status"]["lastError"]["message"].to_string().contains("[masked]"), "{failed:#}");
    for (what, text) in readable(&cluster).await {
        check(&what, &text);
    }
}

#[tokio::test]
async fn c_195_exports_of_a_secret_are_refused_or_readable_and_marked_as_the_policy_says() {
    let cluster = crate::cluster().await;
    put(&cluster, &policy("team", json!({"dataObjects": {"secretData": "Refused"}}))).await;
    cluster.apply(&secret()).await;
    cluster.apply(&exporter()).await;
    let line = "spec.dataObjects.secretData";
    refused(&cluster, &any("Installation", "root"), "Failed", line).await;
    assert_eq!(data_objects(&cluster).await, Vec::<Value>::new());
    put(&cluster, &policy("team", json!({"dataObjects": {"secretData": "Readable"}}))).await;
    cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
    let value = data_encoding::BASE64.encode(CANARY.as_bytes());
    let open = |object: &Value| {
        object["metadata"]["name"] == "out"
            && object["data"] == value.as_str()
            && object["metadata"]["labels"]["orangery.dev/secret-data"] == "whole"
    };
    cluster.expect_that(&any("DataObject", ""), "is not readable and marked", open).await;
}

#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn c_195_a_chart_that_fails_with_a_secret_shows_nothing_of_it() {
    let cluster = crate::cluster().await;
    cluster.apply(&secret()).await;
    let template = "{{ $found := (lookup \"v1\" \"Secret\" \"default\" \"canary\").data }}\
                    {{ fail (printf \"it says %v %s\" $found (b64dec $found.value)) }}";
    deploy(&cluster, &item(&packed("1.0.0", &[("a.yaml", template)]), &json!({}))).await;
    let failed = cluster.expect(&in_phase("DeployItem", "item", "Failed")).await;
    let message = failed["status"]["lastError"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("it says map[value:[masked]] [masked]"), "{message}");
    for (what, text) in readable(&cluster).await {
        check(&what, &text);
    }
}

#[tokio::test]
async fn c_194_a_secret_of_a_user_by_the_name_of_the_exports_outlives_the_item() {
    let cluster = crate::cluster().await;
    let theirs = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "ux-export"}, "stringData": {"mine": "kept"}});
    cluster.apply(&theirs).await;
    let before = cluster.expect(&theirs_by_name()).await;
    let template = exports("ux", ("ConfigMap", "ux"), "data.content");
    let target = json!({"name": "cluster", "namespace": NAMESPACE});
    let spec = json!({"type": template["type"], "target": target, "config": template["config"]});
    let item = json!({"apiVersion": API, "kind": "DeployItem", "metadata": {"name": "ux"}, "spec": spec});
    deploy(&cluster, &item).await;
    let failed = cluster.expect(&in_phase("DeployItem", "ux", "Failed")).await;
    let message = failed["status"]["lastError"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("Secret default/ux-export is there already, and the item is not its owner"), "{message}");
    cluster.delete(&any("DeployItem", "ux")).await;
    cluster.expect_absent(&any("DeployItem", "ux")).await;
    let after = cluster.expect(&theirs_by_name()).await;
    assert_eq!((&after["data"], &after["metadata"]["uid"]), (&before["data"], &before["metadata"]["uid"]));
    assert_eq!(after["metadata"].get("ownerReferences"), None, "{after:#}");
    // Once it is out of the way the exports are written.
    cluster.delete(&theirs_by_name()).await;
    deploy_well(&cluster, &item).await;
    let owned = |secret: &Value| secret["metadata"]["ownerReferences"][0]["name"] == "ux";
    cluster.expect_that(&theirs_by_name(), "has no owner", owned).await;
}

fn theirs_by_name() -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "ux-export"}})
}
