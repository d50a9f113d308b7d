//! Watches on clusters, shared by all who wait: one for each kind, namespace and selector, as long as somebody holds it; and of
//! a few single objects one each, which reads nothing else (C-93).
//!
//! A watch knows whole objects, because readiness needs them, and takes in what our own writes answer, so that nobody
//! judges an object by a version older than the one he wrote. Whoever waits is woken by a change of what he waits for.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use kube::Client;
use orangery_core::name::{Kind, Namespace, ObjectName};
use orangery_proposal::{ObjectKey, deployer::ApiResource};
use orangery_turns::{HeldBytes, SharedBytes, Tenant};
use serde_json::Value;
use tokio::{sync::Notify, time::Instant};

pub(crate) use self::follow::PAGE;
use self::{crowded::CrowdedScopes, follow::follow, known::KnownObjects, live::LiveEntries};
pub use self::{
    feed::{FeedEvent, FeedHandle, Feeds, Observe, Observer},
    follow::read_events,
    known::Observed,
};
use crate::{
    Error,
    answer_room::{AnswerRoom, NoRoomToWatch},
    object_memory::share_of,
    pace::EventPace,
    shares::{ClusterShares, no_watch_left},
};

mod crowded;
mod feed;
mod follow;
mod known;
mod live;

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

impl Scope {
    /// All objects of a kind, in a namespace where there is one.
    pub(crate) fn all(resource: &ApiResource, namespace: Option<Namespace>) -> Self {
        Self { resource: resource.clone(), namespace, labels: None, fields: None }
    }

    /// One object of them alone; none where its name cannot stand in a selector.
    fn single(resource: &ApiResource, place: &NamespacedName) -> Option<Self> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b':');
        let fields = place.name.bytes().all(plain).then(|| format!("{SINGLE}{}", place.name))?;
        Some(Self { fields: Some(fields), ..Self::all(resource, place.namespace.clone()) })
    }

    fn is_single(&self) -> bool {
        self.labels.is_none() && self.fields.as_deref().is_some_and(|fields| fields.starts_with(SINGLE))
    }
}

/// How the selector of a single object begins.
const SINGLE: &str = "metadata.name=";

/// The watches of one cluster that live.
pub struct Watches {
    wake: Wake,
    shares: ClusterShares,
    /// Protects the list of watches. Held for one look or one change.
    live: Mutex<LiveEntries<Watch>>,
    /// Those whose objects had no room all together.
    crowded: Arc<CrowdedScopes>,
}

/// One watch; ends when it is dropped.
pub(crate) struct Watch {
    client: Client,
    scope: Scope,
    known: Arc<Shared>,
    /// Protects by what the scope is followed. Held to begin or to replace it.
    state: Mutex<WatchState>,
}

/// How far a watch has come.
#[derive(Default)]
enum WatchState {
    /// Nobody has asked for it yet.
    #[default]
    Idle,
    /// There was no place among all watches: this task begins it when its turn comes (C-146).
    Waits { _turn: EndingTask },
    /// It is followed.
    Follows(Following),
}

/// A task that ends when this is dropped.
struct EndingTask(tokio::task::AbortHandle);

impl Drop for EndingTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A place among all watches, and the task that follows the scope of the one that has it.
struct Following {
    _place: HeldBytes,
    follower: Follower,
}

/// The task that follows the scope of a watch.
struct Follower {
    since: Instant,
    _task: EndingTask,
}

/// The most watches of single objects of one kind and namespace; whoever waits for one more watches the whole kind there.
pub const MOST_SINGLE: usize = 8;

/// A watch that is as young as this does not list anew.
const YOUNG: Duration = Duration::from_secs(15);

/// What the watch's task and its holders share.
pub(crate) struct Shared {
    /// Protects what is known and who waits. Held for one step, never across an await or a wake.
    known: Mutex<KnownObjects>,
    wake: Wake,
    /// Protects what the objects hold of the memory that all watches share, for the namespace that waited first. Held for one
    /// change.
    held: Mutex<HeldBytes>,
    /// That of the same namespace.
    pace: Arc<EventPace>,
    /// Where it is told that all objects of a kind have no room.
    crowded: Option<(Scope, Arc<CrowdedScopes>)>,
    /// Tells the follower that the answer of a write had no room.
    without_room: Notify,
}

/// One waiter's hold on a watch: while it lives, the watch does, and the waiter is woken.
pub(crate) struct WatchHandle {
    watch: Arc<Watch>,
    waiter: Waiter,
    place: Option<NamespacedName>,
}

impl Watches {
    pub(crate) fn new(wake: Wake, shares: ClusterShares) -> Self {
        Self { wake, shares, live: Mutex::default(), crowded: Arc::default() }
    }

    /// Holds the watch of a scope, starting it if nobody did: `waiter` is woken when `place`, or anything, changes. Without a
    /// place among all watches it does not begin, and says so to whoever asks, until there is one for somebody who holds it. Its
    /// first list wakes all of them (C-146).
    pub(crate) fn watch(
        &self,
        client: &Client,
        scope: Scope,
        waiter: &Waiter,
        place: Option<NamespacedName>,
    ) -> WatchHandle {
        let watch = {
            let mut live = self.live();
            live.get(&scope).unwrap_or_else(|| {
                let shared = (&self.wake, &self.shares, &self.crowded);
                let watch = Arc::new(Watch::of(client.clone(), scope.clone(), shared, waiter));
                live.insert(scope, &watch);
                watch
            })
        };
        watch.known.lock().wait(place.clone(), waiter.clone());
        watch.begin(&self.shares.watches, &Some(waiter.namespace.clone()));
        WatchHandle { watch, waiter: waiter.clone(), place }
    }

    /// Holds a watch that tells of one object (C-93): one of this object alone, so that nothing else of its kind is read; or one
    /// of all, where there is one, or where more than `most` of its kind and namespace are watched alone, unless all together had no
    /// room lately (C-310).
    pub(crate) fn watch_object(
        &self,
        client: &Client,
        (resource, place): (&ApiResource, &NamespacedName),
        waiter: &Waiter,
        most: usize,
    ) -> WatchHandle {
        let all = Scope::all(resource, place.namespace.clone());
        let is_crowded = self.crowded.has(&all);
        let single = Scope::single(resource, place).filter(|single| {
            let live = self.live();
            is_crowded || !live.has(&all) && (live.has(single) || live.singles(&all) < most)
        });
        self.watch(client, single.unwrap_or(all), waiter, Some(place.clone()))
    }

    /// What a synced watch knows of an object; `None` where nobody watches it.
    pub fn observed(&self, resource: &ApiResource, place: &NamespacedName) -> Option<Observed> {
        let all = [place.namespace.clone(), None].map(|namespace| Scope::all(resource, namespace));
        let watches: Vec<Arc<Watch>> = {
            let live = self.live();
            let scopes = all.iter().cloned().chain(Scope::single(resource, place));
            scopes.filter_map(|scope| live.get(&scope)).collect()
        };
        let mut observed = watches.iter().map(|watch| watch.known.lock().observed(place));
        observed
            .find(|observed| !matches!(observed, Observed::Unknown | Observed::Forbidden(_) | Observed::Unwatched(_)))
    }

    /// Takes in what a write has answered.
    pub fn upsert(&self, resource: &ApiResource, object: &Value) {
        let single = Scope::single(resource, &known::place_of(object));
        let watches: Vec<Arc<Watch>> = {
            let live = self.live();
            let concerned = live.iter().filter(|(scope, _)| {
                let all = scope.labels.is_none() && scope.fields.is_none();
                scope.resource == *resource && (all || single.as_ref() == Some(*scope))
            });
            concerned.map(|(_, watch)| watch).collect()
        };
        for watch in watches {
            watch.known.upsert(object);
        }
    }

    fn live(&self) -> MutexGuard<'_, LiveEntries<Watch>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watch {
    /// One that has not begun. What its objects hold of the memory counts for the namespace of who asks first.
    fn of(
        client: Client,
        scope: Scope,
        (wake, shares, crowded): (&Wake, &ClusterShares, &Arc<CrowdedScopes>),
        waiter: &Waiter,
    ) -> Self {
        let tenant = Some(waiter.namespace.clone());
        let (held, pace) = (shares.objects.none_of(&tenant), shares.paces.of(&tenant));
        let known = Mutex::new(KnownObjects::of(scope.namespace.clone()));
        let is_all = scope.labels.is_none() && scope.fields.is_none();
        let crowded = is_all.then(|| (scope.clone(), Arc::clone(crowded)));
        let known = Arc::new(Shared {
            known,
            wake: Arc::clone(wake),
            held: Mutex::new(held),
            pace,
            crowded,
            without_room: Notify::new(),
        });
        Self { client, scope, known, state: Mutex::default() }
    }

    /// Follows the scope from now on, unless it does already: where there is no place for one more watch, as soon as there is.
    fn begin(self: &Arc<Self>, places: &Arc<SharedBytes>, tenant: &Tenant) {
        let mut state = self.state();
        if let WatchState::Follows(_) = *state {
            return;
        }
        let mut place = places.none_of(tenant);
        if place.set(1) {
            self.follow_from(&mut state, place);
            return;
        }
        // Those who wait are answered with this when they ask, which the one for whom it should have begun does now.
        drop(self.known.lock().failed(no_watch_left(places), false));
        if let WatchState::Idle = *state {
            let (watch, places, tenant) = (Arc::downgrade(self), Arc::clone(places), tenant.clone());
            let task = tokio::spawn(async move {
                let place = places.acquire(&tenant, 1).await;
                let Some(watch) = watch.upgrade() else { return };
                let mut state = watch.state();
                if let WatchState::Waits { .. } = *state {
                    watch.follow_from(&mut state, place);
                }
            });
            *state = WatchState::Waits { _turn: EndingTask(task.abort_handle()) };
        }
    }

    fn follow_from(&self, state: &mut WatchState, place: HeldBytes) {
        self.known.lock().begun();
        let follower = Follower::start(&self.client, &self.scope, &self.known);
        *state = WatchState::Follows(Following { _place: place, follower });
    }

    fn state(&self) -> MutexGuard<'_, WatchState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lists anew and follows from there, unless it is young. What it knows stays known meanwhile.
    fn renew(&self) {
        if let WatchState::Follows(Following { follower, .. }) = &mut *self.state()
            && follower.since.elapsed() >= YOUNG
        {
            *follower = Follower::start(&self.client, &self.scope, &self.known);
        }
    }
}

impl Follower {
    fn start(client: &Client, scope: &Scope, known: &Arc<Shared>) -> Self {
        let task = tokio::spawn(follow(client.clone(), scope.clone(), Arc::clone(known), known.begin_follower()));
        Self { since: Instant::now(), _task: EndingTask(task.abort_handle()) }
    }
}

impl Shared {
    pub(crate) fn lock(&self) -> MutexGuard<'_, KnownObjects> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where what one follower of the watch is told is held until it is taken in.
    pub(crate) fn answers(&self) -> Arc<AnswerRoom> {
        AnswerRoom::new(self.held.lock().unwrap_or_else(PoisonError::into_inner).none(), &self.pace)
    }

    /// The number of a new follower: what an earlier one is told does not count any more.
    fn begin_follower(&self) -> u64 {
        self.lock().begin_follower()
    }

    /// Takes in what a write has answered. It counts as what the server tells does; where it has no room, a list says anew what there
    /// is.
    fn upsert(&self, object: &Value) {
        self.lock().upsert(object);
        if let Some(trouble) = self.give_up_without_room() {
            tracing::debug!("a watch begins anew: {trouble}");
            self.without_room.notify_one();
        }
    }

    /// There is no room for what the watch knows, or is told: it knows nothing from now on, and says why. Whoever is woken watches its
    /// own object.
    pub(crate) fn give_up(&self, trouble: &str) {
        if let Some((all, crowded)) = &self.crowded {
            crowded.insert(all.clone());
        }
        self.change(|known| known.give_up(trouble.to_owned()));
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let _nothing_has_room = held.set(0);
    }

    /// Whether the watch was given up since its list began: what the list tells further does not say all that is there.
    pub(crate) fn is_given_up(&self) -> bool {
        self.lock().is_given_up
    }

    /// Gives the watch up, and answers why, where there is no room for its objects.
    pub(crate) fn give_up_without_room(&self) -> Option<String> {
        let limit = {
            let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
            let bytes = self.lock().bytes();
            if held.set(bytes) {
                return None;
            }
            share_of(held.of())
        };
        let trouble = NoRoomToWatch { limit }.to_string();
        self.give_up(&trouble);
        Some(trouble)
    }

    /// Changes what is known by what this follower was told, then wakes those whom that concerns.
    fn change_by(&self, number: u64, change: impl FnOnce(&mut KnownObjects) -> Vec<Waiter>) {
        self.change(|known| if known.is_followed_by(number) { change(known) } else { Vec::new() });
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
