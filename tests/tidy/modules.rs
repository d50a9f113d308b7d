//! No orphans: every Rust file is reached by a `mod` from the root of a target.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::OnceLock,
};

use crate::{
    repository::{self, Package},
    source::Source,
};

/// A file that a target reaches.
pub(crate) struct Reached {
    pub(crate) source: Source,
    /// Only tests reach it.
    pub(crate) for_tests: bool,
    /// The package that reaches it first.
    pub(crate) package: String,
}

/// Every file that some target of some package reaches, parsed once for all tests.
pub(crate) fn reached() -> &'static BTreeMap<PathBuf, Reached> {
    static REACHED: OnceLock<BTreeMap<PathBuf, Reached>> = OnceLock::new();
    REACHED.get_or_init(follow)
}

fn follow() -> BTreeMap<PathBuf, Reached> {
    let mut found = BTreeMap::new();
    for package in repository::packages() {
        for root in &package.roots {
            let for_tests = is_test_target(root);
            reach(root, true, for_tests, &package, &mut found);
        }
    }
    found
}

/// Suites beside a crate, its examples and benches hold no product code.
fn is_test_target(root: &Path) -> bool {
    let text = repository::display(root);
    text.starts_with("tests/") || text.contains("/tests/") || text.contains("/benches/")
}

fn reach(file: &Path, is_root: bool, for_tests: bool, package: &Package, found: &mut BTreeMap<PathBuf, Reached>) {
    if found.get(file).is_some_and(|known| !known.for_tests || for_tests) || !file.is_file() {
        return;
    }
    let source = Source::read(file);
    let children: Vec<_> =
        source.modules.iter().map(|module| (candidates(file, is_root, module), module.for_tests)).collect();
    found.insert(file.to_owned(), Reached { source, for_tests, package: package.name.clone() });
    for (files, is_test) in children {
        for child in files {
            reach(&child, false, for_tests || is_test, package, found);
        }
    }
}

/// The two places where a module's file may lie, or the one place that its declaration names.
fn candidates(file: &Path, is_root: bool, module: &crate::source::Module) -> Vec<PathBuf> {
    let folder = file.parent().expect("a file lies in a folder");
    if let Some(path) = &module.path {
        return vec![folder.join(path)];
    }
    let mut base = folder.to_owned();
    if !is_root && file.file_name().is_some_and(|name| name != "mod.rs") {
        base.push(file.file_stem().expect("a file has a name"));
    }
    base.extend(&module.within);
    vec![base.join(format!("{}.rs", module.name)), base.join(&module.name).join("mod.rs")]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rust_file_is_reached_by_a_mod() {
        let reached: BTreeSet<_> = reached().keys().collect();
        let orphans = repository::files_ending(&[".rs"]);
        let orphans = orphans.iter().filter(|file| !reached.contains(file)).map(|file| repository::display(file));
        repository::none("no `mod` reaches these files: declare or delete them", orphans.collect());
    }

    #[test]
    fn no_module_is_called_mod_rs() {
        let files = repository::files_ending(&["/mod.rs"]);
        repository::none("write `foo.rs` beside `foo/`", files.iter().map(|file| repository::display(file)).collect());
    }
}
