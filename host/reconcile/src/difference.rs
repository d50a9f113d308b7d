//! What turns one document into another, as a patch.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

/// A change of a document.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PatchDocument {
    /// A JSON merge patch (RFC 7396): what it does not name stays as the server has it.
    Merge(Value),
    /// The operations of a JSON patch (RFC 6902): where a value to be written is or has a `null`, which a merge patch cannot say and
    /// servers leave out of its lists (C-170).
    Json(Vec<Value>),
}

/// The members whose own members are written one by one: servers and others may keep more in them than is known here.
const OPENED: [&str; 3] = ["metadata", "spec", "status"];

/// The change from `before` to `after`, where it is written under this resource version; `None` where they are the same.
pub(crate) fn difference(before: &Value, after: &Value, version: Option<&str>) -> Option<PatchDocument> {
    if before == after {
        return None;
    }
    if !is_sayable(before, after) {
        let version = version.map(|version| put("/metadata/resourceVersion", &json!(version)));
        return Some(PatchDocument::Json(version.into_iter().chain(operations(before, after)).collect()));
    }
    let mut patch = merge_patch(before, after);
    if let (Some(patch), Some(version)) = (patch.as_object_mut(), version) {
        let meta = patch.entry("metadata").or_insert_with(|| json!({}));
        if let Some(meta) = meta.as_object_mut() {
            meta.insert("resourceVersion".to_owned(), json!(version));
        }
    }
    Some(PatchDocument::Merge(patch))
}

/// Whether a merge patch can bring `before` to `after`: it writes no `null`.
fn is_sayable(before: &Value, after: &Value) -> bool {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => after.iter().all(|(name, value)| match before.get(name) {
            Some(known) => is_sayable(known, value),
            None => !has_null(value),
        }),
        (before, after) => before == after || !has_null(after),
    }
}

fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(values) => values.iter().any(has_null),
        Value::Object(members) => members.values().any(has_null),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn merge_patch(before: &Value, after: &Value) -> Value {
    let (Value::Object(before), Value::Object(after)) = (before, after) else { return after.clone() };
    let mut patch = Map::new();
    for (name, value) in after {
        match before.get(name) {
            Some(known) if known == value => {}
            known => drop(patch.insert(name.clone(), merge_patch(known.unwrap_or(&Value::Null), value))),
        }
    }
    let removed = before.keys().filter(|name| !after.contains_key(*name));
    patch.extend(removed.map(|name| (name.clone(), Value::Null)));
    Value::Object(patch)
}

/// Whole members of the document and of what is opened in it.
fn operations(before: &Value, after: &Value) -> Vec<Value> {
    let mut operations = Vec::new();
    for name in names(before, after) {
        let (was, is, path) = (before.get(name), after.get(name), format!("/{}", escaped(name)));
        match (was, is) {
            (Some(was @ Value::Object(_)), Some(is @ Value::Object(_))) if OPENED.contains(&name.as_str()) => {
                for inner in names(was, is) {
                    let path = format!("{path}/{}", escaped(inner));
                    operations.extend(change(&path, was.get(inner), is.get(inner)));
                }
            }
            (was, is) => operations.extend(change(&path, was, is)),
        }
    }
    operations
}

fn names<'a>(before: &'a Value, after: &'a Value) -> BTreeSet<&'a String> {
    [before, after].into_iter().filter_map(Value::as_object).flat_map(Map::keys).collect()
}

fn change(path: &str, was: Option<&Value>, is: Option<&Value>) -> Vec<Value> {
    match is {
        _ if was == is => Vec::new(),
        Some(is) => vec![put(path, is)],
        // What the server does not have, as it is a default here, cannot be removed before it is there.
        None => vec![put(path, &Value::Null), json!({"op": "remove", "path": path})],
    }
}

/// Adds a member, or replaces it.
fn put(path: &str, value: &Value) -> Value {
    json!({"op": "add", "path": path, "value": value})
}

fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(before: Value, after: Value, patch: Option<Value>) {
        assert_eq!(difference(&before, &after, None), patch.map(PatchDocument::Merge));
    }

    #[test]
    fn equal_documents_need_no_patch() {
        check(json!({"a": {"b": [1, {"c": null}]}}), json!({"a": {"b": [1, {"c": null}]}}), None);
    }

    #[test]
    fn changed_members_are_named_and_removed_ones_are_null() {
        check(
            json!({"same": 1, "changed": 1, "removed": 1, "deep": {"same": 1, "removed": 1}}),
            json!({"same": 1, "changed": 2, "added": 3, "deep": {"same": 1, "added": 4}}),
            Some(json!({"changed": 2, "removed": null, "added": 3, "deep": {"removed": null, "added": 4}})),
        );
    }

    #[test]
    fn lists_are_replaced_whole() {
        check(json!({"a": [1, 2]}), json!({"a": [2]}), Some(json!({"a": [2]})));
    }

    #[test]
    fn a_member_that_changes_its_sort_is_replaced() {
        check(json!({"a": {"b": 1}}), json!({"a": 1}), Some(json!({"a": 1})));
        check(json!({"a": 1}), json!({"a": {"b": 1}}), Some(json!({"a": {"b": 1}})));
        check(json!({"a": null}), json!({"a": {"b": 1}}), Some(json!({"a": {"b": 1}})));
    }

    #[test]
    fn an_empty_object_is_written_and_differs_from_an_absent_one() {
        check(json!({}), json!({"a": {}}), Some(json!({"a": {}})));
        check(json!({"a": {}}), json!({}), Some(json!({"a": null})));
    }

    #[test]
    fn a_null_that_stays_or_goes_needs_no_more_than_a_merge_patch() {
        check(json!({"a": {"n": null, "b": 1}}), json!({"a": {"n": null, "b": 2}}), Some(json!({"a": {"b": 2}})));
        check(json!({"a": {"n": null}}), json!({"a": {}}), Some(json!({"a": {"n": null}})));
    }

    #[test]
    fn c_170_a_null_that_is_new_is_written_at_any_depth() {
        let nulls = [
            json!(null),
            json!({"n": null}),
            json!({"deep": {"n": null}}),
            json!([null]),
            json!([{"n": null}]),
            json!({"b": [{"n": null}]}),
        ];
        for value in nulls {
            for before in [json!({"data": 1, "kept": 1}), json!({"data": {"n": 1}, "kept": 1}), json!({"kept": 1})] {
                let after = json!({"data": value, "kept": 1});
                let patch = Some(PatchDocument::Json(vec![json!({"op": "add", "path": "/data", "value": value})]));
                assert_eq!(difference(&before, &after, None), patch, "{before} {after}");
            }
        }
    }

    #[test]
    fn c_170_what_is_opened_is_written_by_its_members_under_the_version() {
        let before = json!({
            "metadata": {"name": "x", "labels": {"a": "1"}, "finalizers": ["f"]},
            "spec": {"same": 1, "values": {"a": 1}, "gone": 1},
        });
        let after = json!({
            "metadata": {"name": "x", "labels": {"a": "2"}},
            "spec": {"same": 1, "values": {"a": null}, "a/b~c": 1},
        });
        let operations = vec![
            json!({"op": "add", "path": "/metadata/resourceVersion", "value": "7"}),
            json!({"op": "add", "path": "/metadata/finalizers", "value": null}),
            json!({"op": "remove", "path": "/metadata/finalizers"}),
            json!({"op": "add", "path": "/metadata/labels", "value": {"a": "2"}}),
            json!({"op": "add", "path": "/spec/a~1b~0c", "value": 1}),
            json!({"op": "add", "path": "/spec/gone", "value": null}),
            json!({"op": "remove", "path": "/spec/gone"}),
            json!({"op": "add", "path": "/spec/values", "value": {"a": null}}),
        ];
        assert_eq!(difference(&before, &after, Some("7")), Some(PatchDocument::Json(operations)));
        let status = json!({"status": {"n": null}});
        let operations = vec![json!({"op": "add", "path": "/status", "value": {"n": null}})];
        assert_eq!(difference(&json!({}), &status, None), Some(PatchDocument::Json(operations)));
    }
}
