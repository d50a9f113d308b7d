//! Where an Execution rests: the one place that writes its status.

use kube::ResourceExt;
use orangery_api::execution::{Execution, write_records};
use orangery_core::{
    phase::execution::Execution as Phase,
    step::{Halt, Step},
    walk::Transition,
};
use orangery_reconcile::NextCall;

use super::{
    apply::AppliedExecution,
    reconciliation::{ExecutionReconciliation, ExecutionWorker},
};
use crate::{
    awaited_uninstall,
    gates::release_at_rest,
    job::{self, JobStatus},
    secret_values::masked,
    stores::StoredKind,
};

/// Writes what a call of the controller came to; and when it is called again.
pub(super) async fn finish(
    worker: &ExecutionWorker,
    execution: &Execution,
    applied: AppliedExecution<'_>,
) -> Result<NextCall, Halt> {
    match applied {
        AppliedExecution::Idle => {
            let (host, name) = (&worker.host, execution.name_any());
            awaited_uninstall::tell(host, &host.stores.executions, execution, &name, |draft| {
                draft.status.get_or_insert_default()
            })
            .await?;
            Ok(NextCall::Settled)
        }
        AppliedExecution::Again => Ok(NextCall::Again),
        AppliedExecution::Status(draft, operation) => {
            let writer = worker.host.writer(&worker.host.stores.executions);
            writer.update_status_as_read(execution, &draft).await.map_err(|error| error.halt(operation))?;
            Ok(NextCall::Again)
        }
        AppliedExecution::Job(run, phase, transition) => run.finish(phase, transition).await,
    }
}

impl ExecutionReconciliation<'_> {
    /// What gate expressions have answered so far, for the next write.
    fn note_answers(&mut self) {
        let masker = self.host.secrets.masker(&self.key.namespace);
        self.draft.status.get_or_insert_default().items = write_records(&masked(&self.workflow.records, &masker));
    }

    /// Writes what gate expressions have answered so far; where the job rests is not said by that.
    pub(super) async fn write_answers(&mut self) -> Step<()> {
        self.note_answers();
        let writer = self.host.writer(&self.host.stores.executions);
        let written = writer.update_status(&self.before, &self.draft).await;
        let written = written.map_err(|error| error.halt("UpdateStatus"))?;
        self.draft = Execution::clone(&written);
        self.before = written;
        Ok(())
    }

    /// Writes where the walk through the phases rests.
    async fn finish(mut self, phase: Phase, transition: Transition<Phase>) -> Result<NextCall, Halt> {
        let (host, worker) = (self.host, self.worker);
        let execution = (StoredKind::Execution, self.key.clone());
        release_at_rest(host, (&worker.pool, &worker.queue), execution, &transition, self.workflow.left);
        let store = &host.stores.executions;
        let Some(rest) = job::resting(host, self.before.as_ref(), phase, &transition)? else {
            job::release(host, store, self.before.as_ref()).await?;
            return Ok(NextCall::Settled);
        };
        self.note_answers();
        let status = self.draft.status.get_or_insert_default();
        status.rest(&rest, self.generation, &host.now());
        let writer = host.writer(store);
        let written = writer.update_status(&self.before, &self.draft).await;
        written.map_err(|error| job::unwritten(&transition, error.halt("UpdateStatus")))?;
        if !rest.ended {
            self.handed_down.deliver(&host.stores.deploy_items).await;
        }
        job::next(transition, None)
    }
}
