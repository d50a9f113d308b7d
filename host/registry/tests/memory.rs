//! What a large blob costs in memory: it is there once, whoever hands it on. A process of its own, as it measures itself.

use std::{collections::HashMap, fs, future::Future, net::SocketAddr, sync::Arc};

use axum::{
    Router,
    body::Body,
    extract::Request,
    http::{Response, StatusCode},
};
use bytes::Bytes;
use futures::stream;
use orangery_core::digest::content::{Algorithm, ContentDigest, Hasher};
use orangery_ocm::{
    ComponentRequest, ComponentSource, ComponentVersions, ResourceReference, SignaturePolicy, VersionReference,
};
use orangery_registry::{Repositories, RepositorySettings, oci};
use serde_json::json;
use tokio::{net::TcpListener, sync::Mutex};

const PIECE: usize = 64 << 10;
const PIECES: usize = 1024;
const SIZE: usize = PIECE * PIECES;

/// The most memory that this process had at once since [`forget_peak`], in bytes.
fn peak() -> usize {
    let status = fs::read_to_string("/proc/self/status").expect("a file");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a line");
    line.trim().trim_end_matches("kB").trim().parse::<usize>().expect("a number") << 10
}

fn forget_peak() {
    fs::write("/proc/self/clear_refs", "5").expect("a file");
}

/// The process is measured by one test at a time.
static MEASURED: Mutex<()> = Mutex::const_new(());

/// How much more memory the work had at its peak than there was before.
async fn cost<T>(work: impl Future<Output = T>) -> (usize, T) {
    forget_peak();
    let before = peak();
    let done = work.await;
    (peak() - before, done)
}

/// Serves what there is under a path; the address.
async fn serving(answers: impl Fn(&str) -> Option<Vec<u8>> + Clone + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let app = Router::new().fallback(move |request: Request| {
        let content = answers(request.uri().path());
        async move { content.ok_or(StatusCode::NOT_FOUND) }
    });
    tokio::spawn(async move { axum::serve(listener, app).await.expect("a server") });
    address
}

/// Repositories with these limits, whose cache is in a folder.
fn repositories(folder: &tempfile::TempDir, limits: oci::PullLimits) -> Repositories {
    let settings = RepositorySettings {
        folders: Vec::new(),
        cache: folder.path().to_owned(),
        cache_bytes: 1 << 30,
        oci: oci::RegistrySettings { limits, ..oci::RegistrySettings::default() },
        signatures: SignaturePolicy::default(),
    };
    Repositories::new(settings).expect("repositories")
}

#[tokio::test]
async fn a_large_blob_is_in_memory_once_when_it_is_fetched_and_when_it_is_kept() {
    let _measured = MEASURED.lock().await;
    static PATTERN: [u8; PIECE] = [7; PIECE];
    let mut hasher = Hasher::new(Algorithm::Sha256);
    (0..PIECES).for_each(|_| hasher.update(&PATTERN));
    let digest = hasher.finish().to_string();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let app = Router::new().fallback(|_: Request| async {
        let pieces = stream::iter((0..PIECES).map(|_| Ok::<_, std::io::Error>(Bytes::from_static(&PATTERN))));
        Response::new(Body::from_stream(pieces))
    });
    tokio::spawn(async move { axum::serve(listener, app).await.expect("a server") });

    let folder = tempfile::tempdir().expect("a folder");
    let host = repositories(&folder, oci::PullLimits::default());
    let access = json!({
        "type": "ociBlob", "ref": format!("http://{address}/team/app"), "digest": digest, "size": SIZE,
        "mediaType": "text/plain",
    });
    let resource = json!({"name": "far", "version": "1", "type": "plain", "relation": "external", "access": access});
    let request = ComponentRequest::of(ComponentSource::Inline(
        json!({
            "meta": {"schemaVersion": "v2"},
            "component": {"name": "example.org/a", "version": "1", "provider": "us", "resources": [resource]},
        })
        .into(),
    ));
    for round in ["fetched", "kept"] {
        let version = host.open(&request).await.expect("a component");
        let far = ResourceReference::named("far");
        let (cost, content) = cost(version.content(&far)).await;
        assert_eq!(content.expect("a blob").bytes.len(), SIZE);
        println!("{round}: {cost} bytes more for a blob of {SIZE}");
        assert!((SIZE..SIZE + SIZE / 4).contains(&cost), "{round}: {cost} bytes more for a blob of {SIZE}");
    }
}

/// What 20 versions whose descriptors are short, and large values, have of a server.
fn versions_with_large_labels() -> HashMap<String, Vec<u8>> {
    let mut answers = HashMap::new();
    for number in 0..20 {
        let value = vec![json!({"": 0}); 36_000];
        let descriptor = json!({
            "meta": {"schemaVersion": "v2"},
            "component": {
                "name": format!("example.org/c{number}"), "version": "1.0.0", "provider": "us", "repositoryContexts": [],
                "sources": [], "componentReferences": [], "resources": [], "labels": [{"name": "l", "value": value}],
            },
        });
        let repository = format!("/v2/components/component-descriptors/example.org/c{number}");
        let mut blob = |media_type: &str, content: Vec<u8>| {
            let digest = ContentDigest::of(Algorithm::Sha256, &content).to_string();
            let named = json!({"mediaType": media_type, "digest": digest, "size": content.len()});
            answers.insert(format!("{repository}/blobs/{digest}"), content);
            named
        };
        let layer = blob("application/vnd.ocm.software.component-descriptor.v2+json", descriptor.to_string().into());
        let config = json!({"componentDescriptorLayer": layer}).to_string().into();
        let config = blob("application/vnd.ocm.software.component.config.v1+json", config);
        let manifest = json!({"schemaVersion": 2, "config": config, "layers": [layer]}).to_string();
        answers.insert(format!("{repository}/manifests/1.0.0"), manifest.into());
    }
    answers
}

#[tokio::test]
async fn c_320_descriptors_that_are_large_values_are_not_kept_beyond_their_sum() {
    let _measured = MEASURED.lock().await;
    let answers = Arc::new(versions_with_large_labels());
    let address = serving(move |path| answers.get(path).cloned()).await;
    let folder = tempfile::tempdir().expect("a folder");
    let limits = oci::PullLimits { component_versions: 128 << 20, ..oci::PullLimits::default() };
    let host = repositories(&folder, limits);
    let context = json!({"type": "OCIRegistry", "baseUrl": format!("http://{address}"), "subPath": "components"});
    let open = async {
        for number in 0..20 {
            let source = ComponentSource::Reference(VersionReference {
                repository_context: Some(context.clone().into()),
                name: format!("example.org/c{number}"),
                version: "1.0.0".to_owned(),
            });
            let opened = host.open(&ComponentRequest::of(source)).await.expect("a component version");
            assert_eq!(opened.descriptor().name, format!("example.org/c{number}"));
        }
    };
    let (cost, ()) = cost(open).await;
    assert!(cost < 200 << 20, "{} MiB", cost >> 20);
}

/// A blueprint of so many bytes that do not pack, in its archive.
fn large_blueprint(number: u64, bytes: usize) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    let mut state = number + 1;
    let noise = std::iter::repeat_with(|| {
        // xorshift64: what is packed has to be as large as it is unpacked.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    let noise: Vec<u8> = noise.take(bytes / 8).flatten().collect();
    let blueprint = b"apiVersion: landscaper.gardener.cloud/v1alpha1\nkind: Blueprint\n".as_slice();
    for (name, content) in [("blueprint.yaml", blueprint), ("noise", &noise)] {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, name, content).expect("an entry");
    }
    archive.into_inner().expect("an archive")
}

#[tokio::test]
async fn c_133_blobs_that_wait_to_be_unpacked_hold_their_room() {
    const BLUEPRINTS: u64 = 24;
    let _measured = MEASURED.lock().await;
    let by_digest: HashMap<String, Vec<u8>> = (0..BLUEPRINTS)
        .map(|number| large_blueprint(number, 6 << 20))
        .map(|content| (ContentDigest::of(Algorithm::Sha256, &content).to_string(), content))
        .collect();
    let digests: Vec<String> = by_digest.keys().cloned().collect();
    let sizes: HashMap<String, usize> =
        by_digest.iter().map(|(digest, content)| (digest.clone(), content.len())).collect();
    let by_digest = Arc::new(by_digest);
    let address = serving(move |path| by_digest.get(path.rsplit('/').next()?).cloned()).await;
    let folder = tempfile::tempdir().expect("a folder");
    let host = repositories(&folder, oci::PullLimits { at_once: 16 << 20, ..oci::PullLimits::default() });
    let read = |digest: &String| {
        let access = json!({
            "type": "ociBlob", "ref": format!("http://{address}/team/app"), "digest": digest, "size": sizes[digest],
            "mediaType": "application/vnd.gardener.landscaper.blueprint.layer.v1.tar",
        });
        let resource = json!({
            "name": "blueprint", "version": "1", "type": "blueprint", "relation": "external", "access": access,
        });
        let request = ComponentRequest::of(ComponentSource::Inline(
            json!({
                "meta": {"schemaVersion": "v2"},
                "component": {"name": "example.org/a", "version": "1", "provider": "us", "resources": [resource]},
            })
            .into(),
        ));
        let host = &host;
        async move {
            let version = host.open(&request).await.expect("a component");
            let files = version.blueprint(&ResourceReference::named("blueprint")).await.expect("a blueprint");
            assert!(files.read("noise").is_ok());
        }
    };
    let all = || futures::future::join_all(digests.iter().map(read));
    all().await;
    let (cost, _) = cost(all()).await;
    println!("{} MiB for {BLUEPRINTS} blueprints of 6 MiB", cost >> 20);
    assert!(cost < 80 << 20, "{} MiB", cost >> 20);
}
