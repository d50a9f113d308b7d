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

/// The one member of `data` where the data is encrypted: the data as JSON, encrypted and in base64 (C-81). Not in the original.
pub const ENCRYPTED: &str = "orangery.dev/encrypted";

impl DataObject {
    /// What is encrypted in it; no text at all where somebody made something else of it. `None` where its data is readable.
    pub fn encrypted(&self) -> Option<&str> {
        let members = self.spec.data.as_object()?;
        let encrypted = members.get(ENCRYPTED)?;
        Some(encrypted.as_str().filter(|_| members.len() == 1).unwrap_or(""))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn c_81_data_is_encrypted_where_a_member_says_so_and_stands_for_nothing_else() {
        let of = |data: Value| DataObject { spec: DataObjectContent { data }, ..DataObject::default() };
        let encrypted = |data: Value| of(data).encrypted().map(str::to_owned);
        assert_eq!(encrypted(json!({ENCRYPTED: "AA=="})).as_deref(), Some("AA=="));
        for edited in [json!({ENCRYPTED: 1}), json!({ENCRYPTED: null}), json!({ENCRYPTED: "AA==", "a": 1})] {
            assert_eq!(encrypted(edited.clone()).as_deref(), Some(""), "{edited}");
        }
        for readable in
            [json!({}), json!(ENCRYPTED), json!([{ENCRYPTED: "AA=="}]), json!({"a": {ENCRYPTED: ""}}), json!(null)]
        {
            assert_eq!(encrypted(readable.clone()), None, "{readable}");
        }
    }
}
