//! The objects of a store and the judgement which version is news. Plain data: the locks are the store's.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use kube::core::ObjectMeta;
use orangery_core::name::Namespace;

use super::{
    deleted_uids::DeletedUids,
    held::{HowHeld, NewVersion, StoredForm, StoredObject, uid, version},
    index::{IndexEntry, IndexedValues, NameIndex},
};
use crate::{Key, Watched};

/// What became of a version that was taken in. What was known is as it was held: it is read from that without the lock.
pub(super) enum UpsertOutcome<K> {
    /// It was no news, as this is known; nothing where the object is known to be gone.
    Unchanged { newest: Option<StoredForm<K>>, given: Arc<K> },
    /// It is the newest.
    Changed { before: Option<StoredForm<K>>, after: Arc<K> },
    /// It is older than what was known when it was asked for: it counts all the same.
    Restored { before: Option<StoredForm<K>>, after: Arc<K> },
    /// It says that the object is gone.
    Gone { before: Option<StoredForm<K>>, last: Arc<K> },
}

impl<K: Watched> UpsertOutcome<K> {
    /// The newest known version; what was taken in where the object is gone.
    pub(super) fn newest(self) -> Arc<K> {
        match self {
            Self::Unchanged { newest, given } => newest.and_then(|newest| newest.object()).unwrap_or(given),
            Self::Changed { after: newest, .. }
            | Self::Restored { after: newest, .. }
            | Self::Gone { last: newest, .. } => newest,
        }
    }
}

pub(super) struct KnownVersions<K> {
    objects: BTreeMap<Key, StoredObject<K>>,
    how: HowHeld<K>,
    index: NameIndex,
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
            how: HowHeld { folds: |_| false, indexed: IndexedValues::default() },
            index: NameIndex::default(),
            deleted_uids: DeletedUids::default(),
            lists: BTreeMap::new(),
        }
    }
}

impl<K: Watched> KnownVersions<K> {
    pub(super) fn add_index(&mut self, name: &'static str, values: fn(&K) -> Vec<String>) {
        self.how.indexed = self.how.indexed.with(name, values);
        for (key, held) in &mut self.objects {
            if let Some(object) = held.form().object() {
                let entries = self.how.indexed.entries(&key.namespace, &object);
                self.index.change(key, &held.entries, &entries);
                held.entries = entries;
            }
        }
    }

    pub(super) fn fold(&mut self, folds: fn(&K) -> bool) {
        self.how.folds = folds;
    }

    pub(super) fn how_held(&self) -> HowHeld<K> {
        self.how.clone()
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

    pub(super) fn indexed(&self, namespace: &Namespace, entry: IndexEntry) -> Vec<StoredForm<K>> {
        self.indexed_keys(namespace, entry).iter().filter_map(|key| self.get(key)).collect()
    }

    pub(super) fn indexed_keys(&self, namespace: &Namespace, entry: IndexEntry) -> Vec<Key> {
        self.index.find(entry).map(|name| Key::new(namespace, name)).collect()
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
            return UpsertOutcome::Unchanged { newest: newest.map(StoredObject::form), given: new.object };
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

    /// Puts another form of the very version that is known in its place; `None` where that is another one by now.
    pub(super) fn replace(&mut self, new: NewVersion<K>) -> Option<UpsertOutcome<K>> {
        let key = Key::of(new.object.as_ref());
        let is_same = |known: &StoredObject<K>| {
            known.uid() == uid(new.object.meta()) && known.version() == version(new.object.meta())
        };
        if self.objects.get(&key).is_some_and(is_same) { Some(self.take_in(key, new)) } else { None }
    }

    fn take_in(&mut self, key: Key, new: NewVersion<K>) -> UpsertOutcome<K> {
        let NewVersion { object, held } = new;
        if is_gone(object.meta()) {
            return UpsertOutcome::Gone { before: self.forget(object.meta()), last: object };
        }
        let before = self.objects.get(&key);
        if let Some(before) = before
            && before.uid() != uid(object.meta())
        {
            self.deleted_uids.record(before.uid());
        }
        self.index.change(&key, before.map_or(&[], |before| before.entries.as_ref()), &held.entries);
        let before = self.objects.insert(key, held);
        UpsertOutcome::Changed { before: before.map(|before| before.form()), after: object }
    }

    /// Buries a uid. Returns the object if it was known under this uid.
    pub(super) fn forget(&mut self, meta: &ObjectMeta) -> Option<StoredForm<K>> {
        self.deleted_uids.record(uid(meta));
        let key = Key::of_meta(meta);
        self.mark_written(&key);
        let same = self.objects.get(&key).is_some_and(|known| known.uid() == uid(meta));
        if same { self.remove(&key).map(|gone| gone.form()) } else { None }
    }

    /// Buries what is known under the key of a newer object of another uid. Returns it.
    pub(super) fn forget_other(&mut self, newer: &ObjectMeta) -> Option<StoredForm<K>> {
        let key = Key::of_meta(newer);
        let known = self.objects.get(&key).filter(|known| known.uid() != uid(newer))?;
        if known.version() >= version(newer) {
            return None;
        }
        self.deleted_uids.record(known.uid());
        self.remove(&key).map(|gone| gone.form())
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
    pub(super) fn end_list(&mut self, namespace: Option<&Namespace>) -> Vec<StoredForm<K>> {
        let Some(list) = self.lists.remove(&namespace.cloned()) else { return Vec::new() };
        let listed = |key: &Key| list.named.contains(key) || list.written.contains(key);
        let in_scope = |key: &Key| namespace.is_none_or(|namespace| key.namespace == *namespace);
        let unnamed: Vec<Key> = self.objects.keys().filter(|key| in_scope(key) && !listed(key)).cloned().collect();
        unnamed
            .iter()
            .filter_map(|key| {
                let gone = self.remove(key)?;
                self.deleted_uids.record(gone.uid());
                Some(gone.form())
            })
            .collect()
    }

    #[cfg(test)]
    pub(super) fn index_size(&self) -> usize {
        self.index.len()
    }

    fn remove(&mut self, key: &Key) -> Option<StoredObject<K>> {
        let gone = self.objects.remove(key)?;
        self.index.change(key, &gone.entries, &[]);
        Some(gone)
    }
}

/// The last version of an object: nothing holds back its deletion.
fn is_gone(meta: &ObjectMeta) -> bool {
    meta.deletion_timestamp.is_some()
        && meta.finalizers.as_ref().is_none_or(Vec::is_empty)
        && meta.deletion_grace_period_seconds.unwrap_or(0) == 0
}
