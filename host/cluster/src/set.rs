//! The clusters of one deploy item during one call of the controller, and the watches that it came to hold.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
};

use orangery_core::{
    name::{ApiVersion, Kind, Namespace},
    step::{Halt, Step, Until, Waiting},
};
use orangery_proposal::{ClusterRef, ObjectKey, SecretContent, Selection, deployer::ApiResource};
use serde_json::Value;

use crate::{
    Call, Cluster, Connections, Error,
    connections::WatchHandles,
    program_content::is_content_of_program,
    watch::{FeedHandle, MOST_SINGLE, NamespacedName, Observe, Observed, Scope, Waiter, WatchHandle},
};

/// The clusters of one item. Connected at first use, as late as possible (ORC-26).
pub struct ClusterSet {
    connections: Arc<dyn Connections>,
    waiter: Waiter,
    kept: Arc<WatchHandles>,
    /// Serialises connecting, so that each reference is resolved once.
    connected: tokio::sync::Mutex<BTreeMap<ClusterRef, Arc<Cluster>>>,
    /// Protects the handles of this call. Held to add one or to take all.
    handles: Arc<Mutex<Vec<WatchHandle>>>,
    call: Call,
}

impl ClusterSet {
    pub(crate) fn new(connections: Arc<dyn Connections>, waiter: Waiter, kept: Arc<WatchHandles>) -> Self {
        let (connected, handles) = (tokio::sync::Mutex::default(), Arc::default());
        let call = Call::default().of(&waiter.namespace);
        Self { connections, waiter, kept, connected, handles, call }
    }

    /// The same clusters, asked for a call of the controller.
    #[must_use]
    pub fn during(self, call: Call) -> Self {
        Self { call: call.of(&self.waiter.namespace), ..self }
    }

    /// The call that the clusters are asked for.
    pub fn call(&self) -> &Call {
        &self.call
    }

    /// Other clusters for the same item: what is watched there is held together with what is watched here.
    #[must_use]
    pub fn beside(&self, connections: Arc<dyn Connections>) -> Self {
        let (waiter, kept, handles) = (self.waiter.clone(), Arc::clone(&self.kept), Arc::clone(&self.handles));
        Self { connections, waiter, kept, connected: tokio::sync::Mutex::default(), handles, call: self.call.clone() }
    }

    /// The cluster behind a reference.
    ///
    /// # Errors
    /// Those of [`Connections::connect`].
    pub async fn cluster(&self, on: &ClusterRef) -> Step<Arc<Cluster>> {
        let mut connected = self.connected.lock().await;
        if let Some(cluster) = connected.get(on) {
            return Ok(Arc::clone(cluster));
        }
        let cluster = Arc::new(self.connections.connect(on).await?.during(&self.call));
        connected.insert(on.clone(), Arc::clone(&cluster));
        Ok(cluster)
    }

    /// The text of a Secret that stands in for a value.
    pub async fn content(&self, content: &SecretContent) -> Step<String> {
        self.connections.content(content).await
    }

    /// Says that an object of this kind was read: of a Secret hears whoever connects (C-195), but for content of programs (CON-31).
    pub fn has_read(&self, on: &ClusterRef, (api_version, kind): (&ApiVersion, &Kind), object: &Value) {
        if *kind == "Secret" && *api_version == "v1" && !is_content_of_program(object) {
            self.connections.has_read(on, object);
        }
    }

    /// The end of a call whose item goes on waiting: what it holds now replaces what it held before.
    pub fn keep_waiting(&self) {
        let handles = std::mem::take(&mut *self.handles.lock().unwrap_or_else(PoisonError::into_inner));
        self.kept.replace(&self.waiter, handles);
    }

    /// What is known of an object that nobody here deploys; it is watched from now on. Of a kind that the cluster does not
    /// serve there is none, and definitions are watched until it does.
    ///
    /// # Errors
    /// The cluster cannot be asked, or the object cannot be where it is said to be.
    pub async fn observe(&self, on: &ClusterRef, key: &ObjectKey) -> Step<Observed> {
        let cluster = self.cluster(on).await?;
        let resource = match cluster.served(&key.api_version, &key.kind).await {
            Ok(resource) => resource,
            Err(Error::NotServed { .. }) => {
                return Ok(match self.definitions(on).await? {
                    Ok(_) => Observed::Absent,
                    Err(observed) => observed,
                });
            }
            Err(error) => return Err(error.into()),
        };
        Ok(self.watch(&cluster, &resource, &NamespacedName::of(&resource, key)?))
    }

    /// All CustomResourceDefinitions of a cluster, without their schemas; they are watched from now on. `Err` says why they
    /// are not known.
    ///
    /// # Errors
    /// The cluster cannot be asked.
    pub async fn definitions(&self, on: &ClusterRef) -> Step<Result<Vec<Arc<Value>>, Observed>> {
        let cluster = self.cluster(on).await?;
        let resource = cluster.served(&"apiextensions.k8s.io/v1".into(), &"CustomResourceDefinition".into()).await?;
        Ok(self.watch_scope(&cluster, Scope::all(&resource, None)))
    }

    /// Watches one object from now on, and says what is known of it.
    pub fn watch(&self, cluster: &Cluster, resource: &ApiResource, place: &NamespacedName) -> Observed {
        let what = (resource, place);
        let handle = cluster.watches().watch_object(cluster.client(), what, &self.waiter, MOST_SINGLE);
        let observed = handle.observed(place);
        self.add(handle);
        observed
    }

    /// Tells an observer of all that happens at these places, which are of one kind and namespace, as long as the handle lives.
    /// Whether a list is coming that tells what is there now; where there is none, the observer reads that itself.
    ///
    /// # Errors
    /// [`Error::Unwatched`] where there is no place for one more watch (C-164).
    pub fn follow(
        &self,
        cluster: &Cluster,
        (resource, namespace): (&ApiResource, Option<Namespace>),
        places: BTreeSet<NamespacedName>,
        observe: Observe,
    ) -> Result<(FeedHandle, bool), Error> {
        let by = (cluster.client(), &self.waiter.namespace);
        let followed = cluster.feeds().follow(by, resource, namespace, places, observe);
        followed.map_err(|message| unwatched(cluster, resource, message))
    }

    /// Watches all objects of a selection, and says what is known of them; names are the caller's to pick.
    pub fn watch_all(&self, cluster: &Cluster, resource: &ApiResource, what: &Selection) -> Step<Vec<Arc<Value>>> {
        let scope = Scope {
            resource: resource.clone(),
            namespace: what.namespace.clone(),
            labels: what.labels.clone(),
            fields: what.fields.clone(),
        };
        self.watch_scope(cluster, scope).map_err(|observed| {
            let all = Waiting::selected(&resource.kind, what.namespace.clone(), "all".to_owned(), Until::Exists);
            unobserved(cluster, resource, observed, all)
        })
    }

    /// Watches a scope from now on, and says what is known of its objects; `Err` says why that is nothing.
    fn watch_scope(&self, cluster: &Cluster, scope: Scope) -> Result<Vec<Arc<Value>>, Observed> {
        let handle = cluster.watches().watch(cluster.client(), scope, &self.waiter, None);
        let all = handle.all();
        self.add(handle);
        all
    }

    fn add(&self, handle: WatchHandle) {
        self.handles.lock().unwrap_or_else(PoisonError::into_inner).push(handle);
    }
}

/// What it means that a watch does not know yet.
pub fn unobserved(cluster: &Cluster, resource: &ApiResource, observed: Observed, waiting: Waiting) -> Halt {
    match observed {
        Observed::Forbidden(message) | Observed::Unwatched(message) => unwatched(cluster, resource, message).into(),
        Observed::Unknown | Observed::Absent | Observed::Gone(_) | Observed::Present(_) => Halt::from(waiting),
    }
}

fn unwatched(cluster: &Cluster, resource: &ApiResource, message: String) -> Error {
    Error::Unwatched {
        cluster: cluster.address().to_owned(),
        api_version: resource.api_version.clone(),
        kind: resource.kind.clone(),
        message,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use kube::{Client, Config};
    use orangery_core::port::BoxFuture;

    use super::*;

    /// Counts how often it is asked for a cluster.
    #[derive(Default)]
    struct Counted(AtomicU32);

    impl Connections for Counted {
        fn connect<'a>(&'a self, _: &'a ClusterRef) -> BoxFuture<'a, Step<Arc<Cluster>>> {
            self.0.fetch_add(1, Ordering::SeqCst);
            let client = Client::try_from(Config::new("http://127.0.0.1:1".parse().unwrap())).unwrap();
            Box::pin(async move { Ok(Arc::new(Cluster::new(client, "x".to_owned(), Arc::new(|_| {})))) })
        }

        fn content<'a>(&'a self, _: &'a SecretContent) -> BoxFuture<'a, Step<String>> {
            unreachable!("no content is asked for")
        }
    }

    #[tokio::test]
    async fn orc_26_a_cluster_is_connected_when_it_is_first_asked_for_and_once() {
        let counted = Arc::new(Counted::default());
        let waiter = Waiter { kind: "DeployItem".into(), namespace: "n".into(), name: "a".into() };
        let connections: Arc<dyn Connections> = counted.clone();
        let set = ClusterSet::new(connections, waiter, Arc::default());
        let mut counts = vec![counted.0.load(Ordering::SeqCst)];
        for on in [ClusterRef::Target, ClusterRef::Target, ClusterRef::Named("b".to_owned())] {
            set.cluster(&on).await.unwrap();
            counts.push(counted.0.load(Ordering::SeqCst));
        }
        assert_eq!(counts, [0, 1, 1, 2]);
    }
}
