//! All objects of one resource, and the recent changes to them.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use tokio::sync::watch;

use super::{ObjectName, ObjectVersion};

/// A collection remembers at most this many changes …
const MOST_CHANGES: usize = 8192;
/// … and at most this many bytes of them, but the last few …
const MOST_BYTES: usize = 4 << 20;
const FEWEST_CHANGES: usize = 64;
/// … as long as these have no more bytes than that, and the last one always (C-300).
const MOST_BYTES_OF_FEW: usize = 16 << 20;

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
        while self.remembers_too_much() {
            let Some(oldest) = self.changes.pop_front() else { break };
            self.bytes -= oldest.entry.bytes.len();
            self.floor = oldest.entry.revision;
        }
        self.bell.send_replace(revision);
    }

    fn remembers_too_much(&self) -> bool {
        let (count, bytes) = (self.changes.len(), self.bytes);
        count > MOST_CHANGES
            || (bytes > MOST_BYTES && count > FEWEST_CHANGES)
            || (bytes > MOST_BYTES_OF_FEW && count > 1)
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

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::store::ObjectHead;

    /// How many changes are remembered of those to objects of these lengths, one after the other.
    fn remembered(lengths: impl IntoIterator<Item = usize>) -> usize {
        let mut objects = ResourceObjects::new(0);
        for (revision, length) in (1..).zip(lengths) {
            let bytes = Bytes::from(vec![b' '; length]);
            let entry = Arc::new(ObjectVersion { revision, head: ObjectHead::default(), bytes });
            let name = ObjectName::new("", "name");
            objects.record(Arc::new(StoreChange { event_type: EventType::Modified, name, entry, previous: None }));
        }
        let floor = objects.changes_after(0, 0).err().unwrap_or_default();
        objects.changes_after(floor, usize::MAX).unwrap().len()
    }

    #[test]
    fn c_300_limits_embedded_what_a_kind_remembers_has_bytes() {
        let few = FEWEST_CHANGES;
        assert_eq!(remembered(vec![1; MOST_CHANGES + 1]), MOST_CHANGES);
        assert_eq!(remembered(vec![100 << 10; few + 1]), few, "the last few, beyond 4 MiB");
        assert_eq!(remembered(vec![3 << 20; few]), 5, "but no more than 16 MiB");
        assert_eq!(remembered([1, MOST_BYTES_OF_FEW + 1]), 1, "and the last one however long it is");
    }
}
