//! Objects that somebody depends on without deploying them: each is watched by its name, so that nobody reads it again.

use std::sync::Arc;

use kube::Client;
use orangery_core::name::ObjectName;
use orangery_proposal::deployer::ApiResource;
use orangery_turns::SharedBytes;

use crate::{
    connections::WatchHandles,
    watch::{NamespacedName, Observed, Scope, Waiter, Wake, WatchHandle, Watches},
};

/// Watches on single objects of one cluster. All who depend on an object share its watch, which ends with the last of them.
pub struct ObjectWatcher {
    client: Client,
    watches: Watches,
    handles: WatchHandles,
}

impl ObjectWatcher {
    /// Nothing is watched yet.
    pub(crate) fn new(client: Client, wake: Wake, objects: Arc<SharedBytes>) -> Self {
        Self { client, watches: Watches::new(wake, objects), handles: WatchHandles::default() }
    }

    /// From now on `waiter` depends on these objects of its namespace, each given by kind and name, and on no others. What
    /// is known of each, in their order.
    pub fn keep(&self, waiter: &Waiter, objects: &[(ApiResource, ObjectName)]) -> Vec<Observed> {
        let namespace = Some(waiter.namespace.clone());
        let scope = |resource: &ApiResource, name: &ObjectName| Scope {
            resource: resource.clone(),
            namespace: namespace.clone(),
            labels: None,
            fields: Some(format!("metadata.name={name}")),
        };
        let handle = |(resource, name): &(ApiResource, ObjectName)| {
            self.watches.watch(&self.client, scope(resource, name), waiter, None)
        };
        let handles: Vec<WatchHandle> = objects.iter().map(handle).collect();
        let observed = |(handle, (_, name)): (&WatchHandle, &(ApiResource, ObjectName))| {
            handle.observed(&NamespacedName { namespace: namespace.clone(), name: name.clone() })
        };
        let all = handles.iter().zip(objects).map(observed).collect();
        self.handles.replace(waiter, handles);
        all
    }

    /// `waiter` depends on nothing any more.
    pub fn release(&self, waiter: &Waiter) {
        self.handles.replace(waiter, Vec::new());
    }

    /// Whether nobody depends on anything.
    pub fn is_empty(&self) -> bool {
        self.handles.is_empty()
    }
}
