//! Objects that somebody depends on without deploying them: each is watched by its name, or many together, so that nobody reads
//! them again.

use kube::Client;
use orangery_core::name::ObjectName;
use orangery_proposal::deployer::ApiResource;

use crate::{
    connections::WatchHandles,
    shares::ClusterShares,
    watch::{NamespacedName, Observed, Waiter, Wake, WatchHandle, Watches},
};

/// The most objects of one kind and namespace that are watched each by its name; where somebody depends on one more, all of the
/// namespace are watched together (C-164).
pub const MOST_APART: usize = 64;

/// Watches on single objects of one cluster. All who depend on an object share its watch, which ends with the last of them.
pub struct ObjectWatcher {
    client: Client,
    watches: Watches,
    handles: WatchHandles,
}

impl ObjectWatcher {
    /// Nothing is watched yet.
    pub(crate) fn new(client: Client, wake: Wake, shares: ClusterShares) -> Self {
        Self { client, watches: Watches::new(wake, shares), handles: WatchHandles::default() }
    }

    /// From now on `waiter` depends on these objects of its namespace, each given by kind and name, and on no others. What
    /// is known of each, in their order.
    pub fn keep(&self, waiter: &Waiter, objects: &[(ApiResource, ObjectName)]) -> Vec<Observed> {
        let watched = |(resource, name): &(ApiResource, ObjectName)| {
            let place = NamespacedName { namespace: Some(waiter.namespace.clone()), name: name.clone() };
            let handle = self.watches.watch_object(&self.client, (resource, &place), waiter, MOST_APART);
            let observed = handle.observed(&place);
            (handle, observed)
        };
        let (handles, all): (Vec<WatchHandle>, Vec<Observed>) = objects.iter().map(watched).unzip();
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
