//! The walk through the phases of a job: what the result of a phase means. The controllers only load, call and write;
//! what follows from what is decided here, for all kinds alike.

use crate::{
    condition::{ConditionInput, Halted},
    error::Failure,
    job::JobEnd,
    masking::Masker,
    name::Namespace,
    phase::Phase,
    step::{Halt, Step, Verdict, Wait},
};

/// What follows from the result of a phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transition<P> {
    /// On with this phase, at once; nothing is written between.
    Next(P),
    /// The job ends in this final phase, with the failure it ends with.
    End(P, Option<Failure>),
    /// The deletion is complete: the object is released and vanishes.
    Released,
    /// The job stays in its phase until a watch calls again.
    Wait(Wait),
    /// The job stays in its phase and is called again with backoff.
    Retry(Failure),
}

/// The one table of what a phase's result leads to (INS-49, INS-51, EXE-32, EXE-33).
///
/// A stall ends the job, unless children may be at work: then it is tried again, so that no object finishes before its
/// children (C-16, INS-08).
pub fn advance<P: Phase>(phase: P, result: Step<Verdict>) -> Transition<P> {
    let verdict = match result {
        Ok(verdict) => verdict,
        Err(Halt::Wait(wait)) => return Transition::Wait(wait),
        Err(Halt::Retry(failure)) => return Transition::Retry(failure),
        Err(Halt::Stall(failure)) if phase.has_working_children() => return Transition::Retry(failure),
        Err(Halt::Stall(failure)) => Verdict::Failed(failure),
    };
    match phase.after(&verdict) {
        None => Transition::Released,
        Some(next) if next.is_final() => Transition::End(
            next,
            match verdict {
                Verdict::Done => None,
                Verdict::Failed(failure) => Some(failure),
            },
        ),
        Some(next) => Transition::Next(next),
    }
}

/// The result of a phase that a job may have come back to: phases passed are not written, so after a crash or a conflict an
/// early phase can meet children that its job has triggered already. While they work it does not end the job (C-16, INS-08).
/// Where none works, a job that is to `end` neither waits nor tries again. `end` and `working` are asked only where it matters.
pub fn beside_children(
    result: Step<Verdict>,
    end: impl FnOnce() -> Option<JobEnd>,
    working: impl Fn() -> bool,
) -> Step<Verdict> {
    match result {
        Ok(Verdict::Failed(failure)) | Err(Halt::Stall(failure)) if working() => Err(Halt::Retry(failure)),
        Err(Halt::Wait(_) | Halt::Retry(_)) => ending(result, end().filter(|_| !working())),
        result => result,
    }
}

/// Whether a result ends the job in this phase with a failure. Before that it is asked of the server whether children work:
/// the answer to the write that handed the job down may have been lost (C-136).
pub fn fails_in<P: Phase>(phase: P, result: &Step<Verdict>) -> bool {
    match result {
        Ok(Verdict::Failed(_)) => true,
        Err(Halt::Stall(_)) => !phase.has_working_children(),
        Ok(Verdict::Done) | Err(Halt::Wait(_) | Halt::Retry(_)) => false,
    }
}

/// The result of a phase in which no children work. A job that is to end neither waits nor tries again there (INS-57, C-32);
/// what it can still do well it does.
fn ending(result: Step<Verdict>, end: Option<JobEnd>) -> Step<Verdict> {
    match (result, end) {
        (Err(Halt::Retry(problem)), Some(end)) => Ok(Verdict::Failed(end.failure(Some(problem)))),
        (Err(Halt::Wait(_)), Some(end)) => Ok(Verdict::Failed(end.failure(None))),
        (result, _) => result,
    }
}

/// The phase that a running job stands in: the one in the status, or the first of a job that has just been taken over; and
/// whether it has. `deleting`: whether that job deletes.
pub fn standing_phase<P: Phase>(phase: Option<P>, deleting: bool) -> (P, bool) {
    match phase {
        Some(phase) if !phase.is_final() => (phase, false),
        Some(_) | None => (if deleting { P::INIT_DELETE } else { P::INIT }, true),
    }
}

/// Where a walk rests: what is to be written to the status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusUpdate<P> {
    /// The phase to be shown.
    pub phase: P,
    /// Whether the job has ended here: then `jobIDFinished` becomes `jobID` in the same write (C-25).
    pub ended: bool,
    /// What `lastError` becomes; `None` clears it.
    pub failure: Option<Failure>,
    /// What it waits for.
    pub wait: Option<Wait>,
}

impl<P: Phase> StatusUpdate<P> {
    /// Where a walk rests after this transition; `None` where it goes on, or the object is released.
    pub fn after(phase: P, transition: &Transition<P>) -> Option<Self> {
        let rest = |phase, ended, failure, wait| Some(Self { phase, ended, failure, wait });
        match transition {
            Transition::Next(_) | Transition::Released => None,
            Transition::End(end, failure) => rest(*end, true, failure.clone(), None),
            Transition::Wait(wait) => rest(phase, false, None, Some(wait.clone())),
            Transition::Retry(failure) => rest(phase, false, Some(failure.clone()), None),
        }
    }

    /// The same of an object in this namespace: what it waits for beside it is there too.
    pub fn in_namespace(self, namespace: &Namespace) -> Self {
        Self { wait: self.wait.map(|wait| wait.in_namespace(namespace)), ..self }
    }

    /// The same of an object that is deleted when this job has ended: what it waits for says so (C-212).
    #[must_use]
    pub fn before_deletion(self) -> Self {
        Self { wait: self.wait.map(Wait::before_deletion), ..self }
    }

    /// The same without the values that a masker finds: in the failure, and in why something is waited for (C-41).
    pub fn masked(self, masker: &Masker) -> Self {
        let masked = |failure: Failure| Failure { message: masker.mask(&failure.message).into_owned(), ..failure };
        let wait = self.wait.map(|wait| wait.with_details(|detail| masker.mask(detail).into_owned()));
        Self { failure: self.failure.map(masked), wait, ..self }
    }

    /// The state that conditions and what is waited for are computed from.
    pub fn state(&self) -> ConditionInput {
        if !self.ended {
            let halted = match (&self.wait, &self.failure) {
                (Some(wait), _) => Some(Halted::Waiting(wait.clone())),
                (None, Some(failure)) => Some(Halted::Retrying(failure.message.clone())),
                (None, None) => None,
            };
            return ConditionInput::Running {
                phase: self.phase.to_string(),
                halted,
                deletion: self.phase.is_deletion(),
            };
        }
        match &self.failure {
            None => ConditionInput::Succeeded,
            Some(failure) if self.phase.is_deletion() => ConditionInput::DeleteFailed { failure: failure.clone() },
            Some(failure) => ConditionInput::Failed { failure: failure.clone(), retry: false },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        phase::{execution::Execution, installation::Installation, item::Item},
        step::{Location, Until, Waiting},
    };

    fn failure() -> Failure {
        Failure::new("Op", "Reason", "boom")
    }

    #[test]
    fn ins_57_c_32_a_job_that_is_to_end_neither_waits_nor_tries_again_and_keeps_what_it_came_to() {
        let problem = || Failure::new("CollectExports", "ExportsUnreadable", "no Secret");
        let (retry, wait) = (|| Err(Halt::Retry(problem())), || Err(Halt::wait("DataObject", "a", Until::Exists)));
        assert_eq!((ending(retry(), None), ending(wait(), None)), (retry(), wait()));
        for end in [JobEnd::Interrupted, JobEnd::TreeDeleted] {
            assert_eq!(ending(retry(), Some(end)), Ok(Verdict::Failed(end.failure(Some(problem())))));
            assert_eq!(ending(wait(), Some(end)), Ok(Verdict::Failed(end.failure(None))));
            assert_eq!(ending(Ok(Verdict::Done), Some(end)), Ok(Verdict::Done));
            assert_eq!(ending(Err(Halt::Stall(problem())), Some(end)), Err(Halt::Stall(problem())));
        }
    }

    #[test]
    fn flx_01_flx_04_flx_08_one_function_says_what_every_result_leads_to() {
        let wait = Wait::on("DeployItem", "a", Until::Finished);
        let results = [
            Ok(Verdict::Done),
            Ok(Verdict::Failed(failure())),
            Err(Halt::Wait(wait.clone())),
            Err(Halt::Retry(failure())),
            Err(Halt::Stall(failure())),
        ];
        let consequences = results.map(|result| advance(Installation::Completing, result));
        let failed = || Transition::End(Installation::Failed, Some(failure()));
        let expected = [
            Transition::End(Installation::Succeeded, None),
            // A phase that ran to its end has not succeeded by that.
            failed(),
            Transition::Wait(wait),
            Transition::Retry(failure()),
            failed(),
        ];
        assert_eq!(consequences, expected);
    }

    #[test]
    fn c_136_what_ends_a_job_with_a_failure_is_told_from_what_does_not() {
        let results = || {
            [
                Ok(Verdict::Failed(failure())),
                Err(Halt::Stall(failure())),
                Err(Halt::Retry(failure())),
                Err(Halt::wait("DeployItem", "a", Until::Finished)),
                Ok(Verdict::Done),
            ]
        };
        let fails = |phase| results().map(|result| fails_in(phase, &result));
        assert_eq!(fails(Installation::Init), [true, true, false, false, false]);
        // Where children may be at work a stall is tried again.
        assert_eq!(fails(Installation::Progressing), [true, false, false, false, false]);
        for phase in [Installation::Init, Installation::Progressing] {
            let ends = |result| matches!(advance(phase, result), Transition::End(_, Some(_)));
            assert_eq!(results().map(ends), fails(phase), "{phase}");
        }
    }

    #[test]
    fn a_phase_passed_leads_on_without_resting() {
        let transition = advance(Installation::Init, Ok(Verdict::Done));
        assert_eq!(transition, Transition::Next(Installation::CleanupOrphaned));
        assert_eq!(StatusUpdate::after(Installation::Init, &transition), None);
    }

    #[test]
    fn ins_51_a_stall_ends_the_job_in_its_failed_phase() {
        assert_eq!(
            advance(Installation::Init, Err(Halt::Stall(failure()))),
            Transition::End(Installation::Failed, Some(failure()))
        );
        assert_eq!(
            advance(Installation::InitDelete, Err(Halt::Stall(failure()))),
            Transition::End(Installation::DeleteFailed, Some(failure()))
        );
    }

    #[test]
    fn ins_48_exe_32_exe_33_exe_34_one_table_tells_normal_errors_from_fatal_ones_for_all_kinds() {
        let retry = || Err(Halt::Retry(failure()));
        assert_eq!(advance(Execution::Completing, retry()), Transition::Retry(failure()));
        assert_eq!(advance(Installation::Completing, retry()), Transition::Retry(failure()));
        let stall = || Err(Halt::Stall(failure()));
        assert_eq!(advance(Execution::Init, stall()), Transition::End(Execution::Failed, Some(failure())));
        assert_eq!(advance(Execution::InitDelete, stall()), Transition::End(Execution::DeleteFailed, Some(failure())));
    }

    #[test]
    fn c_16_a_stall_beside_working_children_is_tried_again() {
        assert_eq!(advance(Execution::Progressing, Err(Halt::Stall(failure()))), Transition::Retry(failure()));
        assert_eq!(advance(Installation::Deleting, Err(Halt::Stall(failure()))), Transition::Retry(failure()));
    }

    #[test]
    fn c_16_ins_08_a_job_that_came_back_to_an_early_phase_does_not_end_beside_working_children() {
        let wait = || Wait::on("DeployItem", "a", Until::Finished);
        let results = || {
            [Err(Halt::Stall(failure())), Ok(Verdict::Failed(failure())), Ok(Verdict::Done), Err(Halt::Wait(wait()))]
        };
        let retry = || Err(Halt::Retry(failure()));
        let beside = results().map(|result| beside_children(result, || None, || true));
        assert_eq!(beside, [retry(), retry(), Ok(Verdict::Done), Err(Halt::Wait(wait()))]);
        assert_eq!(results().map(|result| beside_children(result, || None, || false)), results());
    }

    #[test]
    fn ins_49_a_normal_error_repeats_the_phase() {
        let transition = advance(Installation::Completing, Err(Halt::Retry(failure())));
        let rest = StatusUpdate::after(Installation::Completing, &transition).unwrap();
        assert_eq!(
            (rest.phase, rest.ended, rest.failure.as_ref()),
            (Installation::Completing, false, Some(&failure()))
        );
        let ConditionInput::Running { halted: Some(halted), .. } = rest.state() else { panic!() };
        assert_eq!((halted.reason().as_str(), halted.message().as_str()), ("TransientError", "boom"));
    }

    #[test]
    fn waiting_is_no_error() {
        let transition = advance(Execution::Progressing, Err(Halt::wait("DeployItem", "a", Until::Finished)));
        let rest = StatusUpdate::after(Execution::Progressing, &transition).unwrap();
        assert_eq!((rest.failure.clone(), rest.ended), (None, false));
        let ConditionInput::Running { halted: Some(halted), .. } = rest.state() else { panic!() };
        assert_eq!(halted, Halted::Waiting(Wait::on("DeployItem", "a", Until::Finished)));
        assert_eq!(halted.reason(), "WaitingForDeployItem");
    }

    #[test]
    fn orc_08_what_is_waited_for_beside_an_object_is_in_its_namespace() {
        let beside = Waiting::beside("DeployItem", "a", Until::Finished);
        let rest =
            |transition| StatusUpdate::after(Execution::Progressing, &transition).unwrap().in_namespace(&"here".into());
        let named = Waiting { location: Location::Beside(Some("here".into())), ..beside.clone() };
        assert_eq!(rest(Transition::Wait(beside.into())).wait, Some(named.into()));
        assert_eq!(rest(Transition::Retry(failure())).wait, None);
    }

    #[test]
    fn ins_67_the_end_of_a_deletion_releases_the_object() {
        assert_eq!(advance(Installation::Deleting, Ok(Verdict::Done)), Transition::Released);
        let failed = advance(Installation::Deleting, Ok(Verdict::Failed(failure())));
        assert_eq!(
            StatusUpdate::after(Installation::Deleting, &failed).unwrap().state(),
            ConditionInput::DeleteFailed { failure: failure() }
        );
    }

    #[test]
    fn ins_51_ins_67_a_job_that_failed_tells_whether_it_was_to_delete() {
        let state = |phase| StatusUpdate::after(phase, &advance(phase, Err(Halt::Stall(failure())))).unwrap().state();
        assert_eq!(state(Installation::Init), ConditionInput::Failed { failure: failure(), retry: false });
        assert_eq!(state(Installation::InitDelete), ConditionInput::DeleteFailed { failure: failure() });
    }

    #[test]
    fn ins_47_success_ends_the_job() {
        let transition = advance(Installation::Completing, Ok(Verdict::Done));
        let rest = StatusUpdate::after(Installation::Completing, &transition).unwrap();
        assert_eq!((rest.ended, rest.state()), (true, ConditionInput::Succeeded));
    }

    #[test]
    fn flx_37_the_model_knows_of_a_kind_its_phases_and_no_more() {
        fn check<P: Phase>() {
            let after = |phase: P, result: Step<Verdict>| {
                let rest = StatusUpdate::after(phase, &advance(phase, result)).unwrap();
                (rest.phase, rest.ended, rest.state())
            };
            let running = |phase: P, deletion, halted| {
                (phase, false, ConditionInput::Running { phase: phase.to_string(), halted: Some(halted), deletion })
            };
            let wait = || Wait::on("Lamp", "a", Until::Ready);
            let retrying = Halted::Retrying("boom".to_owned());
            let stall = || Err(Halt::Stall(failure()));
            assert_eq!(after(P::INIT, Err(Halt::Retry(failure()))), running(P::INIT, false, retrying));
            let waits = running(P::INIT_DELETE, true, Halted::Waiting(wait()));
            assert_eq!(after(P::INIT_DELETE, Err(Halt::Wait(wait()))), waits);
            let failed = ConditionInput::Failed { failure: failure(), retry: false };
            assert_eq!(after(P::INIT, stall()), (P::FAILED, true, failed));
            let delete_failed = ConditionInput::DeleteFailed { failure: failure() };
            assert_eq!(after(P::INIT_DELETE, stall()), (P::DELETE_FAILED, true, delete_failed));
        }
        check::<Installation>();
        check::<Execution>();
        check::<Item>();
    }

    #[test]
    fn a_job_taken_over_begins_at_its_first_phase_and_one_under_way_goes_on() {
        assert_eq!(standing_phase::<Execution>(None, false), (Execution::Init, true));
        assert_eq!(standing_phase(Some(Execution::Succeeded), false), (Execution::Init, true));
        assert_eq!(standing_phase(Some(Execution::Failed), true), (Execution::InitDelete, true));
        assert_eq!(standing_phase(Some(Execution::Progressing), true), (Execution::Progressing, false));
    }
}
