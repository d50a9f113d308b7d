//! What a deploy item's job does next: where it stands in its proposal, whether the proposal has to be kept, and how a
//! job ends that ran out of time.

use std::{collections::BTreeSet, time::Duration};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{
    Gate, Next, ObjectWrite, Proposal, Readiness, ReadinessRule, Scope, Stage, StageFailure, check::key_of,
    deployer::PluginIdentity, health::has_rule, inventory::Located,
};
use orangery_core::{
    digest::sha256,
    duration::{self, deadline},
    error::{Code, Failure, Fault, Problem},
    step::Halt,
};

/// A proposal kept in Secrets of the item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Kept {
    /// Of the proposal as JSON.
    pub digest: String,
    /// The names of the Secrets, in order.
    pub secrets: Vec<String>,
}

/// Where a job stands, as the item's status keeps it between two looks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Progress {
    /// The job; the progress of another job says nothing.
    pub job: String,
    /// Where in its proposal.
    pub at: At,
    /// Since when; the timeout of a stage counts from here.
    pub since: Timestamp,
    /// What all proposals of the job so far have planned: the rest is pruned at its end.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub planned: BTreeSet<Located>,
    /// Until when the component may put things right after the item's time was up; `None` before that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovers_until: Option<Timestamp>,
}

impl Progress {
    /// What a component that recovers is told when the item's time is up in a stage: then it has as much time again, once.
    /// `None` where nothing is to be put right, or its time for that is up as well.
    pub fn overdue(&self, proposal: &Proposal, failure: &Failure, now: Timestamp, limit: Duration) -> Option<Self> {
        let (stages, afterwards) = stages(proposal);
        let stage = match &self.at {
            At::Stage(position) => stages.get(position.stage),
            At::Afterwards(position) => afterwards.get(position.stage),
            At::Pruning | At::Exporting | At::Tidying | At::Calling { .. } | At::Recovering(_) | At::Deleting => None,
        }?;
        if self.recovers_until.is_some() || proposal.recover.is_none() {
            return None;
        }
        let code = failure.codes.first().cloned().unwrap_or(Code::Timeout);
        let problem = Problem { code, message: failure.message.clone(), at: None };
        Some(Self {
            at: At::Recovering(StageFailure { stage: stage.name.clone(), key: None, problem }),
            since: now,
            recovers_until: deadline(now, Some(limit)),
            ..self.clone()
        })
    }
}

/// Where in a proposal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum At {
    /// In a stage.
    Stage(Position),
    /// What left the plan is deleted.
    Pruning,
    /// Exports are collected.
    Exporting,
    /// In a stage after the exports.
    Afterwards(Position),
    /// What lives for the job only is deleted.
    Tidying,
    /// The component is to be called again. A struct, because a null on the wire would be no value.
    Calling {
        /// Not before this time.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<Timestamp>,
    },
    /// The component is to be called again with the failure of a stage.
    Recovering(StageFailure),
    /// Nothing is left to do but deleting the inventory.
    Deleting,
}

/// Where in a list of stages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Position {
    /// The stage.
    pub stage: usize,
    /// The step in it.
    pub step: StageStep,
}

/// Where in a stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StageStep {
    /// Removals.
    #[default]
    Removing,
    /// Definitions of kinds.
    Defining,
    /// All other writes.
    Writing,
    /// The gate.
    Waiting,
}

impl Position {
    /// The beginning of a stage.
    pub fn stage(stage: usize) -> Self {
        Self { stage, step: StageStep::Removing }
    }

    /// Another step of the same stage.
    pub fn step(self, step: StageStep) -> Self {
        Self { step, ..self }
    }
}

/// The stages of a proposal and those after its exports.
pub fn stages(proposal: &Proposal) -> (&[Stage], &[Stage]) {
    let afterwards = match &proposal.next {
        Next::Finish(completion) => completion.afterwards.as_slice(),
        Next::Fail(_) | Next::ContinueWith(_) | Next::AgainIn { .. } => &[],
    };
    (&proposal.stages, afterwards)
}

/// Every write of a proposal with its place. Objects without an identity are left out: the check has refused them.
pub fn writes(proposal: &Proposal) -> impl Iterator<Item = (Located, &ObjectWrite)> {
    let (stages, afterwards) = stages(proposal);
    stages.iter().chain(afterwards).flat_map(|stage| &stage.writes).filter_map(|write| {
        let key = key_of(&write.object).ok()?;
        Some((Located { on: write.on.clone(), key }, write))
    })
}

/// Whether a proposal must be kept before its first write: where it may wait, go on with another call or do something
/// after its exports, a crash or a new leader has to carry on with exactly it. Others are asked for again.
pub fn must_be_kept(proposal: &Proposal) -> bool {
    let done_at_once = match &proposal.next {
        Next::Finish(completion) => completion.afterwards.is_empty(),
        Next::Fail(_) => true,
        Next::ContinueWith(_) | Next::AgainIn { .. } => false,
    };
    !done_at_once || proposal.recover.is_some() || proposal.stages.iter().any(may_wait)
}

fn may_wait(stage: &Stage) -> bool {
    if !stage.removals.is_empty() {
        return true;
    }
    match &stage.gate {
        Gate::Accepted | Gate::Gone => false,
        Gate::Completed(keys) => !keys.is_empty(),
        Gate::Ready(checks) => checks.iter().any(|check| check_may_wait(check, stage)),
    }
}

fn check_may_wait(check: &Readiness, stage: &Stage) -> bool {
    let (Scope::Stage, ReadinessRule::Usual) = (&check.scope, &check.rule) else { return true };
    stage.writes.iter().any(|write| key_of(&write.object).map_or(true, |key| has_rule(key.group(), &key.kind)))
}

/// What a job fails with that ran out of time, and what it still waited for or last failed with.
pub fn timed_out(limit: Duration, halt: &Halt) -> Failure {
    let (last, codes) = match halt {
        Halt::Wait(wait) => (wait.to_string(), BTreeSet::new()),
        Halt::Retry(failure) | Halt::Stall(failure) => {
            (format!("the last problem was: {}", failure.message), failure.codes.clone())
        }
    };
    let limit = duration::shown(limit);
    let message = format!("the item did not finish within its timeout of {limit}; {last}");
    let mut failure = Failure::new("Progressing", "ProgressingTimeout", message).with_code(Code::Timeout);
    failure.codes.extend(codes);
    failure
}

/// Randomness for the component: the same for every call of the job.
pub fn seed(uid: &str, job: &str) -> u64 {
    let digest = sha256(format!("{uid}/{job}").as_bytes());
    let hex = digest.rsplit(':').next().and_then(|hex| hex.get(..16)).unwrap_or_default();
    u64::from_str_radix(hex, 16).unwrap_or_default()
}

/// What a component's fault means for the job (C-09): only `later` is tried again.
pub fn judge(fault: Fault, by: &PluginIdentity) -> Halt {
    let (reason, problem) = match &fault {
        Fault::Invalid(problem) => ("InvalidConfiguration", problem),
        Fault::Later(problem) => ("PluginTryLater", problem),
        Fault::Denied(problem) => ("CapabilityDenied", problem),
    };
    let failure =
        Failure::new("Plan", reason, format!("plugin {}: {problem}", by.name)).with_code(problem.code.clone());
    match fault {
        Fault::Invalid(_) | Fault::Denied(_) => Halt::Stall(failure),
        Fault::Later(_) => Halt::Retry(failure),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use orangery_core::step::Until;

    fn proposal(fields: Value) -> Proposal {
        let mut whole = json!({"stages": [], "next": {"finish": {}}});
        crate::overlay::overlay(&mut whole, &fields);
        serde_json::from_value(whole).unwrap()
    }

    fn stage(kind: &str, gate: Value) -> Value {
        let object = json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "x", "namespace": "a"}});
        json!({"name": "s", "writes": [{"object": object, "how": "replace"}], "gate": gate})
    }

    #[track_caller]
    fn check_kept(fields: Value, expected: bool) {
        assert_eq!(must_be_kept(&proposal(fields.clone())), expected, "{fields}");
    }

    #[test]
    fn a_proposal_that_is_done_at_once_is_not_kept() {
        let usual = json!({"ready": [{"name": "r", "scope": "stage", "rule": "usual"}]});
        check_kept(json!({"stages": [stage("ControllerRevision", usual), stage("X", json!("accepted"))]}), false);
        check_kept(json!({"stages": [stage("X", json!("gone"))]}), false);
        check_kept(json!({"next": {"finish": {"exports": [{"key": "a", "source": {"value": 1}}]}}}), false);
        check_kept(json!({"stages": [stage("X", json!({"completed": []}))]}), false);
        let failing = Proposal {
            next: Next::Fail(Problem { code: Code::Timeout, message: "m".into(), at: None }),
            ..proposal(json!({}))
        };
        assert!(!must_be_kept(&failing));
    }

    #[test]
    fn a_proposal_that_may_wait_or_go_on_is_kept() {
        let key = json!({"apiVersion": "batch/v1", "kind": "Job", "namespace": "a", "name": "x"});
        let ready = |scope: Value, rule: Value| json!({"ready": [{"name": "r", "scope": scope, "rule": rule}]});
        check_kept(json!({"stages": [stage("Deployment", ready(json!("stage"), json!("usual")))]}), true);
        check_kept(json!({"stages": [stage("X", ready(json!({"keys": [key]}), json!("usual")))]}), true);
        check_kept(json!({"stages": [stage("X", ready(json!("stage"), json!({"requirements": []})))]}), true);
        check_kept(json!({"stages": [stage("X", json!({"completed": [key]}))]}), true);
        check_kept(json!({"stages": [{"name": "s", "removals": [{"key": key}], "gate": "accepted"}]}), true);
        check_kept(json!({"next": {"finish": {"afterwards": [stage("X", json!("accepted"))]}}}), true);
        check_kept(json!({"recover": [1]}), true);
        let again = Proposal { next: Next::ContinueWith(vec![]), ..proposal(json!({})) };
        assert!(must_be_kept(&again));
    }

    #[test]
    fn all_writes_are_found_with_their_place() {
        let mut on_host = stage("B", json!("accepted"));
        on_host["writes"][0]["on"] = json!("host");
        let proposal = proposal(json!({"stages": [stage("A", json!("accepted"))],
            "next": {"finish": {"afterwards": [on_host]}}}));
        let found: Vec<String> =
            writes(&proposal).map(|(located, _)| format!("{} on {}", located.key, located.on)).collect();
        assert_eq!(found, ["A a/x on the target cluster", "B a/x on the host cluster"]);
    }

    #[test]
    fn what_ran_out_of_time_in_a_stage_is_recovered_from_once_in_as_much_time_again() {
        let waiting = proposal(json!({"recover": [1], "stages": [stage("X", json!("accepted"))]}));
        let at = |second| Timestamp::from_second(second).unwrap();
        let begun = Progress {
            job: "j".into(),
            at: At::Stage(Position::default().step(StageStep::Waiting)),
            since: at(1),
            planned: BTreeSet::new(),
            recovers_until: None,
        };
        let limit = Duration::from_secs(60);
        let failure = timed_out(limit, &Halt::wait("Job", "a/x", Until::Finished));
        let overdue = begun.overdue(&waiting, &failure, at(100), limit).unwrap();
        let told = StageFailure {
            stage: "s".into(),
            key: None,
            problem: Problem { code: Code::Timeout, message: failure.message.clone(), at: None },
        };
        let expected =
            Progress { at: At::Recovering(told), since: at(100), recovers_until: Some(at(160)), ..begun.clone() };
        assert_eq!(overdue, expected);
        let again = Progress { at: begun.at.clone(), ..overdue };
        assert_eq!(again.overdue(&waiting, &failure, at(170), limit), None);
        let nothing = Proposal { recover: None, ..waiting.clone() };
        assert_eq!(begun.overdue(&nothing, &failure, at(100), limit), None);
        let exporting = Progress { at: At::Exporting, ..begun };
        assert_eq!(exporting.overdue(&waiting, &failure, at(100), limit), None);
    }

    #[test]
    fn progress_survives_its_wire_form() {
        let key = Located {
            on: Default::default(),
            key: key_of(&json!({"apiVersion": "v1", "kind": "K", "metadata": {"name": "n"}})).unwrap(),
        };
        let progress = Progress {
            job: "j".into(),
            at: At::Stage(Position::stage(1).step(StageStep::Waiting)),
            since: Timestamp::from_second(0).unwrap(),
            planned: BTreeSet::from([key]),
            recovers_until: None,
        };
        let wire = json!({"job": "j",
            "at": {"stage": {"stage": 1, "step": "waiting"}}, "since": "1970-01-01T00:00:00Z",
            "planned": [{"apiVersion": "v1", "kind": "K", "name": "n"}]});
        assert_eq!(serde_json::to_value(&progress).unwrap(), wire);
        assert_eq!(serde_json::from_value::<Progress>(wire).unwrap(), progress);
        // A status is written as a merge patch, where a null is no value.
        assert_eq!(serde_json::to_value(At::Calling { after: None }).unwrap(), json!({"calling": {}}));
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
        assert_eq!(seed("u", "j"), seed("u", "j"));
        assert_ne!(seed("u", "j"), seed("u", "k"));
        assert_ne!(seed("u", "j"), 0);
    }

    #[test]
    fn c_09_only_later_is_tried_again() {
        let by = PluginIdentity { name: "mine".into(), version: "1".into(), digest: "sha256:0".into() };
        let stalled = judge(Fault::invalid(Code::ConfigurationProblem, "no manifests"), &by);
        let expected = Failure::new("Plan", "InvalidConfiguration", "plugin mine: no manifests");
        assert_eq!(stalled, Halt::Stall(expected.with_code(Code::ConfigurationProblem)));
        assert!(matches!(judge(Fault::denied("x"), &by), Halt::Stall(_)));
        assert!(matches!(judge(Fault::later(Code::Timeout, "x"), &by), Halt::Retry(_)));
    }
}
