//! The phases of an Execution: the whole status where a job rests, and what interrupts, deletions, restarts and writes of others
//! make of it.

use orangery_core::error::brief;
use serde_json::{Value, json};

use super::{create, hand_down, plain, succeed, was_triggered};
use crate::{
    objects::object,
    world::{FINALIZER, World, is_deleting, job_ended, message, name_of},
};

const INTERRUPTED: &str =
    "the operation was interrupted by the annotation landscaper.gardener.cloud/operation: interrupt";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exe_05_exe_19_to_31_c_25_the_whole_status_from_the_first_wait_to_the_good_end() {
    let world = World::new().await;
    create(&world, &plain(&[("a", &[]), ("b", &["a"])]), &json!({})).await;
    hand_down(&world, "one").await;
    world.says("Execution", "tree", "to finish").await;
    let message = "waiting for DeployItem <a> to finish";
    let mut expected = json!({
        "observedGeneration": -1,
        "jobGeneration": 1,
        "phase": "Progressing",
        "jobID": "one",
        "conditions": [
            format!("Ready=Unknown Progressing: {message} (1)"),
            format!("Reconciling=True Progressing: {message} (1)"),
            format!("Progressing=True WaitingForDeployItem: {message} (1)"),
        ],
        "waitingFor": ["DeployItem default/<a> Finished"],
        "deployItemCache": {
            "activeDIs": [{"specName": "a", "objectName": "<a>"}, {"specName": "b", "objectName": "<b>"}],
        },
        "transitionTimes": ["initTime", "waitTime"],
    });
    assert_eq!(world.status("Execution", "tree").await, expected);
    world.succeed("a").await;
    world.succeed("b").await;
    world.ended("Execution", "tree", "Succeeded").await;
    expected.as_object_mut().unwrap().remove("waitingFor");
    expected["observedGeneration"] = json!(1);
    expected["phase"] = json!("Succeeded");
    expected["jobIDFinished"] = json!("one");
    expected["exportRef"] = json!({"name": "HASH", "namespace": "default"});
    expected["conditions"] = json!(["Ready=True Succeeded (1)", "Progressing=False Succeeded (1)"]);
    expected["transitionTimes"] = json!(["finishedTime", "initTime", "waitTime"]);
    assert_eq!(world.status("Execution", "tree").await, expected);
    world.has_events("Execution", "tree", &[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exe_27_orc_20_the_whole_status_of_a_failure_and_its_only_event() {
    let world = World::new().await;
    create(&world, &plain(&[("a", &[]), ("b", &[]), ("c", &["b"])]), &json!({})).await;
    hand_down(&world, "one").await;
    world.fail("a", "the disk is full").await;
    world.fail("b", "the port is taken").await;
    world.ended("Execution", "tree", "Failed").await;
    let message = "deploy item a failed: the disk is full; deploy item b failed: the port is taken";
    let expected = json!({
        "observedGeneration": 1,
        "jobGeneration": 1,
        "phase": "Failed",
        "jobID": "one",
        "jobIDFinished": "one",
        "lastError": format!("Progressing/DeployItemsFailed: {message} [ERR_FOR_INFO_ONLY]"),
        "conditions": [
            format!("Ready=False DeployItemsFailed: {message} (1)"),
            format!("Stalled=True DeployItemsFailed: {message} (1)"),
            format!("Progressing=False DeployItemsFailed: {message} (1)"),
        ],
        "deployItemCache": {
            "activeDIs": [
                {"specName": "a", "objectName": "<a>"},
                {"specName": "b", "objectName": "<b>"},
                {"specName": "c", "objectName": "<c>"},
            ],
        },
        "transitionTimes": ["finishedTime", "initTime", "waitTime"],
    });
    assert_eq!(world.status("Execution", "tree").await, expected);
    let event = format!("Warning DeployItemsFailed: {message}");
    world.has_events("Execution", "tree", &[event.as_str()]).await;
    assert!(!was_triggered(&world, "c", "one").await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_06_an_execution_observes_the_generation_with_which_its_job_began() {
    let world = World::new().await;
    create(&world, &plain(&[("a", &[])]), &json!({})).await;
    hand_down(&world, "one").await;
    // That the job has begun is written where it rests.
    world.says("Execution", "tree", "to finish").await;
    create(&world, &plain(&[("a", &[])]), &json!({"maxParallel": 7})).await;
    world.succeed("a").await;
    let done = world.ended("Execution", "tree", "Succeeded").await;
    let status = world.whole(&done).await;
    let seen = |status: &Value| (status["observedGeneration"].clone(), status["conditions"][0].clone());
    assert_eq!(done["metadata"]["generation"], 2);
    assert_eq!(seen(&status), (json!(1), json!("Ready=True Succeeded (1)")));
    succeed(&world, "two", &["a"]).await;
    let status = world.status("Execution", "tree").await;
    assert_eq!(seen(&status), (json!(2), json!("Ready=True Succeeded (2)")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exe_29_c_31_degenerate_dependencies_end_the_job_with_what_is_wrong() {
    let world = World::new().await;
    let cases = [
        (
            "unknown",
            plain(&[("a", &["ghost"])]),
            "a cannot be started: a depends on ghost, which does not exist; known are: a",
        ),
        (
            "own",
            plain(&[("a", &["a"])]),
            "a cannot be started: a -> a depend on each other in a circle; remove one of these dependencies",
        ),
        (
            "behind-a-cycle",
            plain(&[("a", &["b"]), ("b", &["a"]), ("c", &["b"])]),
            "a, b, c cannot be started: a -> b -> a depend on each other in a circle; remove one of these dependencies",
        ),
    ];
    let (mut found, mut expected) = (Vec::new(), Vec::new());
    for (name, items, error) in cases {
        let mut execution = object("Execution", name, &json!({"context": "default", "deployItems": items}));
        execution["metadata"]["finalizers"] = json!([FINALIZER]);
        world.apply(&execution).await;
        world.patch_status("Execution", name, &json!({"jobID": "one"})).await;
        world.ended("Execution", name, "Failed").await;
        found.push(world.status("Execution", name).await["lastError"].clone());
        expected.push(json!(format!("Progressing/DeployItemsStuck: deploy items {error} [ERR_CYCLIC_DEPENDENCIES]")));
    }
    assert_eq!(found, expected);
    let items = world.list("DeployItem").await;
    assert!(items.iter().all(|item| item["status"]["jobID"].is_null()), "nothing was triggered: {items:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exe_02_orc_14_a_list_of_items_that_cannot_be_unpacked_fails_the_job() {
    let world = World::new().await;
    let spec = json!({"context": "default", "deployItemsCompressed": "bm8gZ3ppcA=="});
    world.apply(&object("Execution", "tree", &spec)).await;
    hand_down(&world, "one").await;
    world.ended("Execution", "tree", "Failed").await;
    let message =
        "spec.deployItemsCompressed is not compressed with gzip; delete the Execution, its Installation writes it anew";
    let expected = format!("ReadDeployItems/UnreadableDeployItems: {message} [ERR_CONFIGURATION_PROBLEM]");
    assert_eq!(world.status("Execution", "tree").await["lastError"], expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exe_32_exe_33_exports_that_cannot_be_read_are_asked_for_until_they_are_there() {
    let world = World::new().await;
    create(&world, &plain(&[("a", &[])]), &json!({})).await;
    hand_down(&world, "one").await;
    let object = name_of(&world.triggered("a").await);
    let secret = format!("{object}-export");
    let reference = json!({"exportRef": {"name": secret, "namespace": "default"}});
    world.patch_status("DeployItem", &object, &reference).await;
    world.succeed("a").await;
    world.says("Execution", "tree", "TransientError").await;
    let status = world.status("Execution", "tree").await;
    let message = "the exports of DeployItem default/<a> in Secret <a>-export do not exist";
    let error = json!(format!("CollectExports/ExportsUnreadable: {message} []"));
    assert_eq!((&status["phase"], &status["lastError"]), (&json!("Completing"), &error));
    let event = format!("Warning ExportsUnreadable: {message}");
    world.has_events("Execution", "tree", &[event.as_str()]).await;
    let export = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": secret}, "stringData": {"config": "{\"k\": 1}"}});
    world.apply(&export).await;
    let done = world.ended("Execution", "tree", "Succeeded").await;
    let name = done["status"]["exportRef"]["name"].as_str().unwrap();
    assert_eq!(world.find("DataObject", name).await.unwrap()["data"], json!({"a": {"k": 1}}));
    assert_eq!(done["status"].get("lastError"), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ins_72_ins_73_exe_25_an_interrupt_ends_each_item_that_has_not_finished_whether_it_had_begun_or_not() {
    let world = World::new().await;
    create(&world, &plain(&[("done", &[]), ("slow", &["done"]), ("next", &["slow"])]), &json!({})).await;
    hand_down(&world, "one").await;
    world.succeed("done").await;
    let slow = name_of(&world.triggered("slow").await);
    world.says("Execution", "tree", &format!("waiting for DeployItem {slow} to finish")).await;
    let error = json!({"operation": "Deploy", "reason": "Slow", "message": "the pod is pending",
        "lastTransitionTime": "2026-01-01T00:00:00Z", "lastUpdateTime": "2026-01-01T00:00:00Z"});
    world.patch_status("DeployItem", &slow, &json!({"phase": "Progressing", "lastError": error})).await;
    world.annotate("Execution", "tree", "operation", "interrupt").await;
    world.ended("Execution", "tree", "Failed").await;
    let errors = |message: &str| {
        json!({
            "observedGeneration": 1,
            "jobGeneration": 1,
            "phase": "Failed",
            "jobID": "one",
            "jobIDFinished": "one",
            "deployer": {"identity": "", "name": "", "version": ""},
            "lastError": format!("InterruptOperation/InterruptOperation: {message} []"),
            "firstError": format!("InterruptOperation/InterruptOperation: {message} []"),
            "lastErrors": [format!("InterruptOperation/InterruptOperation: {message} []")],
            "conditions": [
                format!("Ready=False InterruptOperation: {message} (1)"),
                format!("Stalled=True InterruptOperation: {message} (1)"),
                format!("Progressing=False InterruptOperation: {} (1)", brief(message)),
            ],
            "transitionTimes": ["finishedTime", "triggerTime"],
        })
    };
    let mut slow = errors(&format!("{INTERRUPTED}; the last problem was: the pod is pending"));
    slow["jobIDGenerationTime"] = json!("TIME");
    let status = async |item: &str| world.whole(&world.find_item(item).await.unwrap()).await;
    assert_eq!(status("slow").await, slow);
    assert_eq!(status("next").await, errors(INTERRUPTED), "it was not triggered");
    assert_eq!(status("done").await["phase"], "Succeeded");
    let execution = world.status("Execution", "tree").await;
    assert_eq!((&execution["interruptedJob"], &execution["phase"]), (&json!("one"), &json!("Failed")));
    succeed(&world, "two", &["done", "slow", "next"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ins_72_an_interrupt_of_a_deletion_fails_what_is_left_and_the_next_job_deletes_it() {
    let world = World::new().await;
    create(&world, &plain(&[("base", &[]), ("top", &["base"])]), &json!({})).await;
    succeed(&world, "one", &["base", "top"]).await;
    world.delete("Execution", "tree").await;
    hand_down(&world, "two").await;
    world.triggered("top").await;
    world.says("Execution", "tree", "to be gone").await;
    world.annotate("Execution", "tree", "operation", "interrupt").await;
    let failed = world.ended("Execution", "tree", "DeleteFailed").await;
    let expected = format!("deploy item base failed: {INTERRUPTED}; deploy item top failed: {INTERRUPTED}");
    assert_eq!(message(&failed), expected);
    for item in ["base", "top"] {
        let object = world.find_item(item).await.unwrap();
        assert_eq!((&object["status"]["phase"], job_ended(&object)), (&json!("DeleteFailed"), true), "{item}");
    }
    hand_down(&world, "three").await;
    world.succeed("top").await;
    world.succeed("base").await;
    world.gone("Execution", "tree").await;
}

/// The phases that the job has passed are not written yet: the status that tells of them meets the interrupt.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_32_ins_74_an_interrupt_that_comes_before_the_status_tells_of_the_items_ends_with_what_became_of_them() {
    let world = World::new().await;
    create(&world, &plain(&[("base", &[]), ("top", &["base"])]), &json!({})).await;
    let interrupt = async |item: &str| {
        world.triggered(item).await;
        world.held().await;
        world.annotate("Execution", "tree", "operation", "interrupt").await;
        world.let_pass();
    };
    world.delay_write("/executions/tree/status");
    hand_down(&world, "one").await;
    interrupt("base").await;
    let failed = world.ended("Execution", "tree", "Failed").await;
    let expected = format!("deploy item base failed: {INTERRUPTED}; deploy item top failed: {INTERRUPTED}");
    assert_eq!(message(&failed), expected);
    succeed(&world, "two", &["base", "top"]).await;
    world.delete("Execution", "tree").await;
    world.delay_write("/executions/tree/status");
    hand_down(&world, "three").await;
    interrupt("top").await;
    assert_eq!(message(&world.ended("Execution", "tree", "DeleteFailed").await), expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exe_41_ins_65_a_job_during_which_the_deletion_comes_ends_and_gets_its_id_once_more_to_delete() {
    let world = World::new().await;
    create(&world, &plain(&[("a", &[])]), &json!({})).await;
    hand_down(&world, "one").await;
    world.triggered("a").await;
    world.says("Execution", "tree", "to finish").await;
    world.delete("Execution", "tree").await;
    assert!(!is_deleting(&world.find_item("a").await.unwrap()));
    world.succeed("a").await;
    let ended = world.ended("Execution", "tree", "Succeeded").await;
    assert!(is_deleting(&ended), "the timestamp alone starts nothing");
    world.patch_status("Execution", "tree", &json!({"jobID": "two"})).await;
    world.item("a", |item| is_deleting(item) && item["status"]["jobID"] == "two").await;
    world.succeed("a").await;
    world.gone("Execution", "tree").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exe_39_an_execution_whose_installation_is_gone_deletes_itself() {
    let world = World::new().await;
    world.apply(&object("Installation", "tree", &json!({"blueprint": {"inline": {"filesystem": {}}}}))).await;
    let owner = world.says("Installation", "tree", "AwaitingTrigger").await;
    create(&world, &plain(&[("a", &[])]), &json!({})).await;
    let reference = json!({"apiVersion": owner["apiVersion"], "kind": "Installation", "name": "tree",
        "uid": owner["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true});
    world.patch("Execution", "tree", &json!({"metadata": {"ownerReferences": [reference]}})).await;
    succeed(&world, "one", &["a"]).await;
    world.delete("Installation", "tree").await;
    world.gone("Installation", "tree").await;
    let item = world.item("a", |item| is_deleting(item) && !job_ended(item)).await;
    let execution = world.find("Execution", "tree").await.unwrap();
    assert_eq!(item["status"]["jobID"], execution["status"]["jobID"], "a job of its own");
    assert_ne!(item["status"]["jobID"], "one");
    world.succeed("a").await;
    world.gone("Execution", "tree").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exe_03_exe_14_what_others_changed_in_an_item_is_what_the_spec_says_after_the_next_job() {
    let world = World::new().await;
    create(&world, &plain(&[("a", &[])]), &json!({})).await;
    succeed(&world, "one", &["a"]).await;
    let before = world.find_item("a").await.unwrap();
    let name = name_of(&before);
    let foreign = json!({
        "metadata": {"finalizers": null, "labels": {"team": "green"},
            "annotations": {"execution.landscaper.gardener.cloud/dependsOn": "b"}},
        "spec": {"timeout": "1s", "config": {"of": "somebody else"}},
    });
    world.patch("DeployItem", &name, &foreign).await;
    succeed(&world, "two", &["a"]).await;
    let after = world.find_item("a").await.unwrap();
    assert_eq!((&after["spec"], &after["metadata"]["uid"]), (&before["spec"], &before["metadata"]["uid"]));
    assert_eq!(after["metadata"]["finalizers"], json!([FINALIZER]));
    assert_eq!(after["metadata"]["labels"]["team"], "green", "what the spec does not speak of stays");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exe_13_c_19_an_orphan_that_cannot_be_deleted_fails_the_job_before_anything_starts() {
    let world = World::new().await;
    create(&world, &plain(&[("kept", &[]), ("orphan", &["kept"])]), &json!({})).await;
    succeed(&world, "one", &["kept", "orphan"]).await;
    create(&world, &plain(&[("kept", &[])]), &json!({})).await;
    hand_down(&world, "two").await;
    world.fail("orphan", "in use").await;
    let failed = world.ended("Execution", "tree", "Failed").await;
    assert_eq!(message(&failed), "deploy item orphan failed: in use");
    assert!(!was_triggered(&world, "kept", "two").await);
    hand_down(&world, "three").await;
    world.succeed("orphan").await;
    world.succeed("kept").await;
    world.ended("Execution", "tree", "Succeeded").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_19_an_item_that_comes_back_while_its_orphan_goes_is_made_anew_after_it() {
    let world = World::new().await;
    create(&world, &plain(&[("a", &[])]), &json!({})).await;
    succeed(&world, "one", &["a"]).await;
    let before = world.find_item("a").await.unwrap();
    create(&world, &[], &json!({})).await;
    hand_down(&world, "two").await;
    world.fail("a", "in use").await;
    world.ended("Execution", "tree", "Failed").await;
    create(&world, &plain(&[("a", &[])]), &json!({})).await;
    hand_down(&world, "three").await;
    let deleted = name_of(&before);
    world.expect("DeployItem", &deleted, |item| item["status"]["jobID"] == "three").await;
    world.patch("DeployItem", &deleted, &json!({"metadata": {"finalizers": null}})).await;
    world.gone("DeployItem", &deleted).await;
    world.succeed("a").await;
    world.ended("Execution", "tree", "Succeeded").await;
    let left = world.list("DeployItem").await;
    assert_eq!(left.len(), 1, "{left:#?}");
    assert_ne!(left[0]["metadata"]["uid"], before["metadata"]["uid"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wf_38_wf_40_to_42_c_01_what_cannot_be_deleted_holds_up_what_it_depends_on_by_the_policy() {
    let diamond: [(&str, &[&str]); 4] =
        [("base", &[]), ("left", &["base"]), ("right", &["base"]), ("top", &["left", "right"])];
    // Of each policy: which item fails, and which are there in the end.
    let cases: [(&str, &str, &[&str]); 3] = [
        ("ContinueIndependent", "left", &["base", "left"]),
        ("ContinueIndependent", "top", &["base", "left", "right", "top"]),
        ("StopTriggering", "top", &["base", "left", "right", "top"]),
    ];
    for (policy, failing, expected) in cases {
        let world = World::new().await;
        create(&world, &plain(&diamond), &json!({"failurePolicy": policy})).await;
        succeed(&world, "one", &["base", "left", "right", "top"]).await;
        world.delete("Execution", "tree").await;
        hand_down(&world, "two").await;
        if failing != "top" {
            world.succeed("top").await;
            world.succeed("right").await;
        }
        world.fail(failing, "in use").await;
        let failed = world.ended("Execution", "tree", "DeleteFailed").await;
        assert!(message(&failed).starts_with(&format!("deploy item {failing} failed: in use")), "{}", message(&failed));
        let left: Vec<Value> = world.list("DeployItem").await;
        let label = |item: &Value| item["metadata"]["labels"]["execution.landscaper.gardener.cloud/name"].clone();
        let mut left: Vec<String> = left.iter().map(|item| serde_json::from_value(label(item)).unwrap()).collect();
        left.sort();
        assert_eq!(left, expected, "{policy} {failing}");
    }
}
