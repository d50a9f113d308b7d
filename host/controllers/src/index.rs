//! Indexes of the stores.

use orangery_core::name::Namespace;
use orangery_reconcile::{FoundObjects, Key, Store, Watched};

/// An index of the objects of one kind.
pub(crate) struct Index<K: 'static> {
    /// Its name in the store.
    pub(crate) name: &'static str,
    /// The values under which an object stands.
    pub(crate) values: fn(&K) -> Vec<String>,
}

impl<K: Watched> Index<K> {
    /// Gives the index to a store.
    pub(crate) fn register(&self, store: &Store<K>) {
        drop(store.clone().with_index(self.name, self.values));
    }

    /// The objects of a namespace that stand under a value, sorted by name.
    pub(crate) fn find(&self, store: &Store<K>, namespace: &Namespace, value: &str) -> FoundObjects<K> {
        store.indexed(self.name, namespace, value)
    }

    /// Their keys.
    pub(crate) fn keys(&self, store: &Store<K>, namespace: &Namespace, value: &str) -> Vec<Key> {
        store.indexed_keys(self.name, namespace, value)
    }
}
