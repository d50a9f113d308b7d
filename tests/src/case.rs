//! A cluster case: a folder of numbered YAML files, carried out in order on a server of its own.
//!
//! | file | what is done with its documents |
//! |---|---|
//! | `NN-apply.yaml` | applied |
//! | `NN-assert.yaml` | waited for: an object that has all of this, and may have more |
//! | `NN-absent.yaml` | waited for: no object has all of this |
//! | `NN-delete.yaml` | deleted |
//!
//! Objects go into namespace `default`, where a Target `cluster` is. A document without `metadata.name` stands for every
//! object of its kind. `${KUBECONFIG}` alone on its line is the server's kubeconfig, indented as the line is.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{cluster::Cluster, yaml};

enum Deed {
    Apply,
    Assert,
    Absent,
    Delete,
}

struct Step {
    deed: Deed,
    file: PathBuf,
}

/// Carries out the case of this folder.
pub async fn run(folder: &Path, cluster: &Cluster) {
    let steps = steps(folder);
    assert!(!steps.is_empty(), "{} has no steps", folder.display());
    for step in steps {
        for document in yaml::documents(&filled_in(&step.file, cluster)) {
            match step.deed {
                Deed::Apply => drop(cluster.apply(&document).await),
                Deed::Assert => drop(cluster.expect(&document).await),
                Deed::Absent => cluster.expect_absent(&document).await,
                Deed::Delete => cluster.delete(&document).await,
            }
        }
    }
}

/// A placeholder, alone on its line, for the kubeconfig of the server.
const KUBECONFIG: &str = "${KUBECONFIG}";

fn filled_in(file: &Path, cluster: &Cluster) -> String {
    let text = fs::read_to_string(file).expect("the step can be read");
    if !text.contains(KUBECONFIG) {
        return text;
    }
    let filled = |line: &str| match line.strip_suffix(KUBECONFIG) {
        Some(indent) => cluster.kubeconfig().lines().map(|line| format!("{indent}{line}\n")).collect(),
        None => format!("{line}\n"),
    };
    text.lines().map(filled).collect()
}

fn steps(folder: &Path) -> Vec<Step> {
    let entries = fs::read_dir(folder).expect("the folder of the case can be read");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    files.into_iter().filter_map(step).collect()
}

fn step(file: PathBuf) -> Option<Step> {
    let name = file.file_name()?.to_str()?;
    let (number, deed) = name.strip_suffix(".yaml")?.split_once('-')?;
    assert!(number.len() == 2, "{}: a step begins with two digits", file.display());
    let deed = match deed {
        "apply" => Some(Deed::Apply),
        "assert" => Some(Deed::Assert),
        "absent" => Some(Deed::Absent),
        "delete" => Some(Deed::Delete),
        _ => None,
    };
    assert!(deed.is_some(), "{}: a step is apply, assert, absent or delete", file.display());
    Some(Step { deed: deed?, file })
}
