//! What a server puts into new objects of single kinds.

use serde_json::{Map, Value, json};

use crate::{
    identity::User,
    object::{self, at, text},
    refusal::StatusCause,
};

/// What a new object of a built-in kind has beside its defaults: what admission and the strategy of its kind put in.
pub(in crate::operation) fn complete_new(kind: &str, user: Option<&User>, object: &mut Value) {
    match kind {
        "CertificateSigningRequest" => new_signing_request(object, user),
        "Namespace" => object::set(object, &["spec", "finalizers"], json!(["kubernetes"])),
        "Node" => new_node(object),
        "Pod" => new_pod(object),
        "Job" => new_job(object),
        "DaemonSet" => object::set(object, &["metadata", "annotations", TEMPLATE_GENERATION], json!("1")),
        _ => {}
    }
}

/// Where a DaemonSet counts the forms of its template.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// The user that it is of: nobody says that of himself.
fn new_signing_request(request: &mut Value, user: Option<&User>) {
    for field in ["username", "uid", "groups", "extra"] {
        object::take(request, &["spec", field]);
    }
    if let Some(user) = user {
        object::set(request, &["spec", "username"], json!(user.name));
        object::set(request, &["spec", "groups"], json!(user.groups));
    }
}

/// What a request to sign a certificate asks for stays as it was.
pub(super) fn signing_request(old: Option<&Value>, request: &mut Value) -> Option<StatusCause> {
    if let Some(old) = old {
        object::carry(old, request, &["spec"]);
        return None;
    }
    let field = text(request, &["spec", "request"]).unwrap_or_default();
    let decoded = data_encoding::BASE64.decode(field.as_bytes()).unwrap_or_default();
    let is_request = decoded.trim_ascii_start().starts_with(b"-----BEGIN CERTIFICATE REQUEST-----");
    let why = "PEM block type must be CERTIFICATE REQUEST";
    (!is_request).then(|| StatusCause::invalid("spec.request", &json!(field), why))
}

/// When the conditions of a request to sign a certificate were written, and when they became what they are.
pub(super) fn condition_times(old: Option<&Value>, request: &mut Value, now: &str) {
    let known = old.map(|old| object::items(old, &["status", "conditions"])).unwrap_or_default();
    let mut conditions = object::items(request, &["status", "conditions"]).to_vec();
    if conditions.is_empty() {
        return;
    }
    for condition in &mut conditions {
        let same = |other: &&Value| ["type", "status"].iter().all(|field| other.get(field) == condition.get(field));
        let since = known.iter().find(same).and_then(|same| same.get("lastTransitionTime")).cloned();
        let since = since.unwrap_or_else(|| json!(now));
        for (field, time) in [("lastUpdateTime", json!(now)), ("lastTransitionTime", since)] {
            if condition.get(field).is_none_or(Value::is_null) {
                object::set(condition, &[field], time);
            }
        }
    }
    object::set(request, &["status", "conditions"], Value::Array(conditions));
}

/// What is wrong with the phase of a namespace, if anything: whoever deletes it decides about it.
pub(super) fn namespace_phase(namespace: &Value) -> Option<StatusCause> {
    let phase = text(namespace, &["status", "phase"])?;
    let (wanted, when) = if object::deleting(namespace) { ("Terminating", "not empty") } else { ("Active", "empty") };
    let why = format!("may only be '{wanted}' if `deletionTimestamp` is {when}");
    (phase != wanted).then(|| StatusCause::invalid("status.Phase", &json!(phase), why.as_str()))
}

fn new_pod(pod: &mut Value) {
    let qos = quality(pod);
    object::set(pod, &["status"], json!({"phase": "Pending", "qosClass": qos}));
    let spec = object::fields(object::fields(pod).entry("spec").or_insert_with(|| json!({})));
    let named = |field: &str| text_of(spec, field).is_some_and(|name| !name.is_empty());
    if !named("serviceAccountName") && !named("serviceAccount") {
        spec.insert("serviceAccountName".to_owned(), json!("default"));
    }
}

fn text_of<'a>(fields: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    fields.get(name).and_then(Value::as_str)
}

/// The priority of a pod, and for how long it stays on a node that does not answer: kept by every write.
pub(super) fn admit_pod(old: Option<&Value>, pod: &mut Value) {
    for (field, usual) in [("priority", json!(0)), ("preemptionPolicy", json!("PreemptLowerPriority"))] {
        if at(pod, &["spec", field]).is_none() {
            let kept = old.and_then(|old| at(old, &["spec", field])).cloned();
            object::set(pod, &["spec", field], kept.unwrap_or(usual));
        }
    }
    let mut tolerations = object::items(pod, &["spec", "tolerations"]).to_vec();
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let tolerated = |t: &Value| text(t, &["key"]).is_none_or(|of| of.is_empty() || of == key);
        let covers = |t: &Value| matches!(text(t, &["effect"]), None | Some("" | "NoExecute"));
        if !tolerations.iter().any(|t| tolerated(t) && covers(t)) {
            tolerations
                .push(json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}));
        }
    }
    object::set(pod, &["spec", "tolerations"], json!(tolerations));
}

/// A new node takes no pods until it says that it is ready.
fn new_node(node: &mut Value) {
    let taint = json!({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"});
    let mut taints = object::items(node, &["spec", "taints"]).to_vec();
    if !taints.iter().any(|known| ["key", "effect"].iter().all(|field| known.get(field) == taint.get(field))) {
        taints.push(taint);
    }
    object::set(node, &["spec", "taints"], json!(taints));
}

/// How a pod is treated when its node runs short: by whether its containers say what they need.
fn quality(pod: &Value) -> &'static str {
    let lists = ["containers", "initContainers"].map(|list| object::items(pod, &["spec", list]));
    let needs: Vec<&Value> = lists.into_iter().flatten().filter_map(|container| container.get("resources")).collect();
    let of = |resources: &Value, side: &str, name: &str| at(resources, &[side, name]).cloned();
    let named = |resources: &&Value| {
        ["requests", "limits"]
            .iter()
            .any(|side| ["cpu", "memory"].iter().any(|name| of(resources, side, name).is_some()))
    };
    let exact = |resources: &&Value| {
        ["cpu", "memory"].iter().all(|name| {
            let limit = of(resources, "limits", name);
            limit.is_some() && of(resources, "requests", name).is_none_or(|request| Some(request) == limit)
        })
    };
    match (needs.iter().any(named), !needs.is_empty() && needs.iter().all(exact)) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

/// The pods of a job bear its uid, by which it selects them, unless it selects by hand.
fn new_job(job: &mut Value) {
    if at(job, &["spec", "manualSelector"]) == Some(&Value::Bool(true)) {
        return;
    }
    let (uid, name) = (object::meta(job, "uid").to_owned(), object::meta(job, "name").to_owned());
    for prefix in ["", "batch.kubernetes.io/"] {
        for (label, value) in [("controller-uid", &uid), ("job-name", &name)] {
            let label = format!("{prefix}{label}");
            object::set(job, &["spec", "template", "metadata", "labels", &label], json!(value));
        }
    }
    object::set(job, &["spec", "selector", "matchLabels", "batch.kubernetes.io/controller-uid"], json!(uid));
}

/// The count grows with every form of the template, and survives a write that leaves it out.
pub(super) fn template_generation(old: Option<&Value>, new: &mut Value) {
    let place = ["metadata", "annotations", TEMPLATE_GENERATION];
    let Some(old) = old else { return };
    let count: i64 = text(old, &place).and_then(|count| count.parse().ok()).unwrap_or(0);
    let same = at(old, &["spec", "template"]) == at(new, &["spec", "template"]);
    let count = if same { count } else { count.saturating_add(1) };
    if count > 0 {
        object::set(new, &place, json!(count.to_string()));
    }
}
