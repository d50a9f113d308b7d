//! The slot of a call of a controller, lent to others while the call waits on somebody else's server (C-39).

use std::{pin::pin, sync::Arc, time::Duration};

use orangery_core::port::LendableSlot;
use tokio::time::timeout;

tokio::task_local! {
    static SLOT: Arc<dyn LendableSlot>;
}

/// How long an answer is waited for before the slot is lent: servers that are well have answered by then.
const PATIENCE: Duration = Duration::from_millis(100);

/// The slot of the call that this task carries out; `None` outside of one.
pub fn slot() -> Option<Arc<dyn LendableSlot>> {
    SLOT.try_with(Arc::clone).ok()
}

/// Some work of a call that has this slot.
pub async fn in_slot<T>(slot: Arc<dyn LendableSlot>, work: impl Future<Output = T>) -> T {
    SLOT.scope(slot, work).await
}

/// Waits for somebody else's server in the call that this task carries out.
pub fn lending<T>(wait: impl Future<Output = T>) -> impl Future<Output = T> {
    // On the heap: what waits is large, and would be here several times.
    let wait = Box::pin(wait);
    async move { lending_of(slot().as_ref(), wait).await }
}

/// The same in the call that has this slot.
pub async fn lending_of<T>(slot: Option<&Arc<dyn LendableSlot>>, wait: impl Future<Output = T>) -> T {
    let mut wait = pin!(wait);
    if let Ok(answer) = timeout(PATIENCE, &mut wait).await {
        return answer;
    }
    let _lent = LentSlot::of(slot.cloned());
    wait.await
}

/// A slot that is lent until this is dropped.
pub struct LentSlot(Option<Arc<dyn LendableSlot>>);

impl LentSlot {
    /// Lends a slot, where there is one.
    pub fn of(slot: Option<Arc<dyn LendableSlot>>) -> Self {
        slot.iter().for_each(|slot| slot.lend());
        Self(slot)
    }
}

impl Drop for LentSlot {
    fn drop(&mut self) {
        self.0.iter().for_each(|slot| slot.take_back());
    }
}

#[cfg(test)]
mod tests {
    use std::{
        future::ready,
        sync::atomic::{AtomicUsize, Ordering},
    };

    use tokio::{sync::oneshot, time::advance};

    use super::*;

    #[derive(Default)]
    struct CountedSlot {
        lent: AtomicUsize,
        back: AtomicUsize,
    }

    impl LendableSlot for CountedSlot {
        fn lend(&self) {
            self.lent.fetch_add(1, Ordering::SeqCst);
        }

        fn take_back(&self) {
            self.back.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn c_39_a_slot_is_lent_while_the_call_waits_and_comes_back() {
        let slot = Arc::<CountedSlot>::default();
        let counts = || (slot.lent.load(Ordering::SeqCst), slot.back.load(Ordering::SeqCst));
        in_slot(slot.clone(), async {
            lending(ready(())).await;
            assert_eq!(counts(), (0, 0), "what is answered soon is waited for with the slot");
            let (answer, answered) = oneshot::channel::<()>();
            let waits = tokio::spawn(in_slot(slot.clone(), lending(answered)));
            while counts() != (1, 0) {
                advance(PATIENCE / 10).await;
            }
            answer.send(()).unwrap();
            waits.await.unwrap().unwrap();
            assert_eq!(counts(), (1, 1));
            assert!(super::slot().is_some());
        })
        .await;
        assert!(super::slot().is_none(), "there is none outside of a call");
        lending(ready(())).await;
    }
}
