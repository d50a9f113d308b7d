//! Bytes of content that is on its way into memory at once, or waits there until it is read, shared by the namespaces that it is for
//! (C-88, C-133).
//!
//! One namespace gets more while it holds no more than is left, so that what it asks for leaves room for others, however many
//! registries it names and whomever it asks. Of its own registries the one that holds least is next. What is slow gives its room
//! back where anybody waits, also one that has not begun to answer.

use std::{
    collections::{BTreeMap, VecDeque},
    future::pending,
    mem,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use orangery_turns::Tenant;
use tokio::{
    sync::{Notify, oneshot},
    time::{Instant, sleep_until, timeout},
};

use super::{refusal::ExchangeRefusal, settings::PullLimits};

const MIB: u64 = 1 << 20;

/// What is held at first for a file whose server does not say how long it is; twice as much whenever more has come.
const FIRST_OF_UNKNOWN: u64 = MIB;

/// The bytes, and what waits for some.
pub(super) struct FetchMemory {
    limits: PullLimits,
    /// Protects what is held and the queue; held for one decision.
    queue: Mutex<MemoryQueue<oneshot::Sender<ReservedMemory>>>,
    /// Tells those that hold some when somebody begins to wait.
    wanted: Notify,
}

/// For whom content is fetched, and from which server, named by its authority.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FetchShare {
    pub(super) tenant: Tenant,
    pub(super) server: String,
}

/// Bytes for one piece of content; they are free again when this is dropped.
pub(crate) struct ReservedMemory {
    of: Arc<FetchMemory>,
    share: FetchShare,
    bytes: u64,
    /// How many more it may take while they come.
    most: u64,
    since: Instant,
}

impl FetchMemory {
    pub(super) fn new(limits: &PullLimits) -> Arc<Self> {
        let queue = Mutex::new(MemoryQueue::new(limits.at_once));
        Arc::new(Self { limits: limits.clone(), queue, wanted: Notify::new() })
    }

    /// Room for so many bytes, when it is its turn; a refusal that passes where that takes too long. Whoever is dropped while
    /// it waits leaves the queue.
    pub(super) async fn reserve(
        self: &Arc<Self>,
        share: &FetchShare,
        bytes: u64,
    ) -> Result<ReservedMemory, ExchangeRefusal> {
        self.reserve_beside(share, 0, bytes, self.limits.wait).await
    }

    /// Room for a file, of which it is known how many bytes it has, or only the most that it may have.
    pub(super) async fn reserve_file(
        self: &Arc<Self>,
        share: &FetchShare,
        expected: Option<u64>,
        most: u64,
    ) -> Result<ReservedMemory, ExchangeRefusal> {
        let mut held = self.reserve(share, expected.unwrap_or(FIRST_OF_UNKNOWN).min(most)).await?;
        held.most = most;
        Ok(held)
    }

    /// The same for content that holds some already.
    async fn reserve_beside(
        self: &Arc<Self>,
        share: &FetchShare,
        has: u64,
        bytes: u64,
        longest: Duration,
    ) -> Result<ReservedMemory, ExchangeRefusal> {
        let until = Instant::now() + longest;
        loop {
            let (waiter, receiver) = oneshot::channel();
            self.queue().waiting.push_back(WaitingContent { share: share.clone(), has, bytes, waiter });
            self.pass_on();
            self.wanted.notify_waiters();
            match timeout(until.saturating_duration_since(Instant::now()), receiver).await {
                Ok(Ok(held)) => return Ok(held),
                Ok(Err(_)) => {}
                Err(_) => return Err(ExchangeRefusal::NoRoom(longest)),
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
            let Some(WaitingContent { share, bytes, waiter, .. }) = next else { return };
            let (of, since) = (Arc::clone(self), Instant::now());
            drop(waiter.send(ReservedMemory { of, share, bytes, most: bytes, since }));
        }
    }
}

impl ReservedMemory {
    /// Ends with a refusal once what has come so far came too slowly while somebody waits for room.
    pub(super) async fn overdue(&self, got: u64) -> ExchangeRefusal {
        let PullLimits { grace, of_a_mib, .. } = self.of.limits;
        let mib = u32::try_from(got / MIB).unwrap_or(u32::MAX);
        let until = self.since + grace.saturating_add(of_a_mib.saturating_mul(mib));
        if Instant::now() < until {
            sleep_until(until).await;
        }
        loop {
            let mut wanted = pin!(self.of.wanted.notified());
            // Whoever begins to wait from here on is told of.
            wanted.as_mut().enable();
            if self.of.queue().is_wanted(oneshot::Sender::is_closed) {
                return ExchangeRefusal::Dripping { got, after: self.since.elapsed() };
            }
            wanted.await;
        }
    }

    /// Holds at least so many bytes from now on, where it may take as many. Nobody waits long for it: others may wait for what it
    /// has.
    pub(super) async fn grow_to(&mut self, bytes: u64) -> Result<(), ExchangeRefusal> {
        if bytes <= self.bytes || self.bytes >= self.most {
            return Ok(());
        }
        let more = self.bytes.saturating_mul(2).max(bytes).min(self.most) - self.bytes;
        let more = self.of.reserve_beside(&self.share, self.bytes, more, self.of.limits.grace).await?;
        self.bytes += more.into_bytes();
        Ok(())
    }

    /// How many bytes it holds.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Hands the bytes on: they are not free when this is dropped.
    fn into_bytes(mut self) -> u64 {
        mem::take(&mut self.bytes)
    }
}

impl Drop for ReservedMemory {
    fn drop(&mut self) {
        self.of.queue().release(&self.share, self.bytes);
        self.of.pass_on();
    }
}

/// Whether memory that is held for something is overdue ([`ReservedMemory::overdue`]); never where none is.
pub(super) async fn overdue(reserved: Option<&ReservedMemory>, got: u64) -> ExchangeRefusal {
    match reserved {
        Some(reserved) => reserved.overdue(got).await,
        None => pending().await,
    }
}

/// The first content of a namespace that takes no more than such a part of the room waits for no other one.
const SMALL_SHARE: u64 = 64;

/// The decisions.
struct MemoryQueue<W> {
    total: u64,
    held: u64,
    by_share: BTreeMap<FetchShare, u64>,
    by_tenant: BTreeMap<Tenant, u64>,
    /// The longest first.
    waiting: VecDeque<WaitingContent<W>>,
}

/// What waits for more bytes beside those that it has.
struct WaitingContent<W> {
    share: FetchShare,
    has: u64,
    bytes: u64,
    waiter: W,
}

impl<W> MemoryQueue<W> {
    fn new(total: u64) -> Self {
        Self { total, held: 0, by_share: BTreeMap::new(), by_tenant: BTreeMap::new(), waiting: VecDeque::new() }
    }

    fn of(&self, share: &FetchShare) -> u64 {
        self.by_share.get(share).copied().unwrap_or_default()
    }

    fn of_tenant(&self, tenant: &Tenant) -> u64 {
        self.by_tenant.get(tenant).copied().unwrap_or_default()
    }

    /// What is larger than half comes alone.
    fn fits(&self, content: &WaitingContent<W>) -> bool {
        let (left, bytes) = (self.total.saturating_sub(self.held), content.bytes);
        let own = self.of_tenant(&content.share.tenant);
        self.held == content.has || own.saturating_add(bytes) <= left.saturating_sub(bytes)
    }

    /// Whether it waits for what others hold, and not for what its own namespace does.
    fn waits_for_others(&self, content: &WaitingContent<W>) -> bool {
        let own = self.of_tenant(&content.share.tenant);
        own == 0 || own.saturating_add(content.bytes) <= self.total / 2
    }

    /// What gets room now: of all whose first content has room that of the namespace that holds least, of its servers the one
    /// that holds least, then what waits longest. What has gone meanwhile gets none. Content that begins overtakes nothing that is
    /// before it in that order and waits for what others hold: what is small would take all that comes free.
    fn next(&mut self, has_gone: impl Fn(&W) -> bool) -> Option<WaitingContent<W>> {
        self.waiting.retain(|content| !has_gone(&content.waiter));
        let mut first = BTreeMap::new();
        for (index, content) in self.waiting.iter().enumerate() {
            let earliest = first.entry(&content.share).or_insert((index, content));
            // What is on its way already frees what others wait for.
            if earliest.1.has == 0 && content.has > 0 {
                *earliest = (index, content);
            }
        }
        let held = |content: &WaitingContent<W>| (self.of_tenant(&content.share.tenant), self.of(&content.share));
        let rank = |(index, content): &(usize, &WaitingContent<W>)| (held(content), *index);
        let mut ranked: Vec<_> = first.into_values().collect();
        ranked.sort_by_key(rank);
        let overtaken = ranked.iter().position(|(_, content)| !self.fits(content) && self.waits_for_others(content));
        let may_go = |at: usize, content: &WaitingContent<W>| {
            let is_small = content.bytes <= self.total / SMALL_SHARE && self.of_tenant(&content.share.tenant) == 0;
            content.has > 0 || is_small || overtaken.is_none_or(|first| at < first)
        };
        let mut fitting =
            ranked.into_iter().enumerate().filter(|(at, (_, content))| self.fits(content) && may_go(*at, content));
        let (_, (index, _)) = fitting.next()?;
        let content = self.waiting.remove(index)?;
        self.held = self.held.saturating_add(content.bytes);
        *self.by_share.entry(content.share.clone()).or_default() += content.bytes;
        *self.by_tenant.entry(content.share.tenant.clone()).or_default() += content.bytes;
        Some(content)
    }

    fn is_wanted(&self, has_gone: impl Fn(&W) -> bool) -> bool {
        self.waiting.iter().any(|content| !has_gone(&content.waiter))
    }

    fn release(&mut self, share: &FetchShare, bytes: u64) {
        self.held = self.held.saturating_sub(bytes);
        take_off(&mut self.by_share, share, bytes);
        take_off(&mut self.by_tenant, &share.tenant, bytes);
    }
}

/// Nothing is kept of who holds nothing any more.
fn take_off<K: Ord>(held: &mut BTreeMap<K, u64>, by: &K, bytes: u64) {
    let Some(of) = held.get_mut(by) else { return };
    *of = of.saturating_sub(bytes);
    if *of == 0 {
        held.remove(by);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use orangery_core::name::Namespace;

    use super::*;

    /// `a/r` is the server `r` for the namespace `a`.
    fn share(text: &'static str) -> FetchShare {
        let (namespace, server) = text.split_once('/').unwrap();
        FetchShare { tenant: Some(Namespace::from_static(namespace)), server: server.to_owned() }
    }

    fn wait(queue: &mut MemoryQueue<()>, of: &'static str, bytes: u64) {
        queue.waiting.push_back(WaitingContent { share: share(of), has: 0, bytes, waiter: () });
    }

    fn given(queue: &mut MemoryQueue<()>) -> String {
        let message = |WaitingContent { share: FetchShare { tenant, server }, bytes, .. }: WaitingContent<()>| {
            format!("{}/{server}={bytes}", tenant.unwrap())
        };
        let all: Vec<String> = std::iter::from_fn(|| queue.next(|()| false)).map(message).collect();
        all.join(" ")
    }

    #[test]
    fn c_133_a_namespace_gets_more_room_while_it_holds_no_more_than_is_left_however_many_servers_it_names() {
        let mut queue = MemoryQueue::new(64);
        for of in ["a/1", "a/2", "a/3", "a/4", "a/5", "a/6", "a/good"] {
            wait(&mut queue, of, 10);
        }
        assert_eq!(given(&mut queue), "a/1=10 a/2=10 a/3=10");
        wait(&mut queue, "b/good", 10);
        wait(&mut queue, "b/good", 10);
        wait(&mut queue, "c/good", 5);
        assert_eq!(given(&mut queue), "b/good=10 c/good=5", "the next ones have less, and who holds least is first");
        queue.release(&share("a/1"), 10);
        assert_eq!(given(&mut queue), "", "who would hold more than is left waits");
        queue.release(&share("a/2"), 10);
        assert_eq!(given(&mut queue), "a/4=10", "of those that hold as much the one that waits longest");
        queue.waiting.clear();
        for (of, bytes) in [("a/3", 10), ("a/4", 10), ("b/good", 10), ("c/good", 5)] {
            queue.release(&share(of), bytes);
        }
        assert_eq!(
            (queue.held, queue.by_share.len(), queue.by_tenant.len()),
            (0, 0, 0),
            "nothing is kept of those that have gone"
        );
    }

    #[test]
    fn c_133_of_the_servers_of_a_namespace_the_one_that_holds_least_is_next() {
        let mut queue = MemoryQueue::new(64);
        for of in ["a/slow", "a/slow", "a/slow", "a/slow", "a/good"] {
            wait(&mut queue, of, 10);
        }
        assert_eq!(given(&mut queue), "a/slow=10 a/good=10 a/slow=10");
        queue.release(&share("a/good"), 10);
        wait(&mut queue, "a/good", 10);
        assert_eq!(given(&mut queue), "a/good=10", "what came later and holds nothing");
    }

    #[test]
    fn c_133_the_namespace_that_holds_least_is_next_whichever_server_it_names() {
        let mut queue = MemoryQueue::new(64);
        wait(&mut queue, "a/1", 10);
        assert_eq!(given(&mut queue), "a/1=10");
        for of in ["a/2", "a/3", "b/1", "b/1"] {
            wait(&mut queue, of, 5);
        }
        assert_eq!(given(&mut queue), "b/1=5 b/1=5 a/2=5 a/3=5", "a names servers of which it holds nothing");
    }

    #[test]
    fn c_133_what_is_small_takes_no_room_before_what_waits_for_others() {
        let mut queue = MemoryQueue::new(64);
        (0..40).for_each(|_| wait(&mut queue, "a/slow", 1));
        assert_eq!(given(&mut queue).split(' ').count(), 32);
        wait(&mut queue, "b/r", 20);
        for held in (25..=32).rev() {
            assert_eq!(given(&mut queue), "", "{held} are held");
            queue.release(&share("a/slow"), 1);
        }
        assert_eq!(given(&mut queue), "b/r=20");
        // What is on its way already comes to its end.
        wait(&mut queue, "c/r", 20);
        assert_eq!(given(&mut queue), "");
        queue.waiting.push_back(WaitingContent { share: share("a/slow"), has: 1, bytes: 1, waiter: () });
        queue.release(&share("a/slow"), 16);
        assert_eq!(given(&mut queue), "a/slow=1", "others of its server wait before it");
        wait(&mut queue, "d/r", 1);
        assert_eq!(given(&mut queue), "d/r=1", "what is small and the first of its namespace");
    }

    #[test]
    fn c_88_what_is_larger_than_half_of_the_room_comes_alone() {
        let mut queue = MemoryQueue::new(64);
        wait(&mut queue, "a/r", 64);
        wait(&mut queue, "b/r", 1);
        assert_eq!(given(&mut queue), "a/r=64");
        queue.release(&share("a/r"), 64);
        wait(&mut queue, "a/r", 64);
        assert_eq!(given(&mut queue), "b/r=1");
        queue.release(&share("b/r"), 1);
        assert_eq!(given(&mut queue), "a/r=64");
    }

    fn memory(at_once: u64) -> Arc<FetchMemory> {
        FetchMemory::new(&PullLimits { at_once, ..PullLimits::default() })
    }

    #[tokio::test(start_paused = true)]
    async fn limits_registry_nobody_waits_for_room_for_ever() {
        let memory = memory(10);
        let held = memory.reserve(&share("a/r"), 10).await.ok().unwrap();
        let refused = memory.reserve(&share("b/r"), 1).await.err().unwrap().fault("it").problem().message.clone();
        assert_eq!(
            refused,
            "cannot get it: there was no room for it within 120 s, for others are on their way; it is asked for again"
        );
        assert!(!memory.queue().is_wanted(oneshot::Sender::is_closed));
        drop(held);
        assert!(memory.reserve(&share("b/r"), 1).await.is_ok());
        assert_eq!(memory.queue().held, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn limits_registry_what_comes_slowly_gives_its_room_back_where_others_wait() {
        let memory = memory(10 * MIB);
        let held = memory.reserve(&share("a/r"), 10 * MIB).await.ok().unwrap();
        tokio::time::advance(Duration::from_secs(600)).await;
        let mut overdue = Box::pin(held.overdue(0));
        assert!(futures::poll!(&mut overdue).is_pending(), "nobody waits");
        let of = share("b/r");
        let mut waits = Box::pin(memory.reserve(&of, 1));
        assert!(futures::poll!(&mut waits).is_pending());
        let told = overdue.await.to_string();
        assert_eq!(told, "0 bytes of it came within 600 s while others waited for room; it is asked for again");
        drop(held);
        assert!(waits.await.is_ok());
        // Fast enough are thirty seconds, and one more for each MiB.
        let held = memory.reserve(&share("a/r"), 10 * MIB).await.ok().unwrap();
        let of = share("b/r");
        let mut waits = Box::pin(memory.reserve(&of, 1));
        assert!(futures::poll!(&mut waits).is_pending());
        tokio::time::advance(Duration::from_millis(33_500)).await;
        assert!(futures::poll!(Box::pin(held.overdue(4 * MIB))).is_pending());
        assert!(futures::poll!(Box::pin(held.overdue(4 * MIB - 1))).is_ready());
        drop(waits);
        assert!(futures::poll!(Box::pin(held.overdue(0))).is_pending(), "who waited has gone");
    }

    #[tokio::test(start_paused = true)]
    async fn c_133_what_has_no_length_holds_twice_as_much_whenever_more_has_come() {
        let memory = memory(64 * MIB);
        let mut held = memory.reserve_file(&share("a/r"), None, 40 * MIB).await.ok().unwrap();
        let mut seen = Vec::new();
        for bytes in [1, MIB, MIB + 1, 4 * MIB, 5 * MIB, 33 * MIB] {
            held.grow_to(bytes).await.unwrap();
            seen.push((held.bytes / MIB, memory.queue().held / MIB));
        }
        assert_eq!(seen, [(1, 1), (1, 1), (2, 2), (4, 4), (8, 8), (33, 33)]);
        drop(held);
        {
            let queue = memory.queue();
            assert_eq!((queue.held, queue.by_share.len()), (0, 0));
        }
        // Two that are in each other's way do not wait for each other for ever.
        let mut first = memory.reserve_file(&share("a/r"), Some(20 * MIB), 60 * MIB).await.ok().unwrap();
        let mut second = memory.reserve_file(&share("b/r"), Some(20 * MIB), 60 * MIB).await.ok().unwrap();
        let (first, second) = tokio::join!(async move { first.grow_to(30 * MIB).await.is_ok() }, async move {
            second.grow_to(30 * MIB).await.is_ok()
        },);
        assert_eq!((first, second), (true, false), "the one that has waited longest goes on");
        assert_eq!(memory.queue().held, 0);
    }
}
