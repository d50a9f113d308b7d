//! The whole status of a deploy item in its jobs, and what changes of it, of its spec and of its job make of them.

use orangery_api::{deploy_item::DeployItem, job::Job as _};
use orangery_core::error::brief;
use serde_json::{Value, json};

use super::items::{Items, gated, gated_on, proposal};
use crate::world::Setup;

fn deployer() -> Value {
    json!({"identity": "sha256:0", "name": "scripted", "version": "1.0"})
}

/// The inventory of an item with the config map of this name.
fn managed(name: &str) -> Value {
    let resource = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": name, "namespace": "default", "uid": "UID"});
    json!([{"policy": "manage", "resource": resource}])
}

async fn whole(world: &Items, name: &str) -> Value {
    world.status("DeployItem", name).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_25_orc_28_the_whole_status_while_a_job_waits_and_when_it_has_succeeded() {
    let world = Items::new().await;
    world.create("item", &[gated("ready")], json!({})).await;
    world.trigger("item", "one").await;
    let wait = "waiting for ConfigMap default/a (.data.k == \"ready\" does not hold) to become ready";
    // What is read afterwards may say that the watch has not seen it yet.
    let says = |item: &DeployItem| item.conditions().iter().all(|condition| condition.message == wait);
    let waiting = world.wait("item", |item| item.is_some_and(|item| item.phase() == "Progressing" && says(item))).await;
    let mut expected = json!({
        "observedGeneration": -1,
        "jobGeneration": 1,
        "phase": "Progressing",
        "jobID": "one",
        "deployer": deployer(),
        "conditions": [
            format!("Ready=Unknown Progressing: {wait} (1)"),
            format!("Reconciling=True Progressing: {wait} (1)"),
            format!("Progressing=True WaitingForConfigMap: {wait} (1)"),
        ],
        "waitingFor": ["ConfigMap default/a Ready"],
        "lastReconcileTime": "TIME",
        "transitionTimes": ["initTime", "waitTime"],
    });
    let mut found = world.whole(&json!(waiting)).await;
    let provider = found.as_object_mut().unwrap().remove("providerStatus").unwrap();
    assert_eq!(found, expected);
    assert_eq!(provider["managedResources"], managed("a"));

    world.patch_config_map("a", json!({"data": {"k": "ready"}})).await;
    world.finished("item", "one").await;
    expected.as_object_mut().unwrap().remove("waitingFor");
    expected["observedGeneration"] = json!(1);
    expected["phase"] = json!("Succeeded");
    expected["jobIDFinished"] = json!("one");
    expected["conditions"] = json!(["Ready=True Succeeded (1)", "Progressing=False Succeeded (1)"]);
    expected["transitionTimes"] = json!(["finishedTime", "initTime", "waitTime"]);
    let mut found = whole(&world, "item").await;
    let provider = found.as_object_mut().unwrap().remove("providerStatus").unwrap();
    assert_eq!(found, expected);
    assert_eq!((&provider["managedResources"], provider.pointer("/orangery/progress")), (&managed("a"), None));
    world.has_events("DeployItem", "item", &[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn orc_20_flx_16_the_whole_status_of_a_failure_and_of_the_job_after_it() {
    let world = Items::new().await;
    world.create("item", &[], json!({})).await;
    world.job("item", "one").await;
    let message = "plugin scripted: config.proposals is missing";
    let error = format!("Plan/InvalidConfiguration: {message} [ERR_CONFIGURATION_PROBLEM]");
    let expected = json!({
        "observedGeneration": 1,
        "jobGeneration": 1,
        "phase": "Failed",
        "jobID": "one",
        "jobIDFinished": "one",
        "deployer": deployer(),
        "lastError": error,
        "firstError": error,
        "lastErrors": [error],
        "conditions": [
            format!("Ready=False InvalidConfiguration: {message} (1)"),
            format!("Stalled=True InvalidConfiguration: {message} (1)"),
            format!("Progressing=False InvalidConfiguration: {message} (1)"),
        ],
        "lastReconcileTime": "TIME",
        "transitionTimes": ["finishedTime", "initTime"],
    });
    assert_eq!(whole(&world, "item").await, expected);
    let event = format!("Warning InvalidConfiguration: {message}");
    world.has_events("DeployItem", "item", &[event.as_str()]).await;

    world.patch("item", json!({"spec": {"config": {"proposals": [proposal("a", json!({}))]}}})).await;
    world.job("item", "two").await;
    let healed = whole(&world, "item").await;
    let errors = ["lastError", "firstError", "lastErrors"].map(|key| healed.get(key));
    assert_eq!((errors, &healed["observedGeneration"]), ([None; 3], &json!(2)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_06_an_item_that_changed_during_its_job_has_not_observed_it_and_is_not_passed_over() {
    let world = Items::new().await;
    world.create("item", &[gated("ready")], json!({"updateOnChangeOnly": true})).await;
    world.trigger("item", "one").await;
    world.waiting("item", "to become ready").await;
    world.patch("item", json!({"spec": {"config": {"proposals": [proposal("b", json!({}))]}}})).await;
    world.patch_config_map("a", json!({"data": {"k": "ready"}})).await;
    let first = world.finished("item", "one").await;
    assert_eq!((&first["phase"], &first["observedGeneration"]), (&json!("Succeeded"), &json!(1)));
    assert_eq!(world.value("b").await, None, "the job went on with what it had begun with");
    let calls = world.calls();
    let second = world.job("item", "two").await;
    assert_eq!((&second["observedGeneration"], world.calls()), (&json!(2), calls + 1));
    assert_eq!((world.value("a").await, world.value("b").await.as_deref()), (None, Some("v")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_06_a_deletion_observes_the_generation_that_it_began_with() {
    let world = Items::new().await;
    let fails = json!({"stages": [], "next": {"fail": {"code": "ERR_MINE", "message": "not yet"}}});
    world.create("item", &[proposal("a", json!({}))], json!({"config": {"uninstalls": [fails]}})).await;
    world.job("item", "one").await;
    world.delete("item").await;
    world.trigger("item", "two").await;
    world.finished("item", "two").await;
    let status = whole(&world, "item").await;
    let message = "plugin scripted: not yet";
    let generation = world.items().get("item").await.unwrap().metadata.generation;
    assert_eq!((&status["observedGeneration"], &status["jobGeneration"]), (&json!(generation), &json!(generation)));
    let generation = generation.unwrap();
    let conditions = json!([
        format!("Ready=False PluginFailedItem: {message} ({generation})"),
        format!("Stalled=True PluginFailedItem: {message} ({generation})"),
        format!("Progressing=False PluginFailedItem: {message} ({generation})"),
    ]);
    assert_eq!((&status["phase"], &status["conditions"]), (&json!("DeleteFailed"), &conditions));
}

/// How long an item waits for an external deployer in these tests: no longer than a test.
fn pick_up() -> Setup {
    Setup { pick_up_timeout: std::time::Duration::from_secs(2), ..Setup::default() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_08_exe_33_an_item_that_no_deployer_begins_fails_and_names_what_is_missing() {
    let world = Items::with(pick_up()).await;
    let triggered = |job: &str| {
        let now = world.host.as_ref().unwrap().clock.now();
        json!({"jobID": job, "jobIDGenerationTime": jiff::Timestamp::from_second(now.as_second()).unwrap().to_string()})
    };
    let cases = [
        ("lonely", json!({}), "register a component that claims example.org/absent, or start a deployer for it"),
        ("lost", json!({"target": {"name": "ghost"}}), "the target ghost does not exist; create it"),
    ];
    for (name, spec, hint) in cases {
        let mut spec = spec.clone();
        spec["type"] = json!("example.org/absent");
        world.create(name, &[], spec).await;
        world.patch_status("DeployItem", name, &triggered("one")).await;
        world.finished(name, "one").await;
        let message = format!("no deployer has begun within 2s of the trigger: {hint}");
        let expected = json!({
            "observedGeneration": 1,
            "phase": "Failed",
            "jobID": "one",
            "jobIDFinished": "one",
            "jobIDGenerationTime": "TIME",
            "deployer": {"identity": "", "name": "", "version": ""},
            "lastError": format!("WaitingForPickup/PickupTimeout: {message} [ERR_TIMEOUT]"),
            "conditions": [
                format!("Ready=False PickupTimeout: {message} (1)"),
                format!("Stalled=True PickupTimeout: {message} (1)"),
                format!("Progressing=False PickupTimeout: {} (1)", brief(&message)),
            ],
            "transitionTimes": ["finishedTime"],
        });
        assert_eq!(whole(&world, name).await, expected);
        let event = format!("Warning PickupTimeout: {message}");
        world.has_events("DeployItem", name, &[event.as_str()]).await;
    }
    // In a deletion as well.
    world.patch("lonely", json!({"metadata": {"finalizers": ["example.org/hold"]}})).await;
    world.delete("lonely").await;
    world.patch_status("DeployItem", "lonely", &triggered("two")).await;
    assert_eq!(world.finished("lonely", "two").await["phase"], "DeleteFailed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_08_an_item_that_a_deployer_has_begun_in_time_is_its_own_from_then_on() {
    let world = Items::with(pick_up()).await;
    let now = || jiff::Timestamp::from_second(world.host.as_ref().unwrap().clock.now().as_second()).unwrap();
    world.create("item", &[], json!({"type": "example.org/external"})).await;
    let begun = json!({"jobID": "one", "jobIDGenerationTime": now().to_string(), "phase": "Progressing",
        "lastReconcileTime": now().to_string()});
    world.patch_status("DeployItem", "item", &begun).await;
    // Another one that nobody begins shows when the time is over.
    world.create("other", &[], json!({"type": "example.org/external"})).await;
    let triggered = json!({"jobID": "one", "jobIDGenerationTime": now().to_string()});
    world.patch_status("DeployItem", "other", &triggered).await;
    world.finished("other", "one").await;
    let item = world.items().get("item").await.unwrap();
    assert_eq!((item.phase(), item.job_id_finished().as_str()), ("Progressing", ""));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_24_c_25_a_write_of_somebody_else_during_a_job_is_kept() {
    let world = Items::new().await;
    world.create("item", &[json!({"closed": proposal("a", json!({}))})], json!({})).await;
    world.trigger("item", "one").await;
    world.waiting("item", "plugin scripted: closed").await;
    let labels = json!({"team": "green"});
    world.patch("item", json!({"metadata": {"labels": labels}})).await;
    world.plugin.open();
    let status = world.finished("item", "one").await;
    let item = json!(world.items().get("item").await.unwrap());
    assert_eq!((&status["phase"], &item["metadata"]["labels"]), (&json!("Succeeded"), &labels));
    assert_eq!(world.value("a").await.as_deref(), Some("v"));
}

/// How many writes of the status end a job, which somebody may disturb.
async fn writes_at_the_end(is_disturbed: bool) -> usize {
    let world = Items::new().await;
    world.create("item", &[gated("ready")], json!({})).await;
    world.trigger("item", "one").await;
    world.waiting("item", "to become ready").await;
    let writes = |world: &Items| world.asked_about("/deployitems/item/status").len();
    let before = writes(&world);
    world.delay_write("/deployitems/item/status");
    world.patch_config_map("a", json!({"data": {"k": "ready"}})).await;
    world.held().await;
    if is_disturbed {
        world.patch("item", json!({"metadata": {"labels": {"team": "green"}}})).await;
    }
    world.let_pass();
    world.finished("item", "one").await;
    let ends: Vec<String> =
        world.changes.lock().unwrap().iter().skip_while(|change| *change != "Succeeded one").cloned().collect();
    assert_eq!(ends, ["Succeeded one"], "phase and job id come together, and once");
    writes(&world) - before
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_25_a_job_ends_in_one_write_under_the_version_that_was_read() {
    // What it writes before it ends depends on what wakes it: with the change in its cache at once it is one more.
    assert!(writes_at_the_end(false).await <= 2);
    assert!(writes_at_the_end(true).await >= 2, "the first is refused, as the item is another one than was read");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_24_an_item_that_gets_another_job_while_it_waits_leaves_the_old_one() {
    let world = Items::new().await;
    world.create("item", &[gated("ready")], json!({})).await;
    world.trigger("item", "one").await;
    world.waiting("item", "to become ready").await;
    let interrupted = json!({"phase": "Failed", "jobID": "two", "jobIDFinished": "one"});
    world.patch_status("DeployItem", "item", &interrupted).await;
    let asked = async || (world.calls() == 2).then_some(());
    world.objects().wait("the component is not asked for the new job", asked).await;
    let waits = |item: &DeployItem| {
        item.phase() == "Progressing" && item.conditions().iter().any(|one| one.message.contains("to become ready"))
    };
    world.wait("item", |item| item.is_some_and(waits)).await;
    world.patch_config_map("a", json!({"data": {"k": "ready"}})).await;
    let status = world.finished("item", "two").await;
    assert_eq!((&status["phase"], world.calls()), (&json!("Succeeded"), 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_finalizer_that_is_taken_away_during_a_job_comes_back_before_the_next_one_works() {
    let world = Items::new().await;
    world.create("item", &[gated("ready")], json!({})).await;
    world.trigger("item", "one").await;
    world.waiting("item", "to become ready").await;
    world.patch("item", json!({"metadata": {"finalizers": null}})).await;
    let back = |item: Option<&DeployItem>| {
        item.is_some_and(|item| item.metadata.finalizers == Some(vec![orangery_api::FINALIZER.to_owned()]))
    };
    world.wait("item", back).await;
    world.patch_config_map("a", json!({"data": {"k": "ready"}})).await;
    assert_eq!(world.finished("item", "one").await["phase"], "Succeeded");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_test_reconcile_during_a_job_waits_for_its_end_and_runs_an_unchanged_item() {
    let world = Items::new().await;
    world.create("item", &[gated("ready")], json!({"updateOnChangeOnly": true})).await;
    world.trigger("item", "one").await;
    world.waiting("item", "to become ready").await;
    let asks = json!({"metadata": {"annotations": {"landscaper.gardener.cloud/operation": "test-reconcile"}}});
    world.patch("item", asks).await;
    world.create("probe", &[proposal("probe", json!({}))], json!({})).await;
    world.job("probe", "probe").await;
    assert_eq!(world.items().get("item").await.unwrap().job_id(), "one", "no other job begins");
    world.patch_config_map("a", json!({"data": {"k": "ready"}})).await;
    let item = world.wait("item", |item| item.is_some_and(|item| item.job_id() != "one" && item.job_id() != "")).await;
    assert_eq!(item.unwrap().job_id(), "job-100");
    world.patch_config_map("a", json!({"data": {"k": "ready"}})).await;
    let asked = async || (world.calls() == 3).then_some(());
    world.objects().wait("the component is not asked again, though the item has not changed", asked).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wf_15_items_that_wait_for_the_host_begin_in_the_order_in_which_they_came() {
    let world = Items::limited(std::num::NonZeroU32::MIN).await;
    world.create("first", &[gated_on("first", "ready")], json!({})).await;
    world.trigger("first", "one").await;
    world.waiting("first", "to become ready").await;
    for name in ["second", "third"] {
        world.create(name, &[gated_on(name, "ready")], json!({})).await;
        world.trigger(name, "one").await;
        world.waiting(name, "waiting for Host maxParallel=1 to have room").await;
    }
    for (name, next) in [("first", "second"), ("second", "third")] {
        world.patch_config_map(name, json!({"data": {"k": "ready"}})).await;
        world.finished(name, "one").await;
        world.waiting(next, "to become ready").await;
    }
    world.patch_config_map("third", json!({"data": {"k": "ready"}})).await;
    assert_eq!(world.finished("third", "one").await["phase"], "Succeeded");
}
