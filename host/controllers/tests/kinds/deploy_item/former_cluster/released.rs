//! What was kept goes with the last item that needs it (C-35, C-200).

use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::{
    Api,
    api::{Patch, PatchParams, PostParams},
};
use orangery_api::deploy_item::DeployItem;
use serde_json::json;

use super::{
    super::items::{Items, proposal},
    exported, has, kept, lose, retarget, second,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_200_what_was_kept_for_an_item_goes_also_where_somebody_took_its_finalizers_off() {
    let world = Items::new().await;
    for name in ["item", "another"] {
        world.create(name, &[proposal(name, json!({}))], json!({})).await;
        world.job(name, "one").await;
    }
    assert_eq!(kept(&world).await, 1);
    for (name, left) in [("item", 1), ("another", 0)] {
        world.objects().delete_by_force("DeployItem", name).await;
        let is_as_wanted = async || (kept(&world).await == left).then_some(());
        assert!(world.in_time(is_as_wanted).await.is_some(), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_200_what_a_status_names_that_is_of_no_target_of_the_item_stays_where_the_item_goes() {
    let world = Items::new().await;
    world.create("item", &[proposal("x", json!({}))], json!({})).await;
    world.job("item", "one").await;
    let of_another = json!({"metadata": {"name": "orangery-cluster-of-another"},
        "data": {"kubeconfig": ByteString(world.kubeconfig().into_bytes())}});
    let secrets: Api<Secret> = Api::default_namespaced(world.client.clone());
    let of_another: Secret = serde_json::from_value(of_another).unwrap();
    let before = secrets.create(&PostParams::default(), &of_another).await.unwrap();
    // What it names first is looked at first.
    let named =
        json!({"status": {"providerStatus": {"orangery": {"credentials": {"0": "orangery-cluster-of-another"}}}}});
    let forged = world.items().patch_status("item", &PatchParams::default(), &Patch::Merge(named)).await.unwrap();
    drop(world.host.as_ref().unwrap().stores.deploy_items.upsert(forged));
    world.objects().delete_by_force("DeployItem", "item").await;
    let is_released = async || (kept(&world).await == 0).then_some(());
    assert!(world.in_time(is_released).await.is_some(), "its own goes");
    assert_eq!(secrets.get("orangery-cluster-of-another").await.unwrap(), before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_35_a_deletion_that_is_cut_off_when_its_credentials_are_gone_ends_all_the_same() {
    let mut world = Items::new().await;
    exported(&world, "cluster").await;
    world.create("item", &[proposal("x", json!({}))], json!({})).await;
    world.job("item", "one").await;
    lose(&world, "cluster").await;
    // The write that takes the finalizer away is on its way, and never arrives.
    world.objects().delay_write("/deployitems/item");
    world.delete("item").await;
    world.trigger("item", "two").await;
    world.objects().held().await;
    assert_eq!((has(&world.client, "x").await, kept(&world).await), (false, 0));
    world.restart();
    world.gone("item").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_35_what_was_deleted_in_a_former_cluster_is_recorded_before_its_credentials_go() {
    let world = Items::new().await;
    world.create("item", &[proposal("x", json!({}))], json!({})).await;
    world.job("item", "one").await;
    let secret = world.kept().await.remove(0).metadata.name.unwrap();
    let (server, _second) = second().await;
    retarget(&world, &server.kubeconfig()).await;
    world.objects().delay_write(&format!("/secrets/{secret}"));
    world.trigger("item", "two").await;
    world.objects().held().await;
    let status = json!(world.items().get("item").await.unwrap().status);
    assert_eq!(status["providerStatus"].pointer("/orangery/former"), None, "{status:#}");
    assert!(!has(&world.client, "x").await && status["phase"] == "Progressing", "{status:#}");
    world.objects().let_pass();
    assert_eq!((world.finished("item", "two").await["phase"].clone(), kept(&world).await), (json!("Succeeded"), 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_35_what_another_item_is_about_to_refer_to_is_not_deleted_with_the_last_one_that_did() {
    let world = Items::new().await;
    world.create("first", &[proposal("x", json!({}))], json!({})).await;
    world.job("first", "one").await;
    let secret = world.kept().await.remove(0).metadata.name.unwrap();
    // What the next item keeps is there already; that its status refers to it is on its way.
    world.create("next", &[proposal("y", json!({}))], json!({})).await;
    world.objects().delay_write("/deployitems/next/status");
    world.trigger("next", "one").await;
    world.objects().held().await;
    world.delete("first").await;
    world.trigger("first", "two").await;
    let has_nothing = |item: &DeployItem| {
        let provider_status = item.status.as_ref().and_then(|status| status.provider_status.as_ref());
        provider_status.is_some_and(|status| status.pointer("/managedResources/0").is_none())
    };
    world.wait("first", |item| item.is_none_or(has_nothing)).await;
    world.objects().let_pass();
    world.gone("first").await;
    assert_eq!(world.finished("next", "one").await["phase"], "Succeeded");
    let asked = world.objects().asked_about(&format!("/secrets/{secret}"));
    assert!(asked.iter().all(|asked| asked.method != "DELETE"), "{asked:?}");
    assert_eq!(kept(&world).await, 1);
    world.delete("next").await;
    world.trigger("next", "two").await;
    world.gone("next").await;
    assert_eq!(kept(&world).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_35_two_items_that_go_at_the_same_time_leave_no_credentials() {
    let world = Items::new().await;
    for (item, object) in [("first", "x"), ("next", "y")] {
        world.create(item, &[proposal(object, json!({}))], json!({})).await;
        world.job(item, "one").await;
    }
    assert_eq!(kept(&world).await, 1);
    // The write that takes the finalizer away is on its way.
    world.objects().delay_write("/deployitems/first");
    world.delete("first").await;
    world.trigger("first", "two").await;
    world.objects().held().await;
    world.delete("next").await;
    world.trigger("next", "two").await;
    world.gone("next").await;
    world.objects().let_pass();
    world.gone("first").await;
    assert_eq!(kept(&world).await, 0);
}
