//! What would change in an object, field by field, for people: without what only the server writes, and without what is
//! secret.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::SERVER_OWNED;
use crate::health::same;

/// What stands where something secret would.
const HIDDEN: &str = "(hidden)";
/// The fields of a Secret that keep something.
const SECRET_FIELDS: [&str; 2] = ["data", "stringData"];
/// Annotations that only repeat the object, or whom it belongs to.
const NOISE: [&str; 1] = ["kubectl.kubernetes.io/last-applied-configuration"];

/// One field of an object that changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    /// Where, as people write it: `spec.template.spec.containers[web].image`.
    pub path: String,
    /// What it was; `None` where it was not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// What it becomes; `None` where it goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
}

/// An object as it is shown: without what only the server writes, and with `(hidden)` for what a Secret keeps.
pub fn display(object: &Value) -> Value {
    let mut object = plain(object);
    if is_secret(&object) {
        for field in SECRET_FIELDS {
            let Some(values) = object.get_mut(field).and_then(Value::as_object_mut) else { continue };
            values.values_mut().for_each(|value| *value = json!(HIDDEN));
        }
    }
    object
}

/// What changes from one form of an object to another, sorted by path. Lists whose members have names are compared by them.
/// Of a Secret it is told what changes and not to what.
pub fn difference(before: &Value, after: &Value) -> Vec<Difference> {
    let mut found = whole_difference(before, after);
    if is_secret(before) || is_secret(after) {
        for one in &mut found {
            if SECRET_FIELDS.contains(&one.path.split(['.', '[']).next().unwrap_or_default()) {
                one.before = one.before.take().map(|_| json!(HIDDEN));
                one.after = one.after.take().map(|_| json!(HIDDEN));
            }
        }
    }
    found
}

/// The same with what a Secret keeps: for digests, and shown nowhere.
pub fn whole_difference(before: &Value, after: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    compare("", Some(&plain(before)), Some(&plain(after)), &mut found);
    found
}

fn is_secret(object: &Value) -> bool {
    object.get("kind") == Some(&json!("Secret")) && object.get("apiVersion") == Some(&json!("v1"))
}

/// An object without what only the server writes, and with what a Secret keeps: for digests, and shown nowhere.
pub fn plain(object: &Value) -> Value {
    let mut object = object.clone();
    let Some(fields) = object.as_object_mut() else { return object };
    fields.remove("status");
    if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|name, _| !SERVER_OWNED.contains(&name.as_str()));
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.retain(|name, _| !NOISE.contains(&name.as_str()));
        }
    }
    object
}

fn compare(path: &str, before: Option<&Value>, after: Option<&Value>, found: &mut Vec<Difference>) {
    let (before, after) = (before.filter(|value| !value.is_null()), after.filter(|value| !value.is_null()));
    match (before, after) {
        (None, None) => {}
        (Some(Value::Object(before)), Some(Value::Object(after))) => {
            let names: std::collections::BTreeSet<&String> = before.keys().chain(after.keys()).collect();
            for name in names {
                compare(&member(path, name), before.get(name), after.get(name), found);
            }
        }
        (Some(Value::Array(before)), Some(Value::Array(after))) => lists(path, before, after, found),
        (Some(before), Some(after)) if same(before, after) => {}
        (before, after) => {
            found.push(Difference { path: path.to_owned(), before: before.cloned(), after: after.cloned() });
        }
    }
}

fn lists(path: &str, before: &[Value], after: &[Value], found: &mut Vec<Difference>) {
    let (by_name, others) = (named(before), named(after));
    if let (Some(before), Some(after)) = (by_name, others) {
        compare_members(path, &before, &after, found);
        return;
    }
    for index in 0..before.len().max(after.len()) {
        compare(&format!("{path}[{index}]"), before.get(index), after.get(index), found);
    }
}

fn compare_members(path: &str, before: &Map<String, Value>, after: &Map<String, Value>, found: &mut Vec<Difference>) {
    let names: std::collections::BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    for name in names {
        compare(&format!("{path}[{name}]"), before.get(name), after.get(name), found);
    }
}

/// The members of a list by their names; `None` where one has none, or two have the same.
pub(crate) fn named(list: &[Value]) -> Option<Map<String, Value>> {
    let mut members = Map::new();
    for member in list {
        let name = member.get("name")?.as_str()?.to_owned();
        if members.insert(name, member.clone()).is_some() {
            return None;
        }
    }
    Some(members)
}

/// The path of a member of an object.
pub(crate) fn member(path: &str, name: &str) -> String {
    let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
    match (path.is_empty(), is_plain) {
        (true, true) => name.to_owned(),
        (false, true) => format!("{path}.{name}"),
        (_, false) => format!("{path}[{name:?}]"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(path: &str, before: Option<Value>, after: Option<Value>) -> Difference {
        Difference { path: path.to_owned(), before, after }
    }

    #[test]
    fn what_changes_is_told_field_by_field() {
        let container = |name: &str, image: &str| json!({"name": name, "image": image});
        let before = json!({
            "metadata": {"name": "a", "labels": {"app.kubernetes.io/version": "1"}, "uid": "u", "generation": 3,
                "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"}},
            "spec": {"replicas": 1, "paused": null, "args": ["x", "y"],
                "containers": [container("web", "web:1"), container("log", "log:1")]},
            "status": {"replicas": 1},
        });
        let after = json!({
            "metadata": {"name": "a", "labels": {"app.kubernetes.io/version": "2"}, "annotations": {}},
            "spec": {"replicas": 2, "args": ["x"], "containers": [container("log", "log:1"), container("web", "web:2")],
                "limit": "1"},
        });
        let expected = [
            one("metadata.labels[\"app.kubernetes.io/version\"]", Some(json!("1")), Some(json!("2"))),
            one("spec.args[1]", Some(json!("y")), None),
            one("spec.containers[web].image", Some(json!("web:1")), Some(json!("web:2"))),
            one("spec.limit", None, Some(json!("1"))),
            one("spec.replicas", Some(json!(1)), Some(json!(2))),
        ];
        assert_eq!(difference(&before, &after), expected);
        assert_eq!(difference(&after, &after), []);
    }

    #[test]
    fn of_a_secret_it_is_told_what_changes_and_not_to_what() {
        let secret = |password: &str| json!({"apiVersion": "v1", "kind": "Secret", "data": {"user": "YQ==", "password": password}});
        let found = difference(&secret("aHVudGVy"), &secret("aHVudGVyMg=="));
        assert_eq!(found, [one("data.password", Some(json!("(hidden)")), Some(json!("(hidden)")))]);
        let whole = difference(&json!({"apiVersion": "v1", "kind": "Secret"}), &secret("aHVudGVy"));
        assert_eq!(whole, [one("data", None, Some(json!("(hidden)")))]);
        assert_eq!(
            display(&secret("aHVudGVy")),
            json!({"apiVersion": "v1", "kind": "Secret", "data": {"user": "(hidden)", "password": "(hidden)"}})
        );
    }
}
