//! An admission webhook that is down, and without which the API server takes no status: it is said, and tried again (C-42).

use orangery_tests::{
    objects::Objects,
    tree::{API, any, blueprint, executions, in_phase, installation, mocks},
};
use serde_json::{Value, json};

use crate::cases::faults::refused_writes::warns_of;

/// What the server says of a webhook that it cannot ask.
const WHY: &str = "failed calling webhook \\\"down.example.org\\\"";

/// The configuration of a webhook at a port where nobody listens, for statuses in this phase.
fn webhook(resource: &str) -> Value {
    let rule = |group: &str, version: &str, resource: &str| json!({"apiGroups": [group], "apiVersions": [version], "operations": ["CREATE", "UPDATE"], "resources": [resource]});
    let is_meant = "object.kind == 'ConfigMap' ? object.metadata.name == 'probe' : \
                    (has(object.status) && has(object.status.phase) && object.status.phase == 'Succeeded')";
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "down"},
        "webhooks": [{
            "name": "down.example.org", "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": "Fail",
            "clientConfig": {"url": "https://127.0.0.1:1/"}, "timeoutSeconds": 1,
            "rules": [rule("landscaper.gardener.cloud", "v1alpha1", resource), rule("", "v1", "configmaps")],
            "matchConditions": [{"name": "meant", "expression": is_meant}],
        }],
    })
}

/// Waits until the server goes by the webhook.
async fn is_asked(cluster: &Objects) {
    let probe = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "probe"}});
    while !cluster.is_refused(&probe).await {}
}

#[tokio::test]
async fn c_149_a_webhook_that_is_down_is_told_and_the_status_is_written_once_it_is_not() {
    for (resource, kind) in [
        ("installations/status", "Installation"),
        ("executions/status", "Execution"),
        ("deployitems/status", "DeployItem"),
    ] {
        let cluster = crate::cluster().await;
        cluster.apply(&webhook(resource)).await;
        is_asked(&cluster).await;
        let fields = json!({"deployExecutions": executions(&[mocks("a", &[], "Succeeded", "x")])});
        cluster.apply(&installation("root", &blueprint(fields))).await;
        let is_told = |object: &Value| {
            let status = &object["status"];
            let conditions = status["conditions"].as_array().into_iter().flatten();
            let mut ready = conditions.filter(|one| one["type"] == "Ready");
            let error = &status["lastError"];
            status["jobIDFinished"] != status["jobID"]
                && error["message"].to_string().contains(WHY)
                && (&error["reason"], &error["codes"]) == (&json!("WebhookUnreachable"), &json!(["ERR_WEBHOOK"]))
                && ready.any(|one| one["message"].to_string().contains(WHY))
        };
        let of_kind = json!({"apiVersion": API, "kind": kind});
        cluster.expect_that(&of_kind, "does not say which webhook is down", is_told).await;
        warns_of(&cluster, kind, WHY).await;
        cluster.delete(&webhook(resource)).await;
        let done = cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
        assert_eq!(done["status"]["lastError"], Value::Null, "{done:#}");
        cluster.delete(&any("Installation", "root")).await;
        cluster.expect_absent(&any("Installation", "root")).await;
    }
}
