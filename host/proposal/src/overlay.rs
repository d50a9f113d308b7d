//! Bringing a live object to a desired form, as the update strategies of `docs/wire.md` §8.1 do it, and showing how
//! far a live object is from it. Functions of JSON.

use serde_json::{Map, Value, json};

use crate::health::same;
pub use difference::{Difference, difference, display, plain, whole_difference};
pub(crate) use difference::{member, named};
pub use drift::{Drift, Ignored, baseline, drift, spared};
pub use three_way::three_way;

mod difference;
mod drift;
mod three_way;

/// What only the server writes in `metadata`.
const SERVER_OWNED: [&str; 8] = [
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "managedFields",
    "selfLink",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
];

/// Applies a JSON merge patch (RFC 7396).
pub fn apply_merge_patch(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        patch.clone_into(target);
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(target) = target else { return };
    for (key, value) in patch {
        if value.is_null() {
            target.remove(key);
        } else {
            apply_merge_patch(target.entry(key).or_insert(Value::Null), value);
        }
    }
}

/// The JSON merge patch from one document to another; `None` where they are the same.
pub fn merge_patch(from: &Value, to: &Value) -> Option<Value> {
    let (Value::Object(from), Value::Object(to)) = (from, to) else {
        return (!same(from, to)).then(|| to.clone());
    };
    let mut patch = Map::new();
    for (key, value) in to.iter().filter(|(_, value)| !value.is_null()) {
        let change = match from.get(key) {
            Some(before) => merge_patch(before, value),
            None => Some(value.clone()),
        };
        patch.extend(change.map(|change| (key.clone(), change)));
    }
    let gone = from.iter().filter(|(key, value)| !value.is_null() && to.get(*key).is_none_or(Value::is_null));
    patch.extend(gone.map(|(key, _)| (key.clone(), Value::Null)));
    (!patch.is_empty()).then_some(Value::Object(patch))
}

/// What counts as empty when an object is filled: Go's zero values, as the original merges.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
    }
}

/// Fills what `target` leaves empty from `source` (update strategy `merge`).
pub fn fill(target: &mut Value, source: &Value) {
    match (target, source) {
        (Value::Object(target), Value::Object(source)) => {
            for (key, value) in source {
                fill(target.entry(key).or_insert(Value::Null), value);
            }
        }
        (target, source) if is_empty(target) => source.clone_into(target),
        _ => {}
    }
}

/// Lays `source` over `target`: maps are merged, everything else replaces what was there, also `false`, `0`, `""`, `[]`
/// and `null` (update strategy `mergeOverwrite`, `patchAfterDeployment`, `patchBeforeDelete`; `docs/wire.md` §8.1).
pub fn overlay(target: &mut Value, source: &Value) {
    match (target, source) {
        (Value::Object(target), Value::Object(source)) => {
            for (key, value) in source {
                overlay(target.entry(key).or_insert(Value::Null), value);
            }
        }
        (target, source) => source.clone_into(target),
    }
}

/// The body that replaces `live` with `desired`, keeping what the server and its controllers own: the resource version,
/// finalizers and owners where the desired form names none, and the fields of some kinds that cannot change.
pub fn replacement(live: &Value, desired: &Value) -> Value {
    let mut body = desired.clone();
    keep(live, &mut body, &["metadata", "resourceVersion"], Keep::Always);
    keep(live, &mut body, &["metadata", "finalizers"], Keep::WhereAbsent);
    keep(live, &mut body, &["metadata", "ownerReferences"], Keep::WhereAbsent);
    let group = text(live, "apiVersion").split_once('/').map_or("", |(group, _)| group);
    match (group, text(live, "kind")) {
        ("batch", "Job") => {
            keep(live, &mut body, &["spec", "selector"], Keep::Always);
            let labels = ["spec", "template", "metadata", "labels"];
            let mut kept = at(live, &labels).cloned().unwrap_or(Value::Null);
            // A template without labels has those that the server gave it: nothing is laid over them.
            if let Some(wanted) = at(desired, &labels).filter(|wanted| !wanted.is_null()) {
                overlay(&mut kept, wanted);
            }
            if !kept.is_null() {
                put(&mut body, &labels, kept);
            }
        }
        ("", "Service") if text(body.get("spec").unwrap_or(&Value::Null), "type") != "ExternalName" => {
            for field in ["clusterIP", "clusterIPs", "healthCheckNodePort"] {
                keep(live, &mut body, &["spec", field], Keep::WhereAbsent);
            }
        }
        ("", "ServiceAccount") => keep(live, &mut body, &["secrets"], Keep::WhereAbsent),
        // What the server filled in cannot be taken away again.
        ("", "PersistentVolumeClaim") => {
            for field in ["volumeName", "storageClassName", "volumeMode", "dataSource", "dataSourceRef"] {
                keep(live, &mut body, &["spec", field], Keep::WhereAbsent);
            }
        }
        _ => {}
    }
    body
}

/// When a live field is kept.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keep {
    Always,
    WhereAbsent,
}

fn keep(live: &Value, body: &mut Value, path: &[&str], when: Keep) {
    let absent = at(body, path).is_none_or(is_empty);
    if let Some(value) = at(live, path)
        && (absent || when == Keep::Always)
    {
        put(body, path, value.clone());
    }
}

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn at<'a>(object: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(object, |value, key| value.get(key))
}

fn put(object: &mut Value, path: &[&str], value: Value) {
    match path {
        [] => *object = value,
        [key, rest @ ..] => {
            if !object.is_object() {
                *object = json!({});
            }
            if let Value::Object(map) = object {
                put(map.entry(*key).or_insert(Value::Null), rest, value);
            }
        }
    }
}

/// An object without what only the server writes.
pub fn without_server_owned(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(meta) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for field in SERVER_OWNED {
            meta.remove(field);
        }
    }
    object
}

/// Whether writing `body` over `live` would change nothing.
pub fn is_unchanged(live: &Value, body: &Value) -> bool {
    let (mut live, body) = (without_server_owned(live), without_server_owned(body));
    if body.get("status").is_none()
        && let Value::Object(live) = &mut live
    {
        live.remove("status");
    }
    same(&live, &body)
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
