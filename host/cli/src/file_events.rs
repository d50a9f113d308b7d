//! What happens to files, told by the system: nothing is asked again and again.

use std::{
    collections::BTreeMap,
    fs, io,
    mem::MaybeUninit,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use tokio::{io::unix::AsyncFd, time::timeout};

/// An editor and a compiler write several files at once: what they do is told when nothing more has happened for so long.
const QUIET: Duration = Duration::from_millis(50);

/// What is told of the files in a folder: that one is whole, has another name, or is gone.
const TOLD: WatchFlags = WatchFlags::CLOSE_WRITE
    .union(WatchFlags::CREATE)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::DELETE);

/// Bytes of what is read at once: room for some hundred names.
const BUFFER: usize = 16 << 10;

/// Folders whose files are watched.
#[derive(Debug)]
pub struct FileEvents {
    system: AsyncFd<OwnedFd>,
    folders: BTreeMap<i32, PathBuf>,
}

impl FileEvents {
    /// Watches nothing yet. Needs a running event loop.
    ///
    /// # Errors
    /// The system gives no more of these.
    pub fn new() -> io::Result<Self> {
        let system = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        #[expect(unsafe_code, reason = "a descriptor of one's own is what it has to be")]
        // SAFETY: an `OwnedFd` is open until it is dropped, is the same descriptor all the time, and is dropped with this.
        let system = unsafe { AsyncFd::register(system) }?;
        Ok(Self { system, folders: BTreeMap::new() })
    }

    /// Watches the files in a folder, not in those below it. Again is the same as once.
    ///
    /// # Errors
    /// The folder is not there, or the system watches no more of them.
    pub fn watch(&mut self, folder: &Path) -> io::Result<()> {
        let id = inotify::add_watch(self.system.get_ref(), folder, TOLD | WatchFlags::ONLYDIR)?;
        self.folders.insert(id, folder.to_owned());
        Ok(())
    }

    /// Watches a folder and those below it, but for the ones whose name is not wanted. Links are not followed.
    ///
    /// # Errors
    /// As [`FileEvents::watch`].
    pub fn watch_tree(&mut self, folder: &Path, is_wanted: impl Fn(&str) -> bool) -> io::Result<()> {
        let mut folders = vec![folder.to_owned()];
        while let Some(next) = folders.pop() {
            match self.watch(&next) {
                // One that is gone again is nobody's.
                Err(error) if error.kind() == io::ErrorKind::NotFound && next != folder => continue,
                watched => watched?,
            }
            for entry in fs::read_dir(&next)?.flatten() {
                let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
                if is_folder && is_wanted(&entry.file_name().to_string_lossy()) {
                    folders.push(entry.path());
                }
            }
        }
        Ok(())
    }

    /// Waits until something has happened and nothing more does, and answers the files. A folder stands for all in it.
    ///
    /// # Errors
    /// The system tells nothing any more.
    pub async fn changed(&mut self) -> io::Result<Vec<PathBuf>> {
        let mut changed = self.next().await?;
        while let Ok(more) = timeout(QUIET, self.next()).await {
            changed.append(&mut more?);
        }
        changed.sort();
        changed.dedup();
        Ok(changed)
    }

    async fn next(&mut self) -> io::Result<Vec<PathBuf>> {
        loop {
            let mut ready = self.system.readable().await?;
            let mut changed = Vec::new();
            let mut buffer = [MaybeUninit::uninit(); BUFFER];
            let mut reader = Reader::new(self.system.get_ref(), &mut buffer);
            loop {
                match reader.next() {
                    Ok(event) if event.events().contains(ReadFlags::QUEUE_OVERFLOW) => {
                        // What has happened is not known: everything may have changed.
                        changed.extend(self.folders.values().cloned());
                    }
                    Ok(event) => {
                        let folder = self.folders.get(&event.wd());
                        let name = event.file_name().map(|name| name.to_string_lossy().into_owned());
                        changed.extend(folder.map(|folder| folder.join(name.unwrap_or_default())));
                    }
                    Err(rustix::io::Errno::WOULDBLOCK) => break,
                    Err(error) => return Err(error.into()),
                }
            }
            ready.clear_ready();
            if !changed.is_empty() {
                return Ok(changed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn c_351_what_is_written_moved_and_removed_is_told_with_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name);
        fs::create_dir_all(file("src/deep")).unwrap();
        fs::create_dir_all(file("target")).unwrap();
        let mut events = FileEvents::new().unwrap();
        events.watch_tree(folder.path(), |name| name != "target").unwrap();
        events.watch(folder.path()).unwrap();
        fs::write(file("target/unwanted"), "").unwrap();
        fs::write(file("src/deep/a"), "").unwrap();
        fs::write(file("b"), "").unwrap();
        assert_eq!(events.changed().await.unwrap(), [file("b"), file("src/deep/a")]);
        fs::rename(file("b"), file("c")).unwrap();
        assert_eq!(events.changed().await.unwrap(), [file("b"), file("c")]);
        fs::remove_file(file("c")).unwrap();
        assert_eq!(events.changed().await.unwrap(), [file("c")]);
        assert!(events.watch(&file("nowhere")).is_err());
    }
}
