//! What is held in memory for an item goes when nothing is done for it any more.

use std::sync::Arc;

use orangery_reconcile::Key;

use super::DeployItemController;
use crate::{controller_context::waiter, stores::StoredKind};

impl DeployItemController {
    /// An item that others released is not looked at again: what it holds goes with it.
    pub(super) fn forget_deleted(&self) {
        let (pool, cache, limiter) = (Arc::clone(&self.pool), Arc::clone(&self.cache), Arc::clone(&self.limiter));
        let host = Arc::downgrade(&self.host);
        self.host.stores.deploy_items.subscribe(move |change| {
            if let (None, Some(key)) = (change.after, change.key()) {
                let uid = change.before.and_then(|before| before.metadata.uid.as_deref());
                host.upgrade().into_iter().zip(uid).for_each(|(host, uid)| {
                    host.forget_item(uid);
                    host.planned_ahead.forget(&key);
                    host.job_writes.release(&key);
                });
                pool.release(&waiter(StoredKind::DeployItem, &key));
                cache.forget(&key);
                limiter.leave(&key);
            }
        });
    }

    /// Nothing is waited for any more: watches and what is held in memory go.
    pub(super) fn forget(&self, key: &Key) {
        self.pool.release(&waiter(StoredKind::DeployItem, key));
        self.cache.forget(key);
        self.limiter.leave(key);
    }
}
