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
    /// The newest version that was changed, and the status that the server has in it.
    carried: Option<(u64, ServerStatus)>,
}

/// The deferred changes of a store, one for an object.
pub(super) struct DeferredChanges<K>(Mutex<BTreeMap<Key, DeferredChange<K>>>);

impl<K> Default for DeferredChanges<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Watched> DeferredChanges<K> {
    /// Defers a change of an object, in the place of one that was deferred before.
    pub(super) fn insert(&self, object: &K, change: VersionChange<K>) {
        let change = DeferredChange { uid: uid(object.meta()).to_owned(), change, carried: None };
        self.lock().insert(Key::of(object), change);
    }

    /// A version with the change that is deferred for it; `None` where there is none, or it does not apply to this version.
    pub(super) fn changed(&self, object: &K) -> Option<K> {
        let key = Key::of(object);
        let change = {
            let deferred = self.lock();
            let of = deferred.get(&key).filter(|of| of.uid == uid(object.meta()))?;
            Arc::clone(&of.change)
        };
        let (number, changed) = (version(object.meta())?, change(object)?);
        let status = serde_json::to_value(object).ok()?.get_mut("status").map(Value::take);
        if let Some(of) = self.lock().get_mut(&key)
            && of.carried.as_ref().is_none_or(|(newest, _)| *newest < number)
        {
            of.carried = Some((number, ServerStatus(status)));
        }
        Some(changed)
    }

    /// Whether the change of an object is deferred that is not in this version of it.
    pub(super) fn is_missing_in(&self, object: &K) -> bool {
        let deferred = self.lock();
        let of = deferred.get(&Key::of(object)).filter(|of| of.uid == uid(object.meta()));
        of.is_some_and(|of| of.carried.as_ref().map(|(newest, _)| *newest) != version(object.meta()))
    }

    /// The status that the server has in a version that is known with another one.
    pub(super) fn written(&self, object: &K) -> Option<ServerStatus> {
        let deferred = self.lock();
        let (newest, status) = deferred.get(&Key::of(object))?.carried.as_ref()?;
        (Some(*newest) == version(object.meta())).then(|| status.clone())
    }

    /// Forgets the change of an object.
    pub(super) fn forget(&self, object: &K) {
        let mut deferred = self.lock();
        if deferred.get(&Key::of(object)).is_some_and(|of| of.uid == uid(object.meta())) {
            deferred.remove(&Key::of(object));
        }
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, DeferredChange<K>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
