//! The end of a job by an interrupt: every deploy item that has not finished it fails (INS-70 … INS-74).

use std::sync::Arc;

use orangery_api::{deploy_item::DeployItem, execution::Execution, job::Job};
use orangery_core::{
    job::JobEnd,
    name::JobId,
    phase::{Phase as _, item::Item as ItemPhase},
    step::Step,
    walk::StatusUpdate,
};
use orangery_reconcile::Key;

use super::{super::dependencies::deploy_items, AppliedExecution};
use crate::{
    controller_context::ControllerContext,
    job::{JobStatus, failure_of},
    object::{generation_of, remove_operation},
    plans::{ItemPlans, awaits_approval},
};

/// The job notes that it is interrupted, so that it begins nothing more (C-32).
pub(super) fn noted<'a>(execution: &Execution) -> AppliedExecution<'a> {
    let mut draft = Box::new(execution.clone());
    draft.status.get_or_insert_default().interrupted_job = execution.job_id().clone();
    AppliedExecution::Status(draft, "InterruptExecution")
}

/// Fails the unfinished items, then removes the request, so that a crash in between repeats it.
pub(super) async fn carry_out<'a>(host: &ControllerContext, execution: &Arc<Execution>) -> Step<AppliedExecution<'a>> {
    if !execution.job_finished() {
        let job = execution.job_id();
        let objects = deploy_items(&host.stores, &Key::of(execution.as_ref()));
        for object in objects.into_iter().filter(|object| !object.finished_job(job)) {
            fail(host, &object, job).await?;
        }
    }
    let mut after = Execution::clone(execution);
    remove_operation(&mut after);
    let writer = host.writer(&host.stores.executions);
    writer.update(execution, &after).await.map_err(|error| error.halt("RemoveOperation"))?;
    Ok(AppliedExecution::Again)
}

async fn fail(host: &ControllerContext, object: &DeployItem, job: &JobId) -> Step<()> {
    let deleting = object.metadata.deletion_timestamp.is_some();
    let phase = if deleting { ItemPhase::DELETE_FAILED } else { ItemPhase::FAILED };
    let failure = JobEnd::Interrupted.failure(failure_of(object.last_error()).filter(|_| !object.job_finished()));
    let now = host.now();
    let mut after = object.clone();
    let status = after.status.get_or_insert_default();
    // One that waited for others gets the job only to end it.
    if status.job_id != *job {
        status.trigger(job, phase, generation_of(object), &now);
        status.first_error = None;
        status.last_errors.clear();
    }
    status.rest(
        &StatusUpdate { phase, ended: true, failure: Some(failure.clone()), wait: None },
        generation_of(object),
        &now,
    );
    status.remember();
    let writer = host.writer(&host.stores.deploy_items);
    writer.update_status(object, &after).await.map_err(|error| error.halt("InterruptDeployItem"))?;
    if awaits_approval(object) {
        // Nobody waits for it any more.
        ItemPlans { host, item: object, job }.end().await;
    }
    Ok(())
}
