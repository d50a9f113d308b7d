//! `status.providerStatus`: what the component keeps there, the inventory in the form of Landscaper's deployers, and beside
//! them, under `orangery`, what the host needs to go on and to delete, sealed.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use orangery_api::{deploy_item::DeployItem, stored_state::StoredState};
use orangery_apply::ItemState;
use orangery_core::{
    masking::Masker,
    name::{JobId, ObjectName},
    step::Step,
};
use orangery_proposal::{
    check::{HOST, MANAGED_RESOURCES},
    inventory::Inventory,
    item::StoredProposal,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    item_secrets::ContentSeal,
    large_state::{self, LargeState},
};
use crate::{
    controller_context::ControllerContext,
    seal::{SealError, Sealer},
    sealed_state::{
        self, Additions,
        hidden::{Hidden, ShownStatus},
        inventory, unreadable,
    },
};

/// A provider status that was read.
pub(in crate::deploy_item) struct ReadStatus {
    /// What counts of it.
    pub(in crate::deploy_item) state: ItemState,
    /// Why not all of it does.
    pub(in crate::deploy_item) seal_error: Option<SealError>,
    /// Whether a part of it is encrypted with a key that this operator does not have.
    pub(in crate::deploy_item) is_part_lost: bool,
    /// Whether it is of the signed origin that the item has now: with another one it was written for another spec, or by the word
    /// of another signer (C-270).
    pub(in crate::deploy_item) is_of_origin: bool,
}

/// The state of an item, as far as it counts for this job.
///
/// # Errors
/// What lies beside the status cannot be read, or the inventory.
pub(in crate::deploy_item) async fn state_of(
    host: &ControllerContext,
    item: &DeployItem,
    job: &JobId,
) -> Step<ReadStatus> {
    let (status, large) = parts_of(host, item).await?;
    read(status, large, job, Sealer::of(host, item))
}

/// The provider status of an item, and what of it lies beside it.
///
/// # Errors
/// What lies beside it is gone, or the API server cannot be reached.
pub(in crate::deploy_item) async fn parts_of<'a>(
    host: &ControllerContext,
    item: &'a DeployItem,
) -> Step<(Option<&'a Value>, Option<Hidden>)> {
    let status = item.status.as_ref().and_then(|status| status.provider_status.as_ref());
    // The seal is over what the status names, so that it is known before that is read.
    let is_sealed = status.is_some_and(|status| Additions::sealed_in(status, Sealer::of(host, item)).is_some());
    let seal = if is_sealed { ContentSeal::Good } else { ContentSeal::Unknown };
    let large = match StoredState::of(status) {
        Some(stored) => Some(large_state::read(&stored, &host.client, item, seal).await?),
        None => None,
    };
    Ok((status, large))
}

/// Reads a provider status, as a job finds it. The progress of another job is no progress of this one, and what was to be written
/// for another signed origin is not written for this one. Of a status that this
/// operator has not written, or not last, only the inventory is taken over and what it says of clusters, which has still to be
/// proven (C-110), and no last changes of its objects but their annotations: whose the objects are, is looked at before they are
/// deleted.
///
/// # Errors
/// A stall where the inventory cannot be read: guessing would leak or delete objects.
fn read(status: Option<&Value>, large: Option<Hidden>, job: &JobId, sealer: Sealer<'_>) -> Step<ReadStatus> {
    let mut own = status.and_then(Value::as_object).cloned().unwrap_or_default();
    let inventory = inventory(own.remove(MANAGED_RESOURCES).as_ref())?;
    let additions: Additions = match own.remove(HOST) {
        Some(additions) => serde_json::from_value(additions)
            .map_err(|error| unreadable(&format!("status.providerStatus.orangery cannot be read: {error}")))?,
        None => Additions::default(),
    };
    let status = (!own.is_empty()).then_some(Value::Object(own));
    let is_empty = inventory.0.is_empty() && additions == Additions::default();
    let whole = if is_empty { Ok(Hidden::default()) } else { additions.verify(&inventory, sealer) };
    let hidden = match whole {
        Ok(hidden) => hidden,
        Err(seal_error) => {
            let encrypted = additions.hidden.as_deref().map(|hidden| sealer.decrypt::<Hidden>(hidden));
            let is_part_lost = matches!(encrypted, Some(None));
            let large = large.unwrap_or_default();
            let whole = large.managed_resources;
            let inventory = whole.map_or(Ok(inventory), |whole| sealed_state::inventory(Some(&whole))).map(adopted)?;
            // What is encrypted for this item is the operator's word, whatever stands beside it.
            let additions = additions.with(large.additions.or_else(|| encrypted.flatten()?.additions));
            let former = additions.former()?.into_iter().map(|(uid, inventory)| (uid, adopted(inventory))).collect();
            let clusters = additions.known_clusters();
            let state = ItemState { inventory, former, clusters, status, ..ItemState::default() };
            return Ok(ReadStatus { state, seal_error: Some(seal_error), is_part_lost, is_of_origin: true });
        }
    };
    let status = hidden.status.or(status);
    let hidden = large.unwrap_or(Hidden { status: None, ..hidden });
    let inventory = match &hidden.managed_resources {
        Some(list) => sealed_state::inventory(Some(list))?,
        None => inventory,
    };
    let additions = additions.with(hidden.additions);
    let (former, clusters) = (additions.former()?, additions.known_clusters());
    let is_of_origin = is_empty || additions.origin == sealer.origin();
    let state = ItemState {
        inventory,
        progress: additions.progress.filter(|progress| is_of_origin && progress.job == *job),
        stored: additions.proposal.filter(|_| is_of_origin),
        manifest: additions.manifest.filter(|_| is_of_origin),
        status,
        deletion_order: additions.deletion_order,
        clusters,
        former,
        credentials: additions.credentials,
        notes: Vec::new(),
    };
    Ok(ReadStatus { state, seal_error: None, is_part_lost: false, is_of_origin })
}

/// The Secrets that a provider status names, where its seal is good.
pub(in crate::deploy_item) fn secrets(status: Option<&Value>, sealer: Sealer<'_>) -> BTreeSet<String> {
    let Some(additions) = status.and_then(|status| Additions::sealed_in(status, sealer)) else {
        return BTreeSet::new();
    };
    let large = additions.large.iter().flat_map(large_state::secrets_of);
    let stored = additions.proposal.into_iter().chain(additions.manifest);
    large.chain(stored.flat_map(|stored| stored.secrets)).collect()
}

/// The manifest and the inventory of an item, for a look at them: whether the operator has written them is not known to
/// everybody who looks.
///
/// # Errors
/// The inventory cannot be read.
pub(in crate::deploy_item) fn unverified(
    status: Option<&Value>,
    large: Option<Hidden>,
) -> Step<(Inventory, Option<StoredProposal>)> {
    let field = |name: &str| status.and_then(|status| status.get(name));
    let additions = field(HOST).and_then(|additions| Additions::deserialize(additions).ok());
    let whole = large.and_then(|large| large.managed_resources);
    let inventory = inventory(whole.as_ref().or_else(|| field(MANAGED_RESOURCES)))?;
    Ok((inventory, additions.and_then(|additions| additions.manifest)))
}

/// An inventory that nothing vouches for.
fn adopted(mut inventory: Inventory) -> Inventory {
    for entry in inventory.0.values_mut() {
        let annotations =
            entry.before_deletion.take().and_then(|change| change.pointer("/metadata/annotations").cloned());
        entry.before_deletion = annotations.map(|annotations| json!({"metadata": {"annotations": annotations}}));
    }
    inventory
}

/// What of a provider status is the component's, where not all of it is shown.
fn visible(status: Option<&Value>, sealer: Sealer<'_>) -> ShownStatus {
    let hidden = status.and_then(|status| status.pointer("/orangery/hidden")).and_then(Value::as_str);
    let Some(hidden) = hidden.and_then(|hidden| sealer.decrypt::<Hidden>(hidden)) else {
        return ShownStatus::default();
    };
    let mut shown = status.and_then(Value::as_object).cloned().unwrap_or_default();
    shown.retain(|key, _| ![MANAGED_RESOURCES, HOST].contains(&key.as_str()));
    ShownStatus { whole: hidden.status, shown }
}

/// What a state becomes.
pub(in crate::deploy_item) struct WrittenStatus {
    /// The provider status; `None` where there is nothing to say.
    pub(in crate::deploy_item) status: Option<Value>,
    /// The number of its seal.
    pub(in crate::deploy_item) number: u64,
    /// What it names beside it, as far as it did not before.
    pub(in crate::deploy_item) large: Option<LargeState>,
}

/// The provider status of a state that a job has come to. What says the same as `before` is left as it is. What a masker finds
/// in it is hidden, and what has no room in it lies in Secrets of the item (C-94).
pub(in crate::deploy_item) fn write(
    state: &ItemState,
    credentials: &BTreeMap<String, String>,
    (item, before, job): (&ObjectName, Option<&Value>, &JobId),
    sealer: Sealer<'_>,
    masker: &Masker,
) -> WrittenStatus {
    let mut hidden = Hidden::default();
    let mut whole = hidden.status(state.status.as_ref(), visible(before, sealer), masker);
    let mut additions = Additions::of(state, credentials, (job, sealer.origin()));
    let large = LargeState::of(&state.inventory, &additions, item, StoredState::of(before).as_ref());
    let shown = match &large {
        Some(large) => {
            additions = Additions { large: Some(large.stored.clone()), ..additions.split().1 };
            Cow::Owned(large_state::begin(&state.inventory))
        }
        None => Cow::Borrowed(&state.inventory),
    };
    let inventory = hidden.inventory(&shown, masker);
    if large.is_some() {
        // All of it lies beside the status.
        hidden.managed_resources = None;
    }
    if let Some(list) = inventory.list() {
        whole.insert(MANAGED_RESOURCES.to_owned(), list);
    }
    let additions = additions.hiding(hidden, masker, sealer);
    let number =
        before.and_then(|before| before.pointer("/orangery/number")).and_then(Value::as_u64).unwrap_or_default();
    let finished = |number: u64| {
        let mut whole = whole.clone();
        if !additions.is_empty(&inventory) {
            whole.insert(HOST.to_owned(), json!(additions.clone().sealed(number, &inventory, sealer)));
        }
        if whole.is_empty() {
            return None;
        }
        // The schema of the CRD asks for both.
        whole.entry("apiVersion").or_insert_with(|| json!("orangery.dev/v1alpha1"));
        whole.entry("kind").or_insert_with(|| json!("ProviderStatus"));
        Some(Value::Object(whole))
    };
    let same = finished(number);
    if same.as_ref() == before {
        return WrittenStatus { status: same, number, large };
    }
    let number = sealer.next_number();
    WrittenStatus { status: finished(number), number, large }
}

#[cfg(test)]
mod tests;
