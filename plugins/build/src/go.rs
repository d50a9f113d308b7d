//! Builds components from Go: `go build` for WASI preview 1 with generated bindings, a snapshot, the component.
//!
//! Each step's result is kept by what it was made of, in `guests/go` inside the target folder.

mod additions;
mod bindings;
mod kept;
mod kit;
mod package;
mod toolchain;

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::Command,
};

use wasi_preview1_component_adapter_provider::{
    WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER,
};
use wit_component::ComponentEncoder;

use self::{bindings::Bindings, kept::CachedBuild, toolchain::Go};
pub use self::{
    kit::{GoKit, go_kit},
    package::wit_package,
};
use crate::{Error, cargo, snapshot, variable};

/// The flags that decide what the module is: small, a reactor, the same wherever it is built, and allowed to ask the
/// runtime for memory (`plugins/go/README.md`, pitfall 2).
const FLAGS: &[&str] = &["-buildmode=c-shared", "-trimpath", "-ldflags=-s -w -checklinkname=0 -buildid="];

/// A component to build.
pub struct GoComponent<'a> {
    /// The name of its file, without an ending.
    pub name: &'a str,
    /// The folder of its package `main`, a Go module called `wit_component`, which is what the generated bindings belong to.
    pub main: &'a Path,
    /// The folders of other Go modules that it is built with.
    pub with: &'a [&'a Path],
    /// The folder of packages that take the place of those of Go's own library, by their path in it.
    pub standins: Option<&'a Path>,
    /// The folder of files that stand beside those of Go's own library, by their path in it.
    pub additions: Option<&'a Path>,
    /// Build tags.
    pub tags: &'a [&'a str],
    /// The folder of the WIT package.
    pub wit: &'a Path,
    /// The world of that package.
    pub world: &'a str,
    /// Whether it exports `prewarm`, and is kept as this leaves it.
    pub snapshot: bool,
}

/// Builds one component and answers its file. Has the build script run again when one of its sources changes.
///
/// # Errors
///
/// [`Error::NoGo`] where this machine cannot build Go at the moment, which [`Error::is_of_the_machine`] tells apart from
/// mistakes in the sources.
pub fn go_component(request: &GoComponent<'_>) -> Result<PathBuf, Error> {
    let laid = [request.standins, request.additions];
    for folder in [request.main, request.wit].iter().chain(request.with).chain(laid.iter().flatten()) {
        cargo::instruct(&format!("rerun-if-changed={}", folder.display()));
    }
    for variable in ["PATH", "GOPROXY", "GOTOOLCHAIN", "GOFLAGS"] {
        cargo::instruct(&format!("rerun-if-env-changed={variable}"));
    }
    let folder = cargo::guests_folder(&variable("OUT_DIR")?).join("go");
    go_component_in(request, &folder)
}

/// Builds one component in this folder, outside of a build script.
///
/// # Errors
///
/// As [`go_component`].
pub fn go_component_in(request: &GoComponent<'_>, folder: &Path) -> Result<PathBuf, Error> {
    fs::create_dir_all(folder).map_err(|source| unwritten(folder, source))?;
    let go = Go::find(request.main)?;
    let bindings = Bindings::generate(request.wit, request.world)?;
    let kept = CachedBuild { folder, name: request.name };
    let sources = sources(request)?;
    let tags = request.tags.join(",");
    let of: Vec<&[u8]> = sources.iter().map(Vec::as_slice).chain(bindings.parts()).collect();
    let asked = [go.version.as_bytes(), tags.as_bytes(), FLAGS_TEXT.as_bytes()];
    let core = kept.step("core", &[&asked, of.as_slice()].concat(), || compile(request, &go, &bindings, folder))?;
    let core = match request.snapshot {
        true => kept.step("snapshot", &[&core, SNAPSHOT_SOURCE], || snapshot::snapshot(&core))?,
        false => core,
    };
    kept.step("component", &[&core, &bindings.section, WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER], || {
        encode(&core, &bindings)
    })?;
    Ok(kept.place("component"))
}

/// What a step was made by, besides what it was made of.
const FLAGS_TEXT: &str = concat!(include_str!("go.rs"), include_str!("go/additions.rs"));
const SNAPSHOT_SOURCE: &[u8] =
    concat!(include_str!("snapshot.rs"), include_str!("snapshot/encoding.rs"), include_str!("snapshot/world.rs"))
        .as_bytes();

fn unwritten(path: &Path, source: io::Error) -> Error {
    Error::File { path: path.to_path_buf(), source }
}

/// The sources of all modules, in the order of their names.
fn sources(request: &GoComponent<'_>) -> Result<Vec<Vec<u8>>, Error> {
    let mut files = Vec::new();
    let laid = [request.standins, request.additions];
    for folder in [request.main].iter().chain(request.with).chain(laid.iter().flatten()) {
        collect(folder, &mut files)?;
    }
    files.retain(|file| !file.to_string_lossy().ends_with("_test.go"));
    files.sort();
    files.dedup();
    files.iter().map(|file| fs::read(file).map_err(|source| unwritten(file, source))).collect()
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Error> {
    for entry in fs::read_dir(folder).map_err(|source| unwritten(folder, source))? {
        let path = entry.map_err(|source| unwritten(folder, source))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            collect(&path, files)?;
        } else if name == "go.mod" || name == "go.sum" || [".go", ".s"].iter().any(|ending| name.ends_with(ending)) {
            files.push(path);
        }
    }
    Ok(())
}

/// `go build`, in a workspace of the modules, with the bindings laid over the package `main`.
fn compile(request: &GoComponent<'_>, go: &Go, bindings: &Bindings, folder: &Path) -> Result<Vec<u8>, Error> {
    let scratch = folder.join(format!("{}.{}", request.name, std::process::id()));
    let built = prepare(request, go, bindings, &scratch).and_then(|workspace| {
        go.download(&workspace, request.main)?;
        let output = scratch.join("core.wasm");
        let mut command = go.command(&workspace);
        command.current_dir(request.main).env("GOOS", "wasip1").env("GOARCH", "wasm");
        command.arg("build").args(FLAGS).arg("-tags").arg(request.tags.join(","));
        command.arg("-overlay").arg(scratch.join("overlay.json")).arg("-o").arg(&output).arg(".");
        finished(command, &go.program)?;
        fs::read(&output).map_err(|source| unwritten(&output, source))
    });
    // What is left behind costs space, and the next build of this name tries again.
    let _left = fs::remove_dir_all(&scratch);
    built
}

fn finished(mut command: Command, program: &Path) -> Result<(), Error> {
    let done = command.output().map_err(|source| Error::Start { program: program.to_path_buf(), source })?;
    match done.status.success() {
        true => Ok(()),
        false => Err(Error::Go { output: String::from_utf8_lossy(&done.stderr).trim().to_owned() }),
    }
}

/// Writes the workspace, the bindings and where they are laid. Answers the workspace.
fn prepare(request: &GoComponent<'_>, go: &Go, bindings: &Bindings, scratch: &Path) -> Result<PathBuf, Error> {
    let write = |path: &Path, text: &[u8]| {
        let folder = path.parent().unwrap_or(scratch);
        fs::create_dir_all(folder).and_then(|()| fs::write(path, text)).map_err(|source| unwritten(path, source))
    };
    let mut laid = serde_json::Map::new();
    for (name, text) in &bindings.files {
        let file = scratch.join("bindings").join(name);
        write(&file, text)?;
        laid.insert(request.main.join(name).display().to_string(), file.display().to_string().into());
    }
    if let Some(folder) = request.standins {
        stand_in(folder, &go.library, &mut laid)?;
    }
    if let Some(folder) = request.additions {
        for (file, text) in additions::edited(folder, go)? {
            let edited = scratch.join("library").join(file.strip_prefix(&go.library).unwrap_or(&file));
            write(&edited, text.as_bytes())?;
            laid.insert(file.display().to_string(), edited.display().to_string().into());
        }
    }
    let overlay = serde_json::json!({ "Replace": laid }).to_string();
    write(&scratch.join("overlay.json"), overlay.as_bytes())?;
    let modules = [&request.main].into_iter().chain(request.with);
    let modules: String = modules.map(|folder| format!("use {:?}\n", folder.display().to_string())).collect();
    let workspace = scratch.join("go.work");
    write(&workspace, format!("go {}\n{}", toolchain::OLDEST, modules).as_bytes())?;
    Ok(workspace)
}

/// Lays packages over those of the library: a file that the package lacks is laid over by nothing.
fn stand_in(folder: &Path, library: &Path, laid: &mut serde_json::Map<String, serde_json::Value>) -> Result<(), Error> {
    let mut files = Vec::new();
    collect(folder, &mut files)?;
    for file in files {
        let Ok(within) = file.strip_prefix(folder) else { continue };
        let place = library.join(within);
        let package = place.parent().unwrap_or(library);
        let others = fs::read_dir(package).map_err(|source| unwritten(package, source))?;
        for other in others {
            let other = other.map_err(|source| unwritten(package, source))?.path();
            if other.extension().is_some_and(|ending| ending == "go") {
                laid.entry(other.display().to_string()).or_insert_with(|| "".into());
            }
        }
        laid.insert(place.display().to_string(), file.display().to_string().into());
    }
    Ok(())
}

/// The component of a core module.
fn encode(core: &[u8], bindings: &Bindings) -> Result<Vec<u8>, Error> {
    let module = [core, &bindings.section].concat();
    let mut encoder = ComponentEncoder::default();
    encoder
        .module(&module)
        .and_then(|encoder| {
            encoder.adapter(WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER)
        })
        .and_then(ComponentEncoder::encode)
        .map_err(|error| Error::Component { why: format!("{error:#}") })
}
