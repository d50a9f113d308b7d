use serde_json::{Value, json};

use super::*;
use orangery_core::error::Code;

fn proposal(fields: Value) -> Proposal {
    let mut whole = json!({"stages": [], "next": {"finish": {}}});
    let next = fields.get("next").cloned();
    crate::overlay::overlay(&mut whole, &fields);
    if let Some(next) = next {
        whole["next"] = next;
    }
    serde_json::from_value(whole).unwrap()
}

fn stage_of(kind: &str, gate: Value) -> Value {
    let object = json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "x", "namespace": "a"}});
    json!({"name": "s", "writes": [{"object": object, "how": "replace"}], "gate": gate})
}

fn named(name: &str) -> Value {
    json!({"name": name, "gate": "accepted"})
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn problem(message: &str) -> Problem {
    Problem { code: Code::Timeout, message: message.into(), at: None }
}

/// The shapes of proposals that the table is printed for.
fn shapes() -> Vec<(&'static str, Proposal)> {
    let asks = json!({"fail": {"code": "ERR_MINE", "message": "asked for"}});
    let again = json!({"againIn": {"after": 5000, "checkpoint": [1]}});
    vec![
        ("no stages", proposal(json!({}))),
        ("two stages", proposal(json!({"stages": [named("a"), named("b")]}))),
        (
            "a stage, then a stage afterwards",
            proposal(json!({"stages": [named("a")], "next": {"finish": {"afterwards": [named("z")]}}})),
        ),
        ("a stage that is recovered from", proposal(json!({"stages": [named("a")], "recover": [1]}))),
        ("continue with", proposal(json!({"stages": [named("a")], "next": {"continueWith": [1]}}))),
        ("again in 5 s", proposal(json!({"stages": [named("a")], "next": again}))),
        ("fail", proposal(json!({"stages": [named("a")], "next": asks}))),
    ]
}

/// Every kind of step that a proposal can be in, behind the last stages included.
fn steps(of: &Proposal) -> Vec<ExecutionStep> {
    let each = [StageStep::Removing, StageStep::Defining, StageStep::Writing, StageStep::Waiting];
    let (before, after) = stages(of);
    let list = |count: usize, at: fn(Position) -> ExecutionStep| {
        let stages = (0..count).flat_map(move |stage| each.map(|step| at(Position { stage, step })));
        stages.chain([at(Position::stage(count))]).collect::<Vec<_>>()
    };
    let failed = StageFailure { stage: "a".into(), key: None, problem: problem("before") };
    let mut steps = list(before.len(), ExecutionStep::Stage);
    steps.extend([ExecutionStep::Pruning, ExecutionStep::Exporting]);
    steps.extend(list(after.len(), ExecutionStep::Afterwards));
    steps.extend([
        ExecutionStep::Tidying,
        ExecutionStep::Calling { after: None },
        ExecutionStep::Recovering(failed),
        ExecutionStep::Deleting,
    ]);
    steps
}

fn events() -> Vec<ExecutionEvent> {
    vec![
        ExecutionEvent::Removed,
        ExecutionEvent::Defined,
        ExecutionEvent::Written,
        ExecutionEvent::GatePassed,
        ExecutionEvent::StagesPassed { now: at(0) },
        ExecutionEvent::StageFailed { key: None, problem: problem("m") },
        ExecutionEvent::Pruned,
        ExecutionEvent::Exported,
        ExecutionEvent::Tidied,
        ExecutionEvent::GateResult,
        ExecutionEvent::TimedOut(problem("t")),
        ExecutionEvent::Deleted,
    ]
}

fn event_name(event: &ExecutionEvent) -> &'static str {
    match event {
        ExecutionEvent::Removed => "removed",
        ExecutionEvent::Defined => "defined",
        ExecutionEvent::Written => "written",
        ExecutionEvent::GatePassed => "gate passed",
        ExecutionEvent::StagesPassed { .. } => "stages passed",
        ExecutionEvent::StageFailed { .. } => "stage failed",
        ExecutionEvent::Pruned => "pruned",
        ExecutionEvent::Exported => "exported",
        ExecutionEvent::Tidied => "tidied",
        ExecutionEvent::GateResult => "answered",
        ExecutionEvent::TimedOut(_) => "timed out",
        ExecutionEvent::Deleted => "deleted",
    }
}

fn step_name(of: &Proposal, step: &ExecutionStep) -> String {
    let list = |list: &str, position: &Position| match stage(of, step) {
        Some(stage) => format!("{list} {} {}", stage.name, format!("{:?}", position.step).to_lowercase()),
        None => format!("{list} end"),
    };
    match step {
        ExecutionStep::Stage(position) => list("stage", position),
        ExecutionStep::Afterwards(position) => list("afterwards", position),
        ExecutionStep::Pruning => "pruning".to_owned(),
        ExecutionStep::Exporting => "exporting".to_owned(),
        ExecutionStep::Tidying => "tidying".to_owned(),
        ExecutionStep::Calling { after: None } => "calling".to_owned(),
        ExecutionStep::Calling { after: Some(time) } => format!("calling after {time}"),
        ExecutionStep::Recovering(failure) => format!("recovering from {}: {}", failure.stage, failure.problem.message),
        ExecutionStep::Deleting => "deleting".to_owned(),
    }
}

fn transition_name(of: &Proposal, transition: &ExecutionTransition) -> Option<String> {
    Some(match transition {
        Continue(step) => step_name(of, step),
        Finish => "FINISH".to_owned(),
        Fail(problem) => format!("FAIL {}", problem.message),
        Unrecovered => "FAIL with what happened".to_owned(),
        Impossible => return None,
    })
}

/// One block for each shape, one line for each step and event that leads somewhere, one for the impossible events of a step.
fn table() -> String {
    let mut text = String::new();
    for (shape, proposal) in shapes() {
        text.push_str(&format!("{shape}\n"));
        for step in steps(&proposal) {
            text.push_str(&format!("  {}\n", step_name(&proposal, &step)));
            let mut impossible = Vec::new();
            for event in events() {
                let name = event_name(&event);
                match transition_name(&proposal, &next(&proposal, &step, event)) {
                    Some(to) => text.push_str(&format!("    {name:<13} -> {to}\n")),
                    None => impossible.push(name),
                }
            }
            text.push_str(&format!("    impossible: {}\n", impossible.join(", ")));
        }
    }
    text
}

#[test]
fn c_09_the_whole_table_of_transitions() {
    let table = table();
    assert!(table == include_str!("transitions.txt"), "the table is now\n{table}");
}

#[test]
fn inv_6_the_wire_form_of_every_step_is_that_of_objects_in_running_clusters() {
    let failure = StageFailure { stage: "s".into(), key: None, problem: problem("m") };
    let wire = [
        (ExecutionStep::Stage(Position::default()), json!({"stage": {"stage": 0, "step": "removing"}})),
        (
            ExecutionStep::Stage(Position { stage: 1, step: StageStep::Defining }),
            json!({"stage": {"stage": 1, "step": "defining"}}),
        ),
        (
            ExecutionStep::Stage(Position { stage: 2, step: StageStep::Writing }),
            json!({"stage": {"stage": 2, "step": "writing"}}),
        ),
        (ExecutionStep::Pruning, json!("pruning")),
        (ExecutionStep::Exporting, json!("exporting")),
        (
            ExecutionStep::Afterwards(Position { stage: 0, step: StageStep::Waiting }),
            json!({"afterwards": {"stage": 0, "step": "waiting"}}),
        ),
        (ExecutionStep::Tidying, json!("tidying")),
        (ExecutionStep::Calling { after: None }, json!({"calling": {}})),
        (ExecutionStep::Calling { after: Some(at(5)) }, json!({"calling": {"after": "1970-01-01T00:00:05Z"}})),
        (
            ExecutionStep::Recovering(failure),
            json!({"recovering": {"stage": "s", "problem": {"code": "ERR_TIMEOUT", "message": "m"}}}),
        ),
        (ExecutionStep::Deleting, json!("deleting")),
    ];
    for (step, expected) in wire {
        assert_eq!(serde_json::to_value(&step).unwrap(), expected);
        assert_eq!(serde_json::from_value::<ExecutionStep>(expected).unwrap(), step);
    }
}

#[test]
fn a_stage_that_failed_is_handed_over_with_the_object_that_is_to_blame() {
    let (_, recovered) = shapes().swap_remove(3);
    let key = key_of(&json!({"apiVersion": "v1", "kind": "K", "metadata": {"name": "n"}})).unwrap();
    let event = ExecutionEvent::StageFailed { key: Some(key.clone()), problem: problem("m") };
    let failure = StageFailure { stage: "a".into(), key: Some(key), problem: problem("m") };
    let step = ExecutionStep::Stage(Position::default());
    assert_eq!(next(&recovered, &step, event), Continue(ExecutionStep::Recovering(failure)));
}

#[test]
fn a_call_that_is_to_come_later_than_time_goes_comes_at_its_end() {
    let far = Next::AgainIn { after: u64::MAX, checkpoint: vec![] };
    let calling = Continue(ExecutionStep::Calling { after: Some(Timestamp::MAX) });
    assert_eq!(after_stages(&far, at(1)), calling);
}

#[test]
fn inv_6_a_stage_that_begins_and_what_was_removed_are_recorded_and_no_other_step_is() {
    let key = json!({"apiVersion": "v1", "kind": "K", "name": "x"});
    let mut removes = stage_of("X", json!("accepted"));
    removes["removals"] = json!([{"key": key}]);
    let only = json!({"name": "r", "gate": "accepted", "removals": [{"key": key}]});
    let finish = json!({"finish": {"afterwards": [named("z")]}});
    let two = proposal(json!({"stages": [removes, only, named("c")], "next": finish}));
    let step = |stage: usize, step: StageStep| ExecutionStep::Stage(Position { stage, step });
    use StageStep::{Defining, Removing, Waiting, Writing};
    let recorded = |from: ExecutionStep, to: ExecutionStep| must_be_recorded(&two, &from, &to);
    assert!(recorded(step(0, Removing), step(0, Defining)), "it may be written again");
    assert!(!recorded(step(1, Removing), step(1, Defining)), "nothing is written again");
    assert!(!recorded(step(2, Removing), step(2, Defining)), "nothing was removed");
    assert!(!recorded(step(0, Defining), step(0, Writing)) && !recorded(step(0, Writing), step(0, Waiting)));
    assert!(recorded(step(0, Waiting), step(1, Removing)), "a stage begins");
    assert!(!recorded(step(2, Waiting), step(3, Removing)), "no stage is left");
    let first = ExecutionStep::Afterwards(Position::default());
    assert!(!recorded(ExecutionStep::Exporting, first.clone()), "exports may be written twice");
    assert!(!recorded(first.clone(), ExecutionStep::Tidying), "nothing ends with the job");
    let removes = json!({"name": "r", "gate": "accepted", "removals": [{"key": key}]});
    let mut ends = stage_of("X", json!("accepted"));
    ends["writes"][0]["owned"] = json!("ephemeral");
    let removing = proposal(json!({"stages": [ends], "next": {"finish": {"afterwards": [removes]}}}));
    assert!(
        must_be_recorded(&removing, &ExecutionStep::Exporting, &first),
        "an earlier gate may ask for what is removed"
    );
    assert!(must_be_recorded(&removing, &first, &ExecutionStep::Tidying), "a gate may ask for what ends with the job");
}

#[test]
fn steps_of_one_stage_share_its_time_and_no_others_do() {
    let step = |stage: usize| ExecutionStep::Stage(Position { stage, step: StageStep::Waiting });
    assert!(step(1).is_in_stage_of(&ExecutionStep::Stage(Position::stage(1))));
    assert!(!step(1).is_in_stage_of(&step(2)));
    assert!(!step(1).is_in_stage_of(&ExecutionStep::Afterwards(Position::stage(1))));
    assert!(!ExecutionStep::Pruning.is_in_stage_of(&ExecutionStep::Pruning));
}

#[track_caller]
fn check_stored(fields: Value, expected: bool) {
    assert_eq!(must_be_stored(&proposal(fields.clone())), expected, "{fields}");
}

#[test]
fn a_proposal_that_is_done_at_once_is_not_stored() {
    let usual = json!({"ready": [{"name": "r", "scope": "stage", "rule": "usual"}]});
    check_stored(json!({"stages": [stage_of("ControllerRevision", usual), stage_of("X", json!("accepted"))]}), false);
    check_stored(json!({"stages": [stage_of("X", json!("gone"))]}), false);
    check_stored(json!({"next": {"finish": {"exports": [{"key": "a", "source": {"value": 1}}]}}}), false);
    check_stored(json!({"stages": [stage_of("X", json!({"completed": []}))]}), false);
    let failing = Proposal { next: Next::Fail(problem("m")), ..proposal(json!({})) };
    assert!(!must_be_stored(&failing));
}

#[test]
fn a_proposal_that_may_wait_or_go_on_is_stored() {
    let key = json!({"apiVersion": "batch/v1", "kind": "Job", "namespace": "a", "name": "x"});
    let ready = |scope: Value, rule: Value| json!({"ready": [{"name": "r", "scope": scope, "rule": rule}]});
    check_stored(json!({"stages": [stage_of("Deployment", ready(json!("stage"), json!("usual")))]}), true);
    check_stored(json!({"stages": [stage_of("X", ready(json!({"keys": [key]}), json!("usual")))]}), true);
    check_stored(json!({"stages": [stage_of("X", ready(json!("stage"), json!({"requirements": []})))]}), true);
    check_stored(json!({"stages": [stage_of("X", json!({"completed": [key]}))]}), true);
    check_stored(json!({"stages": [{"name": "s", "removals": [{"key": key}], "gate": "accepted"}]}), true);
    check_stored(json!({"next": {"finish": {"afterwards": [stage_of("X", json!("accepted"))]}}}), true);
    check_stored(json!({"recover": [1]}), true);
    let again = Proposal { next: Next::ContinueWith(vec![]), ..proposal(json!({})) };
    assert!(must_be_stored(&again));
}

#[test]
fn all_writes_are_found_with_their_place() {
    let mut on_host = stage_of("B", json!("accepted"));
    on_host["writes"][0]["on"] = json!("host");
    let proposal = proposal(json!({"stages": [stage_of("A", json!("accepted"))],
        "next": {"finish": {"afterwards": [on_host]}}}));
    let found: Vec<String> =
        writes(&proposal).map(|(located, _)| format!("{} on {}", located.key, located.on)).collect();
    assert_eq!(found, ["A a/x on the target cluster", "B a/x on the host cluster"]);
}
