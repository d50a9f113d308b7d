//! The slots of a loop: how many calls are under way at once, apart from those that wait on somebody else's server.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use orangery_core::port::LendableSlot;
use tokio::sync::Notify;

tokio::task_local! {
    static SLOT: Arc<CallSlot>;
}

/// The slot of the call that this task carries out; `None` outside of one.
pub fn slot() -> Option<Arc<dyn LendableSlot>> {
    SLOT.try_with(|slot| Arc::clone(slot) as Arc<dyn LendableSlot>).ok()
}

/// The slots of one loop.
#[derive(Default)]
pub(crate) struct CallSlots {
    lent: AtomicUsize,
    bell: Notify,
}

impl CallSlots {
    /// How many calls have lent theirs.
    pub(crate) fn lent(&self) -> usize {
        self.lent.load(Ordering::SeqCst)
    }

    /// Waits until one more is lent.
    pub(crate) async fn one_more(&self) {
        self.bell.notified().await;
    }

    /// Carries a call out in a slot.
    pub(crate) async fn carry_out<T>(self: Arc<Self>, call: impl Future<Output = T>) -> T {
        SLOT.scope(Arc::new(CallSlot { of: self, waits: AtomicUsize::new(0) }), call).await
    }
}

/// The slot of one call: lent as long as anything in the call waits.
struct CallSlot {
    of: Arc<CallSlots>,
    waits: AtomicUsize,
}

impl LendableSlot for CallSlot {
    fn lend(&self) {
        if self.waits.fetch_add(1, Ordering::SeqCst) == 0 {
            self.of.lent.fetch_add(1, Ordering::SeqCst);
            self.of.bell.notify_one();
        }
    }

    fn take_back(&self) {
        if self.waits.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.of.lent.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

impl Drop for CallSlot {
    fn drop(&mut self) {
        if self.waits.load(Ordering::SeqCst) > 0 {
            self.of.lent.fetch_sub(1, Ordering::SeqCst);
        }
    }
}
