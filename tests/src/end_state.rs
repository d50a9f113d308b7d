//! The objects of a server as they are in the end, without what differs from run to run: times, uids, versions, names that
//! are made up, ids of jobs.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::{objects::Objects, tree::API};

/// The kinds that a tree leaves.
const KINDS: [(&str, &str); 7] = [
    (API, "Installation"),
    (API, "Execution"),
    (API, "DeployItem"),
    (API, "DataObject"),
    (API, "Target"),
    ("v1", "ConfigMap"),
    ("v1", "Secret"),
];

/// The key of the host is drawn at its first start, the certificate of the server at its.
const NOT_OF_THE_TREE: [&str; 2] = ["orangery-seed", "kube-root-ca.crt"];

/// All objects, a line of JSON each, sorted.
pub async fn end_state(objects: &Objects) -> Vec<String> {
    let mut all = Vec::new();
    for (version, kind) in KINDS {
        all.extend(objects.list(&json!({"apiVersion": version, "kind": kind})).await);
    }
    all.retain(|object| !NOT_OF_THE_TREE.contains(&name(object)) && !is_credential(object));
    normalised(&all)
}

/// Whether an object holds how a cluster is reached, which differs from run to run.
fn is_credential(object: &Value) -> bool {
    object.get("type").and_then(Value::as_str) == Some("orangery.dev/kubeconfig")
}

fn normalised(objects: &[Value]) -> Vec<String> {
    let names = names(objects);
    let message = |object: &Value| {
        let mut object = object.clone();
        strip(&mut object);
        strip_release(&mut object);
        let text = object.to_string();
        names.iter().fold(text, |text, (name, stable)| text.replace(name.as_str(), stable))
    };
    let mut lines: Vec<String> = objects.iter().map(message).collect();
    lines.sort();
    lines
}

/// Names that are made up, with what to call them instead: the prefix of a generated one and what it stands for, the place of
/// a hashed one among those of its kind, `job` for the id of a job.
fn names(objects: &[Value]) -> Vec<(String, String)> {
    let mut names = BTreeMap::new();
    for object in objects {
        if let Some(prefix) = object.pointer("/metadata/generateName").and_then(Value::as_str) {
            names.insert(name(object).to_owned(), format!("{prefix}generated"));
        }
        if let Some(job) = object.pointer("/status/jobID").and_then(Value::as_str) {
            names.insert(job.to_owned(), "job".to_owned());
        }
        if let Some(address) = object.pointer("/spec/config/kubeconfig").and_then(Value::as_str) {
            names.insert(json!(address).to_string(), "\"kubeconfig\"".to_owned());
        }
        if is_hashed(name(object)) {
            names.insert(name(object).to_owned(), "hashed".to_owned());
        }
    }
    // Names are made up of names.
    let mut names: Vec<(String, String)> = names.into_iter().collect();
    names.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
    names
}

/// Whether a name is the hash of something that has a name which is made up.
fn is_hashed(name: &str) -> bool {
    name.len() == 32 && name.chars().all(|letter| matches!(letter, 'a'..='z' | '2'..='7'))
}

/// Removes the fields that differ from run to run, at any depth.
fn strip(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|field, _| !is_of_the_run(field));
            fields.values_mut().for_each(strip);
        }
        Value::Array(entries) => entries.iter_mut().for_each(strip),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Of a release of Helm only that it is there, and in which state: the rest is packed with times.
fn strip_release(object: &mut Value) {
    if object.get("type").is_some_and(|of| of == "helm.sh/release.v1") {
        object.as_object_mut().map(|fields| fields.remove("data"));
        let labels = object.pointer_mut("/metadata/labels").and_then(Value::as_object_mut);
        labels.into_iter().for_each(|labels| labels.retain(|label, _| !label.ends_with("At")));
        // That of a revision before is of an earlier job.
        let annotations = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
        annotations.map(|annotations| annotations.remove("orangery.dev/job"));
    }
}

fn is_of_the_run(field: &str) -> bool {
    let is_time = field.ends_with("Time") || field.ends_with("Times") || field.ends_with("Timestamp");
    let is_hash = field == "importsHash" || field.ends_with("/hash");
    is_time
        || is_hash
        || matches!(field, "uid" | "resourceVersion" | "managedFields" | "landscaper.gardener.cloud/reconcile-time")
        // The mark has the uid of the item; the seal is of uids, and counts writes.
        || matches!(field, "orangery.dev/owner" | "orangery.dev/owner-cluster" | "seal" | "number" | "credentials")
}

fn name(object: &Value) -> &str {
    object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_from_run_to_run_is_left_out_and_the_rest_stays() {
        let run = |suffix: &str, uid: &str, job: &str| {
            let item = json!({
                "kind": "DeployItem",
                "metadata": {"name": format!("tree-a-{suffix}"), "generateName": "tree-a-", "uid": uid, "generation": 2},
                "status": {"jobID": job, "jobIDFinished": job, "phase": "Succeeded", "lastReconcileTime": uid},
            });
            let metadata =
                json!({"name": format!("tree-a-{suffix}-b-{uid}"), "generateName": format!("tree-a-{suffix}-b-")});
            let status = json!({"activeDIs": [{"specName": "a", "objectName": format!("tree-a-{suffix}")}]});
            normalised(&[item, json!({"kind": "Execution", "metadata": metadata, "status": status})])
        };
        assert_eq!(run("x", "u", "j1"), run("y", "v", "j2"));
        assert_eq!(
            run("x", "u", "j1"),
            [
                r#"{"kind":"DeployItem","metadata":{"generateName":"tree-a-","generation":2,"name":"tree-a-generated"},"status":{"jobID":"job","jobIDFinished":"job","phase":"Succeeded"}}"#,
                r#"{"kind":"Execution","metadata":{"generateName":"tree-a-generated-b-","name":"tree-a-generated-b-generated"},"status":{"activeDIs":[{"objectName":"tree-a-generated","specName":"a"}]}}"#,
            ]
        );
    }
}
