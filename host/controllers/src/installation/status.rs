//! Where a reconciliation of an Installation rests: one write.

use kube::ResourceExt;
use orangery_api::{installation::Installation, reference::LocalReference};
use orangery_core::{
    phase::installation::Installation as Phase,
    step::Halt,
    walk::{Rest, Transition},
};
use orangery_reconcile::NextCall;

use super::{gather::siblings, reconciliation::InstallationReconciliation, trigger::request};
use crate::job::{self, JobStatus};

impl InstallationReconciliation<'_> {
    /// Writes where the walk through the phases rests: one write, in which an ended job also names the siblings to be triggered
    /// next, so that a crash between cannot lose them (C-14, C-25).
    pub(super) async fn rest(
        mut self,
        before: &Installation,
        phase: Phase,
        transition: Transition<Phase>,
    ) -> Result<NextCall, Halt> {
        let store = &self.host.stores.installations;
        let Some(rest) = job::resting(self.host, before, phase, &transition)? else {
            self.shared.blueprints.forget(before);
            job::release(self.host, store, before).await?;
            return Ok(NextCall::Settled);
        };
        let dependents = if rest.ended { self.dependents(&rest) } else { Vec::new() };
        let triggers = !dependents.is_empty();
        let now = self.host.now();
        let status = self.draft.status.get_or_insert_default();
        if let Some(workflow) = &mut status.workflow {
            workflow.write_records(&self.workflow.records);
        }
        status.rest(&rest, self.generation, &now);
        status.dependents_to_trigger = dependents;
        if rest.ended {
            self.shared.blueprints.forget(before);
        }
        let writer = self.host.writer(store);
        let written = writer.update_status(before, &self.draft).await;
        let written = written.map_err(|error| job::unwritten(&transition, error.halt("UpdateStatus")))?;
        let next = job::next(transition, None)?;
        Ok(if rest.ended && (triggers || request::is_requested(&written)) { NextCall::Again } else { next })
    }

    /// The roots to be triggered after this job: those that import what this root exports, after a success only
    /// (INS-43, INS-44, C-14). Children are woken by the end of the job itself.
    fn dependents(&self, rest: &Rest<Phase>) -> Vec<LocalReference> {
        let promised = self.draft.spec.optimization.as_ref().is_some_and(|promise| promise.has_no_sibling_exports);
        if !self.draft.is_root() || rest.phase != Phase::Succeeded || promised {
            return Vec::new();
        }
        let successors = siblings::successors(&self.host.stores, &self.draft);
        successors.iter().map(|sibling| LocalReference { name: sibling.name_any() }).collect()
    }
}
