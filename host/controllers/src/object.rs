//! What controllers say of objects: owner references of those they make, what holds them, and why one could not be read or
//! written.

use std::{cmp::Reverse, fmt::Debug};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{
    Api, Resource, ResourceExt as _,
    api::{DeleteParams, Preconditions},
    core::PartialObjectMeta,
};
use orangery_api::{
    FINALIZER, annotation,
    marks::{Marks, Operation},
};
use orangery_reconcile::{Key, Watched};
use serde::de::DeserializeOwned;

/// Letters of the name of an object in the names of those that belong to it.
const LETTERS_OF_OWNER: usize = 200;

/// Deletes an object where it is still the one that was read.
pub(crate) fn of_uid(uid: Option<String>) -> DeleteParams {
    let preconditions = Preconditions { uid, resource_version: None };
    DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() }
}

/// Deletes all but the newest of these: those with the greatest ages are kept. What cannot be deleted stays.
pub(crate) async fn delete_old<K, A: Ord>(
    api: &Api<K>,
    mut listed: Vec<PartialObjectMeta<K>>,
    age: impl Fn(&PartialObjectMeta<K>) -> A,
    kept: usize,
) where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    listed.sort_by_key(|object| Reverse(age(object)));
    for old in listed.into_iter().skip(kept) {
        let name = old.name_any();
        if let Err(error) = api.delete(&name, &of_uid(old.metadata.uid)).await {
            tracing::debug!(%error, kind = %K::kind(&()), name, "an old object stays");
        }
    }
}

/// How the name of an object that belongs to another one begins: with that of the other one, as far as there is room for the rest.
pub(crate) fn beginning_of_name(of: &str) -> String {
    let begin: String = of.chars().take(LETTERS_OF_OWNER).collect();
    begin.trim_end_matches(['-', '.']).to_owned()
}

/// The owner reference of an object's controller.
pub(crate) fn controller_reference<K: Resource<DynamicType = ()>>(owner: &K) -> OwnerReference {
    OwnerReference { controller: Some(true), block_owner_deletion: Some(true), ..owner_reference(owner) }
}

/// The owner reference of an object that goes with its owner, without being controlled by it.
pub(crate) fn owner_reference<K: Resource<DynamicType = ()>>(owner: &K) -> OwnerReference {
    OwnerReference {
        api_version: K::api_version(&()).into_owned(),
        kind: K::kind(&()).into_owned(),
        name: Key::of(owner).name.into(),
        uid: uid_of(owner).to_owned(),
        ..OwnerReference::default()
    }
}

/// The uid of an object; empty before a server has made it.
pub(crate) fn uid_of<K: Resource>(object: &K) -> &str {
    object.meta().uid.as_deref().unwrap_or("")
}

/// Whether an object is on its way out, and somebody's finalizer alone holds it still. What is kept because it is in use has
/// users who go on with it (ORC-37).
pub(crate) fn is_going<K: Watched>(object: &K) -> bool {
    let is_in_use = || object.meta().finalizers.iter().flatten().any(|name| name == annotation::GUARD);
    object.meta().deletion_timestamp.is_some() && !is_in_use()
}

/// The generation of the spec of an object; 0 before a server has made it.
pub(crate) fn generation_of<K: Resource>(object: &K) -> i64 {
    object.meta().generation.unwrap_or(0)
}

/// Gives an object the finalizer that holds it until its own job has deleted it, also where somebody took it away.
pub(crate) fn add_finalizer<K: Watched + Marks>(object: &mut K) {
    if !object.is_deleting() && !object.has_finalizer(FINALIZER) {
        object.meta_mut().finalizers.get_or_insert_default().push(FINALIZER.to_owned());
    }
}

/// An object as it has to be when it is deleted, where it is not so: held, so that nothing it has deployed is forgotten,
/// and marked, if nothing is to be uninstalled (INS-78, INS-79).
pub(crate) fn before_deletion<K: Watched + Marks>(object: &K, without_uninstall: bool) -> Option<K> {
    let mut after = object.clone();
    add_finalizer(&mut after);
    if without_uninstall && !object.flag(annotation::DELETE_WITHOUT_UNINSTALL) {
        mark(&mut after, annotation::DELETE_WITHOUT_UNINSTALL);
    }
    (after.meta() != object.meta()).then_some(after)
}

/// Sets an annotation to `true`.
pub(crate) fn mark<K: Watched>(object: &mut K, key: &str) {
    object.meta_mut().annotations.get_or_insert_default().insert(key.to_owned(), "true".to_owned());
}

/// Asks an object for an operation.
pub(crate) fn set_operation<K: Watched>(object: &mut K, operation: &Operation) {
    let annotations = object.meta_mut().annotations.get_or_insert_default();
    annotations.insert(annotation::OPERATION.to_owned(), operation.to_string());
}

/// Takes the operation that an object is asked for away.
pub(crate) fn remove_operation<K: Watched>(object: &mut K) {
    object.meta_mut().annotations.get_or_insert_default().remove(annotation::OPERATION);
}

/// Removes the request for a job, with what belongs to it, so that it can be made again (INS-14).
pub(crate) fn remove_request<K: Watched>(object: &mut K) {
    let annotations = object.meta_mut().annotations.get_or_insert_default();
    for key in [annotation::OPERATION, annotation::RECONCILE_REASON, annotation::TRIGGER] {
        annotations.remove(key);
    }
}

/// What a server says to a request that failed, without the client's words around it.
pub(crate) fn message_of(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => orangery_cluster::unreached(other, "give the operator a kubeconfig with its authority"),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::api::{ListParams, PostParams};
    use orangery_api::installation::Installation;
    use serde_json::{Value, json};

    use super::*;
    use crate::controller_context::tests::server;

    /// An Installation with these fields of its metadata.
    pub(crate) fn installation(name: &str, uid: &str, fields: Value) -> Installation {
        let mut metadata = json!({"namespace": "n", "name": name, "uid": uid, "resourceVersion": "1"});
        orangery_proposal::overlay::overlay(&mut metadata, &fields);
        serde_json::from_value(json!({"metadata": metadata, "spec": {"blueprint": {}}})).unwrap()
    }

    #[tokio::test]
    async fn c_317_c_359_the_oldest_go_and_what_is_another_by_now_stays() {
        let (_server, client) = server(&[]).await;
        let api: Api<ConfigMap> = Api::namespaced(client, "default");
        let make = async |name: &str| {
            let made = json!({"metadata": {"name": name, "labels": {"old": ""}}});
            api.create(&PostParams::default(), &serde_json::from_value(made).unwrap()).await.unwrap();
        };
        for name in ["a", "b", "c", "d"] {
            make(name).await;
        }
        let listed = api.list_metadata(&ListParams::default().labels("old")).await.unwrap().items;
        // One of this name was made since.
        api.delete("a", &DeleteParams::default()).await.unwrap();
        make("a").await;
        delete_old(&api, listed, |object| object.name_any(), 2).await;
        let left = api.list_metadata(&ListParams::default().labels("old")).await.unwrap().items;
        let mut left: Vec<String> = left.iter().map(|object| object.name_any()).collect();
        left.sort();
        assert_eq!(left, ["a", "c", "d"]);
    }

    #[test]
    fn the_name_of_what_belongs_to_another_begins_with_that_as_far_as_there_is_room() {
        assert_eq!(beginning_of_name("web"), "web");
        assert_eq!(beginning_of_name(&"a".repeat(253)), "a".repeat(200));
        let dotted = format!("{}-.{}", "a".repeat(198), "b".repeat(50));
        assert_eq!(beginning_of_name(&dotted), "a".repeat(198), "what follows begins with a letter");
    }

    #[test]
    fn what_is_deleted_is_held_and_marked_where_it_is_not() {
        let held = json!({"finalizers": [FINALIZER]});
        assert_eq!(before_deletion(&installation("x", "x", held.clone()), false), None);
        let after = before_deletion(&installation("x", "x", json!({})), false).unwrap();
        assert!(after.has_finalizer(FINALIZER) && !after.flag(annotation::DELETE_WITHOUT_UNINSTALL));
        let marked = before_deletion(&installation("x", "x", held), true).unwrap();
        assert!(marked.flag(annotation::DELETE_WITHOUT_UNINSTALL));
        assert_eq!(before_deletion(&marked, true), None);
    }

    #[test]
    fn ins_14_a_removed_request_can_be_made_again() {
        let annotations = json!({(annotation::OPERATION): "reconcile", (annotation::RECONCILE_REASON): "retry", (annotation::TRIGGER): "t", "mine": "kept"});
        let mut asked = installation("x", "x", json!({"annotations": annotations}));
        remove_request(&mut asked);
        assert_eq!(asked.metadata.annotations, Some([("mine".to_owned(), "kept".to_owned())].into()));
    }
}
