//! Builds the components that this crate embeds, and writes a constant for each.

use std::{
    env,
    fmt::Write as _,
    fs, io,
    path::{Path, PathBuf},
};

use orangery_build::{Error, GoComponent, Request, What, digest, go_component, guests, report, warn};

/// The packages that are written in Rust, with the names of their constants.
const PACKAGES: &[&str] = &["orangery-manifest", "orangery-mock", "orangery-jinja"];
const NAMES: &[&str] = &["manifest", "mock", "jinja"];

/// The components that are written in Go, and what is not there without them.
const IN_GO: &[(&str, &str)] = &[
    ("gotemplate", "the template type GoTemplate"),
    ("spiff", "the template type Spiff"),
    ("helm", "the deployer of landscaper.gardener.cloud/helm"),
];

fn main() -> io::Result<()> {
    // Read now, not when this script was compiled: the repository may have been moved since.
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let mut constants = String::new();
    match rust(&here) {
        Ok(components) => {
            for (name, component) in NAMES.iter().zip(components) {
                embed(&mut constants, name, &component)?;
            }
        }
        Err(error) => {
            report(&error);
            return Ok(());
        }
    }
    for (name, what) in IN_GO {
        match go(&here, name) {
            Ok(component) => embed(&mut constants, name, &component)?,
            Err(error) if error.is_of_the_machine() => {
                let sentence = format!("{what} is not part of this build: {error}");
                warn(&sentence);
                lack(&mut constants, name, &sentence);
            }
            Err(error) => {
                report(&error);
                return Ok(());
            }
        }
    }
    fs::write(out().join("embedded.rs"), constants)
}

fn rust(here: &Path) -> Result<Vec<PathBuf>, Error> {
    let folder = |name: &str| here.join("..").join(name);
    let workspace = here.join("../../Cargo.toml");
    let mut watched: Vec<PathBuf> = vec![here.join("../../wit")];
    for plugin in ["sdk", "manifest", "mock", "jinja"] {
        watched.extend([folder(plugin).join("src"), folder(plugin).join("Cargo.toml")]);
    }
    let watch: Vec<&Path> = watched.iter().map(PathBuf::as_path).collect();
    guests(&Request { manifest: &workspace, what: What::Packages(PACKAGES), watch: &watch })
}

fn go(here: &Path, name: &str) -> Result<PathBuf, Error> {
    let plugins = here.parent().unwrap_or(here);
    let (engines, contracts) = (plugins.join("go"), plugins.with_file_name("wit"));
    let packages = engines.join("pkg");
    if name == "helm" {
        let deployer = plugins.join("helm");
        return go_component(&GoComponent {
            name,
            main: &deployer.join("component"),
            with: &[&deployer, &packages],
            standins: None,
            tags: &[],
            wit: &contracts.join("deployer"),
            world: "deployer-with-tests",
            snapshot: true,
        });
    }
    go_component(&GoComponent {
        name,
        main: &engines.join("component"),
        with: &[&engines, &packages],
        standins: Some(&engines.join("standins")),
        tags: &[name],
        wit: &contracts.join("template"),
        world: "templater-with-check",
        snapshot: true,
    })
}

fn out() -> PathBuf {
    PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default())
}

/// Copies a component to where the crate includes it from, so that a later build of guests cannot change it under a
/// compiler that is reading.
fn embed(constants: &mut String, name: &str, component: &Path) -> io::Result<()> {
    let kept = out().join(format!("{name}.wasm"));
    let bytes = fs::read(component)?;
    fs::write(&kept, &bytes)?;
    let (constant, kept, digest) = (name.to_uppercase(), kept.display().to_string(), digest(&bytes));
    writeln!(constants, "const {constant}: Component = Ok((include_bytes!({kept:?}), {digest:?}));")
        .map_err(io::Error::other)
}

/// What stands in place of a component that could not be built.
fn lack(constants: &mut String, name: &str, sentence: &str) {
    let constant = name.to_uppercase();
    *constants += &format!("const {constant}: Component = Err({sentence:?});\n");
}
