//! Compiled components on disk: `<sha256 of the component>-<engine>.cwasm`, and beside it its seal, a line of `sha256sum`.
//!
//! A compiled component is machine code, and loading a forged one is running it. So the folder must belong to us (or to
//! root, in an image) and be writable by nobody else; under that rule a seal need not be secret: it finds damage, and code
//! that was moved under the name of another component. What does not match its seal is compiled again.

use std::{
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt},
    path::{Path, PathBuf},
    process,
};

use orangery_core::digest;
use wasmtime::Engine;

use crate::error::CacheError;

/// A folder of compiled components.
pub(crate) struct Cache {
    folder: PathBuf,
    engine: String,
}

impl Cache {
    /// Opens the folder, and makes it where it is absent, for us alone.
    pub(crate) fn open(folder: PathBuf, engine: &Engine) -> Result<Self, CacheError> {
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
        let mut hasher = DefaultHasher::new();
        engine.precompile_compatibility_hash().hash(&mut hasher);
        Ok(Self { folder, engine: format!("{:016x}", hasher.finish()) })
    }

    /// Where the code of a component is or would be.
    pub(crate) fn file(&self, digest: &str) -> PathBuf {
        self.folder.join(self.name(digest))
    }

    /// The code of a component; `None` where there is none, or it is damaged, which is logged.
    pub(crate) fn get(&self, digest: &str) -> Option<Vec<u8>> {
        let file = self.file(digest);
        let code = fs::read(&file).ok()?;
        match fs::read_to_string(seal_of(&file)) {
            Ok(seal) if seal == self.seal(digest, &code) => Some(code),
            Ok(_) | Err(_) => {
                tracing::warn!(file = %file.display(), "a compiled component in the cache is damaged; it is compiled again");
                None
            }
        }
    }

    /// Keeps the code of a component. A reader sees it whole or not at all.
    pub(crate) fn put(&self, digest: &str, code: &[u8]) -> Result<(), CacheError> {
        let file = self.file(digest);
        let written = replace(&seal_of(&file), self.seal(digest, code).as_bytes()).and_then(|()| replace(&file, code));
        written.map_err(|error| CacheError { folder: self.folder.clone(), why: error.to_string() })
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

    use super::*;

    fn open(folder: &Path) -> Result<Cache, CacheError> {
        Cache::open(folder.to_path_buf(), &Engine::default())
    }

    #[test]
    fn what_was_put_is_got_by_its_digest_alone() {
        let folder = tempfile::tempdir().unwrap();
        let cache = open(&folder.path().join("made/for/us")).unwrap();
        assert_eq!(fs::metadata(folder.path().join("made/for/us")).unwrap().mode() & 0o777, 0o700);
        cache.put("sha256:aa", b"code").unwrap();
        assert_eq!(cache.get("sha256:aa"), Some(b"code".to_vec()));
        assert_eq!(cache.get("sha256:bb"), None);
        let names: Vec<_> = fs::read_dir(&cache.folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names.len(), 2, "{names:?}");
    }

    #[test]
    fn code_that_was_changed_or_moved_is_not_got() {
        let folder = tempfile::tempdir().unwrap();
        let cache = open(&folder.path().join("cache")).unwrap();
        cache.put("sha256:aa", b"code").unwrap();
        fs::write(cache.file("sha256:aa"), b"evil").unwrap();
        assert_eq!(cache.get("sha256:aa"), None);
        cache.put("sha256:aa", b"code").unwrap();
        fs::copy(cache.file("sha256:aa"), cache.file("sha256:bb")).unwrap();
        fs::copy(seal_of(&cache.file("sha256:aa")), seal_of(&cache.file("sha256:bb"))).unwrap();
        assert_eq!(cache.get("sha256:bb"), None);
        fs::remove_file(seal_of(&cache.file("sha256:aa"))).unwrap();
        assert_eq!(cache.get("sha256:aa"), None);
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
