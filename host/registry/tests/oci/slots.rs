//! What waits for a registry or a web server lends the slot of its call meanwhile (C-323).

use std::sync::Arc;

use axum::{extract::Request, http::StatusCode};
use orangery_core::{digest::sha256, error::Fault, port::LendableSlot};
use orangery_ocm::{ComponentRequest, ComponentSource, ComponentVersions as _, Credentials, ResourceReference};
use orangery_registry::{Repositories, oci};
use orangery_turns::in_slot;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::{
    filled_registry::{FilledRegistry, local, request, start_with},
    keeping::inline,
    server::{Server, limits},
};

/// How often each of two calls lends its slot at the moment.
type Lent = watch::Sender<[usize; 2]>;

/// The slot of one of them.
struct NumberedSlot(usize, Lent);

impl LendableSlot for NumberedSlot {
    fn lend(&self) {
        self.1.send_modify(|lent| lent[self.0] += 1);
    }

    fn take_back(&self) {
        self.1.send_modify(|lent| lent[self.0] -= 1);
    }
}

/// What is asked for of a host, at a server.
struct Waiting {
    server: Server,
    lent: Lent,
}

impl Waiting {
    /// A server that answers what this one has; where an address has `part`, as soon as both calls have lent their slots.
    async fn at(filled: FilledRegistry, part: &'static str) -> Self {
        let (lent, filled) = (Lent::new([0; 2]), Arc::new(filled));
        let told = lent.clone();
        let server = Server::start(move |request: Request| {
            let (filled, mut lent) = (Arc::clone(&filled), told.subscribe());
            let path = request.uri().path().to_owned();
            async move {
                if path.contains(part) {
                    lent.wait_for(|lent| lent.iter().all(|lent| *lent > 0)).await.expect("the test goes on");
                }
                filled.answer(&path)
            }
        })
        .await;
        Self { server, lent }
    }

    /// Carries two calls out at once.
    async fn both<T>(&self, call: impl AsyncFn(&Repositories) -> Result<T, Fault>) -> [Result<T, Fault>; 2] {
        let folder = tempfile::tempdir().expect("a folder");
        let long = std::time::Duration::from_secs(20);
        let limits = oci::PullLimits { idle: long, manifest_time: long, blob_time: long, ..limits() };
        let plain_http = [self.server.address.to_string()].into();
        let host =
            start_with(&folder, oci::RegistrySettings { limits, plain_http, ..oci::RegistrySettings::default() });
        let slot = |number| Arc::new(NumberedSlot(number, self.lent.clone()));
        let (one, other) = tokio::join!(in_slot(slot(0), call(&host)), in_slot(slot(1), call(&host)));
        assert_eq!(*self.lent.borrow(), [0, 0], "all are given back");
        [one, other]
    }

    /// The address of something on the server.
    fn address(&self, path: &str) -> String {
        format!("http://{}/{path}", self.server.address)
    }
}

/// A component version with a text.
async fn component() -> FilledRegistry {
    let filled = FilledRegistry::open().await;
    let text = filled.blob("components/component-descriptors/example.org/a", "text/plain", b"hello");
    filled.component("example.org/a", &json!([local("text", &text)]), &[text]);
    filled
}

async fn content(host: &Repositories, request: &ComponentRequest, resource: &str) -> Result<Vec<u8>, Fault> {
    let version = host.open(request).await?;
    let content = version.content(&ResourceReference::named(resource)).await?;
    Ok(content.bytes.to_vec())
}

#[tokio::test]
async fn c_323_a_call_that_waits_for_a_component_version_lends_its_slot() {
    for part in ["/manifests/", "/blobs/"] {
        let waiting = Waiting::at(component().await, part).await;
        let request = request("example.org/a", &waiting.server);
        let got = waiting.both(async |host| content(host, &request, "text").await).await;
        assert_eq!(got, [Ok(b"hello".to_vec()), Ok(b"hello".to_vec())], "{part}");
    }
}

/// An image whose manifest and layers stand below `team/image`.
async fn image() -> FilledRegistry {
    let filled = FilledRegistry::open().await;
    let config = filled.blob("team/image", "application/vnd.oci.empty.v1+json", b"{}");
    let layer = filled.blob("team/image", "text/plain", b"hello");
    let kind = "application/vnd.oci.image.manifest.v1+json";
    let manifest = json!({"schemaVersion": 2, "mediaType": kind, "config": config, "layers": [layer]}).to_string();
    for selector in ["1", &sha256(manifest.as_bytes())] {
        filled.put(&format!("/v2/team/image/manifests/{selector}"), StatusCode::OK, manifest.as_bytes());
    }
    filled
}

#[tokio::test]
async fn c_323_a_call_that_waits_for_an_artifact_or_a_blob_lends_its_slot() {
    // The manifest once more, as it is packed into an archive.
    let waiting = Waiting::at(image().await, "/manifests/sha256:").await;
    let packed = inline(&json!({"type": "ociArtifact", "imageReference": waiting.address("team/image:1")}));
    let got = waiting.both(async |host| content(host, &packed, "far").await).await;
    assert!(got.iter().all(Result::is_ok), "{got:?}");

    let waiting = Waiting::at(image().await, "/blobs/").await;
    let of_blob = inline(&json!({"type": "ociBlob", "ref": waiting.address("team/image"), "mediaType": "text/plain",
        "digest": sha256(b"hello"), "size": 5}));
    let got = waiting.both(async |host| content(host, &of_blob, "far").await).await;
    assert_eq!(got, [Ok(b"hello".to_vec()), Ok(b"hello".to_vec())]);

    // A tag is asked for each time.
    let waiting = Waiting::at(image().await, "/manifests/1").await;
    let reference = waiting.address("team/image:1");
    let got = waiting
        .both(async |host| host.artifacts(&Credentials::default())?.oci(&reference).await.map(|found| found.size()))
        .await;
    assert_eq!(got, [Ok(5), Ok(5)]);
}

/// A resource with the digest of a content.
fn with_digest(access: &Value, content: &[u8]) -> ComponentRequest {
    let mut request = inline(access);
    let value = sha256(content).replacen("sha256:", "", 1);
    if let ComponentSource::Inline(document) = &mut request.source {
        std::sync::Arc::make_mut(document)["component"]["resources"][0]["digest"] =
            json!({"hashAlgorithm": "SHA-256", "normalisationAlgorithm": "genericBlobDigest/v1", "value": value});
    }
    request
}

#[tokio::test]
async fn c_323_a_call_that_waits_for_a_file_or_for_somebody_else_to_get_it_lends_its_slot() {
    for (media_type, digest) in [(None, false), (Some("text/plain"), false), (Some("text/plain"), true)] {
        let filled = FilledRegistry::open().await;
        filled.put("/file", StatusCode::OK, b"hello");
        let waiting = Waiting::at(filled, "/file").await;
        let access =
            json!({"type": "wget", "url": waiting.address("file"), "mediaType": media_type.unwrap_or_default()});
        let request = if digest { with_digest(&access, b"hello") } else { inline(&access) };
        let got = waiting.both(async |host| content(host, &request, "far").await).await;
        assert_eq!(got, [Ok(b"hello".to_vec()), Ok(b"hello".to_vec())], "{media_type:?} {digest}");
    }

    for part in ["/index.yaml", "/shop.tgz"] {
        let filled = FilledRegistry::open().await;
        filled.put("/index.yaml", StatusCode::OK, b"entries: {shop: [{version: 1.0.0, urls: [shop.tgz]}]}");
        filled.put("/shop.tgz", StatusCode::OK, b"packed");
        let waiting = Waiting::at(filled, part).await;
        let charts = waiting.address("");
        let got = waiting
            .both(async |host| {
                let artifacts = host.artifacts(&Credentials::default())?;
                artifacts.helm_repository(&charts, "shop", "1.0.0").await.map(|chart| chart.size())
            })
            .await;
        assert_eq!(got, [Ok(6), Ok(6)], "{part}");
    }
}
