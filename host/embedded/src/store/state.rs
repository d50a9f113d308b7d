//! What the store's lock guards: collections, indexes, and the changes on their way to the disk.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use tokio::sync::{mpsc, oneshot};

use super::{
    EventType, Expect, ObjectName, ObjectVersion, StoreChange, StoreKey, StoreWrite, StoreWriteError,
    disk::{DiskError, Line},
    resource_objects::ResourceObjects,
};

/// The collection of the namespaces, which creates look at.
const NAMESPACES: &str = "namespaces";

/// What the lifecycle of objects has to look at. Most changes need no note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Note {
    /// An object is gone.
    Gone { key: StoreKey, head: Box<super::ObjectHead> },
    /// Deletion was asked for, or the finalizers of an object under deletion changed.
    Deleting(StoreKey),
    /// An object has owners that it did not have before.
    Owned(StoreKey),
    /// A namespace is new.
    Namespace(StoreKey),
}

type Durable = oneshot::Receiver<Result<(), DiskError>>;

/// A change that is judged and numbered, and not yet durable.
#[derive(Debug)]
pub(super) struct Queued {
    key: StoreKey,
    entry: Arc<ObjectVersion>,
    deletes: bool,
    /// Told once.
    done: Option<oneshot::Sender<Result<(), DiskError>>>,
}

impl Queued {
    pub(super) fn line(&self) -> Line {
        let bytes = (!self.deletes).then(|| self.entry.bytes.clone());
        Line { key: self.key.clone(), revision: self.entry.revision, bytes }
    }

    fn tell(&mut self, result: Result<(), DiskError>) {
        if let Some(done) = self.done.take() {
            let _asker_is_gone = done.send(result);
        }
    }
}

#[derive(Debug)]
pub(super) struct StoreState {
    /// The last revision given out.
    revision: u64,
    /// The last revision that is visible.
    display: u64,
    /// What was there before this process: no history reaches further back.
    loaded: u64,
    collections: HashMap<Arc<str>, ResourceObjects>,
    by_uid: HashMap<Box<str>, StoreKey>,
    /// From the uid of an owner to what it owns.
    dependents: HashMap<Box<str>, BTreeSet<StoreKey>>,
    notes: mpsc::UnboundedSender<Note>,
    /// Changes for the disk; none in memory.
    queue: Option<Vec<Queued>>,
    /// The latest form of the objects in the queue; none for a deletion.
    pending: HashMap<StoreKey, (u64, Option<Arc<ObjectVersion>>)>,
    closing: bool,
    /// Why it is not known what the disk has. Nothing is accepted until it is.
    broken: Option<DiskError>,
}

impl StoreState {
    pub(super) fn new(revision: u64, notes: mpsc::UnboundedSender<Note>, queue: Option<Vec<Queued>>) -> Self {
        Self {
            revision,
            display: revision,
            loaded: revision,
            collections: HashMap::new(),
            by_uid: HashMap::new(),
            dependents: HashMap::new(),
            notes,
            queue,
            pending: HashMap::new(),
            closing: false,
            broken: None,
        }
    }

    /// Takes in an object that the disk held, with the notes its lifecycle may still need.
    pub(super) fn load(&mut self, key: StoreKey, entry: ObjectVersion) {
        let entry = Arc::new(entry);
        self.index(&key, &entry);
        self.note_change(&key, &entry, None);
        let name = key.name.clone();
        self.collection_mut(&key.collection).objects.insert(name, entry);
    }

    pub(super) fn display(&self) -> u64 {
        self.display
    }

    pub(super) fn collection(&self, collection: &str) -> Option<&ResourceObjects> {
        self.collections.get(collection)
    }

    /// The collection, made if nothing lay there yet.
    pub(super) fn collection_mut(&mut self, collection: &str) -> &mut ResourceObjects {
        let floor = self.loaded;
        self.collections.entry(collection.into()).or_insert_with(|| ResourceObjects::new(floor))
    }

    pub(super) fn latest(&self, key: &StoreKey) -> Option<Arc<ObjectVersion>> {
        match self.pending.get(key) {
            Some((_, latest)) => latest.clone(),
            None => self.collection(&key.collection)?.objects.get(&key.name).cloned(),
        }
    }

    pub(super) fn by_uid(&self, uid: &str) -> Option<&StoreKey> {
        self.by_uid.get(uid)
    }

    pub(super) fn dependents(&self, uid: &str) -> Vec<StoreKey> {
        self.dependents.get(uid).into_iter().flatten().cloned().collect()
    }

    pub(super) fn contents(&self, namespace: &str) -> Vec<StoreKey> {
        let in_collection = |(collection, stock): (&Arc<str>, &ResourceObjects)| {
            let key = |name: &ObjectName| StoreKey { collection: Arc::clone(collection), name: name.clone() };
            stock.range(Some(namespace), None).map(|(name, _)| key(name)).collect::<Vec<_>>()
        };
        self.collections.iter().flat_map(in_collection).collect()
    }

    pub(super) fn has_contents(&self, namespace: &str) -> bool {
        self.collections.values().any(|stock| stock.range(Some(namespace), None).next().is_some())
    }

    pub(super) fn census(&self) -> Vec<(Arc<str>, usize)> {
        let mut census: Vec<_> =
            self.collections.iter().map(|(collection, stock)| (Arc::clone(collection), stock.objects.len())).collect();
        census.sort();
        census
    }

    /// Judges a write and numbers it. In memory it is visible afterwards; else the receiver tells when.
    pub(super) fn accept(
        &mut self,
        write: StoreWrite,
    ) -> Result<(Arc<ObjectVersion>, Option<Durable>), StoreWriteError> {
        if let Some(broken) = &self.broken {
            return Err(StoreWriteError::Disk(broken.clone()));
        }
        if self.closing {
            return Err(StoreWriteError::Closed);
        }
        let StoreWrite { key, expect, object, deletes } = write;
        self.classify(&key, expect)?;
        self.revision += 1;
        let entry = Arc::new(ObjectVersion::encode(object, self.revision));
        let Some(queue) = &mut self.queue else {
            self.show(key, Arc::clone(&entry), deletes);
            return Ok((entry, None));
        };
        let (done, durable) = oneshot::channel();
        let latest = (!deletes).then(|| Arc::clone(&entry));
        self.pending.insert(key.clone(), (entry.revision, latest));
        queue.push(Queued { key, entry: Arc::clone(&entry), deletes, done: Some(done) });
        Ok((entry, Some(durable)))
    }

    fn classify(&self, key: &StoreKey, expect: Expect) -> Result<(), StoreWriteError> {
        match (expect, self.latest(key)) {
            (Expect::Absent, Some(_)) => Err(StoreWriteError::Exists),
            (Expect::Absent, None) if key.name.namespace.is_empty() => Ok(()),
            (Expect::Absent, None) => {
                let home = StoreKey { collection: NAMESPACES.into(), name: ObjectName::new("", &key.name.namespace) };
                match self.latest(&home) {
                    None => Err(StoreWriteError::NoNamespace),
                    Some(home) if home.head.deleting => Err(StoreWriteError::Terminating),
                    Some(_) => Ok(()),
                }
            }
            (Expect::Revision(expected), Some(entry)) if entry.revision == expected => Ok(()),
            (Expect::Revision(_), _) => Err(StoreWriteError::Stale),
        }
    }

    /// Makes a change visible: collection, indexes, watches, notes.
    fn show(&mut self, key: StoreKey, entry: Arc<ObjectVersion>, deletes: bool) {
        let previous =
            self.collection(&key.collection).and_then(|collection| collection.objects.get(&key.name)).cloned();
        if let Some(previous) = &previous {
            self.unindex(&key, previous);
        }
        let event_type = match (&previous, deletes) {
            (_, true) => EventType::Deleted,
            (None, false) => EventType::Added,
            (Some(_), false) => EventType::Modified,
        };
        if deletes {
            self.note(Note::Gone { key: key.clone(), head: Box::new(entry.head.clone()) });
        } else {
            self.index(&key, &entry);
            self.note_change(&key, &entry, previous.as_deref());
        }
        self.display = entry.revision;
        let change = StoreChange { event_type, name: key.name, entry, previous };
        self.collection_mut(&key.collection).record(Arc::new(change));
    }

    fn index(&mut self, key: &StoreKey, entry: &ObjectVersion) {
        self.by_uid.insert(entry.head.uid.clone(), key.clone());
        for owner in &entry.head.owners {
            self.dependents.entry(owner.clone()).or_default().insert(key.clone());
        }
    }

    fn unindex(&mut self, key: &StoreKey, entry: &ObjectVersion) {
        self.by_uid.remove(&entry.head.uid);
        for owner in &entry.head.owners {
            if let Some(owned) = self.dependents.get_mut(owner) {
                owned.remove(key);
                if owned.is_empty() {
                    self.dependents.remove(owner);
                }
            }
        }
    }

    fn note_change(&self, key: &StoreKey, entry: &ObjectVersion, previous: Option<&ObjectVersion>) {
        let (now, before) = (&entry.head, previous.map(|previous| &previous.head));
        if now.deleting && before.is_none_or(|before| !before.deleting || before.finalizers != now.finalizers) {
            self.note(Note::Deleting(key.clone()));
        }
        if !now.owners.is_empty() && before.is_none_or(|before| before.owners != now.owners) {
            self.note(Note::Owned(key.clone()));
        }
        if &*key.collection == NAMESPACES && previous.is_none() {
            self.note(Note::Namespace(key.clone()));
        }
    }

    fn note(&self, note: Note) {
        // Nobody listens any more while the server stops; the notes are made again from what is loaded next time.
        let _unheard = self.notes.send(note);
    }

    /// Whether the writer of the disk has nothing to do, not even to end.
    pub(super) fn is_idle(&self) -> bool {
        !self.closing && self.queue.as_ref().is_none_or(Vec::is_empty)
    }

    pub(super) fn take_batch(&mut self) -> Vec<Queued> {
        self.queue.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Shows a batch that is on disk.
    pub(super) fn complete(&mut self, batch: Vec<Queued>) {
        for mut queued in batch {
            let key = &queued.key;
            if self.pending.get(key).is_some_and(|(revision, _)| *revision == queued.entry.revision) {
                self.pending.remove(key);
            }
            self.show(queued.key.clone(), Arc::clone(&queued.entry), queued.deletes);
            queued.tell(Ok(()));
        }
    }

    /// Refuses a batch that could not be written, and what was queued on top of it. Where it is not certain that it is not on
    /// disk, it is answered, for [`Self::resolve`] to say, and nothing is accepted until then.
    pub(super) fn refuse(&mut self, mut batch: Vec<Queued>, error: &DiskError) -> Option<Vec<Queued>> {
        self.pending.clear();
        for mut queued in self.take_batch() {
            queued.tell(Err(DiskError { is_certain: true, ..error.clone() }));
        }
        for queued in &mut batch {
            queued.tell(Err(error.clone()));
        }
        self.broken = (!error.is_certain).then(|| error.clone());
        (!error.is_certain).then_some(batch)
    }

    /// It is known now whether a batch is on disk.
    pub(super) fn resolve(&mut self, batch: Vec<Queued>, is_on_disk: bool) {
        self.broken = None;
        if is_on_disk {
            self.complete(batch);
        }
    }

    pub(super) fn is_closing(&self) -> bool {
        self.closing
    }

    pub(super) fn close(&mut self) {
        self.closing = true;
    }
}
