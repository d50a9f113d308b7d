//! What is changed after a job: told, and written again where the item wants that; and what nobody can make of it who may write
//! the item, its Secrets, or the objects (C-55 to C-61).

use k8s_openapi::{
    ByteString,
    api::core::v1::{ConfigMap, Secret},
};
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams, PostParams},
    runtime::wait::await_condition,
};
use orangery_api::{condition::Condition, deploy_item::DeployItem, job::Job, target::Target};
use orangery_controllers::SecretSource;
use orangery_reconcile::Key;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{
    former_cluster::{has, retarget, second},
    items::{Items, is_proposal, proposal},
};
use crate::world::DEADLINE;

const OWNER: &str = "orangery.dev/owner";

fn drift(policy: &str) -> Value {
    json!({"drift": {"policy": policy}})
}

/// The condition of drift.
fn drifted(item: &DeployItem) -> Option<&Condition> {
    item.conditions().iter().find(|condition| condition.type_ == "Drifted")
}

/// Status, reason and message of the condition, and the objects of `status.drift` with their fields, in short.
fn says(item: &DeployItem) -> [String; 4] {
    let condition = json!(drifted(item));
    let text = |name: &str| condition[name].as_str().unwrap_or("").to_owned();
    let status = item.status.as_ref().and_then(|status| status.drift.as_ref());
    let objects = status.into_iter().flat_map(|drift| &drift.objects);
    let objects: Vec<String> =
        objects.map(|one| format!("{} {} {}", one.name, one.what, one.fields.join(","))).collect();
    [text("status"), text("reason"), text("message"), objects.join("; ").trim_end().to_owned()]
}

/// Waits until the item tells this.
async fn tells(world: &Items, name: &str, expected: [&str; 4]) {
    world.wait(name, |item| item.is_some_and(|item| says(item) == expected)).await;
}

/// Waits until the item tells that drift is not known, for this reason.
async fn unknown(world: &Items, name: &str, why: &str) {
    let is = |item: &DeployItem| says(item)[0] == "Unknown" && says(item)[2].contains(why);
    world.wait(name, |item| item.is_some_and(is)).await;
}

const NONE: [&str; 4] = ["False", "AsWritten", "", ""];
const DIFFERENT: [&str; 4] =
    ["True", "DriftDetected", "ConfigMap default/a: /data/k is different", "a Different /data/k"];

async fn patch(world: &Items, name: &str, value: &str) {
    world.patch_config_map(name, json!({"data": {"k": value}})).await;
}

/// Waits until a config map has a value.
async fn becomes(world: &Items, name: &str, value: &str) {
    let is = |map: Option<&ConfigMap>| map.and_then(|map| map.data.as_ref()?.get("k")).is_some_and(|k| k == value);
    let seen = timeout(DEADLINE, await_condition(world.config_maps(), name, is)).await;
    assert!(seen.is_ok(), "{name} is {:?}", world.value(name).await);
}

/// An item that has written the config map `a`, of which nothing has drifted.
async fn installed(policy: &str) -> Items {
    let world = Items::new().await;
    world.create("item", &[proposal("a", json!({}))], drift(policy)).await;
    world.job("item", "one").await;
    tells(&world, "item", NONE).await;
    world
}

async fn manifests(world: &Items) -> Vec<Secret> {
    world.secrets().await.into_iter().filter(is_proposal).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_58_a_change_is_told_until_it_is_undone_and_a_job_forgets_it() {
    let world = installed("Report").await;
    patch(&world, "a", "theirs").await;
    tells(&world, "item", DIFFERENT).await;
    patch(&world, "a", "v").await;
    tells(&world, "item", NONE).await;
    world.config_maps().delete("a", &DeleteParams::default()).await.unwrap();
    tells(&world, "item", ["True", "DriftDetected", "ConfigMap default/a is missing", "a Missing"]).await;
    assert_eq!(world.calls(), 1, "no component is called");
    world.job("item", "two").await;
    tells(&world, "item", NONE).await;
    becomes(&world, "a", "v").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_58_what_was_written_is_kept_for_an_item_that_wants_to_know_and_goes_when_it_does_not() {
    let world = installed("Report").await;
    assert_eq!(manifests(&world).await.len(), 1);
    world.patch("item", json!({"spec": {"drift": {"policy": "Ignore"}}})).await;
    tells(&world, "item", ["", "", "", ""]).await;
    world.job("item", "two").await;
    world.without_proposals().await;
    // What was not kept is not guessed.
    world.patch("item", json!({"spec": {"drift": {"policy": "Correct"}}})).await;
    unknown(&world, "item", "what the last job wrote was not kept").await;
    world.job("item", "three").await;
    tells(&world, "item", NONE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_58_what_every_proposal_of_a_job_wrote_is_looked_at() {
    let world = Items::new().await;
    let first = proposal("a", json!({"next": {"continueWith": [1]}}));
    let second = proposal("b", json!({"next": {"continueWith": [2]}}));
    let mut again = proposal("b", json!({}));
    again["stages"][0]["writes"][0]["object"]["data"]["k"] = json!("last");
    world.create("item", &[first, second, again], drift("Report")).await;
    world.job("item", "one").await;
    tells(&world, "item", NONE).await;
    assert_eq!(manifests(&world).await.len(), 1, "what came in between is not needed any more");
    patch(&world, "a", "theirs").await;
    tells(&world, "item", DIFFERENT).await;
    patch(&world, "b", "v").await;
    let both = "ConfigMap default/a: /data/k is different; ConfigMap default/b: /data/k is different";
    tells(&world, "item", ["True", "DriftDetected", both, "a Different /data/k; b Different /data/k"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_58_a_job_that_was_cut_off_between_two_proposals_keeps_what_both_wrote() {
    let mut world = Items::new().await;
    let first = proposal("a", json!({"next": {"continueWith": [1]}}));
    world.create("item", &[first, json!({"closed": proposal("b", json!({}))})], drift("Correct")).await;
    world.trigger("item", "one").await;
    world.waiting("item", "closed").await;
    world.restart();
    world.plugin.open();
    world.touch("item", "open").await;
    assert_eq!(world.finished("item", "one").await["phase"], "Succeeded");
    tells(&world, "item", NONE).await;
    patch(&world, "a", "theirs").await;
    becomes(&world, "a", "v").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_60_what_was_changed_is_written_again_and_no_component_is_called() {
    let mut world = installed("Correct").await;
    world.patch_config_map("a", json!({"data": {"k": "theirs", "more": "stays"}})).await;
    becomes(&world, "a", "v").await;
    tells(&world, "item", NONE).await;
    world.config_maps().delete("a", &DeleteParams::default()).await.unwrap();
    becomes(&world, "a", "v").await;
    tells(&world, "item", NONE).await;
    assert_eq!(world.calls(), 1);
    // Of what the operator missed it hears when it begins.
    world.restart();
    patch(&world, "a", "theirs").await;
    becomes(&world, "a", "v").await;
    // An item that only wants to know has nothing written.
    world.patch("item", json!({"spec": drift("Report")})).await;
    let known = world.host.as_ref().unwrap().stores.deploy_items.clone();
    let reports = async || {
        let item = known.get(&Key::new("default", "item"))?;
        (json!(item.spec)["drift"] == drift("Report")["drift"] && says(&item) == NONE).then_some(())
    };
    assert!(world.in_time(reports).await.is_some(), "the controllers do not know it");
    patch(&world, "a", "theirs").await;
    tells(&world, "item", DIFFERENT).await;
    becomes(&world, "a", "theirs").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_60_an_object_that_is_not_the_items_any_more_is_told_and_never_written() {
    let world = installed("Correct").await;
    let mark = |mark: Value| json!({"metadata": {"annotations": {OWNER: mark}}, "data": {"k": "theirs"}});
    let is = |why: &str| format!("ConfigMap default/a {why}");
    world.patch_config_map("a", mark(json!("default/other/uid"))).await;
    let other = is("belongs to DeployItem default/other now");
    tells(&world, "item", ["True", "DriftDetected", &other, "a TakenOver"]).await;
    world.patch_config_map("a", mark(Value::Null)).await;
    let lost = is("has lost the annotation orangery.dev/owner");
    tells(&world, "item", ["True", "DriftDetected", &lost, "a TakenOver"]).await;
    assert_eq!(world.value("a").await.as_deref(), Some("theirs"));
    // The mark is put back: it is the item's again, and what differs is written.
    let item = world.items().get("item").await.unwrap();
    let own = format!("default/item/{}", item.metadata.uid.unwrap());
    world.patch_config_map("a", mark(json!(own))).await;
    becomes(&world, "a", "v").await;
    tells(&world, "item", NONE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_60_an_object_that_somebody_made_anew_is_theirs() {
    let world = Items::new().await;
    world.create("item", &[proposal("a", json!({}))], drift("Report")).await;
    world.job("item", "one").await;
    tells(&world, "item", NONE).await;
    world.config_maps().delete("a", &DeleteParams::default()).await.unwrap();
    tells(&world, "item", ["True", "DriftDetected", "ConfigMap default/a is missing", "a Missing"]).await;
    let theirs = serde_json::from_value(json!({"metadata": {"name": "a"}, "data": {"k": "theirs"}})).unwrap();
    world.config_maps().create(&PostParams::default(), &theirs).await.unwrap();
    let another = "ConfigMap default/a is another object, which somebody else has made";
    tells(&world, "item", ["True", "DriftDetected", another, "a TakenOver"]).await;
    world.patch("item", json!({"spec": drift("Correct")})).await;
    // Something else of the same item would be written now; this is not.
    world.create("witness", &[proposal("b", json!({}))], drift("Correct")).await;
    world.job("witness", "one").await;
    tells(&world, "witness", NONE).await;
    patch(&world, "b", "theirs").await;
    becomes(&world, "b", "v").await;
    tells(&world, "item", ["True", "DriftDetected", another, "a TakenOver"]).await;
    assert_eq!(world.value("a").await.as_deref(), Some("theirs"));
}

/// The Secret with what was written has this content instead.
async fn swap(world: &Items, content: &Value) -> Value {
    use std::io::Write as _;
    let json = content.to_string().into_bytes();
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(&json).unwrap();
    let packed = ByteString(encoder.finish().unwrap());
    let secrets: Api<Secret> = Api::default_namespaced(world.client.clone());
    let mut secret = manifests(world).await.remove(0);
    let name = secret.metadata.name.clone().unwrap();
    secrets.delete(&name, &DeleteParams::default()).await.unwrap();
    secret.metadata.resource_version = None;
    secret.metadata.uid = None;
    secret.data = Some([("proposal".to_owned(), packed)].into());
    secrets.create(&PostParams::default(), &secret).await.unwrap();
    json!({"digest": orangery_core::digest::sha256(&json), "secrets": [name]})
}

/// A manifest that nobody has written: an object of somebody else, under the operator's credentials.
fn evil() -> Value {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "evil", "namespace": "default"}});
    let write = json!({"object": object, "on": "host", "how": "replace"});
    let evil = json!({"next": {"finish": {}}, "stages": [{"name": "s", "gate": "accepted", "writes": [write]}]});
    json!(serde_json::from_value::<orangery_proposal::Proposal>(evil).unwrap())
}

/// What is in the status or in the Secret is not the operator's: nothing is written for it, and a job mends it.
async fn is_not_trusted(world: &Items) {
    unknown(world, "item", "what the last job wrote was not kept").await;
    assert_eq!((world.value("evil").await, world.value("a").await.as_deref()), (None, Some("v")));
    world.job("item", "two").await;
    tells(world, "item", NONE).await;
    assert_eq!(world.value("evil").await, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_60_a_manifest_that_a_user_has_put_in_its_secret_is_not_written() {
    let mut world = installed("Correct").await;
    world.stop();
    swap(&world, &evil()).await;
    world.restart();
    is_not_trusted(&world).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_60_a_manifest_that_a_user_has_named_in_the_status_is_not_written() {
    let mut world = installed("Correct").await;
    world.stop();
    let named = swap(&world, &evil()).await;
    // Its inventory names the object as well, under the same seal as before.
    let entry = json!({"policy": "manage", "cluster": "host", "resource": {"apiVersion": "v1", "kind": "ConfigMap",
        "name": "evil", "namespace": "default"}});
    let status = json!({"status": {"providerStatus": {"managedResources": [entry], "orangery": {"manifest": named}}}});
    world.items().patch_status("item", &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    world.restart();
    is_not_trusted(&world).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_60_the_sealed_status_of_another_item_has_nothing_written() {
    let mut world = installed("Correct").await;
    world.create("other", &[proposal("b", json!({}))], drift("Report")).await;
    let others = world.job("other", "one").await["providerStatus"].clone();
    world.stop();
    patch(&world, "b", "theirs").await;
    let status = json!({"status": {"providerStatus": others}});
    world.items().patch_status("item", &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    world.restart();
    unknown(&world, "item", "what the last job wrote was not kept").await;
    assert_eq!(world.value("b").await.as_deref(), Some("theirs"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_60_what_a_user_says_of_drift_in_the_status_is_nobodys_word() {
    let world = installed("Correct").await;
    let planted = json!({"count": 1, "objects": [{"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default",
        "name": "evil", "what": "Missing"}]});
    let status = json!({"status": {"drift": planted}});
    world.items().patch_status("item", &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    tells(&world, "item", NONE).await;
    assert_eq!(world.value("evil").await, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_60_what_a_component_may_not_write_any_more_is_not_written() {
    let mut world = installed("Correct").await;
    world.stop();
    patch(&world, "a", "theirs").await;
    world.restart_granting(json!({"clusters": {"target": true}, "reads": [{}], "writes": [{"kinds": ["Secret"]}]}));
    unknown(&world, "item", "v1 ConfigMap in namespace default is not granted to this component").await;
    assert_eq!(world.value("a").await.as_deref(), Some("theirs"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_60_another_cluster_than_the_one_that_was_written_to_is_not_written() {
    let mut world = installed("Correct").await;
    let (server, second) = second().await;
    retarget(&world, &server.kubeconfig()).await;
    // The feed of the cluster that was written to still tells.
    patch(&world, "a", "theirs").await;
    let why = "is another cluster than the one that the last job wrote to";
    unknown(&world, "item", why).await;
    world.restart();
    unknown(&world, "item", why).await;
    assert_eq!((has(&second, "a").await, world.value("a").await.as_deref()), (false, Some("theirs")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_58_no_value_that_is_secret_is_told_not_even_as_a_name() {
    let world = Items::new().await;
    let key = "hunter2-hunter2-hunter2";
    world.host.as_ref().unwrap().secrets.learn(&"default".into(), SecretSource::Secret("s".into()), [key.to_owned()]);
    let mut named = proposal("a", json!({}));
    named["stages"][0]["writes"][0]["object"]["data"] = json!({key: "v"});
    world.create("item", &[named], drift("Report")).await;
    world.job("item", "one").await;
    tells(&world, "item", NONE).await;
    world.patch_config_map("a", json!({"data": {key: "theirs"}})).await;
    let expected =
        ["True", "DriftDetected", "ConfigMap default/a: /data/[masked] is different", "a Different /data/[masked]"];
    tells(&world, "item", expected).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_59_nothing_is_asked_while_nothing_of_the_item_changes() {
    let world = installed("Correct").await;
    let theirs = |name: &str| serde_json::from_value(json!({"metadata": {"name": name}, "data": {"k": "1"}})).unwrap();
    world.config_maps().create(&PostParams::default(), &theirs("theirs")).await.unwrap();
    let requests = world.requests();
    for count in 2..30 {
        patch(&world, "theirs", &count.to_string()).await;
        world.patch_config_map("a", json!({"data": {"more": count.to_string()}})).await;
    }
    assert_eq!(world.requests(), requests, "what others change, and what the item does not name");
    patch(&world, "a", "theirs").await;
    becomes(&world, "a", "v").await;
    tells(&world, "item", NONE).await;
}

async fn delete_target(world: &Items, name: &str) -> Target {
    let targets: Api<Target> = Api::default_namespaced(world.client.clone());
    let target = targets.get(name).await.unwrap();
    targets.delete(name, &DeleteParams::default()).await.unwrap();
    target
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_59_an_item_whose_target_was_not_there_is_watched_when_it_is() {
    let mut world = installed("Report").await;
    world.stop();
    let target = delete_target(&world, "cluster").await;
    world.restart();
    unknown(&world, "item", "Target default/cluster, which does not exist").await;
    world.target("cluster", json!(target.spec)).await;
    tells(&world, "item", NONE).await;
    patch(&world, "a", "theirs").await;
    tells(&world, "item", DIFFERENT).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_59_an_item_whose_secret_was_not_there_is_watched_when_it_is() {
    let mut world = Items::new().await;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "kubeconfig"},
        "stringData": {"kubeconfig": world.kubeconfig()}});
    world.apply(&secret).await;
    let spec = json!({"type": "landscaper.gardener.cloud/kubernetes-cluster", "secretRef": {"name": "kubeconfig"}});
    world.target("garden", spec).await;
    let mut fields = drift("Report");
    fields["target"] = json!({"name": "garden", "namespace": "default"});
    world.create("item", &[proposal("a", json!({}))], fields).await;
    world.job("item", "one").await;
    tells(&world, "item", NONE).await;
    world.stop();
    world.objects().delete("Secret", "kubeconfig").await;
    world.restart();
    unknown(&world, "item", "refers to Secret kubeconfig, which does not exist").await;
    world.apply(&secret).await;
    tells(&world, "item", NONE).await;
}
