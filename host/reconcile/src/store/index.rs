//! A second way to find objects: by values computed from them.

use std::collections::{BTreeMap, BTreeSet};

use orangery_core::name::{Namespace, ObjectName};

use crate::Key;

/// The names of objects by namespace and value.
pub(super) struct NameIndex<K> {
    pub(super) name: &'static str,
    values: fn(&K) -> Vec<String>,
    names: BTreeMap<(Namespace, String), BTreeSet<ObjectName>>,
}

impl<K> NameIndex<K> {
    pub(super) fn new(name: &'static str, values: fn(&K) -> Vec<String>) -> Self {
        Self { name, values, names: BTreeMap::new() }
    }

    pub(super) fn insert(&mut self, key: &Key, object: &K) {
        for value in (self.values)(object) {
            self.names.entry((key.namespace.clone(), value)).or_default().insert(key.name.clone());
        }
    }

    pub(super) fn remove(&mut self, key: &Key, object: &K) {
        for value in (self.values)(object) {
            let place = (key.namespace.clone(), value);
            if let Some(names) = self.names.get_mut(&place) {
                names.remove(&key.name);
                if names.is_empty() {
                    self.names.remove(&place);
                }
            }
        }
    }

    /// Sorted.
    pub(super) fn find(&self, namespace: &Namespace, value: &str) -> impl Iterator<Item = &ObjectName> {
        self.names.get(&(namespace.clone(), value.to_owned())).into_iter().flatten()
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.names.len()
    }
}
