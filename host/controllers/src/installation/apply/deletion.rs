//! The delete calls for subobjects (INS-62 … INS-64, INS-78).

use std::sync::Arc;

use orangery_api::{annotation, installation::Installation, marks::Marks};
use orangery_core::{
    phase::{Phase as _, installation::Installation as Phase},
    step::Step,
};

use orangery_reconcile::Key;

use super::super::reconciliation::InstallationReconciliation;
use crate::{
    object::{add_finalizer, before_deletion, mark},
    tree::parent,
};

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
        let known = self.host.stores.installations.get(&Key { name: name.into(), ..self.key.clone() });
        let Some(orphan) = known.filter(|sub| parent(sub) == self.key.name.as_str() && !sub.is_deleting()) else {
            return Ok(());
        };
        let marked = self.mark_leaving(&orphan).await?;
        let writer = self.host.writer(&self.host.stores.installations);
        writer.delete(&marked).await.map_err(|error| error.halt("DeleteOrphan"))
    }

    /// The job goes to a sub-installation that goes in the middle of it, as one that a user has deleted. Its successors are not
    /// waited for: they wait for this job, which waits for it (C-158).
    pub(in crate::installation) async fn trigger_leaving(&mut self, sub: &Arc<Installation>) -> Step<()> {
        let marked = self.mark_leaving(sub).await?;
        self.trigger_subinstallation(&marked, Phase::INIT_DELETE).await
    }

    /// A sub-installation that does not wait for its successors when it goes.
    async fn mark_leaving(&self, sub: &Arc<Installation>) -> Step<Arc<Installation>> {
        let mut after = Installation::clone(sub);
        if !sub.is_deleting() {
            add_finalizer(&mut after);
        }
        mark(&mut after, annotation::DELETE_IGNORE_SUCCESSORS);
        if after == **sub {
            return Ok(Arc::clone(sub));
        }
        let writer = self.host.writer(&self.host.stores.installations);
        writer.update(sub, &after).await.map_err(|error| error.halt("MarkOrphan"))
    }
}
