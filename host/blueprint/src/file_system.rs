//! The files of an inline blueprint, in the form of mandelsoft's yamlfs (`docs/wire.md` §1.1).

use std::{collections::BTreeMap, fmt};

use data_encoding::BASE64;
use serde_json::{Map, Value};

use orangery_core::{digest, listing::NameListing};
use orangery_ocm::Files;

/// The files of one blueprint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileSystem {
    root: BTreeMap<String, FileSystemEntry>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum FileSystemEntry {
    File(Vec<u8>),
    Folder(BTreeMap<String, FileSystemEntry>),
    /// A path, relative to the folder it stands in unless it begins with a slash.
    Link(String),
}

/// What cannot be read as files.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileSystemError {
    /// The root is no map.
    #[error(
        "spec.blueprint.inline.filesystem is not a map from file names to contents; write `blueprint.yaml: |` and the content below it"
    )]
    NoMap,
    /// A list stands for a file.
    #[error("the blueprint file {path} is a list; write its content as text, with `|` after the name")]
    List {
        /// The file.
        path: String,
    },
    /// An entry with `$type` that has no content of that type.
    #[error(
        "the blueprint file {path} is of type {type_:?}, but its `value` does not fit; known types are directory, symlink, yaml and json"
    )]
    Typed {
        /// The file.
        path: String,
        /// Its `$type`.
        type_: String,
    },
    /// A name that is too long.
    #[error(
        "a file or folder of the blueprint has a name of {length} bytes, which begins {name:?}; names have {LONGEST_NAME} bytes at most"
    )]
    LongName {
        /// How it begins.
        name: String,
        /// Bytes of it.
        length: usize,
    },
    /// The content between the markers of a binary file is not base64.
    #[error("the blueprint file {path} is not base64 between its binary markers")]
    Base64 {
        /// The file.
        path: String,
    },
}

const BINARY_START: &str = "---Start Binary---";
const BINARY_END: &str = "---End Binary---";
/// As many links as any honest path has.
const MOST_LINKS: usize = 32;
/// The most steps that are left to walk at a time.
const MOST_STEPS: usize = 1024;
/// Bytes of the longest name of a file or a folder, as in archives.
const LONGEST_NAME: usize = 1024;
/// Letters of a path that a message has.
const MOST_SHOWN: usize = 253;

/// Where an entry stands: in a folder, or at the root.
#[derive(Clone, Copy)]
struct EntryPath<'p> {
    above: Option<&'p EntryPath<'p>>,
    name: &'p str,
}

impl fmt::Display for EntryPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(above) = self.above {
            write!(f, "{above}/")?;
        }
        f.write_str(self.name)
    }
}

impl FileSystem {
    /// Reads nested maps: a map is a folder, a text a file, a map with `$type` a typed entry.
    pub fn parse(tree: &Value) -> Result<Self, FileSystemError> {
        let map = tree.as_object().ok_or(FileSystemError::NoMap)?;
        Ok(Self { root: folder(map, None)? })
    }

    /// The files of an archive, by slash-separated path; a later one of the same path counts. A path through a file
    /// is an error, as is an empty one.
    pub fn of_files(files: impl IntoIterator<Item = (String, Vec<u8>)>) -> Result<Self, String> {
        let mut root = BTreeMap::new();
        for (path, content) in files {
            let mut steps: Vec<&str> = path.split('/').filter(|step| !step.is_empty() && *step != ".").collect();
            let name = steps.pop().ok_or_else(|| format!("{path:?} is no name of a file"))?;
            let mut folder = &mut root;
            for step in steps {
                let entry = folder.entry(step.to_owned()).or_insert_with(|| FileSystemEntry::Folder(BTreeMap::new()));
                match entry {
                    FileSystemEntry::Folder(entries) => folder = entries,
                    FileSystemEntry::File(_) | FileSystemEntry::Link(_) => {
                        return Err(format!("{path:?} lies in a file, not in a folder"));
                    }
                }
            }
            if let Some(FileSystemEntry::Folder(_)) = folder.insert(name.to_owned(), FileSystemEntry::File(content)) {
                return Err(format!("{path:?} is a file and a folder"));
            }
        }
        Ok(Self { root })
    }

    /// Bytes of all files, and of the names of files and folders.
    pub fn bytes(&self) -> usize {
        let (mut bytes, mut folders) = (0, vec![&self.root]);
        while let Some(folder) = folders.pop() {
            for (name, entry) in folder {
                bytes += name.len();
                match entry {
                    FileSystemEntry::Folder(entries) => folders.push(entries),
                    FileSystemEntry::File(content) => bytes += content.len(),
                    FileSystemEntry::Link(to) => bytes += to.len(),
                }
            }
        }
        bytes
    }

    /// A file as a tree has it: its text, or base64 between markers.
    pub fn written(content: &[u8]) -> String {
        match std::str::from_utf8(content) {
            Ok(text) => text.to_owned(),
            Err(_) => format!("{BINARY_START}\n{}\n{BINARY_END}\n", BASE64.encode(content)),
        }
    }

    fn find(&self, path: &str) -> Result<&FileSystemEntry, String> {
        let mut rest: Vec<&str> = steps(path);
        let mut walked: Vec<(&str, &BTreeMap<String, FileSystemEntry>)> = vec![("", &self.root)];
        let mut links = 0;
        let unknown = || format!("the blueprint has no file {path}; it has {}", self.known());
        while let Some(step) = rest.pop() {
            match step {
                "." => continue,
                ".." => {
                    if walked.len() > 1 {
                        walked.pop();
                    }
                    continue;
                }
                _ => {}
            }
            let (name, entry) = match walked.last().and_then(|(_, entries)| entries.get_key_value(step)) {
                Some((name, entry)) => (name, entry),
                None => return Err(unknown()),
            };
            match entry {
                FileSystemEntry::Folder(entries) => walked.push((name, entries)),
                FileSystemEntry::Link(target) => {
                    links += 1;
                    let ahead = steps(target);
                    if links > MOST_LINKS || rest.len() + ahead.len() > MOST_STEPS {
                        return Err(format!("the links of the blueprint file {path} lead nowhere"));
                    }
                    if target.starts_with('/') {
                        walked.truncate(1);
                    }
                    rest.extend(ahead);
                }
                FileSystemEntry::File(_) if rest.is_empty() => return Ok(entry),
                FileSystemEntry::File(_) => return Err(unknown()),
            }
        }
        self.folder_entry(&walked).ok_or_else(unknown)
    }

    /// The folder walked to, as an entry of its parent; the root has none.
    fn folder_entry<'a>(
        &'a self,
        walked: &[(&str, &'a BTreeMap<String, FileSystemEntry>)],
    ) -> Option<&'a FileSystemEntry> {
        let [.., (_, parent), (name, _)] = walked else { return None };
        parent.get(*name)
    }

    /// What is in a file.
    fn content(&self, path: &str) -> Result<&[u8], String> {
        match self.find(path)? {
            FileSystemEntry::File(content) => Ok(content),
            FileSystemEntry::Folder(_) | FileSystemEntry::Link(_) => Err(is_a_folder(path)),
        }
    }

    /// The paths of the first files, for messages, and how many more there are.
    fn known(&self) -> String {
        let mut listing = NameListing::default();
        list(&self.root, None, &mut listing);
        listing.to_string()
    }
}

/// The steps of a path, the first last.
fn steps(path: &str) -> Vec<&str> {
    path.split('/').rev().filter(|step| !step.is_empty()).collect()
}

fn list(entries: &BTreeMap<String, FileSystemEntry>, above: Option<&EntryPath<'_>>, listing: &mut NameListing) {
    for (name, entry) in entries {
        let path = EntryPath { above, name };
        match entry {
            FileSystemEntry::File(_) | FileSystemEntry::Link(_) => {
                listing.add(|| path.to_string().chars().take(MOST_SHOWN).collect());
            }
            FileSystemEntry::Folder(entries) => list(entries, Some(&path), listing),
        }
    }
}

fn folder(
    map: &Map<String, Value>,
    above: Option<&EntryPath<'_>>,
) -> Result<BTreeMap<String, FileSystemEntry>, FileSystemError> {
    let entry = |(name, value): (&String, &Value)| {
        if name.len() > LONGEST_NAME {
            let (length, name) = (name.len(), name.chars().take(MOST_SHOWN).collect());
            return Err(FileSystemError::LongName { name, length });
        }
        Ok((name.clone(), entry(value, &EntryPath { above, name })?))
    };
    map.iter().map(entry).collect()
}

fn entry(value: &Value, path: &EntryPath<'_>) -> Result<FileSystemEntry, FileSystemError> {
    match value {
        Value::Null => Ok(FileSystemEntry::File(Vec::new())),
        Value::Bool(bool) => Ok(FileSystemEntry::File(bool.to_string().into_bytes())),
        Value::Number(number) => Ok(FileSystemEntry::File(number.to_string().into_bytes())),
        Value::String(text) => content(text, path).map(FileSystemEntry::File),
        Value::Array(_) => Err(FileSystemError::List { path: path.to_string() }),
        Value::Object(map) => match map.get("$type").and_then(Value::as_str) {
            None => Ok(FileSystemEntry::Folder(folder(map, Some(path))?)),
            Some(type_) => typed(map, type_, path),
        },
    }
}

fn typed(map: &Map<String, Value>, type_: &str, path: &EntryPath<'_>) -> Result<FileSystemEntry, FileSystemError> {
    let misfit = || FileSystemError::Typed { path: path.to_string(), type_: type_.to_owned() };
    let value = map.get("value").filter(|value| !value.is_null());
    match (type_, value) {
        ("directory", None) => Ok(FileSystemEntry::Folder(BTreeMap::new())),
        ("directory", Some(Value::Object(entries))) => Ok(FileSystemEntry::Folder(folder(entries, Some(path))?)),
        ("symlink", Some(Value::String(target))) => Ok(FileSystemEntry::Link(target.clone())),
        // JSON is YAML.
        ("yaml" | "json", Some(value)) => Ok(FileSystemEntry::File(value.to_string().into_bytes())),
        ("directory" | "symlink" | "yaml" | "json", _) => Err(misfit()),
        (_, Some(Value::String(text))) => content(text, path).map(FileSystemEntry::File),
        (_, None) => match map.get("binary") {
            Some(Value::String(text)) => content(text, path).map(FileSystemEntry::File),
            Some(_) | None => Err(misfit()),
        },
        (_, Some(_)) => Err(misfit()),
    }
}

/// The bytes of a text; between the markers of yamlfs it is base64.
fn content(text: &str, path: &EntryPath<'_>) -> Result<Vec<u8>, FileSystemError> {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    if let [BINARY_START, encoded @ .., BINARY_END] = lines.as_slice()
        && !encoded.is_empty()
    {
        let encoded: String = encoded.iter().map(|line| line.trim()).collect();
        return BASE64.decode(encoded.as_bytes()).map_err(|_| FileSystemError::Base64 { path: path.to_string() });
    }
    Ok(text.as_bytes().to_vec())
}

fn is_a_folder(path: &str) -> String {
    format!("{path} is a folder of the blueprint, not a file")
}

impl Files for FileSystem {
    fn check(&self, path: &str) -> Result<(), String> {
        self.content(path).map(drop)
    }

    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        self.content(path).map(<[u8]>::to_vec)
    }

    fn digest(&self, path: &str) -> Result<(String, u64), String> {
        self.content(path).map(|content| (digest::sha256(content), content.len() as u64))
    }

    fn list(&self, path: &str) -> Result<Vec<String>, String> {
        if steps(path).iter().all(|step| *step == ".") {
            return Ok(self.root.keys().cloned().collect());
        }
        match self.find(path)? {
            FileSystemEntry::Folder(entries) => Ok(entries.keys().cloned().collect()),
            FileSystemEntry::File(_) | FileSystemEntry::Link(_) => {
                Err(format!("{path} is a file of the blueprint, not a folder"))
            }
        }
    }
}
