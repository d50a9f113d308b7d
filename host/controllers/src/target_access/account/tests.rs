//! What a Target gets that names a service account, and what is asked of the API server for it.

use std::sync::{Arc, Mutex};

use http::{Request, Response};
use kube::{Client, client::Body};

use super::*;
use crate::{acting_account::ActingAccounts, controller_context::tests::host};

#[test]
fn the_kubeconfig_has_the_address_and_the_token() {
    let address = OwnAddress { server: "https://x".to_owned(), authority: Some("YQ==".to_owned()) };
    let text = with_token(&address, "t");
    let expected = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "target",
        "clusters": [{"name": "target", "cluster": {"server": "https://x", "certificate-authority-data": "YQ=="}}],
        "contexts": [{"name": "target", "context": {"cluster": "target", "user": "target"}}],
        "users": [{"name": "target", "user": {"token": "t"}}],
    });
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expected);
    let plain = with_token(&OwnAddress { authority: None, ..address }, "t");
    assert!(!plain.contains("certificate-authority-data"));
}

#[tokio::test]
async fn a_server_elsewhere_gets_no_token_that_is_good_here() {
    let own = ["https://kubernetes.default.svc".to_owned(), "api".to_owned()];
    let asked = |audiences: &[&str]| {
        let audiences: Vec<String> = audiences.iter().map(|audience| (*audience).to_owned()).collect();
        let own = &own;
        async move { unsafe_audience(&audiences, || async { Ok(own.as_slice()) }).await.unwrap() }
    };
    let needs = "needs an audience, since the server is not this cluster's own: the token without one would be good for \
                 this cluster; name in audience what the server expects of its tokens";
    assert_eq!(asked(&[]).await.as_deref(), Some(needs));
    assert_eq!(asked(&[""]).await.as_deref(), Some(needs));
    assert_eq!(asked(&["targets"]).await, None);
    let shares = |audience: &str| {
        format!(
            "asks for the audience {audience:?} of this cluster's own API server, which no other server may have; name \
             in audience what the server expects of its tokens"
        )
    };
    assert_eq!(asked(&["targets", "api"]).await, Some(shares("api")));
    assert_eq!(asked(&["targets", ""]).await, Some(shares("")));
}

/// A cluster whose service accounts have these annotations, and what is sent to it.
fn cluster(annotations: Value) -> (Client, Arc<Mutex<Vec<String>>>) {
    let sent = Arc::<Mutex<Vec<String>>>::default();
    let seen = Arc::clone(&sent);
    let service = tower::service_fn(move |request: Request<Body>| {
        let line = format!("{} {}", request.method(), request.uri().path());
        let answer = match request.method().as_str() {
            "GET" => json!({"apiVersion": "v1", "kind": "ServiceAccount",
                "metadata": {"name": "privileged", "namespace": "evil", "annotations": annotations}}),
            _ => json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "metadata": {},
                "spec": {"audiences": ["api"]},
                "status": {"token": "t", "expirationTimestamp": "1970-01-02T00:00:00Z"}}),
        };
        seen.lock().unwrap().push(line);
        async move { Ok::<_, std::convert::Infallible>(Response::new(Body::from(answer.to_string().into_bytes()))) }
    });
    (Client::new(service, "evil"), sent)
}

/// What a user's own client gets for a Target with this server, and what is asked for it.
async fn planned(server: &str, annotations: Value) -> (Result<String, String>, Vec<String>) {
    let (client, sent) = cluster(annotations);
    let mut host = Arc::into_inner(host()).unwrap();
    host.client = client;
    host.accounts = ActingAccounts::caller();
    let content = json!({"oidcConfig": {"server": server, "serviceAccount": {"name": "privileged"},
        "audience": ["sts.amazonaws.com"]}});
    let answer = kubeconfig(&host, &"evil".into(), "Target evil/out", &content).await;
    let answer = match answer {
        Ok(kubeconfig) => Ok(kubeconfig.unwrap().text),
        Err(Halt::Stall(failure)) => Err(failure.message),
        Err(halt) => panic!("{halt:?}"),
    };
    let sent = sent.lock().unwrap().clone();
    (answer, sent)
}

const ACCOUNT: &str = "/api/v1/namespaces/evil/serviceaccounts/privileged";

#[tokio::test]
async fn c_38_a_plan_asks_no_token_of_an_account_that_has_not_opted_in() {
    let (answer, sent) = planned("https://127.0.0.1:18083/listener", json!({})).await;
    let refused = "Target evil/out names ServiceAccount evil/privileged, which Targets may not use; annotate it with \
                   orangery.dev/allow-targets: \"true\" if whoever may write Targets in evil may act as this account";
    assert_eq!((answer, sent), (Err(refused.to_owned()), vec![format!("GET {ACCOUNT}")]));
    let opted_in = json!({"orangery.dev/allow-targets": "true"});
    let (answer, sent) = planned("https://127.0.0.1:18083/listener", opted_in).await;
    let asked = format!("POST {ACCOUNT}/token");
    assert!(answer.unwrap().contains("https://127.0.0.1:18083/listener"));
    assert_eq!(sent, [format!("GET {ACCOUNT}"), asked.clone(), asked]);
}

#[tokio::test]
async fn c_38_no_token_is_asked_for_a_server_that_others_can_listen_to() {
    let refused =
        "Target evil/out cannot be used: oidcConfig needs a server that begins with https://: a token is sent there";
    for server in ["http://127.0.0.1:18083/listener", "127.0.0.1:18083", "HTTP://x", "httpsx://y"] {
        let opted_in = json!({"orangery.dev/allow-targets": "true"});
        assert_eq!(planned(server, opted_in).await, (Err(refused.to_owned()), vec![format!("GET {ACCOUNT}")]));
    }
    let opted_in = json!({"orangery.dev/allow-targets": "true"});
    assert!(planned("HTTPS://x", opted_in).await.0.is_ok());
}
