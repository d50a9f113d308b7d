//! Host state that somebody else has written, and a component that reaches for it: nothing of it is carried out, and it is
//! told (C-37).

use k8s_openapi::{
    ByteString,
    api::{
        core::v1::{ConfigMap, Namespace, Secret},
        events::v1::Event,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api,
    api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams},
    runtime::{conditions::is_crd_established, wait::await_condition},
};
use orangery_api::{annotation, deploy_item::DeployItem, job::Job};
use serde_json::{Value, json};

use super::items::{Items, gated, proposal};

/// What stands in the status of an item of a component that keeps nothing there.
fn planted(fields: Value) -> Value {
    let mut status = json!({"apiVersion": "example.org/v1", "kind": "Status"});
    orangery_proposal::overlay::overlay(&mut status, &fields);
    json!({"status": {"providerStatus": status}})
}

async fn plant(world: &Items, name: &str, status: Value) {
    world.items().patch_status(name, &PatchParams::default(), &Patch::Merge(planted(status))).await.unwrap();
}

/// A Secret of another namespace.
async fn victim(world: &Items) -> Api<Secret> {
    let namespace = json!({"metadata": {"name": "other"}});
    let namespaces: Api<Namespace> = Api::all(world.client.clone());
    namespaces.create(&PostParams::default(), &serde_json::from_value(namespace).unwrap()).await.unwrap();
    let secrets: Api<Secret> = Api::namespaced(world.client.clone(), "other");
    let secret = json!({"metadata": {"name": "victim"}});
    secrets.create(&PostParams::default(), &serde_json::from_value(secret).unwrap()).await.unwrap();
    secrets
}

fn entry(on: &str) -> Value {
    json!([{"policy": "manage", "cluster": on, "resource": {"apiVersion": "v1", "kind": "Secret", "name": "victim",
        "namespace": "other"}}])
}

/// Waits until an event about an item says this.
pub(super) async fn event_says(world: &Items, reason: &str, text: &str) {
    let events: Api<Event> = Api::default_namespaced(world.client.clone());
    let says = |event: &Event| {
        event.reason.as_deref() == Some(reason) && event.note.as_ref().is_some_and(|note| note.contains(text))
    };
    let published = async {
        while !events.list(&Default::default()).await.unwrap().items.iter().any(says) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(20), published).await.expect("it is told in time");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_37_an_inventory_that_a_user_has_written_deletes_nothing_of_others() {
    for on in ["target", "host"] {
        let world = Items::new().await;
        let secrets = victim(&world).await;
        world.create("item", &[proposal("a", json!({}))], json!({})).await;
        plant(&world, "item", json!({"managedResources": entry(on)})).await;
        let status = world.job("item", "one").await;
        assert_eq!(status["phase"], "Succeeded", "{status:#}");
        event_says(&world, "StateNotTrusted", "was not written by this operator").await;
        event_says(&world, "ObjectsStay", "Secret other/victim").await;
        plant(&world, "item", json!({"managedResources": entry(on)})).await;
        world.delete("item").await;
        world.trigger("item", "two").await;
        world.gone("item").await;
        assert!(secrets.get_opt("victim").await.unwrap().is_some(), "{on}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_37_an_order_of_deletion_that_a_user_has_written_deletes_nothing() {
    let world = Items::new().await;
    let secrets = victim(&world).await;
    world.create("item", &[proposal("a", json!({}))], json!({})).await;
    world.job("item", "one").await;
    let every = json!([{"on": "host", "what": [{"matching": {"apiVersion": "v1", "kind": "Secret"}}], "force": true}]);
    plant(&world, "item", json!({"orangery": {"deletionOrder": every}})).await;
    world.delete("item").await;
    world.trigger("item", "two").await;
    world.gone("item").await;
    assert!(secrets.get_opt("victim").await.unwrap().is_some());
    assert_eq!(world.value("a").await, None, "its own objects are deleted all the same");
}

/// What the host would store of a proposal: content, and the name of its Secret.
async fn store(world: &Items, proposal: &Value) -> Value {
    use std::io::Write as _;
    let json = proposal.to_string().into_bytes();
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(&json).unwrap();
    let content = ByteString(encoder.finish().unwrap());
    let mut secret: Secret = serde_json::from_value(json!({"metadata": {"name": "planted"}})).unwrap();
    secret.data = Some([("proposal".to_owned(), content)].into());
    let secrets: Api<Secret> = Api::default_namespaced(world.client.clone());
    secrets.create(&PostParams::default(), &secret).await.unwrap();
    json!({"digest": orangery_core::digest::sha256(&json), "secrets": ["planted"]})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_37_a_proposal_that_a_user_has_written_is_not_carried_out() {
    let world = Items::new().await;
    world.create("item", &[proposal("a", json!({}))], json!({})).await;
    let binding =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "evil", "namespace": "default"}});
    let evil: orangery_proposal::Proposal = serde_json::from_value(json!({"next": {"finish": {}}, "stages": [
        {"name": "s", "gate": "accepted", "writes": [{"object": binding, "on": "host", "how": "create"}]}]}))
    .unwrap();
    let stored = store(&world, &json!(evil)).await;
    let progress =
        json!({"job": "one", "at": {"stage": {"stage": 0, "step": "removing"}}, "since": "2020-01-01T00:00:00Z"});
    plant(&world, "item", json!({"orangery": {"progress": progress, "proposal": stored}})).await;
    let status = world.job("item", "one").await;
    assert_eq!(status["phase"], "Succeeded", "{status:#}");
    event_says(&world, "StateNotTrusted", "was not written by this operator").await;
    assert_eq!((world.value("evil").await, world.value("a").await.as_deref()), (None, Some("v")));
    let maps: Api<ConfigMap> = Api::default_namespaced(world.client.clone());
    assert!(maps.get_opt("evil").await.unwrap().is_none());
    let secrets: Api<Secret> = Api::default_namespaced(world.client.clone());
    assert!(secrets.get_opt("planted").await.unwrap().is_some(), "nor is a Secret that the status names deleted");
}

/// The item waits, and its status is taken down.
async fn waits(world: &Items, name: &str, job: &str) -> Value {
    world.trigger(name, job).await;
    world.waiting(name, "ConfigMap default/a").await;
    let item = world.wait(name, |item| item.is_some_and(|item| Items::step(item).is_some())).await.unwrap();
    item.status.unwrap().provider_status.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_37_an_older_state_of_the_same_item_is_not_gone_on_with() {
    let world = Items::new().await;
    world.create("item", &[gated("ready")], json!({})).await;
    let older = waits(&world, "item", "one").await;
    world.patch_config_map("a", json!({"data": {"k": "ready"}})).await;
    world.finished("item", "one").await;
    let calls = world.calls();
    // Everything is as it was when the job waited, as far as a user can write it.
    let status =
        json!({"status": {"jobID": "one", "jobIDFinished": "", "phase": "Progressing", "providerStatus": older}});
    world.items().patch_status("item", &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    event_says(&world, "StateNotTrusted", "is an older one than this operator has written last").await;
    world.wait("item", |_| world.calls() > calls).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_37_the_state_of_another_item_is_not_gone_on_with() {
    let world = Items::new().await;
    world.create("other", &[gated("ready")], json!({})).await;
    let others = waits(&world, "other", "one").await;
    world.create("item", &[proposal("b", json!({}))], json!({})).await;
    let status = json!({"status": {"providerStatus": others}});
    world.items().patch_status("item", &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    let status = world.job("item", "one").await;
    assert_eq!(status["phase"], "Succeeded", "{status:#}");
    event_says(&world, "StateNotTrusted", "was not written by this operator").await;
    let names: Vec<&str> = status["providerStatus"]["managedResources"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|one| one["resource"]["name"].as_str())
        .collect();
    assert_eq!(names, ["b"]);
    assert_eq!(world.value("a").await.as_deref(), Some("v"), "the object of the other item stays");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_37_a_component_that_writes_what_the_host_keeps_fails_its_item() {
    let world = Items::new().await;
    for key in ["managedResources", "orangery"] {
        let name = key.to_lowercase();
        world.create(&name, &[proposal("a", json!({"status": {key: []}}))], json!({})).await;
        let status = world.job(&name, "one").await;
        let message = format!(
            "plugin scripted: the provider status that is proposed has the key {key:?}, which the host keeps for itself; leave \
             it out"
        );
        assert_eq!(
            (&status["phase"], &status["lastError"]["message"]),
            (&json!("Failed"), &json!(message)),
            "{status:#}"
        );
    }
    assert_eq!(world.value("a").await, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_37_a_stored_proposal_is_checked_again_when_it_is_gone_on_with() {
    let mut world = Items::new().await;
    world.create("item", &[gated("ready")], json!({})).await;
    waits(&world, "item", "one").await;
    world.restart_granting(json!({"clusters": {"target": true}, "reads": [{}], "writes": [{"kinds": ["Secret"]}]}));
    world.patch_config_map("a", json!({"data": {"k": "ready"}})).await;
    let status = world.finished("item", "one").await;
    let error = &status["lastError"];
    assert_eq!((&status["phase"], &error["reason"]), (&json!("Failed"), &json!("CapabilityDenied")), "{status:#}");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("v1 ConfigMap in namespace default is not granted to this component"), "{message}");
}

/// A name that the status says is no name of a Secret to delete.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_37_a_reference_to_exports_that_a_user_has_written_deletes_no_secret() {
    let world = Items::new().await;
    let secrets: Api<Secret> = Api::default_namespaced(world.client.clone());
    let secret = json!({"metadata": {"name": "victim"}});
    secrets.create(&PostParams::default(), &serde_json::from_value(secret).unwrap()).await.unwrap();
    world.create("item", &[proposal("a", json!({}))], json!({})).await;
    let status = json!({"status": {"exportRef": {"name": "victim", "namespace": "default"}}});
    world.items().patch_status("item", &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    assert_eq!(world.job("item", "one").await["phase"], "Succeeded");
    assert!(secrets.get_opt("victim").await.unwrap().is_some());
    assert!(world.items().get("item").await.unwrap().finished_job(&"one".into()));
}

/// While a proposal waits, one of its kinds comes to be served, and has no namespaces: it is put in order and checked as what it
/// is, instead of tried again as what it cannot be.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_78_a_stored_proposal_is_put_in_order_once_its_kind_is_served_without_namespaces() {
    let world = Items::new().await;
    let metadata = json!({"name": "x", "namespace": "default"});
    let thing = json!({"apiVersion": "example.org/v1", "kind": "Thing", "metadata": metadata});
    let mut waiting = gated("ready");
    let then = json!({"name": "then", "gate": "accepted", "writes": [{"object": thing, "how": "replace"}]});
    waiting["stages"].as_array_mut().unwrap().push(then);
    world.create("item", &[waiting], json!({})).await;
    waits(&world, "item", "one").await;
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let definition = json!({"metadata": {"name": "things.example.org"}, "spec": {
        "group": "example.org", "scope": "Cluster",
        "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}],
    }});
    let definitions: Api<CustomResourceDefinition> = Api::all(world.client.clone());
    definitions.create(&PostParams::default(), &serde_json::from_value(definition).unwrap()).await.unwrap();
    await_condition(definitions, "things.example.org", is_crd_established()).await.unwrap();
    world.patch_config_map("a", json!({"data": {"k": "ready"}})).await;
    let status = world.finished("item", "one").await;
    assert_eq!(status["phase"], "Succeeded", "{status:#}");
    let managed = status["providerStatus"]["managedResources"].as_array().unwrap();
    let thing = managed.iter().map(|entry| &entry["resource"]).find(|resource| resource["kind"] == "Thing").unwrap();
    assert_eq!((&thing["name"], thing.get("namespace")), (&json!("x"), None), "{status:#}");
}

/// A stage waits on a kind that a later stage would define, under the path of what others have: nothing of theirs lets it go on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_167_a_definition_that_is_not_written_shows_no_stage_the_objects_of_others() {
    let world = Items::new().await;
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let definition = |name: &str, plural: &str, kind: &str| {
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{name}.example.org")}, "spec": {"group": "example.org", "scope": "Namespaced",
                "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List")},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}]}})
    };
    let definitions: Api<CustomResourceDefinition> = Api::all(world.client.clone());
    let others = serde_json::from_value(definition("others", "others", "Other")).unwrap();
    definitions.create(&PostParams::default(), &others).await.unwrap();
    await_condition(definitions, "others.example.org", is_crd_established()).await.unwrap();
    let of =
        |kind: &str| json!({"apiVersion": "example.org/v1", "kind": kind, "namespace": "default", "name": "theirs"});
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("example.org", "v1", "Other"));
    let theirs: Api<DynamicObject> = Api::default_namespaced_with(world.client.clone(), &resource);
    let object = DynamicObject::new("theirs", &resource).data(json!({"data": {"k": "ready"}}));
    theirs.create(&PostParams::default(), &object).await.unwrap();
    for (name, defined, plural) in [("alias", "others", "others"), ("climbs", "xs", "others/../../configmaps")] {
        let mut waiting = gated("ready");
        waiting["stages"][0]["gate"]["ready"][0]["scope"] = json!({"keys": [of("X")]});
        let alias = json!({"object": definition(defined, plural, "X"), "how": "replace"});
        let then = json!({"name": "then", "gate": "accepted", "writes": [alias]});
        waiting["stages"].as_array_mut().unwrap().push(then);
        world.create(name, &[waiting], json!({})).await;
        world.trigger(name, "one").await;
        let says = |item: &DeployItem| json!(item.status).to_string().contains("does not serve example.org/v1 X");
        world.wait(name, |item| item.is_some_and(says)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_270_what_was_proposed_for_another_signed_origin_is_proposed_anew() {
    let world = Items::new().await;
    world.create("item", &[gated("ready")], json!({})).await;
    waits(&world, "item", "one").await;
    let calls = world.calls();
    let marked = |mark: &str| Patch::Merge(json!({"metadata": {"annotations": {(annotation::SIGNED_ORIGIN): mark}}}));
    world.items().patch("item", &PatchParams::default(), &marked("another")).await.unwrap();
    world.patch_config_map("a", json!({"data": {"k": "changed"}})).await;
    world.wait("item", |_| world.calls() > calls).await;
    let is_written_anew = async || (world.value("a").await.as_deref() == Some("v")).then_some(());
    assert!(world.in_time(is_written_anew).await.is_some(), "what is proposed is written");
    world.patch_config_map("a", json!({"data": {"k": "ready"}})).await;
    assert_eq!(world.finished("item", "one").await["phase"], "Succeeded");
}
