//! Namespaces and custom kinds under deletion: they go when nothing is left in them.

use super::{call_for, delete_all, unhold};
use crate::{
    cluster::EmbeddedCluster,
    crd, object,
    operation::DeletionOptions,
    refusal::Refusal,
    store::{Expect, ObjectName, StoreKey, StoreWrite, StoreWriteError},
};

/// Something is gone: what it was in may be empty now.
pub(super) async fn after_deletion(cluster: &EmbeddedCluster, key: &StoreKey) -> Result<(), Refusal> {
    finish_kind(cluster, &key.collection).await?;
    if key.name.namespace.is_empty() { Ok(()) } else { finish_namespace(cluster, &key.name.namespace).await }
}

/// Deletes what lies in a namespace.
pub(super) async fn empty_namespace(cluster: &EmbeddedCluster, namespace: &str) -> Result<(), Refusal> {
    delete_all(cluster, &cluster.store.contents(namespace), &DeletionOptions::default()).await?;
    finish_namespace(cluster, namespace).await
}

async fn finish_namespace(cluster: &EmbeddedCluster, namespace: &str) -> Result<(), Refusal> {
    let key = StoreKey { collection: "namespaces".into(), name: ObjectName::new("", namespace) };
    loop {
        let Some(entry) = cluster.store.latest(&key).filter(|entry| entry.head.deleting) else { return Ok(()) };
        if entry.head.finalizers > 0 || cluster.store.has_contents(namespace) {
            return Ok(());
        }
        let Some(call) = call_for(cluster, &key) else { return Ok(()) };
        let expect = Expect::Revision(entry.revision);
        let gone = StoreWrite { key: key.clone(), expect, object: entry.value(), deletes: true };
        match cluster.store.write(gone).await {
            Err(StoreWriteError::Stale) => {}
            Err(error) => return Err(call.refused(&error, namespace)),
            Ok(_) => return Ok(()),
        }
    }
}

/// Deletes the objects of a custom kind whose definition is under deletion.
pub(super) async fn empty_kind(cluster: &EmbeddedCluster, collection: &str) -> Result<(), Refusal> {
    let key = |name: ObjectName| StoreKey { collection: collection.into(), name };
    let keys: Vec<StoreKey> =
        cluster.store.list(collection, None, None).entries.into_iter().map(|(name, _)| key(name)).collect();
    delete_all(cluster, &keys, &DeletionOptions::default()).await?;
    finish_kind(cluster, collection).await
}

async fn finish_kind(cluster: &EmbeddedCluster, collection: &str) -> Result<(), Refusal> {
    let definition = StoreKey { collection: crd::SHELF.into(), name: ObjectName::new("", collection) };
    let Some(entry) = cluster.store.latest(&definition).filter(|entry| entry.head.deleting) else { return Ok(()) };
    let held = object::finalizers(&entry.value()).contains(&crd::CLEANUP);
    if held && cluster.store.list(collection, None, None).entries.is_empty() {
        unhold(cluster, &definition, crd::CLEANUP).await?;
    }
    Ok(())
}
