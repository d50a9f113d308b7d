//! Room that namespaces share: none of them takes all of it, and those that wait take turns.
//!
//! A namespace gets one more place while it has fewer than are free. So one that fills its places with calls that sleep
//! leaves half of them to others, two of them a quarter, and somebody who has none gets the last one. This is how switches
//! share their buffers (dynamic thresholds); a fixed share would be too small for one namespace, or too large for many.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use orangery_core::name::Namespace;
use tokio::sync::oneshot;

/// Whose turn it is. `None` stands for the host itself, which has its share like a namespace.
pub(crate) type Tenant = Option<Namespace>;

/// Places that tenants share.
pub(crate) struct Turns {
    /// Protects places and queue; held for one decision.
    queue: Mutex<TurnQueue<oneshot::Sender<Turn>>>,
}

/// A place; it is free again when this is dropped.
pub(crate) struct Turn {
    turns: Arc<Turns>,
    tenant: Tenant,
}

impl Turns {
    /// So many places, all of them free.
    pub(crate) fn new(places: usize) -> Arc<Self> {
        Arc::new(Self { queue: Mutex::new(TurnQueue::new(places)) })
    }

    /// A place for this tenant, when it has its turn. Whoever is dropped while it waits leaves the queue.
    pub(crate) async fn acquire(self: &Arc<Self>, tenant: &Tenant) -> Turn {
        loop {
            let (sender, receiver) = oneshot::channel();
            self.queue().wait(tenant.clone(), sender);
            self.pass_on();
            if let Ok(turn) = receiver.await {
                return turn;
            }
        }
    }

    /// Places that are taken.
    pub(crate) fn taken(&self) -> usize {
        self.queue().taken()
    }

    fn queue(&self) -> MutexGuard<'_, TurnQueue<oneshot::Sender<Turn>>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives free places away. A place that nobody receives any more comes back as its turn is dropped, without the lock.
    fn pass_on(self: &Arc<Self>) {
        loop {
            let next = {
                let mut queue = self.queue();
                queue.waiting.retain(|(_, sender)| !sender.is_closed());
                queue.next()
            };
            let Some((tenant, sender)) = next else { return };
            let turn = Turn { turns: self.clone(), tenant };
            // Where its receiver has gone in this very moment, the place is dropped and goes to the next one.
            drop(sender.send(turn));
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.turns.queue().release(&self.tenant);
        self.turns.pass_on();
    }
}

/// The decisions: places that are taken by tenant, and what waits, the longest first.
struct TurnQueue<W> {
    places: usize,
    taken: BTreeMap<Tenant, usize>,
    waiting: Vec<(Tenant, W)>,
    /// When tenants that wait had their last turn, in turns.
    last: BTreeMap<Tenant, u64>,
    turns: u64,
}

impl<W> TurnQueue<W> {
    fn new(places: usize) -> Self {
        Self { places, taken: BTreeMap::new(), waiting: Vec::new(), last: BTreeMap::new(), turns: 0 }
    }

    fn taken(&self) -> usize {
        self.taken.values().sum()
    }

    fn taken_by(&self, tenant: &Tenant) -> usize {
        self.taken.get(tenant).copied().unwrap_or_default()
    }

    fn wait(&mut self, tenant: Tenant, waiter: W) {
        self.waiting.push((tenant, waiter));
    }

    /// What gets a place now: of the tenants that may have one more the one with the fewest, then the one whose last turn
    /// is the longest ago, then the one that waits longest.
    fn next(&mut self) -> Option<(Tenant, W)> {
        let free = self.places.saturating_sub(self.taken());
        let may = self.waiting.iter().enumerate().filter(|(_, (tenant, _))| self.taken_by(tenant) < free);
        let rank =
            |(at, (tenant, _)): &(usize, &(Tenant, W))| (self.taken_by(tenant), self.last.get(tenant).copied(), *at);
        let at = may.min_by_key(rank)?.0;
        let (tenant, waiter) = self.waiting.remove(at);
        *self.taken.entry(tenant.clone()).or_default() += 1;
        self.turns += 1;
        self.last.insert(tenant.clone(), self.turns);
        let waiting = &self.waiting;
        self.last.retain(|tenant, _| waiting.iter().any(|(waits, _)| waits == tenant));
        Some((tenant, waiter))
    }

    fn release(&mut self, tenant: &Tenant) {
        if let Some(taken) = self.taken.get_mut(tenant) {
            *taken -= 1;
            if *taken == 0 {
                self.taken.remove(tenant);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &'static str) -> Tenant {
        Some(Namespace::from_static(name))
    }

    /// How many more places a tenant gets that asks for all of them.
    fn greedy(queue: &mut TurnQueue<()>, name: &'static str) -> usize {
        (0..queue.places).for_each(|_| queue.wait(of(name), ()));
        let got = std::iter::from_fn(|| queue.next()).count();
        queue.waiting.clear();
        got
    }

    #[test]
    fn c_43_no_namespace_takes_all_places_and_there_is_one_for_the_next() {
        let mut queue = TurnQueue::new(64);
        assert_eq!(["a", "b", "c", "d", "e", "f", "g"].map(|name| greedy(&mut queue, name)), [32, 16, 8, 4, 2, 1, 1]);
        assert_eq!(greedy(&mut queue, "h"), 0, "all are taken");
        (0..32).for_each(|_| queue.release(&of("a")));
        assert_eq!(["h", "b", "a"].map(|name| greedy(&mut queue, name)), [16, 0, 8]);
        assert_eq!(greedy(&mut TurnQueue::new(1), "a"), 1, "the only place is for whoever comes");
    }

    #[test]
    fn c_43_namespaces_that_wait_for_the_only_place_take_turns() {
        let mut queue = TurnQueue::new(1);
        for name in ["a", "a", "a", "b", "b", "c"] {
            queue.wait(of(name), ());
        }
        let order = std::iter::from_fn(|| {
            let (tenant, ()) = queue.next()?;
            queue.release(&tenant);
            tenant
        });
        let order: Vec<_> = order.map(|tenant| tenant.to_string()).collect();
        assert_eq!(order.join(" "), "a b c a b a");
    }

    #[tokio::test]
    async fn c_43_a_place_comes_back_when_it_is_dropped_and_a_caller_that_stops_waiting_gets_none() {
        let turns = Turns::new(1);
        let (b, c) = (of("b"), of("c"));
        let first = turns.acquire(&of("a")).await;
        let mut given_up = Box::pin(turns.acquire(&b));
        let mut waits = Box::pin(turns.acquire(&c));
        assert!(futures::poll!(&mut given_up).is_pending() && futures::poll!(&mut waits).is_pending());
        drop(given_up);
        drop(first);
        let last = waits.await;
        assert_eq!(turns.taken(), 1);
        // One that was given its place and never looks at it.
        let mut unread = Box::pin(turns.acquire(&b));
        assert!(futures::poll!(&mut unread).is_pending());
        drop(last);
        assert_eq!(turns.taken(), 1);
        drop(unread);
        assert_eq!(turns.taken(), 0);
    }
}
