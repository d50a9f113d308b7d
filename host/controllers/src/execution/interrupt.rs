//! Interrupt: every deploy item that has not finished the job fails at once (INS-70 … INS-74, `landscaper.md` §6.4).

use std::sync::Arc;

use kube::ResourceExt;
use orangery_api::{annotation, deploy_item::DeployItem, error::LastError, execution::Execution, job::Job};
use orangery_core::{
    error::Failure,
    job::interrupted,
    phase::{Phase, item::Item as ItemPhase},
    step::Halt,
    walk::Rest,
};
use orangery_reconcile::Next;

use crate::{
    host::{Host, index},
    job::{JobStatus, failure_of},
};

/// Fails the unfinished items, then removes the request, so that a crash in between repeats it.
pub(super) async fn interrupt(host: &Host, execution: &Execution) -> Result<Next, Halt> {
    let namespace = execution.namespace().unwrap_or_default();
    let job = execution.job_id();
    let writer = host.writer(&host.stores.executions);
    let mut current = Arc::new(execution.clone());
    if !job.is_empty() && !execution.job_finished() {
        let mut after = execution.clone();
        job.clone_into(&mut after.status.get_or_insert_default().interrupted_job);
        current = writer.update_status(execution, &after).await.map_err(|error| error.halt("InterruptExecution"))?;
        let objects = host.stores.deploy_items.indexed(index::MANAGED_BY, &namespace, &execution.name_any());
        for object in objects.iter().filter(|object| !object.finished_job(job)) {
            fail(host, object, job).await?;
        }
    }
    let mut after = Execution::clone(&current);
    after.metadata.annotations.get_or_insert_default().remove(annotation::OPERATION);
    writer.update(&current, &after).await.map_err(|error| error.halt("RemoveOperation"))?;
    Ok(Next::Again)
}

/// What an interrupted item fails with; what it failed with before, in this job, stays to be read.
fn failure(before: Option<Failure>) -> Failure {
    let told = interrupted();
    match before {
        None => told,
        Some(before) => {
            let message = format!("{}; the last problem was: {}", told.message, before.message);
            Failure { codes: before.codes, message, ..told }
        }
    }
}

async fn fail(host: &Host, object: &DeployItem, job: &str) -> Result<(), Halt> {
    let deleting = object.metadata.deletion_timestamp.is_some();
    let phase = if deleting { ItemPhase::DELETE_FAILED } else { ItemPhase::FAILED };
    let failure = failure(failure_of(object.last_error()).filter(|_| !object.job_finished()));
    let now = host.now();
    let mut after = object.clone();
    let generation = object.metadata.generation.unwrap_or_default();
    let status = after.status.get_or_insert_default();
    job.clone_into(&mut status.job_id);
    status.rest(&Rest { phase, ended: true, failure: Some(failure.clone()), wait: None }, generation, &now);
    status.last_errors.push(LastError::following(None, &failure, &now));
    let writer = host.writer(&host.stores.deploy_items);
    writer.update_status(object, &after).await.map_err(|error| error.halt("InterruptDeployItem"))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use orangery_core::error::Code;

    use super::*;

    #[test]
    fn ins_73_an_interrupt_is_told_and_does_not_hide_what_failed_before() {
        let told = "the operation was interrupted by the annotation landscaper.gardener.cloud/operation: interrupt";
        assert_eq!(failure(None).message, told);
        let after = failure(Some(Failure::new("Apply", "Unreachable", "no answer").with_code(Code::Unfinished)));
        assert_eq!(after.message, format!("{told}; the last problem was: no answer"));
        assert_eq!((after.reason.as_str(), after.codes), ("InterruptOperation", [Code::Unfinished].into()));
    }
}
