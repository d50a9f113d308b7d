//! The job of an Execution: the test hands the job down, as its Installation does, and plays the deployer.

mod phases;

use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    objects::{SCRIPTED, item, object},
    world::{Setup, World, is_deleting, job_ended, message, name_of},
};

/// An Execution `tree` with these items; `spec` is laid over it.
async fn create(world: &World, items: &[Value], spec: &Value) {
    let mut execution = object("Execution", "tree", &json!({"context": "default", "deployItems": items}));
    orangery_proposal::overlay::overlay(&mut execution["spec"], spec);
    // As its Installation makes it.
    execution["metadata"]["finalizers"] = json!(["finalizer.landscaper.gardener.cloud"]);
    world.apply(&execution).await;
}

fn plain(items: &[(&str, &[&str])]) -> Vec<Value> {
    items.iter().map(|(name, after)| item(name, after, &json!({}))).collect()
}

/// Hands a job to `tree`.
async fn hand_down(world: &World, job: &str) {
    world.patch_status("Execution", "tree", &json!({"jobID": job})).await;
}

/// Runs a job of `tree` to its good end.
async fn succeed(world: &World, job: &str, items: &[&str]) -> Value {
    hand_down(world, job).await;
    for item in items {
        world.succeed(item).await;
    }
    world.ended("Execution", "tree", "Succeeded").await
}

async fn was_triggered(world: &World, item: &str, job: &str) -> bool {
    world.find_item(item).await.is_some_and(|item| item["status"]["jobID"] == job)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exe_07_exe_08_exe_10_exe_15_nothing_is_made_before_the_job_arrives() {
    let world = World::new().await;
    create(&world, &plain(&[("a", &[])]), &json!({})).await;
    world.apply(&object("Execution", "other", &json!({"context": "default"}))).await;
    world.patch_status("Execution", "other", &json!({"jobID": "one"})).await;
    world.ended("Execution", "other", "Succeeded").await;
    let fresh = world.find("Execution", "tree").await.unwrap();
    assert_eq!((fresh["status"]["phase"].clone(), world.find_item("a").await), (Value::Null, None));
    let done = succeed(&world, "one", &["a"]).await;
    assert_eq!((&done["status"]["jobIDFinished"], &done["status"]["observedGeneration"]), (&json!("one"), &json!(1)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exe_11_to_14_the_objects_of_items_say_what_the_spec_says() {
    let world = World::new().await;
    let labelled = item("a", &[], &json!({"labels": {"team": "green"}, "timeout": "7m", "updateOnChangeOnly": true}));
    create(&world, &[labelled, item("b", &["a"], &json!({}))], &json!({})).await;
    hand_down(&world, "one").await;
    let object = world.triggered("a").await;
    let metadata = &object["metadata"];
    assert!(name_of(&object).starts_with("tree-a-"), "{metadata}");
    assert_eq!((&object["spec"]["timeout"], &object["spec"]["updateOnChangeOnly"]), (&json!("7m"), &json!(true)));
    let labels = &metadata["labels"];
    assert_eq!(
        (&labels["team"], &labels["execution.landscaper.gardener.cloud/managed-by"]),
        (&json!("green"), &json!("tree"))
    );
    assert_eq!(metadata["ownerReferences"][0]["kind"], "Execution");
    assert_eq!(metadata["finalizers"], json!(["finalizer.landscaper.gardener.cloud"]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exe_13_c_19_an_item_that_left_the_spec_is_deleted_before_the_others_are_triggered() {
    let world = World::new().await;
    create(&world, &plain(&[("kept", &[]), ("orphan", &[])]), &json!({})).await;
    succeed(&world, "one", &["kept", "orphan"]).await;
    create(&world, &plain(&[("kept", &[]), ("new", &["kept"])]), &json!({})).await;
    hand_down(&world, "two").await;
    let orphan = world.item("orphan", |item| is_deleting(item) && item["status"]["jobID"] == "two").await;
    assert!(!job_ended(&orphan), "{orphan:#}");
    assert!(!was_triggered(&world, "kept", "two").await, "orphans come first");
    world.succeed("orphan").await;
    world.succeed("kept").await;
    world.succeed("new").await;
    let done = world.ended("Execution", "tree", "Succeeded").await;
    let cache = &done["status"]["deployItemCache"];
    let names: Vec<&Value> = cache["activeDIs"].as_array().unwrap().iter().map(|pair| &pair["specName"]).collect();
    assert_eq!(names, ["kept", "new"], "{cache}");
    assert_eq!(world.find_item("orphan").await, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exe_17_exe_19_to_28_items_start_when_all_before_them_have_succeeded() {
    let world = World::new().await;
    create(&world, &plain(&[("a", &[]), ("b", &[]), ("c", &["a", "b"])]), &json!({})).await;
    hand_down(&world, "one").await;
    let b = name_of(&world.triggered("b").await);
    world.succeed("a").await;
    let waiting = world.says("Execution", "tree", &format!("waiting for DeployItem {b} to finish")).await;
    assert_eq!(waiting["status"]["phase"], "Progressing");
    assert!(!was_triggered(&world, "c", "one").await);
    world.succeed("b").await;
    world.succeed("c").await;
    world.ended("Execution", "tree", "Succeeded").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exe_25_to_27_after_a_failure_running_items_end_and_no_other_starts() {
    let world = World::new().await;
    create(&world, &plain(&[("bad", &[]), ("slow", &[]), ("next", &["slow"])]), &json!({})).await;
    hand_down(&world, "one").await;
    let slow = name_of(&world.triggered("slow").await);
    world.fail("bad", "boom").await;
    world.says("Execution", "tree", &format!("waiting for DeployItem {slow} to finish")).await;
    world.succeed("slow").await;
    let failed = world.ended("Execution", "tree", "Failed").await;
    assert_eq!(message(&failed), "deploy item bad failed: boom");
    assert!(!was_triggered(&world, "next", "one").await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exe_29_exe_30_a_cycle_fails_with_its_members() {
    let world = World::new().await;
    create(&world, &plain(&[("a", &["b"]), ("b", &["a"])]), &json!({})).await;
    hand_down(&world, "one").await;
    let failed = world.ended("Execution", "tree", "Failed").await;
    assert!(message(&failed).contains("a -> b -> a"), "{failed:#}");
    assert!(!was_triggered(&world, "a", "one").await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exe_31_the_exports_of_items_become_one_data_object() {
    let world = World::new().await;
    create(&world, &plain(&[("a", &[]), ("b", &[])]), &json!({})).await;
    hand_down(&world, "one").await;
    world.export("a", &json!({"address": "x"})).await;
    let done = succeed(&world, "one", &["a", "b"]).await;
    let name = done["status"]["exportRef"]["name"].as_str().unwrap();
    let exports = world.expect("DataObject", name, |_| true).await;
    assert_eq!(exports["data"], json!({"a": {"address": "x"}, "b": null}));
    let labels = &exports["metadata"]["labels"];
    assert_eq!(labels["data.landscaper.gardener.cloud/source"], "Exec.tree", "{labels}");
}

/// So many values, of which each has seven bytes and takes over nine hundred.
fn large(values: usize) -> Value {
    json!({"big": vec![json!({"": 0}); values]})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_290_limits_execution_exports_of_all_items_share_their_memory() {
    let world = World::new().await;
    create(&world, &plain(&[("a", &[]), ("b", &[])]), &json!({})).await;
    hand_down(&world, "one").await;
    for item in ["a", "b"] {
        // Some 36 MiB each.
        world.export(item, &large(40_000)).await;
        world.succeed(item).await;
    }
    let failed = world.ended("Execution", "tree", "Failed").await;
    assert_eq!(
        message(&failed),
        "the exports of the deploy items of Execution tree would take more than the 67108864 bytes of memory that are allowed \
         together; export less, or divide what exports it"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exe_36_to_38_a_changed_spec_starts_nothing_and_a_new_job_runs_without_a_change() {
    let world = World::new().await;
    create(&world, &plain(&[("a", &[])]), &json!({})).await;
    let first = succeed(&world, "one", &["a"]).await;
    create(&world, &plain(&[("a", &[]), ("b", &[])]), &json!({})).await;
    // What the operator would still have done is done when another one has ended.
    world.apply(&object("Execution", "other", &json!({"context": "default"}))).await;
    world.patch_status("Execution", "other", &json!({"jobID": "x"})).await;
    world.ended("Execution", "other", "Succeeded").await;
    let after = world.find("Execution", "tree").await.unwrap();
    assert_eq!(after["status"], first["status"]);
    assert_eq!(world.find_item("b").await, None);
    succeed(&world, "two", &["a", "b"]).await;
    let third = succeed(&world, "three", &["a", "b"]).await;
    assert_eq!(third["status"]["jobIDFinished"], "three");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exe_41_exe_42_exe_44_exe_45_a_deletion_begins_with_its_job_and_goes_from_dependents_to_what_they_depend_on() {
    let world = World::new().await;
    create(&world, &plain(&[("base", &[]), ("left", &["base"]), ("right", &["base"])]), &json!({})).await;
    succeed(&world, "one", &["base", "left", "right"]).await;
    world.delete("Execution", "tree").await;
    assert!(!is_deleting(&world.find_item("base").await.unwrap()), "the timestamp alone starts nothing");
    hand_down(&world, "two").await;
    let left = name_of(&world.triggered("left").await);
    world.succeed("right").await;
    world.says("Execution", "tree", &format!("waiting for DeployItem {left} to be gone")).await;
    let base = world.find_item("base").await.unwrap();
    assert!(is_deleting(&base) && job_ended(&base), "deleted, and not triggered: {base:#}");
    world.succeed("left").await;
    world.succeed("base").await;
    world.gone("Execution", "tree").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exe_49_a_failed_deletion_ends_the_job_and_another_one_tries_again() {
    let world = World::new().await;
    create(&world, &plain(&[("base", &[]), ("top", &["base"])]), &json!({})).await;
    succeed(&world, "one", &["base", "top"]).await;
    world.delete("Execution", "tree").await;
    hand_down(&world, "two").await;
    world.fail("top", "in use").await;
    let failed = world.ended("Execution", "tree", "DeleteFailed").await;
    assert_eq!(message(&failed), "deploy item top failed: in use");
    hand_down(&world, "three").await;
    world.succeed("top").await;
    world.succeed("base").await;
    world.gone("Execution", "tree").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_01_wf_13_under_continue_independent_a_failure_holds_up_only_what_depends_on_it() {
    let world = World::new().await;
    let items = plain(&[("bad", &[]), ("after-bad", &["bad"]), ("good", &[]), ("after-good", &["good"])]);
    create(&world, &items, &json!({"failurePolicy": "ContinueIndependent"})).await;
    hand_down(&world, "one").await;
    world.fail("bad", "the disk is full").await;
    world.succeed("good").await;
    world.succeed("after-good").await;
    let failed = world.ended("Execution", "tree", "Failed").await;
    let expected = "deploy item bad failed: the disk is full; not started for that reason: after-bad";
    assert_eq!(message(&failed), expected);
    assert!(!was_triggered(&world, "after-bad", "one").await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wf_15_no_more_items_are_under_way_than_the_spec_allows() {
    let world = World::new().await;
    create(&world, &plain(&[("a", &[]), ("b", &[]), ("c", &[])]), &json!({"maxParallel": 1})).await;
    hand_down(&world, "one").await;
    for (name, next) in [("a", Some("b")), ("b", Some("c")), ("c", None)] {
        world.triggered(name).await;
        if let Some(next) = next {
            assert!(!was_triggered(&world, next, "one").await, "{next} begins after {name}");
        }
        world.succeed(name).await;
    }
    world.ended("Execution", "tree", "Succeeded").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wf_27_ins_80_an_item_that_is_kept_goes_without_its_deployer() {
    let world = World::new().await;
    let kept = item("kept", &[], &json!({"onDelete": {"keep": true}}));
    create(&world, &[kept, item("other", &["kept"], &json!({}))], &json!({})).await;
    succeed(&world, "one", &["kept", "other"]).await;
    world.delete("Execution", "tree").await;
    hand_down(&world, "two").await;
    world.succeed("other").await;
    world.gone("Execution", "tree").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_30_an_item_deleted_by_force_during_the_job_fails_it_and_the_next_job_makes_it_anew() {
    let world = World::new().await;
    create(&world, &plain(&[("a", &[]), ("b", &[])]), &json!({})).await;
    hand_down(&world, "one").await;
    let lost = name_of(&world.triggered("a").await);
    world.delete_by_force("DeployItem", &lost).await;
    world.succeed("b").await;
    let failed = world.ended("Execution", "tree", "Failed").await;
    assert_eq!(
        message(&failed),
        "deploy item a is missing: its object was deleted during the job; reconcile the root installation again"
    );
    succeed(&world, "two", &["a", "b"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ins_72_ins_73_an_interrupt_fails_the_items_that_are_not_finished() {
    let world = World::new().await;
    create(&world, &plain(&[("done", &[]), ("slow", &["done"]), ("next", &["slow"])]), &json!({})).await;
    hand_down(&world, "one").await;
    world.succeed("done").await;
    world.triggered("slow").await;
    world.annotate("Execution", "tree", "operation", "interrupt").await;
    let failed = world.ended("Execution", "tree", "Failed").await;
    assert_eq!(failed["metadata"]["annotations"]["landscaper.gardener.cloud/operation"], Value::Null);
    let slow = world.find_item("slow").await.unwrap();
    assert_eq!((&slow["status"]["phase"], job_ended(&slow)), (&json!("Failed"), true));
    assert!(message(&slow).contains("interrupt"), "{slow:#}");
    assert_eq!(world.find_item("done").await.unwrap()["status"]["phase"], "Succeeded");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_32_a_job_that_is_interrupted_before_it_begins_makes_nothing() {
    let world = World::new().await;
    create(&world, &plain(&[("a", &[])]), &json!({})).await;
    world.patch_status("Execution", "tree", &json!({"jobID": "one", "interruptedJob": "one"})).await;
    let failed = world.ended("Execution", "tree", "Failed").await;
    assert_eq!(failed["status"]["lastError"]["reason"], "InterruptOperation");
    assert_eq!(world.list("DeployItem").await, Vec::<Value>::new());
    succeed(&world, "two", &["a"]).await;
}

/// What an Installation makes was checked with its blueprint; an Execution may be anybody's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_21_a_gate_expression_that_cannot_be_evaluated_fails_an_execution_before_anything_is_made() {
    let world = World::new().await;
    let gate = json!({"when": {"expression": "items.a.exports.x == 1"}});
    create(&world, &[item("a", &[], &json!({})), item("b", &[], &gate)], &json!({})).await;
    hand_down(&world, "one").await;
    let failed = world.ended("Execution", "tree", "Failed").await;
    assert!(message(&failed).contains("there is no a in items"), "{failed:#}");
    assert_eq!(world.list("DeployItem").await, Vec::<Value>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn orc_06_a_job_goes_on_after_a_restart() {
    let mut world = World::new().await;
    create(&world, &plain(&[("a", &[]), ("b", &["a"])]), &json!({})).await;
    hand_down(&world, "one").await;
    world.triggered("a").await;
    world.restart();
    world.succeed("a").await;
    world.succeed("b").await;
    world.ended("Execution", "tree", "Succeeded").await;
    assert_eq!(world.list("DeployItem").await.len(), 2);
}

/// One of these items, of a type that nobody takes; its job has failed.
async fn untaken() -> (World, Value) {
    let world = World::with(Setup { pick_up_timeout: Duration::ZERO, ..Setup::default() }).await;
    create(&world, &plain(&[("a", &[])]), &json!({})).await;
    hand_down(&world, "one").await;
    world.ended("Execution", "tree", "Failed").await;
    let item = world.find_item("a").await.unwrap();
    assert_eq!(item["status"]["lastError"]["reason"], "PickupTimeout");
    (world, item)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_159_an_item_that_no_deployer_has_begun_goes_and_one_that_a_deployer_has_begun_waits_for_it() {
    let (world, _) = untaken().await;
    create(&world, &[], &json!({})).await;
    hand_down(&world, "two").await;
    world.ended("Execution", "tree", "Succeeded").await;
    assert_eq!(world.list("DeployItem").await, Vec::<Value>::new());

    let (world, item) = untaken().await;
    let begun = json!({"lastReconcileTime": "2026-01-01T00:00:00Z"});
    world.patch_status("DeployItem", &name_of(&item), &begun).await;
    create(&world, &[], &json!({})).await;
    hand_down(&world, "two").await;
    let failed = world.ended_after("Execution", "tree", "Failed", &json!({"status": {"jobID": "one"}})).await;
    assert!(message(&failed).contains("no deployer has begun"), "{failed:#}");
    assert!(is_deleting(&world.find_item("a").await.unwrap()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_159_an_item_that_nobody_has_begun_is_made_anew_of_another_type() {
    let (world, former) = untaken().await;
    let proposals = json!([{"stages": [], "next": {"finish": {}}}]);
    let corrected = item("a", &[], &json!({"type": SCRIPTED, "config": {"proposals": proposals}}));
    create(&world, &[corrected], &json!({})).await;
    hand_down(&world, "two").await;
    world.ended("Execution", "tree", "Succeeded").await;
    let items = world.list("DeployItem").await;
    let are: Vec<_> = items
        .iter()
        .map(|item| (&item["spec"]["type"], item["metadata"]["uid"] == former["metadata"]["uid"]))
        .collect();
    assert_eq!(are, [(&json!(SCRIPTED), false)]);
}

/// A deploy item of the component that is scripted to have nothing to do.
fn scripted(name: &str, after: &[&str]) -> Value {
    let proposals = json!([{"stages": [], "next": {"finish": {}}}]);
    item(name, after, &json!({"type": SCRIPTED, "config": {"proposals": proposals}}))
}

/// Requests of the controllers that have changed the status of an item.
async fn writes_of_status(world: &World, item: &str) -> usize {
    let name = name_of(&world.find_item(item).await.unwrap());
    world.asked_about(&format!("/deployitems/{name}/status")).iter().filter(|sent| sent.method == "PATCH").count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_216_items_that_begin_with_the_job_get_it_without_a_write_and_later_ones_and_those_of_others_by_one() {
    let world = World::new().await;
    let items = [scripted("first", &[]), scripted("later", &["first"]), item("others", &[], &json!({}))];
    create(&world, &items, &json!({})).await;
    succeed(&world, "one", &["others"]).await;
    let mut writes = Vec::new();
    for item in ["first", "later", "others"] {
        writes.push(writes_of_status(&world, item).await);
    }
    assert_eq!(writes, [1, 2, 1]);
    let item = world.find_item("first").await.unwrap();
    assert_eq!(item["status"]["jobGeneration"], 1);
    assert!(item["status"]["transitionTimes"]["triggerTime"].is_string(), "{item:#}");
    assert!(item["status"]["jobIDGenerationTime"].is_string(), "{item:#}");
    succeed(&world, "two", &["others"]).await;
    assert_eq!([writes_of_status(&world, "first").await, writes_of_status(&world, "later").await], [2, 4]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_216_an_item_in_the_middle_of_another_job_gets_its_job_by_a_write() {
    let world = World::new().await;
    create(&world, &[scripted("first", &[])], &json!({})).await;
    succeed(&world, "one", &[]).await;
    let name = name_of(&world.find_item("first").await.unwrap());
    // A job that nobody else knows of; it is about to end.
    world.delay_write(&format!("/deployitems/{name}/status"));
    world.patch_status("DeployItem", &name, &json!({"jobID": "lost"})).await;
    world.held().await;
    hand_down(&world, "two").await;
    world.item("first", |item| item["status"]["jobID"] == "two").await;
    world.let_pass();
    let done = world.ended_after("Execution", "tree", "Succeeded", &json!({"status": {"jobID": "one"}})).await;
    assert_eq!(done["status"]["jobID"], "two");
    assert_eq!(world.find_item("first").await.unwrap()["status"]["jobIDFinished"], "two");
}
