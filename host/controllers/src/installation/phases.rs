//! The phases of an Installation: each one gathers, has the core decide, and applies.

mod completing;
mod deleting;
mod init;
mod progressing;
mod workflow;

use orangery_core::{
    error::Failure,
    job::JobEnd,
    phase::{Phase as _, installation::Installation as Phase},
    plan::installation as plan,
    step::{Step, Verdict},
};
use orangery_reconcile::in_this_slot;

use super::reconciliation::InstallationReconciliation;
use crate::{
    job::{self, Subobjects as _},
    tree::end_of_making,
};

impl job::Run for InstallationReconciliation<'_> {
    type Phase = Phase;

    async fn phase(&mut self, phase: Phase) -> Step<Verdict> {
        if begins_with_children(phase)
            && let Some(end) = self.end_before_children(phase)
            && !self.are_working_now().await?
        {
            return Ok(Verdict::Failed(self.failed_below(phase).unwrap_or_else(|| end.failure(None))));
        }
        let (host, tenant) = (self.host, Some(self.key.namespace.clone()));
        // Blueprints, schemas, templates and gate expressions take as long as their authors like.
        let work = async {
            match phase {
                Phase::Init => self.init().await,
                Phase::CleanupOrphaned => self.cleanup_orphaned().await,
                Phase::ObjectsCreated => self.objects_created().await,
                Phase::Progressing => self.progressing().await,
                Phase::Completing => self.completing().await,
                Phase::InitDelete => self.init_delete().await,
                Phase::TriggerDelete => self.trigger_delete().await,
                Phase::Deleting => self.deleting().await,
                Phase::Succeeded | Phase::Failed | Phase::DeleteFailed => Ok(Verdict::Done),
            }
        };
        let result = host.computations.run(&tenant, in_this_slot(work)).await;
        let end = || if phase.is_deletion() { None } else { self.end() };
        job::beside(&*self, phase, result, end).await
    }
}

impl InstallationReconciliation<'_> {
    /// Why the job does not come to its subobjects: it was interrupted, or what is made would grow a tree that is to end (C-155).
    fn end_before_children(&self, phase: Phase) -> Option<JobEnd> {
        match self.interrupted() {
            true => Some(JobEnd::Interrupted),
            false if phase.is_deletion() => None,
            false => end_of_making(&self.host.stores, &self.key, &self.workflow.job),
        }
    }

    /// What has failed in this job of the subobjects that it came to: a phase passed is not written, so it may have come to them before
    /// it was interrupted (C-32, INS-74).
    fn failed_below(&self, phase: Phase) -> Option<Failure> {
        let (mut ended, job) = (self.related(), &self.workflow.job);
        ended.retain(|related_object| related_object.ids.has_finished(job));
        let outcome = match phase.is_deletion() {
            true => plan::deleting(&ended, job),
            false => plan::progressing(&ended, &[], job),
        };
        match outcome {
            Ok(Verdict::Failed(failure)) => Some(failure),
            Ok(Verdict::Done) | Err(_) => None,
        }
    }
}

/// Whether a job that was interrupted before this phase has not come to its subobjects, none of which works for it then (C-32).
fn begins_with_children(phase: Phase) -> bool {
    match phase {
        Phase::Init | Phase::ObjectsCreated | Phase::InitDelete | Phase::TriggerDelete => true,
        Phase::CleanupOrphaned | Phase::Progressing | Phase::Completing | Phase::Deleting => false,
        Phase::Succeeded | Phase::Failed | Phase::DeleteFailed => false,
    }
}
