//! Clusters of which the credentials may not know which they are, only where (C-321).

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use axum::{Router, body::Body, extract::Request, http::Response, response::IntoResponse as _};
use orangery_embedded::Server;
use serde_json::json;
use tokio::net::TcpListener;
use tower::ServiceExt as _;

use super::{
    former_cluster::{has, retarget, second, two},
    items::{EXECUTION, Items, proposal},
    moves::{beside, inventory_of, of, owner_at},
};

/// An address of a server at which nobody may know which cluster it is, as long as it is hidden.
struct Front {
    server: String,
    kubeconfig: String,
    is_hidden: Arc<AtomicBool>,
}

impl Front {
    async fn of(server: &Server) -> Self {
        let (router, is_hidden) = (server.router(), Arc::new(AtomicBool::new(true)));
        let hides = Arc::clone(&is_hidden);
        let app = Router::new().fallback(move |request: Request| {
            let (router, hides) = (router.clone(), hides.load(Ordering::SeqCst));
            async move {
                if hides && request.uri().path() == "/api/v1/namespaces/kube-system" {
                    return forbidden();
                }
                router.oneshot(request).await.into_response()
            }
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": server}}],
            "users": [{"name": "c", "user": {}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c", "namespace": "default"}}],
        });
        Self { server, kubeconfig: kubeconfig.to_string(), is_hidden }
    }
}

fn forbidden() -> Response<Body> {
    let message =
        "namespaces \"kube-system\" is forbidden: User \"u\" cannot get resource \"namespaces\" in API group \"\"";
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "reason": "Forbidden",
        "details": {"name": "kube-system", "kind": "namespaces"}, "code": 403});
    let answer = Response::builder().status(403).header("content-type", "application/json");
    answer.body(Body::from(status.to_string())).unwrap()
}

/// An item that deployed `x` and `y` at this address, of an Execution that stays.
async fn leaving(world: &Items, front: &Front) {
    retarget(world, &front.kubeconfig).await;
    world.create("leaves", &[two()], json!({})).await;
    world.patch("leaves", of(EXECUTION)).await;
    assert_eq!(world.job("leaves", "one").await["phase"], "Succeeded");
}

async fn leave(world: &Items) {
    world.delete("leaves").await;
    world.trigger("leaves", "two").await;
    world.gone("leaves").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_321_what_is_left_to_another_item_says_at_which_address_it_is() {
    let (server, client) = second().await;
    let (world, front) = (Items::new().await, Front::of(&server).await);
    leaving(&world, &front).await;
    beside(&world, proposal("x", json!({})), json!({})).await;
    leave(&world).await;
    assert!(has(&client, "x").await && !has(&client, "y").await);
    let status = json!(world.items().get("beside").await.unwrap().status);
    let servers = &status["providerStatus"]["orangery"]["servers"];
    assert_eq!(*servers, json!([{"on": "target", "address": format!("cluster {}", front.server)}]), "{status:#}");
    assert_eq!(inventory_of(&world, "beside").await, ["manage x"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_321_nothing_is_left_to_another_item_where_the_address_is_another_one() {
    let ((server, client), (other, _client)) = (second().await, second().await);
    let (world, front) = (Items::new().await, Front::of(&server).await);
    leaving(&world, &front).await;
    retarget(&world, &Front::of(&other).await.kubeconfig).await;
    beside(&world, proposal("x", json!({})), json!({})).await;
    world.delete("leaves").await;
    let status = world.job("leaves", "two").await;
    let why = status["lastError"]["message"].as_str().unwrap_or_default();
    assert!(why.contains("whether that is the same cluster cannot be told"), "{status:#}");
    assert_eq!((inventory_of(&world, "beside").await, has(&client, "x").await), (Vec::new(), true));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_321_nothing_is_listed_with_an_item_that_knows_its_cluster_or_another_address() {
    for is_known in [true, false] {
        let (server, client) = second().await;
        let (mut world, front) = (Items::new().await, Front::of(&server).await);
        front.is_hidden.store(!is_known, Ordering::SeqCst);
        retarget(&world, &front.kubeconfig).await;
        beside(&world, proposal("z", json!({})), json!({})).await;
        assert_eq!(world.job("beside", "one").await["phase"], "Succeeded");
        front.is_hidden.store(true, Ordering::SeqCst);
        world.restart();
        let again = if is_known { front } else { Front::of(&server).await };
        leaving(&world, &again).await;
        world.patch("beside", json!({"spec": {"config": {"proposals": [proposal("x", json!({}))]}}})).await;
        leave(&world).await;
        let found = (owner_at(&client, "x").await, inventory_of(&world, "beside").await);
        assert_eq!(found, ("beside".into(), vec!["manage z".into()]), "{is_known}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_321_two_clusters_that_may_not_be_known_are_not_one() {
    let ((server, client), (other, _client)) = (second().await, second().await);
    let (world, front) = (Items::new().await, Front::of(&server).await);
    leaving(&world, &front).await;
    let config = json!({"kubeconfig": Front::of(&other).await.kubeconfig});
    world.target("again", json!({"type": "landscaper.gardener.cloud/kubernetes-cluster", "config": config})).await;
    beside(&world, proposal("x", json!({})), json!({"target": {"name": "again"}})).await;
    leave(&world).await;
    assert!(!has(&client, "x").await);
}
