//! Proposals that have to survive a crash, in Secrets of the item.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use kube::{Client, ResourceExt};
use orangery_api::deploy_item::DeployItem;
use orangery_core::{
    digest::sha256,
    error::{Code, Failure},
    memory,
    name::Namespace,
    step::{Halt, Step},
};
use orangery_proposal::{Proposal, executor::writes, item::StoredProposal};
use orangery_reconcile::Key;

use super::item_secrets::{self, ContentType};
use crate::object::message_of;

/// Proposals that are being carried out, so that they are not read back at each call.
pub(in crate::deploy_item) struct ProposalCache {
    /// What the objects of all may take, in bytes.
    most: u64,
    /// Protects the proposals. Held for one lookup or one change.
    proposals: Mutex<CachedProposals>,
}

/// Proposals by item; the one that was not asked for longest leaves first.
#[derive(Default)]
struct CachedProposals {
    /// Counts the look-ups, for the order of use.
    tick: u64,
    /// What the objects of all take, in bytes.
    bytes: u64,
    by_item: BTreeMap<Key, CachedProposal>,
}

/// Bytes of memory that the objects of a proposal take.
pub(in crate::deploy_item) fn memory_of(proposal: &Proposal) -> u64 {
    writes(proposal).map(|(_, write)| memory::of(&write.object)).sum()
}

struct CachedProposal {
    used: u64,
    bytes: u64,
    digest: String,
    proposal: Arc<Proposal>,
}

impl ProposalCache {
    /// An empty cache for so many bytes.
    pub(in crate::deploy_item) fn new(most: u64) -> Self {
        Self { most, proposals: Mutex::default() }
    }

    pub(in crate::deploy_item) fn put(&self, key: Key, digest: String, proposal: Arc<Proposal>) {
        let bytes = memory_of(&proposal);
        let mut cached = self.lock();
        cached.remove(&key);
        cached.tick += 1;
        let used = cached.tick;
        cached.bytes += bytes;
        cached.by_item.insert(key, CachedProposal { used, bytes, digest, proposal });
        while cached.bytes > self.most {
            let oldest = cached.by_item.iter().min_by_key(|(_, one)| one.used).map(|(key, _)| key.clone());
            let Some(oldest) = oldest else { break };
            cached.remove(&oldest);
        }
    }

    fn get(&self, key: &Key, digest: &str) -> Option<Arc<Proposal>> {
        let mut cached = self.lock();
        cached.tick += 1;
        let tick = cached.tick;
        let found = cached.by_item.get_mut(key).filter(|found| found.digest == digest)?;
        found.used = tick;
        Some(Arc::clone(&found.proposal))
    }

    pub(in crate::deploy_item) fn forget(&self, key: &Key) {
        self.lock().remove(key);
    }

    fn lock(&self) -> MutexGuard<'_, CachedProposals> {
        self.proposals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CachedProposals {
    fn remove(&mut self, key: &Key) {
        self.bytes -= self.by_item.remove(key).map_or(0, |removed| removed.bytes);
    }
}

/// A proposal as it is stored.
pub(super) struct PackedProposal {
    digest: String,
    compressed: Vec<u8>,
}

impl PackedProposal {
    /// Packs the proposal for an item.
    pub(super) fn of(item: &DeployItem, proposal: &Proposal) -> Step<Self> {
        let json = serde_json::to_vec(proposal).map_err(|error| not_stored(item, NOT_STORED, &error.to_string()))?;
        let compressed = orangery_api::stored_state::pack(&json)
            .map_err(|error| not_stored(item, NOT_STORED, &error.to_string()))?;
        Ok(Self { digest: sha256(&json), compressed })
    }

    /// Stores it. Repeating it writes nothing new.
    ///
    /// # Errors
    /// The API server cannot be reached, or refuses a Secret.
    pub(super) async fn persist(&self, client: &Client, item: &DeployItem) -> Result<StoredProposal, kube::Error> {
        item_secrets::persist(client, item, ContentType::Proposal, &self.compressed).await?;
        let secrets = item_secrets::secrets(&Key::of(item).name, &self.compressed);
        Ok(StoredProposal { digest: self.digest.clone(), secrets })
    }

    /// The same in memory alone: as after the loss of its Secrets, a process that does not have it asks the component again.
    pub(super) fn in_memory(&self) -> StoredProposal {
        StoredProposal { digest: self.digest.clone(), secrets: Vec::new() }
    }
}

/// A stored proposal, from memory where it is there; `None` where its Secrets are gone or are not what was stored.
pub(in crate::deploy_item) async fn find(
    cache: &ProposalCache,
    client: &Client,
    item: &Key,
    stored: &StoredProposal,
) -> Step<Option<Arc<Proposal>>> {
    if let Some(proposal) = cache.get(item, &stored.digest) {
        return Ok(Some(proposal));
    }
    let proposal = read(client, &item.namespace, stored).await?.map(Arc::new);
    if let Some(proposal) = &proposal {
        cache.put(item.clone(), stored.digest.clone(), Arc::clone(proposal));
    }
    Ok(proposal)
}

/// Reads a proposal back; `None` where its Secrets are gone or are not what was stored.
pub(in crate::deploy_item) async fn read(
    client: &Client,
    namespace: &Namespace,
    stored: &StoredProposal,
) -> Step<Option<Proposal>> {
    let json = item_secrets::read(client, namespace, &stored.secrets, &stored.digest).await?;
    Ok(json.and_then(|json| serde_json::from_slice(&json).ok()))
}

/// The reason of a failure to store a proposal.
const NOT_STORED: &str = "ProposalNotStored";

fn not_stored(item: &DeployItem, reason: &str, why: &str) -> Halt {
    let message = format!("the proposal for DeployItem {} cannot be kept: {why}", item.name_any());
    Halt::Retry(Failure::new("KeepProposal", reason, message).with_code(Code::InternalProblem))
}

/// Why a proposal is not stored.
pub(super) fn not_kept(item: &DeployItem, error: &kube::Error) -> Halt {
    not_stored(item, item_secrets::reason_of(error, NOT_STORED), &message_of(error))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cache_memory::MOST_CACHED_BYTES;

    fn of_bytes(length: usize) -> Arc<Proposal> {
        let object = json!({"apiVersion": "v1", "kind": "X", "metadata": {"name": "x"}, "text": "x".repeat(length)});
        let write = json!({"object": object, "how": "replace"});
        let stages = json!([{"name": "s", "gate": "accepted", "writes": [write]}]);
        Arc::new(serde_json::from_value(json!({"stages": stages, "next": {"continueWith": [1]}})).unwrap())
    }

    #[test]
    fn c_64_limits_proposals_under_way_share_a_memory_and_the_one_not_asked_for_longest_leaves() {
        let cache = ProposalCache::new(MOST_CACHED_BYTES);
        let key = |number: usize| Key::new("n", number.to_string());
        let put = |number: usize, bytes| cache.put(key(number), format!("sha256:{number}"), of_bytes(bytes));
        let is_there = |number: usize| cache.get(&key(number), &format!("sha256:{number}")).is_some();
        for number in 0..60 {
            put(number, 1 << 20);
        }
        assert!((0..60).all(is_there), "60 of 1 MiB have room");
        assert!(is_there(0), "it is asked for last");
        (60..200).for_each(|number| {
            put(number, 1 << 20);
            assert!(is_there(0) && is_there(number));
        });
        assert!(!is_there(1), "those not asked for leave");
        assert!(cache.lock().bytes <= MOST_CACHED_BYTES);
        put(0, 1);
        assert_eq!((cache.get(&key(0), "sha256:other"), is_there(0)), (None, true), "only what was stored last");
        let before = cache.lock().by_item.len();
        put(300, 65 << 20);
        assert!(!is_there(300) && before > 0, "larger than all of the room");
        cache.forget(&key(0));
        assert_eq!((is_there(0), cache.lock().bytes), (false, 0));
    }

    #[test]
    fn c_88_limits_proposals_with_less_memory_fewer_are_kept() {
        let cache = ProposalCache::new(4 << 20);
        let key = |number: usize| Key::new("n", number.to_string());
        for number in 0..6 {
            cache.put(key(number), "sha256:x".to_owned(), of_bytes(1 << 20));
        }
        let kept = (0..6).filter(|number| cache.get(&key(*number), "sha256:x").is_some());
        assert_eq!(kept.collect::<Vec<_>>(), [3, 4, 5]);
        assert!(cache.lock().bytes <= 4 << 20);
    }
}
