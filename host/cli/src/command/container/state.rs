//! The state of a program as it is stored: a tar of its folder, packed with gzip and cut into pieces. That of the original, whose
//! last piece is filled up with other bytes, is read as well.

use std::{
    fs,
    io::{self, Read as _, Write},
    path::{Component, Path, PathBuf},
};

use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use tar::{Archive, Builder, EntryType, Header};

use super::ContainerError;

/// Bytes of a piece: what a Secret may hold.
pub const PIECE_BYTES: usize = 1_048_576;

/// The most files and folders of a state that is restored.
const MOST_STATE_ENTRIES: usize = 100_000;

/// The most bytes of them.
const MOST_STATE_BYTES: u64 = 4 << 30;

/// How deep the folders of a state may lie in each other.
const DEEPEST_STATE: usize = 64;

/// Memory that takes so many bytes and no more.
struct BoundedBytes {
    bytes: Vec<u8>,
    most: usize,
}

impl Write for BoundedBytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > self.most {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The state in a folder, in at most so many pieces; none where the folder is empty. Links and devices are left out.
///
/// # Errors
/// It does not fit, or cannot be read.
pub fn pack(folder: &Path, most_pieces: usize) -> Result<Vec<Vec<u8>>, ContainerError> {
    packed(folder, most_pieces, (MOST_STATE_ENTRIES, MOST_STATE_BYTES))
}

/// The same with so many files and folders, and so many bytes in them, as are restored.
fn packed(
    folder: &Path,
    most_pieces: usize,
    (most_entries, most_bytes): (usize, u64),
) -> Result<Vec<Vec<u8>>, ContainerError> {
    let too_large = |what: String| {
        ContainerError(format!("the state in {} has more than {what}; keep less in it", folder.display()))
    };
    let entries =
        entries(folder, most_entries)?.ok_or_else(|| too_large(format!("{most_entries} files and folders")))?;
    if entries.is_empty() {
        return Ok(Vec::new());
    }
    let most = PIECE_BYTES.saturating_mul(most_pieces);
    let failed = |path: &Path, error: &io::Error| {
        if error.kind() == io::ErrorKind::StorageFull {
            return ContainerError(format!(
                "the state in {} is larger than {most} bytes when it is packed, for which there is room; keep less in it, or raise \
                 stateSecrets in the configuration of the container deployer",
                folder.display()
            ));
        }
        ContainerError::file(path, "stored with the state", error)
    };
    let room = BoundedBytes { bytes: Vec::new(), most };
    let mut archive = Builder::new(GzEncoder::new(room, Compression::default()));
    let mut left = most_bytes;
    for (name, is_folder) in &entries {
        let path = folder.join(name);
        let bytes = append(&mut archive, name, &path, (*is_folder, left)).map_err(|error| failed(&path, &error))?;
        left =
            bytes.and_then(|bytes| left.checked_sub(bytes)).ok_or_else(|| too_large(format!("{most_bytes} bytes")))?;
    }
    let packed = archive.into_inner().and_then(GzEncoder::finish).map_err(|error| failed(folder, &error))?;
    Ok(packed.bytes.chunks(PIECE_BYTES).map(<[u8]>::to_vec).collect())
}

/// The bytes that were appended; `None` where there were more than may be.
fn append(
    archive: &mut Builder<impl Write>,
    name: &Path,
    path: &Path,
    (is_folder, most): (bool, u64),
) -> io::Result<Option<u64>> {
    let mut header = Header::new_gnu();
    header.set_mode(if is_folder { 0o755 } else { 0o644 });
    if is_folder {
        header.set_entry_type(EntryType::Directory);
        header.set_size(0);
        archive.append_data(&mut header, name, io::empty())?;
        return Ok(Some(0));
    }
    let file = fs::File::open(path)?;
    let bytes = file.metadata()?.len();
    if bytes > most {
        return Ok(None);
    }
    header.set_entry_type(EntryType::Regular);
    header.set_size(bytes);
    archive.append_data(&mut header, name, file)?;
    Ok(Some(bytes))
}

/// Folders and regular files below a folder, each folder before what is in it, sorted; `None` where there are more than so many.
fn entries(root: &Path, most: usize) -> Result<Option<Vec<(PathBuf, bool)>>, ContainerError> {
    let mut found = Vec::new();
    let mut open = vec![PathBuf::new()];
    while let Some(folder) = open.pop() {
        let place = root.join(&folder);
        if folder.components().count() > DEEPEST_STATE {
            return Err(ContainerError(format!(
                "the folders of the state lie deeper in each other than {DEEPEST_STATE} at {}; keep it flatter",
                place.display()
            )));
        }
        let unread = |error: io::Error| ContainerError::file(&place, "read", &error);
        for entry in fs::read_dir(&place).map_err(unread)? {
            let entry = entry.map_err(unread)?;
            let (kind, name) = (entry.file_type().map_err(unread)?, folder.join(entry.file_name()));
            if kind.is_dir() {
                open.push(name.clone());
            }
            if kind.is_dir() || kind.is_file() {
                found.push((name, kind.is_dir()));
            }
            if found.len() > most {
                return Ok(None);
            }
        }
    }
    found.sort();
    Ok(Some(found))
}

/// Restores a state from its joined pieces. Only folders and regular files are made.
///
/// # Errors
/// It is no state, or larger than it may be, or cannot be written.
pub fn unpack(pieces: &[u8], folder: &Path) -> Result<(), ContainerError> {
    restore(pieces, folder, (MOST_STATE_ENTRIES, MOST_STATE_BYTES))
}

fn restore(pieces: &[u8], folder: &Path, (entries, bytes): (usize, u64)) -> Result<(), ContainerError> {
    let broken = |error: io::Error| {
        ContainerError(format!(
            "the stored state cannot be restored: {error}; delete its Secrets if the program can do without it"
        ))
    };
    let too_large = |what: String| {
        ContainerError(format!(
            "the stored state has more than {what}; delete its Secrets if the program can do without it"
        ))
    };
    let (mut count, mut left) = (0, bytes);
    // What follows the packed archive is of no meaning, and so is what follows the end of the tar.
    let mut archive = Archive::new(GzDecoder::new(pieces));
    for entry in archive.entries().map_err(broken)? {
        let mut entry = entry.map_err(broken)?;
        count += 1;
        if count > entries {
            return Err(too_large(format!("{entries} files and folders")));
        }
        let name = entry.path().map_err(broken)?.into_owned();
        let is_below = name.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        if !is_below {
            return Err(ContainerError(format!(
                "the stored state has a file {name:?} outside of it; delete its Secrets"
            )));
        }
        let path = folder.join(&name);
        let unwritten = |error: io::Error| ContainerError::file(&path, "restored", &error);
        match entry.header().entry_type() {
            EntryType::Directory => fs::create_dir_all(&path).map_err(unwritten)?,
            EntryType::Regular | EntryType::Continuous => {
                if let Some(parent) = path.parent() {
                    fs::create_dir_all(parent).map_err(unwritten)?;
                }
                let mut file = fs::File::create(&path).map_err(unwritten)?;
                let copied = io::copy(&mut entry.by_ref().take(left + 1), &mut file).map_err(broken)?;
                left = left.checked_sub(copied).ok_or_else(|| too_large(format!("{bytes} bytes")))?;
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// Bytes that do not become less when they are packed.
    fn noise(length: usize) -> Vec<u8> {
        let mut state = 1_u64;
        let next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        };
        std::iter::repeat_with(next).take(length).collect()
    }

    #[test]
    fn con_12_a_state_comes_back_byte_for_byte_without_its_links() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir_all(from.path().join("a/empty")).unwrap();
        fs::write(from.path().join("a/count"), "1").unwrap();
        let large = noise(PIECE_BYTES + 10);
        fs::write(from.path().join("large"), &large).unwrap();
        symlink("/etc/passwd", from.path().join("link")).unwrap();
        let pieces = pack(from.path(), 2).unwrap();
        assert_eq!(pieces.iter().map(Vec::len).filter(|length| *length == PIECE_BYTES).count(), 1);
        assert_eq!(pieces.len(), 2);
        // The original fills up the last piece with other bytes.
        let mut joined = pieces.concat();
        joined.resize(2 * PIECE_BYTES, 7);
        unpack(&joined, to.path()).unwrap();
        assert_eq!(fs::read(to.path().join("large")).unwrap(), large);
        assert_eq!(fs::read_to_string(to.path().join("a/count")).unwrap(), "1");
        assert!(to.path().join("a/empty").is_dir());
        assert!(!to.path().join("link").exists());
    }

    #[test]
    fn con_13_an_empty_folder_is_no_state() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(pack(folder.path(), 1).unwrap(), Vec::<Vec<u8>>::new());
    }

    #[test]
    fn limits_container_state_what_has_no_room_is_told() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a"), noise(PIECE_BYTES)).unwrap();
        let error = pack(folder.path(), 1).unwrap_err().to_string();
        assert!(error.contains(&format!("is larger than {PIECE_BYTES} bytes when it is packed")), "{error}");
        assert_eq!(pack(folder.path(), 2).unwrap().len(), 2);
    }

    #[test]
    fn limits_container_state_files_and_bytes_that_are_restored_have_a_number() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(from.path().join("a"), "12").unwrap();
        fs::write(from.path().join("b"), "34").unwrap();
        let packed = pack(from.path(), 1).unwrap().concat();
        assert!(restore(&packed, to.path(), (2, 4)).is_ok());
        let refused = |most| restore(&packed, to.path(), most).unwrap_err().to_string();
        assert!(refused((1, 4)).starts_with("the stored state has more than 1 files and folders"));
        assert!(refused((2, 3)).starts_with("the stored state has more than 3 bytes"));
        // What could not be restored is not stored.
        assert_eq!(super::packed(from.path(), 1, (2, 4)).unwrap().concat(), packed);
        let folder = from.path().display();
        let refused = |most| super::packed(from.path(), 1, most).unwrap_err().to_string();
        assert_eq!(
            refused((1, 4)),
            format!("the state in {folder} has more than 1 files and folders; keep less in it")
        );
        assert_eq!(refused((2, 3)), format!("the state in {folder} has more than 3 bytes; keep less in it"));
    }

    #[test]
    fn limits_container_state_folders_lie_so_deep_at_most() {
        let folder = tempfile::tempdir().unwrap();
        let deep = |levels: usize| (0..levels).map(|_| "d").collect::<PathBuf>();
        fs::create_dir_all(folder.path().join(deep(DEEPEST_STATE))).unwrap();
        assert_eq!(pack(folder.path(), 1).unwrap().len(), 1);
        fs::create_dir_all(folder.path().join(deep(DEEPEST_STATE + 1))).unwrap();
        assert!(pack(folder.path(), 1).unwrap_err().to_string().contains("lie deeper in each other than 64"));
    }
}
