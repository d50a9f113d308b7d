//! What other tools make of our objects: the generic rules of kstatus (`sigs.k8s.io/cli-utils/pkg/kstatus/status`), what
//! `kubectl wait --for=condition=Ready` makes of them, and Flux's rules for conditions ([`flux`]), each ported from its
//! original. [`untruths`] holds all three against what phase and job of an object say (C-04).
//!
//! Pure: an object goes in, words come out.

use serde_json::Value;

use crate::external_deployer;

pub mod flux;

/// What kstatus makes of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It is as it should be.
    Current,
    /// Somebody works on it, or has not seen its spec yet.
    InProgress,
    /// It failed, and nobody tries again.
    Failed,
    /// It is being deleted.
    Terminating,
    /// It is not there.
    NotFound,
}

/// The status of an object, as kstatus computes it (`Compute`, without the rules for kinds of Kubernetes itself).
pub fn compute(object: Option<&Value>) -> Status {
    let Some(object) = object else { return Status::NotFound };
    if is_deleting(object) {
        return Status::Terminating;
    }
    let (generation, observed) = (generation(object), object.pointer("/status/observedGeneration"));
    if generation.is_some() && observed.is_some_and(|observed| observed.as_i64() != generation) {
        return Status::InProgress;
    }
    for condition in conditions(object) {
        match (text(condition, "type"), text(condition, "status")) {
            ("Reconciling", "True") => return Status::InProgress,
            ("Stalled", "True") => return Status::Failed,
            _ => {}
        }
    }
    match condition(object, "Ready").map(|ready| text(ready, "status")) {
        Some("False" | "Unknown") => Status::InProgress,
        Some(_) | None => Status::Current,
    }
}

/// Whether `kubectl wait --for=condition=Ready` passes: a condition that speaks of an older generation does not count.
pub fn wait_passes(object: &Value) -> bool {
    condition(object, "Ready").is_some_and(|ready| {
        let observed = ready.get("observedGeneration").and_then(Value::as_i64);
        let stale = observed.zip(generation(object)).is_some_and(|(observed, generation)| observed < generation);
        text(ready, "status") == "True" && !stale
    })
}

/// What phase, job and generation of an object say, in the words of kstatus (the table of `docs/rules.md`, Conditions).
/// Two where a failure may be followed by another try.
fn message_of(object: &Value) -> Vec<Status> {
    if is_deleting(object) {
        return vec![Status::Terminating];
    }
    let observed = object.pointer("/status/observedGeneration").and_then(Value::as_i64);
    if !has_job(object) || is_running(object) || observed != generation(object) {
        return vec![Status::InProgress];
    }
    match status(object, "phase") {
        "Succeeded" => vec![Status::Current],
        _ if object.pointer("/spec/automaticReconcile/failedReconcile").is_some() => {
            vec![Status::Failed, Status::InProgress]
        }
        _ => vec![Status::Failed],
    }
}

/// Where an object of ours tells others something else than its phase and its job do.
///
/// Items of external deployers are passed over: such a deployer writes status and conditions as it likes.
pub fn untruths(object: &Value) -> Vec<String> {
    if object.pointer("/spec/type").and_then(Value::as_str) == Some(external_deployer::TYPE) {
        return Vec::new();
    }
    let (message_of, computed) = (message_of(object), compute(Some(object)));
    let mut untruths = flux::broken(object);
    if !message_of.contains(&computed) {
        untruths.push(format!("kstatus computes {computed:?}, phase and job say {message_of:?}"));
    }
    if wait_passes(object) && !(message_of.contains(&Status::Current) || is_deleting(object)) {
        untruths.push(format!("kubectl wait --for=condition=Ready passes, phase and job say {message_of:?}"));
    }
    untruths
}

fn is_deleting(object: &Value) -> bool {
    object.pointer("/metadata/deletionTimestamp").is_some_and(Value::is_string)
}

fn generation(object: &Value) -> Option<i64> {
    object.pointer("/metadata/generation").and_then(Value::as_i64)
}

fn has_job(object: &Value) -> bool {
    !status(object, "jobID").is_empty()
}

fn is_running(object: &Value) -> bool {
    status(object, "jobID") != status(object, "jobIDFinished")
}

fn status<'a>(object: &'a Value, field: &str) -> &'a str {
    object.get("status").map(|status| text(status, field)).unwrap_or_default()
}

fn conditions(object: &Value) -> &[Value] {
    object.pointer("/status/conditions").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    conditions(object).iter().find(|condition| text(condition, "type") == kind)
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// `Ready=True` and so on, of generation 1 where no other is said: `Ready=True/2`.
    fn listed(conditions: &str) -> Vec<Value> {
        let one = |word: &str| {
            let (kind, rest) = word.split_once('=').unwrap();
            let (status, observed) = rest.split_once('/').unwrap_or((rest, "1"));
            let observed: i64 = observed.parse().unwrap();
            json!({"type": kind, "status": status, "message": "", "observedGeneration": observed})
        };
        conditions.split_whitespace().map(one).collect()
    }

    pub(super) fn object(generation: i64, mut status: Value, conditions: &str) -> Value {
        status["conditions"] = json!(listed(conditions));
        json!({"metadata": {"generation": generation}, "status": status})
    }

    fn observed(generation: i64, observed: i64, conditions: &str) -> Status {
        compute(Some(&object(generation, json!({"observedGeneration": observed}), conditions)))
    }

    #[test]
    fn c_04_kstatus_decides_as_its_original_does() {
        assert_eq!(compute(None), Status::NotFound);
        assert_eq!(compute(Some(&json!({"metadata": {"generation": 1}}))), Status::Current);
        let deleting = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "generation": 2}});
        assert_eq!(compute(Some(&deleting)), Status::Terminating);
        assert_eq!(observed(2, 1, "Ready=True"), Status::InProgress);
        assert_eq!(observed(1, -1, ""), Status::InProgress);
        assert_eq!(observed(1, 1, "Ready=True Reconciling=True"), Status::InProgress);
        assert_eq!(observed(1, 1, "Ready=False Stalled=True"), Status::Failed);
        assert_eq!(observed(1, 1, "Ready=False"), Status::InProgress);
        assert_eq!(observed(1, 1, "Ready=Unknown"), Status::InProgress);
        assert_eq!(observed(1, 1, "Ready=True"), Status::Current);
        assert_eq!(observed(1, 1, "Other=False"), Status::Current);
    }

    #[test]
    fn c_05_a_wait_for_ready_passes_on_a_true_condition_of_this_generation_only() {
        let passes = |generation, conditions: &str| wait_passes(&object(generation, json!({}), conditions));
        assert!(passes(1, "Ready=True"));
        assert!(!passes(2, "Ready=True"));
        assert!(!passes(1, "Ready=Unknown"));
        assert!(!passes(1, "Other=True"));
    }

    #[test]
    fn c_04_an_object_that_says_what_its_phase_says_is_truthful() {
        let job = |finished: &str, phase: &str| json!({"jobID": "a", "jobIDFinished": finished, "phase": phase, "observedGeneration": 1});
        for object in [
            json!({"metadata": {"generation": 1}, "status": {"observedGeneration": -1}}),
            object(1, job("", "Init"), "Ready=Unknown Reconciling=True"),
            object(1, job("a", "Succeeded"), "Ready=True"),
            object(2, job("a", "Succeeded"), "Ready=True"),
            object(1, job("a", "Failed"), "Ready=False Stalled=True"),
        ] {
            assert_eq!(untruths(&object), Vec::<String>::new(), "{object}");
        }
    }

    #[test]
    fn c_04_what_an_old_job_said_is_no_word_on_the_running_one() {
        let status = json!({"jobID": "b", "jobIDFinished": "a", "phase": "Succeeded", "observedGeneration": 1});
        assert_eq!(
            untruths(&object(1, status, "Ready=True")),
            [
                "kstatus computes Current, phase and job say [InProgress]",
                "kubectl wait --for=condition=Ready passes, phase and job say [InProgress]",
            ]
        );
        let fresh = json!({"metadata": {"generation": 1}});
        assert_eq!(untruths(&fresh), ["kstatus computes Current, phase and job say [InProgress]"]);
    }
}
