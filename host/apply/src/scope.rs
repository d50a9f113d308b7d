//! Where objects are: their cluster, which may be another one than it was, and whether their kind has namespaces.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use orangery_cluster::{ClusterSet, Error};
use orangery_core::{
    name::{ApiVersion, Kind},
    step::Step,
};
use orangery_proposal::{
    ClusterRef, DeletionScope, Next, ObjectWrite, Proposal, Stage,
    check::key_of,
    deployer::ApiResource,
    inventory::{InventoryEntry, LocatedObject, is_definition},
};
use serde_json::Value;

use crate::{
    ItemState,
    apply_error::ApplyError,
    job::Purpose,
    job_objects::{JobObjects, KindOn, kinds_of},
};

/// The clusters of objects.
pub(crate) fn clusters_of(objects: &BTreeSet<LocatedObject>) -> BTreeSet<ClusterRef> {
    objects.iter().map(|located| located.on.clone()).collect()
}

/// The most clusters that an item may have left objects in: the credentials of each are kept in the operator's namespace.
const MOST_FORMER: usize = 16;

/// What the clusters have changed in an inventory.
#[derive(Default)]
pub(crate) struct ClusterCheck {
    /// Whether anything moved to `former`.
    pub(crate) is_moved: bool,
    /// The entries that have lost their namespace, as they were.
    pub(crate) strays: Vec<LocatedObject>,
}

impl JobObjects<'_> {
    /// Holds the inventory against these clusters. What lies in another cluster than the reference means now moves to `former`:
    /// nothing of it is looked for here (C-35). Entries of kinds without namespaces lose theirs.
    pub(crate) async fn check_clusters(
        &self,
        on: BTreeSet<ClusterRef>,
        state: &mut ItemState,
    ) -> Result<ClusterCheck, ApplyError> {
        let mut check = ClusterCheck::default();
        for on in on {
            let cluster = self.job.clusters.cluster(&on).await?;
            if let Some(uid) = cluster.uid().await? {
                if self.job.purpose == Purpose::Install && leaves_too_many(&on, &uid, state) {
                    return Err(ApplyError::too_many_clusters(&on, MOST_FORMER));
                }
                match state.clusters.insert(on.clone(), uid.clone()) {
                    Some(before) if before != uid => {
                        move_to_former(&on, &before, state);
                        check.is_moved = true;
                    }
                    Some(_) | None => {}
                }
                restore_former(&on, &uid, state);
            }
            check.strays.extend(self.drop_stray_namespaces(&on, state).await?);
        }
        Ok(check)
    }

    /// Answers the entries that have lost their namespace, as they were.
    async fn drop_stray_namespaces(
        &self,
        on: &ClusterRef,
        state: &mut ItemState,
    ) -> Result<Vec<LocatedObject>, ApplyError> {
        let is_placed = |located: &&LocatedObject| located.on == *on && located.key.namespace.is_some();
        let placed: Vec<LocatedObject> = state.inventory.0.keys().filter(is_placed).cloned().collect();
        let mut kinds: BTreeMap<(ApiVersion, Kind), bool> = BTreeMap::new();
        let mut strays = Vec::new();
        for located in placed {
            let kind = (located.key.api_version.clone(), located.key.kind.clone());
            let is_namespaced = match kinds.get(&kind) {
                Some(known) => *known,
                None => {
                    let found = match self.resource(on, &kind.0, &kind.1).await {
                        Ok((_, resource)) => resource.namespaced,
                        Err(error) if error.is_not_served() => true,
                        Err(error) => return Err(error),
                    };
                    *kinds.entry(kind).or_insert(found)
                }
            };
            if !is_namespaced && let Some(entry) = state.inventory.0.remove(&located) {
                state.inventory.0.entry(without_namespace(&located)).or_insert(entry);
                strays.push(located);
            }
        }
        Ok(strays)
    }
}

/// Whether the item would leave its objects in one cluster more than it may.
fn leaves_too_many(on: &ClusterRef, uid: &str, state: &ItemState) -> bool {
    let moves = state.clusters.get(on).is_some_and(|before| before != uid && !state.former.contains_key(before));
    moves && state.former.len() >= MOST_FORMER && state.inventory.0.keys().any(|located| located.on == *on)
}

/// The object as one of no namespace.
pub(crate) fn without_namespace(located: &LocatedObject) -> LocatedObject {
    let mut located = located.clone();
    located.key.namespace = None;
    located
}

/// Moves what the inventory has behind a reference to the cluster of this uid.
fn move_to_former(on: &ClusterRef, uid: &str, state: &mut ItemState) {
    let of_cluster = |located: &LocatedObject, _: &mut InventoryEntry| located.on == *on;
    let moved: Vec<_> = state.inventory.0.extract_if(.., of_cluster).collect();
    if !moved.is_empty() {
        state.former.entry(uid.to_owned()).or_default().0.extend(moved);
    }
}

/// Takes back what moved to `former` when the reference meant another cluster than this.
fn restore_former(on: &ClusterRef, uid: &str, state: &mut ItemState) {
    let Some(former) = state.former.get_mut(uid) else { return };
    let of_cluster = |located: &LocatedObject, _: &mut InventoryEntry| located.on == *on;
    for (located, entry) in former.0.extract_if(.., of_cluster) {
        state.inventory.0.entry(located).or_insert(entry);
    }
    if former.0.is_empty() {
        state.former.remove(uid);
    }
}

/// The proposal as API servers take it: objects and selections of kinds without namespaces have none (C-35). A kind that
/// neither a cluster serves nor the proposal defines is left as it is.
///
/// # Errors
/// A cluster cannot be asked.
pub async fn without_stray_namespaces(clusters: &ClusterSet, mut proposal: Proposal) -> Step<Proposal> {
    let definitions: Vec<(ClusterRef, Value)> = writes(&mut proposal)
        .filter(|write| defines(write))
        .map(|write| (write.on.clone(), write.object.clone()))
        .collect();
    let defined = definitions.iter().flat_map(|(on, object)| kinds_of(on, object)).collect();
    let scopes = KindScopes { clusters, defined };
    for write in writes(&mut proposal) {
        let Ok(key) = key_of(&write.object) else { continue };
        if key.namespace.is_some()
            && !scopes.is_namespaced(&write.on, &key.api_version, &key.kind).await?
            && let Some(metadata) = write.object.get_mut("metadata").and_then(Value::as_object_mut)
        {
            metadata.remove("namespace");
        }
    }
    for removal in stages(&mut proposal).flat_map(|stage| &mut stage.removals) {
        let key = &mut removal.key;
        if key.namespace.is_some() && !scopes.is_namespaced(&removal.on, &key.api_version, &key.kind).await? {
            key.namespace = None;
        }
    }
    for group in proposal.deletion_order.iter_mut().chain(&mut proposal.pruning_order) {
        for scope in &mut group.what {
            if let DeletionScope::Matching(selection) = scope
                && selection.namespace.is_some()
                && !scopes.is_namespaced(&group.on, &selection.api_version, &selection.kind).await?
            {
                selection.namespace = None;
            }
        }
    }
    Ok(proposal)
}

/// Whether a proposal has objects or selections of kinds without namespaces that have one all the same: where it was put in
/// order before, since one of its kinds was not served then (C-78).
///
/// # Errors
/// A cluster cannot be asked.
pub async fn has_stray_namespaces(clusters: &ClusterSet, proposal: &Proposal) -> Step<bool> {
    let afterwards: &[Stage] = match &proposal.next {
        Next::Finish(completion) => &completion.afterwards,
        Next::Fail(_) | Next::ContinueWith(_) | Next::AgainIn { .. } => &[],
    };
    let mut defined = BTreeMap::new();
    let mut placed = BTreeSet::new();
    for stage in proposal.stages.iter().chain(afterwards) {
        let definitions = stage.writes.iter().filter(|write| defines(write));
        defined.extend(definitions.flat_map(|write| kinds_of(&write.on, &write.object)));
        let written = stage.writes.iter().filter_map(|write| Some((&write.on, key_of(&write.object).ok()?)));
        let removed = stage.removals.iter().map(|removal| (&removal.on, removal.key.clone()));
        for (on, key) in written.chain(removed).filter(|(_, key)| key.namespace.is_some()) {
            placed.insert((on.clone(), key.api_version, key.kind));
        }
    }
    for group in proposal.deletion_order.iter().chain(&proposal.pruning_order) {
        for scope in &group.what {
            if let DeletionScope::Matching(selection) = scope
                && selection.namespace.is_some()
            {
                placed.insert((group.on.clone(), selection.api_version.clone(), selection.kind.clone()));
            }
        }
    }
    let scopes = KindScopes { clusters, defined };
    for (on, of_version, of_kind) in &placed {
        if !scopes.is_namespaced(on, of_version, of_kind).await? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Which kinds have namespaces.
struct KindScopes<'a> {
    clusters: &'a ClusterSet,
    /// The kinds that the proposal itself defines.
    defined: BTreeMap<KindOn, Arc<ApiResource>>,
}

impl KindScopes<'_> {
    async fn is_namespaced(&self, on: &ClusterRef, of_version: &ApiVersion, of_kind: &Kind) -> Step<bool> {
        let named = (on.clone(), of_version.clone(), of_kind.clone());
        if let Some(resource) = self.defined.get(&named) {
            return Ok(resource.namespaced);
        }
        match self.clusters.cluster(on).await?.served(of_version, of_kind).await {
            Ok(resource) => Ok(resource.namespaced),
            Err(Error::NotServed { .. }) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }
}

fn defines(write: &ObjectWrite) -> bool {
    key_of(&write.object).is_ok_and(|key| is_definition(&key))
}

fn stages(proposal: &mut Proposal) -> impl Iterator<Item = &mut Stage> {
    let afterwards = match &mut proposal.next {
        Next::Finish(completion) => Some(&mut completion.afterwards),
        Next::Fail(_) | Next::ContinueWith(_) | Next::AgainIn { .. } => None,
    };
    proposal.stages.iter_mut().chain(afterwards.into_iter().flatten())
}

fn writes(proposal: &mut Proposal) -> impl Iterator<Item = &mut ObjectWrite> {
    stages(proposal).flat_map(|stage| &mut stage.writes)
}
