//! Credentials: which are tried, what is sent to whom, and what is told when none is accepted.

use std::time::Duration;

use axum::{
    body::Body,
    extract::Request,
    http::{Response, header},
};
use orangery_ocm::{AllowedSources, Credentials, Secret};
use orangery_registry::oci::{DockerConfig, Keyring};
use serde_json::json;

use crate::server::{Server, client, small_manifest, status, with};

/// A docker configuration for a host, each of `users` in a Secret of its own.
fn keyring(host: &str, users: &[(&str, &str)]) -> Keyring {
    users.iter().fold(Keyring::default(), |keyring, (user, password)| {
        let text = json!({"auths": {host: {"username": user, "password": password}}}).to_string();
        let origin = format!("Secret team/{user}");
        keyring.with_docker_config(DockerConfig::read(&text, &origin).expect("a configuration"))
    })
}

fn authorization(request: &Request) -> Option<String> {
    let value = request.headers().get(header::AUTHORIZATION)?;
    Some(value.to_str().expect("text").to_owned())
}

/// Answers to user `right` with the password `hunter2`.
fn basic(request: &Request) -> Response<Body> {
    match authorization(request).as_deref() {
        Some("Basic cmlnaHQ6aHVudGVyMg==") => status(200, small_manifest()),
        Some(_) => status(403, ""),
        None => with(status(401, ""), header::WWW_AUTHENTICATE, "Basic realm=\"r\""),
    }
}

#[tokio::test]
async fn every_secret_for_the_registry_is_tried_and_the_accepted_one_is_kept() {
    let server = Server::start(|request: Request| async move { basic(&request) }).await;
    let keyring = keyring(&server.address.to_string(), &[("wrong", "x"), ("right", "hunter2")]);
    let client = client();
    for _ in 0..2 {
        client.manifest(&server.reference(":1"), &keyring).await.expect("a manifest");
    }
    let sent: Vec<_> = server.seen().iter().map(|seen| seen.headers.get(header::AUTHORIZATION).cloned()).collect();
    let sent: Vec<_> =
        sent.iter().map(|value| value.as_ref().map_or("", |value| value.to_str().expect("text"))).collect();
    let (wrong, right) = ("Basic d3Jvbmc6eA==", "Basic cmlnaHQ6aHVudGVyMg==");
    // The second time, what was accepted is sent without being asked for.
    assert_eq!(sent, ["", wrong, "", right, "", wrong, right]);
}

#[tokio::test]
async fn what_was_tried_is_named_and_what_is_secret_is_not() {
    let server = Server::start(|request: Request| async move { basic(&request) }).await;
    let host = server.address.to_string();
    let reference = &server.reference(":1");
    let refused = |keyring: Keyring| async move {
        let fault = client().manifest(reference, &keyring).await.expect_err("refused");
        let message = fault.problem().message.clone();
        assert!(!message.contains("hunter"), "{message}");
        message
    };
    let message = refused(keyring(&host, &[("a", "hunter3"), ("b", "hunter4")])).await;
    assert!(
        message.contains("answered 403 to a request with each of the credentials in Secret team/a, Secret team/b;")
    );
    let message = refused(keyring(&host, &[("a", "hunter3")])).await;
    assert!(message.contains("answered 403 to a request with the credentials in Secret team/a;"), "{message}");
    let message = refused(keyring("other.example", &[("a", "hunter3")])).await;
    assert!(message.contains("answered 401 to a request without credentials, as the Context has none"), "{message}");
}

/// A tenant writes where its charts and component versions are, and need not be the one whom the credentials are of.
#[tokio::test]
async fn c_214_credentials_for_a_host_go_to_no_other_port_of_it_that_nobody_names() {
    let server = Server::start(|request: Request| async move { basic(&request) }).await;
    let line = "NamespacePolicy team, line spec.sources.registries of its profile restricted";
    let of = |host: &str, usual_port_by: Vec<String>| {
        let text = json!({"auths": {host: {"username": "right", "password": "hunter2"}}}).to_string();
        let secret = ("team/pull".to_owned(), [(".dockerconfigjson".to_owned(), Secret(text.into_bytes()))].into());
        let allowed = AllowedSources { usual_port_by, ..AllowedSources::default() };
        let credentials = Credentials { allowed, pull_secrets: vec![secret], ..Credentials::default() };
        Keyring::of_context(&credentials).expect("a keyring").0
    };
    let host = server.address.ip().to_string();
    let reference = &server.reference(":1");
    let kept = of(&host, vec![line.to_owned()]);
    let fault = client().manifest(reference, &kept).await.expect_err("refused");
    let told = format!(
        "answered 401 to a request without credentials, as those in the Secret team/pull name no port, which {line} has go to the \
         usual port alone; name the port there"
    );
    assert!(fault.to_string().contains(&told), "{fault}");
    assert!(server.seen().iter().all(|seen| !seen.headers.contains_key(header::AUTHORIZATION)), "nothing was sent");
    for keyring in [of(&host, Vec::new()), of(&server.address.to_string(), vec![line.to_owned()])] {
        client().manifest(reference, &keyring).await.expect("a manifest");
    }
}

/// A registry whose token service is at the same address: gives `token-of-<user>`, refuses the user `wrong`.
fn tokens(request: &Request) -> Response<Body> {
    let host = request.headers().get(header::HOST).expect("a host").to_str().expect("text").to_owned();
    let authorization = authorization(request);
    if request.uri().path() == "/token" {
        let query = request.uri().query().unwrap_or_default();
        assert_eq!(query, "scope=repository%3Ateam%2Fapp%3Apull&service=here");
        return match authorization.as_deref() {
            None => status(200, r#"{"token": "anonymous", "expires_in": 300}"#),
            Some("Basic cmlnaHQ6aHVudGVyMg==") => status(200, r#"{"access_token": "good"}"#),
            Some(_) => status(401, ""),
        };
    }
    match authorization.as_deref() {
        Some("Bearer good" | "Bearer anonymous") => status(200, small_manifest()),
        _ => with(
            status(401, ""),
            header::WWW_AUTHENTICATE,
            &format!("Bearer realm=\"http://{host}/token\",service=\"here\",scope=\"repository:team/app:pull\""),
        ),
    }
}

#[tokio::test]
async fn a_token_is_fetched_once_and_used_until_it_ends() {
    let server = Server::start(|request: Request| async move { tokens(&request) }).await;
    let host = server.address.to_string();
    for keyring in [Keyring::default(), keyring(&host, &[("right", "hunter2")])] {
        let client = client();
        let before = server.seen().len();
        for _ in 0..3 {
            client.manifest(&server.reference(":1"), &keyring).await.expect("a manifest");
        }
        let paths: Vec<_> = server.seen().into_iter().skip(before).map(|seen| seen.path).collect();
        let manifest = "/v2/team/app/manifests/1";
        let token = "/token?scope=repository%3Ateam%2Fapp%3Apull&service=here";
        assert_eq!(paths, [manifest, token, manifest, manifest, manifest]);
    }
    let wrong = keyring(&host, &[("wrong", "x")]);
    let fault = client().manifest(&server.reference(":1"), &wrong).await.expect_err("refused");
    assert!(
        fault.to_string().contains("answered 401 to a request with the credentials in Secret team/wrong"),
        "{fault}"
    );
}

#[tokio::test]
async fn limits_registry_a_token_lasts_a_day_at_most() {
    let server = Server::start(|request: Request| async move {
        match request.uri().path() {
            "/token" => status(200, format!(r#"{{"token": "anonymous", "expires_in": {}}}"#, u64::MAX)),
            _ => tokens(&request),
        }
    })
    .await;
    let client = client();
    let asked_for_tokens = async || {
        client.manifest(&server.reference(":1"), &Keyring::default()).await.expect("a manifest");
        server.seen().iter().filter(|seen| seen.path.starts_with("/token")).count()
    };
    assert_eq!((asked_for_tokens().await, asked_for_tokens().await), (1, 1));
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(24 * 60 * 60)).await;
    tokio::time::resume();
    assert_eq!(asked_for_tokens().await, 2);
}

#[tokio::test]
async fn a_token_service_that_fails_is_named() {
    type Answer = fn() -> Response<Body>;
    let cases: [(Answer, bool, &str); 4] = [
        (|| status(503, "hunter2"), true, "cannot be reached: its token service answered 503"),
        (|| status(404, "hunter2"), false, "the token service of the registry answered 404"),
        (|| status(200, "hunter2"), false, "the token service of the registry answered without a token"),
        (|| status(200, "{\"token\": \"a\\nb\"}"), false, "characters that no header may have"),
    ];
    for (answer, is_later, expected) in cases {
        let server = Server::start(move |request: Request| async move {
            if request.uri().path() == "/token" { answer() } else { tokens(&request) }
        })
        .await;
        let fault = client().manifest(&server.reference(":1"), &Keyring::default()).await.expect_err("no token");
        assert_eq!(matches!(fault, orangery_core::error::Fault::Later(_)), is_later, "{fault}");
        assert!(fault.to_string().contains(expected) && !fault.to_string().contains("hunter"), "{fault}");
    }
}

#[tokio::test]
async fn credentials_stay_with_the_registry_they_are_for() {
    // The other server asks for credentials, and is not ours.
    let other = Server::start(|request: Request| async move { basic(&request) }).await;
    let elsewhere = format!("http://{}/v2/team/app/manifests/1", other.address);
    let server = Server::start(move |request: Request| {
        let location = elsewhere.clone();
        async move {
            match authorization(&request) {
                Some(_) => with(status(307, ""), header::LOCATION, &location),
                None => basic(&request),
            }
        }
    })
    .await;
    let keyring = keyring(&server.address.to_string(), &[("right", "hunter2")]);
    let fault = client().manifest(&server.reference(":1"), &keyring).await.expect_err("the other one refuses");
    assert!(fault.to_string().contains("answered 401"), "{fault}");
    let sent: Vec<_> = other.seen().iter().map(|seen| seen.headers.contains_key(header::AUTHORIZATION)).collect();
    assert_eq!(sent, [false]);
}
