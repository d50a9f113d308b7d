//! What one call for a TargetSync leaves for the next one.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use orangery_core::name::ObjectName;
use orangery_reconcile::Key;
use tokio::time::Instant;

/// The time between two calls of which the first has written something: whoever has the other cluster chooses how often it changes.
const BETWEEN_WRITES: Duration = Duration::from_millis(250);
/// The time after which a shoot is asked for again for which nothing was issued.
const UNTIL_ASKED_AGAIN: Duration = Duration::from_secs(30);
/// Bytes of why nothing was issued that are kept of each shoot.
const LONGEST_REASON: usize = 512;

/// What is known of TargetSyncs beside what objects say.
#[derive(Default)]
pub(super) struct SyncMemory {
    /// Protects what is known. Held for one look or one change.
    by_key: Mutex<BTreeMap<Key, KnownSync>>,
}

#[derive(Default)]
struct KnownSync {
    wrote: Option<Instant>,
    is_silent: bool,
    /// The shoots for which nothing was issued, when, and why.
    failed: BTreeMap<ObjectName, (Instant, String)>,
}

impl SyncMemory {
    /// How long a call has to wait for its turn.
    pub(super) fn pause(&self, key: &Key, now: Instant) -> Option<Duration> {
        let next = self.known().get(key)?.wrote? + BETWEEN_WRITES;
        Some(next.saturating_duration_since(now)).filter(|left| !left.is_zero())
    }

    /// A call has written something.
    pub(super) fn wrote(&self, key: &Key, now: Instant) {
        self.known().entry(key.clone()).or_default().wrote = Some(now);
    }

    /// What a TargetSync waits for has not come for long.
    pub(super) fn heard_nothing(&self, key: &Key) {
        self.known().entry(key.clone()).or_default().is_silent = true;
    }

    /// Whether nothing has come for long, up to now.
    pub(super) fn is_silent(&self, key: &Key) -> bool {
        self.known().get(key).is_some_and(|known| known.is_silent)
    }

    /// What it has waited for has come.
    pub(super) fn heard(&self, key: &Key) {
        if let Some(known) = self.known().get_mut(key) {
            known.is_silent = false;
        }
    }

    /// Nothing was issued for a shoot.
    pub(super) fn failed(&self, key: &Key, shoot: &ObjectName, why: &str, now: Instant) {
        let why = why.get(..why.floor_char_boundary(LONGEST_REASON)).unwrap_or_default().to_owned();
        let mut known = self.known();
        let failed = &mut known.entry(key.clone()).or_default().failed;
        failed.retain(|_, (at, _)| now.saturating_duration_since(*at) < UNTIL_ASKED_AGAIN);
        failed.insert(shoot.clone(), (now, why));
    }

    /// Why nothing was issued for a shoot a moment ago: it is not asked for again yet, so that the others have their turn.
    pub(super) fn failed_lately(&self, key: &Key, shoot: &ObjectName, now: Instant) -> Option<String> {
        let known = self.known();
        let (at, why) = known.get(key)?.failed.get(shoot)?;
        (now.saturating_duration_since(*at) < UNTIL_ASKED_AGAIN).then(|| why.clone())
    }

    /// It is gone.
    pub(super) fn forget(&self, key: &Key) {
        self.known().remove(key);
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<Key, KnownSync>> {
        self.by_key.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c_376_a_call_that_follows_one_which_has_written_waits_for_its_turn() {
        let (memory, begun) = (SyncMemory::default(), Instant::now());
        let [one, other] = ["one", "other"].map(|name| Key::new("n", name));
        assert_eq!(memory.pause(&one, begun), None);
        memory.wrote(&one, begun);
        assert_eq!(memory.pause(&one, begun), Some(BETWEEN_WRITES));
        assert_eq!(memory.pause(&one, begun + BETWEEN_WRITES / 2), Some(BETWEEN_WRITES / 2));
        assert_eq!(memory.pause(&one, begun + BETWEEN_WRITES), None);
        assert_eq!(memory.pause(&other, begun), None, "one that writes holds up no other");
        memory.forget(&one);
        assert_eq!(memory.pause(&one, begun), None);
    }

    #[test]
    fn c_376_limits_target_sync_a_shoot_that_fails_is_asked_for_again_later_and_why_is_cut() {
        let (memory, begun, key) = (SyncMemory::default(), Instant::now(), Key::new("n", "a"));
        let (one, other) = (ObjectName::from("one"), ObjectName::from("other"));
        assert_eq!(memory.failed_lately(&key, &one, begun), None);
        memory.failed(&key, &one, &"x".repeat(LONGEST_REASON + 1), begun);
        assert_eq!(memory.failed_lately(&key, &one, begun), Some("x".repeat(LONGEST_REASON)));
        assert_eq!(memory.failed_lately(&key, &other, begun), None);
        assert_eq!(memory.failed_lately(&key, &one, begun + UNTIL_ASKED_AGAIN), None);
        memory.failed(&key, &other, "why", begun + UNTIL_ASKED_AGAIN);
        assert_eq!(memory.known()[&key].failed.len(), 1, "what is over is not kept");
    }

    #[test]
    fn c_376_a_cluster_is_silent_until_it_says_something() {
        let (memory, key) = (SyncMemory::default(), Key::new("n", "a"));
        assert!(!memory.is_silent(&key));
        memory.heard_nothing(&key);
        assert!(memory.is_silent(&key));
        memory.heard(&key);
        assert!(!memory.is_silent(&key));
        memory.heard_nothing(&key);
        memory.forget(&key);
        assert!(!memory.is_silent(&key));
    }
}
