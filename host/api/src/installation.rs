//! Installation (`docs/wire.md` §1.1).

mod workflow;

use std::{collections::BTreeMap, num::NonZeroU32};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use self::workflow::{SubinstallationStatus, SubinstallationWorkflow};
use crate::{
    condition::Condition,
    duration::Duration,
    error::LastError,
    execution::FailurePolicy,
    job::{NamePair, TransitionTimes},
    job_history::{JobDefinitionPlace, RecordedTrigger},
    lenient,
    marks::Marks,
    reference::{LocalConfigMapReference, LocalReference, LocalSecretReference, ObjectReference},
    schema,
    waiting::{WaitingFor, is_zero},
};
use orangery_core::name::JobId;
use orangery_policy::{Approval, PolicyRequest};

/// What is to be installed: a blueprint, where its imports come from and where its exports go.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "landscaper.gardener.cloud",
    version = "v1alpha1",
    kind = "Installation",
    doc = "A blueprint to be deployed, with its imports and exports.",
    plural = "installations",
    shortname = "inst",
    category = "orangery",
    namespaced,
    status = "InstallationStatus",
    derive = "PartialEq",
    derive = "Default",
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Execution", type_ = "string", json_path = ".status.executionRef.name"),
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].status"),
    printcolumn(
        name = "Status",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Progressing\")].message"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Waiting For", type_ = "string", json_path = ".status.waitingFor[*].name", priority = 1),
    printcolumn(name = "Job", type_ = "string", json_path = ".status.jobID", priority = 1),
    printcolumn(name = "Blueprint", type_ = "string", json_path = ".spec.blueprint.ref.resourceName", priority = 1),
    printcolumn(name = "Observed", type_ = "integer", json_path = ".status.observedGeneration", priority = 1)
)]
#[serde(rename_all = "camelCase")]
pub struct InstallationSpec {
    /// The name of a Context in the same namespace; empty means `default`, which the controller writes back.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub context: String,
    /// The signature that the component version must carry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verification: Option<Verification>,
    /// Where the component descriptor comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub component_descriptor: Option<ComponentDescriptorSource>,
    /// Where the blueprint comes from.
    pub blueprint: BlueprintSource,
    /// Where the blueprint's imports come from.
    #[serde(default, skip_serializing_if = "Imports::is_empty")]
    pub imports: Imports,
    /// Templates of import values over the data imports.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::map_of_any")]
    pub import_data_mappings: BTreeMap<String, Value>,
    /// Where the blueprint's exports go.
    #[serde(default, skip_serializing_if = "Exports::is_empty")]
    pub exports: Exports,
    /// Templates of export values over the blueprint's exports.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::map_of_any")]
    pub export_data_mappings: BTreeMap<String, Value>,
    /// When jobs start by themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub automatic_reconcile: Option<AutomaticReconcile>,
    /// Whether a changed spec, or changed imports, start a job; absent means `Manual`. Looked at on roots only.
    #[serde(default, skip_serializing_if = "ReconcilePolicy::is_manual")]
    pub reconcile_policy: ReconcilePolicy,
    /// What becomes of a job whose imports do not all exist; absent means `Fail`. Looked at on roots only.
    #[serde(default, skip_serializing_if = "ImportPolicy::is_fail")]
    pub import_policy: ImportPolicy,
    /// What a failed deploy item does to the others; absent means what the blueprint says. Holds for sub-installations too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_policy: Option<FailurePolicy>,
    /// How many deploy items of each Execution may be under way at once; absent means what the blueprint says. Holds for
    /// sub-installations too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::positive")]
    pub max_parallel: Option<NonZeroU32>,
    /// Whether jobs wait until somebody has approved what they write (C-311); absent means `None`. Holds for sub-installations too,
    /// and what a NamespacePolicy says holds beside it. Not in the original.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,
    /// Promises that spare looking at siblings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub optimization: Option<Optimization>,
}

/// What starts a job at a root, beside the annotation and `automaticReconcile` (C-05). Not in the original.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ReconcilePolicy {
    /// Nothing.
    #[default]
    Manual,
    /// A spec that no job has dealt with, a new one included.
    OnSpecChange,
    /// The same, and what is imported, once it all is there and has changed since the last job (ORC-33): DataObjects,
    /// Targets, Secrets and ConfigMaps. The content of a Secret behind a Target is no import.
    OnChange,
}

impl ReconcilePolicy {
    fn is_manual(&self) -> bool {
        *self == ReconcilePolicy::Manual
    }
}

/// What becomes of a job whose imports do not all exist (C-10). Not in the original.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ImportPolicy {
    /// It fails.
    #[default]
    Fail,
    /// It waits in `Init` until they exist, and says for which.
    Wait,
}

impl ImportPolicy {
    fn is_fail(&self) -> bool {
        *self == ImportPolicy::Fail
    }
}

/// The signature to verify.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Verification {
    /// The signature's name.
    pub signature_name: String,
}

/// Exactly one of a reference to a component version and a descriptor written out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ComponentDescriptorSource {
    /// A component version in a repository.
    #[serde(default, rename = "ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<ComponentVersion>,
    /// A legacy component descriptor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::object")]
    pub inline: Option<Value>,
}

/// A component version in a repository.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ComponentVersion {
    /// The repository; absent means the Context's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::object")]
    pub repository_context: Option<Value>,
    /// The component's name.
    pub component_name: String,
    /// Its version.
    pub version: String,
}

/// Exactly one of a resource of the component version and a file system written out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BlueprintSource {
    /// A resource of the component version.
    #[serde(default, rename = "ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<BlueprintReference>,
    /// The blueprint's files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inline: Option<InlineBlueprint>,
}

/// A blueprint in the component version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BlueprintReference {
    /// The resource's name.
    pub resource_name: String,
}

/// A blueprint written out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InlineBlueprint {
    /// A map from path to content, nested maps being folders; `blueprint.yaml` at the root.
    #[schemars(schema_with = "schema::any")]
    pub filesystem: Value,
}

/// Where imports come from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Imports {
    /// Imports of data.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub data: Vec<DataImport>,
    /// Imports of targets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<TargetImport>,
}

impl Imports {
    /// Whether nothing is imported.
    pub fn is_empty(&self) -> bool {
        self.data.is_empty() && self.targets.is_empty()
    }
}

/// A data import; exactly one of the three references.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DataImport {
    /// The import's name in the blueprint or the mappings.
    pub name: String,
    /// The key of a DataObject in the installation's context; `#name` takes a DataObject by its own name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub data_ref: String,
    /// A Secret, or one key of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalSecretReference>,
    /// A ConfigMap, or one key of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map_ref: Option<LocalConfigMapReference>,
    /// `v1`; unused.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
}

/// A target import; exactly one source. An explicit empty list or map is a source, an absent one is none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TargetImport {
    /// The import's name in the blueprint.
    pub name: String,
    /// The key of one Target.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub target: String,
    /// The keys of a list of Targets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub targets: Option<Vec<String>>,
    /// The parent's target list import of this name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub target_list_ref: String,
    /// The keys of Targets by map key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_map: Option<BTreeMap<String, String>>,
    /// The parent's target map import of this name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub target_map_ref: String,
}

/// Where exports go.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Exports {
    /// Exports of data.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub data: Vec<DataExport>,
    /// Exports of targets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<TargetExport>,
}

impl Exports {
    /// Whether nothing is exported.
    pub fn is_empty(&self) -> bool {
        self.data.is_empty() && self.targets.is_empty()
    }
}

/// A data export.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DataExport {
    /// The export's name in the blueprint or the mappings.
    pub name: String,
    /// The key of the DataObject to write.
    pub data_ref: String,
}

/// A target export.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TargetExport {
    /// The export's name in the blueprint.
    pub name: String,
    /// The key of the Target to write.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub target: String,
}

/// When jobs start by themselves (`docs/wire.md` §3.4).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AutomaticReconcile {
    /// After a success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub succeeded_reconcile: Option<SucceededReconcile>,
    /// After a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_reconcile: Option<FailedReconcile>,
}

/// Automatic jobs after a success.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SucceededReconcile {
    /// Time between jobs; absent means 24h.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Duration>,
    /// A cron expression of five fields; it wins over the interval.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cron_spec: String,
}

/// Automatic jobs after a failure.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailedReconcile {
    /// How many; absent means no limit, 0 means none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number_of_reconciles: Option<i32>,
    /// Time between jobs; absent means 5m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Duration>,
    /// A cron expression of five fields; it wins over the interval.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cron_spec: String,
}

/// Promises that spare looking at siblings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Optimization {
    /// No import comes from a sibling's export.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_no_sibling_imports: bool,
    /// No sibling imports one of the exports.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_no_sibling_exports: bool,
}

/// How far it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstallationStatus {
    /// The generation fully dealt with (C-06).
    #[serde(default)]
    pub observed_generation: i64,
    /// The generation that the job took when it began, and in `Init` (C-06, INS-37).
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
    /// What started the job, where jobs are on record (C-331); absent where they are not. Not in the original.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger: Option<RecordedTrigger>,
    /// Of a root, where what the job is made from is kept, where jobs are on record (C-358). Not in the original.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_definition: Option<JobDefinitionPlace>,
    /// The token of the trigger seen last (`docs/rules.md`, Conditions).
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub last_handled_trigger: String,
    /// `reconcile` while a request waits for the end of the job: an interrupt takes its place in the annotation
    /// (C-18).
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pending_operation: String,
    /// The job that was interrupted last: it begins nothing more (C-32).
    #[serde(default, skip_serializing_if = "str::is_empty")]
    #[schemars(with = "String")]
    pub interrupted_job: JobId,
    /// The Execution, which has the Installation's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_ref: Option<ObjectReference>,
    /// The sub-installations known; absent means that they are listed by label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sub_inst_cache: Option<SubinstallationCache>,
    /// The sub-installations of the job, where gate expressions have a say in them. Not in the original.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<SubinstallationWorkflow>,
    /// The hash of the imports of the job (`docs/wire.md` §5.6).
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub imports_hash: String,
    /// Under the policy `OnChange`, the hash of what was imported when the last job began, or read it; empty where an import
    /// was missing. Other imports than these start a job (ORC-33).
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub triggered_imports_hash: String,
    /// Under the policy `OnChange`, hashes of the answers of gate expressions that were others than in the job before when the
    /// last job began, one for each object that has such. Other answers than these start a job.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub triggered_answers: Vec<String>,
    /// Under the policy `OnChange`, when a change has started a job last: policies of the namespace may keep the next one from
    /// following at once (C-196). Not in the original.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::DateTime>")]
    pub started_by_change_time: Option<Time>,
    /// Of a root whose last job a policy refused, the hash of what counted for its namespace when the job ended: where something
    /// else counts, a job starts (C-80). Not in the original.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub refused_under: String,
    /// The record of automatic jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub automatic_reconcile_status: Option<AutomaticReconcileStatus>,
    /// Siblings to be triggered at the next reconcile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependents_to_trigger: Vec<LocalReference>,
    /// When the job passed its stations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transition_times: Option<TransitionTimes>,
}

/// The sub-installations of an Installation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SubinstallationCache {
    /// Those of the blueprint.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub active_subs: Vec<NamePair>,
    /// The object names of those that left the blueprint and are being deleted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub orphaned_subs: Vec<String>,
}

/// The record of automatic jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AutomaticReconcileStatus {
    /// The generation that it counts for.
    #[serde(default)]
    pub generation: i64,
    /// How many automatic jobs ran.
    #[serde(default)]
    pub number_of_reconciles: i32,
    /// When the last one began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::DateTime>")]
    pub last_reconcile_time: Option<Time>,
    /// Whether they follow a failure.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub on_failed: bool,
}

impl Installation {
    /// Whether no Installation owns it: jobs begin at roots.
    pub fn is_root(&self) -> bool {
        self.parent_installation().is_none()
    }

    /// What its jobs ask of the policies of its namespace before its blueprint is opened. A blueprint counts as unsigned
    /// that is not of a component version whose signature is asked for (C-47).
    pub fn policy_requests(&self) -> Vec<PolicyRequest<'static>> {
        let InstallationSpec { blueprint, component_descriptor, verification, .. } = &self.spec;
        let is_inline = blueprint.inline.is_some();
        let is_signed = !is_inline && component_descriptor.is_some() && verification.is_some();
        let is_written_out = component_descriptor.as_ref().is_some_and(|descriptor| descriptor.inline.is_some());
        let asked = [
            (is_inline || is_written_out).then_some(PolicyRequest::InlineBlueprint),
            (!is_signed).then_some(PolicyRequest::UnsignedBlueprint),
        ];
        asked.into_iter().flatten().collect()
    }
}

crate::job::implement_job!(Installation);
