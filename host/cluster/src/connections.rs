//! How references become clusters, and the watches that are held on them.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use orangery_core::{name::Namespace, port::BoxFuture, step::Step};
use orangery_proposal::{ClusterRef, SecretContent};
use serde_json::Value;

use crate::{
    Cluster,
    watch::{Waiter, WatchHandle},
};

/// How the references of a proposal become clusters; given by whoever knows targets.
pub trait Connections: Send + Sync {
    /// The cluster behind a reference.
    ///
    /// # Errors
    /// Why there is none, already classified.
    fn connect<'a>(&'a self, on: &'a ClusterRef) -> BoxFuture<'a, Step<Arc<Cluster>>>;
    /// Content that the host places into an object and the component never sees.
    ///
    /// # Errors
    /// Why there is none, already classified.
    fn content<'a>(&'a self, content: &'a SecretContent) -> BoxFuture<'a, Step<String>>;
    /// Hears of each Secret that was read, before anybody sees what is in it (C-195). Whoever shows nothing needs not listen.
    fn has_read(&self, _on: &ClusterRef, _secret: &Value) {}
}

/// The watches that items hold between two calls of the controller.
#[derive(Default)]
pub(crate) struct WatchHandles {
    /// Protects the handles by waiter. Held for one change or one look; what is replaced is dropped outside.
    by_waiter: Mutex<BTreeMap<Waiter, Vec<WatchHandle>>>,
}

impl WatchHandles {
    pub(crate) fn replace(&self, waiter: &Waiter, handles: Vec<WatchHandle>) {
        let before = {
            let mut by_waiter = self.by_waiter.lock().unwrap_or_else(PoisonError::into_inner);
            if handles.is_empty() { by_waiter.remove(waiter) } else { by_waiter.insert(waiter.clone(), handles) }
        };
        drop(before);
    }

    /// The waiters of a namespace that hold any.
    pub(crate) fn waiters(&self, namespace: &Namespace) -> Vec<Waiter> {
        let by_waiter = self.by_waiter.lock().unwrap_or_else(PoisonError::into_inner);
        by_waiter.keys().filter(|waiter| waiter.namespace == *namespace).cloned().collect()
    }

    pub(crate) fn renew(&self, waiter: &Waiter) {
        let by_waiter = self.by_waiter.lock().unwrap_or_else(PoisonError::into_inner);
        by_waiter.get(waiter).into_iter().flatten().for_each(WatchHandle::renew);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_waiter.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }
}
