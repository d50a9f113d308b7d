//! The rules of progress (ORC) and of results (FLX), from the result of a phase to the conditions that follow from it.

use super::*;
use crate::{
    phase::installation::Installation as Phase,
    step::{Halt, Step, Until, Verdict, all},
    walk::{StatusUpdate, advance},
};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn failure() -> Failure {
    Failure::new("Deploy", "Broken", "the disk is full").with_code(Code::Timeout)
}

/// Every state that an object can be in.
fn states() -> Vec<ConditionInput> {
    let running = |halted: Option<Halted>, deletion| ConditionInput::Running {
        phase: "Progressing".to_owned(),
        halted,
        deletion,
    };
    let waits = Halted::Waiting(Wait::on("Target", "a", Until::Exists));
    vec![
        ConditionInput::AwaitingTrigger,
        ConditionInput::AwaitingUninstall { root: "r".to_owned() },
        running(None, false),
        running(Some(waits.clone()), false),
        running(None, true),
        running(Some(waits), true),
        ConditionInput::Succeeded,
        ConditionInput::Failed { failure: failure(), retry: true },
        ConditionInput::Failed { failure: failure(), retry: false },
        ConditionInput::DeleteFailed { failure: failure() },
    ]
}

fn of<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    let mut of_type = conditions.iter().filter(|condition| condition.type_ == type_);
    let found = of_type.next();
    assert_eq!(of_type.next(), None, "{type_} is there twice");
    found
}

fn is(conditions: &[Condition], type_: &str) -> Option<Status> {
    of(conditions, type_).map(|condition| condition.status)
}

/// The conditions of an object that was at work in this phase, after the result of the phase.
fn after(phase: Phase, result: Step<Verdict>) -> Vec<Condition> {
    let at_work = ConditionInput::Running { phase: phase.to_string(), halted: None, deletion: false };
    let before = conditions(&at_work, 1, &[], at(1));
    let rest = StatusUpdate::after(phase, &advance(phase, result)).expect("it rests");
    conditions(&rest.state(), 1, &before, at(2))
}

/// Status, reason and message of a condition.
fn message_of(conditions: &[Condition], type_: &str) -> Option<(Status, String, String)> {
    of(conditions, type_).map(|found| (found.status, found.reason.clone(), found.message.clone()))
}

#[test]
fn orc_01_flx_22_ready_and_progressing_are_always_there() {
    for state in states() {
        let conditions = conditions(&state, 1, &[], at(0));
        assert!(of(&conditions, "Ready").is_some() && of(&conditions, "Progressing").is_some(), "{state:?}");
    }
}

#[test]
fn orc_02_orc_03_orc_05_progressing_is_true_as_long_as_another_call_is_expected() {
    for state in states() {
        let expected = matches!(state, ConditionInput::Running { .. } | ConditionInput::Failed { retry: true, .. });
        let progressing = is(&conditions(&state, 1, &[], at(0)), "Progressing");
        assert_eq!(progressing, Some(if expected { Status::True } else { Status::False }), "{state:?}");
    }
}

#[test]
fn orc_18_flx_11_flx_12_flx_19_a_transient_error_is_told_and_the_work_goes_on() {
    let conditions = after(Phase::Init, Err(Halt::Retry(failure())));
    let message = "the disk is full".to_owned();
    let transient = Some((Status::True, "TransientError".to_owned(), message.clone()));
    assert_eq!(message_of(&conditions, "Progressing"), transient);
    assert_eq!(message_of(&conditions, "Reconciling"), Some((Status::True, "Init".to_owned(), message)));
    assert_eq!(is(&conditions, "Stalled"), None);
}

#[test]
fn orc_20_flx_13_flx_14_flx_16_a_stall_says_that_somebody_has_to_act() {
    let conditions = after(Phase::Init, Err(Halt::Stall(failure())));
    let stalled = |status| Some((status, "Broken".to_owned(), "the disk is full".to_owned()));
    assert_eq!(message_of(&conditions, "Stalled"), stalled(Status::True));
    assert_eq!(message_of(&conditions, "Progressing"), stalled(Status::False));
    assert_eq!(message_of(&conditions, "Ready"), stalled(Status::False));
    assert_eq!(is(&conditions, "Reconciling"), None);
    assert_eq!(of(&conditions, "Stalled").and_then(|stalled| stalled.observed_generation), Some(1));
}

#[test]
fn orc_25_orc_28_flx_17_a_waiting_object_says_for_what_and_is_not_stalled() {
    let conditions = after(Phase::Init, Err(Halt::wait("Target", "a", Until::Exists)));
    let waits = (Status::True, "WaitingForTarget".to_owned(), "waiting for Target a to exist".to_owned());
    assert_eq!(message_of(&conditions, "Progressing"), Some(waits));
    assert_eq!(is(&conditions, "Reconciling"), Some(Status::True));
    assert_eq!(is(&conditions, "Stalled"), None);
}

#[test]
fn flx_05_flx_10_only_success_says_success_and_takes_reconciling_away() {
    let conditions = after(Phase::Completing, Ok(Verdict::Done));
    assert_eq!(is(&conditions, "Ready"), Some(Status::True));
    assert_eq!((is(&conditions, "Reconciling"), is(&conditions, "Stalled")), (None, None));
    for state in states().into_iter().filter(|state| *state != ConditionInput::Succeeded) {
        assert_ne!(is(&super::conditions(&state, 1, &[], at(0)), "Ready"), Some(Status::True), "{state:?}");
    }
}

#[test]
fn flx_09_a_new_job_is_reconciling_before_anybody_has_worked_on_it() {
    let succeeded = conditions(&ConditionInput::Succeeded, 1, &[], at(1));
    let handed_down = ConditionInput::Running { phase: "Init".to_owned(), halted: None, deletion: false };
    let conditions = conditions(&handed_down, 2, &succeeded, at(2));
    let reconciling = of(&conditions, "Reconciling").unwrap();
    assert_eq!((reconciling.status, reconciling.observed_generation), (Status::True, Some(2)));
    assert_eq!(is(&conditions, "Ready"), Some(Status::Unknown));
}

#[test]
fn flx_18_what_was_stalled_is_not_any_more_when_it_works_again() {
    let stalled = conditions(&ConditionInput::Failed { failure: failure(), retry: false }, 1, &[], at(1));
    for state in
        states().iter().filter(|state| matches!(state, ConditionInput::Running { .. } | ConditionInput::Succeeded))
    {
        assert_eq!(is(&conditions(state, 2, &stalled, at(2)), "Stalled"), None, "{state:?}");
    }
}

#[test]
fn flx_15_flx_26_what_is_bad_or_passing_is_there_while_it_is_true_and_never_both() {
    for state in states() {
        let conditions = conditions(&state, 1, &[], at(0));
        let (reconciling, stalled) = (is(&conditions, "Reconciling"), is(&conditions, "Stalled"));
        assert!(reconciling.is_none() || stalled.is_none(), "{state:?}");
        assert!([reconciling, stalled].into_iter().flatten().all(|status| status == Status::True), "{state:?}");
    }
}

#[test]
fn flx_25_two_owners_of_conditions_share_one_list_whichever_comes_last() {
    let failed = ConditionInput::Failed { failure: failure(), retry: false };
    let foreign =
        Condition { type_: "EnsureSubInstallations".to_owned(), ..conditions(&failed, 1, &[], at(1)).remove(0) };
    let before = conditions(&failed, 1, std::slice::from_ref(&foreign), at(1));
    let before = with_overwrite(Some(Ok("a -> b")), 1, &before, at(1));
    let progress = |list: &[Condition]| conditions(&ConditionInput::Succeeded, 2, list, at(2));
    let overwrite = |list: &[Condition]| with_overwrite(Some(Err("no rule matches")), 2, list, at(2));
    let after = progress(&overwrite(&before));
    assert_eq!(overwrite(&progress(&before)), after);
    let kinds = |list: &[Condition]| list.iter().map(|condition| condition.type_.clone()).collect::<Vec<_>>();
    assert_eq!(kinds(&after), ["Ready", "Progressing", "EnsureSubInstallations", OVERWRITE]);
    let without = with_overwrite(None, 2, &progress(&before), at(2));
    assert_eq!(kinds(&without), ["Ready", "Progressing", "EnsureSubInstallations"]);
    assert_eq!(without.last(), Some(&foreign));
}

#[test]
fn flx_27_of_several_reasons_ready_tells_the_gravest_whatever_their_order() {
    let wait = || Halt::wait("Target", "a", Until::Exists);
    let retry = || Halt::Retry(Failure::new("Deploy", "Unreachable", "nobody answers"));
    let stall = || Halt::Stall(failure());
    let ready = |one: Halt, other: Halt| {
        let [forth, back] = [[one.clone(), other.clone()], [other, one]].map(|halts| {
            let result = all(halts.map(Err::<(), _>)).map(|_| Verdict::Done);
            message_of(&after(Phase::Init, result), "Ready")
        });
        assert_eq!(forth, back);
        forth
    };
    let says = |status, reason: &str, message: &str| Some((status, reason.to_owned(), message.to_owned()));
    assert_eq!(ready(wait(), wait()), says(Status::Unknown, "Init", "waiting for Target a to exist"));
    assert_eq!(ready(wait(), retry()), says(Status::Unknown, "Init", "nobody answers"));
    assert_eq!(ready(wait(), stall()), says(Status::False, "Broken", "the disk is full"));
    assert_eq!(ready(retry(), stall()), says(Status::False, "Broken", "the disk is full"));
}

#[test]
fn flx_28_ready_and_progressing_both_sum_up_the_one_state() {
    for state in states() {
        let expected = match &state {
            ConditionInput::AwaitingTrigger => AWAITING.to_owned(),
            ConditionInput::AwaitingUninstall { root } => awaiting_uninstall(root),
            ConditionInput::Running { halted, .. } => halted.as_ref().map(Halted::message).unwrap_or_default(),
            ConditionInput::Succeeded => String::new(),
            ConditionInput::Failed { failure, .. } | ConditionInput::DeleteFailed { failure } => {
                failure.message.clone()
            }
        };
        let conditions = conditions(&state, 1, &[], at(0));
        let messages = ["Ready", "Progressing"].map(|type_| of(&conditions, type_).map(|found| found.message.as_str()));
        assert_eq!(messages, [Some(expected.as_str()); 2], "{state:?}");
    }
}
