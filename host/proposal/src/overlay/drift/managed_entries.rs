//! Which entry of a list a name of `fieldsV1` means: `k:{…}` by its keys, `v:…` by its value, `i:…` by its index. Each name is read
//! once, and looked up for each entry (C-295).

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value};

use crate::health::canonical;

/// The most different sets of keys by which a node names entries. A list has one.
const MOST_KEY_SETS: usize = 8;

/// The entries that a node of `fieldsV1` names, each with what is managed of it; the first name of one counts.
#[derive(Default)]
pub(super) struct ManagedEntries<'a> {
    /// By the names of keys, then by their values.
    by_keys: Vec<(Vec<String>, HashMap<String, ManagedNode<'a>>)>,
    by_value: HashMap<String, ManagedNode<'a>>,
    by_index: BTreeMap<u64, ManagedNode<'a>>,
}

/// A node, and the place of its name.
type ManagedNode<'a> = (usize, &'a Value);

impl<'a> ManagedEntries<'a> {
    pub(super) fn of(node: &'a Value) -> Self {
        let mut entries = Self::default();
        for (place, (name, node)) in node.as_object().into_iter().flatten().enumerate() {
            let Some((form, text)) = name.split_once(':') else { continue };
            let Ok(named) = serde_json::from_str::<Value>(text) else { continue };
            entries.add(form, named, (place, node));
        }
        entries
    }

    fn add(&mut self, form: &str, named: Value, node: ManagedNode<'a>) {
        match (form, named) {
            ("k", Value::Object(keys)) => {
                let mut names: Vec<String> = keys.keys().cloned().collect();
                names.sort_unstable();
                let known = self.by_keys.iter().position(|(known, _)| *known == names);
                let at = known.unwrap_or(self.by_keys.len());
                if at >= MOST_KEY_SETS {
                    return;
                }
                if known.is_none() {
                    self.by_keys.push((names, HashMap::new()));
                }
                if let Some((names, of)) = self.by_keys.get_mut(at)
                    && let Some(values) = values(names, &keys)
                {
                    of.entry(values).or_insert(node);
                }
            }
            ("v", value) => _ = self.by_value.entry(canonical(&value)).or_insert(node),
            ("i", index) => {
                if let Some(index) = index.as_u64() {
                    self.by_index.entry(index).or_insert(node);
                }
            }
            _ => {}
        }
    }

    /// What is managed of an entry.
    pub(super) fn find(&self, at: usize, entry: &Value) -> Option<&'a Value> {
        let by_keys = self.by_keys.iter().filter_map(|(names, of)| of.get(&values(names, entry.as_object()?)?));
        let by_value = if self.by_value.is_empty() { None } else { self.by_value.get(&canonical(entry)) };
        let by_index = self.by_index.get(&(at as u64));
        let named = by_keys.chain(by_value).chain(by_index);
        named.min_by_key(|(place, _)| *place).map(|(_, node)| *node)
    }
}

/// The values of these keys, as one text; `None` where one is missing.
fn values(names: &[String], of: &Map<String, Value>) -> Option<String> {
    let values = names.iter().map(|name| of.get(name).map(canonical)).collect::<Option<Vec<_>>>()?;
    Some(values.join(","))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
        let entries = ManagedEntries::of(&node);
        let found = |at: usize, entry: Value| entries.find(at, &entry).cloned();
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
            assert_eq!(found(at, entry.clone()), expected.map(|name| json!({name: {}})), "{at} {entry}");
        }
    }

    #[test]
    fn c_295_limits_drift_a_node_names_entries_by_so_many_sets_of_keys() {
        let node: Value = (0..20).map(|at| (format!("k:{{\"key{at}\":1}}"), json!({"f:a": {}}))).collect();
        let entries = ManagedEntries::of(&node);
        let found = (0..20).filter(|at| entries.find(0, &json!({(format!("key{at}")): 1})).is_some()).count();
        assert_eq!(found, MOST_KEY_SETS);
    }
}
