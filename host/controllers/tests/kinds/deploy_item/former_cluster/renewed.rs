//! Credentials that are written anew after the last job, and go before the items that need them (C-190, C-172).

use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::{
    Api,
    api::{Patch, PatchParams, PostParams},
    config::{Kubeconfig, NamedAuthInfo},
};
use serde_json::{Value, json};

use super::{
    super::items::{Items, proposal},
    exported, has, kept, lose, made_by_another, patch_target, retarget, second,
};
use crate::world::Setup;

/// What was kept of credentials is refused from now on.
async fn expire_kept(world: &Items) {
    let secrets: Api<Secret> = Api::default_namespaced(world.client.clone());
    for secret in world.kept().await {
        let ByteString(content) = secret.data.unwrap().remove("kubeconfig").unwrap();
        let mut kubeconfig: Value = serde_json::from_slice(&content).unwrap();
        kubeconfig["users"][0]["user"] = json!({"token": "expired"});
        let expired = Patch::Merge(json!({"data": {"kubeconfig": ByteString(kubeconfig.to_string().into_bytes())}}));
        secrets.patch(&secret.metadata.name.unwrap(), &PatchParams::default(), &expired).await.unwrap();
    }
}

/// Another kubeconfig that leads to the same place.
fn rotated(world: &Items) -> String {
    let mut kubeconfig = Kubeconfig::from_yaml(&world.kubeconfig()).unwrap();
    kubeconfig.auth_infos.push(NamedAuthInfo { name: "another".to_owned(), ..NamedAuthInfo::default() });
    serde_json::to_string(&kubeconfig).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_190_the_last_credentials_of_a_target_that_is_gone_are_kept_also_where_no_job_used_them() {
    let world = Items::new().await;
    exported(&world, "cluster").await;
    world.create("item", &[proposal("x", json!({}))], json!({})).await;
    world.job("item", "one").await;
    expire_kept(&world).await;
    retarget(&world, &rotated(&world)).await;
    world.lose_target("cluster").await;
    world.delete("item").await;
    world.trigger("item", "two").await;
    world.gone("item").await;
    assert_eq!((has(&world.client, "x").await, kept(&world).await), (false, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_190_a_guarded_secret_goes_when_its_last_credentials_are_kept() {
    let world = Items::with(Setup { guards: true, ..Setup::default() }).await;
    let secret = |kubeconfig: &str| {
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "credentials"},
            "data": {"kubeconfig": ByteString(kubeconfig.as_bytes().to_vec())}})
    };
    world.objects().apply(&secret(&world.kubeconfig())).await;
    let spec = json!({"type": "landscaper.gardener.cloud/kubernetes-cluster", "secretRef": {"name": "credentials"}});
    world.target("copy", spec).await;
    exported(&world, "copy").await;
    let label = json!({"metadata": {"labels": {"data.landscaper.gardener.cloud/sourceType": "import"}}});
    patch_target(&world, "copy", label).await;
    world.create("item", &[proposal("x", json!({}))], json!({"target": {"name": "copy"}})).await;
    world.job("item", "one").await;
    expire_kept(&world).await;
    world.objects().apply(&secret(&rotated(&world))).await;
    // As a namespace goes.
    world.objects().delete("Secret", "credentials").await;
    world.lose_target("copy").await;
    world.objects().gone("Secret", "credentials").await;
    world.delete("item").await;
    world.trigger("item", "two").await;
    world.gone("item").await;
    assert_eq!((has(&world.client, "x").await, kept(&world).await), (false, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_190_what_a_status_names_that_is_of_no_target_of_the_item_is_not_written() {
    let world = Items::new().await;
    exported(&world, "cluster").await;
    world.create("item", &[proposal("x", json!({}))], json!({})).await;
    world.job("item", "one").await;
    let of_another = json!({"metadata": {"name": "orangery-cluster-of-another"}, "type": "orangery.dev/kubeconfig",
        "data": {"kubeconfig": ByteString(world.kubeconfig().into_bytes())}});
    let secrets: Api<Secret> = Api::default_namespaced(world.client.clone());
    let of_another: Secret = serde_json::from_value(of_another).unwrap();
    let before = secrets.create(&PostParams::default(), &of_another).await.unwrap();
    let named =
        json!({"status": {"providerStatus": {"orangery": {"credentials": {"uid": "orangery-cluster-of-another"}}}}});
    world.items().patch_status("item", &PatchParams::default(), &Patch::Merge(named)).await.unwrap();
    retarget(&world, &rotated(&world)).await;
    world.lose_target("cluster").await;
    world.delete("item").await;
    world.trigger("item", "two").await;
    world.gone("item").await;
    let after = secrets.get("orangery-cluster-of-another").await.unwrap();
    assert_eq!(after.data, before.data);
}

/// The Target `copy`, as an Installation keeps it of the Target `cluster`, and the ConfigMap `x` of an item on it.
async fn deployed_by_a_copy() -> Items {
    let world = Items::new().await;
    let spec =
        json!({"type": "landscaper.gardener.cloud/kubernetes-cluster", "config": {"kubeconfig": world.kubeconfig()}});
    world.target("copy", spec).await;
    let marks = json!({"labels": {"data.landscaper.gardener.cloud/sourceType": "import"},
        "annotations": {"orangery.dev/copy-of": "cluster"}});
    patch_target(&world, "copy", json!({"metadata": marks})).await;
    exported(&world, "copy").await;
    world.create("item", &[proposal("x", json!({}))], json!({"target": {"name": "copy"}})).await;
    world.job("item", "one").await;
    world
}

/// A kubeconfig with a token that is refused.
fn expired(world: &Items) -> String {
    let mut kubeconfig = serde_json::to_value(Kubeconfig::from_yaml(&world.kubeconfig()).unwrap()).unwrap();
    kubeconfig["users"][0]["user"] = json!({"token": "expired"});
    kubeconfig.to_string()
}

/// What the copy has is refused from now on, and so is what was kept.
async fn expire(world: &Items) {
    patch_target(world, "copy", json!({"spec": {"config": {"kubeconfig": expired(world)}}})).await;
    expire_kept(world).await;
}

async fn goes(world: &Items) {
    world.delete("item").await;
    world.trigger("item", "two").await;
    world.gone("item").await;
    assert_eq!((has(&world.client, "x").await, kept(world).await), (false, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_171_what_a_target_has_last_is_kept_for_items_on_copies_of_it_that_go_after_it() {
    let world = deployed_by_a_copy().await;
    expire(&world).await;
    retarget(&world, &rotated(&world)).await;
    lose(&world, "cluster").await;
    lose(&world, "copy").await;
    goes(&world).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_171_what_a_target_has_last_is_kept_for_items_on_copies_of_it_that_go_before_it() {
    let world = deployed_by_a_copy().await;
    expire(&world).await;
    retarget(&world, &rotated(&world)).await;
    lose(&world, "copy").await;
    goes(&world).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_171_a_target_for_the_same_server_that_goes_takes_the_place_of_no_other() {
    let world = deployed_by_a_copy().await;
    let config = json!({"kubeconfig": expired(&world)});
    let spec = json!({"type": "landscaper.gardener.cloud/kubernetes-cluster", "config": config});
    world.target("another", spec).await;
    // The controllers know it.
    patch_target(&world, "another", json!({"metadata": {"labels": {"team": "a"}}})).await;
    lose(&world, "copy").await;
    lose(&world, "another").await;
    goes(&world).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_172_a_copy_that_is_older_than_its_target_holds_no_deletion() {
    let world = deployed_by_a_copy().await;
    expire(&world).await;
    retarget(&world, &rotated(&world)).await;
    goes(&world).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_172_where_the_target_of_an_old_copy_is_gone_what_was_kept_counts() {
    let world = deployed_by_a_copy().await;
    expire(&world).await;
    retarget(&world, &rotated(&world)).await;
    lose(&world, "cluster").await;
    goes(&world).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_172_a_target_that_names_another_cluster_than_its_copy_deletes_nothing_there() {
    let world = deployed_by_a_copy().await;
    let (server, second) = second().await;
    made_by_another(&second, "x").await;
    expire_kept(&world).await;
    retarget(&world, &server.kubeconfig()).await;
    goes(&world).await;
    assert!(has(&second, "x").await);
}
