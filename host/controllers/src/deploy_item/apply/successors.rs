//! What stays where an item goes and its Execution does not, as another of its items goes on with it (C-174, C-175).

use std::{collections::BTreeMap, mem};

use orangery_api::{job::Job as _, marks::Marks as _};
use orangery_apply::{ClusterIdentity, ItemState, Owner, Purpose, ReachedCluster, Sameness, hand_over};
use orangery_core::{
    error::Failure,
    name::ObjectName,
    phase::item::Item as Phase,
    step::{Halt, Step},
};
use orangery_proposal::{ClusterRef, inventory::Inventory};
use orangery_reconcile::Key;

use crate::{
    deploy_item::{
        gather::{GatheredItem, ItemReconciliation},
        status::{StatusWriter, provider_status::state_of},
    },
    object::uid_of,
    refresh,
};

impl ItemReconciliation {
    /// Leaves to other items what they go on with. Whether nothing is left to take away: a release stays whole, with its objects and
    /// revisions.
    pub(super) async fn leave_to_successors(&mut self, state: &mut ItemState) -> Step<bool> {
        if !self.gathered.leaves_its_execution().await? {
            return Ok(false);
        }
        let is_where_it_was = self.is_where_it_was(state).await?;
        match self.gathered.successor_of_release().await? {
            Some(item) if is_where_it_was => {
                let left = mem::take(&mut state.inventory);
                self.list_with(&item, &left, state).await?;
                let is_current = self.status.fence();
                hand_over(&self.gathered.job(Purpose::Uninstall, &is_current), left.0.keys(), &item).await?;
                state.notes.push(format!("the release of this item stays: DeployItem {} goes on with it", item.name));
                self.tell_what_stays(state);
                Ok(true)
            }
            Some(_) | None => {
                if is_where_it_was {
                    Box::pin(self.leave_to_charts(state)).await?;
                }
                let successors = self.gathered.taken_over(&state.inventory).await?;
                if is_where_it_was {
                    let mut left: BTreeMap<ObjectName, (&Owner, Inventory)> = BTreeMap::new();
                    for (located, entry) in &state.inventory.0 {
                        let Some(item) = successors.get(located) else { continue };
                        let (_, left) = left.entry(item.name.clone()).or_insert_with(|| (item, Inventory::default()));
                        left.0.insert(located.clone(), entry.clone());
                    }
                    for (item, left) in left.values() {
                        self.list_with(item, left, state).await?;
                    }
                }
                self.gathered.successors = successors;
                Ok(false)
            }
        }
    }

    /// Lists with an item what it goes on with: whatever becomes of its next job, that goes with it (C-271). A state that others have
    /// written is left as it is, and so is one of a deployer that is not ours.
    pub(super) async fn list_with(&self, successor: &Owner, left: &Inventory, state: &ItemState) -> Step<()> {
        let GatheredItem { host, key, item: leaving, .. } = &self.gathered;
        let key = Key { name: successor.name.clone(), ..key.clone() };
        refresh::read(host, &host.stores.deploy_items, &key).await?;
        let found = host.stores.deploy_items.get(&key);
        let Some(item) = found.filter(|item| uid_of(item.as_ref()) == successor.uid && !item.is_deleting()) else {
            return Err(Halt::Retry(going(&key)));
        };
        let Some(deployer) = host.deployer_of(&item) else { return Ok(()) };
        let job = item.job_id().clone();
        let read = state_of(host, &item, &job).await?;
        let is_elsewhere = |(on, ours): (&ClusterRef, &ClusterIdentity)| {
            read.state.clusters.get(on).is_some_and(|theirs| theirs.beside(ours) != Sameness::Same)
        };
        if read.seal_error.is_some() || state.clusters.iter().any(is_elsewhere) {
            return Ok(());
        }
        let mut theirs = read.state;
        if !read.is_of_origin {
            theirs.deletion_order.clear();
        }
        for (located, entry) in &left.0 {
            theirs.inventory.0.entry(located.clone()).or_insert_with(|| entry.clone());
        }
        for (on, identity) in &state.clusters {
            theirs.clusters.entry(on.clone()).or_insert_with(|| identity.clone());
        }
        for (_, uid) in state.cluster_uids() {
            let kept = state.credentials.get(uid).filter(|_| leaving.spec.target == item.spec.target);
            theirs.credentials.extend(kept.map(|kept| (uid.to_owned(), kept.clone())));
        }
        let mut status =
            StatusWriter::new(host, &item, (&job, Phase::Progressing, false), deployer.identity(), &host.now());
        status.keep(&theirs).await
    }

    /// Whether the Target still names the cluster that the item has its objects in (C-35).
    async fn is_where_it_was(&self, state: &ItemState) -> Step<bool> {
        let Some(before) = state.clusters.get(&ClusterRef::Target) else { return Ok(true) };
        let now = ReachedCluster::of(&*self.gathered.clusters.cluster(&ClusterRef::Target).await?).await?;
        Ok(before.against(&now) == Sameness::Same)
    }
}

fn going(item: &Key) -> Failure {
    let message =
        format!("DeployItem {item}, to which this item leaves objects, is going itself; that is looked at anew");
    Failure::new("Uninstall", "Conflict", message)
}
