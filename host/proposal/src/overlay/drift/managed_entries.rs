//! Which entry of a list a name of `fieldsV1` means: `k:{…}` by its keys, `v:…` by its value, `i:…` by its index. Each name is read
//! once in a comparison, and looked up for each entry (C-295).

use std::{
    collections::{BTreeMap, HashMap},
    ptr,
};

use serde_json::Value;

use super::digests::{ValueDigest, ValueDigests, digest_of};

/// The most different sets of keys by which a node names entries. A list has one.
const MOST_KEY_SETS: usize = 8;

/// The longest name that is read, in bytes: what it is decoded to takes a hundred times as much.
const LONGEST_NAME: usize = 16 << 10;

/// The nodes of `fieldsV1` that were looked at in one comparison. One may stand for any number of lists.
#[derive(Default)]
pub(super) struct EntryNames<'a> {
    nodes: HashMap<*const Value, ManagedEntries<'a>>,
    digests: ValueDigests<'a>,
}

/// An entry of a list, with the digests of it that were asked for.
pub(super) struct ListEntry<'a> {
    at: usize,
    value: &'a Value,
    whole: Option<ValueDigest>,
    fields: HashMap<&'a str, ValueDigest>,
}

/// The entries that a node of `fieldsV1` names, each with what is managed of it; the first name of one counts.
#[derive(Default)]
struct ManagedEntries<'a> {
    /// By the names of keys, then by their values.
    by_keys: Vec<(Vec<String>, NodesByValues<'a>)>,
    by_value: HashMap<ValueDigest, ManagedNode<'a>>,
    by_index: BTreeMap<u64, ManagedNode<'a>>,
}

type NodesByValues<'a> = HashMap<Vec<ValueDigest>, ManagedNode<'a>>;

/// A node, and the place of its name.
type ManagedNode<'a> = (usize, &'a Value);

impl<'a> EntryNames<'a> {
    /// What a node manages of an entry.
    pub(super) fn find(&mut self, node: &'a Value, entry: &mut ListEntry<'a>) -> Option<&'a Value> {
        let entries = self.nodes.entry(ptr::from_ref(node)).or_insert_with(|| ManagedEntries::of(node));
        entries.find(entry, &mut self.digests)
    }
}

impl<'a> ListEntry<'a> {
    pub(super) fn new(at: usize, value: &'a Value) -> Self {
        Self { at, value, whole: None, fields: HashMap::new() }
    }

    fn whole(&mut self, digests: &mut ValueDigests<'a>) -> ValueDigest {
        *self.whole.get_or_insert_with(|| digests.of(self.value))
    }

    /// The digests of these keys; `None` where one is missing.
    fn keys(&mut self, names: &[String], digests: &mut ValueDigests<'a>) -> Option<Vec<ValueDigest>> {
        let fields = self.value.as_object()?;
        let digest = |name: &String| {
            let (name, value) = fields.get_key_value(name)?;
            Some(*self.fields.entry(name).or_insert_with(|| digests.of(value)))
        };
        names.iter().map(digest).collect()
    }
}

impl<'a> ManagedEntries<'a> {
    fn of(node: &'a Value) -> Self {
        let mut entries = Self::default();
        for (place, (name, node)) in node.as_object().into_iter().flatten().enumerate() {
            let Some((form, text)) = name.split_once(':').filter(|_| name.len() <= LONGEST_NAME) else { continue };
            let Ok(named) = serde_json::from_str::<Value>(text) else { continue };
            entries.add(form, &named, (place, node));
        }
        entries
    }

    fn add(&mut self, form: &str, named: &Value, node: ManagedNode<'a>) {
        match (form, named) {
            ("k", Value::Object(keys)) => {
                let mut keys: Vec<(&String, &Value)> = keys.iter().collect();
                keys.sort_unstable_by_key(|(name, _)| *name);
                let is_of = |known: &[String]| known.iter().eq(keys.iter().map(|(name, _)| *name));
                let known = self.by_keys.iter().position(|(known, _)| is_of(known));
                let at = known.unwrap_or(self.by_keys.len());
                if at >= MOST_KEY_SETS {
                    return;
                }
                if known.is_none() {
                    let names = keys.iter().map(|(name, _)| (*name).clone()).collect();
                    self.by_keys.push((names, HashMap::new()));
                }
                if let Some((_, of)) = self.by_keys.get_mut(at) {
                    of.entry(keys.into_iter().map(|(_, value)| digest_of(value)).collect()).or_insert(node);
                }
            }
            ("v", value) => _ = self.by_value.entry(digest_of(value)).or_insert(node),
            ("i", index) => {
                if let Some(index) = index.as_u64() {
                    self.by_index.entry(index).or_insert(node);
                }
            }
            _ => {}
        }
    }

    /// What is managed of an entry.
    fn find(&self, entry: &mut ListEntry<'a>, digests: &mut ValueDigests<'a>) -> Option<&'a Value> {
        let by_index = self.by_index.get(&(entry.at as u64));
        let by_value = if self.by_value.is_empty() { None } else { self.by_value.get(&entry.whole(digests)) };
        let by_keys = self.by_keys.iter().filter_map(|(names, of)| of.get(&entry.keys(names, digests)?));
        let named = by_keys.chain(by_value).chain(by_index);
        named.min_by_key(|(place, _)| *place).map(|(_, node)| *node)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{
        super::{DriftSearch, FieldPosition, Ignored},
        *,
    };

    /// What a node manages of an entry.
    fn found<'a>(node: &'a Value, at: usize, entry: &'a Value) -> Option<&'a Value> {
        EntryNames::default().find(node, &mut ListEntry::new(at, entry))
    }

    #[test]
    fn c_295_names_of_entries_are_read_once_and_the_first_of_one_counts() {
        let node = json!({
            "k:{\"port\":80,\"protocol\":\"TCP\"}": {"f:a": {}},
            "k:{\"name\":\"x\"}": {"f:b": {}},
            "v:\"text\"": {"f:c": {}},
            "v:1": {"f:d": {}},
            "i:7": {"f:e": {}},
            "f:none": {"f:f": {}},
            "k:{": {"f:g": {}},
        });
        let cases = [
            (0, json!({"port": 80.0, "protocol": "TCP", "name": "z"}), Some("f:a")),
            (0, json!({"port": 81, "protocol": "TCP", "name": "x"}), Some("f:b")),
            (0, json!("text"), Some("f:c")),
            (0, json!(1.0), Some("f:d")),
            (7, json!({"name": "y"}), Some("f:e")),
            (1, json!({"port": 80}), None),
            (1, json!(null), None),
        ];
        for (at, entry, expected) in cases {
            assert_eq!(found(&node, at, &entry).cloned(), expected.map(|name| json!({name: {}})), "{at} {entry}");
        }
    }

    #[test]
    fn c_295_limits_drift_a_node_names_entries_by_so_many_sets_of_keys() {
        let node: Value = (0..20).map(|at| (format!("k:{{\"key{at}\":1}}"), json!({"f:a": {}}))).collect();
        let found = (0..20).filter(|at| found(&node, 0, &json!({(format!("key{at}")): 1})).is_some()).count();
        assert_eq!(found, MOST_KEY_SETS);
    }

    #[test]
    fn c_295_limits_drift_a_name_of_an_entry_that_is_longer_is_not_read() {
        let of = |length: usize| {
            let text = "x".repeat(length - "v:\"\"".len());
            let node = json!({(format!("v:\"{text}\"")): {"f:a": {}}});
            found(&node, 0, &json!(text)).is_some()
        };
        assert_eq!((of(LONGEST_NAME), of(LONGEST_NAME + 1)), (true, false));
    }

    #[test]
    fn c_295_a_node_that_stands_for_many_entries_is_read_once() {
        let entries = |more: u32| -> Value { (0..2_000).map(|at| json!({"a": 1, "l": [at + more]})).collect() };
        let names: Value = (0..2_000).map(|at| (format!("k:{{\"x\":{at}}}"), json!({"f:y": {}}))).collect();
        let fields = json!({"f:list": {"k:{\"a\":1}": {"f:l": names}}});
        let managed = json!([{"manager": "m", "fieldsV1": fields}]);
        let written = json!({"list": entries(0)});
        let live = json!({"list": entries(1), "metadata": {"managedFields": managed}});
        let ignored = Ignored { managers: ["m".to_owned()].into(), ..Ignored::default() };
        let mut search = DriftSearch::new(&ignored);
        search.compare(&written, &live, &FieldPosition::root(&written, &live, &ignored));
        assert_eq!((search.found.len(), search.names.nodes.len()), (2_000, 2), "those of both lists");
    }
}
