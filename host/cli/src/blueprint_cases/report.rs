//! How a case ended.

use std::path::Path;

use serde::Serialize;

/// How one case of a blueprint ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
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
    /// Why it was not carried out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) skipped: Option<String>,
}

impl BlueprintCaseReport {
    /// That of a file, with nothing to tell.
    pub(crate) fn of(file: &Path) -> Self {
        let name = file.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        Self { name, file: file.display().to_string(), ..Self::default() }
    }
}
