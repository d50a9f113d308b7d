//! Pruning: what has left the proposals of an item goes, but for what another item takes over, and what is ignored now.

use std::collections::BTreeSet;

use orangery_proposal::inventory::{LocatedObject, groups};

use super::Executor;
use crate::{apply_error::ApplyError, deletion::stays, scope::clusters_of};

impl Executor<'_> {
    /// Deletes what is in the inventory and in none of this job's proposals.
    pub(super) async fn prune(&mut self) -> Result<(), ApplyError> {
        if !self.prunes() {
            return Ok(());
        }
        let leaving = self.state.inventory.leaving(&self.all_planned());
        let check = self.objects.check_clusters(clusters_of(&leaving), self.state).await?;
        self.refuse_strays(&check.strays)?;
        let planned = self.all_planned();
        let mut leaving = self.state.inventory.leaving(&planned);
        let held = self.hold_back(&leaving).await?;
        let ignored = self.objects.job.items.ignored(&leaving);
        leaving.retain(|located| !held.contains(located) && !ignored.contains(located));
        self.objects.delete_groups(groups(&self.proposal.pruning_order, &leaving), self.state).await?;
        // Kept objects, those that are ignored now, and what no group takes in, stay in the cluster and are forgotten.
        self.state.inventory.0.retain(|located, _| planned.contains(located) || held.contains(located));
        Ok(())
    }

    /// Objects that another item of the Execution names stay until that one has written them, and in the inventory as long as they
    /// have the mark of this item: so none is deleted that moves from one item to another, whichever comes first (C-163).
    async fn hold_back(&mut self, leaving: &BTreeSet<LocatedObject>) -> Result<BTreeSet<LocatedObject>, ApplyError> {
        let mut held = BTreeSet::new();
        if leaving.is_empty() {
            return Ok(held);
        }
        for (located, item) in self.objects.job.items.named(leaving).await? {
            let live = match self.objects.handle_in_any_version(&located).await? {
                Some(handle) => handle.get().await?,
                None => None,
            };
            if live.is_some_and(|live| self.objects.job.owns(&live)) {
                self.state
                    .notes
                    .push(stays(&located, &format!("DeployItem {item} names it as well, and takes it over")));
                held.insert(located);
            }
        }
        Ok(held)
    }
}
