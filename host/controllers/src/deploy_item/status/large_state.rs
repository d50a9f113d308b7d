//! A state of many objects: the inventory, the progress and the order of deletion have no room in a status, which the API server
//! takes up to some 1.5 MiB. They lie beside it, and the status has their digest under its seal (C-94).

use std::collections::BTreeSet;

use kube::{Client, ResourceExt};
use orangery_api::{
    deploy_item::DeployItem,
    stored_state::{StoredState, pack},
};
use orangery_core::{
    digest::sha256,
    error::{Code, Failure},
    name::ObjectName,
    step::{Halt, Step},
};
use orangery_proposal::inventory::Inventory;
use orangery_reconcile::Key;

use super::item_secrets::{self, ContentSeal, ContentType};
use crate::{
    object::message_of,
    sealed_state::{Additions, hidden::Hidden},
};

/// The most bytes of JSON that the inventory, the progress and the order of deletion of an item take in its status.
const MOST_IN_STATUS: usize = 256 << 10;

/// The objects of a larger inventory that the status shows.
const SHOWN: usize = 200;

/// What has no room in the status.
pub(in crate::deploy_item) struct LargeState {
    pub(super) stored: StoredState,
    /// As it is to be stored; `None` where it is there.
    compressed: Option<Vec<u8>>,
}

/// The begin of an inventory.
pub(super) fn begin(inventory: &Inventory) -> Inventory {
    Inventory(inventory.0.iter().take(SHOWN).map(|(located, entry)| (located.clone(), entry.clone())).collect())
}

impl LargeState {
    /// What of a state has no room in a status; `None` where all of it has. `before` is what was stored of the state before.
    pub(super) fn of(
        inventory: &Inventory,
        additions: &Additions,
        item: &ObjectName,
        before: Option<&StoredState>,
    ) -> Option<Self> {
        // Most items have a few objects.
        if inventory.0.len() + additions.objects() <= SHOWN / 4 {
            return None;
        }
        let additions = Some(additions.clone().split().0);
        let whole = Hidden { status: None, managed_resources: inventory.list(), additions };
        let json = serde_json::to_vec(&whole).ok().filter(|json| json.len() > MOST_IN_STATUS)?;
        let digest = sha256(&json);
        if let Some(before) = before.filter(|before| before.digest == digest) {
            return Some(Self { stored: before.clone(), compressed: None });
        }
        let compressed = pack(&json).ok()?;
        let stored = StoredState { digest, secrets: item_secrets::secrets(item, &compressed) };
        Some(Self { stored, compressed: Some(compressed) })
    }

    /// Stores it, unless it is there.
    ///
    /// # Errors
    /// The API server cannot be reached, or refuses a Secret.
    pub(super) async fn persist(&self, client: &Client, item: &DeployItem) -> Result<(), kube::Error> {
        match &self.compressed {
            Some(compressed) => item_secrets::persist(client, item, ContentType::State, compressed).await,
            None => Ok(()),
        }
    }

    pub(super) fn secrets(&self) -> BTreeSet<String> {
        secrets_of(&self.stored)
    }

    /// What is to be stored.
    #[cfg(test)]
    pub(super) fn content(&self) -> Option<Hidden> {
        let json = orangery_api::stored_state::unpack(self.compressed.as_ref()?, &self.stored.digest)?;
        serde_json::from_slice(&json).ok()
    }

    #[cfg(test)]
    pub(super) fn is_stored(&self) -> bool {
        self.compressed.is_none()
    }
}

/// Why a state is not stored.
pub(super) fn not_stored(item: &DeployItem, error: &kube::Error) -> Halt {
    let message = format!("the inventory of DeployItem {} cannot be kept: {}", item.name_any(), message_of(error));
    let reason = item_secrets::reason_of(error, "InventoryNotStored");
    Halt::Retry(Failure::new("KeepInventory", reason, message).with_code(Code::InternalProblem))
}

/// The Secrets that the status of an item names for its inventory, whoever has written it.
pub(in crate::deploy_item) fn inventory_secrets(item: &DeployItem) -> Vec<String> {
    let status = item.status.as_ref().and_then(|status| status.provider_status.as_ref());
    StoredState::of(status).map_or_else(Vec::new, |stored| stored.secrets)
}

/// The Secrets that a stored state takes.
pub(super) fn secrets_of(stored: &StoredState) -> BTreeSet<String> {
    stored.secrets.iter().cloned().collect()
}

/// Reads a state back.
///
/// # Errors
/// The API server cannot be reached; its Secrets are gone, or not what was stored: guessing would leak or delete objects.
pub(in crate::deploy_item) async fn read(
    stored: &StoredState,
    client: &Client,
    item: &DeployItem,
    seal: ContentSeal,
) -> Step<Hidden> {
    let content = (stored.secrets.as_slice(), stored.digest.as_str());
    let json = item_secrets::read(client, &Key::of(item).namespace, content, seal).await?;
    json.and_then(|json| serde_json::from_slice(&json).ok()).ok_or_else(|| {
        let message = format!(
            "the inventory of DeployItem {} lies in Secrets that are gone or were changed: {}; restore them, or delete the item \
             without uninstall",
            item.name_any(),
            stored.secrets.join(", ")
        );
        Halt::Retry(Failure::new("ReadStatus", "InventoryLost", message).with_code(Code::InternalProblem))
    })
}
