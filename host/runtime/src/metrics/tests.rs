use orangery_api::{deploy_item::DeployItem, execution::Execution, installation::Installation};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpSocket, TcpStream},
    time::Instant,
};

use axum::http::header::AUTHORIZATION;
use tokio::sync::Semaphore;

mod families;
mod readers;

use super::{
    bounded::{LONGEST_CONNECTION, MOST_CONNECTIONS},
    reader::{LONGEST_TOKEN, MOST_REVIEWS, RefusedReader},
    *,
};

fn figures() -> Figures {
    active_with(SandboxFigures::default, ClusterFigures::default)
}

fn active_with(
    sandbox: impl Fn() -> SandboxFigures + Send + Sync + 'static,
    clusters: impl Fn() -> ClusterFigures + Send + Sync + 'static,
) -> Figures {
    let figures = Figures::new(Requests::default(), sandbox);
    let (stores, jobs) = (Stores::new(), JobFigures::default());
    jobs.follow(&stores);
    let active = Active {
        stores,
        queues: vec![("installation", Queue::new())],
        writes_of_others: Box::new(|| 3),
        clusters: Box::new(clusters),
        object_memory: 7,
        rendered: Box::new(|| (8, 9)),
        term: Some(LeaseDeadline::new(std::sync::Arc::new(crate::machine::SystemClock))),
        jobs,
    };
    assert!(figures.active.set(active).is_ok());
    figures
}

fn text(figures: &Figures) -> String {
    figures.text(TextFormat::Prometheus)
}

fn active(figures: &Figures) -> &Active {
    figures.active.get().unwrap()
}

#[test]
fn a_host_that_waits_for_the_lease_is_ready_and_says_that_another_is_active() {
    let waiting = Figures::new(Requests::default(), SandboxFigures::default);
    assert_eq!(waiting.ready(), (StatusCode::OK, "waits for the lease"));
    assert_eq!(samples(&text(&waiting), "orangery_lease_held"), ["orangery_lease_held 0"]);
    assert_eq!(samples(&text(&figures()), "orangery_lease_held"), ["orangery_lease_held 1"]);
    let others = "orangery_other_operators_writes_total";
    assert_eq!(samples(&text(&waiting), others), [format!("{others} 0")], "C-330");
    assert_eq!(samples(&text(&figures()), others), [format!("{others} 3")], "C-330");
}

fn object<K: serde::de::DeserializeOwned>(name: &str, ready: &str) -> K {
    let now = "2026-01-01T00:00:00Z";
    let condition = json!({"type": "Ready", "status": ready, "reason": "R", "message": "m",
        "lastTransitionTime": now, "lastUpdateTime": now});
    serde_json::from_value(json!({"metadata": {"namespace": "ns", "name": name, "uid": name, "resourceVersion": "1"},
        "spec": {"type": "t", "blueprint": {}}, "status": {"conditions": [condition]}}))
    .unwrap()
}

/// The samples that begin like this.
fn samples(text: &str, name: &str) -> Vec<String> {
    text.lines().filter(|line| line.starts_with(name)).map(str::to_owned).collect()
}

#[test]
fn objects_are_counted_by_kind_and_condition_at_the_moment_of_asking() {
    let figures = figures();
    active(&figures).stores.installations.upsert(object::<Installation>("a", "True"));
    active(&figures).stores.installations.upsert(object::<Installation>("b", "True"));
    active(&figures).stores.executions.upsert(object::<Execution>("a", "False"));
    active(&figures).stores.deploy_items.upsert(object::<DeployItem>("a", "Unknown"));
    // Whoever may write a status chooses no series.
    for number in 0..100 {
        let mut strange = object::<DeployItem>(&format!("s{number}"), &format!("S{number}"));
        strange
            .status
            .iter_mut()
            .flat_map(|status| &mut status.conditions)
            .for_each(|of| of.type_ = format!("T{number}"));
        active(&figures).stores.deploy_items.upsert(strange);
    }
    assert_eq!(
        samples(&text(&figures), "orangery_resource_condition"),
        [
            r#"orangery_resource_condition{kind="DeployItem",type="Ready",status="Unknown"} 1"#,
            r#"orangery_resource_condition{kind="DeployItem",type="other",status="other"} 100"#,
            r#"orangery_resource_condition{kind="Execution",type="Ready",status="False"} 1"#,
            r#"orangery_resource_condition{kind="Installation",type="Ready",status="True"} 2"#,
        ]
    );
}

#[test]
fn a_waiting_object_shows_in_the_depth_of_its_queue() {
    let figures = figures();
    for (_, queue) in &active(&figures).queues {
        queue.wake(orangery_reconcile::Key::new("ns", "a"));
    }
    assert_eq!(
        samples(&text(&figures), "orangery_queue_depth"),
        [r#"orangery_queue_depth{controller="installation"} 1"#]
    );
}

#[tokio::test]
async fn health_and_metrics_are_served_until_the_stop() {
    let stop = CancellationToken::new();
    let bound =
        figures().serve(SocketAddr::from(([127, 0, 0, 1], 0)), MetricsReaders::Anybody, stop.clone()).await.unwrap();
    let config = kube::Config::new(format!("http://{bound}").parse().unwrap());
    let client = crate::requests::remote(config, &Requests::default(), None).unwrap();
    let ask = async |path: &str| {
        let request = http::Request::get(path).body(Vec::new()).unwrap();
        client.request_text(request).await
    };
    assert_eq!(ask("/healthz").await.unwrap(), "ok");
    assert!(ask("/metrics").await.unwrap().contains("orangery_build_info{version="));
    let refused: Value = match ask("/readyz").await {
        Err(kube::Error::Api(status)) => json!(status.code),
        other => json!(format!("{other:?}")),
    };
    assert_eq!(refused, json!(503));
    stop.cancel();
}

#[tokio::test]
async fn c_147_limits_metrics_so_many_tokens_are_asked_about_at_once_and_none_that_is_too_long() {
    let (asked, answers) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let gates = (Arc::clone(&asked), Arc::clone(&answers));
    let review = move || {
        let (asked, answers) = gates.clone();
        async move {
            asked.add_permits(1);
            answers.acquire().await.unwrap().forget();
            let status = json!({"authenticated": false, "user": {"username": "u"}});
            let (version, kind) = ("authentication.k8s.io/v1", "TokenReview");
            let review = json!({"apiVersion": version, "kind": kind, "metadata": {}, "spec": {}, "status": status});
            (StatusCode::CREATED, review.to_string())
        }
    };
    let router = Router::new().route("/apis/authentication.k8s.io/v1/tokenreviews", axum::routing::post(review));
    let readers = MetricsReaders::authorized(crate::requests::in_process(router, &Requests::default()));
    let headers = |token: &str| HeaderMap::from_iter([(AUTHORIZATION, format!("Bearer {token}").parse().unwrap())]);
    let refused = Err(RefusedReader::Unknown);
    for unasked in [headers(&"x".repeat(LONGEST_TOKEN + 1)), headers(""), HeaderMap::new()] {
        assert_eq!(readers.check(&unasked).await, refused);
    }
    let number = MOST_REVIEWS + 3;
    let checks = (0..number).map(|_| {
        let (readers, headers) = (readers.clone(), headers(&"x".repeat(LONGEST_TOKEN)));
        tokio::spawn(async move { readers.check(&headers).await })
    });
    let checks: Vec<_> = checks.collect();
    asked.acquire_many(u32::try_from(MOST_REVIEWS).unwrap()).await.unwrap().forget();
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(asked.available_permits(), 0);
    answers.add_permits(number);
    for check in checks {
        assert_eq!(check.await.unwrap(), refused);
    }
    // A server that cannot be asked lets nobody in.
    let readers = MetricsReaders::authorized(crate::requests::in_process(Router::new(), &Requests::default()));
    assert_eq!(readers.check(&headers("x")).await, Err(RefusedReader::Unanswered));
}

/// Connections that say nothing, or not all of it.
async fn held(bound: SocketAddr, number: usize) -> Vec<TcpStream> {
    let mut held = Vec::new();
    for _ in 0..number {
        let mut stream = TcpStream::connect(bound).await.unwrap();
        stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\n").await.unwrap();
        held.push(stream);
    }
    held
}

/// What comes on a connection until it ends.
async fn rest(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    // One that is cut off may end with a reset.
    let _ended = stream.read_to_end(&mut text).await;
    String::from_utf8(text).unwrap()
}

#[tokio::test]
async fn c_165_limits_health_connections_that_are_held_open_keep_no_probe_away() {
    let stop = CancellationToken::new();
    let bound = figures().serve_health(SocketAddr::from(([127, 0, 0, 1], 0)), stop.clone()).await.unwrap();
    let mut held = held(bound, 2 * MOST_CONNECTIONS).await;
    let mut probe = TcpStream::connect(bound).await.unwrap();
    probe.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.unwrap();
    assert!(rest(&mut probe).await.ends_with("\r\n\r\nok"));
    // Those that were held the longest have made room, and the others are served.
    for oldest in &mut held[..MOST_CONNECTIONS] {
        assert_eq!(rest(oldest).await, "");
    }
    let youngest = held.last_mut().unwrap();
    youngest.write_all(b"connection: close\r\n\r\n").await.unwrap();
    assert!(rest(youngest).await.ends_with("\r\n\r\nok"));
    stop.cancel();
}

/// However fast they come: who opens the most has his own end.
#[tokio::test]
async fn c_165_connections_of_one_address_end_none_of_another() {
    let stop = CancellationToken::new();
    let bound = figures().serve_health(SocketAddr::from(([0, 0, 0, 0], 0)), stop.clone()).await.unwrap();
    let bound = SocketAddr::from(([127, 0, 0, 1], bound.port()));
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from(([127, 0, 0, 2], 0))).unwrap();
    let mut probe = socket.connect(bound).await.unwrap();
    probe.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\n").await.unwrap();
    let mut held = held(bound, 2 * MOST_CONNECTIONS).await;
    assert_eq!(rest(&mut held[0]).await, "");
    probe.write_all(b"connection: close\r\n\r\n").await.unwrap();
    assert!(rest(&mut probe).await.ends_with("\r\n\r\nok"));
    stop.cancel();
}

#[tokio::test]
async fn c_165_connections_that_have_ended_take_no_place_of_one_that_is_open() {
    let stop = CancellationToken::new();
    let bound = figures().serve_health(SocketAddr::from(([127, 0, 0, 1], 0)), stop.clone()).await.unwrap();
    let mut held = held(bound, 1).await;
    for _ in 0..2 * MOST_CONNECTIONS {
        let mut probe = TcpStream::connect(bound).await.unwrap();
        probe.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.unwrap();
        assert!(rest(&mut probe).await.ends_with("\r\n\r\nok"));
    }
    held[0].write_all(b"connection: close\r\n\r\n").await.unwrap();
    assert!(rest(&mut held[0]).await.ends_with("\r\n\r\nok"));
    stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn c_165_limits_health_a_connection_lasts_so_long() {
    let stop = CancellationToken::new();
    let bound =
        figures().serve(SocketAddr::from(([127, 0, 0, 1], 0)), MetricsReaders::Anybody, stop.clone()).await.unwrap();
    let begun = Instant::now();
    let mut held = held(bound, 1).await;
    assert_eq!(rest(&mut held[0]).await, "");
    assert!(begun.elapsed() >= LONGEST_CONNECTION);
    stop.cancel();
}

#[tokio::test]
async fn an_address_in_use_is_told_with_the_fix() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let message =
        figures().serve(address, MetricsReaders::Anybody, CancellationToken::new()).await.unwrap_err().to_string();
    assert!(message.starts_with(&format!("metrics cannot be served at {address}: ")), "{message}");
    assert!(message.ends_with("; choose another --metrics-address"), "{message}");
}
