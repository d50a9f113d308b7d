//! The objects of a store and the judgement which version is news. Plain data: the locks are the store's.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use kube::core::ObjectMeta;
use orangery_core::name::Namespace;

use super::{
    deleted_uids::DeletedUids,
    held::{NewVersion, StoredForm, StoredObject, uid, version},
    index::NameIndex,
};
use crate::{Key, Watched};

/// What became of a version that was taken in.
pub(super) enum UpsertOutcome<K> {
    /// It was no news; this is the newest known version, or itself where the object is known to be gone.
    Unchanged(Arc<K>),
    /// It is the newest.
    Changed { before: Option<Arc<K>>, after: Arc<K> },
    /// It is older than what was known when it was asked for: it counts all the same.
    Restored { before: Option<Arc<K>>, after: Arc<K> },
    /// It says that the object is gone.
    Gone { before: Option<Arc<K>>, last: Arc<K> },
}

pub(super) struct KnownVersions<K> {
    objects: BTreeMap<Key, StoredObject<K>>,
    /// Which objects are held folded.
    folds: fn(&K) -> bool,
    indices: Vec<NameIndex<K>>,
    deleted_uids: DeletedUids,
    /// The lists that are under way, by namespace or of all.
    lists: BTreeMap<Option<Namespace>, ListUnderWay>,
}

/// A list that is coming in. It says what there was when it began, whatever was known before: a server whose storage was
/// restored has older versions of objects, and objects that were gone (C-91). Only what a write answered since may be newer.
#[derive(Default)]
struct ListUnderWay {
    /// What it has named.
    named: BTreeSet<Key>,
    /// What a write has told of meanwhile.
    written: BTreeSet<Key>,
}

impl<K> Default for KnownVersions<K> {
    fn default() -> Self {
        Self {
            objects: BTreeMap::new(),
            folds: |_| false,
            indices: Vec::new(),
            deleted_uids: DeletedUids::default(),
            lists: BTreeMap::new(),
        }
    }
}

impl<K: Watched> KnownVersions<K> {
    pub(super) fn add_index(&mut self, name: &'static str, values: fn(&K) -> Vec<String>) {
        let mut index = NameIndex::new(name, values);
        for (key, held) in &self.objects {
            if let Some(object) = held.object() {
                index.insert(key, &object);
            }
        }
        self.indices.push(index);
    }

    pub(super) fn fold(&mut self, folds: fn(&K) -> bool) {
        self.folds = folds;
    }

    pub(super) fn folds(&self) -> fn(&K) -> bool {
        self.folds
    }

    pub(super) fn len(&self) -> usize {
        self.objects.len()
    }

    pub(super) fn version(&self, key: &Key) -> Option<u64> {
        self.objects.get(key)?.version()
    }

    pub(super) fn knows(&self, key: &Key) -> bool {
        self.objects.contains_key(key)
    }

    pub(super) fn get(&self, key: &Key) -> Option<StoredForm<K>> {
        self.objects.get(key).map(StoredObject::form)
    }

    pub(super) fn list(&self, namespace: Option<&Namespace>) -> Vec<StoredForm<K>> {
        self.within(namespace).map(|(_, held)| held.form()).collect()
    }

    pub(super) fn keys<'s>(&'s self, namespace: Option<&'s Namespace>) -> impl Iterator<Item = &'s Key> {
        self.within(namespace).map(|(key, _)| key)
    }

    /// What a namespace has, or all of them.
    fn within<'s>(&'s self, namespace: Option<&'s Namespace>) -> impl Iterator<Item = (&'s Key, &'s StoredObject<K>)> {
        let first = Key::new(namespace.unwrap_or(Namespace::EMPTY), "");
        self.objects.range(first..).take_while(move |(key, _)| namespace.is_none_or(|wanted| key.namespace == *wanted))
    }

    pub(super) fn indexed(&self, index: &str, namespace: &Namespace, value: &str) -> Vec<StoredForm<K>> {
        self.indexed_keys(index, namespace, value).iter().filter_map(|key| self.get(key)).collect()
    }

    pub(super) fn indexed_keys(&self, index: &str, namespace: &Namespace, value: &str) -> Vec<Key> {
        let Some(index) = self.indices.iter().find(|candidate| candidate.name == index) else { return Vec::new() };
        index.find(namespace, value).map(|name| Key::new(namespace, name)).collect()
    }

    /// Whether what a list names would change what is known.
    pub(super) fn is_news_of_list(&self, namespace: Option<&Namespace>, key: &Key, meta: &ObjectMeta) -> bool {
        let written = self.lists.get(&namespace.cloned()).is_none_or(|list| list.written.contains(key));
        if written {
            return self.is_news(key, meta);
        }
        let same = |before: &StoredObject<K>| before.version().is_some() && before.version() == version(meta);
        !self.objects.get(key).is_some_and(same)
    }

    /// Whether a version would change what is known.
    pub(super) fn is_news(&self, key: &Key, meta: &ObjectMeta) -> bool {
        if self.deleted_uids.contains(uid(meta)) {
            return false;
        }
        let Some(before) = self.objects.get(key) else { return !is_gone(meta) };
        match (before.version(), version(meta)) {
            // The answer to the write that takes the last finalizer has the version that the object had before it (C-127).
            (Some(known), Some(message)) if is_gone(meta) && before.uid() == uid(meta) => message >= known,
            (Some(known), Some(message)) => message > known,
            // Without comparable versions, the last word is believed.
            (None, _) | (_, None) => true,
        }
    }

    pub(super) fn upsert(&mut self, new: NewVersion<K>) -> UpsertOutcome<K> {
        let key = Key::of(new.object.as_ref());
        if !self.is_news(&key, new.object.meta()) {
            let newest = self.objects.get(&key).filter(|known| known.uid() == uid(new.object.meta()));
            return UpsertOutcome::Unchanged(newest.and_then(StoredObject::object).unwrap_or(new.object));
        }
        // What is no news was known before, and says nothing of what a list under way has not named.
        self.mark_written(&key);
        self.take_in(key, new)
    }

    /// Takes in what a read has answered that began after `before` was known.
    pub(super) fn upsert_read(&mut self, before: Option<&ObjectMeta>, read: NewVersion<K>) -> UpsertOutcome<K> {
        let known = self.objects.get(&Key::of(read.object.as_ref())).and_then(StoredObject::version);
        let is_same = before.is_some_and(|before| uid(before) == uid(read.object.meta()) && version(before) == known);
        match (known, version(read.object.meta())) {
            (Some(known), Some(now)) if is_same && now < known => match self.take_in_listed(read) {
                UpsertOutcome::Changed { before, after } => UpsertOutcome::Restored { before, after },
                other => other,
            },
            (_, _) => self.upsert(read),
        }
    }

    /// Takes in what a list names, which is news.
    pub(super) fn take_in_listed(&mut self, new: NewVersion<K>) -> UpsertOutcome<K> {
        self.deleted_uids.remove(uid(new.object.meta()));
        self.take_in(Key::of(new.object.as_ref()), new)
    }

    fn take_in(&mut self, key: Key, new: NewVersion<K>) -> UpsertOutcome<K> {
        let NewVersion { object, held } = new;
        if is_gone(object.meta()) {
            return UpsertOutcome::Gone { before: self.forget(object.meta()), last: object };
        }
        let before = self.objects.insert(key.clone(), held);
        if let Some(before) = &before
            && before.uid() != uid(object.meta())
        {
            self.deleted_uids.record(before.uid());
        }
        let before = before.and_then(|before| before.object());
        for index in &mut self.indices {
            if let Some(before) = &before {
                index.remove(&key, before);
            }
            index.insert(&key, &object);
        }
        UpsertOutcome::Changed { before, after: object }
    }

    /// Buries a uid. Returns the object if it was known under this uid.
    pub(super) fn forget(&mut self, meta: &ObjectMeta) -> Option<Arc<K>> {
        self.deleted_uids.record(uid(meta));
        let key = Key::of_meta(meta);
        self.mark_written(&key);
        let same = self.objects.get(&key).is_some_and(|known| known.uid() == uid(meta));
        if same { self.remove(&key) } else { None }
    }

    /// Buries what is known under the key of a newer object of another uid. Returns it.
    pub(super) fn forget_other(&mut self, newer: &ObjectMeta) -> Option<Arc<K>> {
        let key = Key::of_meta(newer);
        let known = self.objects.get(&key).filter(|known| known.uid() != uid(newer))?;
        if known.version() >= version(newer) {
            return None;
        }
        self.deleted_uids.record(known.uid());
        self.remove(&key)
    }

    pub(super) fn begin_list(&mut self, namespace: Option<&Namespace>) {
        self.lists.insert(namespace.cloned(), ListUnderWay::default());
    }

    /// Notes that a list names a key.
    pub(super) fn mark_listed(&mut self, namespace: Option<&Namespace>, key: &Key) {
        if let Some(list) = self.lists.get_mut(&namespace.cloned()) {
            list.named.insert(key.clone());
        }
    }

    /// Notes that a write told of a key while lists are under way.
    fn mark_written(&mut self, key: &Key) {
        for list in self.lists.values_mut() {
            list.written.insert(key.clone());
        }
    }

    /// Forgets what the list did not name. Returns what is gone, sorted by key.
    pub(super) fn end_list(&mut self, namespace: Option<&Namespace>) -> Vec<Arc<K>> {
        let Some(list) = self.lists.remove(&namespace.cloned()) else { return Vec::new() };
        let listed = |key: &Key| list.named.contains(key) || list.written.contains(key);
        let in_scope = |key: &Key| namespace.is_none_or(|namespace| key.namespace == *namespace);
        let unnamed: Vec<Key> = self.objects.keys().filter(|key| in_scope(key) && !listed(key)).cloned().collect();
        unnamed
            .iter()
            .filter_map(|key| {
                let gone = self.remove(key)?;
                self.deleted_uids.record(uid(gone.meta()));
                Some(gone)
            })
            .collect()
    }

    #[cfg(test)]
    pub(super) fn index_sizes(&self) -> Vec<usize> {
        self.indices.iter().map(NameIndex::len).collect()
    }

    fn remove(&mut self, key: &Key) -> Option<Arc<K>> {
        let gone = self.objects.remove(key)?.object()?;
        for index in &mut self.indices {
            index.remove(key, &gone);
        }
        Some(gone)
    }
}

/// The last version of an object: nothing holds back its deletion.
fn is_gone(meta: &ObjectMeta) -> bool {
    meta.deletion_timestamp.is_some()
        && meta.finalizers.as_ref().is_none_or(Vec::is_empty)
        && meta.deletion_grace_period_seconds.unwrap_or(0) == 0
}
