//! Target (`docs/wire.md` §1.4).

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{reference::LocalSecretReference, schema};

/// The type of a Target that is a Kubernetes cluster.
pub const KUBERNETES_CLUSTER: &str = "landscaper.gardener.cloud/kubernetes-cluster";

/// An environment to deploy to; at most one of `config` and `secretRef`.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "landscaper.gardener.cloud",
    version = "v1alpha1",
    kind = "Target",
    doc = "An environment to deploy to.",
    plural = "targets",
    shortname = "tgt",
    shortname = "tg",
    category = "orangery",
    namespaced,
    derive = "PartialEq",
    derive = "Default",
    printcolumn(name = "Type", type_ = "string", json_path = ".spec.type"),
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
    printcolumn(
        name = "Idx",
        type_ = "string",
        json_path = ".metadata.labels['data\\.landscaper\\.gardener\\.cloud\\/index']"
    ),
    printcolumn(
        name = "TMKey",
        type_ = "string",
        json_path = ".metadata.labels['data\\.landscaper\\.gardener\\.cloud\\/targetmapkey']"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct TargetSpec {
    /// What sort of environment, such as [`KUBERNETES_CLUSTER`].
    #[serde(rename = "type")]
    pub type_: String,
    /// How it is reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::any")]
    pub config: Option<Value>,
    /// A Secret that says how it is reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalSecretReference>,
}
