//! Builds a project with the tools of its language, and looks at what came of it.

mod error;
mod go;
mod javascript;
mod python;
mod rust;
mod toolchain;

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use orangery_plugin::{Registration, World};

pub use self::error::BuildError;
use crate::authoring::{
    loaded::{REGISTRATION, claim},
    project::Language,
};

/// The file by which a project of a language is known. Of several the first one counts.
const MARKS: [(Language, &str); 4] = [
    (Language::Rust, "Cargo.toml"),
    (Language::Go, "go.mod"),
    (Language::Javascript, "package.json"),
    (Language::Python, "requirements.txt"),
];

/// Folders of projects that tools write into: nothing in them is a source.
pub(crate) const OF_TOOLS: [&str; 4] = ["target", "node_modules", "venv", "__pycache__"];

/// Files of projects that tools write.
pub(crate) const WRITTEN_BY_TOOLS: [&str; 2] = ["Cargo.lock", "package-lock.json"];

/// The ending of a component that is not whole yet; what has it is moved to its place.
pub(crate) const DRAFT: &str = "draft";

/// A folder with the sources of a component and its registration.
#[derive(Clone, Debug)]
pub struct ProjectFolder {
    folder: PathBuf,
    language: Language,
    component: PathBuf,
    world: World,
}

/// A component that was built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuiltComponent {
    /// Where it is.
    pub file: PathBuf,
    /// Bytes.
    pub size: u64,
    /// `sha256:…` of them.
    pub digest: String,
    /// What it is.
    pub world: World,
}

impl ProjectFolder {
    /// Looks which language a folder is of, and what its registration says of the component.
    ///
    /// # Errors
    /// The folder is not there, is of no known language, or has no registration that names a component.
    pub fn open(folder: &Path) -> Result<Self, BuildError> {
        if !folder.is_dir() {
            return Err(BuildError::NoFolder { path: folder.to_owned() });
        }
        let known = MARKS.into_iter().find(|(_, file)| folder.join(file).is_file());
        let Some((language, _)) = known else {
            return Err(BuildError::NoLanguage {
                path: folder.to_owned(),
                marks: MARKS.map(|(_, file)| file).join(", "),
            });
        };
        let path = folder.join(REGISTRATION);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => {
                return Err(BuildError::NoRegistration { path: folder.to_owned() });
            }
            Err(cause) => return Err(BuildError::File { path, cause }),
        };
        let registration = Registration::parse(&text, &path.display().to_string())?;
        let (world, _) = claim(&registration);
        let Some(component) = registration.spec.component else {
            return Err(BuildError::NoComponent { path });
        };
        Ok(Self { folder: folder.to_owned(), language, component: component.file, world })
    }

    /// The file of its component, as its registration names it.
    pub fn component(&self) -> PathBuf {
        self.within(&self.component)
    }

    /// The same within its folder.
    pub(crate) fn component_within(&self) -> &Path {
        &self.component
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Builds it. What the tools say goes to the standard error. Where that does not succeed, the component is what it was before.
    ///
    /// # Errors
    /// A tool is missing or has failed, or what was built is no component of the world that the registration says.
    pub fn build(&self) -> Result<BuiltComponent, BuildError> {
        match self.language {
            Language::Rust => rust::build(self)?,
            Language::Go => go::build(self)?,
            Language::Python => python::build(self)?,
            Language::Javascript => javascript::build(self)?,
        }
        self.look_at_it()
    }

    /// What the file of the component is.
    fn look_at_it(&self) -> Result<BuiltComponent, BuildError> {
        let file = self.component();
        let bytes = match fs::read(&file) {
            Ok(bytes) => bytes,
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => {
                return Err(BuildError::NotBuilt {
                    path: file,
                    fix: "have the project write it there, or correct plugin.yaml",
                });
            }
            Err(cause) => return Err(BuildError::File { path: file, cause }),
        };
        let refused = |cause| BuildError::Component { path: file.clone(), cause };
        let inspection = orangery_plugin::inspect(&bytes).map_err(refused)?;
        inspection.check().map_err(refused)?;
        if !inspection.worlds().contains(&self.world) {
            return Err(BuildError::OtherWorld { path: file, claimed: self.world });
        }
        Ok(BuiltComponent { file, size: inspection.size, digest: inspection.digest, world: self.world })
    }

    /// A file of the project, as whoever named the folder would name it.
    fn within(&self, file: &Path) -> PathBuf {
        if self.folder == Path::new(".") { file.to_owned() } else { self.folder.join(file) }
    }

    /// The file beside the component that a tool may write in its own time.
    fn draft(&self) -> PathBuf {
        self.beside(DRAFT)
    }

    /// The file of the component with one more ending.
    fn beside(&self, ending: &str) -> PathBuf {
        let mut name = self.component.as_os_str().to_owned();
        name.push(".");
        name.push(ending);
        PathBuf::from(name)
    }

    /// Puts a whole component into its place, at once for whoever reads it meanwhile.
    fn place(&self, draft: &Path) -> Result<(), BuildError> {
        let place = self.component();
        fs::rename(self.within(draft), &place).map_err(|cause| BuildError::File { path: place, cause })
    }

    /// Whether a file of the project is another one than the last time that something was made of it; see
    /// [`ProjectFolder::note_made`].
    fn has_changed(&self, file: &str, folder: &str) -> bool {
        let read = |path: PathBuf| fs::read(self.within(&path)).ok();
        read(Path::new(folder).join(made_of(file))).is_none_or(|kept| Some(kept) != read(PathBuf::from(file)))
    }

    /// Keeps a copy of a file in the folder that was made of it.
    fn note_made(&self, file: &str, folder: &str) -> Result<(), BuildError> {
        let copy = self.within(&Path::new(folder).join(made_of(file)));
        fs::copy(self.within(Path::new(file)), &copy).map(drop).map_err(|cause| BuildError::File { path: copy, cause })
    }
}

fn made_of(file: &str) -> String {
    format!(".made-of-{file}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPEC: &str =
        "apiVersion: orangery.dev/v1alpha1\nkind: Plugin\nmetadata: {name: a}\nspec:\n  version: 0.1.0\n";

    /// A folder with these files, and what is said when it is opened.
    fn opened(files: &[(&str, &str)]) -> Result<(Language, World, PathBuf), String> {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(folder.path().join(name), text).unwrap();
        }
        let shown = |error: BuildError| error.to_string().replace(&folder.path().display().to_string(), "F");
        let project = ProjectFolder::open(folder.path()).map_err(shown)?;
        Ok((project.language, project.world, project.component))
    }

    #[test]
    fn c_350_a_project_is_known_by_its_files_and_its_registration() {
        let gate = format!("{SPEC}  component: {{file: a.wasm}}\n  gate: {{types: [a]}}\n");
        for (mark, language) in [
            ("Cargo.toml", Language::Rust),
            ("go.mod", Language::Go),
            ("package.json", Language::Javascript),
            ("requirements.txt", Language::Python),
        ] {
            let expected = (language, World::Gate, PathBuf::from("a.wasm"));
            assert_eq!(opened(&[(mark, ""), (REGISTRATION, &gate)]), Ok(expected));
        }
        let unknown = "F is no project of a known language: it has none of Cargo.toml, go.mod, package.json, requirements.txt; \
                       name the folder of one, or write one with: orangery plugin new";
        assert_eq!(opened(&[(REGISTRATION, &gate)]), Err(unknown.to_owned()));
        let unregistered = "F has no plugin.yaml, which says what its component is and in which file; write one: \
                            docs/plugins/building.md";
        assert_eq!(opened(&[("Cargo.toml", "")]), Err(unregistered.to_owned()));
        let wasm = format!("{SPEC}  template: {{types: [Wasm]}}\n");
        let nowhere = "F/plugin.yaml names no file of a component; add `component: {file: …}` to its spec";
        assert_eq!(opened(&[("Cargo.toml", ""), (REGISTRATION, &wasm)]), Err(nowhere.to_owned()));
        let wrong = opened(&[("Cargo.toml", ""), (REGISTRATION, "kind: [")]).unwrap_err();
        assert!(wrong.starts_with("F/plugin.yaml:1: "), "{wrong}");
        let missing = ProjectFolder::open(Path::new("/nowhere")).unwrap_err().to_string();
        assert_eq!(missing, "/nowhere is no folder; name that of a project, as `orangery plugin new` writes one");
    }

    fn project(folder: &Path, component: &str) -> ProjectFolder {
        let component = PathBuf::from(component);
        ProjectFolder { folder: folder.to_owned(), language: Language::Rust, component, world: World::Gate }
    }

    #[test]
    fn c_350_what_is_no_component_of_the_registration_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let project = project(folder.path(), "a.wasm");
        let told = || project.look_at_it().unwrap_err().to_string().replace(&folder.path().display().to_string(), "F");
        assert_eq!(
            told(),
            "there is no F/a.wasm after the build; have the project write it there, or correct plugin.yaml"
        );
        fs::write(project.component(), b"\0asm\x01\0\0\0").unwrap();
        assert!(told().starts_with("F/a.wasm: the file is not a WebAssembly component"), "{}", told());
    }

    #[test]
    fn c_350_what_was_made_of_a_file_is_made_anew_when_that_changes() {
        let folder = tempfile::tempdir().unwrap();
        let project = project(folder.path(), "a.wasm");
        let write = |text: &str| fs::write(folder.path().join("list.txt"), text).unwrap();
        write("a");
        assert!(project.has_changed("list.txt", "made"));
        fs::create_dir(folder.path().join("made")).unwrap();
        project.note_made("list.txt", "made").unwrap();
        assert!(!project.has_changed("list.txt", "made"));
        write("b");
        assert!(project.has_changed("list.txt", "made"));
    }

    #[test]
    fn c_350_a_component_is_put_into_its_place_whole() {
        let folder = tempfile::tempdir().unwrap();
        let project = project(folder.path(), "a.wasm");
        assert_eq!(project.draft(), PathBuf::from("a.wasm.draft"));
        fs::write(folder.path().join("a.wasm"), "old").unwrap();
        fs::write(folder.path().join("a.wasm.draft"), "new").unwrap();
        project.place(&project.draft()).unwrap();
        assert_eq!(fs::read_to_string(project.component()).unwrap(), "new");
        assert!(!folder.path().join("a.wasm.draft").exists());
        let here = ProjectFolder { folder: PathBuf::from("."), ..project };
        assert_eq!(here.component(), PathBuf::from("a.wasm"));
    }
}
