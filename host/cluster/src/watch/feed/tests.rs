use serde_json::json;
use tokio::{
    sync::Semaphore,
    time::{advance, timeout},
};
use tower::{BoxError, service_fn};

use super::*;

fn place(name: &str) -> NamespacedName {
    NamespacedName { namespace: Some("n".into()), name: name.into() }
}

fn object(name: &str) -> Value {
    json!({"metadata": {"namespace": "n", "name": name, "resourceVersion": "7"}})
}

type Log = Arc<Mutex<Vec<String>>>;

fn add(observers: &FeedObservers, id: u64, names: &[&str]) -> (Log, bool) {
    let log = Log::default();
    let told = Arc::clone(&log);
    let observe: Observe = Arc::new(move |event: FeedEvent<'_>| {
        told.lock().unwrap().push(match event {
            FeedEvent::ListBegins => "<".to_owned(),
            FeedEvent::Listed(place, _) => format!("={}", place.name),
            FeedEvent::Is(place, _) => format!("+{}", place.name),
            FeedEvent::Gone(place, version) => format!("-{}@{version}", place.name),
            FeedEvent::Unlisted(place) => format!("-{}", place.name),
            FeedEvent::ListEnds => ">".to_owned(),
            FeedEvent::Failed(why) => format!("!{why}"),
        });
    });
    let is_listed = observers.add(id, &named(names), observe);
    (log, is_listed)
}

fn named(names: &[&str]) -> BTreeSet<NamespacedName> {
    names.iter().map(|name| place(name)).collect()
}

fn fail(observers: &FeedObservers, why: &str) {
    observers.failed(why, Instant::now());
}

fn taken(log: &Log) -> Vec<String> {
    std::mem::take(&mut *log.lock().unwrap())
}

#[test]
fn c_59_a_feed_tells_each_what_it_named_and_nothing_else() {
    let observers = FeedObservers::default();
    let (first, is_listed) = add(&observers, 1, &["a", "b"]);
    assert!(is_listed, "its first list comes");
    fail(&observers, "no");
    observers.begin_list();
    observers.listed(object("a"));
    observers.listed(object("theirs"));
    assert!(observers.end_list());
    assert_eq!(taken(&first), ["!no", "<", "=a", "-b", ">"]);
    let (second, is_listed) = add(&observers, 2, &["b"]);
    assert!(!is_listed, "no list comes any more");
    observers.changed(object("b"));
    observers.removed(&object("a"));
    fail(&observers, "what is known still holds");
    assert_eq!((taken(&first), taken(&second)), (vec!["+b".to_owned(), "-a@7".into()], vec!["+b".to_owned()]));
    fail(&observers, "once");
    observers.changed(object("theirs"));
    (0..2).for_each(|_| fail(&observers, "again"));
    assert_eq!((taken(&first), taken(&second)), (vec![], vec![]), "what is told begins the count anew");
    fail(&observers, "still");
    assert_eq!((taken(&first), taken(&second)), (vec!["!still".to_owned()], vec!["!still".to_owned()]));
    observers.remove(1, &named(&["a", "b"]));
    observers.changed(object("a"));
    observers.changed(object("b"));
    assert_eq!((taken(&first), taken(&second)), (vec![], vec!["+b".to_owned()]));
    observers.remove(2, &named(&["b"]));
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
    let told = vec!["<".to_owned(), "=a".into(), ">".into()];
    assert_eq!((taken(&first), taken(&late)), (told, vec![]), "nothing is gone that was missed");
    observers.begin_list();
    observers.listed(object("b"));
    assert!(observers.end_list());
    let told = [["<", "-a", ">"], ["<", "=b", ">"]].map(|told| told.map(str::to_owned).to_vec());
    assert_eq!([taken(&first), taken(&late)], told);
}

#[tokio::test(start_paused = true)]
async fn c_59_a_list_that_begins_is_no_success_and_failures_that_are_far_apart_are_none_in_a_row() {
    let observers = FeedObservers::default();
    let (log, _) = add(&observers, 1, &["a"]);
    observers.begin_list();
    assert!(observers.end_list());
    for _ in 0..9 {
        fail(&observers, "now and then");
        advance(IN_A_ROW).await;
    }
    assert_eq!((taken(&log), observers.lock().is_broken), (vec!["<".to_owned(), "-a".into(), ">".into()], false));
    for _ in 0..3 {
        observers.begin_list();
        fail(&observers, "no list");
    }
    assert_eq!(
        (taken(&log), observers.lock().is_broken),
        (["<", "<", "<", "!no list"].map(str::to_owned).to_vec(), true)
    );
    observers.begin_list();
    assert!(observers.end_list() && !observers.lock().is_broken, "it tells all of it again");
}

#[test]
fn c_59_an_observer_that_joins_a_feed_whose_first_list_fails_hears_why_at_once() {
    let observers = FeedObservers::default();
    let (first, _) = add(&observers, 1, &["a"]);
    fail(&observers, "no");
    let (second, is_listed) = add(&observers, 2, &["a"]);
    assert_eq!((taken(&first), taken(&second), is_listed), (vec!["!no".to_owned()], vec!["!no".to_owned()], true));
}

fn config_maps() -> ApiResource {
    ApiResource { api_version: "v1".into(), kind: "ConfigMap".into(), plural: "configmaps".into(), namespaced: true }
}

/// A client whose lists are answered when a permit is there, and the namespaces that were asked for.
fn client(answers: &Arc<Semaphore>) -> (Client, Log) {
    let (asked, answers) = (Log::default(), Arc::clone(answers));
    let log = Arc::clone(&asked);
    let service = service_fn(move |request: http::Request<kube::client::Body>| {
        let (asked, answers) = (Arc::clone(&log), Arc::clone(&answers));
        async move {
            if request.uri().query().unwrap_or_default().contains("watch=") {
                std::future::pending::<()>().await;
            }
            asked.lock().unwrap().push(request.uri().path().split('/').nth(4).unwrap_or_default().to_owned());
            answers.acquire().await.unwrap().forget();
            let list = json!({"apiVersion": "v1", "kind": "ConfigMapList", "metadata": {"resourceVersion": "1"}, "items": [object("x")]});
            Ok::<_, BoxError>(http::Response::new(kube::client::Body::from(list.to_string().into_bytes())))
        }
    });
    (Client::new(service, "default"), asked)
}

/// Feeds that share their turns with those of no other test.
fn feeds() -> Feeds {
    let feeds = Feeds::new(&ClusterShares::new(1 << 20));
    Feeds { lists: Turns::new(MOST_LISTS), ..feeds }
}

fn follow(feeds: &Feeds, client: &Client, namespace: &'static str) -> (FeedHandle, Log) {
    follow_by("n", feeds, client, namespace)
}

/// The same for another namespace that asks.
fn follow_by(tenant: &'static str, feeds: &Feeds, client: &Client, namespace: &'static str) -> (FeedHandle, Log) {
    let log = Log::default();
    let told = Arc::clone(&log);
    let observe: Observe = Arc::new(move |event: FeedEvent<'_>| told.lock().unwrap().push(format!("{event:?}")));
    let namespace_of = Some(Namespace::from_static(namespace));
    let by = (client, &Namespace::from_static(tenant));
    let (handle, is_listed) =
        feeds.follow(by, &config_maps(), namespace_of, BTreeSet::new(), observe).expect("there is a place");
    assert!(is_listed, "{namespace}");
    (handle, log)
}

/// Waits until this holds; time goes on meanwhile.
async fn until(holds: impl Fn() -> bool) {
    while !holds() {
        advance(Duration::from_millis(10)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn limits_feeds_two_lists_are_under_way_and_one_that_is_not_answered_gives_its_turn_away() {
    let answers = Arc::new(Semaphore::new(0));
    let (client, asked) = client(&answers);
    let feeds = feeds();
    let begun = Instant::now();
    let namespaces = ["a", "b", "c", "d"].into_iter();
    let held: Vec<_> = namespaces.map(|namespace| follow_by(namespace, &feeds, &client, namespace)).collect();
    until(|| asked.lock().unwrap().len() > MOST_LISTS).await;
    assert!(begun.elapsed() >= LONGEST_TURN, "two have their turn until then");
    answers.add_permits(4);
    until(|| held.iter().all(|(_, log)| log.lock().unwrap().last().is_some_and(|last| last == "ListEnds"))).await;
    let mut asked = taken(&asked);
    asked.sort();
    assert_eq!((asked, feeds.count()), (["a", "b", "c", "d"].map(str::to_owned).to_vec(), 4));
    assert_eq!(feeds.lists.taken(), 0);
}

#[tokio::test(start_paused = true)]
async fn c_59_a_feed_that_is_broken_is_joined_by_nobody() {
    let (client, _) = client(&Arc::new(Semaphore::new(9)));
    let feeds = feeds();
    let (first, log) = follow(&feeds, &client, "a");
    until(|| log.lock().unwrap().len() == 2).await;
    (0..FAILURES_IN_A_ROW).for_each(|_| fail(&first.feed.observers, "no"));
    assert_eq!(taken(&log), ["ListBegins", "ListEnds", "Failed(\"no\")"]);
    let (second, log) = follow(&feeds, &client, "a");
    assert!(!Arc::ptr_eq(&first.feed, &second.feed));
    until(|| log.lock().unwrap().len() == 2).await;
    assert_eq!(taken(&log), ["ListBegins", "ListEnds"]);
    drop(first);
    assert_eq!(feeds.count(), 1, "the other one lives on");
}

#[tokio::test(start_paused = true)]
async fn c_273_a_list_that_waits_for_the_pace_of_its_namespace_keeps_no_turn_of_others() {
    let (client, _) = client(&Arc::new(Semaphore::new(9)));
    let feeds = feeds();
    let spent = feeds.shares.paces.of(&Some("n".into()));
    let beyond = (0..40_000).filter(|_| spent.changed(&json!({})).is_some()).count();
    assert_eq!(beyond, 20_000);
    let slow = ["a", "b"].map(|namespace| follow(&feeds, &client, namespace));
    until(|| slow.iter().all(|(_, log)| !log.lock().unwrap().is_empty())).await;
    let begun = Instant::now();
    let ends = |log: &Log| log.lock().unwrap().last().is_some_and(|last| last == "ListEnds");
    let (_other, log) = follow_by("m", &feeds, &client, "c");
    until(|| ends(&log)).await;
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    until(|| slow.iter().all(|(_, log)| ends(log))).await;
    assert!(begun.elapsed() > Duration::from_secs(9), "{:?}", begun.elapsed());
    assert_eq!(feeds.lists.taken(), 0);
}

/// A page with one object, after which there are more.
fn page() -> http::Response<kube::client::Body> {
    let metadata = json!({"resourceVersion": "1", "continue": "more"});
    let list = json!({"apiVersion": "v1", "kind": "ConfigMapList", "metadata": metadata, "items": [object("x")]});
    http::Response::new(kube::client::Body::from(list.to_string().into_bytes()))
}

/// A client whose lists have two pages. The first is answered at once, the second by nobody. With how many second pages are asked for.
fn client_of_pages() -> (Client, Log) {
    let asked = Log::default();
    let log = Arc::clone(&asked);
    let service = service_fn(move |request: http::Request<kube::client::Body>| {
        let log = Arc::clone(&log);
        async move {
            let uri = request.uri();
            if uri.query().unwrap_or_default().contains("continue=") {
                log.lock().unwrap().push(uri.path().split('/').nth(4).unwrap_or_default().to_owned());
                std::future::pending::<()>().await;
            }
            Ok::<_, BoxError>(page())
        }
    });
    (Client::new(service, "default"), asked)
}

#[tokio::test(start_paused = true)]
async fn c_273_a_list_that_has_waited_for_the_pace_goes_on_when_it_has_its_turn_again() {
    let (client, asked) = client_of_pages();
    let feeds = feeds();
    let spent = feeds.shares.paces.of(&Some("n".into()));
    assert_eq!((0..40_000).filter(|_| spent.changed(&json!({})).is_some()).count(), 20_000);
    let begun = Instant::now();
    let held = ["a", "b", "c"].map(|namespace| follow(&feeds, &client, namespace));
    until(|| !asked.lock().unwrap().is_empty()).await;
    assert!(begun.elapsed() > Duration::from_secs(9), "all of them have waited: {:?}", begun.elapsed());
    let since = Instant::now();
    until(|| since.elapsed() > LONGEST_TURN / 2).await;
    assert_eq!(asked.lock().unwrap().len(), 1, "the others of the namespace wait for their turn");
    until(|| asked.lock().unwrap().len() == held.len()).await;
}

/// A client whose lists have pages without end, each after nine seconds. With the namespaces of whose lists a first one was asked for.
fn client_that_drips() -> (Client, Log) {
    let asked = Log::default();
    let log = Arc::clone(&asked);
    let service = service_fn(move |request: http::Request<kube::client::Body>| {
        let log = Arc::clone(&log);
        async move {
            if !request.uri().query().unwrap_or_default().contains("continue=") {
                log.lock().unwrap().push(request.uri().path().split('/').nth(4).unwrap_or_default().to_owned());
            }
            drop(timeout(Duration::from_secs(9), std::future::pending::<()>()).await);
            Ok::<_, BoxError>(page())
        }
    });
    (Client::new(service, "default"), asked)
}

#[tokio::test(start_paused = true)]
async fn c_43_lists_of_a_namespace_have_one_turn_and_each_has_it_for_a_while_whatever_comes() {
    let (client, asked) = client_that_drips();
    let feeds = feeds();
    let begun = Instant::now();
    let greedy = ["a", "b"].map(|namespace| follow_by("greedy", &feeds, &client, namespace));
    let other = follow_by("other", &feeds, &client, "c");
    until(|| asked.lock().unwrap().len() == 2).await;
    assert!(begun.elapsed() < Duration::from_secs(1));
    let mut first = asked.lock().unwrap().clone();
    first.sort();
    assert_eq!(first, ["a", "c"]);
    let third = follow_by("third", &feeds, &client, "d");
    until(|| asked.lock().unwrap().len() == 4).await;
    assert!((LONGEST_TURN..2 * LONGEST_TURN).contains(&begun.elapsed()), "{:?}", begun.elapsed());
    drop((greedy, other, third));
}

/// A client whose lists are empty, and whose watches tell of one object when a permit is there.
fn client_of_changes(changes: &Arc<Semaphore>) -> Client {
    let changes = Arc::clone(changes);
    let service = service_fn(move |request: http::Request<kube::client::Body>| {
        let changes = Arc::clone(&changes);
        async move {
            let mut changed = object("x");
            (changed["apiVersion"], changed["kind"]) = (json!("v1"), json!("ConfigMap"));
            let answer = if request.uri().query().unwrap_or_default().contains("watch=") {
                changes.acquire().await.unwrap().forget();
                json!({"type": "ADDED", "object": changed})
            } else {
                json!({"apiVersion": "v1", "kind": "ConfigMapList", "metadata": {"resourceVersion": "1"}, "items": []})
            };
            Ok::<_, BoxError>(http::Response::new(kube::client::Body::from(format!("{answer}\n").into_bytes())))
        }
    });
    Client::new(service, "default")
}

#[tokio::test(start_paused = true)]
async fn c_273_a_feed_takes_a_change_in_when_its_namespace_has_its_turn() {
    let (changes, feeds, log) = (Arc::new(Semaphore::new(0)), feeds(), Log::default());
    let (client, namespace) = (client_of_changes(&changes), Namespace::from_static("n"));
    let told = Arc::clone(&log);
    let observe: Observe = Arc::new(move |event: FeedEvent<'_>| told.lock().unwrap().push(format!("{event:?}")));
    let by = (&client, &namespace);
    let held = feeds.follow(by, &config_maps(), Some(namespace.clone()), named(&["x"]), observe).unwrap();
    until(|| log.lock().unwrap().last().is_some_and(|last| last == "ListEnds")).await;
    let spent = feeds.shares.paces.of(&Some("n".into()));
    // The list, which was empty, has counted as one.
    assert_eq!((0..30_000).filter(|_| spent.changed(&json!({})).is_some()).count(), 10_001);
    let begun = Instant::now();
    changes.add_permits(1);
    until(|| log.lock().unwrap().last().is_some_and(|last| last.starts_with("Is("))).await;
    assert!(begun.elapsed() > Duration::from_secs(9), "{:?}", begun.elapsed());
    drop(held);
}

/// An observer that takes some memory to hear of anything, and says how much is counted meanwhile.
struct LargeObserver {
    shares: ClusterShares,
    log: Log,
}

impl Observer for LargeObserver {
    fn bytes(&self, _: &NamespacedName) -> u64 {
        SMALL_COMPARISON
    }

    fn observe(&self, event: FeedEvent<'_>) {
        if let FeedEvent::Listed(place, _) = event {
            self.log.lock().unwrap().push(format!("{} {}", place.name, self.shares.objects.taken()));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn c_295_what_takes_long_to_hear_of_waits_for_its_turn_and_keeps_none_of_a_list() {
    let (client, asked) = client(&Arc::new(Semaphore::new(9)));
    let feeds = feeds();
    let follow_large = |tenant: &'static str, namespace: &'static str| {
        let (log, of) = (Log::default(), Some(Namespace::from_static(namespace)));
        let observe = Arc::new(LargeObserver { shares: feeds.shares.clone(), log: Arc::clone(&log) });
        let by = (&client, &Namespace::from_static(tenant));
        let (handle, _) = feeds.follow(by, &config_maps(), of, named(&["x"]), observe).expect("there is a place");
        (handle, log)
    };
    let under_way = feeds.shares.comparison(&Some("a".into()), 0).await;
    let waiting = ["one", "two", "three"].map(|namespace| follow_large("a", namespace));
    until(|| asked.lock().unwrap().len() == waiting.len()).await;
    let (_other, log) = follow_large("b", "n");
    until(|| !log.lock().unwrap().is_empty()).await;
    assert_eq!(taken(&log), [format!("x {SMALL_COMPARISON}")], "it counts while it is compared");
    assert!(waiting.iter().all(|(_, log)| log.lock().unwrap().is_empty()), "its namespace has one at a time");
    assert_eq!(feeds.lists.taken(), 0);
    drop(under_way);
    until(|| waiting.iter().all(|(_, log)| !log.lock().unwrap().is_empty())).await;
    assert_eq!(feeds.shares.objects.taken(), 0);
}
