//! TargetSync, and SyncObject, which is served and not needed (`docs/wire.md` §1.5, §7.5).

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use orangery_core::name::{Kind, Namespace};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{reference::LocalSecretReference, schema};

/// Secrets of another cluster to be kept as Targets of this namespace.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "landscaper.gardener.cloud",
    version = "v1alpha1",
    kind = "TargetSync",
    doc = "Secrets of another cluster to be kept as Targets of this namespace.",
    plural = "targetsyncs",
    shortname = "tgs",
    category = "orangery",
    namespaced,
    status = "TargetSyncStatus",
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase")]
pub struct TargetSyncSpec {
    /// The namespace on the other cluster.
    #[schemars(with = "String")]
    pub source_namespace: Namespace,
    /// How the other cluster is reached.
    pub secret_ref: LocalSecretReference,
    /// Whether a Target for the other cluster itself is made.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub create_target_to_source: bool,
    /// Its name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub target_to_source_name: String,
    /// Which Secrets, as a regular expression.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub secret_name_expression: String,
    /// Which shoots, as a regular expression.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub shoot_name_expression: String,
    /// Renewal of the token in the Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_rotation: Option<TokenRotation>,
}

/// Renewal of a token.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenRotation {
    /// Whether it happens.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub enabled: bool,
}

/// How far it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TargetSyncStatus {
    /// The generation seen last.
    #[serde(default)]
    pub observed_generation: i64,
    /// When it was synchronised last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::DateTime>")]
    pub last_update_time: Option<Time>,
    /// What failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub last_errors: Vec<String>,
    /// When the token was renewed last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::DateTime>")]
    pub last_token_rotation_time: Option<Time>,
}

/// A lock of one of several controller processes of the original.
#[derive(CustomResource, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "landscaper.gardener.cloud",
    version = "v1alpha1",
    kind = "SyncObject",
    doc = "A lock of one of several controller processes.",
    plural = "syncobjects",
    shortname = "so",
    category = "orangery",
    namespaced,
    status = "SyncObjectStatus",
    derive = "PartialEq",
    printcolumn(name = "PodName", type_ = "string", json_path = ".spec.podName"),
    printcolumn(name = "Kind", type_ = "string", json_path = ".spec.kind"),
    printcolumn(name = "Name", type_ = "string", json_path = ".spec.name")
)]
#[serde(rename_all = "camelCase")]
pub struct SyncObjectSpec {
    /// The holder.
    pub pod_name: String,
    /// The kind of the locked object.
    #[schemars(with = "String")]
    pub kind: Kind,
    /// Its name.
    pub name: String,
    /// When it was taken.
    #[schemars(with = "schema::DateTime")]
    pub last_update_time: Time,
    /// The sort of lock.
    pub prefix: String,
}

/// Nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SyncObjectStatus {}
