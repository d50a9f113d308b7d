//! A Target that names another cluster than before: nothing is deleted there, and what is left in the former one is deleted
//! with the credentials of that time (C-35).

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{
    Api, Client, Config,
    api::{Patch, PatchParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use orangery_api::target::Target;
use orangery_embedded::{Options, Server, Storage, start};
use serde_json::{Value, json};

use super::items::{Items, proposal};

/// Another cluster, and how it is asked.
async fn second() -> (Server, Client) {
    let clock = std::sync::Arc::new(|| jiff::Timestamp::UNIX_EPOCH);
    let options = Options { storage: Storage::Memory, address: "127.0.0.1:0".parse().unwrap(), clock };
    let server = start(options).await.unwrap();
    let kubeconfig = Kubeconfig::from_yaml(&server.kubeconfig()).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    (server, Client::try_from(config).unwrap())
}

/// Has the Target of the items name another cluster, and waits until the controller knows.
async fn retarget(world: &Items, kubeconfig: &str) {
    let targets: Api<Target> = Api::default_namespaced(world.client.clone());
    let config = json!({"spec": {"config": {"kubeconfig": kubeconfig}}});
    let patched = targets.patch("cluster", &PatchParams::default(), &Patch::Merge(config)).await.unwrap();
    let host = world.host.as_ref().unwrap();
    let known = host.stores.targets.clone();
    drop(known.upsert(patched));
}

async fn has(client: &Client, name: &str) -> bool {
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    maps.get_opt(name).await.unwrap().is_some()
}

/// The Secrets with credentials that were kept.
async fn kept(world: &Items) -> usize {
    let is_kept = |secret: &Secret| secret.type_.as_deref() == Some("orangery.dev/kubeconfig");
    world.secrets().await.iter().filter(|secret| is_kept(secret)).count()
}

/// A config map of somebody else.
async fn made_by_another(client: &Client, name: &str) {
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let object = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
    maps.create(&PostParams::default(), &object).await.unwrap();
}

fn two() -> Value {
    let mut both = proposal("x", json!({}));
    let more = proposal("y", json!({}))["stages"][0]["writes"][0].clone();
    both["stages"][0]["writes"].as_array_mut().unwrap().push(more);
    both
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_35_what_is_left_in_a_former_cluster_is_deleted_there_and_nothing_in_the_new_one() {
    let world = Items::new().await;
    world.create("item", &[two()], json!({})).await;
    world.job("item", "one").await;
    assert_eq!(kept(&world).await, 1);
    let (server, second) = second().await;
    made_by_another(&second, "y").await;
    retarget(&world, &server.kubeconfig()).await;
    world.patch("item", json!({"spec": {"config": {"proposals": [proposal("x", json!({}))]}}})).await;
    let status = world.job("item", "two").await;
    assert_eq!(status["phase"], "Succeeded", "{status:#}");
    assert!(has(&second, "x").await && has(&second, "y").await, "the unrelated y stays");
    assert!(!has(&world.client, "x").await && !has(&world.client, "y").await, "what was left is deleted");
    assert_eq!(status["providerStatus"].pointer("/orangery/former"), None);
    assert_eq!(kept(&world).await, 1, "those of the new cluster");
    world.delete("item").await;
    world.trigger("item", "three").await;
    world.gone("item").await;
    assert_eq!((has(&second, "x").await, has(&second, "y").await, kept(&world).await), (false, true, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_35_a_deletion_waits_for_a_former_cluster_that_does_not_let_go() {
    let world = Items::new().await;
    world.create("item", &[proposal("x", json!({}))], json!({})).await;
    world.job("item", "one").await;
    world.patch_config_map("x", json!({"metadata": {"finalizers": ["example.org/hold"]}})).await;
    let (server, second) = second().await;
    retarget(&world, &server.kubeconfig()).await;
    let status = world.job("item", "two").await;
    assert_eq!(status["phase"], "Succeeded", "{status:#}");
    assert!(status["providerStatus"].pointer("/orangery/former/0/managedResources/0").is_some(), "{status:#}");
    world.delete("item").await;
    world.trigger("item", "three").await;
    world.waiting("item", "ConfigMap default/x to be gone").await;
    assert!(!has(&second, "x").await);
    world.patch_config_map("x", json!({"metadata": {"finalizers": null}})).await;
    world.gone("item").await;
    assert_eq!((has(&world.client, "x").await, kept(&world).await), (false, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_35_a_former_cluster_that_nobody_knows_how_to_reach_fails_the_deletion_with_a_way_out() {
    let world = Items::new().await;
    world.create("item", &[proposal("x", json!({}))], json!({})).await;
    world.job("item", "one").await;
    let (server, _second) = second().await;
    retarget(&world, &server.kubeconfig()).await;
    let secrets: Api<Secret> = Api::default_namespaced(world.client.clone());
    for secret in world.secrets().await {
        if secret.type_.as_deref() == Some("orangery.dev/kubeconfig") {
            secrets.delete(&secret.metadata.name.unwrap(), &Default::default()).await.unwrap();
        }
    }
    world.delete("item").await;
    world.trigger("item", "two").await;
    let status = world.finished("item", "two").await;
    let message = status["lastError"]["message"].as_str().unwrap();
    assert!(
        message.starts_with("the target names another cluster than before: ConfigMap default/x stay in the cluster"),
        "{message}"
    );
    assert!(message.ends_with("landscaper.gardener.cloud/delete-without-uninstall"), "{message}");
    assert!(has(&world.client, "x").await);
    let annotations = json!({"landscaper.gardener.cloud/delete-without-uninstall": "true"});
    world.patch("item", json!({"metadata": {"annotations": annotations}})).await;
    world.trigger("item", "three").await;
    world.gone("item").await;
    assert_eq!(kept(&world).await, 0);
}
