//! Builds the hostile guests that `wasm` runs, and the example that is written in Go; says what this machine lacks for tests.

#[path = "cluster/ignored.rs"]
mod ignored;
#[path = "src/machine.rs"]
#[expect(dead_code, unreachable_pub, reason = "it is a module of the suites, which ask for more of it")]
mod machine;

use std::{
    env, fs, io,
    path::{Path, PathBuf},
};

use orangery_build::{GoComponent, Request, What, go_component, guests, report, warn};

fn main() -> io::Result<()> {
    // Read now, not when this script was compiled: the repository may have been moved since.
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let package = here.join("guests");
    let mut names = Vec::new();
    for entry in fs::read_dir(package.join("examples"))? {
        let path = entry?.path();
        names.extend(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()));
    }
    names.sort();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let watched = [package.join("src"), package.join("examples"), here.join("../wit")];
    let watch: Vec<&Path> = watched.iter().map(PathBuf::as_path).collect();
    match guests(&Request { manifest: &package.join("Cargo.toml"), what: What::Examples(&names), watch: &watch }) {
        Ok(components) => keep(&components)?,
        Err(error) => report(&error),
    }
    let with_go = go(&here)?;
    needs(&here, with_go)
}

/// Has the tests that need what is missing compiled as ignored.
fn needs(here: &Path, with_go: bool) -> io::Result<()> {
    let repository = here.join("..").canonicalize()?;
    for variable in machine::VARIABLES {
        println!("cargo::rerun-if-env-changed={variable}");
    }
    let [without, with] = ["WITHOUT", "WITH"].map(|name| env::var(name).unwrap_or_default());
    for need in machine::NEEDS {
        println!("cargo::rustc-check-cfg=cfg(without_{})", need.name);
        // What the stock Helm is held against is written in Go.
        let is_there = need.is_named(&with) || need.is_met(&repository);
        let is_met = is_there && (with_go || !["go", "helm", "node"].contains(&need.name));
        if need.is_named(&without) || !is_met {
            println!("cargo::rustc-cfg=without_{}", need.name);
            if need.name == "kube" {
                ignore_kube(here, need.reason)?;
            }
        }
    }
    // What goes away again is missing from then on. A path that is not there yet would have cargo build in every run.
    let built =
        ["kube", "helm", "node"].map(|name| machine::built(&repository, name).map(|folder| folder.join("complete")));
    let programs = ["docker-registry", "node", "npm", "python3", "containerd"].map(machine::on_path);
    let recordings = Some(machine::raw_recordings(&repository)).filter(|folder| folder.is_dir());
    for file in built.into_iter().filter_map(Result::ok).chain(programs.into_iter().flatten()).chain(recordings) {
        println!("cargo::rerun-if-changed={}", file.display());
    }
    Ok(())
}

/// Has all tests of the suite `kube` counted as ignored: its sources are those of `cluster`, which has them compiled.
fn ignore_kube(here: &Path, reason: &str) -> io::Result<()> {
    let folder = here.join("cluster");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut names = Vec::new();
    for module in ["cases", "kube_only"] {
        names.extend(ignored::names(&folder.join(module).with_extension("rs"), module)?);
    }
    fs::write(out().join("ignored.rs"), ignored::written(&names, reason))
}

fn out() -> PathBuf {
    PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default())
}

/// The component of `examples/own-template` in Go as `harvest-go.wasm`; whether this machine could build it.
fn go(here: &Path) -> io::Result<bool> {
    let out = out().join("harvest-go.wasm");
    let root = here.join("..").canonicalize()?;
    let built = go_component(&GoComponent {
        name: "harvest",
        main: &root.join("examples/own-template/go"),
        with: &[&root.join("plugins/go/pkg")],
        standins: None,
        additions: None,
        tags: &[],
        wit: &root.join("wit/template/0.1.0"),
        world: "templater",
        snapshot: false,
    });
    match built {
        Ok(component) => fs::copy(component, out).map(|_| true),
        Err(error) if error.is_of_the_machine() => {
            warn(&format!("what needs Go is not tested: {error}"));
            Ok(false)
        }
        Err(error) => {
            report(&error);
            Ok(false)
        }
    }
}

/// Copies the guests to where the suite includes them from.
fn keep(components: &[PathBuf]) -> io::Result<()> {
    let out = out();
    for component in components {
        if let Some(name) = component.file_name() {
            fs::copy(component, out.join(name))?;
        }
    }
    Ok(())
}
