//! NamespacePolicy: what the objects of the selected namespaces may do. Ours, and not of Landscaper: its group is another one.

use kube::CustomResource;
use orangery_policy::PolicySpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::condition::Condition;

/// The API group of the kinds that are ours alone.
pub const POLICY_GROUP: &str = "orangery.dev";
/// Its only version, with the group.
pub const POLICY_API_VERSION: &str = "orangery.dev/v1alpha1";

/// What the objects of the selected namespaces may do.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "orangery.dev",
    version = "v1alpha1",
    kind = "NamespacePolicy",
    doc = "What the objects of the selected namespaces may do.",
    plural = "namespacepolicies",
    shortname = "nspol",
    category = "orangery",
    status = "NamespacePolicyStatus",
    derive = "PartialEq",
    printcolumn(name = "Profile", type_ = "string", json_path = ".spec.profile"),
    printcolumn(name = "Priority", type_ = "integer", json_path = ".spec.priority"),
    printcolumn(name = "Ready", type_ = "string", json_path = r#".status.conditions[?(@.type=="Ready")].status"#),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
pub struct NamespacePolicyContent {
    /// Its lines.
    #[serde(flatten)]
    pub policy: PolicySpec,
}

/// What the operator says of a policy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NamespacePolicyStatus {
    /// The generation that the conditions are about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// `Ready`: whether the policy can be used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}
