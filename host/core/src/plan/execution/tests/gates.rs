//! Items that gate expressions decide about: their objects are made late, and go while the job reconciles.

use super::*;
use crate::workflow::Answer;

/// An item that a gate expression decides about, whose object is in this state; `gone` where it has none.
fn late<'a>(name: &'a str, after: &[&'a str], state: &str, answers: Answers) -> ItemState<'a> {
    ItemState { late: true, answers, ..ItemState::new(name, after.to_vec(), object(name, state)) }
}

fn plain<'a>(name: &'a str, after: &[&'a str], state: &str) -> ItemState<'a> {
    ItemState::new(name, after.to_vec(), object(name, state))
}

fn answers(when: Answer, ready: Answer) -> Answers {
    Answers { when, ready, ..Answers::default() }
}

const WANTED: Answers = Answers { activate: Answer::Met, when: Answer::Met, ready: Answer::Met, deleted: Answer::Met };
const UNWANTED: Answers = Answers { when: Answer::NotMet, ..WANTED };
const UNASKED: Answers = Answers { when: Answer::Unknown, ready: Answer::Unknown, ..WANTED };

/// The plan and what is to be asked.
fn display(items: &[ItemState<'_>]) -> String {
    let plan = progressing(items, NEW, WorkflowPolicy::default());
    let asks = asks(items, NEW, Direction::Forward, WorkflowPolicy::default());
    let asks: Vec<String> = asks.into_iter().map(|(name, gate)| format!("{name}/{gate}")).collect();
    format!("{}; delete [{}]; ask [{}]", show(&plan), plan.delete.join(" "), asks.join(" "))
}

#[test]
fn wf_18_a_gate_expression_is_asked_when_what_comes_before_its_item_is_ready() {
    assert_eq!(
        display(&[plain("a", &[], "running"), late("b", &["a"], "gone", UNASKED)]),
        "trigger []; waiting for DeployItem x-a to finish; delete []; ask []"
    );
    assert_eq!(
        display(&[plain("a", &[], "succeeded"), late("b", &["a"], "gone", UNASKED)]),
        "trigger []; waiting for GateExpression b/when to be met; delete []; ask [b/when]"
    );
    assert_eq!(
        display(&[plain("a", &[], "succeeded"), late("b", &["a"], "gone", WANTED)]),
        "trigger [b]; waiting for DeployItem b to finish; delete []; ask []"
    );
}

#[test]
fn orc_08_a_gate_expression_that_is_waited_for_is_no_object_and_an_item_is_one() {
    let waits = |items: &[ItemState<'_>]| progressing(items, NEW, WorkflowPolicy::default()).outcome;
    let ready = [plain("a", &[], "succeeded"), late("b", &["a"], "gone", UNASKED)];
    assert_eq!(waits(&ready), Err(Waiting::nowhere("GateExpression", "b/when", Until::Met).into()));
    let unready = [plain("a", &[], "running"), late("b", &["a"], "gone", UNASKED)];
    assert_eq!(waits(&unready), Err(Waiting::beside("DeployItem", "x-a", Until::Finished).into()));
    let going = [late("a", &[], "old", UNWANTED)];
    assert_eq!(waits(&going), Err(Waiting::beside("DeployItem", "x-a", Until::Gone).into()));
}

#[test]
fn c_21_an_item_that_is_not_wanted_leaves_the_desired_set_and_so_do_its_dependents() {
    assert_eq!(
        display(&[late("a", &[], "old", UNWANTED), late("b", &["a"], "old", WANTED)]),
        "trigger []; waiting for DeployItem x-b to be gone; delete [b]; ask []"
    );
    assert_eq!(
        display(&[late("a", &[], "old", UNWANTED), late("b", &["a"], "gone", WANTED)]),
        "trigger []; waiting for DeployItem x-a to be gone; delete [a]; ask []"
    );
    assert_eq!(
        display(&[late("a", &[], "gone", UNWANTED), late("b", &["a"], "gone", WANTED)]),
        "trigger []; done; delete []; ask []"
    );
}

#[test]
fn c_02_an_item_is_satisfied_when_it_succeeded_and_is_ready() {
    let unready = answers(Answer::Met, Answer::NotMet);
    assert_eq!(
        display(&[late("a", &[], "succeeded", unready), late("b", &["a"], "gone", WANTED)]),
        "trigger []; waiting for GateExpression a/readyWhen to be met; delete []; ask [a/readyWhen]"
    );
    assert_eq!(
        display(&[late("a", &[], "failed", WANTED), late("b", &["a"], "gone", WANTED)]),
        "trigger []; failed: deploy item a failed: boom; delete []; ask []"
    );
}

#[test]
fn c_03_an_item_that_is_not_ready_is_under_way_until_its_time_is_up() {
    let unready = || late("a", &[], "succeeded", answers(Answer::Met, Answer::Unknown));
    let classes =
        |item| classify(&[item], NEW, Direction::Forward, WorkflowPolicy::default()).pop().map(|(_, class)| class);
    assert_eq!(classes(unready()), Some(Class::Running));
    let failure =
        Failure::new("Progressing", "GateExpressionTimeout", "readyWhen of a was not met").with_code(Code::Timeout);
    let overdue = ItemState { given_up: Some((GateKind::Ready, failure.clone())), ..unready() };
    assert_eq!(classes(overdue.clone()), Some(Class::Failed));
    let plan = progressing(&[overdue], NEW, WorkflowPolicy::default());
    let Ok(Verdict::Failed(text)) = plan.outcome else { panic!("{plan:?}") };
    assert_eq!((text.message, text.codes), (failure.message, failure.codes));
}

#[test]
fn an_item_that_goes_is_judged_by_its_object_that_goes() {
    let going = |state: &str| ItemState { going: object("a", state), ..late("a", &[], "gone", UNWANTED) };
    let display = |state: &str| display(&[going(state)]);
    assert_eq!(display("old"), "trigger []; waiting for DeployItem x-a to be gone; delete [a]; ask []");
    assert_eq!(display("running"), "trigger []; waiting for DeployItem x-a to be gone; delete []; ask []");
    assert_eq!(
        display("delete-failed"),
        "trigger []; failed: deploy item a failed; see DeployItem x-a; delete []; ask []"
    );
    // What goes for another reason is a leftover: nobody concludes from it that the item is not wanted.
    let wanted = ItemState { answers: WANTED, ..going("running") };
    assert!(leaving(&[wanted], NEW).is_empty());
    assert_eq!(leaving(&[going("running")], NEW), ["a".to_owned()].into());
}

#[test]
fn wf_04_wf_28_an_item_without_an_object_is_gone_when_its_gate_expression_says_so() {
    let lingers = |deleted| ItemState { answers: Answers { deleted, ..WANTED }, ..plain("b", &["a"], "gone") };
    let display = |deleted| {
        let items = [plain("a", &[], "old"), lingers(deleted)];
        let asks = asks(&items, NEW, Direction::Backward, WorkflowPolicy::default()).len();
        format!("{}; asks {asks}", show(&deleting(&items, NEW, WorkflowPolicy::default())))
    };
    assert_eq!(display(Answer::NotMet), "trigger []; waiting for GateExpression b/deletedWhen to be met; asks 1");
    assert_eq!(display(Answer::Met), "trigger [a]; waiting for DeployItem x-a to be gone; asks 0");
}

#[test]
fn nothing_is_asked_about_items_that_a_failure_keeps_from_starting() {
    let failed = [plain("a", &[], "failed"), late("b", &[], "gone", UNASKED)];
    assert_eq!(asks(&failed, NEW, Direction::Forward, WorkflowPolicy::default()), []);
    let goes_on = WorkflowPolicy { failure: crate::workflow::FailurePolicy::ContinueIndependent, max_parallel: None };
    assert_eq!(asks(&failed, NEW, Direction::Forward, goes_on), [("b", GateKind::When)]);
}

#[test]
fn objects_are_made_late_where_a_gate_expression_decides_and_after_that() {
    let items = [
        ("a", vec![], false),
        ("b", vec!["a"], true),
        ("c", vec!["b"], false),
        ("d", vec!["c", "a"], false),
        ("e", vec!["a"], false),
    ];
    assert_eq!(super::super::late(&items), BTreeSet::from(["b", "c", "d"]));
    assert_eq!(super::super::late(&[("x", vec!["y"], true), ("y", vec!["x"], false)]), BTreeSet::from(["x", "y"]));
}

#[test]
fn sub_installations_are_told_in_words_of_their_own() {
    let sub = |item: ItemState<'static>| ItemState { kind: ItemKind::Subinstallation, ..item };
    let goes_on = WorkflowPolicy { failure: crate::workflow::FailurePolicy::ContinueIndependent, max_parallel: None };
    let outcome = |plan: ExecutionPlan| match plan.outcome {
        Ok(Verdict::Failed(failure)) => format!("{}: {}", failure.reason, failure.message),
        other => panic!("{other:?}"),
    };
    let running = [sub(plain("a", &[], "running"))];
    assert_eq!(show(&progressing(&running, NEW, goes_on)), "trigger []; waiting for Installation x-a to finish");
    let failed = [sub(plain("a", &[], "failed")), sub(late("b", &["a"], "gone", WANTED))];
    assert_eq!(
        outcome(progressing(&failed, NEW, goes_on)),
        "SubobjectsFailed: sub-installation a failed: boom; not started for that reason: b"
    );
    let undeleted = [sub(plain("a", &[], "old")), sub(plain("b", &["a"], "delete-failed"))];
    assert_eq!(
        outcome(deleting(&undeleted, NEW, goes_on)),
        "SubobjectsFailed: sub-installation b failed; see Installation x-b; not deleted for that reason: a"
    );
    let circle = |kind| {
        let of = |name, after: [&'static str; 1]| ItemState { kind, ..late(name, &after, "gone", WANTED) };
        outcome(progressing(&[of("a", ["b"]), of("b", ["a"])], NEW, goes_on))
    };
    let text = circle(ItemKind::Subinstallation);
    assert!(text.starts_with("SubobjectsStuck: sub-installations a, b cannot be started: "), "{text}");
    let text = circle(ItemKind::DeployItem);
    assert!(text.starts_with("DeployItemsStuck: deploy items a, b cannot be started: "), "{text}");
}
