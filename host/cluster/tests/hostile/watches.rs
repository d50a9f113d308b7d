//! Watches on servers that answer without end, and on clusters with many objects.

use std::{collections::BTreeSet, convert::Infallible, sync::Arc, time::Duration};

use axum::{Json, Router, body::Body, extract::Request, response::IntoResponse as _, routing::get};
use futures::{StreamExt as _, future::pending, stream};
use orangery_cluster::{
    Cluster, ClusterPool, ClusterSet, FeedEvent, MOST_SINGLE, MOST_WATCHES, NamespacedName, Observed, Waiter,
};
use orangery_core::name::Namespace;
use serde_json::json;
use tokio::{sync::mpsc, time::timeout};

use crate::tests::{DEADLINE, NoConnections, all, config_maps, endless, kubeconfig, serve, target};

#[tokio::test]
async fn limits_cluster_an_event_without_end_breaks_the_watch_off_and_others_pass() {
    let (asked, mut again) = tokio::sync::mpsc::unbounded_channel();
    let answer = move |request: Request| {
        let asked = asked.clone();
        async move {
            if !request.uri().query().unwrap_or_default().contains("watch=true") {
                let list = json!({"apiVersion": "v1", "kind": "ConfigMapList", "metadata": {"resourceVersion": "1"}, "items": []});
                return Body::from(list.to_string());
            }
            asked.send(()).expect("the test waits");
            // Many events, each within the limit, and then one without end.
            let data = json!({"k": "v".repeat(2_000)});
            let object = json!({"metadata": {"name": "x", "namespace": "a", "resourceVersion": "2"}, "data": data});
            let event = format!("{}\n", json!({"type": "ADDED", "object": object}));
            let events = stream::repeat_with(move || Ok::<_, std::io::Error>(event.repeat(1_000))).take(15);
            Body::from_stream(
                events.chain(
                    endless("{\"type\":\"ADDED\",\"object\":[")
                        .into_data_stream()
                        .map(|piece| Ok(String::from_utf8_lossy(&piece.expect("bytes")).into_owned())),
                ),
            )
        }
    };
    let (pool, cluster) = target(Router::new().route("/api/v1/namespaces/a/configmaps", get(answer))).await;
    let waiter = Waiter { kind: "DeployItem".into(), namespace: "a".into(), name: "i".into() };
    let set = pool.set(Arc::new(NoConnections), waiter);
    let place = NamespacedName { namespace: Some("a".into()), name: "x".into() };
    let _ = set.watch(&cluster, &config_maps(), &place);
    // The watch is asked for once more: it was broken off, and is taken up again.
    for _ in 0..2 {
        timeout(DEADLINE, again.recv()).await.expect("in time").expect("it is asked");
    }
    assert!(matches!(set.watch(&cluster, &config_maps(), &place), Observed::Present(_)));
}

/// What waits for one object does not make the host read all Secrets of a namespace.
#[tokio::test]
async fn c_93_limits_cluster_single_objects_are_watched_alone_and_of_many_all_together() {
    let (asked, mut lists) = mpsc::unbounded_channel();
    let answer = move |request: Request| {
        let query = request.uri().query().unwrap_or_default().to_owned();
        if !query.contains("watch=true") {
            let fields = query.split('&').find_map(|part| part.strip_prefix("fieldSelector="));
            asked.send(fields.unwrap_or("all").to_owned()).unwrap();
        }
        async move {
            if query.contains("watch=true") {
                return Body::from_stream(stream::pending::<Result<String, std::io::Error>>()).into_response();
            }
            let items = query.contains("%3Dx0").then(|| json!({"metadata": {"namespace": "a", "name": "x0"}}));
            let items: Vec<_> = items.into_iter().collect();
            Json(json!({"metadata": {"resourceVersion": "1"}, "items": items})).into_response()
        }
    };
    let server = serve(Router::new().route("/api/v1/namespaces/a/configmaps", get(answer))).await;
    let (woken, mut wakes) = mpsc::unbounded_channel();
    let pool = ClusterPool::new(move |waiter: &Waiter| woken.send(waiter.name.clone()).unwrap());
    let cluster = pool.connect(&kubeconfig(&server, "t"), &Arc::default(), &None).await.unwrap();
    let waiter = |name: &str| Waiter { kind: "DeployItem".into(), namespace: "a".into(), name: name.into() };
    let (map, set, other) =
        (config_maps(), pool.set(Arc::new(NoConnections), waiter("i")), pool.set(Arc::new(NoConnections), waiter("j")));
    let place = |name: &str| NamespacedName { namespace: Some("a".into()), name: name.into() };
    let mut next = async || timeout(DEADLINE, lists.recv()).await.expect("in time").expect("it is asked");
    for name in (0..MOST_SINGLE).map(|number| format!("x{number}")) {
        set.watch(&cluster, &map, &place(&name));
        assert_eq!(next().await, format!("metadata.name%3D{name}"));
        assert_eq!(timeout(DEADLINE, wakes.recv()).await.expect("in time"), Some("i".into()), "its list is in");
    }
    // Nobody asks twice for the same one, and whoever comes later knows it at once.
    assert!(matches!(other.watch(&cluster, &map, &place("x0")), Observed::Present(_)));
    assert!(matches!(cluster.watches().observed(&map, &place("x0")), Some(Observed::Present(_))));
    // What a write answers is known as well.
    let written = json!({"metadata": {"namespace": "a", "name": "x1", "resourceVersion": "2"}});
    cluster.watches().upsert(&map, &written);
    assert!(matches!(other.watch(&cluster, &map, &place("x1")), Observed::Present(_)));
    assert!(matches!(other.watch(&cluster, &map, &place("x2")), Observed::Absent));
    // One more, and a name that can stand in no selector: all of them.
    other.watch(&cluster, &map, &place("more"));
    assert_eq!(next().await, "all");
    other.watch(&cluster, &map, &place("a,b"));
    assert_eq!(timeout(DEADLINE, wakes.recv()).await.expect("in time"), Some("j".into()), "all are listed");
    set.keep_waiting();
    other.keep_waiting();
    other.watch(&cluster, &map, &place("x9"));
    assert!(timeout(Duration::ZERO, next()).await.is_err(), "nothing else is asked for");
}

/// As where hundreds of items have each written a large object, of which all but one are nothing to each of them.
#[tokio::test]
async fn c_310_limits_cluster_objects_that_have_no_room_all_together_are_watched_one_by_one() {
    let (asked, mut lists) = mpsc::unbounded_channel();
    let answer = move |request: Request| {
        let query = request.uri().query().unwrap_or_default().to_owned();
        let fields = query.split('&').find_map(|part| part.strip_prefix("fieldSelector=")).map(str::to_owned);
        if !query.contains("watch=true") {
            asked.send(fields.clone().unwrap_or("all".to_owned())).unwrap();
        }
        async move {
            if query.contains("watch=true") {
                return Body::from_stream(stream::pending::<Result<String, std::io::Error>>()).into_response();
            }
            let large = |name: &str| {
                let metadata = json!({"namespace": "a", "name": name, "resourceVersion": "1"});
                json!({"metadata": metadata, "data": {"text": "x".repeat(300 << 10)}})
            };
            let items = if fields.is_none() { vec![large("one"), large("other")] } else { Vec::new() };
            Json(json!({"metadata": {"resourceVersion": "1"}, "items": items})).into_response()
        }
    };
    let server = serve(Router::new().route("/api/v1/namespaces/a/configmaps", get(answer))).await;
    let (woken, mut wakes) = mpsc::unbounded_channel();
    let pool = ClusterPool::with_memory(1 << 20, move |waiter: &Waiter| woken.send(waiter.name.clone()).unwrap());
    let cluster = pool.connect(&kubeconfig(&server, "t"), &Arc::default(), &None).await.unwrap();
    let waiter = Waiter { kind: "DeployItem".into(), namespace: "a".into(), name: "i".into() };
    let (map, set) = (config_maps(), pool.set(Arc::new(NoConnections), waiter));
    let place = |name: &str| NamespacedName { namespace: Some("a".into()), name: name.into() };
    let mut next = async || timeout(DEADLINE, lists.recv()).await.expect("in time").expect("it is asked");
    let mut wake = async || timeout(DEADLINE, wakes.recv()).await.expect("in time");
    for name in (0..MOST_SINGLE).map(|number| format!("x{number}")) {
        set.watch(&cluster, &map, &place(&name));
        assert_eq!((next().await, wake().await), (format!("metadata.name%3D{name}"), Some("i".into())));
    }
    set.watch(&cluster, &map, &place("more"));
    assert_eq!((next().await, wake().await), ("all".to_owned(), Some("i".into())), "there is no room for all");
    for name in ["more", "later"] {
        set.watch(&cluster, &map, &place(name));
        // Where all of them had no room, they are asked for again after a while.
        let mut asked = next().await;
        while asked == "all" {
            asked = next().await;
        }
        assert_eq!((asked, wake().await), (format!("metadata.name%3D{name}"), Some("i".into())));
        assert!(matches!(set.watch(&cluster, &map, &place(name)), Observed::Absent), "{name}");
    }
    // Whoever needs all of them is told.
    assert!(set.watch_all(&cluster, &map, &all()).is_err());
}

/// Each watch is a connection that stays open: an item in thousands of namespaces takes neither all of them nor their memory.
#[tokio::test]
async fn c_164_limits_cluster_the_watches_of_all_clusters_have_a_sum_that_namespaces_share() {
    let silent = tower::service_fn(|_: http::Request<kube::client::Body>| {
        pending::<Result<http::Response<kube::client::Body>, Infallible>>()
    });
    let pool = ClusterPool::new(|_| {});
    let [x, y] = ["x", "y"].map(|name| pool.adopt(name, &kube::Client::new(silent, "default")));
    let set = |namespace: &'static str| {
        let waiter = Waiter { kind: "DeployItem".into(), namespace: namespace.into(), name: "i".into() };
        pool.set(Arc::new(NoConnections), waiter)
    };
    let watch = |set: &ClusterSet, cluster: &Cluster, number: u64| {
        let namespace = Some(format!("n{number}").as_str().into());
        set.watch(cluster, &config_maps(), &NamespacedName { namespace, name: "x".into() })
    };
    let follow = |set: &ClusterSet, namespace: &'static str| {
        let what = (&config_maps(), Some(Namespace::from_static(namespace)));
        set.follow(&x, what, BTreeSet::new(), Arc::new(|_: FeedEvent<'_>| {})).map(|(feed, _)| feed)
    };
    let (one, other) = (set("a"), set("b"));
    let feed = follow(&one, "m").expect("there is a place");
    for number in 1..MOST_WATCHES / 2 {
        assert_eq!(watch(&one, if number % 2 == 0 { &x } else { &y }, number), Observed::Unknown);
    }
    let why = "its namespace has as many watches as it may, at most 2048, shared with other namespaces; use fewer kinds, \
               namespaces and clusters at once";
    assert_eq!(watch(&one, &x, MOST_WATCHES), Observed::Unwatched(why.to_owned()));
    let refused = follow(&one, "more").map(drop).map_err(|error| error.to_string());
    assert_eq!(refused, Err(format!("x cannot be watched for v1 ConfigMap: {why}")));
    // What is watched already is told, and neighbours have places of their own, also for what was refused.
    assert_eq!(watch(&one, &y, 1), Observed::Unknown);
    assert!(follow(&one, "m").is_ok() && follow(&other, "more").is_ok());
    assert_eq!(watch(&other, &x, MOST_WATCHES), Observed::Unknown);
    // Places that are given back are given to others.
    drop((one, feed));
    assert_eq!(watch(&set("a"), &x, MOST_WATCHES + 1), Observed::Unknown);
}
