//! The phases of an Installation: each one gathers, has the core decide, and applies.

mod completing;
mod deleting;
mod init;
mod progressing;
mod workflow;

use orangery_core::{
    job::interrupted,
    phase::installation::Installation as Phase,
    step::{Step, Verdict},
    walk::{beside_children, ending},
};

use super::reconciliation::InstallationReconciliation;
use crate::job;

impl job::Run for InstallationReconciliation<'_> {
    type Phase = Phase;

    async fn phase(&mut self, phase: Phase) -> Step<Verdict> {
        if begins_with_children(phase) && self.interrupted() && !self.has_working_children() {
            return Ok(Verdict::Failed(interrupted()));
        }
        let result = match phase {
            Phase::Init => self.init().await,
            Phase::CleanupOrphaned => self.cleanup_orphaned().await,
            Phase::ObjectsCreated => self.objects_created().await,
            Phase::Progressing => self.progressing().await,
            Phase::Completing => ending(self.completing().await, self.end()),
            Phase::InitDelete => self.init_delete().await,
            Phase::TriggerDelete => self.trigger_delete().await,
            Phase::Deleting => self.deleting().await,
            Phase::Succeeded | Phase::Failed | Phase::DeleteFailed => Ok(Verdict::Done),
        };
        beside_children(result, || self.has_working_children())
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
