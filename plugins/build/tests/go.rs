//! What is written in Go passes its own tests, is formatted, and `go vet` finds nothing in it.
//!
//! Natively; the sandbox runs the same cases of the engines in `tests/wasm`, and releases in `tests/cluster`. A machine without Go, or without the modules and a network to
//! get them, says so and passes.

use std::{
    env,
    io::{Write as _, stderr},
    path::{Path, PathBuf},
    process::{Command, Output},
};

/// Where Go lies on machines whose path does not have it.
const USUAL: &str = "/usr/local/go/bin";

fn module(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name)
}

/// Go's programs lie in one folder.
fn go() -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut folders = env::split_paths(&path).chain([USUAL.into()]);
    folders.find(|folder| folder.join("go").is_file() && folder.join("gofmt").is_file())
}

fn run(program: &Path, name: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(program);
    command.current_dir(module(name)).args(arguments).env_remove("GOOS").env_remove("GOARCH");
    command.output().expect("a program of Go starts")
}

fn report(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Not by `eprintln!`, which the test runner keeps to itself.
fn skipped(why: &str) {
    writeln!(stderr(), "\nNOT RUN: the tests of what is written in Go: {why}\n")
        .expect("standard error can be written");
}

#[test]
fn the_go_engines_pass_their_own_tests() {
    passes("go");
}

#[test]
fn the_helm_deployer_passes_its_own_tests() {
    passes("helm");
}

fn passes(name: &str) {
    let Some(programs) = go() else {
        return skipped("this machine has no Go; install Go >= 1.26 from https://go.dev/dl");
    };
    let go = programs.join("go");
    let modules = run(&go, name, &["mod", "download"]);
    if !modules.status.success() {
        return skipped(&format!("their modules cannot be downloaded: {}", report(&modules).trim()));
    }
    let unformatted = run(&programs.join("gofmt"), name, &["-l", "."]);
    assert!(unformatted.status.success() && unformatted.stdout.is_empty(), "run gofmt -w on: {}", report(&unformatted));
    for arguments in [["vet", "./..."], ["test", "./..."]] {
        let done = run(&go, name, &arguments);
        assert!(done.status.success(), "go {} in plugins/{name}:\n{}", arguments.join(" "), report(&done));
    }
}
