//! What is being deleted on its own, as by a user, and waits for a job of its root says so (C-161).

use kube::ResourceExt;
use orangery_api::{job::Job, marks::Marks};
use orangery_core::{
    phase::{Phase as _, item::Item},
    step::Step,
};
use orangery_reconcile::{Key, Store, Watched};

use crate::{controller_context::ControllerContext, job::JobStatus, object::generation_of, tree::root_of};

/// Tells it of an object without a job. `installation` is the one that it belongs to, or itself. Of what a running job of the root
/// deletes, or its deletion, nothing is told: the job comes to it.
pub(crate) async fn tell<K: Watched + Job + Marks, S: JobStatus>(
    host: &ControllerContext,
    store: &Store<K>,
    object: &K,
    installation: &str,
    status: impl FnOnce(&mut K) -> &mut S,
) -> Step<()> {
    if !object.is_deleting() || !object.job_finished() || Item::parse(object.phase()).is_some_and(Item::is_deletion) {
        return Ok(());
    }
    let key = Key { name: installation.into(), ..Key::of(object) };
    let root = root_of(&host.stores, &key).filter(|root| !root.is_deleting() && root.job_finished());
    let Some(root) = root else { return Ok(()) };
    let mut draft = object.clone();
    status(&mut draft).await_uninstall(&root.name_any(), generation_of(object), &host.now());
    if draft.conditions() == object.conditions() {
        return Ok(());
    }
    host.writer(store).update_status(object, &draft).await.map(drop).map_err(|error| error.halt("UpdateStatus"))
}

#[cfg(test)]
mod tests {
    use orangery_api::installation::Installation;
    use orangery_core::step::Halt;
    use serde_json::{Value, json};

    use super::*;
    use crate::{controller_context::tests::host, object::tests::installation};

    const TIME: &str = "2026-01-01T00:00:00Z";

    fn with(name: &str, metadata: Value, status: &Value) -> Installation {
        let mut made = installation(name, name, metadata);
        made.status = serde_json::from_value(status.clone()).unwrap();
        made
    }

    fn ended(phase: &str) -> Value {
        json!({"phase": phase, "jobID": "one", "jobIDFinished": "one"})
    }

    /// What goes, below a root like this. Nothing listens where the host would write: what would be told fails.
    async fn is_told(goes: &Installation, root: Option<Installation>) -> bool {
        let host = host();
        let store = &host.stores.installations;
        root.into_iter().chain([goes.clone()]).for_each(|object| drop(store.upsert(object)));
        match tell(&host, store, goes, "sub", |draft| draft.status.get_or_insert_default()).await {
            Ok(()) => false,
            Err(Halt::Retry(failure)) => {
                assert_eq!(failure.operation, "UpdateStatus", "{failure:?}");
                true
            }
            Err(other) => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn c_161_what_goes_by_itself_is_told_it_once_where_no_job_comes_to_it() {
        let rests = ended("Succeeded");
        let root = |metadata: Value, status: &Value| Some(with("top", metadata, status));
        let resting = || root(json!({}), &rests);
        let owner =
            json!([{"apiVersion": orangery_api::API_VERSION, "kind": "Installation", "name": "top", "uid": "top"}]);
        let sub = |deleted: Option<&str>, status: &Value| {
            with("sub", json!({"ownerReferences": owner, "deletionTimestamp": deleted, "finalizers": ["f"]}), status)
        };
        let goes = sub(Some(TIME), &rests);
        assert!(is_told(&goes, resting()).await);
        assert!(!is_told(&sub(None, &rests), resting()).await, "nobody deletes it");
        let running = json!({"phase": "Progressing", "jobID": "two", "jobIDFinished": "one"});
        assert!(!is_told(&sub(Some(TIME), &running), resting()).await, "a job of its own is under way");
        assert!(!is_told(&sub(Some(TIME), &ended("DeleteFailed")), resting()).await, "its deletion has failed");
        assert!(!is_told(&goes, root(json!({}), &running)).await, "the job of its root comes to it");
        let deleted = root(json!({"deletionTimestamp": TIME, "finalizers": ["f"]}), &rests);
        assert!(!is_told(&goes, deleted).await, "the deletion of its root comes to it");
        assert!(!is_told(&goes, None).await, "it has no root");
        let mut told = goes.clone();
        told.status.get_or_insert_default().await_uninstall("top", generation_of(&goes), &host().now());
        assert!(!is_told(&told, resting()).await, "it says so already");
    }
}
