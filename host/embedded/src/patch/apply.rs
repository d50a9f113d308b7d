//! Server-side apply: the caller says what it wants of an object, and owns exactly that.

use std::collections::{HashMap, VecDeque};

use serde_json::{Value, json};

use super::{
    fields::{FieldSet, compare, step},
    managed::{self, Author, ManagedFields, ManagedOperation},
    shape::{ListMerge, Shape},
};
use crate::{
    object,
    refusal::{Refusal, StatusCause},
};

/// What happens to fields that others own with another value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnConflict {
    Refuse,
    Take,
}

/// The object after an apply, `managedFields` included.
pub(crate) fn apply(
    live: Option<&Value>,
    wanted: &Value,
    author: &Author,
    on_conflict: OnConflict,
    shape: Shape<'_>,
) -> Result<Value, Refusal> {
    if !object::items(wanted, &["metadata", "managedFields"]).is_empty() {
        return Err(Refusal::bad_request("metadata.managedFields must be nil"));
    }
    let mut applied = FieldSet::of(wanted, shape);
    managed::drop_server_fields(&mut applied);
    let mut entries = live.map(managed::read).unwrap_or_default();
    let bare = live.map(|live| {
        let mut bare = live.clone();
        object::take(&mut bare, &["metadata", "managedFields"]);
        bare
    });
    let mut merged = match &bare {
        Some(bare) => merge(bare.clone(), wanted, shape),
        None => wanted.clone(),
    };
    let mut changed = bare.as_ref().map(|bare| compare(bare, &merged, shape).changed).unwrap_or_default();
    managed::drop_server_fields(&mut changed);
    settle_conflicts(&mut entries, &changed, author, on_conflict)?;
    let mine =
        entries.iter().position(|entry| entry.is_of(author, ManagedOperation::Apply)).map(|at| entries.remove(at));
    if let Some(mine) = &mine {
        let mut dropped = mine.fields.clone();
        dropped.subtract(&applied);
        let mut kept = applied.clone();
        entries.iter().for_each(|entry| kept.unite(&entry.fields));
        remove(&mut merged, &dropped, &kept, shape);
    }
    let time = match mine {
        Some(mine) if mine.fields == applied => mine.time,
        _ => author.now.clone(),
    };
    entries.push(ManagedFields {
        manager: author.manager.clone(),
        operation: ManagedOperation::Apply,
        api_version: author.api_version.clone(),
        subresource: author.subresource.to_owned(),
        time,
        fields: applied,
    });
    managed::write(&mut merged, entries);
    Ok(merged)
}

fn settle_conflicts(
    entries: &mut [ManagedFields],
    changed: &FieldSet,
    author: &Author,
    on_conflict: OnConflict,
) -> Result<(), Refusal> {
    let mut conflicts: Vec<(String, Vec<String>)> = Vec::new();
    for entry in entries.iter_mut().filter(|entry| !entry.is_of(author, ManagedOperation::Apply)) {
        let shared = entry.fields.shared(changed);
        if shared.is_empty() {
            continue;
        }
        match on_conflict {
            OnConflict::Take => entry.fields.subtract(&shared),
            OnConflict::Refuse => conflicts.push((entry.title(), shared.paths())),
        }
    }
    if conflicts.is_empty() { Ok(()) } else { Err(refused(&conflicts)) }
}

fn refused(conflicts: &[(String, Vec<String>)]) -> Refusal {
    let count: usize = conflicts.iter().map(|(_, paths)| paths.len()).sum();
    let text = |(title, paths): &(String, Vec<String>)| match paths.as_slice() {
        [only] => format!("conflict with {title}: {only}"),
        many => format!("conflicts with {title}:\n- {}", many.join("\n- ")),
    };
    let text: Vec<String> = conflicts.iter().map(text).collect();
    let plural = if count == 1 { "" } else { "s" };
    let message = format!("Apply failed with {count} conflict{plural}: {}", text.join("\n"));
    let causes = conflicts.iter().flat_map(|(title, paths)| {
        let message = format!("conflict with {title}");
        paths.iter().map(move |path| StatusCause {
            reason: "FieldManagerConflict",
            message: message.clone(),
            field: path.clone(),
        })
    });
    Refusal::apply_conflict(message, &causes.collect::<Vec<_>>())
}

/// The live value with the wanted one laid over it. Entries of lists are looked up by their keys (C-295).
fn merge<'a>(live: Value, wanted: &'a Value, shape: Shape<'a>) -> Value {
    match (live, wanted) {
        (Value::Object(mut merged), Value::Object(new)) if !shape.is_atomic_map() => {
            for (name, new) in new {
                match merged.get_mut(name) {
                    Some(old) => *old = merge(old.take(), new, shape.field(name)),
                    None => {
                        merged.insert(name.clone(), new.clone());
                    }
                }
            }
            Value::Object(merged)
        }
        (Value::Array(old), Value::Array(new)) if shape.listing() != ListMerge::Atomic => {
            Value::Array(merge_entries(old, new, shape))
        }
        (_, wanted) => wanted.clone(),
    }
}

fn merge_entries<'a>(mut merged: Vec<Value>, wanted: &'a [Value], shape: Shape<'a>) -> Vec<Value> {
    let (mut known, mut keyless) = (HashMap::new(), VecDeque::new());
    for (at, old) in merged.iter().enumerate() {
        match step(old, shape) {
            Some(key) => {
                known.entry(key).or_insert(at);
            }
            None => keyless.push_back(at),
        }
    }
    for entry in wanted {
        let end = merged.len();
        let at = match step(entry, shape) {
            Some(key) => *known.entry(key).or_insert(end),
            // Entries without a key are told apart by their order.
            None => keyless.pop_front().unwrap_or(end),
        };
        match merged.get_mut(at) {
            Some(old) => *old = merge(old.take(), entry, shape.entry()),
            None => merged.push(entry.clone()),
        }
    }
    merged
}

/// Removes what its owner no longer wants and nobody else owns; containers that become empty by it go too.
fn remove(value: &mut Value, dropped: &FieldSet, kept: &FieldSet, shape: Shape<'_>) {
    match value {
        Value::Object(fields) => {
            for (key, below) in &dropped.below {
                let Some(name) = key.strip_prefix("f:") else { continue };
                let Some(child) = fields.get_mut(name) else { continue };
                if remove_below(child, below, kept.below.get(key), shape.field(name)) {
                    fields.remove(name);
                }
            }
        }
        Value::Array(entries) if !dropped.below.is_empty() => entries.retain_mut(|entry| {
            let key = step(entry, shape);
            let below = key.as_ref().and_then(|key| Some((dropped.below.get(key)?, kept.below.get(key))));
            below.is_none_or(|(below, kept)| !remove_below(entry, below, kept, shape.entry()))
        }),
        Value::Array(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Whether the child itself goes.
fn remove_below(child: &mut Value, dropped: &FieldSet, kept: Option<&FieldSet>, shape: Shape<'_>) -> bool {
    let Some(kept) = kept else {
        if dropped.owned {
            return true;
        }
        remove(child, dropped, &FieldSet::default(), shape);
        return *child == json!({}) || *child == json!([]);
    };
    remove(child, dropped, kept, shape);
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn author(manager: &str) -> Author {
        Author {
            manager: manager.to_owned(),
            api_version: "v1".to_owned(),
            subresource: "",
            status_apart: false,
            now: "2026-01-01T00:00:00Z".to_owned(),
        }
    }

    fn by(manager: &str, live: Option<&Value>, wanted: Value) -> Result<Value, Refusal> {
        apply(live, &wanted, &author(manager), OnConflict::Refuse, Shape::BUILTIN)
    }

    fn bare(mut object: Value) -> Value {
        object::take(&mut object, &["metadata", "managedFields"]);
        object
    }

    #[test]
    fn what_is_no_longer_applied_goes_unless_another_owns_it() {
        let first = by("a", None, json!({"metadata": {}, "data": {"x": "1", "y": "2"}})).unwrap();
        let second = by("b", Some(&first), json!({"metadata": {}, "data": {"y": "2", "z": "3"}})).unwrap();
        let third = by("a", Some(&second), json!({"metadata": {}})).unwrap();
        assert_eq!(bare(third), json!({"metadata": {}, "data": {"y": "2", "z": "3"}}));
    }

    #[test]
    fn a_field_of_another_manager_is_a_conflict_until_it_is_taken() {
        let first = by("a", None, json!({"metadata": {}, "data": {"x": "1"}})).unwrap();
        let refusal = by("b", Some(&first), json!({"metadata": {}, "data": {"x": "2"}})).unwrap_err();
        assert_eq!(refusal.message, "Apply failed with 1 conflict: conflict with \"a\": .data.x");
        let wanted = json!({"metadata": {}, "data": {"x": "2"}});
        let taken = apply(Some(&first), &wanted, &author("b"), OnConflict::Take, Shape::BUILTIN).unwrap();
        let managers: Vec<&str> = object::items(&taken, &["metadata", "managedFields"])
            .iter()
            .map(|e| e["manager"].as_str().unwrap())
            .collect();
        assert_eq!((managers, bare(taken.clone())), (vec!["b"], wanted));
    }

    #[test]
    fn the_same_value_is_owned_together() {
        let first = by("a", None, json!({"metadata": {}, "data": {"x": "1"}})).unwrap();
        let both = by("b", Some(&first), json!({"metadata": {}, "data": {"x": "1"}})).unwrap();
        assert_eq!(object::items(&both, &["metadata", "managedFields"]).len(), 2);
    }

    #[test]
    fn list_entries_are_merged_by_their_keys() {
        let container = |name: &str, image: &str| json!({"name": name, "image": image});
        let first =
            by("a", None, json!({"metadata": {}, "spec": {"containers": [container("x", "1"), container("y", "1")]}}));
        let second =
            by("b", Some(&first.unwrap()), json!({"metadata": {}, "spec": {"containers": [container("z", "1")]}}))
                .unwrap();
        let third =
            by("a", Some(&second), json!({"metadata": {}, "spec": {"containers": [container("y", "2")]}})).unwrap();
        let expected = json!({"metadata": {}, "spec": {"containers": [container("y", "2"), container("z", "1")]}});
        assert_eq!(bare(third), expected);
    }

    #[test]
    fn c_295_entries_of_long_lists_are_looked_up_when_they_are_applied() {
        const ENTRIES: usize = 10_000;
        let owners = |from: usize| -> Vec<Value> {
            let owner = |number: usize| json!({"uid": format!("uid-{number}")});
            (from..from + ENTRIES).map(owner).collect()
        };
        let names = |from: usize| (from..from + ENTRIES).map(|number| format!("a/{number}")).collect::<Vec<_>>();
        let wanted =
            |from: usize| json!({"metadata": {"finalizers": names(from), "ownerReferences": owners(from)}, "data": {}});
        let first = by("a", None, wanted(0)).unwrap();
        // Half of the entries stay, half go, and half are new.
        let second = by("a", Some(&first), wanted(ENTRIES / 2)).unwrap();
        assert!(bare(second) == wanted(ENTRIES / 2), "the entries are those that were applied last");
    }

    #[test]
    fn entries_without_a_key_are_told_apart_by_their_order() {
        let wanted = |value: &str| json!({"metadata": {}, "spec": {"env": [{"value": value}, {"value": "y"}]}});
        let first = by("a", None, wanted("x")).unwrap();
        let second = by("a", Some(&first), wanted("z")).unwrap();
        assert_eq!(bare(second), wanted("z"));
    }

    #[test]
    fn an_update_takes_fields_from_their_appliers() {
        let first = by("a", None, json!({"metadata": {}, "data": {"x": "1", "y": "1"}})).unwrap();
        let mut second = first.clone();
        object::set(&mut second, &["data", "x"], json!("2"));
        managed::track_update(Some(&first), &mut second, &author("u"), Shape::BUILTIN);
        let entries = object::items(&second, &["metadata", "managedFields"]);
        let owned: Vec<(&str, &Value)> =
            entries.iter().map(|e| (e["manager"].as_str().unwrap(), &e["fieldsV1"])).collect();
        let (of_a, of_u) = (json!({"f:data": {"f:y": {}}}), json!({"f:data": {"f:x": {}}}));
        assert_eq!(owned, [("a", &of_a), ("u", &of_u)]);
    }
}
