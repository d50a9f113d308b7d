//! Reading manifests: a folder or a file becomes a list of objects, each with the place it was read from.
//!
//! As `kubectl apply -f` does: the `.yaml`, `.yml` and `.json` files of a folder, not of its subfolders, in the order of
//! their names; several documents in a file; `List` objects taken apart. Hidden files are left out.

use std::{
    fmt, fs,
    io::{self, Read as _},
    path::{Component, Path, PathBuf},
};

use orangery_core::name::{ApiVersion, Kind, Namespace, ObjectName};
use serde_json::Value;

#[cfg(test)]
mod tests;
mod text;

/// The name of the file with a registration that lies beside a component, its cases or its samples.
pub const REGISTRATION: &str = "plugin.yaml";

/// The folder of a project with the configurations that its deployer is tried with.
const SAMPLES: &str = "samples";

/// The longest file that is read, in bytes.
const LONGEST: u64 = 64 << 20;

/// Where an object was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectOrigin {
    /// The file, as the caller named it or its folder.
    pub file: PathBuf,
    /// The first line of the document, from 1.
    pub line: usize,
}

impl fmt::Display for ObjectOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file.display(), self.line)
    }
}

/// An object as a file has it.
#[derive(Clone, Debug, PartialEq)]
pub struct FolderManifest {
    /// Where it was read.
    pub origin: ObjectOrigin,
    /// Group and version.
    pub api_version: ApiVersion,
    /// The kind.
    pub kind: Kind,
    /// The namespace, where the file names one.
    pub namespace: Option<Namespace>,
    /// The name.
    pub name: ObjectName,
    /// The whole object.
    pub object: Value,
}

/// Why a folder cannot be deployed: one sentence with the place and the fix.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// Nothing is there.
    #[error("{} does not exist; name a folder or file with Kubernetes objects, such as examples/hello-world", path.display())]
    Missing {
        /// What was named.
        path: PathBuf,
    },
    /// A folder without manifests.
    #[error("the folder {} holds no .yaml, .yml or .json file; {}", path.display(), instead(below))]
    Empty {
        /// The folder.
        path: PathBuf,
        /// Its subfolders, by name.
        below: Vec<String>,
    },
    /// Files without a single object.
    #[error("{} holds no Kubernetes object: its documents are all empty; write one with apiVersion, kind and metadata.name", path.display())]
    NoObject {
        /// The folder or file.
        path: PathBuf,
    },
    /// A file or folder cannot be read.
    #[error("{} cannot be read: {cause}; check its permissions, and that it is UTF-8 text", path.display())]
    Unreadable {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        #[source]
        cause: io::Error,
    },
    /// A link of a folder to somewhere else: whoever made the folder has not what is there, and whoever reads it may (C-166).
    #[error("{} leads out of its folder, of which nothing else is read or written; copy what it means into the folder, or name that itself", path.display())]
    Outside {
        /// The link.
        path: PathBuf,
    },
    /// A pipe, a socket or a device in a folder.
    #[error("{} is neither a file nor a folder; remove it, or name the files that are meant", path.display())]
    Special {
        /// What it is named.
        path: PathBuf,
    },
    /// A file that is too long.
    #[error("{} has more than {} MiB; split it", path.display(), LONGEST >> 20)]
    TooLong {
        /// The file.
        path: PathBuf,
    },
    /// A file is no YAML.
    #[error("{}:{line}:{column}: {cause}; correct the YAML{snippet}", file.display())]
    Syntax {
        /// The file.
        file: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// What the parser says.
        cause: String,
        /// The place in the file, in lines of their own.
        snippet: String,
    },
    /// A document is no object.
    #[error("{origin}: this document is {found}, not a Kubernetes object; it needs apiVersion, kind and metadata.name")]
    NoMapping {
        /// Where.
        origin: ObjectOrigin,
        /// What it is.
        found: &'static str,
    },
    /// An object lacks what names it.
    #[error("{origin}: this {what} has no {field}; add it")]
    Nameless {
        /// Where.
        origin: ObjectOrigin,
        /// The object's kind, as far as known.
        what: String,
        /// What is missing.
        field: &'static str,
    },
    /// A configuration of the samples of a component's project, which is no object.
    #[error(
        "{origin}: this is a configuration to try a component with, not a Kubernetes object; it is for `orangery plugin conform`: \
         name a folder with objects"
    )]
    Sample {
        /// Where.
        origin: ObjectOrigin,
    },
    /// What names an object is read as a number or a truth value.
    #[error("{origin}: {field} of this {what} is not text; put it in quotes")]
    NotText {
        /// Where.
        origin: ObjectOrigin,
        /// The object's kind, as far as known.
        what: String,
        /// What is no text.
        field: &'static str,
    },
}

fn instead(below: &[String]) -> String {
    if below.is_empty() {
        return "put manifests into it, or name another folder".to_owned();
    }
    format!("name one of its subfolders: {}", below.join(", "))
}

/// Reads folders and files, in the order given.
pub fn read(paths: &[PathBuf]) -> Result<Vec<FolderManifest>, FolderError> {
    let mut manifests = Vec::new();
    for path in paths {
        let before = manifests.len();
        for file in files(path)? {
            manifests.extend(of_text(&file, &text_of(&file)?)?);
        }
        if manifests.len() == before {
            return Err(FolderError::NoObject { path: path.clone() });
        }
    }
    Ok(manifests)
}

/// The objects of a text, as if a file had it.
pub fn of_text(file: &Path, text: &str) -> Result<Vec<FolderManifest>, FolderError> {
    let mut manifests = Vec::new();
    for (origin, value) in text::documents(file, text)? {
        unpack(origin, value, &mut manifests)?;
    }
    Ok(manifests)
}

fn unreadable(path: &Path, cause: io::Error) -> FolderError {
    FolderError::Unreadable { path: path.to_owned(), cause }
}

/// The content of a file; `None` where it has more bytes than `longest`, of which no more are read.
pub(crate) fn content_of(file: &Path, longest: u64) -> io::Result<Option<Vec<u8>>> {
    let mut content = Vec::new();
    fs::File::open(file)?.take(longest + 1).read_to_end(&mut content)?;
    let is_whole = u64::try_from(content.len()).is_ok_and(|length| length <= longest);
    Ok(is_whole.then_some(content))
}

/// The text of a file.
pub(crate) fn text_of(file: &Path) -> Result<String, FolderError> {
    let content = content_of(file, LONGEST).map_err(|cause| unreadable(file, cause))?;
    let content = content.ok_or_else(|| FolderError::TooLong { path: file.to_owned() })?;
    let not_text =
        |_| unreadable(file, io::Error::new(io::ErrorKind::InvalidData, "stream did not contain valid UTF-8"));
    String::from_utf8(content).map_err(not_text)
}

/// Whether what a folder has under a name is a file of that folder.
fn check_within(folder: &Path, entry: &Path) -> Result<(), FolderError> {
    let real = |path: &Path| path.canonicalize().map_err(|cause| unreadable(path, cause));
    let found = real(entry)?;
    if !found.starts_with(real(folder)?) {
        return Err(FolderError::Outside { path: entry.to_owned() });
    }
    if found.is_file() { Ok(()) } else { Err(FolderError::Special { path: entry.to_owned() }) }
}

/// The content of a file of a folder, by its name in it; `None` where there is none. Nothing else than what is in the folder is
/// read (C-166).
pub(crate) fn content_within(folder: &Path, name: &str) -> Result<Option<Vec<u8>>, FolderError> {
    let file = folder.join(name);
    if !Path::new(name).components().all(|part| matches!(part, Component::Normal(_))) {
        return Err(FolderError::Outside { path: file });
    }
    match fs::symlink_metadata(&file) {
        Ok(_) => check_within(folder, &file)?,
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(cause) => return Err(unreadable(&file, cause)),
    }
    let content = content_of(&file, LONGEST).map_err(|cause| unreadable(&file, cause))?;
    content.map(Some).ok_or(FolderError::TooLong { path: file })
}

/// The text of a file of a folder that is there.
pub(crate) fn text_within(folder: &Path, name: &str) -> Result<String, FolderError> {
    check_within(folder, &folder.join(name))?;
    text_of(&folder.join(name))
}

/// Writes a file of a folder, and through no link of it: whoever made the folder chooses no other file (C-166).
pub(crate) fn write_within(folder: &Path, name: &str, text: &str) -> Result<(), FolderError> {
    let file = folder.join(name);
    match fs::symlink_metadata(&file) {
        Ok(there) if !there.is_file() => Err(FolderError::Outside { path: file }),
        Ok(_) | Err(_) => fs::write(&file, text).map_err(|cause| unreadable(&file, cause)),
    }
}

/// The files meant: the file itself, or the manifests of a folder, by name.
pub(crate) fn files(path: &Path) -> Result<Vec<PathBuf>, FolderError> {
    let meta = fs::metadata(path).map_err(|cause| match cause.kind() {
        io::ErrorKind::NotFound => FolderError::Missing { path: path.to_owned() },
        _ => unreadable(path, cause),
    })?;
    if !meta.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    let mut below = Vec::new();
    for entry in fs::read_dir(path).map_err(|cause| unreadable(path, cause))? {
        let entry = entry.map_err(|cause| unreadable(path, cause))?.path();
        let name = entry.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if name.starts_with('.') {
            continue;
        }
        if entry.is_dir() {
            below.push(name);
        } else if entry
            .extension()
            .is_some_and(|extension| ["yaml", "yml", "json"].iter().any(|known| extension == *known))
        {
            check_within(path, &entry)?;
            files.push(entry);
        }
    }
    files.sort();
    below.sort();
    if files.is_empty() { Err(FolderError::Empty { path: path.to_owned(), below }) } else { Ok(files) }
}

/// Adds the object of a document, the objects of a list, or nothing for an empty document.
fn unpack(origin: ObjectOrigin, value: Value, manifests: &mut Vec<FolderManifest>) -> Result<(), FolderError> {
    let object = match value {
        Value::Null => return Ok(()),
        Value::Object(object) => object,
        Value::Array(_) => return Err(FolderError::NoMapping { origin, found: "a list" }),
        Value::String(_) => return Err(FolderError::NoMapping { origin, found: "text" }),
        Value::Number(_) => return Err(FolderError::NoMapping { origin, found: "a number" }),
        Value::Bool(_) => return Err(FolderError::NoMapping { origin, found: "a truth value" }),
    };
    if object.get("kind").is_none() && is_sample(&origin.file) {
        return Err(FolderError::Sample { origin });
    }
    let kind = word(object.get("kind"), "kind", &origin, "object")?;
    let api_version = word(object.get("apiVersion"), "apiVersion", &origin, &kind)?;
    if kind.ends_with("List")
        && let Some(Value::Array(items)) = object.get("items")
    {
        return items.iter().try_for_each(|item| unpack(origin.clone(), item.clone(), manifests));
    }
    let metadata = object.get("metadata").and_then(Value::as_object);
    let name = word(metadata.and_then(|metadata| metadata.get("name")), "metadata.name", &origin, &kind)?;
    let namespace = match metadata.and_then(|metadata| metadata.get("namespace")) {
        None | Some(Value::Null) => None,
        namespace => Some(word(namespace, "metadata.namespace", &origin, &kind)?.into()),
    };
    manifests.push(FolderManifest {
        origin,
        api_version: api_version.into(),
        kind: kind.into(),
        namespace,
        name: name.into(),
        object: Value::Object(object),
    });
    Ok(())
}

/// Whether a file lies in the folder `samples` of a project, beside its registration.
fn is_sample(file: &Path) -> bool {
    let Ok(file) = file.canonicalize() else { return false };
    let samples = file.parent().filter(|folder| folder.ends_with(SAMPLES));
    samples.and_then(Path::parent).is_some_and(|project| project.join(REGISTRATION).is_file())
}

fn word(value: Option<&Value>, field: &'static str, origin: &ObjectOrigin, what: &str) -> Result<String, FolderError> {
    let (origin, what) = (origin.clone(), what.to_owned());
    match value {
        Some(Value::String(text)) if !text.is_empty() => Ok(text.clone()),
        None | Some(Value::Null | Value::String(_)) => Err(FolderError::Nameless { origin, what, field }),
        Some(_) => Err(FolderError::NotText { origin, what, field }),
    }
}

/// The order in which objects are sent: what others need first, in each group as they were read. Installations come last,
/// since what they import should be there when they start.
pub fn in_order_of_need(mut manifests: Vec<FolderManifest>) -> Vec<FolderManifest> {
    const FIRST: [&str; 10] = [
        "Namespace",
        "CustomResourceDefinition",
        "ServiceAccount",
        "Secret",
        "ConfigMap",
        "Context",
        "Target",
        "TargetSync",
        "DataObject",
        "ComponentVersionOverwrites",
    ];
    manifests.sort_by_key(|manifest| match manifest.kind.as_str() {
        "Installation" => FIRST.len() + 1,
        kind => FIRST.iter().position(|first| *first == kind).unwrap_or(FIRST.len()),
    });
    manifests
}
