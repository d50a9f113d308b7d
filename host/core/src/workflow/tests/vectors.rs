//! The rules of workflows, each by an example.

use proptest::prelude::*;

use super::*;

#[test]
fn wf_01_and_wf_29_a_diamond_is_reconciled_in_the_order_of_its_dependencies() {
    check("1 2(1) 3(1) 4(2,3)", "+1 | +2 +3 | +4 | done");
    check("4(2,3) 3(1) 2(1) 1", "+1 | +3 +2 | +4 | done");
}

#[test]
fn wf_02_and_wf_20_what_is_not_wanted_is_deleted_where_it_is_there_and_else_never_made() {
    check("1 2=off", "+1 | done");
    check("1=there 2=off,there", "+1 -2 | done");
}

#[test]
fn wf_03_wf_19_and_wf_30_what_is_not_ready_holds_up_what_depends_on_it() {
    check("1 2(1)=unready 3(1) 4(2,3)", "+1 | +2 +3 | waits");
}

#[test]
fn wf_31_the_first_one_holds_up_all() {
    check("1=unready 2(1) 3(1) 4(2,3)", "+1 | waits");
}

#[test]
fn wf_04_wf_28_and_wf_40_what_is_not_gone_in_every_respect_holds_up_what_it_depends_on() {
    check_deletion("1 2(1)=lingers 3(1) 4(2,3)", "-4 | -2 -3 | waits");
}

#[test]
fn wf_05_and_wf_24_what_takes_no_part_is_neither_reconciled_nor_deleted() {
    check("1=inactive", "done");
    let mut play = Play::new("1=inactive,there 2=inactive 3", WorkflowItemState::Absent);
    assert_eq!(play.play(Direction::Forward, CONTINUE), "+3 | done");
    assert_eq!(play.there(), ["1", "3"]);
}

#[test]
fn wf_25_what_depends_on_what_takes_no_part_is_deleted() {
    check("1=inactive,there 2(1)=there 3(2)=there 4=there", "-3 +4 | -2 | done");
}

#[test]
fn c_07_wf_25_doubt_waits_and_deletes_nothing() {
    check("1=unclear,there 2(1)=there 3=there", "+3 | waits");
    check("1=doubtful,there 2(1)=there", "waits");
    // What is certain beside it is done.
    check("1=off,there 2(1)=unclear,there 3(1)=there", "-3 | waits");
    check("1=off,there 2(1)=doubtful,there 3(1)=there", "-2 -3 | -1 | done");
    check("1=off,there 2(1)=unclear", "-1 | waits");
}

#[test]
fn wf_11_and_wf_52_a_workflow_may_be_looked_at_any_number_of_times() {
    let workflow = Workflow::new([("1", vec![]), ("2", vec!["1"])]).unwrap();
    let evaluation =
        || workflow.evaluate(Direction::Forward, WorkflowPolicy::default(), |_| Facts::of(WorkflowItemState::Absent));
    assert_eq!(evaluation().starts(), ["1"]);
    assert_eq!(evaluation(), evaluation());
}

#[test]
fn wf_12_all_are_ready_or_not() {
    let ready = |text: &str| {
        let play = Play::new(text, WorkflowItemState::Reconciled);
        play.workflow().evaluate(Direction::Forward, CONTINUE, |name| play.facts(name)).all_ready()
    };
    assert!(ready("1 2(1)"));
    assert!(ready("1 2=off,gone 3=inactive,there"));
    assert!(!ready("1 2(1)=unready"));
    assert!(!ready("1 2(1)=there"));
}

#[test]
fn wf_13_wf_32_and_wf_43_a_failure_holds_up_only_what_depends_on_it() {
    check("1 2(1)=fails 3(1) 4(2,3) 5(3) 6(4)", "+1 | +2 +3 | +5 | failed");
}

#[test]
fn c_01_exe_25_a_failure_stops_all_where_nothing_else_is_asked_for() {
    check_with(WorkflowPolicy::default(), "1 2(1)=fails 3(1) 4(2,3) 5(3)", "+1 | +2 +3 | failed");
    check_with(WorkflowPolicy::default(), "1=fails 2=off,there 3(1)", "+1 -2 | failed");
    check_with(WorkflowPolicy::default(), "1=fails 2(3)=there 3=off,there", "+1 -2 | failed");
}

#[test]
fn c_01_what_is_blocked_by_a_failure_is_in_a_class_of_its_own() {
    let mut play = Play::new("1=fails 2(1) 3(2) 4 5(4)=doubtful 6(1)=doubtful", WorkflowItemState::Absent);
    play.play(Direction::Forward, CONTINUE);
    let workflow = play.workflow();
    let evaluation = workflow.evaluate(Direction::Forward, CONTINUE, |name| play.facts(name));
    let classes: Vec<(&str, Class, bool)> =
        evaluation.items().iter().map(|item| (item.name, item.class, item.awaits.is_some())).collect();
    assert_eq!(
        classes,
        [
            ("1", Class::Failed, false),
            ("2", Class::Blocked, false),
            ("3", Class::Blocked, false),
            ("4", Class::Succeeded, false),
            ("5", Class::Pending, true),
            ("6", Class::Blocked, false),
        ]
    );
}

#[test]
fn wf_14_and_wf_17_what_depends_on_nothing_starts_at_once() {
    check("1 2 3", "+1 +2 +3 | done");
}

#[test]
fn wf_15_as_many_are_under_way_as_are_allowed() {
    let most = |most| WorkflowPolicy { max_parallel: NonZeroU32::new(most), ..CONTINUE };
    check_with(most(1), "1 2 3(1)", "+1 | +2 | +3 | done");
    check_with(most(2), "1 2 3 4(1)", "+1 +2 | +3 +4 | done");
    let play = Play::new("1 2 3=unready 4=unready", WorkflowItemState::Absent);
    let workflow = play.workflow();
    let evaluation = workflow.evaluate(Direction::Forward, most(3), |name| {
        let facts = play.facts(name);
        if facts.answers.ready == Answer::NotMet {
            Facts { state: WorkflowItemState::Reconciled, ..facts }
        } else {
            facts
        }
    });
    assert_eq!((evaluation.starts(), evaluation.queued(), evaluation.ending()), (vec!["1"], vec!["2"], None));
}

#[test]
fn wf_16_a_cycle_is_refused_and_where_it_is_not_the_run_ends() {
    let refused = Workflow::new([("1", vec!["2"]), ("2", vec!["1"])]).unwrap_err();
    assert_eq!(refused.to_string(), "1 -> 2 -> 1 depend on each other in a circle; remove one of these dependencies");
    check("1(2) 2(1) 3", "+3 | stuck");
    check("1(2)=doubtful 2(1)=doubtful", "stuck");
    check("1(1)=off,there", "stuck");
    check("1(unheard-of) 2", "+2 | stuck");
}

#[test]
fn wf_18_all_that_it_depends_on_has_to_be_ready() {
    check("1 2=unready 3(1,2)", "+1 +2 | waits");
    check("1 2 3(1,2)", "+1 +2 | +3 | done");
}

#[test]
fn wf_21_wf_22_and_wf_33_all_that_depends_on_what_is_not_wanted_goes_first() {
    check("1=there 2(1)=there 3(1)=off,there 4(3)=there 5(3)=there", "+1 -4 -5 | +2 -3 | done");
}

#[test]
fn wf_34_a_part_that_is_not_gone_keeps_what_it_depends_on() {
    check("1=there 2(1)=there 3(1)=off,there 4(3)=there 5(3)=there,lingers", "+1 -4 -5 | +2 | waits");
}

#[test]
fn wf_35_a_part_that_cannot_be_deleted_keeps_what_it_depends_on() {
    check("1=there 2(1)=there 3(1)=off,there 4(3)=there 5(3)=there,undeletable", "+1 -4 -5 | +2 | failed");
}

#[test]
fn wf_27_what_is_kept_counts_as_gone() {
    check_deletion("1 2(1)=keep", "-1 -2 | done");
    check("1=off,there 2(1)=keep,there", "-1 -2 | done");
}

#[test]
fn wf_36_to_39_a_deletion_begins_with_what_nothing_depends_on() {
    check_deletion("1 2(1) 3(1) 4(2,3)", "-4 | -2 -3 | -1 | done");
    // Gate expressions of reconciling decide nothing there.
    check_deletion("1=off 2(1)=inactive 3(1)=doubtful 4(2,3)=unready", "-4 | -2 -3 | -1 | done");
}

#[test]
fn wf_41_what_cannot_be_deleted_holds_up_what_it_depends_on() {
    check_deletion("1 2(1)=undeletable 3(1) 4(2,3)", "-4 | -2 -3 | failed");
}

#[test]
fn wf_42_where_the_first_cannot_be_deleted_nothing_is() {
    check_deletion("1 2(1) 3(1) 4(2,3)=undeletable", "-4 | failed");
}

#[test]
fn wf_53_what_is_gone_already_needs_no_deletion() {
    check_deletion("1 2(1)=gone 3(2)", "-1 -3 | done");
    check_deletion("1=gone", "done");
}

#[test]
fn wf_54_nothing_is_kept_between_looks() {
    // A run that is taken up by somebody else in the middle ends as it would have ended.
    let mut first = Play::new("1 2(1) 3(2)", WorkflowItemState::Absent);
    first.states.insert("1".to_owned(), WorkflowItemState::Reconciled);
    assert_eq!(first.play(Direction::Forward, CONTINUE), "+2 | +3 | done");
}

#[test]
fn what_was_asked_for_is_not_taken_back_when_a_condition_flips() {
    let states = [WorkflowItemState::Reconciling, WorkflowItemState::Reconciled, WorkflowItemState::ReconcileFailed];
    let facts = |state| Facts {
        answers: Answers { activate: Answer::NotMet, when: Answer::NotMet, ..Answers::default() },
        ..Facts::of(state)
    };
    let workflow = Workflow::new([("1", vec![])]).unwrap();
    let desired =
        states.map(|state| workflow.evaluate(Direction::Forward, CONTINUE, |_| facts(state)).items()[0].desired);
    assert_eq!(desired, [DesiredAction::Reconcile; 3]);
    let goes = Facts::of(WorkflowItemState::Deleting);
    assert_eq!(workflow.evaluate(Direction::Forward, CONTINUE, |_| goes).items()[0].desired, DesiredAction::Delete);
}

/// A graph of up to five items without cycles, with the item that is switched off.
fn graphs() -> impl Strategy<Value = (Vec<Vec<usize>>, usize)> {
    (1..6_usize).prop_flat_map(|size| {
        let on = (0..size).map(|item| prop::sample::subsequence((0..item).collect::<Vec<_>>(), 0..=item));
        (on.collect::<Vec<_>>(), 0..size)
    })
}

proptest! {
    /// Same input, same output: what would not have been made now must not remain.
    #[test]
    fn wf_23_on_and_then_off_is_the_same_as_off((graph, switched) in graphs()) {
        let text = |off: bool| -> String {
            let item = |(item, on): (usize, &Vec<usize>)| {
                let on: Vec<String> = on.iter().map(|on| format!("n{on}")).collect();
                format!("n{item}({}){} ", on.join(","), if off && item == switched { "=off" } else { "" })
            };
            graph.iter().enumerate().map(item).collect()
        };
        let mut both = Play::new(&text(false), WorkflowItemState::Absent);
        prop_assert!(both.play(Direction::Forward, CONTINUE).ends_with("done"));
        let mut switched_off = Play::new(&text(true), WorkflowItemState::Absent);
        for name in both.there() {
            switched_off.states.insert(name.to_owned(), WorkflowItemState::Idle);
        }
        prop_assert!(switched_off.play(Direction::Forward, CONTINUE).ends_with("done"));
        let mut never_on = Play::new(&text(true), WorkflowItemState::Absent);
        prop_assert!(never_on.play(Direction::Forward, CONTINUE).ends_with("done"));
        prop_assert_eq!(switched_off.there(), never_on.there());
    }
}
