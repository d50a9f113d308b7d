//! How many tests are left out for what a machine lacks, by the sources: no program knows what is ignored in the others.

use std::{fs, io, path::Path};

use orangery_tests::machine::Need;

#[path = "../cluster/ignored.rs"]
mod ignored;

/// Where there are tests. What is compiled for guests of the sandbox has none.
const FOLDERS: [&str; 2] = ["host", "tests"];

/// How many tests there are that are ignored for want of each of these, in the same order.
///
/// # Errors
/// The sources cannot be read.
pub(crate) fn counts(repository: &Path, missing: &[Need]) -> io::Result<Vec<usize>> {
    let mut named = Vec::new();
    let has_kube = missing.iter().all(|need| need.name != "kube");
    for folder in FOLDERS {
        in_folder(&repository.join(folder), repository, has_kube, &mut named)?;
    }
    if !has_kube {
        let folder = repository.join("tests/cluster");
        for module in ["cases", "kube_only"] {
            let names = ignored::names(&folder.join(module).with_extension("rs"), module)?;
            named.extend(names.iter().map(|_| "kube".to_owned()));
        }
    }
    Ok(missing.iter().map(|need| named.iter().filter(|name| *name == need.name).count()).collect())
}

/// Adds what the tests below a folder need.
fn in_folder(folder: &Path, repository: &Path, has_kube: bool, named: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            in_folder(&path, repository, has_kube, named)?;
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            let display = path.strip_prefix(repository).unwrap_or(&path).to_string_lossy().into_owned();
            let found = in_text(&fs::read_to_string(&path)?);
            for _ in 0..programs(&display, has_kube) {
                named.extend(found.iter().cloned());
            }
        }
    }
    Ok(())
}

/// In how many programs of tests a file is. Without a kube-apiserver all of its suite is counted as one.
fn programs(file: &str, has_kube: bool) -> usize {
    let is_case = file.starts_with("tests/cluster/cases");
    match (is_case, file.starts_with("tests/cluster/kube_only")) {
        (true, _) => 1 + usize::from(has_kube),
        (_, true) => usize::from(has_kube),
        (false, false) => 1,
    }
}

/// What the tests in a text need, one name for each test that is ignored without it.
fn in_text(text: &str) -> Vec<String> {
    let mut named = Vec::new();
    // What the attribute says that was read last, and whether it is of a list in braces.
    let (mut need, mut is_list): (Option<&str>, bool) = (None, false);
    for line in text.lines().map(str::trim) {
        if let Some(rest) = line.strip_prefix("#[cfg_attr(without_") {
            need = rest.split_once(", ignore").map(|(name, _)| name);
        } else if let Some(name) = need {
            match line {
                "{" => is_list = true,
                "}" => (need, is_list) = (None, false),
                _ if is_list && line.ends_with(',') => named.push(name.to_owned()),
                _ if line.contains("fn ") => {
                    named.push(name.to_owned());
                    need = None;
                }
                _ => {}
            }
        }
    }
    named
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_counts_for_what_it_needs_and_each_one_of_a_list() {
        let text = "#[test]\nfn a() {\n}\n#[tokio::test]\n#[cfg_attr(without_go, ignore = \"x\")]\nasync fn b() {\n    c,\n}\n\
                    recordings! {\n    {\n        d,\n    }\n    #[cfg_attr(without_helm, ignore = \"y\")]\n    {\n        e,\n        f,\n    \
                    }\n}\n#[cfg_attr(without_go, ignore = \"x\")]\nfn g() {}\n";
        assert_eq!(in_text(text), ["go", "helm", "helm", "go"]);
    }

    #[test]
    fn the_cases_of_both_servers_are_in_two_programs() {
        let files = ["tests/cluster/cases/drift.rs", "tests/cluster/kube_only/chart.rs", "tests/wasm/engines.rs"];
        assert_eq!(files.map(|file| programs(file, true)), [2, 1, 1]);
        assert_eq!(files.map(|file| programs(file, false)), [1, 0, 1]);
    }
}
