//! The objects, their revisions and the changes to them.
//!
//! One lock guards the collections. A write is judged under it against the latest state, gets its revision there, and
//! becomes visible once it is durable: at once in memory, after the next transaction on disk. A single thread writes
//! the disk and takes all that has queued up in one transaction, so that many writers share one flush.
//! Nothing here knows what an object means.

mod disk;
mod entry;
mod resource_objects;
mod state;

use std::{
    io,
    path::Path,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::JoinHandle,
    time::Duration,
};

use serde_json::Value;
use tokio::sync::{mpsc, oneshot, watch};

pub use self::disk::DataFolderError;
use self::{
    disk::{Disk, Line, LoadedObjects},
    state::{Queued, StoreState},
};
pub(crate) use self::{
    disk::{DiskError, write_whole},
    entry::{ObjectHead, ObjectName, ObjectVersion, StoreKey},
    resource_objects::{EventType, StoreChange},
    state::Note,
};

/// What a write expects to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expect {
    /// Nothing: a create. For a namespaced object the namespace must exist and not be terminating.
    Absent,
    /// The object as it was at this revision.
    Revision(u64),
}

/// One change asked of the store.
#[derive(Debug)]
pub(crate) struct StoreWrite {
    pub(crate) key: StoreKey,
    pub(crate) expect: Expect,
    /// The object's new form; for a deletion its last one.
    pub(crate) object: Value,
    pub(crate) deletes: bool,
}

/// Why the store does not do it.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum StoreWriteError {
    #[error("the object exists already")]
    Exists,
    #[error("the object changed or went away meanwhile")]
    Stale,
    #[error("the namespace does not exist")]
    NoNamespace,
    #[error("the namespace is being terminated")]
    Terminating,
    #[error("{}", disk_message(.0))]
    Disk(DiskError),
    #[error("the store was closed")]
    Closed,
}

fn disk_message(error: &DiskError) -> String {
    let DiskError { why, is_full, is_certain } = error;
    let what =
        if *is_certain { "nothing was written" } else { "whether it was written is known once it can be read again" };
    let how = if *is_full { "make room there" } else { "look after its disk" };
    format!("the data folder cannot be written at the moment: {why}; {what}; {how}, and the server goes on by itself")
}

/// A piece of a list.
#[derive(Debug)]
pub(crate) struct ListPage {
    /// The revision of the state that was listed.
    pub(crate) revision: u64,
    pub(crate) entries: Vec<(ObjectName, Arc<ObjectVersion>)>,
}

/// The store. Cheap to clone; all clones are one store.
#[derive(Clone, Debug)]
pub(crate) struct ObjectStore {
    shared: Arc<SharedStore>,
}

#[derive(Debug)]
struct SharedStore {
    /// Guards the collections, the indexes and the queue of the disk, all of which change together.
    state: Mutex<StoreState>,
    /// Tells the writer of the disk that something queued up, or that it is time to end.
    queued: Condvar,
    writer: Mutex<Option<JoinHandle<()>>>,
}

impl ObjectStore {
    /// An empty store in memory. The receiver is told what the lifecycle of objects needs to know.
    pub(crate) fn in_memory() -> (Self, mpsc::UnboundedReceiver<Note>) {
        let (notes, receiver) = mpsc::unbounded_channel();
        (Self::new(StoreState::new(0, notes, None)), receiver)
    }

    /// The store of a data folder.
    pub(crate) fn in_folder(folder: &Path) -> Result<(Self, mpsc::UnboundedReceiver<Note>), DataFolderError> {
        let (disk, loaded) = Disk::open(folder)?;
        let failed = |source| DataFolderError::File { file: folder.to_owned(), source };
        Self::on(disk, loaded).map_err(failed)
    }

    fn on(disk: Disk, loaded: LoadedObjects) -> io::Result<(Self, mpsc::UnboundedReceiver<Note>)> {
        let (notes, receiver) = mpsc::unbounded_channel();
        let mut state = StoreState::new(loaded.revision, notes, Some(Vec::new()));
        for (key, entry) in loaded.entries {
            state.load(key, entry);
        }
        let store = Self::new(state);
        let shared = Arc::clone(&store.shared);
        let writer = std::thread::Builder::new().name("store".to_owned()).spawn(move || write_out(&shared, disk))?;
        *store.shared.writer.lock().unwrap_or_else(PoisonError::into_inner) = Some(writer);
        Ok((store, receiver))
    }

    fn new(state: StoreState) -> Self {
        let shared = SharedStore { state: Mutex::new(state), queued: Condvar::new(), writer: Mutex::new(None) };
        Self { shared: Arc::new(shared) }
    }

    fn state(&self) -> MutexGuard<'_, StoreState> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The revision of the visible state.
    pub(crate) fn revision(&self) -> u64 {
        self.state().display()
    }

    /// The visible form of an object.
    pub(crate) fn get(&self, key: &StoreKey) -> Option<Arc<ObjectVersion>> {
        self.state().collection(&key.collection)?.objects.get(&key.name).cloned()
    }

    /// The form that the next write has to start from: also one that is on its way to the disk.
    pub(crate) fn latest(&self, key: &StoreKey) -> Option<Arc<ObjectVersion>> {
        self.state().latest(key)
    }

    /// Where the object with this uid lies.
    pub(crate) fn find(&self, uid: &str) -> Option<StoreKey> {
        self.state().by_uid(uid).cloned()
    }

    /// The objects that name this uid as an owner.
    pub(crate) fn dependents(&self, uid: &str) -> Vec<StoreKey> {
        self.state().dependents(uid)
    }

    /// Objects of a collection in order: of one namespace or all, after a name, for as long as `keep` wants more.
    pub(crate) fn list(&self, collection: &str, namespace: Option<&str>, after: Option<&ObjectName>) -> ListPage {
        let state = self.state();
        let entries = state.collection(collection).map(|collection| {
            collection.range(namespace, after).map(|(name, entry)| (name.clone(), Arc::clone(entry))).collect()
        });
        ListPage { revision: state.display(), entries: entries.unwrap_or_default() }
    }

    /// What lies in a namespace, on all collections.
    pub(crate) fn contents(&self, namespace: &str) -> Vec<StoreKey> {
        self.state().contents(namespace)
    }

    /// Whether anything lies in a namespace.
    pub(crate) fn has_contents(&self, namespace: &str) -> bool {
        self.state().has_contents(namespace)
    }

    /// How many objects each collection holds.
    pub(crate) fn census(&self) -> Vec<(Arc<str>, usize)> {
        self.state().census()
    }

    /// At most `most` changes of a collection after a revision; or the oldest revision one can still start from.
    pub(crate) fn changes_after(
        &self,
        collection: &str,
        revision: u64,
        most: usize,
    ) -> Result<Vec<Arc<StoreChange>>, u64> {
        let mut state = self.state();
        if revision > state.display() {
            return Err(state.display());
        }
        state.collection_mut(collection).changes_after(revision, most)
    }

    /// Rings at every change of a collection.
    pub(crate) fn bell(&self, collection: &str) -> watch::Receiver<u64> {
        self.state().collection_mut(collection).bell.subscribe()
    }

    /// Carries out a write, and answers once it is durable and visible.
    pub(crate) async fn write(&self, write: StoreWrite) -> Result<Arc<ObjectVersion>, StoreWriteError> {
        let (entry, durable) = {
            let mut state = self.state();
            state.accept(write)?
        };
        let Some(durable) = durable else { return Ok(entry) };
        self.shared.queued.notify_one();
        match durable.await {
            Ok(Ok(())) => Ok(entry),
            Ok(Err(error)) => Err(StoreWriteError::Disk(error)),
            Err(oneshot::error::RecvError { .. }) => Err(StoreWriteError::Closed),
        }
    }

    /// Ends the writer of the disk after all that has queued up. Blocks until then.
    pub(crate) fn close(&self) {
        self.state().close();
        self.shared.queued.notify_one();
        let writer = self.shared.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(writer) = writer
            && writer.join().is_err()
        {
            tracing::error!("the writer of the data folder ended with a panic");
        }
    }
}

/// How long it takes until a disk is looked at again that could not even be read.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// The thread that writes the disk.
fn write_out(shared: &SharedStore, mut disk: Disk) {
    let lock = || shared.state.lock().unwrap_or_else(PoisonError::into_inner);
    let lines = |batch: &[Queued]| batch.iter().map(Queued::line).collect::<Vec<Line>>();
    loop {
        let idle = |state: &mut StoreState| state.is_idle();
        let mut state = shared.queued.wait_while(lock(), idle).unwrap_or_else(PoisonError::into_inner);
        let batch = state.take_batch();
        drop(state);
        if batch.is_empty() {
            return;
        }
        let Err(error) = disk.write(&lines(&batch)) else {
            lock().complete(batch);
            continue;
        };
        tracing::error!("{}", disk_message(&error));
        let Some(uncertain) = lock().refuse(batch, &error) else { continue };
        let is_on_disk = loop {
            match disk.has(&lines(&uncertain)) {
                Ok(is_on_disk) => break is_on_disk,
                Err(error) => tracing::debug!(%error, "the data folder still cannot be read"),
            }
            let open = |state: &mut StoreState| !state.is_closing();
            let waited = shared.queued.wait_timeout_while(lock(), LOOK_AGAIN, open);
            if waited.unwrap_or_else(PoisonError::into_inner).0.is_closing() {
                return;
            }
        };
        lock().resolve(uncertain, is_on_disk);
    }
}

#[cfg(test)]
mod tests;
