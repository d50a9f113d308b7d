//! Where a registry or server may lead the host that asks it: by redirects, and to token services (C-104).

use std::sync::{Arc, OnceLock};

use axum::{
    body::Body,
    extract::Request,
    http::{Response, StatusCode, header},
};
use orangery_core::{
    digest::sha256,
    error::{Code, Fault},
};
use orangery_ocm::{AllowedSources, ComponentVersions, Credentials, ResourceReference, SourceList};
use orangery_registry::oci::{Client, Keyring, RegistrySettings};
use serde_json::json;

use crate::{
    filled_registry::{FilledRegistry, local, request, start, start_with},
    keeping::inline,
    server::{Server, blob_with, client, limits, small_manifest, status, with},
};

const LINE: &str = "NamespacePolicy team, line spec.sources.redirects";
const CONTENT: &[u8] = b"the content of a blob";

/// Policies that let servers lead to these hosts alone.
fn leading_to(hosts: &[&str]) -> AllowedSources {
    let patterns = hosts.iter().map(|&host| host.to_owned()).collect();
    let redirects = vec![SourceList { patterns, line: LINE.to_owned() }];
    AllowedSources { redirects, ..AllowedSources::default() }
}

fn keyring(allowed: AllowedSources) -> Keyring {
    Keyring::of_context(&Credentials { allowed, ..Credentials::default() }).expect("a keyring").0
}

/// Another server of this machine, by a name that is not the one of the first.
async fn elsewhere() -> (Server, String) {
    let server = Server::start(|request: Request| async move {
        match request.uri().path() {
            "/token" => status(200, r#"{"token": "good"}"#),
            "/blob" => status(200, CONTENT),
            _ => status(200, small_manifest()),
        }
    })
    .await;
    let address = format!("http://localhost:{}", server.address.port());
    (server, address)
}

/// Leads whoever has no token to another place.
pub(crate) async fn leading(how: header::HeaderName, location: String) -> Server {
    Server::start(move |request: Request| {
        let answer = match request.headers().get(header::AUTHORIZATION) {
            Some(_) => status(200, small_manifest()),
            None if how == header::LOCATION => with(status(307, ""), header::LOCATION, &location),
            None => with(status(401, ""), header::WWW_AUTHENTICATE, &format!("Bearer realm=\"{location}\"")),
        };
        async move { answer }
    })
    .await
}

fn refused_by_the_line(fault: &Fault) {
    let sentence = format!(
        "it leads to localhost, which is refused by {LINE}; take it from elsewhere, or have an administrator add localhost to \
         that line"
    );
    let Fault::Denied(problem) = fault else { panic!("{fault:?}") };
    assert!(problem.code == Code::PolicyViolation && problem.message.ends_with(&sentence), "{problem}");
}

#[tokio::test]
async fn c_104_a_registry_leads_to_no_server_that_no_line_has() {
    for (how, path) in [(header::LOCATION, "/x"), (header::WWW_AUTHENTICATE, "/token")] {
        let (other, address) = elsewhere().await;
        let server = leading(how, format!("{address}{path}")).await;
        let asked =
            async |hosts: &[&str]| client().manifest(&server.reference(":1"), &keyring(leading_to(hosts))).await;
        refused_by_the_line(&asked(&[]).await.expect_err("refused"));
        refused_by_the_line(&asked(&["127.0.0.1", "*.localhost"]).await.expect_err("refused"));
        assert_eq!(other.seen().len(), 0, "somebody was asked whom no line has");
        asked(&["localhost"]).await.expect("a manifest");
        assert_eq!(other.seen().len(), 1);
        // Without a list of hosts nothing is refused.
        client().manifest(&server.reference(":1"), &Keyring::default()).await.expect("a manifest");
        assert_eq!(other.seen().len(), 2);
    }
}

#[tokio::test]
async fn c_104_the_content_of_a_blob_is_checked_and_held_against_the_line_too() {
    let (other, address) = elsewhere().await;
    let server = leading(header::LOCATION, format!("{address}/blob")).await;
    let client = client();
    let fault = blob_with(&client, &server, CONTENT, &keyring(leading_to(&[]))).await.expect_err("refused");
    refused_by_the_line(&fault);
    assert_eq!(other.seen().len(), 0);
    let allowed = keyring(leading_to(&["localhost"]));
    assert_eq!(blob_with(&client, &server, CONTENT, &allowed).await, Ok(CONTENT.to_vec()));
    let wrong = blob_with(&client, &server, b"another content", &allowed).await.expect_err("another content");
    assert!(wrong.to_string().contains("the content is not what its digest names"), "{wrong}");
}

/// The second server may be asked, the third may not; and who leads to itself leads to nobody else.
#[tokio::test]
async fn c_104_each_step_of_a_way_is_held_against_the_line() {
    let (third, address) = elsewhere().await;
    let second = leading(header::LOCATION, format!("{address}/x")).await;
    let server = leading(header::LOCATION, format!("http://{}/x", second.address)).await;
    let fault = client().manifest(&server.reference(":1"), &keyring(leading_to(&["127.0.0.1"]))).await;
    refused_by_the_line(&fault.expect_err("refused"));
    assert_eq!((second.seen().len(), third.seen().len()), (1, 0));

    let server = Server::start(|request: Request| async move {
        match request.uri().path() {
            "/done" => status(200, small_manifest()),
            _ => with(status(307, ""), header::LOCATION, "/done"),
        }
    })
    .await;
    client().manifest(&server.reference(":1"), &keyring(leading_to(&[]))).await.expect("it stays with itself");
}

/// Whoever was asked first may be led back to.
#[tokio::test]
async fn c_104_the_first_server_is_no_other_one_on_the_way_back() {
    let home = Arc::new(OnceLock::<String>::new());
    let known = Arc::clone(&home);
    let other = Server::start(move |_: Request| {
        let answer = with(status(307, ""), header::LOCATION, known.get().expect("it is known"));
        async move { answer }
    })
    .await;
    let address = format!("http://localhost:{}/x", other.address.port());
    let server = Server::start(move |request: Request| {
        let answer = match request.uri().path() {
            "/done" => status(200, small_manifest()),
            _ => with(status(307, ""), header::LOCATION, &address),
        };
        async move { answer }
    })
    .await;
    home.set(format!("http://{}/done", server.address)).expect("it is set once");
    client().manifest(&server.reference(":1"), &keyring(leading_to(&["localhost"]))).await.expect("a manifest");
    assert_eq!((server.seen().len(), other.seen().len()), (2, 1));
}

/// A token service at the address of its registry needs no line, and leads nobody elsewhere.
#[tokio::test]
async fn c_104_a_token_service_is_held_against_the_line_where_it_leads() {
    let (other, address) = elsewhere().await;
    for path in ["/token", "/away"] {
        let away = format!("{address}/token");
        let server = Server::start(move |request: Request| {
            let host = request.headers().get(header::HOST).expect("a host").to_str().expect("text");
            let answer = match (request.uri().path(), request.headers().get(header::AUTHORIZATION)) {
                ("/token", _) => status(200, r#"{"token": "good"}"#),
                ("/away", _) => with(status(307, ""), header::LOCATION, &away),
                (_, Some(_)) => status(200, small_manifest()),
                (_, None) => {
                    let asks = format!("Bearer realm=\"http://{host}{path}\"");
                    with(status(401, ""), header::WWW_AUTHENTICATE, &asks)
                }
            };
            async move { answer }
        })
        .await;
        let answered = client().manifest(&server.reference(":1"), &keyring(leading_to(&[]))).await;
        match path {
            "/token" => assert!(answered.is_ok(), "{answered:?}"),
            _ => refused_by_the_line(&answered.expect_err("refused")),
        }
    }
    assert_eq!(other.seen().len(), 0);
}

/// A chart repository, a file and GitHub are servers as well.
#[tokio::test]
async fn c_104_a_web_server_leads_to_no_server_that_no_line_has() {
    let (other, address) = elsewhere().await;
    let server = leading(header::LOCATION, format!("{address}/blob")).await;
    let folder = tempfile::tempdir().expect("a folder");
    let named = [server.address.to_string(), format!("localhost:{}", other.address.port())];
    let settings = RegistrySettings { limits: limits(), plain_http: named.into(), ..RegistrySettings::default() };
    let host = start_with(&folder, settings);
    let url = format!("http://{}", server.address);
    let accesses = [
        json!({"type": "wget", "url": format!("{url}/file")}),
        json!({"type": "helm", "helmRepository": url, "helmChart": "a:1"}),
        json!({"type": "gitHub", "repoUrl": format!("{url}/owner/name"), "commit": "0".repeat(40)}),
    ];
    for access in accesses {
        let mut request = inline(&access);
        request.credentials.allowed = leading_to(&["127.0.0.1"]);
        let version = host.open(&request).await.expect("a component");
        let fault = version.content(&ResourceReference::named("far")).await.expect_err("refused");
        refused_by_the_line(&fault);
    }
    assert_eq!((server.seen().len(), other.seen().len()), (3, 0));
    let mut request = inline(&json!({"type": "wget", "url": format!("{url}/file")}));
    request.credentials.allowed = leading_to(&["localhost"]);
    let version = host.open(&request).await.expect("a component");
    let content = version.content(&ResourceReference::named("far")).await.expect("a content");
    assert_eq!(*content.bytes, CONTENT);
}

/// What was found for one is fetched for another as his own policies say, and what one is refused is told to no other.
#[tokio::test]
async fn c_104_what_one_namespace_may_be_led_to_is_nothing_for_another() {
    let (other, address) = elsewhere().await;
    let digest = sha256(CONTENT);
    let filled = FilledRegistry::open().await;
    let blob = json!({"mediaType": "text/plain", "digest": digest, "size": CONTENT.len()});
    filled.component("example.org/a", &json!([local("near", &blob)]), std::slice::from_ref(&blob));
    let shared = Arc::new(filled);
    let (answers, path) = (Arc::clone(&shared), format!("/blobs/{digest}"));
    let server = Server::start(move |request: Request| {
        let answer = match request.uri().path() {
            asked if asked.ends_with(&path) => with(status(307, ""), header::LOCATION, &format!("{address}/blob")),
            asked => answers.answer(asked),
        };
        async move { answer }
    })
    .await;
    let folder = tempfile::tempdir().expect("a folder");
    let host = start(&folder);
    let asking = |hosts: &[&str]| {
        let mut request = request("example.org/a", &server);
        request.credentials.allowed = leading_to(hosts);
        request
    };
    let led = host.open(&asking(&["localhost"])).await.expect("a component");
    let kept = host.open(&asking(&[])).await.expect("a component");
    let name = ResourceReference::named("near");
    let (got, refused) = tokio::join!(led.content(&name), kept.content(&name));
    refused_by_the_line(&refused.expect_err("refused"));
    assert_eq!(*got.expect("a content").bytes, CONTENT);
    assert_eq!(other.seen().len(), 1);
}

/// What a redirect answered is kept for those alone who may be led there: manifests, blobs that a digest names, and indexes.
#[tokio::test]
async fn c_104_what_a_redirect_answered_is_kept_by_policies() {
    let digest = sha256(CONTENT);
    let filled = FilledRegistry::open().await;
    filled.component("example.org/a", &json!([]), &[]);
    let shared = Arc::new(filled);
    let answers = Arc::clone(&shared);
    let other = Server::start(move |request: Request| {
        let answer = match request.uri().path() {
            "/blob" => status(200, CONTENT),
            "/index.yaml" => {
                status(200, "apiVersion: v1\nentries: {a: [{name: a, version: \"1\", urls: [a-1.tgz]}]}\n")
            }
            asked => answers.answer(asked),
        };
        async move { answer }
    })
    .await;
    let address = format!("http://localhost:{}", other.address.port());
    let (answers, blob) = (Arc::clone(&shared), format!("/v2/team/app/blobs/{digest}"));
    let server = Server::start(move |request: Request| {
        let answer = match request.uri().path() {
            asked if asked == blob => with(status(307, ""), header::LOCATION, &format!("{address}/blob")),
            asked if asked.contains("/manifests/") || asked == "/index.yaml" => {
                with(status(307, ""), header::LOCATION, &format!("{address}{asked}"))
            }
            "/a-1.tgz" => status(200, CONTENT),
            asked => answers.answer(asked),
        };
        async move { answer }
    })
    .await;
    let folder = tempfile::tempdir().expect("a folder");
    let named = [server.address.to_string(), format!("localhost:{}", other.address.port())];
    let settings = RegistrySettings { limits: limits(), plain_http: named.into(), ..RegistrySettings::default() };
    let host = start_with(&folder, settings);
    let open = async |hosts: &[&str]| {
        let mut request = request("example.org/a", &server);
        request.credentials.allowed = leading_to(hosts);
        host.open(&request).await
    };
    assert!(open(&["localhost"]).await.is_ok());
    refused_by_the_line(&open(&[]).await.err().expect("refused"));

    let url = format!("http://{}", server.address);
    let accesses = [
        json!({"type": "ociBlob", "ref": format!("{url}/team/app"), "mediaType": "text/plain", "digest": digest, "size": CONTENT.len()}),
        json!({"type": "helm", "helmRepository": url, "helmChart": "a:1"}),
    ];
    for access in accesses {
        let content = async |hosts: &[&str]| {
            let mut request = inline(&access);
            request.credentials.allowed = leading_to(hosts);
            host.open(&request).await.expect("a component").content(&ResourceReference::named("far")).await
        };
        assert_eq!(*content(&["localhost"]).await.expect("a content").bytes, CONTENT);
        refused_by_the_line(&content(&[]).await.expect_err("refused"));
    }
}

/// The same for those who ask at once for a manifest, and for the index of a chart repository.
#[tokio::test]
async fn c_104_requests_are_shared_where_policies_are_the_same() {
    let (other, address) = elsewhere().await;
    let server = leading(header::LOCATION, format!("{address}/x")).await;
    let (client, reference) = (client(), server.reference(":1"));
    let (kept, led) = (keyring(leading_to(&[])), keyring(leading_to(&["localhost"])));
    let (refused, got, again) = tokio::join!(
        client.manifest(&reference, &kept),
        client.manifest(&reference, &led),
        client.manifest(&reference, &led)
    );
    refused_by_the_line(&refused.expect_err("refused"));
    assert!(got.is_ok() && again.is_ok());
    assert_eq!((server.seen().len(), other.seen().len()), (2, 1));

    let folder = tempfile::tempdir().expect("a folder");
    let named = [server.address.to_string(), format!("localhost:{}", other.address.port())];
    let settings = RegistrySettings { limits: limits(), plain_http: named.into(), ..RegistrySettings::default() };
    let host = start_with(&folder, settings);
    let access = json!({"type": "helm", "helmRepository": format!("http://{}", server.address), "helmChart": "a:1"});
    let opened = async |hosts: &[&str]| {
        let mut request = inline(&access);
        request.credentials.allowed = leading_to(hosts);
        host.open(&request).await.expect("a component")
    };
    let (kept, led) = (opened(&[]).await, opened(&["localhost"]).await);
    let name = ResourceReference::named("far");
    let (refused, unread) = tokio::join!(kept.content(&name), led.content(&name));
    refused_by_the_line(&refused.expect_err("refused"));
    let is_unlisted =
        |fault: &Fault| matches!(fault, Fault::Later(problem) if problem.message.contains("has no chart a"));
    assert!(unread.as_ref().is_err_and(is_unlisted), "it has no charts, and nobody refused it: {unread:?}");
}

/// A registry with TLS names a service of this machine that has none: it is not asked in the clear, whatever it would answer.
#[tokio::test]
async fn c_104_a_token_service_is_not_asked_without_tls_where_its_address_says_so() {
    let inside = Server::start(|_: Request| async { status(200, r#"{"token": "good"}"#) }).await;
    let realm = format!("https://{}/token", inside.address);
    let (server, settings) = Server::start_with_tls(move |_: Request| {
        let answer = with(status(401, ""), header::WWW_AUTHENTICATE, &format!("Bearer realm=\"{realm}\""));
        async move { answer }
    })
    .await;
    let reference = format!("{}/team/app:1", server.address).parse().expect("a reference");
    let fault = Client::new(settings).expect("a client").manifest(&reference, &Keyring::default()).await;
    let fault = fault.expect_err("the service has no TLS");
    assert!(fault.to_string().contains("the host does not speak TLS"), "{fault}");
    assert_eq!(inside.seen().len(), 0);
}

/// The same host and port, with TLS and without: what is for the one is not for the other.
#[tokio::test]
async fn c_104_credentials_do_not_leave_tls_on_one_host_either() {
    let answer = |request: Request| async move { led_out(&request) };
    let (server, settings) = Server::start_with_tls(answer).await;
    let address = server.address.to_string();
    let settings = RegistrySettings { plain_http: [address.clone()].into(), ..settings };
    let auths = json!({"auths": {&address: {"username": "u", "password": "p"}}}).to_string();
    let docker = orangery_registry::oci::DockerConfig::read(&auths, "Secret team/u").expect("a configuration");
    let keyring = Keyring::default().with_docker_config(docker);
    let reference = format!("https://{address}/team/app:1").parse().expect("a reference");
    let answered = Client::new(settings).expect("a client").manifest(&reference, &keyring).await;
    answered.expect("a manifest");
    let sent: Vec<_> = server
        .seen()
        .iter()
        .map(|seen| (seen.path.clone(), seen.headers.contains_key(header::AUTHORIZATION)))
        .collect();
    let path = "/v2/team/app/manifests/1".to_owned();
    assert_eq!(sent, [(path.clone(), false), (path, true), ("/plain".to_owned(), false)]);
}

/// Asks for a password, and leads whoever has one to the same address without TLS.
fn led_out(request: &Request) -> Response<Body> {
    let host = request.headers().get(header::HOST).expect("a host").to_str().expect("text");
    match (request.uri().path(), request.headers().contains_key(header::AUTHORIZATION)) {
        ("/plain", _) => status(200, small_manifest()),
        (_, true) => with(status(StatusCode::FOUND.as_u16(), ""), header::LOCATION, &format!("http://{host}/plain")),
        (_, false) => with(status(401, ""), header::WWW_AUTHENTICATE, "Basic realm=\"r\""),
    }
}
