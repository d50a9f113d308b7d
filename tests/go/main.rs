//! What is written in Go passes its own tests, is formatted, and `go vet` finds nothing in it.
//!
//! Natively; the sandbox runs the same cases of the engines in `tests/wasm`, and releases in `tests/cluster`.

use std::{
    path::Path,
    process::{Command, Output},
};

use orangery_tests::{machine, repository};

fn run(program: &Path, name: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(program);
    let module = repository().join("plugins").join(name);
    command.current_dir(module).args(arguments).env_remove("GOOS").env_remove("GOARCH");
    command.output().expect("a program of Go starts")
}

fn report(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
fn the_go_engines_pass_their_own_tests() {
    passes("go");
}

#[test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
fn the_helm_deployer_passes_its_own_tests() {
    passes("helm");
}

fn passes(name: &str) {
    let programs = machine::go().expect("this machine has Go");
    let unformatted = run(&programs.join("gofmt"), name, &["-l", "."]);
    assert!(unformatted.status.success() && unformatted.stdout.is_empty(), "run gofmt -w on: {}", report(&unformatted));
    for arguments in [["mod", "download"], ["vet", "./..."], ["test", "./..."]] {
        let done = run(&programs.join("go"), name, &arguments);
        assert!(done.status.success(), "go {} in plugins/{name}:\n{}", arguments.join(" "), report(&done));
    }
}
