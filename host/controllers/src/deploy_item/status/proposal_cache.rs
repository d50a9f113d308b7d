//! Proposals that have to survive a crash, in Secrets of the item.

use std::{
    collections::BTreeMap,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use kube::{Client, ResourceExt};
use orangery_api::deploy_item::DeployItem;
use orangery_core::{
    digest::sha256,
    error::{Code, Failure},
    memory::JsonMeter,
    name::Namespace,
    step::{Halt, Step},
};
use orangery_proposal::{Next, Proposal, item::StoredProposal};
use orangery_reconcile::Key;
use serde::Serialize;

use super::item_secrets::{self, ContentSeal, ContentType};
use crate::{deploy_item::DeployItemController, object::message_of};

/// Proposals that are being carried out, so that they are not read back at each call.
pub(in crate::deploy_item) struct ProposalCache {
    /// What all may take, in bytes.
    most: u64,
    /// Protects the proposals. Held for one lookup or one change.
    proposals: Mutex<CachedProposals>,
}

/// Proposals by item; the one that was not asked for longest leaves first.
#[derive(Default)]
struct CachedProposals {
    /// Counts the look-ups, for the order of use.
    tick: u64,
    /// What all take, in bytes.
    bytes: u64,
    by_item: BTreeMap<Key, CachedProposal>,
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
        let bytes = bytes_of(&proposal);
        let mut cached = self.lock();
        cached.remove(&key);
        cached.tick += 1;
        let used = cached.tick;
        cached.bytes = cached.bytes.saturating_add(bytes);
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

    /// What all take, in bytes.
    pub(in crate::deploy_item) fn bytes(&self) -> u64 {
        self.lock().bytes
    }

    fn lock(&self) -> MutexGuard<'_, CachedProposals> {
        self.proposals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Measures what is written as JSON by the memory of its values.
#[derive(Default)]
struct MeteredJson(JsonMeter);

impl MeteredJson {
    fn of(value: &impl Serialize) -> u64 {
        let mut measured = Self::default();
        match serde_json::to_writer(&mut measured, value) {
            Ok(()) => measured.0.bytes(),
            // It is never kept then.
            Err(_) => u64::MAX,
        }
    }
}

impl io::Write for MeteredJson {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        self.0.read(piece);
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The memory that a proposal takes, told from above, in bytes: its objects and all that is beside them.
pub(in crate::deploy_item) fn bytes_of(proposal: &Proposal) -> u64 {
    let handed_over = match &proposal.next {
        Next::ContinueWith(checkpoint) | Next::AgainIn { checkpoint, .. } => Some(checkpoint),
        Next::Finish(_) | Next::Fail(_) => None,
    };
    // As JSON each byte of a checkpoint is a value.
    let checkpoints = proposal.recover.iter().chain(handed_over);
    checkpoints.fold(MeteredJson::of(proposal), |sum, checkpoint| {
        sum.saturating_sub(MeteredJson::of(checkpoint)).saturating_add(checkpoint.len() as u64)
    })
}

impl DeployItemController {
    /// What the proposals under way take in memory, in bytes, whenever it is asked (C-64).
    pub fn proposal_bytes(&self) -> impl Fn() -> u64 + Send + Sync + 'static + use<> {
        let cache = Arc::clone(&self.cache);
        move || cache.bytes()
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
    let proposal = read(client, &item.namespace, stored, ContentSeal::Good).await?.map(Arc::new);
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
    seal: ContentSeal,
) -> Step<Option<Proposal>> {
    let json = item_secrets::read(client, namespace, (&stored.secrets, &stored.digest), seal).await?;
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

    /// All that a component may answer is in memory, and not its objects alone.
    #[test]
    fn c_64_limits_proposals_are_counted_with_all_that_is_in_them() {
        let text = "x".repeat(1 << 20);
        let write = |member: &str| {
            let mut write = json!({"object": {"kind": "X"}, "how": "replace"});
            write[member] = json!({"text": text});
            json!({"stages": [{"name": "s", "gate": "accepted", "writes": [write]}], "next": {"finish": {}}})
        };
        let bytes: Vec<u8> = vec![1; 1 << 20];
        let key = json!({"apiVersion": "v1", "kind": "X", "name": text});
        let rule = json!({"key": "a", "source": {"value": text}});
        for whole in [
            write("object"),
            write("atCreation"),
            write("beforeDeletion"),
            json!({"stages": [], "next": {"finish": {}}, "status": {"text": text}}),
            json!({"stages": [], "next": {"finish": {}}, "recover": bytes}),
            json!({"stages": [], "next": {"continueWith": bytes}}),
            json!({"stages": [], "next": {"againIn": {"after": 1, "checkpoint": bytes}}}),
            json!({"stages": [], "next": {"finish": {"exports": [rule], "afterwards": []}}}),
            json!({"stages": [{"name": "s", "gate": "gone", "removals": [{"key": key}]}], "next": {"finish": {}}}),
        ] {
            let proposal: Proposal = serde_json::from_value(whole.clone()).unwrap();
            let bytes = bytes_of(&proposal);
            assert!((1 << 20..(1 << 20) + 16_384).contains(&bytes), "{bytes}: {:.80}", whole.to_string());
        }
        let cache = ProposalCache::new(1 << 20);
        cache.put(Key::new("n", "a"), "sha256:x".to_owned(), of_bytes(1 << 20));
        assert_eq!(cache.bytes(), 0, "what is beside the objects counts");
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
