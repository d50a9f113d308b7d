//! The items that are watched, within the memory that they share.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use orangery_apply::TrackedManifest;
use orangery_core::{
    error::{Code, Failure},
    name::JobId,
    network::AllowedNetworks,
    step::{Halt, Step},
};
use orangery_proposal::drift_rules::DriftRules;
use orangery_reconcile::{Key, Queue};
use orangery_turns::room_of_one;

/// What an item is watched for.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TrackedFor {
    pub(super) uid: String,
    /// The job whose manifest counts.
    pub(super) job: JobId,
    pub(super) rules: DriftRules,
    /// Which networks its clusters may be in, and which clusters may be reached: with others it is watched anew (C-102).
    pub(super) networks: AllowedNetworks,
    pub(super) clusters: String,
}

/// One item that is watched.
struct Tracked {
    what: TrackedFor,
    manifest: Arc<TrackedManifest>,
}

/// All of them.
pub(super) struct TrackedItems {
    /// In bytes.
    memory: u64,
    /// Where items are woken that there is room for.
    queue: Queue,
    /// Protects the items. Held for one look-up or one change; what leaves is dropped outside.
    known: Mutex<KnownItems>,
}

#[derive(Default)]
struct KnownItems {
    tracked: BTreeMap<Key, Tracked>,
    /// Those that there was no room for.
    without_room: BTreeSet<Key>,
}

impl TrackedItems {
    pub(super) fn new(memory: u64, queue: Queue) -> Self {
        Self { memory, queue, known: Mutex::default() }
    }

    /// The manifest of an item that is watched for this.
    pub(super) fn current(&self, key: &Key, what: &TrackedFor) -> Option<Arc<TrackedManifest>> {
        let known = self.known();
        known.tracked.get(key).filter(|tracked| tracked.what == *what).map(|tracked| Arc::clone(&tracked.manifest))
    }

    /// # Errors
    /// There is no room: the item is woken when some becomes free.
    pub(super) fn insert(&self, key: &Key, what: TrackedFor, manifest: &Arc<TrackedManifest>) -> Step<()> {
        let mut known = self.known();
        let others = known.tracked.iter().filter(|(other, _)| *other != key);
        let (mut taken, mut of_namespace) = (0, 0);
        for (other, tracked) in others {
            taken += tracked.manifest.bytes();
            of_namespace += if other.namespace == key.namespace { tracked.manifest.bytes() } else { 0 };
        }
        if let Err(full) = has_room((taken, of_namespace), manifest.bytes(), self.memory) {
            known.without_room.insert(key.clone());
            return Err(full);
        }
        known.without_room.remove(key);
        let before = known.tracked.insert(key.clone(), Tracked { what, manifest: Arc::clone(manifest) });
        drop(known);
        drop(before);
        Ok(())
    }

    /// An item is not watched any more: others may have room now.
    pub(super) fn forget(&self, key: &Key) {
        self.known().without_room.remove(key);
        if self.take_out(key).is_some() {
            self.wake();
        }
    }

    /// The same for an item that is about to be watched anew. Answers what room it had, in bytes.
    pub(super) fn take_out(&self, key: &Key) -> Option<u64> {
        let gone = self.known().tracked.remove(key);
        gone.map(|gone| gone.manifest.bytes())
    }

    /// Wakes the items that there was no room for.
    pub(super) fn wake(&self) {
        let woken = std::mem::take(&mut self.known().without_room);
        woken.into_iter().for_each(|key| self.queue.wake(key));
    }

    fn known(&self) -> MutexGuard<'_, KnownItems> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether there is room for so many bytes more, where all namespaces have taken some, and this one: it has half of it at most (C-274).
///
/// # Errors
/// There is none.
fn has_room((taken, of_namespace): (u64, u64), more: u64, most: u64) -> Step<()> {
    if more <= room_of_one(most, taken, of_namespace) {
        return Ok(());
    }
    let message = format!(
        "the manifests of all items whose drift is looked for take more than {} MiB of memory, of which a namespace has half; leave \
         the drift of some items alone (spec.drift.policy: Ignore), or give the operator more memory",
        most >> 20
    );
    Err(Halt::Stall(Failure::new("Drift", "TooManyObjects", message).with_code(Code::ConfigurationProblem)))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use orangery_apply::Owner;
    use orangery_core::port::Clock;
    use orangery_proposal::{ClusterRef, ObjectKey, inventory::LocatedObject};
    use serde_json::json;

    use super::*;
    use crate::cache_memory::MOST_MANIFEST_BYTES;

    #[test]
    fn limits_drift_the_manifests_of_all_items_share_a_memory() {
        let refused = |taken, more| {
            has_room((taken, 0), more, MOST_MANIFEST_BYTES).err().map(|halt| halt.failure().unwrap().message.clone())
        };
        assert_eq!(refused(MOST_MANIFEST_BYTES - 1, 1), None);
        let message = "the manifests of all items whose drift is looked for take more than 256 MiB of memory, of which a namespace \
                       has half; leave the drift of some items alone (spec.drift.policy: Ignore), or give the operator more memory";
        assert_eq!(refused(MOST_MANIFEST_BYTES, 1).as_deref(), Some(message));
        assert_eq!(refused(u64::MAX, u64::MAX).as_deref(), Some(message));
        let less = has_room((1 << 20, 0), 1, 1 << 20).unwrap_err().failure().unwrap().message.clone();
        assert_eq!(less, message.replace("256", "1"));
    }

    #[test]
    fn c_274_limits_drift_one_namespace_has_half_of_the_memory() {
        let room = |taken, more| has_room(taken, more, 100).is_ok();
        assert!(room((0, 0), 50) && room((50, 0), 50) && room((50, 49), 1));
        assert!(!room((0, 0), 51) && !room((50, 50), 1) && !room((60, 0), 41));
    }

    /// A clock that stands still.
    struct Still;

    impl Clock for Still {
        fn now(&self) -> Timestamp {
            Timestamp::UNIX_EPOCH
        }
    }

    fn manifest() -> Arc<TrackedManifest> {
        let owner = Owner { namespace: "n".into(), name: "item".into(), uid: "u".to_owned(), cluster: None };
        let (namespace, name) = (Some("n".into()), "a".into());
        let key = ObjectKey { api_version: "v1".into(), kind: "ConfigMap".into(), namespace, name };
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "n"}});
        let write = serde_json::from_value(json!({"object": object, "how": "replace"})).unwrap();
        let clock: Arc<dyn Clock> = Arc::new(Still);
        let objects = vec![(LocatedObject { on: ClusterRef::Target, key }, write, None)];
        let clusters = BTreeMap::new();
        let rules = DriftRules::default();
        Arc::new(TrackedManifest::new(rules, (&owner, &[]), (&clock, Arc::new(|| {})), clusters, objects))
    }

    fn what() -> TrackedFor {
        TrackedFor {
            uid: "u".into(),
            job: "j".into(),
            rules: DriftRules::default(),
            networks: AllowedNetworks::default(),
            clusters: String::new(),
        }
    }

    #[test]
    fn c_274_manifests_of_other_items_count_and_those_of_the_namespace_for_its_half() {
        let one = manifest();
        let items = TrackedItems::new(4 * one.bytes(), Queue::default());
        let fits = |namespace: &'static str, name: &'static str| {
            items.insert(&Key::new(namespace, name), what(), &one).is_ok()
        };
        assert_eq!(["a", "b", "c"].map(|name| fits("n", name)), [true, true, false], "its namespace has half");
        assert_eq!(["a", "b"].map(|name| fits("m", name)), [true, true], "another one has the rest");
        assert!(!fits("o", "a"), "nothing is left");
        assert!(fits("n", "a"), "it takes its own place");
    }

    #[test]
    fn c_59_an_item_that_there_was_no_room_for_is_woken_when_another_one_leaves() {
        let queue = Queue::default();
        let one = manifest();
        let items = TrackedItems::new(2 * one.bytes(), queue.clone());
        let key = |name: &'static str| Key::new("n", name);
        assert!(items.insert(&key("a"), what(), &one).is_ok());
        assert!(items.insert(&key("a"), what(), &manifest()).is_ok(), "it takes its own place");
        assert!(
            items.insert(&key("b"), what(), &manifest()).is_err() && items.insert(&key("c"), what(), &one).is_err()
        );
        items.forget(&key("c"));
        assert_eq!(queue.counts().queued, 0, "nothing is free");
        assert_eq!((items.take_out(&key("a")), queue.counts().queued), (Some(one.bytes()), 0), "it is watched anew");
        assert!(items.insert(&key("a"), what(), &one).is_ok());
        items.forget(&key("a"));
        assert_eq!((queue.counts().queued, items.current(&key("a"), &what()).is_none()), (1, true));
        assert!(items.insert(&key("b"), what(), &one).is_ok());
        items.forget(&key("b"));
        assert_eq!(queue.counts().queued, 1, "nobody else waits");
    }
}
