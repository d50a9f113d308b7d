//! Places that namespaces share: none of them takes all, and those that wait take turns.
//!
//! A namespace gets one more place while it has fewer than are free, the last eighth apart, which is for namespaces that
//! have none. So one that fills its places with what never ends leaves more than half of them to others, and two of them a
//! third. This is how switches share their buffers (dynamic thresholds); a fixed share would be too small for one
//! namespace, or too large for many.

mod computations;
mod debts;
mod large;
mod shared_bytes;
mod slot;

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use orangery_core::name::Namespace;
use tokio::sync::oneshot;

pub use computations::{Computations, blocking};
pub use large::{LeavingStream, leaves_the_executor, off_the_executor};
pub use shared_bytes::{HeldBytes, SharedBytes, room_of_one};
pub use slot::{LentSlot, in_slot, lending, lending_of, slot};

/// Whose turn it is. `None` stands for the host itself, which has its share like a namespace.
pub type Tenant = Option<Namespace>;

/// One in so many places is kept for tenants that have none.
const KEPT: usize = 8;

/// Places that tenants share (C-43).
pub struct Turns {
    /// Protects places and queue; held for one decision.
    queue: Mutex<TurnQueue<oneshot::Sender<Turn>>>,
}

/// A place; it is free again when this is dropped.
pub struct Turn {
    turns: Arc<Turns>,
    tenant: Tenant,
}

impl Turns {
    /// So many places, all of them free.
    pub fn new(places: usize) -> Arc<Self> {
        Arc::new(Self { queue: Mutex::new(TurnQueue::new(places)) })
    }

    /// A place for this tenant, when it has its turn. Whoever is dropped while it waits leaves the queue.
    pub async fn acquire(self: &Arc<Self>, tenant: &Tenant) -> Turn {
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
    pub fn taken(&self) -> usize {
        self.queue().taken
    }

    fn queue(&self) -> MutexGuard<'_, TurnQueue<oneshot::Sender<Turn>>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives free places away. A place that nobody receives any more comes back as its turn is dropped, without the lock.
    fn pass_on(self: &Arc<Self>) {
        loop {
            let next = self.queue().next(oneshot::Sender::is_closed);
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

/// The decisions.
struct TurnQueue<W> {
    places: usize,
    taken: usize,
    /// Those that have places, or wait for one.
    tenants: BTreeMap<Tenant, TenantQueue<W>>,
    /// Turns so far.
    turns: u64,
    /// Arrivals so far.
    arrivals: u64,
}

/// The places of one tenant, and what waits for it with its number of arrival, the longest first.
struct TenantQueue<W> {
    taken: usize,
    waiting: VecDeque<(u64, W)>,
    /// Its last turn, counted from one; zero where it had none while it was here.
    last: u64,
}

impl<W> TurnQueue<W> {
    fn new(places: usize) -> Self {
        Self { places, taken: 0, tenants: BTreeMap::new(), turns: 0, arrivals: 0 }
    }

    fn wait(&mut self, tenant: Tenant, waiter: W) {
        self.arrivals += 1;
        let queue = TenantQueue { taken: 0, waiting: VecDeque::new(), last: 0 };
        self.tenants.entry(tenant).or_insert(queue).waiting.push_back((self.arrivals, waiter));
    }

    /// What gets a place now: of the tenants that may have one more the one with the fewest, then the one whose last turn
    /// is the longest ago, then the one that waits longest. What has gone meanwhile gets none.
    fn next(&mut self, has_gone: impl Fn(&W) -> bool) -> Option<(Tenant, W)> {
        self.tenants.retain(|_, queue| {
            while queue.waiting.front().is_some_and(|(_, waiter)| has_gone(waiter)) {
                queue.waiting.pop_front();
            }
            queue.taken > 0 || !queue.waiting.is_empty()
        });
        let (free, kept) = (self.places.saturating_sub(self.taken), self.places / KEPT);
        let may = |taken: usize| if taken == 0 { free > 0 } else { taken + kept < free };
        let ranked = self.tenants.iter_mut().filter_map(|(tenant, queue)| {
            let (arrival, _) = queue.waiting.front().filter(|_| may(queue.taken))?;
            Some(((queue.taken, queue.last, *arrival), tenant, queue))
        });
        let (_, tenant, queue) = ranked.min_by_key(|(rank, ..)| *rank)?;
        let (_, waiter) = queue.waiting.pop_front()?;
        self.taken += 1;
        self.turns += 1;
        queue.taken += 1;
        queue.last = self.turns;
        Some((tenant.clone(), waiter))
    }

    fn release(&mut self, tenant: &Tenant) {
        if let Some(queue) = self.tenants.get_mut(tenant) {
            queue.taken -= 1;
            self.taken -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &'static str) -> Tenant {
        Some(Namespace::from_static(name))
    }

    fn next(queue: &mut TurnQueue<()>) -> Option<String> {
        let (tenant, ()) = queue.next(|()| false)?;
        tenant.map(|namespace| namespace.to_string())
    }

    /// How many more places a tenant gets that asks for all of them.
    fn greedy(queue: &mut TurnQueue<()>, name: &'static str) -> usize {
        (0..queue.places).for_each(|_| queue.wait(of(name), ()));
        let got = std::iter::from_fn(|| next(queue)).count();
        queue.tenants.values_mut().for_each(|queue| queue.waiting.clear());
        got
    }

    #[test]
    fn c_43_no_namespace_takes_all_places_and_the_last_are_for_those_that_have_none() {
        let mut queue = TurnQueue::new(64);
        assert_eq!(["a", "b", "c", "d", "e", "f"].map(|name| greedy(&mut queue, name)), [28, 14, 7, 4, 2, 1]);
        assert_eq!(["a", "f"].map(|name| greedy(&mut queue, name)), [0, 0], "the others are for those that have none");
        let further = ["g", "h", "i", "j", "k", "l", "m", "n", "o"].map(|name| greedy(&mut queue, name));
        assert_eq!(further, [1, 1, 1, 1, 1, 1, 1, 1, 0], "all are taken");
        (0..28).for_each(|_| queue.release(&of("a")));
        assert_eq!(["o", "b", "a"].map(|name| greedy(&mut queue, name)), [10, 0, 5]);
        assert_eq!([1, 2, 3, 8, 16].map(|places| greedy(&mut TurnQueue::new(places), "a")), [1, 1, 2, 4, 7]);
    }

    #[test]
    fn c_43_namespaces_that_wait_for_the_only_place_take_turns() {
        let mut queue = TurnQueue::new(1);
        for name in ["a", "a", "a", "b", "b", "c"] {
            queue.wait(of(name), ());
        }
        let order: Vec<_> = std::iter::from_fn(|| {
            let (tenant, ()) = queue.next(|()| false)?;
            queue.release(&tenant);
            tenant.map(|namespace| namespace.to_string())
        })
        .collect();
        assert_eq!(order.join(" "), "a b c a b a");
        assert!(next(&mut queue).is_none() && queue.tenants.is_empty(), "nothing is kept of those that have gone");
    }

    #[test]
    fn c_43_what_has_gone_gets_no_turn_and_costs_its_namespace_none() {
        let mut queue = TurnQueue::new(1);
        for (name, waiter) in [("a", 1), ("b", 2), ("a", 3), ("b", 4)] {
            queue.wait(of(name), waiter);
        }
        let has_gone = |waiter: &i32| *waiter < 3;
        assert_eq!(queue.next(has_gone), Some((of("a"), 3)));
        queue.release(&of("a"));
        assert_eq!(queue.next(has_gone), Some((of("b"), 4)));
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
