//! What controllers say of objects: owner references of those they make, what holds them, and why one could not be read or
//! written.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Resource;
use orangery_api::{FINALIZER, annotation, marks::Marks};
use orangery_reconcile::Watched;

/// The owner reference of an object's controller.
pub(crate) fn controller_reference<K: Resource<DynamicType = ()>>(owner: &K) -> OwnerReference {
    OwnerReference { controller: Some(true), block_owner_deletion: Some(true), ..owner_reference(owner) }
}

/// The owner reference of an object that goes with its owner, without being controlled by it.
pub(crate) fn owner_reference<K: Resource<DynamicType = ()>>(owner: &K) -> OwnerReference {
    OwnerReference {
        api_version: K::api_version(&()).into_owned(),
        kind: K::kind(&()).into_owned(),
        name: owner.meta().name.clone().unwrap_or_default(),
        uid: owner.meta().uid.clone().unwrap_or_default(),
        ..OwnerReference::default()
    }
}

/// Gives an object the finalizer that holds it until its own job has deleted it, also where somebody took it away.
pub(crate) fn hold<K: Watched + Marks>(object: &mut K) {
    if !object.is_deleting() && !object.has_finalizer(FINALIZER) {
        object.meta_mut().finalizers.get_or_insert_default().push(FINALIZER.to_owned());
    }
}

/// An object as it has to be when it is deleted, where it is not so: held, so that nothing it has deployed is forgotten,
/// and marked, if nothing is to be uninstalled (INS-78, INS-79).
pub(crate) fn before_deletion<K: Watched + Marks>(object: &K, without_uninstall: bool) -> Option<K> {
    let mut after = object.clone();
    hold(&mut after);
    if without_uninstall && !object.flag(annotation::DELETE_WITHOUT_UNINSTALL) {
        mark(&mut after, annotation::DELETE_WITHOUT_UNINSTALL);
    }
    (after.meta() != object.meta()).then_some(after)
}

/// Sets an annotation to `true`.
pub(crate) fn mark<K: Watched>(object: &mut K, key: &str) {
    object.meta_mut().annotations.get_or_insert_default().insert(key.to_owned(), "true".to_owned());
}

/// What a server says to a request that failed, without the client's words around it.
pub(crate) fn told(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}
