//! Who is woken by whose change: the reverse edges of every wait (ORC-29). Declared here once.

use std::sync::Arc;

use kube::ResourceExt;
use orangery_api::{annotation, installation::Installation, job::Job, label, marks::Marks};
use orangery_apply::ClusterPool;
use orangery_reconcile::{Key, Queue, Store, Watched};

use crate::{
    deploy_item,
    host::{Stores, index},
    installation::{on_change, sibling},
};

/// The queues of the controllers.
#[derive(Clone)]
pub struct Queues {
    /// Of Installations.
    pub installations: Queue,
    /// Of Executions.
    pub executions: Queue,
    /// Of deploy items.
    pub deploy_items: Queue,
}

/// The clusters behind targets: what changes there wakes the deploy items that deployed it, and the Executions whose
/// conditions look at it. All of them share connections and watches (WF-07).
pub fn clusters(queues: &Queues) -> Arc<ClusterPool> {
    let (executions, deploy_items) = (queues.executions.clone(), queues.deploy_items.clone());
    Arc::new(ClusterPool::new(move |waiter| {
        let queue = if waiter.kind == deploy_item::KIND { &deploy_items } else { &executions };
        queue.wake(Key::new(waiter.namespace.clone(), waiter.name.clone()));
    }))
}

/// Subscribes the queues to the stores: a change wakes who may wait for it. The object itself is woken by its own loop.
pub fn wire(stores: &Stores, queues: &Queues) {
    let executions = queues.executions.clone();
    stores.deploy_items.subscribe(move |change| {
        if let Some(item) = change.after.or(change.before)
            && let Some(execution) = item.label(label::MANAGED_BY)
        {
            executions.wake(key(item.as_ref(), execution));
        }
    });
    let installations = queues.installations.clone();
    stores.executions.subscribe(move |change| {
        // By its name, which is that of its Installation: `kubectl delete --cascade=orphan` takes the owner away.
        if let Some(execution) = change.after.or(change.before) {
            installations.wake(key(execution.as_ref(), &execution.name_any()));
        }
    });
    wire_installations(stores, queues);
    wire_imports(&stores.data_objects, stores, queues);
    wire_imports(&stores.targets, stores, queues);
    let queue = queues.installations.clone();
    let installations = stores.installations.clone();
    stores.contexts.subscribe(move |change| {
        if let (None, Some(context)) = (change.before, change.after) {
            for installation in installations.keys(context.namespace().as_deref()) {
                queue.wake(installation);
            }
        }
    });
}

/// What is imported wakes the roots whose jobs start by its changes (ORC-33). Secrets and ConfigMaps, which have no store, do
/// so in [`on_change`].
fn wire_imports<K: Watched>(imported: &Store<K>, stores: &Stores, queues: &Queues) {
    let (queue, installations) = (queues.installations.clone(), stores.installations.clone());
    imported.subscribe(move |change| {
        let Some(object) = change.after.or(change.before) else { return };
        let namespace = object.namespace().unwrap_or_default();
        let name = on_change::observed_as::<K>(&object.name_any());
        for importer in installations.indexed_keys(index::OBSERVED, &namespace, &name) {
            queue.wake(importer);
        }
    });
}

/// An Installation wakes its parent, the siblings that import from it, and those it imports from, which may
/// wait for its deletion.
fn wire_installations(stores: &Stores, queues: &Queues) {
    let (queue, executions) = (queues.installations.clone(), queues.executions.clone());
    let store = stores.installations.clone();
    stores.installations.subscribe(move |change| {
        let Some(installation) = change.after.or(change.before) else { return };
        if change.after.is_none() {
            // What it leaves behind deletes itself.
            let own = key(installation.as_ref(), &installation.name_any());
            for child in store.indexed_keys(index::PARENT, &own.namespace, &own.name) {
                queue.wake(child);
            }
            executions.wake(own);
        }
        let parent = sibling::parent(installation);
        if !parent.is_empty() {
            queue.wake(key(installation.as_ref(), parent));
        }
        if !may_release_others(change.before.map(AsRef::as_ref), change.after.map(AsRef::as_ref)) {
            return;
        }
        let namespace = installation.namespace().unwrap_or_default();
        let importers = sibling::exports(installation).into_iter().map(|edge| (index::IMPORTS, edge));
        let exporters = sibling::imports(installation).into_iter().map(|edge| (index::EXPORTS, edge));
        for (index, edge) in importers.chain(exporters) {
            for other in store.indexed_keys(index, &namespace, &edge) {
                queue.wake(other);
            }
        }
    });
}

/// Whether siblings that wait for this Installation may go on: it ended a job, has asked those that it was to ask, lost a
/// request, or is gone.
fn may_release_others(before: Option<&Installation>, after: Option<&Installation>) -> bool {
    fn stand(of: &Installation) -> (&str, &str, bool, Option<&str>) {
        let asks = of.status.as_ref().is_some_and(|status| !status.dependents_to_trigger.is_empty());
        (of.job_id(), of.job_id_finished(), asks, of.annotation(annotation::OPERATION))
    }
    before.map(stand) != after.map(stand)
}

fn key<K: Watched>(near: &K, name: &str) -> Key {
    Key { namespace: near.meta().namespace.clone().unwrap_or_default(), name: name.to_owned() }
}
