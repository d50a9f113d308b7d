//! JobHistory: what the last jobs of a deploy item did, for auditors (C-331). Ours, and not of Landscaper: its group is another one.

use std::collections::{BTreeMap, BTreeSet};

use data_encoding::BASE64;
use kube::CustomResource;
use orangery_core::{
    digest::sha256,
    name::{JobId, Namespace},
};
use orangery_proposal::ObjectKey;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    plan::PlanItem,
    schema,
    stored_state::{pack, unpack, unpacked_memory},
};

/// The most bytes of memory that the content of a record takes when it is read: whoever may write JobHistories chooses it (C-335).
pub const MOST_RECORD_MEMORY: u64 = 64 << 20;

/// The most bytes of the content of one record as it is stored, in base64 (C-335).
pub const MOST_RECORD_BYTES: usize = 512 << 10;

/// The most bytes of all records of an item: a server takes 1.5 MiB of an object (C-335).
pub const MOST_HISTORY_BYTES: usize = 1 << 20;

/// The label of a JobHistory whose deploy item is gone: since when, in seconds.
pub const ENDED: &str = "orangery.dev/item-ended";

/// The records of the last jobs of a deploy item.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[kube(
    group = "orangery.dev",
    version = "v1alpha1",
    kind = "JobHistory",
    doc = "What the last jobs of a deploy item did.",
    plural = "jobhistories",
    category = "orangery",
    namespaced,
    derive = "PartialEq",
    derive = "Default",
    printcolumn(name = "Installation", type_ = "string", json_path = ".spec.installation"),
    printcolumn(name = "Item", type_ = "string", json_path = ".spec.item.name"),
    printcolumn(name = "Last Job", type_ = "string", json_path = ".spec.lastJob"),
    printcolumn(name = "Phase", type_ = "string", json_path = ".spec.lastPhase"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
pub struct JobRecords {
    /// The deploy item.
    pub item: PlanItem,
    /// The root of its Installation; empty where it has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub installation: String,
    /// The job of the newest record.
    #[serde(default)]
    #[schemars(with = "String")]
    pub last_job: JobId,
    /// How it ended, or that it is under way.
    #[serde(default)]
    pub last_phase: String,
    /// The records, the oldest first.
    #[serde(default)]
    pub records: Vec<JobRecord>,
}

/// What one job of a deploy item did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobRecord {
    /// The job.
    #[serde(rename = "job")]
    #[schemars(with = "String")]
    pub job_id: JobId,
    /// The how manieth record of the item: none is left out but the oldest.
    pub number: u64,
    /// The phase of the item: `Progressing` or `Deleting` while the job is under way, `Deleted` where the item has gone.
    pub phase: String,
    /// When the job of the item began, in RFC 3339.
    pub begun: String,
    /// When this was written last, in RFC 3339.
    pub written: String,
    /// What was written, in words.
    pub summary: String,
    /// The SHA-256 of the content, as it is unpacked.
    pub hash: String,
    /// The content: JSON of [`RecordedJob`], compressed by zlib.
    #[schemars(schema_with = "schema::base64")]
    pub content: String,
    /// The public key that the seal is checked with: Ed25519, in base64.
    pub key: String,
    /// The signature of the operator over all of it, in base64.
    #[serde(default)]
    pub seal: String,
}

/// What a job of an item was made from, what it wrote, and what came of it. It holds no value of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordedJob {
    /// What started the job at the root; absent where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger: Option<RecordedTrigger>,
    /// What it was made from.
    pub inputs: RecordedInputs,
    /// The Plans that were approved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub plans: Vec<RecordedPlan>,
    /// Which clusters were written to, by what the item calls each: the uid of its Namespace `kube-system`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub clusters: BTreeMap<String, String>,
    /// What was written, in the order in which it was sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writes: Vec<RecordedWrite>,
    /// How many more writes there were than are listed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: u64,
    /// Objects of the item that an operator may have written which ended before it could say so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unaccounted: Vec<RecordedKey>,
    /// Why the job failed: codes, or reasons where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<String>,
    /// The digest of the exports; absent where there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exports: Option<String>,
}

/// What started a job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecordedTrigger {
    /// `Request`, `Change`, `Schedule`, `Policy` or `Deletion`.
    pub cause: String,
    /// The field manager that asked for it, or that wrote the spec last; empty where managed fields do not tell.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub manager: String,
}

/// What a job was made from. Digests of what may be secret are under a key of the operator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordedInputs {
    /// The Installation of the item; empty where it has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub installation: String,
    /// The generation of its spec.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
    /// The digest of its spec, with a blueprint that is written in it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub spec: String,
    /// The component version, `name:version`; absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub component_version: Option<String>,
    /// The resource of it that is the blueprint; absent where that is written in the spec.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blueprint: Option<String>,
    /// The digest of all imports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imports: Option<String>,
    /// Where what the job of the root was made from is kept; absent where it was not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<JobDefinitionPlace>,
    /// The digest of the spec of the deploy item.
    pub item: String,
    /// The component that proposes what is written, and its version.
    pub plugin: String,
    /// The digest of that component.
    pub plugin_digest: String,
}

/// Where the definition of a job is, or why it is nowhere.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobDefinitionPlace {
    /// The Secret; empty where there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub secret: String,
    /// Why there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub not_kept: String,
}

/// A Plan that was approved.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordedPlan {
    /// Its name.
    pub name: String,
    /// Its hash.
    pub plan_hash: String,
    /// By whom, as they say themselves.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub by: String,
}

/// An object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RecordedKey {
    /// The cluster: `target`, `host`, `target NAME`, or `former UID`.
    pub cluster: String,
    /// Which one.
    #[serde(flatten)]
    pub key: ObjectKey,
}

/// A write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordedWrite {
    /// The object.
    #[serde(flatten)]
    pub object: RecordedKey,
    /// `create`, `apply`, `replace`, `patch` or `delete`.
    pub verb: String,
    /// The object before it: a digest, [`UNREAD`] or [`ABSENT`].
    pub before: String,
    /// The object after it: a digest, [`UNREAD`], [`ABSENT`] or [`GOING`].
    pub after: String,
    /// No answer of the server is known: it may have been done or not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_unanswered: bool,
    /// It was sent after the job had ended, as what corrects drift, or ends what lived for the job alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_after_job: bool,
}

/// The object was created.
pub const CREATE: &str = "create";
/// It was written by server-side apply.
pub const APPLY: &str = "apply";
/// It was replaced.
pub const REPLACE: &str = "replace";
/// It was patched.
pub const PATCH: &str = "patch";
/// It was deleted.
pub const DELETE: &str = "delete";

/// Nobody has read the object.
pub const UNREAD: &str = "unread";
/// The object is not there.
pub const ABSENT: &str = "absent";
/// The object is on its way out.
pub const GOING: &str = "going";

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference over")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Why the content of a record cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordContentError {
    /// It has more bytes than a record may have.
    #[error("its content has more than {MOST_RECORD_BYTES} bytes")]
    TooLong,
    /// It takes more memory than the content of a record may.
    #[error("its content takes more than {MOST_RECORD_MEMORY} bytes of memory")]
    TooLarge,
    /// It is another one than its hash says, or none.
    #[error("its content is not what its hash says")]
    Damaged,
}

impl RecordedWrite {
    fn deletes(&self) -> bool {
        self.verb == DELETE
    }

    /// Whether the object was to be deleted, and was gone already.
    fn is_found_gone(&self) -> bool {
        self.deletes() && self.before == UNREAD
    }
}

impl RecordedJob {
    /// What is known of a job after another call of it: what comes later counts.
    #[must_use]
    pub fn following(self, earlier: Self) -> Self {
        let mut all = Self {
            trigger: self.trigger.or(earlier.trigger),
            more: self.more.saturating_add(earlier.more),
            exports: self.exports.or(earlier.exports),
            inputs: self.inputs,
            errors: self.errors,
            ..earlier
        };
        let new = self.plans.into_iter().filter(|plan| !all.plans.contains(plan)).collect::<Vec<_>>();
        all.plans.extend(new);
        all.clusters.extend(self.clusters);
        all.writes.extend(self.writes);
        all.unaccounted.extend(self.unaccounted);
        // An object that this job has deleted is found to be gone by the next call.
        let deletions = all.writes.iter().filter(|write| write.deletes() && !write.is_found_gone());
        let mut gone: BTreeSet<RecordedKey> = deletions.map(|write| write.object.clone()).collect();
        all.writes.retain(|write| !write.is_found_gone() || gone.insert(write.object.clone()));
        let written: BTreeSet<&RecordedKey> = all.writes.iter().map(|write| &write.object).collect();
        all.unaccounted.retain(|object| !written.contains(object));
        all.unaccounted.sort();
        all.unaccounted.dedup();
        all
    }

    /// How many writes there were, in words.
    pub fn summary(&self) -> String {
        let count = |verbs: &[&str]| self.writes.iter().filter(|write| verbs.contains(&write.verb.as_str())).count();
        let parts = [
            (count(&[CREATE]), "created"),
            (count(&[APPLY, REPLACE, PATCH]), "written"),
            (count(&[DELETE]), "deleted"),
            (self.unaccounted.len(), "unaccounted for"),
            (usize::try_from(self.more).unwrap_or(usize::MAX), "not listed"),
        ];
        let parts: Vec<String> =
            parts.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}")).collect();
        if parts.is_empty() { "nothing written".to_owned() } else { parts.join(", ") }
    }
}

impl JobRecord {
    /// The content, where it is what the hash says.
    ///
    /// # Errors
    /// [`RecordContentError`]
    pub fn recorded(&self) -> Result<RecordedJob, RecordContentError> {
        if self.content.len() > MOST_RECORD_BYTES {
            return Err(RecordContentError::TooLong);
        }
        let compressed = BASE64.decode(self.content.as_bytes()).map_err(|_| RecordContentError::Damaged)?;
        if unpacked_memory(&compressed) > MOST_RECORD_MEMORY {
            return Err(RecordContentError::TooLarge);
        }
        let json = unpack(&compressed, &self.hash).ok_or(RecordContentError::Damaged)?;
        serde_json::from_slice(&json).map_err(|_| RecordContentError::Damaged)
    }

    /// Keeps a content, in as many bytes as a record may have: of one that has more, writes are counted instead of listed, the last
    /// ones first.
    ///
    /// # Errors
    /// [`RecordContentError::Damaged`] where it cannot be written at all.
    pub fn keep(&mut self, mut job: RecordedJob) -> Result<(), RecordContentError> {
        loop {
            let json = serde_json::to_vec(&job).map_err(|_| RecordContentError::Damaged)?;
            let content = BASE64.encode(&pack(&json).map_err(|_| RecordContentError::Damaged)?);
            if content.len() <= MOST_RECORD_BYTES {
                (self.content, self.hash) = (content, sha256(&json));
                return Ok(());
            }
            if job.writes.is_empty() && job.unaccounted.is_empty() {
                return Err(RecordContentError::TooLong);
            }
            let left = (job.writes.len() / 2, job.unaccounted.len() / 2);
            let cut = (job.writes.len() - left.0) + (job.unaccounted.len() - left.1);
            job.more = job.more.saturating_add(u64::try_from(cut).unwrap_or(u64::MAX));
            job.writes.truncate(left.0);
            job.unaccounted.truncate(left.1);
        }
    }

    /// Whether the job has ended.
    pub fn has_ended(&self) -> bool {
        !["Progressing", "Deleting"].contains(&self.phase.as_str())
    }
}

impl JobRecords {
    /// What is signed of a record: all of it, and whose it is.
    pub fn sealed(&self, namespace: &Namespace, record: &JobRecord) -> Option<Vec<u8>> {
        let unsealed = JobRecord { seal: String::new(), ..record.clone() };
        serde_json::to_vec(&("job record", namespace, &self.item, &self.installation, unsealed)).ok()
    }

    /// Leaves so many of the newest records, in as many bytes as all of them may have.
    pub fn retain_newest(&mut self, most: usize) {
        let mut bytes = 0_usize;
        let newest = self.records.iter().rev().take(most);
        let kept = newest.take_while(|record| {
            bytes = bytes.saturating_add(record.content.len()).saturating_add(BESIDE_CONTENT);
            bytes <= MOST_HISTORY_BYTES
        });
        let leaves = self.records.len() - kept.count();
        self.records.drain(..leaves);
    }
}

/// Bytes of a record beside its content, at most.
const BESIDE_CONTENT: usize = 2 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn object(name: &str) -> RecordedKey {
        let key = ObjectKey { api_version: "v1".into(), kind: "ConfigMap".into(), namespace: None, name: name.into() };
        RecordedKey { cluster: "target".to_owned(), key }
    }

    fn write(verb: &str, name: &str, before: &str, after: &str) -> RecordedWrite {
        RecordedWrite {
            object: object(name),
            verb: verb.to_owned(),
            before: before.to_owned(),
            after: after.to_owned(),
            is_unanswered: before == UNREAD,
            is_after_job: false,
        }
    }

    fn job(writes: usize) -> RecordedJob {
        let mut state = 1_u64;
        let mut digest = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            format!("{state:x}{:x}", state.rotate_left(17) ^ 0x5555_5555_1234_5678)
        };
        let writes = (0..writes).map(|_| write(CREATE, "a", &digest(), ABSENT)).collect();
        RecordedJob { writes, ..RecordedJob::default() }
    }

    #[test]
    fn c_333_what_a_lost_call_may_have_written_is_told_where_nothing_else_is_known_of_it() {
        let first = RecordedJob {
            writes: vec![write(CREATE, "a", ABSENT, "1"), write(DELETE, "b", "2", GOING)],
            errors: vec!["ERR_TIMEOUT".to_owned()],
            exports: Some("e".to_owned()),
            more: 1,
            ..RecordedJob::default()
        };
        let found = write(DELETE, "c", UNREAD, ABSENT);
        let second = RecordedJob {
            writes: vec![write(DELETE, "b", UNREAD, ABSENT), found.clone(), found.clone()],
            unaccounted: vec![object("d"), object("a"), object("d")],
            more: 2,
            ..RecordedJob::default()
        };
        let both = second.following(first.clone());
        assert_eq!(both.summary(), "1 created, 2 deleted, 1 unaccounted for, 3 not listed");
        let expected = RecordedJob {
            writes: [first.writes, vec![found]].concat(),
            unaccounted: vec![object("d")],
            more: 3,
            exports: Some("e".to_owned()),
            ..RecordedJob::default()
        };
        assert_eq!(both, expected);
        assert_eq!(RecordedJob::default().summary(), "nothing written");
    }

    #[test]
    fn c_331_a_plan_that_was_approved_is_told_once_and_each_cluster_as_it_is_now() {
        let of = |plan: &str, uid: &str| RecordedJob {
            plans: vec![RecordedPlan { name: plan.to_owned(), ..RecordedPlan::default() }],
            clusters: [("target".to_owned(), uid.to_owned())].into(),
            ..RecordedJob::default()
        };
        let all = of("p", "v").following(of("p", "u"));
        assert_eq!(all, of("p", "v"));
        assert_eq!(of("q", "u").following(all).plans.len(), 2);
    }

    fn record(job: RecordedJob) -> JobRecord {
        let mut record = JobRecord::default();
        record.keep(job).unwrap();
        record
    }

    #[test]
    fn c_332_the_content_of_a_record_is_read_as_its_hash_says_or_not_at_all() {
        let kept = record(job(2));
        assert_eq!(kept.recorded(), Ok(job(2)));
        let damaged = |content: String| JobRecord { content, ..kept.clone() }.recorded();
        assert_eq!(damaged(record(job(3)).content), Err(RecordContentError::Damaged));
        assert_eq!(damaged("?".to_owned()), Err(RecordContentError::Damaged));
    }

    #[test]
    fn c_335_limits_job_histories_a_record_is_bounded_as_it_is_stored_and_as_it_is_read() {
        let large = record(job(40_000));
        assert!(large.content.len() <= MOST_RECORD_BYTES);
        let read = large.recorded().unwrap();
        assert_eq!(read.writes.len() as u64 + read.more, 40_000);
        assert!(read.more > 0 && read.writes[..] == job(40_000).writes[..read.writes.len()], "the first are listed");
        let long = "A".repeat(MOST_RECORD_BYTES + 4);
        assert_eq!(JobRecord { content: long, ..JobRecord::default() }.recorded(), Err(RecordContentError::TooLong));
        let bomb = record(RecordedJob { errors: vec!["a".repeat(70 << 20)], ..RecordedJob::default() });
        assert_eq!(bomb.recorded(), Err(RecordContentError::TooLarge));
    }

    #[test]
    fn c_335_limits_job_histories_the_oldest_records_go_by_number_and_by_bytes() {
        let of = |length: usize, number: u64| JobRecord { content: "A".repeat(length), number, ..JobRecord::default() };
        let left = |records: Vec<JobRecord>, most| {
            let mut records = JobRecords { records, ..JobRecords::default() };
            records.retain_newest(most);
            records.records.iter().map(|record| record.number).collect::<Vec<_>>()
        };
        assert_eq!(left((1..=5).map(|number| of(4, number)).collect(), 3), [3, 4, 5]);
        let half = MOST_HISTORY_BYTES / 2 - BESIDE_CONTENT;
        assert_eq!(left(vec![of(1, 1), of(half, 2), of(half, 3)], 10), [2, 3]);
        assert_eq!(left(vec![of(half + 1, 2), of(half, 3)], 10), [3]);
    }
}
