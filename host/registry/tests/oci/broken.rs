//! Component versions in a registry that are not what they say: one sentence each, and nothing of it is kept.

use axum::http::StatusCode;
use orangery_core::{digest::sha256, error::Fault};
use orangery_ocm::{ComponentVersions, ResourceReference};
use serde_json::{Value, json};

use crate::filled_registry::{FilledRegistry, local, start};

const NAME: &str = "example.org/a";
const REPOSITORY: &str = "components/component-descriptors/example.org/a";

/// Opens the component with a host of its own.
async fn opened(filled: &FilledRegistry) -> Result<(), Fault> {
    let folder = tempfile::tempdir().expect("a folder");
    start(&folder).open(&filled.request(NAME)).await.map(drop)
}

/// The documents of the component: manifest, config and descriptor.
fn documents(filled: &FilledRegistry) -> [String; 3] {
    let blob = filled.blob(REPOSITORY, "text/plain", b"hello");
    filled.component(NAME, &json!([local("text", &blob)]), std::slice::from_ref(&blob));
    let manifest = filled.body(&format!("/v2/{REPOSITORY}/manifests/1.0.0"));
    let of = |value: &Value| filled.body(&format!("/v2/{REPOSITORY}/blobs/{}", value.as_str().expect("a digest")));
    let document: Value = serde_json::from_str(&manifest).expect("JSON");
    let (config, descriptor) = (of(&document["config"]["digest"]), of(&document["layers"][0]["digest"]));
    [manifest, config, descriptor]
}

#[tokio::test]
async fn a_component_version_that_is_altered_or_cut_is_one_sentence() {
    let filled = FilledRegistry::open().await;
    let [manifest, config, descriptor] = documents(&filled);
    let path = |content: &str| format!("/v2/{REPOSITORY}/blobs/{}", sha256(content.as_bytes()));
    let place = format!("http://{}/{REPOSITORY}", filled.server.address);
    let blob = |content: &str| format!("cannot get the blob {} of {place}: ", sha256(content.as_bytes()));
    let evil = descriptor.replace("\"us\"", "\"eu\"");
    let (short, wrong) = (&descriptor[..descriptor.len() - 9], sha256(evil.as_bytes()));
    let sizes = format!("it has {} bytes and was announced with {}; push it again", short.len(), descriptor.len());
    let digests = format!(
        "the content is not what its digest names: it is {wrong} and not {}; push it again",
        sha256(descriptor.as_bytes())
    );
    let cases = [
        (path(&descriptor), evil.as_str(), blob(&descriptor) + &digests),
        (path(&descriptor), short, blob(&descriptor) + &sizes),
        (
            path(&config),
            &config[..10],
            blob(&config) + &format!("it has 10 bytes and was announced with {}; push it again", config.len()),
        ),
    ];
    for (path, body, expected) in cases {
        let before = filled.body(&path);
        filled.put(&path, StatusCode::OK, body.as_bytes());
        assert_eq!(opened(&filled).await.expect_err("altered").to_string(), expected);
        filled.put(&path, StatusCode::OK, before.as_bytes());
    }
    filled.put(&format!("/v2/{REPOSITORY}/manifests/1.0.0"), StatusCode::OK, &manifest.as_bytes()[..50]);
    let message = opened(&filled).await.expect_err("cut").to_string();
    assert!(
        message.starts_with(&format!("cannot get the manifest of {place}:1.0.0: it is no manifest: ")),
        "{message}"
    );
    filled.put(&format!("/v2/{REPOSITORY}/manifests/1.0.0"), StatusCode::OK, manifest.as_bytes());
    assert_eq!(opened(&filled).await, Ok(()));
}

#[tokio::test]
async fn the_descriptor_of_another_component_and_a_blob_that_is_no_layer_are_told() {
    let filled = FilledRegistry::open().await;
    let missing = json!({"mediaType": "text/plain", "digest": sha256(b"missing"), "size": 7});
    filled.component("example.org/other", &json!([local("text", &missing)]), &[]);
    let other = "/v2/components/component-descriptors/example.org/other/";
    filled.copy(other, &format!("/v2/{REPOSITORY}/"));
    let message = opened(&filled).await.expect_err("another").to_string();
    let host = filled.server.address;
    let expected = format!(
        "http://{host}/{REPOSITORY} has the descriptor of example.org/other:1.0.0 where {NAME}:1.0.0 should be; push it again"
    );
    assert_eq!(message, expected);

    let folder = tempfile::tempdir().expect("a folder");
    let version = start(&folder).open(&filled.request("example.org/other")).await.expect("a component");
    let message = version.content(&ResourceReference::named("text")).await.expect_err("no layer").to_string();
    let expected = format!(
        "resource text of example.org/other:1.0.0: the local blob {:?} is not in \
         http://{host}/components/component-descriptors/example.org/other: no layer has this digest; push the component again",
        sha256(b"missing")
    );
    assert_eq!(message, expected);
    let message = version.content(&ResourceReference::named("image")).await.expect_err("no resource").to_string();
    assert!(
        message.contains("example.org/other:1.0.0") && message.contains("image") && message.contains("text"),
        "{message}"
    );
}
