//! Projects for components of one's own: their files, in the layout of their language. Nothing in them leads out of their folder.

mod contents;

use std::{
    fs, io,
    path::{Path, PathBuf},
    str::FromStr,
};

use clap::ValueEnum;
use orangery_core::name::can_be_name;
use orangery_plugin::World;

use crate::exit::Exit;

pub(crate) use self::contents::wit_world;

/// The most characters of a project's name: it names a crate, files, and a type.
const MOST_CHARACTERS: usize = 40;

/// A language that projects are written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Language {
    /// With the SDK, which is part of the project
    Rust,
    /// With go, and the bindings, which are part of the project
    Go,
    /// With componentize-py
    Python,
    /// With componentize-js
    Javascript,
}

impl Language {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Rust, Self::Go, Self::Python, Self::Javascript];
}

/// What a component is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ProjectKind {
    /// Plans deploy items
    Deployer,
    /// Renders templates of blueprints
    Template,
    /// Answers gate expressions
    Gate,
}

impl ProjectKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Deployer, Self::Template, Self::Gate];

    /// What the host calls it.
    pub fn world(self) -> World {
        match self {
            ProjectKind::Deployer => World::Deployer,
            ProjectKind::Template => World::Templater,
            ProjectKind::Gate => World::Gate,
        }
    }
}

/// The name of a project: lower-case letters, digits and `-`, as a crate and an object can be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectName(String);

impl ProjectName {
    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The same as Rust and Python name modules.
    fn module(&self) -> String {
        self.0.replace('-', "_")
    }
}

impl FromStr for ProjectName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let begins = text.starts_with(|first: char| first.is_ascii_lowercase());
        if begins && can_be_name(text) && !text.contains('.') && text.len() <= MOST_CHARACTERS {
            return Ok(Self(text.to_owned()));
        }
        Err(format!(
            "a name begins with a lower-case letter, has such letters, digits and `-` inside, and at most {MOST_CHARACTERS} characters"
        ))
    }
}

/// What is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    /// Its name.
    pub name: ProjectName,
    /// Its language.
    pub language: Language,
    /// What it is for.
    pub kind: ProjectKind,
}

/// Why a project is not written.
#[derive(Debug, thiserror::Error)]
pub enum ProjectError {
    /// Something is there.
    #[error("{} is there already; choose another name, or another folder with --folder", path.display())]
    Exists {
        /// The folder.
        path: PathBuf,
    },
    /// A file cannot be written.
    #[error("{} cannot be written: {cause}; choose another folder with --folder", path.display())]
    Unwritten {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        cause: io::Error,
    },
}

impl ProjectError {
    /// The exit code that tells of it.
    pub fn exit(&self) -> Exit {
        match self {
            ProjectError::Exists { .. } => Exit::Usage,
            ProjectError::Unwritten { .. } => Exit::Failed,
        }
    }
}

impl Project {
    /// Its files by their path in it, with their texts; sorted by path.
    pub fn files(&self) -> Vec<(String, String)> {
        let mut files = contents::files(self);
        files.sort();
        files
    }

    /// The file of the component once it is built, in the folder of the project.
    pub fn component(&self) -> String {
        match self.language {
            Language::Rust => format!("target/wasm32-wasip2/release/{}.wasm", self.name.module()),
            Language::Go | Language::Python | Language::Javascript => format!("{}.wasm", self.name.as_str()),
        }
    }

    /// The commands that build it, in its folder.
    pub fn build_commands(&self) -> Vec<String> {
        match self.language {
            Language::Rust => vec!["cargo build --release --target wasm32-wasip2".to_owned()],
            Language::Python => vec![
                "python3 -m venv venv".to_owned(),
                "venv/bin/pip install -r requirements.txt".to_owned(),
                format!(
                    "venv/bin/componentize-py -d wit -w {} componentize app -o {}",
                    wit_world(self.kind.world()),
                    self.component()
                ),
            ],
            Language::Go => vec!["orangery plugin build".to_owned()],
            Language::Javascript => vec!["npm install".to_owned(), "npm run build".to_owned()],
        }
    }

    /// Writes its files into a folder that is not there yet, or is empty.
    ///
    /// # Errors
    /// Something is there, or a file cannot be written.
    pub fn write(&self, folder: &Path) -> Result<(), ProjectError> {
        if fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some()) || folder.is_file() {
            return Err(ProjectError::Exists { path: folder.to_owned() });
        }
        for (name, text) in self.files() {
            let path = folder.join(name);
            let parent = path.parent().unwrap_or(folder);
            fs::create_dir_all(parent)
                .and_then(|()| fs::write(&path, text))
                .map_err(|cause| ProjectError::Unwritten { path, cause })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn projects() -> impl Iterator<Item = Project> {
        let of = |language| ProjectKind::ALL.map(|kind| Project { name: "my-own".parse().unwrap(), language, kind });
        Language::ALL.into_iter().flat_map(of)
    }

    #[test]
    fn c_257_a_project_is_whole_and_leads_nowhere_else() {
        for project in projects() {
            let files = project.files();
            let names: BTreeSet<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
            assert_eq!(names.len(), files.len(), "{project:?}");
            let expected = ["README.md", "plugin.yaml", "cases/hello/request.json", "cases/wrong/response.json"];
            assert!(expected.iter().all(|name| names.contains(name)), "{project:?}: {names:?}");
            assert_eq!(names.contains("samples/hello.yaml"), project.kind == ProjectKind::Deployer);
            for (name, text) in &files {
                assert!(!name.starts_with('/') && !name.contains(".."), "{name}");
                let is_hole = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_lowercase());
                assert!(!text.split('@').skip(1).any(is_hole), "{name} has a word that is not filled in: {text}");
                assert!(!text.contains("../.."), "{name} of {project:?} leads out of its folder");
                assert!(text.ends_with('\n'), "{name}");
            }
        }
    }

    #[test]
    fn c_257_a_registration_of_a_project_is_one_and_names_its_component() {
        for project in projects() {
            let files = project.files();
            let (_, text) = files.iter().find(|(name, _)| name == "plugin.yaml").unwrap();
            let registration = orangery_plugin::Registration::parse(text, "plugin.yaml").unwrap();
            let component = registration.spec.component.unwrap().file;
            assert_eq!(component, PathBuf::from(project.component()));
            let is = [
                (registration.spec.deployer.is_some(), ProjectKind::Deployer),
                (registration.spec.template.is_some(), ProjectKind::Template),
                (registration.spec.gate.is_some(), ProjectKind::Gate),
            ];
            assert!(is.iter().all(|(is, kind)| *is == (*kind == project.kind)), "{project:?}");
        }
    }

    #[test]
    fn c_257_a_name_can_be_that_of_a_crate_and_nothing_is_written_over() {
        let is_one = |text: &str| text.parse::<ProjectName>().is_ok();
        let longest = "a".repeat(MOST_CHARACTERS);
        assert!(["a", "my-own", "x2", longest.as_str()].into_iter().all(is_one));
        let longer = "a".repeat(MOST_CHARACTERS + 1);
        assert!(!["", "2x", "My", "a.b", "a_b", "-a", "a-", "../a", longer.as_str()].into_iter().any(is_one));
        let folder = tempfile::tempdir().unwrap();
        let project = projects().next().unwrap();
        project.write(folder.path()).unwrap();
        let error = project.write(folder.path()).unwrap_err().to_string();
        assert!(error.ends_with("is there already; choose another name, or another folder with --folder"), "{error}");
        assert!(folder.path().join("sdk/wit/deployer/0.1.0/world.wit").is_file());
    }
}
