//! Whom the API server lets read the metrics of an operator that has the rights of the chart (C-147).

use std::{net::TcpListener, time::Duration};

use http::Request;
use kube::{Client, Config};
use orangery_tests::{
    kube::{Kube, OPERATOR},
    objects::Objects,
    tree::API,
};
use serde_json::json;
use tokio::time::interval;

/// A page of the operator as it answers to who shows this token; else the code of the refusal.
async fn page(client: &Client, path: &str, token: Option<&str>) -> Result<String, u16> {
    let request = Request::get(path);
    let request = match token {
        Some(token) => request.header("authorization", format!("Bearer {token}")),
        None => request,
    };
    match client.request_text(request.body(Vec::new()).expect("a request")).await {
        Ok(text) => Ok(text),
        Err(kube::Error::Api(status)) => Err(status.code),
        Err(error) => panic!("{path}: {error}"),
    }
}

#[tokio::test]
async fn c_147_metrics_are_for_users_with_a_role_for_them() {
    let (binary, programs) = super::programs().await;
    let server = Kube::shared(&programs, &binary).await;
    let objects = Objects::of(server.kubeconfig()).await;
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port");
    let _operator = server.operator(&binary, OPERATOR[0], &[&format!("--metrics-address={free}")]);
    objects.expect(&json!({"apiVersion": API, "kind": "Context", "metadata": {"name": "default"}})).await;
    let config = Config::new(format!("http://{free}").parse().expect("an address"));
    let client = Client::try_from(config).expect("a client");
    assert_eq!(page(&client, "/healthz", None).await.as_deref(), Ok("ok"));
    let asked = async |token| page(&client, "/metrics", token).await.map(|_| ());
    assert_eq!(asked(None).await, Err(401));
    assert_eq!(asked(Some("of-nobody")).await, Err(401));
    assert_eq!(asked(Some("alice")).await, Err(403));

    let (group, name) = ("rbac.authorization.k8s.io", "metrics-reader");
    let rule = json!({"nonResourceURLs": ["/metrics"], "verbs": ["get"]});
    let (version, metadata) = (format!("{group}/v1"), json!({"name": name}));
    objects.apply(&json!({"apiVersion": version, "kind": "ClusterRole", "metadata": metadata, "rules": [rule]})).await;
    let subject = json!({"apiGroup": group, "kind": "User", "name": "alice"});
    let role = json!({"apiGroup": group, "kind": "ClusterRole", "name": name});
    let binding = json!({
        "apiVersion": version, "kind": "ClusterRoleBinding", "metadata": metadata, "roleRef": role, "subjects": [subject],
    });
    objects.apply(&binding).await;
    // The authorizer learns of it some time later, and nothing tells when.
    let mut tries = interval(Duration::from_millis(100));
    let text = loop {
        match page(&client, "/metrics", Some("alice")).await {
            Ok(text) => break text,
            refused => assert_eq!(refused, Err(403)),
        }
        tries.tick().await;
    };
    assert!(text.contains("orangery_lease_held 1"), "{text}");
    assert_eq!(asked(Some("bob")).await, Err(403));
}
