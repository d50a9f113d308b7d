//! The components of `examples/own-template`, built as its README says. What is built or installed stays in the target
//! folder.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use orangery_core::digest;
use serde_json::{Value, json};

use crate::{fail, repository};

fn example() -> PathBuf {
    repository().join("examples/own-template")
}

/// Runs a command; the error is one sentence with what it said.
fn run(command: &mut Command) -> Result<(), String> {
    let text = format!("{command:?}");
    let done = command.output().map_err(|error| format!("{text} did not start: {error}"))?;
    match done.status.success() {
        true => Ok(()),
        false => Err(format!("{text} failed: {}", String::from_utf8_lossy(&done.stderr).trim())),
    }
}

/// The component in Rust.
///
/// # Panics
///
/// Where it does not build.
pub fn rust(tmp: &Path) -> Vec<u8> {
    let guests = tmp.with_file_name("guests");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--profile", "guest", "--target", "wasm32-wasip2", "-p", "harvest"]);
    run(cargo.arg("--target-dir").arg(&guests).current_dir(repository())).expect("the component builds");
    fs::read(guests.join("wasm32-wasip2/guest/harvest.wasm")).expect("the component was built")
}

/// The deploy item that the example renders, with its target as it is written there.
pub fn item(target: Value) -> Value {
    let config_map = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "harvest", "namespace": "default"},
        "data": {"season": "autumn", "orange": "3 crates", "lemon": "2 crates", "kumquat": "1 crates"},
    });
    json!({
        "name": "harvest",
        "type": "landscaper.gardener.cloud/kubernetes-manifest",
        "target": target,
        "config": {
            "apiVersion": "manifest.deployer.landscaper.gardener.cloud/v1alpha2",
            "kind": "ProviderConfiguration",
            "manifests": [{"manifest": config_map}],
        },
    })
}

/// The component in Go, as the build script of the suites left it here.
///
/// # Panics
///
/// Where it left none: without Go.
pub fn go(out: &Path) -> Vec<u8> {
    fs::read(out.join("harvest-go.wasm")).expect("the build script writes it where there is Go")
}

/// Builds a component unless it was built of the same sources before.
fn kept(
    tmp: &Path,
    name: &str,
    sources: &[PathBuf],
    build: impl FnOnce(&Path) -> Result<(), String>,
) -> Result<Vec<u8>, String> {
    let read = |path: &PathBuf| fs::read(path).map_err(|error| format!("{}: {error}", path.display()));
    let content: Vec<Vec<u8>> = sources.iter().map(read).collect::<Result<_, _>>()?;
    let of = digest::sha256(&content.concat()).replace(':', "-");
    let file = tmp.join(format!("{name}-{of}.wasm"));
    if !file.is_file() {
        let draft = tmp.join(format!("{name}.draft.wasm"));
        build(&draft)?;
        fs::rename(&draft, &file).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    read(&file)
}

fn contract() -> Vec<PathBuf> {
    let files = fs::read_dir(repository().join("wit/template/0.1.0")).expect("the contract is there");
    let mut files: Vec<PathBuf> =
        files.filter_map(Result::ok).map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    files.sort();
    files
}

/// The component in Python, by `componentize-py` in an environment of its own.
///
/// # Panics
///
/// Where it cannot be built, such as without a package registry.
pub fn python(tmp: &Path) -> Vec<u8> {
    componentize_py(tmp).unwrap_or_else(|why| fail(&why))
}

fn componentize_py(tmp: &Path) -> Result<Vec<u8>, String> {
    let here = example().join("python");
    let requirements = here.join("requirements.txt");
    let sources = [contract(), vec![requirements.clone(), here.join("app.py")]].concat();
    kept(tmp, "python", &sources, |output| {
        let environment = tmp.join("python");
        run(Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
        run(Command::new(environment.join("bin/pip")).args(["install", "--quiet", "-r"]).arg(&requirements))?;
        let mut componentize = Command::new(environment.join("bin/componentize-py"));
        componentize.arg("-d").arg(repository().join("wit/template/0.1.0")).args([
            "-w",
            "templater",
            "componentize",
            "-p",
        ]);
        run(componentize.arg(&here).args(["app", "-o"]).arg(output).env("PYTHONDONTWRITEBYTECODE", "1"))
    })
}

/// The component in JavaScript, by `componentize-js`.
///
/// # Panics
///
/// As [`python`].
pub fn javascript(tmp: &Path) -> Vec<u8> {
    componentize_js(tmp).unwrap_or_else(|why| fail(&why))
}

fn componentize_js(tmp: &Path) -> Result<Vec<u8>, String> {
    let here = example().join("javascript");
    let names = ["package.json", "build.js", "render.js"];
    let sources = [contract(), names.map(|name| here.join(name)).to_vec()].concat();
    kept(tmp, "javascript", &sources, |output| {
        let folder = tmp.join("javascript");
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        for name in names {
            fs::copy(here.join(name), folder.join(name)).map_err(|error| format!("{name}: {error}"))?;
        }
        run(Command::new("npm").args(["install", "--silent", "--no-audit", "--no-fund"]).current_dir(&folder))?;
        let mut node = Command::new("node");
        run(node.arg("build.js").arg(output).arg(repository().join("wit/template/0.1.0")).current_dir(&folder))
    })
}

/// The Installation that carries the blueprint with this component, as `installation.sh` prints it.
///
/// # Panics
///
/// Where the files of the example cannot be copied.
pub fn installation(folder: &Path, component: &[u8]) -> String {
    let blueprint = folder.join("blueprint");
    fs::create_dir_all(&blueprint).expect("a folder for the blueprint");
    for file in ["installation.sh", "blueprint/blueprint.yaml", "blueprint/season.txt"] {
        fs::copy(example().join(file), folder.join(file)).expect("the example has the file");
    }
    fs::write(blueprint.join("render.wasm"), component).expect("the component can be written");
    let printed = Command::new("sh").arg(folder.join("installation.sh")).output().expect("a shell runs");
    assert!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
    String::from_utf8(printed.stdout).expect("YAML is text")
}
