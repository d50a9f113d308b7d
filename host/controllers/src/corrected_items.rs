//! The items whose drift is being written at this moment (C-60). What is about to be written could otherwise come after the
//! deletion of its item, or after the job that prunes it.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use orangery_reconcile::{Key, Queue};
use tokio::{sync::Notify, time::sleep};

/// How long what is being written of an item's drift may go on when a job of the item waits for its end: the timeout of the
/// item counts only afterwards. A server that has not answered by then may still write it later (C-60).
const LONGEST_END: Duration = Duration::from_secs(2);

/// The items of a host, each with what waits for its end.
#[derive(Clone, Default)]
pub(crate) struct CorrectedItems {
    /// Protects the items. Held for one look-up or one change.
    items: Arc<Mutex<BTreeMap<Key, WaitingJob>>>,
}

#[derive(Default)]
struct WaitingJob {
    /// Where the job is woken; `None` where none waits.
    queue: Option<Queue>,
    /// Rung when one does.
    bell: Arc<Notify>,
}

/// Drift of an item is being written, as long as this lives.
pub(crate) struct CorrectedItem {
    all: CorrectedItems,
    key: Key,
    bell: Arc<Notify>,
}

impl CorrectedItems {
    /// From now on jobs of the item wait. Whether one has begun already is to be looked at afterwards.
    pub(crate) fn begin(&self, key: &Key) -> CorrectedItem {
        let waiting = WaitingJob::default();
        let bell = Arc::clone(&waiting.bell);
        self.lock().insert(key.clone(), waiting);
        CorrectedItem { all: self.clone(), key: key.clone(), bell }
    }

    /// Whether a job of the item has to wait. It is woken in its queue when it need not any more.
    pub(crate) fn wait(&self, key: &Key, queue: &Queue) -> bool {
        match self.lock().get_mut(key) {
            Some(waiting) => {
                waiting.queue = Some(queue.clone());
                waiting.bell.notify_one();
                true
            }
            None => false,
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, WaitingJob>> {
        self.items.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CorrectedItem {
    /// Ends when a job of the item has waited as long as it may have to.
    pub(crate) async fn is_over(&self) {
        self.bell.notified().await;
        sleep(LONGEST_END).await;
    }
}

impl Drop for CorrectedItem {
    fn drop(&mut self) {
        let waiting = self.all.lock().remove(&self.key);
        if let Some(queue) = waiting.and_then(|waiting| waiting.queue) {
            queue.wake(self.key.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{Instant, timeout};

    use super::*;

    #[test]
    fn c_60_a_job_waits_while_drift_of_its_item_is_written_and_is_woken_then() {
        let (items, queue, key) = (CorrectedItems::default(), Queue::default(), Key::new("n", "item"));
        assert!(!items.wait(&key, &queue));
        let first = items.begin(&key);
        assert!(items.wait(&key, &queue));
        assert!(!items.wait(&Key::new("n", "other"), &queue), "others go on");
        assert_eq!(queue.counts().queued, 0);
        drop(first);
        assert_eq!((items.wait(&key, &queue), queue.counts().queued), (false, 1));
        drop(items.begin(&key));
        assert_eq!(queue.counts().queued, 1, "nothing waits");
    }

    #[tokio::test(start_paused = true)]
    async fn limits_drift_what_is_being_written_gives_way_to_a_job_that_waits() {
        let (items, key) = (CorrectedItems::default(), Key::new("n", "item"));
        let held = items.begin(&key);
        let over = async || timeout(LONGEST_END + Duration::from_millis(1), held.is_over()).await.is_ok();
        assert!(!over().await, "no job waits");
        let asked = Instant::now();
        assert!(items.wait(&key, &Queue::default()) && over().await);
        assert_eq!(asked.elapsed(), LONGEST_END);
    }
}
