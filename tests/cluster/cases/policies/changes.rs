//! Policies that change, and policies that cannot be used.

use orangery_tests::{
    objects::NAMESPACE,
    tree::{any, becomes_ready, blueprint, deploys, executions, imports_cluster, in_phase, installation, on_cluster},
};
use serde_json::{Value, json};

use super::{expect_drifted, policy, put, refused};

fn root(name: &str, item: Value) -> Value {
    let blueprint = blueprint(json!({"imports": imports_cluster(), "deployExecutions": executions(&[item])}));
    on_cluster(installation(name, &blueprint))
}

fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": NAMESPACE}})
}

fn without_config_maps() -> Value {
    policy("team", json!({"targets": {"kinds": {"deny": [{"group": "core", "kind": "ConfigMap"}]}}}))
}

/// The item waits for its ConfigMap to become ready, and nothing of it changes.
#[tokio::test]
async fn a_policy_that_is_tightened_during_a_job_ends_the_job_and_one_that_is_loosened_starts_another() {
    let cluster = crate::cluster().await;
    cluster.apply(&root("waits", becomes_ready("waits", &[]))).await;
    cluster.expect(&config_map("waits")).await;
    let waiting = json!({"apiVersion": any("DeployItem", "")["apiVersion"], "kind": "DeployItem", "metadata": {}});
    let waits = |item: &Value| item["status"]["waitingFor"].as_array().is_some_and(|waits| !waits.is_empty());
    cluster.expect_that(&waiting, "did not wait", waits).await;
    put(&cluster, &without_config_maps()).await;
    refused(&cluster, &any("Installation", "waits"), "Failed", "spec.targets.kinds.deny").await;
    // Nobody asks for another job.
    cluster.delete(&without_config_maps()).await;
    cluster.expect_that(&waiting, "did not wait again", waits).await;
    let mut ready = config_map("waits");
    ready["data"] = json!({"ready": "yes"});
    cluster.merge(&ready).await;
    cluster.expect(&in_phase("Installation", "waits", "Succeeded")).await;
}

#[tokio::test]
async fn c_60_what_a_policy_does_not_allow_any_more_is_not_written_again_until_it_does() {
    let cluster = crate::cluster().await;
    put(&cluster, &policy("team", json!({}))).await;
    let mut item = deploys("drifts", &[], "1");
    item["drift"] = json!({"policy": "Correct"});
    cluster.apply(&root("drifts", item)).await;
    cluster.expect(&in_phase("Installation", "drifts", "Succeeded")).await;
    let says = async |what: &str, status: &str, text: &str| expect_drifted(&cluster, what, (status, text)).await;
    says("is not watched", "False", "").await;
    put(&cluster, &without_config_maps()).await;
    let mut changed = config_map("drifts");
    changed["data"] = json!({"content": "theirs"});
    cluster.merge(&changed).await;
    says("is not refused", "True", "line spec.targets.kinds.deny").await;
    cluster.expect(&changed).await;
    cluster.delete(&without_config_maps()).await;
    changed["data"] = json!({"content": "1"});
    cluster.expect(&changed).await;
    says("is not corrected", "False", "").await;
}

#[tokio::test]
async fn what_was_deployed_is_deleted_under_a_stricter_policy_and_says_where_the_operator_may_not_go() {
    let cluster = crate::cluster().await;
    for name in ["kind", "server"] {
        cluster.apply(&root(name, deploys(name, &[], "1"))).await;
        cluster.expect(&in_phase("Installation", name, "Succeeded")).await;
    }
    put(&cluster, &without_config_maps()).await;
    cluster.delete(&any("Installation", "kind")).await;
    cluster.expect_absent(&any("Installation", "kind")).await;
    cluster.expect_absent(&config_map("kind")).await;
    let away = policy("team", json!({"targets": {"servers": ["https://clusters.example.org:*"]}}));
    put(&cluster, &away).await;
    cluster.delete(&any("Installation", "server")).await;
    refused(&cluster, &any("Installation", "server"), "DeleteFailed", "spec.targets.servers").await;
    cluster.expect(&config_map("server")).await;
    cluster.delete(&away).await;
    cluster.expect_absent(&any("Installation", "server")).await;
    cluster.expect_absent(&config_map("server")).await;
}

#[tokio::test]
async fn a_policy_with_a_bad_selector_allows_nothing_and_says_so_and_one_of_a_higher_priority_goes_on() {
    let cluster = crate::cluster().await;
    let mut bad = policy("bad", json!({}));
    let requirement = json!({"key": "tenant", "operator": "In"});
    bad["spec"]["namespaces"] = json!({"labelSelector": {"matchExpressions": [requirement]}});
    put(&cluster, &bad).await;
    let is_told = |object: &Value| {
        let ready = &object["status"]["conditions"][0];
        ready["status"] == "False"
            && ready["reason"] == "Invalid"
            && ready["message"].to_string().contains("matchExpressions[0]")
    };
    cluster.expect_that(&bad, "the policy was not told", is_told).await;
    cluster.apply(&root("stopped", deploys("stopped", &[], "1"))).await;
    let message = refused(&cluster, &any("Installation", "stopped"), "Failed", "spec").await;
    assert!(message.contains("NamespacePolicy bad, line spec (it cannot be used: "), "{message}");
    cluster.expect_absent(&config_map("stopped")).await;
    // The root was refused, and starts again by itself.
    put(&cluster, &policy("good", json!({"priority": 1}))).await;
    cluster.expect(&in_phase("Installation", "stopped", "Succeeded")).await;
}

/// Both items are ready to begin; the second one begins when the first one is done, and a quota that goes lets all begin.
#[tokio::test]
async fn no_more_items_of_a_namespace_are_under_way_than_its_quota() {
    let cluster = crate::cluster().await;
    put(&cluster, &policy("team", json!({"quotas": {"items": 1}}))).await;
    cluster.apply(&root("first", becomes_ready("first", &[]))).await;
    cluster.expect(&config_map("first")).await;
    cluster.apply(&root("second", becomes_ready("second", &[]))).await;
    let item = json!({"apiVersion": any("DeployItem", "")["apiVersion"], "kind": "DeployItem", "metadata": {}});
    let waits = |item: &Value| item["status"]["waitingFor"][0]["name"] == "items=1 of NamespacePolicy team";
    cluster.expect_that(&item, "no item waits for its quota", waits).await;
    cluster.expect_absent(&config_map("second")).await;
    let say_ready = async |name: &str| {
        let mut ready = config_map(name);
        ready["data"] = json!({"ready": "yes"});
        cluster.merge(&ready).await;
        cluster.expect(&in_phase("Installation", name, "Succeeded")).await;
    };
    say_ready("first").await;
    cluster.expect(&config_map("second")).await;
    cluster.apply(&root("third", becomes_ready("third", &[]))).await;
    cluster.expect_that(&item, "no item waits for its quota", waits).await;
    cluster.delete(&policy("team", json!({}))).await;
    say_ready("second").await;
    cluster.expect(&config_map("third")).await;
}

/// Of two policies for one namespace each has to allow what is asked; labels decide as names do.
#[tokio::test]
async fn policies_of_one_priority_all_have_to_allow_what_is_asked() {
    let cluster = crate::cluster().await;
    let namespace = |tenant: &str| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": {"tenant": tenant}}});
    cluster.apply(&namespace("yes")).await;
    put(&cluster, &policy("wide", json!({}))).await;
    let mut narrow = without_config_maps();
    narrow["spec"]["namespaces"] = json!({"labelSelector": {"matchLabels": {"tenant": "yes"}}});
    put(&cluster, &narrow).await;
    cluster.apply(&root("both", deploys("both", &[], "1"))).await;
    let message = refused(&cluster, &any("Installation", "both"), "Failed", "spec.targets.kinds.deny").await;
    assert!(message.contains("NamespacePolicy team"), "{message}");
    cluster.expect_absent(&config_map("both")).await;
    cluster.apply(&namespace("no")).await;
    cluster.expect(&in_phase("Installation", "both", "Succeeded")).await;
}
