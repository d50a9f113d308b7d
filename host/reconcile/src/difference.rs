//! The JSON merge patch (RFC 7396) that turns one document into another.

use serde_json::{Map, Value};

/// The patch from `before` to `after`; `None` where they are the same.
///
/// A member with the value `null` counts as absent on both sides, because a merge patch cannot write one.
pub(crate) fn merge_patch(before: &Value, after: &Value) -> Option<Value> {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            let patch = members(before, after);
            (!patch.is_empty()).then_some(Value::Object(patch))
        }
        (before, after) => (before != after).then(|| added(after)),
    }
}

fn members(before: &Map<String, Value>, after: &Map<String, Value>) -> Map<String, Value> {
    let mut patch = Map::new();
    for (name, value) in present(after) {
        let change = match before.get(name) {
            None | Some(Value::Null) => Some(added(value)),
            Some(known) => merge_patch(known, value),
        };
        if let Some(change) = change {
            patch.insert(name.clone(), change);
        }
    }
    for (name, _) in present(before) {
        if matches!(after.get(name), None | Some(Value::Null)) {
            patch.insert(name.clone(), Value::Null);
        }
    }
    patch
}

/// A value that is new, without the nulls that would be read as removals.
fn added(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            Value::Object(present(members).map(|(name, value)| (name.clone(), added(value))).collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => value.clone(),
    }
}

fn present(members: &Map<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
    members.iter().filter(|(_, value)| !value.is_null())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(before: Value, after: Value, patch: Option<Value>) {
        assert_eq!(merge_patch(&before, &after), patch);
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
    }

    #[test]
    fn a_null_member_counts_as_absent() {
        check(json!({"a": null}), json!({}), None);
        check(json!({}), json!({"a": null}), None);
        check(json!({"a": 1}), json!({"a": null}), Some(json!({"a": null})));
        check(json!({}), json!({"a": {"b": null, "c": [null]}}), Some(json!({"a": {"c": [null]}})));
    }

    #[test]
    fn an_empty_object_is_written_and_differs_from_an_absent_one() {
        check(json!({}), json!({"a": {}}), Some(json!({"a": {}})));
        check(json!({"a": {}}), json!({}), Some(json!({"a": null})));
    }
}
