//! Where objects are: their cluster, which may be another one than it was, and whether their kind has namespaces.

use std::collections::{BTreeMap, BTreeSet};

use orangery_cluster::{ClusterSet, Error};
use orangery_core::{
    name::{ApiVersion, Kind},
    step::Step,
};
use orangery_proposal::{
    ClusterRef, DeletionGroup, DeletionScope, Next, Proposal, Stage,
    check::key_of,
    executor::{stages, writes},
    inventory::{InventoryEntry, LocatedObject},
};
use serde_json::Value;

use crate::{
    ItemState,
    apply_error::ApplyError,
    cluster_identity::{ReachedCluster, Sameness},
    defined::{KindOn, defined_scopes},
    job::Purpose,
    job_objects::JobObjects,
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
            let now = ReachedCluster::of(&*self.job.clusters.cluster(&on).await?).await?;
            let has_objects = state.inventory.0.keys().any(|located| located.on == on);
            let before = state.clusters.get(&on).cloned();
            match before.as_ref().map(|before| (before, before.against(&now))) {
                None | Some((_, Sameness::Same)) => {}
                Some((_, Sameness::Other(uid))) => {
                    if self.job.purpose == Purpose::Install && leaves_too_many(&on, uid, state) {
                        return Err(ApplyError::too_many_clusters(&on, MOST_FORMER));
                    }
                    move_to_former(&on, uid, state);
                    check.is_moved = true;
                }
                // Nothing goes on where it may be another one (C-321).
                Some((before, Sameness::Unknown)) if now.uid.is_none() && has_objects => {
                    return Err(ApplyError::unknown_cluster(&on, before.address(), &now.address));
                }
                Some((before, Sameness::Unknown)) => {
                    state.notes.extend(before.address().and_then(|before| unknown_before(&on, before, state)));
                }
            }
            state.clusters.insert(on.clone(), now.identity());
            if let Some(uid) = &now.uid {
                restore_former(&on, uid, state);
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
                        Err(error) if error.is_not_served() => {
                            let named = (on.clone(), kind.0.clone(), kind.1.clone());
                            self.defined.get(&named).copied().unwrap_or(true)
                        }
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

/// What to say where it is known now which cluster it is, and was not when it had another address.
fn unknown_before(on: &ClusterRef, before: &str, state: &ItemState) -> Option<String> {
    state.inventory.0.keys().any(|located| located.on == *on).then(|| {
        format!(
            "{on} was {before} before, and which cluster that was could not be known: what this job does not find may still be \
             there"
        )
    })
}

/// Whether the item would leave its objects in one cluster more than it may.
fn leaves_too_many(on: &ClusterRef, before: &str, state: &ItemState) -> bool {
    let is_new = !state.former.contains_key(before) && state.former.len() >= MOST_FORMER;
    is_new && state.inventory.0.keys().any(|located| located.on == *on)
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
    let kinds = kinds_without_namespaces(clusters, &proposal).await?;
    let has_none =
        |on: &ClusterRef, of: &ApiVersion, kind: &Kind| kinds.contains(&(on.clone(), of.clone(), kind.clone()));
    for stage in stages_to_change(&mut proposal) {
        for write in &mut stage.writes {
            let Ok(key) = key_of(&write.object) else { continue };
            if has_none(&write.on, &key.api_version, &key.kind)
                && let Some(metadata) = write.object.get_mut("metadata").and_then(Value::as_object_mut)
            {
                metadata.remove("namespace");
            }
        }
        for removal in &mut stage.removals {
            if has_none(&removal.on, &removal.key.api_version, &removal.key.kind) {
                removal.key.namespace = None;
            }
        }
    }
    for group in proposal.deletion_order.iter_mut().chain(&mut proposal.pruning_order) {
        for scope in &mut group.what {
            if let DeletionScope::Matching(selection) = scope
                && has_none(&group.on, &selection.api_version, &selection.kind)
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
    kinds_without_namespaces(clusters, proposal).await.map(|kinds| !kinds.is_empty())
}

/// The kinds without namespaces of which a proposal has objects or selections with one: as their cluster serves them or, where it
/// does not yet, as the proposal defines them. Each is asked for once.
async fn kinds_without_namespaces(clusters: &ClusterSet, proposal: &Proposal) -> Step<BTreeSet<KindOn>> {
    let defined = defined_scopes(proposal);
    let mut found = BTreeSet::new();
    for named in placed_kinds(proposal) {
        let (on, api_version, kind) = &named;
        let is_namespaced = match clusters.cluster(on).await?.served(api_version, kind).await {
            Ok(resource) => resource.namespaced,
            Err(Error::NotServed { .. }) => defined.get(&named).copied().unwrap_or(true),
            Err(error) => return Err(error.into()),
        };
        if !is_namespaced {
            found.insert(named);
        }
    }
    Ok(found)
}

/// The kinds of which a proposal has objects or selections with a namespace.
fn placed_kinds(proposal: &Proposal) -> BTreeSet<KindOn> {
    let (before, afterwards) = stages(proposal);
    let removals = before.iter().chain(afterwards).flat_map(|stage| &stage.removals);
    let removed = removals.map(|removal| LocatedObject { on: removal.on.clone(), key: removal.key.clone() });
    let objects = writes(proposal).map(|(located, _)| located).chain(removed);
    let placed = objects.filter(|located| located.key.namespace.is_some());
    let mut kinds: BTreeSet<KindOn> =
        placed.map(|located| (located.on, located.key.api_version, located.key.kind)).collect();
    let groups = proposal.deletion_order.iter().chain(&proposal.pruning_order);
    kinds.extend(groups.flat_map(placed_selections));
    kinds
}

fn placed_selections(group: &DeletionGroup) -> impl Iterator<Item = KindOn> {
    group.what.iter().filter_map(|scope| {
        let DeletionScope::Matching(selection) = scope else { return None };
        selection.namespace.as_ref()?;
        Some((group.on.clone(), selection.api_version.clone(), selection.kind.clone()))
    })
}

fn stages_to_change(proposal: &mut Proposal) -> impl Iterator<Item = &mut Stage> {
    let afterwards = match &mut proposal.next {
        Next::Finish(completion) => Some(&mut completion.afterwards),
        Next::Fail(_) | Next::ContinueWith(_) | Next::AgainIn { .. } => None,
    };
    proposal.stages.iter_mut().chain(afterwards.into_iter().flatten())
}
