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
#[derive(Debug)]
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

impl ReservedForReading {
    /// It was read, and takes so many bytes.
    pub async fn takes(self, bytes: u64) {
        let Some(slot) = call_slot() else { return };
        if let Some(held) = slot.read.lock().await.as_mut() {
            held.put(held.bytes().saturating_sub(self.0).saturating_add(bytes));
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

    async fn reads(namespace: &'static str, most: u64) -> ReservedForReading {
        reserve_for_reading(&Namespace::from_static(namespace), most).await
    }

    #[tokio::test]
    async fn c_132_limits_what_calls_read_shares_a_memory_and_comes_back_with_the_call() {
        const HALF: u64 = MOST_READ_BYTES / 2;
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
}
