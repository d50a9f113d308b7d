//! The phases of an Installation: where a job waits, the whole status there, and what an interrupt, a deletion or a restart make
//! of it.

use serde_json::{Value, json};

use super::deletion::siblings;
use crate::{
    objects::{both, data, data_import, data_object, deploying, exporting, input, installation, sub, with},
    world::{World, is_deleting, job_ended, message},
};

/// A root `root` that has run well with a sub-installation `old`, and is asked for another job: it imports `size`, has an item
/// `r` and a sub-installation `new` with an item `n`, and exports `out`.
async fn begin(world: &World) {
    let old = json!({"subinstallations": [sub("old", &deploying(&[("o", &[])]), &json!({}))]});
    world.apply(&installation("root", &old)).await;
    world.succeed("o").await;
    world.ended("Installation", "root", "Succeeded").await;
    let subs = json!({
        "imports": [data_import("size")],
        "subinstallations": [sub("new", &deploying(&[("n", &[])]), &json!({}))],
    });
    let blueprint = both(&both(&deploying(&[("r", &[])]), &exporting("out", &json!("v"))), &subs);
    let spec = json!({"imports": data(&["size"]), "exports": data(&["out"]), "importPolicy": "Wait"});
    world.apply(&with(installation("root", &blueprint), &spec)).await;
}

/// A root that imports `out` of the other one; it never had a job.
fn successor() -> Value {
    let mut after =
        with(installation("after", &json!({"imports": [data_import("out")]})), &json!({"imports": data(&["out"])}));
    after["metadata"]["annotations"] = json!({});
    after
}

/// The conditions of a job that waits in a phase, for an object of this kind.
fn waits(phase: &str, kind: &str, message: &str, generation: u32) -> Value {
    json!([
        format!("Ready=Unknown {phase}: {message} ({generation})"),
        format!("Reconciling=True {phase}: {message} ({generation})"),
        format!("Progressing=True WaitingFor{kind}: {message} ({generation})"),
    ])
}

/// Those of a deletion.
fn waits_in_deletion(phase: &str, kind: &str, message: &str, generation: u32) -> Value {
    let mut conditions = waits(phase, kind, message, generation);
    conditions[0] = json!(format!("Ready=False Deleting: {message} ({generation})"));
    conditions
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ins_10_ins_33_exe_06_c_06_c_25_the_whole_status_in_each_phase_in_which_a_job_waits() {
    let world = World::new().await;
    begin(&world).await;
    let mut expected = json!({
        "observedGeneration": 2,
        "jobGeneration": 3,
        "phase": "Init",
        "jobID": "job-101",
        "jobIDFinished": "job-100",
        "importsHash": "HASH",
        "conditions": waits("Init", "DataObject", "waiting for DataObject size to exist", 3),
        "waitingFor": ["DataObject default/size Exists"],
        "subInstCache": {"activeSubs": [{"specName": "old", "objectName": "<old>"}]},
        "transitionTimes": ["initTime", "triggerTime", "waitTime"],
    });
    world.says("Installation", "root", "waiting for DataObject size to exist").await;
    assert_eq!(world.status("Installation", "root").await, expected);
    let old = world.sub("old", |_| true).await;

    world.apply(&data_object("size", &json!(1))).await;
    world.says("Installation", "root", "to be gone").await;
    expected["phase"] = json!("CleanupOrphaned");
    expected["conditions"] = waits("CleanupOrphaned", "Installation", "waiting for Installation <old> to be gone", 3);
    expected["waitingFor"] = json!(["Installation default/<old> Gone"]);
    expected["executionRef"] = json!({"name": "root", "namespace": "default"});
    expected["subInstCache"] = json!({
        "activeSubs": [{"specName": "new", "objectName": "<new>"}],
        "orphanedSubs": ["<old>"],
    });
    assert_eq!(world.status("Installation", "root").await, expected);

    world.succeed("o").await;
    world.says("Installation", "root", "waiting for Execution root to finish, Installation").await;
    let message = "waiting for Execution root to finish, Installation <new> to finish";
    expected["phase"] = json!("Progressing");
    expected["subInstCache"]["orphanedSubs"] = json!([old]);
    expected["conditions"] = waits("Progressing", "Execution", message, 3);
    expected["waitingFor"] = json!(["Execution default/root Finished", "Installation default/<new> Finished"]);
    assert_eq!(world.status("Installation", "root").await, expected);

    world.succeed("r").await;
    world.succeed("n").await;
    world.ended("Installation", "root", "Succeeded").await;
    let members = expected.as_object_mut().unwrap();
    members.remove("waitingFor");
    expected["observedGeneration"] = json!(3);
    expected["phase"] = json!("Succeeded");
    expected["jobIDFinished"] = json!("job-101");
    expected["conditions"] = json!(["Ready=True Succeeded (3)", "Progressing=False Succeeded (3)"]);
    expected["transitionTimes"] = json!(["finishedTime", "initTime", "triggerTime", "waitTime"]);
    assert_eq!(world.status("Installation", "root").await, expected);
    world.has_events("Installation", "root", &[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ins_60_to_66_c_25_the_whole_status_in_each_phase_in_which_a_deletion_waits() {
    let world = World::new().await;
    let blueprint = both(&deploying(&[("r", &[])]), &exporting("out", &json!("v")));
    world.apply(&with(installation("root", &blueprint), &json!({"exports": data(&["out"])}))).await;
    world.succeed("r").await;
    world.ended("Installation", "root", "Succeeded").await;
    world.apply(&successor()).await;
    world.says("Installation", "after", "AwaitingTrigger").await;
    world.delete("Installation", "root").await;
    world.says("Installation", "root", "waiting for Installation after to be gone").await;
    let mut expected = json!({
        "observedGeneration": 2,
        "jobGeneration": 3,
        "phase": "InitDelete",
        "jobID": "job-101",
        "jobIDFinished": "job-100",
        "importsHash": "HASH",
        "executionRef": {"name": "root", "namespace": "default"},
        "conditions": waits_in_deletion("InitDelete", "Installation", "waiting for Installation after to be gone", 3),
        "waitingFor": ["Installation default/after Gone"],
        "subInstCache": {},
        "transitionTimes": ["initTime", "triggerTime", "waitTime"],
    });
    assert_eq!(world.status("Installation", "root").await, expected);

    world.delete("Installation", "after").await;
    world.item("r", is_deleting).await;
    world.says("Installation", "root", "waiting for Execution root to be gone").await;
    expected["phase"] = json!("Deleting");
    expected["conditions"] = waits_in_deletion("Deleting", "Execution", "waiting for Execution root to be gone", 3);
    expected["waitingFor"] = json!(["Execution default/root Gone"]);
    assert_eq!(world.status("Installation", "root").await, expected);

    world.fail("r", "in use").await;
    world.ended("Installation", "root", "DeleteFailed").await;
    let message = "execution root failed: deploy item r failed: in use";
    expected.as_object_mut().unwrap().remove("waitingFor");
    expected["observedGeneration"] = json!(3);
    expected["phase"] = json!("DeleteFailed");
    expected["jobIDFinished"] = json!("job-101");
    expected["lastError"] = json!(format!("Deleting/UndeletedSubobjects: {message} []"));
    expected["conditions"] = json!([
        format!("Ready=False UndeletedSubobjects: {message} (3)"),
        format!("Stalled=True UndeletedSubobjects: {message} (3)"),
        format!("Progressing=False UndeletedSubobjects: {message} (3)"),
    ]);
    expected["transitionTimes"] = json!(["finishedTime", "initTime", "triggerTime", "waitTime"]);
    assert_eq!(world.status("Installation", "root").await, expected);
    let event = format!("Warning UndeletedSubobjects: {message}");
    world.has_events("Installation", "root", &[event.as_str()]).await;
}

/// A place in which the job of [`begin`] waits.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    Init,
    CleanupOrphaned,
    Progressing,
}

const PLACES: [Place; 3] = [Place::Init, Place::CleanupOrphaned, Place::Progressing];

async fn reach(world: &World, place: Place) {
    begin(world).await;
    world.says("Installation", "root", "waiting for DataObject size to exist").await;
    if place == Place::Init {
        return;
    }
    world.apply(&data_object("size", &json!(1))).await;
    world.triggered("o").await;
    world.expect("Installation", "root", |root| root["status"]["phase"] == "CleanupOrphaned").await;
    if place == Place::CleanupOrphaned {
        return;
    }
    world.succeed("o").await;
    world.triggered("r").await;
    world.triggered("n").await;
    world.says("Installation", "root", "waiting for Execution root to finish, Installation").await;
}

/// Lets the deployer end what is triggered until the root stands as wanted: deployers do not wait to be asked by the test.
async fn let_go(world: &World, wanted: impl Fn(Option<&Value>) -> bool) -> Option<Value> {
    loop {
        let next = world
            .wait("neither a triggered item nor the end", async || {
                let root = world.find("Installation", "root").await;
                if wanted(root.as_ref()) {
                    return Some(Err(root));
                }
                let items = world.list("DeployItem").await;
                let triggered = |item: &&Value| item["status"]["jobID"].is_string() && !job_ended(item);
                let name =
                    |item: &Value| item["metadata"]["labels"]["execution.landscaper.gardener.cloud/name"].clone();
                Some(Ok(name(items.iter().find(triggered)?)))
            })
            .await;
        match next {
            Ok(item) => world.succeed(item.as_str().unwrap()).await,
            Err(root) => return root,
        }
    }
}

fn ended(root: Option<&Value>, phase: &str) -> bool {
    root.is_some_and(|root| root["status"]["phase"] == phase && job_ended(root))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ins_70_ins_74_ins_76_c_32_an_interrupt_ends_the_job_in_whatever_phase_and_the_next_one_succeeds() {
    for place in PLACES {
        let world = World::new().await;
        reach(&world, place).await;
        world.annotate("Installation", "root", "operation", "interrupt").await;
        let failed = world.ended("Installation", "root", "Failed").await;
        let status = &failed["status"];
        assert_eq!((&status["jobID"], &status["interruptedJob"]), (&json!("job-101"), &json!("job-101")), "{place:?}");
        let items = world.list("DeployItem").await;
        assert!(
            items.iter().all(|item| !item["status"]["jobID"].is_string() || job_ended(item)),
            "{place:?}: {items:#?}"
        );
        for kind in ["Installation", "Execution"] {
            let begun: Vec<Value> =
                world.list(kind).await.into_iter().filter(|of| of["status"]["jobID"] == "job-101").collect();
            let failed = |of: &Value| {
                job_ended(of) && of["status"]["phase"].as_str().is_some_and(|phase| phase.ends_with("Failed"))
            };
            assert!(begun.iter().all(failed), "{place:?}: {begun:#?}");
            // What is below has begun in the last place alone: a sub-installation, and its Execution beside that of the root.
            assert!(place != Place::Progressing || begun.len() == 2, "{kind}: {begun:#?}");
        }
        world.apply(&data_object("size", &json!(1))).await;
        world.request("root").await;
        let done = let_go(&world, |root| ended(root, "Succeeded")).await.unwrap();
        assert_eq!(done["status"]["jobID"], "job-102", "{place:?}");
        assert_eq!((world.find_sub("old").await, world.list("DeployItem").await.len()), (None, 2), "{place:?}");
    }
}

/// A root of an item that an external deployer works on, in its second job: what is below was in the middle of another job, so that it
/// got this one by a write of its own (C-216), and the status does not tell of the phases that the job has passed.
async fn comes_below_untold(name: &str, item: &str) -> World {
    let world = World::new().await;
    world.apply(&installation(name, &deploying(&[(item, &[])]))).await;
    world.succeed(item).await;
    world.ended("Installation", name, "Succeeded").await;
    world.patch_status("Execution", name, &json!({"jobID": "stray"})).await;
    world.item(item, |object| object["status"]["jobID"] == "stray").await;
    let status = format!("/installations/{name}/status");
    world.delay_write(&status);
    world.request(name).await;
    world.held().await;
    world.delay_next_write(&status);
    world.held().await;
    let root = world.find("Installation", name).await.unwrap();
    world.item(item, |object| object["status"]["jobID"] == root["status"]["jobID"]).await;
    world
}

/// The phases that the job has passed are not written yet, and what is below has ended before they are.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_32_ins_74_an_interrupt_that_comes_before_the_status_tells_of_the_phases_ends_with_what_failed_below() {
    let world = comes_below_untold("a", "a").await;
    world.annotate("Installation", "a", "operation", "interrupt").await;
    // That the interrupt was handed down is written when all below has ended by it.
    world.delay_next_write("/installations/a");
    world.held().await;
    world.ended("Execution", "a", "Failed").await;
    world.let_pass();
    let failed = world.ended("Installation", "a", "Failed").await;
    let interrupt = "the operation was interrupted by the annotation landscaper.gardener.cloud/operation: interrupt";
    assert_eq!(message(&failed), format!("execution a failed: deploy item a failed: {interrupt}"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ins_56_ins_57_a_deletion_in_whatever_phase_lets_the_job_end_and_leaves_nothing() {
    for place in PLACES {
        let world = World::new().await;
        reach(&world, place).await;
        world.delete("Installation", "root").await;
        // In `Init` it waits for its import no longer; in the others for what works.
        if place != Place::Init {
            let deleted = world.find("Installation", "root").await.unwrap();
            assert_eq!((&deleted["status"]["jobID"], job_ended(&deleted)), (&json!("job-101"), false), "{place:?}");
        }
        let_go(&world, |root| root.is_none()).await;
        for kind in ["Installation", "Execution", "DeployItem"] {
            assert_eq!(world.list(kind).await, Vec::<Value>::new(), "{place:?}");
        }
    }
}

/// No phase of the job is written yet, and what is below has failed in it: that says nothing of a deletion.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ins_57_a_deletion_that_comes_before_the_status_tells_of_the_phases_has_a_job_of_its_own() {
    let world = comes_below_untold("root", "r").await;
    world.fail("r", "broken").await;
    world.ended("Execution", "root", "Failed").await;
    world.delete("Installation", "root").await;
    world.let_pass();
    let_go(&world, |root| root.is_none()).await;
    for kind in ["Installation", "Execution", "DeployItem"] {
        assert_eq!(world.list(kind).await, Vec::<Value>::new());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ins_49_orc_06_after_a_restart_in_whatever_phase_the_job_goes_on_where_it_was() {
    for place in PLACES {
        let mut world = World::new().await;
        reach(&world, place).await;
        let before = world.find("Installation", "root").await.unwrap();
        world.restart();
        world.apply(&data_object("size", &json!(1))).await;
        let done = let_go(&world, |root| ended(root, "Succeeded")).await.unwrap();
        let times = |root: &Value| root["status"]["transitionTimes"]["initTime"].clone();
        assert_eq!((&done["status"]["jobID"], times(&done)), (&json!("job-101"), times(&before)), "{place:?}");
        let objects = [world.list("Installation").await.len(), world.list("DeployItem").await.len()];
        assert_eq!(objects, [2, 2], "{place:?}: nothing is made twice");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ins_07_ins_54_writes_of_others_in_whatever_phase_neither_end_the_job_nor_start_another() {
    for place in PLACES {
        let world = World::new().await;
        reach(&world, place).await;
        let foreign = json!({"metadata": {"labels": {"team": "green"}, "annotations": {"example.org/note": "read"}}});
        let condition = json!({"type": "Audited", "status": "True", "reason": "Done", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z", "lastUpdateTime": "2026-01-01T00:00:00Z"});
        let root = world.find("Installation", "root").await.unwrap();
        let mut conditions = root["status"]["conditions"].clone();
        conditions.as_array_mut().unwrap().push(condition);
        world.patch("Installation", "root", &foreign).await;
        world.patch_status("Installation", "root", &json!({"conditions": conditions})).await;
        world.apply(&data_object("size", &json!(1))).await;
        let done = let_go(&world, |root| ended(root, "Succeeded")).await.unwrap();
        let status = world.whole(&done).await;
        let kept = json!(["Ready=True Succeeded (3)", "Progressing=False Succeeded (3)", "Audited=True Done (null)"]);
        let sorted = |conditions: &Value| {
            let mut lines: Vec<String> = serde_json::from_value(conditions.clone()).unwrap();
            lines.sort();
            lines
        };
        assert_eq!((&status["jobID"], sorted(&status["conditions"])), (&json!("job-101"), sorted(&kept)), "{place:?}");
        assert_eq!(done["metadata"]["labels"], foreign["metadata"]["labels"], "{place:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_15_a_deletion_that_waits_for_a_successor_fails_with_it() {
    let world = World::new().await;
    siblings(&world).await;
    world.delete("Installation", "root").await;
    world.fail("c", "in use").await;
    world.ended("Installation", "root", "DeleteFailed").await;
    let producer = world.sub("producer", is_deleting).await;
    let status = world.status("Installation", &producer).await;
    let consumer = "installation <consumer> failed: execution <consumer> failed: deploy item c failed: in use";
    let because = format!("an installation that imports exports of this one could not be deleted: {consumer}");
    let expected = json!(format!("CheckSuccessors/SuccessorNotDeleted: {because} []"));
    assert_eq!((&status["phase"], &status["lastError"]), (&json!("DeleteFailed"), &expected));
    let root = world.status("Installation", "root").await;
    let expected = format!("Deleting/UndeletedSubobjects: {consumer}; installation <producer> failed: {because} []");
    assert_eq!(root["lastError"], json!(expected));
    assert!(!is_deleting(&world.find_item("p").await.unwrap()), "it deploys on, since it is in use");

    // A request tries all of them again.
    world.request("root").await;
    world.succeed("c").await;
    world.succeed("p").await;
    world.gone("Installation", "root").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ins_57_a_deletion_ends_a_job_that_waits_in_init_for_others() {
    let world = World::new().await;
    world
        .apply(&with(
            installation("before", &both(&deploying(&[("b", &[])]), &exporting("out", &json!(1)))),
            &json!({"exports": data(&["out"])}),
        ))
        .await;
    world.succeed("b").await;
    world.ended("Installation", "before", "Succeeded").await;
    let after = both(&deploying(&[("r", &[])]), &json!({"imports": [data_import("out")]}));
    world.apply(&with(installation("root", &after), &json!({"imports": data(&["out"])}))).await;
    world.succeed("r").await;
    let first = world.ended("Installation", "root", "Succeeded").await;
    world.request("before").await;
    world.triggered("b").await;
    world.request("root").await;
    world.says("Installation", "root", "waiting for Installation before to finish").await;
    world.delete("Installation", "root").await;
    let item = world.item("r", |item| is_deleting(item) && !job_ended(item)).await;
    assert_ne!(item["status"]["jobID"], first["status"]["jobID"]);
    world.succeed("r").await;
    world.gone("Installation", "root").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_290_what_sub_installations_export_counts_with_what_executions_answer() {
    let world = World::new().await;
    // 140 KB that take some 18 MiB.
    world.apply(&data_object("big", &json!(vec![json!({"": 0}); 20_000]))).await;
    let names = ["a", "b", "c", "d"];
    let exports = |name: &str| {
        let blueprint = both(&exporting(name, &input("/imports/big")), &json!({"imports": [data_import("big")]}));
        sub(name, &blueprint, &json!({"imports": data(&["big"]), "exports": data(&[name])}))
    };
    let root = |subs: &[&str]| {
        let subs: Vec<Value> = subs.iter().map(|name| exports(name)).collect();
        let blueprint = json!({"imports": [data_import("big")], "subinstallations": subs});
        let spec = json!({"imports": data(&["big"]), "exports": data(&["out"])});
        with(installation("root", &both(&exporting("out", &json!("v")), &blueprint)), &spec)
    };
    world.apply(&root(&names)).await;
    let failed = world.ended("Installation", "root", "Failed").await;
    assert_eq!(
        message(&failed),
        "what sub-installations and deploy items have exported takes more than the 67108864 bytes of memory that are allowed, with what \
         was read and answered before; use less, or divide the blueprint"
    );
    world.apply(&root(&names[..2])).await;
    world.ended("Installation", "root", "Succeeded").await;
}
