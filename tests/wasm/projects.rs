//! Projects as `orangery plugin new` writes them: each builds by the commands that it names, its cases pass in the sandbox, and its
//! deployers do what every deployer does. Of each language the page of `docs/plugins` is done, and components of all languages answer
//! the same cases alike.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};

use orangery_cli::authoring::{
    build::ProjectFolder,
    cases::{self, CallLog, CaseKind, Expectation},
    loaded::LoadedComponent,
    project::{Language, Project, ProjectKind},
};
use orangery_tests::repository;

use crate::{inside::fixtures::sandbox, tutorial::Tutorial};

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

fn project(language: Language, kind: ProjectKind) -> Project {
    Project { name: format!("{language:?}-{kind:?}").to_lowercase().parse().unwrap(), language, kind }
}

/// Builds a project with the tools that were fetched for another one of its language.
fn built(project: &Project, folder: &Path, fetched: Option<&Path>) -> Vec<u8> {
    project.write(folder).unwrap();
    match project.language {
        // The command is that of the program itself.
        Language::Go => drop(ProjectFolder::open(folder).unwrap().build().unwrap()),
        Language::Rust => {
            fs::copy(repository().join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
            project.build_commands().iter().for_each(|line| run(line, folder));
            return fs::read(tmp().join(project.component())).unwrap();
        }
        Language::Python | Language::Javascript => {
            // By these commands the tools are fetched before the last one builds.
            let fetched = fetched.expect("the tools of the language are fetched");
            symlink(fetched, folder.join(fetched.file_name().unwrap())).unwrap();
            run(project.build_commands().last().unwrap(), folder);
        }
    }
    fs::read(folder.join(project.component())).unwrap()
}

/// Runs the cases of a folder.
async fn pass(component: &LoadedComponent, folder: &Path, of: &str) {
    let log = Arc::new(CallLog::default());
    for case in cases::folders(folder).unwrap() {
        let report = cases::run(component, &case, CaseKind::Cases, Expectation::Holds, &log).await;
        assert_eq!(report.problems, Vec::<String>::new(), "{of}: {}", report.name);
    }
}

/// The cases that components of all languages answer alike.
fn shared(kind: &str) -> PathBuf {
    repository().join("tests/languages").join(kind)
}

/// Does the page of a language, in which a deployer is made, tested, changed and used; then its cases, and those of all languages.
async fn deployer(language: Language) -> Tutorial {
    let mut tutorial = Tutorial::begin(language, &tmp());
    tutorial.follow();
    let project = Project { name: "lemonade".parse().unwrap(), language, kind: ProjectKind::Deployer };
    let file = tutorial.project().join(project.component());
    let bytes = fs::read(&file).unwrap();
    let component = LoadedComponent::in_sandbox(&sandbox(), (&file, bytes), None, &[tutorial.project()]).unwrap();
    pass(&component, &shared("deployer"), &format!("{language:?}")).await;
    tutorial
}

/// Builds a project and runs its cases, and of an engine those of all languages.
async fn check(language: Language, kind: ProjectKind, fetched: Option<&Path>) {
    let folder = tempfile::tempdir().unwrap();
    let project = project(language, kind);
    let bytes = built(&project, folder.path(), fetched);
    if language == Language::Rust {
        run("cargo test --quiet", folder.path());
    }
    let file = folder.path().join(project.component());
    let near = [folder.path().to_path_buf()];
    let component = LoadedComponent::in_sandbox(&sandbox(), (&file, bytes), None, &near).unwrap();
    assert_eq!(component.world, kind.world());
    pass(&component, &folder.path().join("cases"), project.name.as_str()).await;
    if kind == ProjectKind::Template {
        pass(&component, &shared("template"), project.name.as_str()).await;
    }
}

#[tokio::test]
async fn c_221_c_222_c_257_a_deployer_in_rust_is_made_as_its_page_says() {
    deployer(Language::Rust).await;
}

#[tokio::test]
async fn c_221_c_257_an_engine_in_rust_builds_and_passes_as_it_is_written() {
    check(Language::Rust, ProjectKind::Template, None).await;
}

#[tokio::test]
async fn c_257_a_gate_in_rust_builds_and_passes_as_it_is_written() {
    check(Language::Rust, ProjectKind::Gate, None).await;
}

/// All projects of a language, one after the other.
async fn all(language: Language) {
    let tutorial = deployer(language).await;
    let fetched = tutorial.fetched();
    for kind in [ProjectKind::Template, ProjectKind::Gate] {
        check(language, kind, fetched.as_deref()).await;
    }
}

#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn c_221_c_222_c_257_projects_in_go_build_and_pass_as_they_are_written() {
    all(Language::Go).await;
}

#[tokio::test]
#[cfg_attr(without_python, ignore = "needs python3 with venv: apt-get install python3-venv")]
async fn c_221_c_222_c_257_projects_in_python_build_and_pass_as_they_are_written() {
    all(Language::Python).await;
}

#[tokio::test]
#[cfg_attr(without_npm, ignore = "needs node and npm: apt-get install npm")]
async fn c_221_c_222_c_257_projects_in_javascript_build_and_pass_as_they_are_written() {
    all(Language::Javascript).await;
}

#[test]
fn c_229_c_257_the_sdk_packages_as_a_crate_with_the_contracts_in_it() {
    let cargo = |arguments: &[&str]| {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["package", "--offline", "--allow-dirty", "-p", "orangery-sdk"]).args(arguments);
        // It is compiled where it is unpacked, of what the projects are compiled of.
        cargo.arg("--target-dir").arg(tmp().join("target")).env_remove("RUSTFLAGS").current_dir(repository());
        let done = cargo.output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.success(), "{said}");
        (String::from_utf8_lossy(&done.stdout).into_owned(), said)
    };
    let (listed, _) = cargo(&["--list"]);
    for (file, _) in orangery_plugin::WIT {
        assert!(listed.lines().any(|line| line == format!("wit/{file}")), "{file} is not among {listed}");
    }
    let (_, said) = cargo(&[]);
    assert!(said.contains("Verifying orangery-sdk") && said.contains("Packaged "), "{said}");
}
