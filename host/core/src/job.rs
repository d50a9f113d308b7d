//! The job protocol (INS-01 … INS-18, `docs/wire.md` §3.1): is there something to do?

use serde::{Deserialize, Serialize};

use crate::{error::Failure, name::JobId, phase::Phase};

/// The job ids of an object: work is allowed exactly while they differ (INS-07).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JobIds {
    /// The job being asked for.
    pub job: Option<JobId>,
    /// The last completed one.
    pub finished: Option<JobId>,
}

impl JobIds {
    /// From the wire, where an empty id means none.
    pub fn new(job: impl Into<JobId>, finished: impl Into<JobId>) -> Self {
        let some = |id: JobId| (!id.is_empty()).then_some(id);
        Self { job: some(job.into()), finished: some(finished.into()) }
    }

    /// The job that is asked for and not finished.
    pub fn running(&self) -> Option<&JobId> {
        if self.job == self.finished { None } else { self.job.as_ref() }
    }

    /// Whether a job that begins with the phase `first` has still to be passed to the object, which stands in `phase`: it has
    /// another job, or it ended this one before it was to go, and nobody has deleted it yet.
    pub fn wants<P: Phase>(&self, job: &JobId, phase: Option<P>, first: P) -> bool {
        let ended_before = first.is_deletion() && self.has_finished(job) && !phase.is_some_and(P::is_deletion);
        self.job.as_ref() != Some(job) || ended_before
    }

    /// Whether an object may have got this job by a write of which nothing is known here: it has not finished it, or finished it
    /// before it was to go and may have got it once more (C-136).
    pub fn may_have_got(&self, job: &JobId, deleting: bool) -> bool {
        deleting || !self.has_finished(job)
    }

    /// Whether this very job is finished.
    pub fn has_finished(&self, job: &JobId) -> bool {
        self.finished.as_ref() == Some(job) && self.job == self.finished
    }
}

/// What is known of an object when it is asked what to do.
#[derive(Clone, Copy, Debug)]
pub struct Situation<'a> {
    /// Its job ids.
    pub ids: &'a JobIds,
    /// Whether it has no parent: only roots start jobs.
    pub root: bool,
    /// Whether a reconcile is asked for, by annotation or because the spec changed under `reconcile-if-changed` or a
    /// policy.
    pub requested: bool,
    /// Whether it has a deletion timestamp.
    pub deleting: bool,
    /// Whether its phase belongs to a deletion already.
    pub in_deletion: bool,
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Work {
    /// Nothing, until something changes.
    None,
    /// Start a job; only roots do.
    Start,
    /// Go on with this job. The phase is that of a deletion if `deletion`.
    Continue {
        /// The job's id.
        job: JobId,
    },
}

/// Is there something to do?
///
/// A running job is never interrupted by a new request (INS-09, INS-15, INS-57); a deletion starts by itself once
/// (INS-56, INS-58), and after `DeleteFailed` only by request (INS-59).
pub fn work(situation: Situation<'_>) -> Work {
    if let Some(job) = situation.ids.running() {
        return Work::Continue { job: job.clone() };
    }
    let deletion_begins = situation.deleting && !situation.in_deletion;
    if situation.root && (situation.requested || deletion_begins) { Work::Start } else { Work::None }
}

/// What an interrupted job ends with where it has not begun with its subobjects (C-32).
pub fn interrupted() -> Failure {
    JobEnd::Interrupted.failure(None)
}

/// Why a job ends that neither waits nor tries again any longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobEnd {
    /// It was interrupted (INS-70, C-32).
    Interrupted,
    /// Its tree is being deleted, which waits for its end (INS-57).
    TreeDeleted,
}

impl JobEnd {
    /// What the job ends with. What it failed with before stays to be read.
    pub fn failure(self, before: Option<Failure>) -> Failure {
        let (operation, message) = match self {
            Self::Interrupted => (
                "InterruptOperation",
                "the operation was interrupted by the annotation landscaper.gardener.cloud/operation: interrupt",
            ),
            Self::TreeDeleted => ("EndBeforeDeletion", "the job has ended unfinished, since its tree is being deleted"),
        };
        let end = Failure::new(operation, operation, message);
        match before {
            None => end,
            Some(before) => {
                let message = format!("{}; the last problem was: {}", end.message, before.message);
                Failure { codes: before.codes, message, ..end }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Code;

    #[track_caller]
    fn check(job: &str, finished: &str, flags: &str, expected: Work) {
        let ids = JobIds::new(job, finished);
        let has = |flag: &str| flags.split_whitespace().any(|word| word == flag);
        let situation = Situation {
            ids: &ids,
            root: has("root"),
            requested: has("requested"),
            deleting: has("deleting"),
            in_deletion: has("in-deletion"),
        };
        assert_eq!(work(situation), expected, "{job}/{finished} {flags}");
    }

    #[test]
    fn ins_73_an_interrupt_is_told_and_does_not_hide_what_failed_before() {
        let text = "the operation was interrupted by the annotation landscaper.gardener.cloud/operation: interrupt";
        assert_eq!(interrupted().message, text);
        let before = Failure::new("Apply", "Unreachable", "no answer").with_code(Code::Unfinished);
        let after = JobEnd::Interrupted.failure(Some(before));
        assert_eq!(after.message, format!("{text}; the last problem was: no answer"));
        assert_eq!((after.reason.as_str(), after.codes), ("InterruptOperation", [Code::Unfinished].into()));
    }

    fn go_on(job: &str) -> Work {
        Work::Continue { job: job.into() }
    }

    #[test]
    fn ins_11_nothing_happens_without_a_trigger() {
        check("", "", "root", Work::None);
        check("a", "a", "root", Work::None);
    }

    #[test]
    fn ins_12_a_request_starts_a_job_at_a_root_only() {
        check("", "", "root requested", Work::Start);
        check("a", "a", "root requested", Work::Start);
        check("a", "a", "requested", Work::None);
    }

    #[test]
    fn ins_15_a_request_waits_for_the_running_job() {
        check("b", "a", "root requested", go_on("b"));
    }

    #[test]
    fn ins_17_a_job_id_from_the_parent_is_the_trigger() {
        check("b", "", "", go_on("b"));
    }

    #[test]
    fn ins_56_deleting_a_root_starts_the_deletion_once() {
        check("a", "a", "root deleting", Work::Start);
        check("a", "a", "root deleting in-deletion", Work::None);
        check("a", "a", "deleting", Work::None);
    }

    #[test]
    fn ins_57_a_running_job_is_finished_before_the_deletion() {
        check("b", "a", "root deleting", go_on("b"));
    }

    #[test]
    fn ins_59_after_a_failed_deletion_a_request_starts_again() {
        check("a", "a", "root deleting in-deletion requested", Work::Start);
    }

    #[test]
    fn ins_65_exe_44_what_ended_a_job_before_it_was_to_go_gets_it_once_more() {
        use crate::phase::item::Item;
        let wants = |ids: JobIds, phase, first| ids.wants(&"a".into(), phase, first);
        assert!(wants(JobIds::new("old", "old"), Some(Item::Succeeded), Item::Init));
        assert!(!wants(JobIds::new("a", "a"), Some(Item::Succeeded), Item::Init));
        assert!(!wants(JobIds::new("a", "old"), Some(Item::Progressing), Item::InitDelete));
        assert!(wants(JobIds::new("a", "a"), Some(Item::Succeeded), Item::InitDelete));
        assert!(!wants(JobIds::new("a", "a"), Some(Item::DeleteFailed), Item::InitDelete));
    }

    #[test]
    fn c_136_what_has_finished_a_job_has_not_got_it_unknown_unless_it_is_to_go() {
        let may = |job: &str, finished: &str, deleting| JobIds::new(job, finished).may_have_got(&"a".into(), deleting);
        let seen = [may("old", "old", false), may("a", "old", false), may("", "", false), may("a", "a", true)];
        assert_eq!((seen, may("a", "a", false)), ([true; 4], false));
    }

    #[test]
    fn c_32_an_interrupted_job_says_by_what() {
        let message = "the operation was interrupted by the annotation landscaper.gardener.cloud/operation: interrupt";
        assert_eq!(interrupted(), Failure::new("InterruptOperation", "InterruptOperation", message));
    }

    #[test]
    fn ins_07_finished_means_both_ids_are_this_job() {
        assert!(JobIds::new("a", "a").has_finished(&"a".into()));
        assert!(!JobIds::new("b", "a").has_finished(&"a".into()));
        assert!(!JobIds::new("a", "").has_finished(&"a".into()));
    }
}
