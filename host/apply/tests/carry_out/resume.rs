//! Jobs that are gone on with from what the status says: nothing that is behind them is done again.

use orangery_apply::{ItemState, Outcome};
use orangery_core::step::{Halt, Step};
use orangery_proposal::{
    Proposal, StageFailure,
    executor::{ExecutionStep, Position, StageStep},
    item::Progress,
};
use serde_json::{Value, json};

use crate::world::{World, config_map, key, proposal, stage, write};

/// Two stages, one that removes, an export, and a stage afterwards with an object that lives for the job only.
fn whole() -> Proposal {
    let removes = json!({"name": "second", "gate": "accepted", "removals": [{"key": key("old")}],
        "writes": [write("b", "1")]});
    let hook = json!({"object": config_map("hook", "1"), "how": "replace", "owned": "ephemeral"});
    proposal(json!({"stages": [stage(&[write("a", "1")]), removes], "next": {"finish": {
        "exports": [{"key": "k", "source": {"value": "exported"}}], "afterwards": [stage(&[hook])]}}}))
}

/// What a job does that is gone on with from a step.
async fn resumed(world: &mut World, step: ExecutionStep) -> (Step<Outcome>, Vec<String>) {
    let plan = whole();
    world.store(&plan);
    let first = world.status.state.clone();
    let mut state = ItemState { progress: Some(progress(step)), ..first };
    for name in ["a", "b", "hook"] {
        let located = world.located(name);
        state.inventory.plan(located, &serde_json::from_value(write(name, "1")).unwrap());
    }
    if let Some(entry) = state.inventory.0.get_mut(&world.located("hook")) {
        entry.policy = orangery_proposal::inventory::InventoryPolicy::Ephemeral;
    }
    world.status.state = state;
    world.traffic.take();
    let result = world.reconcile("j", &plan).await;
    (result, world.traffic.take())
}

fn progress(step: ExecutionStep) -> Progress {
    let since = jiff::Timestamp::UNIX_EPOCH;
    Progress { job: "j".into(), step, since, planned: Default::default(), recovers_until: None }
}

fn in_stage(stage: usize, step: StageStep) -> ExecutionStep {
    ExecutionStep::Stage(Position { stage, step })
}

#[tokio::test]
async fn inv_6_each_step_does_what_is_before_it_and_nothing_that_is_behind() {
    let last = ["POST default/configmaps", "record", "GET configmaps/hook", "DELETE configmaps/hook", "record"];
    let exports: Vec<&str> = [&["export"][..], &last[..]].concat();
    let second: Vec<&str> = [&["POST default/configmaps"][..], &exports[..]].concat();
    let removing: Vec<&str> = [&["GET configmaps/old", "record"][..], &second[..]].concat();
    let gate: Vec<&str> = [&["record"][..], &removing[..]].concat();
    let first: Vec<&str> = [&["POST default/configmaps"][..], &gate[..]].concat();
    for (step, expected) in [
        (in_stage(0, StageStep::Removing), first.clone()),
        (in_stage(0, StageStep::Defining), first.clone()),
        (in_stage(0, StageStep::Writing), first),
        (in_stage(0, StageStep::Waiting), gate),
        (in_stage(1, StageStep::Removing), removing),
        (in_stage(1, StageStep::Defining), second.clone()),
        (in_stage(1, StageStep::Writing), second),
        (in_stage(1, StageStep::Waiting), exports.clone()),
        (in_stage(2, StageStep::Removing), exports.clone()),
        (ExecutionStep::Pruning, exports.clone()),
        (ExecutionStep::Exporting, exports),
        (ExecutionStep::Afterwards(Position::default()), last.to_vec()),
        (ExecutionStep::Afterwards(Position::stage(1)), vec!["record", "GET configmaps/hook", "record"]),
        (ExecutionStep::Tidying, vec!["GET configmaps/hook", "record"]),
    ] {
        let mut world = World::new().await;
        let (result, traffic) = resumed(&mut world, step.clone()).await;
        assert_eq!(
            (result, traffic),
            (Ok(Outcome::Finished), expected.into_iter().map(str::to_owned).collect()),
            "{step:?}"
        );
        assert_eq!(world.status.state.progress, None, "{step:?}");
    }
}

#[tokio::test]
async fn inv_6_the_answer_of_a_next_call_is_begun_and_what_was_planned_before_is_not_forgotten() {
    let failure: Value = json!({"stage": "s", "problem": {"code": "ERR_TIMEOUT", "message": "m"}});
    let failure: StageFailure = serde_json::from_value(failure).unwrap();
    for step in [ExecutionStep::Calling { after: None }, ExecutionStep::Recovering(failure)] {
        let mut world = World::new().await;
        let planned = world.located("planned");
        world.send("POST", "/api/v1/namespaces/default/configmaps", &config_map("planned", "1")).await;
        world.status.state.inventory.plan(planned.clone(), &serde_json::from_value(write("planned", "1")).unwrap());
        world.status.state.progress = Some(Progress { planned: [planned].into(), ..progress(step.clone()) });
        let answer = proposal(json!({"stages": [stage(&[write("a", "2")])]}));
        assert_eq!(world.reconcile("j", &answer).await, Ok(Outcome::Finished), "{step:?}");
        assert_eq!(world.config_maps().await.into_keys().collect::<Vec<_>>(), ["a", "planned"], "{step:?}");
    }
}

#[tokio::test]
async fn inv_6_the_answer_of_a_next_call_is_stored_before_it_is_carried_out() {
    let mut world = World::new().await;
    world.status.state.progress = Some(progress(ExecutionStep::Calling { after: None }));
    let answer = proposal(json!({"stages": [stage(&[write("a", "1")])]}));
    world.reconcile("j", &answer).await.unwrap();
    assert_eq!(world.traffic.take(), ["persist", "record", "POST default/configmaps", "record"]);
}

#[tokio::test]
async fn c_24_a_job_that_is_superseded_on_its_way_writes_no_more_and_leaves_its_state() {
    let mut world = World::new().await;
    let plan = proposal(json!({"stages": [stage(&[write("a", "1")]), stage(&[write("b", "1")])]}));
    // It is asked before the record, before a is prepared and before a is written.
    world.allow(3);
    let result = world.reconcile("j", &plan).await;
    assert!(matches!(&result, Err(Halt::Retry(failure)) if failure.reason == "Superseded"), "{result:?}");
    assert_eq!(world.config_maps().await.into_keys().collect::<Vec<_>>(), ["a"]);
    assert_eq!(world.inventory(), ["a", "b"], "what may have been written is recorded");
}
