//! Resources on web servers: what is asked, with which credentials, and what is refused.

use axum::{
    extract::Request,
    http::{StatusCode, header},
};
use orangery_core::{
    digest::sha256,
    error::{Code, Fault},
};
use orangery_ocm::{ComponentRequest, ComponentVersions, ResourceReference, Secret};
use orangery_registry::{Repositories, oci};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    filled_registry::{FilledRegistry, start, start_with},
    keeping::inline,
    server::{Server, endless, limits, status, stuck_after, with},
};

const PLACE: &str = "resource far of example.org/inline:1.0.0: ";

/// A host whose operator names these servers.
fn naming(servers: &[&Server]) -> (Repositories, TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let plain_http = servers.iter().map(|server| server.address.to_string()).collect();
    let settings = oci::RegistrySettings { limits: limits(), plain_http, ..oci::RegistrySettings::default() };
    (start_with(&folder, settings), folder)
}

/// The media type and text of the one resource.
async fn fetched(host: &Repositories, request: &ComponentRequest) -> Result<(String, String), Fault> {
    let version = host.open(request).await?;
    let content = version.content(&ResourceReference::named("far")).await?;
    Ok((content.media_type, String::from_utf8_lossy(&content.bytes).into_owned()))
}

/// The sentence of the fault, without its place.
async fn refused(host: &Repositories, access: &Value) -> String {
    let message = fetched(host, &inline(access)).await.expect_err("refused").to_string();
    message.strip_prefix(PLACE).expect("the resource is named").to_owned()
}

/// The access with a digest of the content in its resource.
fn with_digest(access: &Value, content: &[u8]) -> ComponentRequest {
    let mut request = inline(access);
    if let orangery_ocm::ComponentSource::Inline(document) = &mut request.source {
        let value = sha256(content).replacen("sha256:", "", 1);
        std::sync::Arc::make_mut(document)["component"]["resources"][0]["digest"] =
            json!({"hashAlgorithm": "SHA-256", "normalisationAlgorithm": "genericBlobDigest/v1", "value": value});
    }
    request
}

/// Credentials as the ConfigMap of a Context has them.
fn with_login(mut request: ComponentRequest, kind: &str, server: &Server, properties: &Value) -> ComponentRequest {
    let (host, port) = (server.address.ip().to_string(), server.address.port().to_string());
    let config = json!({"type": "credentials.config.ocm.software", "consumers": [{
        "identity": {"type": kind, "hostname": host, "port": port},
        "credentials": [{"type": "Credentials", "properties": properties}],
    }]});
    request.credentials.ocm_config = Some(("ocm".to_owned(), Secret(config.to_string().into_bytes())));
    request
}

fn sent(server: &Server, name: &str) -> Vec<Option<String>> {
    let value = |value: &axum::http::HeaderValue| value.to_str().expect("text").to_owned();
    server.seen().iter().map(|seen| seen.headers.get(name).map(value)).collect()
}

#[tokio::test]
async fn a_file_is_fetched_with_its_media_type_and_headers() {
    let server = Server::start(|_: Request| async {
        with(status(200, "hello"), header::CONTENT_TYPE, "Text/Plain; charset=utf-8")
    })
    .await;
    let (host, _folder) = naming(&[&server]);
    let url = format!("http://{}/a/file.txt?signature=hunter2", server.address);
    let access = json!({"type": "wget", "url": url, "header": {"X-Wanted": ["a"]}});
    assert_eq!(fetched(&host, &inline(&access)).await, Ok(("text/plain".to_owned(), "hello".to_owned())));
    let named = json!({"type": "wget/v1", "URL": url, "mediaType": "a/b"});
    assert_eq!(fetched(&host, &inline(&named)).await, Ok(("a/b".to_owned(), "hello".to_owned())));
    assert_eq!(sent(&server, "x-wanted"), [Some("a".to_owned()), None]);
    let paths: Vec<_> = server.seen().into_iter().map(|seen| seen.path).collect();
    assert_eq!(paths, ["/a/file.txt?signature=hunter2"; 2]);
}

#[tokio::test]
async fn a_file_with_a_digest_is_asked_for_once_by_each_asker() {
    let server = Server::start(|request: Request| async move {
        match request.headers().contains_key(header::AUTHORIZATION) {
            true => status(200, "hello"),
            false => status(401, ""),
        }
    })
    .await;
    let (host, _folder) = naming(&[&server]);
    let url = format!("http://{}/file", server.address);
    let request = with_digest(&json!({"type": "wget", "url": url, "mediaType": "text/plain"}), b"hello");
    let ours = with_login(request.clone(), "wget", &server, &json!({"username": "u", "password": "p"}));
    for _ in 0..2 {
        assert_eq!(fetched(&host, &ours).await, Ok(("text/plain".to_owned(), "hello".to_owned())));
    }
    assert_eq!(sent(&server, "authorization"), [Some("Basic dTpw".to_owned())]);
    let fault = fetched(&host, &request).await.expect_err("no credentials");
    let expected = format!(
        "{PLACE}cannot get the file {url}: the server answered 401 to a request without credentials, as the Context has none \
         for it; give the Context a registryPullSecret or an ocmConfig whose credentials may read it"
    );
    assert_eq!(fault, Fault::invalid(Code::Unauthorized, expected));
    let token = with_login(request, "wget", &server, &json!({"identityToken": "t"}));
    assert!(fetched(&host, &token).await.is_ok_and(|(_, text)| text == "hello"));
    assert_eq!(sent(&server, "authorization")[2], Some("Bearer t".to_owned()));
}

#[tokio::test]
async fn a_file_that_cannot_be_had_is_one_sentence() {
    let server = Server::start(|request: Request| async move {
        match request.uri().path() {
            "/gone" => status(404, ""),
            "/limited" => status(429, ""),
            "/broken" => status(500, "hunter2"),
            "/hung" => std::future::pending().await,
            "/stuck" => status(200, stuck_after(b"x")),
            "/endless" => status(200, endless()),
            "/moved" => with(status(302, ""), header::LOCATION, "/file"),
            "/away" => with(status(302, ""), header::LOCATION, "http://127.0.0.1:1/x"),
            _ => status(200, "hello"),
        }
    })
    .await;
    let (host, _folder) = naming(&[&server]);
    let url = |path: &str| format!("http://{}/{path}", server.address);
    let cases = [
        ("broken", "the server is not available at the moment: it answered 500".to_owned()),
        ("limited", "the server takes no more requests at the moment (429) and does not say for how long".to_owned()),
        ("hung", "nothing came for 1 s while waiting for an answer".to_owned()),
        ("stuck", "nothing came for 1 s while its content was read".to_owned()),
        ("endless", "it has more than 262144 bytes, which is the limit".to_owned()),
        (
            "away",
            "http:// is refused for 127.0.0.1:1; use https://, or name the server with --plain-http-registry 127.0.0.1:1"
                .to_owned(),
        ),
    ];
    for (path, expected) in cases {
        let message = refused(&host, &json!({"type": "wget", "url": url(path)})).await;
        assert_eq!(message, format!("cannot get the file {}: {expected}", url(path)));
    }
    let message = refused(&host, &json!({"type": "wget", "url": url("gone")})).await;
    assert!(message.contains("the server does not have it (404 to a request without credentials"), "{message}");
    let stays = json!({"type": "wget", "url": url("moved"), "noRedirect": true});
    let message = refused(&host, &stays).await;
    assert!(
        message.ends_with("the server redirects to another address, and the access forbids to follow"),
        "{message}"
    );
    let wrong = with_digest(&json!({"type": "wget", "url": url("file"), "mediaType": "a/b"}), b"other");
    let message = fetched(&host, &wrong).await.expect_err("another content").to_string();
    assert!(message.contains("has another content: its digest is"), "{message}");
}

#[tokio::test]
async fn an_access_that_asks_for_more_than_a_file_is_refused_before_anything_is_sent() {
    let server = Server::start(|_: Request| async { status(200, "hello") }).await;
    let (host, _folder) = naming(&[&server]);
    let url = format!("http://{}/file", server.address);
    let get = "only GET without a body is supported";
    let cases = [
        (json!({"url": url, "verb": "POST"}), get.to_owned()),
        (json!({"url": url, "body": "x"}), get.to_owned()),
        (
            json!({"url": url, "header": {"Host": ["x"]}}),
            "its header sets Host, which is not for components to set".to_owned(),
        ),
        (
            json!({"url": url, "header": {"a b": ["x"]}}),
            "its header has \"a b\", which is no name of a header".to_owned(),
        ),
        (json!({"url": url, "header": {"a": ["\n"]}}), "its header has an unusable value for a".to_owned()),
        (json!({"url": url, "header": {"a": ["x".repeat(9000)]}}), "its header has more than 8192 bytes".to_owned()),
        (json!({"url": "file"}), "its URL is no address: relative URL without a base".to_owned()),
        (
            json!({"url": "file:///etc/passwd"}),
            "its URL is no address of a web server: it has to begin with https://".to_owned(),
        ),
        (
            json!({"url": "https://u:hunter2@r.example/"}),
            "its URL has a user in it; put the credentials into the ocmConfig of the Context".to_owned(),
        ),
    ];
    for (mut access, expected) in cases {
        access["type"] = json!("wget");
        assert_eq!(refused(&host, &access).await, expected);
    }
    assert_eq!(server.seen().len(), 0);
    // This machine is a registry without TLS, but no file server: its services are not for components to ask.
    let folder = tempfile::tempdir().expect("a folder");
    let message = refused(&start(&folder), &json!({"type": "wget", "url": url})).await;
    let address = server.address;
    let expected = format!(
        "http:// is refused for {address}; use https://, or name the server with --plain-http-registry {address}"
    );
    assert_eq!(message, format!("cannot get the file {url}: {expected}"));
    assert_eq!(server.seen().len(), 0);
}

#[tokio::test]
async fn a_chart_comes_from_its_repository_by_name_and_version() {
    let filled = FilledRegistry::open().await;
    let index = format!(
        "entries:\n  shop:\n  - {{version: 1.0.0, urls: [charts/shop.tgz], digest: {}}}\n  - {{version: 2.0.0, urls: \
         [charts/shop.tgz], digest: {}}}\n",
        sha256(b"a chart").replacen("sha256:", "", 1),
        sha256(b"another").replacen("sha256:", "", 1),
    );
    filled.put("/stable/index.yaml", StatusCode::OK, index.as_bytes());
    filled.put("/stable/charts/shop.tgz", StatusCode::OK, b"a chart");
    let (host, _folder) = naming(&[&filled.server]);
    let repository = format!("http://{}/stable/", filled.server.address);
    let access = |chart: &str| json!({"type": "helm", "helmRepository": repository, "helmChart": chart});
    let kind = "application/vnd.cncf.helm.chart.content.v1.tar+gzip".to_owned();
    assert_eq!(fetched(&host, &inline(&access("shop:1.0.0"))).await, Ok((kind.clone(), "a chart".to_owned())));
    let paths: Vec<_> = filled.server.seen().into_iter().map(|seen| seen.path).collect();
    assert_eq!(paths, ["/stable/index.yaml", "/stable/charts/shop.tgz"]);
    for _ in 0..2 {
        let known = with_digest(&access("shop:1.0.0"), b"a chart");
        assert_eq!(fetched(&host, &known).await, Ok((kind.clone(), "a chart".to_owned())));
    }
    assert_eq!(filled.server.seen().len(), 2, "what the index names by a digest is fetched once");
    let message = refused(&host, &access("shop:2.0.0")).await;
    let expected = format!(
        "cannot get the file {repository}charts/shop.tgz: the content is not what its digest names: it is {} and not {}; \
         publish it again",
        sha256(b"a chart"),
        sha256(b"another")
    );
    assert_eq!(message, expected);
    let index = format!("the index {repository}index.yaml");
    assert_eq!(refused(&host, &access("other:1")).await, format!("{index} has no chart other; check its name"));
    let message = refused(&host, &access("shop:3")).await;
    assert_eq!(message, format!("{index} has no version 3 of the chart shop; it has 1.0.0, 2.0.0"));
    let mut own = access("shop:1.0.0");
    own["caCert"] = json!("x");
    assert_eq!(
        refused(&host, &own).await,
        "it names a caCert; certificate authorities are for the operator to name, with --registry-ca"
    );
}

#[tokio::test]
async fn a_chart_comes_from_a_registry_too() {
    let filled = FilledRegistry::open().await;
    let kind = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";
    let config = filled.blob("charts/shop", "application/vnd.cncf.helm.config.v1+json", b"{}");
    let layer = filled.blob("charts/shop", kind, b"a chart");
    let manifest = json!({"schemaVersion": 2, "config": config, "layers": [layer]}).to_string();
    filled.put("/v2/charts/shop/manifests/1.0.0_b1", StatusCode::OK, manifest.as_bytes());
    let folder = tempfile::tempdir().expect("a folder");
    let repository = format!("oci://{}/charts", filled.server.address);
    let access = json!({"type": "helm/v1", "helmRepository": repository, "helmChart": "shop", "version": "1.0.0+b1"});
    let got = fetched(&start(&folder), &inline(&access)).await;
    assert_eq!(got, Ok((kind.to_owned(), "a chart".to_owned())));
}

#[tokio::test]
async fn a_commit_comes_from_the_api_with_the_token_for_its_repository() {
    let elsewhere = Server::start(|_: Request| async { status(200, "an archive") }).await;
    let location = format!("http://{}/archive", elsewhere.address);
    let server = Server::start(move |_: Request| {
        let answer = with(status(302, ""), header::LOCATION, &location);
        async move { answer }
    })
    .await;
    let (host, _folder) = naming(&[&server, &elsewhere]);
    let commit = "0123456789012345678901234567890123456789";
    let access = json!({
        "type": "gitHub", "repoUrl": format!("http://{}/owner/name", server.address), "commit": commit,
    });
    let request = with_login(inline(&access), "Github", &server, &json!({"token": "hunter2"}));
    assert_eq!(fetched(&host, &request).await, Ok(("application/x-tgz".to_owned(), "an archive".to_owned())));
    assert_eq!(server.seen()[0].path, format!("/api/v3/repos/owner/name/tarball/{commit}"));
    assert_eq!(sent(&server, "authorization"), [Some("Bearer hunter2".to_owned())]);
    assert_eq!(sent(&elsewhere, "authorization"), [None], "the token stays with the host it is for");

    let mut other = access.clone();
    other["apiHostname"] = json!(elsewhere.address.to_string());
    let request = with_login(inline(&other), "Github", &server, &json!({"token": "hunter2"}));
    assert_eq!(fetched(&host, &request).await, Ok(("application/x-tgz".to_owned(), "an archive".to_owned())));
    assert_eq!(sent(&elsewhere, "authorization"), [None, None], "a component chooses the host of the API");
}
