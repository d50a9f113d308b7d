//! Jobs that wait or try again in `Completing`, where no children work: an interrupt or a deletion ends them.

use serde_json::{Value, json};

use crate::{
    objects::{both, data, data_import, data_object, deploying, exporting, installation, sub, with},
    world::{World, components::AWAY, is_deleting, job_ended, message, name_of},
};

const INTERRUPTED: &str =
    "the operation was interrupted by the annotation landscaper.gardener.cloud/operation: interrupt";
const DELETED: &str = "the job has ended unfinished, since its tree is being deleted";

/// A root whose sub-installation `sub` has an item `s` that says it exports what nobody can read.
async fn unreadable_exports(world: &World) -> String {
    let subs = json!({"subinstallations": [sub("sub", &deploying(&[("s", &[])]), &json!({}))]});
    world.apply(&installation("root", &subs)).await;
    let item = name_of(&world.triggered("s").await);
    let reference = json!({"exportRef": {"name": "gone", "namespace": "default"}});
    world.patch_status("DeployItem", &item, &reference).await;
    world.succeed("s").await;
    let sub = world.sub("sub", |_| true).await;
    world.expect("Execution", &sub, |execution| execution["status"]["phase"] == "Completing").await;
    world.says("Execution", &sub, "TransientError").await;
    format!("the exports of DeployItem default/{item} in Secret gone do not exist")
}

async fn leaf_error(world: &World) -> Value {
    let sub = world.sub("sub", |_| true).await;
    world.find("Execution", &sub).await.unwrap()["status"]["lastError"]["message"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ins_70_ins_74_ins_76_a_job_that_tries_again_to_read_exports_is_ended_by_an_interrupt() {
    let world = World::new().await;
    let problem = unreadable_exports(&world).await;
    world.annotate("Installation", "root", "operation", "interrupt").await;
    let failed = world.ended("Installation", "root", "Failed").await;
    assert_eq!(leaf_error(&world).await, json!(format!("{INTERRUPTED}; the last problem was: {problem}")));
    let item = name_of(&world.find_item("s").await.unwrap());
    world.patch_status("DeployItem", &item, &json!({"exportRef": null})).await;
    world.request("root").await;
    world.succeed("s").await;
    world.ended_after("Installation", "root", "Succeeded", &failed).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ins_56_ins_57_a_job_that_tries_again_to_read_exports_ends_where_its_root_is_deleted() {
    let world = World::new().await;
    let problem = unreadable_exports(&world).await;
    world.delete("Installation", "root").await;
    world.item("s", is_deleting).await;
    let sub = world.sub("sub", |_| true).await;
    let event = format!("Warning EndBeforeDeletion: {DELETED}; the last problem was: {problem}");
    let unreadable = format!("Warning ExportsUnreadable: {problem}");
    let named = |text: &str| text.replace(&name_of_item(text), "<s>");
    world.has_events("Execution", &sub, &[named(&event).as_str(), named(&unreadable).as_str()]).await;
    world.succeed("s").await;
    world.gone("Installation", "root").await;
}

/// The name of the deploy item that a message speaks of.
fn name_of_item(message: &str) -> String {
    let name = message.split("DeployItem default/").nth(1).and_then(|rest| rest.split(' ').next());
    name.unwrap().to_owned()
}

/// A root that waits in `Completing` for an import that went during the job.
async fn lost_import(world: &World) {
    world.apply(&data_object("size", &json!(1))).await;
    let blueprint = both(&deploying(&[("a", &[])]), &json!({"imports": [data_import("size")]}));
    let spec = json!({"imports": data(&["size"]), "importPolicy": "Wait"});
    world.apply(&with(installation("a", &blueprint), &spec)).await;
    world.triggered("a").await;
    world.delete("DataObject", "size").await;
    world.succeed("a").await;
    let waiting = world.says("Installation", "a", "waiting for DataObject size to exist").await;
    assert_eq!(waiting["status"]["phase"], "Completing");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_10_c_32_a_job_that_waits_for_a_lost_import_at_its_end_is_ended_by_an_interrupt() {
    let world = World::new().await;
    lost_import(&world).await;
    world.annotate("Installation", "a", "operation", "interrupt").await;
    world.ended("Installation", "a", "Failed").await;
    let error = world.status("Installation", "a").await["lastError"].clone();
    assert_eq!(error, json!(format!("InterruptOperation/InterruptOperation: {INTERRUPTED} []")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_10_ins_57_a_job_that_waits_for_a_lost_import_at_its_end_ends_where_it_is_deleted() {
    let world = World::new().await;
    lost_import(&world).await;
    world.delete("Installation", "a").await;
    let item = world.item("a", |item| is_deleting(item) && !job_ended(item)).await;
    assert_eq!(item["status"]["jobID"], "job-101", "a job of its own");
    world.succeed("a").await;
    world.gone("Installation", "a").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_10_orc_25_a_lost_import_that_comes_back_lets_the_job_end_well() {
    let world = World::new().await;
    lost_import(&world).await;
    world.apply(&data_object("size", &json!(1))).await;
    world.ended("Installation", "a", "Succeeded").await;
    world.has_events("Installation", "a", &[]).await;
}

/// A root of a component version, whose item has succeeded when others begin and its repository is away.
async fn unreachable_repository(world: &mut World) {
    world.components.have(&both(&deploying(&[("a", &[])]), &exporting("out", &json!("v"))));
    let mut root = installation("a", &json!({}));
    root["spec"]["blueprint"] = json!({"ref": {"resourceName": "blueprint"}});
    let reference =
        json!({"repositoryContext": {"type": "local"}, "componentName": "example.org/app", "version": "1.0.0"});
    root["spec"]["componentDescriptor"] = json!({"ref": reference});
    world.apply(&root).await;
    world.triggered("a").await;
    world.components.be_away(true);
    world.restart();
    world.succeed("a").await;
    let waiting = world.says("Installation", "a", AWAY).await;
    assert_eq!(waiting["status"]["phase"], "Completing");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_32_ins_70_a_job_that_waits_for_its_repository_at_its_end_is_ended_by_an_interrupt() {
    let mut world = World::new().await;
    unreachable_repository(&mut world).await;
    world.annotate("Installation", "a", "operation", "interrupt").await;
    let failed = world.ended("Installation", "a", "Failed").await;
    assert_eq!(message(&failed), format!("{INTERRUPTED}; the last problem was: {AWAY}"));
    world.components.be_away(false);
    world.request("a").await;
    world.succeed("a").await;
    world.ended_after("Installation", "a", "Succeeded", &failed).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_28_ins_57_a_job_that_waits_for_its_repository_at_its_end_ends_where_its_root_is_deleted() {
    let mut world = World::new().await;
    unreachable_repository(&mut world).await;
    world.delete("Installation", "a").await;
    world.item("a", |item| is_deleting(item) && !job_ended(item)).await;
    world.succeed("a").await;
    world.gone("Installation", "a").await;
}
