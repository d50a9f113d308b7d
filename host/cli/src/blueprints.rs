//! Finding blueprints on disk: folders with a `blueprint.yaml`, and Installations in manifests.

mod files;

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use orangery_core::{
    blueprint::FILE,
    port::Files,
    review::{self, Finding, Origin, Review, Severity, Spot, Text},
    yaml::{self, Located, Place},
};

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
        "{} has neither a blueprint.yaml nor an Installation; name the folder of a blueprint, or manifests with Installations",
        path.display()
    )]
    None {
        /// What was named.
        path: PathBuf,
    },
}

/// A blueprint that was found.
pub enum Found {
    /// A folder with a `blueprint.yaml`.
    Folder {
        /// Its files.
        files: Arc<dyn Files>,
        /// The folder, as it was named.
        path: PathBuf,
    },
    /// An Installation in a manifest.
    Installation {
        /// The document.
        located: Box<Located>,
        /// The manifest.
        file: PathBuf,
    },
    /// A manifest that is no YAML.
    Broken(Finding),
}

impl Found {
    /// What can be said of it without rendering it.
    pub fn review(&self) -> Review {
        match self {
            Found::Folder { files, path } => {
                let prefix = path.join("");
                review::review(files, &Origin::Files(prefix.display().to_string()))
            }
            Found::Installation { located, file } => {
                review::review_installation(located, &Text::file(file.display().to_string()))
            }
            Found::Broken(finding) => Review { findings: vec![finding.clone()], templates: Vec::new() },
        }
    }
}

/// The blueprints of all these paths, in their order.
pub fn find(paths: &[PathBuf]) -> Result<Vec<Found>, BlueprintsError> {
    let mut all = Vec::new();
    for path in paths {
        let before = all.len();
        match folder_of_blueprint(path) {
            Some(path) => all.push(Found::Folder { files: Arc::new(FolderFiles::new(&path)), path }),
            None => {
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

fn manifest(file: &Path, all: &mut Vec<Found>) -> Result<(), BlueprintsError> {
    let unreadable = |cause: io::Error| FolderError::Unreadable { path: file.to_owned(), cause };
    let text = fs::read_to_string(file).map_err(unreadable)?;
    match yaml::locate_all(&text) {
        Ok(documents) => {
            let installations = documents.into_iter().filter(|of| review::is_installation(&of.value));
            all.extend(
                installations.map(|located| Found::Installation { located: Box::new(located), file: file.to_owned() }),
            );
        }
        Err(error) => {
            let place = Place { line: error.line, column: error.column };
            let spot = Spot { file: file.display().to_string(), place };
            let message = format!("{}; correct the YAML", error.reason);
            all.push(Found::Broken(Finding { spot, severity: Severity::Error, message }));
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
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_owned();
        write(
            &path,
            &[
                ("b/blueprint.yaml", "kind: Blueprint"),
                ("m/one.yaml", &format!("kind: ConfigMap\n---\n{INSTALLATION}---\n{INSTALLATION}")),
                ("m/two.yaml", "a: ["),
                ("n/none.yaml", "kind: ConfigMap"),
            ],
        );
        let found = find(&[path.join("b"), path.join("m"), path.join("b/blueprint.yaml")]).unwrap();
        let kinds: Vec<&str> = found
            .iter()
            .map(|found| match found {
                Found::Folder { .. } => "folder",
                Found::Installation { .. } => "installation",
                Found::Broken(_) => "broken",
            })
            .collect();
        assert_eq!(kinds, ["folder", "installation", "installation", "broken", "folder"]);
        let told = found[3].review().findings[0].to_string().replace(&path.display().to_string(), "DIR");
        assert!(told.starts_with("DIR/m/two.yaml:") && told.ends_with("; correct the YAML"), "{told}");
        let error = find(&[path.join("n")]).err().unwrap().to_string();
        assert!(error.ends_with("name the folder of a blueprint, or manifests with Installations"), "{error}");
        let error = find(&[path.join("x")]).err().unwrap().to_string();
        assert!(error.contains("does not exist"), "{error}");
    }
}
