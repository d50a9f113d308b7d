//! Deleting: objects of an inventory by groups, and removals of a stage. Gone means gone: whatever goes slowly is
//! waited for by a watch (C-22).

use std::sync::Arc;

use futures::{StreamExt, stream};
use orangery_core::step::{Halt, Step, Until};
use orangery_proposal::{
    ClusterRef, ObjectRemoval, Selection,
    check::key_of,
    inventory::{Group, Inventory, InventoryEntry, InventoryPolicy, LocatedObject, groups},
    overlay::{is_unchanged, overlay},
};
use serde_json::{Value, json};

use crate::{
    ItemState, Job,
    apply_error::{ApplyError, all},
    executor::AT_ONCE,
    site::Site,
    write::is_of_item,
    writer::{ObjectWriter, Spot},
};
use orangery_cluster::{Deletion, Error, Observed, is_being_deleted};

/// Deletes the inventory of an item by its deletion order, as far as it goes without waiting. What is gone leaves the
/// inventory of the state; what is kept, or in no group, stays in the cluster. Needs neither component nor configuration
/// (C-28).
///
/// # Errors
/// A wait for what goes slowly, or why something cannot be deleted.
pub async fn delete(job: &Job<'_>, state: &mut ItemState) -> Step<()> {
    if state.inventory.0.is_empty() {
        return Ok(());
    }
    let writer = ObjectWriter::Server;
    let site = Site::new(job, &writer, None);
    let groups = groups(&state.deletion_order, &state.inventory.ending());
    site.delete_groups(groups, &mut state.inventory).await.map_err(|error| error.halt)
}

/// Where the deletion of one object stands.
enum Stand {
    Gone,
    /// It goes; until when is the watch's to tell.
    Going,
}

impl Site<'_> {
    /// Deletes group after group; the next waits until this one is gone.
    pub(crate) async fn delete_groups(&self, groups: Vec<Group>, inventory: &mut Inventory) -> Result<(), ApplyError> {
        for Group { on, members, matching, force } in groups {
            let entry = |located: &LocatedObject| inventory.0.get(located).cloned().unwrap_or_default();
            let members: Vec<_> = members.into_iter().map(|located| (entry(&located), located)).collect();
            let deletions: Vec<_> = members
                .into_iter()
                .map(|(entry, located)| async move {
                    let result = self.delete_member(&located, &entry, force).await;
                    (located, result)
                })
                .collect();
            let results: Vec<_> = stream::iter(deletions).buffered(AT_ONCE).collect().await;
            let mut outcomes = Vec::new();
            for (located, result) in results {
                match result {
                    Ok(()) => drop(inventory.0.remove(&located)),
                    Err(error) => outcomes.push(Err(error)),
                }
            }
            for selection in matching {
                outcomes.push(self.delete_matching(&on, &selection, force).await);
            }
            all(outcomes)?;
        }
        Ok(())
    }

    /// Removes the objects of a stage and waits until they are gone.
    pub(crate) async fn remove(&self, removals: &[ObjectRemoval]) -> Result<(), ApplyError> {
        let deletions: Vec<_> = removals
            .iter()
            .map(|removal| {
                let located = LocatedObject { on: removal.on.clone(), key: removal.key.clone() };
                async move { self.delete_member(&located, &InventoryEntry::default(), removal.force).await }
            })
            .collect();
        all(stream::iter(deletions).buffered(AT_ONCE).collect::<Vec<_>>().await).map(drop)
    }

    async fn delete_member(
        &self,
        located: &LocatedObject,
        entry: &InventoryEntry,
        force: bool,
    ) -> Result<(), ApplyError> {
        let spot = match self.spot(located).await {
            Ok(spot) => spot,
            Err(error) if error.is_not_served() => return Ok(()),
            Err(error) => return Err(error),
        };
        match self.begin(&spot, entry).await? {
            Stand::Gone => Ok(()),
            Stand::Going => self.until_gone(&spot, force).await,
        }
    }

    async fn begin(&self, spot: &Spot<'_>, entry: &InventoryEntry) -> Result<Stand, ApplyError> {
        match spot.observed() {
            Some(Observed::Absent) => return Ok(Stand::Gone),
            Some(Observed::Present(live)) if is_being_deleted(&live) => return Ok(Stand::Going),
            Some(Observed::Present(_) | Observed::Unknown | Observed::Forbidden(_)) | None => {}
        }
        if entry.policy == InventoryPolicy::Fallback || entry.before_deletion.is_some() {
            let Some(live) = spot.get().await? else { return Ok(Stand::Gone) };
            if entry.policy == InventoryPolicy::Fallback && !is_of_item(&live, self.job) {
                return Ok(Stand::Gone);
            }
            if let Some(patch) = &entry.before_deletion
                && !is_being_deleted(&live)
            {
                self.change_before(spot, &live, patch).await?;
            }
        }
        self.job.fence()?;
        match spot.delete().await? {
            Deletion::Gone => Ok(Stand::Gone),
            Deletion::Pending(_) => Ok(Stand::Going),
        }
    }

    async fn change_before(&self, spot: &Spot<'_>, live: &Value, patch: &Value) -> Result<(), ApplyError> {
        let mut body = live.clone();
        overlay(&mut body, patch);
        if is_unchanged(live, &body) {
            return Ok(());
        }
        self.job.fence()?;
        match spot.replace(&body).await {
            // Gone meanwhile: nothing is left to change.
            Ok(_) | Err(Error::Missing { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// A wait, unless the object is gone by now.
    async fn until_gone(&self, spot: &Spot<'_>, force: bool) -> Result<(), ApplyError> {
        let waiting = || Err(Halt::from(spot.key.waiting(Until::Gone)).into());
        // A watch that is not synced yet cannot say that the object is gone, and calls again once it is.
        let live = match self.watch(spot) {
            Ok(None) => return Ok(()),
            Ok(Some(live)) => live,
            Err(ApplyError { halt: Halt::Wait(_), .. }) => return waiting(),
            Err(error) => return Err(error),
        };
        if force && live.pointer("/metadata/finalizers").and_then(Value::as_array).is_some_and(|held| !held.is_empty())
        {
            self.job.fence()?;
            match spot.patch(&json!({"metadata": {"finalizers": null}})).await {
                Ok(_) | Err(Error::Missing { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        waiting()
    }

    /// Deletes whatever matches, managed or not.
    async fn delete_matching(&self, on: &ClusterRef, selection: &Selection, force: bool) -> Result<(), ApplyError> {
        let (cluster, resource) = match self.resource(on, &selection.api_version, &selection.kind).await {
            Ok(found) => found,
            Err(error) if error.is_not_served() => return Ok(()),
            Err(error) => return Err(error),
        };
        let objects = cluster.list(&resource, selection).await?;
        let keys = objects.iter().filter_map(|object| key_of(object).ok());
        let spots = keys.map(|key| self.spot_of(on, key, Arc::clone(&cluster), Arc::clone(&resource)));
        let deletions: Vec<_> = spots
            .map(|spot| async move {
                match self.begin(&spot, &InventoryEntry::default()).await? {
                    Stand::Gone => Ok(()),
                    Stand::Going => self.until_gone(&spot, force).await,
                }
            })
            .collect();
        all(stream::iter(deletions).buffered(AT_ONCE).collect::<Vec<_>>().await).map(drop)
    }
}
