//! Proposals that have to survive a crash: compressed, in Secrets of the item, in chunks named by their content. A
//! Secret, because the objects of a proposal may be Secrets themselves.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{Read, Write},
    sync::{Arc, Mutex, PoisonError},
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
    name::{Namespace, proposal_secret},
    step::{Halt, Step},
};
use orangery_proposal::{Proposal, item::StoredProposal};
use orangery_reconcile::Key;

use crate::{object::owner_reference, object_access::get};

/// Bytes of one Secret: below the limit of 1 MiB that the API server sets.
const CHUNK: usize = 768 * 1024;

/// The largest proposal that is read back, in bytes of JSON: more than the check of a proposal lets through.
const LARGEST: u64 = 64 * 1024 * 1024;

/// The key of a chunk in its Secret.
const CONTENT: &str = "proposal";

/// Proposals that are being carried out, so that they are not read back at each call.
#[derive(Default)]
pub(in crate::deploy_item) struct ProposalCache {
    /// Protects the proposals by item. Held for one lookup or one change.
    proposals: Mutex<BTreeMap<Key, (String, Arc<Proposal>)>>,
}

impl ProposalCache {
    pub(in crate::deploy_item) fn put(&self, key: Key, digest: String, proposal: Arc<Proposal>) {
        self.proposals.lock().unwrap_or_else(PoisonError::into_inner).insert(key, (digest, proposal));
    }

    fn get(&self, key: &Key, digest: &str) -> Option<Arc<Proposal>> {
        let proposals = self.proposals.lock().unwrap_or_else(PoisonError::into_inner);
        proposals.get(key).filter(|(stored, _)| stored == digest).map(|(_, proposal)| Arc::clone(proposal))
    }

    pub(in crate::deploy_item) fn forget(&self, key: &Key) {
        self.proposals.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
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
    before: Option<&StoredProposal>,
    now: Option<&StoredProposal>,
) {
    let still: BTreeSet<&String> = now.into_iter().flat_map(|stored| &stored.secrets).collect();
    let api: Api<Secret> = Api::namespaced(client.clone(), namespace);
    for name in before.into_iter().flat_map(|stored| &stored.secrets).filter(|name| !still.contains(name)) {
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
}
