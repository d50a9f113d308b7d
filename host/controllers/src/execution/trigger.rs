//! What an Execution is asked to do: to go on, to delete itself where its Installation is gone, or to end at once, where every
//! deploy item that has not finished the job fails (INS-70 … INS-74).

use std::sync::Arc;

use orangery_api::{
    annotation,
    deploy_item::DeployItem,
    error::LastError,
    execution::Execution,
    installation::Installation,
    job::Job,
    marks::{Marks, Operation},
};
use orangery_core::{
    job::{JobEnd, JobIds, Situation, Work, work},
    name::JobId,
    phase::{Phase as _, execution::Execution as Phase, item::Item as ItemPhase},
    step::Halt,
    walk::Rest,
};
use orangery_reconcile::{Key, NextCall};

use super::dependencies::deploy_items;
use crate::{
    controller_context::ControllerContext,
    job::{JobStatus, failure_of},
    object::{generation_of, is_orphaned},
    stores::Stores,
    tree::observing_root,
};

/// What an Execution is asked to do.
pub(super) enum ExecutionTrigger {
    /// To end the job at once.
    Interrupt,
    /// What the job protocol asks for.
    Work(Work),
}

/// What is asked for now.
pub(super) fn gather(stores: &Stores, execution: &Execution) -> ExecutionTrigger {
    if execution.operation() == Some(Operation::Interrupt) {
        return ExecutionTrigger::Interrupt;
    }
    ExecutionTrigger::Work(work(Situation {
        ids: &JobIds::new(execution.job_id(), execution.job_id_finished()),
        root: is_orphaned(&stores.installations, execution),
        requested: false,
        deleting: execution.is_deleting(),
        in_deletion: Phase::parse(execution.phase()).is_some_and(Phase::is_deletion),
    }))
}

/// The job that ended last.
pub(super) fn last_job(execution: &Execution) -> JobId {
    execution.job_id().clone()
}

/// The root that starts a job when what decided about items of this Execution answers otherwise.
pub(super) fn observing_root_of_answers(stores: &Stores, execution: &Execution) -> Option<Arc<Installation>> {
    let answered = execution.status.as_ref().is_some_and(|status| !status.items.is_empty());
    if answered && !execution.is_deleting() { observing_root(stores, &Key::of(execution)) } else { None }
}

/// The deletion of an Execution whose Installation is gone: nobody but itself starts it.
pub(super) async fn start_deletion(host: &ControllerContext, before: &Execution) -> Result<NextCall, Halt> {
    let mut after = before.clone();
    let status = after.status.get_or_insert_default();
    status.trigger(&host.rng.job_id(), Phase::InitDelete, generation_of(before), &host.now());
    let writer = host.writer(&host.stores.executions);
    writer.update_status(before, &after).await.map_err(|error| error.halt("StartJob"))?;
    Ok(NextCall::Again)
}

/// Fails the unfinished items, then removes the request, so that a crash in between repeats it.
pub(super) async fn interrupt(host: &ControllerContext, execution: &Execution) -> Result<NextCall, Halt> {
    let job = execution.job_id();
    let writer = host.writer(&host.stores.executions);
    let mut current = Arc::new(execution.clone());
    if !job.is_empty() && !execution.job_finished() {
        let mut after = execution.clone();
        after.status.get_or_insert_default().interrupted_job = job.clone();
        current = writer.update_status(execution, &after).await.map_err(|error| error.halt("InterruptExecution"))?;
        let objects = deploy_items(&host.stores, &Key::of(execution));
        for object in objects.iter().filter(|object| !object.finished_job(job)) {
            fail(host, object, job).await?;
        }
    }
    let mut after = Execution::clone(&current);
    after.metadata.annotations.get_or_insert_default().remove(annotation::OPERATION);
    writer.update(&current, &after).await.map_err(|error| error.halt("RemoveOperation"))?;
    Ok(NextCall::Again)
}

async fn fail(host: &ControllerContext, object: &DeployItem, job: &JobId) -> Result<(), Halt> {
    let deleting = object.metadata.deletion_timestamp.is_some();
    let phase = if deleting { ItemPhase::DELETE_FAILED } else { ItemPhase::FAILED };
    let failure = JobEnd::Interrupted.failure(failure_of(object.last_error()).filter(|_| !object.job_finished()));
    let now = host.now();
    let mut after = object.clone();
    let status = after.status.get_or_insert_default();
    // One that waited for others gets the job only to end it.
    if status.job_id != *job {
        status.trigger(job, phase, generation_of(object), &now);
    }
    status.rest(&Rest { phase, ended: true, failure: Some(failure.clone()), wait: None }, generation_of(object), &now);
    status.last_errors.push(LastError::following(None, &failure, &now));
    let writer = host.writer(&host.stores.deploy_items);
    writer.update_status(object, &after).await.map_err(|error| error.halt("InterruptDeployItem"))?;
    Ok(())
}
