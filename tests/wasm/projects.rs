//! Projects as `orangery plugin new` writes them: each builds by the commands that it names, its cases pass in the sandbox, and its
//! deployers do what every deployer does.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};

use orangery_cli::authoring::{
    build::ProjectFolder,
    cases::{self, CallLog, CaseKind, Expectation},
    conformance::{CaseOutcome, conform, samples},
    loaded::LoadedComponent,
    project::{Language, Project, ProjectKind},
};
use orangery_core::digest;
use orangery_tests::repository;

use crate::inside::fixtures::sandbox;

fn tmp() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("projects")
}

/// Runs a command of a project as its README has it.
fn run(line: &str, folder: &Path) {
    let mut shell = Command::new("sh");
    shell.args(["-euc", line]).current_dir(folder);
    // What the suites are built with is there already, and what a project needs is among it.
    shell.env("CARGO_NET_OFFLINE", "true").env("CARGO_TARGET_DIR", tmp().join("target"));
    shell.env_remove("RUSTFLAGS").env("PYTHONDONTWRITEBYTECODE", "1");
    let done = shell.output().expect("a shell runs");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{line}: {said}{}", String::from_utf8_lossy(&done.stdout));
}

/// Builds a project, unless the very same was built before.
fn built(project: &Project, folder: &Path) -> Vec<u8> {
    project.write(folder).unwrap();
    let of = digest::sha256(format!("{:?}", project.files()).as_bytes()).replace(':', "-");
    let kept = tmp().join(format!("{of}.wasm"));
    // The others are built in seconds.
    if matches!(project.language, Language::Python | Language::Javascript) && kept.is_file() {
        return fs::read(kept).unwrap();
    }
    let mut component = folder.join(project.component());
    if project.language == Language::Rust {
        fs::copy(repository().join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
        component = tmp().join(project.component());
    }
    match project.language {
        // The command is that of the program itself.
        Language::Go => drop(ProjectFolder::open(folder).unwrap().build().unwrap()),
        Language::Rust | Language::Python | Language::Javascript => {
            project.build_commands().iter().for_each(|line| run(line, folder));
        }
    }
    let bytes = fs::read(component).unwrap();
    fs::create_dir_all(tmp()).unwrap();
    fs::write(kept, &bytes).unwrap();
    bytes
}

/// Builds a project, runs its cases, and asks of a deployer what is asked of all.
async fn check(language: Language, kind: ProjectKind) {
    let folder = tempfile::tempdir().unwrap();
    let name = format!("{language:?}-{kind:?}").to_lowercase();
    let project = Project { name: name.parse().unwrap(), language, kind };
    let bytes = built(&project, folder.path());
    if language == Language::Rust {
        run("cargo test --quiet", folder.path());
    }
    let file = folder.path().join(project.component());
    let near = [folder.path().to_path_buf()];
    let component = LoadedComponent::in_sandbox(&sandbox(), (&file, bytes), None, &near).unwrap();
    assert_eq!(component.world, kind.world());
    let log = Arc::new(CallLog::default());
    for case in cases::folders(&folder.path().join("cases")).unwrap() {
        let report = cases::run(&component, &case, CaseKind::Cases, Expectation::Holds, &log).await;
        assert_eq!(report.problems, Vec::<String>::new(), "{name}: {}", report.name);
    }
    if kind == ProjectKind::Deployer {
        let (samples, target) = samples(&folder.path().join("samples")).unwrap();
        let report = conform(&component.plugin, component.first_type(), (&samples, &target)).await.unwrap();
        let failed: Vec<_> = report.cases.iter().filter(|one| one.outcome == CaseOutcome::Failed).collect();
        assert!(failed.is_empty(), "{name}: {failed:#?}");
    }
}

#[tokio::test]
async fn c_257_a_deployer_in_rust_builds_and_passes_as_it_is_written() {
    check(Language::Rust, ProjectKind::Deployer).await;
}

#[tokio::test]
async fn c_257_an_engine_in_rust_builds_and_passes_as_it_is_written() {
    check(Language::Rust, ProjectKind::Template).await;
}

#[tokio::test]
async fn c_257_a_gate_in_rust_builds_and_passes_as_it_is_written() {
    check(Language::Rust, ProjectKind::Gate).await;
}

#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn c_257_projects_in_go_build_and_pass_as_they_are_written() {
    for kind in ProjectKind::ALL {
        check(Language::Go, kind).await;
    }
}

#[tokio::test]
#[cfg_attr(without_python, ignore = "needs python3 with venv: apt-get install python3-venv")]
async fn c_257_projects_in_python_build_and_pass_as_they_are_written() {
    for kind in ProjectKind::ALL {
        check(Language::Python, kind).await;
    }
}

#[tokio::test]
#[cfg_attr(without_npm, ignore = "needs node and npm: apt-get install npm")]
async fn c_257_projects_in_javascript_build_and_pass_as_they_are_written() {
    for kind in ProjectKind::ALL {
        check(Language::Javascript, kind).await;
    }
}

#[test]
fn c_257_the_sdk_packages_as_a_crate_with_the_contracts_in_it() {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["package", "--list", "--offline", "--allow-dirty", "-p", "orangery-sdk"]).current_dir(repository());
    let done = cargo.output().unwrap();
    let listed = String::from_utf8_lossy(&done.stdout);
    let said = String::from_utf8_lossy(&done.stderr);
    for file in ["src/lib.rs", "wit/deployer/plan.wit", "wit/template/world.wit", "wit/gate/gate.wit"] {
        assert!(listed.lines().any(|line| line == file), "{file} is not among {listed}{said}");
    }
}
