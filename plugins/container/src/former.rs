//! What the container deployer of Landscaper has left: a pod that runs for this very job, its exports, and objects that no inventory
//! names. States are read as they are ([`crate::state`]).

use data_encoding::BASE64;
use orangery_sdk::{Fault, Host, ObjectKey, ObjectRemoval, Selection};
use serde_json::Value;

use crate::{
    names::{HASH, deployer_label, item_generation, selector},
    objects::Run,
};

/// Kinds of what it leaves, and the types of those of them that count; none for all.
const LEFT: [(&str, &str, &[&str]); 5] = [
    ("v1", "ConfigMap", &[]),
    ("v1", "Secret", &["configuration", "target", "registry-pull-secret"]),
    ("v1", "ServiceAccount", &[]),
    ("rbac.authorization.k8s.io/v1", "Role", &[]),
    ("rbac.authorization.k8s.io/v1", "RoleBinding", &[]),
];

/// The mark that the host puts on what it writes.
const OWNER: &str = "orangery.dev/owner";

/// The name of the newest of these pods that runs for this job and was made by Landscaper's deployer: it has its finalizer and the
/// generation of the item, does the same, and is no older than the job.
pub(crate) fn pod_of_job(pods: &[Value], run: &Run<'_>) -> Option<String> {
    let of_job = pods.iter().filter(|pod| is_former(pod) && is_of_job(pod, run));
    of_job
        .max_by_key(|pod| text(pod, "/metadata/creationTimestamp").to_owned())
        .map(|pod| text(pod, "/metadata/name").to_owned())
}

fn is_former(pod: &Value) -> bool {
    let mut finalizers = pod.pointer("/metadata/finalizers").and_then(Value::as_array).into_iter().flatten();
    let has_mark = pod.pointer("/metadata/annotations").is_some_and(|annotations| annotations.get(OWNER).is_some());
    !has_mark && finalizers.any(|finalizer| *finalizer == deployer_label("finalizer"))
}

fn is_of_job(pod: &Value, run: &Run<'_>) -> bool {
    let generation = pod.pointer("/metadata/labels").and_then(|labels| labels.get(item_generation())?.as_str());
    let containers = pod.pointer("/spec/containers").and_then(Value::as_array).into_iter().flatten();
    let variables = containers.filter(|container| text(container, "/name") == "main");
    let mut variables = variables.filter_map(|main| main.get("env")?.as_array()).flatten();
    generation == Some(run.item.generation.to_string().as_str())
        // Both are times in UTC as RFC 3339 writes them.
        && text(pod, "/metadata/creationTimestamp") >= run.item.now.as_str()
        && pod.pointer("/metadata/deletionTimestamp").is_none()
        && variables.any(|variable| text(variable, "/name") == "OPERATION" && text(variable, "/value") == run.operation)
}

/// The Secret with the exports of its last pod that had some.
pub(crate) fn exports_key(run: &Run<'_>) -> ObjectKey {
    secret(run, format!("{}-{}-export", run.item.namespace, run.item.name))
}

/// The document in that Secret, where this pod has written it: one of an earlier pod stays there.
pub(crate) fn exports(secret: &Value, pod: &Value) -> Option<Result<Value, String>> {
    let created = text(pod, "/metadata/creationTimestamp");
    let managed = secret.pointer("/metadata/managedFields").and_then(Value::as_array).into_iter().flatten();
    let times = managed.map(|entry| text(entry, "/time")).chain([text(secret, "/metadata/creationTimestamp")]);
    if times.max().is_some_and(|written| written < created) {
        return None;
    }
    let bytes = BASE64.decode(text(secret, "/data/config").as_bytes()).ok().filter(|bytes| !bytes.is_empty())?;
    Some(yaml_serde::from_slice(&bytes).map_err(|error| error.to_string()))
}

/// Whether the status of an item is the one that Landscaper's deployer has written: it names a pod as that does.
pub(crate) fn is_of_former(status: &Value) -> bool {
    let pod = text(status, "/podStatus/podName");
    let end = pod.rsplit('-').next().unwrap_or_default();
    let is_ours = end.len() == HASH && end.bytes().all(|byte| byte.is_ascii_hexdigit());
    !pod.is_empty() && !is_ours
}

/// The removal of what it has left for an item beside pods and states.
pub(crate) fn leftovers(run: &Run<'_>, host: &impl Host) -> Result<Vec<ObjectRemoval>, Fault> {
    // It has no label. In a namespace that items of others share, one of another item may be called the same.
    let is_shared = run.namespace != run.item.namespace;
    let mut left = if is_shared { Vec::new() } else { vec![exports_key(run)] };
    for (api_version, kind, types) in LEFT {
        let what = Selection {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            namespace: Some(run.namespace.clone()),
            names: Vec::new(),
            labels: Some(selector(run.item)),
            fields: None,
        };
        let label = deployer_label("type");
        let type_of = |object: &Value| {
            object.pointer("/metadata/labels").and_then(|labels| Some(labels.get(&label)?.as_str()?.to_owned()))
        };
        let is_left = |object: &&Value| {
            let annotations = object.pointer("/metadata/annotations");
            let has_mark = annotations.is_some_and(|annotations| annotations.get(OWNER).is_some());
            let counts = types.is_empty() || type_of(object).is_some_and(|one| types.contains(&one.as_str()));
            counts && !has_mark
        };
        let found = host.list(&run.on, &what)?;
        left.extend(found.iter().filter(is_left).map(|object| ObjectKey {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            namespace: Some(run.namespace.clone()),
            name: text(object, "/metadata/name").to_owned(),
        }));
    }
    Ok(left.into_iter().map(|key| ObjectRemoval { key, on: run.on.clone(), force: false }).collect())
}

fn secret(run: &Run<'_>, name: String) -> ObjectKey {
    ObjectKey { api_version: "v1".to_owned(), kind: "Secret".to_owned(), namespace: Some(run.namespace.clone()), name }
}

fn text<'v>(of: &'v Value, pointer: &str) -> &'v str {
    of.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn con_21_exports_count_that_were_written_after_their_pod_was_made() {
        let pod = json!({"metadata": {"creationTimestamp": "2026-01-02T00:00:00Z"}});
        let secret = |created: &str, managed: &str, text: &str| {
            json!({
                "metadata": {"creationTimestamp": created, "managedFields": [{"time": managed}]},
                "data": {"config": BASE64.encode(text.as_bytes())},
            })
        };
        let (before, after) = ("2026-01-01T00:00:00Z", "2026-01-02T00:00:09Z");
        let found = |created, managed, text| exports(&secret(created, managed, text), &pod);
        assert_eq!(found(before, before, "a: 1"), None);
        assert_eq!(found(before, after, "a: 1"), Some(Ok(json!({"a": 1}))));
        assert_eq!(found(after, after, r#"{"a": [1]}"#), Some(Ok(json!({"a": [1]}))));
        assert!(matches!(found(after, after, "a: ["), Some(Err(_))));
        assert_eq!(exports(&json!({"metadata": {"creationTimestamp": after}}), &pod), None);
    }

    #[test]
    fn con_21_the_status_of_the_former_deployer_is_known_by_the_name_of_its_pod() {
        let of = |pod: &str| is_of_former(&json!({"podStatus": {"podName": pod}}));
        assert_eq!([of("task-x7k2p"), of("task-97fe2cdba9"), of("")], [true, false, false]);
        assert!(!is_of_former(&Value::Null));
    }
}
