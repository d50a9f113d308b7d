//! Strategic merge patches: merge patches that know which lists are merged entry by entry.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::shape::{ListMerge, Shape};
use crate::refusal::{Refusal, RefusalReason};

const DIRECTIVE: &str = "$patch";
const RETAIN: &str = "$retainKeys";
const ORDER: &str = "$setElementOrder/";
const DELETE: &str = "$deleteFromPrimitiveList/";

/// The most steps of a patch: one for each entry of the lists that it changes, once more each time that it names the same list.
const MOST_STEPS: usize = 2_000_000;

/// The steps that are left to a patch.
struct MergeSteps(usize);

impl MergeSteps {
    fn take(&mut self, count: usize) -> Result<(), Refusal> {
        let too_many = || {
            let why = "the patch changes a long list very often; name each entry of a list once";
            Refusal::new(RefusalReason::TooLarge, why)
        };
        self.0 = self.0.checked_sub(count).ok_or_else(too_many)?;
        Ok(())
    }
}

/// The object with the patch merged in. Entries of lists are looked up by what tells them apart (C-295).
pub(crate) fn strategic(object: &Value, patch: &Value, shape: Shape<'_>) -> Result<Value, Refusal> {
    merge_values(object.clone(), patch, shape, &mut MergeSteps(MOST_STEPS))
}

fn merge_values(old: Value, patch: &Value, shape: Shape<'_>, steps: &mut MergeSteps) -> Result<Value, Refusal> {
    match (old, patch) {
        (Value::Object(old), Value::Object(patch)) => merge_maps(old, patch, shape, steps).map(Value::Object),
        (_, patch) => Ok(patch.clone()),
    }
}

fn merge_maps(
    mut merged: Map<String, Value>,
    patch: &Map<String, Value>,
    shape: Shape<'_>,
    steps: &mut MergeSteps,
) -> Result<Map<String, Value>, Refusal> {
    match patch.get(DIRECTIVE).and_then(Value::as_str) {
        Some("replace") => return Ok(without_directives(patch)),
        Some("delete") => return Ok(Map::new()),
        Some("merge") | None => {}
        Some(other) => return Err(Refusal::bad_request(format!("unknown patch directive \"{other}\""))),
    }
    if let Some(retained) = patch.get(RETAIN).and_then(Value::as_array) {
        steps.take(merged.len())?;
        let retained: HashSet<&str> = retained.iter().filter_map(Value::as_str).collect();
        merged.retain(|name, _| retained.contains(name.as_str()));
    }
    for (name, change) in patch {
        if let Some(list) = name.strip_prefix(DELETE) {
            remove_values(&mut merged, list, change, steps)?;
        } else if !name.starts_with('$') {
            let place = shape.field(name);
            let old = merged.get_mut(name).map(Value::take);
            match merged_field(old, change, place, steps)? {
                Some(value) => merged.insert(name.clone(), value),
                None => merged.remove(name),
            };
        }
    }
    // An order may come without a change of the list itself.
    for (name, order) in patch.iter().filter_map(|(name, order)| Some((name.strip_prefix(ORDER)?, order.as_array()?))) {
        if let Some(Value::Array(entries)) = merged.get_mut(name) {
            sort(entries, order, &shape.field(name).listing(), steps)?;
        }
    }
    Ok(merged)
}

fn merged_field(
    old: Option<Value>,
    change: &Value,
    place: Shape<'_>,
    steps: &mut MergeSteps,
) -> Result<Option<Value>, Refusal> {
    match (old, change) {
        (_, Value::Null) => Ok(None),
        (old, Value::Object(change)) => {
            if change.get(DIRECTIVE).and_then(Value::as_str) == Some("delete") {
                return Ok(None);
            }
            let old = match old {
                Some(Value::Object(old)) => old,
                _ => Map::new(),
            };
            merge_maps(old, change, place, steps).map(|merged| Some(Value::Object(merged)))
        }
        (old, Value::Array(change)) => {
            let old = match old {
                Some(Value::Array(old)) => old,
                _ => Vec::new(),
            };
            merge_lists(old, change, place, steps).map(|merged| Some(Value::Array(merged)))
        }
        (_, scalar) => Ok(Some(scalar.clone())),
    }
}

fn merge_lists(
    mut old: Vec<Value>,
    change: &[Value],
    place: Shape<'_>,
    steps: &mut MergeSteps,
) -> Result<Vec<Value>, Refusal> {
    steps.take(old.len() + change.len())?;
    match place.listing() {
        ListMerge::Atomic => Ok(change.iter().map(bare).collect()),
        ListMerge::Set => {
            let known: HashSet<&Value> = old.iter().collect();
            let fresh: Vec<Value> = change.iter().filter(|value| !known.contains(value)).cloned().collect();
            old.extend(fresh);
            Ok(old)
        }
        ListMerge::Map(keys) => {
            let Some(key) = keys.first() else { return Ok(change.to_vec()) };
            let replaces = |entry: &Value| directive(entry) == Some("replace") && entry.get(*key).is_none();
            if change.iter().any(replaces) {
                return Ok(change.iter().filter(|entry| !replaces(entry)).map(bare).collect());
            }
            merge_entries(old, change, key, place.entry(), steps)
        }
    }
}

fn merge_entries(
    old: Vec<Value>,
    change: &[Value],
    key: &str,
    place: Shape<'_>,
    steps: &mut MergeSteps,
) -> Result<Vec<Value>, Refusal> {
    // Where entries stand by their keys; what is deleted leaves its place empty.
    let mut places: HashMap<Value, Vec<usize>> = HashMap::new();
    for (at, entry) in old.iter().enumerate() {
        if let Some(id) = entry.get(key) {
            places.entry(id.clone()).or_default().push(at);
        }
    }
    let mut merged: Vec<Option<Value>> = old.into_iter().map(Some).collect();
    for entry in change {
        let Some(id) = entry.get(key) else {
            return Err(Refusal::bad_request(format!("map: {entry} does not contain declared merge key: {key}")));
        };
        if directive(entry) == Some("delete") {
            for at in places.remove(id).into_iter().flatten() {
                if let Some(place) = merged.get_mut(at) {
                    *place = None;
                }
            }
            continue;
        }
        let at = places.get(id).and_then(|places| places.first()).copied();
        match at.and_then(|at| merged.get_mut(at)).and_then(Option::as_mut) {
            Some(existing) => *existing = merge_values(existing.take(), entry, place, steps)?,
            None => {
                places.entry(id.clone()).or_default().push(merged.len());
                merged.push(Some(bare(entry)));
            }
        }
    }
    Ok(merged.into_iter().flatten().collect())
}

fn directive(entry: &Value) -> Option<&str> {
    entry.get(DIRECTIVE).and_then(Value::as_str)
}

fn remove_values(
    merged: &mut Map<String, Value>,
    list: &str,
    values: &Value,
    steps: &mut MergeSteps,
) -> Result<(), Refusal> {
    let Some(Value::Array(entries)) = merged.get_mut(list) else { return Ok(()) };
    steps.take(entries.len())?;
    let values: HashSet<&Value> = values.as_array().into_iter().flatten().collect();
    entries.retain(|entry| !values.contains(entry));
    Ok(())
}

/// Entries named by the order come in it; others stay where they are, relative to those before them.
fn sort(
    entries: &mut Vec<Value>,
    order: &[Value],
    listing: &ListMerge<'_>,
    steps: &mut MergeSteps,
) -> Result<(), Refusal> {
    steps.take(entries.len())?;
    let key = match listing {
        ListMerge::Map(keys) => keys.first().copied(),
        ListMerge::Set | ListMerge::Atomic => None,
    };
    let mut ranks = HashMap::new();
    for (rank, wanted) in order.iter().enumerate() {
        ranks.entry(id(wanted, key)).or_insert(rank + 1);
    }
    let mut last = 0;
    let mut ranked: Vec<(usize, Value)> = Vec::with_capacity(entries.len());
    for entry in std::mem::take(entries) {
        last = ranks.get(&id(&entry, key)).copied().unwrap_or(last);
        ranked.push((last, entry));
    }
    ranked.sort_by_key(|(rank, _)| *rank);
    entries.extend(ranked.into_iter().map(|(_, entry)| entry));
    Ok(())
}

/// What tells an entry of a list apart: its key, or all of it.
fn id<'a>(entry: &'a Value, key: Option<&str>) -> Option<&'a Value> {
    match key {
        Some(key) => entry.get(key),
        None => Some(entry),
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

    /// What a patch makes of the finalizers and the environment of a pod, which have so many entries.
    const ENTRIES: usize = 50_000;

    fn finalizers(numbers: impl Iterator<Item = usize>) -> Value {
        numbers.map(|number| format!("a/{number}")).collect()
    }

    fn env(numbers: impl Iterator<Item = usize>) -> Value {
        numbers.map(|number| json!({"name": format!("n{number}")})).collect()
    }

    #[test]
    fn c_295_entries_of_long_lists_are_looked_up_when_they_are_patched() {
        let object = json!({"metadata": {"finalizers": finalizers(0..ENTRIES)}, "spec": {"env": env(0..ENTRIES), "x": env(0..9)}});
        let delete = |number: usize| json!({"name": format!("n{number}"), "$patch": "delete"});
        let changed: Vec<Value> = (0..ENTRIES / 2)
            .map(delete)
            .chain(env(ENTRIES / 2..ENTRIES * 2).as_array().unwrap().iter().cloned())
            .collect();
        let reverse = || (0..ENTRIES * 2).rev();
        let patch = json!({
            "metadata": {
                "$deleteFromPrimitiveList/finalizers": finalizers(0..ENTRIES / 2),
                "$setElementOrder/finalizers": finalizers(reverse()),
                "finalizers": finalizers(ENTRIES / 2..ENTRIES * 2),
            },
            "spec": {"$setElementOrder/env": env(reverse()), "env": changed, "$retainKeys": ["env"]},
        });
        let expected = || (ENTRIES / 2..ENTRIES * 2).rev();
        let expected = json!({"metadata": {"finalizers": finalizers(expected())}, "spec": {"env": env(expected())}});
        assert!(strategic(&object, &patch, Shape::BUILTIN).unwrap() == expected, "all entries in their order");
    }

    #[test]
    fn c_295_limits_embedded_a_patch_that_names_a_long_list_again_and_again_ends() {
        let object = json!({"spec": {"containers": [{"name": "c", "env": env(0..ENTRIES)}]}});
        let patched = |times: usize| {
            let container = json!({"name": "c", "env": [{"name": "n0", "value": "v"}]});
            strategic(&object, &json!({"spec": {"containers": vec![container; times]}}), Shape::BUILTIN)
        };
        let twice = patched(2).unwrap();
        assert_eq!(twice.pointer("/spec/containers/0/env/0"), Some(&json!({"name": "n0", "value": "v"})));
        let refusal = patched(MOST_STEPS / ENTRIES).unwrap_err();
        let sentence = "the patch changes a long list very often; name each entry of a list once";
        assert_eq!((refusal.reason, refusal.message.as_str()), (RefusalReason::TooLarge, sentence));
    }
}
