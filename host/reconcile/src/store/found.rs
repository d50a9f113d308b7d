//! Objects that were found in a store.

use std::{sync::Arc, vec};

use crate::{Watched, store::StoredForm};

/// Objects as a store held them when they were found, sorted by key. Each is made whole when it is looked at, and those before it need
/// not be whole then: together they may take a hundred times their text (C-289).
pub struct FoundObjects<K>(Vec<StoredForm<K>>);

/// The objects one after another.
pub struct WholeObjects<K>(vec::IntoIter<StoredForm<K>>);

impl<K: Watched> FoundObjects<K> {
    pub(super) fn of(held: Vec<StoredForm<K>>) -> Self {
        Self(held)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The objects, each made whole when it is its turn, whenever they are gone through.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Arc<K>> {
        self.0.iter().filter_map(StoredForm::object)
    }

    /// Those for which `keep` holds.
    pub fn retain(&mut self, mut keep: impl FnMut(&K) -> bool) {
        self.0.retain(|held| held.object().is_some_and(|object| keep(&object)));
    }
}

impl<K: Watched> IntoIterator for FoundObjects<K> {
    type Item = Arc<K>;
    type IntoIter = WholeObjects<K>;

    fn into_iter(self) -> WholeObjects<K> {
        WholeObjects(self.0.into_iter())
    }
}

impl<K: Watched> Iterator for WholeObjects<K> {
    type Item = Arc<K>;

    fn next(&mut self) -> Option<Arc<K>> {
        self.0.find_map(|held| held.object())
    }
}
