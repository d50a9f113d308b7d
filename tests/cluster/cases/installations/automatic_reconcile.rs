//! Jobs that start by themselves (`docs/wire.md` §3.4), with a deployer that fails when it is told to.

use orangery_tests::{
    external_deployer::ExternalDeployer,
    history::History,
    objects::Objects,
    tree::{any, blueprint, in_phase, installation, items},
};
use serde_json::{Value, json};

/// An Installation `tree` with one item, which starts jobs by itself on these terms.
fn tree(terms: &Value) -> Value {
    let mut tree = installation("tree", &blueprint(json!({"deployExecutions": items(&[("a", &[])], "1")})));
    tree["spec"]["automaticReconcile"] = terms.clone();
    tree
}

/// Status, reason and message of a condition; of nothing, when it is not there.
fn condition<'a>(object: &'a Value, kind: &str) -> Option<(&'a str, &'a str)> {
    let conditions = object["status"]["conditions"].as_array()?;
    let found = conditions.iter().find(|condition| condition["type"] == kind)?;
    Some((found["status"].as_str()?, found["reason"].as_str()?))
}

/// Lets the item fail, and waits until the job has ended.
async fn fail(cluster: &Objects) -> Value {
    ExternalDeployer(cluster).fail("a", "the disk is full").await;
    cluster.expect(&in_phase("Installation", "tree", "Failed")).await
}

#[tokio::test]
async fn c_27_a_failure_is_tried_again_so_often_and_says_that_it_will_be() {
    let cluster = crate::cluster().await;
    let history = History::begin(cluster.client()).await;
    cluster.apply(&tree(&json!({"failedReconcile": {"numberOfReconciles": 2, "interval": "3s"}}))).await;
    fail(&cluster).await;
    // The first one follows at once, the second one after the interval: until then somebody who waits sees that it is not over.
    fail(&cluster).await;
    let waits = |object: &Value| condition(object, "Reconciling") == Some(("True", "RetryScheduled"));
    let waiting =
        cluster.expect_that(&any("Installation", "tree"), "does not say that it will be tried again", waits).await;
    assert_eq!(condition(&waiting, "Stalled"), None, "{waiting}");
    assert_eq!(condition(&waiting, "Ready").map(|(status, _)| status), Some("False"), "{waiting}");
    fail(&cluster).await;
    let is_over = |object: &Value| condition(object, "Stalled").map(|(status, _)| status) == Some("True");
    let over = cluster.expect_that(&any("Installation", "tree"), "does not say that it is over", is_over).await;
    assert_eq!(condition(&over, "Reconciling"), None, "{over}");
    assert_eq!(over["status"]["automaticReconcileStatus"]["numberOfReconciles"], 2, "{over}");

    let history = history.until_now().await;
    let mut jobs: Vec<&str> = history.of("Installation", "tree").map(|version| version.jobs().0).collect();
    jobs.dedup();
    jobs.retain(|job| !job.is_empty());
    assert_eq!(jobs.len(), 3, "one that was asked for, and two: {:#?}", history.message_of());
}

#[tokio::test]
async fn a_failure_that_was_mended_is_tried_again_and_succeeds() {
    let cluster = crate::cluster().await;
    cluster.apply(&tree(&json!({"failedReconcile": {"interval": "1h"}}))).await;
    fail(&cluster).await;
    ExternalDeployer(&cluster).succeed("a").await;
    cluster.expect(&in_phase("Installation", "tree", "Succeeded")).await;
}

#[tokio::test]
async fn an_invalid_schedule_is_reported_in_an_event_and_starts_no_job() {
    let cluster = crate::cluster().await;
    cluster.apply(&tree(&json!({"failedReconcile": {"cronSpec": "every now and then"}}))).await;
    let failed = fail(&cluster).await;
    let event = json!({"apiVersion": "events.k8s.io/v1", "kind": "Event", "reason": "InvalidSchedule"});
    let event = cluster.expect(&event).await;
    let message = event["note"].as_str().unwrap_or_default();
    assert!(message.starts_with("spec.automaticReconcile: ") && message.contains("every now and then"), "{message}");
    let after = cluster.expect(&any("Installation", "tree")).await;
    assert_eq!(after["status"]["jobID"], failed["status"]["jobID"]);
}
