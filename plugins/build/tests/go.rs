//! The Go engines pass their own tests, are formatted, and `go vet` finds nothing in them.
//!
//! Natively; the sandbox runs the same cases in `tests/wasm`. A machine without Go, or without the modules and a network to
//! get them, says so and passes.

use std::{
    env,
    io::{Write as _, stderr},
    path::{Path, PathBuf},
    process::{Command, Output},
};

/// Where Go lies on machines whose path does not have it.
const USUAL: &str = "/usr/local/go/bin";

fn engines() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../go")
}

/// Go's programs lie in one folder.
fn go() -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut folders = env::split_paths(&path).chain([USUAL.into()]);
    folders.find(|folder| folder.join("go").is_file() && folder.join("gofmt").is_file())
}

fn run(program: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(program);
    command.current_dir(engines()).args(arguments).env_remove("GOOS").env_remove("GOARCH");
    command.output().expect("a program of Go starts")
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Not by `eprintln!`, which the test runner keeps to itself.
fn skipped(why: &str) {
    writeln!(stderr(), "\nNOT RUN: the tests of the Go engines: {why}\n").expect("standard error can be written");
}

#[test]
fn the_go_engines_pass_their_own_tests() {
    let Some(programs) = go() else {
        return skipped("this machine has no Go; install Go >= 1.26 from https://go.dev/dl");
    };
    let go = programs.join("go");
    let modules = run(&go, &["mod", "download"]);
    if !modules.status.success() {
        return skipped(&format!("their modules cannot be downloaded: {}", said(&modules).trim()));
    }
    let unformatted = run(&programs.join("gofmt"), &["-l", "."]);
    assert!(unformatted.status.success() && unformatted.stdout.is_empty(), "run gofmt -w on: {}", said(&unformatted));
    for arguments in [["vet", "./..."], ["test", "./..."]] {
        let done = run(&go, &arguments);
        assert!(done.status.success(), "go {} in plugins/go:\n{}", arguments.join(" "), said(&done));
    }
}
