//! What one call of the controller does for an Installation or an Execution: something before any job, the begin of a job, its
//! next phases, or nothing (INS-07 … INS-18, INS-54 … INS-59, INS-70 … INS-74).

use jiff::Timestamp;

use super::{
    idle::{IdleFacts, IdlePlan, IdleRoot, SelfStart, idle_root},
    request::{BeforeJob, RequestFacts},
};
use crate::{
    job::{JobIds, Situation, Work, work},
    name::JobId,
    phase::{Phase, execution::Execution, installation::Installation},
    walk::standing_phase,
};

/// What is known of the job of an object.
#[derive(Clone, Debug)]
pub struct JobFacts<P> {
    /// Whether jobs of it begin here: nobody is above it, or nobody any more.
    pub root: bool,
    /// Its job ids.
    pub ids: JobIds,
    /// The phase that its status says; `None` where it never had one.
    pub phase: Option<P>,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// The phase that a running job began with, as far as its conditions say.
    pub began: Option<P>,
}

impl<P: Phase> JobFacts<P> {
    fn work(&self, requested: bool) -> Work {
        work(Situation {
            ids: &self.ids,
            root: self.root,
            requested,
            deleting: self.deleting,
            in_deletion: self.phase.is_some_and(P::is_deletion),
        })
    }

    fn continued(&self, job: JobId) -> RunningJob<P> {
        // A deletion has a job of its own: one that began before it ends as what it is, though no phase of it is written yet (INS-57).
        let began = self.began.filter(|began| self.root && !began.is_final());
        let (phase, begins) = standing_phase(self.phase, began.map_or(self.deleting, P::is_deletion));
        RunningJob { job, phase, begins }
    }
}

/// A job that goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningJob<P> {
    /// Its id.
    pub job: JobId,
    /// The phase that it stands in.
    pub phase: P,
    /// Whether it begins now.
    pub begins: bool,
}

/// What is known of an Installation.
#[derive(Debug)]
pub struct InstallationFacts {
    /// Of its job.
    pub job: JobFacts<Installation>,
    /// Of the requests for one.
    pub request: RequestFacts,
    /// Of a root [at rest](Self::is_idle); `None` of others.
    pub rest: Option<IdleFacts>,
}

/// What is done about an Installation.
#[derive(Debug)]
pub enum InstallationAction {
    /// Something that comes before any job.
    Before(BeforeJob),
    /// A job starts, by itself where nobody asked for it.
    Start(Option<SelfStart>),
    /// A job goes on.
    Continue {
        /// Which.
        running: RunningJob<Installation>,
        /// Whether the request on the object is the one that the job answers.
        answers_request: bool,
    },
    /// It has no job, and none starts.
    Idle(IdlePlan),
}

impl InstallationFacts {
    /// Whether it has no job, and nobody asks for one: more is to be known of it then.
    pub fn is_idle(&self) -> bool {
        self.before_job() == BeforeJob::Nothing && self.work() == Work::None
    }

    fn before_job(&self) -> BeforeJob {
        self.request.before_job(self.job.root)
    }

    fn work(&self) -> Work {
        self.job.work(self.request.asks_for_job())
    }
}

/// What is done about an Installation.
pub fn installation(facts: InstallationFacts, now: Timestamp) -> InstallationAction {
    match (facts.before_job(), facts.work()) {
        (BeforeJob::Nothing, Work::Continue { job }) => InstallationAction::Continue {
            running: facts.job.continued(job),
            answers_request: facts.request.is_of_running_job(),
        },
        (BeforeJob::Nothing, Work::Start) => InstallationAction::Start(None),
        (BeforeJob::Nothing, Work::None) => match facts.rest.map(|rest| idle_root(rest, now)) {
            Some(IdleRoot::Start(by)) => InstallationAction::Start(Some(by)),
            Some(IdleRoot::Idle(plan)) => InstallationAction::Idle(plan),
            None => InstallationAction::Idle(IdlePlan::default()),
        },
        (before, _) => InstallationAction::Before(before),
    }
}

/// What is known of an Execution.
#[derive(Clone, Debug)]
pub struct ExecutionFacts {
    /// Of its job.
    pub job: JobFacts<Execution>,
    /// Whether an annotation asks for the end of its job.
    pub is_to_end: bool,
    /// Whether the job that was asked for last has noted that it is interrupted.
    pub is_interrupted: bool,
}

/// What is done about an Execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExecutionAction {
    /// The running job notes that it is interrupted, so that it begins nothing more (C-32).
    NoteInterrupt,
    /// The deploy items of a running job fail that have not finished it, and the request is removed (INS-73).
    Interrupt,
    /// Its deletion starts: nobody above it does that.
    StartDeletion,
    /// A job goes on.
    Continue(RunningJob<Execution>),
    /// It has no job.
    Idle,
}

/// What is done about an Execution.
pub fn execution(facts: &ExecutionFacts) -> ExecutionAction {
    let job = &facts.job;
    if facts.is_to_end {
        let is_to_note = job.ids.running().is_some() && !facts.is_interrupted;
        return if is_to_note { ExecutionAction::NoteInterrupt } else { ExecutionAction::Interrupt };
    }
    match job.work(false) {
        Work::None => ExecutionAction::Idle,
        Work::Start => ExecutionAction::StartDeletion,
        Work::Continue { job: id } => ExecutionAction::Continue(job.continued(id)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{automatic::JobOutcome, plan::request::Requested};

    /// `job/finished phase`, with the flags `root` and `deleting`.
    fn job<P: Phase>(ids: &str, phase: Option<P>, flags: &str) -> JobFacts<P> {
        let (job, finished) = ids.split_once('/').unwrap();
        let has = |flag: &str| flags.split_whitespace().any(|word| word == flag);
        JobFacts { root: has("root"), ids: JobIds::new(job, finished), phase, deleting: has("deleting"), began: None }
    }

    fn quiet(job: JobFacts<Installation>) -> InstallationFacts {
        let request = RequestFacts {
            requested: None,
            pending: false,
            follows_spec: false,
            generations: (1, 1),
            is_same_token: true,
            running: job.ids.running().is_some(),
            begun: false,
            is_interrupted: false,
            has_dependents: false,
            is_suspended: false,
        };
        InstallationFacts { job, request, rest: None }
    }

    #[track_caller]
    fn check(facts: InstallationFacts, expected: &str) {
        let rests = facts.is_idle();
        let action = installation(facts, Timestamp::UNIX_EPOCH);
        let text = match action {
            InstallationAction::Before(before) => format!("{before:?}"),
            InstallationAction::Start(by) => format!("Start {}", by.is_some()),
            InstallationAction::Continue { running, answers_request } => {
                format!("Continue {} {} {} {answers_request}", running.job, running.phase, running.begins)
            }
            InstallationAction::Idle(plan) => format!("Idle {}", plan.state.is_some()),
        };
        assert_eq!((text.as_str(), rests), (expected, expected.starts_with("Idle")));
    }

    #[test]
    fn ins_07_ins_18_ins_57_one_function_says_what_a_call_does_for_an_installation() {
        let asked = |job| {
            let facts = quiet(job);
            let request = RequestFacts { requested: Some(Requested::Job), ..facts.request };
            InstallationFacts { request, ..facts }
        };
        let ended = Some(Installation::Succeeded);
        check(quiet(job("a/a", ended, "root")), "Idle false");
        check(asked(job("a/a", ended, "root")), "Start false");
        check(asked(job("a/a", ended, "")), "RemoveRequest");
        check(quiet(job("b/a", ended, "")), "Continue b Init true false");
        check(asked(job("b/a", ended, "root")), "Continue b Init true true");
        check(quiet(job("b/a", ended, "deleting")), "Continue b InitDelete true false");
        check(quiet(job("b/a", Some(Installation::Progressing), "deleting")), "Continue b Progressing false false");
        check(quiet(job("a/a", ended, "root deleting")), "Start false");
        check(quiet(job("a/a", Some(Installation::DeleteFailed), "root deleting")), "Idle false");
        let facts = quiet(job("b/a", ended, "root"));
        let request = RequestFacts { has_dependents: true, ..facts.request };
        check(InstallationFacts { request, ..facts }, "TriggerDependents");
    }

    #[test]
    fn c_306_a_suspended_root_ends_its_job_begins_none_and_is_deleted_all_the_same() {
        let suspended = |job| {
            let facts = quiet(job);
            let request = RequestFacts { requested: Some(Requested::Job), is_suspended: true, ..facts.request };
            InstallationFacts { request, ..facts }
        };
        check(suspended(job("a/a", Some(Installation::Succeeded), "root")), "Idle false");
        check(suspended(job("b/a", Some(Installation::Progressing), "root")), "Continue b Progressing false true");
        let facts = suspended(job("b/a", Some(Installation::Progressing), "root"));
        let request = RequestFacts { requested: None, ..facts.request };
        check(InstallationFacts { request, ..facts }, "Continue b Progressing false false");
        check(suspended(job("a/a", Some(Installation::Succeeded), "root deleting")), "Start false");
    }

    #[test]
    fn ins_57_a_job_of_a_root_that_began_before_its_deletion_is_none_that_deletes() {
        let began = |phase, flags| {
            let job = job("b/a", Some(Installation::Succeeded), flags);
            quiet(JobFacts { began: Some(phase), ..job })
        };
        check(began(Installation::Init, "root deleting"), "Continue b Init true false");
        check(began(Installation::Progressing, "root deleting"), "Continue b Init true false");
        check(began(Installation::InitDelete, "root deleting"), "Continue b InitDelete true false");
        check(began(Installation::Failed, "root deleting"), "Continue b InitDelete true false");
        // What is handed a job follows those above it.
        check(began(Installation::Init, "deleting"), "Continue b InitDelete true false");
    }

    #[test]
    fn c_05_a_root_at_rest_is_decided_from_what_is_known_of_it() {
        let rest = |had_job| IdleFacts {
            had_job,
            outcome: had_job.then_some(JobOutcome::Succeeded),
            generations: (2, 1),
            has_operation: false,
            deleting: false,
            is_suspended: false,
            is_allowed_anew: false,
            failure: None,
            name: "a".to_owned(),
            roots: Default::default(),
            held_until: None,
            terms: Ok(None),
            record: None,
        };
        for had_job in [true, false] {
            let facts = InstallationFacts { rest: Some(rest(had_job)), ..quiet(job("/", None, "root")) };
            check(facts, "Idle true");
        }
    }

    #[test]
    fn ins_73_exe_44_c_32_one_function_says_what_a_call_does_for_an_execution() {
        let decided = |ids, phase, flags| {
            execution(&ExecutionFacts { job: job(ids, phase, flags), is_to_end: false, is_interrupted: false })
        };
        let ended = Some(Execution::Succeeded);
        let go_on = |phase, begins| ExecutionAction::Continue(RunningJob { job: "b".into(), phase, begins });
        assert_eq!(decided("a/a", ended, ""), ExecutionAction::Idle);
        assert_eq!(decided("b/a", ended, ""), go_on(Execution::Init, true));
        assert_eq!(decided("b/a", Some(Execution::Progressing), ""), go_on(Execution::Progressing, false));
        assert_eq!(decided("a/a", ended, "deleting"), ExecutionAction::Idle);
        assert_eq!(decided("a/a", ended, "root deleting"), ExecutionAction::StartDeletion);
        let ends = |ids, is_interrupted| {
            execution(&ExecutionFacts { job: job(ids, ended, ""), is_to_end: true, is_interrupted })
        };
        assert_eq!(ends("b/a", false), ExecutionAction::NoteInterrupt);
        assert_eq!([ends("b/a", true), ends("a/a", false)], [ExecutionAction::Interrupt, ExecutionAction::Interrupt]);
    }
}
