//! Which types are served by another component than before, and how many deploy items there are of each.

use std::{
    collections::BTreeSet,
    sync::{Arc, PoisonError, RwLock},
};

use tokio::sync::watch;

use self::items::ItemCounts;
use crate::stores::Stores;

mod items;

type TypeSubscriber = Box<dyn Fn(&BTreeSet<String>) + Send + Sync>;

/// Tells those that wait for a component which types another one serves than before.
pub(crate) struct ServedTypes {
    /// How many deploy items there are of each type.
    pub(crate) items: Arc<ItemCounts>,
    subscribers: RwLock<Vec<TypeSubscriber>>,
    /// Whether the types of all Plugins are claimed.
    known: watch::Sender<bool>,
}

impl Default for ServedTypes {
    fn default() -> Self {
        Self { items: Arc::default(), subscribers: RwLock::default(), known: watch::Sender::new(false) }
    }
}

impl ServedTypes {
    /// Counts the deploy items of stores that nothing has been told yet.
    pub(crate) fn of(stores: &Stores) -> Self {
        let served = Self::default();
        let items = Arc::clone(&served.items);
        stores.deploy_items.subscribe(move |change| items.hear(change));
        served
    }

    /// Calls `f` with types that another component serves than before.
    pub(crate) fn subscribe(&self, f: impl Fn(&BTreeSet<String>) + Send + Sync + 'static) {
        self.subscribers.write().unwrap_or_else(PoisonError::into_inner).push(Box::new(f));
    }

    /// Tells of types that another component serves than before.
    pub(crate) fn tell(&self, types: &BTreeSet<String>) {
        for subscriber in self.subscribers.read().unwrap_or_else(PoisonError::into_inner).iter() {
            subscriber(types);
        }
    }

    /// The types of all Plugins are claimed, or there are none.
    pub(crate) fn mark_known(&self) {
        self.known.send_replace(true);
    }

    /// Waits until the types of all Plugins that there are at the start are claimed: before, their items would pass for those of
    /// external deployers. Needs [`keep_plugins`](crate::keep_plugins).
    pub(crate) async fn known(&self) {
        // The sender lives in here: waiting cannot fail.
        let _ = self.known.subscribe().wait_for(|known| *known).await;
    }
}
