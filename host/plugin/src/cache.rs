//! Compiled components on disk: `<sha256 of the component>-<engine>.cwasm`, and beside it its seal, a line of `sha256sum`.
//!
//! A compiled component is machine code, and loading a forged one is running it. So the folder must belong to us (or to
//! root, in an image) and be writable by nobody else; under that rule a seal need not be secret: it finds damage, and code
//! that was moved under the name of another component. What does not match its seal is compiled again.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt},
    path::{Path, PathBuf},
    process,
    sync::{Mutex, MutexGuard, PoisonError},
};

use orangery_core::digest;
use orangery_turns::Tenant;
use wasmtime::Engine;

use crate::{bundled::Shares, error::CacheError};

/// A folder of compiled components.
pub(crate) struct CompilationCache {
    folder: PathBuf,
    engine: String,
    /// The most bytes of code in the folder; `None` where those who fill it are trusted.
    most: Option<u64>,
    /// Protects whose the files are, by name: a namespace's whose component it was first, since the start. Held for one look-up.
    whose: Mutex<BTreeMap<OsString, Tenant>>,
}

impl CompilationCache {
    /// Opens the folder, and makes it where it is absent, for us alone.
    pub(crate) fn open(folder: PathBuf, engine: &Engine, most: Option<u64>) -> Result<Self, CacheError> {
        let unusable = |why: String| CacheError { folder: folder.clone(), why };
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&folder)
            .map_err(|error| unusable(format!("{error}; name another folder")))?;
        let found = fs::metadata(&folder).map_err(|error| unusable(error.to_string()))?;
        let us = rustix::process::geteuid().as_raw();
        if found.uid() != us && found.uid() != 0 {
            return Err(unusable(format!("it belongs to user {}, not to us; name another folder", found.uid())));
        }
        if found.mode() & 0o022 != 0 {
            return Err(unusable(format!("others may write to it; run `chmod go-w {}`", folder.display())));
        }
        if let Err(error) = fs::read_dir(&folder) {
            let whose = found.uid();
            return Err(unusable(format!(
                "{error}; run `chmod -R go=rX {}` as user {whose}, its owner",
                folder.display()
            )));
        }
        let mut hasher = DefaultHasher::new();
        engine.precompile_compatibility_hash().hash(&mut hasher);
        Ok(Self { folder, engine: format!("{:016x}", hasher.finish()), most, whose: Mutex::default() })
    }

    /// Where the code of a component is or would be.
    pub(crate) fn file(&self, digest: &str) -> PathBuf {
        self.folder.join(self.name(digest))
    }

    /// Bytes of the code of a component; `None` where there is none.
    pub(crate) fn size(&self, digest: &str) -> Option<u64> {
        fs::metadata(self.file(digest)).ok().map(|found| found.len())
    }

    /// The code of a component for one of a namespace; `None` where there is none, or it is damaged, which is logged.
    pub(crate) fn get(&self, digest: &str, tenant: &Tenant) -> Option<Vec<u8>> {
        let file = self.file(digest);
        let code = fs::read(&file).ok()?;
        match fs::read_to_string(seal_of(&file)) {
            Ok(seal) if seal == self.seal(digest, &code) => {
                self.used(digest, tenant);
                Some(code)
            }
            Ok(_) | Err(_) => {
                tracing::warn!(file = %file.display(), "a compiled component in the cache is damaged; it is compiled again");
                None
            }
        }
    }

    /// Keeps the code of a component of a namespace. A reader sees it whole or not at all.
    pub(crate) fn put(&self, digest: &str, tenant: &Tenant, code: &[u8]) -> Result<(), CacheError> {
        let file = self.file(digest);
        self.is_of(digest, tenant);
        let written = replace(&seal_of(&file), self.seal(digest, code).as_bytes()).and_then(|()| replace(&file, code));
        written.and_then(|()| self.make_room(&file)).map_err(|error| self.unusable(&error))
    }

    fn unusable(&self, error: &io::Error) -> CacheError {
        CacheError { folder: self.folder.clone(), why: error.to_string() }
    }

    /// The code of a component is used by a namespace, which may have it in memory.
    pub(crate) fn used(&self, digest: &str, tenant: &Tenant) {
        let file = self.file(digest);
        if self.most.is_some() && file.exists() {
            touch(&file);
            self.is_of(digest, tenant);
        }
    }

    /// The code of this component is a namespace's; where it is another one's already, it is everybody's from now on.
    fn is_of(&self, digest: &str, tenant: &Tenant) {
        if self.most.is_none() {
            return;
        }
        let mut whose = self.whose();
        let of = whose.entry(self.name(digest).into()).or_insert_with(|| tenant.clone());
        if of != tenant {
            *of = None;
        }
    }

    fn whose(&self) -> MutexGuard<'_, BTreeMap<OsString, Tenant>> {
        self.whose.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes what is one too many, as [`Shares`] says it, until the rest is small enough; `newest` stays.
    fn make_room(&self, newest: &Path) -> io::Result<()> {
        let Some(most) = self.most else { return Ok(()) };
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let path = entry.path();
            if path.extension().is_some_and(|ending| ending == "cwasm") && path != newest {
                let found = entry.metadata()?;
                files.push((found.modified()?, found.len(), path));
            }
        }
        files.sort();
        let whose = |path: &Path| self.whose().get(path.file_name()?).cloned().flatten();
        let mut shares = Shares::default();
        for (_, size, path) in &files {
            shares.add(whose(path), *size);
        }
        shares.add_newest(whose(newest), fs::metadata(newest)?.len());
        while shares.sum() > most
            && let Some(at) = shares.take_one()
            && let Some((_, _, path)) = files.get(at)
        {
            // The code first: a seal without code is no entry.
            fs::remove_file(path)?;
            fs::remove_file(seal_of(path)).or_else(absent_is_fine)?;
            path.file_name().and_then(|name| self.whose().remove(name));
        }
        Ok(())
    }

    fn name(&self, digest: &str) -> String {
        let hex = digest.strip_prefix("sha256:").unwrap_or(digest);
        format!("{hex}-{}.cwasm", self.engine)
    }

    fn seal(&self, digest: &str, code: &[u8]) -> String {
        let sum = digest::sha256(code);
        format!("{}  {}\n", sum.strip_prefix("sha256:").unwrap_or(&sum), self.name(digest))
    }
}

fn seal_of(file: &Path) -> PathBuf {
    file.with_extension("cwasm.sha256")
}

fn absent_is_fine(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
}

/// Marks a file as used now.
fn touch(file: &Path) {
    use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT};
    let at = |tv_nsec| Timespec { tv_sec: 0, tv_nsec };
    let times = Timestamps { last_access: at(UTIME_OMIT), last_modification: at(UTIME_NOW) };
    if let Err(error) = rustix::fs::utimensat(CWD, file, &times, AtFlags::empty()) {
        tracing::debug!(file = %file.display(), %error, "a compiled component is not marked as used; it may go early");
    }
}

/// Writes a file beside the place and moves it there.
fn replace(place: &Path, content: &[u8]) -> io::Result<()> {
    let draft = place.with_extension(format!("{}.draft", process::id()));
    fs::write(&draft, content).and_then(|()| fs::rename(&draft, place)).inspect_err(|_| {
        // The first error counts; a draft left behind is overwritten by the next one.
        let _left = fs::remove_file(&draft);
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use orangery_core::name::Namespace;

    use super::*;

    fn open(folder: &Path) -> Result<CompilationCache, CacheError> {
        CompilationCache::open(folder.to_path_buf(), &Engine::default(), None)
    }

    #[test]
    fn what_was_put_is_got_by_its_digest_alone() {
        let folder = tempfile::tempdir().unwrap();
        let cache = open(&folder.path().join("made/for/us")).unwrap();
        assert_eq!(fs::metadata(folder.path().join("made/for/us")).unwrap().mode() & 0o777, 0o700);
        cache.put("sha256:aa", &None, b"code").unwrap();
        assert_eq!(cache.get("sha256:aa", &None), Some(b"code".to_vec()));
        assert_eq!(cache.get("sha256:bb", &None), None);
        let names: Vec<_> = fs::read_dir(&cache.folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names.len(), 2, "{names:?}");
    }

    #[test]
    fn what_was_used_longest_ago_goes_when_the_folder_is_full() {
        let folder = tempfile::tempdir().unwrap();
        let cache = CompilationCache::open(folder.path().join("cache"), &Engine::default(), Some(10)).unwrap();
        for digest in ["sha256:aa", "sha256:bb"] {
            cache.put(digest, &None, b"four").unwrap();
            // Seconds are enough to tell them apart on every file system.
            age(&cache.file(digest), if digest == "sha256:aa" { 200 } else { 100 });
        }
        assert!(cache.get("sha256:aa", &None).is_some());
        cache.put("sha256:cc", &None, b"four").unwrap();
        let there = |digest: &str| cache.get(digest, &None).is_some();
        assert!(there("sha256:aa") && there("sha256:cc") && !there("sha256:bb"));
        assert!(!seal_of(&cache.file("sha256:bb")).exists());
        cache.put("sha256:dd", &None, b"more than fits at all").unwrap();
        assert!(there("sha256:dd") && !there("sha256:aa") && !there("sha256:cc"));
    }

    #[test]
    fn c_301_what_goes_is_of_the_namespace_that_keeps_the_most() {
        let folder = tempfile::tempdir().unwrap();
        let cache = CompilationCache::open(folder.path().join("cache"), &Engine::default(), Some(10)).unwrap();
        let (greedy, other) = (Some(Namespace::from_static("greedy")), Some(Namespace::from_static("other")));
        let there = || ["aa", "bb", "cc", "dd"].map(|hex| cache.size(&format!("sha256:{hex}")).is_some());
        cache.put("sha256:aa", &other, b"four").unwrap();
        age(&cache.file("sha256:aa"), 300);
        cache.put("sha256:bb", &greedy, b"four").unwrap();
        age(&cache.file("sha256:bb"), 200);
        cache.put("sha256:cc", &greedy, b"four").unwrap();
        assert_eq!(there(), [true, false, true, false], "its own goes, though another one was used longer ago");
        // What an earlier start has left is of nobody, until somebody uses it.
        let again = CompilationCache::open(folder.path().join("cache"), &Engine::default(), Some(8)).unwrap();
        assert_eq!(again.get("sha256:cc", &other), Some(b"four".to_vec()));
        again.put("sha256:dd", &other, b"four").unwrap();
        assert_eq!(there(), [true, false, false, true], "what the other namespace uses now counts as its own");
    }

    /// Has the file last used this many seconds ago, as seen from the file's own time.
    fn age(file: &Path, seconds: u64) {
        let opened = fs::File::options().write(true).open(file).unwrap();
        let now = opened.metadata().unwrap().modified().unwrap();
        opened.set_modified(now - std::time::Duration::from_secs(seconds)).unwrap();
    }

    #[test]
    fn code_that_was_changed_or_moved_is_not_got() {
        let folder = tempfile::tempdir().unwrap();
        let cache = open(&folder.path().join("cache")).unwrap();
        cache.put("sha256:aa", &None, b"code").unwrap();
        fs::write(cache.file("sha256:aa"), b"evil").unwrap();
        assert_eq!(cache.get("sha256:aa", &None), None);
        cache.put("sha256:aa", &None, b"code").unwrap();
        fs::copy(cache.file("sha256:aa"), cache.file("sha256:bb")).unwrap();
        fs::copy(seal_of(&cache.file("sha256:aa")), seal_of(&cache.file("sha256:bb"))).unwrap();
        assert_eq!(cache.get("sha256:bb", &None), None);
        fs::remove_file(seal_of(&cache.file("sha256:aa"))).unwrap();
        assert_eq!(cache.get("sha256:aa", &None), None);
    }

    #[test]
    fn a_folder_that_others_may_write_to_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let path = folder.path().display();
        assert_eq!(
            open(folder.path()).err().unwrap().to_string(),
            format!(
                "the cache of compiled components {path} cannot be used: others may write to it; run `chmod go-w {path}`"
            )
        );
    }
}
