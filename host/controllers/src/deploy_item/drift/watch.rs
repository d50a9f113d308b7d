//! The manifest of an item begins to be watched.

use std::sync::{Arc, PoisonError};

use orangery_api::deploy_item::DeployItem;
use orangery_apply::{ItemState, Purpose, TrackedManifest, manifest_objects, part, watch};
use orangery_core::{
    error::{Code, Failure},
    step::{Halt, Step},
};
use orangery_proposal::Proposal;
use orangery_reconcile::Key;

use super::{
    super::{gather::GatheredItem, status::proposal_cache},
    DriftController, Tracked, TrackedFor,
};

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
        let gathered = self.gather(item)?;
        let state = gathered.state_with_target().await?.state;
        let manifest = self.manifest(&gathered, &state).await?;
        let objects = manifest_objects(&manifest, &state.inventory);
        let owner = (&gathered.owner, gathered.deployer.ownership_labels());
        let (queue, woken) = (self.queue.clone(), key.clone());
        let wake = Arc::new(move || queue.wake(woken.clone()));
        let tracked =
            TrackedManifest::new(what.rules.clone(), owner, (&self.host.clock, wake), state.clusters, objects);
        let tracked = Arc::new(tracked);
        watch(&gathered.job(Purpose::Install, &|| false), &tracked).await?;
        self.take_in(key, Tracked { what, manifest: Arc::clone(&tracked) })?;
        Ok(tracked)
    }

    /// What the last job wrote, checked.
    async fn manifest(&self, gathered: &GatheredItem, state: &ItemState) -> Step<Proposal> {
        let stored = match &state.manifest {
            Some(stored) => proposal_cache::read(&self.host.client, &gathered.key.namespace, stored).await?,
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
    fn take_in(&self, key: &Key, tracked: Tracked) -> Step<()> {
        let mut all = self.tracked.lock().unwrap_or_else(PoisonError::into_inner);
        let taken: u64 = all.values().map(|tracked| tracked.manifest.bytes()).sum();
        has_room(taken, tracked.manifest.bytes(), self.host.memory.manifests)?;
        all.insert(key.clone(), tracked);
        Ok(())
    }
}

/// # Errors
/// There is no room for so many bytes more.
fn has_room(taken: u64, more: u64, most: u64) -> Step<()> {
    if taken.saturating_add(more) <= most {
        return Ok(());
    }
    let message = format!(
        "the manifests of all items whose drift is looked for take more than {} MiB of memory; leave the drift of some items \
         alone (spec.drift.policy: Ignore), or give the operator more memory",
        most >> 20
    );
    Err(stall("TooManyObjects", message))
}

fn stall(reason: &str, message: String) -> Halt {
    Halt::Stall(Failure::new("Drift", reason, message).with_code(Code::ConfigurationProblem))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache_memory::MOST_MANIFEST_BYTES;

    #[test]
    fn limits_drift_the_manifests_of_all_items_share_a_memory() {
        let refused = |taken, more| {
            has_room(taken, more, MOST_MANIFEST_BYTES).err().map(|halt| halt.failure().unwrap().message.clone())
        };
        assert_eq!(refused(0, MOST_MANIFEST_BYTES), None);
        assert_eq!(refused(MOST_MANIFEST_BYTES - 1, 1), None);
        let message = "the manifests of all items whose drift is looked for take more than 256 MiB of memory; leave the \
                       drift of some items alone (spec.drift.policy: Ignore), or give the operator more memory";
        assert_eq!(refused(MOST_MANIFEST_BYTES, 1).as_deref(), Some(message));
        assert_eq!(refused(u64::MAX, u64::MAX).as_deref(), Some(message));
        let less = has_room(1 << 20, 1, 1 << 20).unwrap_err().failure().unwrap().message.clone();
        assert_eq!(less, message.replace("256", "1"));
    }
}
