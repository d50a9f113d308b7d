//! The calls that are under way, in a file (C-283): what the next process reads of one that was killed.
//!
//! The file lies in a folder that outlives the process, as the volume with fetched components does in a pod. It has a place for
//! each call, of one length, and is never flushed: what a process has written the kernel keeps, however the process ends. What is lost
//! with a machine was not ended by a call.

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::Path,
    sync::Arc,
};

use orangery_reconcile::{CallJournal, Key, UnfinishedCalls, WrittenCall};

/// Calls that are written down at once: as many as the loops have under way at most.
const MOST_WRITTEN: usize = 8_192;

/// Bytes of a place: a controller, a namespace and a name, each as long as they may be.
const LONGEST_CALL: usize = 512;

/// The file in its folder.
const FILE: &str = "calls-under-way";

/// The file.
struct JournalFile(File);

/// Opens the journal of a folder, with what was under way when the process before ended. `None` where it cannot be kept there, as for
/// a second process: its calls are not written down then, which is logged.
pub(crate) fn open(folder: &Path) -> Option<Arc<UnfinishedCalls>> {
    match try_open(folder) {
        Ok((file, before)) => {
            let journal = JournalFile(file);
            (0..before.len()).for_each(|place| journal.clear(place));
            for call in before.iter().filter(|call| call.under_way) {
                let WrittenCall { controller, key, times, .. } = call;
                tracing::warn!(controller, object = %key, times = times + 1, "was worked on when the operator was killed");
            }
            Some(UnfinishedCalls::new(Arc::new(journal), before))
        }
        Err(error) => {
            let folder = folder.display();
            tracing::warn!(%error, "calls under way are not written down in {folder}, so what kills the operator is not set aside");
            None
        }
    }
}

fn try_open(folder: &Path) -> io::Result<(File, Vec<WrittenCall>)> {
    std::fs::create_dir_all(folder)?;
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create(true).truncate(false).mode(0o600).open(folder.join(FILE))?;
    file.try_lock().map_err(|error| match error {
        std::fs::TryLockError::Error(error) => error,
        std::fs::TryLockError::WouldBlock => io::Error::other("another process keeps its calls there"),
    })?;
    let length = file.metadata()?.len().min((MOST_WRITTEN * LONGEST_CALL) as u64);
    let mut content = vec![0; usize::try_from(length).unwrap_or(0)];
    file.read_exact_at(&mut content, 0)?;
    let before: Vec<WrittenCall> = content.chunks(LONGEST_CALL).filter_map(read).collect();
    // What was written down is written again in the first places. All others are written now: a disk that is full later takes what
    // is written over them.
    let kept = before.len() * LONGEST_CALL;
    file.write_all_at(&vec![0; MOST_WRITTEN * LONGEST_CALL - kept], kept as u64)?;
    Ok((file, before))
}

/// What stands in a place; `None` for an empty one, and for what no operator has written.
fn read(place: &[u8]) -> Option<WrittenCall> {
    let end = place.iter().position(|byte| *byte == b'\n')?;
    let text = std::str::from_utf8(place.get(..end)?).ok()?;
    let mut words = text.split(' ');
    let under_way = match words.next()? {
        "runs" => true,
        "waits" => false,
        _ => return None,
    };
    let (times, controller, namespace, name) =
        (words.next()?.parse().ok()?, words.next()?, words.next()?, words.next()?);
    let is_all = words.next().is_none() && ![controller, namespace, name].contains(&"");
    is_all.then(|| WrittenCall {
        controller: controller.to_owned(),
        key: Key { namespace: namespace.into(), name: name.into() },
        under_way,
        times,
    })
}

impl CallJournal for JournalFile {
    fn capacity(&self) -> usize {
        MOST_WRITTEN
    }

    fn write(&self, place: usize, call: &WrittenCall) {
        let WrittenCall { controller, key, under_way, times } = call;
        let state = if *under_way { "runs" } else { "waits" };
        let text = format!("{state} {times} {controller} {} {}\n", key.namespace, key.name);
        if text.len() <= LONGEST_CALL {
            self.put(place, text.as_bytes());
        }
    }

    fn clear(&self, place: usize) {
        self.put(place, b"\n");
    }
}

impl JournalFile {
    /// What cannot be written is not known to the next process, and the call goes on.
    fn put(&self, place: usize, text: &[u8]) {
        if let Err(error) = self.0.write_all_at(text, (place * LONGEST_CALL) as u64) {
            tracing::debug!(%error, "a call is not written down");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(name: &str, under_way: bool, times: u32) -> WrittenCall {
        let key = Key { namespace: "ns".into(), name: name.into() };
        WrittenCall { controller: "deploy_item".to_owned(), key, under_way, times }
    }

    #[test]
    fn c_283_what_was_written_down_is_read_by_the_next_process_and_by_no_other_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let (file, before) = try_open(folder.path()).unwrap();
        assert_eq!(before, []);
        let journal = JournalFile(file);
        let longest = call(&"n".repeat(253), true, u32::MAX);
        journal.write(0, &call("a", true, 0));
        journal.write(1, &call("gone", true, 0));
        journal.write(MOST_WRITTEN - 1, &longest);
        journal.write(2, &call("b", false, 3));
        journal.clear(1);
        let busy = try_open(folder.path()).map(drop).unwrap_err().to_string();
        assert_eq!(busy, "another process keeps its calls there");
        drop(journal);
        let (_file, before) = try_open(folder.path()).unwrap();
        assert_eq!(before, [call("a", true, 0), call("b", false, 3), longest]);
        let length = std::fs::metadata(folder.path().join(FILE)).unwrap().len();
        assert_eq!(length, (MOST_WRITTEN * LONGEST_CALL) as u64, "all that may be needed is taken at once");
    }

    #[test]
    fn c_283_what_no_operator_has_written_is_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let mut content = b"runs 1 deploy_item ns a\n".to_vec();
        content.resize(LONGEST_CALL, 0);
        for text in
            ["", "runs", "walks 1 c ns a\n", "runs x c ns a\n", "runs 1 c ns \n", "runs 1 c ns a b\n", "runs 1 c ns a"]
        {
            let mut place = text.as_bytes().to_vec();
            place.resize(LONGEST_CALL, 0);
            content.extend(place);
        }
        content.extend(vec![0xff; LONGEST_CALL * MOST_WRITTEN]);
        std::fs::write(folder.path().join(FILE), content).unwrap();
        assert_eq!(try_open(folder.path()).unwrap().1, [call("a", true, 1)]);
    }
}
