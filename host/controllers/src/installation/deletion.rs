//! The begin of a deletion: successors first, then the delete call for all subobjects (INS-56 … INS-64, INS-78).

use kube::ResourceExt;
use orangery_api::{annotation, installation::Installation, marks::Marks};
use orangery_core::{
    plan::installation::{self as plan, Peer},
    step::{Halt, Step, Until, Verdict},
};

use super::{Run, children::peer, sibling};
use crate::object::{before_deletion, hold, mark};

/// The finalizer by which Kubernetes frees what an object owns before the object goes.
const ORPHAN: &str = "orphan";

impl Run<'_> {
    /// `InitDelete`. Who deletes with `--cascade=orphan` keeps the sub-installations: the garbage collector frees them
    /// first, and they are roots from then on (C-23).
    pub(super) async fn init_delete(&mut self) -> Step<Verdict> {
        if self.draft.has_finalizer(ORPHAN) {
            return Err(Halt::wait("Finalizer", ORPHAN, Until::Gone));
        }
        let optimization = self.draft.spec.optimization.clone().unwrap_or_default();
        let ignored = self.draft.flag(annotation::DELETE_IGNORE_SUCCESSORS) || optimization.has_no_sibling_exports;
        if !ignored {
            let mut successors = sibling::successors(self.host, &self.draft);
            // Those that come before it as well would wait for it in turn (C-17).
            let ancestors = sibling::ancestors(self.host, &self.draft);
            successors.retain(|successor| !ancestors.contains_key(&successor.name_any()));
            let peers: Vec<Peer> = successors.iter().map(|sibling| peer(sibling)).collect();
            plan::successors(&peers, &self.job)?;
        }
        let without_uninstall = self.draft.flag(annotation::DELETE_WITHOUT_UNINSTALL);
        for sub in self.subinstallations() {
            let writer = self.host.writer(&self.host.stores.installations);
            let mut current = sub.clone();
            if let Some(after) = before_deletion(sub.as_ref(), without_uninstall) {
                current = writer.update(&sub, &after).await.map_err(|error| error.halt("MarkSubinstallation"))?;
            }
            if !current.is_deleting() {
                writer.delete(&current).await.map_err(|error| error.halt("DeleteSubinstallation"))?;
            }
        }
        self.delete_execution(without_uninstall).await?;
        Ok(Verdict::Done)
    }

    /// The delete call for the Execution; its finalizer keeps it.
    pub(super) async fn delete_execution(&self, without_uninstall: bool) -> Step<()> {
        let Some(execution) = self.execution() else { return Ok(()) };
        let writer = self.host.writer(&self.host.stores.executions);
        let mut current = execution.clone();
        if let Some(after) = before_deletion(execution.as_ref(), without_uninstall) {
            current = writer.update(&execution, &after).await.map_err(|error| error.halt("MarkExecution"))?;
        }
        if current.is_deleting() {
            return Ok(());
        }
        writer.delete(&current).await.map_err(|error| error.halt("DeleteExecution"))
    }

    /// The delete call for a sub-installation whose template is gone: its successors are not waited for (INS-25, INS-26).
    pub(super) async fn delete_orphan(&self, name: &str) -> Step<()> {
        let Some(orphan) = self.subinstallations().into_iter().find(|sub| sub.name_any() == name && !sub.is_deleting())
        else {
            return Ok(());
        };
        let writer = self.host.writer(&self.host.stores.installations);
        let mut after = Installation::clone(&orphan);
        hold(&mut after);
        mark(&mut after, annotation::DELETE_IGNORE_SUCCESSORS);
        let marked = writer.update(&orphan, &after).await.map_err(|error| error.halt("MarkOrphan"))?;
        writer.delete(&marked).await.map_err(|error| error.halt("DeleteOrphan"))
    }
}
