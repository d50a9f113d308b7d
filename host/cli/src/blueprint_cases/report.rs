//! How a case ended.

use serde::Serialize;

/// How one case of a blueprint ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct BlueprintCaseReport {
    /// The case: the name of its file without the ending.
    pub(crate) name: String,
    /// The file.
    pub(crate) file: String,
    /// What is wrong, a sentence each; empty where it passed.
    pub(crate) problems: Vec<String>,
    /// The files that were written anew.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) updated: Vec<String>,
}
