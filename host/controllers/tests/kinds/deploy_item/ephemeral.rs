//! What lives for a job alone ends with it, also where it ends otherwise than well.

use orangery_api::{deploy_item::DeployItem, job::Job as _};
use serde_json::{Value, json};

use super::items::{Items, gated, proposal};

/// A proposal whose only object is ephemeral, and that waits for ever.
fn passing(fields: Value) -> Value {
    let mut proposal = gated("never");
    proposal["stages"][0]["writes"][0]["owned"] = json!("ephemeral");
    orangery_proposal::overlay::overlay(&mut proposal, &fields);
    proposal
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_277_what_lives_for_a_job_ends_with_one_whose_time_is_up() {
    let world = Items::new().await;
    world.create("item", &[passing(json!({}))], json!({"timeout": "2s"})).await;
    let status = world.job("item", "one").await;
    assert_eq!(status["lastError"]["reason"], "ProgressingTimeout");
    assert_eq!((world.value("a").await, status["providerStatus"].get("managedResources")), (None, None));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_277_what_lives_for_a_job_ends_with_one_that_the_component_fails_and_the_rest_stays() {
    let world = Items::new().await;
    let mut first = proposal("a", json!({"next": {"continueWith": [1]}}));
    first["stages"][0]["writes"][0]["owned"] = json!("ephemeral");
    let fail = json!({"next": {"fail": {"code": "ERR_MINE", "message": "no"}}});
    world.create("item", &[first, proposal("b", fail)], json!({})).await;
    let status = world.job("item", "one").await;
    assert_eq!(status["phase"], "Failed", "{status:#}");
    assert_eq!((world.value("a").await, world.value("b").await.is_some()), (None, true));
    let kept: Vec<&Value> = status["providerStatus"]["managedResources"].as_array().unwrap().iter().collect();
    assert_eq!(kept.iter().map(|kept| &kept["resource"]["name"]).collect::<Vec<_>>(), ["b"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_277_what_lives_for_a_job_ends_with_an_interrupt_and_the_status_says_so() {
    let world = Items::new().await;
    world.create("item", &[passing(json!({}))], json!({})).await;
    world.trigger("item", "one").await;
    world.waiting("item", "to become ready").await;
    assert!(world.value("a").await.is_some());
    world.interrupt("item", "one").await;
    let is_listed = |item: &DeployItem| json!(item.status)["providerStatus"].get("managedResources").is_some();
    let item =
        world.wait("item", |item| item.is_some_and(|item| item.job_finished() && !is_listed(item))).await.unwrap();
    assert_eq!((item.phase(), world.value("a").await), ("Failed", None));
}
