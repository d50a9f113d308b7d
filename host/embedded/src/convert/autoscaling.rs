//! HorizontalPodAutoscalers in the words of `autoscaling/v1`. These have one measure, the load of processors; what else there is
//! stands in annotations, as a kube-apiserver writes it. Kept is the form of `autoscaling/v2`.

use serde_json::{Map, Value, json};

use crate::object::{self, at, items, text};

pub(super) const KIND: &str = "HorizontalPodAutoscaler";
pub(super) const FIRST: &str = "autoscaling/v1";
pub(super) const SECOND: &str = "autoscaling/v2";

/// What says how measures other than the load of processors are held.
const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
/// How fast it scales, in the words of a kube-apiserver's own memory: with capitals.
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
/// What the controller says of it.
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";

/// The load of processors that is aimed at where nobody names a measure, in percent.
const USUAL_LOAD: u64 = 80;

const LOAD: [&str; 2] = ["spec", "targetCPUUtilizationPercentage"];

/// Makes the form of the second version of that of the first.
pub(super) fn to_second(scaler: &mut Value) {
    let annotation = |scaler: &mut Value, name: &str| -> Option<Value> {
        let text = object::take(scaler, &["metadata", "annotations", name])?;
        serde_json::from_str(text.as_str()?).ok()
    };
    let (others, behavior) = (annotation(scaler, METRICS), annotation(scaler, BEHAVIOR));
    if let Some(conditions) = annotation(scaler, CONDITIONS) {
        object::set(scaler, &["status", "conditions"], conditions);
    }
    if at(scaler, &["metadata", "annotations"]).and_then(Value::as_object).is_some_and(Map::is_empty) {
        object::take(scaler, &["metadata", "annotations"]);
    }
    let mut metrics: Vec<Value> = others.iter().flat_map(|all| items(all, &[])).map(metric_of_second).collect();
    let load = object::take(scaler, &LOAD).filter(|load| !load.is_null());
    if let Some(load) = load.or_else(|| metrics.is_empty().then(|| json!(USUAL_LOAD))) {
        metrics.push(json!({
            "type": "Resource",
            "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": load}},
        }));
    }
    object::set(scaler, &["spec", "metrics"], json!(metrics));
    if let Some(behavior) = behavior {
        object::set(scaler, &["spec", "behavior"], recased(&behavior, char::to_ascii_lowercase));
    }
    if scaler.get("status").is_some() {
        object::take(scaler, &["status", "currentCPUUtilizationPercentage"]);
        object::set(scaler, &["status", "currentMetrics"], Value::Null);
    }
}

/// Makes the form of the first version of that of the second.
pub(super) fn to_first(scaler: &mut Value) {
    let metrics = object::take(scaler, &["spec", "metrics"]).unwrap_or_default();
    let (loads, others): (Vec<&Value>, Vec<&Value>) = items(&metrics, &[]).iter().partition(|metric| {
        text(metric, &["resource", "name"]) == Some("cpu")
            && at(metric, &["resource", "target", "averageUtilization"]).is_some()
    });
    if let Some(load) = loads.first().and_then(|load| at(load, &["resource", "target", "averageUtilization"])) {
        object::set(scaler, &LOAD, load.clone());
    }
    if !others.is_empty() {
        let others: Vec<Value> = others.into_iter().map(metric_of_first).collect();
        annotate(scaler, METRICS, &json!(others));
    }
    if let Some(behavior) = object::take(scaler, &["spec", "behavior"]) {
        annotate(scaler, BEHAVIOR, &recased(&behavior, char::to_ascii_uppercase));
    }
    if let Some(conditions) = object::take(scaler, &["status", "conditions"]).filter(|all| !items(all, &[]).is_empty())
    {
        annotate(scaler, CONDITIONS, &conditions);
    }
    object::take(scaler, &["status", "currentMetrics"]);
    if scaler.get("status").is_some() && at(scaler, &["status", "currentReplicas"]).is_none() {
        object::set(scaler, &["status", "currentReplicas"], json!(0));
    }
}

fn annotate(scaler: &mut Value, name: &str, value: &Value) {
    object::set(scaler, &["metadata", "annotations", name], json!(value.to_string()));
}

/// The name of a field in the second version, and in the first one.
type Renamed = (&'static str, &'static str);

/// Where a kind of measure has its name and its selector in the first version, and what is measured.
fn words(metric: &Value) -> Option<(&'static str, &'static str, Option<Renamed>)> {
    match text(metric, &["type"])? {
        "Pods" => Some(("pods", "selector", None)),
        "Object" => Some(("object", "selector", Some(("target", "describedObject")))),
        "External" => Some(("external", "metricSelector", None)),
        _ => None,
    }
}

/// The field of a measure of a resource.
fn of_resource(metric: &Value) -> &'static str {
    if text(metric, &["type"]) == Some("ContainerResource") { "containerResource" } else { "resource" }
}

/// What is aimed at: in the first version, and in the second.
const AIMS: [(&str, &str, &str); 4] = [
    ("targetAverageUtilization", "averageUtilization", "Utilization"),
    ("targetAverageValue", "averageValue", "AverageValue"),
    ("averageValue", "averageValue", "AverageValue"),
    ("targetValue", "value", "Value"),
];

fn metric_of_second(metric: &Value) -> Value {
    let (field, selector, described) = words(metric).unwrap_or((of_resource(metric), "", None));
    let from = metric.get(field).and_then(Value::as_object).cloned().unwrap_or_default();
    let mut source = Map::new();
    for name in ["name", "container"] {
        source.extend(from.get(name).map(|value| (name.to_owned(), value.clone())));
    }
    if let Some(name) = from.get("metricName") {
        let mut named = json!({"name": name});
        if let Some(selector) = from.get(selector) {
            object::set(&mut named, &["selector"], selector.clone());
        }
        source.insert("metric".to_owned(), named);
    }
    if let Some((first, second)) = described {
        source.extend(from.get(first).map(|value| (second.to_owned(), value.clone())));
    }
    let aim = AIMS.iter().find_map(|(first, second, of)| Some((second, of, from.get(*first)?)));
    source.extend(aim.map(|(second, of, value)| ("target".to_owned(), json!({"type": of, *second: value}))));
    json!({"type": metric.get("type"), field: source})
}

fn metric_of_first(metric: &Value) -> Value {
    let (field, selector, described) = words(metric).unwrap_or((of_resource(metric), "", None));
    let from = |path: &[&str]| metric.get(field).and_then(|source| at(source, path)).cloned();
    let is_resource = selector.is_empty();
    let mut source = Map::new();
    let mut put = |name: &str, value: Option<Value>| source.extend(value.map(|value| (name.to_owned(), value)));
    put("name", from(&["name"]));
    put("container", from(&["container"]));
    put("metricName", from(&["metric", "name"]));
    put(selector, from(&["metric", "selector"]));
    if let Some((first, second)) = described {
        put(first, from(&[second]));
    }
    let average = if is_resource || described.is_none() { "targetAverageValue" } else { "averageValue" };
    put("targetAverageUtilization", from(&["target", "averageUtilization"]));
    put(average, from(&["target", "averageValue"]));
    put("targetValue", from(&["target", "value"]));
    json!({"type": metric.get("type"), field: source})
}

/// A value with another first letter of all names in it, and without what is null.
fn recased(value: &Value, letter: fn(&char) -> char) -> Value {
    match value {
        Value::Object(members) => {
            let named = members.iter().filter(|(_, value)| !value.is_null()).map(|(name, value)| {
                let name = name.chars().take(1).map(|first| letter(&first)).chain(name.chars().skip(1)).collect();
                (name, recased(value, letter))
            });
            Value::Object(named.collect())
        }
        Value::Array(values) => values.iter().map(|value| recased(value, letter)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scaler(metadata: Value, spec: Value) -> Value {
        json!({"kind": KIND, "metadata": metadata, "spec": spec})
    }

    #[track_caller]
    fn check(first: &Value, second: &Value) {
        let (mut made_first, mut made_second) = (second.clone(), first.clone());
        to_first(&mut made_first);
        to_second(&mut made_second);
        assert_eq!((&made_first, &made_second), (first, second));
    }

    fn load(percent: u64) -> Value {
        json!({"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": percent}}})
    }

    #[test]
    fn the_load_of_processors_has_a_field_and_a_usual_value() {
        let first = |spec: Value| scaler(json!({"name": "x"}), spec);
        check(&first(json!({"targetCPUUtilizationPercentage": 50})), &first(json!({"metrics": [load(50)]})));
        let mut none = first(json!({}));
        to_second(&mut none);
        assert_eq!(none, first(json!({"metrics": [load(80)]})));
    }

    /// As a kube-apiserver answers it, but for the order of the names in the annotations and their nulls.
    #[test]
    fn what_the_first_version_has_no_words_for_stands_in_annotations() {
        let of = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"});
        let selector = json!({"matchLabels": {"a": "b"}});
        let annotation = json!([
            {"type": "Resource", "resource": {"name": "memory", "targetAverageValue": "1Gi"}},
            {"type": "ContainerResource", "containerResource": {"name": "cpu", "container": "c", "targetAverageUtilization": 60}},
            {"type": "Pods", "pods": {"metricName": "p", "targetAverageValue": "2", "selector": selector}},
            {"type": "Object", "object": {"target": of, "metricName": "o", "targetValue": "3"}},
            {"type": "External", "external": {"metricName": "e", "metricSelector": selector, "targetAverageValue": "4"}},
        ]);
        let behavior = json!({"ScaleDown": {"Policies": [{"Type": "Percent", "Value": 100}], "SelectPolicy": "Max"}});
        let first = scaler(
            json!({"annotations": {"kept": "1", METRICS: annotation.to_string(), BEHAVIOR: behavior.to_string()}}),
            json!({"targetCPUUtilizationPercentage": 60}),
        );
        let average = |value: &str| json!({"type": "AverageValue", "averageValue": value});
        let second = scaler(
            json!({"annotations": {"kept": "1"}}),
            json!({
                "metrics": [
                    {"type": "Resource", "resource": {"name": "memory", "target": average("1Gi")}},
                    {"type": "ContainerResource", "containerResource": {
                        "name": "cpu", "container": "c", "target": {"type": "Utilization", "averageUtilization": 60}}},
                    {"type": "Pods", "pods": {"metric": {"name": "p", "selector": selector}, "target": average("2")}},
                    {"type": "Object", "object": {
                        "describedObject": of, "metric": {"name": "o"}, "target": {"type": "Value", "value": "3"}}},
                    {"type": "External", "external": {"metric": {"name": "e", "selector": selector}, "target": average("4")}},
                    load(60),
                ],
                "behavior": {"scaleDown": {"policies": [{"type": "Percent", "value": 100}], "selectPolicy": "Max"}},
            }),
        );
        check(&first, &second);
    }

    #[test]
    fn annotations_that_somebody_wrote_otherwise_are_left_out() {
        let mut odd = scaler(json!({"annotations": {METRICS: "no JSON", BEHAVIOR: "1"}}), json!({}));
        to_second(&mut odd);
        assert_eq!(odd, scaler(json!({}), json!({"metrics": [load(80)], "behavior": 1})));
    }
}
