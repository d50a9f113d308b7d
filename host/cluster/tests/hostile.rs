//! Servers of targets that answer without end.

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use axum::{Json, Router, body::Body, extract::Request, routing::get};
    use futures::{StreamExt as _, stream};
    use orangery_cluster::{
        Cluster, ClusterPool, Connections, Error, MOST_ANSWER_BYTES, MOST_PAGES, NamespacedName, Observed, Waiter,
    };
    use orangery_core::{port::BoxFuture, step::Step};
    use orangery_proposal::{ClusterRef, ObjectKey, SecretContent, Selection, deployer::ApiResource};
    use serde_json::json;
    use tokio::time::timeout;

    /// How long a test waits for anything.
    const DEADLINE: Duration = Duration::from_secs(60);

    /// The cluster behind a router, reached as a target is.
    async fn target(router: Router) -> (ClusterPool, Arc<Cluster>) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await });
        let pool = ClusterPool::new(|_| {});
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": format!("http://{address}")}}],
            "users": [{"name": "u", "user": {"token": "t"}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        });
        let cluster = pool.connect(&kubeconfig.to_string()).await.unwrap();
        (pool, cluster)
    }

    fn config_maps() -> ApiResource {
        ApiResource {
            api_version: "v1".to_owned(),
            kind: "ConfigMap".to_owned(),
            plural: "configmaps".to_owned(),
            namespaced: true,
        }
    }

    fn all() -> Selection {
        Selection {
            api_version: "v1".to_owned(),
            kind: "ConfigMap".to_owned(),
            namespace: Some("a".into()),
            names: Vec::new(),
            labels: None,
            fields: None,
        }
    }

    fn key() -> ObjectKey {
        let text = str::to_owned;
        ObjectKey { api_version: text("v1"), kind: text("ConfigMap"), namespace: Some("a".into()), name: text("x") }
    }

    /// A body that begins as an object and never ends.
    fn endless(begin: &'static str) -> Body {
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
                let object = json!({"metadata": {"name": "x", "namespace": "a", "resourceVersion": "2"}});
                let event = format!("{}\n", json!({"type": "ADDED", "object": object}));
                let events = stream::repeat_with(move || Ok::<_, std::io::Error>(event.repeat(1_000))).take(200);
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
        let waiter = Waiter { kind: "DeployItem", namespace: "a".into(), name: "i".to_owned() };
        let set = pool.set(Arc::new(NoConnections), waiter);
        let place = NamespacedName { namespace: Some("a".into()), name: "x".to_owned() };
        let _ = set.watch(&cluster, &config_maps(), &place);
        // The watch is asked for once more: it was broken off, and is taken up again.
        for _ in 0..2 {
            timeout(DEADLINE, again.recv()).await.expect("in time").expect("it is asked");
        }
        assert!(matches!(set.watch(&cluster, &config_maps(), &place), Observed::Present(_)));
    }

    /// Connections that nobody asks for: the test has its cluster.
    struct NoConnections;

    impl Connections for NoConnections {
        fn connect<'a>(&'a self, _: &'a ClusterRef) -> BoxFuture<'a, Step<Arc<Cluster>>> {
            unreachable!("the test has its cluster")
        }

        fn content<'a>(&'a self, _: &'a SecretContent) -> BoxFuture<'a, Step<String>> {
            unreachable!("nothing is written")
        }
    }
}
