//! What a deployer answers: ordered stages of writes and removals, each with a gate, then exports.
//!
//! These are the words of `wit/deployer/0.1.0/plan.wit` as plain values. A proposal is data: it can be checked, shown, stored,
//! resumed and compared. Nothing here carries one out; that is `host/apply`.

pub mod check;
pub mod deployer;
pub mod drift_rules;
pub mod field;
pub mod grant;
pub mod health;
pub mod inventory;
pub mod item;
pub mod overlay;
mod planned_object;
pub mod recorded;
use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use orangery_core::{
    error::Problem,
    name::{ApiVersion, JobId, Kind, Namespace, ObjectName},
    step::{Until, Waiting},
};

pub mod executor;

pub use planned_object::{PlannedObject, counted};

/// What would become of one object, were a proposal carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Action {
    /// It does not exist, and is created.
    Create,
    /// It exists, and is another afterwards.
    Change,
    /// It is deleted, and created anew.
    Replace,
    /// It goes: a stage removes it, or it left the proposal.
    Delete,
    /// It is as it should be.
    None,
    /// It belongs to somebody else, and is left as it is.
    Foreign,
}

impl Action {
    /// Whether the object is written or deleted.
    pub fn writes(self) -> bool {
        match self {
            Action::Create | Action::Change | Action::Replace | Action::Delete => true,
            Action::None | Action::Foreign => false,
        }
    }
}

/// The identity of one Kubernetes object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectKey {
    /// Group and version, such as `apps/v1`, or `v1` for the core group.
    pub api_version: ApiVersion,
    /// The kind, such as `Deployment`.
    pub kind: Kind,
    /// `None` for cluster-scoped kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<Namespace>,
    /// The object's name.
    pub name: ObjectName,
}

impl ObjectKey {
    /// The object as something that is waited for.
    pub fn waiting(&self, until: Until) -> Waiting {
        Waiting::target(&self.kind, self.namespace.clone(), &self.name, until)
    }

    /// The API group; empty for the core group.
    pub fn group(&self) -> &str {
        self.api_version.group()
    }

    /// The version without its group.
    pub fn version(&self) -> &str {
        self.api_version.version()
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{} {}/{}", self.kind, namespace, self.name),
            None => write!(f, "{} {}", self.kind, self.name),
        }
    }
}

/// A set of objects of one kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Selection {
    /// Group and version.
    pub api_version: ApiVersion,
    /// The kind.
    pub kind: Kind,
    /// `None` selects all namespaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<Namespace>,
    /// Empty selects all names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<ObjectName>,
    /// A label selector in Kubernetes text form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<String>,
    /// A field selector in Kubernetes text form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fields: Option<String>,
}

/// Which cluster, among those granted, a read or a write is meant for.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ClusterRef {
    /// The cluster behind the deploy item's target.
    #[default]
    Target,
    /// The cluster the host itself runs in. Needs its own grant.
    Host,
    /// Another target of the item's namespace, by object name. Needs its own grant.
    Named(String),
}

impl fmt::Display for ClusterRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClusterRef::Target => f.write_str("the target cluster"),
            ClusterRef::Host => f.write_str("the host cluster"),
            ClusterRef::Named(name) => write!(f, "the cluster of target {name}"),
        }
    }
}

/// How an object that already exists is brought to the desired form. Every write that depends on the live object
/// carries its `resourceVersion`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Write {
    /// Server-side apply under the host's field manager.
    Apply,
    /// Replace, keeping what the server owns.
    Replace,
    /// JSON merge patch between the live object and this one.
    Patch,
    /// Three-way merge: from this earlier desired form, over the live object, to this one. Lists of built-in kinds whose
    /// entries have a key are merged entry by entry.
    Merge(Value),
    /// Fill only what the live object leaves empty.
    Fill,
    /// Overlay on the live object.
    Overlay,
    /// Create if absent, never update.
    Create,
    /// Server-side apply under this field manager; a field that somebody else manages with another value fails the write.
    ApplyAs(String),
}

/// What an object is to the item once it exists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Ownership {
    /// Updated, pruned and deleted with the item.
    #[default]
    Managed,
    /// As managed, but only where no other item holds the object.
    Fallback,
    /// Updated, never deleted.
    Kept,
    /// Lives for this job only: removed by a later stage, or at the end of the job, also of one that fails (C-277).
    Ephemeral,
}

/// Something the guest may place but never see.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SecretContent {
    /// The resolved target, as Landscaper hands it to a container: the Target object and its content.
    TargetDocument(ClusterRef),
    /// The kubeconfig of the cluster.
    Kubeconfig(ClusterRef),
}

/// A place in an object where the host puts secret content.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Injection {
    /// A JSON pointer into the object; base64 where the kind wants it.
    pub at: String,
    /// What goes there.
    pub content: SecretContent,
}

/// One object to be written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectWrite {
    /// The desired form.
    pub object: Value,
    /// Secret content to place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inject: Vec<Injection>,
    /// Where.
    #[serde(default)]
    pub on: ClusterRef,
    /// How, when the object exists already.
    pub how: Write,
    /// What the object is to the item.
    #[serde(default)]
    pub owned: Ownership,
    /// Merged in at creation only. Makes no other object of it (C-119).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_creation: Option<Value>,
    /// Merged into the live object right before it is deleted. Makes no other object of it (C-119).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_deletion: Option<Value>,
}

impl ObjectWrite {
    /// An object of the target cluster that belongs to the item.
    pub fn new(object: Value, how: Write) -> Self {
        Self {
            object,
            inject: Vec::new(),
            on: ClusterRef::Target,
            how,
            owned: Ownership::Managed,
            at_creation: None,
            before_deletion: None,
        }
    }
}

/// One object to be removed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectRemoval {
    /// Which.
    pub key: ObjectKey,
    /// Where.
    #[serde(default)]
    pub on: ClusterRef,
    /// Remove finalizers of others while waiting.
    #[serde(default)]
    pub force: bool,
}

/// Which objects a readiness rule looks at.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ReadinessScope {
    /// All that the stage wrote.
    Stage,
    /// These.
    Keys(Vec<ObjectKey>),
    /// All that match, wherever they come from; at least one must exist.
    Matching(Selection),
}

/// One requirement on a field of an object (`docs/wire.md` §9).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Requirement {
    /// A JSONPath into the object, without braces, leading dot optional.
    pub path: String,
    /// `exists`, `!`, `=`, `==`, `!=`, `in`, `notin`.
    pub operator: String,
    /// Compared as generic JSON.
    #[serde(default)]
    pub values: Vec<Value>,
}

/// When an object counts as ready.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ReadinessRule {
    /// The host's own rule for the kind, else existence.
    Usual,
    /// All of these hold.
    Requirements(Vec<Requirement>),
    /// A CEL expression over `object`.
    Expression(String),
}

/// A readiness check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Readiness {
    /// Its name, shown while waiting.
    pub name: String,
    /// Where.
    #[serde(default)]
    pub on: ClusterRef,
    /// Which objects.
    pub scope: ReadinessScope,
    /// When they are ready.
    pub rule: ReadinessRule,
    /// Milliseconds; `None` means what is left of the item's own deadline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u64>,
}

/// What has to hold before the next stage starts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Gate {
    /// The writes were accepted.
    Accepted,
    /// All of these are ready.
    Ready(Vec<Readiness>),
    /// These jobs or pods have run to their end; a failed one fails the stage.
    Completed(Vec<ObjectKey>),
    /// The objects removed in this stage no longer exist.
    Gone,
}

/// Removals, then writes, then a gate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Stage {
    /// Shown while waiting and in failures.
    pub name: String,
    /// Carried out first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removals: Vec<ObjectRemoval>,
    /// CRDs, then cluster-scoped, then namespaced objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writes: Vec<ObjectWrite>,
    /// Before the next stage.
    pub gate: Gate,
    /// Milliseconds; `None` means what is left of the item's own deadline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u64>,
}

/// A second object, named by the value found in the first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Follow {
    /// Group and version of the second object.
    pub api_version: ApiVersion,
    /// Its kind.
    pub kind: Kind,
    /// A JSONPath into it.
    pub path: String,
}

/// A value of an object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PathSource {
    /// Where.
    #[serde(default)]
    pub on: ClusterRef,
    /// Which object.
    pub key: ObjectKey,
    /// A JSONPath with exactly one result.
    pub path: String,
    /// Then the result is `{name, namespace}` of an object of this kind, and this path goes into that one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub then: Option<Follow>,
}

/// Where an export's value comes from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ExportSource {
    /// The component gives it.
    Value(Value),
    /// The host reads it once the last gate holds.
    Path(PathSource),
}

/// One export.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExportRule {
    /// A dotted path: `a.b` builds nested maps. Empty merges the value, an object, at the root.
    pub key: String,
    /// Its value.
    pub source: ExportSource,
}

/// How a proposal ends well.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Completion {
    /// Collected when the last gate holds, retried until the deadline.
    #[serde(default)]
    pub exports: Vec<ExportRule>,
    /// Carried out after the exports.
    #[serde(default)]
    pub afterwards: Vec<Stage>,
}

/// What follows the last stage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Next {
    /// The item succeeds with this.
    Finish(Completion),
    /// The item fails with this; status and inventory are kept.
    Fail(Problem),
    /// Call again with this checkpoint.
    ContinueWith(Vec<u8>),
    /// Call again with this checkpoint when this long has passed.
    AgainIn {
        /// Milliseconds from now.
        after: u64,
        /// Handed to the next call.
        checkpoint: Vec<u8>,
    },
}

/// Part of the inventory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum DeletionScope {
    /// All namespaced objects of the inventory.
    Namespaced,
    /// All cluster-scoped objects of the inventory but CRDs.
    ClusterScoped,
    /// The CRDs of the inventory.
    CustomResourceDefinitions,
    /// Those of the inventory that match.
    Managed(Selection),
    /// Whatever matches, managed or not. Needs its own grant.
    Matching(Selection),
}

/// Deleted together; the next group waits until this one is gone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeletionGroup {
    /// Where.
    #[serde(default)]
    pub on: ClusterRef,
    /// What.
    pub what: Vec<DeletionScope>,
    /// Remove finalizers of others while waiting.
    #[serde(default)]
    pub force: bool,
}

/// Namespaced, cluster-scoped, CRDs: what an empty order means (`docs/wire.md` §8.1).
pub fn default_deletion_order() -> Vec<DeletionGroup> {
    [DeletionScope::Namespaced, DeletionScope::ClusterScoped, DeletionScope::CustomResourceDefinitions]
        .into_iter()
        .map(|scope| DeletionGroup { on: ClusterRef::Target, what: vec![scope], force: false })
        .collect()
}

/// Everything the host is to do, in order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Proposal {
    /// One after the other.
    pub stages: Vec<Stage>,
    /// After the last stage.
    pub next: Next,
    /// When a stage fails: call again with this checkpoint and the failure. `None` fails the item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recover: Option<Vec<u8>>,
    /// Goes to the item's `providerStatus`, beside the inventory that the host keeps there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Value>,
    /// How the inventory is deleted with the item. Empty means [`default_deletion_order`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deletion_order: Vec<DeletionGroup>,
    /// How objects that left the plan are deleted. Empty means [`default_deletion_order`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pruning_order: Vec<DeletionGroup>,
}

/// The failure of a stage of the proposal before, as the component is told it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StageFailure {
    /// The stage's name.
    pub stage: String,
    /// The object, if one is to blame.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<ObjectKey>,
    /// What happened.
    pub problem: Problem,
}

/// What a deployer is asked to plan for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Item {
    /// The deploy item's namespace.
    pub namespace: Namespace,
    /// Its name.
    pub name: ObjectName,
    /// Its uid.
    pub uid: String,
    /// Its type.
    pub item_type: String,
    /// Its generation.
    pub generation: u64,
    /// The name of the Context.
    pub context: String,
    /// The name of the Target object; `None` for items without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// The job's id.
    pub job: JobId,
    /// The provider configuration.
    pub config: Value,
    /// The annotations of the deploy item.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// What the registration of the component says under `configuration`. The host gives it where it calls the component.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configuration: Option<Value>,
    /// The provider status of the last call or job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Value>,
    /// What `continue-with`, `again-in` or `recover` handed over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<Vec<u8>>,
    /// The failed stage, when called to recover.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<StageFailure>,
    /// The time of the job's first call, RFC 3339; the guest has no other clock.
    pub now: String,
    /// Randomness, the same for every call of the job. Everybody can compute it.
    pub seed: u64,
    /// What all that the component draws follows from. It is part of no recording; without it that is the seed.
    #[serde(skip)]
    pub secret: Option<ItemSecret>,
    /// Milliseconds from the job's start to the item's deadline; `u64::MAX` for none.
    pub timeout: u64,
}

/// 32 bytes that the operator alone can derive, of an item and a job: who knows them knows the keys and passwords that a component
/// draws in that job.
#[derive(Clone, PartialEq)]
pub struct ItemSecret(pub [u8; 32]);

impl fmt::Debug for ItemSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ItemSecret([...])")
    }
}

/// A map from dotted export keys to their values, merged: the content of the export Secret.
pub type Exports = BTreeMap<String, Value>;

#[cfg(test)]
mod tests;
