//! Servers of targets that answer without end, late, or not at all.

#[cfg(test)]
#[path = "hostile/watches.rs"]
mod watches;

#[cfg(test)]
mod tests {
    use std::{
        collections::BTreeSet,
        net::Ipv4Addr,
        pin::pin,
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering},
        },
        time::Duration,
    };

    use axum::{
        Json, Router,
        body::Body,
        extract::{Path, Request},
        response::IntoResponse as _,
        routing::get,
    };
    use futures::{
        StreamExt as _,
        future::{join_all, pending},
        stream,
    };
    use http::{StatusCode, header::LOCATION};
    use orangery_cluster::{
        Call, Cluster, ClusterPool, ClusterSet, Connections, Error, MOST_ANSWER_BYTES, MOST_PAGES, MOST_REQUESTS,
        Waiter,
    };
    use orangery_core::{
        error::Code,
        name::Namespace,
        network::{AllowedNetworks, NamedServer, NetworkRule},
        port::{BoxFuture, LendableSlot},
        step::{Halt, Step},
    };
    use orangery_proposal::{ClusterRef, ObjectKey, SecretContent, Selection, deployer::ApiResource};
    use serde_json::json;
    use tokio::{
        sync::{mpsc, watch},
        time::{Instant, timeout},
    };

    /// How long a test waits for anything.
    pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

    /// The cluster behind a router, reached as a target is.
    pub(crate) async fn target(router: Router) -> (ClusterPool, Arc<Cluster>) {
        let pool = ClusterPool::new(|_| {});
        let cluster = pool.connect(&kubeconfig(&serve(router).await, "t"), &Arc::default(), &None).await.unwrap();
        (pool, cluster)
    }

    /// Serves a router; the address of its root.
    pub(crate) async fn serve(router: Router) -> String {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await });
        format!("http://{address}")
    }

    pub(crate) fn kubeconfig(server: &str, token: &str) -> String {
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": server}}],
            "users": [{"name": "u", "user": {"token": token}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        });
        kubeconfig.to_string()
    }

    pub(crate) fn config_maps() -> ApiResource {
        ApiResource {
            api_version: "v1".into(),
            kind: "ConfigMap".into(),
            plural: "configmaps".to_owned(),
            namespaced: true,
        }
    }

    pub(crate) fn all() -> Selection {
        Selection {
            api_version: "v1".into(),
            kind: "ConfigMap".into(),
            namespace: Some("a".into()),
            names: Vec::new(),
            labels: None,
            fields: None,
        }
    }

    fn key() -> ObjectKey {
        let text = str::to_owned;
        ObjectKey {
            api_version: text("v1").into(),
            kind: text("ConfigMap").into(),
            namespace: Some("a".into()),
            name: text("x").into(),
        }
    }

    /// A body that begins as an object and never ends.
    pub(crate) fn endless(begin: &'static str) -> Body {
        let rest = stream::repeat_with(|| Ok::<_, std::io::Error>("{\"\":0},".repeat(10_000)));
        Body::from_stream(stream::once(async move { Ok(begin.to_owned()) }).chain(rest))
    }

    #[tokio::test]
    async fn limits_cluster_an_answer_without_end_is_cut_off() {
        let answer = || async { endless("{\"items\":[") };
        let router = Router::new()
            .route("/api/v1/namespaces/a/configmaps", get(answer))
            .route("/api/v1/namespaces/a/configmaps/x", get(answer));
        let (_pool, cluster) = target(router).await;
        let listed = timeout(DEADLINE, cluster.list(&config_maps(), &all())).await.expect("in time").map(drop);
        let read = timeout(DEADLINE, cluster.get(&config_maps(), &key())).await.expect("in time").map(drop);
        for found in [listed, read] {
            let Err(Error::Unreachable { source, .. }) = &found else { panic!("{found:?}") };
            let message = chain(source.as_ref()).join(": ");
            let expected = format!("more than the {MOST_ANSWER_BYTES} bytes of memory that are allowed");
            assert!(message.contains(&expected), "{message}");
        }
    }

    #[tokio::test]
    async fn c_327_why_the_certificate_of_a_cluster_is_not_accepted_is_told_with_how_to_mend_it() {
        let start = || {
            orangery_embedded::start(orangery_embedded::Options {
                storage: orangery_embedded::Storage::Memory,
                address: "127.0.0.1:0".parse().unwrap(),
                clock: Arc::new(|| jiff::Timestamp::from_second(1_800_000_000).unwrap()),
            })
        };
        let (server, other) = (start().await.expect("a server"), start().await.expect("another"));
        let told = async |kubeconfig: &str| {
            let pool = ClusterPool::new(|_| {});
            let cluster = pool.connect(kubeconfig, &Arc::default(), &None).await.unwrap();
            let read = timeout(DEADLINE, cluster.get(&config_maps(), &key())).await.expect("in time");
            let halt = Halt::from(read.map(drop).expect_err("refused"));
            let Halt::Retry(failure) = halt else { panic!("{halt:?}") };
            (failure.reason, failure.message)
        };
        let expected = format!(
            "cluster {} does not answer as it should for ConfigMap a/x: its certificate is of no certificate authority that is trusted \
             here; name its authority in the Target, as certificate-authority-data of the kubeconfig or as caData of oidcConfig",
            server.url()
        );
        let data = |pem: &str| data_encoding::BASE64.encode(pem.as_bytes());
        let (own, of_other) = (data(server.ca_pem()), data(other.ca_pem()));
        let without = kubeconfig(&server.url(), "t");
        let with_other = server.kubeconfig().replace(&own, &of_other);
        for kubeconfig in [without, with_other] {
            assert_eq!(told(&kubeconfig).await, ("ClusterUnreachable".to_owned(), expected.clone()));
        }
        // Where nobody listens, what the system says.
        let gone = other.kubeconfig();
        other.stop().await;
        let (_, message) = told(&gone).await;
        assert!(message.ends_with(": Connection refused (os error 111)"), "{message}");
    }

    #[tokio::test]
    async fn c_95_nobody_reaches_a_metadata_service_by_a_kubeconfig_or_a_redirect() {
        let pool = ClusterPool::new(|_| {});
        let cluster = pool.connect(&kubeconfig("http://169.254.169.254", "t"), &Arc::default(), &None).await.unwrap();
        let denied = timeout(DEADLINE, cluster.get(&config_maps(), &key())).await.expect("in time");
        let Err(Error::Denied { message, .. }) = &denied else { panic!("{denied:?}") };
        let sentence = "169.254.169.254 leads to 169.254.169.254, a link-local address, where clouds have their metadata \
                        service; no client of this host connects there: name another address";
        assert_eq!(message, sentence);
        assert!(matches!(Halt::from(denied.unwrap_err()), Halt::Stall(_)), "it is not tried again");

        // Nor anybody else: where a server sends its client is not followed.
        let (other, asked) = counted(Router::new().fallback(|| async { Json(json!({"kind": "ConfigMap"})) }));
        let other = serve(other).await;
        let leads = move || async move { (StatusCode::TEMPORARY_REDIRECT, [(LOCATION, format!("{other}/x"))]) };
        let (_pool, cluster) = target(Router::new().fallback(leads)).await;
        let led = timeout(DEADLINE, cluster.get(&config_maps(), &key())).await.expect("in time");
        assert!(led.is_err(), "{led:?}");
        assert_eq!(asked.load(Ordering::SeqCst), 0, "the other server was asked");
    }

    /// One kubeconfig, and a server on loopback: connections of one allowance help no other one.
    #[tokio::test]
    async fn c_101_c_102_a_server_is_asked_only_under_an_allowance_that_has_its_network() {
        let (router, asked) = counted(Router::new().fallback(|| async { Json(json!({"kind": "ConfigMap"})) }));
        let server = serve(router).await;
        let port: u16 = server.rsplit(':').next().unwrap().parse().unwrap();
        let loopback = vec!["127.0.0.0/8".parse().unwrap(), "::1/128".parse().unwrap()];
        let rule = |networks, servers| {
            let line = "NamespacePolicy team, line spec.egress.networks".to_owned();
            Arc::new(AllowedNetworks { rules: vec![NetworkRule { networks, servers, line }] })
        };
        let named = NamedServer { address: Ipv4Addr::LOCALHOST.into(), ports: vec![port] };
        let (nothing, by_address) = (rule(vec![], vec![]), rule(vec![], vec![named]));
        let pool = ClusterPool::new(|_| {});
        let by_name = server.replace("127.0.0.1", "localhost");
        let read = async |server: &str, networks: &Arc<AllowedNetworks>| {
            let cluster = pool.connect(&kubeconfig(server, "t"), networks, &None).await.unwrap();
            timeout(DEADLINE, cluster.get(&config_maps(), &key())).await.expect("in time")
        };
        for server in [&server, &by_name] {
            assert!(read(server, &rule(loopback.clone(), vec![])).await.is_ok());
            assert!(read(server, &Arc::default()).await.is_ok());
        }
        assert!(read(&server, &by_address).await.is_ok());
        let answered = asked.load(Ordering::SeqCst);
        for (server, networks) in [(&server, &nothing), (&by_name, &nothing), (&by_name, &by_address)] {
            let refused = read(server, networks).await.unwrap_err();
            let message = refused.to_string();
            let sentence = ", a loopback address, which is refused by NamespacePolicy team, line spec.egress.networks; name \
                            another address, or have an administrator add ";
            assert!(message.contains(sentence), "{message}");
            let Halt::Stall(failure) = Halt::from(refused) else { panic!("it is tried again") };
            assert_eq!(failure.codes.into_iter().collect::<Vec<_>>(), [Code::PolicyViolation]);
        }
        assert_eq!(asked.load(Ordering::SeqCst), answered, "a server was asked that nobody may reach");
    }

    /// An error with all its causes.
    fn chain(error: &dyn std::error::Error) -> Vec<String> {
        std::iter::successors(Some(error), |error| error.source()).map(ToString::to_string).collect()
    }

    #[tokio::test]
    async fn limits_cluster_pages_without_end_are_given_up() {
        let answer = || async { Json(json!({"metadata": {"continue": "again"}, "items": []})) };
        let (_pool, cluster) = target(Router::new().route("/api/v1/namespaces/a/configmaps", get(answer))).await;
        let found = timeout(DEADLINE, cluster.list(&config_maps(), &all())).await.expect("in time");
        let message = found.unwrap_err().to_string();
        assert!(
            message.contains(&format!("lists more than the {MOST_PAGES} pages that are allowed for ConfigMap")),
            "{message}"
        );
        assert!(message.ends_with("; select fewer objects, or delete some"), "{message}");
    }

    #[tokio::test]
    async fn limits_cluster_the_objects_of_a_list_are_counted_over_its_pages() {
        // A page that is within what an answer may take: small values that take a hundred times their text.
        let page = |next: &str| {
            let item = format!("{{\"metadata\":{{\"name\":\"x\"}},\"data\":[{}0]}}", "{\"\":0},".repeat(100_000));
            format!("{{\"metadata\":{{\"continue\":\"{next}\"}},\"items\":[{item}]}}")
        };
        for (pages, refused) in [(2, false), (4, true)] {
            let answer = move |request: Request| async move {
                let query = request.uri().query().unwrap_or_default().to_owned();
                let seen = query.split_once("continue=").map_or(1, |(_, number)| number.parse().unwrap_or(1));
                page(&if seen < pages { (seen + 1).to_string() } else { String::new() })
            };
            let (_pool, cluster) = target(Router::new().route("/api/v1/namespaces/a/configmaps", get(answer))).await;
            let found = timeout(DEADLINE, cluster.list(&config_maps(), &all())).await.expect("in time");
            let message = found.map(|objects| objects.len()).map_err(|error| error.to_string());
            let expected = "lists more than the 268435456 bytes of memory, shared with other namespaces, that are allowed for ConfigMap";
            match (refused, message) {
                (false, Ok(listed)) => assert_eq!(listed, pages),
                (true, Err(message)) => assert!(message.contains(expected), "{message}"),
                (_, other) => panic!("{pages} pages: {other:?}"),
            }
        }
    }

    #[tokio::test]
    async fn c_88_limits_cluster_lists_and_watches_of_all_clusters_share_a_memory_and_what_ends_gives_it_back() {
        let answer = |request: Request| async move {
            if request.uri().query().unwrap_or_default().contains("watch=true") {
                return Body::from_stream(stream::pending::<Result<String, std::io::Error>>()).into_response();
            }
            let metadata = json!({"namespace": "a", "name": "x", "resourceVersion": "1"});
            let object = json!({"metadata": metadata, "data": {"text": "x".repeat(300 << 10)}});
            Json(json!({"metadata": {"resourceVersion": "1"}, "items": [object]})).into_response()
        };
        let route = || Router::new().route("/api/v1/namespaces/a/configmaps", get(answer));
        let (woken, mut wakes) = mpsc::unbounded_channel();
        let pool = ClusterPool::with_memory(1 << 20, move |waiter: &Waiter| woken.send(waiter.clone()).unwrap());
        let (first, second) = (serve(route()).await, serve(route()).await);
        let clusters = [
            pool.connect(&kubeconfig(&first, "t"), &Arc::default(), &None).await.unwrap(),
            pool.connect(&kubeconfig(&second, "t"), &Arc::default(), &None).await.unwrap(),
        ];
        let map = config_maps();
        let set = |namespace: &str| {
            let waiter = Waiter { kind: "DeployItem".into(), namespace: namespace.into(), name: "i".into() };
            pool.set(Arc::new(NoConnections), waiter)
        };
        let mut seen = async |set: &ClusterSet, cluster: &Cluster| loop {
            match set.watch_all(cluster, &map, &all()) {
                Err(Halt::Wait(_)) => drop(timeout(DEADLINE, wakes.recv()).await.expect("in time")),
                known => {
                    return known.map(|objects| objects.len()).map_err(|halt| halt.failure().unwrap().message.clone());
                }
            }
        };
        let (one, other) = (set("one"), set("other"));
        assert_eq!(seen(&one, &clusters[0]).await, Ok(1));
        let refused = seen(&one, &clusters[1]).await.unwrap_err();
        let expected = "its objects take more than the 524288 bytes of memory, shared with other namespaces, that are allowed; \
                        select fewer, or delete some";
        assert!(refused.contains(expected), "{refused}");
        let list = clusters[1].during(&Call::default().of(&"one".into()));
        assert!(matches!(list.list(&map, &all()).await, Err(Error::TooLarge { .. })), "lists count as well");
        one.keep_waiting();
        pool.release(&Waiter { kind: "DeployItem".into(), namespace: "one".into(), name: "i".into() });
        drop(one);
        assert_eq!(list.list(&map, &all()).await.map(|objects| objects.len()).ok(), Some(1), "it is free again");
        assert_eq!(seen(&other, &clusters[1]).await, Ok(1), "another namespace has its own share");
    }

    /// An object whose text has so many KiB, of which the last are never sent.
    fn unfinished(kib: usize) -> Body {
        let begin = format!(r#"{{"metadata": {{"name": "x"}}, "data": {{"text": "{}"#, "x".repeat(kib << 10));
        Body::from_stream(stream::iter([Ok::<_, std::io::Error>(begin)]).chain(stream::pending()))
    }

    #[tokio::test]
    async fn c_86_limits_cluster_answers_on_their_way_share_a_memory() {
        let whole = |kib: usize| json!({"metadata": {"name": "x"}, "data": {"text": "x".repeat(kib << 10)}});
        let answer = move |Path(name): Path<String>| async move {
            let kib = name.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().unwrap();
            if name.starts_with("part") { unfinished(kib).into_response() } else { Json(whole(kib)).into_response() }
        };
        let server = serve(Router::new().route("/api/v1/namespaces/a/configmaps/{name}", get(answer))).await;
        let connected = async |memory: u64| {
            let pool = ClusterPool::with_memory(memory, |_: &Waiter| {});
            pool.connect(&kubeconfig(&server, "t"), &Arc::default(), &None).await.unwrap()
        };
        let single = connected(64 << 20).await;
        let largest = async |name: &str| {
            let answer = single.get(&config_maps(), &ObjectKey { name: name.into(), ..key() }).await;
            answer.map(|object| object.is_some()).map_err(|error| chain(&error).concat())
        };
        assert_eq!(largest("whole-8190").await, Ok(true));
        let refused = largest("whole-8192").await.unwrap_err();
        assert!(refused.contains("its answer takes more than the 8388608 bytes that are allowed"), "{refused}");
        let cluster = connected(2 << 20).await;
        let of = |namespace: &'static str| cluster.during(&Call::default().of(&namespace.into()));
        let (map, named) = (config_maps(), |name: &str| ObjectKey { name: name.into(), ..key() });
        let got = async |namespace, name: &str| {
            let answer = timeout(DEADLINE / 6, of(namespace).get(&map, &named(name))).await.expect("in time");
            answer.map(|object| object.is_some()).map_err(|error| chain(&error).concat())
        };
        assert_eq!(got("one", "whole-400").await, Ok(true));
        let refused = got("two", "whole-600").await.unwrap_err();
        let expected =
            "its answer takes more than the 1048576 bytes of memory, shared with other namespaces, that are allowed";
        assert!(refused.contains(expected), "{refused}");
        // What was sent and goes on for ever is held as long as it is waited for.
        let (waiting, unfinished) = (of("four"), named("part-700"));
        let mut waits = pin!(waiting.get(&map, &unfinished));
        while got("four", "whole-200").await.is_ok() {
            assert!(futures::poll!(waits.as_mut()).is_pending());
        }
        assert_eq!(got("five", "whole-200").await, Ok(true), "another namespace has its own share");
    }

    #[tokio::test]
    async fn c_201_limits_cluster_the_values_of_answers_about_single_objects_share_a_memory() {
        // Values of 395 KiB in a text of two.
        let answer = format!(r#"{{"metadata": {{"name": "x"}}, "data": [{}0]}}"#, "{},".repeat(1 << 9));
        let answer = get(async move || ([("content-type", "application/json")], answer.clone()));
        let server = serve(Router::new().route("/api/v1/namespaces/a/configmaps/x", answer)).await;
        let pool = ClusterPool::with_memory(2 << 20, |_: &Waiter| {});
        let cluster = pool.connect(&kubeconfig(&server, "t"), &Arc::default(), &None).await.unwrap();
        let of = |namespace: &'static str| cluster.during(&Call::default().of(&namespace.into()));
        let got = async |cluster: &Cluster| {
            let answer = cluster.get(&config_maps(), &ObjectKey { name: "x".into(), ..key() }).await;
            answer.map(|object| object.is_some()).map_err(|error| chain(&error).concat())
        };
        let objects = ["one"; 3].map(|namespace| of(namespace).of_object());
        assert_eq!((got(&objects[0]).await, got(&objects[1]).await), (Ok(true), Ok(true)));
        let refused = got(&objects[2]).await.unwrap_err();
        let expected =
            "its answer takes more than the 1048576 bytes of memory, shared with other namespaces, that are allowed";
        assert!(refused.contains(expected), "{refused}");
        assert_eq!(got(&of("two")).await, Ok(true), "another namespace has its own share");
        let [first, second, third] = objects;
        drop(first);
        assert_eq!(got(&third).await, Ok(true), "what is dropped gives its memory back");
        drop((second, third));
        // What is kept has a quarter of that share at most.
        let text = |kib: usize| Arc::new(json!("x".repeat(kib << 10)));
        let kept = of("one").keep(text(200), 0).map(|kept| kept.bytes() >> 10);
        assert_eq!(kept, Some(200));
        assert!(of("one").keep(text(200), 100 << 10).is_none());
    }

    /// A slot that says when it is lent and taken back.
    struct ToldSlot(mpsc::UnboundedSender<&'static str>);

    impl LendableSlot for ToldSlot {
        fn lend(&self) {
            self.0.send("lent").expect("the test waits");
        }

        fn take_back(&self) {
            self.0.send("taken back").expect("the test waits");
        }
    }

    /// A server that takes requests and answers the head of nothing, or a first byte and no other.
    fn silent() -> Router {
        let byte = || async {
            Body::from_stream(stream::once(async { Ok::<_, std::io::Error>("{") }).chain(stream::pending()))
        };
        Router::new().route("/api/v1/namespaces/a/configmaps", get(byte)).fallback(|| async { pending::<()>().await })
    }

    #[tokio::test]
    async fn c_39_a_request_to_a_silent_server_ends_with_its_call_and_lends_the_slot_until_then() {
        let (_pool, cluster) = target(silent()).await;
        let (told, mut events) = mpsc::unbounded_channel();
        let call = Call::new(Some(Arc::new(ToldSlot(told))));
        call.end_in(Some(Duration::from_secs(1)));
        let cluster = cluster.during(&call);
        let (config_maps, what, name) = (config_maps(), all(), key());
        let found = timeout(DEADLINE / 3, async {
            tokio::join!(cluster.get(&config_maps, &name), cluster.list(&config_maps, &what), cluster.uid())
        });
        let (read, listed, uid) = found.await.expect("in time");
        let is_unanswered = |error: Option<Error>| matches!(error, Some(Error::Unanswered { seconds: 1, .. }));
        assert!(is_unanswered(read.err()) && is_unanswered(listed.err()) && is_unanswered(uid.err()));
        let late = cluster.get(&config_maps, &name).await.err();
        assert!(matches!(late, Some(Error::OutOfTime { .. })), "{late:?}");
        drop(cluster);
        drop(call);
        let mut seen = Vec::new();
        while let Some(event) = events.recv().await {
            seen.push(event);
        }
        assert_eq!(seen.iter().filter(|event| **event == "lent").count(), 3, "{seen:?}");
        assert_eq!(seen.iter().filter(|event| **event == "taken back").count(), 3, "{seen:?}");
    }

    /// How often a router was asked for anything.
    fn counted(router: Router) -> (Router, Arc<AtomicUsize>) {
        let asked = Arc::<AtomicUsize>::default();
        let count = Arc::clone(&asked);
        let counting = axum::middleware::from_fn(move |request: Request, next: axum::middleware::Next| {
            count.fetch_add(1, Ordering::SeqCst);
            next.run(request)
        });
        (router.layer(counting), asked)
    }

    #[tokio::test]
    async fn c_39_several_waiters_ask_once_for_what_a_cluster_serves() {
        let (router, asked) = counted(silent());
        let (_pool, cluster) = target(router).await;
        let call = Call::default();
        call.end_in(Some(Duration::from_secs(1)));
        let cluster = cluster.during(&call);
        let (version, kind) = ("v1".into(), "ConfigMap".into());
        let found = timeout(DEADLINE / 3, join_all((0..50).map(|_| cluster.served(&version, &kind)))).await;
        assert!(found.expect("in time").iter().all(Result::is_err));
        assert_eq!(asked.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn c_39_a_failed_discovery_is_remembered_for_a_while_and_then_asked_again() {
        let (answers, answer) = watch::channel(false);
        let serves = move || {
            let is_well = *answer.borrow();
            async move {
                let kinds = json!({"kind": "APIResourceList", "groupVersion": "v1", "resources": [
                    {"name": "configmaps", "singularName": "", "kind": "ConfigMap", "namespaced": true, "verbs": []}]});
                if is_well { Json(kinds).into_response() } else { StatusCode::INTERNAL_SERVER_ERROR.into_response() }
            }
        };
        let (router, asked) = counted(Router::new().route("/api/v1", get(serves)));
        let (_pool, cluster) = target(router).await;
        let (version, kind) = ("v1".into(), "ConfigMap".into());
        for _ in 0..500 {
            assert!(cluster.served(&version, &kind).await.is_err());
        }
        let count = asked.load(Ordering::SeqCst);
        assert!((1..50).contains(&count), "asked {count} times");
        answers.send(true).unwrap();
        let well = async {
            while cluster.served(&version, &kind).await.is_err() {
                tokio::task::yield_now().await;
            }
        };
        timeout(DEADLINE, well).await.expect("it is asked again");
    }

    #[tokio::test]
    async fn c_282_limits_cluster_what_a_server_says_of_its_kinds_has_a_sum() {
        let list = |Path(version): Path<String>| async move {
            let resource = |index: usize| {
                let (name, kind) = (format!("{index:0>200}"), format!("K{index:0>200}"));
                json!({"name": name, "singularName": "", "kind": kind, "namespaced": true, "verbs": []})
            };
            let long = "x".repeat(254);
            let mut resources =
                vec![json!({"name": long, "singularName": "", "kind": "Long", "namespaced": true, "verbs": []})];
            resources.extend((0..3_000).map(resource));
            Json(json!({"kind": "APIResourceList", "groupVersion": format!("a/{version}"), "resources": resources}))
        };
        let address = serve(Router::new().route("/apis/a/{version}", get(list))).await;
        let pool = ClusterPool::with_memory(64 << 20, |_| {});
        let cluster = pool.connect(&kubeconfig(&address, "t"), &Arc::default(), &None).await.unwrap();
        let served = async |version: &str, kind: String| {
            let asked = cluster.during(&Call::default().of(&"one".into()));
            asked.served(&format!("a/{version}").into(), &kind.into()).await.map(drop)
        };
        let named = |index: usize| format!("K{index:0>200}");
        assert!(served("v0", named(0)).await.is_ok());
        assert!(matches!(served("v0", named(2_500)).await, Err(Error::NotServed { .. })), "so many and no more");
        assert!(matches!(served("v0", "Long".to_owned()).await, Err(Error::NotServed { .. })), "no name is so long");
        let mut known = 1;
        let refused = loop {
            match served(&format!("v{known}"), named(0)).await {
                Ok(()) => known += 1,
                Err(error) => break error,
            }
        };
        let limit = "than the 33554432 bytes of memory, shared with other namespaces, that are allowed";
        assert!(refused.to_string().contains(limit), "{refused}");
        assert!((5..64).contains(&known), "{known} versions in 32 MiB");
        assert!(served("v0", named(0)).await.is_ok(), "what is known stays so");
    }

    #[tokio::test]
    async fn c_282_limits_cluster_a_group_has_so_many_versions_and_no_name_is_longer() {
        let long = "x".repeat(254);
        let of_group = |last: usize| {
            let versions: Vec<_> =
                (0..=last).map(|n| json!({"groupVersion": format!("a/v{n}"), "version": format!("v{n}")})).collect();
            move || async move { Json(json!({"kind": "APIGroup", "name": "a", "versions": versions})) }
        };
        let list = |last: usize| {
            move |Path(version): Path<String>| async move {
                let kind =
                    json!({"name": "kinds", "singularName": "", "kind": "Kind", "namespaced": true, "verbs": []});
                let kinds = if version == format!("v{last}") { vec![kind] } else { vec![] };
                Json(json!({"kind": "APIResourceList", "groupVersion": format!("a/{version}"), "resources": kinds}))
            }
        };
        let namespace = json!({"metadata": {"name": "kube-system", "uid": long}});
        for (last, is_found) in [(31, true), (32, false)] {
            let namespace = namespace.clone();
            let router = Router::new()
                .route("/apis/a", get(of_group(last)))
                .route("/apis/a/{version}", get(list(last)))
                .route("/api/v1/namespaces/kube-system", get(move || async move { Json(namespace) }));
            let (_pool, cluster) = target(router).await;
            assert_eq!(cluster.served_in_group("a", &"Kind".into()).await.unwrap().is_some(), is_found);
            assert_eq!(cluster.uid().await.unwrap(), None, "no uid is so long");
        }
    }

    #[tokio::test]
    async fn c_39_a_server_that_wants_to_be_asked_later_is() {
        let begun = Instant::now();
        let times = Arc::<std::sync::Mutex<Vec<Duration>>>::default();
        let seen = Arc::clone(&times);
        let busy = move || {
            let mut seen = seen.lock().unwrap();
            seen.push(begun.elapsed());
            let is_first = seen.len() == 1;
            async move {
                if is_first {
                    // As API servers say it that have too much to do: no Status, but text.
                    let later = [(http::header::RETRY_AFTER, "1")];
                    return (StatusCode::TOO_MANY_REQUESTS, later, "Too many requests").into_response();
                }
                Json(json!({"kind": "ConfigMap", "metadata": {"name": "x"}})).into_response()
            }
        };
        let (_pool, cluster) = target(Router::new().route("/api/v1/namespaces/a/configmaps/x", get(busy))).await;
        let found = timeout(DEADLINE, cluster.get(&config_maps(), &key())).await.expect("in time");
        assert_eq!(found.unwrap().unwrap()["metadata"]["name"], "x");
        let times = times.lock().unwrap().clone();
        let [first, second] = times.as_slice() else { panic!("{times:?}") };
        assert!(*second - *first >= Duration::from_secs(1), "{times:?}");
    }

    #[tokio::test]
    async fn c_208_a_server_that_wants_to_be_asked_too_late_is_told_as_that_and_not_as_one_that_is_silent() {
        let busy = || async { (StatusCode::TOO_MANY_REQUESTS, [(http::header::RETRY_AFTER, "86400")], "later") };
        let (router, asked) = counted(Router::new().route("/api/v1/namespaces/a/configmaps/x", get(busy)));
        let (_pool, cluster) = target(router).await;
        // The second request is not sent at all.
        for _ in 0..2 {
            let call = Call::default();
            call.end_in(Some(Duration::from_secs(1)));
            let error = cluster.during(&call).get(&config_maps(), &key()).await.unwrap_err();
            assert!(matches!(&error, Error::Busy { seconds: 50..=60, .. }), "{error:?}");
            let begin = format!("{} has answered that it takes no requests for now (Retry-After: ", cluster.address());
            assert!(error.to_string().starts_with(&begin), "{error}");
            assert!(error.to_string().ends_with("s more), so it was not asked again for ConfigMap a/x"), "{error}");
            let Halt::Retry(failure) = Halt::from(error) else { panic!("it passes") };
            assert_eq!(failure.reason, "ClusterUnreachable");
        }
        assert_eq!(asked.load(Ordering::SeqCst), 1);
    }

    /// What a server answers that wants to be left alone for so many seconds.
    fn later(status: StatusCode, seconds: &'static str) -> axum::response::Response {
        (status, [(http::header::RETRY_AFTER, seconds)], "later").into_response()
    }

    /// Reads an object within this time.
    async fn read_within(seconds: u64, cluster: &Cluster, name: &str) -> Result<(), Error> {
        let call = Call::default();
        call.end_in(Some(Duration::from_secs(seconds)));
        let named = ObjectKey { name: name.into(), ..key() };
        cluster.during(&call).get(&config_maps(), &named).await.map(drop)
    }

    #[tokio::test]
    async fn c_208_a_server_is_left_alone_where_it_has_too_much_to_do_and_after_its_last_answer_as_well() {
        let failing = || async { later(StatusCode::INTERNAL_SERVER_ERROR, "86400") };
        let (router, asked) = counted(Router::new().route("/api/v1/namespaces/a/configmaps/x", get(failing)));
        let (_pool, cluster) = target(router).await;
        for times in 1..3 {
            let error = read_within(5, &cluster, "x").await.unwrap_err();
            assert!(!matches!(error, Error::Busy { .. }), "{error:?}");
            assert_eq!(asked.load(Ordering::SeqCst), times);
        }

        let times = Arc::<AtomicUsize>::default();
        let busy = move || {
            let seconds = if times.fetch_add(1, Ordering::SeqCst) < 5 { "0" } else { "86400" };
            async move { later(StatusCode::TOO_MANY_REQUESTS, seconds) }
        };
        let (router, asked) = counted(Router::new().route("/api/v1/namespaces/a/configmaps/x", get(busy)));
        let (_pool, cluster) = target(router).await;
        let refused = [read_within(5, &cluster, "x").await, read_within(1, &cluster, "x").await];
        let is_busy = refused.each_ref().map(|found| matches!(found, Err(Error::Busy { .. })));
        assert_eq!((is_busy, asked.load(Ordering::SeqCst)), ([false, true], 6), "{refused:?}");
    }

    #[tokio::test]
    async fn c_208_what_was_sent_before_is_told_by_its_own_answer_and_shortens_no_pause() {
        let seen = watch::Sender::new(BTreeSet::<String>::new());
        let told = seen.clone();
        let answer = move |Path(name): Path<String>| {
            let told = told.clone();
            async move {
                told.send_modify(|seen| {
                    seen.insert(name.clone());
                });
                match name.as_str() {
                    "busy" => later(StatusCode::TOO_MANY_REQUESTS, "86400"),
                    "late" => {
                        drop(told.subscribe().wait_for(|seen| seen.contains("go")).await.map(drop));
                        later(StatusCode::TOO_MANY_REQUESTS, "1")
                    }
                    _ => pending().await,
                }
            }
        };
        let (_pool, cluster) = target(Router::new().route("/api/v1/namespaces/a/configmaps/{name}", get(answer))).await;
        let pause = async {
            let both = |seen: &BTreeSet<String>| seen.contains("late") && seen.contains("silent");
            drop(seen.subscribe().wait_for(both).await.map(drop));
            let busy = read_within(1, &cluster, "busy").await;
            seen.send_modify(|seen| {
                seen.insert("go".to_owned());
            });
            [busy, read_within(2, &cluster, "other").await]
        };
        let (late, silent, others) =
            tokio::join!(read_within(8, &cluster, "late"), read_within(6, &cluster, "silent"), pause);
        assert!(matches!(silent, Err(Error::Unanswered { .. })), "{silent:?}");
        for found in others.iter().chain([&late]) {
            assert!(matches!(found, Err(Error::Busy { seconds: 45..=60, .. })), "{found:?}");
        }
    }

    /// The requests that a server has under way, and the most that it has had.
    #[derive(Clone)]
    struct UnderWay {
        count: watch::Sender<usize>,
        most: Arc<AtomicUsize>,
    }

    impl UnderWay {
        fn new() -> (Self, Arc<AtomicUsize>) {
            let most = Arc::<AtomicUsize>::default();
            (Self { count: watch::channel(0).0, most: Arc::clone(&most) }, most)
        }

        /// One request stays until as many have come as there may be at once; the last ones are fewer.
        async fn stay(&self) {
            self.count.send_modify(|count| *count += 1);
            self.most.fetch_max(*self.count.borrow(), Ordering::SeqCst);
            let mut full = self.count.subscribe();
            let _ = timeout(DEADLINE / 30, full.wait_for(|count| *count >= MOST_REQUESTS)).await;
            self.count.send_modify(|count| *count -= 1);
        }
    }

    #[tokio::test]
    async fn limits_cluster_so_many_requests_are_under_way_at_once_and_no_more() {
        let (under_way, most) = UnderWay::new();
        let waits = move || {
            let under_way = under_way.clone();
            async move {
                under_way.stay().await;
                Json(json!({"kind": "ConfigMap", "metadata": {"name": "x"}}))
            }
        };
        let (_pool, cluster) = target(Router::new().route("/api/v1/namespaces/a/configmaps/x", get(waits))).await;
        let (config_maps, name) = (config_maps(), key());
        let asked: Vec<_> = namespaces().map(|namespace| cluster.during(&Call::default().of(&namespace))).collect();
        let found = join_all((0..4).flat_map(|_| asked.iter().map(|cluster| cluster.get(&config_maps, &name))));
        assert!(timeout(DEADLINE, found).await.expect("in time").iter().all(Result::is_ok));
        assert_eq!(most.load(Ordering::SeqCst), MOST_REQUESTS);
    }

    /// As many as may have requests under way at once.
    fn namespaces() -> impl Iterator<Item = Namespace> {
        (0..MOST_REQUESTS).map(|number| Namespace::from(format!("team-{number}")))
    }

    /// A token that was rotated, or that of another team, makes no other server; each goes with its own requests alone.
    #[tokio::test]
    async fn c_92_kubeconfigs_of_one_server_share_its_limit_and_its_silence_and_no_credentials() {
        let (under_way, most) = UnderWay::new();
        let waits = move |request: Request| {
            let under_way = under_way.clone();
            async move {
                under_way.stay().await;
                let token = request.headers().get("authorization").and_then(|value| value.to_str().ok());
                Json(json!({"kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"token": token}}))
            }
        };
        let silent = get(|| async { pending::<()>().await });
        let router = Router::new().route("/api/v1/namespaces/a/configmaps/x", get(waits));
        let server = serve(router.route("/api/v1/namespaces/a/configmaps/silent", silent)).await;
        let pool = ClusterPool::new(|_| {});
        let tokens = ["one", "two", "three"];
        let clusters = join_all(tokens.map(|token| {
            let (pool, kubeconfig) = (&pool, kubeconfig(&server, token));
            async move { pool.connect(&kubeconfig, &Arc::default(), &None).await.unwrap() }
        }))
        .await;
        let (config_maps, name) = (config_maps(), key());
        let asked = namespaces().flat_map(|namespace| {
            let call = Call::default().of(&namespace);
            clusters.iter().zip(tokens).map(move |(cluster, token)| (cluster.during(&call), token))
        });
        let asked = asked.map(async |(cluster, token)| {
            let found = cluster.get(&config_maps, &name).await.unwrap().unwrap();
            assert_eq!(found.pointer("/data/token"), Some(&json!(format!("Bearer {token}"))));
        });
        timeout(DEADLINE, join_all(asked)).await.expect("in time");
        assert_eq!(most.load(Ordering::SeqCst), MOST_REQUESTS);

        // One finds out that it is silent; the other is told at once. What lies below another path is another server.
        let silent = ObjectKey { name: "silent".into(), ..key() };
        let [one, two, _] = clusters.as_slice() else { panic!("three are connected") };
        let call = Call::default();
        call.end_in(Some(Duration::from_millis(1_200)));
        one.during(&call).get(&config_maps, &silent).await.unwrap_err();
        let begin = Instant::now();
        assert!(matches!(two.get(&config_maps, &name).await, Err(Error::Unanswered { .. })));
        assert!(begin.elapsed() < Duration::from_secs(1));
        let below = pool.connect(&kubeconfig(&format!("{server}/below"), "one"), &Arc::default(), &None).await.unwrap();
        assert!(!matches!(below.get(&config_maps, &name).await, Err(Error::Unanswered { .. })));
    }

    /// A server on which a webhook of somebody hangs: what needs it is never answered, everything else is.
    fn with_a_webhook_that_hangs() -> (Router, watch::Sender<usize>) {
        let under_way = watch::channel(0).0;
        let seen = under_way.clone();
        let hangs = move || {
            seen.send_modify(|count| *count += 1);
            pending::<()>()
        };
        let found = || async { Json(json!({"kind": "ConfigMap", "metadata": {"name": "x"}})) };
        let router = Router::new()
            .route("/api/v1/namespaces/a/configmaps/hangs", get(hangs))
            .route("/api/v1/namespaces/a/configmaps/x", get(found));
        (router, under_way)
    }

    /// The server as a namespace asks it, with these credentials.
    async fn asked(pool: &ClusterPool, server: &str, namespace: &'static str, token: &str) -> (Cluster, Call) {
        let call = Call::default().of(&Namespace::from_static(namespace));
        (pool.connect(&kubeconfig(server, token), &Arc::default(), &None).await.unwrap().during(&call), call)
    }

    #[tokio::test]
    async fn c_44_requests_that_are_never_answered_take_no_places_of_another_namespace_and_make_it_no_silent_server() {
        let (router, under_way) = with_a_webhook_that_hangs();
        let (pool, server) = (ClusterPool::new(|_| {}), serve(router).await);
        let (greedy, _) = asked(&pool, &server, "greedy", "one").await;
        let (config_maps, name, hangs) = (config_maps(), key(), ObjectKey { name: "hangs".into(), ..key() });
        let held = join_all((0..2 * MOST_REQUESTS).map(|_| greedy.get(&config_maps, &hangs)));
        let neighbours = async {
            let share = MOST_REQUESTS * 7 / 16;
            timeout(DEADLINE, under_way.subscribe().wait_for(|count| *count >= share)).await.expect("in time").unwrap();
            for (namespace, token) in [("neighbour", "two"), ("neighbour", "one"), ("third", "one")] {
                let (neighbour, _) = asked(&pool, &server, namespace, token).await;
                let found = timeout(DEADLINE / 6, neighbour.get(&config_maps, &name)).await.expect("has its turn");
                assert!(found.unwrap().is_some());
            }
            assert_eq!(*under_way.borrow(), share, "the greedy one has no more than its share");
        };
        tokio::select! {
            () = neighbours => {}
            _ = held => panic!("what hangs has ended"),
        }
        // On a server that nobody else asks meanwhile.
        let (router, _) = with_a_webhook_that_hangs();
        let server = serve(router).await;
        let ((greedy, call), (neighbour, _)) =
            (asked(&pool, &server, "greedy", "one").await, asked(&pool, &server, "neighbour", "one").await);
        call.end_in(Some(Duration::from_millis(1_200)));
        greedy.get(&config_maps, &hangs).await.unwrap_err();
        call.end_in(None);
        assert!(matches!(greedy.get(&config_maps, &name).await, Err(Error::Unanswered { .. })));
        assert!(neighbour.get(&config_maps, &name).await.unwrap().is_some());
    }

    #[tokio::test]
    async fn c_44_what_a_cluster_serves_is_asked_for_each_namespace_and_known_to_all() {
        let count = Arc::<AtomicUsize>::default();
        let seen = Arc::clone(&count);
        let kinds = move || {
            let is_first = seen.fetch_add(1, Ordering::SeqCst) == 0;
            async move {
                if is_first {
                    pending::<()>().await;
                }
                let kind =
                    json!({"name": "slows", "kind": "Slow", "namespaced": true, "verbs": [], "singularName": ""});
                Json(json!({"kind": "APIResourceList", "groupVersion": "slow.example/v1", "resources": [kind]}))
            }
        };
        let router = Router::new().route("/apis/slow.example/v1", get(kinds));
        let (pool, server) = (ClusterPool::new(|_| {}), serve(router).await);
        let (api_version, kind) = ("slow.example/v1".into(), "Slow".into());
        let (greedy, call) = asked(&pool, &server, "greedy", "t").await;
        call.end_in(Some(Duration::from_millis(100)));
        greedy.served(&api_version, &kind).await.unwrap_err();
        for namespace in ["neighbour", "third"] {
            let (neighbour, _) = asked(&pool, &server, namespace, "t").await;
            let served = timeout(DEADLINE / 6, neighbour.served(&api_version, &kind)).await.expect("waits for nobody");
            assert_eq!(served.unwrap().plural, "slows");
        }
        call.end_in(None);
        assert_eq!(greedy.served(&api_version, &kind).await.unwrap().plural, "slows");
        assert_eq!(count.load(Ordering::SeqCst), 2);
    }

    /// Connections that nobody asks for: the test has its cluster.
    pub(crate) struct NoConnections;

    impl Connections for NoConnections {
        fn connect<'a>(&'a self, _: &'a ClusterRef) -> BoxFuture<'a, Step<Arc<Cluster>>> {
            unreachable!("the test has its cluster")
        }

        fn content<'a>(&'a self, _: &'a SecretContent) -> BoxFuture<'a, Step<String>> {
            unreachable!("nothing is written")
        }
    }
}
