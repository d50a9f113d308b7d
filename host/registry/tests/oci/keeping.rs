//! What is kept from one asker is nothing for another, and what is kept over a restart counts while a registry is away.

use axum::http::StatusCode;
use orangery_core::{
    digest::sha256,
    error::{Code, Fault},
};
use orangery_ocm::{ComponentRequest, ComponentSource, ComponentVersions, ResourceReference};
use orangery_registry::Repositories;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    components::{APP, opened, push_application, push_library, request},
    filled_registry::{FilledRegistry, local, start},
    registry::{PASSWORD, RealRegistry},
};

/// The content of a resource as text.
async fn content(repositories: &Repositories, request: &ComponentRequest, resource: &str) -> Result<String, Fault> {
    let version = repositories.open(request).await?;
    let content = version.content(&ResourceReference::named(resource)).await?;
    Ok(String::from_utf8_lossy(&content.bytes).into_owned())
}

/// What a private registry gave to one Context is asked for by others, who know the digest of it.
#[tokio::test]
#[cfg_attr(without_docker_registry, ignore = "needs docker-registry: apt-get install docker-registry")]
async fn a_known_digest_alone_does_not_get_the_content() {
    let registry = RealRegistry::start().await;
    push_application(&registry).await;
    push_library(&registry).await;
    let folder = tempfile::tempdir().expect("a folder");
    let repositories = opened(registry.settings(), &folder);
    let ours = request(&registry, APP, &[("pull", PASSWORD)]);
    assert_eq!(content(&repositories, &ours, "text").await, Ok("hello".to_owned()));
    assert_eq!(content(&repositories, &ours, "far-text").await, Ok("a blob of its own".to_owned()));

    // A registry of theirs says that a component of theirs has our blob.
    let filled = FilledRegistry::open().await;
    let theirs = "example.org/theirs";
    let private = json!({"mediaType": "text/plain", "digest": sha256(b"hello"), "size": 5});
    filled.component(theirs, &json!([local("text", &private)]), std::slice::from_ref(&private));
    let fault = content(&repositories, &filled.request(theirs), "text").await.expect_err("refused");
    let place = format!("http://{}/components/component-descriptors/{theirs}", filled.server.address);
    let expected = format!("resource text of {theirs}:1.0.0: cannot get the blob {} of {place}: ", sha256(b"hello"));
    assert!(fault.to_string().starts_with(&expected) && fault.to_string().contains("(404 to a request"), "{fault}");

    // A descriptor of theirs names the blob in our registry, and in theirs.
    let repository = |host: &str| format!("{host}/blobs/text");
    let ours = repository(&registry.host);
    let of_theirs = format!("http://{}", repository(&filled.server.address.to_string()));
    for (place, message) in [(&ours, "answered 401 to a request without"), (&of_theirs, "404 to a request without")] {
        let access = json!({
            "type": "ociBlob", "ref": place, "mediaType": "text/plain", "digest": sha256(b"a blob of its own"), "size": 17,
        });
        let fault = content(&repositories, &inline(&access), "far").await.expect_err("refused").to_string();
        let expected = format!(
            "resource far of example.org/inline:1.0.0: cannot get the blob {} of {place}: ",
            sha256(b"a blob of its own")
        );
        assert!(fault.starts_with(&expected) && fault.contains(message), "{fault}");
    }
}

/// An installation that carries a descriptor with one resource.
pub(crate) fn inline(access: &Value) -> ComponentRequest {
    let resource = json!({"name": "far", "version": "1", "type": "plain", "relation": "external", "access": access});
    ComponentRequest::of(ComponentSource::Inline(
        json!({
            "meta": {"schemaVersion": "v2"},
            "component": {
                "name": "example.org/inline", "version": "1.0.0", "provider": "us", "repositoryContexts": [],
                "sources": [], "componentReferences": [], "resources": [resource],
            },
        })
        .into(),
    ))
}

/// A version that is opened again, in the same job or in another one, comes from memory; so do those below it.
#[tokio::test]
async fn ins_82_a_descriptor_is_fetched_once() {
    let filled = FilledRegistry::open().await;
    let blob = filled.blob("components/component-descriptors/example.org/a", "text/plain", b"once");
    filled.component("example.org/a", &json!([local("text", &blob)]), std::slice::from_ref(&blob));
    let folder = tempfile::tempdir().expect("a folder");
    let repositories = start(&folder);
    let request = filled.request("example.org/a");
    for _ in 0..3 {
        assert_eq!(content(&repositories, &request, "text").await, Ok("once".to_owned()));
    }
    let seen = filled.server.seen();
    let manifests = seen.iter().filter(|seen| seen.path.contains("/manifests/")).count();
    let contents = seen.iter().filter(|seen| seen.path.ends_with(blob["digest"].as_str().unwrap_or_default())).count();
    assert_eq!((manifests, contents), (1, 1), "{:?}", seen.iter().map(|seen| &seen.path).collect::<Vec<_>>());
}

#[tokio::test]
#[cfg_attr(without_docker_registry, ignore = "needs docker-registry: apt-get install docker-registry")]
async fn after_a_restart_without_the_registry_credentials_that_had_access_go_on() {
    let mut registry = RealRegistry::start().await;
    push_application(&registry).await;
    push_library(&registry).await;
    let folder = tempfile::tempdir().expect("a folder");
    let ours = request(&registry, APP, &[("pull", PASSWORD)]);
    let before = opened(registry.settings(), &folder);
    for (resource, text) in [("text", "hello"), ("far-text", "a blob of its own")] {
        assert_eq!(content(&before, &ours, resource).await, Ok(text.to_owned()));
    }
    registry.stop().await;
    let after = opened(registry.settings(), &folder);
    for (resource, text) in [("text", "hello"), ("far-text", "a blob of its own")] {
        assert_eq!(content(&after, &ours, resource).await, Ok(text.to_owned()));
    }
    for secrets in [&[][..], &[("pull", "x")]] {
        let fault = content(&after, &request(&registry, APP, secrets), "text").await.expect_err("nobody answers");
        assert!(matches!(&fault, Fault::Later(_)) && fault.to_string().contains("cannot be reached"), "{fault}");
    }
}

#[tokio::test]
async fn after_a_restart_the_registry_has_the_word_where_it_answers() {
    let filled = FilledRegistry::open().await;
    let fill = |text: &str| {
        let blob = filled.blob("components/component-descriptors/example.org/a", "text/plain", text.as_bytes());
        filled.component("example.org/a", &json!([local("text", &blob)]), std::slice::from_ref(&blob));
    };
    let folder = tempfile::tempdir().expect("a folder");
    let request = filled.request("example.org/a");
    let text = |host: Repositories| {
        let request = &request;
        async move { content(&host, request, "text").await }
    };
    fill("one");
    assert_eq!(text(start(&folder)).await, Ok("one".to_owned()));
    // The same version with another content: a restart sees it, a registry that fails does not take it away.
    fill("two");
    assert_eq!(text(start(&folder)).await, Ok("two".to_owned()));
    for code in [StatusCode::TOO_MANY_REQUESTS, StatusCode::INTERNAL_SERVER_ERROR, StatusCode::BAD_GATEWAY] {
        filled.refuse(code);
        assert_eq!(text(start(&folder)).await, Ok("two".to_owned()), "{code}");
    }
    // A caller that may no longer read it has lost it, also for when the registry fails again.
    filled.refuse(StatusCode::FORBIDDEN);
    let fault = text(start(&folder)).await.expect_err("refused");
    assert_eq!(fault.problem().code, Code::Unauthorized, "{fault}");
    filled.refuse(StatusCode::INTERNAL_SERVER_ERROR);
    let fault = text(start(&folder)).await.expect_err("it fails");
    assert!(fault.to_string().ends_with("the registry is not available at the moment: it answered 500"), "{fault}");
}

#[tokio::test]
async fn c_148_what_a_registry_does_not_have_any_more_is_not_taken_from_before_the_restart() {
    let filled = FilledRegistry::open().await;
    let config = filled.blob("team/image", "application/vnd.oci.empty.v1+json", b"{}");
    let layer = filled.blob("team/image", "text/plain", b"a layer");
    let kind = "application/vnd.oci.image.manifest.v1+json";
    let manifest = json!({"schemaVersion": 2, "mediaType": kind, "config": config, "layers": [layer]}).to_string();
    let push = || {
        for name in ["1".to_owned(), sha256(manifest.as_bytes())] {
            filled.put(&format!("/v2/team/image/manifests/{name}"), StatusCode::OK, manifest.as_bytes());
        }
    };
    push();
    let folder = tempfile::tempdir().expect("a folder");
    let image = format!("http://{}/team/image:1", filled.server.address);
    let read = async |folder: &TempDir| {
        let version = start(folder).open(&inline(&json!({"type": "ociArtifact", "imageReference": image}))).await;
        version.expect("it").content(&ResourceReference::named("far")).await
    };
    read(&folder).await.expect("it is there");
    for (code, expected) in [(404, "the registry does not have it (404"), (500, "it answered 500")] {
        filled.refuse(StatusCode::from_u16(code).expect("a status"));
        let fault = read(&folder).await.expect_err("it is gone");
        assert!(matches!(&fault, Fault::Later(problem) if problem.message.contains(expected)), "{code}: {fault}");
    }
    // Of what is there, a part that is not is broken, and waited for by nobody.
    push();
    for digest in [&config["digest"], &layer["digest"]] {
        let path = format!("/v2/team/image/blobs/{}", digest.as_str().expect("a digest"));
        filled.put(&path, StatusCode::NOT_FOUND, b"");
    }
    let other = tempfile::tempdir().expect("a folder");
    let fault = read(&other).await.expect_err("it is broken");
    assert!(matches!(fault, Fault::Invalid(_)), "{fault}");
}

#[tokio::test]
async fn an_artifact_is_handed_to_templates_as_one_archive() {
    let filled = FilledRegistry::open().await;
    let config = filled.blob("team/image", "application/vnd.oci.empty.v1+json", b"{}");
    let layer = filled.blob("team/image", "text/plain", b"a layer");
    let kind = "application/vnd.oci.image.manifest.v1+json";
    let manifest = json!({"schemaVersion": 2, "mediaType": kind, "config": config, "layers": [layer, layer]});
    let manifest = manifest.to_string();
    let digest = sha256(manifest.as_bytes());
    for name in ["1", digest.as_str()] {
        filled.put(&format!("/v2/team/image/manifests/{name}"), StatusCode::OK, manifest.as_bytes());
    }
    let index =
        json!({"schemaVersion": 2, "manifests": [{"mediaType": kind, "digest": digest, "size": manifest.len()}]});
    filled.put("/v2/team/image/manifests/many", StatusCode::OK, index.to_string().as_bytes());
    let folder = tempfile::tempdir().expect("a folder");
    let host = start(&folder);
    let image = |tag: &str| format!("http://{}/team/image:{tag}", filled.server.address);
    let version = host.open(&inline(&json!({"type": "ociArtifact", "imageReference": image("1")}))).await.expect("it");
    let content = version.content(&ResourceReference::named("far")).await.expect("an archive");
    assert_eq!(content.media_type, "application/vnd.oci.image.manifest.v1+tar+gzip");
    let limits = orangery_registry::archive::ArchiveLimits::BLUEPRINT;
    let files = orangery_registry::archive::files(&content.bytes, limits).expect("an archive");
    let files: Vec<_> = files.iter().map(|(name, bytes)| (name.as_str(), String::from_utf8_lossy(bytes))).collect();
    let expected_index = json!({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [{
            "mediaType": kind, "digest": digest, "size": manifest.len(),
            "annotations": {"org.opencontainers.image.ref.name": "1", "software.ocm/tags": "1"},
        }],
        "annotations": {"software.ocm/main": digest},
    });
    let file = |content: &[u8]| format!("blobs/{}", sha256(content).replacen(':', ".", 1));
    let expected = [
        ("index.json", expected_index.to_string().into()),
        ("oci-layout", r#"{"imageLayoutVersion":"1.0.0"}"#.into()),
        (&file(manifest.as_bytes()), manifest.as_str().into()),
        (&file(b"{}"), "{}".into()),
        (&file(b"a layer"), "a layer".into()),
    ];
    assert_eq!(files, expected);

    let many = json!({"type": "ociArtifact", "imageReference": image("many")});
    let version = host.open(&inline(&many)).await.expect("it");
    let fault = version.content(&ResourceReference::named("far")).await.expect_err("several");
    let expected = format!(
        "resource far of example.org/inline:1.0.0: {} is an index of several artifacts, which is no single content; name \
         the one that is meant by its digest",
        image("many")
    );
    assert_eq!(fault, Fault::invalid(Code::ConfigurationProblem, expected));
}
