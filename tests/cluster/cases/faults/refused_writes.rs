//! An API server that refuses what the operator writes, as a policy of the cluster may: it is said, and tried again (C-42).

use orangery_tests::{
    objects::Objects,
    tree::{any, blueprint, executions, in_phase, installation, mocks},
};
use serde_json::{Value, json};

/// What stands in the status and in the event.
const WHY: &str = "the cluster does not take this";

fn admission(kind: &str, spec: Value) -> Value {
    let api_version = "admissionregistration.k8s.io/v1";
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "takes-not-all"}, "spec": spec})
}

fn binding() -> Value {
    let spec = json!({"policyName": "takes-not-all", "validationActions": ["Deny"]});
    admission("ValidatingAdmissionPolicyBinding", spec)
}

/// From now on the cluster refuses a status of `resource` unless this holds.
async fn refuse(cluster: &Objects, resource: &str, unless: &str) {
    let rule = |group: &str, version: &str, resource: &str| json!({"apiGroups": [group], "apiVersions": [version], "operations": ["CREATE", "UPDATE"], "resources": [resource]});
    let rules = [rule("landscaper.gardener.cloud", "v1alpha1", resource), rule("", "v1", "configmaps")];
    let expression = format!("object.kind == 'ConfigMap' ? object.metadata.name != 'probe' : ({unless})");
    let spec = json!({
        "failurePolicy": "Fail", "matchConstraints": {"resourceRules": rules},
        "validations": [{"expression": expression, "message": WHY}],
    });
    cluster.apply(&admission("ValidatingAdmissionPolicy", spec)).await;
    cluster.apply(&binding()).await;
    // A server begins with it when it likes.
    let probe = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "probe"}});
    while !cluster.is_refused(&probe).await {}
}

fn root(item: Value) -> Value {
    installation("root", &blueprint(json!({"deployExecutions": executions(&[item])})))
}

async fn warns_of(cluster: &Objects, kind: &str) {
    let event = json!({"apiVersion": "events.k8s.io/v1", "kind": "Event"});
    let is_told = |event: &Value| {
        event["type"] == "Warning" && event["regarding"]["kind"] == kind && event["note"].to_string().contains(WHY)
    };
    cluster.expect_that(&event, &format!("no event of {kind} says why"), is_told).await;
}

#[tokio::test]
async fn c_42_an_item_whose_status_is_refused_fails_and_says_why() {
    let cluster = crate::cluster().await;
    refuse(
        &cluster,
        "deployitems/status",
        "!has(object.status.providerStatus) || object.status.providerStatus.kind != 'Bad'",
    )
    .await;
    let mut item = mocks("a", &[], "Succeeded", "x");
    item["config"]["providerStatus"] = json!({"apiVersion": "a/v1", "kind": "Bad"});
    cluster.apply(&root(item)).await;
    let failed = cluster.expect(&in_phase("Installation", "root", "Failed")).await;
    let message = failed["status"]["lastError"]["message"].to_string();
    assert!(message.contains(WHY), "{message}");
    let is_failed = |item: &Value| {
        item["status"]["phase"] == "Failed" && item["status"]["jobIDFinished"] == item["status"]["jobID"]
    };
    let item = json!({"apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "DeployItem"});
    let item = cluster.expect_that(&item, "did not fail", is_failed).await;
    assert!(item["status"]["lastError"]["message"].to_string().contains(WHY), "{item:#}");
    assert_eq!(item["status"]["providerStatus"]["kind"], Value::Null, "{item:#}");
    warns_of(&cluster, "DeployItem").await;
    cluster.delete(&any("Installation", "root")).await;
    cluster.expect_absent(&any("Installation", "root")).await;
}

#[tokio::test]
async fn c_42_a_status_that_is_refused_is_told_and_written_once_it_is_taken() {
    for (resource, kind) in [("executions/status", "Execution"), ("installations/status", "Installation")] {
        let cluster = crate::cluster().await;
        refuse(&cluster, resource, "!has(object.status.phase) || object.status.phase != 'Succeeded'").await;
        cluster.apply(&root(mocks("a", &[], "Succeeded", "x"))).await;
        let is_told = |object: &Value| {
            let conditions = object["status"]["conditions"].as_array();
            let mut progressing = conditions.into_iter().flatten().filter(|one| one["type"] == "Progressing");
            object["status"]["lastError"]["message"].to_string().contains(WHY)
                && progressing.all(|one| one["reason"] == "TransientError" && one["message"].to_string().contains(WHY))
        };
        let told = cluster.expect_that(&any(kind, "root"), "does not say what is refused", is_told).await;
        assert_ne!(told["status"]["jobIDFinished"], told["status"]["jobID"], "{told:#}");
        warns_of(&cluster, kind).await;
        cluster.delete(&binding()).await;
        let done = cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
        assert_eq!(done["status"]["lastError"], Value::Null, "{done:#}");
    }
}
