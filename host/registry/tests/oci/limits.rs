//! Limits of what registries answer (`docs/limits.md`).

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    extract::Request,
    http::{StatusCode, header},
};
use orangery_core::digest::sha256;
use orangery_ocm::{
    ComponentRequest, ComponentSource, ComponentVersions, Credentials, Overwrite, OverwriteSide, Secret,
    VersionReference,
};
use orangery_registry::oci::{DockerConfig, Keyring, PullLimits, RegistrySettings};
use serde_json::{Value, json};

use crate::{
    filled_registry::{FilledRegistry, start_with},
    server::{Server, client, endless, limits, manifest, small_manifest, status, with},
};

const REPOSITORY: &str = "components/component-descriptors/example.org/a";

/// The path of the manifest of the component.
fn manifest_path() -> String {
    format!("/v2/{REPOSITORY}/manifests/1.0.0")
}

/// A registry with one component version, and its manifest.
async fn with_a_component() -> (FilledRegistry, Value) {
    let filled = FilledRegistry::open().await;
    filled.component("example.org/a", &json!([]), &[]);
    let document = serde_json::from_str(&filled.body(&manifest_path())).expect("JSON");
    (filled, document)
}

/// The sentence about the component version, once its manifest is another one.
async fn refused(filled: &FilledRegistry, document: &Value) -> String {
    filled.put(&manifest_path(), StatusCode::OK, document.to_string().as_bytes());
    let folder = tempfile::tempdir().expect("a folder");
    let settings = RegistrySettings {
        limits: PullLimits { blob: 64 << 20, manifest: 4 << 20, ..limits() },
        ..RegistrySettings::default()
    };
    let opened = start_with(&folder, settings).open(&filled.request("example.org/a")).await;
    opened.err().expect("refused").to_string()
}

#[tokio::test]
async fn limits_registry_the_config_of_a_component_version_has_a_size() {
    let (filled, mut document) = with_a_component().await;
    document["config"]["size"] = json!((1 << 20) + 1);
    let message = refused(&filled, &document).await;
    assert!(message.contains("it has more than 1048576 bytes, which is the limit: it is announced with"), "{message}");
}

#[tokio::test]
async fn limits_registry_a_descriptor_in_a_registry_has_a_size() {
    let (filled, mut document) = with_a_component().await;
    document["layers"][0]["size"] = json!((16 << 20) + 1);
    let config = json!({"componentDescriptorLayer": document["layers"][0]}).to_string();
    let kind = "application/vnd.ocm.software.component.config.v1+json";
    document["config"] = filled.blob(REPOSITORY, kind, config.as_bytes());
    let message = refused(&filled, &document).await;
    assert!(message.contains("it has more than 16777216 bytes, which is the limit: it is announced with"), "{message}");
}

/// A layer that is a short text and a large value.
fn annotated_layer() -> Value {
    json!({"digest": format!("sha256:{}", "0".repeat(64)), "size": 0, "annotations": {"": ""}})
}

#[tokio::test]
async fn c_320_limits_registry_a_manifest_takes_so_much_memory() {
    let (filled, mut document) = with_a_component().await;
    document["layers"].as_array_mut().expect("layers").extend(vec![annotated_layer(); 8_000]);
    let message = refused(&filled, &document).await;
    assert!(message.contains("it takes more than the 16777216 bytes of memory that are allowed"), "{message}");
}

#[tokio::test]
async fn c_320_the_manifests_of_component_versions_count_before_their_descriptors_are_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let limits = PullLimits { component_versions: 4 << 20, manifest: 4 << 20, ..limits() };
    let host = start_with(&folder, RegistrySettings { limits, ..RegistrySettings::default() });
    let (filled, mut document) = with_a_component().await;
    document["layers"].as_array_mut().expect("layers").extend(vec![annotated_layer(); 3_000]);
    filled.put(&manifest_path(), StatusCode::OK, document.to_string().as_bytes());
    let refused = host.open(&filled.request("example.org/a")).await.err().expect("refused").to_string();
    let why = "the component version, with what is read of it, takes more than the 1835008 bytes of memory that are \
               allowed; refer to fewer or smaller ones, or have the operator given more memory (resources of its chart)";
    assert_eq!(refused, why);
    assert_eq!(filled.server.seen().len(), 1, "the manifest alone");
}

#[tokio::test]
async fn c_320_a_component_version_that_is_kept_counts_each_time_that_it_is_open() {
    let folder = tempfile::tempdir().expect("a folder");
    let wait = Duration::from_millis(10);
    let limits = PullLimits { component_versions: 64 << 20, manifest: 4 << 20, wait, ..limits() };
    let host = start_with(&folder, RegistrySettings { limits, ..RegistrySettings::default() });
    let (filled, mut document) = with_a_component().await;
    document["layers"].as_array_mut().expect("layers").extend(vec![annotated_layer(); 1_000]);
    filled.put(&manifest_path(), StatusCode::OK, document.to_string().as_bytes());
    let mut open = Vec::new();
    let refused = loop {
        match host.open(&filled.request("example.org/a")).await {
            Ok(version) => open.push(version),
            Err(fault) => break fault.to_string(),
        }
    };
    assert!(refused.starts_with("there was no room in memory for the component version within "), "{refused}");
    assert!((10..60).contains(&open.len()), "{} of 56 MiB", open.len());
    drop(open);
    assert!(host.open(&filled.request("example.org/a")).await.is_ok());
}

#[tokio::test]
async fn c_284_limits_registry_a_repository_context_has_a_size_wherever_it_stands() {
    let folder = tempfile::tempdir().expect("a folder");
    let host = start_with(&folder, RegistrySettings::default());
    let usual = FilledRegistry::open().await.request("example.org/a");
    let long = json!({"type": "OCIRegistry", "baseUrl": "r.example", "more": "x".repeat(16 << 10)});
    let side = OverwriteSide { repository_context: Some(long.clone().into()), ..OverwriteSide::default() };
    let (name, version) = ("example.org/a".to_owned(), "1.0.0".to_owned());
    let reference = VersionReference { repository_context: Some(long.clone().into()), name: name.clone(), version };
    let inline = json!({"meta": {"schemaVersion": "v2"}, "component": {"name": name, "version": "1.0.0", "provider": "x",
        "repositoryContexts": [long], "sources": [], "componentReferences": [], "resources": []}});
    let rule = |source: &OverwriteSide, substitution: &OverwriteSide| {
        vec![Overwrite { source: source.clone(), substitution: substitution.clone() }]
    };
    let none = OverwriteSide::default();
    let why = "a repositoryContext takes more than 16384 bytes of memory; write no more into it than the type of the repository and \
               where it is";
    for request in [
        ComponentRequest { repository_context: Some(long.clone().into()), ..usual.clone() },
        ComponentRequest { overwrites: rule(&side, &none), ..usual.clone() },
        ComponentRequest { overwrites: rule(&none, &side), ..usual.clone() },
        ComponentRequest::of(ComponentSource::Reference(reference)),
        ComponentRequest::of(ComponentSource::Inline(inline.into())),
    ] {
        assert_eq!(host.open(&request).await.err().map(|fault| fault.to_string()).as_deref(), Some(why));
    }
}

#[tokio::test]
async fn c_281_the_manifest_of_an_artifact_counts_for_as_long_as_the_artifact_is_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let filled = FilledRegistry::open().await;
    let layer = filled.blob("charts/app", "application/vnd.cncf.helm.chart.content.v1.tar+gzip", b"chart");
    let mut document = json!({"schemaVersion": 2, "config": layer.clone(), "layers": [layer]});
    document["layers"].as_array_mut().expect("layers").extend(vec![annotated_layer(); 1_000]);
    filled.put("/v2/charts/app/manifests/1.0.0", StatusCode::OK, document.to_string().as_bytes());
    let limits = PullLimits { component_versions: 16 << 20, manifest: 4 << 20, ..limits() };
    let plain_http = [filled.server.address.to_string()].into();
    let host = start_with(&folder, RegistrySettings { limits, plain_http, ..RegistrySettings::default() });
    let artifacts = host.artifacts(&Credentials::default()).expect("artifacts");
    let reference = format!("{}/charts/app:1.0.0", filled.server.address);
    let mut held = Vec::new();
    let refused = loop {
        match artifacts.oci(&reference).await {
            Ok(artifact) => held.push(artifact),
            Err(fault) => break fault.to_string(),
        }
    };
    assert!(refused.starts_with(&format!("the manifest of {reference}: ")), "{refused}");
    assert!(refused.ends_with("and others have what is left; it is tried again"), "{refused}");
    assert!((3..15).contains(&held.len()), "{} of 7 MiB", held.len());
    held.clear();
    let artifact = artifacts.oci(&reference).await.expect("it has room again");
    assert_eq!(artifact.content().await.expect("its content").as_slice(), b"chart");
}

#[tokio::test]
async fn c_280_long_credentials_count_for_as_long_as_they_are_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let limits = PullLimits { component_versions: 8 << 20, ..limits() };
    let host = start_with(&folder, RegistrySettings { limits, ..RegistrySettings::default() });
    let of = |length: usize| {
        let docker = json!({"auths": {"r.example": {"username": "u", "password": "p".repeat(length)}}}).to_string();
        let secret = [(".dockerconfigjson".to_owned(), Secret(docker.into_bytes()))].into();
        Credentials { pull_secrets: vec![("pull".to_owned(), secret)], ..Credentials::default() }
    };
    let mut held = Vec::new();
    let refused = loop {
        match host.artifacts(&of(1 << 20)) {
            Ok(artifacts) => held.push(artifacts),
            Err(fault) => break fault.to_string(),
        }
    };
    assert!(refused.starts_with("the credentials of the Context: "), "{refused}");
    assert_eq!(held.len(), 3, "of 3.5 MiB");
    assert!(host.artifacts(&of(1 << 10)).is_ok(), "short ones count nowhere");
    held.clear();
    assert!(host.artifacts(&of(1 << 20)).is_ok());
}

#[tokio::test]
async fn limits_registry_the_head_of_an_answer_has_a_size() {
    for (length, expected) in [(60 << 10, "the registry does not have it (404"), (256 << 10, "cannot be reached")] {
        let answer = move |_: Request| async move {
            with(status(404, ""), header::HeaderName::from_static("x-long"), &"x".repeat(length))
        };
        let fault = manifest(&client(), &Server::start(answer).await).await.expect_err("no manifest").to_string();
        assert!(fault.contains(expected), "{fault}");
    }
}

#[tokio::test]
async fn limits_registry_the_index_of_a_chart_repository_has_a_size() {
    let server = Server::start(|_: Request| async { status(200, endless()) }).await;
    let limits = PullLimits { blob: 1 << 30, ..limits() };
    let plain_http = [server.address.to_string()].into();
    let settings = RegistrySettings { limits, plain_http, ..RegistrySettings::default() };
    let folder = tempfile::tempdir().expect("a folder");
    let artifacts = start_with(&folder, settings).artifacts(&Credentials::default()).expect("artifacts");
    let repository = format!("http://{}", server.address);
    let fault = artifacts.helm_repository(&repository, "shop", "1.0.0").await.err().expect("refused").to_string();
    assert!(fault.ends_with("it has more than 67108864 bytes, which is the limit"), "{fault}");
}

#[tokio::test]
async fn limits_registry_the_name_of_a_chart_has_a_length() {
    let server = Server::start(|_: Request| async { status(200, "entries: {}") }).await;
    let plain_http = [server.address.to_string()].into();
    let settings = RegistrySettings { limits: limits(), plain_http, ..RegistrySettings::default() };
    let folder = tempfile::tempdir().expect("a folder");
    let artifacts = start_with(&folder, settings).artifacts(&Credentials::default()).expect("artifacts");
    let repository = format!("http://{}", server.address);
    let long = "x".repeat(254);
    for (chart, version) in [(long.as_str(), "1"), ("shop", &long)] {
        let fault = artifacts.helm_repository(&repository, chart, version).await.err().expect("refused").to_string();
        assert!(fault.ends_with("has a name or a version of more than 253 bytes, which none has"), "{fault}");
    }
    assert_eq!(server.seen().len(), 0);
}

#[tokio::test]
async fn limits_registry_the_answer_of_a_token_server_has_a_size() {
    let server = Server::start(|request: Request| async move {
        let host = request.headers().get(header::HOST).expect("a host").to_str().expect("text").to_owned();
        match request.uri().path() {
            "/token" => status(200, endless()),
            _ => with(status(401, ""), header::WWW_AUTHENTICATE, &format!("Bearer realm=\"http://{host}/token\"")),
        }
    })
    .await;
    let fault = manifest(&client(), &server).await.expect_err("no token").to_string();
    assert!(fault.ends_with("it has more than 262144 bytes, which is the limit"), "{fault}");
}

#[tokio::test]
async fn c_320_limits_registry_a_token_has_a_size() {
    for (length, expected) in [
        (16 << 10, "the registry does not have it (404"),
        ((16 << 10) + 1, "answered with a token of more than 16384 bytes"),
    ] {
        let server = Server::start(move |request: Request| async move {
            let host = request.headers().get(header::HOST).expect("a host").to_str().expect("text").to_owned();
            match (request.uri().path(), request.headers().get(header::AUTHORIZATION)) {
                ("/token", _) => status(200, json!({"token": "x".repeat(length)}).to_string()),
                (_, Some(_)) => status(404, ""),
                (_, None) => {
                    with(status(401, ""), header::WWW_AUTHENTICATE, &format!("Bearer realm=\"http://{host}/token\""))
                }
            }
        })
        .await;
        let fault = manifest(&client(), &server).await.expect_err("no manifest").to_string();
        assert!(fault.contains(expected), "{fault}");
    }
}

#[tokio::test]
async fn limits_registry_the_body_of_an_error_is_read_so_far() {
    for (filling, expected) in [(100, "answered 400 (NAME_INVALID)"), (64 * 1024, "answered 400")] {
        let body = json!({"errors": [{"code": "NAME_INVALID"}], "more": "x".repeat(filling)}).to_string();
        let server = Server::start(move |_: Request| {
            let body = body.clone();
            async move { status(400, body) }
        })
        .await;
        let fault = manifest(&client(), &server).await.expect_err("refused").to_string();
        assert!(fault.ends_with(&format!("the registry {expected}")), "{fault}");
    }
}

#[tokio::test]
async fn limits_registry_so_many_credentials_are_tried_for_one_answer() {
    let sent = Arc::<Mutex<Vec<String>>>::default();
    let seen = Arc::clone(&sent);
    let server = Server::start(move |request: Request| {
        let authorization = request.headers().get(header::AUTHORIZATION).map(|value| value.to_str().expect("text"));
        seen.lock().expect("a lock").extend(authorization.map(str::to_owned));
        let answer = match authorization {
            Some(_) => status(403, ""),
            None => with(status(401, ""), header::WWW_AUTHENTICATE, "Basic realm=\"r\""),
        };
        async move { answer }
    })
    .await;
    let keyring = (0..12).fold(Keyring::default(), |keyring, index| {
        let auths = json!({"auths": {server.address.to_string(): {"username": format!("u{index}"), "password": "p"}}});
        let config = DockerConfig::read(&auths.to_string(), &format!("Secret team/s{index}"));
        keyring.with_docker_config(config.expect("a configuration"))
    });
    client().manifest(&server.reference(":1"), &keyring).await.expect_err("refused");
    let mut sent = sent.lock().expect("a lock").clone();
    sent.dedup();
    assert_eq!(sent.len(), 10);
}

#[tokio::test]
async fn limits_registry_indexes_within_indexes_in_a_registry_end() {
    for (indexes, expected) in [(2, None), (3, Some("more than 3 indexes stand in one another"))] {
        let filled = FilledRegistry::open().await;
        let mut content = small_manifest();
        for _ in 0..indexes {
            let digest = sha256(content.as_bytes());
            filled.put(&format!("/v2/team/app/manifests/{digest}"), StatusCode::OK, content.as_bytes());
            content = json!({"schemaVersion": 2, "manifests": [{"digest": digest, "size": 1}]}).to_string();
        }
        filled.put("/v2/team/app/manifests/1", StatusCode::OK, content.as_bytes());
        let got = manifest(&client(), &filled.server).await.err().map(|fault| fault.to_string());
        let ends = expected.map(|why| got.as_ref().is_some_and(|message| message.ends_with(why)));
        assert!(ends.unwrap_or(got.is_none()), "{indexes}: {got:?}");
    }
}
