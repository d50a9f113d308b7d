//! The quota of a namespace on deploy items that are under way at once (`quotas.items` of policies).

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, PoisonError},
};

use orangery_api::{deploy_item::DeployItem, job::Job, marks::Marks};
use orangery_core::{
    name::Namespace,
    phase::item::Item as Phase,
    step::{Until, Wait, Waiting},
    walk::standing_phase,
};
use orangery_policy::{Quota, QuotaKind};
use orangery_reconcile::{Key, Queue};
use orangery_turns::off_the_executor;

use crate::controller_context::ControllerContext;

/// Admits items of namespaces that have a quota; of others nothing is counted.
pub(super) struct NamespaceQuotas {
    /// Protects what is under way in which namespace. Held for one change.
    namespaces: Mutex<BTreeMap<Namespace, QuotaSlots>>,
    /// Wakes the items whose turn it is.
    queue: Queue,
}

/// The items of one namespace, by name.
#[derive(Debug, Default, PartialEq, Eq)]
struct QuotaSlots {
    occupied: BTreeSet<String>,
    /// By their turn: the first comes next.
    waiting: BTreeMap<u64, String>,
    /// The turns of those that wait.
    turns: BTreeMap<String, u64>,
}

impl QuotaSlots {
    /// Whether an item that is to begin may, where there are so many slots; else it waits from now on.
    fn acquire(&mut self, item: &str, most: usize) -> bool {
        if self.occupied.contains(item) {
            return true;
        }
        let free = most.saturating_sub(self.occupied.len());
        let turn = self.turns.get(item).copied();
        // No more of them are looked at than there is room for.
        let before = self.waiting.range(..turn.unwrap_or(u64::MAX)).take(free).count();
        if before < free {
            self.occupy(item);
            return true;
        }
        if turn.is_none() {
            let turn = self.waiting.last_key_value().map_or(0, |(last, _)| last + 1);
            self.waiting.insert(turn, item.to_owned());
            self.turns.insert(item.to_owned(), turn);
        }
        false
    }

    /// An item that has begun has a slot, also where that is one too many.
    fn occupy(&mut self, item: &str) {
        self.wait_no_more(item);
        self.occupied.insert(item.to_owned());
    }

    fn wait_no_more(&mut self, item: &str) {
        if let Some(turn) = self.turns.remove(item) {
            self.waiting.remove(&turn);
        }
    }

    /// An item is under way no more, and waits no more. The one that comes next is to be called.
    fn release(&mut self, item: &str) -> Option<&String> {
        self.occupied.remove(item);
        self.wait_no_more(item);
        self.waiting.values().next()
    }
}

impl NamespaceQuotas {
    pub(super) fn new(queue: Queue) -> Self {
        Self { namespaces: Mutex::default(), queue }
    }

    /// What an item waits for whose namespace has no slot for it. One that has begun is never turned away.
    pub(super) fn admit(&self, host: &ControllerContext, item: &Key, has_begun: bool) -> Option<Wait> {
        // Where it is not known what counts, the item says so itself.
        let quota = host.policies.of(&item.namespace).ok().and_then(|policy| policy.quota(QuotaKind::Items));
        let lock = || self.namespaces.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(Quota { most, policy, line: _ }) = quota else {
            lock().remove(&item.namespace);
            return None;
        };
        // All items of the namespace are looked at: nobody of another one waits for that.
        let is_known = lock().contains_key(&item.namespace);
        let found = if is_known { None } else { Some(off_the_executor(|| begun(host, &item.namespace))) };
        let mut namespaces = lock();
        let slots = namespaces.entry(item.namespace.clone()).or_insert_with(|| found.unwrap_or_default());
        if has_begun {
            slots.occupy(&item.name);
            return None;
        }
        if slots.acquire(&item.name, usize::try_from(most).unwrap_or(usize::MAX)) {
            return None;
        }
        Some(Waiting::nowhere("Quota", format!("items={most} of {policy}"), Until::Room).into())
    }

    /// The item is under way no more.
    pub(super) fn leave(&self, item: &Key) {
        let next = {
            let mut namespaces = self.namespaces.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(slots) = namespaces.get_mut(&item.namespace) else { return };
            slots.release(&item.name).cloned()
        };
        if let Some(next) = next {
            self.queue.wake(Key::new(item.namespace.clone(), next));
        }
    }
}

/// The items of a namespace that have begun before its quota was looked at: they come before all others.
fn begun(host: &ControllerContext, namespace: &Namespace) -> QuotaSlots {
    let items = host.stores.deploy_items.list(Some(namespace));
    let under_way = items.into_iter().filter(|item| has_begun(host, item));
    QuotaSlots {
        occupied: under_way.map(|item| Key::of(item.as_ref()).name.to_string()).collect(),
        ..QuotaSlots::default()
    }
}

/// Whether the job of an item of a component is under way, and not to begin still.
pub(super) fn has_begun(host: &ControllerContext, item: &DeployItem) -> bool {
    let (_, fresh) = standing_phase(Phase::parse(item.phase()), item.is_deleting());
    !item.job_finished() && !fresh && host.deployer_of(item).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_are_under_way_than_the_quota_and_the_first_that_waits_is_next() {
        let mut slots = QuotaSlots::default();
        assert_eq!(["a", "b", "c", "a"].map(|item| slots.acquire(item, 2)), [true, true, false, true]);
        assert!(!slots.acquire("d", 2));
        assert_eq!(slots.release("b"), Some(&"c".to_owned()));
        assert!(!slots.acquire("d", 2), "c came first");
        assert!(slots.acquire("c", 2) && !slots.acquire("d", 2));
        assert_eq!(slots.release("d"), None, "it waits no more");
    }

    #[test]
    fn c_298_twenty_thousand_items_wait_and_each_has_its_turn() {
        let mut slots = QuotaSlots::default();
        let items: Vec<String> = (0..20_000).map(|number| format!("an-item-{number:05}")).collect();
        let begun = std::time::Instant::now();
        assert!(slots.acquire("first", 1));
        assert!(items.iter().all(|item| !slots.acquire(item, 1)));
        assert!(items.iter().rev().all(|item| !slots.acquire(item, 1)), "asking again changes no turn");
        let mut next = slots.release("first").cloned();
        for item in &items {
            assert_eq!(next.as_ref(), Some(item));
            assert!(slots.acquire(item, 1));
            next = slots.release(item).cloned();
        }
        assert_eq!((next, slots), (None, QuotaSlots::default()));
        assert!(begun.elapsed() < std::time::Duration::from_secs(10));
    }

    #[test]
    fn a_raised_quota_admits_items_that_wait_and_a_lowered_one_sends_none_away() {
        let mut slots = QuotaSlots::default();
        assert_eq!(["a", "b", "c"].map(|item| slots.acquire(item, 1)), [true, false, false]);
        assert_eq!(["c", "b"].map(|item| slots.acquire(item, 3)), [true, true]);
        assert_eq!(["a", "d"].map(|item| slots.acquire(item, 1)), [true, false]);
        slots.occupy("d");
        assert!(slots.acquire("d", 1), "it has begun");
    }
}
