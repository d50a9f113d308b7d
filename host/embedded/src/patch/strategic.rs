//! Strategic merge patches: merge patches that know which lists are merged entry by entry.

use serde_json::{Map, Value};

use super::shape::{ListMerge, Shape};
use crate::refusal::Refusal;

const DIRECTIVE: &str = "$patch";
const RETAIN: &str = "$retainKeys";
const ORDER: &str = "$setElementOrder/";
const DELETE: &str = "$deleteFromPrimitiveList/";

/// The object with the patch merged in.
pub(crate) fn strategic(object: &Value, patch: &Value, shape: Shape<'_>) -> Result<Value, Refusal> {
    let (Value::Object(old), Value::Object(patch)) = (object, patch) else { return Ok(patch.clone()) };
    merge_maps(old, patch, shape).map(Value::Object)
}

fn merge_maps(
    old: &Map<String, Value>,
    patch: &Map<String, Value>,
    shape: Shape<'_>,
) -> Result<Map<String, Value>, Refusal> {
    match patch.get(DIRECTIVE).and_then(Value::as_str) {
        Some("replace") => return Ok(without_directives(patch)),
        Some("delete") => return Ok(Map::new()),
        Some("merge") | None => {}
        Some(other) => return Err(Refusal::bad_request(format!("unknown patch directive \"{other}\""))),
    }
    let mut merged = old.clone();
    if let Some(retained) = patch.get(RETAIN).and_then(Value::as_array) {
        merged.retain(|name, _| retained.iter().any(|keep| keep.as_str() == Some(name)));
    }
    for (name, change) in patch {
        if let Some(list) = name.strip_prefix(DELETE) {
            remove_values(&mut merged, list, change);
        } else if !name.starts_with('$') {
            let place = shape.field(name);
            let order = patch.get(&format!("{ORDER}{name}")).and_then(Value::as_array);
            match merged_field(merged.get(name), change, order, place)? {
                Some(value) => merged.insert(name.clone(), value),
                None => merged.remove(name),
            };
        }
    }
    // An order may come without a change of the list itself.
    for (name, order) in patch.iter().filter_map(|(name, order)| Some((name.strip_prefix(ORDER)?, order.as_array()?))) {
        if let Some(Value::Array(entries)) = merged.get_mut(name) {
            sort(entries, order, &shape.field(name).listing());
        }
    }
    Ok(merged)
}

fn merged_field(
    old: Option<&Value>,
    change: &Value,
    order: Option<&Vec<Value>>,
    place: Shape<'_>,
) -> Result<Option<Value>, Refusal> {
    match (old, change) {
        (_, Value::Null) => Ok(None),
        (old, Value::Object(change)) => {
            if change.get(DIRECTIVE).and_then(Value::as_str) == Some("delete") {
                return Ok(None);
            }
            let nothing = Map::new();
            let old = old.and_then(Value::as_object).unwrap_or(&nothing);
            merge_maps(old, change, place).map(|merged| Some(Value::Object(merged)))
        }
        (old, Value::Array(change)) => {
            let old = old.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            let mut entries = merge_lists(old, change, place)?;
            if let Some(order) = order {
                sort(&mut entries, order, &place.listing());
            }
            Ok(Some(Value::Array(entries)))
        }
        (_, scalar) => Ok(Some(scalar.clone())),
    }
}

fn merge_lists(old: &[Value], change: &[Value], place: Shape<'_>) -> Result<Vec<Value>, Refusal> {
    match place.listing() {
        ListMerge::Atomic => Ok(change.iter().map(bare).collect()),
        ListMerge::Set => {
            let mut merged = old.to_vec();
            merged.extend(change.iter().filter(|value| !old.contains(value)).cloned());
            Ok(merged)
        }
        ListMerge::Map(keys) => {
            let Some(key) = keys.first() else { return Ok(change.to_vec()) };
            let replaces = |entry: &Value| directive(entry) == Some("replace") && entry.get(*key).is_none();
            if change.iter().any(replaces) {
                return Ok(change.iter().filter(|entry| !replaces(entry)).map(bare).collect());
            }
            merge_entries(old, change, key, place.entry())
        }
    }
}

fn merge_entries(old: &[Value], change: &[Value], key: &str, place: Shape<'_>) -> Result<Vec<Value>, Refusal> {
    let mut merged = old.to_vec();
    for entry in change {
        let Some(id) = entry.get(key) else {
            return Err(Refusal::bad_request(format!("map: {entry} does not contain declared merge key: {key}")));
        };
        let at = merged.iter().position(|candidate| candidate.get(key) == Some(id));
        if directive(entry) == Some("delete") {
            merged.retain(|candidate| candidate.get(key) != Some(id));
        } else if let Some(existing) = at.and_then(|at| merged.get_mut(at)) {
            *existing = strategic(existing, entry, place)?;
        } else {
            merged.push(bare(entry));
        }
    }
    Ok(merged)
}

fn directive(entry: &Value) -> Option<&str> {
    entry.get(DIRECTIVE).and_then(Value::as_str)
}

fn remove_values(merged: &mut Map<String, Value>, list: &str, values: &Value) {
    let values = values.as_array().map(Vec::as_slice).unwrap_or_default();
    if let Some(Value::Array(entries)) = merged.get_mut(list) {
        entries.retain(|entry| !values.contains(entry));
    }
}

/// Entries named by the order come in it; others stay where they are, relative to those before them.
fn sort(entries: &mut [Value], order: &[Value], listing: &ListMerge<'_>) {
    let key = match listing {
        ListMerge::Map(keys) => keys.first().copied(),
        ListMerge::Set | ListMerge::Atomic => None,
    };
    let same = |entry: &Value, wanted: &Value| match key {
        Some(key) => entry.get(key) == wanted.get(key),
        None => entry == wanted,
    };
    let mut last = 0;
    let mut ranked: Vec<(usize, Value)> = Vec::with_capacity(entries.len());
    for entry in entries.iter() {
        last = order.iter().position(|wanted| same(entry, wanted)).map_or(last, |rank| rank + 1);
        ranked.push((last, entry.clone()));
    }
    ranked.sort_by_key(|(rank, _)| *rank);
    for (place, (_, entry)) in entries.iter_mut().zip(ranked) {
        *place = entry;
    }
}

fn without_directives(patch: &Map<String, Value>) -> Map<String, Value> {
    let plain = patch.iter().filter(|(name, _)| !name.starts_with('$'));
    plain.map(|(name, value)| (name.clone(), bare(value))).collect()
}

/// A value of a patch without the directives in it, and without the fields it sets to null.
fn bare(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(name, value)| !name.starts_with('$') && !value.is_null());
            Value::Object(kept.map(|(name, value)| (name.clone(), bare(value))).collect())
        }
        Value::Array(entries) => Value::Array(entries.iter().map(bare).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(object: Value, patch: Value, expected: Value) {
        assert_eq!(strategic(&object, &patch, Shape::BUILTIN).unwrap(), expected);
    }

    #[test]
    fn containers_are_merged_by_name() {
        check(
            json!({"spec": {"containers": [{"name": "a", "image": "x", "env": [{"name": "K", "value": "1"}]}, {"name": "b"}]}}),
            json!({"spec": {"containers": [
                {"name": "a", "image": "y", "env": [{"name": "L", "value": "2"}]},
                {"name": "b", "$patch": "delete"}, {"name": "c", "image": "z"}]}}),
            json!({"spec": {"containers": [
                {"name": "a", "image": "y", "env": [{"name": "K", "value": "1"}, {"name": "L", "value": "2"}]},
                {"name": "c", "image": "z"}]}}),
        );
    }

    #[test]
    fn an_order_is_followed() {
        check(
            json!({"spec": {"volumes": [{"name": "a"}, {"name": "b"}]}}),
            json!({"spec": {"$setElementOrder/volumes": [{"name": "c"}, {"name": "b"}, {"name": "a"}], "volumes": [{"name": "c"}]}}),
            json!({"spec": {"volumes": [{"name": "c"}, {"name": "b"}, {"name": "a"}]}}),
        );
    }

    #[test]
    fn null_removes_and_replace_replaces() {
        check(
            json!({"data": {"a": "1", "b": "2"}, "spec": {"x": {"y": 1}}}),
            json!({"data": {"a": null}, "spec": {"x": {"$patch": "replace", "z": 2}}}),
            json!({"data": {"b": "2"}, "spec": {"x": {"z": 2}}}),
        );
    }

    #[test]
    fn finalizers_are_a_set() {
        check(
            json!({"metadata": {"finalizers": ["a", "b"]}}),
            json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"], "finalizers": ["b", "c"]}}),
            json!({"metadata": {"finalizers": ["b", "c"]}}),
        );
    }
}
