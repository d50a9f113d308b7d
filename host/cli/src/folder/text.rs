//! From the text of a file to its documents.

use std::path::Path;

use orangery_core::yaml;

use crate::folder::{FolderError, ObjectOrigin};

/// The documents of a YAML or JSON file, each with its place. Empty ones are null.
pub(super) fn documents(file: &Path, content: &str) -> Result<Vec<(ObjectOrigin, serde_json::Value)>, FolderError> {
    let documents = yaml::documents(content).map_err(|error| FolderError::Syntax {
        file: file.to_owned(),
        line: error.line,
        column: error.column,
        cause: error.reason.to_string(),
        // What stands near the mistake may be what nobody is to see.
        snippet: if content.contains("Secret") {
            String::new()
        } else {
            format!("\n{}", error.snippet(content).trim_end())
        },
    })?;
    Ok(documents
        .into_iter()
        .map(|document| (ObjectOrigin { file: file.to_owned(), line: document.line }, document.value))
        .collect())
}
