//! Builds the components that this crate embeds.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
};

use orangery_build::{Request, What, guests, report};

/// The packages, in the order of `src/lib.rs`.
const PACKAGES: &[&str] = &["orangery-manifest", "orangery-mock", "orangery-jinja"];

fn main() -> io::Result<()> {
    // Read now, not when this script was compiled: the repository may have been moved since.
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let folder = |name: &str| here.join("..").join(name);
    let workspace = here.join("../../Cargo.toml");
    let mut watched: Vec<PathBuf> = vec![here.join("../../wit")];
    for plugin in ["sdk", "manifest", "mock", "jinja"] {
        watched.extend([folder(plugin).join("src"), folder(plugin).join("Cargo.toml")]);
    }
    let watch: Vec<&Path> = watched.iter().map(PathBuf::as_path).collect();
    match guests(&Request { manifest: &workspace, what: What::Packages(PACKAGES), watch: &watch }) {
        Ok(components) => embed(&components),
        Err(error) => {
            report(&error);
            Ok(())
        }
    }
}

/// Copies the components to where the crate includes them from, so that a later build of guests cannot change them under
/// a compiler that is reading.
fn embed(components: &[PathBuf]) -> io::Result<()> {
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    for component in components {
        if let Some(name) = component.file_name() {
            fs::copy(component, out.join(name))?;
        }
    }
    Ok(())
}
