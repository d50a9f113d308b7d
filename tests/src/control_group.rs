//! A control group with a limit of memory, as the container of a pod has one. It needs root.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicUsize, Ordering},
};

/// Where control groups of the second version are, and below it the memory of the first.
const ROOT: &str = "/sys/fs/cgroup";

/// A control group of its own; removed when dropped, where nothing runs in it any more.
#[derive(Debug)]
pub struct ControlGroup {
    folder: PathBuf,
    files: Files,
}

/// What the files of a version are called.
#[derive(Clone, Copy, Debug)]
struct Files {
    limit: &'static str,
    peak: &'static str,
    events: &'static str,
}

const FIRST: Files =
    Files { limit: "memory.limit_in_bytes", peak: "memory.max_usage_in_bytes", events: "memory.oom_control" };
const SECOND: Files = Files { limit: "memory.max", peak: "memory.peak", events: "memory.events" };

impl ControlGroup {
    /// One whose processes may take so many bytes together.
    ///
    /// # Errors
    /// This process may not make any, or the system has none.
    pub fn with_memory(bytes: u64) -> io::Result<ControlGroup> {
        static MADE: AtomicUsize = AtomicUsize::new(0);
        let root = Path::new(ROOT);
        let (folder, files) = match root.join("cgroup.controllers").is_file() {
            true => {
                // Already there, or refused, which the limit tells.
                let _ = fs::write(root.join("cgroup.subtree_control"), "+memory");
                (root.to_owned(), SECOND)
            }
            false => (root.join("memory"), FIRST),
        };
        let folder = folder.join(format!("orangery-{}-{}", process::id(), MADE.fetch_add(1, Ordering::Relaxed)));
        fs::create_dir(&folder)?;
        let group = ControlGroup { folder, files };
        fs::write(group.folder.join(files.limit), bytes.to_string())?;
        Ok(group)
    }

    /// The line by which a shell enters it, with all that it starts.
    pub fn enter(&self) -> String {
        format!("echo $$ >'{}'", self.folder.join("cgroup.procs").display())
    }

    /// The most bytes that it has had so far.
    pub fn peak(&self) -> Option<u64> {
        self.read(self.files.peak)?.trim().parse().ok()
    }

    /// How many of its processes the system has killed for want of memory.
    pub fn kills(&self) -> Option<u64> {
        let events = self.read(self.files.events)?;
        events.lines().find_map(|line| line.strip_prefix("oom_kill "))?.trim().parse().ok()
    }

    fn read(&self, file: &str) -> Option<String> {
        fs::read_to_string(self.folder.join(file)).ok()
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.folder);
    }
}
