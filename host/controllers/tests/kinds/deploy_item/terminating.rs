//! Items whose own namespace is being deleted.

use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, api::DeleteParams};
use orangery_api::job::Job as _;
use serde_json::{Value, json};

use super::items::{EXECUTION, Items};
use crate::world::World;

const REFUSED: &str = "plugin scripted: accounts may not do this";

/// An item that has deployed nothing, whose component may not do what it wants to before the item goes.
async fn refused(world: &Items) {
    let nothing = json!({"stages": [], "next": {"finish": {}}, "status": {"count": 1}});
    let config = json!({"uninstalls": [{"refused": "accounts may not do this"}]});
    world.create("item", std::slice::from_ref(&nothing), json!({"target": null, "config": config})).await;
    let status = world.job("item", "one").await;
    assert_eq!(status["phase"], "Succeeded", "{status:#}");
}

fn phase_and_message(status: &Value) -> (&str, &str) {
    (status["phase"].as_str().unwrap_or_default(), status["lastError"]["message"].as_str().unwrap_or_default())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn con_29_an_item_that_goes_with_its_namespace_and_has_lost_its_rights_says_at_once_how_to_go_on() {
    let world = Items::new().await;
    refused(&world).await;
    // Somebody has to hand jobs down.
    World::patch(&world, "Execution", EXECUTION, &json!({"metadata": {"finalizers": ["example.org/hold"]}})).await;
    Api::<Namespace>::all(world.client.clone()).delete("default", &DeleteParams::default()).await.unwrap();
    world.wait("item", |item| item.is_none_or(|item| item.metadata.deletion_timestamp.is_some())).await;
    let status = world.job("item", "two").await;
    let expected = format!(
        "{REFUSED}; the namespace of the item is being deleted, which takes the rights to uninstall it along, and lets nothing begin in \
         it: to let go of the item, with what it has elsewhere left there, annotate DeployItem \
         landscaper.gardener.cloud/delete-without-uninstall=true; then reconcile again"
    );
    assert_eq!(phase_and_message(&status), ("DeleteFailed", expected.as_str()));
    assert_eq!(status["lastError"]["reason"], "NamespaceTerminating");
    let without = json!({"metadata": {"annotations": {"landscaper.gardener.cloud/delete-without-uninstall": "true"}}});
    world.patch("item", without).await;
    world.trigger("item", "three").await;
    world.gone("item").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn con_29_rights_that_may_be_given_again_are_waited_for() {
    let world = Items::new().await;
    refused(&world).await;
    world.delete("item").await;
    world.trigger("item", "two").await;
    let says = |message: Option<&str>| message == Some(REFUSED);
    let last = |item: &orangery_api::deploy_item::DeployItem| {
        let error = item.status.as_ref().and_then(|status| status.last_error.as_ref());
        says(error.map(|error| error.message.as_str())) && !item.job_finished()
    };
    world.wait("item", |item| item.is_some_and(last)).await;
}
