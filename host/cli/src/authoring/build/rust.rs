//! Projects in Rust: cargo, for `wasm32-wasip2`.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde::Deserialize;

use super::{BuildError, ProjectFolder, toolchain::LanguageTool};

const TARGET: &str = "wasm32-wasip2";

const CARGO: LanguageTool = LanguageTool { program: "cargo", language: "Rust", fix: "install Rust: https://rustup.rs" };

/// What is needed of a line of `--message-format=json`.
#[derive(Deserialize)]
struct CargoMessage {
    reason: String,
    #[serde(default)]
    manifest_path: PathBuf,
    #[serde(default)]
    filenames: Vec<PathBuf>,
}

pub(super) fn build(project: &ProjectFolder) -> Result<(), BuildError> {
    let cargo = CARGO.find()?;
    check_target(project)?;
    let mut command = Command::new(cargo);
    command.args(["build", "--release", "--target", TARGET, "--message-format=json-render-diagnostics"]);
    let done = project.captured(command.stdout(Stdio::piped()))?;
    let Some(built) = component(&String::from_utf8_lossy(&done.stdout), &project.folder.join("Cargo.toml")) else {
        let fix = "give Cargo.toml a `[lib]` with `crate-type = [\"cdylib\"]`";
        return Err(BuildError::NotBuilt { path: project.component(), fix });
    };
    put(project, &built)
}

/// Whether the toolchain of the folder has a standard library for components.
fn check_target(project: &ProjectFolder) -> Result<(), BuildError> {
    let rustc = LanguageTool { program: "rustc", ..CARGO }.find()?;
    let mut command = Command::new(rustc);
    command.args(["--print", "target-libdir", "--target", TARGET]);
    let done = project.captured(command.stdout(Stdio::piped()))?;
    let libraries = fs::read_dir(String::from_utf8_lossy(&done.stdout).trim());
    let is_std = |entry: fs::DirEntry| entry.file_name().to_string_lossy().starts_with("libstd-");
    match libraries.is_ok_and(|mut files| files.any(|file| file.is_ok_and(is_std))) {
        true => Ok(()),
        false => Err(BuildError::NoTarget),
    }
}

/// The component that cargo has made of the package with this manifest.
fn component(messages: &str, manifest: &Path) -> Option<PathBuf> {
    let manifest = manifest.canonicalize().ok()?;
    let parsed = messages.lines().filter_map(|line| serde_json::from_str::<CargoMessage>(line).ok());
    let of_package =
        parsed.filter(|message| message.reason == "compiler-artifact" && message.manifest_path == manifest);
    let mut files = of_package.flat_map(|message| message.filenames);
    files.rfind(|file| file.extension().is_some_and(|ending| ending == "wasm"))
}

/// Has the component where the registration says: cargo may be told to build elsewhere.
fn put(project: &ProjectFolder, built: &Path) -> Result<(), BuildError> {
    let place = project.component();
    let unwritten = |cause| BuildError::File { path: place.clone(), cause };
    let is_there =
        built.canonicalize().ok().is_some_and(|built| place.canonicalize().is_ok_and(|there| there == built));
    if is_there {
        return Ok(());
    }
    if let Some(folder) = place.parent() {
        fs::create_dir_all(folder).map_err(unwritten)?;
    }
    let draft = project.draft();
    fs::copy(built, project.within(&draft)).map_err(unwritten)?;
    project.place(&draft)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c_350_the_component_of_a_package_is_the_one_that_cargo_names() {
        let folder = tempfile::tempdir().unwrap();
        let manifest = folder.path().canonicalize().unwrap().join("Cargo.toml");
        fs::write(&manifest, "").unwrap();
        let artifact = |manifest: &Path, files: &[&str]| {
            serde_json::json!({"reason": "compiler-artifact", "manifest_path": manifest, "filenames": files})
                .to_string()
        };
        let messages = [
            artifact(Path::new("/other/Cargo.toml"), &["/t/other.wasm"]),
            artifact(&manifest, &["/t/mine.wasm", "/t/libmine.rlib"]),
            "warning of somebody".to_owned(),
            r#"{"reason": "build-finished", "success": true}"#.to_owned(),
        ];
        assert_eq!(component(&messages.join("\n"), &manifest), Some(PathBuf::from("/t/mine.wasm")));
        assert_eq!(component(&messages[..1].join("\n"), &manifest), None);
    }
}
