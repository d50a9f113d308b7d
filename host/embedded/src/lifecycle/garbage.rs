//! Owners and what they own.

use serde_json::{Value, json};

use super::{call_for, delete_all, merge, unhold};
use crate::{
    cluster::EmbeddedCluster,
    object,
    operation::{DeletionOptions, FOREGROUND, ORPHAN, Propagation},
    refusal::{Refusal, RefusalReason},
    store::StoreKey,
};

/// An owner is gone: what it alone owned goes, what others own too loses this owner.
pub(super) async fn release_dependents(cluster: &EmbeddedCluster, uid: &str) -> Result<(), Refusal> {
    let mut doomed = Vec::new();
    for key in cluster.store.dependents(uid) {
        if has_living_owner(cluster, &key) {
            disown(cluster, &key, uid).await?;
        } else {
            doomed.push(key);
        }
    }
    delete_all(cluster, &doomed, &DeletionOptions::default()).await
}

/// An object names owners that it did not name before: if none of them exists, it goes.
pub(super) async fn check_owners(cluster: &EmbeddedCluster, key: &StoreKey) -> Result<(), Refusal> {
    let Some(entry) = cluster.store.latest(key) else { return Ok(()) };
    if entry.head.owners.is_empty() || has_living_owner(cluster, key) || !all_kinds_served(cluster, &entry.value()) {
        return Ok(());
    }
    delete_all(cluster, std::slice::from_ref(key), &DeletionOptions::default()).await
}

/// An owner under deletion: does what its finalizers wait for, and removes them when it is done.
pub(super) async fn finish_owner(cluster: &EmbeddedCluster, key: &StoreKey) -> Result<(), Refusal> {
    let Some(entry) = cluster.store.latest(key).filter(|entry| entry.head.deleting) else { return Ok(()) };
    let object = entry.value();
    let finalizers = object::finalizers(&object);
    if finalizers.contains(&ORPHAN) {
        for dependent in cluster.store.dependents(&entry.head.uid) {
            disown(cluster, &dependent, &entry.head.uid).await?;
        }
        return unhold(cluster, key, ORPHAN).await;
    }
    if !finalizers.contains(&FOREGROUND) {
        return Ok(());
    }
    let dependents = cluster.store.dependents(&entry.head.uid);
    let how = DeletionOptions { propagation: Propagation::Foreground, ..DeletionOptions::default() };
    delete_all(cluster, &dependents, &how).await?;
    let blocking = |key: &StoreKey| cluster.store.latest(key).is_some_and(|entry| blocks(&entry.value(), &object));
    if !dependents.iter().any(blocking) {
        unhold(cluster, key, FOREGROUND).await?;
    }
    Ok(())
}

fn blocks(dependent: &Value, owner: &Value) -> bool {
    let uid = object::meta(owner, "uid");
    let is_it = |reference: &&Value| object::text(reference, &["uid"]) == Some(uid);
    let references = object::items(dependent, &["metadata", "ownerReferences"]);
    references.iter().find(is_it).is_some_and(|owner| owner.get("blockOwnerDeletion") == Some(&Value::Bool(true)))
}

fn has_living_owner(cluster: &EmbeddedCluster, key: &StoreKey) -> bool {
    let owners = cluster.store.latest(key).map(|entry| entry.head.owners.clone()).unwrap_or_default();
    owners.iter().any(|owner| cluster.store.find(owner).is_some())
}

/// An owner of a kind that is not served may well exist somewhere: what it owns stays.
fn all_kinds_served(cluster: &EmbeddedCluster, object: &Value) -> bool {
    let catalog = cluster.catalog();
    object::items(object, &["metadata", "ownerReferences"]).iter().all(|owner| {
        let group = object::text(owner, &["apiVersion"]).unwrap_or_default();
        let group = group.split_once('/').map_or("", |(group, _)| group);
        catalog.has_kind(group, object::text(owner, &["kind"]).unwrap_or_default())
    })
}

/// Removes one owner from an object.
async fn disown(cluster: &EmbeddedCluster, key: &StoreKey, uid: &str) -> Result<(), Refusal> {
    loop {
        let Some(call) = call_for(cluster, key) else { return Ok(()) };
        let Some(entry) = cluster.store.latest(key) else { return Ok(()) };
        let object = entry.value();
        let other = |owner: &&Value| object::text(owner, &["uid"]) != Some(uid);
        let left: Vec<&Value> = object::items(&object, &["metadata", "ownerReferences"]).iter().filter(other).collect();
        let version = object::meta(&object, "resourceVersion");
        let patch = json!({"metadata": {"ownerReferences": left, "resourceVersion": version}});
        match merge(cluster, call, &key.name.name, patch).await {
            Err(refusal) if refusal.reason == RefusalReason::Conflict => {}
            other => return other,
        }
    }
}
