//! Content by its digest, on disk: bounded in bytes, shared by jobs, kept over restarts.
//!
//! A file is written beside its place, synced and renamed: after a crash it is there as a whole or not at all. What is
//! read is compared with its digest, so that a torn or altered file is fetched again.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};

use orangery_core::{
    digest::content::{ContentDigest, Hasher},
    error::{Code, Fault},
};
use rustix::fs::{Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, futimens};
use tokio::io::AsyncWriteExt;

use crate::oci::Flights;

/// The bytes of one blob.
pub(crate) type Bytes = Arc<[u8]>;

/// A cache in one folder.
pub(crate) struct Cache {
    folder: PathBuf,
    /// Bytes of all files.
    most: u64,
    index: Mutex<Index>,
    flights: Flights<ContentDigest, Result<Bytes, Fault>>,
}

/// What there is: sizes by digest, and the order of use.
#[derive(Default)]
struct Index {
    files: BTreeMap<ContentDigest, Known>,
    total: u64,
    clock: u64,
}

struct Known {
    size: u64,
    used: u64,
}

impl Cache {
    /// Opens a folder, makes it where it is missing, and forgets what does not fit.
    pub(crate) fn open(folder: &Path, most: u64) -> io::Result<Self> {
        fs::create_dir_all(folder.join("unfinished"))?;
        for left in fs::read_dir(folder.join("unfinished"))? {
            fs::remove_file(left?.path())?;
        }
        let mut found: Vec<(SystemTime, ContentDigest, u64)> = Vec::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let (name, data) = (entry.file_name(), entry.metadata()?);
            let digest = name.to_str().and_then(|name| name.replacen('.', ":", 1).parse().ok());
            if let Some(digest) = digest.filter(|_| data.is_file()) {
                found.push((data.modified()?, digest, data.len()));
            }
        }
        found.sort();
        let mut index = Index::default();
        for (_, digest, size) in found {
            index.add(digest, size);
        }
        let cache = Self { folder: folder.to_owned(), most, index: Mutex::new(index), flights: Flights::new() };
        cache.shrink();
        Ok(cache)
    }

    /// The content of a digest: from disk, or fetched and then on disk. Those who ask at the same time share one
    /// fetch. `fetch` has checked nothing: digest and size are compared here.
    pub(crate) async fn get<F>(&self, digest: &ContentDigest, fetch: impl FnOnce() -> F) -> Result<Bytes, Fault>
    where
        F: Future<Output = Result<Vec<u8>, Fault>>,
    {
        let ask = || async {
            if let Some(bytes) = self.read(digest).await {
                return Ok(bytes);
            }
            let bytes = fetch().await?;
            let found = ContentDigest::of(digest.algorithm(), &bytes);
            if found != *digest {
                let message = format!("the blob {digest} has another content: its digest is {found}; push it again");
                return Err(Fault::invalid(Code::ConfigurationProblem, message));
            }
            let bytes = Bytes::from(bytes);
            if let Err(error) = self.write(digest, Arc::clone(&bytes)).await {
                // The job needs the content, not the cache.
                tracing::warn!(%digest, %error, "a blob cannot be kept in the cache");
            }
            Ok(bytes)
        };
        self.flights.join(digest.clone(), ask).await
    }

    async fn read(&self, digest: &ContentDigest) -> Option<Bytes> {
        self.lock().use_now(digest)?;
        let (path, wanted) = (self.path(digest), digest.clone());
        let read = tokio::task::spawn_blocking(move || {
            let bytes = fs::read(&path)?;
            let mut hasher = Hasher::new(wanted.algorithm());
            hasher.update(&bytes);
            if hasher.finish() != wanted {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "its content has another digest"));
            }
            // The order of use outlives this process in the times of the files.
            touch(&fs::File::options().append(true).open(&path)?)?;
            Ok(Bytes::from(bytes))
        });
        match read.await {
            Ok(Ok(bytes)) => Some(bytes),
            Ok(Err(error)) => {
                tracing::warn!(%digest, %error, "a blob of the cache is unusable and is fetched again");
                self.forget(digest);
                None
            }
            Err(_) => None,
        }
    }

    async fn write(&self, digest: &ContentDigest, bytes: Bytes) -> io::Result<()> {
        let size = bytes.len() as u64;
        if size > self.most {
            return Ok(());
        }
        let number = self.lock().tick();
        let unfinished = self.folder.join("unfinished").join(format!("{}-{number}", std::process::id()));
        let written = async {
            let mut file = tokio::fs::File::create(&unfinished).await?;
            file.write_all(&bytes).await?;
            file.sync_all().await?;
            tokio::fs::rename(&unfinished, self.path(digest)).await?;
            tokio::fs::File::open(&self.folder).await?.sync_all().await
        };
        if let Err(error) = written.await {
            // It may not be there; the next start removes what is left.
            tokio::fs::remove_file(&unfinished).await.ok();
            return Err(error);
        }
        self.lock().add(digest.clone(), size);
        self.shrink();
        Ok(())
    }

    /// Removes what was used longest ago, until the rest fits.
    fn shrink(&self) {
        loop {
            let mut index = self.lock();
            if index.total <= self.most {
                return;
            }
            let oldest = index.files.iter().min_by_key(|(_, known)| known.used).map(|(digest, _)| digest.clone());
            let Some(oldest) = oldest else { return };
            index.remove(&oldest);
            drop(index);
            self.remove(&oldest);
        }
    }

    fn forget(&self, digest: &ContentDigest) {
        self.lock().remove(digest);
        self.remove(digest);
    }

    fn remove(&self, digest: &ContentDigest) {
        match fs::remove_file(self.path(digest)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(%digest, %error, "a blob of the cache cannot be removed");
            }
            Ok(()) | Err(_) => {}
        }
    }

    fn path(&self, digest: &ContentDigest) -> PathBuf {
        self.folder.join(digest.to_string().replacen(':', ".", 1))
    }

    fn lock(&self) -> MutexGuard<'_, Index> {
        // The index is whole between any two statements that hold it.
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sets the time of a file to that of its file system, now.
fn touch(file: &fs::File) -> io::Result<()> {
    let moment = |nanoseconds| Timespec { tv_sec: 0, tv_nsec: nanoseconds };
    let times = Timestamps { last_access: moment(UTIME_OMIT), last_modification: moment(UTIME_NOW) };
    Ok(futimens(file, &times)?)
}

impl Index {
    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    fn add(&mut self, digest: ContentDigest, size: u64) {
        let used = self.tick();
        let before = self.files.insert(digest, Known { size, used });
        self.total = self.total + size - before.map_or(0, |known| known.size);
    }

    fn use_now(&mut self, digest: &ContentDigest) -> Option<()> {
        let used = self.tick();
        self.files.get_mut(digest)?.used = used;
        Some(())
    }

    fn remove(&mut self, digest: &ContentDigest) {
        self.total -= self.files.remove(digest).map_or(0, |known| known.size);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use orangery_core::digest::content::Algorithm;

    use super::*;

    fn digest(content: &[u8]) -> ContentDigest {
        ContentDigest::of(Algorithm::Sha256, content)
    }

    /// Asks for a content; whether it had to be fetched.
    async fn fetched(cache: &Cache, content: &'static [u8]) -> bool {
        let count = AtomicUsize::new(0);
        let fetch = || async {
            count.fetch_add(1, Ordering::SeqCst);
            Ok(content.to_vec())
        };
        let got = cache.get(&digest(content), fetch).await.unwrap();
        assert_eq!(&*got, content);
        count.into_inner() == 1
    }

    #[tokio::test]
    async fn a_blob_is_fetched_once_also_over_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(folder.path(), 100).unwrap();
        assert!(fetched(&cache, b"abc").await);
        assert!(!fetched(&cache, b"abc").await);
        let cache = Cache::open(folder.path(), 100).unwrap();
        assert!(!fetched(&cache, b"abc").await);
    }

    #[tokio::test]
    async fn a_torn_or_altered_file_is_fetched_again() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(folder.path(), 100).unwrap();
        assert!(fetched(&cache, b"abcdef").await);
        for torn in [&b"abc"[..], b"abcdeX"] {
            fs::write(cache.path(&digest(b"abcdef")), torn).unwrap();
            assert!(fetched(&cache, b"abcdef").await);
            assert!(!fetched(&cache, b"abcdef").await);
        }
        fs::remove_file(cache.path(&digest(b"abcdef"))).unwrap();
        assert!(fetched(&cache, b"abcdef").await);
    }

    #[tokio::test]
    async fn what_was_used_longest_ago_makes_room() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(folder.path(), 8).unwrap();
        assert!(fetched(&cache, b"one").await);
        assert!(fetched(&cache, b"two").await);
        assert!(!fetched(&cache, b"one").await);
        assert!(fetched(&cache, b"three").await);
        assert!(!cache.path(&digest(b"two")).exists());
        assert!(!fetched(&cache, b"one").await);
        assert!(fetched(&cache, b"more than all of it").await);
        assert!(!fetched(&cache, b"one").await, "what never fits pushes nothing out");
        drop(cache);
        let smaller = Cache::open(folder.path(), 3).unwrap();
        assert!(!fetched(&smaller, b"one").await, "a smaller bound keeps what was used last");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[tokio::test]
    async fn what_a_crash_left_is_removed_at_the_start() {
        let folder = tempfile::tempdir().unwrap();
        drop(Cache::open(folder.path(), 8).unwrap());
        fs::write(folder.path().join("unfinished").join("1-1"), "half").unwrap();
        drop(Cache::open(folder.path(), 8).unwrap());
        assert_eq!(fs::read_dir(folder.path().join("unfinished")).unwrap().count(), 0);
    }

    #[tokio::test]
    async fn another_content_than_its_digest_is_refused_and_not_kept() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(folder.path(), 100).unwrap();
        let told = cache.get(&digest(b"abc"), || async { Ok(b"evil".to_vec()) }).await.unwrap_err();
        assert_eq!(
            told.to_string(),
            format!(
                "the blob {} has another content: its digest is {}; push it again",
                digest(b"abc"),
                digest(b"evil")
            )
        );
        assert!(fetched(&cache, b"abc").await);
    }
}
