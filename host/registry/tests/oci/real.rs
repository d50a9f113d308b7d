//! A real registry: component versions as the tools of OCM push them, with TLS and a password.

use std::sync::Arc;

use orangery_core::error::{Code, Fault};
use orangery_ocm::NameMapping;
use orangery_registry::oci::{Client, FoundArtifact, Keyring, RegistrySettings, RegistryVersions};
use serde_json::{Value, json};

use crate::registry::{PASSWORD, RealRegistry};

fn archive(name: &str, content: &str) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_size(content.len() as u64);
    header.set_mode(0o644);
    builder.append_data(&mut header, name, content.as_bytes()).expect("an entry");
    builder.into_inner().expect("an archive")
}

/// Media types that the tools of OCM, and the older ones, wrote: of the config, and of the descriptor's layer.
const FORMS: [(&str, &str); 4] = [
    (
        "application/vnd.ocm.software.component.config.v1+json",
        "application/vnd.ocm.software.component-descriptor.v2+yaml+tar",
    ),
    (
        "application/vnd.ocm.software.component.config.v1+json",
        "application/vnd.ocm.software.component-descriptor.v2+json",
    ),
    (
        "application/vnd.gardener.cloud.cnudie.component.config.v1+json",
        "application/vnd.gardener.cloud.cnudie.component-descriptor.v2+yaml+tar",
    ),
    (
        "application/vnd.oci.gardener.cloud.cnudie.component-descriptor-metadata.config.v2+json",
        "application/vnd.oci.gardener.cloud.cnudie.component-descriptor.config.v2+yaml+tar",
    ),
];

/// Pushes a component version with one local blob.
async fn push(registry: &RealRegistry, repository: &str, tag: &str, form: (&str, &str), descriptor: &Value) -> Value {
    let text = descriptor.to_string();
    let layer = if form.1.ends_with("tar") { archive("component-descriptor.yaml", &text) } else { text.into_bytes() };
    let layer = registry.push_blob(repository, form.1, &layer).await;
    let config = json!({"componentDescriptorLayer": layer}).to_string();
    let config = registry.push_blob(repository, form.0, config.as_bytes()).await;
    let blob = registry.push_blob(repository, "text/plain", b"a local blob").await;
    registry.push_manifest(repository, tag, &config, &[layer, blob.clone()]).await;
    blob
}

fn versions(registry: &RealRegistry, path: &str, mapping: NameMapping) -> RegistryVersions {
    let client = Client::new(registry.settings()).expect("a client");
    let base = format!("{}/{path}", registry.host);
    RegistryVersions::new(Arc::new(client), Arc::new(registry.keyring(PASSWORD)), &base, mapping).expect("an address")
}

#[tokio::test]
#[cfg_attr(without_docker_registry, ignore = "needs docker-registry: apt-get install docker-registry")]
async fn component_versions_are_found_in_all_forms_with_their_blobs() {
    let registry = RealRegistry::start().await;
    for (index, form) in FORMS.into_iter().enumerate() {
        let (path, mapping) =
            (format!("form-{index}"), if index == 1 { NameMapping::Sha256Digest } else { NameMapping::UrlPath });
        let versions = versions(&registry, &path, mapping);
        let repository = versions.repository("example.org/app").expect("a repository");
        let descriptor =
            json!({"meta": {"schemaVersion": "v2"}, "component": {"name": "example.org/app", "index": index}});
        let blob = push(&registry, &repository.path, "1.0.0-rc.1.build-7", form, &descriptor).await;

        let found = versions.find("example.org/app", "1.0.0-rc.1+7").await.expect("an answer").expect("the version");
        let FoundArtifact { descriptor: text, manifest, repository: place, .. } = &found;
        assert_eq!(serde_json::from_str::<Value>(text).expect("JSON"), descriptor, "{form:?}");
        assert_eq!((place, manifest.layers.len()), (&repository, 2));

        let digest = blob["digest"].as_str().expect("text").parse().expect("a digest");
        let size = found.layer(&digest).expect("a layer").size;
        let (client, keyring) = versions.transport();
        let mut content = Vec::new();
        let got = client.blob(&repository, &digest, Some(size), keyring, &mut content).await.expect("a blob");
        assert_eq!((got, content.as_slice()), (12, &b"a local blob"[..]));
        assert!(versions.find("example.org/app", "2.0.0").await.expect("an answer").is_none());
        assert!(versions.find("example.org/other", "1.0.0").await.expect("an answer").is_none());
    }
}

#[tokio::test]
#[cfg_attr(without_docker_registry, ignore = "needs docker-registry: apt-get install docker-registry")]
async fn what_is_no_component_version_is_told() {
    let registry = RealRegistry::start().await;
    let versions = versions(&registry, "x", NameMapping::UrlPath);
    let repository = versions.repository("example.org/app").expect("a repository").path;
    let blob = registry.push_blob(&repository, "a/b", b"{}").await;
    let empty = registry.push_blob(&repository, FORMS[0].0, b"{}").await;
    let odd = json!({"componentDescriptorLayer": blob}).to_string();
    let odd = registry.push_blob(&repository, FORMS[0].0, odd.as_bytes()).await;
    for (tag, config) in [("image", &blob), ("empty", &empty), ("odd", &odd)] {
        registry.push_manifest(&repository, tag, config, &[]).await;
    }
    let cases = [
        ("image", "its config has the media type \"a/b\""),
        ("empty", "its config names no componentDescriptorLayer"),
        ("odd", "its descriptor has the media type \"a/b\""),
    ];
    for (version, expected) in cases {
        let fault = versions.find("example.org/app", version).await.expect_err("no component version");
        let reference = format!("{}/{repository}:{version}", registry.host);
        let message = format!("{reference} is no component version: {expected}; push it with the tools of OCM");
        assert_eq!(fault, Fault::invalid(Code::ConfigurationProblem, message));
    }
}

#[tokio::test]
#[cfg_attr(without_docker_registry, ignore = "needs docker-registry: apt-get install docker-registry")]
async fn a_wrong_password_a_foreign_certificate_and_a_dead_registry_are_told_apart() {
    let mut registry = RealRegistry::start().await;
    let reference = format!("{}/a:1", registry.host).parse().expect("a reference");
    let trusting = Client::new(registry.settings()).expect("a client");
    let wrong = trusting.manifest(&reference, &registry.keyring("wrong")).await.expect_err("a wrong password");
    assert_eq!(wrong.problem().code, Code::Unauthorized);
    assert!(wrong.to_string().contains("with the credentials in Secret team/pull;"), "{wrong}");
    let without = trusting.manifest(&reference, &Keyring::default()).await.expect_err("no password");
    assert!(without.to_string().contains("401 to a request without credentials"), "{without}");
    let missing = trusting.manifest(&reference, &registry.keyring(PASSWORD)).await.expect_err("there is no artifact");
    assert!(missing.to_string().contains("404 to a request with the credentials in Secret team/pull"), "{missing}");

    let strange = Client::new(RegistrySettings::default()).expect("a client");
    let refused = strange.manifest(&reference, &registry.keyring(PASSWORD)).await.expect_err("a foreign authority");
    assert!(matches!(refused, Fault::Invalid(_)), "{refused}");
    let expected =
        format!("the certificate of {} is of no certificate authority that is trusted here; ", registry.host);
    assert!(refused.to_string().contains(&expected) && refused.to_string().contains("--registry-ca"), "{refused}");

    registry.stop().await;
    let gone = trusting.manifest(&reference, &registry.keyring(PASSWORD)).await.expect_err("nobody is there");
    assert!(matches!(gone, Fault::Later(_)), "{gone}");
}
