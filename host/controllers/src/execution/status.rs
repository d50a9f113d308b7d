//! Where a reconciliation of an Execution rests: one write.

use orangery_api::execution::{Execution, write_records};
use orangery_core::{phase::execution::Execution as Phase, step::Halt, walk::Transition};
use orangery_reconcile::NextCall;

use super::reconciliation::ExecutionReconciliation;
use crate::job::{self, JobStatus};

impl ExecutionReconciliation<'_> {
    /// Writes where the walk through the phases rests.
    pub(super) async fn rest(
        mut self,
        before: &Execution,
        phase: Phase,
        transition: Transition<Phase>,
    ) -> Result<NextCall, Halt> {
        let store = &self.host.stores.executions;
        let Some(rest) = job::resting(self.host, before, phase, &transition)? else {
            job::release(self.host, store, before).await?;
            return Ok(NextCall::Settled);
        };
        let now = self.host.now();
        let status = self.draft.status.get_or_insert_default();
        status.items = write_records(&self.workflow.records);
        status.rest(&rest, self.generation, &now);
        let writer = self.host.writer(store);
        let written = writer.update_status(before, &self.draft).await;
        written.map_err(|error| job::unwritten(&transition, error.halt("UpdateStatus")))?;
        job::next(transition, None)
    }
}
