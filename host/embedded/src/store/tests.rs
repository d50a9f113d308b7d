//! Disks that are full for a while: nothing is half written, nothing is lost that was acknowledged, and it goes on.

use std::sync::atomic::{AtomicBool, Ordering};

use redb::{Database, DatabaseError, StorageBackend, backends::InMemoryBackend};
use serde_json::json;

use super::*;

/// What a disk does not do.
#[derive(Debug, Default)]
struct Trouble {
    /// No write succeeds.
    writes: AtomicBool,
    /// No flush succeeds, though everything is written.
    flushes: AtomicBool,
}

/// A disk that outlives the database on it.
#[derive(Clone, Debug)]
struct TroubledDisk {
    content: Arc<InMemoryBackend>,
    trouble: Arc<Trouble>,
}

impl TroubledDisk {
    fn new() -> Self {
        Self { content: Arc::new(InMemoryBackend::new()), trouble: Arc::default() }
    }

    fn database(&self) -> Result<Database, DatabaseError> {
        redb::Builder::new().create_with_backend(self.clone())
    }

    /// A store on it, as after a start.
    fn store(&self) -> ObjectStore {
        let disk = self.clone();
        let folder = Path::new("folder");
        let (disk, loaded) = Disk::opened_by(Box::new(move || disk.database()), folder, folder).unwrap();
        ObjectStore::on(disk, loaded).unwrap().0
    }
}

fn full(is_so: &AtomicBool) -> io::Result<()> {
    if is_so.load(Ordering::SeqCst) { Err(io::Error::from(io::ErrorKind::StorageFull)) } else { Ok(()) }
}

impl StorageBackend for TroubledDisk {
    fn len(&self) -> io::Result<u64> {
        self.content.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.content.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        full(&self.trouble.writes)?;
        self.content.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        full(&self.trouble.flushes)?;
        self.content.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        full(&self.trouble.writes)?;
        self.content.write(offset, data)
    }
}

fn key(name: &str) -> StoreKey {
    StoreKey { collection: "things".into(), name: ObjectName::new("", name) }
}

async fn put(store: &ObjectStore, name: &str) -> Result<u64, StoreWriteError> {
    let object = json!({"metadata": {"name": name, "uid": name}, "data": {"k": "x".repeat(100_000)}});
    let write = StoreWrite { key: key(name), expect: Expect::Absent, object, deletes: false };
    store.write(write).await.map(|entry| entry.revision)
}

/// The names that a store has.
fn names(store: &ObjectStore) -> Vec<String> {
    store.list("things", None, None).entries.into_iter().map(|(name, _)| name.name.to_string()).collect()
}

#[tokio::test]
async fn c_108_after_a_full_disk_the_server_goes_on_and_nothing_is_half_written() {
    let disk = TroubledDisk::new();
    let store = disk.store();
    put(&store, "before").await.unwrap();
    disk.trouble.writes.store(true, Ordering::SeqCst);
    for name in ["refused", "refused-too"] {
        let refused = put(&store, name).await.unwrap_err().to_string();
        assert!(refused.starts_with("the data folder cannot be written at the moment: "), "{refused}");
        assert!(refused.ends_with("make room there, and the server goes on by itself"), "{refused}");
    }
    assert_eq!(names(&store), ["before"]);
    disk.trouble.writes.store(false, Ordering::SeqCst);
    let after = loop {
        match put(&store, "after").await {
            Ok(revision) => break revision,
            // What could not be read is looked at again in a moment.
            Err(error) => assert!(matches!(error, StoreWriteError::Disk(_)), "{error}"),
        }
        tokio::task::yield_now().await;
    };
    assert_eq!((names(&store), store.revision()), (vec!["after".to_owned(), "before".to_owned()], after));
    store.close();
    let again = disk.store();
    assert_eq!((names(&again), again.revision()), (vec!["after".to_owned(), "before".to_owned()], after));
}

#[tokio::test]
async fn c_108_what_was_written_although_the_disk_said_no_is_shown_as_soon_as_that_is_known() {
    let disk = TroubledDisk::new();
    let store = disk.store();
    put(&store, "before").await.unwrap();
    disk.trouble.flushes.store(true, Ordering::SeqCst);
    let StoreWriteError::Disk(error) = put(&store, "unknown").await.unwrap_err() else {
        panic!("the disk is to blame")
    };
    assert_eq!((error.is_full, error.is_certain), (true, false));
    let refused = put(&store, "refused").await.unwrap_err();
    assert_eq!(refused, StoreWriteError::Disk(error), "nothing is judged by a state that is not known");
    assert_eq!(names(&store), ["before"]);
    disk.trouble.flushes.store(false, Ordering::SeqCst);
    while put(&store, "after").await.is_err() {
        tokio::task::yield_now().await;
    }
    let shown = names(&store);
    assert!(shown.contains(&"after".to_owned()) && !shown.contains(&"refused".to_owned()), "{shown:?}");
    store.close();
    assert_eq!(names(&disk.store()), shown, "the file and the memory agree");
}
