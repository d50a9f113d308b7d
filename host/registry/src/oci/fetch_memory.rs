//! Bytes of blobs that are on their way into memory at once, shared by the registries that they come from (C-88).
//!
//! One registry gets more while it holds no more than is left, so that a slow one leaves room for others. What is slow gives its
//! room back where others wait.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::{
    sync::oneshot,
    time::{Instant, timeout},
};

use super::{refusal::ExchangeRefusal, settings::PullLimits};

const MIB: u64 = 1 << 20;

/// The bytes, and what waits for some.
pub(super) struct FetchMemory {
    limits: PullLimits,
    /// Protects what is held and the queue; held for one decision.
    queue: Mutex<MemoryQueue<oneshot::Sender<ReservedMemory>>>,
}

/// Bytes for one blob; they are free again when this is dropped.
pub(super) struct ReservedMemory {
    of: Arc<FetchMemory>,
    registry: String,
    bytes: u64,
    since: Instant,
}

impl FetchMemory {
    pub(super) fn new(limits: &PullLimits) -> Arc<Self> {
        let queue = Mutex::new(MemoryQueue::new(limits.at_once));
        Arc::new(Self { limits: limits.clone(), queue })
    }

    /// Room for a blob of a registry, named by its authority, when it is its turn; a refusal that passes where that takes too
    /// long. Whoever is dropped while it waits leaves the queue.
    pub(super) async fn reserve(
        self: &Arc<Self>,
        registry: &str,
        bytes: u64,
    ) -> Result<ReservedMemory, ExchangeRefusal> {
        let until = Instant::now() + self.limits.wait;
        loop {
            let (sender, receiver) = oneshot::channel();
            self.queue().wait(registry.to_owned(), bytes, sender);
            self.pass_on();
            match timeout(until.saturating_duration_since(Instant::now()), receiver).await {
                Ok(Ok(held)) => return Ok(held),
                Ok(Err(_)) => {}
                Err(_) => return Err(ExchangeRefusal::NoRoom(self.limits.wait)),
            }
        }
    }

    fn queue(&self) -> MutexGuard<'_, MemoryQueue<oneshot::Sender<ReservedMemory>>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives free room away. What nobody receives any more comes back as it is dropped, without the lock.
    fn pass_on(self: &Arc<Self>) {
        loop {
            let next = self.queue().next(oneshot::Sender::is_closed);
            let Some((registry, bytes, sender)) = next else { return };
            drop(sender.send(ReservedMemory { of: Arc::clone(self), registry, bytes, since: Instant::now() }));
        }
    }
}

impl ReservedMemory {
    /// Whether what has come so far came fast enough, or nobody waits for room.
    pub(super) fn keeps_up(&self, got: u64) -> Result<(), ExchangeRefusal> {
        let PullLimits { grace, of_a_mib, .. } = self.of.limits;
        let mib = u32::try_from(got / MIB).unwrap_or(u32::MAX);
        let allowed = grace.saturating_add(of_a_mib.saturating_mul(mib));
        if self.since.elapsed() <= allowed || !self.of.queue().is_wanted(oneshot::Sender::is_closed) {
            return Ok(());
        }
        Err(ExchangeRefusal::Dripping { got, after: self.since.elapsed() })
    }
}

impl Drop for ReservedMemory {
    fn drop(&mut self) {
        self.of.queue().release(&self.registry, self.bytes);
        self.of.pass_on();
    }
}

/// The decisions.
struct MemoryQueue<W> {
    total: u64,
    held: u64,
    by_registry: BTreeMap<String, u64>,
    /// The longest first.
    waiting: VecDeque<(String, u64, W)>,
}

impl<W> MemoryQueue<W> {
    fn new(total: u64) -> Self {
        Self { total, held: 0, by_registry: BTreeMap::new(), waiting: VecDeque::new() }
    }

    fn wait(&mut self, registry: String, bytes: u64, waiter: W) {
        self.waiting.push_back((registry, bytes, waiter));
    }

    fn of(&self, registry: &str) -> u64 {
        self.by_registry.get(registry).copied().unwrap_or_default()
    }

    /// What is larger than half comes alone.
    fn fits(&self, registry: &str, bytes: u64) -> bool {
        let left = self.total.saturating_sub(self.held);
        self.held == 0 || self.of(registry).saturating_add(bytes) <= left.saturating_sub(bytes)
    }

    /// What gets room now: of the registries whose first blob has room the one that holds least, then the one that waits
    /// longest. What has gone meanwhile gets none.
    fn next(&mut self, has_gone: impl Fn(&W) -> bool) -> Option<(String, u64, W)> {
        self.waiting.retain(|(.., waiter)| !has_gone(waiter));
        let mut first = BTreeMap::new();
        for (index, (registry, bytes, _)) in self.waiting.iter().enumerate() {
            first.entry(registry.as_str()).or_insert((index, *bytes));
        }
        let fitting = first.into_iter().filter(|(registry, (_, bytes))| self.fits(registry, *bytes));
        let (_, (index, _)) = fitting.min_by_key(|(registry, (index, _))| (self.of(registry), *index))?;
        let (registry, bytes, waiter) = self.waiting.remove(index)?;
        self.held = self.held.saturating_add(bytes);
        *self.by_registry.entry(registry.clone()).or_default() += bytes;
        Some((registry, bytes, waiter))
    }

    fn is_wanted(&self, has_gone: impl Fn(&W) -> bool) -> bool {
        self.waiting.iter().any(|(.., waiter)| !has_gone(waiter))
    }

    fn release(&mut self, registry: &str, bytes: u64) {
        self.held = self.held.saturating_sub(bytes);
        let left = self.of(registry).saturating_sub(bytes);
        if left == 0 {
            self.by_registry.remove(registry);
        } else {
            self.by_registry.insert(registry.to_owned(), left);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn next(queue: &mut MemoryQueue<()>) -> Option<(String, u64)> {
        queue.next(|()| false).map(|(registry, bytes, ())| (registry, bytes))
    }

    fn given(queue: &mut MemoryQueue<()>) -> String {
        let all: Vec<String> =
            std::iter::from_fn(|| next(queue)).map(|(registry, bytes)| format!("{registry}{bytes}")).collect();
        all.join(" ")
    }

    #[test]
    fn c_88_a_registry_gets_more_room_while_it_holds_no_more_than_is_left() {
        let mut queue = MemoryQueue::new(64);
        (0..10).for_each(|_| queue.wait("a".to_owned(), 10, ()));
        assert_eq!(given(&mut queue), "a10 a10 a10");
        queue.wait("b".to_owned(), 10, ());
        queue.wait("b".to_owned(), 10, ());
        queue.wait("c".to_owned(), 5, ());
        assert_eq!(given(&mut queue), "b10 c5", "the next ones have less, and who holds least is first");
        queue.release("a", 10);
        assert_eq!(given(&mut queue), "", "who would hold more than is left waits");
        queue.release("a", 10);
        assert_eq!(given(&mut queue), "a10", "of those that hold as much the one that waits longest");
        queue.waiting.clear();
        for (registry, bytes) in [("a", 10), ("a", 10), ("b", 10), ("c", 5)] {
            queue.release(registry, bytes);
        }
        assert_eq!((queue.held, queue.by_registry.len()), (0, 0), "nothing is kept of those that have gone");
    }

    #[test]
    fn c_88_what_is_larger_than_half_of_the_room_comes_alone() {
        let mut queue = MemoryQueue::new(64);
        queue.wait("a".to_owned(), 64, ());
        queue.wait("b".to_owned(), 1, ());
        assert_eq!(given(&mut queue), "a64");
        queue.release("a", 64);
        queue.wait("a".to_owned(), 64, ());
        assert_eq!(given(&mut queue), "b1");
        queue.release("b", 1);
        assert_eq!(given(&mut queue), "a64");
    }

    fn memory(at_once: u64) -> Arc<FetchMemory> {
        FetchMemory::new(&PullLimits { at_once, ..PullLimits::default() })
    }

    #[tokio::test(start_paused = true)]
    async fn limits_registry_nobody_waits_for_room_for_ever() {
        let memory = memory(10);
        let held = memory.reserve("a", 10).await.ok().unwrap();
        let refused = memory.reserve("b", 1).await.err().unwrap().fault("it").problem().message.clone();
        assert_eq!(
            refused,
            "cannot get it: there was no room for it within 120 s, for others are on their way; it is asked for again"
        );
        assert!(!memory.queue().is_wanted(oneshot::Sender::is_closed));
        drop(held);
        assert!(memory.reserve("b", 1).await.is_ok());
        assert_eq!(memory.queue().held, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn limits_registry_what_comes_slowly_gives_its_room_back_where_others_wait() {
        let memory = memory(10 * MIB);
        let held = memory.reserve("a", 10 * MIB).await.ok().unwrap();
        tokio::time::advance(Duration::from_secs(600)).await;
        assert!(held.keeps_up(0).is_ok(), "nobody waits");
        let mut waits = Box::pin(memory.reserve("b", 1));
        assert!(futures::poll!(&mut waits).is_pending());
        let told = held.keeps_up(0).unwrap_err().to_string();
        assert_eq!(told, "0 bytes of it came within 600 s while others waited for room; it is asked for again");
        drop(held);
        assert!(waits.await.is_ok());
        // Fast enough are thirty seconds, and one more for each MiB.
        let held = memory.reserve("a", 10 * MIB).await.ok().unwrap();
        let mut waits = Box::pin(memory.reserve("b", 1));
        assert!(futures::poll!(&mut waits).is_pending());
        tokio::time::advance(Duration::from_millis(33_500)).await;
        assert!(held.keeps_up(4 * MIB).is_ok() && held.keeps_up(4 * MIB - 1).is_err());
        drop(waits);
        assert!(held.keeps_up(0).is_ok(), "who waited has gone");
    }
}
