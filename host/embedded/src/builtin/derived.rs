//! Defaults that depend on other fields of the same message, as the functions of Kubernetes that are called `SetDefaults_…`.

use serde_json::{Map, Value, json};

use super::defaults::{SELECTORS, WEBHOOK};
use crate::object::{self, at, text};

/// Fills in what a message has because of its other fields. What is in `defaults` is there already.
pub(super) fn derive(message: &str, fields: &mut Map<String, Value>) {
    match message {
        "admissionregistration.MutatingWebhook" | "admissionregistration.ValidatingWebhook" => {
            [SELECTORS, WEBHOOK].concat().iter().for_each(|(field, value)| fill(fields, field, value));
        }
        "apiextensions.CustomResourceDefinitionNames" => definition_names(fields),
        "apps.DaemonSetUpdateStrategy" => rolling(fields, &[("maxUnavailable", "1"), ("maxSurge", "0")]),
        "apps.DeploymentStrategy" => rolling(fields, &[("maxUnavailable", r#""25%""#), ("maxSurge", r#""25%""#)]),
        "apps.StatefulSetSpec" => {
            let claims = fields.get_mut("volumeClaimTemplates").and_then(Value::as_array_mut);
            for claim in claims.into_iter().flatten() {
                object::set(claim, &["apiVersion"], json!("v1"));
                object::set(claim, &["kind"], json!("PersistentVolumeClaim"));
            }
        }
        "apps.StatefulSetUpdateStrategy" => stateful_set_strategy(fields),
        "autoscaling2.HorizontalPodAutoscalerBehavior" => scaling_rules(fields),
        "batch.Job" => job(fields),
        "core.Container" | "core.EphemeralContainer" => {
            let policy = json!(pull_policy(fields.get("image")));
            fields.entry("imagePullPolicy").or_insert(policy);
        }
        "core.LimitRangeItem" => limit_range_item(fields),
        "core.NodeSpec" => {
            if let Some(range) = fields.get("podCIDR").cloned() {
                fields.entry("podCIDRs").or_insert_with(|| json!([range]));
            }
        }
        "core.NodeStatus" => {
            if let Some(capacity) = fields.get("capacity").cloned() {
                fields.entry("allocatable").or_insert(capacity);
            }
        }
        "core.Pod" => pod(fields),
        "core.PodSpec" => account(fields),
        "core.ReplicationController" => replication_controller(fields),
        "core.Service" => service(fields),
        "core.Volume" => volume(fields),
        "networking.NetworkPolicySpec" => policy_types(fields),
        "rbac.Subject" => {
            if matches!(fields.get("kind").and_then(Value::as_str), Some("User" | "Group")) {
                fields.entry("apiGroup").or_insert_with(|| json!("rbac.authorization.k8s.io"));
            }
        }
        _ => {}
    }
}

/// Sets a field that is not set.
fn fill(fields: &mut Map<String, Value>, field: &str, value: &str) {
    fields.entry(field).or_insert_with(|| json_of(value));
}

/// The value of a constant.
pub(super) fn json_of(constant: &str) -> Value {
    serde_json::from_str(constant).expect("the tables of defaults hold JSON")
}

fn rolling(strategy: &mut Map<String, Value>, limits: &[(&str, &str)]) {
    if strategy.get("type").and_then(Value::as_str) != Some("RollingUpdate") {
        return;
    }
    let rolling = object::fields(strategy.entry("rollingUpdate").or_insert_with(|| json!({})));
    limits.iter().for_each(|(field, value)| fill(rolling, field, value));
}

/// A strategy that is not named is given whole; one that is named has limits only if it has the field for them.
fn stateful_set_strategy(strategy: &mut Map<String, Value>) {
    let named = strategy.get("type").and_then(Value::as_str).is_some_and(|of| !of.is_empty());
    if !named {
        strategy.insert("type".to_owned(), json!("RollingUpdate"));
        strategy.entry("rollingUpdate").or_insert_with(|| json!({}));
    }
    if strategy.get("type").and_then(Value::as_str) == Some("RollingUpdate")
        && let Some(rolling) = strategy.get_mut("rollingUpdate")
    {
        object::fields(rolling).entry("partition").or_insert_with(|| json!(0));
    }
}

fn definition_names(names: &mut Map<String, Value>) {
    let Some(kind) = names.get("kind").and_then(Value::as_str).filter(|kind| !kind.is_empty()).map(str::to_owned)
    else {
        return;
    };
    for (field, value) in [("singular", kind.to_lowercase()), ("listKind", format!("{kind}List"))] {
        if names.get(field).and_then(Value::as_str).is_none_or(str::is_empty) {
            names.insert(field.to_owned(), json!(value));
        }
    }
}

/// Rules for both directions, as soon as there is one of them.
fn scaling_rules(behavior: &mut Map<String, Value>) {
    let percent = json!({"type": "Percent", "value": 100, "periodSeconds": 15});
    let pods = json!({"type": "Pods", "value": 4, "periodSeconds": 15});
    let up = object::fields(behavior.entry("scaleUp").or_insert_with(|| json!({})));
    up.entry("stabilizationWindowSeconds").or_insert_with(|| json!(0));
    up.entry("selectPolicy").or_insert_with(|| json!("Max"));
    up.entry("policies").or_insert_with(|| json!([pods, percent.clone()]));
    let down = object::fields(behavior.entry("scaleDown").or_insert_with(|| json!({})));
    down.entry("selectPolicy").or_insert_with(|| json!("Max"));
    down.entry("policies").or_insert_with(|| json!([percent]));
}

fn job(object: &mut Map<String, Value>) {
    let labels = object.get("spec").and_then(|spec| at(spec, &["template", "metadata", "labels"])).cloned();
    let Some(Value::Object(spec)) = object.get_mut("spec") else { return };
    if !spec.contains_key("completions") && !spec.contains_key("parallelism") {
        spec.insert("completions".to_owned(), json!(1));
    }
    fill(spec, "parallelism", "1");
    let backoff = if spec.contains_key("backoffLimitPerIndex") { i32::MAX } else { 6 };
    spec.entry("backoffLimit").or_insert_with(|| json!(backoff));
    fill(spec, "completionMode", r#""NonIndexed""#);
    fill(spec, "suspend", "false");
    let replacement = if spec.contains_key("podFailurePolicy") { "Failed" } else { "TerminatingOrFailed" };
    spec.entry("podReplacementPolicy").or_insert_with(|| json!(replacement));
    fill(spec, "manualSelector", "false");
    take_labels(object, labels);
}

/// The labels of the template, where the object has none of its own.
fn take_labels(object: &mut Map<String, Value>, labels: Option<Value>) {
    let Some(labels) = labels.filter(|labels| labels.as_object().is_some_and(|labels| !labels.is_empty())) else {
        return;
    };
    let metadata = object::fields(object.entry("metadata").or_insert_with(|| json!({})));
    if metadata.get("labels").and_then(Value::as_object).is_none_or(Map::is_empty) {
        metadata.insert("labels".to_owned(), labels);
    }
}

/// An image whose tag may move is pulled always. A digest is no tag.
fn pull_policy(image: Option<&Value>) -> &'static str {
    let image = image.and_then(Value::as_str).unwrap_or_default();
    let (name, digest) = image.split_once('@').map_or((image, None), |(name, digest)| (name, Some(digest)));
    let last = name.rsplit('/').next().unwrap_or_default();
    match (last.split_once(':'), digest) {
        (Some((_, "latest")), _) | (None, None) => "Always",
        _ => "IfNotPresent",
    }
}

fn limit_range_item(item: &mut Map<String, Value>) {
    if item.get("type").and_then(Value::as_str) != Some("Container") {
        return;
    }
    for (from, to) in [("max", "default"), ("default", "defaultRequest"), ("min", "defaultRequest")] {
        let Some(Value::Object(from)) = item.get(from).cloned() else { continue };
        let to = object::fields(item.entry(to).or_insert_with(|| json!({})));
        from.into_iter().for_each(|(resource, value)| {
            to.entry(resource).or_insert(value);
        });
    }
}

/// In a pod itself, and not in a template of pods, limits are requests where there are none.
fn pod(pod: &mut Map<String, Value>) {
    let Some(Value::Object(spec)) = pod.get_mut("spec") else { return };
    fill(spec, "enableServiceLinks", "true");
    let on_host = spec.get("hostNetwork") == Some(&Value::Bool(true));
    for list in ["containers", "initContainers"] {
        let Some(Value::Array(containers)) = spec.get_mut(list) else { continue };
        for container in containers {
            if let Some(Value::Object(limits)) = at(container, &["resources", "limits"]).cloned() {
                for (resource, limit) in limits {
                    if at(container, &["resources", "requests", &resource]).is_none() {
                        object::set(container, &["resources", "requests", &resource], limit);
                    }
                }
            }
            let ports = container.get_mut("ports").and_then(Value::as_array_mut).filter(|_| on_host);
            for port in ports.into_iter().flatten() {
                if let Some(number) = port.get("containerPort").cloned() {
                    object::fields(port).entry("hostPort").or_insert(number);
                }
            }
        }
    }
}

/// The account has an older name as well.
fn account(spec: &mut Map<String, Value>) {
    let named = |field: &str| spec.get(field).filter(|name| name.as_str().is_some_and(|name| !name.is_empty()));
    let Some(account) = named("serviceAccountName").or_else(|| named("serviceAccount")).cloned() else { return };
    spec.insert("serviceAccountName".to_owned(), account.clone());
    spec.insert("serviceAccount".to_owned(), account);
}

fn replication_controller(controller: &mut Map<String, Value>) {
    let labels = controller.get("spec").and_then(|spec| at(spec, &["template", "metadata", "labels"])).cloned();
    if let (Some(labels), Some(Value::Object(spec))) = (&labels, controller.get_mut("spec"))
        && spec.get("selector").and_then(Value::as_object).is_none_or(Map::is_empty)
    {
        spec.insert("selector".to_owned(), labels.clone());
    }
    take_labels(controller, labels);
}

fn service(service: &mut Map<String, Value>) {
    let Some(spec) = service.get_mut("spec") else { return };
    // This message is filled before those that it contains.
    let of = text(spec, &["type"]).filter(|of| !of.is_empty()).unwrap_or("ClusterIP").to_owned();
    let external = !object::items(spec, &["externalIPs"]).is_empty();
    let sticky = text(spec, &["sessionAffinity"]) == Some("ClientIP");
    let fields = object::fields(spec);
    if sticky {
        let config = fields.entry("sessionAffinityConfig").or_insert_with(|| json!({}));
        if at(config, &["clientIP", "timeoutSeconds"]).is_none_or(Value::is_null) {
            *config = json!({"clientIP": {"timeoutSeconds": 10800}});
        }
    } else {
        fields.remove("sessionAffinityConfig");
    }
    for port in fields.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        let number = port.get("port").cloned().unwrap_or_default();
        let target = port.get("targetPort");
        if target.is_none_or(|target| target.is_null() || *target == json!(0) || *target == json!("")) {
            object::set(port, &["targetPort"], number);
        }
    }
    let published = matches!(of.as_str(), "NodePort" | "LoadBalancer");
    if published || (external && of == "ClusterIP") {
        let unset = fields.get("externalTrafficPolicy").and_then(Value::as_str).is_none_or(str::is_empty);
        if unset {
            fields.insert("externalTrafficPolicy".to_owned(), json!("Cluster"));
        }
    }
    if of != "ExternalName" {
        fill(fields, "internalTrafficPolicy", r#""Cluster""#);
    }
    if of == "LoadBalancer" {
        fill(fields, "allocateLoadBalancerNodePorts", "true");
    }
}

/// A volume without a source is an empty folder.
fn volume(volume: &mut Map<String, Value>) {
    if volume.keys().all(|field| field == "name") {
        volume.insert("emptyDir".to_owned(), json!({}));
    }
    if let Some(image) = volume.get_mut("image") {
        let policy = json!(pull_policy(image.get("reference")));
        object::fields(image).entry("pullPolicy").or_insert(policy);
    }
}

fn policy_types(spec: &mut Map<String, Value>) {
    if spec.get("policyTypes").and_then(Value::as_array).is_some_and(|types| !types.is_empty()) {
        return;
    }
    let egress = spec.get("egress").and_then(Value::as_array).is_some_and(|rules| !rules.is_empty());
    let types = if egress { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
    spec.insert("policyTypes".to_owned(), types);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_without_a_tag_or_digest_is_the_latest() {
        let policy = |image: &str| pull_policy(Some(&json!(image)));
        assert_eq!(["a", "a:latest", "r:5000/a", "a:latest@sha256:0"].map(policy), ["Always"; 4]);
        assert_eq!(["a:1", "r:5000/a:1", "a@sha256:0"].map(policy), ["IfNotPresent"; 3]);
    }
}
