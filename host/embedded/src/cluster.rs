//! What all requests share: the store, the catalog, the clock and the server's identity.

use std::sync::{Arc, PoisonError, RwLock};

use jiff::Timestamp;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::{
    Clock,
    catalog::Catalog,
    crd,
    identity::ServerIdentity,
    metrics::Metrics,
    object,
    off_the_executor::LargeRequests,
    patch::Shape,
    policy::{Attempt, Policies},
    refusal::Refusal,
    resource::{Served, ServedResource},
    store::{ObjectName, ObjectStore, ObjectVersion, StoreKey},
};

/// The whole server behind its HTTP surface.
pub(crate) struct EmbeddedCluster {
    pub(crate) store: ObjectStore,
    pub(crate) identity: ServerIdentity,
    pub(crate) metrics: Metrics,
    /// Ends watches and the lifecycle task.
    pub(crate) stop: CancellationToken,
    /// Guards the replacement of the catalog; readers take a whole one and keep it for their request.
    catalog: RwLock<Arc<Catalog>>,
    policies: Policies,
    /// Held while a definition is judged, written and taken into the catalog.
    pub(crate) definitions: tokio::sync::Mutex<()>,
    /// Where requests that may take long are carried out.
    pub(crate) large: LargeRequests,
    clock: Clock,
}

impl EmbeddedCluster {
    /// A cluster over a store, serving the definitions that lie in it.
    pub(crate) fn new(store: ObjectStore, identity: ServerIdentity, clock: Clock) -> Self {
        let mut catalog = Catalog::builtin();
        for (_, entry) in store.list(crd::SHELF, None, None).entries {
            let definition = entry.value();
            if crd::is_established(&definition) {
                catalog = catalog.with(ServedResource { since: entry.revision, ..crd::resource(&definition) });
            }
        }
        let policies = Policies::of(&store);
        Self {
            store,
            identity,
            metrics: Metrics::default(),
            stop: CancellationToken::new(),
            catalog: RwLock::new(Arc::new(catalog)),
            policies,
            definitions: tokio::sync::Mutex::new(()),
            large: LargeRequests::default(),
            clock,
        }
    }

    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.catalog.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes a definition's newest form into the catalog. The caller holds `definitions`.
    pub(crate) fn serve(&self, definition: &Value) {
        if crd::is_established(definition) {
            let since = self.store.revision();
            let catalog = self.catalog().with(ServedResource { since, ..crd::resource(definition) });
            self.replace_catalog(catalog);
        }
    }

    /// Takes the resource of a deleted definition out of the catalog. The caller holds `definitions`.
    pub(crate) fn withdraw(&self, collection: &str) {
        let catalog = self.catalog().without(collection);
        self.replace_catalog(catalog);
    }

    fn replace_catalog(&self, catalog: Catalog) {
        *self.catalog.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(catalog);
    }

    /// Holds a write against the policies; answers their warnings.
    pub(crate) fn admit(&self, attempt: &Attempt<'_>) -> Result<Vec<String>, Refusal> {
        self.policies.classify(&self.store, attempt)
    }

    /// Whether there are policies that make something else of what is written.
    pub(crate) fn mutates(&self) -> bool {
        self.policies.mutates(&self.store)
    }

    /// What the policies make of an object that is written; `None` where they leave it as it is.
    pub(crate) fn mutate(&self, attempt: &Attempt<'_>, shape: Shape<'_>) -> Result<Option<Value>, Refusal> {
        self.policies.mutate(&self.store, attempt, shape)
    }

    pub(crate) fn now(&self) -> Timestamp {
        (self.clock)()
    }

    /// The time as metadata bears it: RFC 3339, whole seconds.
    pub(crate) fn stamp(&self) -> String {
        let now = self.now();
        Timestamp::from_second(now.as_second()).unwrap_or(now).to_string()
    }

    /// The object at a place, or the refusal that it is not there.
    pub(crate) fn find(&self, served: &Served, namespace: &str, name: &str) -> Result<Arc<ObjectVersion>, Refusal> {
        let found = self.store.get(&key(served, namespace, name));
        found.ok_or_else(|| Refusal::not_found(served.label(), name))
    }

    /// The object of a namespace; none for the empty name.
    pub(crate) fn namespace(&self, namespace: &str) -> Option<Value> {
        let key = StoreKey { collection: "namespaces".into(), name: ObjectName::new("", namespace) };
        self.store.latest(&key).map(|entry| entry.value())
    }

    /// Whether a namespace is there and not under deletion.
    pub(crate) fn namespace_is_active(&self, namespace: &str) -> bool {
        self.namespace(namespace).is_some_and(|namespace| !object::deleting(&namespace))
    }
}

/// Where an object of a served resource lies.
pub(crate) fn key(served: &Served, namespace: &str, name: &str) -> StoreKey {
    let namespace = if served.resource.namespaced { namespace } else { "" };
    StoreKey { collection: Arc::clone(&served.resource.collection), name: ObjectName::new(namespace, name) }
}
