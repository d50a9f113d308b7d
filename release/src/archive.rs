//! Archives that are the same bytes for the same files: sorted, of nobody, at one time.

use std::{
    collections::BTreeMap,
    io::{self, Write as _},
};

use flate2::{Compression, GzBuilder};
use tar::{Builder, EntryType, Header};

/// Files and folders by their paths, without a leading slash.
pub(crate) struct Archive {
    entries: BTreeMap<String, (u32, Option<Vec<u8>>)>,
    /// Seconds since 1970 that each entry was changed at.
    epoch: u64,
}

impl Archive {
    pub(crate) fn new(epoch: u64) -> Self {
        Self { entries: BTreeMap::new(), epoch }
    }

    /// Adds a folder.
    pub(crate) fn folder(&mut self, path: &str, mode: u32) {
        self.entries.insert(format!("{path}/"), (mode, None));
    }

    /// Adds a file.
    pub(crate) fn file(&mut self, path: &str, mode: u32, content: Vec<u8>) {
        self.entries.insert(path.to_owned(), (mode, Some(content)));
    }

    /// The archive.
    pub(crate) fn tar(&self) -> io::Result<Vec<u8>> {
        let mut builder = Builder::new(Vec::new());
        for (path, (mode, content)) in &self.entries {
            let content = content.as_deref();
            let mut header = Header::new_gnu();
            header.set_entry_type(if content.is_some() { EntryType::Regular } else { EntryType::Directory });
            header.set_mode(*mode);
            header.set_uid(0);
            header.set_gid(0);
            header.set_mtime(self.epoch);
            header.set_size(content.map_or(0, <[u8]>::len) as u64);
            builder.append_data(&mut header, path, content.unwrap_or_default())?;
        }
        builder.into_inner()
    }
}

/// Packs bytes; without a name and a time in what comes of it.
pub(crate) fn gzip(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    encoder.finish()
}
