//! Builds the hostile guests that `wasm` runs, and the example that is written in Go.

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
    go(&here)
}

/// The component of `examples/own-template` in Go as `harvest-go.wasm`; empty where this machine cannot build Go.
fn go(here: &Path) -> io::Result<()> {
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default()).join("harvest-go.wasm");
    let root = here.join("..").canonicalize()?;
    let built = go_component(&GoComponent {
        name: "harvest",
        main: &root.join("examples/own-template/go"),
        with: &[&root.join("plugins/go/pkg")],
        standins: None,
        tags: &[],
        wit: &root.join("wit/template"),
        world: "templater",
        snapshot: false,
    });
    match built {
        Ok(component) => fs::copy(component, out).map(drop),
        Err(error) if error.is_of_the_machine() => {
            warn(&format!("examples/own-template in Go is not tested: {error}"));
            fs::write(out, [])
        }
        Err(error) => {
            report(&error);
            Ok(())
        }
    }
}

/// Copies the guests to where the suite includes them from.
fn keep(components: &[PathBuf]) -> io::Result<()> {
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    for component in components {
        if let Some(name) = component.file_name() {
            fs::copy(component, out.join(name))?;
        }
    }
    Ok(())
}
