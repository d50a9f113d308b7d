//! One request for all who ask for the same at the same time.

use std::{
    collections::HashMap,
    future::Future,
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::OnceCell;

type Cells<K, V> = HashMap<K, Arc<OnceCell<V>>>;

/// What is under way, by what was asked for. A call meanwhile gets the same answer, also a failed one; a later call
/// asks anew. Where the one that asked first goes away, another of those waiting asks in its place.
pub struct Flights<K, V> {
    running: Mutex<Cells<K, V>>,
}

impl<K: Hash + Eq + Clone, V: Clone> Flights<K, V> {
    /// Nothing is under way.
    pub fn new() -> Self {
        Self { running: Mutex::new(HashMap::new()) }
    }

    /// Waits for what is under way under this key, or starts it.
    pub async fn join<F: Future<Output = V>>(&self, key: K, ask: impl FnOnce() -> F) -> V {
        let cell = Arc::clone(self.lock().entry(key.clone()).or_default());
        let guard = FlightGuard { flights: self, key, cell };
        guard.cell.get_or_init(ask).await.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Cells<K, V>> {
        // The map is whole between any two statements.
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Hash + Eq + Clone, V: Clone> Default for Flights<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

/// One that waits; takes the entry away with it when there is an answer, or nobody else waits.
struct FlightGuard<'a, K: Hash + Eq + Clone, V: Clone> {
    flights: &'a Flights<K, V>,
    key: K,
    cell: Arc<OnceCell<V>>,
}

impl<K: Hash + Eq + Clone, V: Clone> Drop for FlightGuard<'_, K, V> {
    fn drop(&mut self) {
        let mut running = self.flights.lock();
        let is_mine = running.get(&self.key).is_some_and(|cell| Arc::ptr_eq(cell, &self.cell));
        // Two hold the cell when nobody else waits: the map and this guard.
        if is_mine && (self.cell.initialized() || Arc::strong_count(&self.cell) <= 2) {
            running.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::sync::Notify;

    use super::*;

    #[tokio::test]
    async fn calls_made_at_once_share_one_answer_and_the_next_asks_anew() {
        let flights = Flights::new();
        let (asked, open) = (AtomicUsize::new(0), Notify::new());
        let ask = || async {
            open.notified().await;
            asked.fetch_add(1, Ordering::SeqCst)
        };
        let all = futures::future::join_all((0..50).map(|_| flights.join("a", ask)));
        let (answers, ()) = tokio::join!(all, async {
            tokio::task::yield_now().await;
            open.notify_one();
        });
        assert_eq!(answers, [0; 50]);
        open.notify_one();
        assert_eq!(flights.join("a", ask).await, 1);
        assert!(flights.lock().is_empty());
    }

    #[tokio::test]
    async fn another_asks_when_the_first_goes_away() {
        let flights = Arc::new(Flights::new());
        let started = Arc::new(Notify::new());
        let first = tokio::spawn({
            let (flights, started) = (Arc::clone(&flights), Arc::clone(&started));
            async move {
                flights
                    .join("a", || async {
                        started.notify_one();
                        std::future::pending().await
                    })
                    .await
            }
        });
        started.notified().await;
        let mut second = Box::pin(flights.join("a", || async { 2 }));
        assert!(futures::poll!(&mut second).is_pending());
        first.abort();
        assert_eq!(second.await, 2);
        assert!(first.await.expect_err("aborted").is_cancelled());
        assert!(flights.lock().is_empty());
    }

    #[tokio::test]
    async fn nothing_is_left_of_one_that_goes_away_alone() {
        let flights = Flights::<_, ()>::new();
        let mut only = Box::pin(flights.join("a", std::future::pending));
        assert!(futures::poll!(&mut only).is_pending());
        drop(only);
        assert!(flights.lock().is_empty());
    }
}
