//! From the objects that were made to their end: orphans are waited for, the job goes to the subobjects, and they finish
//! (INS-27 … INS-35).

use orangery_api::marks::Marks;
use orangery_core::{
    phase::{Phase as _, execution::Execution as ExecutionPhase},
    plan::installation as plan,
    step::{Step, Verdict, all},
};

use kube::ResourceExt;

use super::super::{
    gather::related::{related, related_execution},
    reconciliation::InstallationReconciliation,
};
use crate::workflow::progressing;

impl InstallationReconciliation<'_> {
    /// `CleanupOrphaned`: orphans get the job and are waited for until they are gone.
    pub(super) async fn cleanup_orphaned(&mut self) -> Step<Verdict> {
        let mut subs = self.subinstallations();
        subs.retain(|sub| sub.is_deleting());
        let (trigger, outcome) = plan::orphans(&related(subs.iter()), &self.workflow.job);
        for sub in subs.into_iter().filter(|sub| trigger.contains(&sub.name_any())) {
            self.trigger_leaving(&sub).await?;
        }
        let Some(execution) = self.execution().filter(|execution| execution.is_deleting()) else { return outcome };
        // The Execution of a blueprint that deploys nothing any more.
        self.trigger_execution(&execution, ExecutionPhase::INIT_DELETE).await?;
        let (_, execution_outcome) = plan::orphans(&[related_execution(&execution)], &self.workflow.job);
        let verdicts = all([outcome, execution_outcome])?;
        Ok(verdicts.into_iter().find(|verdict| *verdict != Verdict::Done).unwrap_or(Verdict::Done))
    }

    /// `ObjectsCreated`: the job goes to all subobjects (INS-32).
    pub(super) async fn objects_created(&mut self) -> Step<Verdict> {
        self.hand_down().await?;
        Ok(Verdict::Done)
    }

    /// `Progressing`: all subobjects finished, and well?
    pub(super) async fn progressing(&mut self) -> Step<Verdict> {
        if self.end().is_none() {
            self.hand_down_lost().await?;
        }
        if self.workflow.items.has_gates {
            return progressing(self).await;
        }
        plan::progressing(&self.related(), &self.missing(), &self.workflow.job)
    }
}
