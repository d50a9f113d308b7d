//! The drift of an item on demand, without an operator: its live objects are read and held against what its last job wrote.

use std::sync::Arc;

use orangery_api::deploy_item::{DeployItem, DriftedObject};
use orangery_apply::{DriftFinding, Purpose, find, manifest_objects};
use orangery_cluster::ClusterPool;
use orangery_core::step::Step;
use orangery_proposal::{ObjectWrite, Write, inventory::InventoryPolicy};
use orangery_reconcile::Key;
use serde_json::Value;

use super::{
    super::status::{ContentSeal, proposal_cache, provider_status},
    report,
};
use crate::controller_context::ControllerContext;

/// The drift of one item.
#[derive(Clone, Debug, PartialEq)]
pub struct ItemDrift {
    /// What is not as it was written, with all fields.
    pub drifted: Vec<DriftedObject>,
    /// How many objects were read.
    pub count: usize,
    /// Whether fields were compared; else what the last job wrote was not kept, and it is only known which objects there are.
    pub is_compared: bool,
}

/// Reads the drift of an item.
///
/// # Errors
/// No component claims it, or a cluster cannot be read: classified as in a job.
pub async fn drift_of(host: &Arc<ControllerContext>, item: DeployItem) -> Step<ItemDrift> {
    let (item, pool) = (Arc::new(item), Arc::new(ClusterPool::new(|_| {})));
    let gathered = super::gather(host, &pool, &item).await?;
    gathered.state_with_target().await?;
    let (status, large) = provider_status::parts_of(host, &gathered.item).await?;
    let (inventory, stored) = provider_status::unverified(status, large)?;
    let manifest = match &stored {
        Some(stored) => {
            let namespace = Key::of(item.as_ref()).namespace;
            proposal_cache::read(&host.client, &namespace, stored, ContentSeal::Unknown).await?
        }
        None => None,
    };
    let is_compared = manifest.is_some();
    let written = match manifest {
        Some(manifest) => {
            gathered.check_as_it_is(&manifest).await?;
            manifest_objects(manifest, &inventory)
        }
        // Of these it is known that they are to be there.
        None => {
            let stay = |policy| !matches!(policy, InventoryPolicy::Keep | InventoryPolicy::Ephemeral);
            let there = inventory.0.iter().filter(|(_, entry)| stay(entry.policy));
            let unwritten = || ObjectWrite::new(Value::Null, Write::Create);
            there.map(|(located, entry)| (located.clone(), unwritten(), entry.uid.clone())).collect()
        }
    };
    let count = written.len();
    let rules = item.spec.drift.as_ref().map_or_else(Default::default, Clone::clone);
    let found = find(&gathered.job(Purpose::Install, &|| false), written, &rules).await?;
    let drifted = found.iter().filter(|(_, finding)| **finding != DriftFinding::AsWritten);
    let drifted = drifted.map(|(located, finding)| report::object(located, finding, usize::MAX)).collect();
    let drifted = report::masked_objects(drifted, &host.secrets.masker(&Key::of(item.as_ref()).namespace));
    Ok(ItemDrift { drifted, count, is_compared })
}
