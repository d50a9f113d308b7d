//! What follows from changes: owned objects of deleted owners, contents of deleted namespaces, objects of deleted
//! kinds, and what every new namespace contains.
//!
//! One task, woken by the notes of the store and by nothing else. It writes by the same operations as everybody. Beside it,
//! where that is asked for, workloads are simulated.

mod garbage;
mod terminating;
mod workloads;

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::sync::mpsc;

pub(crate) use self::workloads::simulate;
use crate::{
    cluster::EmbeddedCluster,
    crd, object,
    operation::{DeletionOptions, FieldValidation, ObjectPart, PatchCall, WriteRequest},
    patch::{PatchType, apply::OnConflict},
    refusal::{Refusal, RefusalReason},
    resource::Served,
    store::{Note, ObjectName, StoreKey},
};

/// How many objects are deleted at the same time, so that they share flushes of the disk.
const AT_ONCE: usize = 64;
/// After what time something is done again that the disk did not take.
const AGAIN: Duration = Duration::from_millis(500);

/// Follows the notes until the cluster stops.
pub(crate) async fn run(cluster: Arc<EmbeddedCluster>, mut notes: mpsc::UnboundedReceiver<Note>) {
    loop {
        let note = tokio::select! {
            note = notes.recv() => note,
            () = cluster.stop.cancelled() => None,
        };
        let Some(note) = note else { return };
        while let Err(refusal) = follow(&cluster, &note).await {
            tracing::error!(?note, %refusal, "what follows from a change could not be done");
            if !refusal.reason.is_of_the_disk() || !waits_for_disk(&cluster).await {
                break;
            }
        }
    }
}

/// Waits before something is done again that the disk did not take; false where the cluster stops.
async fn waits_for_disk(cluster: &EmbeddedCluster) -> bool {
    tokio::select! {
        () = tokio::time::sleep(AGAIN) => true,
        () = cluster.stop.cancelled() => false,
    }
}

async fn follow(cluster: &EmbeddedCluster, note: &Note) -> Result<(), Refusal> {
    match note {
        Note::Gone { key, head } => {
            garbage::release_dependents(cluster, &head.uid).await?;
            for owner in &head.owners {
                if let Some(owner) = cluster.store.find(owner) {
                    garbage::finish_owner(cluster, &owner).await?;
                }
            }
            terminating::after_deletion(cluster, key).await
        }
        Note::Deleting(key) => match &*key.collection {
            "namespaces" => terminating::empty_namespace(cluster, &key.name.name).await,
            crd::SHELF => {
                garbage::finish_owner(cluster, key).await?;
                terminating::empty_kind(cluster, &key.name.name).await
            }
            _ => garbage::finish_owner(cluster, key).await,
        },
        Note::Owned(key) => garbage::check_owners(cluster, key).await,
        Note::Namespace(key) => furnish(cluster, &key.name.name).await,
    }
}

/// What every namespace contains.
async fn furnish(cluster: &EmbeddedCluster, namespace: &str) -> Result<(), Refusal> {
    let things = [
        ("serviceaccounts", json!({"metadata": {"name": "default"}})),
        (
            "configmaps",
            json!({"metadata": {"name": "kube-root-ca.crt"}, "data": {"ca.crt": cluster.identity.ca_pem()}}),
        ),
    ];
    for (collection, mut thing) in things {
        let Some(call) =
            call_for(cluster, &StoreKey { collection: collection.into(), name: ObjectName::new(namespace, "") })
        else {
            continue;
        };
        let name = object::meta(&thing, "name").to_owned();
        let authority = object::take(&mut thing, &["data"]);
        let kept = cluster.find(&call.served, namespace, &name).ok();
        if let (Some(kept), Some(authority)) = (&kept, &authority) {
            if kept.value().get("data") != Some(authority) {
                merge(cluster, call, &name, json!({"data": authority})).await?;
            }
            continue;
        }
        if let Some(authority) = authority {
            object::set(&mut thing, &["data"], authority);
        }
        let made = if kept.is_some() { Ok(()) } else { cluster.create(&call, thing).await.map(|_| ()) };
        match made {
            // The namespace may be under deletion again.
            Err(refusal)
                if matches!(
                    refusal.reason,
                    RefusalReason::AlreadyExists | RefusalReason::Forbidden | RefusalReason::NotFound
                ) => {}
            other => other?,
        }
    }
    Ok(())
}

/// A write of the lifecycle to the object at a place; none if its kind is not served any more.
fn call_for(cluster: &EmbeddedCluster, key: &StoreKey) -> Option<WriteRequest> {
    Some(call(cluster.catalog().in_collection(&key.collection)?, &key.name.namespace))
}

fn call(served: Served, namespace: &str) -> WriteRequest {
    WriteRequest {
        served,
        namespace: namespace.to_owned(),
        part: ObjectPart::Main,
        dry_run: false,
        manager: "kube-controller-manager".to_owned(),
        user: None,
        validation: FieldValidation::Ignore,
        doubled: Vec::new(),
    }
}

/// Merges a change into an object; one that is gone meanwhile needs none.
async fn merge(cluster: &EmbeddedCluster, call: WriteRequest, name: &str, patch: Value) -> Result<(), Refusal> {
    let name = name.to_owned();
    let patch = PatchCall { call, name, form: PatchType::Merge, patch, on_conflict: OnConflict::Refuse };
    match cluster.patch(patch).await {
        Err(refusal) if refusal.reason != RefusalReason::NotFound => Err(refusal),
        _ => Ok(()),
    }
}

/// Deletes objects, many at a time; those that are gone meanwhile are no failure.
async fn delete_all(cluster: &EmbeddedCluster, keys: &[StoreKey], how: &DeletionOptions) -> Result<(), Refusal> {
    for some in keys.chunks(AT_ONCE) {
        let deletions = some.iter().map(async |key: &StoreKey| {
            let Some(call) = call_for(cluster, key) else { return Ok(()) };
            match cluster.delete(&call, &key.name.name, how).await {
                Err(refusal) if refusal.reason != RefusalReason::NotFound => Err(refusal),
                _ => Ok(()),
            }
        });
        futures::future::join_all(deletions).await.into_iter().collect::<Result<(), Refusal>>()?;
    }
    Ok(())
}

/// Removes one finalizer.
async fn unhold(cluster: &EmbeddedCluster, key: &StoreKey, finalizer: &str) -> Result<(), Refusal> {
    loop {
        let Some(call) = call_for(cluster, key) else { return Ok(()) };
        let Some(entry) = cluster.store.latest(key) else { return Ok(()) };
        let object = entry.value();
        let left: Vec<&str> = object::finalizers(&object).into_iter().filter(|name| *name != finalizer).collect();
        // The version is named, so that a finalizer added meanwhile is not lost.
        let version = object::meta(&object, "resourceVersion");
        let patch = json!({"metadata": {"finalizers": left, "resourceVersion": version}});
        match merge(cluster, call, &key.name.name, patch).await {
            Err(refusal) if refusal.reason == RefusalReason::Conflict => {}
            other => return other,
        }
    }
}
