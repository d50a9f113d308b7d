//! What `release/` packs, in a real registry.

#[path = "../../../../release/tests/pack/standin.rs"]
mod standin;

use std::{fs, path::Path};

use orangery_registry::oci::{ArtifactReference, Client};
use orangery_release::pack;
use serde_json::Value;

use crate::registry::{PASSWORD, RealRegistry};

fn blob(layout: &Path, descriptor: &Value) -> Vec<u8> {
    let hex = descriptor["digest"].as_str().and_then(|digest| digest.strip_prefix("sha256:")).expect("a digest");
    fs::read(layout.join("blobs/sha256").join(hex)).expect("a blob")
}

/// What a document lists under a name.
fn listed<'d>(document: &'d Value, name: &str) -> impl Iterator<Item = &'d Value> {
    document.get(name).and_then(Value::as_array).into_iter().flatten()
}

/// Pushes what an entry of a layout names, as tools that copy images do: what it needs first.
async fn push(registry: &RealRegistry, repository: &str, layout: &Path, entry: &Value, tag: &str) -> String {
    let bytes = blob(layout, entry);
    let document: Value = serde_json::from_slice(&bytes).expect("JSON");
    for manifest in listed(&document, "manifests") {
        let digest = manifest["digest"].as_str().expect("text");
        assert_eq!(Box::pin(push(registry, repository, layout, manifest, digest)).await, digest);
    }
    let layers = listed(&document, "layers");
    for descriptor in layers.chain(document.get("config")) {
        let media_type = descriptor["mediaType"].as_str().expect("text");
        let pushed = registry.push_blob(repository, media_type, &blob(layout, descriptor)).await;
        assert_eq!(pushed.get("digest"), descriptor.get("digest"));
    }
    registry.put_manifest(repository, tag, entry["mediaType"].as_str().expect("text"), bytes).await
}

#[tokio::test]
#[cfg_attr(without_docker_registry, ignore = "needs docker-registry: apt-get install docker-registry")]
async fn c_187_what_is_packed_is_taken_by_a_registry_and_pulled_by_its_digest() {
    let registry = RealRegistry::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let contents = standin::standin(folder.path());
    let digests = pack(&contents).expect("a release");
    for (layout, repository, digest) in
        [("image", "orangery", &digests.image), ("chart", "orangery/charts/orangery", &digests.chart)]
    {
        let layout = contents.out.join(layout);
        let index: Value =
            serde_json::from_slice(&fs::read(layout.join("index.json")).expect("an index")).expect("JSON");
        assert_eq!(&push(&registry, repository, &layout, &index["manifests"][0], "0.1.0").await, digest);
    }

    let (client, keyring) = (Client::new(registry.settings()).expect("a client"), registry.keyring(PASSWORD));
    for (layout, repository, digest) in
        [("image", "orangery", &digests.image), ("chart", "orangery/charts/orangery", &digests.chart)]
    {
        let reference = format!("{}/{repository}@{digest}", registry.host);
        let reference: ArtifactReference = reference.parse().expect("a reference");
        let manifest = client.manifest(&reference, &keyring).await.expect("what was pushed");
        assert_eq!(manifest.layers.len(), if layout == "image" { 3 } else { 1 });
        for layer in &manifest.layers {
            let mut content = Vec::new();
            let pulled = client.blob(&reference.repository, &layer.digest, Some(layer.size), &keyring, &mut content);
            assert_eq!(pulled.await.expect("a layer"), layer.size);
            let hex = layer.digest.to_string();
            let hex = hex.strip_prefix("sha256:").expect("a digest");
            assert_eq!(fs::read(contents.out.join(layout).join("blobs/sha256").join(hex)).expect("a blob"), content);
        }
    }
}
