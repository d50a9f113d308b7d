//! The begin of a deletion: successors first, then the delete call for all subobjects (INS-56 … INS-64, INS-78).

use kube::ResourceExt;
use orangery_api::{annotation, execution::Execution, installation::Installation, marks::Marks};
use orangery_core::{
    plan::installation::{self as plan, Peer},
    step::{Step, Verdict},
};
use orangery_reconcile::Watched;

use super::{Run, children::peer, sibling};

impl Run<'_> {
    /// `InitDelete`.
    pub(super) async fn init_delete(&mut self) -> Step<Verdict> {
        let optimization = self.draft.spec.optimization.clone().unwrap_or_default();
        let ignored = self.draft.flag(annotation::DELETE_IGNORE_SUCCESSORS) || optimization.has_no_sibling_exports;
        if !ignored {
            let successors = sibling::successors(self.host, &self.draft);
            let peers: Vec<Peer> = successors.iter().map(|sibling| peer(sibling)).collect();
            plan::successors(&peers, &self.job)?;
        }
        let without_uninstall = self.draft.flag(annotation::DELETE_WITHOUT_UNINSTALL);
        for sub in self.subinstallations() {
            let writer = self.host.writer(&self.host.stores.installations);
            let mut current = sub.clone();
            if without_uninstall && !sub.flag(annotation::DELETE_WITHOUT_UNINSTALL) {
                let mut after = Installation::clone(&sub);
                mark(&mut after, annotation::DELETE_WITHOUT_UNINSTALL);
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
        if without_uninstall && !execution.flag(annotation::DELETE_WITHOUT_UNINSTALL) {
            let mut after = Execution::clone(&execution);
            mark(&mut after, annotation::DELETE_WITHOUT_UNINSTALL);
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
        mark(&mut after, annotation::DELETE_IGNORE_SUCCESSORS);
        let marked = writer.update(&orphan, &after).await.map_err(|error| error.halt("MarkOrphan"))?;
        writer.delete(&marked).await.map_err(|error| error.halt("DeleteOrphan"))
    }
}

fn mark<K: Watched>(object: &mut K, key: &str) {
    object.meta_mut().annotations.get_or_insert_default().insert(key.to_owned(), "true".to_owned());
}
