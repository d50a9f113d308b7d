//! Data of Secrets in DataObjects, where a policy has it encrypted (C-81).

use std::collections::BTreeMap;

use orangery_policy::Profile;
use serde_json::{Value, json};

use crate::{
    objects::{both, data, data_import, exporting, input, installation, item, of_items, sub, with},
    world::{Setup, World, name_of},
};

const VALUE: &str = "hunter2-hunter2+hunter2";
/// Shorter than what is masked, and read as a number.
const PIN: u32 = 7788;

fn restricted() -> Setup {
    Setup { profile: Profile::Restricted, ..Setup::default() }
}

/// A root `a` that imports both values, hands the short one through a sub-installation, and exports them.
fn exporter() -> Value {
    let imports = json!({"imports": [data_import("v"), data_import("pin")]});
    let deep = both(&exporting("deep", &input("/imports/pin")), &json!({"imports": [data_import("pin")]}));
    let handed = json!({"imports": data(&["pin"]), "exports": data(&["deep"])});
    let subs = json!({"subinstallations": [sub("child", &deep, &handed)]});
    let out =
        json!({"user": "someone else", "password": input("/imports/v"), "deep": input("/values/dataobjects/deep")});
    let blueprint = both(&both(&exporting("out", &out), &imports), &subs);
    let from = |name: &str| json!({"name": name, "secretRef": {"name": "s", "key": name}});
    let spec = json!({"imports": {"data": [from("v"), from("pin")]}, "exports": data(&["out"])});
    with(installation("a", &blueprint), &spec)
}

/// A root `b` that imports what the other one exports, and has an item with it.
fn follower() -> Value {
    let config = json!({"config": {"of": input("/imports/out")}});
    let blueprint = both(&of_items(&[item("i", &[], &config)]), &json!({"imports": [data_import("out")]}));
    with(installation("b", &blueprint), &json!({"imports": data(&["out"])}))
}

async fn world(setup: Setup) -> World {
    let world = World::with(setup).await;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "default"},
        "stringData": {"v": VALUE, "pin": PIN.to_string()}});
    world.apply(&secret).await;
    world.apply(&exporter()).await;
    world.ended("Installation", "a", "Succeeded").await;
    world
}

/// What the item of `b` is made with.
fn expected() -> Value {
    json!({"user": "someone else", "password": VALUE, "deep": PIN})
}

/// Of each DataObject its key, its mark, and whether others can read what is in it.
async fn found(world: &World) -> BTreeMap<String, (String, bool)> {
    let objects = world.list("DataObject").await;
    let label = |object: &Value, name: &str| object["metadata"]["labels"][name].as_str().unwrap_or_default().to_owned();
    let keyed = objects.iter().map(|object| {
        let context = label(object, "data.landscaper.gardener.cloud/context");
        let key = format!("{context}/{}", label(object, "data.landscaper.gardener.cloud/key"));
        let text = object.to_string();
        // A hash of the value in clear is as good as the value, where there are not many that it may be.
        let hashes = [json!(VALUE), json!(PIN)].map(|value| orangery_core::digest::stored_hash(&value));
        let shows = [VALUE.to_owned()].into_iter().chain(hashes).any(|secret| text.contains(&secret))
            || object["data"].to_string().contains(&PIN.to_string());
        let is_encrypted = object["data"].get("orangery.dev/encrypted").is_some();
        assert!(!shows || !is_encrypted, "{object:#}");
        (key, (label(object, "orangery.dev/secret-data"), is_encrypted))
    });
    keyed.filter(|(key, (mark, _))| !key.starts_with("Inst.child") && !mark.is_empty()).collect()
}

fn marks(is_encrypted: bool) -> BTreeMap<String, (String, bool)> {
    let of = |key: &str, mark: &str| (key.to_owned(), (mark.to_owned(), is_encrypted));
    [of("/out", "partly"), of("Inst.a/deep", "whole"), of("Inst.a/pin", "whole"), of("Inst.a/v", "whole")].into()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_81_data_of_secrets_is_encrypted_by_policy_and_importers_read_it() {
    let mut world = world(restricted()).await;
    assert_eq!(found(&world).await, marks(true));
    world.apply(&follower()).await;
    let made = world.item("i", |_| true).await;
    assert_eq!(made["spec"]["config"]["of"], expected());
    world.succeed("i").await;
    world.ended("Installation", "b", "Succeeded").await;
    // What says the same is encrypted to the same, also by others with the same key.
    let data = async |world: &World| -> BTreeMap<String, Value> {
        let objects = world.list("DataObject").await;
        objects.iter().map(|object| (name_of(object), object["data"].clone())).collect()
    };
    let before = data(&world).await;
    world.restart();
    let first = world.ended("Installation", "a", "Succeeded").await;
    world.request("a").await;
    world.ended_after("Installation", "a", "Succeeded", &first).await;
    assert_eq!(data(&world).await, before);
    // Without the line they are readable from the next job on, as Landscaper's tools expect.
    world.restart_with(Setup::default());
    let first = world.ended("Installation", "a", "Succeeded").await;
    world.request("a").await;
    world.ended_after("Installation", "a", "Succeeded", &first).await;
    let readable: BTreeMap<_, _> =
        found(&world).await.into_iter().filter(|(key, _)| !key.starts_with("Inst.b")).collect();
    assert_eq!(readable, marks(false));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_81_with_another_key_each_reader_says_what_to_run_again_and_that_mends_it() {
    let mut world = world(restricted()).await;
    world.restart_with(Setup { key: 1, ..restricted() });
    world.apply(&follower()).await;
    let failed = world.ended("Installation", "b", "Failed").await;
    let error = &failed["status"]["lastError"];
    let sentence = "import \"out\" of installation default/b: DataObject out is encrypted, and this operator cannot decrypt it: \
                    it was copied, renamed or edited, or written under another key of the operator; run Installation a \
                    again, which writes it anew";
    assert_eq!((&error["message"], &error["reason"]), (&json!(sentence), &json!("DataNotDecrypted")), "{failed:#}");
    let first = world.ended("Installation", "a", "Succeeded").await;
    world.request("a").await;
    world.ended_after("Installation", "a", "Succeeded", &first).await;
    world.request("b").await;
    let made = world.item("i", |_| true).await;
    assert_eq!(made["spec"]["config"]["of"], expected());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_81_encrypted_data_that_was_moved_or_edited_is_told_and_not_read() {
    let world = world(restricted()).await;
    let out = world.find("DataObject", "out").await.unwrap();
    let copied = |name: &str, data: &Value| {
        let metadata = json!({"name": name, "namespace": "default", "labels": out["metadata"]["labels"],
            "ownerReferences": out["metadata"]["ownerReferences"]});
        json!({"apiVersion": crate::objects::API, "kind": "DataObject", "metadata": metadata, "data": data})
    };
    let cut = out["data"]["orangery.dev/encrypted"].as_str().unwrap();
    let tries = [
        ("renamed", out["data"].clone()),
        ("forged", json!({"orangery.dev/encrypted": "AAAA"})),
        ("edited", json!({"orangery.dev/encrypted": cut, "more": 1})),
        ("none", json!({"orangery.dev/encrypted": null})),
    ];
    for (name, data) in tries {
        world.apply(&copied(name, &data)).await;
        let mut root = follower();
        root["metadata"]["name"] = json!(name);
        root["spec"]["imports"]["data"][0]["dataRef"] = json!(name);
        world.apply(&root).await;
        let failed = world.ended("Installation", name, "Failed").await;
        let told = format!("DataObject {name} is encrypted, and this operator cannot decrypt it");
        assert!(failed["status"]["lastError"]["message"].as_str().unwrap().contains(&told), "{failed:#}");
        assert_eq!(world.find_item("i").await, None);
    }
}
