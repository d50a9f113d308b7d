//! Plan: what a deploy item is about to write, for somebody to approve (C-311). Ours, and not of Landscaper: its group is another one.

use std::collections::BTreeMap;

use data_encoding::BASE64;
use kube::CustomResource;
use orangery_core::{digest::sha256, name::JobId};
use orangery_proposal::PlannedObject;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    condition::Condition,
    schema,
    stored_state::{pack, unpack, unpacked_memory},
};

/// The most bytes of memory that the content of a Plan takes when it is read: whoever may write Plans chooses it (C-317).
pub const MOST_PLAN_MEMORY: u64 = 64 << 20;

/// The most bytes of the content of a Plan as it is stored, in base64: a server takes 1.5 MiB of an object (C-317).
pub const MOST_PLAN_BYTES: usize = 1 << 20;

/// What a deploy item is about to write in a job.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[kube(
    group = "orangery.dev",
    version = "v1alpha1",
    kind = "Plan",
    doc = "What a deploy item is about to write in a job, for somebody to approve.",
    plural = "plans",
    category = "orangery",
    namespaced,
    status = "PlanStatus",
    derive = "PartialEq",
    derive = "Default",
    printcolumn(name = "Installation", type_ = "string", json_path = ".spec.installation"),
    printcolumn(name = "Item", type_ = "string", json_path = ".spec.item.name"),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Summary", type_ = "string", json_path = ".spec.summary"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Job", type_ = "string", json_path = ".spec.job", priority = 1),
    printcolumn(name = "Hash", type_ = "string", json_path = ".spec.planHash", priority = 1)
)]
pub struct PlanContent {
    /// The deploy item.
    pub item: PlanItem,
    /// The root of its Installation; empty where it has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub installation: String,
    /// The job.
    #[serde(rename = "job")]
    #[schemars(with = "String")]
    pub job_id: JobId,
    /// The how manieth of the item in its job.
    pub number: u32,
    /// The name of whoever has changed the Installation at the root, as its annotation says; empty where it does not.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub author: String,
    /// Whether somebody else has to approve it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub requires_other_approver: bool,
    /// Whether it needs no approval: it is there for rules over the whole job (C-362).
    #[serde(default, skip_serializing_if = "is_false")]
    pub needs_no_approval: bool,
    /// The component that proposes it, and its version.
    pub plugin: String,
    /// What it was made from: where something of it is another by now, the Plan is stale.
    pub made_from: PlanInputs,
    /// How many objects are created, changed and deleted, in words.
    pub summary: String,
    /// The SHA-256 of the content, as it is unpacked: what is approved.
    pub plan_hash: String,
    /// The content: JSON of [`PlannedWrites`], compressed by zlib.
    #[schemars(schema_with = "schema::base64")]
    pub content: String,
    /// By which the operator knows the Plan as its own, with every field above.
    #[serde(default)]
    pub seal: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_false(value: &bool) -> bool {
    !value
}

/// The deploy item of a Plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlanItem {
    /// The name of its object.
    pub name: String,
    /// Its uid.
    pub uid: String,
}

/// What a Plan was made from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanInputs {
    /// The digest of the component.
    pub component: String,
    /// The digest of the spec of the deploy item.
    pub item: String,
}

/// The content of a Plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedWrites {
    /// What becomes of each object, without what is secret.
    pub objects: Vec<PlannedObject>,
    /// Which clusters they are in, by what the item calls each: the uid of its Namespace `kube-system`, or the address of its server.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub clusters: BTreeMap<String, String>,
    /// What else is to be known, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// What is written, with what is secret: one entry for each thing that is done to an object.
    pub writes: Vec<PlannedWrite>,
}

/// One thing that is done to an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PlannedWrite {
    /// Which object, in words.
    pub object: String,
    /// What is done, under a key of the operator: nobody else can tell what it stands for, nor make one.
    pub digest: String,
}

/// Why the content of a Plan cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanContentError {
    /// It has more bytes than a Plan may have.
    #[error("its content has more than {MOST_PLAN_BYTES} bytes")]
    TooLong,
    /// It takes more memory than the content of a Plan may.
    #[error("its content takes more than {MOST_PLAN_MEMORY} bytes of memory")]
    TooLarge,
    /// It is another one than its hash says, or none.
    #[error("its content is not what its hash says")]
    Damaged,
}

impl PlannedWrites {
    /// The content and the hash as they stand in a Plan.
    ///
    /// # Errors
    /// [`PlanContentError::TooLong`], and [`PlanContentError::Damaged`] where it cannot be written at all.
    pub fn stored(&self) -> Result<StoredPlan, PlanContentError> {
        let json = serde_json::to_vec(self).map_err(|_| PlanContentError::Damaged)?;
        let content = BASE64.encode(&pack(&json).map_err(|_| PlanContentError::Damaged)?);
        if content.len() > MOST_PLAN_BYTES {
            return Err(PlanContentError::TooLong);
        }
        Ok(StoredPlan { content, plan_hash: sha256(&json) })
    }
}

/// The content of a Plan as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredPlan {
    /// Compressed, in base64.
    pub content: String,
    /// The SHA-256 of it, as it is unpacked.
    pub plan_hash: String,
}

impl PlanContent {
    /// The content, where it is what the hash says.
    ///
    /// # Errors
    /// [`PlanContentError`]
    pub fn planned(&self) -> Result<PlannedWrites, PlanContentError> {
        if self.content.len() > MOST_PLAN_BYTES {
            return Err(PlanContentError::TooLong);
        }
        let compressed = BASE64.decode(self.content.as_bytes()).map_err(|_| PlanContentError::Damaged)?;
        if unpacked_memory(&compressed) > MOST_PLAN_MEMORY {
            return Err(PlanContentError::TooLarge);
        }
        let json = unpack(&compressed, &self.plan_hash).ok_or(PlanContentError::Damaged)?;
        serde_json::from_slice(&json).map_err(|_| PlanContentError::Damaged)
    }
}

/// Where a Plan stands.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanStatus {
    /// `Ready`, to be approved; `Applying`, `Applied`; `Rejected`; or `Stale`: it does not count any more.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub phase: String,
    /// What somebody said of it: the right to write the status of Plans is the right to approve them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<PlanApproval>,
    /// `Current`: whether it still counts, and why not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// What somebody said of a Plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanApproval {
    /// Approve or Reject.
    pub decision: PlanDecision,
    /// `spec.planHash` of what was looked at; of another one it says nothing.
    pub plan_hash: String,
    /// By whom, as they say themselves.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub by: String,
    /// Why.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// Whether a Plan is carried out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum PlanDecision {
    /// It is.
    Approve,
    /// It is not, and its item fails.
    #[default]
    Reject,
}

/// The label of a Plan that was made before it was the turn of its deploy item (C-366).
pub const PLANNED_AHEAD: &str = "orangery.dev/planned-ahead";

/// The label of a Plan with the digest of the id of its job, which all of a tree has (C-362).
pub const PLANNED_JOB: &str = "orangery.dev/job";

/// The label of a Plan with the uid of its deploy item.
pub const PLANNED_ITEM: &str = "orangery.dev/item-uid";

impl Plan {
    /// What somebody said of the very content that it has.
    pub fn decision(&self) -> Option<&PlanApproval> {
        let approval = self.status.as_ref()?.approval.as_ref()?;
        (approval.plan_hash == self.spec.plan_hash).then_some(approval)
    }

    /// Whether somebody may approve it or reject it. Where it has to be another one than the author, both have to be known (C-367).
    pub fn may_be_decided_by(&self, by: &str) -> bool {
        let PlanContent { author, requires_other_approver, .. } = &self.spec;
        !requires_other_approver || !(author.is_empty() || by.is_empty() || by == author)
    }

    /// Where it stands; `Ready` where nothing is said.
    pub fn phase(&self) -> &str {
        self.status
            .as_ref()
            .map(|status| status.phase.as_str())
            .filter(|phase| !phase.is_empty())
            .unwrap_or(phase::READY)
    }
}

/// The phases of a Plan.
pub mod phase {
    /// It is to be approved.
    pub const READY: &str = "Ready";
    /// It is approved, and its item goes on.
    pub const APPLYING: &str = "Applying";
    /// Its job has ended.
    pub const APPLIED: &str = "Applied";
    /// Somebody has rejected it.
    pub const REJECTED: &str = "Rejected";
    /// It does not count any more.
    pub const STALE: &str = "Stale";
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn spec(content: &PlannedWrites) -> PlanContent {
        let StoredPlan { content, plan_hash } = content.stored().unwrap();
        PlanContent { content, plan_hash, ..PlanContent::default() }
    }

    fn writes(notes: Vec<String>) -> PlannedWrites {
        let write = PlannedWrite { object: "ConfigMap n/a".to_owned(), digest: "d".to_owned() };
        PlannedWrites { notes, writes: vec![write], ..PlannedWrites::default() }
    }

    #[test]
    fn c_312_the_content_of_a_plan_is_read_as_its_hash_says_or_not_at_all() {
        let planned = writes(vec!["a note".to_owned()]);
        let spec = spec(&planned);
        assert_eq!(spec.planned(), Ok(planned));
        let other = writes(Vec::new()).stored().unwrap();
        let damaged = |content: String| PlanContent { content, ..spec.clone() }.planned();
        assert_eq!(damaged(other.content), Err(PlanContentError::Damaged));
        assert_eq!(damaged("?".to_owned()), Err(PlanContentError::Damaged));
    }

    #[test]
    fn c_317_limits_plan_content_is_bounded_as_it_is_stored_and_as_it_is_read() {
        let long = "A".repeat(MOST_PLAN_BYTES + 4);
        assert_eq!(PlanContent { content: long, ..PlanContent::default() }.planned(), Err(PlanContentError::TooLong));
        let bomb = spec(&writes(vec!["a".repeat(70 << 20)]));
        assert!(bomb.content.len() < MOST_PLAN_BYTES);
        assert_eq!(bomb.planned(), Err(PlanContentError::TooLarge));
        let mut state = 1_u64;
        let mut letter = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            char::from(b' ' + u8::try_from((state >> 33) % 64).unwrap())
        };
        let noise: String = (0..2 << 20).map(|_| letter()).collect();
        assert_eq!(writes(vec![noise]).stored(), Err(PlanContentError::TooLong));
    }

    #[test]
    fn c_312_a_decision_counts_for_the_content_that_it_names() {
        let plan = |hash: &str| -> Plan {
            let approval = json!({"decision": "Approve", "planHash": hash, "by": "anna"});
            let spec = PlanContent { plan_hash: "h".to_owned(), ..PlanContent::default() };
            serde_json::from_value(json!({"metadata": {"name": "p"}, "spec": spec, "status": {"approval": approval}}))
                .unwrap()
        };
        assert_eq!(plan("h").decision().map(|approval| approval.by.as_str()), Some("anna"));
        assert_eq!(plan("other").decision(), None);
        assert_eq!(plan("h").phase(), phase::READY);
    }
}
