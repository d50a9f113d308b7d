//! The steps of a recording.

use std::{collections::BTreeMap, fs, path::Path};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What was done, or waited for, in order.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Step {
    /// The objects of this file are applied.
    Apply(String),
    /// These fields are merged into an object.
    MergePatch(Patch),
    /// These fields are merged into the status of an object, as an external controller does.
    PatchStatus(Patch),
    /// An object is deleted.
    Delete(Named),
    /// A job of an object ends, another one than the one whose end was waited for before.
    WaitFinished(Finished),
    /// An object is gone.
    WaitGone(Named),
    /// An object is there.
    WaitThere(Named),
    /// A namespace beside that of the case is there, or is not.
    Namespace(Namespace),
    /// Nothing was done for a while: the next dump is what stays, and not only what comes by.
    Rest,
    /// All objects are as in the file of this name.
    Dump(String),
}

/// An object of the case.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Named {
    /// The kind.
    pub kind: String,
    /// The stable name.
    pub name: String,
}

/// What is merged into an object.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Patch {
    /// The kind.
    pub kind: String,
    /// The stable name.
    pub name: String,
    /// The fields.
    pub patch: Value,
}

/// The end of a job.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Finished {
    /// The kind.
    pub kind: String,
    /// The stable name.
    pub name: String,
    /// The phase then.
    pub phase: String,
}

/// A namespace beside that of the case.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Namespace {
    /// Its name.
    pub name: String,
    /// Whether it is there.
    pub exists: bool,
}

/// What `steps.yaml` has.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StepsFile {
    pub(super) namespace: String,
    pub(super) steps: Vec<Step>,
}

/// A case as it was recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    /// The name of its folder.
    pub case: String,
    /// The namespace that all of it is in.
    pub namespace: String,
    /// In order.
    pub steps: Vec<Step>,
    /// The objects of each dump, by its name.
    pub dumps: BTreeMap<String, Vec<Value>>,
    /// The phases of each object, called by its kind and stable name, in order, each once; `gone` is the last of those that went.
    pub phases: BTreeMap<String, Vec<String>>,
}

impl Recording {
    /// That of a folder.
    pub fn read(folder: &Path) -> Recording {
        let case = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        let StepsFile { namespace, steps } = document(&folder.join("steps.yaml"));
        let dumps = steps.iter().filter_map(|step| match step {
            Step::Dump(label) => Some((label.clone(), documents(&folder.join(format!("objects/{label}.yaml"))))),
            _ => None,
        });
        let dumps = dumps.collect();
        Recording { case, namespace, steps, dumps, phases: document(&folder.join("phases.yaml")) }
    }
}

/// The documents of a file that was written by a program.
pub fn documents(file: &Path) -> Vec<Value> {
    let text = fs::read_to_string(file);
    assert!(text.is_ok(), "{}: {text:?}", file.display());
    in_text(&text.unwrap_or_default(), file)
}

/// The documents of such a text.
pub(super) fn in_text(text: &str, file: &Path) -> Vec<Value> {
    let documents = yaml_serde::Deserializer::from_str(text).map(Value::deserialize);
    let documents: Result<Vec<Value>, _> = documents.collect();
    assert!(documents.is_ok(), "{}: {documents:?}", file.display());
    documents.unwrap_or_default().into_iter().filter(|document| !document.is_null()).collect()
}

/// The one document of such a file.
pub fn document<T: serde::de::DeserializeOwned>(file: &Path) -> T {
    let document = documents(file).into_iter().next().unwrap_or_default();
    let read = serde_json::from_value(document);
    read.unwrap_or_else(|error| crate::fail(&format!("{}: {error}", file.display())))
}
