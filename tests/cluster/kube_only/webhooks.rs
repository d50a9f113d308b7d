//! Admission webhooks that are down, that refuse, and that change what is written: it is said, and tried again where it may pass
//! (C-42, C-149, C-179).

use std::sync::{Arc, Mutex};

use orangery_tests::{
    external_deployer::item,
    objects::{NAMESPACE, Objects},
    tree::{
        API, any, ask, blueprint, deploys, executions, imports_cluster, in_phase, installation, mocks, on_cluster,
        wait_until_idle,
    },
    webhook::{Verdict, Webhook},
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

/// What a webhook is asked for by a test alone, to know that the server goes by it.
const PROBE: &str = "probe";

/// What a webhook does with the objects of one kind: which operations it refuses.
#[derive(Clone, Default)]
struct Refusals(Arc<Mutex<Vec<&'static str>>>);

impl Refusals {
    fn refuse(&self, operations: &[&'static str]) {
        *self.0.lock().unwrap() = operations.to_vec();
    }

    /// The verdict on a request; dry runs of the probe are always refused.
    fn verdict(&self, request: &Value) -> Verdict {
        let (operation, name) = (request["operation"].as_str().unwrap(), request["name"].as_str().unwrap_or_default());
        let is_meant = self.0.lock().unwrap().contains(&operation);
        if name == PROBE || (is_meant && name != "kube-root-ca.crt") {
            return Verdict::Deny(format!("nobody may {operation} this"));
        }
        Verdict::Allow
    }
}

/// The configuration of a webhook for all that happens to a resource in the namespace of the tests, and to the probe.
fn configuration(kind: &str, webhook: &Webhook, group: &str, version: &str, resource: &str) -> Value {
    let operations = ["CREATE", "UPDATE", "DELETE"];
    let rule = |group: &str, version: &str, resource: &str| json!({"apiGroups": [group], "apiVersions": [version], "operations": operations, "resources": [resource]});
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": "of-a-test"},
        "webhooks": [{
            "name": "of-a-test.example.org", "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": "Fail",
            "clientConfig": webhook.client_config(), "timeoutSeconds": 10,
            "rules": [rule(group, version, resource), rule("", "v1", "configmaps")],
            "matchConditions": [{
                "name": "meant",
                "expression": format!("request.namespace == '{NAMESPACE}' && (request.resource.resource == '{resource}' || (has(request.name) && request.name == '{PROBE}'))"),
            }],
        }],
    })
}

/// An Installation of these items on the Target `cluster`.
fn deploying(items: &[Value]) -> Value {
    let fields = json!({"imports": imports_cluster(), "deployExecutions": executions(items)});
    on_cluster(installation("root", &blueprint(fields)))
}

fn config_map(content: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"content": content}})
}

/// What stands in a status of what a webhook refuses.
fn words(operation: &str) -> String {
    format!("admission webhook \\\"of-a-test.example.org\\\" denied the request: nobody may {operation} this")
}

/// Waits for the end of a job in this phase that says what the webhook says.
async fn ends(cluster: &Objects, phase: &str, operation: &str) {
    let ended = cluster.expect(&in_phase("Installation", "root", phase)).await;
    assert!(ended["status"]["lastError"]["message"].to_string().contains(&words(operation)), "{ended:#}");
}

#[tokio::test]
async fn c_179_what_a_webhook_of_the_target_refuses_ends_the_job_with_its_words_and_the_next_job_goes_on() {
    let (cluster, refusals) = (crate::cluster().await, Refusals::default());
    let asked = refusals.clone();
    let webhook = Webhook::start(move |request| asked.verdict(request)).await;
    let configuration = configuration("ValidatingWebhookConfiguration", &webhook, "", "v1", "configmaps");
    cluster.apply(&configuration).await;
    is_asked(&cluster).await;

    refusals.refuse(&["CREATE"]);
    cluster.apply(&deploying(&[deploys("a", &[], "1")])).await;
    ends(&cluster, "Failed", "CREATE").await;
    cluster.expect_absent(&config_map("1")).await;
    refusals.refuse(&[]);
    ask(&cluster, "root").await;
    cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
    cluster.expect(&config_map("1")).await;

    refusals.refuse(&["UPDATE"]);
    cluster.apply(&deploying(&[deploys("a", &[], "2")])).await;
    ends(&cluster, "Failed", "UPDATE").await;
    cluster.expect(&config_map("1")).await;
    refusals.refuse(&[]);
    ask(&cluster, "root").await;
    cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
    cluster.expect(&config_map("2")).await;

    refusals.refuse(&["DELETE"]);
    cluster.delete(&any("Installation", "root")).await;
    ends(&cluster, "DeleteFailed", "DELETE").await;
    cluster.expect(&config_map("2")).await;
    refusals.refuse(&[]);
    ask(&cluster, "root").await;
    cluster.expect_absent(&any("Installation", "root")).await;
    cluster.expect_absent(&config_map("2")).await;
    cluster.delete(&configuration).await;
}

#[tokio::test]
async fn c_179_a_webhook_of_the_target_that_is_down_delays_the_job_and_ends_none() {
    let cluster = crate::cluster().await;
    let mut down = webhook("deployitems/status");
    // All ConfigMaps of tests.
    down["webhooks"][0]["matchConditions"][0]["expression"] =
        json!("object.kind == 'ConfigMap' && (object.metadata.name == 'a' || object.metadata.name == 'probe')");
    cluster.apply(&down).await;
    is_asked(&cluster).await;
    cluster.apply(&deploying(&[deploys("a", &[], "1")])).await;
    let is_told = |item: &Value| {
        let status = &item["status"];
        status["jobIDFinished"] != status["jobID"]
            && status["conditions"].to_string().contains("failed calling webhook")
    };
    cluster.expect_that(&item(), "does not say which webhook is down", is_told).await;
    cluster.delete(&down).await;
    cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
    cluster.expect(&config_map("1")).await;
}

#[tokio::test]
async fn c_179_what_a_webhook_changes_of_what_is_written_is_no_drift_and_not_written_again() {
    let cluster = crate::cluster().await;
    let writes = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&writes);
    let webhook = Webhook::start(move |request| {
        if request["name"] == PROBE {
            return Verdict::Deny("it is asked".to_owned());
        }
        if request["name"] != "a" || request["operation"] == "DELETE" {
            return Verdict::Allow;
        }
        *counted.lock().unwrap() += usize::from(request["dryRun"] != true);
        Verdict::Patch(json!([
            {"op": "add", "path": "/data/content", "value": "by the webhook"},
            {"op": "add", "path": "/data/added", "value": "yes"},
        ]))
    })
    .await;
    let configuration = configuration("MutatingWebhookConfiguration", &webhook, "", "v1", "configmaps");
    cluster.apply(&configuration).await;
    is_asked(&cluster).await;
    let mut corrected = deploys("a", &[], "1");
    corrected["drift"] = json!({"policy": "Correct"});
    cluster.apply(&deploying(&[corrected])).await;
    cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
    let has_looked = |item: &Value| {
        let mut conditions = item["status"]["conditions"].as_array().into_iter().flatten();
        conditions.any(|one| one["type"] == "Drifted" && one["status"] == "False")
    };
    cluster.expect_that(&item(), "has not looked for drift", has_looked).await;
    // What somebody else changes is looked at, and still nothing of the webhook's is drift.
    let theirs =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "annotations": {"theirs": "1"}}});
    cluster.merge(&theirs).await;
    wait_until_idle(&cluster).await;
    cluster.expect_that(&item(), "has not looked for drift", has_looked).await;
    assert_eq!(*writes.lock().unwrap(), 2, "one of the job, one of somebody else");
    let mut changed = config_map("by the webhook");
    changed["data"]["added"] = json!("yes");
    cluster.expect(&changed).await;
    cluster.delete(&any("Installation", "root")).await;
    cluster.expect_absent(&any("Installation", "root")).await;
    cluster.delete(&configuration).await;
}

/// What the operator makes for a tree is refused: it is told, and once it is not the tree comes to its end.
#[tokio::test]
async fn c_179_what_a_webhook_refuses_of_our_own_objects_is_told_and_goes_on_once_it_does_not() {
    for (resource, kind) in [("executions", "Execution"), ("deployitems", "DeployItem")] {
        let (cluster, refusals) = (crate::cluster().await, Refusals::default());
        let asked = refusals.clone();
        let webhook = Webhook::start(move |request| asked.verdict(request)).await;
        let group = "landscaper.gardener.cloud";
        let configuration = configuration("ValidatingWebhookConfiguration", &webhook, group, "v1alpha1", resource);
        cluster.apply(&configuration).await;
        is_asked(&cluster).await;
        let fields = json!({"deployExecutions": executions(&[mocks("a", &[], "Succeeded", "x")])});
        let root = installation("root", &blueprint(fields));

        refusals.refuse(&["CREATE"]);
        cluster.apply(&root).await;
        let is_told = |operation: &'static str| {
            move |object: &Value| {
                object["metadata"]["name"] == "root" && object["status"].to_string().contains(&words(operation))
            }
        };
        cluster.expect_that(&any("Installation", "root"), "does not say what is refused", is_told("CREATE")).await;
        cluster.expect_absent(&json!({"apiVersion": API, "kind": kind})).await;
        refusals.refuse(&[]);
        cluster.apply(&root).await;
        cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;

        refusals.refuse(&["DELETE"]);
        cluster.delete(&any("Installation", "root")).await;
        cluster.expect_that(&any("Installation", "root"), "does not say what is refused", is_told("DELETE")).await;
        cluster.expect(&json!({"apiVersion": API, "kind": kind})).await;
        refusals.refuse(&[]);
        ask(&cluster, "root").await;
        cluster.expect_absent(&any("Installation", "root")).await;
        cluster.expect_absent(&json!({"apiVersion": API, "kind": kind})).await;
        cluster.delete(&configuration).await;
    }
}
