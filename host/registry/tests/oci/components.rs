//! Component versions of a real registry, through the port that the rest of the host has: blueprints and schemas in all
//! media types, references between the two schemas of descriptors, credentials of Contexts, and what is not asked twice.

use std::{collections::BTreeMap, io::Write, sync::Arc};

use flate2::{Compression, write::GzEncoder};
use orangery_core::error::{Code, Fault};
use orangery_ocm::{
    Artifacts, ComponentReference, ComponentRequest, ComponentSource, ComponentVersion, ComponentVersions, Credentials,
    ResourceReference, Secret, SignaturePolicy, VersionReference, media,
};
use orangery_registry::{Repositories, RepositorySettings, oci};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::registry::{PASSWORD, RealRegistry};

pub(crate) const APP: &str = "example.org/app";
const LIB: &str = "example.org/lib";
const SCHEMA: &str = r#"{"type": "string", "minLength": 3}"#;
const BLUEPRINT: &str = "apiVersion: landscaper.gardener.cloud/v1alpha1\nkind: Blueprint\n";

fn blueprint() -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, content) in [("blueprint.yaml", BLUEPRINT), ("templates/a.yaml", "deployItems: []\n")] {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, name, content.as_bytes()).expect("an entry");
    }
    builder.into_inner().expect("an archive")
}

fn compressed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

/// A resource of an application's component version: its name, type, media type and content.
type Resource = (&'static str, &'static str, String, Vec<u8>);

/// Local blobs in every media type that blueprints and schemas have.
fn local_resources() -> Vec<Resource> {
    let [blueprint_type, old_blueprint_type] = media::BLUEPRINT_TYPES;
    let [schema_type, old_schema_type] = media::JSON_SCHEMA_TYPES;
    vec![
        ("tar", blueprint_type, media::BLUEPRINT_LAYER.to_owned(), blueprint()),
        ("gzip", blueprint_type, format!("{}+gzip", media::BLUEPRINT_LAYER), compressed(&blueprint())),
        ("legacy", old_blueprint_type, media::BLUEPRINT_LEGACY.to_owned(), compressed(&blueprint())),
        ("schema", schema_type, media::JSON_SCHEMA_LAYER.to_owned(), SCHEMA.into()),
        ("old-schema", old_schema_type, media::JSON_SCHEMA_LEGACY.to_owned(), SCHEMA.into()),
        ("packed-schema", schema_type, format!("{}+gzip", media::JSON_SCHEMA_LAYER), compressed(SCHEMA.as_bytes())),
        ("text", "plainText", "text/plain".to_owned(), b"hello".to_vec()),
    ]
}

async fn push_descriptor(registry: &RealRegistry, name: &str, descriptor: &Value, layers: Vec<Value>) {
    let repository = format!("components/component-descriptors/{name}");
    let kind = "application/vnd.ocm.software.component-descriptor.v2+json";
    let layer = registry.push_blob(&repository, kind, descriptor.to_string().as_bytes()).await;
    let config = json!({"componentDescriptorLayer": layer}).to_string();
    let kind = "application/vnd.ocm.software.component.config.v1+json";
    let config = registry.push_blob(&repository, kind, config.as_bytes()).await;
    let layers: Vec<_> = std::iter::once(layer).chain(layers).collect();
    registry.push_manifest(&repository, "1.0.0", &config, &layers).await;
}

fn context(registry: &RealRegistry) -> Value {
    json!({"type": "OCIRegistry", "baseUrl": registry.host, "subPath": "components"})
}

/// The application, in schema v2, refers to the library.
pub(crate) async fn push_application(registry: &RealRegistry) {
    let (mut resources, mut layers) = (Vec::new(), Vec::new());
    for (name, kind, media_type, content) in local_resources() {
        let repository = format!("components/component-descriptors/{APP}");
        let layer = registry.push_blob(&repository, &media_type, &content).await;
        let access = json!({"type": "localBlob/v1", "localReference": layer["digest"], "mediaType": media_type});
        resources.push(json!({"name": name, "version": "1.0.0", "type": kind, "relation": "local", "access": access}));
        layers.push(layer);
    }
    let artifact = push_blueprint_artifact(registry).await;
    for (name, kind) in [("artifact", "ociArtifact"), ("old-artifact", "ociRegistry")] {
        let access = json!({"type": kind, "imageReference": artifact});
        let kind = media::BLUEPRINT_TYPES[0];
        resources
            .push(json!({"name": name, "version": "1.0.0", "type": kind, "relation": "external", "access": access}));
    }
    let blob = registry.push_blob("blobs/text", "text/plain", b"a blob of its own").await;
    let access = json!({
        "type": "ociBlob", "ref": format!("{}/blobs/text", registry.host), "mediaType": "text/plain",
        "digest": blob["digest"], "size": blob["size"],
    });
    let far =
        json!({"name": "far-text", "version": "1.0.0", "type": "plainText", "relation": "external", "access": access});
    resources.push(far);
    let descriptor = json!({
        "meta": {"schemaVersion": "v2"},
        "component": {
            "name": APP, "version": "1.0.0", "provider": "us", "repositoryContexts": [context(registry)],
            "sources": [], "resources": resources,
            "componentReferences": [{"name": "lib", "componentName": LIB, "version": "1.0.0"}],
        },
    });
    push_descriptor(registry, APP, &descriptor, layers).await;
}

/// A blueprint that is an artifact of its own, as a tag and with its digest.
async fn push_blueprint_artifact(registry: &RealRegistry) -> String {
    let layer = registry.push_blob("blueprints/app", media::BLUEPRINT_LEGACY, &compressed(&blueprint())).await;
    let config = registry.push_blob("blueprints/app", media::BLUEPRINT_CONFIG, b"{}").await;
    let digest = registry.push_manifest("blueprints/app", "1.0.0", &config, &[layer]).await;
    format!("{}/blueprints/app:1.0.0@{digest}", registry.host)
}

/// The library, in schema v3alpha1.
pub(crate) async fn push_library(registry: &RealRegistry) {
    let repository = format!("components/component-descriptors/{LIB}");
    let layer = registry.push_blob(&repository, media::BLUEPRINT_LAYER, &blueprint()).await;
    let access = json!({"type": "localBlob", "localReference": layer["digest"], "mediaType": media::BLUEPRINT_LAYER});
    let kind = media::BLUEPRINT_TYPES[0];
    let resource =
        json!({"name": "blueprint", "version": "1.0.0", "type": kind, "relation": "local", "access": access});
    let descriptor = json!({
        "apiVersion": "ocm.software/v3alpha1", "kind": "ComponentVersion",
        "metadata": {"name": LIB, "version": "1.0.0", "provider": {"name": "us"}},
        "repositoryContexts": [context(registry)],
        "spec": {"resources": [resource], "sources": [], "references": []},
    });
    push_descriptor(registry, LIB, &descriptor, vec![layer]).await;
}

fn repositories(registry: &RealRegistry) -> (Repositories, TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    (opened(registry.settings(), &folder), folder)
}

/// With a cache in this folder, as a start of the host opens it.
pub(crate) fn opened(oci: oci::RegistrySettings, folder: &TempDir) -> Repositories {
    let (cache, signatures) = (folder.path().to_owned(), SignaturePolicy::default());
    let settings = RepositorySettings { folders: Vec::new(), cache, cache_bytes: 64 << 20, oci, signatures };
    Repositories::new(settings).expect("repositories")
}

/// A request as an installation makes it whose Context names these Secrets.
pub(crate) fn request(registry: &RealRegistry, name: &str, secrets: &[(&str, &str)]) -> ComponentRequest {
    let reference = VersionReference {
        repository_context: Some(context(registry).into()),
        name: name.to_owned(),
        version: "1.0.0".to_owned(),
    };
    let pull_secrets = secrets.iter().map(|(name, password)| {
        let content = Secret(registry.docker_config(password).into_bytes());
        ((*name).to_owned(), BTreeMap::from([(".dockerconfigjson".to_owned(), content)]))
    });
    let credentials = Credentials { pull_secrets: pull_secrets.collect(), ..Credentials::default() };
    ComponentRequest { credentials, ..ComponentRequest::of(ComponentSource::Reference(reference)) }
}

/// Everything that the application has: per blueprint its files, per schema its value, per text its content.
async fn everything(version: &Arc<dyn ComponentVersion>) -> Result<BTreeMap<String, Value>, Fault> {
    let mut all = BTreeMap::new();
    for name in ["tar", "gzip", "legacy", "artifact", "old-artifact"] {
        let files = version.blueprint(&ResourceReference::named(name)).await?;
        let text = String::from_utf8(files.read("blueprint.yaml").expect("a file")).expect("text");
        all.insert(name.to_owned(), json!([files.list("").expect("names"), text]));
    }
    for name in ["schema", "old-schema", "packed-schema"] {
        all.insert(name.to_owned(), version.json_schema(&ResourceReference::named(name)).await?);
    }
    for name in ["text", "far-text"] {
        let content = version.content(&ResourceReference::named(name)).await?;
        all.insert(name.to_owned(), json!([content.media_type, String::from_utf8_lossy(&content.bytes)]));
    }
    let below = ResourceReference::parse("cd://componentReferences/lib/resources/blueprint").expect("a reference");
    let files = version.blueprint(&below).await?;
    all.insert("below".to_owned(), json!(files.list("templates").expect("names")));
    Ok(all)
}

fn expected() -> BTreeMap<String, Value> {
    let blueprint = json!([["blueprint.yaml", "templates"], BLUEPRINT]);
    let schema: Value = serde_json::from_str(SCHEMA).expect("JSON");
    let blueprints = ["tar", "gzip", "legacy", "artifact", "old-artifact"].map(|name| (name, blueprint.clone()));
    let schemas = ["schema", "old-schema", "packed-schema"].map(|name| (name, schema.clone()));
    let texts = [
        ("text", json!(["text/plain", "hello"])),
        ("far-text", json!(["text/plain", "a blob of its own"])),
        ("below", json!(["a.yaml"])),
    ];
    let all = blueprints.into_iter().chain(schemas).chain(texts);
    all.map(|(name, value)| (name.to_owned(), value)).collect()
}

#[tokio::test]
#[cfg_attr(without_docker_registry, ignore = "needs docker-registry: apt-get install docker-registry")]
async fn a_second_job_asks_the_registry_nothing() {
    let mut registry = RealRegistry::start().await;
    push_application(&registry).await;
    push_library(&registry).await;
    let (repositories, _folder) = repositories(&registry);
    let request = request(&registry, APP, &[("pull", PASSWORD)]);
    let first = repositories.open(&request).await.expect("the application");
    let names: Vec<_> = first.descriptors().iter().map(|descriptor| descriptor.name.clone()).collect();
    assert_eq!(names, [APP, LIB]);
    assert_eq!(everything(&first).await.expect("all of it"), expected());

    // Whoever asks it from now on gets nothing: the second job has all from the first.
    registry.stop().await;
    let second = repositories.open(&request).await.expect("the application");
    assert_eq!(everything(&second).await.expect("all of it"), expected());
}

#[tokio::test]
#[cfg_attr(without_docker_registry, ignore = "needs docker-registry: apt-get install docker-registry")]
async fn what_one_context_may_read_another_may_not() {
    let registry = RealRegistry::start().await;
    push_application(&registry).await;
    push_library(&registry).await;
    let (repositories, _folder) = repositories(&registry);
    let ours = request(&registry, APP, &[("wrong", "x"), ("pull", PASSWORD)]);
    let version = repositories.open(&ours).await.expect("the application");
    assert_eq!(everything(&version).await.expect("all of it"), expected());
    for (secrets, message) in [(&[][..], "without credentials"), (&[("other", "x")][..], "the Secret other")] {
        let fault = repositories.open(&request(&registry, APP, secrets)).await.err().expect("refused");
        assert!(fault.problem().code == Code::Unauthorized && fault.to_string().contains(message), "{fault}");
    }
}

#[tokio::test]
#[cfg_attr(without_docker_registry, ignore = "needs docker-registry: apt-get install docker-registry")]
async fn a_component_that_is_not_there_is_told_with_its_place() {
    let registry = RealRegistry::start().await;
    push_application(&registry).await;
    let (repositories, _folder) = repositories(&registry);
    let missing = |name| request(&registry, name, &[("pull", PASSWORD)]);
    let fault = repositories.open(&missing("example.org/other")).await.err().expect("missing").to_string();
    let place = format!("{}/components", registry.host);
    assert!(fault.contains("example.org/other:1.0.0") && fault.contains(&place), "{fault}");
    // The library that the application refers to has not been pushed.
    let fault = repositories.open(&missing(APP)).await.err().expect("missing").to_string();
    assert!(fault.contains("example.org/lib:1.0.0") && fault.contains(&place), "{fault}");
}

#[tokio::test]
#[cfg_attr(without_docker_registry, ignore = "needs docker-registry: apt-get install docker-registry")]
async fn a_component_that_is_an_artifact_is_read_by_its_digest() {
    let mut registry = RealRegistry::start().await;
    let kinds = ["application/wasm", "application/vnd.bytecodealliance.wasm.component.layer.v0+wasm", "text/plain"];
    let mut references = Vec::new();
    for kind in kinds {
        let layer = registry.push_blob("engines/render", kind, b"\0asm").await;
        let config = registry.push_blob("engines/render", "application/vnd.wasm.config.v0+json", b"{}").await;
        let digest = registry.push_manifest("engines/render", "1.0.0", &config, &[layer]).await;
        let text = format!("oci://{}/engines/render:1.0.0@{digest}", registry.host);
        references.push(text.parse::<ComponentReference>().expect("a reference"));
    }
    let (repositories, _folder) = repositories(&registry);
    let credentials = |secrets| request(&registry, APP, secrets).credentials;
    let (ours, theirs) = (credentials(&[("pull", PASSWORD)]), credentials(&[]));
    let artifacts = repositories.artifacts(&ours).expect("artifacts");
    let read = async |artifacts: &Arc<dyn Artifacts>, reference| {
        artifacts.component(reference).await?.content().await.map(|content| content.to_vec())
    };
    for reference in &references[..2] {
        assert_eq!(read(&artifacts, reference).await, Ok(b"\0asm".to_vec()));
    }
    let fault = read(&artifacts, &references[2]).await.expect_err("no component").to_string();
    assert_eq!(fault, format!("{} has no layer of media type application/wasm; there is text/plain", references[2]));
    let others = repositories.artifacts(&theirs).expect("artifacts");
    let fault = read(&others, &references[0]).await.expect_err("no credentials");
    assert_eq!(fault.problem().code, Code::Unauthorized, "{fault}");

    registry.stop().await;
    let again = repositories.artifacts(&ours).expect("artifacts");
    assert_eq!(read(&again, &references[0]).await, Ok(b"\0asm".to_vec()));
}
