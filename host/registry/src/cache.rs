//! What was fetched, on disk: bounded in bytes, shared by jobs, kept over restarts.
//!
//! A blob is kept under its digest and the place it came from: who only knows a digest gets nothing, however the place
//! that he names calls it. Beside blobs there are [`answers`], for those who gave the same credentials.
//!
//! A file is written beside its place, synced and renamed: after a crash it is there as a whole or not at all. What is
//! read is compared with its digest, so that a torn or altered file is fetched again.

mod answers;
#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};

use orangery_core::{
    digest::content::{Algorithm, ContentDigest},
    error::{Code, Fault},
};
use orangery_ocm::AllowedSources;
use orangery_turns::{Tenant, blocking};
use rustix::fs::{Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, futimens};

use crate::oci::{Client, Flights, HeldMemory, Keyring, ReservedContent};

/// The bytes of one blob, held once however many use them.
pub(crate) type Bytes = Arc<Vec<u8>>;

/// What a file of the cache counts at least: small files take a block of the disk all the same.
const BLOCK: u64 = 4096;

/// A file, its digest, and who asks for it.
type ContentQuestion = (String, ContentDigest, Arc<AllowedSources>, Tenant);

/// A cache in one folder.
pub(crate) struct ContentCache {
    folder: PathBuf,
    /// Bytes of all files.
    most: u64,
    index: Mutex<CacheIndex>,
    /// By file and by who asks: an error names the credentials of the one who asked, and a namespace waits for memory of its own.
    flights: Flights<ContentQuestion, Result<ReservedContent, Fault>>,
    /// Names of answers are made with it.
    key: ring::hmac::Key,
}

/// What there is: sizes by name, and the order of use. Whoever fetches chooses how many files there are, so nothing looks through
/// all of them.
#[derive(Default)]
struct CacheIndex {
    files: BTreeMap<String, CacheEntry>,
    /// The names, by when each was used last.
    by_use: BTreeMap<u64, String>,
    total: u64,
    clock: u64,
}

struct CacheEntry {
    size: u64,
    used: u64,
}

/// A blob of one place.
pub(crate) struct Blob<'a> {
    /// The repository or archive it is from. What was fetched from one place is never given to who names another.
    pub(crate) place: &'a str,
    /// Its digest.
    pub(crate) digest: &'a ContentDigest,
    /// The caller, by the fingerprint of the credentials.
    pub(crate) asker: &'a ContentDigest,
    /// What the policies of the caller say: what they refuse is told to nobody else.
    pub(crate) sources: Arc<AllowedSources>,
    /// For which namespace it is fetched: nobody waits until another one has memory for it.
    pub(crate) tenant: &'a Tenant,
    /// What gives room in memory to content that is on disk; none for content of this machine.
    pub(crate) client: Option<&'a Client>,
}

impl<'a> Blob<'a> {
    /// One that a registry has, for who may ask it with this keyring.
    pub(crate) fn of(
        (place, digest): (&'a str, &'a ContentDigest),
        (asker, keyring): (&'a ContentDigest, &'a Keyring),
        client: &'a Client,
    ) -> Self {
        let (sources, tenant) = (keyring.sources(), keyring.tenant());
        Self { place, digest, asker, sources, tenant, client: Some(client) }
    }

    fn file(&self) -> String {
        let place = ContentDigest::of(Algorithm::Sha256, self.place.as_bytes());
        let short: String = place.hex().chars().take(32).collect();
        format!("{short}.{}", self.digest.to_string().replacen(':', ".", 1))
    }
}

impl ContentCache {
    /// Opens a folder, makes it where it is missing, and forgets what does not fit.
    pub(crate) fn open(folder: &Path, most: u64) -> io::Result<Self> {
        // What is kept was fetched with credentials: it is for this user.
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder.join("unfinished"))?;
        for left in fs::read_dir(folder.join("unfinished"))? {
            fs::remove_file(left?.path())?;
        }
        let mut found: Vec<(SystemTime, String, u64)> = Vec::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let data = entry.metadata()?;
            if let Ok(name) = entry.file_name().into_string()
                && data.is_file()
                && name != answers::KEY
            {
                found.push((data.modified()?, name, data.len()));
            }
        }
        found.sort();
        let mut index = CacheIndex::default();
        for (_, name, size) in found {
            index.add(name, size);
        }
        let key = answers::key(folder)?;
        let (index, flights) = (Mutex::new(index), Flights::new());
        let cache = Self { folder: folder.to_owned(), most, index, flights, key };
        cache.make_room().iter().for_each(|file| cache.remove(file));
        Ok(cache)
    }

    /// The content of a blob: from disk, or fetched and then on disk. Those who ask with the same credentials at the same
    /// time share one fetch. `fetch` has checked nothing: the digest is compared here.
    ///
    /// What is read from disk waits for its room in memory as what a server sends does.
    pub(crate) async fn blob<F>(&self, blob: &Blob<'_>, fetch: impl FnOnce() -> F) -> Result<ReservedContent, Fault>
    where
        F: Future<Output = Result<ReservedContent, Fault>>,
    {
        let file = blob.file();
        let ask = || async {
            if let Some(content) = self.kept(blob, &file).await? {
                return Ok(content);
            }
            self.keep(blob, fetch().await?).await
        };
        let key = (file.clone(), blob.asker.clone(), Arc::clone(&blob.sources), blob.tenant.clone());
        self.flights.join(key, ask).await
    }

    /// The content of a blob that is on disk, without room in memory.
    pub(crate) async fn at_hand(&self, blob: &Blob<'_>) -> Option<ReservedContent> {
        self.read_blob(blob, &blob.file(), HeldMemory::default()).await
    }

    /// What is on disk.
    async fn kept(&self, blob: &Blob<'_>, file: &str) -> Result<Option<ReservedContent>, Fault> {
        let Some(size) = self.lock().use_now(file) else { return Ok(None) };
        let memory = match blob.client {
            Some(client) => client.reserve(size, blob.tenant, &format!("the blob {}", blob.digest)).await?,
            None => HeldMemory::default(),
        };
        Ok(self.read_blob(blob, file, memory).await)
    }

    async fn read_blob(&self, blob: &Blob<'_>, file: &str, memory: HeldMemory) -> Option<ReservedContent> {
        let wanted = blob.digest.clone();
        let whole = move |bytes: Vec<u8>| {
            let found = ContentDigest::of(wanted.algorithm(), &bytes);
            if found == wanted { Some(bytes) } else { None }
        };
        self.read(file, whole).await.map(|bytes| ReservedContent::new(bytes, memory))
    }

    /// Keeps what was fetched, once its digest has been compared.
    pub(crate) async fn keep(&self, blob: &Blob<'_>, content: ReservedContent) -> Result<ReservedContent, Fault> {
        let digest = blob.digest;
        let found = ContentDigest::of(digest.algorithm(), content.bytes());
        if found != *digest {
            let message = format!("the blob {digest} has another content: its digest is {found}; push it again");
            return Err(Fault::invalid(Code::ConfigurationProblem, message));
        }
        if let Err(error) = self.write(&blob.file(), content.bytes()).await {
            // The job needs the content, not the cache.
            tracing::warn!(%digest, %error, "a blob cannot be kept in the cache");
        }
        Ok(content)
    }

    /// A file, where it is there and `whole` takes it for what it should be.
    async fn read(
        &self,
        file: &str,
        whole: impl FnOnce(Vec<u8>) -> Option<Vec<u8>> + Send + 'static,
    ) -> Option<Vec<u8>> {
        self.lock().use_now(file)?;
        let path = self.folder.join(file);
        let read = blocking(move || {
            let bytes = whole(fs::read(&path)?);
            let bytes = bytes.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "its content was changed"))?;
            // The order of use outlives this process in the times of the files.
            touch(&fs::File::options().append(true).open(&path)?)?;
            Ok::<_, io::Error>(bytes)
        });
        match read.await {
            Ok(Ok(bytes)) => Some(bytes),
            Ok(Err(error)) => {
                tracing::warn!(file, %error, "a file of the cache is unusable and is fetched again");
                self.forget(file);
                None
            }
            Err(_) => None,
        }
    }

    async fn write(&self, file: &str, bytes: &Bytes) -> io::Result<()> {
        let size = bytes.len() as u64;
        if size.max(BLOCK) > self.most {
            return Ok(());
        }
        let number = self.lock().tick();
        let unfinished = self.folder.join("unfinished").join(format!("{}-{number}", std::process::id()));
        let (bytes, place) = (Bytes::clone(bytes), unfinished.clone());
        let written = blocking(move || {
            let written = write_new(&place, &bytes);
            // It may not be there; the next start removes what is left.
            written.inspect_err(|_| drop(fs::remove_file(&place)))
        });
        written.await.map_err(io::Error::other).flatten()?;
        // Whoever asked may go at any time: what is at its place is known from then on.
        fs::rename(&unfinished, self.folder.join(file))?;
        self.lock().add(file.to_owned(), size);
        let (folder, gone) = (self.folder.clone(), self.make_room());
        let tidied = blocking(move || {
            gone.iter().for_each(|file| remove(&folder, file));
            fs::File::open(folder)?.sync_all()
        });
        tidied.await.map_err(io::Error::other).flatten()
    }

    /// Forgets what was used longest ago, until the rest fits, and answers what is to be removed.
    fn make_room(&self) -> Vec<String> {
        self.lock().make_room(self.most)
    }

    fn forget(&self, file: &str) {
        self.lock().remove(file);
        self.remove(file);
    }

    fn remove(&self, file: &str) {
        remove(&self.folder, file);
    }

    fn lock(&self) -> MutexGuard<'_, CacheIndex> {
        // The index is whole between any two statements that hold it.
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn remove(folder: &Path, file: &str) {
    match fs::remove_file(folder.join(file)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(file, %error, "a file of the cache cannot be removed");
        }
        Ok(()) | Err(_) => {}
    }
}

/// Writes a file that is not there, for this user alone.
fn write_new(place: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(place)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Sets the time of a file to that of its file system, now.
fn touch(file: &fs::File) -> io::Result<()> {
    let moment = |nanoseconds| Timespec { tv_sec: 0, tv_nsec: nanoseconds };
    let times = Timestamps { last_access: moment(UTIME_OMIT), last_modification: moment(UTIME_NOW) };
    Ok(futimens(file, &times)?)
}

impl CacheIndex {
    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    fn add(&mut self, file: String, size: u64) {
        self.remove(&file);
        let (size, used) = (size.max(BLOCK), self.tick());
        self.by_use.insert(used, file.clone());
        self.files.insert(file, CacheEntry { size, used });
        self.total += size;
    }

    /// Uses a file, and answers what it counts.
    fn use_now(&mut self, file: &str) -> Option<u64> {
        let used = self.tick();
        let known = self.files.get_mut(file)?;
        let name = self.by_use.remove(&known.used)?;
        known.used = used;
        self.by_use.insert(used, name);
        Some(known.size)
    }

    fn remove(&mut self, file: &str) {
        if let Some(known) = self.files.remove(file) {
            self.by_use.remove(&known.used);
            self.total -= known.size;
        }
    }

    fn make_room(&mut self, most: u64) -> Vec<String> {
        let mut gone = Vec::new();
        while self.total > most
            && let Some((_, oldest)) = self.by_use.pop_first()
        {
            self.remove(&oldest);
            gone.push(oldest);
        }
        gone
    }
}
