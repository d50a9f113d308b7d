//! Watches on single objects against an API server: who shares them, and when they end.

#[cfg(test)]
mod tests {
    use std::{future::pending, sync::Arc, time::Duration};

    use axum::{Router, body::Body};
    use futures::StreamExt as _;
    use jiff::Timestamp;
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::{
        Api, Client,
        api::{DeleteParams, PostParams},
    };
    use orangery_cluster::{ClusterPool, MOST_APART, MOST_WATCHES, Observed, Waiter};
    use orangery_core::name::ObjectName;
    use orangery_embedded::{Options, Storage, start};
    use orangery_proposal::deployer::ApiResource;
    use serde_json::json;
    use tokio::{
        sync::{mpsc, watch},
        time::timeout,
    };
    use tower::{BoxError, ServiceExt as _, service_fn};

    /// How long a test waits for anything.
    const DEADLINE: Duration = Duration::from_secs(20);

    /// One watch that the server serves; it ends when dropped.
    struct Open(watch::Sender<usize>);

    impl Drop for Open {
        fn drop(&mut self) {
            self.0.send_modify(|open| *open -= 1);
        }
    }

    /// A client that counts the watches that are open.
    fn client(router: Router, open: watch::Sender<usize>) -> Client {
        let service = service_fn(move |request: axum::http::Request<kube::client::Body>| {
            let (router, open) = (router.clone(), open.clone());
            async move {
                let watches = request.uri().query().unwrap_or_default().contains("watch=");
                let response = router.oneshot(request.map(Body::new)).await.map_err(BoxError::from)?;
                if !watches {
                    return Ok(response);
                }
                open.send_modify(|open| *open += 1);
                let counted = Open(open);
                let counting = move |body: Body| {
                    Body::from_stream(body.into_data_stream().inspect(move |_| {
                        let _lives_with_the_stream = &counted;
                    }))
                };
                Ok::<_, BoxError>(response.map(counting))
            }
        });
        Client::new(service, "default")
    }

    fn waiter(name: &str) -> Waiter {
        Waiter { kind: "Installation".into(), namespace: "default".into(), name: name.into() }
    }

    fn config_map(name: &str) -> (ApiResource, ObjectName) {
        let text = str::to_owned;
        let (api_version, kind, plural) = (text("v1"), text("ConfigMap"), text("configmaps"));
        (ApiResource { api_version: api_version.into(), kind: kind.into(), plural, namespaced: true }, name.into())
    }

    /// Waits until everybody of these was woken.
    async fn woken(wakes: &mut mpsc::UnboundedReceiver<ObjectName>, mut names: Vec<&str>) {
        while !names.is_empty() {
            let woken = timeout(DEADLINE, wakes.recv()).await.unwrap().unwrap();
            names.retain(|name| woken != *name);
        }
    }

    async fn server() -> orangery_embedded::Server {
        let options = Options {
            storage: Storage::Memory,
            address: "127.0.0.1:0".parse().unwrap(),
            clock: Arc::new(|| Timestamp::UNIX_EPOCH),
        };
        start(options).await.unwrap()
    }

    /// Whoever writes one Installation with thousands of imports does not have the operator open thousands of connections.
    #[tokio::test]
    async fn c_164_limits_cluster_many_objects_of_a_namespace_are_watched_together() {
        let server = server().await;
        let open = watch::Sender::new(0);
        let client = client(server.router(), open.clone());
        let (sender, mut wakes) = mpsc::unbounded_channel();
        let watcher = ClusterPool::new(|_| {})
            .object_watcher(client.clone(), move |waiter| drop(sender.send(waiter.name.clone())));
        let few: Vec<_> = (0..MOST_APART).map(|number| config_map(&format!("x{number}"))).collect();
        let many: Vec<_> = (0..10 * MOST_APART).map(|number| config_map(&format!("x{number}"))).collect();
        let mut listed = async |name: &'static str, objects: &[(ApiResource, ObjectName)]| {
            while watcher.keep(&waiter(name), objects).contains(&Observed::Unknown) {
                woken(&mut wakes, vec![name]).await;
            }
        };
        listed("few", &few).await;
        timeout(DEADLINE, open.subscribe().wait_for(|open| *open == MOST_APART)).await.unwrap().unwrap();
        listed("many", &many).await;
        timeout(DEADLINE, open.subscribe().wait_for(|open| *open == MOST_APART + 1)).await.unwrap().unwrap();
        // Whoever asks from now on is told by the one that is there.
        assert_eq!(watcher.keep(&waiter("few"), &few), vec![Observed::Absent; few.len()]);
        timeout(DEADLINE, open.subscribe().wait_for(|open| *open == 1)).await.unwrap().unwrap();

        let maps: Api<ConfigMap> = Api::default_namespaced(client);
        let named = |name: &str| serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
        while wakes.try_recv().is_ok() {}
        maps.create(&PostParams::default(), &named("x100")).await.unwrap();
        woken(&mut wakes, vec!["many"]).await;
        let seen = watcher.keep(&waiter("many"), &many);
        let present = seen.iter().enumerate().filter(|(_, seen)| matches!(seen, Observed::Present(_)));
        assert_eq!(present.map(|(number, _)| number).collect::<Vec<_>>(), [100]);
        watcher.release(&waiter("few"));
        watcher.release(&waiter("many"));
        timeout(DEADLINE, open.subscribe().wait_for(|open| *open == 0)).await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn c_146_what_had_no_watch_left_is_watched_and_woken_when_there_is_one() {
        let server = server().await;
        let client = client(server.router(), watch::Sender::new(0));
        let pool = ClusterPool::new(|_| {});
        // A server that never answers: what it is asked holds a place all the same.
        let silent = service_fn(|_: axum::http::Request<kube::client::Body>| {
            pending::<Result<axum::http::Response<kube::client::Body>, BoxError>>()
        });
        let others = pool.object_watcher(Client::new(silent, "default"), |_| {});
        let elsewhere = |name: u64| Waiter { name: name.to_string().as_str().into(), ..waiter("") };
        for number in 0..MOST_WATCHES / 2 {
            let (resource, name) = config_map(&format!("x{number}"));
            let resource = ApiResource { plural: format!("kind{number}"), ..resource };
            assert_eq!(others.keep(&elsewhere(number), &[(resource, name)]), [Observed::Unknown]);
        }
        let (sender, mut wakes) = mpsc::unbounded_channel();
        let watcher = pool.object_watcher(client.clone(), move |waiter| drop(sender.send(waiter.name.clone())));
        let refused =
            |name: &str| matches!(watcher.keep(&waiter(name), &[config_map(name)])[..], [Observed::Unwatched(_)]);
        assert!(["gone", "a", "b"].map(refused).iter().all(|is_refused| *is_refused));
        assert!(refused("a"), "and once more");
        watcher.release(&waiter("gone"));
        assert!(wakes.try_recv().is_err());
        // The first place is for the one that has waited longest of those that still do.
        others.release(&elsewhere(7));
        woken(&mut wakes, vec!["a"]).await;
        assert_eq!(watcher.keep(&waiter("a"), &[config_map("a")]), [Observed::Absent]);
        assert!(refused("b") && wakes.try_recv().is_err());
        watcher.release(&waiter("a"));
        woken(&mut wakes, vec!["b"]).await;
        assert_eq!(watcher.keep(&waiter("b"), &[config_map("b")]), [Observed::Absent]);
    }

    #[tokio::test]
    async fn orc_29_orc_33_dependents_of_an_object_share_its_watch_which_ends_with_the_last() {
        let server = server().await;
        let open = watch::Sender::new(0);
        let client = client(server.router(), open.clone());
        let (sender, mut wakes) = mpsc::unbounded_channel();
        let watcher = ClusterPool::new(|_| {})
            .object_watcher(client.clone(), move |waiter| drop(sender.send(waiter.name.clone())));
        assert_eq!(watcher.keep(&waiter("a"), &[config_map("x")]), [Observed::Unknown]);
        woken(&mut wakes, vec!["a"]).await;
        assert_eq!(watcher.keep(&waiter("a"), &[config_map("x")]), [Observed::Absent]);
        assert_eq!(watcher.keep(&waiter("b"), &[config_map("x")]), [Observed::Absent], "it is watched already");
        timeout(DEADLINE, open.subscribe().wait_for(|open| *open == 1)).await.unwrap().unwrap();

        let maps: Api<ConfigMap> = Api::default_namespaced(client);
        let named = |name: &str| serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
        maps.create(&PostParams::default(), &named("another")).await.unwrap();
        maps.create(&PostParams::default(), &named("x")).await.unwrap();
        woken(&mut wakes, vec!["a", "b"]).await;
        assert!(wakes.try_recv().is_err(), "another object wakes nobody");
        let all = watcher.keep(&waiter("b"), &[config_map("x")]);
        assert!(matches!(all.as_slice(), [Observed::Present(object)] if object["metadata"]["name"] == "x"), "{all:?}");

        watcher.release(&waiter("a"));
        maps.delete("x", &DeleteParams::default()).await.unwrap();
        woken(&mut wakes, vec!["b"]).await;
        assert!(wakes.try_recv().is_err(), "who depends on nothing is not woken");
        assert_eq!((*open.borrow(), watcher.is_empty()), (1, false));
        assert_eq!(watcher.keep(&waiter("b"), &[]), []);
        timeout(DEADLINE, open.subscribe().wait_for(|open| *open == 0)).await.unwrap().unwrap();
        assert!(watcher.is_empty());
    }
}
