//! What stays where an item goes and its Execution does not, as another of its items goes on with it (C-174, C-175).

use orangery_apply::ItemState;
use orangery_core::step::Step;
use orangery_proposal::ClusterRef;

use crate::deploy_item::gather::ItemReconciliation;

impl ItemReconciliation {
    /// Learns which objects stay. Whether nothing is left to take away: a release stays whole, with its objects and revisions.
    pub(super) async fn leave_to_successors(&mut self, state: &mut ItemState) -> Step<bool> {
        if !self.gathered.leaves_its_execution().await? {
            return Ok(false);
        }
        let item = match self.gathered.successor_of_release().await? {
            Some(item) if self.is_where_it_was(state).await? => item,
            Some(_) | None => {
                self.gathered.successors = self.gathered.taken_over(&state.inventory).await?;
                return Ok(false);
            }
        };
        state.inventory.0.clear();
        state.notes.push(format!("the release of this item stays: DeployItem {item} goes on with it"));
        self.tell_what_stays(state);
        Ok(true)
    }

    /// Whether the Target still names the cluster that the item has its objects in (C-35).
    async fn is_where_it_was(&self, state: &ItemState) -> Step<bool> {
        let Some(before) = state.clusters.get(&ClusterRef::Target) else { return Ok(true) };
        let now = self.gathered.clusters.cluster(&ClusterRef::Target).await?.uid().await?;
        Ok(now.is_none_or(|now| now == *before))
    }
}
