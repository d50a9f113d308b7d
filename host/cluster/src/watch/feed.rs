//! Feeds: what changes on a cluster, told to those who named an object, and kept by nobody. One watch for each kind and
//! namespace, whoever names objects in it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    pin::pin,
    sync::{
        Arc, LazyLock, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures::StreamExt;
use kube::{
    Client,
    runtime::watcher::{self, Event},
};
use orangery_core::{memory, name::Namespace};
use orangery_proposal::deployer::ApiResource;
use orangery_turns::{HeldBytes, Tenant, Turn, Turns, off_the_executor};
use serde_json::Value;
use tokio::{
    task::AbortHandle,
    time::{Instant, sleep_until, timeout_at},
};

use super::{
    NamespacedName, Scope,
    follow::{Watched, bytes_of, events, turn_of},
    known::{place_of, version_of},
    live::LiveEntries,
};
use crate::{
    answer_room::AnswerRoom,
    pace::EventPace,
    shares::{ClusterShares, SMALL_COMPARISON, no_watch_left},
};

/// So many failures in a row, in about six seconds, and what was known may not hold any more.
const FAILURES_IN_A_ROW: u32 = 3;

/// Failures are in a row that follow each other within this time: twice the longest pause between two tries, and the time that
/// one takes.
const IN_A_ROW: Duration = Duration::from_secs(120);

/// The most lists of feeds that are under way at once, on all clusters: each has a page in memory. One namespace has one of them.
const MOST_LISTS: usize = 2;

/// Objects of a page of such a list.
const PAGE: u32 = 20;

/// How long a list keeps its turn: then it goes on without one, as slow as its server is.
const LONGEST_TURN: Duration = Duration::from_secs(10);

/// What a feed tells of one place.
#[derive(Clone, Debug, PartialEq)]
pub enum FeedEvent<'a> {
    /// A list begins.
    ListBegins,
    /// The object as a list has it, all of it: it counts whatever was known before, for storage may be restored (C-91).
    Listed(&'a NamespacedName, &'a Value),
    /// The object after a change, all of it.
    Is(&'a NamespacedName, &'a Value),
    /// There is no object since this version, that of its deletion; 0 where it has none.
    Gone(&'a NamespacedName, u64),
    /// A list has no object here, whatever was known before.
    Unlisted(&'a NamespacedName),
    /// The list has told all.
    ListEnds,
    /// Nothing is known until the next event: the cluster cannot be watched, and why.
    Failed(&'a str),
}

/// Told by a feed what happens.
pub trait Observer: Send + Sync {
    /// Bytes of memory that it takes to hear of an object here, beside the object.
    fn bytes(&self, _: &NamespacedName) -> u64 {
        0
    }

    /// Hears of an event. Must not block, and may take long where both sides together take more than [`SMALL_COMPARISON`].
    fn observe(&self, event: FeedEvent<'_>);
}

impl<F: Fn(FeedEvent<'_>) + Send + Sync> Observer for F {
    fn observe(&self, event: FeedEvent<'_>) {
        self(event);
    }
}

/// One of them.
pub type Observe = Arc<dyn Observer>;

/// The turns of all lists of feeds.
static LISTS: LazyLock<Arc<Turns>> = LazyLock::new(|| Turns::new(MOST_LISTS));

/// The feeds of one cluster that live.
pub struct Feeds {
    lists: Arc<Turns>,
    shares: ClusterShares,
    /// Protects the list of feeds. Held for one look or one change.
    live: Mutex<LiveEntries<Feed>>,
    next: AtomicU64,
}

/// One feed; ends when it is dropped.
struct Feed {
    observers: Arc<FeedObservers>,
    client: Client,
    scope: Scope,
    lists: Arc<Turns>,
    shares: ClusterShares,
    tenant: Tenant,
    /// Protects the task that follows the scope. Held to replace it.
    task: Mutex<Option<AbortHandle>>,
    /// Its place among all watches.
    _place: HeldBytes,
}

/// Holds a feed: while it lives, its observer is told.
pub struct FeedHandle {
    feed: Arc<Feed>,
    id: u64,
    places: BTreeSet<NamespacedName>,
}

/// Those who are told.
#[derive(Default)]
pub(super) struct FeedObservers {
    /// Protects who named what. Held for one step, never across a call of an observer.
    state: Mutex<FeedState>,
}

#[derive(Default)]
struct FeedState {
    observers: BTreeMap<u64, Observe>,
    places: BTreeMap<NamespacedName, BTreeSet<u64>>,
    /// The named places that the list which is coming in has told.
    listed: BTreeSet<NamespacedName>,
    /// Those who came while a list was coming in, and may have missed the begin of it.
    late: BTreeSet<u64>,
    is_listing: bool,
    /// Since something was told.
    failures: Option<Failures>,
    is_synced: bool,
    /// Whether its observers were told that it failed after it was synced: they begin anew, and nobody joins them here.
    is_broken: bool,
}

/// Failures in a row.
struct Failures {
    count: u32,
    last: Instant,
    why: String,
}

impl Feeds {
    /// Those of one cluster, which have their places among all watches.
    pub(crate) fn new(shares: &ClusterShares) -> Self {
        Self { lists: Arc::clone(&LISTS), shares: shares.clone(), live: Mutex::default(), next: AtomicU64::default() }
    }

    /// Tells an observer of all that happens at these places, from a list of what is there on. Whether a list is coming
    /// that tells what is there now; where there is none, the observer reads that itself. A feed that is broken is left to those
    /// who have it: another one begins. Those of `of` alone, which asks, count where it begins.
    ///
    /// # Errors
    /// There is no place for one more watch.
    pub(crate) fn follow(
        &self,
        (client, of): (&Client, &Namespace),
        resource: &ApiResource,
        namespace: Option<Namespace>,
        places: BTreeSet<NamespacedName>,
        observe: Observe,
    ) -> Result<(FeedHandle, bool), String> {
        let feed = self.feed((client, of), Scope::all(resource, namespace))?;
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let is_listed = feed.observers.add(id, &places, observe);
        feed.start();
        Ok((FeedHandle { feed, id, places }, is_listed))
    }

    fn feed(&self, (client, of): (&Client, &Namespace), scope: Scope) -> Result<Arc<Feed>, String> {
        let mut live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sound) = live.get(&scope).filter(|feed| !feed.observers.lock().is_broken) {
            return Ok(sound);
        }
        let tenant = Some(of.clone());
        let mut place = self.shares.watches.none_of(&tenant);
        if !place.set(1) {
            return Err(no_watch_left(&self.shares.watches));
        }
        let feed = Arc::new(Feed {
            observers: Arc::default(),
            client: client.clone(),
            scope: scope.clone(),
            lists: Arc::clone(&self.lists),
            shares: self.shares.clone(),
            tenant,
            task: Mutex::default(),
            _place: place,
        });
        live.insert(scope, &feed);
        Ok(feed)
    }

    /// How many feeds live.
    pub fn count(&self) -> usize {
        self.live.lock().unwrap_or_else(PoisonError::into_inner).iter().count()
    }
}

impl Feed {
    /// Starts the task where none runs.
    fn start(&self) {
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        if task.is_none() {
            let following = FeedTask {
                client: self.client.clone(),
                scope: self.scope.clone(),
                observers: Arc::clone(&self.observers),
                lists: Arc::clone(&self.lists),
                pace: self.shares.paces.of(&self.tenant),
                shares: self.shares.clone(),
                tenant: self.tenant.clone(),
            };
            *task = Some(tokio::spawn(following.run()).abort_handle());
        }
    }
}

/// What the task of a feed works with.
struct FeedTask {
    client: Client,
    scope: Scope,
    observers: Arc<FeedObservers>,
    lists: Arc<Turns>,
    pace: Arc<EventPace>,
    shares: ClusterShares,
    tenant: Tenant,
}

impl FeedTask {
    /// Follows a scope until it is aborted, and lists anew as long as somebody came too late for the list. A list is read when it
    /// is its turn, which it loses where the server takes long.
    async fn run(self) {
        loop {
            let room = AnswerRoom::new(self.shares.objects.none_of(&self.tenant), &self.pace);
            let mut events = pin!(events((&self.client, &room), &self.scope, PAGE));
            let mut turn = None;
            loop {
                let told = match &turn {
                    Some((_, since)) => timeout_at(*since + LONGEST_TURN, events.next()).await,
                    None => Ok(events.next().await),
                };
                let Ok(told) = told else {
                    turn = None;
                    continue;
                };
                let Some(event) = told else { break };
                // What waits, or takes long, keeps no turn of others (C-273, C-295).
                let (until, large) = (turn_of(&event, &self.pace), self.observers.large(&event));
                let had_turn = (until.is_some() || large.is_some()) && turn.take().is_some();
                if let Some(until) = until {
                    sleep_until(until).await;
                }
                let bytes = bytes_of(&event);
                match event {
                    Ok(Event::Init) => {
                        turn = Some(self.turn().await);
                        self.observers.begin_list();
                    }
                    Ok(Event::InitDone) => {
                        turn = None;
                        if !self.observers.end_list() {
                            break;
                        }
                    }
                    Ok(event) => self.tell(event, large).await,
                    Err(error) => {
                        turn = None;
                        tracing::debug!(kind = %self.scope.resource.kind, %error, "a feed broke off and is taken up again");
                        let why = room.failed().unwrap_or_else(|| error.to_string());
                        self.observers.failed(&why, Instant::now());
                    }
                }
                room.taken_in(bytes);
                if had_turn {
                    turn = Some(self.turn().await);
                }
            }
        }
    }

    /// The turn of a list, and since when it has it.
    async fn turn(&self) -> (Turn, Instant) {
        (self.lists.acquire(&self.tenant).await, Instant::now())
    }

    /// Tells of one object; where that takes so many bytes when it has its turn, and off the executor.
    async fn tell(&self, event: Event<Watched>, large: Option<u64>) {
        let resource = &self.scope.resource;
        let tell = || match event {
            Event::InitApply(watched) => self.observers.listed(watched.typed(resource)),
            Event::Apply(watched) => self.observers.changed(watched.typed(resource)),
            Event::Delete(watched) => self.observers.removed(&watched.object),
            Event::Init | Event::InitDone => {}
        };
        match large {
            Some(bytes) => {
                let _turn = self.shares.comparison(&self.tenant, bytes).await;
                off_the_executor(tell);
            }
            None => tell(),
        }
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        task.iter().for_each(AbortHandle::abort);
    }
}

impl Drop for FeedHandle {
    fn drop(&mut self) {
        self.feed.observers.remove(self.id, &self.places);
    }
}

impl fmt::Debug for FeedHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FeedHandle({})", self.id)
    }
}

impl FeedObservers {
    /// Whether a list is coming that tells what is there. Where none has come about so far, the observer is told why.
    fn add(&self, id: u64, places: &BTreeSet<NamespacedName>, observe: Observe) -> bool {
        let (is_listed, trouble) = {
            let mut state = self.lock();
            state.observers.insert(id, Arc::clone(&observe));
            for place in places {
                state.places.entry(place.clone()).or_default().insert(id);
            }
            if state.is_listing {
                state.late.insert(id);
            }
            let trouble = state.failures.as_ref().filter(|_| !state.is_synced).map(|failures| failures.why.clone());
            (state.is_listing || !state.is_synced, trouble)
        };
        trouble.iter().for_each(|why| observe.observe(FeedEvent::Failed(why)));
        is_listed
    }

    fn remove(&self, id: u64, places: &BTreeSet<NamespacedName>) {
        let mut state = self.lock();
        state.observers.remove(&id);
        state.late.remove(&id);
        for place in places {
            let is_left = state.places.get_mut(place).is_some_and(|ids| {
                ids.remove(&id);
                ids.is_empty()
            });
            if is_left {
                state.places.remove(place);
            }
        }
    }

    pub(super) fn begin_list(&self) {
        let told = {
            let mut state = self.lock();
            state.is_listing = true;
            state.late.clear();
            state.listed.clear();
            state.all()
        };
        told.iter().for_each(|observe| observe.observe(FeedEvent::ListBegins));
    }

    pub(super) fn listed(&self, object: Value) {
        let place = place_of(&object);
        let told = {
            let mut state = self.lock();
            if state.places.contains_key(&place) {
                state.listed.insert(place.clone());
            }
            state.of(&place)
        };
        told.iter().for_each(|observe| observe.observe(FeedEvent::Listed(&place, &object)));
    }

    /// The list is complete: what it did not name is gone. Whether nobody came too late for it.
    pub(super) fn end_list(&self) -> bool {
        let (missing, complete, is_complete) = {
            let mut state = self.lock();
            let state = &mut *state;
            let is_complete = state.late.is_empty();
            state.is_listing = !is_complete;
            state.is_synced = is_complete;
            (state.failures, state.is_broken) = (None, false);
            let listed = std::mem::take(&mut state.listed);
            // A list that is incomplete for those who came late says nothing to them of what is gone.
            let in_time = |id: &&u64| !state.late.contains(id);
            let missing: Vec<(NamespacedName, Vec<Observe>)> = state
                .places
                .iter()
                .filter(|(place, _)| !listed.contains(place))
                .map(|(place, ids)| {
                    let told = ids.iter().filter(in_time).filter_map(|id| state.observers.get(id).cloned());
                    (place.clone(), told.collect())
                })
                .collect();
            let complete: Vec<Observe> =
                state.observers.keys().filter(in_time).filter_map(|id| state.observers.get(id).cloned()).collect();
            (missing, complete, is_complete)
        };
        for (place, told) in &missing {
            told.iter().for_each(|observe| observe.observe(FeedEvent::Unlisted(place)));
        }
        complete.iter().for_each(|observe| observe.observe(FeedEvent::ListEnds));
        is_complete
    }

    pub(super) fn changed(&self, object: Value) {
        let place = place_of(&object);
        let told = self.told_of(&place);
        told.iter().for_each(|observe| observe.observe(FeedEvent::Is(&place, &object)));
    }

    pub(super) fn removed(&self, object: &Value) {
        let (place, version) = (place_of(object), version_of(object));
        let told = self.told_of(&place);
        told.iter().for_each(|observe| observe.observe(FeedEvent::Gone(&place, version)));
    }

    pub(super) fn failed(&self, why: &str, now: Instant) {
        let told: Vec<Observe> = {
            let mut state = self.lock();
            let in_a_row = state.failures.take().filter(|before| now.duration_since(before.last) < IN_A_ROW);
            let count = in_a_row.map_or(0, |before| before.count).saturating_add(1);
            state.failures = Some(Failures { count, last: now, why: why.to_owned() });
            // At first what was known still holds: the watcher takes up where it broke off, or lists anew.
            let holds = state.is_synced && count < FAILURES_IN_A_ROW;
            state.is_broken |= state.is_synced && !holds;
            if holds { Vec::new() } else { state.all() }
        };
        told.iter().for_each(|observe| observe.observe(FeedEvent::Failed(why)));
    }

    /// Bytes that it takes to hear of an event, where that may take long.
    fn large(&self, event: &Result<Event<Watched>, watcher::Error>) -> Option<u64> {
        let Ok(Event::InitApply(watched) | Event::Apply(watched)) = event else { return None };
        let place = place_of(&watched.object);
        let told = self.lock().of(&place);
        let bytes = told.iter().map(|observe| observe.bytes(&place)).max()?;
        let both = bytes.saturating_add(memory::of(&watched.object));
        (both > SMALL_COMPARISON).then_some(bytes)
    }

    fn told_of(&self, place: &NamespacedName) -> Vec<Observe> {
        let mut state = self.lock();
        state.failures = None;
        state.of(place)
    }

    fn lock(&self) -> MutexGuard<'_, FeedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FeedState {
    fn all(&self) -> Vec<Observe> {
        self.observers.values().cloned().collect()
    }

    fn of(&self, place: &NamespacedName) -> Vec<Observe> {
        let ids = self.places.get(place).into_iter().flatten();
        ids.filter_map(|id| self.observers.get(id).cloned()).collect()
    }
}

#[cfg(test)]
mod tests;
