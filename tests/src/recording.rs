//! Cases that were recorded from the original: their folders, and how they are played and compared whole.
//!
//! | file of `tests/golden/CASE` | has |
//! |---|---|
//! | `inputs/*.yaml` | what is applied; `${NS}` is the namespace of the case, `${KUBECONFIG}` alone on its line the kubeconfig |
//! | `steps.yaml` | the namespace, and the [steps](steps::Step) in order |
//! | `objects/LABEL.yaml` | all objects of the namespace at the dump LABEL, as [`normal`] has them |
//! | `phases.yaml` | the phases of each object, in order |
//!
//! `tests/golden/exceptions.yaml` has where Orangery is another on purpose.

pub mod difference;
pub mod exceptions;
pub mod names;
pub mod namespace;
pub mod normal;
pub mod play;
pub mod raw;
pub mod restored;
pub mod steps;

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use crate::{case, objects::Objects, repository};

/// Where the cases are, below the repository.
const RECORDINGS: &str = "tests/golden";

/// Kinds of inputs that have no namespace.
const CLUSTER_SCOPED: [&str; 1] = ["ClusterRoleBinding"];

/// The folder of all cases.
pub fn recordings() -> PathBuf {
    repository().join(RECORDINGS)
}

/// The folder of a case.
pub fn folder(case: &str) -> PathBuf {
    recordings().join(case)
}

/// The objects of an input, for this namespace.
pub fn input(file: &Path, namespace: &str, cluster: &Objects) -> Vec<Value> {
    let text = fs::read_to_string(file);
    assert!(text.is_ok(), "{}: {text:?}", file.display());
    let text = case::with_kubeconfig(&text.unwrap_or_default(), cluster).replace("${NS}", namespace);
    // The recorder wrote YAML 1.2, in which `n` is a name.
    let mut documents = steps::in_text(&text, file);
    for document in &mut documents {
        let is_namespaced = document.get("kind").is_some_and(|kind| !CLUSTER_SCOPED.iter().any(|of| kind == of));
        if let Some(metadata) = document.pointer_mut("/metadata").and_then(Value::as_object_mut)
            && is_namespaced
        {
            metadata.insert("namespace".to_owned(), json!(namespace));
        }
    }
    documents
}

/// The names of all cases, sorted.
pub fn cases() -> Vec<String> {
    let entries = recordings().read_dir().expect("the recordings can be read");
    let folders = entries.map(|entry| entry.expect("an entry").path()).filter(|path| path.is_dir());
    let names = folders.filter_map(|folder| Some(folder.file_name()?.to_str()?.to_owned()));
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}
