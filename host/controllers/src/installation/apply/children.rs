//! Handing the job down to the subobjects of an Installation (INS-32, INS-65).

use std::sync::Arc;

use orangery_api::{execution::Execution, installation::Installation, job::Job};
use orangery_core::{
    job::JobIds,
    phase::{Phase as _, execution::Execution as ExecutionPhase, installation::Installation as Phase},
    step::Step,
};
use orangery_reconcile::Key;

use super::super::reconciliation::InstallationReconciliation;
use crate::job::{JobTrigger, Subobject as _};

impl InstallationReconciliation<'_> {
    /// The job goes to the Execution and so starts its deletion.
    pub(in crate::installation) async fn delete_by_execution(&mut self) -> Step<()> {
        match self.execution() {
            Some(execution) => self.trigger_execution(&execution, ExecutionPhase::INIT_DELETE).await,
            None => Ok(()),
        }
    }

    /// The job goes to a sub-installation, unless it has it.
    pub(in crate::installation) async fn trigger_subinstallation(
        &mut self,
        sub: &Arc<Installation>,
        first: Phase,
    ) -> Step<()> {
        let ids = self.ids_of_subinstallation(sub);
        if !ids.wants(&self.workflow.job, Phase::parse(sub.phase()), first) {
            return Ok(());
        }
        self.show_job().await?;
        let after = sub.triggered(&self.job_trigger(first));
        let writer = self.host.writer(&self.host.stores.installations);
        writer.update_status(sub, &after).await.map(drop).map_err(|error| error.halt("TriggerSubinstallation"))
    }

    /// The job goes to the Execution, unless it has it.
    pub(in crate::installation) async fn trigger_execution(
        &mut self,
        execution: &Arc<Execution>,
        first: ExecutionPhase,
    ) -> Step<()> {
        let ids = self.handed_to_execution.ids(&self.key, ids_of(execution.as_ref()));
        if !ids.wants(&self.workflow.job, ExecutionPhase::parse(execution.phase()), first) {
            return Ok(());
        }
        self.show_job().await?;
        let after = execution.triggered(&self.job_trigger(first));
        let writer = self.host.writer(&self.host.stores.executions);
        writer.update_status(execution, &after).await.map(drop).map_err(|error| error.halt("TriggerExecution"))
    }

    /// The job goes to all subobjects that are not made when they start, unless they have it: with the status of this Installation, which
    /// is written as it comes to wait for them (C-216). What cannot have it so, gets it by a write of its own.
    pub(in crate::installation) async fn hand_down(&mut self) -> Step<()> {
        let stores = &self.host.stores;
        let (sub_trigger, execution_trigger) = (self.job_trigger(Phase::INIT), self.job_trigger(ExecutionPhase::INIT));
        for sub in self.subinstallations() {
            if self.is_late(&sub) {
                continue;
            }
            let wants = ids_of(sub.as_ref()).wants(&self.workflow.job, Phase::parse(sub.phase()), Phase::INIT);
            if wants && !self.handed_to_subinstallations.take(&stores.installations, &sub, &sub_trigger) {
                self.trigger_subinstallation(&sub, Phase::INIT).await?;
            }
        }
        if let Some(execution) = self.execution() {
            let phase = ExecutionPhase::parse(execution.phase());
            let wants = ids_of(execution.as_ref()).wants(&self.workflow.job, phase, ExecutionPhase::INIT);
            if wants && !self.handed_to_execution.take(&stores.executions, &execution, &execution_trigger) {
                self.trigger_execution(&execution, ExecutionPhase::INIT).await?;
            }
        }
        Ok(())
    }

    /// The same for a job that has come to its subobjects before: the operator was lost before they had it.
    pub(in crate::installation) async fn hand_down_lost(&mut self) -> Step<()> {
        for sub in self.subinstallations() {
            if !self.is_late(&sub) {
                self.trigger_subinstallation(&sub, Phase::INIT).await?;
            }
        }
        match self.execution() {
            Some(execution) => self.trigger_execution(&execution, ExecutionPhase::INIT).await,
            None => Ok(()),
        }
    }

    /// The job ids of a sub-installation, as they are with what it is handed.
    pub(in crate::installation) fn ids_of_subinstallation(&self, sub: &Installation) -> JobIds {
        self.handed_to_subinstallations.ids(&Key::of(sub), ids_of(sub))
    }

    /// What gets the job by a write of its own gets it from one that has it, and that says all that is read of it there.
    async fn show_job(&mut self) -> Step<()> {
        let definition = |of: &Installation| of.status.as_ref().and_then(|status| status.job_definition.clone());
        let is_missing = definition(&self.draft) != definition(&self.before)
            || self.host.stores.installations.has_deferred(&self.before);
        if is_missing { self.show().await } else { Ok(()) }
    }

    /// What subobjects are triggered with.
    fn job_trigger<P>(&self, first: P) -> JobTrigger<P> {
        let token = self.draft.status.as_ref().map(|status| status.last_handled_trigger.clone()).unwrap_or_default();
        JobTrigger { job: self.workflow.job.clone(), first, token, now: self.host.now() }
    }
}

fn ids_of(object: &impl Job) -> JobIds {
    JobIds::new(object.job_id(), object.job_id_finished())
}
