//! What a deploy item's job does next: what a call of the controller does for it, when its component is called, and how a
//! job ends that ran out of time.

use std::{collections::BTreeSet, time::Duration};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{
    Next, Proposal, StageFailure,
    deployer::PluginIdentity,
    executor::{ExecutionEvent, ExecutionStep, ExecutionTransition, next},
    inventory::LocatedObject,
};
use orangery_core::{
    digest::sha256,
    duration::{self, deadline},
    error::{Code, Failure, Fault, Problem},
    name::JobId,
    step::{Halt, Wait},
};

/// A proposal stored in Secrets of the item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredProposal {
    /// Of the proposal as JSON.
    pub digest: String,
    /// The names of the Secrets, in order.
    pub secrets: Vec<String>,
}

/// Where a job stands, as the item's status says it between two calls of the controller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Progress {
    /// The job; the progress of another job says nothing.
    pub job: JobId,
    /// Where in its proposal.
    #[serde(rename = "at")]
    pub step: ExecutionStep,
    /// Since when; the timeout of a stage counts from here.
    pub since: Timestamp,
    /// What all proposals of the job so far have planned: the rest is pruned at its end.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub planned: BTreeSet<LocatedObject>,
    /// Until when the component may recover after the item's time was up; `None` before that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovers_until: Option<Timestamp>,
}

impl Progress {
    /// The progress of a job that has nothing left to do but deleting the inventory.
    pub fn deleting(job: &JobId, now: Timestamp) -> Self {
        let step = ExecutionStep::Deleting;
        Self { job: job.clone(), step, since: now, planned: BTreeSet::new(), recovers_until: None }
    }

    /// The progress of a job whose time is up in a stage that its component recovers from: it has as much time again, once.
    /// `None` where it does not recover, or the time for that is up as well.
    pub fn timed_out(&self, proposal: &Proposal, failure: &Failure, now: Timestamp, limit: Duration) -> Option<Self> {
        if self.recovers_until.is_some() {
            return None;
        }
        let code = failure.codes.first().cloned().unwrap_or(Code::Timeout);
        let problem = Problem { code, message: failure.message.clone(), at: None };
        match next(proposal, &self.step, ExecutionEvent::TimedOut(problem)) {
            ExecutionTransition::Continue(step) => {
                Some(Self { step, since: now, recovers_until: deadline(now, Some(limit)), ..self.clone() })
            }
            ExecutionTransition::Finish
            | ExecutionTransition::Fail(_)
            | ExecutionTransition::Unrecovered
            | ExecutionTransition::Impossible => None,
        }
    }
}

/// What is known of an item in its job before anything is done for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemFacts {
    /// Whether it is to be deleted.
    pub deletes: bool,
    /// Whether it asks to be left alone while it is as it was when it succeeded, and is.
    pub is_unchanged: bool,
    /// What it waits for where the host has no room for one more; `None` where it may work.
    pub queued: Option<Wait>,
    /// Why its timeout cannot be read.
    pub invalid_timeout: Option<Failure>,
}

/// What a call of the controller does for an item in its job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ItemAction {
    /// The job ends with nothing done (`updateOnChangeOnly`).
    Skip,
    /// The job does not begin before the host has room.
    Queue(Wait),
    /// The job ends with this failure.
    Fail(Failure),
    /// The item's proposal is carried out.
    Install,
    /// What the item has deployed is deleted.
    Uninstall,
}

/// What a call of the controller does for an item in its job.
pub fn decide(facts: ItemFacts) -> ItemAction {
    match facts {
        ItemFacts { is_unchanged: true, .. } => ItemAction::Skip,
        ItemFacts { queued: Some(wait), .. } => ItemAction::Queue(wait),
        ItemFacts { invalid_timeout: Some(failure), .. } => ItemAction::Fail(failure),
        ItemFacts { deletes: true, .. } => ItemAction::Uninstall,
        ItemFacts { deletes: false, .. } => ItemAction::Install,
    }
}

/// What is done next about the proposal of an item.
#[derive(Clone, Debug, PartialEq)]
pub enum ProposalAction {
    /// The component is called.
    Call(NextCall),
    /// The stored proposal is gone on with.
    Resume,
    /// The component is called when this long has passed.
    CallIn(Duration),
}

/// What a component is called with beside the item.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NextCall {
    /// What its last proposal handed over.
    pub checkpoint: Option<Vec<u8>>,
    /// The stage of its last proposal that failed.
    pub failed: Option<StageFailure>,
}

/// What is done next about the proposal of an item: `stored` is the proposal that its progress is about. Without either the
/// component is called as at the begin of the job.
pub fn proposal_action(progress: Option<&Progress>, stored: Option<&Proposal>, now: Timestamp) -> ProposalAction {
    let (Some(progress), Some(stored)) = (progress, stored) else { return ProposalAction::Call(NextCall::default()) };
    match &progress.step {
        ExecutionStep::Calling { after: Some(time) } if now < *time => {
            ProposalAction::CallIn(Duration::try_from(time.duration_since(now)).unwrap_or(Duration::ZERO))
        }
        ExecutionStep::Calling { .. } => {
            let checkpoint = match &stored.next {
                Next::ContinueWith(checkpoint) | Next::AgainIn { checkpoint, .. } => Some(checkpoint.clone()),
                Next::Finish(_) | Next::Fail(_) => None,
            };
            ProposalAction::Call(NextCall { checkpoint, failed: None })
        }
        ExecutionStep::Recovering(failure) => {
            ProposalAction::Call(NextCall { checkpoint: stored.recover.clone(), failed: Some(failure.clone()) })
        }
        ExecutionStep::Stage(_)
        | ExecutionStep::Pruning
        | ExecutionStep::Exporting
        | ExecutionStep::Afterwards(_)
        | ExecutionStep::Tidying
        | ExecutionStep::Deleting => ProposalAction::Resume,
    }
}

/// Whether the time of an item is up that has not come to an end: `end` is when, `None` for never.
pub fn is_overdue(halt: &Halt, end: Option<Timestamp>, now: Timestamp) -> bool {
    matches!(halt, Halt::Wait(_) | Halt::Retry(_)) && end.is_some_and(|end| now >= end)
}

/// What a job fails with that ran out of time, and what it still waited for or last failed with.
pub fn timed_out(limit: Duration, halt: &Halt) -> Failure {
    let (last, codes) = match halt {
        Halt::Wait(wait) => (wait.to_string(), BTreeSet::new()),
        Halt::Retry(failure) | Halt::Stall(failure) => {
            (format!("the last problem was: {}", failure.message), failure.codes.clone())
        }
    };
    let limit = duration::display(limit);
    let message = format!("the item did not finish within its timeout of {limit}; {last}");
    let mut failure = Failure::new("Progressing", "ProgressingTimeout", message).with_code(Code::Timeout);
    failure.codes.extend(codes);
    failure
}

/// Randomness for the component: the same for every call of the job.
pub fn seed(uid: &str, job: &JobId) -> u64 {
    let digest = sha256(format!("{uid}/{job}").as_bytes());
    let hex = digest.rsplit(':').next().and_then(|hex| hex.get(..16)).unwrap_or_default();
    u64::from_str_radix(hex, 16).unwrap_or_default()
}

/// What a component's fault means for the job (C-09): only `later` is tried again.
pub fn classify(fault: Fault, by: &PluginIdentity) -> Halt {
    let (reason, problem) = match &fault {
        Fault::Invalid(problem) => ("InvalidConfiguration", problem),
        Fault::Later(problem) => ("PluginTryLater", problem),
        Fault::Denied(problem) => ("CapabilityDenied", problem),
    };
    let mut failure = Failure::new("Plan", reason, format!("plugin {}: {problem}", by.name));
    failure.codes.extend(fault.code());
    match fault {
        Fault::Invalid(_) | Fault::Denied(_) => Halt::Stall(failure),
        Fault::Later(_) => Halt::Retry(failure),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{
        check::key_of,
        executor::{Position, StageStep},
    };
    use orangery_core::step::Until;

    fn proposal(fields: Value) -> Proposal {
        let mut whole = json!({"stages": [], "next": {"finish": {}}});
        crate::overlay::overlay(&mut whole, &fields);
        serde_json::from_value(whole).unwrap()
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn progress(step: ExecutionStep) -> Progress {
        Progress { job: "j".into(), step, since: at(1), planned: BTreeSet::new(), recovers_until: None }
    }

    #[test]
    fn wf_15_c_08_an_item_is_skipped_then_queued_then_failed_then_worked_on() {
        let wait = Wait::on("Host", "maxParallel=1", Until::Room);
        let failure = Failure::new("PickUp", "InvalidTimeout", "m");
        let nothing = ItemFacts { deletes: false, is_unchanged: false, queued: None, invalid_timeout: None };
        let invalid = ItemFacts { invalid_timeout: Some(failure.clone()), ..nothing.clone() };
        let queued = ItemFacts { queued: Some(wait.clone()), ..invalid.clone() };
        let unchanged = ItemFacts { is_unchanged: true, ..queued.clone() };
        let deletes = ItemFacts { deletes: true, ..nothing.clone() };
        let decided = [nothing, deletes, invalid, queued, unchanged].map(decide);
        let expected = [
            ItemAction::Install,
            ItemAction::Uninstall,
            ItemAction::Fail(failure),
            ItemAction::Queue(wait),
            ItemAction::Skip,
        ];
        assert_eq!(decided, expected);
    }

    #[test]
    fn a_component_is_called_at_the_begin_when_it_goes_on_and_when_it_recovers() {
        let failed = StageFailure {
            stage: "s".into(),
            key: None,
            problem: Problem { code: Code::Timeout, message: "m".into(), at: None },
        };
        let recovers = Proposal { next: Next::ContinueWith(vec![1]), ..proposal(json!({"recover": [2]})) };
        let action = |step: ExecutionStep| proposal_action(Some(&progress(step)), Some(&recovers), at(10));
        let call = |checkpoint, failed| ProposalAction::Call(NextCall { checkpoint, failed });
        assert_eq!(proposal_action(None, None, at(10)), call(None, None));
        let lost = progress(ExecutionStep::Calling { after: None });
        assert_eq!(proposal_action(Some(&lost), None, at(10)), call(None, None), "somebody deleted what was stored");
        assert_eq!(action(ExecutionStep::Calling { after: None }), call(Some(vec![1]), None));
        assert_eq!(action(ExecutionStep::Calling { after: Some(at(10)) }), call(Some(vec![1]), None));
        let later = action(ExecutionStep::Calling { after: Some(at(13)) });
        assert_eq!(later, ProposalAction::CallIn(Duration::from_secs(3)));
        assert_eq!(action(ExecutionStep::Recovering(failed.clone())), call(Some(vec![2]), Some(failed)));
        let position = Position::default();
        for step in [
            ExecutionStep::Stage(position),
            ExecutionStep::Pruning,
            ExecutionStep::Exporting,
            ExecutionStep::Afterwards(position),
            ExecutionStep::Tidying,
            ExecutionStep::Deleting,
        ] {
            assert_eq!(action(step), ProposalAction::Resume);
        }
        let finishes = proposal(json!({}));
        let calling = progress(ExecutionStep::Calling { after: None });
        assert_eq!(proposal_action(Some(&calling), Some(&finishes), at(10)), call(None, None));
    }

    #[test]
    fn c_08_only_what_has_not_ended_can_be_overdue() {
        let retry = || Halt::Retry(Failure::new("o", "r", "m"));
        let wait = || Halt::wait("Job", "a/x", Until::Finished);
        let overdue = |halt: Halt, end: Option<i64>| is_overdue(&halt, end.map(at), at(10));
        assert_eq!([overdue(retry(), Some(10)), overdue(wait(), Some(9))], [true, true]);
        assert_eq!([overdue(retry(), Some(11)), overdue(wait(), None)], [false, false]);
        assert!(!overdue(Halt::Stall(Failure::new("o", "r", "m")), Some(1)));
    }

    #[test]
    fn what_ran_out_of_time_in_a_stage_is_recovered_from_once_in_as_much_time_again() {
        let waiting = proposal(json!({"recover": [1], "stages": [{"name": "s", "gate": "accepted"}]}));
        let begun = progress(ExecutionStep::Stage(Position::default().step(StageStep::Waiting)));
        let limit = Duration::from_secs(60);
        let failure = timed_out(limit, &Halt::wait("Job", "a/x", Until::Finished));
        let overdue = begun.timed_out(&waiting, &failure, at(100), limit).unwrap();
        let text = StageFailure {
            stage: "s".into(),
            key: None,
            problem: Problem { code: Code::Timeout, message: failure.message.clone(), at: None },
        };
        let expected = Progress {
            step: ExecutionStep::Recovering(text),
            since: at(100),
            recovers_until: Some(at(160)),
            ..begun.clone()
        };
        assert_eq!(overdue, expected);
        let again = Progress { step: begun.step.clone(), ..overdue };
        assert_eq!(again.timed_out(&waiting, &failure, at(170), limit), None);
        let nothing = Proposal { recover: None, ..waiting.clone() };
        assert_eq!(begun.timed_out(&nothing, &failure, at(100), limit), None);
        let exporting = Progress { step: ExecutionStep::Exporting, ..begun };
        assert_eq!(exporting.timed_out(&waiting, &failure, at(100), limit), None);
    }

    #[test]
    fn progress_survives_its_wire_form() {
        let key = LocatedObject {
            on: Default::default(),
            key: key_of(&json!({"apiVersion": "v1", "kind": "K", "metadata": {"name": "n"}})).unwrap(),
        };
        let progress = Progress {
            job: "j".into(),
            step: ExecutionStep::Stage(Position::stage(1).step(StageStep::Waiting)),
            since: Timestamp::from_second(0).unwrap(),
            planned: BTreeSet::from([key]),
            recovers_until: None,
        };
        let wire = json!({"job": "j",
            "at": {"stage": {"stage": 1, "step": "waiting"}}, "since": "1970-01-01T00:00:00Z",
            "planned": [{"apiVersion": "v1", "kind": "K", "name": "n"}]});
        assert_eq!(serde_json::to_value(&progress).unwrap(), wire);
        assert_eq!(serde_json::from_value::<Progress>(wire).unwrap(), progress);
    }

    #[test]
    fn a_timeout_says_what_was_waited_for_or_what_failed_last() {
        let waited = timed_out(Duration::from_secs(600), &Halt::wait("Deployment", "a/x", Until::Ready));
        assert_eq!(
            waited.message,
            "the item did not finish within its timeout of 10m; waiting for Deployment a/x to become ready"
        );
        let cause = Failure::new("Apply", "Missing", "namespace b does not exist").with_code(Code::Unfinished);
        let failed = timed_out(Duration::from_secs(90), &Halt::Retry(cause));
        assert_eq!(
            failed.message,
            "the item did not finish within its timeout of 90s; the last problem was: namespace b does not exist"
        );
        assert_eq!(
            (failed.reason.as_str(), failed.codes),
            ("ProgressingTimeout", [Code::Timeout, Code::Unfinished].into())
        );
        assert!(
            timed_out(Duration::from_millis(5), &Halt::wait("Job", "a/x", Until::Finished)).message.contains("5ms")
        );
    }

    #[test]
    fn the_seed_belongs_to_item_and_job() {
        assert_eq!(seed("u", &"j".into()), seed("u", &"j".into()));
        assert_ne!(seed("u", &"j".into()), seed("u", &"k".into()));
        assert_ne!(seed("u", &"j".into()), 0);
    }

    #[test]
    fn c_09_only_later_is_tried_again() {
        let by =
            PluginIdentity { name: "mine".into(), version: "1".into(), digest: "sha256:0".into(), is_pinned: true };
        let stalled = classify(Fault::invalid(Code::ConfigurationProblem, "no manifests"), &by);
        let expected = Failure::new("Plan", "InvalidConfiguration", "plugin mine: no manifests");
        assert_eq!(stalled, Halt::Stall(expected.with_code(Code::ConfigurationProblem)));
        assert!(matches!(classify(Fault::denied("x"), &by), Halt::Stall(_)));
        let later = |code| classify(Fault::later(code, "x"), &by);
        let expected = Failure::new("Plan", "PluginTryLater", "plugin mine: x");
        assert_eq!(later(Code::ConfigurationProblem), Halt::Retry(expected.clone()), "C-123");
        assert_eq!(later(Code::Unfinished), Halt::Retry(expected.with_code(Code::Unfinished)));
    }
}
