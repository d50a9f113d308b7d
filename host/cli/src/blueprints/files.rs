//! The files of a blueprint in a folder, read when they are asked for. Nothing outside of the folder is read, also not
//! through links.

use std::{
    fs,
    path::{Component, Path, PathBuf},
};

use orangery_blueprint::FileSystem;
use orangery_core::listing;
use orangery_ocm::Files;
use serde_json::{Map, Value};

use crate::folder::content_of;

/// The most files and folders of a folder that is written as an inline blueprint, each as often as links lead to it: as many as an
/// archive may have.
const MOST_ENTRIES: usize = 10_000;

/// The longest file of a blueprint that is read, in bytes.
const LONGEST: u64 = 64 << 20;

/// A folder with a blueprint.
pub struct FolderFiles {
    root: PathBuf,
}

impl FolderFiles {
    /// The files of this folder.
    pub fn new(root: &Path) -> Self {
        let root = if root.as_os_str().is_empty() { Path::new(".") } else { root };
        Self { root: root.to_owned() }
    }

    /// A path below the folder, as it is on disk.
    fn find(&self, path: &str) -> Result<PathBuf, String> {
        let mut below = PathBuf::new();
        for part in Path::new(path.trim_start_matches('/')).components() {
            match part {
                Component::Normal(name) => below.push(name),
                Component::ParentDir => {
                    below.pop();
                }
                Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
            }
        }
        let outside =
            || format!("{path} leads out of the folder of the blueprint; keep its files below blueprint.yaml");
        let root = self.root.canonicalize().map_err(|error| format!("{}: {error}", self.root.display()))?;
        let found = root.join(&below).canonicalize().map_err(|_| missing(&root, path, &below))?;
        if found.starts_with(&root) { Ok(found) } else { Err(outside()) }
    }

    /// All files as an Installation has them in `spec.blueprint.inline.filesystem`; `None` where they have more than
    /// `most` bytes, there are too many of them, or something is no file that can be read.
    pub fn tree(&self, most: u64) -> Option<Value> {
        let mut left = (most, MOST_ENTRIES);
        self.subtree("", &mut left).map(Value::Object)
    }

    fn subtree(&self, folder: &str, left: &mut (u64, usize)) -> Option<Map<String, Value>> {
        let mut tree = Map::new();
        for name in self.list(folder).ok()? {
            left.1 = left.1.checked_sub(1)?;
            let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
            let found = self.find(&path).ok()?;
            let value = if found.is_dir() {
                Value::Object(self.subtree(&path, left)?)
            } else {
                left.0 = left.0.checked_sub(fs::metadata(&found).ok()?.len())?;
                Value::String(FileSystem::written(&self.read(&path).ok()?))
            };
            tree.insert(name, value);
        }
        Some(tree)
    }
}

/// That a file is missing below a folder, with what there is instead: nothing of what lies elsewhere behind a link is named.
fn missing(root: &Path, path: &str, below: &Path) -> String {
    let folder = below.parent().unwrap_or(Path::new(""));
    let is_below = |found: &PathBuf| found.starts_with(root);
    let names = root.join(folder).canonicalize().ok().filter(is_below).and_then(|found| names(&found).ok());
    let folder = if folder.as_os_str().is_empty() { "it".to_owned() } else { format!("{}/", folder.display()) };
    let names = names.filter(|names| !names.is_empty()).map_or_else(|| "nothing".to_owned(), listing::joined);
    format!("the blueprint has no file {path}; {folder} has {names}")
}

fn names(folder: &Path) -> Result<Vec<String>, std::io::Error> {
    let entries = fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
    let mut names: Vec<String> = entries.iter().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    Ok(names)
}

impl Files for FolderFiles {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        let found = self.find(path)?;
        let message = |error: std::io::Error| format!("the blueprint file {path} cannot be read: {error}");
        if found.is_dir() {
            return Err(format!("{path} is a folder of the blueprint, not a file"));
        }
        if !found.is_file() {
            return Err(format!("{path} is no file of the blueprint, but a pipe, a socket or a device; remove it"));
        }
        let content = content_of(&found, LONGEST).map_err(message)?;
        content.ok_or_else(|| format!("the blueprint file {path} has more than {} MiB", LONGEST >> 20))
    }

    fn list(&self, path: &str) -> Result<Vec<String>, String> {
        let found = self.find(path)?;
        if !found.is_dir() {
            return Err(format!("{path} is a file of the blueprint, not a folder"));
        }
        names(&found).map_err(|error| format!("the blueprint folder {path} cannot be read: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_below_the_folder_and_nowhere_else() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("b");
        fs::create_dir_all(root.join("sub")).unwrap();
        fs::write(root.join("sub/a.yaml"), "text").unwrap();
        fs::write(folder.path().join("secret"), "secret").unwrap();
        std::os::unix::fs::symlink("../secret", root.join("link")).unwrap();
        let files = FolderFiles::new(&root);
        for path in ["sub/a.yaml", "/sub/./a.yaml", "../sub/a.yaml", "sub/../sub/a.yaml"] {
            assert_eq!(files.read(path), Ok(b"text".to_vec()), "{path}");
        }
        assert_eq!(files.list("sub"), Ok(vec!["a.yaml".to_owned()]));
        assert_eq!(files.list(""), Ok(vec!["link".to_owned(), "sub".to_owned()]));
        let message = |path: &str| files.read(path).unwrap_err();
        assert_eq!(message("../secret"), "the blueprint has no file ../secret; it has link, sub");
        assert_eq!(
            message("link"),
            "link leads out of the folder of the blueprint; keep its files below blueprint.yaml"
        );
        assert_eq!(message("sub/b.yaml"), "the blueprint has no file sub/b.yaml; sub/ has a.yaml");
        std::os::unix::fs::symlink("..", root.join("above")).unwrap();
        assert_eq!(message("above/x"), "the blueprint has no file above/x; above/ has nothing", "no name of elsewhere");
        fs::remove_file(root.join("above")).unwrap();
        assert_eq!(message("sub"), "sub is a folder of the blueprint, not a file");
        assert_eq!(files.list("sub/a.yaml").unwrap_err(), "sub/a.yaml is a file of the blueprint, not a folder");
    }

    #[test]
    fn c_166_what_is_no_file_is_not_opened() {
        let folder = tempfile::tempdir().unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(folder.path().join("a")).unwrap();
        let files = FolderFiles::new(folder.path());
        let message = "a is no file of the blueprint, but a pipe, a socket or a device; remove it";
        assert_eq!(files.read("a"), Err(message.to_owned()));
        assert_eq!(files.tree(100), None);
    }

    #[test]
    fn a_folder_is_written_as_the_inline_blueprint_that_it_would_be() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("sub")).unwrap();
        fs::write(folder.path().join("sub/a.yaml"), "text").unwrap();
        fs::write(folder.path().join("b.wasm"), [0xff, 0]).unwrap();
        let files = FolderFiles::new(folder.path());
        let tree = files.tree(6).unwrap();
        let binary = "---Start Binary---\n/wA=\n---End Binary---\n";
        assert_eq!(tree, serde_json::json!({"sub": {"a.yaml": "text"}, "b.wasm": binary}));
        let parsed = FileSystem::parse(&tree).unwrap();
        assert_eq!(parsed.read("b.wasm"), Ok(vec![0xff, 0]));
        assert_eq!(files.tree(5), None, "more than asked for");
    }

    #[test]
    fn c_166_limits_folders_that_links_double_with_each_level_end() {
        let folder = tempfile::tempdir().unwrap();
        for level in 0..20 {
            let at = folder.path().join(level.to_string());
            fs::create_dir(&at).unwrap();
            for name in ["a", "b"] {
                std::os::unix::fs::symlink(format!("../{}", level + 1), at.join(name)).unwrap();
            }
        }
        fs::create_dir(folder.path().join("20")).unwrap();
        assert_eq!(FolderFiles::new(folder.path()).tree(u64::MAX), None, "it has a million of them");
    }
}
