//! The nested cargo, and the lines that a build script says to the outer one.

use std::{
    env,
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{Error, Request, TARGET, What, variable};

/// The profile of the workspace that guests are built with.
const PROFILE: &str = "guest";

/// Variables by which the outer cargo would change what the nested one makes: flags for the host, the compiler of
/// `cargo clippy`, folders and targets. (`RUSTC_WRAPPER`, a user's compiler cache, stays.)
const LEFT_OUT: &[&str] = &[
    "CARGO_BUILD_RUSTFLAGS",
    "CARGO_BUILD_TARGET",
    "CARGO_BUILD_TARGET_DIR",
    "CARGO_ENCODED_RUSTFLAGS",
    "CARGO_TARGET_DIR",
    "CLIPPY_ARGS",
    "DEBUG",
    "HOST",
    "LLVM_PROFILE_FILE",
    "OPT_LEVEL",
    "OUT_DIR",
    "PROFILE",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTDOCFLAGS",
    "RUSTFLAGS",
    "TARGET",
    "__CARGO_DEFAULT_LIB_METADATA",
];

/// What the outer cargo tells a build script about its own package.
const LEFT_OUT_BEGINNINGS: &[&str] = &["CARGO_CFG_", "CARGO_FEATURE_", "CARGO_MANIFEST_", "CARGO_PKG_", "DEP_"];

/// Says a line to the cargo that runs the build script.
pub(crate) fn instruct(line: &str) {
    // A closed pipe means that cargo is gone: nobody is left to tell.
    drop(writeln!(std::io::stdout(), "cargo::{line}"));
}

/// Has the build script run again when a source of the guests changes.
pub(crate) fn watch(request: &Request<'_>) {
    // A file that does not exist would have cargo run the script every time.
    let lock = Some(lock(request)).filter(|lock| lock.is_file());
    for path in [request.manifest].into_iter().chain(lock.as_deref()).chain(request.watch.iter().copied()) {
        instruct(&format!("rerun-if-changed={}", path.display()));
    }
}

fn lock(request: &Request<'_>) -> PathBuf {
    request.manifest.with_file_name("Cargo.lock")
}

/// Runs the nested cargo.
pub(crate) fn build(request: &Request<'_>) -> Result<Vec<PathBuf>, Error> {
    let folder = guests_folder(&variable("OUT_DIR")?);
    let program = variable("CARGO")?;
    let mut command = Command::new(&program);
    leave_out(&mut command);
    command.env("CARGO_ENCODED_RUSTFLAGS", without_paths(request.manifest));
    command.arg("build").arg("--manifest-path").arg(request.manifest).arg("--target-dir").arg(&folder);
    command.args(["--quiet", "--color", "never", "--target", TARGET, "--profile", PROFILE]);
    // The outer cargo has just brought the lock of a shared workspace up to date.
    if lock(request).is_file() {
        command.arg("--locked");
    }
    match request.what {
        What::Packages(names) => command.args(names.iter().flat_map(|name| ["--package", name])).arg("--lib"),
        What::Examples(names) => command.args(names.iter().flat_map(|name| ["--example", name])),
    };
    let done = command.output().map_err(|source| Error::Start { program, source })?;
    if !done.status.success() {
        return Err(Error::Build { output: String::from_utf8_lossy(&done.stderr).trim().to_owned() });
    }
    components(&folder, &request.what)
}

/// Flags by which a component names no folder of this machine where it names a source: it is the same on all.
fn without_paths(manifest: &Path) -> String {
    let of_user = || env::home_dir().map(|home| home.join(".cargo"));
    let cargo = env::var_os("CARGO_HOME").map(PathBuf::from).or_else(of_user);
    let cargo = cargo.map(|folder| (folder, "/cargo"));
    let workspace = manifest.parent().and_then(|folder| folder.canonicalize().ok()).map(|folder| (folder, "/sources"));
    let flag = |(folder, name): (PathBuf, &str)| format!("--remap-path-prefix={}={name}", folder.display());
    cargo.into_iter().chain(workspace).map(flag).collect::<Vec<_>>().join("\x1f")
}

fn leave_out(command: &mut Command) {
    for (name, _) in env::vars_os() {
        let Some(text) = name.to_str() else { continue };
        let rustflags = text.starts_with("CARGO_TARGET_") && text.ends_with("_RUSTFLAGS");
        if rustflags || LEFT_OUT.contains(&text) || LEFT_OUT_BEGINNINGS.iter().any(|start| text.starts_with(start)) {
            command.env_remove(&name);
        }
    }
}

fn components(folder: &Path, what: &What<'_>) -> Result<Vec<PathBuf>, Error> {
    let built = folder.join(TARGET).join(PROFILE);
    let (built, names) = match what {
        What::Packages(names) => (built, names),
        What::Examples(names) => (built.join("examples"), names),
    };
    let paths = names.iter().map(|name| built.join(format!("{}.wasm", name.replace('-', "_"))));
    paths.map(|component| if component.is_file() { Ok(component) } else { Err(Error::Missing { component }) }).collect()
}

/// `guests` inside the target folder that a build script's `OUT_DIR` lies in. The target folder is the one that cargo
/// marks as a cache; without the mark it is where it has always been, above `<profile>/build/<package>/out`.
pub(crate) fn guests_folder(out: &Path) -> PathBuf {
    let marked = out.ancestors().find(|folder| folder.join("CACHEDIR.TAG").is_file());
    marked.or_else(|| out.ancestors().nth(4)).unwrap_or(out).join("guests")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_target_folder_is_found_from_out_dir() {
        let out = Path::new("/nowhere/target/debug/build/orangery-builtin-0123/out");
        assert_eq!(guests_folder(out), Path::new("/nowhere/target/guests"));
        let here = env::current_exe().expect("a test has a path");
        let folder = guests_folder(&here.with_file_name("out"));
        let parent = folder.parent().expect("guests lies in a folder");
        assert!(parent.join("CACHEDIR.TAG").is_file(), "{}", parent.display());
    }

    #[test]
    fn a_component_that_cargo_did_not_make_is_named() {
        let error = components(Path::new("/nowhere"), &What::Packages(&["a-b"])).expect_err("nothing is there");
        assert_eq!(
            error.to_string(),
            "cargo built no /nowhere/wasm32-wasip2/guest/a_b.wasm; give the package `crate-type = [\"cdylib\"]`"
        );
    }
}
