//! Memory that namespaces share.

use std::{
    collections::{BTreeMap, VecDeque},
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::{Notify, oneshot};

use crate::Tenant;

/// So many bytes that tenants share, as they share places: one gets more while it holds no more than is left (C-88).
pub struct SharedBytes {
    total: u64,
    /// Protects what is held, and who waits; held for one decision.
    taken: Mutex<TakenBytes<oneshot::Sender<HeldBytes>>>,
    /// Tells those that hold some when somebody begins to wait.
    wanted: Notify,
}

/// The decisions.
struct TakenBytes<W> {
    total: u64,
    sum: u64,
    /// Those that hold bytes, or wait for some.
    by_tenant: BTreeMap<Tenant, BytesOfTenant<W>>,
    /// Turns so far.
    turns: u64,
    /// Arrivals so far.
    arrivals: u64,
}

/// What one tenant holds, and what waits for it, the longest first.
struct BytesOfTenant<W> {
    held: u64,
    waiting: VecDeque<WaitingForBytes<W>>,
    /// Its last turn, counted from one; zero where it had none while it was here.
    last: u64,
}

struct WaitingForBytes<W> {
    arrival: u64,
    bytes: u64,
    waiter: W,
}

/// Bytes of one tenant; they are free again when this is dropped.
pub struct HeldBytes {
    of: Arc<SharedBytes>,
    tenant: Tenant,
    bytes: u64,
}

/// How many bytes more one tenant may have of a total of which all of them have `sum`, and that one `held`: what is left, and no more
/// than half of the total for one.
pub fn room_of_one(total: u64, sum: u64, held: u64) -> u64 {
    total.saturating_sub(sum).min(half(total).saturating_sub(held))
}

/// The most that one tenant has.
fn half(total: u64) -> u64 {
    total / 2
}

impl SharedBytes {
    /// So many bytes, all of them free.
    pub fn new(total: u64) -> Arc<Self> {
        Arc::new(Self { total, taken: Mutex::new(TakenBytes::new(total)), wanted: Notify::new() })
    }

    /// The most that one tenant gets while nobody else holds any.
    pub fn most_of_one(&self) -> u64 {
        half(self.total)
    }

    /// Bytes that are held.
    pub fn taken(&self) -> u64 {
        self.lock().sum
    }

    /// Nothing yet, for a tenant.
    pub fn none_of(self: &Arc<Self>, tenant: &Tenant) -> HeldBytes {
        HeldBytes { of: Arc::clone(self), tenant: tenant.clone(), bytes: 0 }
    }

    /// Bytes for a tenant, when it has its turn and there is room for them; more than one gets counts as what one gets. A caller that
    /// is dropped while it waits leaves the queue. One that holds some must not wait for more, as nobody overtakes the one whose turn
    /// it is.
    pub async fn acquire(self: &Arc<Self>, tenant: &Tenant, bytes: u64) -> HeldBytes {
        let bytes = bytes.min(self.most_of_one());
        loop {
            let (sender, receiver) = oneshot::channel();
            self.lock().wait(tenant.clone(), bytes, sender);
            self.pass_on();
            self.wanted.notify_waiters();
            if let Ok(held) = receiver.await {
                return held;
            }
        }
    }

    /// Ends once somebody else waits for what others hold.
    pub async fn wanted_by_others(&self, tenant: &Tenant) {
        loop {
            let mut wanted = pin!(self.wanted.notified());
            // Whoever begins to wait from here on is told of.
            wanted.as_mut().enable();
            if self.lock().is_wanted_by_others(tenant, oneshot::Sender::is_closed) {
                return;
            }
            wanted.await;
        }
    }

    /// Gives room away. What nobody receives any more comes back as it is dropped, without the lock.
    fn pass_on(self: &Arc<Self>) {
        loop {
            let next = self.lock().next(oneshot::Sender::is_closed);
            let Some((tenant, bytes, sender)) = next else { return };
            drop(sender.send(HeldBytes { of: Arc::clone(self), tenant, bytes }));
        }
    }

    fn lock(&self) -> MutexGuard<'_, TakenBytes<oneshot::Sender<HeldBytes>>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HeldBytes {
    /// How many there are.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Nothing yet, for the same tenant.
    pub fn none(&self) -> HeldBytes {
        self.of.none_of(&self.tenant)
    }

    /// Whose they are.
    pub fn tenant(&self) -> &Tenant {
        &self.tenant
    }

    /// What it is a part of.
    pub fn of(&self) -> &SharedBytes {
        &self.of
    }

    /// Holds so many bytes from now on, and answers whether there is room for them; without room what was held still is.
    #[must_use]
    pub fn set(&mut self, bytes: u64) -> bool {
        let mut taken = self.of.lock();
        if bytes > self.bytes && !taken.has_room_for(&self.tenant, bytes - self.bytes) {
            return false;
        }
        taken.put(&self.tenant, self.bytes, bytes);
        drop(taken);
        self.has_now(bytes);
        true
    }

    /// The same for what goes on to take more: where others wait, its tenant gets no more than its share of all.
    #[must_use]
    pub fn set_in_turn(&mut self, bytes: u64) -> bool {
        let is_wanted = bytes > self.bytes && {
            let taken = self.of.lock();
            !taken.is_of_its_share(&self.tenant, bytes - self.bytes)
                && taken.is_wanted_by_others(&self.tenant, oneshot::Sender::is_closed)
        };
        !is_wanted && self.set(bytes)
    }

    /// The same whether there is room or not: those that wait do so for longer.
    pub fn put(&mut self, bytes: u64) {
        self.of.lock().put(&self.tenant, self.bytes, bytes);
        self.has_now(bytes);
    }

    fn has_now(&mut self, bytes: u64) {
        let gives = bytes < self.bytes;
        self.bytes = bytes;
        if gives {
            self.of.pass_on();
        }
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        self.put(0);
    }
}

impl<W> TakenBytes<W> {
    fn new(total: u64) -> Self {
        Self { total, sum: 0, by_tenant: BTreeMap::new(), turns: 0, arrivals: 0 }
    }

    /// Whether a tenant that holds so many bytes may hold more.
    fn has_room(&self, held: u64, more: u64) -> bool {
        held.saturating_add(more) <= self.total.saturating_sub(self.sum.saturating_add(more))
    }

    /// Whether a tenant may hold more.
    fn has_room_for(&self, tenant: &Tenant, more: u64) -> bool {
        self.has_room(self.by_tenant.get(tenant).map_or(0, |one| one.held), more)
    }

    /// Whether a tenant that has so many more has no more than each of those that hold bytes or wait for some could have.
    fn is_of_its_share(&self, tenant: &Tenant, more: u64) -> bool {
        let (held, others) =
            self.by_tenant.iter().fold(
                (0, 0),
                |(held, others), (other, one)| {
                    if other == tenant { (one.held, others) } else { (held, others + 1) }
                },
            );
        held.saturating_add(more) <= self.total / (others + 1)
    }

    /// Whether another tenant waits for what others hold. What has gone meanwhile does not.
    fn is_wanted_by_others(&self, tenant: &Tenant, has_gone: impl Fn(&W) -> bool) -> bool {
        let most_of_one = half(self.total);
        self.by_tenant.iter().filter(|(other, _)| *other != tenant).any(|(_, one)| {
            let first = one.waiting.iter().find(|waiting| !has_gone(&waiting.waiter));
            first.is_some_and(|first| one.waits_for_others(first, most_of_one))
        })
    }

    /// A part of what a tenant holds becomes another one.
    fn put(&mut self, tenant: &Tenant, before: u64, bytes: u64) {
        self.sum = self.sum.saturating_sub(before).saturating_add(bytes);
        let one = self.by_tenant.entry(tenant.clone()).or_insert_with(BytesOfTenant::none);
        one.held = one.held.saturating_sub(before).saturating_add(bytes);
        if one.held == 0 && one.waiting.is_empty() {
            self.by_tenant.remove(tenant);
        }
    }

    fn wait(&mut self, tenant: Tenant, bytes: u64, waiter: W) {
        self.arrivals += 1;
        let waiting = WaitingForBytes { arrival: self.arrivals, bytes, waiter };
        self.by_tenant.entry(tenant).or_insert_with(BytesOfTenant::none).waiting.push_back(waiting);
    }

    /// What gets its bytes now: of the tenants that wait for others the one that holds the fewest, then the one whose last turn is
    /// the longest ago, then the one that waits longest. As long as there is no room for that one, nobody gets any. What has gone
    /// meanwhile gets none.
    fn next(&mut self, has_gone: impl Fn(&W) -> bool) -> Option<(Tenant, u64, W)> {
        self.by_tenant.retain(|_, one| {
            while one.waiting.front().is_some_and(|waiting| has_gone(&waiting.waiter)) {
                one.waiting.pop_front();
            }
            one.held > 0 || !one.waiting.is_empty()
        });
        let most_of_one = half(self.total);
        let ranked = self.by_tenant.iter().filter_map(|(tenant, one)| {
            let first = one.waiting.front()?;
            one.waits_for_others(first, most_of_one).then_some((
                (one.held, one.last, first.arrival),
                tenant,
                first.bytes,
            ))
        });
        let ((held, ..), tenant, bytes) = ranked.min_by_key(|(rank, ..)| *rank)?;
        if !self.has_room(held, bytes) {
            return None;
        }
        let tenant = tenant.clone();
        self.turns += 1;
        self.sum += bytes;
        let one = self.by_tenant.get_mut(&tenant)?;
        one.held += bytes;
        one.last = self.turns;
        let WaitingForBytes { bytes, waiter, .. } = one.waiting.pop_front()?;
        Some((tenant, bytes, waiter))
    }
}

impl<W> BytesOfTenant<W> {
    fn none() -> Self {
        Self { held: 0, waiting: VecDeque::new(), last: 0 }
    }

    /// Whether it has room for what waits once others give theirs back; else it waits for itself.
    fn waits_for_others(&self, waiting: &WaitingForBytes<W>, most_of_one: u64) -> bool {
        self.held.saturating_add(waiting.bytes) <= most_of_one
    }
}

#[cfg(test)]
mod tests {
    use orangery_core::name::Namespace;

    use super::*;

    fn of(name: &'static str) -> Tenant {
        Some(Namespace::from_static(name))
    }

    #[test]
    fn c_88_a_namespace_gets_more_bytes_while_it_holds_no_more_than_are_left() {
        let shared = SharedBytes::new(800);
        let (mut first, mut second, mut other) =
            (shared.none_of(&of("a")), shared.none_of(&of("a")), shared.none_of(&of("b")));
        assert!(first.set(300) && second.set(100), "half of it, in two parts");
        assert!(!second.set(101) && !first.set(301), "and no byte more");
        assert!(other.set(200) && !other.set(201), "another namespace has half of what is left");
        assert_eq!((shared.taken(), shared.most_of_one()), (600, 400));
        assert!(first.set(0) && second.set(300), "what is given back is free");
        assert!(!shared.none_of(&of("c")).set(u64::MAX));
        drop((first, second, other));
        let taken = shared.lock();
        assert_eq!((taken.sum, taken.by_tenant.len()), (0, 0), "nothing is kept of those that have gone");
    }

    #[test]
    fn c_84_c_274_a_namespace_has_what_is_left_and_half_of_all_at_most() {
        let room = |sum, held| room_of_one(100, sum, held);
        assert_eq!([room(0, 0), room(30, 30), room(50, 50), room(60, 60)], [50, 20, 0, 0], "alone");
        assert_eq!([room(50, 0), room(80, 30), room(100, 0), room(u64::MAX, 0)], [50, 20, 0, 0], "beside others");
        assert_eq!(SharedBytes::new(101).most_of_one(), room_of_one(101, 0, 0));
    }

    fn next(taken: &mut TakenBytes<u32>) -> Option<(String, u64, u32)> {
        let (tenant, bytes, waiter) = taken.next(|waiter| *waiter == 0)?;
        Some((tenant?.to_string(), bytes, waiter))
    }

    #[test]
    fn c_130_namespaces_that_wait_for_bytes_take_turns_and_nobody_overtakes() {
        let mut taken = TakenBytes::new(800);
        for (name, bytes, waiter) in
            [("a", 300, 1), ("a", 100, 2), ("a", 1, 3), ("b", 0, 0), ("b", 300, 4), ("c", 1, 5)]
        {
            taken.wait(of(name), bytes, waiter);
        }
        let got = |name: &str, bytes, waiter| Some((name.to_owned(), bytes, waiter));
        assert_eq!(next(&mut taken), got("a", 300, 1), "it waits longest");
        assert_eq!(
            next(&mut taken),
            None,
            "b is next, which holds none, and has no room beside a; c waits for its turn"
        );
        taken.put(&of("a"), 300, 100);
        assert_eq!(next(&mut taken), got("b", 300, 4));
        assert_eq!(next(&mut taken), got("c", 1, 5));
        assert_eq!(next(&mut taken), got("a", 100, 2));
        assert_eq!(next(&mut taken), got("a", 1, 3));
        assert_eq!((next(&mut taken), taken.sum), (None, 502));
        // One that waits for what it has itself is in nobody's way.
        taken.wait(of("b"), 200, 6);
        taken.wait(of("c"), 2, 7);
        assert_eq!(next(&mut taken), got("c", 2, 7));
        assert_eq!(next(&mut taken), None);
        taken.put(&of("a"), 201, 0);
        taken.put(&of("b"), 300, 0);
        assert_eq!(next(&mut taken), got("b", 200, 6));
        taken.put(&of("b"), 200, 0);
        taken.put(&of("c"), 3, 0);
        assert_eq!((taken.sum, taken.by_tenant.len()), (0, 0));
    }

    #[test]
    fn c_130_of_two_that_hold_as_much_the_one_whose_turn_is_longer_ago_is_next() {
        let mut taken = TakenBytes::new(800);
        for (name, waiter) in [("a", 1), ("b", 2), ("b", 3), ("a", 4)] {
            taken.wait(of(name), 10, waiter);
        }
        let order: Vec<u32> = std::iter::from_fn(|| next(&mut taken)).map(|(.., waiter)| waiter).collect();
        assert_eq!(order, [1, 2, 4, 3], "b waits longer, and had its turn after a");
    }

    #[tokio::test]
    async fn c_326_a_tenant_that_goes_on_gets_no_more_than_its_share_while_others_wait() {
        let shared = SharedBytes::new(900);
        let (mut a, mut b) = (shared.none_of(&of("a")), shared.none_of(&of("b")));
        assert!(a.set_in_turn(400) && b.set(50));
        let (other, own) = (of("c"), of("a"));
        let mut waits = Box::pin(shared.acquire(&other, 300));
        let mut wanted = Box::pin(shared.wanted_by_others(&own));
        assert!(futures::poll!(&mut wanted).is_pending(), "nobody waits");
        assert!(futures::poll!(&mut waits).is_pending());
        assert!(futures::poll!(&mut wanted).is_ready(), "it is told who begins to wait");
        assert!(futures::poll!(Box::pin(shared.wanted_by_others(&other))).is_pending(), "whoever waits wants its own");
        assert!(!a.set_in_turn(401) && a.set_in_turn(400) && a.set(401), "what holds more than its share gets no more");
        assert!(a.set_in_turn(400) && !b.set_in_turn(301), "a third of all");
        assert!(b.set_in_turn(250), "and one that has less does");
        drop(waits);
        assert!(futures::poll!(Box::pin(shared.wanted_by_others(&own))).is_pending(), "who waited has gone");
        assert!(!b.set_in_turn(251), "nothing is left for it");
        drop(a);
        assert!(b.set_in_turn(400));
        // One that waits for what it has itself wants nothing of others.
        let itself = of("b");
        let mut waits = Box::pin(shared.acquire(&itself, 100));
        assert!(futures::poll!(&mut waits).is_pending());
        assert!(futures::poll!(Box::pin(shared.wanted_by_others(&own))).is_pending());
    }

    #[tokio::test]
    async fn c_130_bytes_come_back_when_they_are_dropped_and_a_caller_that_stops_waiting_gets_none() {
        let shared = SharedBytes::new(100);
        let (a, b, c) = (of("a"), of("b"), of("c"));
        let first = shared.acquire(&a, u64::MAX).await;
        assert_eq!(first.bytes(), 50, "more than one gets counts as that");
        let mut given_up = Box::pin(shared.acquire(&b, 50));
        let mut waits = Box::pin(shared.acquire(&c, 40));
        assert!(futures::poll!(&mut given_up).is_pending() && futures::poll!(&mut waits).is_pending());
        drop(given_up);
        drop(first);
        let last = waits.await;
        assert_eq!((last.bytes(), shared.taken()), (40, 40));
        // One that was given its bytes and never looks at them.
        let mut unread = Box::pin(shared.acquire(&b, 50));
        assert!(futures::poll!(&mut unread).is_pending());
        drop(last);
        assert_eq!(shared.taken(), 50);
        drop(unread);
        assert_eq!(shared.taken(), 0);
    }
}
