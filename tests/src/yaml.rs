//! YAML of cases and examples.

use std::{fs, path::Path};

use serde_json::Value;

/// The documents of a text, without empty ones.
pub fn documents(text: &str) -> Vec<Value> {
    let read: Vec<Value> = serde_saphyr::from_multiple(text).expect("the suite's YAML parses");
    read.into_iter().filter(|document| !document.is_null()).collect()
}

/// The documents of a file.
pub fn read(file: &Path) -> Vec<Value> {
    let text = fs::read_to_string(file);
    assert!(text.is_ok(), "{}: {text:?}", file.display());
    documents(&text.unwrap_or_default())
}
