//! What is known of an Installation's requests for jobs, as its annotations, its spec and its status say it (INS-12 … INS-18,
//! INS-54, C-05, C-18). [`orangery_core::plan::request`] decides.

use orangery_core::plan::request::{RequestFacts, Requested};

use crate::{
    annotation,
    installation::{Installation, ReconcilePolicy},
    job::Job,
    marks::{Marks, Operation},
};

/// Whether a job is asked for.
pub fn is_requested(installation: &Installation) -> bool {
    request_facts(installation).asks_for_job()
}

/// Whether no job of an Installation is to begin (C-306). A deletion is what somebody asks for now, and is not held up.
pub fn is_suspended(installation: &Installation) -> bool {
    installation.annotation(annotation::SUSPEND) == Some("true") && !installation.is_deleting()
}

/// What is known of the requests for an Installation.
pub fn request_facts(installation: &Installation) -> RequestFacts {
    let status = installation.status.as_ref();
    let times = status.and_then(|status| status.transition_times.as_ref());
    let reconcile = Operation::Reconcile.to_string();
    RequestFacts {
        requested: match installation.operation() {
            Some(Operation::Reconcile) => Some(Requested::Job),
            Some(Operation::Interrupt) => Some(Requested::Interrupt),
            Some(Operation::TestReconcile | Operation::Other(_)) | None => None,
        },
        pending: status.is_some_and(|status| status.pending_operation == reconcile),
        follows_spec: installation.spec.reconcile_policy != ReconcilePolicy::Manual
            || installation.annotation(annotation::RECONCILE_IF_CHANGED).is_some(),
        generations: (
            installation.metadata.generation.unwrap_or(0),
            status.map_or(0, |status| status.observed_generation),
        ),
        is_same_token: installation.annotation(annotation::TRIGGER).unwrap_or("")
            == status.map_or("", |status| &status.last_handled_trigger),
        running: !installation.job_finished(),
        begun: times.is_some_and(|times| times.init_time.is_some()),
        is_interrupted: status.is_some_and(|status| status.interrupted_job == status.job_id),
        has_dependents: status.is_some_and(|status| !status.dependents_to_trigger.is_empty()),
        is_suspended: is_suspended(installation),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn installation(annotations: serde_json::Value, status: serde_json::Value) -> Installation {
        let metadata = json!({"name": "x", "generation": 3, "annotations": annotations});
        serde_json::from_value(json!({"metadata": metadata, "spec": {"blueprint": {}}, "status": status})).unwrap()
    }

    const RECONCILE: &str = "reconcile";

    #[test]
    fn ins_12_the_annotation_asks_for_a_job() {
        assert!(is_requested(&installation(json!({(annotation::OPERATION): RECONCILE}), json!({}))));
        assert!(!is_requested(&installation(json!({(annotation::OPERATION): "interrupt"}), json!({}))));
        assert!(!is_requested(&installation(json!({}), json!({}))));
    }

    #[test]
    fn c_306_the_annotation_suspends_unless_the_object_is_being_deleted() {
        let asked = |suspend: &str| {
            installation(json!({(annotation::OPERATION): RECONCILE, (annotation::SUSPEND): suspend}), json!({}))
        };
        assert!(!is_requested(&asked("true")) && is_requested(&asked("false")) && is_suspended(&asked("true")));
        let mut deleted = asked("true");
        deleted.metadata.deletion_timestamp = Some(serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap());
        assert!(is_requested(&deleted) && !is_suspended(&deleted));
    }

    #[test]
    fn c_05_reconcile_if_changed_asks_once_the_generation_was_not_observed() {
        let marked = |observed: i64| {
            is_requested(&installation(
                json!({(annotation::RECONCILE_IF_CHANGED): "true"}),
                json!({"observedGeneration": observed}),
            ))
        };
        assert!(marked(2) && !marked(3));
    }

    #[test]
    fn c_05_a_policy_asks_for_what_was_not_observed_and_the_usual_one_for_nothing() {
        let under = |policy: ReconcilePolicy, observed: i64| {
            let mut installation = installation(json!({}), json!({"observedGeneration": observed}));
            installation.spec.reconcile_policy = policy;
            is_requested(&installation)
        };
        for policy in [ReconcilePolicy::OnSpecChange, ReconcilePolicy::OnChange] {
            assert!(under(policy, 2) && !under(policy, 3), "{policy:?}");
        }
        assert!(!under(ReconcilePolicy::Manual, 2));
    }

    #[test]
    fn c_18_a_request_that_was_seen_stands_without_its_annotation() {
        assert!(is_requested(&installation(json!({}), json!({"pendingOperation": "reconcile"}))));
        let interrupted = json!({(annotation::OPERATION): "interrupt"});
        assert!(is_requested(&installation(interrupted, json!({"pendingOperation": "reconcile"}))));
    }

    #[test]
    fn ins_54_a_request_made_while_the_job_runs_stays_for_the_next_one() {
        let running = |begun: bool, token: &str, handled: &str| {
            let times = if begun { json!({"initTime": "2026-01-01T00:00:00Z"}) } else { json!({}) };
            let status = json!({"jobID": "a", "lastHandledTrigger": handled, "transitionTimes": times});
            request_facts(&installation(
                json!({(annotation::OPERATION): RECONCILE, (annotation::TRIGGER): token}),
                status,
            ))
            .is_of_running_job()
        };
        assert!(running(false, "t", "t"));
        assert!(!running(false, "u", "t"));
        assert!(!running(true, "t", "t"));
    }
}
