//! DeployItem (`docs/wire.md` §1.3).

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    annotation,
    condition::Condition,
    duration::Duration,
    error::LastError,
    job::TransitionTimes,
    lenient,
    marks::Marks as _,
    reference::ObjectReference,
    schema,
    waiting::{WaitingFor, is_zero},
};
use orangery_core::{
    error::{LONGEST_REPEATED, cut},
    name::{ApiVersion, JobId, Kind, Namespace, ObjectName},
};
use orangery_proposal::drift_rules::DriftRules;

/// One thing to be deployed by the deployer of its type.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "landscaper.gardener.cloud",
    version = "v1alpha1",
    kind = "DeployItem",
    doc = "One thing to be deployed by the deployer of its type.",
    plural = "deployitems",
    shortname = "di",
    category = "orangery",
    namespaced,
    status = "DeployItemStatus",
    derive = "PartialEq",
    derive = "Default",
    printcolumn(name = "Type", type_ = "string", json_path = ".spec.type"),
    printcolumn(name = "Target", type_ = "string", json_path = ".spec.target.name"),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "ExportRef", type_ = "string", json_path = ".status.exportRef.name"),
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].status"),
    printcolumn(name = "Status", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].message"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Waiting For", type_ = "string", json_path = ".status.waitingFor[*].name", priority = 1),
    printcolumn(name = "Job", type_ = "string", json_path = ".status.jobID", priority = 1),
    printcolumn(name = "Plugin", type_ = "string", json_path = ".status.deployer.name", priority = 1)
)]
#[serde(rename_all = "camelCase")]
pub struct DeployItemSpec {
    /// The deployer type; never changes.
    #[serde(rename = "type")]
    pub type_: String,
    /// The Target, looked up by name in the item's own namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<ObjectReference>,
    /// The name of a Context in the same namespace; empty means `default`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub context: String,
    /// The provider configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::embedded")]
    pub config: Option<Value>,
    /// From pick-up to failure; absent means 10m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
    /// Nothing is done for an unchanged item that succeeded.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub update_on_change_only: bool,
    /// What deletion does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_delete: Option<OnDelete>,
    /// What is done when objects are changed that the item has written; absent means nothing. Not in the original.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::drift_rules")]
    pub drift: Option<DriftRules>,
}

/// What deletion does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OnDelete {
    /// Nothing is uninstalled where the target cluster is removed: what was deployed is left where it was, and an event says
    /// so (`docs/wire.md` §6.5). A cluster counts as removed when the Target does not exist any more that a user keeps: a
    /// copy that is missing says nothing while its original exists, nor does an export while its Installation exists. A
    /// Target that cannot be read, or a cluster that does not answer, is not removed. Without this such a deletion fails.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub skip_uninstall_if_cluster_removed: bool,
    /// What was deployed stays: no deployer is asked, and nothing waits for the item to be gone (WF-27). Not in
    /// the original.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keep: bool,
}

/// How far it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeployItemStatus {
    /// The phase (`docs/wire.md` §3.2); empty before the first job.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub phase: String,
    /// The generation that the deployer worked on (C-06).
    #[serde(default)]
    pub observed_generation: i64,
    /// The generation that the job took when it began (C-06). Not in the original.
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
    /// The newest errors, the newest last, at most five.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub last_errors: Vec<LastError>,
    /// The first error since the job was picked up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_error: Option<LastError>,
    /// When the job was picked up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::DateTime>")]
    pub last_reconcile_time: Option<Time>,
    /// The deployer that works on it.
    #[serde(default)]
    pub deployer: DeployerInformation,
    /// What the deployer and the host keep, the inventory included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::embedded")]
    pub provider_status: Option<Value>,
    /// The Secret with the exports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub export_ref: Option<ObjectReference>,
    /// The job being asked for.
    #[serde(default, rename = "jobID", skip_serializing_if = "str::is_empty")]
    #[schemars(with = "String")]
    pub job_id: JobId,
    /// The job finished last.
    #[serde(default, rename = "jobIDFinished", skip_serializing_if = "str::is_empty")]
    #[schemars(with = "String")]
    pub job_id_finished: JobId,
    /// When the job was asked for; the pick-up timeout counts from here.
    #[serde(default, rename = "jobIDGenerationTime", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::DateTime>")]
    pub job_id_generation_time: Option<Time>,
    /// Of old versions of the original, whose clients may still write it. Nothing here does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deploy_item_phase: Option<String>,
    /// The token of the trigger seen last (`docs/rules.md`, Conditions).
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub last_handled_trigger: String,
    /// What is not as the item has written it; absent where all is, or nobody looks. Not in the original.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift: Option<DriftStatus>,
    /// When the job passed its stations; the progressing timeout counts from `initTime`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transition_times: Option<TransitionTimes>,
}

/// Errors that an item remembers (`docs/wire.md` §3.3).
const ERRORS: usize = 5;

impl DeployItem {
    /// Whether what it has deployed stays when it goes: nobody is asked to uninstall it (INS-80, WF-27).
    pub fn is_kept(&self) -> bool {
        self.flag(annotation::DELETE_WITHOUT_UNINSTALL)
            || self.spec.on_delete.as_ref().is_some_and(|on_delete| on_delete.keep)
    }
}

impl DeployItemStatus {
    /// Keeps the error that was just written as the first one of the job, where it is that, and as the newest: the same error
    /// again is the same error (`docs/wire.md` §3.3).
    pub fn remember(&mut self) {
        let Some(mut error) = self.last_error.clone() else { return };
        self.first_error.get_or_insert_with(|| error.clone());
        error.message = cut(error.message, LONGEST_REPEATED);
        if self.last_errors.last().map(LastError::failure) != Some(error.failure()) {
            self.last_errors.push(error);
        }
        let surplus = self.last_errors.len().saturating_sub(ERRORS);
        self.last_errors.drain(..surplus);
    }
}

/// What is not as an item has written it (C-56).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DriftStatus {
    /// How many objects.
    #[schemars(schema_with = "schema::count")]
    pub count: u32,
    /// The first of them, at most 16.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub objects: Vec<DriftedObject>,
}

/// One object that is not as it was written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DriftedObject {
    /// In which cluster, where it is not that of the target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// Group and version.
    #[schemars(with = "String")]
    pub api_version: ApiVersion,
    /// Its kind.
    #[schemars(with = "String")]
    pub kind: Kind,
    /// Its namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub namespace: Option<Namespace>,
    /// Its name.
    #[schemars(with = "String")]
    pub name: ObjectName,
    /// `Different`, `Missing`, `BeingDeleted` or `TakenOver`.
    pub what: String,
    /// The first fields that are missing or different, as JSON pointers, at most 8; no values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub fields: Vec<String>,
    /// How many more.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(schema_with = "schema::count")]
    pub more_fields: u32,
}

/// The deployer that works on an item; always written, empty where unset.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeployerInformation {
    /// The instance.
    #[serde(default)]
    pub identity: String,
    /// The deployer's name.
    #[serde(default)]
    pub name: String,
    /// Its version.
    #[serde(default)]
    pub version: String,
}

crate::job::implement_job!(DeployItem);

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use orangery_core::{
        condition::ConditionInput,
        error::{Failure, LONGEST_MESSAGE},
    };

    use super::*;
    use crate::condition;

    #[test]
    fn an_item_remembers_the_first_error_and_the_last_five_different_ones() {
        let mut status = DeployItemStatus::default();
        let now = Time(Timestamp::from_second(0).unwrap());
        for message in ["a", "a", "b", "c", "d", "e", "f", "f"] {
            let failure = Failure::new("O", "R", message);
            status.last_error = Some(LastError::following(status.last_error.as_ref(), &failure, &now));
            status.remember();
        }
        let messages: Vec<&str> = status.last_errors.iter().map(|error| error.message.as_str()).collect();
        assert_eq!(messages, ["b", "c", "d", "e", "f"]);
        assert_eq!(status.first_error.unwrap().message, "a");
    }

    #[test]
    fn c_144_limits_status_a_long_message_is_whole_in_few_places() {
        let mut status = DeployItemStatus::default();
        let now = Time(Timestamp::from_second(0).unwrap());
        for round in 0..20 {
            let failure = Failure::new("O", "R", format!("{round:02}{}", "x".repeat(100_000)));
            status.last_error = Some(LastError::following(status.last_error.as_ref(), &failure, &now));
            status.remember();
            status.remember();
            let failed = ConditionInput::Failed { failure, retry: false };
            status.conditions = condition::following(&failed, 1, &[], &now).conditions;
        }
        let lengths: Vec<usize> = status.last_errors.iter().map(|error| error.message.len()).collect();
        assert!(lengths.len() == ERRORS && lengths.iter().all(|length| *length < LONGEST_REPEATED + 32), "{lengths:?}");
        assert!(status.last_errors[0].message.starts_with("15x"), "{:?}", status.last_errors[0]);
        let whole = serde_json::to_string(&status).unwrap().len();
        assert!(whole < 3 * LONGEST_MESSAGE + (ERRORS + 1) * LONGEST_REPEATED + (3 << 10), "{whole}");
    }
}
