//! The manifest of an item begins to be watched.

use std::sync::Arc;

use orangery_api::deploy_item::DeployItem;
use orangery_apply::{ItemState, Purpose, TrackedManifest, manifest_objects, part, watch};
use orangery_core::{
    error::{Code, Failure},
    step::{Halt, Step},
};
use orangery_proposal::Proposal;
use orangery_reconcile::Key;

use super::{
    super::{
        gather::GatheredItem,
        status::{ContentSeal, proposal_cache},
    },
    DriftController,
    tracked_items::TrackedFor,
};
use crate::object::uid_of;

impl DriftController {
    /// Begins to watch an item.
    ///
    /// # Errors
    /// Why it cannot be watched, in a sentence.
    pub(super) async fn watch(
        &self,
        item: &Arc<DeployItem>,
        key: &Key,
        what: TrackedFor,
    ) -> Step<Arc<TrackedManifest>> {
        let gathered = self.gather(item).await?;
        let state = gathered.state_with_target().await?.state;
        let manifest = self.manifest(&gathered, &state).await?;
        let objects = manifest_objects(manifest, &state.inventory);
        let owner = (&gathered.owner, gathered.deployer.ownership_labels());
        let (queue, woken) = (self.queue.clone(), key.clone());
        let wake = Arc::new(move || queue.wake(woken.clone()));
        let (rules, clusters) = (what.rules.clone(), state.clusters);
        let tracked = TrackedManifest::new(rules, owner, (&self.host.clock, wake), clusters, objects);
        let tracked = Arc::new(tracked);
        watch(&gathered.job(Purpose::Install, &|| false), &tracked).await?;
        self.take_in(key, what, &tracked)?;
        Ok(tracked)
    }

    /// What the last job wrote, checked.
    async fn manifest(&self, gathered: &GatheredItem, state: &ItemState) -> Step<Proposal> {
        let stored = match &state.manifest {
            Some(stored) => {
                proposal_cache::read(&self.host.client, &gathered.key.namespace, stored, ContentSeal::Good).await?
            }
            None => None,
        };
        let manifest = match stored {
            Some(manifest) => manifest,
            None if state.inventory.0.is_empty() => part(Vec::new()),
            None => {
                let message = "what the last job wrote was not kept, as spec.drift was not set then, or somebody has \
                               changed the item's status or its Secrets since; the next job keeps it";
                return Err(stall("ManifestNotKept", message.to_owned()));
            }
        };
        gathered.check_as_it_is(&manifest).await?;
        Ok(manifest)
    }

    /// # Errors
    /// There is no room.
    fn take_in(&self, key: &Key, what: TrackedFor, tracked: &Arc<TrackedManifest>) -> Step<()> {
        let uid = what.uid.clone();
        self.tracked.insert(key, what, tracked)?;
        // That it is gone is told once: that may have been before.
        let newest = self.host.stores.deploy_items.get(key);
        if newest.is_none_or(|newest| uid_of(newest.as_ref()) != uid) {
            self.tracked.forget(key);
        }
        Ok(())
    }
}

fn stall(reason: &str, message: String) -> Halt {
    Halt::Stall(Failure::new("Drift", reason, message).with_code(Code::ConfigurationProblem))
}
