//! Which folders of this machine repositories may be in.

use std::path::{Path, PathBuf};

use orangery_core::error::{Code, Fault};

/// The folders that the operator gave; without any, no repository is on disk.
#[derive(Clone, Debug, Default)]
pub(crate) struct Roots {
    folders: Vec<PathBuf>,
}

impl Roots {
    /// Folders that exist; links in them are followed once, here.
    pub(crate) fn new(folders: &[PathBuf]) -> Result<Self, Fault> {
        let real = |folder: &PathBuf| {
            folder.canonicalize().map_err(|error| {
                let message = format!("the folder of components {} cannot be opened: {error}", folder.display());
                Fault::invalid(Code::ConfigurationProblem, message)
            })
        };
        Ok(Self { folders: folders.iter().map(real).collect::<Result<_, _>>()? })
    }

    /// The file or folder that a repository context names: below one of the roots, also after all links are followed.
    /// The first root that has it counts.
    pub(crate) fn find(&self, path: &str) -> Result<PathBuf, Fault> {
        let refused = |why: String| {
            let message = format!("the repository context names the path {path:?}, {why}");
            Fault::invalid(Code::ConfigurationProblem, message)
        };
        if self.folders.is_empty() {
            let why = "but no folder of components is configured; give the host one with --components";
            return Err(refused(why.to_owned()));
        }
        for root in &self.folders {
            let Ok(real) = root.join(Path::new(path)).canonicalize() else { continue };
            if self.folders.iter().any(|root| real.starts_with(root)) {
                return Ok(real);
            }
        }
        let roots: Vec<_> = self.folders.iter().map(|root| root.display().to_string()).collect();
        Err(refused(format!("which is not in the folder of components {}", roots.join(", "))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_leads_to_the_root_or_nowhere() {
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("secret"), "x").unwrap();
        let root = outside.path().join("components");
        std::fs::create_dir_all(root.join("shop")).unwrap();
        std::os::unix::fs::symlink(outside.path(), root.join("link")).unwrap();
        let roots = Roots::new(std::slice::from_ref(&root)).unwrap();
        let real = root.canonicalize().unwrap();
        assert_eq!(roots.find("shop").unwrap(), real.join("shop"));
        assert_eq!(roots.find("./shop/../shop").unwrap(), real.join("shop"));
        assert_eq!(roots.find(real.join("shop").to_str().unwrap()).unwrap(), real.join("shop"));
        let secret = outside.path().join("secret");
        for path in ["../secret", "link/secret", "/etc/passwd", secret.to_str().unwrap(), "missing"] {
            let message = roots.find(path).unwrap_err().to_string();
            let expected = format!(
                "the repository context names the path {path:?}, which is not in the folder of components {}",
                real.display()
            );
            assert_eq!(message, expected);
        }
        assert_eq!(
            Roots::default().find("shop").unwrap_err().to_string(),
            "the repository context names the path \"shop\", but no folder of components is configured; give the host \
             one with --components"
        );
    }
}
