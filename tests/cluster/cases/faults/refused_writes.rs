//! An API server that refuses what the operator writes, as a policy of the cluster may: it is said, and tried again (C-42).

use orangery_tests::{
    objects::{NAMESPACE, Objects},
    tree::{
        API, any, ask, blueprint, deploys, executions, imports_cluster, in_phase, installation, mocks, on_cluster,
        subinstallation,
    },
};
use serde_json::{Value, json};

/// What stands in the status and in the event.
pub(crate) const WHY: &str = "the cluster does not take this";

fn admission(kind: &str, spec: Value) -> Value {
    let api_version = "admissionregistration.k8s.io/v1";
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "takes-not-all"}, "spec": spec})
}

pub(crate) fn binding() -> Value {
    let spec = json!({"policyName": "takes-not-all", "validationActions": ["Deny"]});
    admission("ValidatingAdmissionPolicyBinding", spec)
}

/// From now on the cluster refuses a status of `resource` unless this holds.
pub(crate) async fn refuse(cluster: &Objects, resource: &str, unless: &str) {
    let rule = |group: &str, version: &str, resource: &str| json!({"apiGroups": [group], "apiVersions": [version], "operations": ["CREATE", "UPDATE"], "resources": [resource]});
    let rules = [
        rule("landscaper.gardener.cloud", "v1alpha1", resource),
        rule("orangery.dev", "v1alpha1", resource),
        rule("", "v1", "configmaps"),
    ];
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

/// Waits until the cluster refuses nothing more.
async fn takes_again(cluster: &Objects) {
    let probe = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "probe"}});
    while cluster.is_refused(&probe).await {}
}

fn root(item: Value) -> Value {
    installation("root", &blueprint(json!({"deployExecutions": executions(&[item])})))
}

/// Waits for a Warning about an object of this kind that says why.
pub(crate) async fn warns_of(cluster: &Objects, kind: &str, why: &str) {
    let event = json!({"apiVersion": "events.k8s.io/v1", "kind": "Event"});
    let is_told = |event: &Value| {
        event["type"] == "Warning" && event["regarding"]["kind"] == kind && event["note"].to_string().contains(why)
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
    let item = json!({"apiVersion": API, "kind": "DeployItem"});
    let item = cluster.expect_that(&item, "did not fail", is_failed).await;
    assert!(item["status"]["lastError"]["message"].to_string().contains(WHY), "{item:#}");
    assert_eq!(item["status"]["providerStatus"]["kind"], Value::Null, "{item:#}");
    warns_of(&cluster, "DeployItem", WHY).await;
    cluster.delete(&any("Installation", "root")).await;
    cluster.expect_absent(&any("Installation", "root")).await;
}

/// Serves our DeployItems with a field `answer` of this type in the spec, and of a number also in the provider status. What says
/// that a server goes by it is an item that it refuses from then on, or no longer.
async fn serve_items_with_answers(cluster: &Objects, type_: &str) {
    let definition = orangery_api::crds().into_iter().find(|definition| definition.spec.names.kind == "DeployItem");
    let mut definition = serde_json::to_value(definition).expect("a definition is JSON");
    let schema = &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
    let (answer, is_number) = (json!({"type": type_}), type_ == "integer");
    schema["spec"]["properties"]["answer"] = answer.clone();
    if is_number {
        schema["status"]["properties"]["providerStatus"]["properties"] = json!({"answer": answer});
    }
    cluster.apply(&definition).await;
    let spec = json!({"type": "none/x", "answer": "a text"});
    let metadata = json!({"name": "probe", "namespace": NAMESPACE});
    let probe = json!({"apiVersion": API, "kind": "DeployItem", "metadata": metadata, "spec": spec});
    while cluster.is_refused(&probe).await != is_number {}
}

/// A definition of another release may ask for more, and nobody tells the operator.
#[tokio::test]
async fn c_42_an_item_whose_status_the_schema_refuses_fails_says_why_and_keeps_what_it_had() {
    let cluster = crate::cluster().await;
    let mut item = mocks("a", &[], "Succeeded", "x");
    let answers = |answer: Value| json!({"apiVersion": "a/v1", "kind": "K", "answer": answer});
    item["config"]["providerStatus"] = answers(json!(1));
    serve_items_with_answers(&cluster, "integer").await;
    cluster.apply(&root(item.clone())).await;
    cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
    item["config"]["providerStatus"] = answers(json!("many"));
    cluster.apply(&root(item)).await;
    let failed = cluster.expect(&in_phase("Installation", "root", "Failed")).await;
    let why = "status.providerStatus.answer: Invalid value";
    assert!(failed["status"]["lastError"]["message"].to_string().contains(why), "{failed:#}");
    let item = json!({"apiVersion": API, "kind": "DeployItem"});
    let is_failed = |item: &Value| item["status"]["phase"] == "Failed";
    let told = cluster.expect_that(&item, "did not fail", is_failed).await;
    let status = &told["status"];
    assert_eq!(status["jobIDFinished"], status["jobID"], "{told:#}");
    let message = status["lastError"]["message"].as_str().unwrap_or_default();
    assert!(message.contains(why) && message.len() < 400, "{message}");
    let ready = status["conditions"].as_array().into_iter().flatten().find(|one| one["type"] == "Ready").cloned();
    assert!(ready.is_some_and(|ready| ready["message"].to_string().contains(why)), "{told:#}");
    assert_eq!(status["providerStatus"]["answer"], 1, "what was taken before stays: {told:#}");
    warns_of(&cluster, "DeployItem", why).await;
    serve_items_with_answers(&cluster, "string").await;
    ask(&cluster, "root").await;
    cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
    let written = |item: &Value| item["status"]["providerStatus"]["answer"] == "many";
    cluster.expect_that(&item, "has not what its component answered", written).await;
    cluster.delete(&any("Installation", "root")).await;
    cluster.expect_absent(&any("Installation", "root")).await;
}

/// An API server would take this status, and then refuse to let the item go.
#[tokio::test]
async fn c_97_an_item_whose_status_would_wedge_it_fails_and_can_be_deleted() {
    let cluster = crate::cluster().await;
    let mut item = mocks("a", &[], "Succeeded", "x");
    item["config"]["providerStatus"] = json!({"apiVersion": "", "kind": "Bad"});
    cluster.apply(&root(item)).await;
    let failed = cluster.expect(&in_phase("Installation", "root", "Failed")).await;
    let message = failed["status"]["lastError"]["message"].to_string();
    assert!(message.contains("which no object can have; write GROUP/VERSION, or leave it out"), "{message}");
    cluster.delete(&any("Installation", "root")).await;
    cluster.expect_absent(&any("Installation", "root")).await;
}

/// A status with a name that no object can have is taken, and nothing else of its object afterwards, on both servers.
#[tokio::test]
async fn a_status_within_a_status_is_not_looked_at_before_the_object_itself_is_written() {
    let cluster = crate::cluster().await;
    let metadata = json!({"name": "held", "namespace": NAMESPACE, "finalizers": ["example.org/held"]});
    let held = json!({"apiVersion": API, "kind": "DeployItem", "metadata": metadata, "spec": {"type": "none/x"}});
    cluster.apply(&held).await;
    let status = |version: &str| json!({"providerStatus": {"apiVersion": version, "kind": "K"}});
    cluster.patch_status(&held, status("")).await;
    let freed = json!({"apiVersion": API, "kind": "DeployItem", "metadata": {"name": "held", "namespace": NAMESPACE, "finalizers": null}});
    let refused = cluster.try_merge(&freed).await.expect_err("it is refused").to_string();
    assert!(refused.contains("status.providerStatus.apiVersion: Invalid value: \"\": must not be empty"), "{refused}");
    cluster.patch_status(&held, status("a/v1")).await;
    cluster.try_merge(&freed).await.expect("it is taken again");
}

#[tokio::test]
async fn c_42_a_status_that_is_refused_is_told_and_written_once_it_is_taken() {
    for (resource, kind) in [("executions/status", "Execution"), ("installations/status", "Installation")] {
        let cluster = crate::cluster().await;
        refuse(&cluster, resource, "!has(object.status.phase) || object.status.phase != 'Succeeded'").await;
        cluster.apply(&root(mocks("a", &[], "Succeeded", "x"))).await;
        let is_told = |object: &Value| {
            let conditions = object["status"]["conditions"].as_array();
            let all = |type_: &str, holds: &dyn Fn(&Value) -> bool| {
                conditions.into_iter().flatten().filter(|one| one["type"] == type_).all(holds)
            };
            object["status"]["lastError"]["message"].to_string().contains(WHY)
                && all("Progressing", &|one| one["reason"] == "TransientError")
                && all("Ready", &|one| one["message"].to_string().contains(WHY))
        };
        let told = cluster.expect_that(&any(kind, "root"), "does not say what is refused", is_told).await;
        assert_ne!(told["status"]["jobIDFinished"], told["status"]["jobID"], "{told:#}");
        warns_of(&cluster, kind, WHY).await;
        cluster.delete(&binding()).await;
        let done = cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
        assert_eq!(done["status"]["lastError"], Value::Null, "{done:#}");
    }
}

#[tokio::test]
async fn c_42_a_guard_that_may_not_be_taken_away_is_told_and_taken_away_once_it_may() {
    let cluster = crate::cluster().await;
    let size = |of: &str| format!("(has({of}.metadata.finalizers) ? size({of}.metadata.finalizers) : 0)");
    let held = format!("oldObject == null || {} >= {}", size("object"), size("oldObject"));
    refuse(&cluster, "targets", &held).await;
    let fields = json!({"imports": imports_cluster(), "deployExecutions": executions(&[deploys("cm", &[], "x")])});
    cluster.apply(&on_cluster(installation("root", &blueprint(fields)))).await;
    cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
    let target = any("Target", "cluster");
    cluster.delete(&any("Installation", "root")).await;
    cluster.expect_absent(&any("Installation", "root")).await;
    cluster.delete(&target).await;
    warns_of(&cluster, "Target", WHY).await;
    cluster.delete(&binding()).await;
    cluster.expect_absent(&target).await;
}

/// What an Installation makes, in the order in which it makes them.
#[tokio::test]
async fn c_149_what_may_not_be_created_ends_the_job_and_the_next_one_makes_it() {
    let leaf = blueprint(json!({"deployExecutions": executions(&[mocks("a", &[], "Succeeded", "x")])}));
    let fields = json!({
        "imports": [{"name": "v", "type": "data", "schema": {"type": "string"}}],
        "subinstallations": [subinstallation("leaf", &leaf)],
        "deployExecutions": executions(&[mocks("b", &[], "Succeeded", "x")]),
    });
    let mut root = installation("root", &blueprint(fields));
    root["spec"]["imports"] = json!({"data": [{"name": "v", "configMapRef": {"name": "settings", "key": "v"}}]});
    let is_child = "has(object.metadata.ownerReferences)";
    for resource in ["dataobjects", "installations", "executions", "deployitems"] {
        let cluster = crate::cluster().await;
        let metadata = json!({"name": "settings", "namespace": NAMESPACE});
        cluster
            .apply(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"v": "x"}}))
            .await;
        refuse(&cluster, resource, &format!("oldObject != null || !{is_child}")).await;
        cluster.apply(&root).await;
        let failed = cluster.expect(&in_phase("Installation", "root", "Failed")).await;
        assert!(failed["status"]["lastError"]["message"].to_string().contains(WHY), "{resource}: {failed:#}");
        warns_of(&cluster, "Installation", WHY).await;
        cluster.delete(&binding()).await;
        takes_again(&cluster).await;
        ask(&cluster, "root").await;
        cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
    }
}

/// What a job before this one has exported goes when it begins.
#[tokio::test]
async fn c_149_an_export_that_may_not_be_written_anew_ends_the_job_and_the_next_one_writes_it() {
    let cluster = crate::cluster().await;
    let root = |value: &str| {
        let template = json!({"exports": {"out": value}}).to_string();
        let fields = json!({
            "exports": [{"name": "out", "type": "data", "schema": {"type": "string"}}],
            "exportExecutions": [{"name": "e", "type": "Jinja", "template": template}],
        });
        let mut root = installation("root", &blueprint(fields));
        root["spec"]["exports"] = json!({"data": [{"name": "out", "dataRef": "out"}]});
        root
    };
    let exported =
        |value: &str| json!({"apiVersion": API, "kind": "DataObject", "metadata": {"name": "out"}, "data": value});
    cluster.apply(&root("1")).await;
    cluster.expect(&exported("1")).await;
    cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
    refuse(&cluster, "dataobjects", "object.metadata.name != 'out' || object.data != '2'").await;
    cluster.apply(&root("2")).await;
    let failed = cluster.expect(&in_phase("Installation", "root", "Failed")).await;
    assert!(failed["status"]["lastError"]["message"].to_string().contains(WHY), "{failed:#}");
    warns_of(&cluster, "Installation", WHY).await;
    let exports = cluster.list(&any("DataObject", "out")).await;
    assert!(exports.iter().all(|export| export["data"] != "2"), "{exports:#?}");
    cluster.delete(&binding()).await;
    takes_again(&cluster).await;
    ask(&cluster, "root").await;
    cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
    cluster.expect(&exported("2")).await;
}

/// With the annotation the same job would be asked for again and again.
#[tokio::test]
async fn c_149_an_annotation_that_may_not_be_taken_away_is_told_and_its_job_is_done_once_it_may() {
    let cluster = crate::cluster().await;
    let asks = |of: &str| {
        format!(
            "(has({of}.metadata.annotations) && 'landscaper.gardener.cloud/operation' in {of}.metadata.annotations)"
        )
    };
    let stays = format!("oldObject == null || !{} || {}", asks("oldObject"), asks("object"));
    refuse(&cluster, "installations", &stays).await;
    cluster.apply(&root(mocks("a", &[], "Succeeded", "x"))).await;
    warns_of(&cluster, "Installation", WHY).await;
    let told = cluster.expect(&any("Installation", "root")).await;
    assert_eq!(told["metadata"]["annotations"]["landscaper.gardener.cloud/operation"], "reconcile", "{told:#}");
    cluster.delete(&binding()).await;
    let done = cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
    assert_eq!(done["status"]["lastError"], Value::Null, "{done:#}");
    assert_eq!(done["metadata"]["annotations"]["landscaper.gardener.cloud/operation"], Value::Null, "{done:#}");
}

/// The last write of all takes the finalizer away: there is no status afterwards that could be wrong.
#[tokio::test]
async fn c_149_a_finalizer_that_may_not_be_taken_away_is_told_and_taken_away_once_it_may() {
    let size = |of: &str| format!("(has({of}.metadata.finalizers) ? size({of}.metadata.finalizers) : 0)");
    let held = format!("oldObject == null || {} >= {}", size("object"), size("oldObject"));
    for (resource, kind) in
        [("installations", "Installation"), ("executions", "Execution"), ("deployitems", "DeployItem")]
    {
        let cluster = crate::cluster().await;
        cluster.apply(&root(mocks("a", &[], "Succeeded", "x"))).await;
        cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
        refuse(&cluster, resource, &held).await;
        cluster.delete(&any("Installation", "root")).await;
        let is_told = |object: &Value| object["status"]["lastError"]["message"].to_string().contains(WHY);
        let of_kind = json!({"apiVersion": API, "kind": kind});
        cluster.expect_that(&of_kind, "does not say what is refused", is_told).await;
        warns_of(&cluster, kind, WHY).await;
        cluster.delete(&binding()).await;
        cluster.expect_absent(&any("Installation", "root")).await;
    }
}
