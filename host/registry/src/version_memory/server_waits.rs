//! How long a call has waited for servers while it held something.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use orangery_core::port::LendableSlot;
use orangery_turns::slot;
use tokio::time::{Instant, sleep};

/// A call of a controller, told by its slot.
pub(super) struct CallIdentity(Weak<dyn LendableSlot>);

impl CallIdentity {
    /// The call that this task carries out; `None` outside of one.
    pub(super) fn of_this_task() -> Option<Self> {
        slot().map(|slot| Self(Arc::downgrade(&slot)))
    }
}

impl PartialEq for CallIdentity {
    /// By the place of the slot, which is nobody else's as long as this is there.
    fn eq(&self, other: &Self) -> bool {
        std::ptr::addr_eq(self.0.as_ptr(), other.0.as_ptr())
    }
}

/// The time in which it waited, however many servers at once.
#[derive(Default)]
pub(super) struct ServerWaits(Mutex<WaitedTime>);

#[derive(Default)]
struct WaitedTime {
    before: Duration,
    now: usize,
    since: Option<Instant>,
}

/// It waits until this is dropped.
pub(super) struct ServerWait<'a>(&'a ServerWaits);

impl ServerWaits {
    pub(super) fn begin(&self) -> ServerWait<'_> {
        let mut waited = self.lock();
        waited.since.get_or_insert_with(Instant::now);
        waited.now += 1;
        ServerWait(self)
    }

    /// Ends once it has waited so long, where it waits on.
    pub(super) async fn longer_than(&self, longest: Duration) {
        loop {
            let left = longest.saturating_sub(self.lock().so_far());
            if left.is_zero() {
                return;
            }
            sleep(left).await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, WaitedTime> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WaitedTime {
    fn so_far(&self) -> Duration {
        self.before + self.since.map_or(Duration::ZERO, |since| since.elapsed())
    }
}

impl Drop for ServerWait<'_> {
    fn drop(&mut self) {
        let mut waited = self.0.lock();
        waited.now -= 1;
        if waited.now == 0 {
            waited.before = waited.so_far();
            waited.since = None;
        }
    }
}
