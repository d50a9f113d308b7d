//! Whether the content of a data folder may have been put there by somebody else, as by a repository that was cloned (C-74):
//! its objects would be carried out, and whoever made it knows its token and the operator's key.

use std::{
    fs, io,
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::{Path, PathBuf},
};

use super::UpError;

/// The file with the server's token, in the data folder.
const IDENTITY: &str = "identity.json";

/// The most of an index of git that is read, in bytes: two million files have less.
const LONGEST_INDEX: u64 = 256 << 20;

/// Refuses a folder with content that others may have written or read. An empty one has nothing of anybody.
pub(super) fn check(folder: &Path) -> Result<(), UpError> {
    let unreadable = |source| UpError::Write { path: folder.to_owned(), source };
    let mut content = match fs::read_dir(folder) {
        Ok(content) => content,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(unreadable(source)),
    };
    if content.next().is_none() {
        return Ok(());
    }
    let folder = folder.canonicalize().map_err(unreadable)?;
    let planted = |why, own: String| {
        let fix = format!("if they are yours, {own}; else remove it, or choose another --data folder");
        Err(UpError::Planted { path: folder.clone(), why, fix })
    };
    match tracking(&folder) {
        GitTracking::No => {}
        GitTracking::Yes => {
            return planted("is tracked by git", format!("git rm -r --cached {} and ignore it", folder.display()));
        }
        GitTracking::Unknown => {
            let own = "have git write a whole index there, by git update-index --no-split-index --index-version 2";
            return planted("lies in a working tree of git whose index cannot be read", own.to_owned());
        }
    }
    let identity = folder.join(IDENTITY);
    let closed = format!("chmod -R go= {}", folder.display());
    if is_open(&folder).map_err(unreadable)? {
        return planted("was open to others", closed);
    }
    match is_open(&identity) {
        Ok(true) => planted("has an identity.json that was open to others", closed),
        Ok(false) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(source) => Err(UpError::Write { path: identity, source }),
    }
}

/// Whether others than the owner may do anything with a file or folder, or it is none but leads to one.
fn is_open(path: &Path) -> io::Result<bool> {
    let found = fs::symlink_metadata(path)?;
    Ok(found.is_symlink() || found.mode() & 0o077 != 0)
}

/// Whether git has something of a folder in the index of a working tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GitTracking {
    No,
    Yes,
    /// The index is none that is known here.
    Unknown,
}

/// Whether git tracks something of a folder in a working tree above it. Git is not asked: a repository of somebody else may say
/// what it runs.
fn tracking(folder: &Path) -> GitTracking {
    for tree in folder.ancestors().skip(1) {
        let index = index_of(&tree.join(".git"));
        let (Some(index), Ok(within)) = (index, folder.strip_prefix(tree)) else { continue };
        let prefix = [within.as_os_str().as_bytes(), b"/"].concat();
        match fs::metadata(&index) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Ok(found) if found.is_file() && found.len() <= LONGEST_INDEX => {}
            Ok(_) | Err(_) => return GitTracking::Unknown,
        }
        let read = fs::read(&index).ok();
        // Names of objects are SHA-1, or SHA-256.
        match read.and_then(|index| has_below(&index, &prefix, 20).or_else(|| has_below(&index, &prefix, 32))) {
            Some(false) => {}
            Some(true) => return GitTracking::Yes,
            None => return GitTracking::Unknown,
        }
    }
    GitTracking::No
}

/// Where the index of a repository is, whose `.git` this is; `None` where there is no repository.
fn index_of(git: &Path) -> Option<PathBuf> {
    let folder = match fs::read_to_string(git) {
        // A working tree of another repository, or a submodule.
        Ok(text) => git.parent()?.join(PathBuf::from(text.strip_prefix("gitdir:")?.trim())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(_) => git.to_owned(),
    };
    Some(folder.join("index"))
}

/// Whether an index has a path that begins so, where names of objects have this many bytes; `None` where it is no whole index of
/// versions 2 to 4 (gitformat-index), such as one that is split.
fn has_below(index: &[u8], prefix: &[u8], name: usize) -> Option<bool> {
    let version = number(index.strip_prefix(b"DIRC")?)?;
    let count = number(index.get(8..)?)?;
    if !(2..=4).contains(&version) {
        return None;
    }
    let (mut at, mut path, mut is_below) = (12, Vec::new(), false);
    for _ in 0..count {
        at = next_path(index, (at, version, name), &mut path)?;
        is_below |= path.starts_with(prefix);
    }
    let end = index.len().checked_sub(name)?;
    while at < end {
        // What may be left out begins with a capital letter.
        if !index.get(at)?.is_ascii_uppercase() {
            return None;
        }
        let length = usize::try_from(number(index.get(at + 4..)?)?).ok()?;
        at = at.checked_add(8)?.checked_add(length)?;
    }
    (at == end).then_some(is_below)
}

/// Makes the path of the one before that of the entry that begins here, and answers where the next one does.
fn next_path(index: &[u8], (at, version, name): (usize, u32, usize), path: &mut Vec<u8>) -> Option<usize> {
    const FIELDS: usize = 40;
    const EXTENDED: u16 = 0x4000;
    let begin = at.checked_add(FIELDS + name)?;
    let flags = u16::from_be_bytes(*index.get(begin..)?.first_chunk()?);
    let begin = begin + if flags & EXTENDED == 0 { 2 } else { 4 };
    let (kept, begin) = match version {
        4 => {
            let (removed, begin) = offset(index, begin)?;
            (path.len().checked_sub(removed)?, begin)
        }
        _ => (0, begin),
    };
    let rest = index.get(begin..)?;
    let length = rest.iter().position(|byte| *byte == 0)?;
    path.truncate(kept);
    path.extend_from_slice(rest.get(..length)?);
    if path.is_empty() || usize::from(flags & 0xfff) != path.len().min(0xfff) {
        return None;
    }
    let end = begin + length;
    // One to eight zeros follow, so that the length of the entry is a multiple of eight; in version 4 it is one.
    Some(if version == 4 { end + 1 } else { at + (end - at) / 8 * 8 + 8 })
}

/// A number of seven bits in each byte, the last one without the highest bit, and where what follows it begins.
fn offset(index: &[u8], mut at: usize) -> Option<(usize, usize)> {
    let mut found: usize = 0;
    loop {
        let byte = *index.get(at)?;
        at += 1;
        found = found.checked_mul(128)?.checked_add(usize::from(byte & 0x7f))?;
        if byte & 0x80 == 0 {
            return Some((found, at));
        }
        found = found.checked_add(1)?;
    }
}

fn number(bytes: &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn with_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    /// A data folder in a folder, with these modes of itself and of its identity.
    fn data(above: &Path, (mode, of_identity): (u32, u32)) -> PathBuf {
        let folder = above.canonicalize().unwrap().join(".orangery");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join(IDENTITY), "{}").unwrap();
        with_mode(&folder.join(IDENTITY), of_identity);
        with_mode(&folder, mode);
        folder
    }

    fn refused(folder: &Path) -> Option<String> {
        let error = check(folder).err()?;
        assert_eq!(error.exit(), orangery_cli::Exit::Usage);
        Some(error.to_string())
    }

    #[test]
    fn c_74_data_that_others_could_write_or_read_is_not_taken() {
        for (modes, why) in [
            ((0o755, 0o644), Some("was open to others")),
            ((0o755, 0o600), Some("was open to others")),
            ((0o700, 0o644), Some("has an identity.json that was open to others")),
            ((0o700, 0o600), None),
        ] {
            let above = tempfile::tempdir().unwrap();
            let folder = data(above.path(), modes);
            let place = folder.display();
            let expected = why.map(|why| {
                format!(
                    "{place} {why}, so its objects, its credentials and its keys may be of somebody else; if they are yours, \
                     chmod -R go= {place}; else remove it, or choose another --data folder"
                )
            });
            assert_eq!(refused(&folder), expected);
            with_mode(&folder, 0o700);
            with_mode(&folder.join(IDENTITY), 0o600);
            assert_eq!(refused(&folder), None, "what the sentence says helps");
        }
        let above = tempfile::tempdir().unwrap();
        let folder = data(above.path(), (0o700, 0o600));
        fs::rename(folder.join(IDENTITY), above.path().join("elsewhere")).unwrap();
        assert_eq!(refused(&folder), None, "nothing is in it");
        symlink(above.path().join("elsewhere"), folder.join(IDENTITY)).unwrap();
        assert!(refused(&folder).is_some_and(|message| message.contains("has an identity.json that was open")));
    }

    /// An index of this version, with names of objects of so many bytes, paths in their order, and extensions.
    fn index(version: u8, name: usize, paths: &[&str], extensions: &[u8]) -> Vec<u8> {
        let count = u32::try_from(paths.len()).unwrap().to_be_bytes();
        let mut made = [&b"DIRC\0\0\0"[..], &[version], &count].concat();
        let mut before = "";
        for path in paths {
            let entry = made.len();
            made.extend(vec![7; 40 + name]);
            let extended = if version == 3 { 0x4000 } else { 0 };
            made.extend((u16::try_from(path.len().min(0xfff)).unwrap() | extended).to_be_bytes());
            made.extend(vec![0; if version == 3 { 2 } else { 0 }]);
            if version == 4 {
                let shared = before.bytes().zip(path.bytes()).take_while(|(one, other)| one == other).count();
                let removed = before.len() - shared;
                made.extend(match removed.checked_sub(128) {
                    Some(high) => vec![0x80 | u8::try_from(high / 128).unwrap(), u8::try_from(high % 128).unwrap()],
                    None => vec![u8::try_from(removed).unwrap()],
                });
                made.extend([&path.as_bytes()[shared..], b"\0"].concat());
            } else {
                made.extend(path.as_bytes());
                made.extend(vec![0; 8 - (made.len() - entry) % 8]);
            }
            before = path;
        }
        made.extend(extensions);
        made.extend(vec![9; name]);
        made
    }

    #[test]
    fn c_74_an_index_is_read_whatever_its_version_is_and_what_cannot_be_read_is_not_taken_for_none() {
        let above = tempfile::tempdir().unwrap();
        let folder = data(above.path(), (0o700, 0o600));
        let git = above.path().join(".git");
        fs::create_dir(&git).unwrap();
        let found = |index: &[u8]| {
            fs::write(git.join("index"), index).unwrap();
            tracking(&folder)
        };
        let long = format!("a/{}", "x".repeat(5_000));
        let others = [".gitignore", &long, "b"];
        let tracked = [".gitignore", ".orangery/identity.json", ".orangery/objects/1", &long, "b"];
        let tree = b"TREE\0\0\0\x02ab";
        for (version, name) in [(2, 20), (3, 20), (4, 20), (2, 32), (4, 32)] {
            assert_eq!(found(&index(version, name, &others, tree)), GitTracking::No, "version {version}, {name}");
            assert_eq!(found(&index(version, name, &tracked, tree)), GitTracking::Yes, "version {version}, {name}");
            assert_eq!(found(&index(version, name, &[], b"")), GitTracking::No, "version {version}, {name}");
        }
        let whole = index(2, 20, &others, b"");
        for (index, why) in [
            (index(2, 20, &others, b"link\0\0\0\x14ABCDEFGHIJKLMNOPQRST"), "it is split"),
            (index(2, 20, &others, b"sdir\0\0\0\0"), "it is sparse"),
            (index(5, 20, &others, b""), "a later version"),
            (whole.get(..whole.len() - 30).unwrap().to_vec(), "it is cut"),
            (b"DIRC\0\0\0\x02\xff\xff\xff\xff".to_vec(), "it has fewer than it says"),
            (b"".to_vec(), "it is empty"),
        ] {
            assert_eq!(found(&index), GitTracking::Unknown, "{why}");
        }
        let message = refused(&folder).unwrap();
        assert!(
            message.contains(" lies in a working tree of git whose index cannot be read, so its objects"),
            "{message}"
        );
        // A hole takes no room on the disk.
        fs::File::create(git.join("index")).unwrap().set_len(LONGEST_INDEX + 1).unwrap();
        assert_eq!(tracking(&folder), GitTracking::Unknown);
        fs::remove_file(git.join("index")).unwrap();
        assert_eq!(tracking(&folder), GitTracking::No);
    }

    #[test]
    fn c_74_data_that_came_with_a_repository_is_not_taken_whatever_its_modes_are() {
        let entry = |path: &str| index(2, 20, &[path], b"");
        let above = tempfile::tempdir().unwrap();
        let deep = above.path().join("deep");
        fs::create_dir(&deep).unwrap();
        let folder = data(&deep, (0o700, 0o600));
        let git = above.path().join(".git");
        fs::create_dir(&git).unwrap();
        assert_eq!(refused(&folder), None, "nothing is tracked yet");
        for (tracked, is_refused) in [
            ("deep/.orangery/identity.json", true),
            ("deep/.orangeryx/identity.json", false),
            ("deep/.orangery", false),
            ("other/deep/.orangery/identity.json", false),
            ("README.md", false),
        ] {
            fs::write(git.join("index"), entry(tracked)).unwrap();
            let place = folder.display();
            let expected = format!(
                "{place} is tracked by git, so its objects, its credentials and its keys may be of somebody else; if they are \
                 yours, git rm -r --cached {place} and ignore it; else remove it, or choose another --data folder"
            );
            assert_eq!(refused(&folder), is_refused.then_some(expected), "{tracked}");
        }
        fs::write(git.join("index"), entry("deep/.orangery/FORMAT")).unwrap();
        fs::rename(&git, above.path().join("elsewhere")).unwrap();
        fs::write(&git, "gitdir: elsewhere\n").unwrap();
        assert!(refused(&folder).is_some(), "a working tree of another repository");
    }

    #[test]
    fn c_74_a_folder_that_is_new_or_empty_has_nothing_of_anybody() {
        let above = tempfile::tempdir().unwrap();
        assert_eq!(refused(&above.path().join("new")), None);
        let empty = above.path().join("empty");
        fs::create_dir(&empty).unwrap();
        with_mode(&empty, 0o777);
        assert_eq!(refused(&empty), None);
    }
}
