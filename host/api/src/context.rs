//! Context (`docs/wire.md` §1.5).

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    reference::{LocalReference, SecretReference},
    schema,
};

/// The Context that every namespace gets.
pub const DEFAULT_CONTEXT: &str = "default";

/// Where components come from and how they are trusted. No `spec` on the wire: the fields stand at the top.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "landscaper.gardener.cloud",
    version = "v1alpha1",
    kind = "Context",
    doc = "Where components come from and how they are trusted.",
    plural = "contexts",
    shortname = "ctx",
    category = "orangery",
    namespaced,
    no_spec,
    derive = "PartialEq",
    derive = "Default",
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct ContextContent {
    /// The repository of components.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::any")]
    pub repository_context: Option<Value>,
    /// A ConfigMap with an OCM configuration under `.ocmconfig`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ocm_config: Option<LocalReference>,
    /// Secrets with credentials of registries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub registry_pull_secrets: Vec<LocalReference>,
    /// Further settings; the only known key is `helmChartRepoCredentials`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::map_of_any")]
    pub configurations: BTreeMap<String, Value>,
    /// The name of a ComponentVersionOverwrites; written though empty, as the original does.
    #[serde(default)]
    pub component_version_overwrites: String,
    /// How signatures are verified, by their name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub verification_signatures: BTreeMap<String, VerificationSignature>,
}

/// What a signature is verified with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VerificationSignature {
    /// A public key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_key_secret_reference: Option<SecretReference>,
    /// A certificate authority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_certificate_secret_reference: Option<SecretReference>,
}
