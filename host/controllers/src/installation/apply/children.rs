//! Handing the job down to the subobjects of an Installation (INS-32, INS-65).

use std::sync::Arc;

use orangery_api::{execution::Execution, installation::Installation, job::Job};
use orangery_core::{
    job::JobIds,
    phase::{Phase as _, execution::Execution as ExecutionPhase, installation::Installation as Phase},
    step::Step,
};

use super::super::reconciliation::InstallationReconciliation;
use crate::{job::JobStatus, object::generation_of};

impl InstallationReconciliation<'_> {
    /// The token of the request that the job answers, which goes down with the job.
    fn token(&self) -> String {
        self.draft.status.as_ref().map(|status| status.last_handled_trigger.clone()).unwrap_or_default()
    }

    /// The job goes to the Execution and so starts its deletion.
    pub(in crate::installation) async fn delete_by_execution(&self) -> Step<()> {
        match self.execution() {
            Some(execution) => self.trigger_execution(&execution, ExecutionPhase::INIT_DELETE).await,
            None => Ok(()),
        }
    }

    /// The job goes to a sub-installation, unless it has it.
    pub(in crate::installation) async fn trigger_subinstallation(
        &self,
        sub: &Arc<Installation>,
        first: Phase,
    ) -> Step<()> {
        let ids = JobIds::new(sub.job_id(), sub.job_id_finished());
        if !ids.wants(&self.workflow.job, Phase::parse(sub.phase()), first) {
            return Ok(());
        }
        let mut after = Installation::clone(sub);
        let status = after.status.get_or_insert_default();
        status.trigger(&self.workflow.job, first, generation_of(sub.as_ref()), &self.host.now());
        status.last_handled_trigger = self.token();
        let writer = self.host.writer(&self.host.stores.installations);
        writer.update_status(sub, &after).await.map(drop).map_err(|error| error.halt("TriggerSubinstallation"))
    }

    /// The job goes to the Execution, unless it has it.
    pub(in crate::installation) async fn trigger_execution(
        &self,
        execution: &Arc<Execution>,
        first: ExecutionPhase,
    ) -> Step<()> {
        let ids = JobIds::new(execution.job_id(), execution.job_id_finished());
        if !ids.wants(&self.workflow.job, ExecutionPhase::parse(execution.phase()), first) {
            return Ok(());
        }
        let mut after = Execution::clone(execution);
        let status = after.status.get_or_insert_default();
        status.trigger(&self.workflow.job, first, generation_of(execution.as_ref()), &self.host.now());
        status.last_handled_trigger = self.token();
        let writer = self.host.writer(&self.host.stores.executions);
        writer.update_status(execution, &after).await.map(drop).map_err(|error| error.halt("TriggerExecution"))
    }
}
