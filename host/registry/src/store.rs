//! Files of a repository on this machine: in a folder, or in a tar archive, compressed or not.

use std::{
    fs, io,
    io::Read,
    path::{Path, PathBuf},
    time::SystemTime,
};

use orangery_core::error::{Code, Fault};

use crate::archive::{self, ArchiveError, ArchiveLimits};

/// A folder or an archive.
#[derive(Clone, Debug)]
pub(crate) struct BlobStore {
    path: PathBuf,
    is_folder: bool,
}

/// What changes when an archive or the files at the root of a folder do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    modified: SystemTime,
    size: u64,
}

impl BlobStore {
    /// A path below a root.
    pub(crate) fn new(path: PathBuf) -> Self {
        let is_folder = path.is_dir();
        Self { path, is_folder }
    }

    /// Whether its files can be read one by one.
    pub(crate) fn is_folder(&self) -> bool {
        self.is_folder
    }

    /// The path, for messages.
    pub(crate) fn display(&self) -> String {
        self.path.display().to_string()
    }

    /// When the archive, or a file of the folder, was changed.
    pub(crate) fn stamp(&self, file: &str) -> Result<Stamp, Fault> {
        let path = if self.is_folder { self.path.join(file) } else { self.path.clone() };
        let data = fs::metadata(&path).map_err(|error| self.fault(&format!("{}: {error}", path.display())))?;
        let modified = data.modified().map_err(|error| self.fault(&error.to_string()))?;
        Ok(Stamp { modified, size: data.len() })
    }

    /// A file; `None` where there is none. A folder in a folder comes as a tar archive, as the original hands it on.
    pub(crate) fn read(&self, name: &str, most: u64) -> Result<Option<Vec<u8>>, Fault> {
        if name.split('/').any(|step| step.is_empty() || step == "..") || name.contains(['\\', '\0']) {
            return Err(self.fault(&format!("{name:?} is no name of a file in it")));
        }
        let read = if self.is_folder { self.read_from_folder(name, most) } else { self.read_from_archive(name, most) };
        read.map_err(|why| self.fault(&format!("its file {name}: {why}")))
    }

    /// The names of the files at the root of a folder, sorted; an archive has none to list.
    pub(crate) fn files(&self) -> Result<Vec<String>, Fault> {
        let listed = || -> io::Result<Vec<String>> {
            let mut names = Vec::new();
            for entry in fs::read_dir(&self.path)? {
                let entry = entry?;
                if entry.path().is_file() {
                    names.extend(entry.file_name().into_string());
                }
            }
            names.sort();
            Ok(names)
        };
        listed().map_err(|error| self.fault(&error.to_string()))
    }

    fn read_from_folder(&self, name: &str, most: u64) -> Result<Option<Vec<u8>>, String> {
        let path = match self.path.join(name).canonicalize() {
            Ok(path) => path,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.to_string()),
        };
        if !path.starts_with(&self.path) {
            return Err("it is a link that leads out of the folder".to_owned());
        }
        if path.is_dir() {
            return pack(&path, most).map(Some);
        }
        if !path.is_file() {
            return Err("it is a pipe, a socket or a device; remove it".to_owned());
        }
        let file = fs::File::open(&path).map_err(|error| error.to_string())?;
        bounded(file, most).map(Some)
    }

    fn read_from_archive(&self, name: &str, most: u64) -> Result<Option<Vec<u8>>, String> {
        let file = fs::File::open(&self.path).map_err(|error| error.to_string())?;
        let mut found = None;
        let walked = archive::walk(io::BufReader::new(file), ArchiveLimits::TRANSPORT, &mut |entry, size, content| {
            if entry == name && found.is_none() {
                let bytes =
                    bounded(content, most).map_err(|reason| ArchiveError::File { name: entry.to_owned(), reason })?;
                if bytes.len() as u64 != size {
                    let reason = "it is cut off".to_owned();
                    return Err(ArchiveError::File { name: entry.to_owned(), reason });
                }
                found = Some(bytes);
            }
            Ok(())
        });
        walked.map_err(|error| error.to_string())?;
        Ok(found)
    }

    /// A fault that names the archive.
    pub(crate) fn fault(&self, why: &str) -> Fault {
        let what = if self.is_folder { "folder" } else { "archive" };
        Fault::invalid(Code::ConfigurationProblem, format!("the {what} {}: {why}", self.display()))
    }
}

fn bounded(content: impl Read, most: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    content.take(most + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > most {
        return Err(format!("it has more than {most} bytes"));
    }
    Ok(bytes)
}

/// The files of a folder as a tar archive; links in it are not followed.
fn pack(folder: &Path, most: u64) -> Result<Vec<u8>, String> {
    let mut builder = tar::Builder::new(Vec::new());
    builder.follow_symlinks(false);
    builder.mode(tar::HeaderMode::Deterministic);
    let mut waiting = vec![folder.to_owned()];
    while let Some(next) = waiting.pop() {
        let mut entries = Vec::new();
        for entry in fs::read_dir(&next).map_err(|error| error.to_string())? {
            entries.push(entry.map_err(|error| error.to_string())?.path());
        }
        entries.sort();
        for path in entries {
            if path.is_dir() && !path.is_symlink() {
                waiting.push(path);
                continue;
            }
            let name = path.strip_prefix(folder).map_err(|error| error.to_string())?;
            builder.append_path_with_name(&path, name).map_err(|error| error.to_string())?;
            if builder.get_ref().len() as u64 > most {
                return Err(format!("it has more than {most} bytes"));
            }
        }
    }
    builder.into_inner().map_err(|error| error.to_string())
}
