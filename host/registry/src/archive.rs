//! Reading tar archives of others: bounded in every direction, and only files and folders come out.

use std::{
    io::{self, Read},
    path::Component,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use flate2::read::MultiGzDecoder;
use tar::EntryType;

/// What an archive may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArchiveLimits {
    /// Files and folders.
    pub entries: usize,
    /// Bytes of one file.
    pub file: u64,
    /// Bytes of everything, unpacked.
    pub total: u64,
    /// How many times bigger than the compressed archive the unpacked one may be, once it has more than a mebibyte.
    pub ratio: u64,
}

impl ArchiveLimits {
    /// Of a blueprint: text, and perhaps a component.
    pub const BLUEPRINT: Self = Self { entries: 10_000, file: 64 << 20, total: 128 << 20, ratio: 200 };
    /// Of a transport archive: images may be in it.
    pub const TRANSPORT: Self = Self { entries: 100_000, file: 4 << 30, total: 16 << 30, ratio: 1_000 };
}

/// Why an archive cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// Not an archive, or cut off.
    #[error("it is no complete tar archive: {0}")]
    Broken(io::Error),
    /// More than a limit.
    #[error("it has more than {limit}; that is no honest archive of its kind")]
    Limit {
        /// The limit.
        limit: String,
    },
    /// A name that leads elsewhere.
    #[error("its entry {name:?} {fault}; only paths below the root of the archive are unpacked")]
    Name {
        /// The name, cut.
        name: String,
        /// What is wrong with it.
        fault: &'static str,
    },
    /// Something other than a file or a folder.
    #[error("its entry {name:?} is a {entry_kind}; only files and folders are unpacked")]
    Kind {
        /// The name.
        name: String,
        /// What it is.
        entry_kind: &'static str,
    },
    /// No file at all.
    #[error("it is empty")]
    Empty,
    /// What is done with a file went wrong.
    #[error("its file {name}: {reason}")]
    File {
        /// The name.
        name: String,
        /// Why.
        reason: String,
    },
}

/// The files of a small archive, as a tar or compressed tar archive. Names have no leading `./`.
pub fn files(bytes: &[u8], limits: ArchiveLimits) -> Result<Vec<(String, Vec<u8>)>, ArchiveError> {
    let mut files = Vec::new();
    walk(bytes, limits, &mut |name, size, content| {
        let mut bytes = Vec::new();
        content.read_to_end(&mut bytes).map_err(|error| message_of(error, limits))?;
        if bytes.len() as u64 != size {
            return Err(cut_off());
        }
        files.push((name.to_owned(), bytes));
        Ok(())
    })?;
    Ok(files)
}

/// What is done with one file: its name, its size and its content.
pub type Visit<'v> = dyn FnMut(&str, u64, &mut dyn Read) -> Result<(), ArchiveError> + 'v;

/// Goes through the files of an archive, in their order; compression is told from the first bytes.
pub fn walk(mut source: impl Read, limits: ArchiveLimits, visit: &mut Visit<'_>) -> Result<(), ArchiveError> {
    let mut magic = [0; 2];
    let mut got = 0;
    while let Some(rest) = magic.get_mut(got..).filter(|rest| !rest.is_empty()) {
        match source.read(rest).map_err(ArchiveError::Broken)? {
            0 => return Err(cut_off()),
            more => got += more,
        }
    }
    let packed = Arc::new(AtomicU64::new(2));
    let source = CountedReader { inner: io::Cursor::new(magic).chain(source), count: Arc::clone(&packed) };
    if magic == [0x1f, 0x8b] {
        entries(Bounded::new(MultiGzDecoder::new(source), limits, Some(packed)), limits, visit)
    } else {
        entries(Bounded::new(source, limits, None), limits, visit)
    }
}

fn entries(source: impl Read, limits: ArchiveLimits, visit: &mut Visit<'_>) -> Result<(), ArchiveError> {
    let mut archive = tar::Archive::new(source);
    let (mut count, mut files) = (0, 0);
    for entry in archive.entries().map_err(|error| message_of(error, limits))? {
        let mut entry = entry.map_err(|error| message_of(error, limits))?;
        count += 1;
        if count > limits.entries {
            return Err(ArchiveError::Limit { limit: format!("{} entries", limits.entries) });
        }
        let kind = entry.header().entry_type();
        if kind == EntryType::XGlobalHeader {
            continue;
        }
        let name = name(&entry.path_bytes())?;
        if kind == EntryType::Directory {
            continue;
        }
        if let Some(entry_kind) = refused(kind) {
            return Err(ArchiveError::Kind { name, entry_kind });
        }
        if name.is_empty() {
            return Err(ArchiveError::Name { name, fault: "has no name" });
        }
        let size = entry.size();
        if size > limits.file {
            return Err(ArchiveError::Limit { limit: format!("{} bytes in one file", limits.file) });
        }
        visit(&name, size, &mut entry)?;
        files += 1;
    }
    if files == 0 {
        return Err(ArchiveError::Empty);
    }
    // The check sum of a compressed archive stands at its end.
    io::copy(&mut archive.into_inner(), &mut io::sink()).map_err(|error| message_of(error, limits))?;
    Ok(())
}

fn refused(kind: EntryType) -> Option<&'static str> {
    match kind {
        EntryType::Regular | EntryType::Continuous => None,
        EntryType::Symlink => Some("symbolic link"),
        EntryType::Link => Some("hard link"),
        EntryType::Char | EntryType::Block => Some("device"),
        EntryType::Fifo => Some("pipe"),
        _ => Some("special entry"),
    }
}

const LONGEST_NAME: usize = 1024;

/// The name without `.`; what leads out of the archive is refused.
fn name(bytes: &[u8]) -> Result<String, ArchiveError> {
    let display = || String::from_utf8_lossy(bytes.get(..bytes.len().min(200)).unwrap_or_default()).into_owned();
    let bad = |fault| Err(ArchiveError::Name { name: display(), fault });
    let Ok(text) = std::str::from_utf8(bytes) else { return bad("is no UTF-8") };
    if text.len() > LONGEST_NAME {
        return bad("has a name of more than 1024 bytes");
    }
    if text.contains(['\0', '\\']) {
        return bad("has a backslash or a NUL in its name");
    }
    let mut steps = Vec::new();
    for step in std::path::Path::new(text).components() {
        match step {
            Component::Normal(step) => steps.extend(step.to_str()),
            Component::CurDir => {}
            Component::ParentDir => return bad("has `..` in its name"),
            Component::RootDir | Component::Prefix(_) => return bad("has an absolute name"),
        }
    }
    Ok(steps.join("/"))
}

fn cut_off() -> ArchiveError {
    ArchiveError::Broken(io::Error::new(io::ErrorKind::UnexpectedEof, "it is cut off"))
}

/// An error of reading: one of ours, or a broken archive.
fn message_of(error: io::Error, limits: ArchiveLimits) -> ArchiveError {
    match error.get_ref().and_then(|error| error.downcast_ref::<Exceeded>()) {
        Some(Exceeded::Total) => ArchiveError::Limit { limit: format!("{} bytes, unpacked", limits.total) },
        Some(Exceeded::Ratio) => ArchiveError::Limit { limit: format!("{} times its compressed size", limits.ratio) },
        None => ArchiveError::Broken(error),
    }
}

#[derive(Debug, thiserror::Error)]
enum Exceeded {
    #[error("too many bytes")]
    Total,
    #[error("too well compressed")]
    Ratio,
}

struct CountedReader<R> {
    inner: R,
    count: Arc<AtomicU64>,
}

impl<R: Read> Read for CountedReader<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let got = self.inner.read(into)?;
        self.count.fetch_add(got as u64, Ordering::Relaxed);
        Ok(got)
    }
}

/// Unpacked bytes, counted against the limits.
struct Bounded<R> {
    inner: R,
    limits: ArchiveLimits,
    total: u64,
    packed: Option<Arc<AtomicU64>>,
}

/// Below this no ratio is bad.
const HARMLESS: u64 = 1 << 20;

impl<R: Read> Bounded<R> {
    fn new(inner: R, limits: ArchiveLimits, packed: Option<Arc<AtomicU64>>) -> Self {
        Self { inner, limits, total: 0, packed }
    }
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let got = self.inner.read(into)?;
        self.total += got as u64;
        if self.total > self.limits.total {
            return Err(io::Error::other(Exceeded::Total));
        }
        let packed = self.packed.as_ref().map(|packed| packed.load(Ordering::Relaxed));
        if packed.is_some_and(|packed| self.total > HARMLESS.max(packed.saturating_mul(self.limits.ratio))) {
            return Err(io::Error::other(Exceeded::Ratio));
        }
        Ok(got)
    }
}

#[cfg(test)]
mod tests;
