//! The memory of component versions (C-320): a short descriptor can be a large value, a component version may need thousands of
//! others, and a small archive is unpacked into a large blueprint.
//!
//! How much one needs is known when all of it is there. One that has no room is dropped with all that it holds, and opened again
//! when it has its turn for as much: whoever waits holds nothing, and who waits longest is overtaken by none. What it holds
//! while servers are slow is asked back where others wait (C-326).

mod server_waits;

use std::{
    collections::BTreeSet,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use orangery_core::{
    digest::content::{Algorithm, ContentDigest},
    error::{Code, Fault},
};
use orangery_turns::{HeldBytes, SharedBytes, Tenant, Turns, lending};
use tokio::time::timeout;

use self::server_waits::{CallIdentity, ServerWaits};
use crate::{memory::Memory, oci::PullLimits};

/// Descriptors, indexes of charts and blueprints that are read at once: each may take what a text of YAML or an archive may.
const MOST_READ_AT_ONCE: usize = 2;
/// Component versions without room of which it is known how much they need.
const MOST_LACKING: usize = 1024;
const MIB: u64 = 1 << 20;

/// What all component versions that are open take.
pub(crate) struct VersionMemory {
    shared: Arc<SharedBytes>,
    /// Of those that read what a server has sent.
    pub(crate) turns: Arc<Turns>,
    /// How long one waits for its turn.
    wait: Duration,
    /// How long servers may be slow while others wait, and how much longer for each MiB.
    grace: (Duration, Duration),
    /// What those need that had no room.
    lacking: Arc<Memory<LackingKey, u64>>,
    /// What calls have open.
    open: Mutex<Vec<Weak<HeldVersionMemory>>>,
}

/// For whom what is opened.
type LackingKey = (Tenant, ContentDigest);

/// What one open component version takes, with those that it refers to.
pub(crate) struct HeldVersionMemory {
    /// Held for one addition.
    held: Mutex<HeldContents>,
    /// The call that has it open.
    call: Option<CallIdentity>,
    waits: ServerWaits,
}

struct HeldContents {
    bytes: HeldBytes,
    /// How many of them are used.
    used: u64,
    /// What is known to be needed, and is held from the begin on.
    needed: u64,
    /// What was added by its digest.
    counted: BTreeSet<ContentDigest>,
    /// Where it is told what is needed where there is no room.
    lacking: Option<(Arc<Memory<LackingKey, u64>>, LackingKey)>,
    /// Whether there was none.
    lacks_room: bool,
}

/// Bytes that count for a component version until this is dropped.
pub(crate) struct HeldForAWhile<'a> {
    of: &'a HeldVersionMemory,
    bytes: u64,
}

impl VersionMemory {
    /// So many bytes, of which calls may hold some for as long as these limits say.
    pub(crate) fn new(bytes: u64, limits: &PullLimits) -> Self {
        Self {
            shared: SharedBytes::new(bytes),
            turns: Turns::new(MOST_READ_AT_ONCE),
            wait: limits.wait,
            grace: (limits.grace, limits.of_a_mib),
            lacking: Arc::new(Memory::new(MOST_LACKING)),
            open: Mutex::default(),
        }
    }

    /// Nothing yet, for what a namespace opens beside what it has open.
    pub(crate) fn none_of(&self, tenant: &Tenant) -> Arc<HeldVersionMemory> {
        self.opened(self.shared.none_of(tenant), None)
    }

    /// The memory of a component version that a namespace opens under this name, when it has its turn for what is known to be
    /// needed. The slot of the call is lent meanwhile.
    ///
    /// # Errors
    /// Others have it for too long; that passes.
    pub(crate) async fn of_version(&self, tenant: &Tenant, name: &str) -> Result<Arc<HeldVersionMemory>, Fault> {
        let key = (tenant.clone(), ContentDigest::of(Algorithm::Sha256, name.as_bytes()));
        let needed = self.lacking.get(&key).unwrap_or_default();
        let bytes = lending(timeout(self.wait, self.shared.acquire(tenant, needed))).await.map_err(|_| {
            let message = format!(
                "there was no room in memory for the component version within {} s, as others have what there is; it is \
                 tried again",
                self.wait.as_secs()
            );
            Fault::later(Code::LimitExceeded, message)
        })?;
        self.lacking.forget(&key);
        Ok(self.opened(bytes, Some((Arc::clone(&self.lacking), key))))
    }

    fn opened(
        &self,
        bytes: HeldBytes,
        lacking: Option<(Arc<Memory<LackingKey, u64>>, LackingKey)>,
    ) -> Arc<HeldVersionMemory> {
        let (used, needed) = (0, bytes.bytes());
        let held = HeldContents { bytes, used, needed, counted: BTreeSet::new(), lacking, lacks_room: false };
        let call = CallIdentity::of_this_task();
        let of_a_call = call.is_some();
        let held = Arc::new(HeldVersionMemory { held: Mutex::new(held), call, waits: ServerWaits::default() });
        let mut open = self.open();
        open.retain(|open| open.strong_count() > 0);
        if of_a_call {
            open.push(Arc::downgrade(&held));
        }
        held
    }

    /// What comes of a server. Where the call that this task carries out holds memory of component versions meanwhile, it waits
    /// no longer than it may once others wait for such memory.
    pub(crate) async fn while_it_comes<T, E: From<Fault>>(
        &self,
        comes: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let held = self.of_this_call();
        let _waits: Vec<_> = held.iter().map(|held| held.waits.begin()).collect();
        tokio::select! {
            biased;
            came = comes => came,
            fault = self.asked_back(&held) => Err(fault.into()),
        }
    }

    /// What the call that this task carries out has open.
    fn of_this_call(&self) -> Vec<Arc<HeldVersionMemory>> {
        let Some(call) = CallIdentity::of_this_task() else { return Vec::new() };
        let open = self.open();
        open.iter().filter_map(Weak::upgrade).filter(|held| held.call.as_ref() == Some(&call)).collect()
    }

    /// Ends with a fault once one of those that are held has waited too long for servers while others wait for memory.
    async fn asked_back(&self, held: &[Arc<HeldVersionMemory>]) -> Fault {
        let overdue = held.iter().map(|held| {
            Box::pin(async move {
                let (grace, of_a_mib) = self.grace;
                let (tenant, mib) = held.tenant_and_mib();
                let longest = grace.saturating_add(of_a_mib.saturating_mul(mib));
                held.waits.longer_than(longest).await;
                self.shared.wanted_by_others(&tenant).await;
                longest
            })
        });
        let overdue: Vec<_> = overdue.collect();
        if overdue.is_empty() {
            return std::future::pending().await;
        }
        let (longest, ..) = futures::future::select_all(overdue).await;
        let message = format!(
            "servers were waited for for more than {} s in all while others waited for the memory that the component version \
             holds; it is tried again",
            longest.as_secs()
        );
        Fault::later(Code::Timeout, message)
    }

    fn open(&self) -> MutexGuard<'_, Vec<Weak<HeldVersionMemory>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for HeldVersionMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.lock().bytes.bytes())
    }
}

impl HeldVersionMemory {
    /// Holds so many bytes more.
    ///
    /// # Errors
    /// There is no room for them: for as long as others have it, or at all.
    pub(crate) fn add(&self, bytes: u64) -> Result<(), Fault> {
        self.lock().add(bytes)
    }

    /// The same for content of this digest, which counts once.
    pub(crate) fn add_once(&self, digest: ContentDigest, bytes: usize) -> Result<(), Fault> {
        let mut held = self.lock();
        if !held.counted.contains(&digest) {
            held.add(bytes as u64)?;
            held.counted.insert(digest);
        }
        Ok(())
    }

    /// The same until the answer is dropped.
    pub(crate) fn add_for_a_while(&self, bytes: u64) -> Result<HeldForAWhile<'_>, Fault> {
        self.add(bytes)?;
        Ok(HeldForAWhile { of: self, bytes })
    }

    /// How many bytes count.
    pub(crate) fn used(&self) -> u64 {
        self.lock().used
    }

    /// Whether others had what it needed. Whoever opens it again waits for its turn for that.
    pub(crate) fn lacks_room(&self) -> bool {
        self.lock().lacks_room
    }

    fn tenant_and_mib(&self) -> (Tenant, u32) {
        let held = self.lock();
        (held.bytes.tenant().clone(), u32::try_from(held.bytes.bytes() / MIB).unwrap_or(u32::MAX))
    }

    fn lock(&self) -> MutexGuard<'_, HeldContents> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for HeldForAWhile<'_> {
    fn drop(&mut self) {
        let mut held = self.of.lock();
        held.used = held.used.saturating_sub(self.bytes);
        let bytes = held.used.max(held.needed);
        held.bytes.put(bytes);
    }
}

impl HeldContents {
    fn add(&mut self, bytes: u64) -> Result<(), Fault> {
        let (sum, most) = (self.used.saturating_add(bytes), self.bytes.of().most_of_one());
        if sum > most {
            let message = format!(
                "the component version, with what is read of it, takes more than the {most} bytes of memory \
                 that are allowed; refer to fewer or smaller ones, or have the operator given more memory (resources of its chart)"
            );
            return Err(Fault::invalid(Code::LimitExceeded, message));
        }
        if sum <= self.bytes.bytes() || self.bytes.set_in_turn(sum) {
            self.used = sum;
            return Ok(());
        }
        self.lacks_room = true;
        if let Some((lacking, key)) = &self.lacking {
            // More may be needed of what comes after this.
            lacking.put(key.clone(), sum.saturating_mul(2).min(most));
        }
        let message = format!(
            "the component version takes {sum} bytes of memory with what is read of it, and others have \
             what is left; it is tried again"
        );
        Err(Fault::later(Code::LimitExceeded, message))
    }
}

#[cfg(test)]
mod tests {
    use futures::poll;
    use orangery_core::{digest::content::Algorithm, name::Namespace, port::LendableSlot};
    use orangery_turns::in_slot;

    use super::*;

    fn of(name: &'static str) -> Tenant {
        Some(Namespace::from_static(name))
    }

    fn message_of<T>(answer: Result<T, Fault>) -> Result<T, String> {
        answer.map_err(|fault| fault.to_string())
    }

    fn later(bytes: u64) -> String {
        format!(
            "the component version takes {bytes} bytes of memory with what is read of it, and others have what is left; it is \
             tried again"
        )
    }

    #[tokio::test]
    async fn c_320_limits_registry_component_versions_that_are_open_share_a_memory() {
        let memory = VersionMemory::new(800, &PullLimits::default());
        let (one, other) = (memory.none_of(&of("a")), memory.none_of(&of("b")));
        assert_eq!(message_of(one.add(300)), Ok(()));
        let never = "the component version, with what is read of it, takes more than the 400 bytes of memory that are allowed; \
                     refer to fewer or smaller ones, or have the operator given more memory (resources of its chart)";
        assert_eq!(message_of(one.add(101)), Err(never.to_owned()));
        let digest = ContentDigest::of(Algorithm::Sha256, b"a");
        for _ in 0..3 {
            assert_eq!(one.add_once(digest.clone(), 100), Ok(()), "it counts once, and what was refused is not held");
        }
        assert!(matches!(one.add_once(ContentDigest::of(Algorithm::Sha256, b"b"), 1), Err(Fault::Invalid(_))));
        assert_eq!((one.used(), one.lacks_room()), (400, false), "what is never allowed is not waited for");
        assert_eq!(message_of(other.add(201)), Err(later(201)));
        assert!(matches!(other.add(201), Err(Fault::Later(_))) && other.lacks_room());
        let refused = ContentDigest::of(Algorithm::Sha256, b"c");
        assert!(other.add_once(refused.clone(), 201).is_err());
        drop(one);
        assert_eq!(
            (other.add_once(refused, 200), other.used()),
            (Ok(()), 200),
            "what had no room does not count as held"
        );
        let packed = other.add_for_a_while(200).map_err(|fault| fault.to_string()).expect("there is room");
        assert_eq!((other.used(), memory.shared.taken()), (400, 400));
        drop(packed);
        assert_eq!((other.used(), memory.shared.taken()), (200, 200), "for as long as it takes");
    }

    #[tokio::test(start_paused = true)]
    async fn c_326_a_component_version_without_room_has_its_turn_for_all_that_it_needs() {
        let memory = VersionMemory::new(800, &PullLimits::default());
        let (a, b, c) = (of("a"), of("b"), of("c"));
        let open = async |tenant: &Tenant, name: &str| memory.of_version(tenant, name).await.expect("its turn");
        let (first, small) = (open(&a, "first").await, open(&b, "small").await);
        first.add(280).expect("room");
        small.add(200).expect("room");
        let much = open(&c, "much").await;
        assert_eq!(message_of(much.add(100)), Ok(()));
        assert_eq!(message_of(much.add(61)), Err(later(161)));
        drop(much);
        let mut much = Box::pin(memory.of_version(&c, "much"));
        assert!(poll!(&mut much).is_pending(), "it waits for twice as much, as more may come");
        assert_eq!(memory.shared.taken(), 480, "and holds nothing meanwhile");
        // Others do not overtake, however little they need; what they have open goes on within their share.
        let mut next = Box::pin(memory.of_version(&a, "next"));
        assert!(poll!(&mut next).is_pending());
        assert_eq!(message_of(first.add(1)), Err(later(281)), "a namespace that has more than its share");
        assert_eq!(message_of(small.add(40)), Ok(()), "one that has less");
        drop(first);
        assert!(poll!(&mut much).is_pending(), "322 are not there");
        drop(small);
        let much = much.await.expect("its turn");
        assert_eq!((memory.shared.taken(), much.used()), (322, 0));
        drop(much.add_for_a_while(22));
        assert_eq!((memory.shared.taken(), message_of(much.add(322))), (322, Ok(())), "what it waited for is its own");
        let next = next.await.expect("its turn");
        assert_eq!(message_of(next.add(239)), Ok(()), "all is free for all once nobody waits");
        // What was needed once is not held the next time.
        drop((much, next));
        let again = open(&c, "much").await;
        assert_eq!(memory.shared.taken(), 0);
        drop(again);
    }

    #[tokio::test(start_paused = true)]
    async fn c_326_nobody_waits_for_ever_for_the_memory_of_component_versions() {
        let memory = VersionMemory::new(800, &PullLimits::default());
        let held = memory.none_of(&of("a"));
        held.add(400).expect("room");
        assert!(memory.of_version(&of("b"), "x").await.is_ok_and(|one| one.add(300).is_err()));
        let message = "there was no room in memory for the component version within 120 s, as others have what there is; it is \
                       tried again";
        assert_eq!(message_of(memory.of_version(&of("b"), "x").await.map(drop)), Err(message.to_owned()));
        drop(held);
        let one = memory.of_version(&of("b"), "x").await.expect("its turn");
        assert_eq!(memory.shared.taken(), 400, "it is known what it needs");
        drop(one);
    }

    #[test]
    fn c_326_limits_registry_what_had_no_room_is_known_of_so_many() {
        let memory = VersionMemory::new(800, &PullLimits::default());
        let key = |index: usize| (of("a"), ContentDigest::of(Algorithm::Sha256, &index.to_be_bytes()));
        (0..=MOST_LACKING).for_each(|index| memory.lacking.put(key(index), 1));
        let known = (0..=MOST_LACKING).filter(|index| memory.lacking.get(&key(*index)).is_some()).count();
        assert_eq!(known, MOST_LACKING);
    }

    struct Slot;

    impl LendableSlot for Slot {
        fn lend(&self) {}
        fn take_back(&self) {}
    }

    /// Begins to wait for all that one gets.
    fn wanting(memory: &VersionMemory) -> tokio::task::JoinHandle<HeldBytes> {
        let shared = Arc::clone(&memory.shared);
        tokio::spawn(async move { shared.acquire(&of("b"), 400).await })
    }

    #[tokio::test(start_paused = true)]
    async fn c_326_what_a_call_holds_while_servers_drip_is_asked_back_where_others_wait() {
        let memory = VersionMemory::new(800, &PullLimits::default());
        let drips = async |longest| {
            let comes = async {
                let _elapsed = timeout(Duration::from_secs(longest), std::future::pending::<()>()).await;
                Ok::<_, Fault>(())
            };
            message_of(memory.while_it_comes(comes).await)
        };
        let call = async {
            let held = memory.of_version(&of("a"), "x").await.expect("its turn");
            held.add(300).expect("room");
            assert_eq!(drips(600).await, Ok(()), "nobody waits");
            let waits = wanting(&memory);
            tokio::task::yield_now().await;
            let message = "servers were waited for for more than 30 s in all while others waited for the memory that the \
                           component version holds; it is tried again";
            assert_eq!(drips(600).await, Err(message.to_owned()), "it has had its time");
            drop(held);
            assert_eq!(drips(600).await, Ok(()), "it holds nothing any more");
            drop(waits.await);

            let held = memory.of_version(&of("a"), "x").await.expect("its turn");
            held.add(300).expect("room");
            let waits = wanting(&memory);
            tokio::task::yield_now().await;
            tokio::time::advance(Duration::from_secs(100)).await;
            // Two at once count once, and what it computes meanwhile does not count.
            assert_eq!(tokio::join!(drips(20), drips(20)), (Ok(()), Ok(())));
            assert_eq!(drips(9).await, Ok(()));
            assert_eq!(drips(2).await, Err(message.to_owned()));
            // Another call holds nothing.
            let other = in_slot(Arc::new(Slot), drips(600)).await;
            assert_eq!((other, waits.is_finished()), (Ok(()), false));
            waits.abort();
        };
        in_slot(Arc::new(Slot), call).await;
    }
}
