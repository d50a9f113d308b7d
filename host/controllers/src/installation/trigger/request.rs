//! What an Installation is asked to do (INS-12 … INS-18, INS-54). [`orangery_core::plan::request`] decides.

use orangery_api::{
    annotation,
    installation::{Installation, ReconcilePolicy},
    job::Job,
    marks::{Marks, Operation},
};
use orangery_core::{
    job::{JobIds, Situation, Work, work},
    name::JobId,
    phase::{Phase as _, installation::Installation as Phase},
    plan::request::{BeforeJob, RequestFacts, Requested},
};

use crate::{
    object::{generation_of, is_orphaned},
    stores::Stores,
};

/// What an Installation is asked to do.
pub(in crate::installation) enum InstallationTrigger {
    /// Something that comes before any job.
    Before(BeforeJob),
    /// Nothing: it is at rest.
    Rest,
    /// To start a job.
    Start,
    /// To go on with a job.
    GoOn {
        /// Its id.
        job: JobId,
        /// Whether the request on the object is the one that the job answers.
        answers_request: bool,
    },
}

/// What is asked for now.
pub(in crate::installation) fn gather(stores: &Stores, installation: &Installation) -> InstallationTrigger {
    let facts = facts(installation);
    // Jobs begin where nobody is above, or nobody any more.
    let root = installation.is_root() || is_orphaned(&stores.installations, installation);
    let before = facts.before_job(root);
    if before != BeforeJob::Nothing {
        return InstallationTrigger::Before(before);
    }
    let situation = Situation {
        ids: &JobIds::new(installation.job_id(), installation.job_id_finished()),
        root,
        requested: facts.asks_for_job(),
        deleting: installation.is_deleting(),
        in_deletion: Phase::parse(installation.phase()).is_some_and(Phase::is_deletion),
    };
    match work(situation) {
        Work::None => InstallationTrigger::Rest,
        Work::Start => InstallationTrigger::Start,
        Work::Continue { job } => InstallationTrigger::GoOn { job, answers_request: facts.is_of_running_job() },
    }
}

/// Whether a job is asked for.
pub(in crate::installation) fn is_requested(installation: &Installation) -> bool {
    facts(installation).asks_for_job()
}

/// What is known of the requests for an Installation.
fn facts(installation: &Installation) -> RequestFacts<'_> {
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
        generations: (generation_of(installation), status.map_or(0, |status| status.observed_generation)),
        tokens: (
            installation.annotation(annotation::TRIGGER).unwrap_or(""),
            status.map_or("", |status| &status.last_handled_trigger),
        ),
        running: !installation.job_finished(),
        begun: times.is_some_and(|times| times.init_time.is_some()),
        has_dependents: status.is_some_and(|status| !status.dependents_to_trigger.is_empty()),
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
            facts(&installation(json!({(annotation::OPERATION): RECONCILE, (annotation::TRIGGER): token}), status))
                .is_of_running_job()
        };
        assert!(running(false, "t", "t"));
        assert!(!running(false, "u", "t"));
        assert!(!running(true, "t", "t"));
    }
}
