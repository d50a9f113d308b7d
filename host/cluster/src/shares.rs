//! What all clusters share, by turns of namespaces.

use std::sync::Arc;

use orangery_turns::{HeldBytes, SharedBytes, Tenant, Turn, Turns};

use crate::{pace::EventPaces, request_figures::RequestFigures};

/// The most watches on all clusters together, those of feeds among them: each is a connection that stays open, here and at its
/// server. One namespace has at most half of them, and no more than are left (C-164).
pub const MOST_WATCHES: u64 = 4096;

/// The comparisons of what feeds tell with what was written that are under way at once, on all clusters, beside small ones. One
/// namespace has one of them (C-295).
const MOST_COMPARISONS: usize = 2;

/// Bytes of memory of both sides of a comparison that is small: it takes some milliseconds, waits for no turn, and counts nowhere.
pub const SMALL_COMPARISON: u64 = 256 << 10;

/// The shares of a pool.
#[derive(Clone)]
pub(crate) struct ClusterShares {
    /// The memory of the objects of watches and lists.
    pub(crate) objects: Arc<SharedBytes>,
    /// The watches, each of which counts as one.
    pub(crate) watches: Arc<SharedBytes>,
    /// How fast watches take in what they are told.
    pub(crate) paces: Arc<EventPaces>,
    /// What requests came to.
    pub(crate) requests: Arc<RequestFigures>,
    /// The turns of comparisons.
    comparisons: Arc<Turns>,
}

impl ClusterShares {
    /// All of it free; the objects have so many bytes of memory.
    pub(crate) fn new(objects: u64) -> Self {
        Self {
            objects: SharedBytes::new(objects),
            watches: SharedBytes::new(MOST_WATCHES),
            paces: Arc::default(),
            requests: Arc::default(),
            comparisons: Turns::new(MOST_COMPARISONS),
        }
    }

    /// The turn of a comparison that takes so many bytes. They count with those of the objects, whether there is room or not: what it
    /// compares is held there already, and whoever holds some waits for no more. More than one namespace gets counts as that: nothing
    /// is compared that takes more.
    pub(crate) async fn comparison(&self, tenant: &Tenant, bytes: u64) -> (Turn, HeldBytes) {
        let turn = self.comparisons.acquire(tenant).await;
        let mut held = self.objects.none_of(tenant);
        held.put(bytes.min(self.objects.most_of_one()));
        (turn, held)
    }
}

/// Why a watch does not begin, as a message says it.
pub(crate) fn no_watch_left(watches: &SharedBytes) -> String {
    format!(
        "its namespace has as many watches as it may, at most {}, shared with other namespaces; use fewer kinds, namespaces and \
         clusters at once",
        watches.most_of_one()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn c_295_limits_feeds_so_many_large_comparisons_are_under_way_and_one_of_a_namespace() {
        let shares = ClusterShares::new(1 << 20);
        let [a, b, c] = ["a", "b", "c"].map(|name| Some(name.into()));
        let first = shares.comparison(&a, 300 << 10).await;
        let mut again = Box::pin(shares.comparison(&a, 1));
        assert!(futures::poll!(&mut again).is_pending(), "a namespace has one");
        let second = shares.comparison(&b, 2 << 20).await;
        assert_eq!(shares.objects.taken(), (512 << 10) + (300 << 10), "they count, also beyond the room");
        let mut third = Box::pin(shares.comparison(&c, 1));
        assert!(futures::poll!(&mut third).is_pending());
        drop(first);
        let third = third.await;
        assert!(futures::poll!(&mut again).is_pending(), "one that has none goes first");
        drop((second, third));
        drop(again.await);
        assert_eq!(shares.objects.taken(), 0);
    }
}
