//! Gates, exports and everything else that waits: woken by watches, resumed from the status.

use std::time::Duration;

use orangery_apply::Outcome;
use orangery_core::step::Halt;
use orangery_proposal::{
    Proposal,
    item::{At, Position, StageStep},
};
use serde_json::{Value, json};

use crate::world::{World, config_map, key, proposal, stage, write};

const A: &str = "/api/v1/namespaces/default/configmaps/a";

fn ready_when_data_is(value: &str) -> Value {
    json!({"ready": [{"name": "mine", "scope": {"keys": [key("a")]},
        "rule": {"requirements": [{"path": ".data.k", "operator": "==", "values": [value]}]}}]})
}

fn gated(gate: Value) -> Proposal {
    proposal(json!({"stages": [{"name": "s", "writes": [write("a", "1")], "gate": gate}]}))
}

#[track_caller]
fn waits(result: &Result<Outcome, Halt>) -> String {
    match result {
        Err(Halt::Wait(wait)) => wait.to_string(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_gate_that_holds_at_once_reads_nothing() {
    let mut world = World::new().await;
    assert_eq!(world.run("j", &gated(ready_when_data_is("1"))).await, Outcome::Finished);
    assert_eq!(world.traffic.take(), ["keep", "record", "POST default/configmaps", "record"]);
}

#[tokio::test]
async fn a_gate_is_woken_by_a_change_and_survives_a_restart() {
    let mut world = World::new().await;
    let plan = gated(ready_when_data_is("2"));
    // The first look only starts the watch, and says the same as those that have it.
    for _ in 0..2 {
        let look = world.look("j", &plan).await;
        assert_eq!(waits(&look), "waiting for ConfigMap default/a (.data.k == \"2\" does not hold) to become ready");
        world.wait().await;
        world.send("PATCH", A, &json!({"metadata": {"labels": {"other": "change"}}})).await;
    }
    let progress = world.status.page.progress.clone().unwrap();
    assert_eq!(progress.at, At::Stage(Position::stage(0).step(StageStep::Waiting)));
    world.restart();
    world.traffic.take();
    world.send("PATCH", A, &json!({"data": {"k": "2"}})).await;
    assert_eq!(world.run("j", &proposal(json!({}))).await, Outcome::Finished);
    let writes: Vec<String> = world.traffic.take().into_iter().filter(|line| !line.starts_with("GET")).collect();
    assert!(writes.iter().all(|line| line == "record"), "nothing is written again: {writes:?}");
}

#[tokio::test]
async fn the_usual_rule_waits_for_a_deployment_and_not_for_a_config_map() {
    let mut world = World::new().await;
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "namespace": "default"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "d"}},
            "template": {"metadata": {"labels": {"app": "d"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}});
    let usual = json!({"ready": [{"name": "default", "scope": "stage", "rule": "usual"}]});
    let plan = proposal(json!({"stages": [{"name": "s", "gate": usual,
        "writes": [write("a", "1"), {"object": deployment, "how": "replace"}]}]}));
    let mut look = world.look("j", &plan).await;
    while !waits(&look).contains("is not yet observed") && !waits(&look).contains("of 1") {
        world.wait().await;
        look = world.look("j", &plan).await;
    }
    let status =
        json!({"status": {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1}});
    world.send("PATCH", "/apis/apps/v1/namespaces/default/deployments/d/status", &status).await;
    assert_eq!(world.run("j", &plan).await, Outcome::Finished);
}

#[tokio::test]
async fn a_failed_job_fails_its_stage() {
    let mut world = World::new().await;
    let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "x", "namespace": "default"},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}});
    let completed = json!({"apiVersion": "batch/v1", "kind": "Job", "namespace": "default", "name": "x"});
    let plan = proposal(json!({"stages": [{"name": "hook", "gate": {"completed": [completed]},
        "writes": [{"object": job, "how": "replace", "owned": "ephemeral"}]}]}));
    let mut look = world.look("j", &plan).await;
    while waits(&look) != "waiting for Job default/x to finish" {
        world.wait().await;
        look = world.look("j", &plan).await;
    }
    let failed =
        json!({"status": {"conditions": [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}]}});
    world.send("PATCH", "/apis/batch/v1/namespaces/default/jobs/x/status", &failed).await;
    // What was just written is known to exist before the watch tells of it, so more than one event may come.
    let failure = loop {
        world.wait().await;
        match world.look("j", &plan).await {
            Err(Halt::Stall(failure)) => break failure,
            look => assert_eq!(waits(&look), "waiting for Job default/x to finish"),
        }
    };
    assert_eq!(failure.message, "Job default/x has failed: BackoffLimitExceeded");
}

#[tokio::test]
async fn a_selection_is_ready_when_something_matches_and_all_of_it_is_ready() {
    let mut world = World::new().await;
    let gate = json!({"ready": [{"name": "mine", "rule": {"requirements": [{"path": ".data.k", "operator": "exists"}]},
        "scope": {"matching": {"apiVersion": "v1", "kind": "ConfigMap", "labels": "app=x"}}}]});
    let plan = gated(gate);
    let mut look = world.look("j", &plan).await;
    while waits(&look) != "waiting for ConfigMap with the labels app=x to exist" {
        world.wait().await;
        look = world.look("j", &plan).await;
    }
    let mut other = config_map("other", "1");
    other["metadata"]["labels"] = json!({"app": "x"});
    world.send("POST", "/api/v1/namespaces/default/configmaps", &other).await;
    assert_eq!(world.run("j", &plan).await, Outcome::Finished);
}

#[tokio::test]
async fn a_stage_that_takes_too_long_fails() {
    let mut world = World::new().await;
    let plan = proposal(
        json!({"stages": [{"name": "s", "writes": [write("a", "1")], "gate": ready_when_data_is("2"), "timeout": 5000}]}),
    );
    let Err(Halt::Wait(wait)) = world.look("j", &plan).await else { panic!() };
    assert_eq!(wait.again_in(), Some(Duration::from_secs(5)));
    world.wait().await;
    world.pass(Duration::from_secs(5));
    let Err(Halt::Stall(failure)) = world.look("j", &plan).await else { panic!() };
    assert!(
        failure.message.starts_with("stage s did not hold within 5 s: waiting for ConfigMap default/a"),
        "{failure}"
    );
}

#[tokio::test]
async fn exports_wait_for_their_values_and_follow_references() {
    let mut world = World::new().await;
    let then = json!({"apiVersion": "v1", "kind": "ConfigMap", "path": ".data.k"});
    let plan = proposal(json!({"stages": [stage(&[write("a", "1")])], "next": {"finish": {"exports": [
        {"key": "x.fixed", "source": {"value": [1]}},
        {"key": "x.read", "source": {"path": {"key": key("a"), "path": ".data.later"}}},
        {"key": "followed", "source": {"path": {"key": key("a"), "path": ".metadata", "then": then}}},
    ]}}}));
    waits(&world.look("j", &plan).await);
    world.send("PATCH", A, &json!({"data": {"later": "now"}})).await;
    assert_eq!(world.run("j", &plan).await, Outcome::Finished);
    assert_eq!(world.status.exports, Some(json!({"x": {"fixed": [1], "read": "now"}, "followed": "1"})));
}

#[tokio::test]
async fn what_follows_the_exports_is_done_after_them() {
    let mut world = World::new().await;
    let patch = json!({"object": config_map("a", "patched"), "how": "overlay"});
    let plan = proposal(json!({"stages": [stage(&[write("a", "1")])], "next": {"finish": {
        "exports": [{"key": "k", "source": {"path": {"key": key("a"), "path": ".data.k"}}}],
        "afterwards": [stage(&[patch])]}}}));
    assert_eq!(world.run("j", &plan).await, Outcome::Finished);
    assert_eq!(world.status.exports, Some(json!({"k": "1"})));
    assert_eq!(world.config_maps().await["a"], json!({"k": "patched"}));
}

#[tokio::test]
async fn removed_objects_are_gone_before_they_are_written_again_and_ephemeral_ones_at_the_end() {
    let mut world = World::new().await;
    let mut blocked = config_map("hook", "old");
    blocked["metadata"]["finalizers"] = json!(["example.org/hold"]);
    world.send("POST", "/api/v1/namespaces/default/configmaps", &blocked).await;
    let plan = proposal(json!({"stages": [{"name": "hook", "gate": "accepted", "removals": [{"key": key("hook")}],
        "writes": [{"object": config_map("hook", "new"), "how": "replace", "owned": "ephemeral"}]}, stage(&[write("a", "1")])]}));
    assert_eq!(waits(&world.look("j", &plan).await), "waiting for ConfigMap default/hook to be gone");
    world.send("PATCH", "/api/v1/namespaces/default/configmaps/hook", &json!({"metadata": {"finalizers": null}})).await;
    assert_eq!(world.run("j", &plan).await, Outcome::Finished);
    assert_eq!(world.config_maps().await.keys().collect::<Vec<_>>(), ["a"]);
    assert_eq!(world.inventory(), ["a"]);
}

#[tokio::test]
async fn a_proposal_that_goes_on_calls_again_when_its_time_has_come() {
    let mut world = World::new().await;
    let plan = proposal(json!({"stages": [stage(&[write("a", "1")])]}));
    let again = Proposal {
        next: serde_json::from_value(json!({"againIn": {"after": 5000, "checkpoint": [1]}})).unwrap(),
        ..plan
    };
    assert_eq!(world.run("j", &again).await, Outcome::Call);
    let progress = world.status.page.progress.as_ref().unwrap();
    let due = jiff::Timestamp::from_second(5).unwrap();
    assert_eq!((progress.at.clone(), progress.planned.len()), (At::Calling { after: Some(due) }, 1));
}

#[tokio::test]
async fn an_object_on_its_way_out_is_created_anew_when_it_is_gone() {
    let mut world = World::new().await;
    world.run("j", &proposal(json!({"stages": [stage(&[write("a", "1")])]}))).await;
    world.send("PATCH", A, &json!({"metadata": {"finalizers": ["example.org/hold"]}})).await;
    world.send("DELETE", A, &json!({})).await;
    let plan = proposal(json!({"stages": [stage(&[write("a", "2")])]}));
    assert_eq!(waits(&world.look("k", &plan).await), "waiting for ConfigMap default/a to be gone");
    world.send("PATCH", A, &json!({"metadata": {"finalizers": null}})).await;
    assert_eq!(world.run("k", &plan).await, Outcome::Finished);
    assert_eq!(world.config_maps().await["a"], json!({"k": "2"}));
}
