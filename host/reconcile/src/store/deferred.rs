//! Changes of status that are decided and not written yet: everybody here sees them, and they go with the next write of the
//! status of their object.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde_json::Value;

use super::held::{uid, version};
use crate::{Key, Watched};

type VersionChange<K> = Arc<dyn Fn(&K) -> Option<K> + Send + Sync>;

/// A status as the server has it, where an object is known with another one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ServerStatus(pub(crate) Option<Value>);

struct DeferredChange<K> {
    uid: String,
    change: VersionChange<K>,
    /// The newest version that was changed, and the status that the server has in it, as text.
    carried: Option<(u64, Option<String>)>,
}

/// The deferred changes of a store, one for an object.
pub(super) struct DeferredChanges<K>(Mutex<BTreeMap<Key, DeferredChange<K>>>);

impl<K> Default for DeferredChanges<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Watched> DeferredChanges<K> {
    /// Defers a change of an object.
    pub(super) fn insert(&self, object: &K, change: VersionChange<K>) {
        let change = DeferredChange { uid: uid(object.meta()).to_owned(), change, carried: None };
        self.lock().insert(Key::of(object), change);
    }

    /// Whether a change of an object is deferred, whatever its version.
    pub(super) fn has(&self, object: &K) -> bool {
        self.of(&self.lock(), object).is_some()
    }

    /// A version with the change that is deferred for it; `None` where there is none, or it does not apply to this version.
    pub(super) fn changed(&self, object: &K) -> Option<K> {
        let change = Arc::clone(&self.of(&self.lock(), object)?.change);
        self.changed_by(object, &change)
    }

    fn changed_by(&self, object: &K, change: &VersionChange<K>) -> Option<K> {
        let (number, changed) = (version(object.meta())?, change(object)?);
        let status = serde_json::to_value(object).ok()?.get_mut("status").map(Value::take);
        if let Some(of) = self.lock().get_mut(&Key::of(object))
            && of.carried.as_ref().is_none_or(|(newest, _)| *newest < number)
        {
            of.carried = Some((number, status.map(|status| status.to_string())));
        }
        Some(changed)
    }

    /// The change that is deferred for an object, where it is in no version as new as this one. An older version may be looked at after
    /// a newer one has it.
    pub(super) fn missing_in(&self, object: &K) -> Option<VersionChange<K>> {
        let deferred = self.lock();
        let of = self.of(&deferred, object)?;
        let is_missing = of.carried.as_ref().is_none_or(|(newest, _)| Some(*newest) < version(object.meta()));
        is_missing.then(|| Arc::clone(&of.change))
    }

    /// A version with this change. Where it does not apply to it, it is forgotten, unless another one has come in its place.
    pub(super) fn carried(&self, object: &K, change: &VersionChange<K>) -> Option<K> {
        let changed = self.changed_by(object, change);
        if changed.is_none() {
            let mut deferred = self.lock();
            if self.of(&deferred, object).is_some_and(|of| Arc::ptr_eq(&of.change, change)) {
                deferred.remove(&Key::of(object));
            }
        }
        changed
    }

    /// The status that the server has in a version that is known with another one.
    pub(super) fn written(&self, object: &K) -> Option<ServerStatus> {
        let deferred = self.lock();
        let (newest, status) = self.of(&deferred, object)?.carried.as_ref()?;
        let is_same = Some(*newest) == version(object.meta());
        is_same.then(|| ServerStatus(status.as_deref().and_then(|status| serde_json::from_str(status).ok())))
    }

    /// Forgets the change of an object.
    pub(super) fn forget(&self, object: &K) {
        let mut deferred = self.lock();
        if self.of(&deferred, object).is_some() {
            deferred.remove(&Key::of(object));
        }
    }

    /// Forgets the change of an object of which the server tells an older version than the one that has it: its storage was restored.
    pub(super) fn forget_restored(&self, object: &K) {
        let mut deferred = self.lock();
        let newest = self.of(&deferred, object).and_then(|of| of.carried.as_ref()).map(|(newest, _)| *newest);
        if newest > version(object.meta()) {
            deferred.remove(&Key::of(object));
        }
    }

    fn of<'d>(&self, deferred: &'d BTreeMap<Key, DeferredChange<K>>, object: &K) -> Option<&'d DeferredChange<K>> {
        deferred.get(&Key::of(object)).filter(|of| of.uid == uid(object.meta()))
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, DeferredChange<K>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
