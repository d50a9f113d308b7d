//! A signed component whose access leads into a registry: signatures cover digests, not where content is.

use axum::http::StatusCode;
use orangery_core::digest::sha256;
use orangery_ocm::{ComponentRequest, ComponentSource, ComponentVersions, KeySource, ResourceReference, Verification};
use serde_json::{Value, json};

use crate::filled_registry::{FilledRegistry, start};

/// A shop whose text has a signed digest of a kind, and an access that nobody signed.
fn shop(kind: &str, access: &Value) -> ComponentRequest {
    let fixture: Value = serde_json::from_str(include_str!("../local/signed.json")).expect("JSON");
    let signed =
        |field: &str| fixture.pointer("/kinds").and_then(|kinds| kinds.get(field)).expect("the fixture has it");
    let value = sha256(b"a manifest").trim_start_matches("sha256:").to_owned();
    let digest = json!({"hashAlgorithm": "SHA-256", "normalisationAlgorithm": kind, "value": value});
    let text = json!({"name": "text", "version": "1", "type": "plain", "relation": "local", "access": access, "digest": digest});
    let descriptor = json!({
        "meta": {"schemaVersion": "v2"},
        "component": {
            "name": "example.com/shop", "version": "1.0.0", "provider": "us", "repositoryContexts": [], "sources": [],
            "componentReferences": [], "resources": [text],
        },
        "signatures": [signed("signatures").get(kind).expect("a signature of this kind")],
    });
    let mut request = ComponentRequest::of(ComponentSource::Inline(descriptor.into()));
    request.verification = Some(Verification {
        signature: "kinds".to_owned(),
        public_key: signed("public").as_str().map(|key| key.as_bytes().to_vec()),
        ca_certificate: None,
        keyless: None,
        keys_of: KeySource::Context,
        above: None,
    });
    request
}

/// A registry that answers the second request for a digest with something else.
#[tokio::test]
async fn signatures_a_blob_that_a_registry_changes_after_it_was_verified_is_read_by_nobody() {
    let registry = FilledRegistry::open().await;
    registry.blob("text", "text/plain", b"a manifest");
    let digest = sha256(b"a manifest");
    let place = format!("http://{}/text", registry.server.address);
    let access = json!({"type": "ociBlob", "ref": place, "mediaType": "text/plain", "digest": digest, "size": 10});
    let request = shop("genericBlobDigest/v1", &access);
    let folders = [(), ()].map(|()| tempfile::tempdir().expect("a folder"));
    let [first, second] = folders.each_ref().map(start);
    let read = async |of: &orangery_registry::Repositories| {
        let version = of.open(&request).await.expect("it is signed");
        let content = version.content(&ResourceReference::named("text")).await;
        content.map(|content| String::from_utf8_lossy(&content.bytes).into_owned())
    };
    assert_eq!(read(&first).await.as_deref(), Ok("a manifest"));
    registry.put(&format!("/v2/text/blobs/{digest}"), StatusCode::OK, b"evil stuff");
    // What was verified is kept, and is the same; whoever has none of it gets nothing else under its name.
    assert_eq!(read(&first).await.as_deref(), Ok("a manifest"));
    let fault = read(&second).await.expect_err("it is refused").to_string();
    assert!(fault.contains(&digest) && !fault.contains("evil"), "{fault}");
}

#[tokio::test]
async fn signatures_an_artifact_where_a_blob_was_signed_is_refused() {
    let registry = FilledRegistry::open().await;
    let layer = registry.blob("evil", "text/plain", b"evil");
    let config = registry.blob("evil", "application/vnd.oci.image.config.v1+json", b"{}");
    let manifest = json!({"schemaVersion": 2, "config": config, "layers": [layer]}).to_string();
    registry.put("/v2/evil/manifests/1", StatusCode::OK, manifest.as_bytes());
    let folder = tempfile::tempdir().expect("a folder");
    let repositories = start(&folder);
    let kind = "genericBlobDigest/v1";
    let place = format!("http://{}/evil:1", registry.server.address);
    let plain = json!({"type": "ociArtifact", "imageReference": place});
    // The field of another kind names the signed digest.
    let mut disguised = plain.clone();
    disguised["localReference"] = json!(sha256(b"a manifest"));
    for access in [plain, disguised] {
        let request = shop(kind, &access);
        let found = match repositories.open(&request).await {
            Ok(version) => version.content(&ResourceReference::named("text")).await,
            Err(fault) => Err(fault),
        };
        let fault = found.map(|content| content.bytes.len()).expect_err("it is refused").to_string();
        let expected = "resource text of example.com/shop:1.0.0 has a digest of kind \"genericBlobDigest/v1\", but its access \
                        gives an artifact of a registry, so nothing shows that its content is what was signed; sign the \
                        component again as it is where it is kept";
        assert_eq!(fault, expected);
    }
}
