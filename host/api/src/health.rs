//! LsHealthCheck and CriticalProblems (`landscaper.md` §1.5): served, not yet acted on.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether the operator works. No `spec` on the wire: the fields stand at the top.
#[derive(CustomResource, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "landscaper.gardener.cloud",
    version = "v1alpha1",
    kind = "LsHealthCheck",
    doc = "Whether the operator works.",
    plural = "lshealthchecks",
    shortname = "lshc",
    category = "orangery",
    namespaced,
    no_spec,
    derive = "PartialEq",
    printcolumn(name = "Status", type_ = "string", json_path = ".status"),
    printcolumn(name = "LastUpdateTime", type_ = "date", json_path = ".lastUpdateTime")
)]
#[serde(rename_all = "camelCase")]
pub struct LsHealthCheckContent {
    /// `Ok`, `Failed` or `Init`.
    #[serde(rename = "status")]
    pub health: String,
    /// When it was looked at last.
    pub last_update_time: Time,
    /// What is wrong.
    pub description: String,
}

/// Crashes of the operator.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "landscaper.gardener.cloud",
    version = "v1alpha1",
    kind = "CriticalProblems",
    doc = "Crashes of the operator.",
    plural = "criticalproblems",
    singular = "criticalproblems",
    shortname = "cps",
    category = "orangery",
    namespaced,
    status = "CriticalProblemsStatus",
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase")]
pub struct CriticalProblemsSpec {
    /// The newest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub critical_problem: Vec<CriticalProblem>,
}

/// One crash.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CriticalProblem {
    /// Where.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pod_name: String,
    /// When.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub creation_time: Option<Time>,
    /// What.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
}

/// Nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CriticalProblemsStatus {}
