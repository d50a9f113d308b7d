//! What comes before any job: siblings are asked for one, a running job is interrupted, a request is noted or removed (INS-14,
//! INS-18, INS-43, INS-44, INS-70, INS-71, C-18).

use std::sync::Arc;

use orangery_api::{
    annotation,
    execution::Execution,
    installation::Installation,
    job::Job,
    marks::{Marks, Operation},
};
use orangery_core::{
    phase::installation::Installation as Phase,
    plan::request::{BeforeJob, is_about_to_read},
    step::Halt,
};
use orangery_reconcile::{Key, Watched};

use crate::{controller_context::ControllerContext, tree::children};

/// Does what comes before any job.
pub(in crate::installation) async fn carry_out(
    before: BeforeJob,
    host: &ControllerContext,
    installation: &Installation,
) -> Result<(), Halt> {
    match before {
        BeforeJob::Nothing => Ok(()),
        BeforeJob::TriggerDependents => trigger_dependents(host, installation).await,
        BeforeJob::Interrupt => interrupt(host, installation).await,
        BeforeJob::RemoveRequest => {
            let mut after = installation.clone();
            remove(&mut after);
            update(host, installation, &after, "RemoveOperation").await
        }
        BeforeJob::NoteRequest => {
            let mut after = installation.clone();
            after.status.get_or_insert_default().pending_operation = Operation::Reconcile.to_string();
            let writer = host.writer(&host.stores.installations);
            writer.update_status(installation, &after).await.map(drop).map_err(|error| error.halt("NoteRequest"))
        }
    }
}

/// Removes the request, so that it can be made again (INS-14).
pub(in crate::installation) fn remove(installation: &mut Installation) {
    let annotations = installation.metadata.annotations.get_or_insert_default();
    for key in [annotation::OPERATION, annotation::RECONCILE_REASON, annotation::TRIGGER] {
        annotations.remove(key);
    }
}

/// Roots that import what this root exported get a request (INS-43, INS-44), unless they are about to read their
/// imports anyway: such a one has waited for this job. Children need none: their queue is woken by the end of this job.
async fn trigger_dependents(host: &ControllerContext, installation: &Installation) -> Result<(), Halt> {
    let namespace = Key::of(installation).namespace;
    for dependent in installation.status.iter().flat_map(|status| &status.dependents_to_trigger) {
        let key = Key { namespace: namespace.clone(), name: dependent.name.clone() };
        if let Some(sibling) = host.stores.installations.get(&key)
            && sibling.operation().is_none()
            && !sibling.is_deleting()
            && !is_about_to_read(!sibling.job_finished(), Phase::parse(sibling.phase()))
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
    Ok(())
}

/// Notes which job is interrupted, so that it begins nothing more (C-32), passes the interrupt to every subobject, then
/// removes it (INS-71).
async fn interrupt(host: &ControllerContext, installation: &Installation) -> Result<(), Halt> {
    let key = Key::of(installation);
    let mut current = Arc::new(installation.clone());
    if !installation.job_finished() {
        let mut after = installation.clone();
        after.status.get_or_insert_default().interrupted_job = installation.job_id().clone();
        let writer = host.writer(&host.stores.installations);
        let marked = writer.update_status(installation, &after).await;
        current = marked.map_err(|error| error.halt("InterruptInstallation"))?;
        for child in children(&host.stores, &key) {
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

async fn update(
    host: &ControllerContext,
    before: &Installation,
    after: &Installation,
    operation: &str,
) -> Result<(), Halt> {
    let writer = host.writer(&host.stores.installations);
    writer.update(before, after).await.map(drop).map_err(|error| error.halt(operation))
}

#[cfg(test)]
mod tests {
    use kube::ResourceExt;
    use serde_json::json;

    use super::*;

    #[test]
    fn ins_14_a_removed_request_can_be_made_again() {
        let annotations = json!({(annotation::OPERATION): "reconcile", (annotation::RECONCILE_REASON): "retry", (annotation::TRIGGER): "t", "mine": "kept"});
        let object = json!({"metadata": {"name": "x", "annotations": annotations}, "spec": {"blueprint": {}}});
        let mut asked: Installation = serde_json::from_value(object).unwrap();
        remove(&mut asked);
        assert_eq!(asked.annotations().iter().collect::<Vec<_>>(), [(&"mine".to_owned(), &"kept".to_owned())]);
    }
}
