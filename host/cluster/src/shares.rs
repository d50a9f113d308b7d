//! What all clusters share, by turns of namespaces.

use std::sync::Arc;

use orangery_turns::SharedBytes;

use crate::pace::EventPaces;

/// The most watches on all clusters together, those of feeds among them: each is a connection that stays open, here and at its
/// server. One namespace has at most half of them, and no more than are left (C-164).
pub const MOST_WATCHES: u64 = 4096;

/// The shares of a pool.
#[derive(Clone)]
pub(crate) struct ClusterShares {
    /// The memory of the objects of watches and lists.
    pub(crate) objects: Arc<SharedBytes>,
    /// The watches, each of which counts as one.
    pub(crate) watches: Arc<SharedBytes>,
    /// How fast watches take in what they are told.
    pub(crate) paces: Arc<EventPaces>,
}

impl ClusterShares {
    /// All of it free; the objects have so many bytes of memory.
    pub(crate) fn new(objects: u64) -> Self {
        Self { objects: SharedBytes::new(objects), watches: SharedBytes::new(MOST_WATCHES), paces: Arc::default() }
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
