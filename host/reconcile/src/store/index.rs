//! A second way to find objects: by values computed from them.

use std::collections::{BTreeMap, BTreeSet};

use orangery_core::{
    digest::sha256,
    name::{Namespace, ObjectName},
};

use crate::Key;

/// Values under which an object stands in one index; it does not stand under the others (C-296).
pub const MOST_VALUES: usize = 2_000;

/// The longest value, in bytes, that is kept as it is: of a longer one its digest is.
const LONGEST_VALUE: usize = 256;

/// The names of objects by namespace and value.
pub(super) struct NameIndex<K> {
    pub(super) name: &'static str,
    values: fn(&K) -> Vec<String>,
    names: BTreeMap<(Namespace, String), IndexedNames>,
}

/// The objects of one value: of most there is one, and no set is made for it.
enum IndexedNames {
    One(ObjectName),
    Several(BTreeSet<ObjectName>),
}

impl IndexedNames {
    fn insert(&mut self, name: &ObjectName) {
        match self {
            Self::One(one) if one == name => {}
            Self::One(one) => *self = Self::Several(BTreeSet::from([one.clone(), name.clone()])),
            Self::Several(names) => _ = names.insert(name.clone()),
        }
    }

    /// Whether there is none any more.
    fn remove(&mut self, name: &ObjectName) -> bool {
        match self {
            Self::One(one) => one == name,
            Self::Several(names) => {
                names.remove(name);
                names.is_empty()
            }
        }
    }

    fn iter(&self) -> impl Iterator<Item = &ObjectName> {
        let (one, several) = match self {
            Self::One(one) => (Some(one), None),
            Self::Several(names) => (None, Some(names)),
        };
        one.into_iter().chain(several.into_iter().flatten())
    }
}

impl<K> NameIndex<K> {
    pub(super) fn new(name: &'static str, values: fn(&K) -> Vec<String>) -> Self {
        Self { name, values, names: BTreeMap::new() }
    }

    pub(super) fn insert(&mut self, key: &Key, object: &K) {
        for entry in self.entries(key, object) {
            self.names
                .entry(entry)
                .and_modify(|names| names.insert(&key.name))
                .or_insert_with(|| IndexedNames::One(key.name.clone()));
        }
    }

    pub(super) fn remove(&mut self, key: &Key, object: &K) {
        for entry in self.entries(key, object) {
            if self.names.get_mut(&entry).is_some_and(|names| names.remove(&key.name)) {
                self.names.remove(&entry);
            }
        }
    }

    /// Sorted.
    pub(super) fn find(&self, namespace: &Namespace, value: &str) -> impl Iterator<Item = &ObjectName> {
        self.names.get(&entry(namespace, value.to_owned())).into_iter().flat_map(IndexedNames::iter)
    }

    fn entries<'k>(&self, key: &'k Key, object: &K) -> impl Iterator<Item = (Namespace, String)> + use<'k, K> {
        (self.values)(object).into_iter().take(MOST_VALUES).map(|value| entry(&key.namespace, value))
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.names.len()
    }
}

fn entry(namespace: &Namespace, value: String) -> (Namespace, String) {
    let value = if value.len() > LONGEST_VALUE { sha256(value.as_bytes()) } else { value };
    (namespace.clone(), value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(of: fn(&Vec<String>) -> Vec<String>) -> NameIndex<Vec<String>> {
        NameIndex::new("i", of)
    }

    #[test]
    fn c_296_limits_index_an_object_stands_under_so_many_values_of_so_many_bytes() {
        let mut index = index(Clone::clone);
        let values: Vec<String> = (0..=MOST_VALUES).map(|at| format!("{at}")).collect();
        let key = Key::new("n", "x");
        index.insert(&key, &values);
        let found = |index: &NameIndex<_>, value: &str| index.find(&key.namespace, value).count();
        assert_eq!((index.len(), found(&index, "0"), found(&index, &values[MOST_VALUES])), (MOST_VALUES, 1, 0));
        index.remove(&key, &values);
        assert_eq!(index.len(), 0);

        let long = vec!["p".repeat(200_000), "p".repeat(LONGEST_VALUE)];
        index.insert(&key, &long);
        assert_eq!((found(&index, &long[0]), found(&index, &long[1])), (1, 1));
        assert!(index.names.keys().all(|(_, value)| value.len() <= LONGEST_VALUE));
        index.remove(&key, &long);
        assert_eq!(index.len(), 0);
    }

    #[test]
    fn names_of_a_value_are_sorted_and_each_there_once() {
        let mut index = index(Clone::clone);
        let value = vec!["v".to_owned()];
        let found = |index: &NameIndex<_>| -> Vec<String> {
            index.find(&Key::new("n", "").namespace, "v").map(ToString::to_string).collect()
        };
        for name in ["b", "b", "c", "a", "c"] {
            index.insert(&Key::new("n", name), &value);
        }
        assert_eq!(found(&index), ["a", "b", "c"]);
        for (name, left) in [("d", vec!["a", "b", "c"]), ("a", vec!["b", "c"]), ("c", vec!["b"]), ("b", vec![])] {
            index.remove(&Key::new("n", name), &value);
            assert_eq!(found(&index), left);
        }
        index.insert(&Key::new("n", "one"), &value);
        index.remove(&Key::new("n", "other"), &value);
        assert_eq!((found(&index), index.len()), (vec!["one".to_owned()], 1));
    }
}
