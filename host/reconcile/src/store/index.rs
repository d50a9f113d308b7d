//! A second way to find objects: by values computed from them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use orangery_core::{
    digest::derived,
    name::{Namespace, ObjectName},
};

use crate::Key;

/// Values under which an object stands in one index; it does not stand under the others (C-296).
pub const MOST_VALUES: usize = 2_000;

/// A value of an index in a namespace. It is a digest of all three, so that no text is kept of what others have named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct IndexEntry([u8; 16]);

impl IndexEntry {
    pub(super) fn of(index: &str, namespace: &Namespace, value: &str) -> Self {
        let digest = derived(&[0; 32], &[index, namespace, value].map(str::as_bytes));
        Self(*digest.first_chunk().expect("32 bytes begin with 16"))
    }
}

/// What computes the values of an index.
type ValuesOf<K> = fn(&K) -> Vec<String>;

/// The indexes by name, and how their values are computed.
pub(super) struct IndexedValues<K>(Arc<[(&'static str, ValuesOf<K>)]>);

impl<K> Clone for IndexedValues<K> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K> Default for IndexedValues<K> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<K> IndexedValues<K> {
    /// The same with an index more.
    pub(super) fn with(&self, name: &'static str, values: ValuesOf<K>) -> Self {
        Self(self.0.iter().copied().chain([(name, values)]).collect())
    }

    /// Where an object stands: sorted, and each entry once.
    pub(super) fn entries(&self, namespace: &Namespace, object: &K) -> Box<[IndexEntry]> {
        let of_index = |(name, values): &(&'static str, ValuesOf<K>)| {
            let values = values(object).into_iter().take(MOST_VALUES);
            values.map(|value| IndexEntry::of(name, namespace, &value)).collect::<Vec<_>>()
        };
        let entries: BTreeSet<IndexEntry> = self.0.iter().flat_map(of_index).collect();
        entries.into_iter().collect()
    }
}

/// The names of objects by where they stand in any index.
#[derive(Default)]
pub(super) struct NameIndex(BTreeMap<IndexEntry, IndexedNames>);

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

impl NameIndex {
    /// An object stands there from now on. Where it stood before, nothing is done.
    pub(super) fn change(&mut self, key: &Key, before: &[IndexEntry], after: &[IndexEntry]) {
        for entry in before.iter().filter(|entry| after.binary_search(entry).is_err()) {
            if self.0.get_mut(entry).is_some_and(|names| names.remove(&key.name)) {
                self.0.remove(entry);
            }
        }
        for entry in after.iter().filter(|entry| before.binary_search(entry).is_err()) {
            self.0
                .entry(*entry)
                .and_modify(|names| names.insert(&key.name))
                .or_insert_with(|| IndexedNames::One(key.name.clone()));
        }
    }

    /// Sorted.
    pub(super) fn find(&self, entry: IndexEntry) -> impl Iterator<Item = &ObjectName> {
        self.0.get(&entry).into_iter().flat_map(IndexedNames::iter)
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(values: &[String]) -> Box<[IndexEntry]> {
        IndexedValues::<Vec<String>>::default().with("i", Clone::clone).entries(&"n".into(), &values.to_vec())
    }

    fn found(index: &NameIndex, value: &str) -> Vec<String> {
        index.find(IndexEntry::of("i", &"n".into(), value)).map(ToString::to_string).collect()
    }

    #[test]
    fn c_296_limits_index_an_object_stands_under_so_many_values() {
        let values: Vec<String> = (0..=MOST_VALUES).map(|at| format!("{at}")).collect();
        let (key, of) = (Key::new("n", "x"), entries(&values));
        let mut index = NameIndex::default();
        index.change(&key, &[], &of);
        assert_eq!((index.len(), found(&index, "0").len()), (MOST_VALUES, 1));
        assert_eq!(found(&index, &values[MOST_VALUES]), Vec::<String>::new());
        index.change(&key, &of, &[]);
        assert_eq!(index.len(), 0);
    }

    #[test]
    fn c_296_of_a_value_a_digest_is_kept_whatever_its_length() {
        let values = ["p".repeat(200_000), "p".repeat(250), "p".to_owned()];
        let of = entries(&values);
        assert_eq!(size_of_val(of.as_ref()), 3 * 16);
        let mut index = NameIndex::default();
        index.change(&Key::new("n", "x"), &[], &of);
        assert_eq!(size_of_val(index.0.keys().next().unwrap()), 16);
        assert!(values.iter().all(|value| found(&index, value) == ["x"]));
        let elsewhere = [("i", "m"), ("j", "n")].map(|(name, namespace)| IndexEntry::of(name, &namespace.into(), "p"));
        assert!(elsewhere.iter().all(|entry| index.find(*entry).next().is_none()));
    }

    #[test]
    fn c_296_a_value_that_did_not_change_is_not_touched() {
        let [old, same, new] = ["old", "same", "new"].map(str::to_owned);
        let (before, after) =
            (entries(&[old.clone(), same.clone(), same.clone()]), entries(&[same.clone(), new.clone()]));
        // As if it stood under none of them.
        let mut index = NameIndex::default();
        index.change(&Key::new("n", "x"), &before, &after);
        assert_eq!([old, same, new].map(|value| found(&index, &value).len()), [0, 0, 1]);
    }

    #[test]
    fn names_of_a_value_are_sorted_and_each_there_once() {
        let mut index = NameIndex::default();
        let value = entries(&["v".to_owned()]);
        for name in ["b", "b", "c", "a", "c"] {
            index.change(&Key::new("n", name), &[], &value);
        }
        assert_eq!(found(&index, "v"), ["a", "b", "c"]);
        for (name, left) in [("d", vec!["a", "b", "c"]), ("a", vec!["b", "c"]), ("c", vec!["b"]), ("b", vec![])] {
            index.change(&Key::new("n", name), &value, &[]);
            assert_eq!(found(&index, "v"), left);
        }
        index.change(&Key::new("n", "one"), &[], &value);
        index.change(&Key::new("n", "other"), &value, &[]);
        assert_eq!((found(&index, "v"), index.len()), (vec!["one".to_owned()], 1));
    }
}
