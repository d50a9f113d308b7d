//! YAML of cases and examples.

use std::{fs, path::Path};

use orangery_core::yaml;
use serde_json::Value;

/// The documents of a text, without empty ones.
pub fn documents(text: &str) -> Vec<Value> {
    let read = yaml::documents(text).expect("the suite's YAML parses");
    read.into_iter().map(|document| document.value).collect()
}

/// The documents of a file.
pub fn read(file: &Path) -> Vec<Value> {
    let text = fs::read_to_string(file);
    assert!(text.is_ok(), "{}: {text:?}", file.display());
    documents(&text.unwrap_or_default())
}
