//! The slots of a loop: how many calls are under way at once, apart from those that wait on somebody else's server.

use std::sync::{
    Arc, OnceLock, PoisonError,
    atomic::{AtomicUsize, Ordering},
};

use orangery_core::port::LendableSlot;
use orangery_turns::{HeldBytes, LentSlot, Turn, in_slot, slot};
use tokio::sync::{Mutex, Notify};

use crate::written::{CallRecord, CallState};

tokio::task_local! {
    static SLOT: Arc<CallSlot>;
}

/// Some work of the call that this task carries out, which has the slot of the call on whatever thread it goes on (C-96).
pub fn in_this_slot<T>(work: impl Future<Output = T>) -> impl Future<Output = T> {
    // On the heap: calls are large, and would be here three times.
    let (slot, work) = (SLOT.try_with(Arc::clone).ok(), Box::pin(work));
    async move {
        match slot {
            Some(slot) => in_slot(slot.clone(), SLOT.scope(slot, work)).await,
            None => work.await,
        }
    }
}

/// The slot of the call that this task carries out, as this crate has it.
pub(crate) fn call_slot() -> Option<Arc<CallSlot>> {
    SLOT.try_with(Arc::clone).ok()
}

/// Waits for something with the slot of the call lent.
pub(crate) async fn lending<T>(wait: impl Future<Output = T>) -> T {
    let _lent = LentSlot::of(slot());
    wait.await
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
        let (waits, read) = (AtomicUsize::new(0), Mutex::default());
        let slot = Arc::new(CallSlot { of: self, waits, read, written: OnceLock::new(), turn: OnceLock::new() });
        in_slot(slot.clone(), SLOT.scope(slot, call)).await
    }
}

/// The slot of one call: lent as long as anything in the call waits.
pub(crate) struct CallSlot {
    of: Arc<CallSlots>,
    waits: AtomicUsize,
    /// What is reserved for what the call reads. Held while it waits for that.
    pub(crate) read: Mutex<Option<HeldBytes>>,
    /// Where the call is written down (C-283).
    written: OnceLock<Arc<CallRecord>>,
    /// A turn that it has until it waits on a server.
    turn: OnceLock<SharedTurn>,
}

/// A turn that is given back by whoever is first to.
#[derive(Clone)]
pub(crate) struct SharedTurn(Arc<std::sync::Mutex<Option<Turn>>>);

impl SharedTurn {
    /// A turn that is held.
    pub(crate) fn of(turn: Turn) -> Self {
        Self(Arc::new(std::sync::Mutex::new(Some(turn))))
    }

    /// Gives it back where nobody has.
    pub(crate) fn give_back(&self) {
        let turn = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        // Without the lock: the next one goes on from here.
        drop(turn);
    }
}

impl CallSlot {
    /// From now on it is written down whether the call works, or waits on somebody else's server.
    pub(crate) fn write_down(&self, record: &Arc<CallRecord>) {
        drop(self.written.set(Arc::clone(record)));
    }

    /// The turn is given back when the call waits on somebody else's server.
    pub(crate) fn give_back_when_it_waits(&self, turn: &SharedTurn) {
        drop(self.turn.set(turn.clone()));
    }
}

impl LendableSlot for CallSlot {
    fn lend(&self) {
        if self.waits.fetch_add(1, Ordering::SeqCst) == 0 {
            self.of.lent.fetch_add(1, Ordering::SeqCst);
            self.of.bell.notify_one();
            self.written.get().into_iter().for_each(|record| record.write(CallState::WaitsOnServer));
            self.turn.get().into_iter().for_each(SharedTurn::give_back);
        }
    }

    fn take_back(&self) {
        if self.waits.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.written.get().into_iter().for_each(|record| record.write(CallState::Works));
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

#[cfg(test)]
mod tests {
    use std::{pin::pin, task::Poll, thread};

    use futures::{executor::block_on, future::poll_fn};

    use super::*;

    #[tokio::test]
    async fn c_96_work_that_goes_on_on_another_thread_has_the_slot_of_its_call() {
        let slots = Arc::<CallSlots>::default();
        let call = async {
            let mut work = pin!(in_this_slot(async { slot().is_some() }));
            poll_fn(|_| {
                let elsewhere = || block_on(poll_fn(|context| Poll::Ready(work.as_mut().poll(context))));
                thread::scope(|scope| scope.spawn(elsewhere).join().unwrap())
            })
            .await
        };
        assert!(slots.carry_out(call).await);
        assert!(!in_this_slot(async { slot().is_some() }).await, "there is none outside of a call");
    }
}
