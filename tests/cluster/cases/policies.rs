//! What the objects of a namespace may do: what a policy refuses is refused with its line, before anything is read or written,
//! and a change of policy counts at once.

mod changes;
mod networks;
mod plans;
mod quotas;
mod refusals;

use orangery_tests::{
    cluster::Cluster,
    objects::{NAMESPACE, Objects},
    tree::any,
};
use serde_json::{Value, json};

/// The code of what a policy refuses.
const CODE: &str = "ERR_POLICY_VIOLATION";

/// A policy for the namespace of the cases, whose servers are on loopback.
pub(crate) fn policy(name: &str, fields: Value) -> Value {
    let egress = json!({"networks": ["127.0.0.0/8", "::1/128"]});
    let mut spec = json!({"profile": "restricted", "namespaces": {"names": [NAMESPACE]}, "egress": egress});
    if let (Some(spec), Some(fields)) = (spec.as_object_mut(), fields.as_object()) {
        spec.extend(fields.clone());
    }
    json!({"apiVersion": "orangery.dev/v1alpha1", "kind": "NamespacePolicy", "metadata": {"name": name}, "spec": spec})
}

/// Applies a policy, and waits until the operator knows this version of it.
pub(crate) async fn put(cluster: &Objects, policy: &Value) {
    let generation = cluster.apply(policy).await.metadata.generation;
    let is_known = |object: &Value| {
        object["metadata"]["name"] == policy["metadata"]["name"]
            && object["status"]["observedGeneration"].as_i64() == generation
    };
    cluster.expect_that(policy, "the policy was not read in time", is_known).await;
}

/// Waits until an object of ours has ended its job as refused by this line, in this phase, and its condition says so as well;
/// answers the sentence.
pub(crate) async fn refused(cluster: &Objects, object: &Value, phase: &str, line: &str) -> String {
    let line = format!("line {line}");
    let is_refused = |found: &Value| {
        let error = &found["status"]["lastError"];
        let has_code = error["codes"].as_array().is_some_and(|codes| codes.iter().any(|code| code == CODE));
        let message = error["message"].as_str().unwrap_or_default();
        found["metadata"]["name"] == object["metadata"]["name"]
            && found["status"]["phase"] == phase
            && found["status"]["jobID"] == found["status"]["jobIDFinished"]
            && has_code
            && message.contains(&line)
            && is_told(found, &line)
    };
    let what = format!("was not refused in time by {line}");
    let found = cluster.expect_that(object, &what, is_refused).await;
    found["status"]["lastError"]["message"].as_str().unwrap_or_default().to_owned()
}

/// Whether the condition `Ready` of an object says this.
fn is_told(object: &Value, text: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    let mut ready = conditions.filter(|condition| condition["type"] == "Ready");
    ready.any(|ready| {
        ready["status"] == "False" && ready["message"].as_str().is_some_and(|message| message.contains(text))
    })
}

/// Waits until an item has this status of the condition `Drifted`, with a message that has this text.
async fn expect_drifted(cluster: &Cluster, what: &str, (status, text): (&str, &str)) {
    let drifted = |item: &Value| {
        let all = item["status"]["conditions"].as_array().cloned().unwrap_or_default();
        all.iter()
            .any(|one| one["type"] == "Drifted" && one["status"] == status && one["message"].to_string().contains(text))
    };
    cluster.expect_that(&any("DeployItem", ""), what, drifted).await;
}
