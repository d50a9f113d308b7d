//! Watches on clusters, shared by all who wait: one for each kind, namespace and selector, as long as somebody holds it.
//!
//! A watch knows whole objects, because readiness needs them, and takes in what our own writes answer, so that nobody
//! judges an object by a version older than the one he wrote. Whoever waits is woken by a change of what he waits for.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use kube::Client;
use orangery_core::name::{Kind, Namespace, ObjectName};
use orangery_proposal::{ObjectKey, deployer::ApiResource};
use serde_json::Value;
use tokio::time::Instant;

pub use self::known::{MOST_WATCHED_BYTES, Observed};
use self::{follow::follow, known::KnownObjects};
use crate::Error;

mod follow;
mod known;

/// An object of the operator that waits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Waiter {
    /// Its kind.
    pub kind: Kind,
    /// Its namespace.
    pub namespace: Namespace,
    /// Its name.
    pub name: ObjectName,
}

/// Called for each who may go on. Must not block.
pub type Wake = Arc<dyn Fn(&Waiter) + Send + Sync>;

/// An object within one watch.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NamespacedName {
    /// Its namespace; `None` where its kind has none.
    pub namespace: Option<Namespace>,
    /// Its name.
    pub name: ObjectName,
}

impl NamespacedName {
    /// The place of an object. One of a namespaced kind needs a namespace; that of a cluster-scoped kind counts for nothing,
    /// as on API servers.
    pub fn of(resource: &ApiResource, key: &ObjectKey) -> Result<Self, Error> {
        if resource.namespaced && key.namespace.is_none() {
            return Err(Error::Unlocated { key: Box::new(key.clone()) });
        }
        let namespace = key.namespace.clone().filter(|_| resource.namespaced);
        Ok(Self { namespace, name: key.name.clone() })
    }
}

/// What is watched.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Scope {
    pub(crate) resource: ApiResource,
    pub(crate) namespace: Option<Namespace>,
    pub(crate) labels: Option<String>,
    pub(crate) fields: Option<String>,
}

/// The watches of one cluster that live.
pub struct Watches {
    wake: Wake,
    /// Protects the list of watches; a watch whose last holder is gone is removed by the next who looks.
    live: Mutex<BTreeMap<Scope, Weak<Watch>>>,
}

/// One watch; ends when it is dropped.
pub(crate) struct Watch {
    client: Client,
    scope: Scope,
    known: Arc<Shared>,
    /// Protects the task that follows the scope. Held to replace it.
    follower: Mutex<Follower>,
}

/// The task that follows the scope of a watch.
struct Follower {
    since: Instant,
    task: tokio::task::AbortHandle,
}

/// A watch that is as young as this does not list anew.
const YOUNG: Duration = Duration::from_secs(15);

/// What the watch's task and its holders share.
pub(crate) struct Shared {
    /// Protects what is known and who waits. Held for one step, never across an await or a wake.
    known: Mutex<KnownObjects>,
    wake: Wake,
}

/// One waiter's hold on a watch: while it lives, the watch does, and the waiter is woken.
pub(crate) struct WatchHandle {
    watch: Arc<Watch>,
    waiter: Waiter,
    place: Option<NamespacedName>,
}

impl Watches {
    pub(crate) fn new(wake: Wake) -> Self {
        Self { wake, live: Mutex::default() }
    }

    /// Holds the watch of a scope, starting it if nobody did: `waiter` is woken when `place`, or anything, changes.
    pub(crate) fn watch(
        &self,
        client: &Client,
        scope: Scope,
        waiter: &Waiter,
        place: Option<NamespacedName>,
    ) -> WatchHandle {
        let mut live = self.live();
        live.retain(|_, watch| watch.strong_count() > 0);
        let watch = live.get(&scope).and_then(Weak::upgrade).unwrap_or_else(|| {
            let watch = Arc::new(Watch::start(client.clone(), scope.clone(), Arc::clone(&self.wake)));
            live.insert(scope, Arc::downgrade(&watch));
            watch
        });
        watch.known.lock().wait(place.clone(), waiter.clone());
        WatchHandle { watch, waiter: waiter.clone(), place }
    }

    /// What a synced watch knows of an object; `None` where nobody watches it.
    pub fn observed(&self, resource: &ApiResource, place: &NamespacedName) -> Option<Observed> {
        let scopes = [place.namespace.clone(), None].map(|namespace| Scope {
            resource: resource.clone(),
            namespace,
            labels: None,
            fields: None,
        });
        let live = self.live();
        let watch = scopes.iter().find_map(|scope| live.get(scope).and_then(Weak::upgrade))?;
        drop(live);
        let observed = watch.known.lock().observed(place);
        (!matches!(observed, Observed::Unknown | Observed::Forbidden(_))).then_some(observed)
    }

    /// Takes in what a write has answered.
    pub fn upsert(&self, resource: &ApiResource, object: &Value) {
        let watches: Vec<Arc<Watch>> = {
            let live = self.live();
            let concerned = live
                .iter()
                .filter(|(scope, _)| scope.resource == *resource && scope.labels.is_none() && scope.fields.is_none());
            concerned.filter_map(|(_, watch)| watch.upgrade()).collect()
        };
        for watch in watches {
            watch.known.lock().upsert(object);
        }
    }

    fn live(&self) -> MutexGuard<'_, BTreeMap<Scope, Weak<Watch>>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watch {
    fn start(client: Client, scope: Scope, wake: Wake) -> Self {
        let namespace = scope.namespace.clone();
        let known = Arc::new(Shared { known: Mutex::new(KnownObjects::of(namespace)), wake });
        let follower = Follower::start(&client, &scope, &known);
        Self { client, scope, known, follower: Mutex::new(follower) }
    }

    /// Lists anew and follows from there, unless it is young. What it knows stays known meanwhile.
    fn renew(&self) {
        let mut follower = self.follower.lock().unwrap_or_else(PoisonError::into_inner);
        if follower.since.elapsed() >= YOUNG {
            *follower = Follower::start(&self.client, &self.scope, &self.known);
        }
    }
}

impl Follower {
    fn start(client: &Client, scope: &Scope, known: &Arc<Shared>) -> Self {
        let task = tokio::spawn(follow(client.clone(), scope.clone(), Arc::clone(known)));
        Self { since: Instant::now(), task: task.abort_handle() }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Shared {
    pub(crate) fn lock(&self) -> MutexGuard<'_, KnownObjects> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes what is known, then wakes those whom the change concerns.
    pub(crate) fn change(&self, change: impl FnOnce(&mut KnownObjects) -> Vec<Waiter>) {
        let woken = change(&mut self.lock());
        for waiter in &woken {
            (self.wake)(waiter);
        }
    }
}

impl WatchHandle {
    /// What is known of an object.
    pub(crate) fn observed(&self, place: &NamespacedName) -> Observed {
        self.watch.known.lock().observed(place)
    }

    /// Has the watch list anew, unless it is young.
    pub(crate) fn renew(&self) {
        self.watch.renew();
    }

    /// All objects; `Err` says why they are not known.
    pub(crate) fn all(&self) -> Result<Vec<Arc<Value>>, Observed> {
        self.watch.known.lock().all()
    }
}

impl Drop for WatchHandle {
    fn drop(&mut self) {
        self.watch.known.lock().leave(&self.place, &self.waiter);
    }
}

impl fmt::Debug for WatchHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WatchHandle({:?} by {:?})", self.place, self.waiter)
    }
}
