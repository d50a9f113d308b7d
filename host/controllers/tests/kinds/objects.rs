//! The objects that the tests write, as JSON.

use serde_json::{Value, json};

/// The version of our kinds.
pub(crate) const API: &str = "landscaper.gardener.cloud/v1alpha1";
/// The type of deploy items; no component claims it.
pub(crate) const TYPE: &str = "example.org/external";
/// The type that the component claims.
pub(crate) const SCRIPTED: &str = "example.org/scripted";
/// The engine of the tests.
pub(crate) const ENGINE: &str = "Paths";

pub(crate) fn object(kind: &str, name: &str, spec: &Value) -> Value {
    let mut object = json!({"apiVersion": API, "kind": kind, "metadata": {"name": name, "namespace": "default"}});
    // A Context has none.
    if kind != "Context" {
        object["spec"] = spec.clone();
    }
    object
}

/// An Installation of a blueprint with these fields, which asks for a job.
pub(crate) fn installation(name: &str, blueprint: &Value) -> Value {
    let mut installation = object("Installation", name, &json!({"blueprint": {"inline": files(blueprint)}}));
    installation["metadata"]["annotations"] = json!({"landscaper.gardener.cloud/operation": "reconcile"});
    installation
}

/// The same with these fields laid over its spec.
pub(crate) fn with(mut installation: Value, spec: &Value) -> Value {
    orangery_proposal::overlay::overlay(&mut installation["spec"], spec);
    installation
}

/// A sub-installation of a blueprint with these fields; `fields` are those of its template.
pub(crate) fn sub(name: &str, blueprint: &Value, fields: &Value) -> Value {
    let mut template =
        json!({"apiVersion": API, "kind": "InstallationTemplate", "name": name, "blueprint": files(blueprint)});
    orangery_proposal::overlay::overlay(&mut template, fields);
    template
}

fn files(blueprint: &Value) -> Value {
    let mut whole = json!({"apiVersion": API, "kind": "Blueprint"});
    orangery_proposal::overlay::overlay(&mut whole, blueprint);
    json!({"filesystem": {"blueprint.yaml": whole.to_string()}})
}

/// A blueprint with these items, and what each depends on.
pub(crate) fn deploying(items: &[(&str, &[&str])]) -> Value {
    let items: Vec<Value> = items.iter().map(|(name, after)| item(name, after, &json!({}))).collect();
    of_items(&items)
}

/// A blueprint with these items.
pub(crate) fn of_items(items: &[Value]) -> Value {
    json!({"deployExecutions": [{"name": "items", "type": ENGINE, "template": json!({"deployItems": items}).to_string()}]})
}

/// A deploy item; `fields` is laid over it.
pub(crate) fn item(name: &str, after: &[&str], fields: &Value) -> Value {
    let config = json!({"apiVersion": "example.org/v1", "kind": "Anything", "of": name});
    let mut item = json!({"name": name, "type": TYPE, "dependsOn": after, "config": config});
    orangery_proposal::overlay::overlay(&mut item, fields);
    item
}

/// Where a template takes a value from its inputs.
pub(crate) fn input(pointer: &str) -> Value {
    json!({"$input": pointer})
}

/// A data import of a blueprint.
pub(crate) fn data_import(name: &str) -> Value {
    json!({"name": name, "type": "data", "schema": {}})
}

/// A data export of a blueprint.
pub(crate) fn data_export(name: &str) -> Value {
    json!({"name": name, "type": "data", "schema": {}})
}

/// `data` imports or exports of an Installation: each key under its own name.
pub(crate) fn data(keys: &[&str]) -> Value {
    let entries: Vec<Value> = keys.iter().map(|key| json!({"name": key, "dataRef": key})).collect();
    json!({"data": entries})
}

/// Two blueprints in one.
pub(crate) fn both(one: &Value, other: &Value) -> Value {
    let mut blueprint = one.clone();
    orangery_proposal::overlay::overlay(&mut blueprint, other);
    blueprint
}

/// A blueprint that exports this value.
pub(crate) fn exporting(name: &str, value: &Value) -> Value {
    let template = json!({"exports": {name: value}}).to_string();
    json!({
        "exports": [data_export(name)],
        "exportExecutions": [{"name": "exports", "type": ENGINE, "template": template}],
    })
}

/// A DataObject.
pub(crate) fn data_object(name: &str, data: &Value) -> Value {
    json!({"apiVersion": API, "kind": "DataObject", "metadata": {"name": name, "namespace": "default"}, "data": data})
}
