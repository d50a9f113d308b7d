//! Builds the hostile guests that `wasm.rs` runs.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
};

use orangery_build::{Request, What, guests, report};

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
        Ok(components) => keep(&components),
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
