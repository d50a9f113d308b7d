//! What comes before any job: siblings are asked for one, a running job is interrupted, a request is noted or removed (INS-14,
//! INS-18, INS-43, INS-44, INS-70, INS-71, C-18).

use std::sync::Arc;

use orangery_api::{
    execution::Execution,
    installation::Installation,
    job::Job,
    marks::{Marks, Operation},
};
use orangery_core::{
    phase::installation::Installation as Phase,
    plan::request::{BeforeJob, is_about_to_read},
    step::Step,
};
use orangery_reconcile::Key;

use super::AppliedInstallation;
use crate::{
    controller_context::ControllerContext,
    object::{remove_operation, remove_request, set_operation},
    tree::children,
};

/// Does what comes before any job.
pub(super) async fn carry_out<'a>(
    before: BeforeJob,
    host: &ControllerContext,
    installation: &Arc<Installation>,
) -> Step<AppliedInstallation<'a>> {
    let writer = host.writer(&host.stores.installations);
    let mut after = Box::new(Installation::clone(installation));
    let status = after.status.get_or_insert_default();
    Ok(match before {
        BeforeJob::Nothing => AppliedInstallation::Again,
        BeforeJob::TriggerDependents => {
            status.dependents_to_trigger.clear();
            trigger_dependents(host, installation).await?;
            AppliedInstallation::Status(after, "TriggerSuccessor")
        }
        BeforeJob::NoteInterrupt => {
            status.interrupted_job = installation.job_id().clone();
            AppliedInstallation::Status(after, "InterruptInstallation")
        }
        BeforeJob::NoteRequest => {
            status.pending_operation = Operation::Reconcile.to_string();
            AppliedInstallation::Status(after, "NoteRequest")
        }
        BeforeJob::Interrupt => {
            if !installation.job_finished() {
                interrupt_subobjects(host, &Key::of(installation.as_ref())).await?;
            }
            let mut after = Installation::clone(installation);
            remove_operation(&mut after);
            writer.update(installation, &after).await.map_err(|error| error.halt("RemoveOperation"))?;
            AppliedInstallation::Again
        }
        BeforeJob::RemoveRequest => {
            let mut after = Installation::clone(installation);
            remove_request(&mut after);
            writer.update(installation, &after).await.map_err(|error| error.halt("RemoveOperation"))?;
            AppliedInstallation::Again
        }
    })
}

/// Roots that import what this root exported get a request (INS-43, INS-44), unless they are about to read their
/// imports anyway: such a one has waited for this job. Children need none: their queue is woken by the end of this job.
async fn trigger_dependents(host: &ControllerContext, installation: &Installation) -> Step<()> {
    let namespace = Key::of(installation).namespace;
    let writer = host.writer(&host.stores.installations);
    for dependent in installation.status.iter().flat_map(|status| &status.dependents_to_trigger) {
        let key = Key { namespace: namespace.clone(), name: dependent.name.clone().into() };
        if let Some(sibling) = host.stores.installations.get(&key)
            && sibling.operation() != Some(Operation::Reconcile)
            && !sibling.is_deleting()
            && !is_about_to_read(!sibling.job_finished(), Phase::parse(sibling.phase()))
        {
            let mut after = Installation::clone(&sibling);
            // An interrupt comes first, and the request after it; what has no effect gives way.
            let written = if sibling.operation() == Some(Operation::Interrupt) {
                after.status.get_or_insert_default().pending_operation = Operation::Reconcile.to_string();
                writer.update_status(&sibling, &after).await
            } else {
                set_operation(&mut after, &Operation::Reconcile);
                writer.update(&sibling, &after).await
            };
            written.map_err(|error| error.halt("TriggerSuccessor"))?;
        }
    }
    Ok(())
}

/// Passes the interrupt to every subobject (INS-71).
async fn interrupt_subobjects(host: &ControllerContext, key: &Key) -> Step<()> {
    let writer = host.writer(&host.stores.installations);
    for child in children(&host.stores, key) {
        let mut after = Installation::clone(&child);
        set_operation(&mut after, &Operation::Interrupt);
        writer.update(&child, &after).await.map_err(|error| error.halt("InterruptSubinstallation"))?;
    }
    if let Some(execution) = host.stores.executions.get(key) {
        let mut after = Execution::clone(&execution);
        set_operation(&mut after, &Operation::Interrupt);
        let writer = host.writer(&host.stores.executions);
        writer.update(&execution, &after).await.map_err(|error| error.halt("InterruptExecution"))?;
    }
    Ok(())
}
