//! How fast the servers of one namespace may tell of changes: a server that tells more waits until it is its turn, as its watches
//! are not read meanwhile (C-273).

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use orangery_core::memory;
use orangery_turns::Tenant;
use serde_json::Value;
use tokio::time::Instant;

/// The changes that all watches of one namespace take in at once, and, beyond that, in a second. An object of a list counts as a
/// tenth of a change, and a large one as several.
const MOST_CHANGES_AT_ONCE: u32 = 20_000;
const MOST_CHANGES_A_SECOND: u32 = 1_000;

/// Changes of objects that take so many bytes of memory count as one.
const BYTES_OF_A_CHANGE: u64 = 64 << 10;

/// What one change takes.
const CHANGE: Duration = part_of(Duration::from_secs(1), MOST_CHANGES_A_SECOND);

/// What one object of a list takes.
const LISTED: Duration = part_of(CHANGE, 10);

const fn part_of(whole: Duration, parts: u32) -> Duration {
    match whole.checked_div(parts) {
        Some(part) => part,
        None => whole,
    }
}

/// The paces of namespaces that have watches.
#[derive(Default)]
pub(crate) struct EventPaces {
    /// Held for one look-up.
    by_tenant: Mutex<BTreeMap<Tenant, Weak<EventPace>>>,
}

impl EventPaces {
    /// That of a namespace, which all its watches share.
    pub(crate) fn of(&self, tenant: &Tenant) -> Arc<EventPace> {
        let mut by_tenant = self.by_tenant.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pace) = by_tenant.get(tenant).and_then(Weak::upgrade) {
            return pace;
        }
        by_tenant.retain(|_, pace| pace.strong_count() > 0);
        let pace = Arc::new(EventPace { taken_until: Mutex::new(Instant::now()) });
        by_tenant.insert(tenant.clone(), Arc::downgrade(&pace));
        pace
    }
}

/// How far a namespace has used up what its watches may take in.
pub(crate) struct EventPace {
    /// When all that was taken in so far is paid for. Held for one change.
    taken_until: Mutex<Instant>,
}

impl EventPace {
    /// From when on a change may be taken in, where that is not now. It counts as taken in.
    pub(crate) fn changed(&self, object: &Value) -> Option<Instant> {
        self.take(object, CHANGE)
    }

    /// From when on an object of a list may be taken in, where that is not now. It counts as taken in.
    pub(crate) fn listed(&self, object: &Value) -> Option<Instant> {
        self.take(object, LISTED)
    }

    /// From when on more may be asked for after what told of no object (a bookmark, an empty page, a watch that ended at once), where
    /// that is not now. It counts as a change.
    pub(crate) fn empty(&self) -> Option<Instant> {
        self.turn(CHANGE)
    }

    fn take(&self, object: &Value, each: Duration) -> Option<Instant> {
        let times = u32::try_from(memory::of(object) / BYTES_OF_A_CHANGE).unwrap_or(u32::MAX).saturating_add(1);
        self.turn(each.saturating_mul(times))
    }

    /// Until when that waits which costs so much; `None` where it need not.
    fn turn(&self, cost: Duration) -> Option<Instant> {
        let now = Instant::now();
        let mut taken_until = self.taken_until.lock().unwrap_or_else(PoisonError::into_inner);
        *taken_until = (*taken_until).max(now) + cost;
        let ahead = CHANGE.saturating_mul(MOST_CHANGES_AT_ONCE);
        taken_until.checked_sub(ahead).filter(|until| *until > now)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::time::{advance, sleep_until};

    use super::*;

    async fn wait(until: Option<Instant>) {
        if let Some(until) = until {
            sleep_until(until).await;
        }
    }

    /// How long so many changes of an object take.
    async fn time_of(pace: &EventPace, object: &Value, changes: u32) -> Duration {
        let begun = Instant::now();
        for _ in 0..changes {
            wait(pace.changed(object)).await;
        }
        begun.elapsed()
    }

    fn is_a_second(time: Duration) -> bool {
        time.abs_diff(Duration::from_secs(1)) < Duration::from_millis(20)
    }

    #[tokio::test(start_paused = true)]
    async fn c_273_limits_cluster_so_many_changes_of_one_namespace_are_taken_in_at_once_and_in_a_second() {
        let paces = EventPaces::default();
        let (one, two) = (paces.of(&Some("one".into())), paces.of(&Some("two".into())));
        let small = json!({"metadata": {"name": "a"}});
        assert_eq!(time_of(&one, &small, MOST_CHANGES_AT_ONCE).await, Duration::ZERO);
        let second = time_of(&one, &small, MOST_CHANGES_A_SECOND).await;
        assert!(is_a_second(second), "{second:?}");
        // Another watch of the namespace has the same pace, and another namespace its own.
        assert!(Arc::ptr_eq(&one, &paces.of(&Some("one".into()))));
        assert_eq!(time_of(&two, &small, MOST_CHANGES_AT_ONCE).await, Duration::ZERO);
        // What is not used comes back, up to what may come at once.
        advance(Duration::from_secs(3600)).await;
        assert_eq!(time_of(&one, &small, MOST_CHANGES_AT_ONCE).await, Duration::ZERO);
        assert!(time_of(&one, &small, 2).await > Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn c_273_large_objects_count_as_several_changes_and_those_of_a_list_as_a_tenth() {
        let pace = EventPaces::default().of(&None);
        let large = json!({"data": {"k": "x".repeat(9 * (64 << 10))}});
        assert_eq!(time_of(&pace, &large, MOST_CHANGES_AT_ONCE / 10).await, Duration::ZERO);
        let second = time_of(&pace, &large, MOST_CHANGES_A_SECOND / 10).await;
        assert!(is_a_second(second), "{second:?}");
        let begun = Instant::now();
        for _ in 0..MOST_CHANGES_A_SECOND * 10 {
            wait(pace.listed(&json!({}))).await;
        }
        let second = begun.elapsed();
        assert!(is_a_second(second), "{second:?}");
    }
}
