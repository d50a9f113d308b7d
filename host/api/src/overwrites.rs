//! ComponentVersionOverwrites (`docs/wire.md` §1.5, §10).

use kube::CustomResource;
use orangery_core::memory;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::schema;

/// Component versions to be taken instead of others. No `spec` on the wire: the field stands at the top.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "landscaper.gardener.cloud",
    version = "v1alpha1",
    kind = "ComponentVersionOverwrites",
    doc = "Component versions to be taken instead of others.",
    plural = "componentversionoverwrites",
    singular = "componentversionoverwrite",
    shortname = "compveroverwrite",
    shortname = "cvo",
    category = "orangery",
    namespaced,
    no_spec,
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase")]
pub struct ComponentVersionOverwritesContent {
    /// The first that matches holds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overwrites: Vec<Overwrite>,
}

impl ComponentVersionOverwrites {
    /// Bytes of memory that its rules take.
    pub fn memory(&self) -> u64 {
        let sides = self.spec.overwrites.iter().flat_map(|rule| [&rule.source, &rule.substitution]);
        let bytes = sides.map(|side| {
            let texts = memory::of_text(side.component_name.len()) + memory::of_text(side.version.len());
            size_of::<OverwriteReference>() as u64 + texts + side.repository_context.as_ref().map_or(0, memory::of)
        });
        bytes.sum()
    }
}

/// One replacement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Overwrite {
    /// What is replaced.
    pub source: OverwriteReference,
    /// By what.
    pub substitution: OverwriteReference,
}

/// A component version; what is absent is not looked at, or not replaced.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OverwriteReference {
    /// The repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::any")]
    pub repository_context: Option<Value>,
    /// The component's name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub component_name: String,
    /// Its version.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
}
