//! What starts the next job of a root, and what does not: a spec that changes, requests, schedules, those that it imports from.

use orangery_policy::Profile;
use serde_json::{Value, json};

use crate::{
    objects::{both, data, data_import, data_object, deploying, exporting, installation, sub, with},
    world::{Setup, World, job_ended, message, name_of},
};

const CHANGED: &str =
    "its spec changed while the job was running; reconcile the root installation to take the change into account";

/// A root with an item of its name, which asks for no job; `spec` is laid over it.
fn quiet(name: &str, spec: &Value) -> Value {
    let mut root = with(installation(name, &deploying(&[(name, &[])])), spec);
    root["metadata"]["annotations"] = json!({});
    root
}

/// The same with the annotation of Landscaper.
fn reconciled_if_changed(name: &str) -> Value {
    let mut root = quiet(name, &json!({}));
    root["metadata"]["annotations"] = json!({"landscaper.gardener.cloud/reconcile-if-changed": "true"});
    root
}

/// Waits until an item has another job than this one, and answers it.
async fn next_job(world: &World, item: &str, before: &Value) -> Value {
    world.item(item, |item| !job_ended(item) && item["status"]["jobID"] != before["status"]["jobID"]).await
}

/// Runs a job of another root: what the controllers would still have done for others is done then.
async fn wait_until_idle(world: &World, name: &str) {
    world.apply(&installation(name, &json!({}))).await;
    world.ended("Installation", name, "Succeeded").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_06_c_05_where_the_spec_is_followed_a_change_during_a_job_starts_the_next_one_and_only_that() {
    let world = World::new().await;
    let roots = [
        ("on-spec-change", quiet("on-spec-change", &json!({"reconcilePolicy": "OnSpecChange"}))),
        ("on-change", quiet("on-change", &json!({"reconcilePolicy": "OnChange"}))),
        ("if-changed", reconciled_if_changed("if-changed")),
    ];
    for (name, root) in roots {
        world.apply(&root).await;
        let first = world.triggered(name).await;
        // That the job has begun is written where it rests.
        world.says("Installation", name, "to finish").await;
        world.patch("Installation", name, &json!({"spec": {"maxParallel": 7}})).await;
        world.succeed(name).await;
        let second = next_job(&world, name, &first).await;
        let running = world.status("Installation", name).await;
        assert_eq!((&running["observedGeneration"], &running["jobGeneration"]), (&json!(2), &json!(3)), "{name}");
        world.succeed(name).await;
        let done = world.ended("Installation", name, "Succeeded").await;
        wait_until_idle(&world, &format!("after-{name}")).await;
        let status = world.status("Installation", name).await;
        assert_eq!(
            (&status["jobID"], &status["observedGeneration"], &done["metadata"]["generation"]),
            (&second["status"]["jobID"], &json!(3), &json!(3)),
            "{name}"
        );
        let event = format!("Warning ChangedDuringJob: {CHANGED}");
        world.has_events("Installation", name, &[event.as_str()]).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_06_ins_52_under_the_policy_manual_a_change_during_a_job_stays_unobserved_and_starts_nothing() {
    let world = World::new().await;
    world.apply(&installation("a", &deploying(&[("a", &[])]))).await;
    world.triggered("a").await;
    world.says("Installation", "a", "to finish").await;
    world.patch("Installation", "a", &json!({"spec": {"maxParallel": 7}})).await;
    world.succeed("a").await;
    world.ended("Installation", "a", "Failed").await;
    wait_until_idle(&world, "other").await;
    let expected = json!({
        "observedGeneration": 2,
        "jobGeneration": 2,
        "phase": "Failed",
        "jobID": "job-100",
        "jobIDFinished": "job-100",
        "importsHash": "HASH",
        "executionRef": {"name": "a", "namespace": "default"},
        "subInstCache": {},
        "lastError": format!("CheckObservedGeneration/ChangedDuringJob: {CHANGED} [ERR_FOR_INFO_ONLY]"),
        "conditions": [
            format!("Ready=False ChangedDuringJob: {CHANGED} (2)"),
            format!("Stalled=True ChangedDuringJob: {CHANGED} (2)"),
            format!("Progressing=False ChangedDuringJob: {CHANGED} (2)"),
        ],
        "transitionTimes": ["finishedTime", "initTime", "triggerTime", "waitTime"],
    });
    assert_eq!(world.status("Installation", "a").await, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_06_a_job_that_fails_early_has_observed_its_generation_and_does_not_repeat() {
    let world = World::new().await;
    let mut root = with(
        installation("a", &both(&deploying(&[("a", &[])]), &json!({"imports": [data_import("size")]}))),
        &json!({"imports": data(&["size"]), "reconcilePolicy": "OnSpecChange"}),
    );
    root["metadata"]["annotations"] = json!({});
    world.apply(&root).await;
    let failed = world.ended("Installation", "a", "Failed").await;
    wait_until_idle(&world, "other").await;
    let status = world.status("Installation", "a").await;
    assert_eq!(status["jobID"], failed["status"]["jobID"]);
    assert_eq!((&status["observedGeneration"], &status["jobGeneration"]), (&json!(2), &json!(2)));
    // What mends it starts the next one.
    world.apply(&data_object("size", &json!(1))).await;
    world.patch("Installation", "a", &json!({"spec": {"maxParallel": 7}})).await;
    world.succeed("a").await;
    world.ended_after("Installation", "a", "Succeeded", &failed).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_06_c_10_a_job_that_waits_for_its_imports_takes_up_what_is_corrected_meanwhile() {
    let world = World::new().await;
    world.apply(&data_object("right", &json!(1))).await;
    let blueprint = both(&deploying(&[("a", &[])]), &json!({"imports": [data_import("size")]}));
    let imports = |reference: &str| json!({"data": [{"name": "size", "dataRef": reference}]});
    world
        .apply(&with(installation("a", &blueprint), &json!({"imports": imports("wrong"), "importPolicy": "Wait"})))
        .await;
    let waiting = world.says("Installation", "a", "waiting for DataObject wrong to exist").await;
    world.patch("Installation", "a", &json!({"spec": {"imports": imports("right")}})).await;
    world.succeed("a").await;
    let done = world.ended("Installation", "a", "Succeeded").await;
    let status = &done["status"];
    assert_eq!(status["jobID"], waiting["status"]["jobID"], "one job");
    assert_eq!((&status["jobGeneration"], &status["observedGeneration"]), (&json!(3), &json!(3)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_05_ins_59_after_a_failed_deletion_a_change_of_a_followed_spec_tries_again() {
    let world = World::new().await;
    world.apply(&quiet("a", &json!({"reconcilePolicy": "OnSpecChange"}))).await;
    world.succeed("a").await;
    world.ended("Installation", "a", "Succeeded").await;
    world.delete("Installation", "a").await;
    world.fail("a", "in use").await;
    let failed = world.ended("Installation", "a", "DeleteFailed").await;
    wait_until_idle(&world, "other").await;
    assert_eq!(world.find("Installation", "a").await.unwrap()["status"], failed["status"], "it does not repeat itself");
    world.patch("Installation", "a", &json!({"spec": {"maxParallel": 7}})).await;
    world.succeed("a").await;
    world.gone("Installation", "a").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flx_33_ins_14_the_token_of_a_request_is_told_when_its_job_begins() {
    let world = World::new().await;
    let mut root = installation("a", &deploying(&[("a", &[])]));
    root["metadata"]["annotations"]["orangery.dev/trigger"] = json!("first");
    world.apply(&root).await;
    world.triggered("a").await;
    let token = async || world.status("Installation", "a").await["lastHandledTrigger"].clone();
    assert_eq!(token().await, "first");
    let again = json!({"landscaper.gardener.cloud/operation": "reconcile", "orangery.dev/trigger": "second"});
    world.patch("Installation", "a", &json!({"metadata": {"annotations": again}})).await;
    world.expect("Installation", "a", |a| a["status"]["pendingOperation"] == "reconcile").await;
    assert_eq!(token().await, "first", "its job has not begun");
    let first = world.find_item("a").await.unwrap();
    world.succeed("a").await;
    next_job(&world, "a", &first).await;
    assert_eq!(token().await, "second");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_18_an_interrupt_takes_the_place_of_a_request_that_is_not_lost() {
    let world = World::new().await;
    world.apply(&installation("a", &deploying(&[("a", &[])]))).await;
    let first = world.triggered("a").await;
    world.request("a").await;
    world.expect("Installation", "a", |a| a["status"]["pendingOperation"] == "reconcile").await;
    world.annotate("Installation", "a", "operation", "interrupt").await;
    next_job(&world, "a", &first).await;
    world.succeed("a").await;
    world.ended("Installation", "a", "Succeeded").await;
    let interrupt = "the operation was interrupted by the annotation landscaper.gardener.cloud/operation: interrupt";
    let item = world.find_item("a").await.unwrap();
    let events = [
        format!("Warning SubobjectsFailed: execution a failed: deploy item a failed: {interrupt}"),
        format!("Warning DeployItemsFailed: deploy item a failed: {interrupt}"),
    ];
    world.has_events("Installation", "a", &[events[0].as_str()]).await;
    world.has_events("Execution", "a", &[events[1].as_str()]).await;
    world.has_events("DeployItem", &name_of(&item), &[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ins_75_an_interrupt_without_a_job_is_removed_and_does_nothing() {
    let world = World::new().await;
    world.apply(&installation("a", &deploying(&[("a", &[])]))).await;
    world.succeed("a").await;
    let done = world.ended("Installation", "a", "Succeeded").await;
    let operation = "landscaper.gardener.cloud/operation";
    world.annotate("Installation", "a", "operation", "interrupt").await;
    let after = world.expect("Installation", "a", |a| a["metadata"]["annotations"][operation].is_null()).await;
    world.annotate("Execution", "a", "operation", "interrupt").await;
    world.expect("Execution", "a", |a| a["metadata"]["annotations"][operation].is_null()).await;
    assert_eq!(
        (&after["status"], &world.find("Installation", "a").await.unwrap()["status"]),
        (&done["status"], &done["status"])
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_27_a_success_is_recorded_and_repeated_after_the_interval() {
    let mut world = World::new().await;
    let again = json!({"automaticReconcile": {"succeededReconcile": {"interval": "1h"}}});
    world.apply(&with(installation("a", &deploying(&[("a", &[])])), &again)).await;
    world.succeed("a").await;
    let noted = |root: &Value| root["status"]["automaticReconcileStatus"].is_object();
    let first = world.expect("Installation", "a", noted).await;
    let record = world.whole(&first).await["automaticReconcileStatus"].clone();
    let expected = json!({"generation": 2, "numberOfReconciles": 0, "lastReconcileTime": "TIME"});
    assert_eq!(record, expected);
    world.restart_after(3_599 - 60);
    wait_until_idle(&world, "before-its-time").await;
    assert_eq!(world.find("Installation", "a").await.unwrap()["status"], first["status"]);
    world.restart_after(120);
    world.succeed("a").await;
    let second = world.ended_after("Installation", "a", "Succeeded", &first).await;
    let record = world.whole(&second).await["automaticReconcileStatus"].clone();
    assert_eq!(record["numberOfReconciles"], 1);
}

/// An Installation that asks for a job every ten seconds, whose first job has succeeded.
async fn every_ten_seconds(world: &World) -> Value {
    let again = json!({"automaticReconcile": {"succeededReconcile": {"interval": "10s"}}});
    world.apply(&with(installation("a", &deploying(&[("a", &[])])), &again)).await;
    world.succeed("a").await;
    world.expect("Installation", "a", |root| root["status"]["automaticReconcileStatus"].is_object()).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_184_under_the_restricted_profile_jobs_start_by_themselves_a_minute_after_each_other() {
    let mut world = World::with(Setup { profile: Profile::Restricted, ..Setup::default() }).await;
    let first = every_ten_seconds(&world).await;
    let told = "Warning IntervalStretched: spec.automaticReconcile asks for jobs closer to each other than 60 s, which is the least \
                by the default policy, line spec.quotas.minReconcileIntervalSeconds; they start that late; ask for a longer interval, \
                or have an administrator set another one there";
    world.has_events("Installation", "a", &[told]).await;
    world.restart_after(30);
    wait_until_idle(&world, "before-its-time").await;
    assert_eq!(world.find("Installation", "a").await.unwrap()["status"], first["status"]);
    world.restart_after(30);
    world.succeed("a").await;
    world.ended_after("Installation", "a", "Succeeded", &first).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_184_under_the_compatible_profile_jobs_start_by_themselves_as_they_ask_for_it() {
    let mut world = World::new().await;
    let first = every_ten_seconds(&world).await;
    world.restart_after(10);
    world.succeed("a").await;
    world.ended_after("Installation", "a", "Succeeded", &first).await;
    world.has_events("Installation", "a", &[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_27_a_schedule_that_does_not_parse_starts_nothing_and_is_told() {
    let world = World::new().await;
    let never = json!({"automaticReconcile": {"failedReconcile": {"cronSpec": "every day"}}});
    world.apply(&with(installation("a", &deploying(&[("a", &[])])), &never)).await;
    world.fail("a", "boom").await;
    let failed = world.ended("Installation", "a", "Failed").await;
    let told = "Warning InvalidSchedule: spec.automaticReconcile: the cron expression \"every day\" has 2 fields and needs five: \
                minute, hour, day of month, month, day of week; or write @hourly, @daily, @weekly, @monthly, @yearly or @every \
                1h30m; no job starts by itself";
    let failed_too = "Warning SubobjectsFailed: execution a failed: deploy item a failed: boom";
    world.has_events("Installation", "a", &[told, failed_too]).await;
    assert_eq!(world.find("Installation", "a").await.unwrap()["status"], failed["status"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_89_a_second_failure_is_told_in_its_own_words() {
    let world = World::new().await;
    world.apply(&installation("a", &deploying(&[("a", &[])]))).await;
    world.fail("a", "boom").await;
    let first = world.ended("Installation", "a", "Failed").await;
    world.request("a").await;
    world.fail("a", "crash").await;
    world.ended_after("Installation", "a", "Failed", &first).await;
    let [boom, crash] = ["boom", "crash"]
        .map(|why| format!("Warning SubobjectsFailed: execution a failed: deploy item a failed: {why}"));
    world.has_events("Installation", "a", &[&boom, &crash]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ins_43_to_46_c_14_only_a_success_triggers_roots_that_import_and_they_ask_anew() {
    let world = World::new().await;
    let link = |name: &str, imports: &[&str]| {
        let definitions: Vec<Value> = imports.iter().map(|import| data_import(import)).collect();
        let blueprint =
            both(&both(&deploying(&[(name, &[])]), &exporting("out", &json!(name))), &json!({"imports": definitions}));
        let exports = json!({"data": [{"name": "out", "dataRef": name}]});
        with(installation(name, &blueprint), &json!({"imports": data(imports), "exports": exports}))
    };
    for (name, imports) in [("left", &[][..]), ("right", &[]), ("both", &["left", "right"])] {
        world.apply(&link(name, imports)).await;
        world.succeed(name).await;
        world.ended("Installation", name, "Succeeded").await;
    }
    let first = world.find("Installation", "both").await.unwrap();
    world.request("left").await;
    world.fail("left", "boom").await;
    world.ended("Installation", "left", "Failed").await;
    wait_until_idle(&world, "other").await;
    assert_eq!(
        world.find("Installation", "both").await.unwrap()["status"],
        first["status"],
        "a failure triggers nobody"
    );
    world.request("right").await;
    world.succeed("right").await;
    let failed = world.ended_after("Installation", "both", "Failed", &first).await;
    let expected = "an installation whose exports are imported here has not succeeded: installation left failed: \
                    execution left failed: deploy item left failed: boom";
    assert_eq!(message(&failed), expected, "ins_46: it asks all that it imports from");
    world.request("left").await;
    world.succeed("left").await;
    world.succeed("both").await;
    let before = world.ended("Installation", "both", "Succeeded").await;
    // An operation without effect gives way to the request.
    let legacy = json!({"metadata": {"annotations": {"landscaper.gardener.cloud/operation": "force-reconcile"}}});
    world.patch("Installation", "both", &legacy).await;
    world.request("left").await;
    world.succeed("left").await;
    world.succeed("both").await;
    world.ended_after("Installation", "both", "Succeeded", &before).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ins_21_ins_43_ins_61_promises_spare_the_look_at_siblings() {
    let world = World::new().await;
    let optimization = |promise: &str| json!({"optimization": {(promise): true}});
    let exports = json!({"exports": {"data": [{"name": "out", "dataRef": "a"}]}});
    let blueprint = both(&deploying(&[("a", &[])]), &exporting("out", &json!("v")));
    let mut root = with(with(installation("a", &blueprint), &exports), &optimization("hasNoSiblingExports"));
    world.apply(&root).await;
    world.succeed("a").await;
    world.ended("Installation", "a", "Succeeded").await;
    let importer = both(&deploying(&[("b", &[])]), &json!({"imports": [data_import("a")]}));
    let spec = both(&json!({"imports": data(&["a"])}), &optimization("hasNoSiblingImports"));
    world.request("a").await;
    world.triggered("a").await;
    // As an export that has lost its owner.
    let mut by_hand = data_object("a", &json!("by hand"));
    by_hand["metadata"]["labels"] = json!({"data.landscaper.gardener.cloud/sourceType": "export"});
    world.apply(&by_hand).await;
    world.apply(&with(installation("b", &importer), &spec)).await;
    world.succeed("b").await;
    let importer = world.ended("Installation", "b", "Succeeded").await;
    assert!(!job_ended(&world.find("Installation", "a").await.unwrap()), "it was not waited for");
    world.succeed("a").await;
    world.ended("Installation", "a", "Succeeded").await;
    root["metadata"]["annotations"] = json!({});
    wait_until_idle(&world, "other").await;
    assert_eq!(world.find("Installation", "b").await.unwrap()["status"], importer["status"], "it is not triggered");
    world.delete("Installation", "a").await;
    world.succeed("a").await;
    world.gone("Installation", "a").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ins_25_ins_28_a_template_that_comes_back_while_its_orphan_goes_is_made_anew() {
    let world = World::new().await;
    let of = |names: &[&str]| {
        let subs: Vec<Value> = names.iter().map(|name| sub(name, &deploying(&[(*name, &[])]), &json!({}))).collect();
        installation("root", &json!({"subinstallations": subs}))
    };
    world.apply(&of(&["x"])).await;
    world.succeed("x").await;
    let first = world.ended("Installation", "root", "Succeeded").await;
    let before = world.find_sub("x").await.unwrap();
    world.apply(&of(&[])).await;
    world.fail("x", "in use").await;
    let failed = world.ended_after("Installation", "root", "Failed", &first).await;
    world.apply(&of(&["x"])).await;
    world.says("Installation", "root", &format!("waiting for Installation {} to be gone", name_of(&before))).await;
    world.succeed("x").await;
    world.succeed("x").await;
    world.ended_after("Installation", "root", "Succeeded", &failed).await;
    let after = world.find_sub("x").await.unwrap();
    assert_ne!(after["metadata"]["uid"], before["metadata"]["uid"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ins_28_exe_48_a_job_fails_with_the_deletion_that_it_waits_for_and_the_next_one_tries_again() {
    let sub_x = json!({"subinstallations": [sub("x", &deploying(&[("x", &[])]), &json!({}))]});
    for (blueprint, kind) in [(sub_x, "Installation"), (deploying(&[("x", &[])]), "Execution")] {
        let world = World::new().await;
        world.apply(&installation("root", &blueprint)).await;
        world.succeed("x").await;
        let first = world.ended("Installation", "root", "Succeeded").await;
        world.apply(&installation("root", &json!({}))).await;
        world.fail("x", "in use").await;
        let failed = world.ended_after("Installation", "root", "Failed", &first).await;
        world.apply(&installation("root", &blueprint)).await;
        let waiting = async || {
            let root = world.find("Installation", "root").await?;
            let conditions = root["status"]["conditions"].to_string();
            conditions.contains(&format!("waiting for {kind} ")).then_some(())
        };
        world.wait(&format!("root does not wait for the {kind}"), waiting).await;
        world.fail("x", "still in use").await;
        let again = world.ended_after("Installation", "root", "Failed", &failed).await;
        assert!(message(&again).contains("still in use"), "{again:#}");
        world.request("root").await;
        world.succeed("x").await;
        world.succeed("x").await;
        world.ended_after("Installation", "root", "Succeeded", &again).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn orc_04_orc_34_c_20_what_is_up_to_date_is_passed_over_without_a_request() {
    let world = World::new().await;
    let subs = json!({"subinstallations": [sub("sub", &deploying(&[("s", &[])]), &json!({}))]});
    world.apply(&installation("root", &both(&deploying(&[("r", &[])]), &subs))).await;
    world.succeed("r").await;
    world.succeed("s").await;
    world.ended("Installation", "root", "Succeeded").await;
    let at_rest = async |more_than: [u64; 3]| loop {
        match world.at_rest() {
            Some(settled) if settled.iter().zip(more_than).all(|(now, before)| *now > before) => return settled,
            _ => tokio::task::yield_now().await,
        }
    };
    let before = (at_rest([0; 3]).await, world.requests());
    let label = json!({"metadata": {"labels": {"team": "green"}}});
    for (kind, name) in [("Installation", "root"), ("Execution", "root")] {
        world.patch(kind, name, &label).await;
    }
    world.patch("DeployItem", &name_of(&world.find_item("r").await.unwrap()), &label).await;
    let after = (at_rest(before.0).await, world.requests());
    assert_eq!(after.1, before.1, "each of them was looked at: {:?}, then {:?}", before.0, after.0);
}
