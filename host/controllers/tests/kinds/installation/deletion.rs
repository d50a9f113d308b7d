//! How trees are deleted: by themselves, in order, by request after a failure, and without asking deployers.

use orangery_api::marks::Marks as _;
use orangery_reconcile::Key;
use serde_json::{Value, json};

use crate::{
    objects::{both, data, data_import, deploying, exporting, installation, sub, with},
    world::{World, is_deleting, job_ended, message, name_of},
};

/// A root that has run well: an item `r`, a sub-installation with an item `s`.
async fn family(world: &World) -> Value {
    let subs = json!({"subinstallations": [sub("sub", &deploying(&[("s", &[])]), &json!({}))]});
    world.apply(&installation("root", &both(&deploying(&[("r", &[])]), &subs))).await;
    world.succeed("r").await;
    world.succeed("s").await;
    world.ended("Installation", "root", "Succeeded").await
}

/// A root that has run well, with an item of its name; it imports these keys and exports its own name.
async fn link(world: &World, name: &str, imports: &[&str]) {
    let definitions: Vec<Value> = imports.iter().map(|import| data_import(import)).collect();
    let blueprint =
        both(&both(&deploying(&[(name, &[])]), &exporting("out", &json!("v"))), &json!({"imports": definitions}));
    let exports = json!({"data": [{"name": "out", "dataRef": name}]});
    world.apply(&with(installation(name, &blueprint), &json!({"imports": data(imports), "exports": exports}))).await;
    world.succeed(name).await;
    world.ended("Installation", name, "Succeeded").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ins_56_ins_58_ins_60_ins_63_ins_66_ins_67_a_deletion_starts_by_itself_and_the_root_goes_last() {
    let world = World::new().await;
    let before = family(&world).await;
    world.delete("Installation", "root").await;
    let item = world.item("s", |item| is_deleting(item) && !job_ended(item)).await;
    assert_ne!(item["status"]["jobID"], before["status"]["jobID"], "ins_60: a job of its own");
    world.succeed("r").await;
    let root = world.expect("Installation", "root", |root| root["status"]["phase"] == "Deleting").await;
    assert_eq!(root["status"]["jobID"], item["status"]["jobID"]);
    world.succeed("s").await;
    world.gone("Installation", "root").await;
    assert_eq!((world.list("Execution").await, world.list("DeployItem").await), (Vec::new(), Vec::new()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ins_57_a_deletion_waits_for_the_end_of_the_running_job() {
    let world = World::new().await;
    world.apply(&installation("a", &deploying(&[("a", &[])]))).await;
    let first = world.triggered("a").await;
    world.delete("Installation", "a").await;
    world.expect("Installation", "a", |a| is_deleting(a) && a["status"]["phase"] == "Progressing").await;
    world.succeed("a").await;
    let item = world.item("a", |item| is_deleting(item) && !job_ended(item)).await;
    assert_ne!(item["status"]["jobID"], first["status"]["jobID"]);
    world.succeed("a").await;
    world.gone("Installation", "a").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_212_a_deletion_that_waits_for_the_end_of_a_job_says_so() {
    let world = World::new().await;
    world.apply(&installation("a", &deploying(&[("a", &[])]))).await;
    world.triggered("a").await;
    world.delete("Installation", "a").await;
    let says = "waiting for Execution a to finish; it is being deleted, which begins when this job has ended";
    world.says("Installation", "a", says).await;
    world.succeed("a").await;
    let deleting = world.expect("Installation", "a", |a| a["status"]["phase"] == "Deleting").await;
    assert!(!deleting["status"]["conditions"].to_string().contains("it is being deleted"), "{deleting:#}");
    world.succeed("a").await;
    world.gone("Installation", "a").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ins_59_ins_68_ins_69_a_failed_deletion_ends_and_a_request_restarts_it() {
    let world = World::new().await;
    family(&world).await;
    world.delete("Installation", "root").await;
    world.item("r", is_deleting).await;
    world.fail("r", "in use").await;
    world.expect("Execution", "root", |execution| execution["status"]["phase"] == "DeleteFailed").await;
    let root = world.find("Installation", "root").await.unwrap();
    assert_eq!(root["status"]["phase"], "Deleting", "ins_69: the sub-installation still works");
    world.fail("s", "in use as well").await;
    let failed = world.ended("Installation", "root", "DeleteFailed").await;
    assert!(message(&failed).contains("in use as well"), "{failed:#}");
    world.request("root").await;
    world.succeed("r").await;
    world.succeed("s").await;
    world.gone("Installation", "root").await;
}

/// Whether a deletion has failed, and nothing asks for another one.
fn rests_undeleted(object: &Value) -> bool {
    let asked = &object["metadata"]["annotations"]["landscaper.gardener.cloud/operation"];
    let pending = &object["status"]["pendingOperation"];
    let is_none = |text: &Value| text.as_str().unwrap_or_default().is_empty();
    object["status"]["phase"] == "DeleteFailed" && job_ended(object) && is_none(asked) && is_none(pending)
}

/// The jobs that were asked for have failed: the root rests, and no other job begins.
async fn rests(world: &World, before: &Value) -> Value {
    let failed = world.ended_after("Installation", "a", "DeleteFailed", before).await;
    assert!(rests_undeleted(&failed), "{failed:#}");
    while world.at_rest().is_none() {
        tokio::task::yield_now().await;
    }
    let after = world.find("Installation", "a").await.unwrap();
    assert_eq!((&after["status"]["jobID"], rests_undeleted(&after)), (&failed["status"]["jobID"], true));
    after
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ins_14_ins_59_one_request_starts_one_deletion_however_it_ends() {
    let mut world = World::new().await;
    world.apply(&installation("a", &deploying(&[("a", &[])]))).await;
    world.succeed("a").await;
    let deployed = world.ended("Installation", "a", "Succeeded").await;
    // It is asked for and deleted while no controller looks.
    world.stop();
    world.request("a").await;
    world.delete("Installation", "a").await;
    world.restart();
    world.item("a", is_deleting).await;
    world.fail("a", "in use").await;
    let first = rests(&world, &deployed).await;
    world.request("a").await;
    world.fail("a", "still in use").await;
    let second = rests(&world, &first).await;
    assert!(message(&second).contains("still in use"), "{second:#}");
    world.request("a").await;
    world.succeed("a").await;
    world.gone("Installation", "a").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ins_14_ins_57_a_deletion_answers_the_request_that_waits_for_the_end_of_a_job() {
    let world = World::new().await;
    world.apply(&installation("a", &deploying(&[("a", &[])]))).await;
    world.triggered("a").await;
    world.expect("Installation", "a", |a| a["status"]["phase"] == "Progressing").await;
    world.request("a").await;
    let running = world.expect("Installation", "a", |a| a["status"]["pendingOperation"] == "reconcile").await;
    world.delete("Installation", "a").await;
    world.succeed("a").await;
    world.item("a", |item| is_deleting(item) && !job_ended(item)).await;
    world.fail("a", "in use").await;
    rests(&world, &running).await;
}

/// Two sub-installations, of which one, of this name, exports what the other imports.
fn producing(name: &str) -> Value {
    let producer = both(&deploying(&[("p", &[])]), &exporting("out", &json!("v")));
    let consumer = both(&deploying(&[("c", &[])]), &json!({"imports": [data_import("in")]}));
    json!({"subinstallations": [
        sub("consumer", &consumer, &json!({"imports": {"data": [{"name": "in", "dataRef": "v"}]}})),
        sub(name, &producer, &json!({"exports": {"data": [{"name": "out", "dataRef": "v"}]}})),
    ]})
}

/// A root with two sub-installations, of which one exports what the other imports; both have run well.
pub(super) async fn siblings(world: &World) -> Value {
    world.apply(&installation("root", &producing("producer"))).await;
    world.succeed("p").await;
    world.succeed("c").await;
    world.ended("Installation", "root", "Succeeded").await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_158_a_sub_installation_that_a_user_has_deleted_does_not_wait_for_siblings_that_wait_for_the_job() {
    let world = World::new().await;
    let first = siblings(&world).await;
    let producer = name_of(&world.find_sub("producer").await.unwrap());
    world.delete("Installation", &producer).await;
    world.request("root").await;
    world.item("p", |item| is_deleting(item) && !job_ended(item)).await;
    let leaving = world.find("Installation", &producer).await.unwrap();
    let ignores = &leaving["metadata"]["annotations"]["landscaper.gardener.cloud/delete-ignore-successors"];
    assert_eq!(ignores, "true");
    world.succeed("p").await;
    world.gone("Installation", &producer).await;
    world.item("p", |item| !is_deleting(item) && !job_ended(item)).await;
    world.succeed("p").await;
    world.item("c", |item| !job_ended(item)).await;
    world.succeed("c").await;
    world.ended_after("Installation", "root", "Succeeded", &first).await;
}

/// A user deletes it and renames its template: the former one does not wait for its sibling either.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_158_a_sub_installation_that_a_user_has_deleted_and_whose_template_is_gone_does_not_wait_for_siblings() {
    let world = World::new().await;
    let first = siblings(&world).await;
    let producer = name_of(&world.find_sub("producer").await.unwrap());
    world.delete("Installation", &producer).await;
    world.apply(&installation("root", &producing("renamed"))).await;
    world.item("p", |item| is_deleting(item) && !job_ended(item)).await;
    world.succeed("p").await;
    world.gone("Installation", &producer).await;
    world.item("p", |item| !is_deleting(item) && !job_ended(item)).await;
    world.succeed("p").await;
    world.item("c", |item| !job_ended(item)).await;
    world.succeed("c").await;
    world.ended_after("Installation", "root", "Succeeded", &first).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_161_what_is_deleted_by_itself_says_that_the_next_job_of_its_root_uninstalls_it() {
    let world = World::new().await;
    let first = family(&world).await;
    let sub = name_of(&world.find_sub("sub").await.unwrap());
    let item = name_of(&world.find_item("s").await.unwrap());
    let deleted = [("Installation", &sub), ("Execution", &sub), ("DeployItem", &item)];
    for (kind, name) in deleted {
        world.delete(kind, name).await;
        let says = "is being deleted; the next job of root root uninstalls it";
        let waits = world.says(kind, name, says).await;
        let ready = &waits["status"]["conditions"][0];
        assert_eq!(
            (&ready["type"], &ready["status"], &ready["reason"]),
            (&json!("Ready"), &json!("False"), &json!("AwaitingTrigger"))
        );
    }
    world.request("root").await;
    for name in ["s", "r", "s"] {
        world.succeed(name).await;
    }
    world.ended_after("Installation", "root", "Succeeded", &first).await;
    for (kind, name) in deleted {
        world.gone(kind, name).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ins_61_ins_64_a_deletion_waits_for_importers_unless_the_annotation_says_otherwise() {
    let world = World::new().await;
    for (name, imports) in [("a", &[][..]), ("b", &["a"]), ("c", &["b"])] {
        link(&world, name, imports).await;
    }
    world.delete("Installation", "a").await;
    let waiting = world.says("Installation", "a", "waiting for Installation b to be gone").await;
    assert_eq!(waiting["status"]["phase"], "InitDelete");
    assert!(!is_deleting(&world.find_item("a").await.unwrap()));
    world.annotate("Installation", "b", "delete-ignore-successors", "true").await;
    world.delete("Installation", "b").await;
    world.item("b", is_deleting).await;
    world.succeed("b").await;
    world.gone("Installation", "b").await;
    world.succeed("a").await;
    world.gone("Installation", "a").await;
    assert_eq!(world.find("Installation", "c").await.unwrap()["status"]["phase"], "Succeeded");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ins_61_ins_70_a_deletion_that_waits_for_importers_is_ended_by_an_interrupt_and_a_request_restarts_it() {
    let world = World::new().await;
    link(&world, "a", &[]).await;
    link(&world, "b", &["a"]).await;
    world.delete("Installation", "a").await;
    world.says("Installation", "a", "waiting for Installation b to be gone").await;
    world.annotate("Installation", "a", "operation", "interrupt").await;
    let failed = world.ended("Installation", "a", "DeleteFailed").await;
    assert!(message(&failed).contains("interrupted by the annotation"), "{failed:#}");
    assert!(!is_deleting(&world.find_item("a").await.unwrap()), "nothing below was touched");
    world.request("a").await;
    let waiting = world.says("Installation", "a", "waiting for Installation b to be gone").await;
    assert_ne!(waiting["status"]["jobID"], failed["status"]["jobID"]);
    world.delete("Installation", "b").await;
    world.item("b", is_deleting).await;
    world.succeed("b").await;
    world.gone("Installation", "b").await;
    world.succeed("a").await;
    world.gone("Installation", "a").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ins_77_ins_78_ins_79_without_uninstall_the_tree_goes_and_no_deployer_is_asked() {
    let world = World::new().await;
    family(&world).await;
    world.annotate("Installation", "root", "delete-without-uninstall", "true").await;
    world.delete("Installation", "root").await;
    world.gone("Installation", "root").await;
    assert_eq!((world.list("Execution").await, world.list("DeployItem").await), (Vec::new(), Vec::new()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ins_61_siblings_in_a_tree_are_deleted_importers_first() {
    let world = World::new().await;
    siblings(&world).await;
    world.delete("Installation", "root").await;
    world.item("c", is_deleting).await;
    let producer = world.sub("producer", is_deleting).await;
    let consumer = world.sub("consumer", is_deleting).await;
    world.says("Installation", &producer, &format!("waiting for Installation {consumer} to be gone")).await;
    world.succeed("c").await;
    world.succeed("p").await;
    world.gone("Installation", "root").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn finalizers_that_were_removed_come_back_with_the_next_job() {
    let world = World::new().await;
    let first = family(&world).await;
    let sub = name_of(&world.find_sub("sub").await.unwrap());
    for (kind, name) in [("Installation", "root"), ("Installation", sub.as_str()), ("Execution", "root")] {
        world.patch(kind, name, &json!({"metadata": {"finalizers": null}})).await;
    }
    world.request("root").await;
    world.succeed("r").await;
    world.succeed("s").await;
    world.ended_after("Installation", "root", "Succeeded", &first).await;
    for (kind, name) in [("Installation", "root"), ("Installation", sub.as_str()), ("Execution", "root")] {
        let object = world.find(kind, name).await.unwrap();
        assert_eq!(object["metadata"]["finalizers"], json!(["finalizer.landscaper.gardener.cloud"]), "{kind} {name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn children_of_a_root_that_lost_its_finalizer_delete_themselves() {
    let world = World::new().await;
    family(&world).await;
    world.delete_by_force("Installation", "root").await;
    world.item("s", |item| is_deleting(item) && !job_ended(item)).await;
    for item in ["r", "s"] {
        world.succeed(item).await;
    }
    let sub = world.find_sub("sub").await;
    if let Some(sub) = sub {
        world.gone("Installation", &name_of(&sub)).await;
    }
    assert_eq!(world.list("DeployItem").await, Vec::<Value>::new());
}

/// The tree goes while the job is handed down, and the answer to that is lost: what has got the job is waited for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_136_ins_08_nothing_ends_before_what_has_got_its_job_by_a_write_whose_answer_was_lost() {
    for child in ["executions", "deployitems"] {
        let world = World::new().await;
        let subs = json!({"subinstallations": [sub("sub", &deploying(&[("s", &[])]), &json!({}))]});
        world.apply(&installation("root", &subs)).await;
        world.succeed("s").await;
        let first = world.ended("Installation", "root", "Succeeded").await;
        let above = name_of(&world.find_sub("sub").await.unwrap());
        let (kind, name) = match child {
            "executions" => ("Installation", above.clone()),
            _ => ("Execution", name_of(&world.find_item("s").await.unwrap())),
        };
        world.delay_write_and_lose_answer(&format!("/{child}/{name}/status"));
        world.request("root").await;
        world.held().await;
        world.delete("Installation", "root").await;
        let known = &world.host.as_ref().unwrap().stores.installations;
        let is_going = async || known.get(&Key::new("default", "root")).filter(|root| root.is_deleting()).map(drop);
        world.wait("the controllers do not know that the root goes", is_going).await;
        world.let_pass();
        // The sub-installation and its Execution have one name.
        let rests = |object: &Value| {
            let phase = object["status"]["phase"].as_str().unwrap_or_default();
            object["status"]["jobID"] != first["status"]["jobID"]
                && (job_ended(object) || ["ObjectsCreated", "Progressing"].contains(&phase))
        };
        let waits = world.expect(kind, &above, rests).await;
        assert!(!job_ended(&waits), "{waits:#}");
        // The job, and the deletion after it.
        world.succeed("s").await;
        world.item("s", |item| is_deleting(item) && !job_ended(item)).await;
        world.succeed("s").await;
        world.gone("Installation", "root").await;
    }
}
