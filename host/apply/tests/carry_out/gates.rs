//! Gates, exports and everything else that waits: woken by watches, resumed from the status.

use std::time::Duration;

use orangery_apply::Outcome;
use orangery_cluster::Observed;
use orangery_core::step::Halt;
use orangery_proposal::{
    Proposal,
    deployer::ApiResource,
    executor::{ExecutionStep, Position, StageStep},
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
    assert_eq!(world.traffic.take(), ["persist", "record", "POST default/configmaps", "record"]);
}

#[tokio::test]
async fn c_201_an_answer_for_which_there_is_no_room_is_not_kept_and_a_watch_is_asked() {
    let mut world = World::new().await;
    world.restart_with(2 << 20);
    let rule = json!({"requirements": [{"path": ".metadata.name", "operator": "==", "values": ["a"]}]});
    let gate = json!({"ready": [{"name": "mine", "scope": {"keys": [key("a")]}, "rule": rule}]});
    let plan =
        |bytes| proposal(json!({"stages": [{"name": "s", "writes": [write("a", &"x".repeat(bytes))], "gate": gate}]}));
    assert_eq!(world.run("j", &plan(200 << 10)).await, Outcome::Finished);
    let waiting = waits(&world.reconcile("k", &plan(300 << 10)).await);
    assert_eq!(waiting, "waiting for ConfigMap default/a (not seen yet) to become ready");
    world.wait().await;
    assert_eq!(world.run("k", &plan(300 << 10)).await, Outcome::Finished);
}

#[tokio::test]
async fn a_gate_is_woken_by_a_change_and_survives_a_restart() {
    let mut world = World::new().await;
    let plan = gated(ready_when_data_is("2"));
    // The first look only starts the watch, and says the same as those that have it.
    for _ in 0..2 {
        let reconcile = world.reconcile("j", &plan).await;
        assert_eq!(
            waits(&reconcile),
            "waiting for ConfigMap default/a (.data.k == \"2\" does not hold) to become ready"
        );
        world.wait().await;
        world.send("PATCH", A, &json!({"metadata": {"labels": {"other": "change"}}})).await;
    }
    let progress = world.status.state.progress.clone().unwrap();
    assert_eq!(progress.step, ExecutionStep::Stage(Position::stage(0).step(StageStep::Waiting)));
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
    let mut reconcile = world.reconcile("j", &plan).await;
    while !waits(&reconcile).contains("is not yet observed") && !waits(&reconcile).contains("of 1") {
        world.wait().await;
        reconcile = world.reconcile("j", &plan).await;
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
    let mut reconcile = world.reconcile("j", &plan).await;
    while waits(&reconcile) != "waiting for Job default/x to finish" {
        world.wait().await;
        reconcile = world.reconcile("j", &plan).await;
    }
    let failed =
        json!({"status": {"conditions": [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}]}});
    world.send("PATCH", "/apis/batch/v1/namespaces/default/jobs/x/status", &failed).await;
    // What was just written is known to exist before the watch tells of it, so more than one event may come.
    let failure = loop {
        world.wait().await;
        match world.reconcile("j", &plan).await {
            Err(Halt::Stall(failure)) => break failure,
            reconcile => assert_eq!(waits(&reconcile), "waiting for Job default/x to finish"),
        }
    };
    assert_eq!(failure.message, "Job default/x has failed: BackoffLimitExceeded");
}

fn hook() -> Proposal {
    let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "x", "namespace": "default"},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}});
    let completed = json!({"apiVersion": "batch/v1", "kind": "Job", "namespace": "default", "name": "x"});
    proposal(json!({"stages": [{"name": "hook", "gate": {"completed": [completed]},
        "writes": [{"object": job, "how": "replace", "owned": "ephemeral"}]}]}))
}

const HOOK: &str = "/apis/batch/v1/namespaces/default/jobs/x";

/// The answer of a job whose hook ended like this, if at all, and was deleted, before the job looked again.
async fn hook_deleted(condition: Option<&str>) -> Result<Outcome, Halt> {
    let mut world = World::new().await;
    let plan = hook();
    waits(&world.reconcile("j", &plan).await);
    world.until_observed(&job_kind(), "x", |observed| matches!(observed, Observed::Present(_))).await;
    assert_eq!(waits(&world.reconcile("j", &plan).await), "waiting for Job default/x to finish");
    if let Some(condition) = condition {
        let status = json!({"status": {"conditions": [{"type": condition, "status": "True", "reason": "Because"}]}});
        world.send("PATCH", &format!("{HOOK}/status"), &status).await;
    }
    world.send("DELETE", HOOK, &json!({"propagationPolicy": "Background"})).await;
    world.until_observed(&job_kind(), "x", |observed| matches!(observed, Observed::Gone(_))).await;
    world.reconcile("j", &plan).await
}

fn job_kind() -> ApiResource {
    ApiResource { api_version: "batch/v1".into(), kind: "Job".into(), plural: "jobs".to_owned(), namespaced: true }
}

const UNSEEN: &str = "Job default/x was deleted before its end was seen, by somebody else or because its \
    ttlSecondsAfterFinished was over: whether it has done its work is not known; look for that, raise \
    ttlSecondsAfterFinished if it has one, and ask for another job, which makes it anew";

#[tokio::test]
async fn c_107_a_hook_that_vanishes_counts_as_it_was_seen_last() {
    let completed = hook_deleted(Some("Complete")).await;
    assert!(matches!(completed, Ok(Outcome::Finished)), "{completed:?}");
    let failed = stalls(hook_deleted(Some("Failed")).await);
    assert_eq!(failed, ("RunFailed".to_owned(), "Job default/x has failed: Because".to_owned()));
    assert_eq!(stalls(hook_deleted(None).await), ("Vanished".to_owned(), UNSEEN.to_owned()));
}

#[tokio::test]
async fn c_107_a_hook_that_vanishes_while_no_operator_runs_is_not_waited_for() {
    let mut world = World::new().await;
    let plan = hook();
    waits(&world.reconcile("j", &plan).await);
    world.restart();
    world.send("DELETE", HOOK, &json!({"propagationPolicy": "Background"})).await;
    waits(&world.reconcile("j", &plan).await);
    world.until_observed(&job_kind(), "x", |observed| matches!(observed, Observed::Absent)).await;
    assert_eq!(stalls(world.reconcile("j", &plan).await), ("Vanished".to_owned(), UNSEEN.to_owned()));
}

#[tokio::test]
async fn c_107_what_was_written_and_vanishes_is_not_waited_for_until_it_is_ready_or_exported() {
    let vanished = "ConfigMap default/a was deleted by somebody else while this job waited for it; find out who deletes it, and \
        ask for another job, which writes it anew";
    let rule = json!({"key": "e", "source": {"path": {"key": key("a"), "path": ".data.later"}}});
    let exporting = proposal(json!({"stages": [stage(&[write("a", "1")])], "next": {"finish": {"exports": [rule]}}}));
    let maps = ApiResource {
        api_version: "v1".into(),
        kind: "ConfigMap".into(),
        plural: "configmaps".to_owned(),
        namespaced: true,
    };
    for plan in [gated(ready_when_data_is("2")), exporting] {
        let mut world = World::new().await;
        waits(&world.reconcile("j", &plan).await);
        world.until_observed(&maps, "a", |observed| matches!(observed, Observed::Present(_))).await;
        world.send("DELETE", A, &json!({})).await;
        world.until_observed(&maps, "a", |observed| matches!(observed, Observed::Gone(_))).await;
        assert_eq!(stalls(world.reconcile("j", &plan).await), ("Vanished".to_owned(), vanished.to_owned()));
    }
}

#[tokio::test]
async fn a_selection_is_ready_when_something_matches_and_all_of_it_is_ready() {
    let mut world = World::new().await;
    let gate = json!({"ready": [{"name": "mine", "rule": {"requirements": [{"path": ".data.k", "operator": "exists"}]},
        "scope": {"matching": {"apiVersion": "v1", "kind": "ConfigMap", "labels": "app=x"}}}]});
    let plan = gated(gate);
    let mut reconcile = world.reconcile("j", &plan).await;
    while waits(&reconcile) != "waiting for ConfigMap with the labels app=x to exist" {
        world.wait().await;
        reconcile = world.reconcile("j", &plan).await;
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
    let Err(Halt::Wait(wait)) = world.reconcile("j", &plan).await else { panic!() };
    assert_eq!(wait.again_in(), Some(Duration::from_secs(5)));
    world.wait().await;
    world.pass(Duration::from_secs(5));
    let Err(Halt::Stall(failure)) = world.reconcile("j", &plan).await else { panic!() };
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
    waits(&world.reconcile("j", &plan).await);
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
    assert_eq!(waits(&world.reconcile("j", &plan).await), "waiting for ConfigMap default/hook to be gone");
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
    let progress = world.status.state.progress.as_ref().unwrap();
    let due = jiff::Timestamp::from_second(5).unwrap();
    assert_eq!((progress.step.clone(), progress.planned.len()), (ExecutionStep::Calling { after: Some(due) }, 1));
}

#[tokio::test]
async fn an_object_on_its_way_out_is_created_anew_when_it_is_gone() {
    let mut world = World::new().await;
    world.run("j", &proposal(json!({"stages": [stage(&[write("a", "1")])]}))).await;
    world.send("PATCH", A, &json!({"metadata": {"finalizers": ["example.org/hold"]}})).await;
    world.send("DELETE", A, &json!({})).await;
    let plan = proposal(json!({"stages": [stage(&[write("a", "2")])]}));
    assert_eq!(waits(&world.reconcile("k", &plan).await), "waiting for ConfigMap default/a to be gone");
    world.send("PATCH", A, &json!({"metadata": {"finalizers": null}})).await;
    assert_eq!(world.run("k", &plan).await, Outcome::Finished);
    assert_eq!(world.config_maps().await["a"], json!({"k": "2"}));
}

#[track_caller]
fn stalls(result: Result<Outcome, Halt>) -> (String, String) {
    match result {
        Err(Halt::Stall(failure)) => (failure.reason, failure.message),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn exports_that_can_never_be_had_fail_the_job() {
    let mut world = World::new().await;
    let exports =
        |rule: Value| proposal(json!({"stages": [stage(&[write("a", "1")])], "next": {"finish": {"exports": [rule]}}}));
    let at = |path: &str| json!({"key": "e", "source": {"path": {"key": key("a"), "path": path}}});
    let (reason, _) = stalls(world.reconcile("j", &exports(at(".data["))).await);
    assert_eq!(reason, "InvalidPath");
    let root = json!({"key": "", "source": {"value": "no object"}});
    let message = "an export without a key must be an object, because it becomes all exports of the item";
    assert_eq!(stalls(world.reconcile("k", &exports(root)).await), ("InvalidExport".to_owned(), message.to_owned()));
    let then = json!({"apiVersion": "v1", "kind": "ConfigMap", "path": ".data.k"});
    let follows = json!({"key": "e", "source": {"path": {"key": key("a"), "path": ".data.k", "then": then}}});
    let Err(Halt::Retry(failure)) = world.reconcile("l", &exports(follows)).await else { panic!() };
    assert_eq!(failure.message, "the export e follows .data.k of ConfigMap default/a, which is no object with a name");
    assert_eq!(world.status.exports, None);
}

#[tokio::test]
async fn c_287_limits_state_exports_of_one_item_share_their_memory() {
    let mut world = World::new().await;
    let long = "x".repeat(700_000);
    let exports = |rules: usize| {
        let rule = |number: usize| json!({"key": format!("e{number}"), "source": {"path": {"key": key("a"), "path": ".data.k"}}});
        let rules: Vec<Value> = (0..rules).map(rule).collect();
        proposal(json!({"stages": [stage(&[write("a", &long)])], "next": {"finish": {"exports": rules}}}))
    };
    assert_eq!(world.run("j", &exports(47)).await, Outcome::Finished, "47 of them take less than 32 MiB");
    let message = "the exports take more than the 33554432 bytes of memory that those of one item may; export less, or in several items";
    assert_eq!(stalls(world.reconcile("k", &exports(48)).await), ("TooLarge".to_owned(), message.to_owned()));
    let values = json!({"key": "e", "source": {"value": vec![json!({"": 0}); 50_000]}});
    let values = proposal(json!({"next": {"finish": {"exports": [values]}}}));
    assert_eq!(stalls(world.reconcile("l", &values).await), ("TooLarge".to_owned(), message.to_owned()));
}

#[tokio::test]
async fn c_297_what_exports_name_beyond_their_steps_is_not_asked_for() {
    let mut world = World::new().await;
    let mut wide = config_map("a", "1");
    wide["data"] = (0..1_000).map(|number| (format!("k{number}"), json!("v"))).collect();
    let rule = |name: &str, path: &str| json!({"key": "", "source": {"path": {"key": key(name), "path": path}}});
    // Each may take some ten thousand steps over the object, and takes few.
    let long = vec![rule("a", "..x..x..x..x"); 400];
    let rules: Vec<Value> = long.into_iter().chain([rule("late", ".data.k")]).collect();
    let write = json!({"object": wide, "how": "replace"});
    let plan = proposal(json!({"stages": [stage(&[write])], "next": {"finish": {"exports": rules}}}));
    waits(&world.reconcile("j", &plan).await);
    let asked = world.traffic.take();
    assert!(asked.iter().any(|line| line.contains("configmaps/a")), "{asked:?}");
    assert!(!asked.iter().any(|line| line.contains("configmaps/late")), "{asked:?}");
}

#[tokio::test]
async fn exports_wait_for_objects_that_nobody_has_made_yet() {
    let mut world = World::new().await;
    let rule = |name: &str| json!({"key": name, "source": {"path": {"key": key(name), "path": ".data.k"}}});
    let plan = proposal(json!({"next": {"finish": {"exports": [rule("late"), rule("later")]}}}));
    let both = "waiting for ConfigMap default/late to exist, ConfigMap default/later to exist";
    assert_eq!(waits(&world.reconcile("j", &plan).await), both, "one that fails ends nothing");
    for name in ["late", "later"] {
        world.send("POST", "/api/v1/namespaces/default/configmaps", &config_map(name, "1")).await;
    }
    assert_eq!(world.run("j", &plan).await, Outcome::Finished);
    assert_eq!(world.status.exports, Some(json!({"late": "1", "later": "1"})));
}

#[tokio::test]
async fn a_check_has_a_time_of_its_own_and_says_its_name() {
    let mut world = World::new().await;
    let mut gate = ready_when_data_is("2");
    gate["ready"][0]["timeout"] = json!(2000);
    let plan = gated(gate);
    let Err(Halt::Wait(wait)) = world.reconcile("j", &plan).await else { panic!() };
    assert_eq!(wait.again_in(), Some(Duration::from_secs(2)));
    world.wait().await;
    world.pass(Duration::from_secs(2));
    let (reason, message) = stalls(world.reconcile("j", &plan).await);
    assert_eq!(reason, "ProgressingTimeout");
    assert!(message.starts_with("check mine did not hold within 2 s: waiting for ConfigMap default/a"), "{message}");
}

#[tokio::test]
async fn a_gate_with_a_check_that_cannot_be_used_fails_the_stage() {
    let mut world = World::new().await;
    let expression =
        json!({"ready": [{"name": "mine", "scope": {"keys": [key("a")]}, "rule": {"expression": "'text'"}}]});
    let (reason, message) = stalls(world.reconcile("j", &gated(expression)).await);
    assert_eq!(reason, "InvalidReadinessCheck");
    assert!(message.starts_with("the expression cannot be used: "), "{message}");
}

#[tokio::test]
async fn c_278_an_expression_is_judged_whenever_the_object_changes() {
    let mut world = World::new().await;
    let rule = json!({"expression": "has(object.data) && object.data.k == '2'"});
    let plan = gated(json!({"ready": [{"name": "mine", "scope": {"keys": [key("a")]}, "rule": rule}]}));
    let waiting = "waiting for ConfigMap default/a (its expression does not hold) to become ready";
    assert_eq!(waits(&world.reconcile("j", &plan).await), waiting);
    world.wait().await;
    world.send("PATCH", A, &json!({"data": {"k": "2"}})).await;
    assert_eq!(world.run("j", &plan).await, Outcome::Finished);
}

#[tokio::test]
async fn objects_of_others_are_not_waited_for_with_the_stage() {
    let mut world = World::new().await;
    world.send("POST", "/api/v1/namespaces/default/configmaps", &config_map("theirs", "1")).await;
    let theirs = json!({"object": config_map("theirs", "2"), "how": "create"});
    let rule = json!({"requirements": [{"path": ".data.k", "operator": "==", "values": ["2"]}]});
    let gate = json!({"ready": [{"name": "mine", "scope": "stage", "rule": rule}]});
    let plan = proposal(json!({"stages": [{"name": "s", "writes": [write("a", "2"), theirs], "gate": gate}]}));
    assert_eq!(world.run("j", &plan).await, Outcome::Finished);
    assert_eq!(world.config_maps().await["theirs"], json!({"k": "1"}));
}

#[tokio::test]
async fn a_job_of_another_is_waited_for_until_it_exists_and_has_finished() {
    let mut world = World::new().await;
    let completed = json!({"apiVersion": "batch/v1", "kind": "Job", "namespace": "default", "name": "theirs"});
    let plan = gated(json!({"completed": [completed]}));
    let mut reconcile = world.reconcile("j", &plan).await;
    assert_eq!(waits(&reconcile), "waiting for Job default/theirs to exist");
    let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "theirs", "namespace": "default"},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}});
    world.send("POST", "/apis/batch/v1/namespaces/default/jobs", &job).await;
    while waits(&reconcile) != "waiting for Job default/theirs to finish" {
        world.wait().await;
        reconcile = world.reconcile("j", &plan).await;
    }
    let done = json!({"status": {"conditions": [{"type": "Complete", "status": "True"}]}});
    world.send("PATCH", "/apis/batch/v1/namespaces/default/jobs/theirs/status", &done).await;
    assert_eq!(world.run("j", &plan).await, Outcome::Finished);
}

#[tokio::test]
async fn c_08_a_failure_that_may_pass_is_one_for_good_when_the_time_of_the_stage_is_up() {
    let mut world = World::new().await;
    let lost = json!({"object": {"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "bad", "namespace": "absent"}}, "how": "replace"});
    let plan = proposal(
        json!({"recover": [1], "stages": [{"name": "s", "writes": [lost], "gate": "accepted", "timeout": 5000}]}),
    );
    assert!(matches!(world.reconcile("j", &plan).await, Err(Halt::Retry(_))));
    world.pass(Duration::from_secs(5));
    // The state of a failed call is the caller's to write: the record before the write is what is left of it.
    assert_eq!(world.run("j", &plan).await, Outcome::Call);
    let Some(ExecutionStep::Recovering(failure)) = world.status.state.progress.clone().map(|progress| progress.step)
    else {
        panic!()
    };
    assert!(failure.problem.message.starts_with("stage s did not hold within 5 s: "), "{failure:?}");
}
