//! What Installations use stays until they do not use it any more.

use serde_json::{Value, json};

use crate::{
    objects::{data_import, exporting, installation, with},
    world::{SentRequest, World, is_deleting},
};

const GUARD: &str = "orangery.dev/in-use";

/// An Installation `tree` that imports a ConfigMap `settings`, which has run well.
async fn importing_a_config_map(world: &World) -> Value {
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"a": "1"}});
    world.apply(&map).await;
    let mut blueprint = exporting("out", &json!("v"));
    blueprint["imports"] = json!([data_import("a")]);
    let imports = json!({"data": [{"name": "a", "configMapRef": {"name": "settings", "key": "a"}}]});
    world.apply(&with(installation("tree", &blueprint), &json!({"imports": imports}))).await;
    world.ended("Installation", "tree", "Succeeded").await
}

fn is_guarded(object: &Value) -> bool {
    object["metadata"]["finalizers"].as_array().is_some_and(|finalizers| finalizers.contains(&json!(GUARD)))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn orc_38_an_imported_config_map_stays_until_its_importer_is_gone() {
    let world = World::guarded().await;
    importing_a_config_map(&world).await;
    world.delete("ConfigMap", "settings").await;
    let held = world.find("ConfigMap", "settings").await.unwrap();
    assert!(is_guarded(&held) && is_deleting(&held), "{held:#}");
    world.delete("Installation", "tree").await;
    world.gone("Installation", "tree").await;
    world.gone("ConfigMap", "settings").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn orc_40_a_guard_that_was_removed_by_hand_comes_back_with_the_next_job() {
    let world = World::guarded().await;
    let first = importing_a_config_map(&world).await;
    world.patch("ConfigMap", "settings", &json!({"metadata": {"finalizers": null}})).await;
    world.sees_no_guard("settings").await;
    world.request("tree").await;
    world.ended_after("Installation", "tree", "Succeeded", &first).await;
    assert!(is_guarded(&world.find("ConfigMap", "settings").await.unwrap()));
}

/// What the controllers ask about the ConfigMap in a second job.
async fn asked_in_a_second_job(world: &World) -> Vec<SentRequest> {
    let first = importing_a_config_map(world).await;
    if world.host.as_ref().unwrap().guards {
        world.sees_guard("settings").await;
    }
    let before = world.asked_about("/configmaps/settings").len();
    world.request("tree").await;
    world.ended_after("Installation", "tree", "Succeeded", &first).await;
    world.asked_about("/configmaps/settings").split_off(before)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn orc_38_what_is_guarded_already_is_not_asked_for_once_more() {
    let guarded = asked_in_a_second_job(&World::guarded().await).await;
    assert_eq!(guarded, asked_in_a_second_job(&World::new().await).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_guards_an_imported_config_map_goes_at_once() {
    let world = World::new().await;
    importing_a_config_map(&world).await;
    assert!(!is_guarded(&world.find("ConfigMap", "settings").await.unwrap()));
    world.delete("ConfigMap", "settings").await;
    world.gone("ConfigMap", "settings").await;
}
