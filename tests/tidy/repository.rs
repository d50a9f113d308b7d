//! What the rules look at: the files of the repository and its packages as cargo reports them.

use std::{
    collections::BTreeSet,
    fs,
    path::{Component, Path, PathBuf},
    process::Command,
};

use serde_json::Value;

/// One package of one of the repository's workspaces.
pub(crate) struct Package {
    pub(crate) name: String,
    /// The root file of each target: `src/lib.rs`, `tests/tidy/main.rs`, `build.rs`, …
    pub(crate) roots: Vec<PathBuf>,
    pub(crate) dependencies: Vec<Dependency>,
}

pub(crate) struct Dependency {
    pub(crate) name: String,
    /// Used by the tests of the package only.
    pub(crate) for_tests: bool,
}

/// The folder that holds the workspace.
pub(crate) fn root() -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().expect("the tests lie one level below the root").to_owned()
}

/// A path as it is named in messages: relative to the root, with forward slashes.
pub(crate) fn display(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).to_string_lossy().replace('\\', "/")
}

/// Every file below the root except build output, the history and other dot-folders, sorted.
pub(crate) fn files() -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    collect(&root(), &mut found);
    found
}

/// The files whose name ends in one of these.
pub(crate) fn files_ending(endings: &[&str]) -> BTreeSet<PathBuf> {
    files().into_iter().filter(|file| endings.iter().any(|ending| display(file).ends_with(ending))).collect()
}

fn collect(folder: &Path, found: &mut BTreeSet<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.expect("an entry of a readable folder").path();
        let name = path.file_name().expect("an entry has a name").to_string_lossy().into_owned();
        if path.is_dir() {
            if name != "target" && (!name.starts_with('.') || name == ".ci") {
                collect(&path, found);
            }
        } else {
            found.insert(path);
        }
    }
}

pub(crate) fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// All packages: those of the workspace, and those of every manifest that the workspace excludes.
pub(crate) fn packages() -> Vec<Package> {
    let mut members = BTreeSet::new();
    let mut found = Vec::new();
    for manifest in files_ending(&["Cargo.toml"]) {
        if members.contains(&manifest) {
            continue;
        }
        for (path, package) in described(&manifest) {
            if members.insert(path) {
                found.push(package);
            }
        }
    }
    assert!(found.len() > 10, "cargo reported {} packages only", found.len());
    found
}

fn described(manifest: &Path) -> Vec<(PathBuf, Package)> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1", "--manifest-path"])
        .arg(manifest)
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}: {}", display(manifest), String::from_utf8_lossy(&output.stderr));
    let described: Value = serde_json::from_slice(&output.stdout).expect("cargo metadata answers JSON");
    let packages = described["packages"].as_array().expect("a list of packages");
    packages.iter().map(|package| (PathBuf::from(word(package, "manifest_path")), read(package))).collect()
}

fn read(package: &Value) -> Package {
    let dependencies = package["dependencies"].as_array().expect("a list of dependencies");
    let targets = package["targets"].as_array().expect("a list of targets");
    Package {
        name: word(package, "name"),
        roots: targets.iter().map(|target| plain(Path::new(&word(target, "src_path")))).collect(),
        dependencies: dependencies
            .iter()
            .map(|dependency| Dependency { name: word(dependency, "name"), for_tests: dependency["kind"] == "dev" })
            .collect(),
    }
}

/// A path without steps back, as a target in the folder of another package has them.
fn plain(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut plain, component| {
        match component {
            Component::ParentDir => {
                plain.pop();
            }
            other => plain.push(other),
        }
        plain
    })
}

fn word(object: &Value, key: &str) -> String {
    object[key].as_str().unwrap_or_else(|| panic!("cargo metadata has no {key}")).to_owned()
}

/// Fails with all violations at once.
#[track_caller]
pub(crate) fn none(rule: &str, violations: Vec<String>) {
    assert!(violations.is_empty(), "{rule}\n  {}\n", violations.join("\n  "));
}
