//! The Rust target that guests need: looked for, and added by rustup where it is missing.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{Error, TARGET};

/// Adds the target where it is missing.
pub(crate) fn ensure() -> Result<(), Error> {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| OsString::from("rustc"));
    if is_installed(&rustc)? {
        return Ok(());
    }
    add(&rustc)?;
    if is_installed(&rustc)? {
        return Ok(());
    }
    Err(missing("rustup added it to another toolchain than the active one"))
}

fn missing(reason: impl Into<String>) -> Error {
    Error::Target { reason: reason.into() }
}

fn is_installed(rustc: &OsString) -> Result<bool, Error> {
    let libraries = print(rustc, &["--target", TARGET, "--print", "target-libdir"])?;
    let mut files = match Path::new(&libraries).read_dir() {
        Ok(entries) => entries.filter_map(Result::ok),
        Err(_) => return Ok(false),
    };
    Ok(files.any(|file| file.file_name().to_string_lossy().starts_with("libstd-")))
}

fn print(rustc: &OsString, arguments: &[&str]) -> Result<String, Error> {
    let mut command = Command::new(rustc);
    let done = command.args(arguments).output().map_err(|source| Error::Start { program: rustc.into(), source })?;
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).trim().to_owned());
    }
    Err(missing(reason(&done.stderr)))
}

/// `rustup target add`, for the toolchain that runs this build whatever the default one is.
fn add(rustc: &OsString) -> Result<(), Error> {
    let sysroot = PathBuf::from(print(rustc, &["--print", "sysroot"])?);
    let mut command = Command::new(rustup());
    command.args(["target", "add", TARGET]);
    if let Some(toolchain) = toolchain(&sysroot) {
        command.arg("--toolchain").arg(toolchain);
    }
    let done = command.output().map_err(|error| missing(format!("rustup did not start: {error}")))?;
    if done.status.success() { Ok(()) } else { Err(missing(reason(&done.stderr))) }
}

/// rustup beside the user's cargo, else whatever is in the path.
fn rustup() -> PathBuf {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let installed = home.map(|home| home.join("bin").join(format!("rustup{}", env::consts::EXE_SUFFIX)));
    installed.filter(|path| path.is_file()).unwrap_or_else(|| PathBuf::from("rustup"))
}

/// The name of a rustup toolchain by its folder; `None` for a Rust that rustup did not install.
fn toolchain(sysroot: &Path) -> Option<&Path> {
    let folder = sysroot.parent()?.file_name()?;
    (folder == "toolchains").then(|| sysroot.file_name().map(Path::new)).flatten()
}

/// What a program says went wrong: its first line of error, else its last line.
fn reason(output: &[u8]) -> String {
    let text = String::from_utf8_lossy(output);
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    match lines().find_map(|line| line.strip_prefix("error: ")) {
        Some(error) => error.to_owned(),
        None => lines().next_back().unwrap_or("it said nothing").to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_toolchain_is_the_one_that_runs_the_build() {
        let name = |sysroot: &str| toolchain(Path::new(sysroot)).map(|name| name.display().to_string());
        assert_eq!(
            name("/root/.rustup/toolchains/1.95.0-x86_64-unknown-linux-gnu").as_deref(),
            Some("1.95.0-x86_64-unknown-linux-gnu")
        );
        assert_eq!(name("/usr"), None);
    }

    #[test]
    fn the_reason_is_the_first_error_or_else_the_last_thing_said() {
        assert_eq!(reason(b"info: syncing\nerror: no network\n\nFor more information, try '--help'.\n"), "no network");
        assert_eq!(reason(b"one\ntwo\n\n"), "two");
        assert_eq!(reason(b""), "it said nothing");
    }

    #[test]
    fn a_missing_target_is_one_sentence_with_the_fix() {
        assert_eq!(
            missing("no network").to_string(),
            "the Rust target wasm32-wasip2 is missing and could not be added (no network); run `rustup target add wasm32-wasip2` and build again"
        );
    }
}
