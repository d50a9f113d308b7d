//! When an object is ready, and when a job or pod has run to its end (`docs/wire.md` §9). Functions of JSON.

use std::fmt;

use orangery_expression::{Expression, Type};
use serde_json::{Map, Value};

use crate::Requirement;
use orangery_core::{
    jsonpath::{ParsedPath, PathError, StepBudget},
    listing, memory,
    name::Kind,
};

/// Bytes of memory that a value of JSON takes at least.
const BYTES_OF_A_VALUE: u64 = 32;

/// What an object lacks to be ready; stable between looks at an unchanged object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unready(pub String);

impl fmt::Display for Unready {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn unready(text: impl Into<String>) -> Result<(), Unready> {
    Err(Unready(text.into()))
}

fn group_of(object: &Value) -> &str {
    let api_version = text(object, "/apiVersion");
    api_version.split_once('/').map_or("", |(group, _)| group)
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn number(object: &Value, pointer: &str) -> Option<i64> {
    object.pointer(pointer).and_then(Value::as_i64)
}

/// Whether a kind has a rule of its own; the others are ready as soon as they exist.
pub fn has_rule(group: &str, kind: &Kind) -> bool {
    matches!(
        (group, kind.as_str()),
        ("", "Pod" | "ReplicationController") | ("apps", "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet")
    )
}

/// The usual rule of the object's kind.
///
/// # Errors
/// [`Unready`] says what it lacks.
pub fn usual(object: &Value) -> Result<(), Unready> {
    match (group_of(object), text(object, "/kind")) {
        ("", "Pod") => pod(object),
        ("apps", "Deployment") => deployment(object),
        ("apps", "StatefulSet") => stateful_set(object),
        ("apps", "DaemonSet") => daemon_set(object),
        ("apps", "ReplicaSet") | ("", "ReplicationController") => replica_set(object),
        _ => Ok(()),
    }
}

fn condition<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    let conditions = object.pointer("/status/conditions")?.as_array()?;
    conditions.iter().find(|condition| text(condition, "/type") == name)
}

fn holds(object: &Value, name: &str) -> bool {
    condition(object, name).is_some_and(|condition| text(condition, "/status") == "True")
}

fn observed(object: &Value) -> Result<(), Unready> {
    let generation = number(object, "/metadata/generation").unwrap_or_default();
    if number(object, "/status/observedGeneration").unwrap_or_default() < generation {
        return unready(format!("generation {generation} is not yet observed by its controller"));
    }
    Ok(())
}

fn at_least(object: &Value, field: &str, wanted: i64) -> Result<(), Unready> {
    let count = number(object, &format!("/status/{field}")).unwrap_or_default();
    if count < wanted { unready(format!("{field} is {count} of {wanted}")) } else { Ok(()) }
}

fn pod(object: &Value) -> Result<(), Unready> {
    let ready = condition(object, "Ready");
    if ready.is_some_and(|ready| text(ready, "/status") == "True" || text(ready, "/reason") == "PodCompleted") {
        return Ok(());
    }
    unready("condition Ready is not True")
}

fn deployment(object: &Value) -> Result<(), Unready> {
    observed(object)?;
    // As the original: no replicas means none; the API server puts 1 there.
    let wanted = number(object, "/spec/replicas").unwrap_or_default();
    for field in ["replicas", "updatedReplicas", "availableReplicas"] {
        let count = number(object, &format!("/status/{field}")).unwrap_or_default();
        if count != wanted {
            return unready(format!("{field} is {count} of {wanted}"));
        }
    }
    Ok(())
}

fn stateful_set(object: &Value) -> Result<(), Unready> {
    observed(object)?;
    let wanted = number(object, "/spec/replicas").unwrap_or(1);
    at_least(object, "updatedReplicas", wanted)?;
    at_least(object, "availableReplicas", wanted)
}

fn daemon_set(object: &Value) -> Result<(), Unready> {
    observed(object)?;
    let desired = number(object, "/status/desiredNumberScheduled").unwrap_or_default();
    at_least(object, "currentNumberScheduled", desired.saturating_sub(max_unavailable(object, desired)))
}

/// Of a rolling update; a percentage is rounded down. Zero for other strategies.
fn max_unavailable(object: &Value, desired: i64) -> i64 {
    if text(object, "/spec/updateStrategy/type") != "RollingUpdate" {
        return 0;
    }
    match object.pointer("/spec/updateStrategy/rollingUpdate/maxUnavailable") {
        Some(Value::Number(count)) => count.as_i64().unwrap_or_default(),
        Some(Value::String(text)) => match text.strip_suffix('%') {
            Some(percent) => percent.parse::<i64>().unwrap_or_default().saturating_mul(desired) / 100,
            None => text.parse().unwrap_or_default(),
        },
        _ => 0,
    }
}

fn replica_set(object: &Value) -> Result<(), Unready> {
    observed(object)?;
    if holds(object, "ReplicaFailure") {
        return unready("condition ReplicaFailure is True");
    }
    at_least(object, "readyReplicas", number(object, "/spec/replicas").unwrap_or(1))
}

/// How far a job or pod is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkloadState {
    /// Not at its end.
    Unfinished,
    /// Ended well.
    Succeeded,
    /// Ended badly, and why, as far as the object says.
    Failed(String),
}

/// Whether nothing of a pod runs any more, nor will: all of its containers have ended, and none is started again. The kubelet says
/// that such a pod as a whole has ended a second later (CON-30).
pub fn has_stopped(pod: &Value) -> bool {
    let list = |place: &str| pod.pointer(place).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let has_ended = |status: &Value| status.pointer("/state/terminated").is_some();
    let containers = list("/status/containerStatuses");
    let beside = ["/status/initContainerStatuses", "/status/ephemeralContainerStatuses"].map(list);
    text(pod, "/kind") == "Pod"
        && text(pod, "/spec/restartPolicy") == "Never"
        && !containers.is_empty()
        && containers.len() == list("/spec/containers").len()
        && containers.iter().chain(beside.into_iter().flatten()).all(has_ended)
}

/// How far a job or pod is. Another kind never ends.
pub fn run(object: &Value) -> WorkloadState {
    match (group_of(object), text(object, "/kind")) {
        ("batch", "Job") => match condition(object, "Failed") {
            Some(failed) if text(failed, "/status") == "True" => WorkloadState::Failed(reason(failed)),
            _ if holds(object, "Complete") => WorkloadState::Succeeded,
            _ => WorkloadState::Unfinished,
        },
        ("", "Pod") => match text(object, "/status/phase") {
            "Succeeded" => WorkloadState::Succeeded,
            "Failed" => WorkloadState::Failed(reason(object.get("status").unwrap_or(&Value::Null))),
            _ => WorkloadState::Unfinished,
        },
        _ => WorkloadState::Unfinished,
    }
}

/// Whether a CustomResourceDefinition serves its kind.
pub fn established(crd: &Value) -> bool {
    holds(crd, "Established")
}

fn reason(of: &Value) -> String {
    match (text(of, "/reason"), text(of, "/message")) {
        ("", "") => "it gives no reason".to_owned(),
        (reason, "") => reason.to_owned(),
        ("", message) => message.to_owned(),
        (reason, message) => format!("{reason}: {message}"),
    }
}

/// What a requirement does with what its path finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequirementOperator {
    Exists,
    Absent,
    In,
    NotIn,
}

/// Why a requirement can never be judged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequirementError {
    /// The path.
    #[error("{0}")]
    Path(#[from] PathError),
    /// The operator.
    #[error("{0:?} is no operator of a readiness requirement; use exists, !, =, ==, !=, in or notin")]
    Operator(String),
    /// The number of values.
    #[error("the operator {operator} of a readiness requirement takes {takes}, but {count} are given")]
    Values {
        /// The operator.
        operator: String,
        /// How many it takes.
        takes: &'static str,
        /// How many there are.
        count: usize,
    },
}

/// A requirement that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Demand<'a> {
    path: ParsedPath,
    operator: RequirementOperator,
    requirement: &'a Requirement,
}

impl<'a> Demand<'a> {
    /// Reads a requirement.
    ///
    /// # Errors
    /// [`RequirementError`]
    pub fn read(requirement: &'a Requirement) -> Result<Self, RequirementError> {
        let count = requirement.values.len();
        let (operator, takes, fits) = match requirement.operator.as_str() {
            "exists" => (RequirementOperator::Exists, "no values", count == 0),
            "!" => (RequirementOperator::Absent, "no values", count == 0),
            "=" | "==" => (RequirementOperator::In, "exactly one value", count == 1),
            "!=" => (RequirementOperator::NotIn, "exactly one value", count == 1),
            "in" => (RequirementOperator::In, "at least one value", count > 0),
            "notin" => (RequirementOperator::NotIn, "at least one value", count > 0),
            other => return Err(RequirementError::Operator(other.to_owned())),
        };
        if !fits {
            return Err(RequirementError::Values { operator: requirement.operator.clone(), takes, count });
        }
        Ok(Self { path: ParsedPath::parse(&requirement.path)?, operator, requirement })
    }

    /// Whether the object satisfies it: all that the path finds must; a missing field satisfies `!` alone. Steps are taken of the
    /// budget (C-297).
    ///
    /// # Errors
    /// [`Unready`] names path and operator, never a value of the object.
    pub fn classify(&self, object: &Value, budget: &StepBudget) -> Result<(), Unready> {
        let found = self.path.all(object, budget).map_err(|error| Unready(error.to_string()))?;
        // Each that is found is compared with each of the values.
        let compared = (found.len() as u64).saturating_mul(self.requirement.values.len() as u64);
        budget.take(compared).map_err(|error| Unready(format!("{}: {error}", self.requirement.path)))?;
        let listed = |value: &Value| self.requirement.values.iter().any(|wanted| same(wanted, value));
        let satisfied = match self.operator {
            RequirementOperator::Exists => !found.is_empty(),
            RequirementOperator::Absent => found.is_empty(),
            RequirementOperator::In => !found.is_empty() && found.into_iter().all(listed),
            RequirementOperator::NotIn => !found.is_empty() && !found.into_iter().any(listed),
        };
        if satisfied {
            return Ok(());
        }
        let Requirement { path, operator, values } = self.requirement;
        let demand = format!("{path} {operator} {}", listing::joined(values));
        unready(format!("{} does not hold", demand.trim_end()))
    }
}

/// A readiness rule in CEL: a boolean over `object`.
#[derive(Debug)]
pub struct ReadyExpression(Expression);

impl ReadyExpression {
    /// Reads an expression. The error is one sentence.
    pub fn read(source: &str) -> Result<Self, String> {
        let unusable =
            |why: String| format!("the expression cannot be used: {why}; it is CEL over `object`, and true or false");
        let expression = Expression::compile(source).map_err(unusable)?;
        expression.check(&[("object", Type::Any)]).map_err(unusable)?;
        Ok(Self(expression))
    }

    /// Whether the object is as it says (C-278). What is handed to it counts as steps of the budget (C-297).
    ///
    /// # Errors
    /// [`Unready`] names no value of the object.
    pub fn classify(&self, object: &Value, budget: &StepBudget) -> Result<(), Unready> {
        let handed = budget.measured(|| memory::of(object), |bytes| bytes / BYTES_OF_A_VALUE);
        handed.map_err(|error| Unready(format!("its expression: {error}")))?;
        let document = Map::from_iter([("object".to_owned(), object.clone())]);
        match self.0.holds_of(&document) {
            Ok(true) => Ok(()),
            Ok(false) => unready("its expression does not hold"),
            Err(why) => unready(format!("its expression cannot be computed: {why}")),
        }
    }
}

/// Equality of generic JSON: numbers by value, whatever their notation.
pub fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left == right || left.as_f64() == right.as_f64(),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left.iter().all(|(key, value)| right.get(key).is_some_and(|other| same(value, other)))
        }
        (left, right) => left == right,
    }
}

/// A text that two values have in common where they are the [`same`].
pub fn canonical(value: &Value) -> String {
    fn write(value: &Value, text: &mut String) {
        match value {
            Value::Number(number) => *text += &(number.as_f64().unwrap_or_default() + 0.0).to_string(),
            Value::Array(items) => {
                text.push('[');
                for item in items {
                    write(item, text);
                    text.push(',');
                }
                text.push(']');
            }
            Value::Object(fields) => {
                let mut fields: Vec<_> = fields.iter().collect();
                fields.sort_unstable_by_key(|(name, _)| *name);
                text.push('{');
                for (name, value) in fields {
                    *text += &Value::from(name.as_str()).to_string();
                    text.push(':');
                    write(value, text);
                    text.push(',');
                }
                text.push('}');
            }
            Value::Null | Value::Bool(_) | Value::String(_) => *text += &value.to_string(),
        }
    }
    let mut text = String::new();
    write(value, &mut text);
    text
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    mod boundaries;

    #[track_caller]
    fn check(object: Value, expected: &str) {
        let found = usual(&object).map_or_else(|unready| unready.0, |()| "ready".to_owned());
        assert_eq!(found, expected);
    }

    fn workload(kind: &str, spec: Value, status: Value) -> Value {
        json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"generation": 2}, "spec": spec, "status": status})
    }

    #[test]
    fn a_pod_is_ready_by_its_condition_or_when_it_has_completed() {
        let pod = |condition: Value| json!({"apiVersion": "v1", "kind": "Pod", "status": {"conditions": [condition]}});
        check(pod(json!({"type": "Ready", "status": "True"})), "ready");
        check(pod(json!({"type": "Ready", "status": "False", "reason": "PodCompleted"})), "ready");
        check(pod(json!({"type": "Ready", "status": "False"})), "condition Ready is not True");
        check(pod(json!({"type": "Initialized", "status": "True"})), "condition Ready is not True");
    }

    #[test]
    fn a_deployment_is_ready_when_all_replicas_are_updated_and_available() {
        let deployment = |spec, status| workload("Deployment", spec, status);
        let full = json!({"observedGeneration": 2, "replicas": 3, "updatedReplicas": 3, "availableReplicas": 3});
        check(deployment(json!({"replicas": 3}), full.clone()), "ready");
        check(deployment(json!({"replicas": 2}), full), "replicas is 3 of 2");
        check(
            deployment(json!({"replicas": 3}), json!({"observedGeneration": 1})),
            "generation 2 is not yet observed by its controller",
        );
        check(
            deployment(json!({"replicas": 1}), json!({"observedGeneration": 2, "replicas": 1, "updatedReplicas": 1})),
            "availableReplicas is 0 of 1",
        );
        check(deployment(json!({}), json!({"observedGeneration": 2})), "ready");
    }

    #[test]
    fn a_stateful_set_needs_its_replicas_and_without_a_number_one() {
        let set = |spec, status| workload("StatefulSet", spec, status);
        check(set(json!({}), json!({"observedGeneration": 2, "updatedReplicas": 1})), "availableReplicas is 0 of 1");
        check(
            set(json!({"replicas": 2}), json!({"observedGeneration": 2, "updatedReplicas": 2, "availableReplicas": 3})),
            "ready",
        );
    }

    #[test]
    fn a_daemon_set_may_lack_what_its_update_may_take_away() {
        let set = |max: Value| {
            workload(
                "DaemonSet",
                json!({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": max}}}),
                json!({"observedGeneration": 2, "desiredNumberScheduled": 10, "currentNumberScheduled": 8}),
            )
        };
        check(set(json!(2)), "ready");
        check(set(json!("25%")), "ready");
        check(set(json!("19%")), "currentNumberScheduled is 8 of 9");
        check(
            workload("DaemonSet", json!({}), json!({"observedGeneration": 2, "desiredNumberScheduled": 1})),
            "currentNumberScheduled is 0 of 1",
        );
    }

    #[test]
    fn a_replica_set_must_not_report_a_failure() {
        let set = |status| workload("ReplicaSet", json!({"replicas": 1}), status);
        check(set(json!({"observedGeneration": 2, "readyReplicas": 1})), "ready");
        check(
            set(json!({"observedGeneration": 2, "readyReplicas": 1,
                "conditions": [{"type": "ReplicaFailure", "status": "True"}]})),
            "condition ReplicaFailure is True",
        );
        check(
            json!({"apiVersion": "v1", "kind": "ReplicationController", "spec": {}, "status": {}}),
            "readyReplicas is 0 of 1",
        );
    }

    #[test]
    fn other_kinds_are_ready_as_soon_as_they_exist() {
        check(json!({"apiVersion": "v1", "kind": "ConfigMap"}), "ready");
        check(json!({"apiVersion": "batch/v1", "kind": "Job"}), "ready");
        check(json!({"apiVersion": "example.org/v1", "kind": "Deployment", "spec": {"replicas": 1}}), "ready");
        assert!(has_rule("apps", &Kind::from_static("Deployment")) && has_rule("", &Kind::from_static("Pod")));
        assert!(
            !has_rule("example.org", &Kind::from_static("Deployment"))
                && !has_rule("batch", &Kind::from_static("Job"))
                && !has_rule("", &Kind::from_static("Service"))
        );
    }

    #[test]
    fn jobs_and_pods_end() {
        let job = |conditions: Value| {
            run(&json!({"apiVersion": "batch/v1", "kind": "Job", "status": {"conditions": conditions}}))
        };
        assert_eq!(job(json!([])), WorkloadState::Unfinished);
        assert_eq!(job(json!([{"type": "Complete", "status": "True"}])), WorkloadState::Succeeded);
        assert_eq!(
            job(json!([{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "no"}])),
            WorkloadState::Failed("BackoffLimitExceeded: no".into())
        );
        let pod = |status: Value| run(&json!({"apiVersion": "v1", "kind": "Pod", "status": status}));
        assert_eq!(pod(json!({"phase": "Running"})), WorkloadState::Unfinished);
        assert_eq!(pod(json!({"phase": "Succeeded"})), WorkloadState::Succeeded);
        assert_eq!(pod(json!({"phase": "Failed"})), WorkloadState::Failed("it gives no reason".into()));
        assert_eq!(run(&json!({"apiVersion": "v1", "kind": "Node"})), WorkloadState::Unfinished);
        assert!(established(&json!({"status": {"conditions": [{"type": "Established", "status": "True"}]}})));
        assert!(!established(&json!({})));
    }

    #[track_caller]
    fn classify(path: &str, operator: &str, values: &[Value], expected: bool) {
        let object = json!({"a": 1, "o": {"x": [1, 2]}, "list": [{"v": "p"}, {"v": "q"}]});
        let requirement = Requirement { path: path.into(), operator: operator.into(), values: values.to_vec() };
        let classified = Demand::read(&requirement).unwrap().classify(&object, &StepBudget::default());
        assert_eq!(classified.is_ok(), expected, "{path} {operator} {values:?}: {classified:?}");
    }

    #[test]
    fn a_missing_field_satisfies_nothing_but_its_absence() {
        classify(".absent", "!", &[], true);
        classify(".absent", "exists", &[], false);
        classify(".absent", "==", &[json!(1)], false);
        classify(".absent", "!=", &[json!(1)], false);
        classify(".absent", "notin", &[json!(1)], false);
        classify(".a", "!", &[], false);
        classify(".a", "exists", &[], true);
    }

    #[test]
    fn all_matches_must_satisfy() {
        classify(".list[*].v", "in", &[json!("p"), json!("q")], true);
        classify(".list[*].v", "in", &[json!("p")], false);
        classify(".list[*].v", "notin", &[json!("p")], false);
        classify(".list[*].v", "notin", &[json!("r")], true);
    }

    #[test]
    fn values_are_compared_as_generic_json() {
        classify(".a", "=", &[json!(1.0)], true);
        classify(".o", "==", &[json!({"x": [1.0, 2]})], true);
        classify(".o", "!=", &[json!({"x": [2, 1]})], true);
        classify(".a", "==", &[json!("1")], false);
    }

    #[test]
    fn c_278_an_expression_over_the_object_holds_or_says_why_not_without_a_value() {
        let expression = |source: &str| ReadyExpression::read(source).unwrap();
        let ended = expression("has(object.status) && object.status.phase in ['Succeeded', 'Failed']");
        assert_eq!(ended.classify(&json!({"status": {"phase": "Failed"}}), &StepBudget::default()), Ok(()));
        let not_yet = Unready("its expression does not hold".into());
        assert_eq!(
            ended.classify(&json!({"status": {"phase": "Running"}}), &StepBudget::default()),
            Err(not_yet.clone())
        );
        assert_eq!(ended.classify(&json!({}), &StepBudget::default()), Err(not_yet));
        let missing = Unready("its expression cannot be computed: no such key: phase".into());
        assert_eq!(ended.classify(&json!({"status": {"secret": "s3cret"}}), &StepBudget::default()), Err(missing));
        let text =
            expression("object.status.phase").classify(&json!({"status": {"phase": "s3cret"}}), &StepBudget::default());
        assert_eq!(text, Err(Unready("its expression cannot be computed: it is of type string and not bool".into())));
        let end = "; it is CEL over `object`, and true or false";
        for source in ["1 +", "other.a", "object.a + 1 ==", "'text'"] {
            let error = ReadyExpression::read(source).unwrap_err();
            assert!(error.starts_with("the expression cannot be used: ") && error.ends_with(end), "{error}");
        }
    }

    #[test]
    fn what_does_not_hold_is_named_without_the_live_value() {
        let requirement = Requirement { path: ".a".into(), operator: "==".into(), values: vec![json!("x")] };
        let classified = Demand::read(&requirement).unwrap().classify(&json!({"a": "secret"}), &StepBudget::default());
        assert_eq!(classified, Err(Unready(".a == \"x\" does not hold".into())));
    }

    #[test]
    fn requirements_that_can_never_be_judged_are_refused() {
        let read = |path: &str, operator: &str, count: usize| {
            let requirement =
                Requirement { path: path.into(), operator: operator.into(), values: vec![json!(1); count] };
            Demand::read(&requirement).map(|_| ()).unwrap_err().to_string()
        };
        assert_eq!(
            read(".a", "gt", 1),
            "\"gt\" is no operator of a readiness requirement; use exists, !, =, ==, !=, in or notin"
        );
        assert_eq!(
            read(".a", "==", 2),
            "the operator == of a readiness requirement takes exactly one value, but 2 are given"
        );
        assert!(read(".a[", "exists", 0).contains("is no JSONPath"));
    }

    #[test]
    fn con_30_a_pod_has_stopped_when_all_of_its_containers_have_ended_for_good() {
        let of = |policy: &str, statuses: Value, beside: Value| {
            has_stopped(&json!({
                "kind": "Pod", "spec": {"restartPolicy": policy, "containers": [{"name": "a"}, {"name": "b"}]},
                "status": {"phase": "Running", "containerStatuses": statuses, "initContainerStatuses": beside},
            }))
        };
        let (ended, runs) = (json!({"state": {"terminated": {"exitCode": 0}}}), json!({"state": {"running": {}}}));
        assert!(of("Never", json!([ended, ended]), json!([ended])));
        assert!(!of("OnFailure", json!([ended, ended]), json!([ended])));
        assert!(!of("Never", json!([ended, runs]), json!([ended])));
        assert!(!of("Never", json!([ended]), json!([ended])));
        assert!(!of("Never", json!([ended, ended]), json!([runs])));
        assert!(!has_stopped(&json!({"kind": "Pod", "spec": {"restartPolicy": "Never", "containers": []}})));
    }
}
