//! What users ask of an Installation by annotation, and what it asks of its siblings (INS-12 … INS-18, INS-43 … INS-46,
//! INS-70, INS-71).

use std::sync::Arc;

use kube::ResourceExt;
use orangery_api::{
    annotation,
    execution::Execution,
    installation::{Installation, ReconcilePolicy},
    job::Job,
    marks::{Marks, Operation},
};
use orangery_core::{
    phase::{Phase as _, installation::Installation as Phase},
    step::Halt,
};
use orangery_reconcile::{Key, Next, Watched};

use super::children;
use crate::host::{Host, key_of};

/// Whether a job is asked for: by annotation, or by a spec that changed under `reconcile-if-changed` or a policy, which is
/// the same as a field.
pub(super) fn is_requested(installation: &Installation) -> bool {
    let on_change = installation.spec.reconcile_policy != ReconcilePolicy::Manual
        || installation.annotation(annotation::RECONCILE_IF_CHANGED).is_some();
    let changed = || {
        let observed = installation.status.as_ref().map_or(0, |status| status.observed_generation);
        installation.metadata.generation.unwrap_or_default() != observed
    };
    installation.operation() == Some(Operation::Reconcile) || is_pending(installation) || (on_change && changed())
}

/// Whether a request was seen that waits for the end of the running job (C-18).
fn is_pending(installation: &Installation) -> bool {
    let status = installation.status.as_ref();
    status.is_some_and(|status| status.pending_operation == Operation::Reconcile.to_string())
}

/// Whether the request on the object is the one that its running job answers. A token tells; without one a request is
/// taken for the job's own until the job has begun its first phase, and for a follow-up afterwards (INS-54).
pub(super) fn belongs_to_job(installation: &Installation) -> bool {
    let status = installation.status.clone().unwrap_or_default();
    let begun = status.transition_times.is_some_and(|times| times.init_time.is_some());
    installation.operation() == Some(Operation::Reconcile)
        && !begun
        && installation.annotation(annotation::TRIGGER).unwrap_or_default() == status.last_handled_trigger
}

/// Whether a program asks once more for what has failed, and not a person: `reconcile-reason: retry`.
pub(super) fn is_retry(installation: &Installation) -> bool {
    installation.annotation(annotation::RECONCILE_REASON) == Some(annotation::RETRY)
}

/// Removes the request, so that it can be made again (INS-14).
pub(super) fn remove(installation: &mut Installation) {
    let annotations = installation.metadata.annotations.get_or_insert_default();
    for key in [annotation::OPERATION, annotation::RECONCILE_REASON, annotation::TRIGGER] {
        annotations.remove(key);
    }
}

/// What comes before any job: siblings to trigger, an interrupt, a request where none has effect. `Some` means the
/// object was written and is to be looked at again.
pub(super) async fn before(host: &Host, installation: &Installation) -> Result<Option<Next>, Halt> {
    if trigger_dependents(host, installation).await? {
        return Ok(Some(Next::Again));
    }
    match installation.operation() {
        Some(Operation::Interrupt) => interrupt(host, installation).await.map(|()| Some(Next::Again)),
        // INS-18: without effect on a non-root.
        Some(Operation::Reconcile) if !super::is_root(host, installation) => {
            let mut after = installation.clone();
            remove(&mut after);
            update(host, installation, &after, "RemoveOperation").await?;
            Ok(Some(Next::Again))
        }
        // C-18: the next interrupt takes its place.
        Some(Operation::Reconcile)
            if !installation.job_finished() && !belongs_to_job(installation) && !is_pending(installation) =>
        {
            let mut after = installation.clone();
            after.status.get_or_insert_default().pending_operation = Operation::Reconcile.to_string();
            let writer = host.writer(&host.stores.installations);
            writer.update_status(installation, &after).await.map_err(|error| error.halt("NoteRequest"))?;
            Ok(Some(Next::Again))
        }
        Some(Operation::Reconcile | Operation::TestReconcile | Operation::Other(_)) | None => Ok(None),
    }
}

/// Roots that import what this root exported get a request (INS-43, INS-44), unless they are about to read their
/// imports anyway: such a one has waited for this job. Children need none: their queue is woken by the end of this job.
async fn trigger_dependents(host: &Host, installation: &Installation) -> Result<bool, Halt> {
    let status = installation.status.clone().unwrap_or_default();
    if status.dependents_to_trigger.is_empty() {
        return Ok(false);
    }
    let namespace = installation.namespace().unwrap_or_default();
    for dependent in &status.dependents_to_trigger {
        let key = Key { namespace: namespace.clone(), name: dependent.name.clone() };
        if let Some(sibling) = host.stores.installations.get(&key)
            && sibling.operation().is_none()
            && !sibling.is_deleting()
            && !is_about_to_read(&sibling)
        {
            let mut after = Installation::clone(&sibling);
            set(&mut after, Operation::Reconcile);
            update(host, &sibling, &after, "TriggerSuccessor").await?;
        }
    }
    let mut after = installation.clone();
    after.status.get_or_insert_default().dependents_to_trigger.clear();
    let writer = host.writer(&host.stores.installations);
    writer.update_status(installation, &after).await.map_err(|error| error.halt("TriggerSuccessor"))?;
    Ok(true)
}

/// Whether a job runs that has not left `Init`: it reads its imports only once all its predecessors have finished.
fn is_about_to_read(sibling: &Installation) -> bool {
    let phase = Phase::parse(sibling.phase());
    !sibling.job_finished() && phase.is_none_or(|phase| phase == Phase::Init || phase.is_final())
}

/// Notes which job is interrupted, so that it begins nothing more (C-32), passes the interrupt to every subobject, then
/// removes it (INS-71).
async fn interrupt(host: &Host, installation: &Installation) -> Result<(), Halt> {
    let key = key_of(installation);
    let mut current = Arc::new(installation.clone());
    if !installation.job_finished() {
        let mut after = installation.clone();
        installation.job_id().clone_into(&mut after.status.get_or_insert_default().interrupted_job);
        let writer = host.writer(&host.stores.installations);
        let marked = writer.update_status(installation, &after).await;
        current = marked.map_err(|error| error.halt("InterruptInstallation"))?;
        for child in children::subinstallations(host, &key) {
            let mut after = Installation::clone(&child);
            set(&mut after, Operation::Interrupt);
            update(host, &child, &after, "InterruptSubinstallation").await?;
        }
        if let Some(execution) = host.stores.executions.get(&key) {
            let mut after = Execution::clone(&execution);
            set(&mut after, Operation::Interrupt);
            let writer = host.writer(&host.stores.executions);
            writer.update(&execution, &after).await.map_err(|error| error.halt("InterruptExecution"))?;
        }
    }
    let mut after = Installation::clone(&current);
    after.metadata.annotations.get_or_insert_default().remove(annotation::OPERATION);
    update(host, &current, &after, "RemoveOperation").await
}

fn set<K: Watched>(object: &mut K, operation: Operation) {
    let annotations = object.meta_mut().annotations.get_or_insert_default();
    annotations.insert(annotation::OPERATION.to_owned(), operation.to_string());
}

async fn update(host: &Host, before: &Installation, after: &Installation, operation: &str) -> Result<(), Halt> {
    let writer = host.writer(&host.stores.installations);
    writer.update(before, after).await.map(drop).map_err(|error| error.halt(operation))
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
            belongs_to_job(&installation(
                json!({(annotation::OPERATION): RECONCILE, (annotation::TRIGGER): token}),
                status,
            ))
        };
        assert!(running(false, "t", "t"));
        assert!(!running(false, "u", "t"));
        assert!(!running(true, "t", "t"));
    }

    #[test]
    fn ins_14_a_removed_request_can_be_made_again() {
        let mut asked = installation(
            json!({(annotation::OPERATION): RECONCILE, (annotation::RECONCILE_REASON): "retry", (annotation::TRIGGER): "t", "mine": "kept"}),
            json!({}),
        );
        remove(&mut asked);
        assert_eq!(asked.annotations().iter().collect::<Vec<_>>(), [(&"mine".to_owned(), &"kept".to_owned())]);
    }

    #[test]
    fn c_14_a_successor_that_has_not_read_its_imports_needs_no_request() {
        let in_phase = |phase: &str, finished: &str| {
            is_about_to_read(&installation(json!({}), json!({"jobID": "a", "jobIDFinished": finished, "phase": phase})))
        };
        assert!(in_phase("", "") && in_phase("Init", "") && in_phase("Succeeded", "old"));
        assert!(!in_phase("Progressing", "") && !in_phase("Succeeded", "a"));
    }
}
