//! The delete calls for subobjects (INS-62 … INS-64, INS-78).

use kube::ResourceExt;
use orangery_api::{annotation, installation::Installation, marks::Marks};
use orangery_core::step::Step;

use super::super::reconciliation::InstallationReconciliation;
use crate::object::{add_finalizer, before_deletion, mark};

impl InstallationReconciliation<'_> {
    /// The delete call for the sub-installations; their finalizers keep them.
    pub(in crate::installation) async fn delete_subinstallations(&self, without_uninstall: bool) -> Step<()> {
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
        Ok(())
    }

    /// The delete call for the Execution; its finalizer keeps it.
    pub(in crate::installation) async fn delete_execution(&self, without_uninstall: bool) -> Step<()> {
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
    pub(in crate::installation) async fn delete_orphan(&self, name: &str) -> Step<()> {
        let Some(orphan) = self.subinstallations().into_iter().find(|sub| sub.name_any() == name && !sub.is_deleting())
        else {
            return Ok(());
        };
        let writer = self.host.writer(&self.host.stores.installations);
        let mut after = Installation::clone(&orphan);
        add_finalizer(&mut after);
        mark(&mut after, annotation::DELETE_IGNORE_SUCCESSORS);
        let marked = writer.update(&orphan, &after).await.map_err(|error| error.halt("MarkOrphan"))?;
        writer.delete(&marked).await.map_err(|error| error.halt("DeleteOrphan"))
    }
}
