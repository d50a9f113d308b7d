//! How much of the operator a namespace may have: calls wait for their turn, and what is too much is refused with its line.

use axum::{Router, extract::Request, http::StatusCode};
use orangery_core::digest::sha256;
use orangery_tests::{
    binary::DEADLINE,
    chart::{deploy, item, packed},
    tree::any,
};
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::watch, time::timeout};

use super::{policy, put, refused};

/// An item that installs the chart at an address.
fn of_chart(name: &str, reference: &str) -> Value {
    let mut item = item("", &json!({"config": {"chart": {"ref": reference}, "name": name}}));
    item["metadata"]["name"] = json!(name);
    item
}

/// A registry on this machine: how it answers a path.
async fn registry<A>(answer: impl Fn(String) -> A + Clone + Send + Sync + 'static) -> String
where
    A: Future<Output = (StatusCode, Vec<u8>)> + Send,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address").to_string();
    let app = Router::new().fallback(move |request: Request| answer(request.uri().path().to_owned()));
    tokio::spawn(async move { axum::serve(listener, app).await.expect("a server") });
    address
}

/// Waits until the registry was asked so often.
async fn expect_asked(seen: &mut watch::Receiver<u32>, times: u32) {
    let asked = timeout(DEADLINE, seen.wait_for(|asked| *asked >= times)).await;
    asked.expect("the registry was not asked in time").expect("the registry lives");
}

/// The first call holds its place, for its registry does not answer: no other one begins, and its item says why.
#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn c_53_calls_of_a_namespace_wait_for_their_turn_and_say_for_which_line() {
    let (asked, mut seen) = watch::channel(0);
    let (open, opened) = watch::channel(false);
    let address = registry(move |_| {
        asked.send_modify(|asked| *asked += 1);
        let mut opened = opened.clone();
        async move {
            let _open = opened.wait_for(|open| *open).await;
            (StatusCode::NOT_FOUND, Vec::new())
        }
    })
    .await;
    let cluster = crate::cluster_with(&["--plain-http-registry", &address]).await;
    put(&cluster, &policy("team", json!({"quotas": {"calls": 1}}))).await;
    for name in ["one", "two", "three"] {
        deploy(&cluster, &of_chart(name, &format!("{address}/charts/app:{name}"))).await;
    }
    expect_asked(&mut seen, 1).await;
    let item = json!({"apiVersion": any("DeployItem", "")["apiVersion"], "kind": "DeployItem", "metadata": {}});
    let waits = |item: &Value| {
        let error = &item["status"]["lastError"];
        let message = error["message"].as_str().unwrap_or_default();
        message.contains(
            "namespace default has as many under way as it may by NamespacePolicy team, line spec.quotas.calls (1)",
        ) && error["codes"].to_string().contains("ERR_POLICY_VIOLATION")
    };
    cluster.expect_that(&item, "no item says that it waits for the quota", waits).await;
    assert_eq!(*seen.borrow(), 1, "a second call has begun");
    // The quota goes, and all of them are under way.
    cluster.delete(&policy("team", json!({}))).await;
    expect_asked(&mut seen, 3).await;
    open.send_replace(true);
}

#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn c_53_c_54_a_component_that_takes_too_much_memory_and_content_beyond_the_quota_are_refused() {
    let big = vec![7; 2 << 20];
    let digest = sha256(&big);
    let layer = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";
    let layer = json!({"mediaType": layer, "digest": digest, "size": big.len()});
    let empty = json!({"mediaType": "application/vnd.cncf.helm.config.v1+json", "digest": sha256(b"{}"), "size": 2});
    let manifest = json!({"schemaVersion": 2, "config": empty, "layers": [layer]}).to_string().into_bytes();
    let address = registry(move |path: String| {
        let content = if path.contains("/manifests/") { manifest.clone() } else { big.clone() };
        async move { (StatusCode::OK, content) }
    })
    .await;
    let cluster = crate::cluster_with(&["--plain-http-registry", &address]).await;
    put(&cluster, &policy("team", json!({"quotas": {"memoryMiB": 255}}))).await;
    let mut small = item(&packed("1.0.0", &[]), &json!({}));
    small["metadata"]["name"] = json!("memory");
    deploy(&cluster, &small).await;
    let message = refused(&cluster, &any("DeployItem", "memory"), "Failed", "spec.quotas.memoryMiB").await;
    let sentence = "a call of the plugin helm, which may take 256 MiB of memory, is refused by NamespacePolicy team";
    assert!(message.contains(sentence), "{message}");
    put(&cluster, &policy("team", json!({"quotas": {"fetchedMiBPerHour": 1}}))).await;
    deploy(&cluster, &of_chart("bytes", &format!("{address}/charts/app:1"))).await;
    let message = refused(&cluster, &any("DeployItem", "bytes"), "Failed", "spec.quotas.fetchedMiBPerHour").await;
    let sentence = "namespace default would have more than 1 MiB fetched within an hour, which NamespacePolicy team";
    assert!(message.contains(sentence), "{message}");
}
