//! Which networks registries and servers may be in (C-101), and that what is kept of them serves nobody else (C-102).

use std::{net::SocketAddr, sync::Arc};

use axum::{
    body::Body,
    extract::Request,
    http::{Response, header},
};
use orangery_core::{
    error::{Code, Fault},
    network::{AllowedNetworks, NamedServer, NetworkRule},
};
use orangery_ocm::{AllowedSources, ComponentVersions, Credentials, ResourceReference, SourceNetworks};
use orangery_registry::oci::{ArtifactReference, Keyring, RegistrySettings};
use serde_json::json;

use crate::{
    filled_registry::{FilledRegistry, request, start, start_with},
    keeping::inline,
    redirects::leading,
    server::{Server, client, limits, small_manifest, status},
};

const LINE: &str = "NamespacePolicy team, line spec.egress.networks";

/// What a policy with these networks allows that names these servers by their address.
fn allowing(networks: &[&str], servers: &[SocketAddr]) -> Arc<AllowedNetworks> {
    let networks = networks.iter().map(|network| network.parse().expect("a network")).collect();
    let named = |at: &SocketAddr| NamedServer { address: at.ip(), ports: vec![at.port()] };
    let servers = servers.iter().map(named).collect();
    Arc::new(AllowedNetworks { rules: vec![NetworkRule { networks, servers, line: LINE.to_owned() }] })
}

fn loopback() -> Arc<AllowedNetworks> {
    allowing(&["127.0.0.0/8", "::1/128"], &[])
}

/// The same for all sorts of servers.
fn everywhere(allowed: &Arc<AllowedNetworks>) -> SourceNetworks {
    let [registries, hosts, redirects] = [(); 3].map(|()| Arc::clone(allowed));
    SourceNetworks { registries, hosts, redirects }
}

fn sources(networks: SourceNetworks) -> AllowedSources {
    AllowedSources { networks, ..AllowedSources::default() }
}

fn keyring(networks: SourceNetworks) -> Keyring {
    Keyring::of_context(&Credentials { allowed: sources(networks), ..Credentials::default() }).expect("a keyring").0
}

#[track_caller]
fn refused(fault: &Fault, host: &str) {
    let Fault::Denied(problem) = fault else { panic!("{fault:?}") };
    let (begin, end) =
        (format!("{host} leads to "), format!(", a loopback address, which is refused by {LINE}; name "));
    let is_told = problem.message.contains(&begin) && problem.message.contains(&end);
    assert!(problem.code == Code::PolicyViolation && is_told, "{problem}");
}

fn answers(request: &Request) -> Response<Body> {
    match request.uri().path() {
        "/token" => status(200, r#"{"token": "good"}"#),
        _ => status(200, small_manifest()),
    }
}

async fn answering() -> Server {
    Server::start(|request: Request| async move { answers(&request) }).await
}

/// The connections of one client are kept, and are no way for those who may not connect themselves.
#[tokio::test]
async fn c_101_c_102_a_registry_is_asked_only_under_an_allowance_that_has_its_network() {
    let (server, client) = (answering().await, client());
    let by_address = server.reference(":1");
    let by_name: ArtifactReference =
        format!("http://localhost:{}/team/app:1", server.address.port()).parse().expect("a reference");
    let asked = async |reference: &ArtifactReference, networks: &SourceNetworks| {
        client.manifest(reference, &keyring(networks.clone())).await
    };
    for reference in [&by_address, &by_name] {
        asked(reference, &everywhere(&loopback())).await.expect("a manifest");
        asked(reference, &SourceNetworks::default()).await.expect("a manifest");
    }
    let named = SourceNetworks { registries: allowing(&[], &[server.address]), ..everywhere(&allowing(&[], &[])) };
    asked(&by_address, &named).await.expect("a manifest");
    let answered = server.seen().len();
    let nothing = everywhere(&allowing(&["10.0.0.0/8"], &[]));
    refused(&asked(&by_address, &nothing).await.expect_err("refused"), "127.0.0.1");
    refused(&asked(&by_name, &nothing).await.expect_err("refused"), "localhost");
    refused(&asked(&by_name, &named).await.expect_err("refused"), "localhost");
    assert_eq!(server.seen().len(), answered, "a registry was asked by who may not");
}

#[tokio::test]
async fn c_101_a_registry_leads_to_no_server_in_a_network_that_is_not_allowed() {
    for (how, path) in [(header::LOCATION, "/x"), (header::WWW_AUTHENTICATE, "/token")] {
        let other = answering().await;
        for (host, location) in [
            ("127.0.0.1", format!("http://{}{path}", other.address)),
            ("localhost", format!("http://localhost:{}{path}", other.address.port())),
        ] {
            let server = leading(how.clone(), location).await;
            let before = other.seen().len();
            // Both are named, as registries; whom these lead to is another question.
            let registries = allowing(&[], &[server.address, other.address]);
            let asked = async |redirects: Arc<AllowedNetworks>| {
                let networks = SourceNetworks { registries: Arc::clone(&registries), hosts: Arc::default(), redirects };
                client().manifest(&server.reference(":1"), &keyring(networks)).await
            };
            refused(&asked(allowing(&[], &[])).await.expect_err("refused"), host);
            assert_eq!(other.seen().len(), before, "somebody was asked who may not be");
            asked(loopback()).await.expect("a manifest");
            let by_address = asked(allowing(&[], &[other.address])).await;
            assert_eq!(by_address.is_ok(), host == "127.0.0.1", "{by_address:?}");
        }
    }
}

#[tokio::test]
async fn c_101_a_web_server_is_asked_where_lists_of_hosts_name_it() {
    let server = answering().await;
    let folder = tempfile::tempdir().expect("a folder");
    let plain_http = [server.address.to_string()].into();
    let settings = RegistrySettings { limits: limits(), plain_http, ..RegistrySettings::default() };
    let host = start_with(&folder, settings);
    let (nothing, named) = (allowing(&[], &[]), allowing(&[], &[server.address]));
    let read = async |networks: SourceNetworks| {
        let mut request = inline(&json!({"type": "wget", "url": format!("http://{}/file", server.address)}));
        request.credentials.allowed = sources(networks);
        let version = host.open(&request).await.expect("a component");
        version.content(&ResourceReference::named("far")).await.map(drop)
    };
    read(SourceNetworks { hosts: Arc::clone(&named), ..everywhere(&nothing) }).await.expect("a content");
    let of_registries = SourceNetworks { registries: named, ..everywhere(&nothing) };
    refused(&read(of_registries).await.expect_err("refused"), "127.0.0.1");
    assert_eq!(server.seen().len(), 1);
}

/// The token service is in a network that the other one may not connect to.
#[tokio::test]
async fn c_102_a_token_of_a_service_that_one_may_not_ask_is_nothing_for_him() {
    let service = answering().await;
    let realm = format!("http://localhost:{}/token", service.address.port());
    let (server, client) = (leading(header::WWW_AUTHENTICATE, realm).await, client());
    let asked = async |redirects: Arc<AllowedNetworks>| {
        let networks = SourceNetworks { redirects, ..everywhere(&loopback()) };
        client.manifest(&server.reference(":1"), &keyring(networks)).await
    };
    asked(loopback()).await.expect("a manifest");
    asked(loopback()).await.expect("a manifest");
    assert_eq!((server.seen().len(), service.seen().len()), (3, 1), "the token is kept");
    refused(&asked(allowing(&[], &[])).await.expect_err("refused"), "localhost");
    assert_eq!(service.seen().len(), 1);
}

/// Neither in memory nor, over a restart, on disk.
#[tokio::test]
async fn c_102_nothing_fetched_under_one_allowance_is_given_to_another() {
    let filled = Arc::new(FilledRegistry::open().await);
    filled.component("example.org/a", &json!([]), &[]);
    let answers = Arc::clone(&filled);
    let server = Server::start(move |request: Request| {
        let answer = answers.answer(request.uri().path());
        async move { answer }
    })
    .await;
    let folder = tempfile::tempdir().expect("a folder");
    let asking = |networks: &Arc<AllowedNetworks>| {
        let mut request = request("example.org/a", &server);
        request.credentials.allowed = sources(everywhere(networks));
        request
    };
    let nothing = allowing(&[], &[]);
    let host = start(&folder);
    for _ in 0..2 {
        host.open(&asking(&loopback())).await.map(drop).expect("a component");
    }
    let asked = server.seen().len();
    refused(&host.open(&asking(&nothing)).await.map(drop).expect_err("refused"), "127.0.0.1");
    drop(host);
    let host = start(&folder);
    refused(&host.open(&asking(&nothing)).await.map(drop).expect_err("refused"), "127.0.0.1");
    assert_eq!(server.seen().len(), asked);
}
