//! Files: each read and written whole, with its path in the error.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use sha2::{Digest as _, Sha256};

use crate::error::Error;

/// The content of a file.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Error> {
    fs::read(path).map_err(|source| Error::Read { path: path.to_owned(), source })
}

/// The same as text.
pub(crate) fn read_text(path: &Path) -> Result<String, Error> {
    String::from_utf8(read(path)?).map_err(|_| Error::content(path, "is not UTF-8; it should be text"))
}

/// All files below a folder, with their paths below it, sorted.
pub(crate) fn below(folder: &Path) -> Result<Vec<(String, PathBuf)>, Error> {
    let unread = |source| Error::Read { path: folder.to_owned(), source };
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(unread)? {
        let path = entry.map_err(unread)?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if path.is_dir() {
            found.extend(below(&path)?.into_iter().map(|(inner, path)| (format!("{name}/{inner}"), path)));
        } else {
            found.push((name, path));
        }
    }
    found.sort();
    Ok(found)
}

/// Writes a file, and the folders that it lies in.
pub(crate) fn write(path: &Path, content: &[u8]) -> Result<(), Error> {
    let made = path.parent().map_or(Ok(()), fs::create_dir_all);
    made.and_then(|()| fs::write(path, content)).map_err(|source| Error::Write { path: path.to_owned(), source })
}

/// Lets everybody run a file.
pub(crate) fn make_executable(path: &Path) -> Result<(), Error> {
    let made = fs::set_permissions(path, fs::Permissions::from_mode(0o755));
    made.map_err(|source| Error::Write { path: path.to_owned(), source })
}

/// The SHA-256 of bytes in hexadecimal digits.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
