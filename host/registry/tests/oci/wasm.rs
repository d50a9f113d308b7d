//! Components in registries that lie, move and send too much.

use axum::{
    body::{Body, to_bytes},
    extract::Request,
    http::{Method, Response, StatusCode, header},
};
use orangery_core::{
    digest::sha256,
    error::{Code, Fault},
};
use orangery_ocm::{ComponentVersions as _, Credentials, RegistryComponent, RegistryComponentRequest, Secret};
use orangery_registry::{
    oci::{ArtifactReference, Client, Keyring, RegistrySettings},
    wasm::{ArtifactKey, ComponentFacts, WasmArtifacts},
};
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256};
use serde_json::{Value, json};

use crate::{
    filled_registry::{FilledRegistry, start, start_with},
    registry::RealRegistry,
    server::{Server, status},
};

const SIMPLE_SIGNING: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
const SIGNATURE: &str = "dev.cosignproject.cosign/signature";

fn client() -> Client {
    Client::new(RegistrySettings::default()).expect("a client")
}

fn key() -> ArtifactKey {
    let pair = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).expect("a key");
    ArtifactKey::read(pair.public_key_pem().as_bytes(), "a.pub").expect("a key")
}

/// A component of these bytes, under the tag `1`; the answer is the digest of its manifest.
fn fill(registry: &FilledRegistry, layer: &Value) -> String {
    let config = registry.blob("team/mine", "application/vnd.wasm.config.v0+json", b"{}");
    let manifest = json!({"schemaVersion": 2, "config": config, "layers": [layer]}).to_string();
    let digest = sha256(manifest.as_bytes());
    for selector in ["1", &digest] {
        registry.put(&format!("/v2/team/mine/manifests/{selector}"), StatusCode::OK, manifest.as_bytes());
    }
    digest
}

fn reference(registry: &FilledRegistry, selector: &str) -> ArtifactReference {
    format!("http://{}/team/mine{selector}", registry.server.address).parse().expect("a reference")
}

#[tokio::test]
async fn c_259_a_registry_that_gives_something_else_than_a_digest_names_is_refused() {
    let registry = FilledRegistry::open().await;
    let layer = registry.blob("team/mine", "application/wasm", b"good");
    let digest = fill(&registry, &layer);
    let (client, keyring) = (client(), Keyring::default());
    let components = WasmArtifacts { client: &client, keyring: &keyring };
    let by_digest = reference(&registry, &format!("@{digest}"));
    let found = components.find(&by_digest).await.expect("it is there");
    assert_eq!(components.read(&found).await, Ok(b"good".to_vec()));

    registry.put(&format!("/v2/team/mine/blobs/{}", sha256(b"good")), StatusCode::OK, b"evil");
    let refused = components.read(&found).await.expect_err("another blob");
    let expected = format!("it is {} and not {}; push it again", sha256(b"evil"), sha256(b"good"));
    assert!(refused.to_string().contains(&expected), "{refused}");

    registry.put(&format!("/v2/team/mine/manifests/{digest}"), StatusCode::OK, b"{}");
    let refused = components.find(&by_digest).await.expect_err("another manifest");
    assert!(refused.to_string().contains(&format!("it is {} and not {digest}", sha256(b"{}"))), "{refused}");
}

#[tokio::test]
async fn c_259_what_a_tag_stood_for_is_verified_and_read_when_it_moves_meanwhile() {
    let registry = FilledRegistry::open().await;
    let layer = registry.blob("team/mine", "application/wasm", b"first");
    let first = fill(&registry, &layer);
    let (client, keyring) = (client(), Keyring::default());
    let components = WasmArtifacts { client: &client, keyring: &keyring };
    let found = components.find(&reference(&registry, ":1")).await.expect("it is there");
    let layer = registry.blob("team/mine", "application/wasm", b"second");
    let second = fill(&registry, &layer);
    assert_eq!((found.digest().to_string(), components.read(&found).await), (first.clone(), Ok(b"first".to_vec())));
    let moved = components.find(&reference(&registry, ":1")).await.expect("it is there");
    assert_eq!(moved.digest().to_string(), second);
    // Of signatures it is asked by the digest as well.
    assert!(components.verify(&found, &[key()]).await.is_err());
    let asked = format!("/v2/team/mine/manifests/{}.sig", first.replace(':', "-"));
    assert!(registry.server.seen().iter().any(|seen| seen.path == asked));
}

/// Signatures under the tag of an artifact.
fn put_signatures(registry: &FilledRegistry, artifact: &str, layers: &[Value]) {
    let config = registry.blob("team/mine", "a/b", b"{}");
    let manifest = json!({"schemaVersion": 2, "config": config, "layers": layers}).to_string();
    let path = format!("/v2/team/mine/manifests/{}.sig", artifact.replace(':', "-"));
    registry.put(&path, StatusCode::OK, manifest.as_bytes());
}

#[tokio::test]
async fn c_258_limits_registry_signatures_of_an_artifact_and_what_they_are_over_are_bounded() {
    let registry = FilledRegistry::open().await;
    let layer = registry.blob("team/mine", "application/wasm", b"good");
    let digest = fill(&registry, &layer);
    let (client, keyring) = (client(), Keyring::default());
    let components = WasmArtifacts { client: &client, keyring: &keyring };
    let found = components.find(&reference(&registry, ":1")).await.expect("it is there");
    let verified = async || components.verify(&found, &[key()]).await.expect_err("no such key").to_string();
    let signature = |size: usize| {
        let mut layer = registry.blob("team/mine", SIMPLE_SIGNING, &vec![b' '; size]);
        layer["annotations"] = json!({SIGNATURE: "AAAA"});
        layer
    };
    put_signatures(&registry, &digest, &vec![signature(1); 64]);
    assert!(verified().await.contains("has signatures, and none was made with the key of a.pub"));
    put_signatures(&registry, &digest, &vec![signature(1); 65]);
    assert!(verified().await.contains("has more than 64 signatures, which is the limit"));
    put_signatures(&registry, &digest, &[signature(64 << 10)]);
    assert!(verified().await.contains("has signatures, and none was made"));
    put_signatures(&registry, &digest, &[signature((64 << 10) + 1)]);
    assert!(verified().await.contains("it has more than 65536 bytes, which is the limit"));
}

#[tokio::test]
async fn limits_registry_so_much_of_a_component_and_so_many_referrers_are_read() {
    let registry = FilledRegistry::open().await;
    let (client, keyring) = (client(), Keyring::default());
    let components = WasmArtifacts { client: &client, keyring: &keyring };
    let large = json!({"mediaType": "application/wasm", "digest": sha256(b"x"), "size": (64 << 20) + 1});
    let digest = fill(&registry, &large);
    let found = components.find(&reference(&registry, ":1")).await.expect("it is there");
    let refused = components.read(&found).await.expect_err("too large");
    assert_eq!(refused.problem().code, Code::LimitExceeded);
    assert!(
        refused.to_string().contains("has a component of 67108865 bytes, 67108864 are allowed; make it smaller"),
        "{refused}"
    );

    let one = json!({"mediaType": "a/b", "digest": digest, "size": 1});
    let listed = async |number: usize| {
        let index = json!({"schemaVersion": 2, "manifests": vec![one.clone(); number]}).to_string();
        registry.put(&format!("/v2/team/mine/referrers/{digest}"), StatusCode::OK, index.as_bytes());
        client.referrers(&reference(&registry, ":1").repository, found.digest(), &keyring).await
    };
    assert_eq!(listed(256).await.map(|listed| listed.len()), Ok(256));
    let refused = listed(257).await.expect_err("too many");
    assert!(refused.to_string().contains("it lists 257 referrers, 256 are looked at"), "{refused}");
}

/// A registry that leads an upload to another server, with the password.
#[tokio::test]
async fn c_258_nothing_is_pushed_to_another_server_than_the_one_that_is_named() {
    let server = Server::start(|request: Request| async move {
        let method = request.method().clone();
        let _ = to_bytes(request.into_body(), 1 << 20).await;
        if method != Method::POST {
            return status(404, Vec::new());
        }
        let answer = Response::builder().status(202).header(header::LOCATION, "http://127.0.0.1:9/upload?state=1");
        answer.body(Body::empty()).expect("an answer")
    })
    .await;
    let (client, keyring) = (client(), Keyring::default());
    let facts =
        ComponentFacts { imports: Vec::new(), exports: Vec::new(), created: String::new(), annotations: Vec::new() };
    let components = WasmArtifacts { client: &client, keyring: &keyring };
    let refused = components.push(&server.reference(":1"), b"x".to_vec(), &facts).await.expect_err("led elsewhere");
    assert!(matches!(refused, Fault::Invalid(_)), "{refused}");
    let expected = "the registry redirects an upload to another server, 127.0.0.1:9, to which nothing is pushed";
    assert!(refused.to_string().ends_with(expected), "{refused}");
}

fn asked(reference: &str) -> RegistryComponentRequest {
    let (keys, known) = (Vec::new(), None);
    RegistryComponentRequest { reference: reference.to_owned(), credentials: Credentials::default(), keys, known }
}

#[tokio::test]
async fn c_260_what_is_known_is_not_fetched_again_and_what_a_digest_names_needs_no_registry() {
    let registry = FilledRegistry::open().await;
    let layer = registry.blob("team/mine", "application/wasm", b"good");
    let digest = fill(&registry, &layer);
    let folder = tempfile::tempdir().expect("a folder");
    let place = format!("http://{}/team/mine", registry.server.address);
    let artifact = format!("{place}@{digest}");
    let repositories = start(&folder);
    let tagged = asked(&format!("{place}:1"));
    let good = RegistryComponent { artifact: artifact.clone(), content: Some(b"good".to_vec()) };
    assert_eq!(repositories.registry_component(&tagged).await, Ok(good.clone()));
    let known = RegistryComponentRequest { known: Some(artifact.clone()), ..tagged.clone() };
    assert_eq!(
        repositories.registry_component(&known).await,
        Ok(RegistryComponent { artifact: artifact.clone(), content: None })
    );
    assert_eq!(repositories.registry_component(&asked(&artifact)).await, Ok(good.clone()));

    // The next start of the operator, where the registry answers nothing.
    drop(repositories);
    registry.refuse(StatusCode::SERVICE_UNAVAILABLE);
    let repositories = start(&folder);
    assert_eq!(repositories.registry_component(&asked(&artifact)).await, Ok(good));
    let away = repositories.registry_component(&tagged).await.expect_err("nobody knows what the tag stands for");
    assert!(matches!(away, Fault::Later(_)), "{away}");
}

#[tokio::test]
async fn c_260_a_component_without_a_signature_by_the_keys_is_not_read() {
    let registry = FilledRegistry::open().await;
    let layer = registry.blob("team/mine", "application/wasm", b"good");
    let digest = fill(&registry, &layer);
    let folder = tempfile::tempdir().expect("a folder");
    let repositories = start(&folder);
    let pair = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).expect("a key");
    let signed = |pem: String| RegistryComponentRequest {
        keys: vec![("spec.verification.keys[0] of the Plugin mine".to_owned(), pem)],
        ..asked(&format!("http://{}/team/mine:1", registry.server.address))
    };
    let refused = repositories.registry_component(&signed(pair.public_key_pem())).await.expect_err("unsigned");
    let place = format!("http://{}/team/mine@{digest}", registry.server.address);
    let message = format!("{place} has no signature; sign it with: orangery plugin sign REFERENCE --key FILE");
    assert_eq!(refused, Fault::invalid(Code::ConfigurationProblem, message));
    let blob = format!("/v2/team/mine/blobs/{}", sha256(b"good"));
    assert!(!registry.server.seen().iter().any(|seen| seen.path == blob), "it was not read");
    let garbled = repositories.registry_component(&signed("x".to_owned())).await.expect_err("no key");
    assert!(garbled.to_string().starts_with("spec.verification.keys[0] of the Plugin mine is no PEM; "), "{garbled}");
}

#[tokio::test]
#[cfg_attr(without_docker_registry, ignore = "needs docker-registry: apt-get install docker-registry")]
async fn c_260_a_plugin_whose_credentials_are_refused_is_told_where_others_are_named() {
    let registry = RealRegistry::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let repositories = start_with(&folder, registry.settings());
    let mut request = asked(&format!("{}/team/mine:1", registry.host));
    let without = repositories.registry_component(&request).await.expect_err("no credentials");
    assert!(
        without.to_string().contains("without credentials, as the Plugin has none for it; name a Secret"),
        "{without}"
    );
    let config = Secret(registry.docker_config("wrong").into_bytes());
    request.credentials.pull_secrets = vec![("pull".to_owned(), [(".dockerconfigjson".to_owned(), config)].into())];
    let wrong = repositories.registry_component(&request).await.expect_err("a wrong password");
    let expected = "the registry answered 401 to a request with the credentials in the Secret pull; name a Secret whose credentials may \
                    read it in spec.source.oci.pullSecrets, in the namespace of the operator";
    assert!(wrong.to_string().ends_with(expected), "{wrong}");
    assert_eq!(wrong.problem().code, Code::Unauthorized);
}
