//! A cluster case: a folder of numbered YAML files, carried out in order on a server of its own.
//!
//! | file | what is done with its documents |
//! |---|---|
//! | `NN-apply.yaml` | applied |
//! | `NN-assert.yaml` | waited for: an object that has all of this, and may have more |
//! | `NN-absent.yaml` | waited for: no object has all of this |
//! | `NN-patch.yaml` | merged into objects that are there |
//! | `NN-status.yaml` | merged into the status of objects, as an external controller does |
//! | `NN-finished.yaml` | waited for: an object of ours as in `assert`, whose job has ended; and it is another one than that of the `finished` before |
//! | `NN-delete.yaml` | deleted |
//!
//! Objects go into namespace `default`, where a Target `cluster` is. A document without `metadata.name` stands for every
//! object of its kind. `${KUBECONFIG}` alone on its line is the server's kubeconfig, indented as the line is.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::{matching::differences, objects::Objects, yaml};

enum Deed {
    Apply,
    Assert,
    Absent,
    Patch,
    Status,
    Finished,
    Delete,
}

struct Step {
    deed: Deed,
    file: PathBuf,
}

/// Carries out the case of this folder.
pub async fn run(folder: &Path, cluster: &Objects) {
    let steps = steps(folder);
    assert!(!steps.is_empty(), "{} has no steps", folder.display());
    let mut jobs: BTreeMap<String, String> = BTreeMap::new();
    for step in steps {
        for document in yaml::documents(&filled_in(&step.file, cluster)) {
            match step.deed {
                Deed::Apply => drop(cluster.apply(&document).await),
                Deed::Assert => drop(cluster.expect(&document).await),
                Deed::Absent => cluster.expect_absent(&document).await,
                Deed::Patch => cluster.merge(&document).await,
                Deed::Status => {
                    cluster.patch_status(&document, document["status"].clone()).await;
                }
                Deed::Finished => finished(cluster, &document, &mut jobs).await,
                Deed::Delete => cluster.delete(&document).await,
            }
        }
    }
}

/// Waits for the end of a job; `jobs` has those that were seen to end, by kind and name.
async fn finished(cluster: &Objects, expected: &Value, jobs: &mut BTreeMap<String, String>) {
    let of = format!("{} {}", expected["kind"], expected["metadata"]["name"]);
    let before = jobs.get(&of).cloned().unwrap_or_default();
    let has_ended = |object: &Value| {
        let job = object["status"]["jobID"].as_str().unwrap_or_default();
        object["status"]["jobIDFinished"] == job && job != before && differences(expected, object).is_empty()
    };
    let object = cluster.expect_that(expected, "did not end a job so in time", has_ended).await;
    jobs.insert(of, object["status"]["jobID"].as_str().unwrap_or_default().to_owned());
}

/// A placeholder, alone on its line, for the kubeconfig of the server.
const KUBECONFIG: &str = "${KUBECONFIG}";

/// The text of a step with the kubeconfig of the server.
pub fn filled_in(file: &Path, cluster: &Objects) -> String {
    with_kubeconfig(&fs::read_to_string(file).expect("the step can be read"), cluster)
}

/// A text with the kubeconfig of the server.
pub fn with_kubeconfig(text: &str, cluster: &Objects) -> String {
    if !text.contains(KUBECONFIG) {
        return text.to_owned();
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
        "patch" => Some(Deed::Patch),
        "status" => Some(Deed::Status),
        "finished" => Some(Deed::Finished),
        "delete" => Some(Deed::Delete),
        _ => None,
    };
    assert!(deed.is_some(), "{}: the table above has no such step", file.display());
    Some(Step { deed: deed?, file })
}
