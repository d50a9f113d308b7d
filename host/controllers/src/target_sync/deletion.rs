//! The end of a TargetSync: what it has made goes, each as soon as nothing uses it (C-374).

use orangery_api::{FINALIZER, marks::Marks as _, sync::TargetSync};
use orangery_core::step::{Halt, Step};
use orangery_reconcile::NextCall;

use super::SyncCall;

impl SyncCall<'_> {
    /// Deletes its Targets and Secrets, and lets the TargetSync go. What is in use is held by its guard from then on: it is not renewed
    /// any more, and its items are uninstalled by it.
    pub(super) async fn delete(mut self) -> Result<NextCall, Halt> {
        if !self.sync.has_finalizer(FINALIZER) {
            return Ok(NextCall::Settled);
        }
        let left = self.take_all_away().await;
        self.clusters.keep_waiting();
        if let Err(halt) = left {
            self.outcome.halts(halt);
            return self.finish().await;
        }
        let mut draft = TargetSync::clone(&self.sync);
        draft.metadata.finalizers.iter_mut().for_each(|held| held.retain(|name| name != FINALIZER));
        let writer = self.host.writer(&self.host.stores.target_syncs);
        writer.update(&self.sync, &draft).await.map_err(|error| error.halt("UpdateTargetSync"))?;
        Ok(NextCall::Settled)
    }

    async fn take_all_away(&mut self) -> Step<()> {
        let own = self.own_secrets()?;
        let mut names = self.own_targets();
        names.extend(own.keys().cloned());
        names.sort();
        names.dedup();
        for name in names {
            self.take_away(&name, &own).await?;
        }
        Ok(())
    }
}
