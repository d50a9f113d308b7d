//! Sets of fields: who owns what of an object, in the form of `fieldsV1`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::shape::{ListMerge, Shape};

/// A set of places of an object. A key is a step as `fieldsV1` writes it: `f:name`, `k:{"name":"x"}`, `v:"x"`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldSet {
    /// Whether the place itself is a member, beside what is below it.
    pub(crate) owned: bool,
    pub(crate) below: BTreeMap<String, FieldSet>,
}

/// What changed between two forms of an object.
#[derive(Debug, Default)]
pub(crate) struct FieldChanges {
    /// Places that are new or have another value.
    pub(crate) changed: FieldSet,
    pub(crate) removed: FieldSet,
}

impl FieldSet {
    fn leaf() -> Self {
        Self { owned: true, below: BTreeMap::new() }
    }

    /// The places of a value.
    pub(crate) fn of<'a>(value: &'a Value, shape: Shape<'a>) -> Self {
        match value {
            Value::Object(fields) if !fields.is_empty() && !shape.is_atomic_map() => {
                let below =
                    |(name, value): (&'a String, &'a Value)| (format!("f:{name}"), Self::of(value, shape.field(name)));
                Self { owned: false, below: fields.iter().map(below).collect() }
            }
            Value::Array(entries) if !entries.is_empty() => match shape.listing() {
                ListMerge::Atomic => Self::leaf(),
                ListMerge::Set | ListMerge::Map(_) => {
                    let below = keyed(entries, shape)
                        .into_iter()
                        .map(|(key, entry)| (key, Self { owned: true, ..Self::of_entry(entry, shape) }));
                    Self { owned: false, below: below.collect() }
                }
            },
            _ => Self::leaf(),
        }
    }

    fn of_entry<'a>(entry: &'a Value, shape: Shape<'a>) -> Self {
        if entry.is_object() { Self::of(entry, shape.entry()) } else { Self::leaf() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        !self.owned && self.below.is_empty()
    }

    /// Adds the members of another set.
    pub(crate) fn unite(&mut self, other: &Self) {
        self.owned |= other.owned;
        for (key, below) in &other.below {
            self.below.entry(key.clone()).or_default().unite(below);
        }
    }

    /// Removes the members of another set.
    pub(crate) fn subtract(&mut self, other: &Self) {
        self.owned &= !other.owned;
        self.below.retain(|key, below| {
            if let Some(other) = other.below.get(key) {
                below.subtract(other);
            }
            !below.is_empty()
        });
    }

    /// The members that both sets have.
    pub(crate) fn shared(&self, other: &Self) -> Self {
        let mut both = Self { owned: self.owned && other.owned, below: BTreeMap::new() };
        for (key, below) in &self.below {
            let shared = other.below.get(key).map(|other| below.shared(other)).unwrap_or_default();
            if !shared.is_empty() {
                both.below.insert(key.clone(), shared);
            }
        }
        both
    }

    /// Removes what lies at and below a path of steps.
    pub(crate) fn remove(&mut self, path: &[&str]) {
        match path {
            [] => {}
            [last] => {
                self.below.remove(*last);
            }
            [first, rest @ ..] => {
                if let Some(below) = self.below.get_mut(*first) {
                    below.remove(rest);
                    if below.is_empty() {
                        self.below.remove(*first);
                    }
                }
            }
        }
    }

    /// The members as field paths: `.spec.containers[name="a"].image`.
    pub(crate) fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        self.collect_paths("", &mut paths);
        paths
    }

    fn collect_paths(&self, at: &str, paths: &mut Vec<String>) {
        if self.owned {
            paths.push(at.to_owned());
        }
        for (key, below) in &self.below {
            let step = display(key);
            below.collect_paths(&format!("{at}{step}"), paths);
        }
    }

    /// Reads `fieldsV1`.
    pub(crate) fn from_json(value: &Value) -> Self {
        let Some(fields) = value.as_object() else { return Self::default() };
        let below = fields.iter().filter(|(key, _)| *key != ".");
        let below: BTreeMap<String, Self> = below.map(|(key, value)| (key.clone(), Self::from_json(value))).collect();
        Self { owned: below.is_empty() || fields.contains_key("."), below }
    }

    /// Writes `fieldsV1`.
    pub(crate) fn to_json(&self) -> Value {
        let mut fields = Map::new();
        if self.owned && !self.below.is_empty() {
            fields.insert(".".to_owned(), json!({}));
        }
        fields.extend(self.below.iter().map(|(key, below)| (key.clone(), below.to_json())));
        Value::Object(fields)
    }
}

/// A step as field paths have it.
fn display(key: &str) -> String {
    match key.split_once(':') {
        Some(("f", name)) => format!(".{name}"),
        Some(("k", keys)) => format!("[{}]", key_pairs(keys)),
        Some((_, value)) => format!("[={value}]"),
        None => key.to_owned(),
    }
}

/// The lists that have several entries for one key: their paths, each with the key.
pub(crate) fn doubled<'a>(value: &'a Value, shape: Shape<'a>, at: &str) -> Vec<(String, String)> {
    match value {
        Value::Object(fields) if !shape.is_atomic_map() => {
            fields.iter().flat_map(|(name, value)| doubled(value, shape.field(name), &format!("{at}.{name}"))).collect()
        }
        Value::Array(entries) if shape.listing() != ListMerge::Atomic => {
            let mut seen = BTreeSet::new();
            let entries = keyed(entries, shape).into_iter();
            let found = entries.flat_map(|(key, entry)| {
                let step = display(&key);
                let below = doubled(entry, shape.entry(), &format!("{at}{step}"));
                let again = (!seen.insert(key)).then(|| (at.to_owned(), step));
                again.into_iter().chain(below)
            });
            found.collect()
        }
        _ => Vec::new(),
    }
}

/// A path of names and list places, such as `spec.containers[0].image`, with keys in the place of numbers. None where the
/// value has no such place.
pub(crate) fn by_keys<'a>(path: &'a str, value: &'a Value, shape: Shape<'a>) -> Option<String> {
    let (mut at, mut value, mut shape) = (String::new(), value, shape);
    for part in path.split('.') {
        let (name, places) = part.split_once('[').unwrap_or((part, ""));
        at = format!("{at}.{name}");
        // What is missing at the end is the place that is spoken of.
        let Some(field) = value.get(name) else { continue };
        (value, shape) = (field, shape.field(name));
        for place in places.split('[').filter(|place| !place.is_empty()) {
            let number: usize = place.trim_end_matches(']').parse().ok()?;
            value = value.get(number)?;
            at += &step(value, shape).map_or_else(|| format!("[{number}]"), |key| display(&key));
            shape = shape.entry();
        }
    }
    Some(at)
}

fn key_pairs(keys: &str) -> String {
    let keys: BTreeMap<String, Value> = serde_json::from_str(keys).unwrap_or_default();
    keys.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(",")
}

/// The entries of a list with their steps; entries without their keys are left out.
pub(super) fn keyed<'a>(entries: &'a [Value], shape: Shape<'a>) -> Vec<(String, &'a Value)> {
    entries.iter().filter_map(|entry| Some((step(entry, shape)?, entry))).collect()
}

/// The step to an entry of a list of this shape.
pub(super) fn step(entry: &Value, shape: Shape<'_>) -> Option<String> {
    match shape.listing() {
        ListMerge::Atomic => None,
        ListMerge::Set => Some(format!("v:{entry}")),
        ListMerge::Map(keys) => {
            let value = |key: &str| entry.get(key).cloned().or_else(|| shape.key_default(key));
            let pairs: BTreeMap<&str, Value> = keys.iter().filter_map(|key| Some((*key, value(key)?))).collect();
            if pairs.is_empty() {
                return None;
            }
            serde_json::to_string(&pairs).ok().map(|pairs| format!("k:{pairs}"))
        }
    }
}

/// What changed from one value to the other.
pub(crate) fn compare<'a>(old: &'a Value, new: &'a Value, shape: Shape<'a>) -> FieldChanges {
    let mut changes = FieldChanges::default();
    match (old, new) {
        _ if old == new => {}
        (Value::Object(old), Value::Object(new)) if !shape.is_atomic_map() && !old.is_empty() && !new.is_empty() => {
            for (name, new) in new {
                let place = shape.field(name);
                changes.note(format!("f:{name}"), old.get(name), Some(new), place, FieldSet::of);
            }
            for (name, old) in old.iter().filter(|(name, _)| !new.contains_key(*name)) {
                changes.note(format!("f:{name}"), Some(old), None, shape.field(name), FieldSet::of);
            }
        }
        (Value::Array(old), Value::Array(new)) if shape.listing() != ListMerge::Atomic => {
            let entry_set =
                |entry: &'a Value, _: Shape<'a>| FieldSet { owned: true, ..FieldSet::of_entry(entry, shape) };
            let before: BTreeMap<String, &Value> = keyed(old, shape).into_iter().collect();
            let after: BTreeMap<String, &Value> = keyed(new, shape).into_iter().collect();
            for (key, new) in &after {
                changes.note(key.clone(), before.get(key).copied(), Some(new), shape.entry(), entry_set);
            }
            for (key, old) in before.iter().filter(|(key, _)| !after.contains_key(*key)) {
                changes.note(key.clone(), Some(old), None, shape.entry(), entry_set);
            }
        }
        _ => {
            changes.changed = FieldSet::of(new, shape);
            changes.removed = FieldSet::of(old, shape);
            let still = changes.changed.clone();
            changes.removed.subtract(&still);
        }
    }
    changes
}

impl FieldChanges {
    fn note<'a>(
        &mut self,
        key: String,
        old: Option<&'a Value>,
        new: Option<&'a Value>,
        shape: Shape<'a>,
        whole: impl Fn(&'a Value, Shape<'a>) -> FieldSet,
    ) {
        let (changed, removed) = match (old, new) {
            (Some(old), Some(new)) => {
                let below = compare(old, new, shape);
                (below.changed, below.removed)
            }
            (None, Some(new)) => (whole(new, shape), FieldSet::default()),
            (Some(old), None) => (FieldSet::default(), whole(old, shape)),
            (None, None) => (FieldSet::default(), FieldSet::default()),
        };
        if !changed.is_empty() {
            self.changed.below.insert(key.clone(), changed);
        }
        if !removed.is_empty() {
            self.removed.below.insert(key, removed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_written_and_read_as_fields_v1() {
        let object = json!({"spec": {"containers": [{"name": "a", "image": "x", "ports": [{"containerPort": 80}]}]},
            "metadata": {"finalizers": ["f"], "labels": {"l": "1"}}});
        let set = FieldSet::of(&object, Shape::BUILTIN);
        let expected = json!({
            "f:metadata": {"f:finalizers": {"v:\"f\"": {}}, "f:labels": {"f:l": {}}},
            "f:spec": {"f:containers": {"k:{\"name\":\"a\"}": {".": {}, "f:image": {}, "f:name": {},
                "f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}}}}}}
        });
        assert_eq!(set.to_json(), expected);
        assert_eq!(FieldSet::from_json(&expected), set);
    }

    #[test]
    fn a_comparison_names_what_changed_and_what_went() {
        let old = json!({"data": {"a": "1", "b": "2"}, "spec": {"ports": [{"port": 1}, {"port": 2}]}});
        let new = json!({"data": {"a": "1", "b": "3", "c": "4"}, "spec": {"ports": [{"port": 1}]}});
        let changes = compare(&old, &new, Shape::BUILTIN);
        assert_eq!(changes.changed.paths(), [".data.b", ".data.c"]);
        let gone = ".spec.ports[port=2,protocol=\"TCP\"]";
        assert_eq!(changes.removed.paths(), [gone.to_owned(), format!("{gone}.port")]);
    }
}
