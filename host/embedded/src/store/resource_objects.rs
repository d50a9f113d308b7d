//! All objects of one resource, and the recent changes to them.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use tokio::sync::watch;

use super::{ObjectName, ObjectVersion};

/// A collection remembers at most this many changes …
const MOST_CHANGES: usize = 8192;
/// … and at most this many bytes of them, but always the last few.
const MOST_BYTES: usize = 4 << 20;
const FEWEST_CHANGES: usize = 64;

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventType {
    Added,
    Modified,
    Deleted,
}

/// One change, as watches tell it.
#[derive(Debug)]
pub(crate) struct StoreChange {
    pub(crate) event_type: EventType,
    pub(crate) name: ObjectName,
    /// The object after the change; for a deletion its last form, under the deletion's revision.
    pub(crate) entry: Arc<ObjectVersion>,
    /// The object before the change: a watch with a selector tells a deletion when it stops to match.
    pub(crate) previous: Option<Arc<ObjectVersion>>,
}

#[derive(Debug)]
pub(crate) struct ResourceObjects {
    pub(crate) objects: BTreeMap<ObjectName, Arc<ObjectVersion>>,
    changes: VecDeque<Arc<StoreChange>>,
    bytes: usize,
    /// Changes up to and with this revision are forgotten.
    floor: u64,
    /// Tells watches that there is something new.
    pub(crate) bell: watch::Sender<u64>,
}

impl ResourceObjects {
    /// An empty collection whose history begins after `floor`.
    pub(crate) fn new(floor: u64) -> Self {
        let bell = watch::Sender::new(floor);
        Self { objects: BTreeMap::new(), changes: VecDeque::new(), bytes: 0, floor, bell }
    }

    /// Makes a change visible and remembers it.
    pub(crate) fn record(&mut self, change: Arc<StoreChange>) {
        match change.event_type {
            EventType::Added | EventType::Modified => {
                self.objects.insert(change.name.clone(), Arc::clone(&change.entry));
            }
            EventType::Deleted => {
                self.objects.remove(&change.name);
            }
        }
        self.bytes += change.entry.bytes.len();
        let revision = change.entry.revision;
        self.changes.push_back(change);
        while self.changes.len() > MOST_CHANGES || (self.bytes > MOST_BYTES && self.changes.len() > FEWEST_CHANGES) {
            let Some(oldest) = self.changes.pop_front() else { break };
            self.bytes -= oldest.entry.bytes.len();
            self.floor = oldest.entry.revision;
        }
        self.bell.send_replace(revision);
    }

    /// At most `most` changes after a revision, or the oldest revision one can still start from.
    pub(crate) fn changes_after(&self, revision: u64, most: usize) -> Result<Vec<Arc<StoreChange>>, u64> {
        if revision < self.floor {
            return Err(self.floor);
        }
        let start = self.changes.partition_point(|change| change.entry.revision <= revision);
        Ok(self.changes.range(start..).take(most).cloned().collect())
    }

    /// The objects of one namespace, or of all, in order, after a name.
    pub(crate) fn range<'a>(
        &'a self,
        namespace: Option<&'a str>,
        after: Option<&'a ObjectName>,
    ) -> impl Iterator<Item = (&'a ObjectName, &'a Arc<ObjectVersion>)> + 'a {
        use std::ops::Bound::{Excluded, Included, Unbounded};
        let start = match (after, namespace) {
            (Some(after), _) => Excluded(after.clone()),
            (None, Some(namespace)) => Included(ObjectName::new(namespace, "")),
            (None, None) => Unbounded,
        };
        let inside = move |name: &ObjectName| namespace.is_none_or(|namespace| &*name.namespace == namespace);
        self.objects.range((start, Unbounded)).take_while(move |(name, _)| inside(name))
    }
}
