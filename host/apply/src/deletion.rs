//! Deleting: objects of an inventory by groups, and removals of a stage. Gone means gone: whatever goes slowly is
//! waited for by a watch (C-22).

use std::sync::Arc;

use futures::{StreamExt, stream};
use orangery_core::step::{Halt, Step, Until};
use orangery_proposal::{
    ClusterRef, ObjectRemoval, Selection,
    check::key_of,
    inventory::{Entry, Group, Inventory, Located, Policy, groups},
    overlay::{is_unchanged, overlay},
};
use serde_json::{Value, json};

use crate::{
    Error, Job, Page,
    cluster::Deletion,
    error::{NOT_SERVED, Setback, all},
    run::AT_ONCE,
    site::{Site, Spot},
    watch::Sight,
    write::{is_going, is_of_item},
};

/// Deletes the inventory of an item by its deletion order, as far as it goes without waiting. What is gone leaves the
/// page's inventory; what is kept, or in no group, stays in the cluster. Needs neither component nor configuration
/// (C-28).
///
/// # Errors
/// A wait for what goes slowly, or why something cannot be deleted.
pub async fn delete(job: &Job<'_>, page: &mut Page) -> Step<()> {
    if page.inventory.0.is_empty() {
        return Ok(());
    }
    let site = Site::new(job, None);
    let groups = groups(&page.deletion_order, &page.inventory.ending());
    site.delete_groups(groups, &mut page.inventory).await.map_err(|setback| setback.halt)
}

/// Where the deletion of one object stands.
enum Stand {
    Gone,
    /// It goes; until when is the watch's to tell.
    Going,
}

impl Site<'_> {
    /// Deletes group after group; the next waits until this one is gone.
    pub(crate) async fn delete_groups(&self, groups: Vec<Group>, inventory: &mut Inventory) -> Result<(), Setback> {
        for Group { on, members, matching, force } in groups {
            let entry = |located: &Located| inventory.0.get(located).cloned().unwrap_or_default();
            let members: Vec<_> = members.into_iter().map(|located| (entry(&located), located)).collect();
            let deletions: Vec<_> = members
                .into_iter()
                .map(|(entry, located)| async move {
                    let result = self.delete_member(&located, &entry, force).await;
                    (located, result)
                })
                .collect();
            let results: Vec<_> = stream::iter(deletions).buffered(AT_ONCE).collect().await;
            let mut setbacks = Vec::new();
            for (located, result) in results {
                match result {
                    Ok(()) => drop(inventory.0.remove(&located)),
                    Err(setback) => setbacks.push(Err(setback)),
                }
            }
            for selection in matching {
                setbacks.push(self.delete_matching(&on, &selection, force).await);
            }
            all(setbacks)?;
        }
        Ok(())
    }

    /// Removes the objects of a stage and waits until they are gone.
    pub(crate) async fn remove(&self, removals: &[ObjectRemoval]) -> Result<(), Setback> {
        let deletions: Vec<_> = removals
            .iter()
            .map(|removal| {
                let located = Located { on: removal.on.clone(), key: removal.key.clone() };
                async move { self.delete_member(&located, &Entry::default(), removal.force).await }
            })
            .collect();
        all(stream::iter(deletions).buffered(AT_ONCE).collect::<Vec<_>>().await).map(drop)
    }

    async fn delete_member(&self, located: &Located, entry: &Entry, force: bool) -> Result<(), Setback> {
        let spot = match self.spot(located).await {
            Ok(spot) => spot,
            Err(setback) if is_not_served(&setback) => return Ok(()),
            Err(setback) => return Err(setback),
        };
        match self.begin(&spot, entry).await? {
            Stand::Gone => Ok(()),
            Stand::Going => self.until_gone(&spot, force).await,
        }
    }

    async fn begin(&self, spot: &Spot, entry: &Entry) -> Result<Stand, Setback> {
        match spot.cluster.watches().sight(&spot.resource, &spot.place()) {
            Some(Sight::Absent) => return Ok(Stand::Gone),
            Some(Sight::Present(live)) if is_going(&live) => return Ok(Stand::Going),
            Some(Sight::Present(_) | Sight::Unknown | Sight::Blind(_)) | None => {}
        }
        if entry.policy == Policy::Fallback || entry.before_deletion.is_some() {
            let Some(live) = spot.get().await? else { return Ok(Stand::Gone) };
            if entry.policy == Policy::Fallback && !is_of_item(&live, self.job) {
                return Ok(Stand::Gone);
            }
            if let Some(patch) = &entry.before_deletion
                && !is_going(&live)
            {
                self.change_before(spot, &live, patch).await?;
            }
        }
        self.job.fence()?;
        match spot.cluster.delete(&spot.resource, &spot.key).await? {
            Deletion::Gone => Ok(Stand::Gone),
            Deletion::Pending(_) => Ok(Stand::Going),
        }
    }

    async fn change_before(&self, spot: &Spot, live: &Value, patch: &Value) -> Result<(), Setback> {
        let mut body = live.clone();
        overlay(&mut body, patch);
        if is_unchanged(live, &body) {
            return Ok(());
        }
        self.job.fence()?;
        match spot.cluster.replace(&spot.resource, &spot.key, &body).await {
            // Gone meanwhile: nothing is left to change.
            Ok(_) | Err(Error::Missing { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// A wait, unless the object is gone by now.
    async fn until_gone(&self, spot: &Spot, force: bool) -> Result<(), Setback> {
        let waiting = || Err(Halt::wait(spot.key.kind.clone(), spot.name(), Until::Gone).into());
        // A watch that is not synced yet cannot say that the object is gone, and calls again once it is.
        let live = match self.watch(spot) {
            Ok(None) => return Ok(()),
            Ok(Some(live)) => live,
            Err(Setback { halt: Halt::Wait(_), .. }) => return waiting(),
            Err(setback) => return Err(setback),
        };
        if force && live.pointer("/metadata/finalizers").and_then(Value::as_array).is_some_and(|held| !held.is_empty())
        {
            self.job.fence()?;
            match spot.cluster.patch(&spot.resource, &spot.key, &json!({"metadata": {"finalizers": null}})).await {
                Ok(_) | Err(Error::Missing { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        waiting()
    }

    /// Deletes whatever matches, managed or not.
    async fn delete_matching(&self, on: &ClusterRef, selection: &Selection, force: bool) -> Result<(), Setback> {
        let (cluster, resource) = match self.resource(on, &selection.api_version, &selection.kind).await {
            Ok(found) => found,
            Err(setback) if is_not_served(&setback) => return Ok(()),
            Err(setback) => return Err(setback),
        };
        let objects = cluster.list(&resource, selection).await?;
        let spots = objects.iter().filter_map(|object| key_of(object).ok()).map(|key| Spot {
            cluster: Arc::clone(&cluster),
            resource: Arc::clone(&resource),
            key,
        });
        let deletions: Vec<_> = spots
            .map(|spot| async move {
                match self.begin(&spot, &Entry::default()).await? {
                    Stand::Gone => Ok(()),
                    Stand::Going => self.until_gone(&spot, force).await,
                }
            })
            .collect();
        all(stream::iter(deletions).buffered(AT_ONCE).collect::<Vec<_>>().await).map(drop)
    }
}

/// Objects of a kind that is not served any more are gone with it.
fn is_not_served(setback: &Setback) -> bool {
    setback.halt.failure().is_some_and(|failure| failure.reason == NOT_SERVED)
}
