//! The limits on deploy items that are under way at once: in this host (WF-15), and in a namespace.

use std::{
    num::NonZeroU32,
    sync::{Mutex, Once, PoisonError},
};

use orangery_core::{
    plan::concurrency::{SlotOwner, Slots},
    step::{Until, Wait, Waiting},
    walk::Transition,
};
use orangery_reconcile::{Key, Queue};

use super::quota::{NamespaceQuotas, has_begun};
use crate::controller_context::ControllerContext;

/// Admits items up to a limit; without one nothing is counted.
pub(in crate::deploy_item) struct ConcurrencyLimiter {
    most: Option<NonZeroU32>,
    /// Protects which items are under way and which wait. Held for one change.
    slots: Option<Mutex<Slots>>,
    /// Done when the items that had begun before this operator did are counted.
    counted: Once,
    /// The quotas of namespaces: who has a slot there waits for one of the host.
    quotas: NamespaceQuotas,
    /// Wakes the items whose turn it is.
    queue: Queue,
}

impl ConcurrencyLimiter {
    pub(in crate::deploy_item) fn new(most: Option<NonZeroU32>, queue: Queue) -> Self {
        let quotas = NamespaceQuotas::new(queue.clone());
        Self { most, slots: most.map(|most| Mutex::new(Slots::new(most))), counted: Once::new(), quotas, queue }
    }

    fn with<T>(&self, change: impl FnOnce(&mut Slots) -> T) -> Option<T> {
        let slots = self.slots.as_ref()?;
        Some(change(&mut slots.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// What an item waits for where there is no room for it; it is woken when it is its turn. One that has begun is never
    /// turned away.
    pub(in crate::deploy_item) fn admit(&self, host: &ControllerContext, item: &Key, has_begun: bool) -> Option<Wait> {
        if let Some(wait) = self.quotas.admit(host, item, has_begun) {
            return Some(wait);
        }
        if has_begun {
            self.with(|slots| slots.occupy(&slot_owner(item)));
            return None;
        }
        self.count(host);
        match (self.most, self.with(|slots| slots.acquire(&slot_owner(item)))) {
            (Some(most), Some(false)) => {
                Some(Waiting::nowhere("Host", format!("maxParallel={most}"), Until::Room).into())
            }
            _ => None,
        }
    }

    /// Items that had begun before this operator did come before all others.
    fn count(&self, host: &ControllerContext) {
        if self.slots.is_none() {
            return;
        }
        self.counted.call_once(|| {
            host.stores.deploy_items.for_each(|item| {
                if has_begun(host, item) {
                    self.with(|slots| slots.occupy(&slot_owner(&Key::of(item))));
                }
            });
        });
    }

    /// An item that waits until somebody approves what it writes takes no place meanwhile (C-316).
    pub(in crate::deploy_item) fn leave_while<P>(&self, item: &Key, transition: &Transition<P>) {
        if matches!(transition, Transition::Wait(wait) if wait.awaits_approval()) {
            self.leave(item);
        }
    }

    /// The item is under way no more.
    pub(in crate::deploy_item) fn leave(&self, item: &Key) {
        self.quotas.leave(item);
        for (namespace, name) in self.with(|slots| slots.release(&slot_owner(item))).into_iter().flatten() {
            self.queue.wake(Key::new(namespace, name));
        }
    }
}

fn slot_owner(item: &Key) -> SlotOwner {
    (item.namespace.clone(), item.name.to_string())
}
