//! Finding blueprints on disk: folders with a `blueprint.yaml`, archives of them, and Installations in manifests.

mod files;

use std::{
    fs,
    io::Read as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use orangery_blueprint::{
    FILE, FileSystem,
    review::{self, BlueprintOrigin, FilePosition, Finding, Review, Severity, Text},
};
use orangery_core::yaml::{self, LocatedDocument, SourcePosition};
use orangery_ocm::Files;

pub use self::files::FolderFiles;
use crate::folder::{self, FolderError};

/// Why nothing can be looked at.
#[derive(Debug, thiserror::Error)]
pub enum BlueprintsError {
    /// A path cannot be used.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// No blueprint is there.
    #[error(
        "{} has neither a blueprint.yaml nor an Installation; name the folder or the archive of a blueprint, or manifests with Installations",
        path.display()
    )]
    None {
        /// What was named.
        path: PathBuf,
    },
    /// An archive cannot be used.
    #[error("the archive {} cannot be used: {cause}; make it anew: tar -czf {} -C FOLDER .", path.display(), path.display())]
    Archive {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: String,
    },
}

/// A blueprint that was found.
pub enum FoundBlueprint {
    /// A folder with a `blueprint.yaml`, or an archive of one.
    Folder {
        /// Its files.
        files: Arc<dyn Files>,
        /// The folder or archive, as it was named.
        path: PathBuf,
    },
    /// An Installation in a manifest.
    Installation {
        /// The document.
        located: Box<LocatedDocument>,
        /// The manifest.
        file: PathBuf,
    },
    /// A manifest that is no YAML.
    Broken(Finding),
}

impl FoundBlueprint {
    /// What can be said of it without rendering it.
    pub fn review(&self) -> Review {
        match self {
            FoundBlueprint::Folder { files, path } => {
                let prefix = path.join("");
                review::review(files, &BlueprintOrigin::Files(prefix.display().to_string()))
            }
            FoundBlueprint::Installation { located, file } => {
                review::review_installation(located, &Text::file(file.display().to_string()))
            }
            FoundBlueprint::Broken(finding) => Review { findings: vec![finding.clone()], templates: Vec::new() },
        }
    }
}

/// The blueprints of all these paths, in their order.
pub fn find(paths: &[PathBuf]) -> Result<Vec<FoundBlueprint>, BlueprintsError> {
    let mut all = Vec::new();
    for path in paths {
        let before = all.len();
        match (folder_of_blueprint(path), archive_of_blueprint(path)?) {
            (Some(path), _) => all.push(FoundBlueprint::Folder { files: Arc::new(FolderFiles::new(&path)), path }),
            (None, Some(files)) => all.push(FoundBlueprint::Folder { files: Arc::new(files), path: path.clone() }),
            (None, None) => {
                for file in folder::files(path)? {
                    manifest(&file, &mut all)?;
                }
            }
        }
        if all.len() == before {
            return Err(BlueprintsError::None { path: path.clone() });
        }
    }
    Ok(all)
}

/// The folder whose `blueprint.yaml` is meant, if one is.
pub fn folder_of_blueprint(path: &Path) -> Option<PathBuf> {
    if path.join(FILE).is_file() {
        return Some(path.to_owned());
    }
    let is_it = path.is_file() && path.file_name().is_some_and(|name| name == FILE);
    is_it.then(|| path.parent().map(Path::to_owned).unwrap_or_default())
}

/// The files of a blueprint's archive; `None` where the path is none.
///
/// # Errors
/// [`BlueprintsError::Archive`]
pub fn archive_of_blueprint(path: &Path) -> Result<Option<FileSystem>, BlueprintsError> {
    if !path.is_file() {
        return Ok(None);
    }
    let unusable = |cause: String| BlueprintsError::Archive { path: path.to_owned(), cause };
    let mut bytes = Vec::new();
    let most = orangery_registry::MOST_OF_A_BLUEPRINT;
    let read = fs::File::open(path).and_then(|file| file.take(most + 1).read_to_end(&mut bytes));
    read.map_err(|error| unusable(format!("it cannot be read: {error}")))?;
    if !is_archive(path, &bytes) {
        return Ok(None);
    }
    if bytes.len() as u64 > most {
        return Err(unusable(format!("it has more than {} MiB", most >> 20)));
    }
    orangery_registry::blueprint(&bytes).map(Some).map_err(unusable)
}

/// Whether a file means to be an archive: by its name, or by how it begins.
fn is_archive(path: &Path, bytes: &[u8]) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
    [".tar", ".tgz", ".tar.gz"].iter().any(|ending| name.ends_with(ending))
        || bytes.starts_with(&[0x1f, 0x8b])
        || bytes.get(257..262) == Some(b"ustar".as_slice())
}

fn manifest(file: &Path, all: &mut Vec<FoundBlueprint>) -> Result<(), BlueprintsError> {
    let text = folder::text_of(file)?;
    match yaml::locate_all(&text) {
        Ok(documents) => {
            let objects = documents.into_iter().flat_map(LocatedDocument::objects);
            let installations = objects.filter(|of| review::is_installation(&of.value));
            all.extend(
                installations
                    .map(|located| FoundBlueprint::Installation { located: Box::new(located), file: file.to_owned() }),
            );
        }
        Err(error) => {
            let place = SourcePosition { line: error.line, column: error.column };
            let position = FilePosition { file: file.display().to_string(), place };
            let message = format!("{}; correct the YAML", error.reason);
            all.push(FoundBlueprint::Broken(Finding { position, severity: Severity::Error, message }));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(folder: &Path, files: &[(&str, &str)]) {
        for (name, text) in files {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    const INSTALLATION: &str = "apiVersion: landscaper.gardener.cloud/v1alpha1\nkind: Installation\n";

    #[test]
    fn folders_of_blueprints_and_installations_of_manifests_are_found() {
        let item = INSTALLATION.replace('\n', "\n  ");
        let listed = format!("apiVersion: v1\nkind: List\nitems:\n- kind: ConfigMap\n- {item}");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_owned();
        write(
            &path,
            &[
                ("b/blueprint.yaml", "kind: Blueprint"),
                ("m/one.yaml", &format!("kind: ConfigMap\n---\n{INSTALLATION}---\n{INSTALLATION}")),
                ("m/two.yaml", "a: ["),
                ("l/list.yaml", &listed),
                ("n/none.yaml", "kind: ConfigMap"),
            ],
        );
        let found = find(&["b", "m", "b/blueprint.yaml", "l"].map(|name| path.join(name))).unwrap();
        let kinds: Vec<&str> = found
            .iter()
            .map(|found| match found {
                FoundBlueprint::Folder { .. } => "folder",
                FoundBlueprint::Installation { .. } => "installation",
                FoundBlueprint::Broken(_) => "broken",
            })
            .collect();
        assert_eq!(kinds, ["folder", "installation", "installation", "broken", "folder", "installation"]);
        let message = found[3].review().findings[0].to_string().replace(&path.display().to_string(), "DIR");
        assert!(message.starts_with("DIR/m/two.yaml:") && message.ends_with("; correct the YAML"), "{message}");
        let error = find(&[path.join("n")]).err().unwrap().to_string();
        assert!(
            error.ends_with("name the folder or the archive of a blueprint, or manifests with Installations"),
            "{error}"
        );
        let error = find(&[path.join("x")]).err().unwrap().to_string();
        assert!(error.contains("does not exist"), "{error}");
    }
}
