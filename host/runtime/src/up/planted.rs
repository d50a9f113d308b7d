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
    if is_tracked(&folder) {
        return planted("is tracked by git", format!("git rm -r --cached {} and ignore it", folder.display()));
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

/// Whether git tracks something of a folder in a working tree above it. Git is not asked: a repository of somebody else may say
/// what it runs.
fn is_tracked(folder: &Path) -> bool {
    let mut trees = folder.ancestors().skip(1);
    let Some((tree, index)) = trees.find_map(|tree| Some((tree, index(&tree.join(".git"))?))) else { return false };
    let Ok(within) = folder.strip_prefix(tree) else { return false };
    let prefix = [within.as_os_str().as_bytes(), b"/"].concat();
    index.windows(prefix.len()).enumerate().any(|(at, bytes)| bytes == prefix && is_whole_path(&index, at))
}

/// Whether what stands here in an index is a whole path: its length stands before it, in the low twelve bits of the flags, or
/// before further flags.
fn is_whole_path(index: &[u8], at: usize) -> bool {
    let length = index.iter().skip(at).take_while(|byte| **byte != 0).count().min(0xfff);
    [2, 4].into_iter().any(|back| {
        let flags = at.checked_sub(back).and_then(|begin| index.get(begin..begin + 2));
        flags.is_some_and(|flags| {
            flags.iter().fold(0, |flags, byte| (flags << 8) | usize::from(*byte)) & 0xfff == length
        })
    })
}

/// The index of a repository: paths stand in it whole, each after fields of a fixed size (gitformat-index, versions 2 and 3).
fn index(git: &Path) -> Option<Vec<u8>> {
    let folder = match fs::read_to_string(git) {
        // A working tree of another repository, or a submodule.
        Ok(text) => git.parent()?.join(PathBuf::from(text.strip_prefix("gitdir:")?.trim())),
        Err(_) => git.to_owned(),
    };
    let index = folder.join("index");
    let is_readable = fs::metadata(&index).is_ok_and(|found| found.is_file() && found.len() <= LONGEST_INDEX);
    is_readable.then(|| fs::read(&index).ok()).flatten()
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

    #[test]
    fn c_74_data_that_came_with_a_repository_is_not_taken_whatever_its_modes_are() {
        let entry = |path: &str| {
            let length = u16::try_from(path.len()).unwrap().to_be_bytes();
            [&b"DIRC\0\0\0\x02\0\0\0\x01"[..], &[7; 60], &length, path.as_bytes(), &[0; 8]].concat()
        };
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
