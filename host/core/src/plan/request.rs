//! Requests for jobs of an Installation: what is asked for, and what a controller does with it before any job (INS-12 … INS-18,
//! INS-43, INS-44, INS-54, INS-71, C-05, C-18).

use crate::phase::{Phase as _, installation::Installation as Phase};

/// What an annotation asks for; other values have no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requested {
    /// A job.
    Job,
    /// The end of the running job.
    Interrupt,
}

/// What is known of the requests for an Installation.
#[derive(Clone, Copy, Debug)]
pub struct RequestFacts {
    /// What its annotation asks for.
    pub requested: Option<Requested>,
    /// Whether a request was seen that waits for the end of the running job.
    pub pending: bool,
    /// Whether a spec that changed asks for a job, by annotation or by policy.
    pub follows_spec: bool,
    /// The generation of the spec, and the one that was dealt with last.
    pub generations: (i64, i64),
    /// Whether the token of the request is the one that the running job answers.
    pub is_same_token: bool,
    /// Whether a job runs.
    pub running: bool,
    /// Whether it has begun its first phase.
    pub begun: bool,
    /// Whether the job that was asked for last has noted that it is interrupted.
    pub is_interrupted: bool,
    /// Whether siblings are named that are to be asked for a job.
    pub has_dependents: bool,
    /// Whether jobs are suspended (C-306).
    pub is_suspended: bool,
}

/// What comes before any job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BeforeJob {
    /// Siblings are asked for a job.
    TriggerDependents,
    /// The running job notes that it is interrupted, so that it begins nothing more (C-32).
    NoteInterrupt,
    /// The interrupt is passed on to the subobjects of a running job, and the request removed (INS-71).
    Interrupt,
    /// A request without effect is removed (INS-18).
    RemoveRequest,
    /// A request is written down that has to wait for the end of the job: the next interrupt takes its place in the
    /// annotation (C-18).
    NoteRequest,
    /// Nothing.
    Nothing,
}

impl RequestFacts {
    /// Whether a job is asked for: by annotation, or by a spec that changed under `reconcile-if-changed` or a policy, which is
    /// the same as a field. Where jobs are suspended a request stays and asks for nothing (C-306).
    pub fn asks_for_job(&self) -> bool {
        let (now, observed) = self.generations;
        let asks = self.requested == Some(Requested::Job) || self.pending || (self.follows_spec && now != observed);
        asks && !self.is_suspended
    }

    /// Whether the request on the object is the one that its running job answers. A token tells; without one a request is
    /// taken for the job's own until the job has begun its first phase, and for a follow-up afterwards (INS-54).
    pub fn is_of_running_job(&self) -> bool {
        self.requested == Some(Requested::Job) && !self.begun && self.is_same_token
    }

    /// What comes before any job. Only roots start jobs by request.
    pub fn before_job(&self, root: bool) -> BeforeJob {
        if self.has_dependents {
            return BeforeJob::TriggerDependents;
        }
        match self.requested {
            Some(Requested::Interrupt) if self.running && !self.is_interrupted => BeforeJob::NoteInterrupt,
            Some(Requested::Interrupt) => BeforeJob::Interrupt,
            Some(Requested::Job) if !root => BeforeJob::RemoveRequest,
            Some(Requested::Job) if self.running && !self.is_of_running_job() && !self.pending => {
                BeforeJob::NoteRequest
            }
            Some(Requested::Job) | None => BeforeJob::Nothing,
        }
    }
}

/// Whether a running job has not left `Init`: it reads its imports only once all its predecessors have finished, so it needs no
/// request to see what they export (C-14).
pub fn is_about_to_read(running: bool, phase: Option<Phase>) -> bool {
    running && phase.is_none_or(|phase| phase == Phase::Init || phase.is_final())
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUIET: RequestFacts = RequestFacts {
        requested: None,
        pending: false,
        follows_spec: false,
        generations: (3, 3),
        is_same_token: true,
        running: false,
        begun: false,
        is_interrupted: false,
        has_dependents: false,
        is_suspended: false,
    };
    const ASKED: RequestFacts = RequestFacts { requested: Some(Requested::Job), ..QUIET };

    #[test]
    fn ins_12_the_annotation_asks_for_a_job() {
        assert!(ASKED.asks_for_job());
        assert!(!RequestFacts { requested: Some(Requested::Interrupt), ..QUIET }.asks_for_job());
        assert!(!QUIET.asks_for_job());
    }

    #[test]
    fn c_05_a_policy_asks_once_the_generation_was_not_observed_and_the_usual_one_for_nothing() {
        let asks =
            |follows_spec, observed| RequestFacts { follows_spec, generations: (3, observed), ..QUIET }.asks_for_job();
        assert_eq!([asks(true, 2), asks(true, 3), asks(false, 2)], [true, false, false]);
    }

    #[test]
    fn c_306_where_jobs_are_suspended_nothing_asks_for_one_and_requests_stay() {
        let suspended = |facts: RequestFacts| RequestFacts { is_suspended: true, ..facts };
        let changed = RequestFacts { follows_spec: true, generations: (3, 2), ..QUIET };
        for facts in [ASKED, RequestFacts { pending: true, ..QUIET }, changed] {
            assert!(facts.asks_for_job() && !suspended(facts).asks_for_job(), "{facts:?}");
        }
        // A running job goes on as any other does.
        let running = RequestFacts { running: true, begun: true, ..ASKED };
        for facts in [ASKED, running, RequestFacts { requested: Some(Requested::Interrupt), ..running }] {
            assert_eq!(suspended(facts).before_job(true), facts.before_job(true));
        }
    }

    #[test]
    fn c_18_a_request_that_was_seen_stands_without_its_annotation() {
        assert!(RequestFacts { pending: true, ..QUIET }.asks_for_job());
        assert!(RequestFacts { pending: true, requested: Some(Requested::Interrupt), ..QUIET }.asks_for_job());
    }

    #[test]
    fn ins_54_a_request_made_while_the_job_runs_stays_for_the_next_one() {
        let answers =
            |begun, is_same_token| RequestFacts { begun, is_same_token, running: true, ..ASKED }.is_of_running_job();
        assert!(answers(false, true));
        assert!(!answers(false, false));
        assert!(!answers(true, true));
        assert!(!RequestFacts { running: true, ..QUIET }.is_of_running_job());
    }

    #[test]
    fn ins_18_ins_71_c_18_what_comes_before_a_job() {
        let before = |facts: RequestFacts, root| facts.before_job(root);
        let running = RequestFacts { running: true, begun: true, ..ASKED };
        assert_eq!(before(RequestFacts { has_dependents: true, ..running }, true), BeforeJob::TriggerDependents);
        let interrupt = RequestFacts { requested: Some(Requested::Interrupt), ..running };
        assert_eq!([before(interrupt, true), before(interrupt, false)], [BeforeJob::NoteInterrupt; 2]);
        let noted = RequestFacts { is_interrupted: true, ..interrupt };
        let ended = RequestFacts { running: false, ..interrupt };
        assert_eq!([before(noted, true), before(ended, false)], [BeforeJob::Interrupt; 2]);
        assert_eq!([before(ASKED, false), before(running, false)], [BeforeJob::RemoveRequest; 2]);
        assert_eq!(before(running, true), BeforeJob::NoteRequest);
        let quiet = [ASKED, QUIET, RequestFacts { begun: false, ..running }, RequestFacts { pending: true, ..running }];
        assert_eq!(quiet.map(|facts| before(facts, true)), [BeforeJob::Nothing; 4]);
    }

    #[test]
    fn c_14_a_successor_that_has_not_read_its_imports_needs_no_request() {
        let phases = [None, Some(Phase::Init), Some(Phase::Succeeded), Some(Phase::Progressing)];
        assert_eq!(phases.map(|phase| is_about_to_read(true, phase)), [true, true, true, false]);
        assert_eq!(phases.map(|phase| is_about_to_read(false, phase)), [false; 4]);
    }
}
