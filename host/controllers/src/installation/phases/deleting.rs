//! The deletion of an Installation: successors first, then its subobjects, until none is left (INS-56 … INS-69, INS-78).

use kube::ResourceExt;
use orangery_api::{annotation, marks::Marks};
use orangery_core::{
    phase::{Phase as _, installation::Installation as Phase},
    plan::installation as plan,
    step::{Step, Until, Verdict, Waiting},
    walk::{Transition, advance},
    workflow::GateKind,
};

use super::super::{
    gather::{related::related, siblings},
    reconciliation::InstallationReconciliation,
};
use crate::{job::Run as _, workflow::deleting};

/// The finalizer by which Kubernetes frees what an object owns before the object goes.
const ORPHAN: &str = "orphan";

impl InstallationReconciliation<'_> {
    /// The begin of a deletion. The delete calls for subobjects hand no job down, so they come before the id is written; the next
    /// reconciliation passes it to the subobjects.
    pub(in crate::installation) async fn begin_deletion(&mut self) -> (Phase, Transition<Phase>) {
        match advance(Phase::InitDelete, self.phase(Phase::InitDelete).await) {
            Transition::Next(_) => (Phase::Deleting, advance(Phase::Deleting, self.until_gone())),
            other => (Phase::InitDelete, other),
        }
    }

    /// `InitDelete`. `--cascade=orphan` keeps the sub-installations: the garbage collector frees them first, and they are roots
    /// from then on (C-23).
    pub(super) async fn init_delete(&mut self) -> Step<Verdict> {
        if self.draft.has_finalizer(ORPHAN) {
            return Err(Waiting::nowhere("Finalizer", ORPHAN, Until::Gone).into());
        }
        self.check_successors()?;
        let without_uninstall = self.draft.flag(annotation::DELETE_WITHOUT_UNINSTALL);
        self.delete_subinstallations(without_uninstall).await?;
        self.delete_execution(without_uninstall).await?;
        Ok(Verdict::Done)
    }

    fn check_successors(&self) -> Step<()> {
        let promised = self.draft.spec.optimization.as_ref().is_some_and(|promise| promise.has_no_sibling_exports);
        if promised || self.draft.flag(annotation::DELETE_IGNORE_SUCCESSORS) {
            return Ok(());
        }
        let stores = &self.host.stores;
        // Those that come before it as well would wait for it in turn (C-17).
        let ancestors = siblings::ancestors(stores, &self.draft);
        let successors = siblings::successors(stores, &self.draft);
        let successors = successors.filter(|successor| !ancestors.contains_key(&successor.name_any()));
        plan::successors(&related(successors), &self.workflow.job)
    }

    /// `TriggerDelete`: the job goes to all subobjects and so starts their deletion (INS-65).
    pub(super) async fn trigger_delete(&mut self) -> Step<Verdict> {
        // Where a gate expression says when something is gone, what comes after it is asked to go then.
        if !self.is_deletion_gated() {
            for sub in self.subinstallations() {
                self.trigger_subinstallation(&sub, Phase::INIT_DELETE).await?;
            }
        }
        self.delete_by_execution().await?;
        Ok(Verdict::Done)
    }

    /// `Deleting`: all subobjects gone? One that was still deploying in this very job when its deletion began gets the job once
    /// more as soon as it has ended.
    pub(super) async fn deleting(&mut self) -> Step<Verdict> {
        if self.is_deletion_gated() {
            return deleting(self).await;
        }
        self.trigger_delete().await?;
        self.until_gone()
    }

    /// Whether all subobjects are gone, and if not, for which it waits.
    fn until_gone(&self) -> Step<Verdict> {
        match plan::deleting(&self.related(), &self.workflow.job) {
            // Gate expressions are asked at the next reconciliation.
            Ok(Verdict::Done) if self.is_deletion_gated() => {
                Err(Waiting::nowhere("GateExpression", "deletedWhen", Until::Met).into())
            }
            outcome => outcome,
        }
    }

    /// Whether the deletion has to wait for more than objects that are gone.
    fn is_deletion_gated(&self) -> bool {
        let asks = self.workflow.items.list.iter().any(|item| item.gates.get(GateKind::Deleted).is_some());
        asks && !self.draft.flag(annotation::DELETE_WITHOUT_UNINSTALL)
    }
}
