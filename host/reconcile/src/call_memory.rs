//! Memory that calls reserve: for long objects before they begin, and for what they read beside them (C-130, C-132).

use std::sync::{Arc, LazyLock};

use orangery_core::name::Namespace;
use orangery_turns::{HeldBytes, SharedBytes};

use crate::{
    slot::{call_slot, lending},
    store::LongObject,
};

/// The most memory, in bytes, that is reserved for calls of long objects. Namespaces share it; that of one has half of it, and a
/// call that would take more counts as half (C-113, C-130).
const MOST_WORKED_ON_BYTES: u64 = 128 << 20;

/// How often a call has its object as a value: as it was, and as it is to be.
const VALUES_OF_A_CALL: u64 = 2;

/// How often it has what is long in it as a text: what a component is asked and answers, the objects of that, what is stored of it,
/// and the bodies of requests.
const TEXTS_OF_A_CALL: u64 = 6;

/// The most memory, in bytes, that is reserved for what calls read beside their objects; shared in the same way (C-132).
const MOST_READ_BYTES: u64 = 128 << 20;

/// What calls of all loops have reserved for their objects.
static WORKED_ON: LazyLock<Arc<SharedBytes>> = LazyLock::new(|| SharedBytes::new(MOST_WORKED_ON_BYTES));

/// The same for what they read.
static READ: LazyLock<Arc<SharedBytes>> = LazyLock::new(|| SharedBytes::new(MOST_READ_BYTES));

/// Memory for a call of a long object, when it is the turn of its namespace. The slot of the call is lent meanwhile.
pub(crate) async fn reserve_for_object(namespace: &Namespace, object: LongObject) -> HeldBytes {
    let values = object.memory.saturating_mul(VALUES_OF_A_CALL);
    let bytes = values.saturating_add(object.text.saturating_mul(TEXTS_OF_A_CALL));
    lending(WORKED_ON.acquire(&Some(namespace.clone()), bytes)).await
}

/// What is reserved of one call for something that it reads.
#[derive(Debug, Default)]
#[must_use]
pub struct ReservedForReading(u64);

/// Reserves memory for what the call that this task carries out is about to read, until it ends or
/// [gives it back](give_reading_back). The first time in a call it waits for its turn, and lends the slot meanwhile; what the same
/// call reads after that counts at once, as one that holds some must not wait for more. Outside of a call nothing is reserved.
pub async fn reserve_for_reading(namespace: &Namespace, most: u64) -> ReservedForReading {
    let reserved = most.min(READ.most_of_one());
    if let Some(slot) = call_slot() {
        let mut read = slot.read.lock().await;
        match read.as_mut() {
            Some(held) => held.put(held.bytes().saturating_add(reserved)),
            None => *read = Some(lending(READ.acquire(&Some(namespace.clone()), reserved)).await),
        }
    }
    ReservedForReading(reserved)
}

/// The same for something that the call has in memory already, beside what it has read: at once, or not at all where there is no
/// room. More than a namespace gets counts as that.
pub async fn reserve_now(namespace: &Namespace, bytes: u64) -> Option<ReservedForReading> {
    let Some(slot) = call_slot() else { return Some(ReservedForReading(0)) };
    let mut read = slot.read.lock().await;
    let mut held = read.take().unwrap_or_else(|| READ.none_of(&Some(namespace.clone())));
    let before = held.bytes();
    let bytes = bytes.min(READ.most_of_one().saturating_sub(before));
    let has_room = held.set(before.saturating_add(bytes));
    *read = (held.bytes() > 0).then_some(held);
    has_room.then_some(ReservedForReading(bytes))
}

/// The same when there is room, for one that has dropped what it had; `None` where the call holds something else, and must not wait.
pub async fn reserve_when_free(namespace: &Namespace, bytes: u64) -> Option<ReservedForReading> {
    if let Some(slot) = call_slot()
        && slot.read.lock().await.is_some()
    {
        return None;
    }
    Some(reserve_for_reading(namespace, bytes).await)
}

/// The memory that all calls share for what they read.
pub fn reading_memory() -> &'static Arc<SharedBytes> {
    &READ
}

impl ReservedForReading {
    /// How much it is.
    pub fn bytes(&self) -> u64 {
        self.0
    }

    /// What is about to be read takes so many bytes. Where there is no room for them, what was reserved is given back and waited for
    /// anew; `None` where the call holds something else, and must not wait.
    pub async fn grow(self, namespace: &Namespace, bytes: u64) -> Option<Self> {
        self.takes(0).await;
        if let Some(reserved) = reserve_now(namespace, bytes).await {
            return Some(reserved);
        }
        reserve_when_free(namespace, bytes).await
    }

    /// It was read, and takes so many bytes.
    pub async fn takes(self, bytes: u64) {
        let Some(slot) = call_slot() else { return };
        let mut read = slot.read.lock().await;
        if let Some(held) = read.as_mut() {
            held.put(held.bytes().saturating_sub(self.0).saturating_add(bytes));
        }
        // What holds nothing any more may wait again.
        if read.as_ref().is_some_and(|held| held.bytes() == 0) {
            read.take();
        }
    }
}

/// Nothing of what the call has read is in memory any more.
pub async fn give_reading_back() {
    if let Some(slot) = call_slot() {
        slot.read.lock().await.take();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::{sync::Semaphore, time::timeout};

    use super::*;
    use crate::slot::CallSlots;

    #[tokio::test]
    async fn c_325_what_a_call_has_made_counts_where_there_is_room() {
        const HALF: u64 = MOST_READ_BYTES / 2;
        let (a, b) = (Namespace::from_static("a"), Namespace::from_static("b"));
        let _alone = ALONE.lock().await;
        Arc::<CallSlots>::default()
            .carry_out(async {
                let mut other = READ.none_of(&Some(b.clone()));
                assert!(other.set(HALF));
                let reserved = reserve_now(&a, HALF / 4).await.expect("room");
                assert!(reserve_now(&a, HALF / 4).await.is_some(), "it holds no more than is left");
                assert!(reserve_now(&a, u64::MAX).await.is_none(), "half of what others leave at most");
                assert!(reserve_when_free(&a, 1).await.is_none(), "it holds some, and waits for nothing");
                assert_eq!(READ.taken(), HALF + HALF / 2);
                reserved.takes(0).await;
                assert_eq!(READ.taken(), HALF + HALF / 4);
                drop(other);
                assert!(reserve_now(&a, u64::MAX).await.is_some(), "as much as one gets, at most");
                assert_eq!(READ.taken(), HALF);
                give_reading_back().await;
                assert!(reserve_when_free(&a, 1).await.is_some());
            })
            .await;
        assert_eq!(READ.taken(), 0);
    }

    /// What all calls share is measured by one test at a time.
    static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

    async fn reads(namespace: &'static str, most: u64) -> ReservedForReading {
        reserve_for_reading(&Namespace::from_static(namespace), most).await
    }

    #[tokio::test]
    async fn c_132_limits_what_calls_read_shares_a_memory_and_comes_back_with_the_call() {
        const HALF: u64 = MOST_READ_BYTES / 2;
        let _alone = ALONE.lock().await;
        reads("a", u64::MAX).await.takes(1).await;
        assert_eq!(READ.taken(), 0, "outside of a call nothing is reserved");
        let slots = Arc::<CallSlots>::default();
        let (begun, end) = (Semaphore::new(0), Semaphore::new(0));
        let first = Arc::clone(&slots).carry_out(async {
            let first = reads("a", u64::MAX).await;
            let second = reads("a", u64::MAX).await;
            assert_eq!(READ.taken(), 2 * HALF, "half of it at most, and what it reads after that does not wait");
            second.takes(1).await;
            first.takes(HALF + 1).await;
            assert_eq!(READ.taken(), HALF + 2, "what it takes is what counts");
            begun.add_permits(1);
            end.acquire().await.unwrap().forget();
        });
        let second = Arc::clone(&slots).carry_out(async {
            begun.acquire().await.unwrap().forget();
            reads("b", HALF).await.takes(1).await;
            assert_eq!(READ.taken(), 1, "it waited for the first one");
            give_reading_back().await;
            assert_eq!(READ.taken(), 0);
        });
        let ends = async {
            while slots.lent() == 0 {
                tokio::task::yield_now().await;
            }
            // The second one waits, and has lent its slot.
            end.add_permits(1);
        };
        timeout(Duration::from_secs(20), async { tokio::join!(first, second, ends) }).await.expect("in time");
        assert_eq!((READ.taken(), slots.lent()), (0, 0));
    }

    #[tokio::test]
    async fn c_132_what_takes_more_than_was_reserved_waits_with_nothing_and_not_where_the_call_holds_something_else() {
        const HALF: u64 = MOST_READ_BYTES / 2;
        let (a, b) = (Namespace::from_static("a"), Namespace::from_static("b"));
        let _alone = ALONE.lock().await;
        let mut other = READ.none_of(&Some(b));
        assert!(other.set(HALF));
        let slots = Arc::<CallSlots>::default();
        let work = Arc::clone(&slots).carry_out(async {
            let first = reads("a", 1).await;
            let grown = first.grow(&a, HALF / 4).await.expect("there is room");
            assert_eq!(READ.taken(), HALF + HALF / 4, "it is reserved in place of what was");
            let second = reads("a", 1).await;
            assert!(second.grow(&a, HALF).await.is_none(), "it holds some");
            assert_eq!(READ.taken(), HALF + HALF / 4);
            let waited = grown.grow(&a, HALF).await.expect("when there is room");
            assert_eq!((waited.bytes(), READ.taken()), (HALF, HALF), "it was waited for");
        });
        let ends = async {
            while slots.lent() == 0 {
                tokio::task::yield_now().await;
            }
            assert_eq!(READ.taken(), HALF, "nothing is held meanwhile");
            drop(other);
        };
        timeout(Duration::from_secs(20), async { tokio::join!(work, ends) }).await.expect("in time");
        assert_eq!(READ.taken(), 0);
    }
}
