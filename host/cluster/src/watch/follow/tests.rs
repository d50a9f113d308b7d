//! What watches take in, and when, and what becomes of those that have no room.

use std::sync::atomic::{AtomicUsize, Ordering};

use http::{Request, Response};
use kube::{Config, client::Body};
use tokio::{sync::Semaphore, time::advance};
use tower::{BoxError, service_fn};

use super::*;
use crate::{
    cluster::at,
    shares::ClusterShares,
    watch::{NamespacedName, Observed, WatchHandle, Watches},
};

fn config_maps() -> ApiResource {
    ApiResource { api_version: "v1".into(), kind: "ConfigMap".into(), plural: "configmaps".into(), namespaced: true }
}

/// A client that is told of one ConfigMap in a list, and of another one after it.
fn client() -> Client {
    let named = |name: &str| json!({"metadata": {"namespace": "n", "name": name, "resourceVersion": "2"}});
    let list = json!({"apiVersion": "v1", "kind": "ConfigMapList", "metadata": {"resourceVersion": "1"}, "items": [named("x")]});
    let mut added = named("y");
    (added["apiVersion"], added["kind"]) = (json!("v1"), json!("ConfigMap"));
    let event = format!("{}\n", json!({"type": "ADDED", "object": added}));
    let service = service_fn(move |request: Request<Body>| {
        let is_watch = request.uri().query().unwrap_or_default().contains("watch=");
        let answer = if is_watch { event.clone() } else { list.to_string() };
        async move { Ok::<_, BoxError>(Response::new(Body::from(answer.into_bytes()))) }
    });
    Client::new(service, "default")
}

/// A watch of all ConfigMaps of a namespace.
fn watch(client: &Client, shares: &ClusterShares) -> (Watches, WatchHandle) {
    let watches = Watches::new(Arc::new(|_| {}), shares.clone());
    let waiter = Waiter { kind: "DeployItem".into(), namespace: "n".into(), name: "item".into() };
    let handle = watches.watch(client, Scope::all(&config_maps(), Some("n".into())), &waiter, None);
    (watches, handle)
}

#[tokio::test(start_paused = true)]
async fn c_273_a_watch_is_read_on_when_its_namespace_has_its_turn() {
    let shares = ClusterShares::new(1 << 30);
    let spent = shares.paces.of(&Some("n".into()));
    assert_eq!((0..30_000).filter(|_| spent.changed(&json!({})).is_some()).count(), 10_000);
    let resource = config_maps();
    let begun = Instant::now();
    let (watches, _handle) = watch(&client(), &shares);
    for name in ["x", "y"] {
        let place = NamespacedName { namespace: Some("n".into()), name: name.into() };
        while !matches!(watches.observed(&resource, &place), Some(Observed::Present(_))) {
            advance(Duration::from_millis(10)).await;
        }
        assert!(begun.elapsed() > Duration::from_secs(9), "{name}: {:?}", begun.elapsed());
    }
}

/// A client that is told of one ConfigMap of a MiB in a list.
fn client_of_large() -> Client {
    let service = service_fn(move |request: Request<Body>| async move {
        if request.uri().query().unwrap_or_default().contains("watch=") {
            std::future::pending::<()>().await;
        }
        let metadata = json!({"namespace": "n", "name": "x", "resourceVersion": "2"});
        let item = json!({"metadata": metadata, "data": {"text": "x".repeat(1 << 20)}});
        let list =
            json!({"apiVersion": "v1", "kind": "ConfigMapList", "metadata": {"resourceVersion": "1"}, "items": [item]});
        Ok::<_, BoxError>(Response::new(Body::from(list.to_string().into_bytes())))
    });
    Client::new(service, "default")
}

#[tokio::test(start_paused = true)]
async fn c_88_what_waits_for_the_pace_of_its_namespace_is_counted_and_once_only_when_it_is_taken_in() {
    let shares = ClusterShares::new(16 << 20);
    let spent = shares.paces.of(&Some("n".into()));
    assert_eq!((0..30_000).filter(|_| spent.changed(&json!({})).is_some()).count(), 10_000);
    let resource = config_maps();
    let (watches, _handle) = watch(&client_of_large(), &shares);
    let place = NamespacedName { namespace: Some("n".into()), name: "x".into() };
    let is_known = || matches!(watches.observed(&resource, &place), Some(Observed::Present(_)));
    while shares.objects.taken() == 0 {
        advance(Duration::from_millis(10)).await;
    }
    assert!(!is_known(), "it waits");
    let counted = shares.objects.taken();
    while !is_known() {
        advance(Duration::from_millis(10)).await;
    }
    assert!((1 << 20..1_100_000).contains(&counted), "{counted}");
    assert!((1 << 20..1_100_000).contains(&shares.objects.taken()), "{}", shares.objects.taken());
}

/// A server that lists one ConfigMap, `x`, and tells its watch of another one, `y`, with a text of so many bytes when a permit is there.
struct TellingServer {
    client: Client,
    /// How often it was asked for a list.
    lists: Arc<AtomicUsize>,
    events: Arc<Semaphore>,
}

impl TellingServer {
    fn new(listed: usize, told: usize) -> Self {
        let list = json!({"apiVersion": "v1", "kind": "ConfigMapList", "metadata": {"resourceVersion": "1"},
            "items": [{"metadata": {"namespace": "n", "name": "x", "resourceVersion": "1"}, "data": {"text": "x".repeat(listed)}}]});
        let event = json!({"type": "ADDED", "object": config_map("y", told)});
        let (lists, events) = (Arc::new(AtomicUsize::new(0)), Arc::new(Semaphore::new(0)));
        let (asked, permits) = (Arc::clone(&lists), Arc::clone(&events));
        let service = service_fn(move |request: Request<Body>| {
            let is_watch = request.uri().query().unwrap_or_default().contains("watch=");
            asked.fetch_add(usize::from(!is_watch), Ordering::SeqCst);
            let answer = if is_watch { format!("{event}\n") } else { list.to_string() };
            let permits = Arc::clone(&permits);
            async move {
                if is_watch {
                    permits.acquire().await.unwrap().forget();
                }
                Ok::<_, BoxError>(Response::new(Body::from(answer.into_bytes())))
            }
        });
        Self { client: Client::new(service, "default"), lists, events }
    }

    /// What is known of `x` as soon as it is known, or is not; what the objects take; and how often there was a list.
    async fn known(&self, handle: &WatchHandle, shares: &ClusterShares, is_known: bool) -> (Observed, u64, usize) {
        let place = NamespacedName { namespace: Some("n".into()), name: "x".into() };
        while is_known != matches!(handle.observed(&place), Observed::Present(_)) {
            advance(Duration::from_millis(10)).await;
        }
        (handle.observed(&place), shares.objects.taken(), self.lists.load(Ordering::SeqCst))
    }
}

fn config_map(name: &str, text: usize) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"text": "x".repeat(text)},
        "metadata": {"namespace": "n", "name": name, "resourceVersion": "2"}})
}

/// Why nothing is known.
fn no_room() -> Observed {
    let why = "its objects take more than the 524288 bytes of memory, shared with other namespaces, that are allowed; select \
               fewer, or delete some";
    Observed::Unwatched(why.to_owned())
}

#[tokio::test(start_paused = true)]
async fn c_88_a_watch_without_room_for_what_it_is_told_forgets_what_it_knew_and_says_so() {
    let (server, shares) = (TellingServer::new(0, 600 << 10), ClusterShares::new(1 << 20));
    let (_watches, handle) = watch(&server.client, &shares);
    assert!(matches!(server.known(&handle, &shares, true).await, (Observed::Present(_), _, 1)));
    server.events.add_permits(1);
    assert_eq!(server.known(&handle, &shares, false).await, (no_room(), 0, 1));
    let again = server.known(&handle, &shares, true).await;
    assert!(matches!(again, (Observed::Present(_), _, 2)), "it is listed anew after a while");
}

#[tokio::test(start_paused = true)]
async fn c_88_a_watch_whose_objects_have_no_room_begins_anew_when_there_is_some() {
    let (server, shares) = (TellingServer::new(100 << 10, 1), ClusterShares::new(1 << 20));
    let (_watches, handle) = watch(&server.client, &shares);
    assert!(matches!(server.known(&handle, &shares, true).await, (Observed::Present(_), 100_000.., 1)));
    let mut others = shares.objects.none_of(&Some("other".into()));
    others.put(850 << 10);
    server.events.add_permits(1);
    assert_eq!(server.known(&handle, &shares, false).await, (no_room(), 850 << 10, 1), "less is left than it has");
    for _ in 0..100 {
        advance(Duration::from_secs(1)).await;
    }
    drop(others);
    assert!(matches!(server.known(&handle, &shares, true).await, (Observed::Present(_), 100_000.., 2..)));
}

#[tokio::test(start_paused = true)]
async fn c_88_what_writes_have_answered_has_room_or_a_list_says_what_there_is() {
    let (server, shares) = (TellingServer::new(0, 0), ClusterShares::new(1 << 20));
    let (watches, handle) = watch(&server.client, &shares);
    assert!(matches!(server.known(&handle, &shares, true).await, (Observed::Present(_), _, 1)));
    for name in ["a", "b"] {
        watches.upsert(&config_maps(), &config_map(name, 200 << 10));
    }
    assert!((400 << 10..500 << 10).contains(&shares.objects.taken()), "{}", shares.objects.taken());
    watches.upsert(&config_maps(), &config_map("c", 200 << 10));
    assert_eq!(server.known(&handle, &shares, false).await, (no_room(), 0, 1));
    assert!(matches!(server.known(&handle, &shares, true).await, (Observed::Present(_), ..10_000, 2)));
}

#[tokio::test(start_paused = true)]
async fn c_88_a_watch_that_was_given_up_is_listed_anew_whichever_of_its_followers_heard_of_it() {
    let (server, shares) = (TellingServer::new(0, 0), ClusterShares::new(1 << 20));
    let (_watches, handle) = watch(&server.client, &shares);
    assert!(matches!(server.known(&handle, &shares, true).await, (Observed::Present(_), _, 1)));
    handle.watch.known.give_up("it has no room");
    server.events.add_permits(1);
    assert!(matches!(server.known(&handle, &shares, true).await, (Observed::Present(_), _, 2)));
}

#[tokio::test]
async fn c_167_a_watch_takes_the_path_of_the_requests_for_its_objects() {
    let client = Client::try_from(Config::new("http://127.0.0.1:1".parse().unwrap())).unwrap();
    let parts = [
        ("v1", "configmaps", "a"),
        ("g.example.org/v1", "../secrets", "a"),
        ("../v1", "things?x#", "../b"),
        ("a/../../api/v1", "secrets", "a/.."),
    ];
    for (api_version, plural, namespace) in parts {
        for namespaced in [true, false] {
            let (api_version, plural) = (api_version.into(), plural.to_owned());
            let resource = ApiResource { api_version, kind: "K".into(), plural, namespaced };
            for namespace in [Some(namespace.into()), None] {
                let expected = at(&resource, namespace.as_ref()).url_path;
                let scope = Scope::all(&resource, namespace);
                assert_eq!(api(client.clone(), &scope).resource_url(), expected);
            }
        }
    }
}

#[test]
fn c_153_an_object_that_is_too_deep_is_seen_without_what_is_so() {
    let deep = format!("{}1{}", "[".repeat(3_000), "]".repeat(3_000));
    let text = format!(
        "{{\"metadata\": {{\"name\": \"a\", \"managedFields\": [{{\"fieldsV1\": {deep}}}]}}, \"data\": {{\"k\": \"v\"}}}}"
    );
    let watched: Watched = serde_json::from_str(&text).unwrap();
    assert_eq!((watched.meta().name.as_deref(), &watched.object["data"]), (Some("a"), &json!({"k": "v"})));
    let whole = json!({"metadata": {"name": "a"}, "n": [null, true, -1, 18_446_744_073_709_551_615_u64, 1.5, "x", {}]});
    let watched: Watched = serde_json::from_str(&whole.to_string()).unwrap();
    assert_eq!(watched.object, whole);
}
