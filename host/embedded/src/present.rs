//! How objects are shown: tables for `kubectl get`, metadata alone, other versions.

mod age;
mod cell;
mod event;
mod path;
mod table;

pub(crate) use self::{
    cell::{Cell, Column},
    path::JsonPath,
    table::{Include, columns_of, table},
};

use serde_json::{Value, json};

/// The metadata of an object alone, as metadata watches ask for it.
pub(crate) fn metadata_only(object: &Value) -> Value {
    json!({
        "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
        "metadata": object.get("metadata").cloned().unwrap_or_default(),
    })
}
