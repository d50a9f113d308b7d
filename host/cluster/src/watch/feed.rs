//! Feeds: what changes on a cluster, told to those who named an object, and kept by nobody. One watch for each kind and
//! namespace, whoever names objects in it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    pin::pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
};

use futures::StreamExt;
use kube::{Client, runtime::watcher::Event};
use orangery_core::name::Namespace;
use orangery_proposal::deployer::ApiResource;
use serde_json::Value;
use tokio::task::AbortHandle;

use super::{NamespacedName, Scope, follow::events, known::place_of};

/// So many failures in a row, in about six seconds, and what was known may not hold any more.
const FAILURES_IN_A_ROW: u32 = 3;

/// What a feed tells of one place.
#[derive(Clone, Debug, PartialEq)]
pub enum FeedEvent<'a> {
    /// The object as a list has it, all of it: it counts whatever was known before, for storage may be restored (C-91).
    Listed(&'a NamespacedName, &'a Value),
    /// The object after a change, all of it.
    Is(&'a NamespacedName, &'a Value),
    /// There is no object.
    Gone(&'a NamespacedName),
    /// Nothing is known until the next event: the cluster cannot be watched, and why.
    Failed(&'a str),
}

/// Called for each event. Must not block.
pub type Observe = Arc<dyn Fn(FeedEvent<'_>) + Send + Sync>;

/// The feeds of one cluster that live.
#[derive(Default)]
pub struct Feeds {
    /// Protects the list of feeds; one whose last holder is gone is removed by the next who looks.
    live: Mutex<BTreeMap<Scope, Weak<Feed>>>,
    next: AtomicU64,
}

/// One feed; ends when it is dropped.
struct Feed {
    observers: Arc<FeedObservers>,
    client: Client,
    scope: Scope,
    /// Protects the task that follows the scope. Held to replace it.
    task: Mutex<Option<AbortHandle>>,
}

/// Holds a feed: while it lives, its observer is told.
pub struct FeedHandle {
    feed: Arc<Feed>,
    id: u64,
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
    failures: u32,
    is_synced: bool,
}

impl Feeds {
    /// Tells an observer of all that happens at these places, from a list of what is there on. Whether a list is coming
    /// that tells what is there now; where there is none, the observer reads that itself.
    pub fn follow(
        &self,
        client: &Client,
        resource: &ApiResource,
        namespace: Option<Namespace>,
        places: BTreeSet<NamespacedName>,
        observe: Observe,
    ) -> (FeedHandle, bool) {
        let scope = Scope::all(resource, namespace);
        let mut live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        live.retain(|_, feed| feed.strong_count() > 0);
        let feed = live.get(&scope).and_then(Weak::upgrade).unwrap_or_else(|| {
            let feed = Arc::new(Feed {
                observers: Arc::default(),
                client: client.clone(),
                scope: scope.clone(),
                task: Mutex::default(),
            });
            live.insert(scope, Arc::downgrade(&feed));
            feed
        });
        drop(live);
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let is_listed = feed.observers.add(id, places, observe);
        feed.start();
        (FeedHandle { feed, id }, is_listed)
    }

    /// How many feeds live.
    pub fn count(&self) -> usize {
        self.live.lock().unwrap_or_else(PoisonError::into_inner).values().filter(|feed| feed.strong_count() > 0).count()
    }
}

impl Feed {
    /// Starts the task where none runs.
    fn start(&self) {
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        if task.is_none() {
            *task = Some(
                tokio::spawn(run(self.client.clone(), self.scope.clone(), Arc::clone(&self.observers))).abort_handle(),
            );
        }
    }
}

/// Follows a scope until it is aborted, and lists anew as long as somebody came too late for the list.
async fn run(client: Client, scope: Scope, observers: Arc<FeedObservers>) {
    loop {
        let mut events = pin!(events(client.clone(), &scope));
        while let Some(event) = events.next().await {
            match event {
                Ok(Event::Init) => observers.begin_list(),
                Ok(Event::InitApply(watched)) => observers.listed(watched.typed(&scope.resource)),
                Ok(Event::InitDone) => {
                    if !observers.end_list() {
                        break;
                    }
                }
                Ok(Event::Apply(watched)) => observers.changed(watched.typed(&scope.resource)),
                Ok(Event::Delete(watched)) => observers.removed(&watched.object),
                Err(error) => {
                    tracing::debug!(kind = %scope.resource.kind, %error, "a feed broke off and is taken up again");
                    observers.failed(&error.to_string());
                }
            }
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
        self.feed.observers.remove(self.id);
    }
}

impl fmt::Debug for FeedHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FeedHandle({})", self.id)
    }
}

impl FeedObservers {
    /// Whether a list is coming that tells what is there.
    fn add(&self, id: u64, places: BTreeSet<NamespacedName>, observe: Observe) -> bool {
        let mut state = self.lock();
        state.observers.insert(id, observe);
        for place in places {
            state.places.entry(place).or_default().insert(id);
        }
        if state.is_listing {
            state.late.insert(id);
        }
        state.is_listing || !state.is_synced
    }

    fn remove(&self, id: u64) {
        let mut state = self.lock();
        state.observers.remove(&id);
        state.late.remove(&id);
        state.places.retain(|_, ids| {
            ids.remove(&id);
            !ids.is_empty()
        });
    }

    pub(super) fn begin_list(&self) {
        let mut state = self.lock();
        state.is_listing = true;
        state.failures = 0;
        state.late.clear();
        state.listed.clear();
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
        told.iter().for_each(|observe| observe(FeedEvent::Listed(&place, &object)));
    }

    /// The list is complete: what it did not name is gone. Whether nobody came too late for it.
    pub(super) fn end_list(&self) -> bool {
        let (missing, is_complete) = {
            let mut state = self.lock();
            let state = &mut *state;
            let is_complete = state.late.is_empty();
            state.is_listing = !is_complete;
            state.is_synced = is_complete;
            let listed = std::mem::take(&mut state.listed);
            // A list that is incomplete for those who came late says nothing to them of what is gone.
            let missing: Vec<(NamespacedName, Vec<Observe>)> = state
                .places
                .iter()
                .filter(|(place, _)| !listed.contains(place))
                .map(|(place, ids)| {
                    let ids = ids.iter().filter(|id| !state.late.contains(id));
                    (place.clone(), ids.filter_map(|id| state.observers.get(id).cloned()).collect())
                })
                .collect();
            (missing, is_complete)
        };
        for (place, told) in &missing {
            told.iter().for_each(|observe| observe(FeedEvent::Gone(place)));
        }
        is_complete
    }

    pub(super) fn changed(&self, object: Value) {
        let place = place_of(&object);
        let told = self.told_of(&place);
        told.iter().for_each(|observe| observe(FeedEvent::Is(&place, &object)));
    }

    pub(super) fn removed(&self, object: &Value) {
        let place = place_of(object);
        let told = self.told_of(&place);
        told.iter().for_each(|observe| observe(FeedEvent::Gone(&place)));
    }

    pub(super) fn failed(&self, why: &str) {
        let told: Vec<Observe> = {
            let mut state = self.lock();
            state.failures = state.failures.saturating_add(1);
            // At first what was known still holds: the watcher takes up where it broke off, or lists anew.
            let holds = state.is_synced && state.failures < FAILURES_IN_A_ROW;
            if holds { Vec::new() } else { state.observers.values().cloned().collect() }
        };
        told.iter().for_each(|observe| observe(FeedEvent::Failed(why)));
    }

    fn told_of(&self, place: &NamespacedName) -> Vec<Observe> {
        let mut state = self.lock();
        state.failures = 0;
        state.of(place)
    }

    fn lock(&self) -> MutexGuard<'_, FeedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FeedState {
    fn of(&self, place: &NamespacedName) -> Vec<Observe> {
        let ids = self.places.get(place).into_iter().flatten();
        ids.filter_map(|id| self.observers.get(id).cloned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn place(name: &str) -> NamespacedName {
        NamespacedName { namespace: Some("n".into()), name: name.into() }
    }

    fn object(name: &str) -> Value {
        json!({"metadata": {"namespace": "n", "name": name}})
    }

    type Log = Arc<Mutex<Vec<String>>>;

    fn add(observers: &FeedObservers, id: u64, names: &[&str]) -> (Log, bool) {
        let log = Log::default();
        let told = Arc::clone(&log);
        let observe: Observe = Arc::new(move |event| {
            told.lock().unwrap().push(match event {
                FeedEvent::Listed(place, _) => format!("={}", place.name),
                FeedEvent::Is(place, _) => format!("+{}", place.name),
                FeedEvent::Gone(place) => format!("-{}", place.name),
                FeedEvent::Failed(why) => format!("!{why}"),
            });
        });
        let is_listed = observers.add(id, names.iter().map(|name| place(name)).collect(), observe);
        (log, is_listed)
    }

    fn taken(log: &Log) -> Vec<String> {
        std::mem::take(&mut *log.lock().unwrap())
    }

    #[test]
    fn c_59_a_feed_tells_each_what_it_named_and_nothing_else() {
        let observers = FeedObservers::default();
        let (first, is_listed) = add(&observers, 1, &["a", "b"]);
        assert!(is_listed, "its first list comes");
        observers.failed("no");
        observers.begin_list();
        observers.listed(object("a"));
        observers.listed(object("theirs"));
        assert!(observers.end_list());
        assert_eq!(taken(&first), ["!no", "=a", "-b"]);
        let (second, is_listed) = add(&observers, 2, &["b"]);
        assert!(!is_listed, "no list comes any more");
        observers.changed(object("b"));
        observers.removed(&object("a"));
        observers.failed("what is known still holds");
        assert_eq!((taken(&first), taken(&second)), (vec!["+b".to_owned(), "-a".into()], vec!["+b".to_owned()]));
        observers.failed("once");
        observers.changed(object("theirs"));
        (0..2).for_each(|_| observers.failed("again"));
        assert_eq!((taken(&first), taken(&second)), (vec![], vec![]), "what is told begins the count anew");
        observers.failed("still");
        assert_eq!((taken(&first), taken(&second)), (vec!["!still".to_owned()], vec!["!still".to_owned()]));
        observers.remove(1);
        observers.changed(object("a"));
        observers.changed(object("b"));
        assert_eq!((taken(&first), taken(&second)), (vec![], vec!["+b".to_owned()]));
        observers.remove(2);
        assert!(observers.lock().places.is_empty());
    }

    #[test]
    fn c_59_an_observer_that_comes_during_a_list_is_told_by_another_one() {
        let observers = FeedObservers::default();
        let (first, _) = add(&observers, 1, &["a"]);
        observers.begin_list();
        observers.listed(object("b"));
        let (late, is_listed) = add(&observers, 2, &["b"]);
        assert!(is_listed);
        observers.listed(object("a"));
        assert!(!observers.end_list(), "once more");
        assert_eq!((taken(&first), taken(&late)), (vec!["=a".to_owned()], vec![]), "nothing is gone that was missed");
        observers.begin_list();
        observers.listed(object("b"));
        assert!(observers.end_list());
        assert_eq!((taken(&first), taken(&late)), (vec!["-a".to_owned()], vec!["=b".to_owned()]));
    }
}
