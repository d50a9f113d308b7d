//! Proposals that have to survive a crash: compressed, in Secrets of the item, in chunks named by their content. A
//! Secret, because the objects of a proposal may be Secrets themselves.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{Read, Write},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use flate2::{Compression, read::ZlibDecoder, write::ZlibEncoder};
use k8s_openapi::{ByteString, api::core::v1::Secret, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, PostParams},
};
use orangery_api::deploy_item::DeployItem;
use orangery_core::{
    digest::sha256,
    error::{Code, Failure},
    memory,
    name::{Namespace, proposal_secret},
    step::{Halt, Step},
};
use orangery_proposal::{Proposal, executor::writes, item::StoredProposal};
use orangery_reconcile::Key;

use crate::{object::owner_reference, object_access::get};

/// Bytes of one Secret: below the limit of 1 MiB that the API server sets.
const CHUNK: usize = 768 * 1024;

/// The largest proposal that is read back, in bytes of JSON: more than the check of a proposal lets through.
const LARGEST: u64 = 64 * 1024 * 1024;

/// The key of a chunk in its Secret.
const CONTENT: &str = "proposal";

/// The most memory, in bytes, that the objects of the proposals in the cache may take. What is not in it is read back from
/// its Secrets (C-64).
const MOST_CACHED_BYTES: u64 = 64 << 20;

/// Proposals that are being carried out, so that they are not read back at each call.
#[derive(Default)]
pub(in crate::deploy_item) struct ProposalCache {
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

struct CachedProposal {
    used: u64,
    bytes: u64,
    digest: String,
    proposal: Arc<Proposal>,
}

impl ProposalCache {
    pub(in crate::deploy_item) fn put(&self, key: Key, digest: String, proposal: Arc<Proposal>) {
        let bytes = writes(&proposal).map(|(_, write)| memory::of(&write.object)).sum();
        let mut cached = self.lock();
        cached.remove(&key);
        cached.tick += 1;
        let used = cached.tick;
        cached.bytes += bytes;
        cached.by_item.insert(key, CachedProposal { used, bytes, digest, proposal });
        while cached.bytes > MOST_CACHED_BYTES {
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

/// Stores a proposal. Repeating it writes nothing new.
pub(super) async fn persist(client: &Client, item: &DeployItem, proposal: &Proposal) -> Step<StoredProposal> {
    let (digest, compressed) = pack(proposal).map_err(|error| not_stored(item, &error.to_string()))?;
    let Key { namespace, name: of } = Key::of(item);
    let api: Api<Secret> = Api::namespaced(client.clone(), &namespace);
    let mut secrets = Vec::new();
    for chunk in compressed.chunks(CHUNK) {
        let hex = sha256(chunk);
        let short = hex.rsplit(':').next().and_then(|hex| hex.get(..20)).unwrap_or(&hex);
        let name = proposal_secret(&of, short);
        let secret = Secret {
            metadata: ObjectMeta {
                name: Some(name.clone()),
                namespace: Some(namespace.to_string()),
                owner_references: Some(vec![owner_reference(item)]),
                ..ObjectMeta::default()
            },
            data: Some([(CONTENT.to_owned(), ByteString(chunk.to_vec()))].into()),
            immutable: Some(true),
            type_: Some("orangery.dev/proposal".to_owned()),
            ..Secret::default()
        };
        match api.create(&PostParams::default(), &secret).await {
            Ok(_) => {}
            // Named by its content: what is there is what would be written.
            Err(kube::Error::Api(status)) if status.is_already_exists() => {}
            Err(error) => return Err(not_stored(item, &error.to_string())),
        }
        secrets.push(name);
    }
    Ok(StoredProposal { digest, secrets })
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
async fn read(client: &Client, namespace: &Namespace, stored: &StoredProposal) -> Step<Option<Proposal>> {
    let mut compressed = Vec::new();
    for name in &stored.secrets {
        let secret: Option<Secret> = get(client, namespace, &name.into()).await?;
        let Some(ByteString(chunk)) = secret.and_then(|secret| secret.data).and_then(|mut data| data.remove(CONTENT))
        else {
            return Ok(None);
        };
        compressed.extend(chunk);
    }
    Ok(unpack(&compressed, &stored.digest))
}

/// Removes what is not needed any more. What cannot be removed goes with the item that owns it.
pub(super) async fn discard(
    client: &Client,
    namespace: &Namespace,
    before: impl Iterator<Item = StoredProposal>,
    now: Option<&StoredProposal>,
) {
    let mut unneeded: BTreeSet<String> = before.flat_map(|stored| stored.secrets).collect();
    unneeded.retain(|name| !now.is_some_and(|now| now.secrets.contains(name)));
    let api: Api<Secret> = Api::namespaced(client.clone(), namespace);
    for name in &unneeded {
        if let Err(error) = api.delete(name, &DeleteParams::default()).await {
            tracing::debug!(%error, secret = name, "a proposal that is not needed any more stays until its item goes");
        }
    }
}

fn pack(proposal: &Proposal) -> std::io::Result<(String, Vec<u8>)> {
    let json = serde_json::to_vec(proposal)?;
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(&json)?;
    Ok((sha256(&json), encoder.finish()?))
}

fn unpack(compressed: &[u8], digest: &str) -> Option<Proposal> {
    let mut json = Vec::new();
    ZlibDecoder::new(compressed).take(LARGEST).read_to_end(&mut json).ok()?;
    if sha256(&json) != digest {
        return None;
    }
    serde_json::from_slice(&json).ok()
}

fn not_stored(item: &DeployItem, why: &str) -> Halt {
    let message = format!("the proposal for DeployItem {} cannot be kept: {why}", item.name_any());
    Halt::Retry(Failure::new("KeepProposal", "ProposalNotStoredProposal", message).with_code(Code::InternalProblem))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_proposal_survives_and_a_damaged_one_is_no_proposal() {
        let proposal: Proposal = serde_json::from_value(json!({"stages": [{"name": "s", "gate": "accepted",
            "writes": [{"object": {"kind": "X"}, "how": "replace"}]}], "next": {"continueWith": [1, 2]}}))
        .unwrap();
        let (digest, compressed) = pack(&proposal).unwrap();
        assert_eq!(unpack(&compressed, &digest), Some(proposal));
        assert_eq!(unpack(&compressed, "sha256:0"), None);
        assert_eq!(unpack(compressed.get(1..).unwrap(), &digest), None);
    }
    fn of_bytes(length: usize) -> Arc<Proposal> {
        let object = json!({"apiVersion": "v1", "kind": "X", "metadata": {"name": "x"}, "text": "x".repeat(length)});
        let write = json!({"object": object, "how": "replace"});
        let stages = json!([{"name": "s", "gate": "accepted", "writes": [write]}]);
        Arc::new(serde_json::from_value(json!({"stages": stages, "next": {"continueWith": [1]}})).unwrap())
    }

    #[test]
    fn c_64_limits_proposals_under_way_share_a_memory_and_the_one_not_asked_for_longest_leaves() {
        let cache = ProposalCache::default();
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
}
