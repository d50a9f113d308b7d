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

use orangery_reconcile::{CallJournal, CallState, JournalEntry, Key, UnfinishedCalls, WrittenCall, WrittenNamespace};

/// Calls that are written down at once: as many as the loops have under way at most.
const MOST_WRITTEN: usize = 8_192;

/// Bytes of an entry: a controller, a namespace and a name, each as long as they may be.
const LONGEST_ENTRY: usize = 512;

/// The file in its folder.
const FILE: &str = "calls-under-way";

/// The file.
struct JournalFile(File);

/// Opens the journal of a folder, with what was under way when the process before ended. `None` where it cannot be kept there, as for
/// a second process: its calls are not written down then, which is logged.
pub(crate) fn open(folder: &Path) -> Option<Arc<UnfinishedCalls>> {
    match try_open(folder) {
        Ok((file, before)) => {
            for entry in &before {
                if let JournalEntry::Call(WrittenCall { controller, key, state, times }) = entry
                    && *state != CallState::Suspected
                {
                    let works = *state == CallState::Works;
                    tracing::warn!(controller, object = %key, works, times, "was under way when the operator was killed");
                }
            }
            Some(UnfinishedCalls::new(Arc::new(JournalFile(file)), before))
        }
        Err(error) => {
            let folder = folder.display();
            tracing::warn!(%error, "calls under way are not written down in {folder}, so what kills the operator is not set aside");
            None
        }
    }
}

fn try_open(folder: &Path) -> io::Result<(File, Vec<JournalEntry>)> {
    std::fs::create_dir_all(folder)?;
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create(true).truncate(false).mode(0o600).open(folder.join(FILE))?;
    file.try_lock().map_err(|error| match error {
        std::fs::TryLockError::Error(error) => error,
        std::fs::TryLockError::WouldBlock => io::Error::other("another process keeps its calls there"),
    })?;
    let length = file.metadata()?.len().min((MOST_WRITTEN * LONGEST_ENTRY) as u64);
    let mut content = vec![0; usize::try_from(length).unwrap_or(0)];
    file.read_exact_at(&mut content, 0)?;
    let before: Vec<JournalEntry> = content.chunks(LONGEST_ENTRY).filter_map(read).collect();
    // What was written down comes first from now on. All places are written at once: a disk that is full later takes what is
    // written over them.
    let mut content = vec![0; MOST_WRITTEN * LONGEST_ENTRY];
    for (place, entry) in content.chunks_mut(LONGEST_ENTRY).zip(&before) {
        let text = text_of(entry);
        place.iter_mut().zip(text.as_bytes()).for_each(|(to, byte)| *to = *byte);
    }
    file.write_all_at(&content, 0)?;
    Ok((file, before))
}

/// What stands in a place; `None` for an empty one, and for what no operator has written.
fn read(place: &[u8]) -> Option<JournalEntry> {
    let end = place.iter().position(|byte| *byte == b'\n')?;
    let words: Vec<&str> = std::str::from_utf8(place.get(..end)?).ok()?.split(' ').collect();
    if words.contains(&"") {
        return None;
    }
    Some(match *words {
        ["killed", kills, together, namespace] => JournalEntry::Namespace(WrittenNamespace {
            namespace: namespace.into(),
            kills: kills.parse().ok()?,
            together: together.parse().ok()?,
        }),
        [state, times, controller, namespace, name] => JournalEntry::Call(WrittenCall {
            controller: controller.to_owned(),
            key: Key::new(namespace, name),
            state: STATES.iter().find(|(_, word)| *word == state)?.0,
            times: times.parse().ok()?,
        }),
        _ => return None,
    })
}

/// The states of calls, and their words.
const STATES: [(CallState, &str); 3] =
    [(CallState::Works, "runs"), (CallState::WaitsOnServer, "asks"), (CallState::Suspected, "waits")];

/// The line of an entry.
fn text_of(entry: &JournalEntry) -> String {
    match entry {
        JournalEntry::Namespace(WrittenNamespace { namespace, kills, together }) => {
            format!("killed {kills} {together} {namespace}\n")
        }
        JournalEntry::Call(WrittenCall { controller, key, state, times }) => {
            let word = STATES.iter().find(|(of, _)| of == state).map_or("", |(_, word)| word);
            format!("{word} {times} {controller} {} {}\n", key.namespace, key.name)
        }
    }
}

impl CallJournal for JournalFile {
    fn capacity(&self) -> usize {
        MOST_WRITTEN
    }

    fn write(&self, place: usize, entry: &JournalEntry) {
        let text = text_of(entry);
        if text.len() <= LONGEST_ENTRY {
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
        if let Err(error) = self.0.write_all_at(text, (place * LONGEST_ENTRY) as u64) {
            tracing::debug!(%error, "a call is not written down");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        CallState::{Suspected, WaitsOnServer, Works},
        *,
    };

    fn call(name: &str, state: CallState, times: u32) -> JournalEntry {
        JournalEntry::Call(WrittenCall {
            controller: "deploy_item".to_owned(),
            key: Key::new("ns", name),
            state,
            times,
        })
    }

    #[test]
    fn c_283_what_was_written_down_is_read_by_the_next_process_and_by_no_other_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let (file, before) = try_open(folder.path()).unwrap();
        assert_eq!(before, []);
        let journal = JournalFile(file);
        let longest = call(&"n".repeat(253), WaitsOnServer, u32::MAX);
        journal.write(0, &call("a", Works, 0));
        journal.write(1, &call("gone", Works, 0));
        journal.write(MOST_WRITTEN - 1, &longest);
        journal.write(2, &call("b", Suspected, 3));
        journal.clear(1);
        let namespace = JournalEntry::Namespace(WrittenNamespace { namespace: "ns".into(), kills: 2, together: 1 });
        journal.write(3, &namespace);
        let busy = try_open(folder.path()).map(drop).unwrap_err().to_string();
        assert_eq!(busy, "another process keeps its calls there");
        drop(journal);
        let expected = [call("a", Works, 0), call("b", Suspected, 3), namespace, longest];
        for _ in 0..2 {
            let (_file, before) = try_open(folder.path()).unwrap();
            assert_eq!(before, expected, "a process that has not begun keeps it for the next");
        }
        let length = std::fs::metadata(folder.path().join(FILE)).unwrap().len();
        assert_eq!(length, (MOST_WRITTEN * LONGEST_ENTRY) as u64, "all that may be needed is taken at once");
    }

    #[test]
    fn c_283_what_no_operator_has_written_is_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let mut content = b"runs 1 deploy_item ns a\n".to_vec();
        content.resize(LONGEST_ENTRY, 0);
        for text in [
            "",
            "runs",
            "walks 1 c ns a\n",
            "runs x c ns a\n",
            "runs 1 c ns \n",
            "runs 1 c ns a b\n",
            "killed x ns\n",
            "runs 1 c ns a",
        ] {
            let mut place = text.as_bytes().to_vec();
            place.resize(LONGEST_ENTRY, 0);
            content.extend(place);
        }
        content.extend(vec![0xff; LONGEST_ENTRY * MOST_WRITTEN]);
        std::fs::write(folder.path().join(FILE), content).unwrap();
        assert_eq!(try_open(folder.path()).unwrap().1, [call("a", Works, 1)]);
    }
}
