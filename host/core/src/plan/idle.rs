//! A root without a job: what its conditions say, and whether a job starts by itself (C-05, C-27, ORC-33).

use jiff::Timestamp;

use crate::{
    automatic::{self, AutomaticPlan, AutomaticRecord, JobOutcome, ScheduleError, Terms},
    condition::ConditionInput,
    error::{Code, Failure},
    phase::installation::Installation as Phase,
    plan::changes::{ObservedRoots, starts},
};

/// What is known of a root without a job.
#[derive(Debug)]
pub struct IdleFacts {
    /// Whether it ever had a job.
    pub had_job: bool,
    /// How its last job ended; `None` where it has not ([`outcome`]).
    pub outcome: Option<JobOutcome>,
    /// The generation of the spec, and the one that was dealt with last.
    pub generations: (i64, i64),
    /// Whether an annotation asks for something.
    pub has_operation: bool,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// Whether jobs are suspended (C-306).
    pub is_suspended: bool,
    /// Whether something else is allowed than when the last job was refused something.
    pub is_allowed_anew: bool,
    /// The failure of the last job.
    pub failure: Option<Failure>,
    /// Its name.
    pub name: String,
    /// What it imports, and the roots before it: a change there starts a job. Empty where it starts none by changes.
    pub roots: ObservedRoots,
    /// Until when no change starts another job, where one has started one (C-196).
    pub held_until: Option<Timestamp>,
    /// When jobs of this outcome start by themselves.
    pub terms: Result<Option<Terms>, ScheduleError>,
    /// What the status keeps of jobs that started by themselves.
    pub record: Option<AutomaticRecord>,
}

/// What starts a job that nobody asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SelfStart {
    /// What a policy refused is allowed now.
    Allowed,
    /// What is imported has changed, or what gate expressions answer.
    Change,
    /// A schedule, with what is kept of that.
    Schedule(AutomaticRecord),
}

/// What is done about it.
#[derive(Debug)]
pub enum IdleRoot {
    /// A job starts.
    Start(SelfStart),
    /// It rests.
    Idle(IdlePlan),
}

/// How an Installation rests that has no job.
#[derive(Debug, Default)]
pub struct IdlePlan {
    /// What is kept of jobs that start by themselves; `None` leaves what is there.
    pub record: Option<AutomaticRecord>,
    /// What its conditions say; `None` leaves them.
    pub state: Option<ConditionInput>,
    /// When a job starts by itself.
    pub until: Option<Timestamp>,
    /// A schedule that cannot be read.
    pub refused: Option<ScheduleError>,
    /// Whether the job starts later than its schedule says (C-184).
    pub is_stretched: bool,
    /// Whether a change waits for the least time between two jobs (C-196).
    pub is_held: bool,
}

/// How a job ended that stands in this phase.
pub fn outcome(phase: Phase) -> Option<JobOutcome> {
    match phase {
        Phase::Succeeded => Some(JobOutcome::Succeeded),
        Phase::Failed | Phase::DeleteFailed => Some(JobOutcome::Failed),
        Phase::Init
        | Phase::CleanupOrphaned
        | Phase::ObjectsCreated
        | Phase::Progressing
        | Phase::Completing
        | Phase::InitDelete
        | Phase::TriggerDelete
        | Phase::Deleting => None,
    }
}

/// What is done about a root without a job.
pub fn idle_root(facts: IdleFacts, now: Timestamp) -> IdleRoot {
    let awaiting = |state| IdleRoot::Idle(IdlePlan { state, ..IdlePlan::default() });
    if !facts.had_job {
        return awaiting(Some(ConditionInput::AwaitingTrigger));
    }
    let Some(outcome) = facts.outcome else { return awaiting(None) };
    let (generation, observed) = facts.generations;
    if generation != observed || facts.has_operation {
        // Nothing triggers a job for the new spec.
        let awaits = generation != observed && outcome == JobOutcome::Succeeded;
        return awaiting(awaits.then_some(ConditionInput::AwaitingTrigger));
    }
    if facts.is_suspended {
        // Whoever waits for the object sees that nothing tries again.
        let failure = facts.failure.filter(|_| outcome == JobOutcome::Failed);
        return awaiting(failure.map(|failure| ConditionInput::Failed { failure, retry: false }));
    }
    let was_refused = facts.failure.as_ref().is_some_and(|failure| failure.codes.contains(&Code::PolicyViolation));
    if facts.is_allowed_anew && was_refused {
        return IdleRoot::Start(SelfStart::Allowed);
    }
    let held_until = if starts(&facts.roots, &facts.name) {
        match facts.held_until.filter(|until| *until > now) {
            None => return IdleRoot::Start(SelfStart::Change),
            held => held,
        }
    } else {
        None
    };
    let held = |plan: IdlePlan| IdlePlan { is_held: held_until.is_some(), ..plan };
    let terms = match facts.terms {
        Ok(terms) => terms,
        Err(error) => {
            let plan = IdlePlan { until: held_until, refused: Some(error), ..IdlePlan::default() };
            return IdleRoot::Idle(held(plan));
        }
    };
    let last = facts.record.map_or(now, |record| record.last);
    let is_stretched = terms.as_ref().is_some_and(|terms| terms.is_stretched(last));
    let rest = |record, state, until: Option<Timestamp>| {
        let until = until.into_iter().chain(held_until).min();
        IdleRoot::Idle(held(IdlePlan { record, state, until, is_stretched, ..IdlePlan::default() }))
    };
    match automatic::plan(terms.as_ref(), outcome, generation, facts.record, now) {
        AutomaticPlan::Start(record) => IdleRoot::Start(SelfStart::Schedule(record)),
        AutomaticPlan::Note(record, at) => rest(Some(record), None, Some(at)),
        // Whoever waits for the object sees that it is not over (C-27).
        AutomaticPlan::At(at) => {
            let failure = facts.failure.filter(|_| outcome == JobOutcome::Failed && !facts.deleting);
            rest(None, failure.map(|failure| ConditionInput::Failed { failure, retry: true }), Some(at))
        }
        AutomaticPlan::Nothing => IdleRoot::Idle(held(IdlePlan { until: held_until, ..IdlePlan::default() })),
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;
    use crate::{
        automatic::Schedule,
        plan::changes::{ObservedRoot, RootChanges},
    };

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn facts(outcome: JobOutcome) -> IdleFacts {
        IdleFacts {
            had_job: true,
            outcome: Some(outcome),
            generations: (1, 1),
            has_operation: false,
            deleting: false,
            is_suspended: false,
            is_allowed_anew: false,
            failure: None,
            name: "a".to_owned(),
            roots: ObservedRoots::new(),
            held_until: None,
            terms: Ok(None),
            record: None,
        }
    }

    fn changed_root() -> ObservedRoots {
        let changes = RootChanges { imports: Some("new".to_owned()), ..RootChanges::default() };
        [("a".to_owned(), ObservedRoot { changes: Some(changes), ..ObservedRoot::default() })].into()
    }

    fn every_100s() -> Result<Option<Terms>, ScheduleError> {
        let schedule = Schedule::parse("@every 100s", None, Schedule::AFTER_FAILURE).unwrap();
        Ok(Some(Terms { most: None, schedule, least: SignedDuration::ZERO }))
    }

    #[track_caller]
    fn check(facts: IdleFacts, expected: &str) {
        let text = match idle_root(facts, at(10)) {
            IdleRoot::Start(SelfStart::Schedule(record)) => format!("start {}", record.jobs),
            IdleRoot::Start(by) => format!("start by {by:?}"),
            IdleRoot::Idle(IdlePlan { record, state, until, refused, is_stretched: _, is_held: _ }) => {
                let state = match state {
                    None => "same",
                    Some(ConditionInput::AwaitingTrigger) => "awaiting",
                    Some(ConditionInput::Failed { retry: true, .. }) => "retried",
                    Some(ConditionInput::Failed { retry: false, .. }) => "failed",
                    Some(other) => panic!("{other:?}"),
                };
                let until = until.map_or(0, Timestamp::as_second);
                format!("rest {} {state} {until} {}", record.is_some(), refused.is_some())
            }
        };
        assert_eq!(text, expected);
    }

    #[test]
    fn c_05_a_root_without_a_job_and_one_whose_spec_changed_await_a_trigger() {
        check(
            IdleFacts { had_job: false, outcome: None, ..facts(JobOutcome::Succeeded) },
            "rest false awaiting 0 false",
        );
        let changed =
            |outcome| IdleFacts { generations: (2, 1), roots: changed_root(), terms: every_100s(), ..facts(outcome) };
        check(changed(JobOutcome::Succeeded), "rest false awaiting 0 false");
        check(changed(JobOutcome::Failed), "rest false same 0 false");
        check(
            IdleFacts { outcome: None, roots: changed_root(), ..facts(JobOutcome::Failed) },
            "rest false same 0 false",
        );
    }

    #[test]
    fn orc_33_a_change_of_what_it_imports_starts_a_job_unless_something_is_asked() {
        check(IdleFacts { roots: changed_root(), ..facts(JobOutcome::Succeeded) }, "start by Change");
        check(
            IdleFacts { roots: changed_root(), has_operation: true, ..facts(JobOutcome::Succeeded) },
            "rest false same 0 false",
        );
    }

    #[test]
    fn c_196_a_change_waits_for_the_least_time_after_the_last_job_that_a_change_started() {
        let changed =
            |until: i64, outcome| IdleFacts { roots: changed_root(), held_until: Some(at(until)), ..facts(outcome) };
        check(changed(10, JobOutcome::Succeeded), "start by Change");
        check(changed(11, JobOutcome::Succeeded), "rest false same 11 false");
        check(changed(11, JobOutcome::Failed), "rest false same 11 false");
        // A schedule that comes sooner starts one all the same, and one that cannot be read holds nothing up.
        let scheduled = |until| IdleFacts { terms: every_100s(), ..changed(until, JobOutcome::Succeeded) };
        check(scheduled(50), "rest true same 50 false");
        check(scheduled(500), "rest true same 110 false");
        let unreadable = Schedule::parse("nonsense", None, Schedule::AFTER_FAILURE).map(|_| None);
        check(IdleFacts { terms: unreadable, ..changed(50, JobOutcome::Failed) }, "rest false same 50 true");
        // Without a change nothing is waited for.
        check(
            IdleFacts { roots: ObservedRoots::new(), ..changed(50, JobOutcome::Succeeded) },
            "rest false same 0 false",
        );
        let told = |facts| match idle_root(facts, at(10)) {
            IdleRoot::Idle(plan) => plan.is_held,
            IdleRoot::Start(_) => false,
        };
        assert_eq!([50, 10].map(|until| told(changed(until, JobOutcome::Succeeded))), [true, false]);
    }

    #[test]
    fn what_a_policy_refused_starts_a_job_when_something_else_is_allowed() {
        let failed = |code| Some(Failure::new("CheckPolicy", "PolicyViolation", "no").with_code(code));
        let refused =
            || IdleFacts { failure: failed(Code::PolicyViolation), is_allowed_anew: true, ..facts(JobOutcome::Failed) };
        check(refused(), "start by Allowed");
        check(IdleFacts { is_allowed_anew: false, ..refused() }, "rest false same 0 false");
        check(IdleFacts { failure: failed(Code::Timeout), ..refused() }, "rest false same 0 false");
        check(IdleFacts { generations: (2, 1), ..refused() }, "rest false same 0 false");
    }

    #[test]
    fn c_27_a_schedule_starts_jobs_and_a_failure_says_that_it_is_tried_again() {
        check(IdleFacts { terms: every_100s(), ..facts(JobOutcome::Failed) }, "start 1");
        check(IdleFacts { terms: every_100s(), ..facts(JobOutcome::Succeeded) }, "rest true same 110 false");
        let record = Some(AutomaticRecord { generation: 1, jobs: 1, last: at(0), outcome: JobOutcome::Failed });
        let failure = Some(Failure::new("O", "R", "boom"));
        let waits = |deleting| IdleFacts {
            terms: every_100s(),
            record,
            failure: failure.clone(),
            deleting,
            ..facts(JobOutcome::Failed)
        };
        check(waits(false), "rest false retried 100 false");
        check(waits(true), "rest false same 100 false");
    }

    #[test]
    fn c_306_nothing_starts_a_job_of_a_suspended_root_by_itself() {
        let suspended = |facts| IdleFacts { is_suspended: true, ..facts };
        let failure = || Some(Failure::new("CheckPolicy", "R", "no").with_code(Code::PolicyViolation));
        for outcome in [JobOutcome::Succeeded, JobOutcome::Failed] {
            check(suspended(IdleFacts { roots: changed_root(), ..facts(outcome) }), "rest false same 0 false");
            check(suspended(IdleFacts { terms: every_100s(), ..facts(outcome) }), "rest false same 0 false");
        }
        let refused = IdleFacts { failure: failure(), is_allowed_anew: true, ..facts(JobOutcome::Failed) };
        check(suspended(refused), "rest false failed 0 false");
        check(
            suspended(IdleFacts { generations: (2, 1), ..facts(JobOutcome::Succeeded) }),
            "rest false awaiting 0 false",
        );
    }

    #[test]
    fn c_184_a_schedule_that_is_too_close_is_stretched_and_says_so() {
        let plan = |least, outcome, record| {
            let terms =
                every_100s().map(|terms| terms.map(|terms| Terms { least: SignedDuration::from_secs(least), ..terms }));
            match idle_root(IdleFacts { terms, record, ..facts(outcome) }, at(10)) {
                IdleRoot::Idle(plan) => (plan.until.map_or(0, Timestamp::as_second), plan.is_stretched),
                IdleRoot::Start(_) => (-1, false),
            }
        };
        let record = |outcome, last| Some(AutomaticRecord { generation: 1, jobs: 1, last: at(last), outcome });
        for outcome in [JobOutcome::Succeeded, JobOutcome::Failed] {
            assert_eq!(plan(100, outcome, record(outcome, 0)), (100, false));
            assert_eq!(plan(101, outcome, record(outcome, 0)), (101, true));
            assert_eq!(plan(101, outcome, record(outcome, -90)), (11, true));
            assert_eq!(plan(101, outcome, record(outcome, -91)), (-1, false));
        }
        assert_eq!(plan(300, JobOutcome::Succeeded, None), (310, true));
    }

    #[test]
    fn c_27_a_schedule_that_cannot_be_read_starts_nothing() {
        let terms = Schedule::parse("nonsense", None, Schedule::AFTER_FAILURE).map(|_| None);
        assert!(terms.is_err());
        check(IdleFacts { terms, ..facts(JobOutcome::Failed) }, "rest false same 0 true");
    }
}
