use futures::FutureExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ListParams;

use super::*;
use crate::{
    fixture::server,
    machine::SystemClock,
    requests::{Requests, in_process},
};

const SECOND: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(30);

fn spec(holder: Option<&str>, seconds: i32) -> LeaseSpec {
    LeaseSpec {
        holder_identity: holder.map(str::to_owned),
        lease_duration_seconds: Some(seconds),
        ..LeaseSpec::default()
    }
}

#[test]
fn c_34_a_lease_is_free_where_nobody_has_it_or_nobody_renewed_it() {
    assert_eq!(claim(None, Duration::ZERO), Claim::Take);
    assert_eq!(claim(Some(&spec(None, 15)), Duration::ZERO), Claim::Take);
    assert_eq!(claim(Some(&spec(Some(""), 15)), Duration::ZERO), Claim::Take);
    assert_eq!(claim(Some(&spec(Some("a"), 15)), Duration::ZERO), Claim::Wait(15 * SECOND));
    assert_eq!(claim(Some(&spec(Some("a"), 15)), 14 * SECOND), Claim::Wait(SECOND));
    assert_eq!(claim(Some(&spec(Some("a"), 15)), 15 * SECOND), Claim::Take);
    assert_eq!(claim(Some(&spec(Some("a"), 15)), 16 * SECOND), Claim::Take);
}

#[tokio::test]
async fn c_34_a_lease_whose_holders_were_counted_to_the_end_is_taken_all_the_same() {
    let (_server, client) = server().await;
    let spec = LeaseSpec { lease_transitions: Some(i32::MAX), ..spec(None, 15) };
    let metadata = ObjectMeta { name: Some("orangery".to_owned()), ..ObjectMeta::default() };
    let lease = Lease { metadata, spec: Some(spec) };
    leases(&client).create(&PostParams::default(), &lease).await.unwrap();
    let first = acquire(config(&client, "first", 3600 * SECOND), |_| {}).await.unwrap();
    assert_eq!(holder(&client).await, (Some("first".to_owned()), Some(i32::MAX)));
    first.release().await;
}

fn config(client: &Client, holder: &str, duration: Duration) -> LeaseConfig {
    LeaseConfig {
        client: client.clone(),
        namespace: "default".into(),
        name: "orangery".into(),
        holder: holder.to_owned(),
        before: None,
        duration,
        clock: Arc::new(SystemClock),
    }
}

fn leases(client: &Client) -> Api<Lease> {
    Api::namespaced(client.clone(), "default")
}

async fn holder(client: &Client) -> (Option<String>, Option<i32>) {
    let spec = leases(client).get("orangery").await.unwrap().spec.unwrap();
    (spec.holder_identity, spec.lease_transitions)
}

#[tokio::test]
async fn c_34_a_lease_that_is_given_back_goes_to_a_waiting_holder_at_once() {
    let (_server, client) = server().await;
    let first = acquire(config(&client, "first", 3600 * SECOND), |_| {}).await.unwrap();
    assert_eq!(holder(&client).await, (Some("first".to_owned()), Some(0)));

    let (message, mut waits) = tokio::sync::mpsc::unbounded_channel();
    let asked = config(&client, "second", 3600 * SECOND);
    let second = tokio::spawn(acquire(asked, move |holder: &str| message.send(holder.to_owned()).unwrap()));
    assert_eq!(waits.recv().await.as_deref(), Some("first"));
    let deadline = first.deadline().clone();
    first.release().await;
    assert!(!deadline.lasts());
    let second = timeout(PATIENCE, second).await.unwrap().unwrap().unwrap();
    assert!(second.deadline().lasts());
    assert_eq!(holder(&client).await, (Some("second".to_owned()), Some(1)));
}

#[tokio::test]
async fn c_233_a_container_that_was_started_again_takes_at_once_what_the_one_before_it_held() {
    let (_server, client) = server().await;
    let of = |pod: &str, process: &str| LeaseConfig {
        before: Some(format!("{pod}_")),
        ..config(&client, &format!("{pod}_{process}"), 3600 * SECOND)
    };
    let first = acquire(of("pod_uid", "a"), |_| {}).await.unwrap();
    // As a process that was killed.
    first.renewal.abort();
    let second = timeout(PATIENCE, acquire(of("pod_uid", "b"), |_| {})).await.unwrap().unwrap();
    assert!(second.deadline().lasts());
    assert_eq!(holder(&client).await, (Some("pod_uid_b".to_owned()), Some(1)));

    // One of the same name with another uid is another pod.
    let (message, mut waits) = tokio::sync::mpsc::unbounded_channel();
    let third = acquire(of("pod_other", "c"), move |holder: &str| message.send(holder.to_owned()).unwrap());
    let third = tokio::spawn(third);
    assert_eq!(waits.recv().await.as_deref(), Some("pod_uid_b"));
    third.abort();
}

#[tokio::test]
async fn c_234_the_lease_of_an_operator_has_a_label_by_which_it_is_found() {
    let (_server, client) = server().await;
    let unlabelled = Lease {
        metadata: ObjectMeta { name: Some("orangery".to_owned()), ..ObjectMeta::default() },
        spec: Some(spec(None, 15)),
    };
    leases(&client).create(&PostParams::default(), &unlabelled).await.unwrap();
    let held = acquire(config(&client, "first", 3600 * SECOND), |_| {}).await.unwrap();
    let found = leases(&client).list(&ListParams::default().labels("orangery.dev/operator")).await.unwrap();
    assert_eq!(found.items.iter().map(|lease| lease.metadata.name.as_deref()).collect::<Vec<_>>(), [Some("orangery")]);
    held.release().await;
}

#[tokio::test]
async fn c_34_a_lease_that_nobody_renews_is_taken_over() {
    let (_server, client) = server().await;
    let first = acquire(config(&client, "first", SECOND), |_| {}).await.unwrap();
    // As a process that is frozen.
    first.renewal.abort();
    let began = Instant::now();
    let second = acquire(config(&client, "second", 3600 * SECOND), |_| {}).await.unwrap();
    assert!(began.elapsed() >= SECOND, "not before its time");
    assert!(!first.deadline().lasts(), "the first has stopped by itself");
    assert!(second.deadline().lasts());
}

#[tokio::test]
async fn c_34_a_lost_lease_names_its_new_holder() {
    let (_server, client) = server().await;
    let mut first = acquire(config(&client, "first", SECOND), |_| {}).await.unwrap();
    let mut lease = leases(&client).get("orangery").await.unwrap();
    lease.spec.get_or_insert_default().holder_identity = Some("thief".to_owned());
    leases(&client).replace("orangery", &PostParams::default(), &lease).await.unwrap();
    let why = timeout(PATIENCE, first.lost()).await.unwrap();
    assert_eq!(
        why.to_string(),
        "Lease orangery is held by thief now; this operator stops, what it has begun is done by the other"
    );
    assert!(!first.deadline().lasts());
}

#[tokio::test]
async fn c_124_a_lease_that_vanishes_is_made_anew_by_its_holder() {
    let (_server, client) = server().await;
    let mut first = acquire(config(&client, "first", 3 * SECOND), |_| {}).await.unwrap();
    let before = leases(&client).get("orangery").await.unwrap().metadata.uid;
    leases(&client).delete("orangery", &Default::default()).await.unwrap();
    let made_anew = async {
        let events = watcher::watch_object(leases(&client), "orangery");
        let is_new = |lease: Result<Option<Lease>, watcher::Error>| {
            futures::future::ready(lease.unwrap().is_some_and(|lease| lease.metadata.uid != before))
        };
        events.any(is_new).await
    };
    assert!(timeout(PATIENCE, made_anew).await.unwrap());
    assert_eq!(holder(&client).await, (Some("first".to_owned()), Some(0)));
    assert!(first.deadline().lasts());
    assert!(first.lost().now_or_never().is_none());
}

/// A Lease that is held and not renewed any more becomes this, and goes to a waiting holder.
async fn taken_over_when_it(becomes: impl AsyncFn(&Api<Lease>, Lease)) {
    let (_server, client) = server().await;
    let first = acquire(config(&client, "first", 3 * SECOND), |_| {}).await.unwrap();
    first.renewal.abort();
    let (message, mut waits) = tokio::sync::mpsc::unbounded_channel();
    let asked = config(&client, "second", 3600 * SECOND);
    let second = tokio::spawn(acquire(asked, move |holder: &str| message.send(holder.to_owned()).unwrap()));
    assert_eq!(waits.recv().await.as_deref(), Some("first"));
    let held = leases(&client).get("orangery").await.unwrap();
    becomes(&leases(&client), held).await;
    let second = timeout(PATIENCE, second).await.unwrap().unwrap().unwrap();
    assert!(!first.deadline().lasts(), "the first one has stopped by then");
    assert!(second.deadline().lasts());
    assert_eq!(holder(&client).await.0.as_deref(), Some("second"));
}

#[tokio::test]
async fn c_124_a_lease_that_vanishes_is_not_taken_before_its_holder_has_stopped() {
    taken_over_when_it(async |leases, _| {
        leases.delete("orangery", &Default::default()).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn c_124_a_lease_that_is_free_as_it_was_before_is_not_taken_before_its_holder_has_stopped() {
    taken_over_when_it(async |leases, mut held| {
        let spec = held.spec.get_or_insert_default();
        spec.holder_identity = None;
        spec.renew_time = Some(MicroTime(Timestamp::UNIX_EPOCH));
        leases.replace("orangery", &PostParams::default(), &held).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn c_124_a_server_that_does_not_answer_is_told_from_one_that_refuses() {
    let away = axum::Router::new().fallback(|| async {
        (
            http::StatusCode::INTERNAL_SERVER_ERROR,
            r#"{"kind":"Status","code":500,"message":"etcdserver: request timed out"}"#,
        )
    });
    let client = in_process(away, &Requests::default());
    let error = acquire(config(&client, "first", SECOND), |_| {}).await.err().unwrap().to_string();
    assert!(error.contains("cannot be read or written: the API server does not answer: "), "{error}");
    assert!(error.ends_with("; this operator stops, and is to be started again"), "{error}");
}

#[tokio::test]
async fn c_34_an_edited_lease_is_still_held() {
    let (_server, client) = server().await;
    let mut first = acquire(config(&client, "first", SECOND), |_| {}).await.unwrap();
    let mut lease = leases(&client).get("orangery").await.unwrap();
    lease.metadata.labels = Some([("a".to_owned(), "b".to_owned())].into());
    let edited = leases(&client).replace("orangery", &PostParams::default(), &lease).await.unwrap();
    let renewed = async {
        let events = watcher::watch_object(leases(&client), "orangery");
        let is_renewed = |lease: Result<Option<Lease>, watcher::Error>| {
            let renewed = lease.unwrap().and_then(|lease| lease.spec).and_then(|spec| spec.renew_time);
            let before = edited.spec.as_ref().and_then(|spec| spec.renew_time.clone());
            futures::future::ready(renewed > before)
        };
        events.any(is_renewed).await
    };
    assert!(timeout(PATIENCE, renewed).await.unwrap());
    assert!(first.deadline().lasts());
    assert!(first.lost().now_or_never().is_none());
}

#[tokio::test]
async fn c_34_a_host_that_may_not_use_leases_says_what_it_needs() {
    let refused = axum::Router::new().fallback(|| async {
        (http::StatusCode::FORBIDDEN, r#"{"kind":"Status","code":403,"message":"leases is forbidden"}"#)
    });
    let client = in_process(refused, &Requests::default());
    let error = acquire(config(&client, "first", SECOND), |_| {}).await.err().unwrap().to_string();
    assert!(error.starts_with("Lease default/orangery, by which one operator at a time is active, cannot be used: "));
    assert!(error.ends_with("let the operator get, list, watch, create and update Leases in its namespace"), "{error}");
}

#[tokio::test]
async fn c_24_after_the_term_reads_pass_and_nothing_is_written() {
    let (server, free) = server().await;
    let deadline = LeaseDeadline::new(Arc::new(SystemClock));
    let fenced = Client::new(
        tower::Layer::layer(
            &Fence(deadline.clone()),
            tower::ServiceExt::map_err(
                tower::service_fn({
                    let router = server.router();
                    move |request: http::Request<kube::client::Body>| {
                        let mut router = router.clone();
                        async move { tower::Service::call(&mut router, request.map(axum::body::Body::new)).await }
                    }
                }),
                tower::BoxError::from,
            ),
        ),
        "default",
    );
    let map =
        ConfigMap { metadata: ObjectMeta { name: Some("a".to_owned()), ..Default::default() }, ..Default::default() };
    let maps: Api<ConfigMap> = Api::namespaced(fenced, "default");
    let refused = maps.create(&PostParams::default(), &map).await.unwrap_err();
    assert!(refused.to_string().contains("does not hold the lease"), "{refused}");
    assert_eq!(maps.get_opt("a").await.unwrap(), None);

    deadline.extend(deadline.now(), 3600 * SECOND);
    maps.create(&PostParams::default(), &map).await.unwrap();
    deadline.end();
    assert!(maps.delete("a", &Default::default()).await.is_err());
    let maps: Api<ConfigMap> = Api::namespaced(free, "default");
    assert!(maps.get_opt("a").await.unwrap().is_some());
}
