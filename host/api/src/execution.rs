//! Execution (`docs/wire.md` §1.2).

mod gates;
mod items;

use std::{collections::BTreeMap, num::NonZeroU32};

use k8s_openapi::{ByteString, apimachinery::pkg::apis::meta::v1::Time};
use kube::CustomResource;
use orangery_core::{name::JobId, workflow};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(crate) use crate::execution::gates::{bounded, gate_schema, read_answers, write_answers};
pub use crate::execution::{
    gates::{GateSpec, ItemGate, ItemStatus, Records, records, write_records},
    items::{DeployItemTemplate, ItemsError, within_limit},
};
use crate::{
    condition::Condition,
    error::LastError,
    job::{NamePair, TransitionTimes},
    lenient,
    reference::ObjectReference,
    schema,
    waiting::{WaitingFor, is_zero},
};

/// The deploy items of one Installation, fully templated. Read with [`ExecutionSpec::items`], written with
/// [`ExecutionSpec::set_items`].
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "landscaper.gardener.cloud",
    version = "v1alpha1",
    kind = "Execution",
    doc = "The deploy items of an installation, in order of their dependencies.",
    plural = "executions",
    shortname = "exec",
    category = "orangery",
    namespaced,
    status = "ExecutionStatus",
    derive = "PartialEq",
    derive = "Default",
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "ExportRef", type_ = "string", json_path = ".status.exportRef.name"),
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].status"),
    printcolumn(
        name = "Status",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Progressing\")].message"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Waiting For", type_ = "string", json_path = ".status.waitingFor[*].name", priority = 1),
    printcolumn(name = "Job", type_ = "string", json_path = ".status.jobID", priority = 1)
)]
#[serde(rename_all = "camelCase")]
pub struct ExecutionSpec {
    /// The name of a Context in the same namespace.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub context: String,
    /// What a failed deploy item does to the others; absent means `StopTriggering`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_policy: Option<FailurePolicy>,
    /// How many deploy items may be under way at once; absent means any number (WF-15). Not in the original.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::positive")]
    pub max_parallel: Option<NonZeroU32>,
    /// Import values that gate expressions of the items read. Not in the original.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::map_of_any")]
    pub imports: BTreeMap<String, Value>,
    /// The names of the Targets that gate expressions of the items look at. Not in the original.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gate_targets: Vec<String>,
    /// The plain list. The compressed one wins where both stand.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    deploy_items: Vec<DeployItemTemplate>,
    /// The list as JSON, compressed with gzip.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::base64")]
    deploy_items_compressed: Option<ByteString>,
}

/// What a failed deploy item does to the others (C-01). Not in the original.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum FailurePolicy {
    /// None is started any more.
    StopTriggering,
    /// It holds up only what depends on it, in a deletion what it depends on.
    ContinueIndependent,
}

impl From<workflow::FailurePolicy> for FailurePolicy {
    fn from(policy: workflow::FailurePolicy) -> Self {
        match policy {
            workflow::FailurePolicy::StopTriggering => Self::StopTriggering,
            workflow::FailurePolicy::ContinueIndependent => Self::ContinueIndependent,
        }
    }
}

impl From<FailurePolicy> for workflow::FailurePolicy {
    fn from(policy: FailurePolicy) -> Self {
        match policy {
            FailurePolicy::StopTriggering => Self::StopTriggering,
            FailurePolicy::ContinueIndependent => Self::ContinueIndependent,
        }
    }
}

impl ExecutionSpec {
    /// How its deploy items are run.
    pub fn policy(&self) -> workflow::WorkflowPolicy {
        let failure = self.failure_policy.map(Into::into).unwrap_or_default();
        workflow::WorkflowPolicy { failure, max_parallel: self.max_parallel }
    }
}

/// How far it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExecutionStatus {
    /// The generation fully dealt with (C-06).
    #[serde(default)]
    pub observed_generation: i64,
    /// The generation that the job took when it began (C-06).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_generation: Option<i64>,
    /// Observations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// What is waited for, at most 16 things; empty where nothing is. Not in the original, like the next one.
    #[serde(default, deserialize_with = "lenient::list", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub waiting_for: Vec<WaitingFor>,
    /// How many more things are waited for.
    #[serde(default, deserialize_with = "lenient::count", skip_serializing_if = "is_zero")]
    #[schemars(schema_with = "schema::count")]
    pub waiting_for_more: u32,
    /// Absent when the last step had no error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<LastError>,
    /// The DataObject with the exports of the items.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub export_ref: Option<ObjectReference>,
    /// The phase (`docs/wire.md` §3.2); empty before the first job.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub phase: String,
    /// When the phase changed last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::DateTime>")]
    pub phase_transition_time: Option<Time>,
    /// The job being asked for.
    #[serde(default, rename = "jobID", skip_serializing_if = "str::is_empty")]
    #[schemars(with = "String")]
    pub job_id: JobId,
    /// The job finished last.
    #[serde(default, rename = "jobIDFinished", skip_serializing_if = "str::is_empty")]
    #[schemars(with = "String")]
    pub job_id_finished: JobId,
    /// The token of the trigger seen last (`docs/rules.md`, Conditions).
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub last_handled_trigger: String,
    /// The job that was interrupted last: it begins nothing more (C-32).
    #[serde(default, skip_serializing_if = "str::is_empty")]
    #[schemars(with = "String")]
    pub interrupted_job: JobId,
    /// The deploy items known; absent means that they are listed by label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deploy_item_cache: Option<DeployItemCache>,
    /// What the gate expressions of the items answered in the last job. Not in the original.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<ItemStatus>,
    /// When the job passed its stations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transition_times: Option<TransitionTimes>,
}

/// The DeployItems of an Execution.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeployItemCache {
    /// Those of the spec.
    #[serde(default, rename = "activeDIs", skip_serializing_if = "Vec::is_empty")]
    pub active_items: Vec<NamePair>,
    /// The object names of those that left the spec and are being deleted.
    #[serde(default, rename = "orphanedDIs", skip_serializing_if = "Vec::is_empty")]
    pub orphaned_items: Vec<String>,
}

crate::job::implement_job!(Execution);
