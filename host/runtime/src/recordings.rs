//! Calls of components, kept as cases in a folder (`--record`, C-341): one folder for each, the newest ones as far as number and bytes
//! allow. Without the flag those that somebody asks for are kept where the operator keeps its state (C-347).

use std::{
    collections::VecDeque,
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use orangery_cli::record_flags::RecordFlags;
use orangery_controllers::{CallRecording, CallRecords};
use orangery_core::digest::sha256;
use orangery_plugin::LEVEL;
use orangery_proposal::{
    deployer::PluginIdentity,
    recorded::{RECORDING, RecordedComponent, RecordingNote},
};
use serde_json::Value;

/// How the folders of calls begin.
const BEGIN: &str = "call-";
/// The digits of their numbers.
const DIGITS: usize = 10;
/// The folder of a call that is being written.
const UNFINISHED: &str = ".call-being-written";
/// What keeps other processes out.
const LOCK: &str = ".recordings.lock";
/// As much of a name goes into that of a folder.
const LONGEST_PART: usize = 80;

/// Why calls cannot be recorded: the folder, and what the system says.
#[derive(Debug, thiserror::Error)]
#[error("calls cannot be recorded in {}: {cause}; name another folder with --record, or make room and permissions", folder.display())]
pub struct RecordError {
    folder: PathBuf,
    #[source]
    cause: io::Error,
}

/// Calls in a folder.
#[derive(Debug)]
pub(crate) struct RecordingFolder {
    folder: PathBuf,
    /// 0 for none but those that somebody asks for.
    one_in: u64,
    most_calls: usize,
    most_bytes: u64,
    begun: AtomicU64,
    /// Protects the folder and what is known of it; held while one call is written.
    kept: Mutex<KeptCalls>,
    /// Held as long as calls are recorded.
    _lock: File,
}

#[derive(Debug, Default)]
struct KeptCalls {
    /// The folders with their bytes, the oldest first.
    calls: VecDeque<(String, u64)>,
    bytes: u64,
    next: u64,
    /// Whether the last call could not be written, which is said once.
    fails: bool,
}

/// A folder that nobody has named: it is opened when the first call is kept. One that cannot be is told in the log.
#[derive(Debug)]
struct StateRecordings {
    flags: RecordFlags,
    folder: PathBuf,
    opened: OnceLock<Option<RecordingFolder>>,
}

/// The folder of recordings below that of the operator's state.
const RECORDINGS: &str = "recordings";

/// Opens the folder that flags name; else one below that of the operator's state, where it has one. `None` where calls are kept
/// nowhere.
///
/// # Errors
/// [`RecordError`]
pub(crate) fn open(flags: &RecordFlags, state: Option<&Path>) -> Result<Option<Arc<dyn CallRecords>>, RecordError> {
    let Some(folder) = &flags.folder else {
        let kept = |state: &Path| StateRecordings {
            flags: flags.clone(),
            folder: state.join(RECORDINGS),
            opened: OnceLock::new(),
        };
        return Ok(state.map(|state| Arc::new(kept(state)) as Arc<dyn CallRecords>));
    };
    let opened = RecordingFolder::open(folder, flags).map_err(|cause| RecordError { folder: folder.clone(), cause })?;
    Ok(Some(Arc::new(opened)))
}

impl CallRecords for StateRecordings {
    fn samples(&self) -> bool {
        false
    }

    fn keep(&self, record: CallRecording) {
        let opened = self.opened.get_or_init(|| {
            let opened = RecordingFolder::open(&self.folder, &self.flags)
                .map_err(|cause| RecordError { folder: self.folder.clone(), cause });
            opened.inspect_err(|error| tracing::warn!("{error}")).ok()
        });
        if let Some(folder) = opened {
            folder.keep(record);
        }
    }
}

impl RecordingFolder {
    fn open(folder: &Path, flags: &RecordFlags) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let lock = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(folder.join(LOCK))?;
        lock.try_lock().map_err(|error| match error {
            fs::TryLockError::Error(error) => error,
            fs::TryLockError::WouldBlock => io::Error::other("another process records there"),
        })?;
        remove_unfinished(folder)?;
        let mut calls = Vec::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let Some(name) = entry.file_name().to_str().map(str::to_owned) else { continue };
            // What is no recording of ours stays, whatever its name is, and so does what a link leads to.
            if number_of(&name).is_some() && entry.file_type()?.is_dir() && entry.path().join(RECORDING).is_file() {
                calls.push((name, bytes_in(&entry.path())?));
            }
        }
        calls.sort();
        let next = calls.last().and_then(|(name, _)| number_of(name)).map_or(0, |last| last.saturating_add(1));
        let bytes = calls.iter().map(|(_, bytes)| bytes).sum();
        Ok(Self {
            folder: folder.to_owned(),
            one_in: flags.one_in,
            most_calls: flags.calls as usize,
            most_bytes: u64::from(flags.size) << 20,
            begun: AtomicU64::new(0),
            kept: Mutex::new(KeptCalls { calls: calls.into(), bytes, next, fails: false }),
            _lock: lock,
        })
    }

    /// Writes a call, whole or not at all.
    fn write(&self, kept: &mut KeptCalls, record: &CallRecording) -> io::Result<()> {
        let files = files_of(record);
        let bytes: u64 = files.iter().map(|(_, content)| content.len() as u64).sum();
        if bytes > self.most_bytes {
            return Err(io::Error::other("it takes more than all recordings may (--record-size)"));
        }
        while kept.calls.len() >= self.most_calls || kept.bytes.saturating_add(bytes) > self.most_bytes {
            let Some((oldest, freed)) = kept.calls.pop_front() else { break };
            kept.bytes = kept.bytes.saturating_sub(freed);
            match fs::remove_dir_all(self.folder.join(&oldest)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
        remove_unfinished(&self.folder)?;
        let unfinished = self.folder.join(UNFINISHED);
        DirBuilder::new().mode(0o700).create(&unfinished)?;
        for (name, content) in &files {
            let mut options = OpenOptions::new();
            options.write(true).create_new(true).mode(0o600).open(unfinished.join(name))?.write_all(content)?;
        }
        let name = name_of(kept.next, record);
        // A name that somebody else has taken is passed over.
        kept.next = kept.next.saturating_add(1);
        fs::rename(&unfinished, self.folder.join(&name))?;
        kept.bytes = kept.bytes.saturating_add(bytes);
        kept.calls.push_back((name, bytes));
        Ok(())
    }
}

impl CallRecords for RecordingFolder {
    fn samples(&self) -> bool {
        self.one_in > 0 && self.begun.fetch_add(1, Ordering::Relaxed).is_multiple_of(self.one_in)
    }

    fn keep(&self, record: CallRecording) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let written = self.write(&mut kept, &record);
        match &written {
            Err(error) if !kept.fails => {
                let (folder, CallRecording { namespace, item, .. }) = (self.folder.display(), &record);
                tracing::warn!(item = %format_args!("{namespace}/{item}"), %error, "a call is not recorded in {folder}; of the next ones that are not either nothing is said until one is");
            }
            Ok(()) | Err(_) => {}
        }
        kept.fails = written.is_err();
    }
}

/// The files of a call.
fn files_of(record: &CallRecording) -> Vec<(String, Vec<u8>)> {
    let text = |value: &Value| format!("{value:#}\n").into_bytes();
    let mut files = vec![
        ("request.json".to_owned(), text(&record.call.request)),
        ("response.json".to_owned(), text(&record.call.answer)),
    ];
    files.extend(record.content.iter().map(|(name, content)| (name.clone(), content.to_vec())));
    let PluginIdentity { name, version, digest, .. } = record.component.clone();
    let note = RecordingNote {
        contract: LEVEL,
        component: RecordedComponent { name, version, digest },
        at: record.at.to_string(),
        files: files.iter().map(|(name, content)| (name.clone(), sha256(content))).collect(),
    };
    let note = serde_json::to_value(&note).unwrap_or_default();
    files.push((RECORDING.to_owned(), text(&note)));
    files
}

/// The folder of a call: sorted by name they are in the order in which they were made.
fn name_of(number: u64, record: &CallRecording) -> String {
    let part = |text: &str| -> String {
        let plain = text.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' });
        plain.take(LONGEST_PART).collect()
    };
    let CallRecording { namespace, item, function, .. } = record;
    format!("{BEGIN}{number:0DIGITS$}-{}-{}-{function}", part(namespace), part(item))
}

/// The number in the name of the folder of a call.
fn number_of(name: &str) -> Option<u64> {
    let (digits, rest) = name.strip_prefix(BEGIN)?.split_at_checked(DIGITS)?;
    if rest.starts_with('-') { digits.parse().ok() } else { None }
}

fn bytes_in(folder: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        bytes += entry?.metadata()?.len();
    }
    Ok(bytes)
}

/// Removes what a process left that was killed while it wrote.
fn remove_unfinished(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder.join(UNFINISHED)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use jiff::Timestamp;
    use orangery_proposal::recorded::HiddenCall;
    use serde_json::json;

    use super::*;

    fn flags(folder: &Path, one_in: u64, calls: u32) -> RecordFlags {
        RecordFlags { folder: Some(folder.to_owned()), one_in, calls, size: 1 }
    }

    fn record(item: &str, bytes: usize) -> CallRecording {
        let component =
            PluginIdentity { name: "mine".into(), version: "1".into(), digest: "sha256:0".into(), is_pinned: false };
        CallRecording {
            component,
            namespace: "ns".into(),
            item: item.into(),
            function: "plan",
            at: Timestamp::UNIX_EPOCH,
            call: HiddenCall { request: json!({"item": item}), answer: json!({"fault": "x"}) },
            content: vec![("content-0".to_owned(), Arc::new(vec![b'x'; bytes]))],
        }
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = entries.filter(|name| name != LOCK).collect();
        names.sort();
        names
    }

    #[test]
    fn c_341_a_call_is_a_case_with_what_is_known_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b");
        let records = open(&flags(&path, 1, 9), None).unwrap().unwrap();
        records.keep(record("../x y", 3));
        assert_eq!(names(&path), ["call-0000000000-ns-..-x-y-plan"]);
        let call = path.join("call-0000000000-ns-..-x-y-plan");
        let text = |name: &str| fs::read_to_string(call.join(name)).unwrap();
        assert_eq!(text("request.json"), "{\n  \"item\": \"../x y\"\n}\n");
        assert_eq!(
            (text("response.json"), text("content-0")),
            ("{\n  \"fault\": \"x\"\n}\n".to_owned(), "xxx".to_owned())
        );
        let note = RecordingNote::read(&text(RECORDING)).unwrap();
        let digest = |name: &str| fs::read(call.join(name)).ok().map(|content| sha256(&content));
        assert_eq!((note.check(LEVEL, digest), note.files.len()), (Ok(()), 3));
        assert_eq!((note.component.name.as_str(), note.at.as_str()), ("mine", "1970-01-01T00:00:00Z"));
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!([mode(&call), mode(&call.join("request.json"))], [0o700, 0o600]);
    }

    #[test]
    fn c_341_the_newest_calls_are_kept_as_far_as_number_and_bytes_allow_and_nothing_else_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        fs::create_dir_all(path.join("call-0000000007-of-somebody-plan")).unwrap();
        fs::create_dir_all(path.join(UNFINISHED).join("x")).unwrap();
        let records = open(&flags(path, 1, 2), None).unwrap().unwrap();
        ["a", "b", "c"].into_iter().for_each(|item| records.keep(record(item, 3)));
        let theirs = "call-0000000007-of-somebody-plan".to_owned();
        let call = |number: usize, item: &str| format!("call-{number:010}-ns-{item}-plan");
        assert_eq!(names(path), [call(1, "b"), call(2, "c"), theirs.clone()]);
        records.keep(record("large", 1 << 20));
        assert_eq!(
            names(path),
            [call(1, "b"), call(2, "c"), theirs.clone()],
            "what has no room at all removes nothing"
        );
        records.keep(record("d", (1 << 20) - 900));
        assert_eq!(names(path), [call(3, "d"), theirs.clone()]);
        drop(records);
        let records = open(&flags(path, 1, 2), None).unwrap().unwrap();
        records.keep(record("e", 3));
        assert_eq!(names(path), [call(4, "e"), theirs], "what the process before kept counts");
    }

    #[test]
    fn c_341_one_call_in_so_many_is_kept_by_one_process_in_a_folder_that_can_be_written() {
        let folder = tempfile::tempdir().unwrap();
        let records = open(&flags(folder.path(), 3, 2), None).unwrap().unwrap();
        let sampled: Vec<bool> = (0..7).map(|_| records.samples()).collect();
        assert_eq!(sampled, [true, false, false, true, false, false, true]);
        let why = |path: &Path| open(&flags(path, 1, 1), None).err().map(|error| error.to_string()).unwrap_or_default();
        let busy = why(folder.path());
        assert!(busy.contains(": another process records there; name another folder with --record"), "{busy}");
        fs::write(folder.path().join("file"), "").unwrap();
        let file = why(&folder.path().join("file"));
        assert!(
            file.starts_with("calls cannot be recorded in ") && file.ends_with("make room and permissions"),
            "{file}"
        );
        assert!(open(&RecordFlags { folder: None, ..flags(folder.path(), 1, 1) }, None).unwrap().is_none());
        // A folder that is gone costs nobody but the recordings.
        let gone = tempfile::tempdir().unwrap();
        let records = open(&flags(gone.path(), 1, 2), None).unwrap().unwrap();
        fs::remove_dir_all(gone.path()).unwrap();
        records.keep(record("a", 3));
        assert!(!gone.path().exists());
    }

    #[test]
    fn c_347_without_a_flag_calls_that_are_asked_for_are_kept_with_the_state_and_no_others() {
        let state = tempfile::tempdir().unwrap();
        let unnamed = RecordFlags { folder: None, ..flags(state.path(), 1, 2) };
        let records = open(&unnamed, Some(state.path())).unwrap().unwrap();
        assert!(!records.samples() && !state.path().join(RECORDINGS).exists(), "nobody has asked yet");
        ["a", "b", "c"].into_iter().for_each(|item| records.keep(record(item, 3)));
        let kept = ["call-0000000001-ns-b-plan", "call-0000000002-ns-c-plan"];
        assert_eq!(names(&state.path().join(RECORDINGS)), kept, "within the same bounds");
        // Where that folder cannot be had, nothing is kept and nobody else is held up.
        fs::write(state.path().join("file"), "").unwrap();
        let records = open(&unnamed, Some(&state.path().join("file"))).unwrap().unwrap();
        records.keep(record("a", 3));
        // With the flag and no share, the same in the folder that it names.
        let named = tempfile::tempdir().unwrap();
        let records = open(&flags(named.path(), 0, 2), Some(state.path())).unwrap().unwrap();
        records.keep(record("d", 3));
        assert_eq!((records.samples(), names(named.path())), (false, vec!["call-0000000000-ns-d-plan".to_owned()]));
    }
}
