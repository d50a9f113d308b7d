//! DataObject (`docs/wire.md` §1.5).

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::schema;

/// A value that installations import and export. No `spec` on the wire: `data` stands at the top.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "landscaper.gardener.cloud",
    version = "v1alpha1",
    kind = "DataObject",
    doc = "A value that installations import and export.",
    plural = "dataobjects",
    shortname = "dobj",
    shortname = "do",
    category = "orangery",
    namespaced,
    no_spec,
    derive = "PartialEq",
    derive = "Default",
    printcolumn(
        name = "Context",
        type_ = "string",
        json_path = ".metadata.labels['data\\.landscaper\\.gardener\\.cloud\\/context']"
    ),
    printcolumn(
        name = "Key",
        type_ = "string",
        json_path = ".metadata.labels['data\\.landscaper\\.gardener\\.cloud\\/key']"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct DataObjectContent {
    /// Any JSON.
    #[schemars(schema_with = "schema::any")]
    pub data: Value,
}
