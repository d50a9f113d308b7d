//! What is known of one kind: the newest of what the watch told and what our own writes answered.
//!
//! The store judges by uid and resource version alone, so it does not matter in which order the two sources speak:
//! an answer is visible at once, its echo from the watch is no news, and a late word about something deleted
//! resurrects nothing.

use std::{
    fmt,
    sync::{Arc, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Resource;
use orangery_core::name::Namespace;
use tokio::sync::watch;

pub(crate) use self::deferred::ServerStatus;
pub(crate) use self::held::{LongObject, StoredForm};
use self::{
    deferred::DeferredChanges,
    held::{NewVersion, version},
    index::IndexEntry,
    known::{KnownVersions, UpsertOutcome},
};
use crate::{Key, StatusAuthors, Watched, status_authors::FIELD_MANAGER, watched_object::WatchedObject};

pub use self::{found::FoundObjects, index::MOST_VALUES};

mod deferred;
mod deleted_uids;
mod found;
mod held;
mod index;
mod known;

/// One change of a store. At least one side is there.
#[derive(Debug)]
pub struct ObjectChange<'a, K> {
    /// What was known; `None` for an object that is new.
    pub before: Option<&'a Arc<K>>,
    /// What is known now; `None` for an object that is gone.
    pub after: Option<&'a Arc<K>>,
}

impl<K: Watched> ObjectChange<'_, K> {
    /// Whose change it is.
    pub fn key(&self) -> Option<Key> {
        self.after.or(self.before).map(|object| Key::of(object.as_ref()))
    }
}

type Subscriber<K> = Arc<dyn Fn(&ObjectChange<'_, K>) + Send + Sync>;

/// An object that a server tells of and that cannot be read.
#[derive(Clone, Debug, PartialEq)]
pub struct UnreadableObject {
    /// Which one.
    pub object: ObjectReference,
    /// Why, and what to do about it.
    pub why: String,
}

type UnreadableSubscriber = Arc<dyn Fn(&UnreadableObject) + Send + Sync>;

/// All objects of one kind, newest version each. Cheap to clone: clones share what they know.
///
/// Objects are kept without `managedFields` and without kubectl's last-applied annotation, which nobody here reads
/// and which double their size.
pub struct Store<K> {
    shared: Arc<SharedObjects<K>>,
}

struct SharedObjects<K> {
    /// Protects what is known. Held for one lookup or one change, never across an await or a subscriber.
    known: RwLock<KnownVersions<K>>,
    deferred: DeferredChanges<K>,
    /// Protects the list of subscribers; they are called on a copy of it.
    subscribers: RwLock<Vec<Subscriber<K>>>,
    /// Protects the list of those who hear of objects that cannot be read; they are called on a copy of it.
    unreadable: RwLock<Vec<UnreadableSubscriber>>,
    synced: watch::Sender<bool>,
    restorations: Restorations,
    /// Not there where there is no other operator.
    authors: OnceLock<Arc<StatusAuthors>>,
}

/// How often the storage of a server was found to be restored: an older one than was known. Stores of one server share it,
/// and their watches list anew, since a server tells a watch nothing below the version that it has seen (C-91).
#[derive(Clone, Debug, Default)]
pub struct Restorations(watch::Sender<u64>);

impl<K> Clone for Store<K> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<K: Watched> fmt::Debug for Store<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Store<{}>({} objects)", K::kind(&()), self.read().len())
    }
}

impl<K: Watched> Default for Store<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Watched> Store<K> {
    /// A store that knows nothing yet.
    pub fn new() -> Self {
        Self::of(&Restorations::default())
    }

    /// The same for one of several stores of a server.
    pub fn of(restorations: &Restorations) -> Self {
        let shared = SharedObjects {
            known: RwLock::new(KnownVersions::default()),
            deferred: DeferredChanges::default(),
            subscribers: RwLock::new(Vec::new()),
            unreadable: RwLock::new(Vec::new()),
            synced: watch::Sender::new(false),
            restorations: restorations.clone(),
            authors: OnceLock::new(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// The same store with an index more: `keys` gives the values under which an object is found by
    /// [`indexed`](Self::indexed).
    pub fn with_index(self, name: &'static str, keys: fn(&K) -> Vec<String>) -> Self {
        self.write().add_index(name, keys);
        self
    }

    /// The same store with the objects of which `folds` holds kept as text: they need a third of the memory, and are read
    /// from it each time they are asked for. For those that lie there, which are most of a large store. Large ones are kept as
    /// text in any case (C-99).
    pub fn compacting(self, folds: fn(&K) -> bool) -> Self {
        self.write().fold(folds);
        self
    }

    /// The newest known version of an object.
    pub fn get(&self, key: &Key) -> Option<Arc<K>> {
        let held = self.read().get(key);
        held?.object()
    }

    /// The resource version of the newest known version of an object, without a look at the object; `None` where it has none that is
    /// a number.
    pub fn version(&self, key: &Key) -> Option<u64> {
        self.read().version(key)
    }

    /// Whether an object is known, without a look at it.
    pub fn knows(&self, key: &Key) -> bool {
        self.read().knows(key)
    }

    /// The newest known version of an object as it is held.
    pub(crate) fn form(&self, key: &Key) -> Option<StoredForm<K>> {
        self.read().get(key)
    }

    /// Bytes of memory that an object takes once it is whole, at most, where the store holds a long text of it; none for others.
    pub fn memory(&self, key: &Key) -> u64 {
        self.form(key).and_then(|held| held.long()).map_or(0, |long| long.memory)
    }

    /// All objects of a namespace, or of all namespaces, sorted by key.
    pub fn list(&self, namespace: Option<&Namespace>) -> FoundObjects<K> {
        FoundObjects::of(self.read().list(namespace))
    }

    /// The keys of the objects of a namespace, or of all namespaces, sorted.
    pub fn keys(&self, namespace: Option<&Namespace>) -> Vec<Key> {
        self.read().keys(namespace).cloned().collect()
    }

    /// Calls `f` with every object, one after the other: of folded objects no more than one at a time is whole.
    pub fn for_each(&self, mut f: impl FnMut(&K)) {
        let held = self.read().list(None);
        for object in held.iter().filter_map(StoredForm::object) {
            f(&object);
        }
    }

    /// The objects of a namespace that an index finds under a value, sorted by name. An index that was not made by
    /// [`with_index`](Self::with_index) finds nothing.
    pub fn indexed(&self, index: &'static str, namespace: &Namespace, value: &str) -> FoundObjects<K> {
        let entry = IndexEntry::of(index, namespace, value);
        FoundObjects::of(self.read().indexed(namespace, entry))
    }

    /// The keys of what [`indexed`](Self::indexed) finds: for who has them called and does not look at them himself.
    pub fn indexed_keys(&self, index: &'static str, namespace: &Namespace, value: &str) -> Vec<Key> {
        let entry = IndexEntry::of(index, namespace, value);
        self.read().indexed_keys(namespace, entry)
    }

    /// Calls `f` after each change from now on, in the task that caused it. `f` may read every store, must not block,
    /// and takes the change as a hint: two changes of one object may reach it in either order, while the store itself
    /// always knows the newest.
    pub fn subscribe(&self, f: impl Fn(&ObjectChange<'_, K>) + Send + Sync + 'static) {
        self.shared.subscribers.write().unwrap_or_else(PoisonError::into_inner).push(Arc::new(f));
    }

    /// Calls `f` from now on for each version of an object that cannot be read, in the task that heard of it. `f` must not block.
    pub fn on_unreadable(&self, f: impl Fn(&UnreadableObject) + Send + Sync + 'static) {
        self.shared.unreadable.write().unwrap_or_else(PoisonError::into_inner).push(Arc::new(f));
    }

    /// From now on the status of objects is written as this operator, and others that write it are told (C-330).
    pub fn tell_authors(&self, authors: &Arc<StatusAuthors>) {
        // There is one operator in a process.
        let _set_before = self.shared.authors.set(Arc::clone(authors));
    }

    /// Those who write the status, where there may be others.
    pub(crate) fn authors(&self) -> Option<&StatusAuthors> {
        self.shared.authors.get().map(AsRef::as_ref)
    }

    /// The field manager of our own writes of status.
    pub(crate) fn status_author(&self) -> &str {
        self.authors().map_or(FIELD_MANAGER, StatusAuthors::name)
    }

    /// Takes in what a write answered: the higher resource version of the same uid wins, and what is known to be gone
    /// stays gone. An answer that is being deleted and has no finalizer left is gone. Returns the newest version.
    pub fn upsert(&self, object: K) -> Arc<K> {
        let new = self.new_version(object);
        let outcome = self.write().upsert(new);
        self.notify(&outcome);
        outcome.newest()
    }

    /// Has everybody here see an object with another status before the server has it: that goes with the next write of its status
    /// through a [`Writer`](crate::Writer). `change` is asked for each version of the object that comes until then; the change is
    /// dropped with the first one that it does not apply to (C-216). Nobody but this process knows of it: whoever defers a change has
    /// to find it missing, and defer it once more or write it, after a restart.
    pub fn defer(&self, key: &Key, change: impl Fn(&K) -> Option<K> + Send + Sync + 'static) {
        let Some(object) = self.get(key).filter(|object| !self.has_deferred(object)) else { return };
        self.shared.deferred.insert(&object, Arc::new(change));
        self.carry(object);
    }

    /// Takes the change that is deferred for an object into the version that is known, where that does not have it.
    fn carry(&self, mut object: Arc<K>) {
        while let Some(change) = self.shared.deferred.missing_in(&object) {
            let Some(changed) = self.shared.deferred.carried(&object, &change) else { return };
            let how = self.read().how_held();
            let new = NewVersion::new(changed, &how);
            let replaced = self.write().replace(new);
            if let Some(outcome) = replaced {
                return self.notify(&outcome);
            }
            // A newer version has come, or it is gone.
            let Some(newest) = self.get(&Key::of(object.as_ref())) else { return };
            object = newest;
        }
    }

    /// Whether a change of an object is deferred that the server does not have.
    pub fn has_deferred(&self, object: &K) -> bool {
        self.shared.deferred.has(object)
    }

    /// The status that the server has in this version of an object, where it is known with another one.
    pub(crate) fn written_status(&self, object: &K) -> Option<ServerStatus> {
        self.shared.deferred.written(object)
    }

    /// Takes in what a read has answered that began after `before` was known. Where that is newer than the answer, the
    /// storage of the server was restored: the answer counts, and all is listed anew (C-91).
    pub fn upsert_read(&self, before: Option<&K>, read: K) {
        if before.is_some_and(|before| version(before.meta()) > version(read.meta())) {
            self.shared.deferred.forget_restored(&read);
        }
        let read = self.new_version(read);
        let outcome = self.write().upsert_read(before.map(Resource::meta), read);
        if let UpsertOutcome::Restored { after, .. } = &outcome {
            let key = Key::of(after.as_ref());
            tracing::warn!(
                kind = %K::kind(&()), object = %key,
                "the storage of the API server was restored: the object is older than it was; all objects are listed anew"
            );
            self.shared.restorations.0.send_modify(|count| *count = count.wrapping_add(1));
        }
        self.notify(&outcome);
    }

    /// Tells when the storage of the server was restored.
    pub(crate) fn restorations(&self) -> watch::Receiver<u64> {
        self.shared.restorations.0.subscribe()
    }

    /// Takes in that an object of this uid is gone, as the answer of a delete says. Later words about it are ignored.
    pub fn forget(&self, object: &K) {
        self.forget_meta(object.meta());
    }

    /// Waits until the first list is in. Needs a running [`watch`](crate::watch).
    pub async fn synced(&self) {
        // The sender lives in this store: waiting cannot fail.
        let _ = self.shared.synced.subscribe().wait_for(|synced| *synced).await;
    }

    /// Whether the first list is in.
    pub fn is_synced(&self) -> bool {
        *self.shared.synced.borrow()
    }

    pub(crate) fn forget_meta(&self, meta: &kube::core::ObjectMeta) {
        let gone = self.write().forget(meta);
        self.tell_gone(gone.as_ref());
    }

    /// Takes in an event of the watch, decoding it only if it is news. `Err` is the object's own fault.
    pub(crate) fn hear(&self, message: &WatchedObject<K>) -> Result<(), serde_json::Error> {
        if !self.read().is_news(&Key::of_meta(&message.meta), &message.meta) {
            return Ok(());
        }
        let _turn = message.turn();
        let new = self.new_version(message.decode()?);
        let outcome = self.write().upsert(new);
        self.notify(&outcome);
        Ok(())
    }

    /// The same with what a list of one namespace, or of all, names. It counts also where it is older than what is known: the
    /// storage of the server was restored then (C-91).
    pub(crate) fn hear_listed(
        &self,
        namespace: Option<&Namespace>,
        message: &WatchedObject<K>,
    ) -> Result<(), serde_json::Error> {
        let key = Key::of_meta(&message.meta);
        {
            let mut known = self.write();
            known.mark_listed(namespace, &key);
            if !known.is_news_of_list(namespace, &key, &message.meta) {
                return Ok(());
            }
        }
        let _turn = message.turn();
        let listed = message.decode()?;
        self.shared.deferred.forget_restored(&listed);
        let new = self.new_version(listed);
        let outcome = {
            let mut known = self.write();
            // A write may have answered since.
            if !known.is_news_of_list(namespace, &key, &message.meta) {
                return Ok(());
            }
            known.take_in_listed(new)
        };
        self.notify(&outcome);
        Ok(())
    }

    /// Takes in that a version of an object cannot be read: that is a matter of this object alone, which stays as it was known
    /// (C-153). What was known of another one of its name is gone.
    pub(crate) fn unread(&self, message: &WatchedObject<K>, error: &serde_json::Error) {
        let key = Key::of_meta(&message.meta);
        tracing::warn!(kind = %K::kind(&()), object = %key, %error, "an object cannot be read and is left as it was known");
        let gone = self.write().forget_other(&message.meta);
        self.tell_gone(gone.as_ref());
        let unreadable = UnreadableObject { object: message.object_ref(&()), why: error.to_string() };
        let subscribers = self.shared.unreadable.read().unwrap_or_else(PoisonError::into_inner).clone();
        for subscriber in subscribers {
            subscriber(&unreadable);
        }
    }

    /// A list of one namespace, or of all, begins: what it does not name is gone when it ends, unless a write has
    /// answered in between.
    pub(crate) fn begin_list(&self, namespace: Option<&Namespace>) {
        self.write().begin_list(namespace);
    }

    /// The list is complete.
    pub(crate) fn end_list(&self, namespace: Option<&Namespace>) {
        let gone = self.write().end_list(namespace);
        for before in &gone {
            self.tell_gone(Some(before));
        }
    }

    /// Every first list is in.
    pub(crate) fn mark_synced(&self) {
        self.shared.synced.send_if_modified(|synced| !std::mem::replace(synced, true));
    }

    /// A version without what nobody here reads, with what is deferred for it, in the form in which it will be held.
    fn new_version(&self, mut object: K) -> NewVersion<K> {
        strip(&mut object);
        let object = self.shared.deferred.changed(&object).unwrap_or(object);
        let how = self.read().how_held();
        NewVersion::new(object, &how)
    }

    fn notify(&self, outcome: &UpsertOutcome<K>) {
        match outcome {
            UpsertOutcome::Unchanged { .. } => {}
            UpsertOutcome::Changed { before, after } | UpsertOutcome::Restored { before, after } => {
                let before = before.as_ref().and_then(StoredForm::object);
                if let Some(other) = before.as_ref().filter(|before| before.meta().uid != after.meta().uid) {
                    self.shared.deferred.forget(other);
                }
                self.tell(&ObjectChange { before: before.as_ref(), after: Some(after) });
                // It was decided meanwhile, or is written now.
                self.carry(Arc::clone(after));
            }
            UpsertOutcome::Gone { before, .. } => self.tell_gone(before.as_ref()),
        }
    }

    fn tell_gone(&self, before: Option<&StoredForm<K>>) {
        if let Some(before) = before.and_then(StoredForm::object) {
            self.shared.deferred.forget(&before);
            self.tell(&ObjectChange { before: Some(&before), after: None });
        }
    }

    fn tell(&self, change: &ObjectChange<'_, K>) {
        let subscribers = self.shared.subscribers.read().unwrap_or_else(PoisonError::into_inner).clone();
        for subscriber in subscribers {
            subscriber(change);
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, KnownVersions<K>> {
        self.shared.known.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, KnownVersions<K>> {
        self.shared.known.write().unwrap_or_else(PoisonError::into_inner)
    }
}

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

fn strip<K: Watched>(object: &mut K) {
    let meta = object.meta_mut();
    meta.managed_fields = None;
    if let Some(annotations) = &mut meta.annotations
        && annotations.remove(LAST_APPLIED).is_some()
        && annotations.is_empty()
    {
        meta.annotations = None;
    }
}

#[cfg(test)]
mod tests;
