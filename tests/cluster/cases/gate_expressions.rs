//! Gate expressions: whether a deploy item or a sub-installation takes part, is wanted, is ready and is gone.

use orangery_tests::{
    external_deployer::{self},
    objects::{NAMESPACE, Objects},
    tree::{any, blueprint, config, executions, imports_cluster, in_phase, installation, on_cluster},
};
use serde_json::{Map, Value, json};

pub(crate) mod components;
mod definitions;
mod deploy_items;
mod subinstallations;

/// An item that the test plays; `fields` are its gate expressions, and whatever else it has.
fn item(name: &str, after: &[&str], fields: Value) -> Value {
    let mut item = json!({
        "name": name, "type": external_deployer::TYPE, "dependsOn": after, "config": config("x"), "target": {"import": "cluster"},
    });
    let (Some(item), Some(fields)) = (item.as_object_mut(), fields.as_object()) else { return Value::Null };
    item.extend(fields.clone());
    Value::Object(item.clone())
}

/// The tree of these items, which imports `wanted` from a DataObject of that name.
fn tree(items: &[Value]) -> Value {
    tree_with(json!({"deployExecutions": executions(items)}))
}

/// The same of a blueprint with these fields.
fn tree_with(mut fields: Value) -> Value {
    let mut imports = imports_cluster();
    if let Some(imports) = imports.as_array_mut() {
        imports.push(json!({"name": "wanted", "type": "data", "schema": {"type": "boolean"}}));
    }
    fields["imports"] = imports;
    let mut tree = on_cluster(installation("tree", &blueprint(fields)));
    tree["spec"]["imports"]["data"] = json!([{"name": "wanted", "dataRef": "wanted"}]);
    tree
}

async fn want(cluster: &Objects, wanted: bool) {
    let metadata = json!({"name": "wanted"});
    cluster
        .apply(&json!({
            "apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "DataObject", "metadata": metadata, "data": wanted,
        }))
        .await;
}

fn config_map(name: &str, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": NAMESPACE}, "data": data})
}

/// A condition over the ConfigMap `metric`.
fn over_metric(expression: &str) -> Value {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "namespace": NAMESPACE, "name": "metric"});
    json!({"expression": expression, "objects": {"metric": object}})
}

/// The results of an item's gate expressions, without times: type to status, reason and message.
async fn results(cluster: &Objects, name: &str) -> Map<String, Value> {
    let execution = cluster.list(&any("Execution", "tree")).await.pop().unwrap_or_default();
    let items = execution.pointer("/status/items").and_then(Value::as_array).cloned().unwrap_or_default();
    let conditions = items.iter().filter(|item| item["name"] == name).flat_map(|item| item["conditions"].as_array());
    let result = |one: &Value| {
        (one["type"].as_str().unwrap_or_default().to_owned(), json!([one["status"], one["reason"], one["message"]]))
    };
    conditions.flatten().map(result).collect()
}

/// Waits until a gate expression of an item says this.
async fn says(cluster: &Objects, name: &str, condition: &str, status: &str) {
    let is = |execution: &Value| {
        let items = execution.pointer("/status/items").and_then(Value::as_array);
        items.into_iter().flatten().filter(|item| item["name"] == name).any(|item| {
            let conditions = item["conditions"].as_array();
            conditions.into_iter().flatten().any(|one| one["type"] == condition && one["status"] == status)
        })
    };
    let execution = json!({"apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "Execution"});
    cluster.expect_that(&execution, &format!("{condition} of {name} was never {status}"), is).await;
}

async fn failure(cluster: &Objects) -> String {
    let execution = cluster.expect(&in_phase("Execution", "tree", "Failed")).await;
    execution["status"]["lastError"]["message"].as_str().unwrap_or_default().to_owned()
}
