//! What a failed deploy item does to the others, and how many are under way at once (C-01, WF-13, WF-15, WF-27).

use orangery_tests::{
    external_deployer::ExternalDeployer,
    history::History,
    objects::{NAMESPACE, Objects},
    tree::{
        any, blueprint, deploys, executions, imports_cluster, in_phase, installation, items, mocks, on_cluster,
        wait_until_idle,
    },
};
use serde_json::{Value, json};

/// Two chains of two items each, which the test plays.
const CHAINS: [(&str, &[&str]); 4] = [("bad", &[]), ("after-bad", &["bad"]), ("good", &[]), ("after-good", &["good"])];

/// An Installation of both, whose blueprint has this policy and which has that one itself.
fn chains(of_blueprint: &str, own: Option<&str>) -> Value {
    let mut fields = json!({"deployExecutions": items(&CHAINS, "x")});
    fields["failurePolicy"] = json!(of_blueprint);
    let mut installation = installation("tree", &blueprint(fields));
    if let Some(own) = own {
        installation["spec"]["failurePolicy"] = json!(own);
    }
    installation
}

/// What the Execution says of its failure.
async fn failure(cluster: &Objects, phase: &str) -> String {
    let execution = cluster.expect(&in_phase("Execution", "tree", phase)).await;
    execution["status"]["lastError"]["message"].as_str().unwrap_or_default().to_owned()
}

async fn was_triggered(cluster: &Objects, name: &str) -> bool {
    let item = ExternalDeployer(cluster).find(name).await.expect("every item of the spec has its object");
    item.pointer("/status/jobID").is_some()
}

#[tokio::test]
async fn c_01_wf_13_wf_45_under_continue_independent_a_failure_holds_up_only_what_depends_on_it() {
    let cluster = crate::cluster().await;
    let deployer = ExternalDeployer(&cluster);
    cluster.apply(&chains("ContinueIndependent", None)).await;
    deployer.fail("bad", "the disk is full").await;
    deployer.succeed("good").await;
    deployer.succeed("after-good").await;
    cluster.expect(&in_phase("Installation", "tree", "Failed")).await;
    let expected = "deploy item bad failed: the disk is full; not started for that reason: after-bad";
    assert_eq!(failure(&cluster, "Failed").await, expected);
    assert!(!was_triggered(&cluster, "after-bad").await);
}

#[tokio::test]
async fn c_01_exe_25_an_installation_overrides_the_policy_of_its_blueprint() {
    let cluster = crate::cluster().await;
    let deployer = ExternalDeployer(&cluster);
    cluster.apply(&chains("ContinueIndependent", Some("StopTriggering"))).await;
    deployer.fail("bad", "the disk is full").await;
    deployer.succeed("good").await;
    cluster.expect(&in_phase("Installation", "tree", "Failed")).await;
    assert_eq!(failure(&cluster, "Failed").await, "deploy item bad failed: the disk is full");
    assert!(!was_triggered(&cluster, "after-good").await);
}

#[tokio::test]
async fn flx_33_the_token_of_a_request_goes_down_with_its_job() {
    let cluster = crate::cluster().await;
    let mut tree = chains("StopTriggering", None);
    tree["metadata"]["annotations"]["orangery.dev/trigger"] = json!("first");
    cluster.apply(&tree).await;
    for name in ["bad", "good"] {
        assert_eq!(ExternalDeployer(&cluster).triggered(name).await["status"]["lastHandledTrigger"], "first");
    }
    let execution = cluster.expect(&any("Execution", "tree")).await;
    assert_eq!(execution["status"]["lastHandledTrigger"], "first");
}

#[tokio::test]
async fn c_01_wf_41_under_continue_independent_a_deletion_goes_as_far_as_it_can() {
    let cluster = crate::cluster().await;
    let deployer = ExternalDeployer(&cluster);
    cluster.apply(&chains("StopTriggering", Some("ContinueIndependent"))).await;
    for name in ["bad", "good", "after-bad", "after-good"] {
        deployer.succeed(name).await;
    }
    cluster.expect(&in_phase("Installation", "tree", "Succeeded")).await;
    cluster.delete(&any("Installation", "tree")).await;
    deployer.fail("after-bad", "it does not answer").await;
    deployer.succeed("after-good").await;
    deployer.succeed("good").await;
    cluster.expect(&in_phase("Installation", "tree", "DeleteFailed")).await;
    let expected = "deploy item after-bad failed: it does not answer; not deleted for that reason: bad";
    assert_eq!(failure(&cluster, "DeleteFailed").await, expected);
    assert!(deployer.find("good").await.is_none());
}

#[tokio::test]
async fn flx_33_a_failure_is_reported_in_an_event_and_the_handled_request_in_the_status() {
    let cluster = crate::cluster().await;
    let mut tree = chains("StopTriggering", None);
    tree["metadata"]["annotations"]["orangery.dev/trigger"] = json!("first");
    tree["spec"]["blueprint"] = json!({"inline": {"filesystem": {"blueprint.yaml": "none"}}});
    cluster.apply(&tree).await;
    let failed = cluster.expect(&in_phase("Installation", "tree", "Failed")).await;
    let status = &failed["status"];
    assert_eq!(status["lastHandledTrigger"], "first");
    let message = |event: &Value| {
        event["regarding"]["name"] == "tree"
            && event["reason"] == status["lastError"]["reason"]
            && event["note"] == status["lastError"]["message"]
    };
    let event = json!({"apiVersion": "events.k8s.io/v1", "kind": "Event"});
    cluster.expect_that(&event, "does not tell of the failure", message).await;
}

#[tokio::test]
async fn wf_15_no_more_items_are_under_way_than_are_allowed() {
    let cluster = crate::cluster().await;
    let history = History::begin(cluster.client()).await;
    let all = ["a", "b", "c", "d"].map(|name| mocks(name, &[], "Succeeded", "x"));
    let mut tree = installation("tree", &blueprint(json!({"deployExecutions": executions(&all)})));
    tree["spec"]["maxParallel"] = json!(1);
    cluster.apply(&tree).await;
    cluster.expect(&in_phase("Installation", "tree", "Succeeded")).await;
    let seen = history.until_now().await;
    for [first, second] in [["a", "b"], ["b", "c"], ["c", "d"]] {
        let ended = seen.place("DeployItem", first, "Succeeded");
        let begun = seen.first("DeployItem", second, |version| !version.jobs().0.is_empty());
        assert!(ended.is_some() && ended < begun, "{second} begins after {first}: {:#?}", seen.message_of());
    }
}

#[tokio::test]
async fn wf_27_what_is_to_be_kept_stays_when_its_item_is_deleted() {
    let cluster = crate::cluster().await;
    let mut kept = deploys("kept", &[], "x");
    kept["onDelete"] = json!({"keep": true});
    let fields =
        json!({"imports": imports_cluster(), "deployExecutions": executions(&[kept, deploys("gone", &["kept"], "x")])});
    cluster.apply(&on_cluster(installation("tree", &blueprint(fields)))).await;
    cluster.expect(&in_phase("Installation", "tree", "Succeeded")).await;
    cluster.delete(&any("Installation", "tree")).await;
    cluster.expect_absent(&any("Installation", "tree")).await;
    wait_until_idle(&cluster).await;
    let map = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": NAMESPACE}});
    cluster.expect(&map("kept")).await;
    cluster.expect_absent(&map("gone")).await;
}

#[tokio::test]
async fn policies_that_do_not_exist_are_refused() {
    let cluster = crate::cluster().await;
    for (field, value) in
        [("failurePolicy", json!("Sometimes")), ("failurePolicy", Value::Null), ("maxParallel", json!(0))]
    {
        let mut tree = installation("tree", &blueprint(json!({})));
        tree["spec"][field] = value;
        assert!(cluster.is_refused(&tree).await, "{field}");
    }
}
