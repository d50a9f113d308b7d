use std::collections::BTreeMap;

use axum::{Router, extract::Request, http::StatusCode};
use orangery_core::port::LendableSlot;
use orangery_ocm::{Descriptor, Resource};
use orangery_turns::{Turn, in_slot};
use serde_json::json;
use tokio::{net::TcpListener, sync::watch, time::timeout};

use super::*;
use crate::{
    access::{Fetched, ResourceAccess},
    graph::GraphNode,
    oci::{Consumer, PullLimits, RegistrySettings},
};

#[test]
fn limits_registry_so_many_answers_of_registries_are_in_memory() {
    let folder = tempfile::tempdir().expect("a folder");
    let cache = ContentCache::open(folder.path(), 1 << 20).expect("a cache");
    let client = Client::new(RegistrySettings::default()).expect("a client");
    let version_memory = Arc::new(VersionMemory::new(0, &PullLimits::default()));
    let registries = Registries::new(client, (Arc::new(cache), version_memory), 0);
    let repository: OciRepository = "r.example/a".parse().expect("a repository");
    let of = |index: usize| ContentDigest::of(Algorithm::Sha256, &index.to_be_bytes());
    let key = |index: usize| (repository.clone(), of(0), Arc::default(), of(index));
    for index in 0..MOST_KEPT + 5 {
        registries.proven.put(key(index), ());
    }
    let kept = |index: &usize| registries.proven.get(&key(*index)).is_some();
    assert_eq!((0..MOST_KEPT + 5).filter(kept).count(), MOST_KEPT);
    let descriptor =
        || OciDescriptor { media_type: String::new(), digest: of(0), size: 0, annotations: BTreeMap::new() };
    let manifest = Arc::new(Manifest {
        digest: of(0),
        artifact: of(0),
        media_type: String::new(),
        artifact_type: None,
        config: descriptor(),
        layers: Vec::new(),
        annotations: BTreeMap::new(),
    });
    let key = |index: usize| (repository.artifact(ArtifactSelector::Digest(of(index))), of(0), Arc::default());
    for index in 0..3 {
        registries.manifests.put_sized(key(index), Arc::clone(&manifest), MOST_OF_MANIFESTS / 2);
    }
    let kept = [0, 1, 2].map(|index| registries.manifests.get(&key(index)).is_some());
    assert_eq!(kept, [false, true, true]);
}

/// How often a call lends its slot at the moment.
struct CountedSlot(watch::Sender<usize>);

impl LendableSlot for CountedSlot {
    fn lend(&self) {
        self.0.send_modify(|lent| *lent += 1);
    }

    fn take_back(&self) {
        self.0.send_modify(|lent| *lent -= 1);
    }
}

/// Registries, all of whose turns to read something are taken by others; this server speaks no TLS.
async fn busy(folder: &tempfile::TempDir, server: &str) -> (Arc<Registries>, [Turn; 2]) {
    let cache = ContentCache::open(folder.path(), 1 << 20).expect("a cache");
    let plain_http = [server.trim_start_matches("http://").to_owned()].into();
    let client = Client::new(RegistrySettings { plain_http, ..RegistrySettings::default() }).expect("a client");
    let version_memory = Arc::new(VersionMemory::new(1 << 20, &PullLimits::default()));
    let registries = Arc::new(Registries::new(client, (Arc::new(cache), version_memory), 1 << 20));
    let turns =
        [registries.turns().acquire(&Some("a".into())).await, registries.turns().acquire(&Some("b".into())).await];
    (registries, turns)
}

/// What comes of something whose call lends its slot until others have had their turns.
async fn after_others<T>(turns: [Turn; 2], work: impl Future<Output = T>) -> T {
    let lent = watch::Sender::new(0);
    let mut told = lent.subscribe();
    let others = async {
        told.wait_for(|lent| *lent > 0).await.expect("the slot is there");
        drop(turns);
    };
    let both = async { tokio::join!(in_slot(Arc::new(CountedSlot(lent)), work), others) };
    let (done, ()) = timeout(Duration::from_secs(20), both).await.expect("it waits for its turn, and lends its slot");
    done
}

/// A blob of so many bytes that is there.
struct HeldBlob(usize);

impl Blobs for HeldBlob {
    fn local<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<ReservedContent, Fault>> {
        Box::pin(async { Ok(vec![b' '; self.0].into()) })
    }

    fn relative(&self, _: &str) -> Option<String> {
        None
    }
}

#[tokio::test]
async fn c_320_c_323_what_is_large_is_unpacked_and_compared_in_turns_and_waits_with_its_slot_lent() {
    let folder = tempfile::tempdir().expect("a folder");
    let (registries, turns) = busy(&folder, "").await;
    let reach = ResourceAccess { registries, keyring: Arc::default() };
    let unpacked = after_others(turns, reach.in_turn(String::new, || Ok(7))).await;
    assert_eq!(unpacked, Ok(Ok(7)));

    let access = json!({"type": "localBlob", "localReference": "x", "mediaType": "text/plain"});
    let resource = json!({"name": "x", "version": "1", "type": "plain", "relation": "local", "access": access});
    let descriptor = Descriptor::parse(&json!({
        "meta": {"schemaVersion": "v2"},
        "component": {"name": "example.org/a", "version": "1", "provider": "us", "resources": [resource]},
    }));
    let descriptor = Arc::new(descriptor.expect("a descriptor"));
    let resource: &Resource = descriptor.resources.first().expect("a resource");
    let blobs = Arc::new(HeldBlob((1 << 20) + 1));
    let node = GraphNode { descriptor: Arc::clone(&descriptor), signed: None, blobs, references: Vec::new() };
    let (registries, turns) = busy(&folder, "").await;
    let reach = ResourceAccess { registries, keyring: Arc::default() };
    let compared = after_others(turns, reach.fetch(&node, resource)).await;
    assert!(matches!(compared, Ok(Fetched::Blob(content, _)) if content.bytes.len() == (1 << 20) + 1));
}

/// A server that answers these paths.
async fn serving(answers: Vec<(String, Vec<u8>)>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let app = Router::new().fallback(move |request: Request| {
        let answer = answers.iter().find(|(path, _)| path == request.uri().path()).map(|(_, answer)| answer.clone());
        async move { answer.ok_or(StatusCode::NOT_FOUND) }
    });
    tokio::spawn(async move { axum::serve(listener, app).await.expect("a server") });
    format!("http://{address}")
}

#[tokio::test]
async fn c_320_c_323_descriptors_and_indexes_are_read_in_turns_and_wait_with_the_slot_lent() {
    let repository = "/v2/components/component-descriptors/example.org/a";
    let blob = |media_type: &str, content: &str| {
        let digest = ContentDigest::of(Algorithm::Sha256, content.as_bytes()).to_string();
        let answer = (format!("{repository}/blobs/{digest}"), content.as_bytes().to_vec());
        (answer, json!({"mediaType": media_type, "digest": digest, "size": content.len()}))
    };
    let descriptor = json!({
        "meta": {"schemaVersion": "v2"},
        "component": {"name": "example.org/a", "version": "1.0.0", "provider": "us"},
    });
    let (descriptor, layer) =
        blob("application/vnd.ocm.software.component-descriptor.v2+json", &descriptor.to_string());
    let config = json!({"componentDescriptorLayer": layer}).to_string();
    let (config, named) = blob("application/vnd.ocm.software.component.config.v1+json", &config);
    let manifest = json!({"schemaVersion": 2, "config": named, "layers": [layer]}).to_string();
    let manifest = (format!("{repository}/manifests/1.0.0"), manifest.into_bytes());
    let index = ("/index.yaml".to_owned(), b"entries: {shop: [{version: 1.0.0, urls: [shop.tgz]}]}".to_vec());
    let server = serving(vec![descriptor, config, manifest, index]).await;

    let folder = tempfile::tempdir().expect("a folder");
    let (registries, turns) = busy(&folder, &server).await;
    let base = format!("{server}/components");
    let source = RegistrySource::new(registries, Arc::default(), &base, NameMapping::UrlPath).expect("a source");
    let memory = source.registries.version_memory.none_of(&None);
    let found = after_others(turns, source.find(("example.org/a", "1.0.0"), &memory)).await;
    assert_eq!(found.expect("an answer").expect("a version").descriptor.name, "example.org/a");

    let (registries, turns) = busy(&folder, &server).await;
    let index = FileRequest::new(&format!("{server}/index.yaml"), Consumer::Charts).expect("an address");
    let found = after_others(turns, registries.chart(&index, "shop", "1.0.0", &Keyring::default())).await;
    assert_eq!(found.expect("it is there").url, "shop.tgz");
}

#[tokio::test]
async fn c_302_a_blob_that_is_kept_is_as_long_as_the_manifest_says_that_names_it() {
    let content = b"content".to_vec();
    let digest = ContentDigest::of(Algorithm::Sha256, &content);
    let server = serving(vec![(format!("/v2/a/blobs/{digest}"), content.clone())]).await;
    let folder = tempfile::tempdir().expect("a folder");
    let registries = keeping(&folder, &server, 1 << 20, PullLimits::default());
    let repository: OciRepository = format!("{server}/a").parse().expect("a repository");
    let blob = |size: u64| OciDescriptor {
        media_type: String::new(),
        digest: digest.clone(),
        size,
        annotations: BTreeMap::new(),
    };
    let keyring = Keyring::default();
    let got = async |size: u64| {
        let got = registries.blob(&repository, &blob(size), &keyring).await;
        got.map(|content| content.bytes().len()).map_err(|fault| fault.problem().message.clone())
    };
    let at_hand = async |size: u64| registries.blob_at_hand(&repository, &blob(size), &keyring).await.is_some();
    assert!(!at_hand(7).await, "it was not fetched");
    let fetched = got(1).await;
    assert!(fetched.is_err());
    assert_eq!(got(7).await, Ok(7));
    assert_eq!(got(1).await, fetched, "the same of what is kept");
    assert_eq!((at_hand(7).await, at_hand(1).await), (true, false));
}

/// What a component version at a server is made of.
fn component() -> Vec<(String, Vec<u8>)> {
    let repository = "/v2/components/component-descriptors/example.org/a";
    let blob = |media_type: &str, content: &str| {
        let digest = ContentDigest::of(Algorithm::Sha256, content.as_bytes()).to_string();
        let answer = (format!("{repository}/blobs/{digest}"), content.as_bytes().to_vec());
        (answer, json!({"mediaType": media_type, "digest": digest, "size": content.len()}))
    };
    let component = json!({"name": "example.org/a", "version": "1.0.0", "provider": "us"});
    let descriptor = json!({"meta": {"schemaVersion": "v2"}, "component": component}).to_string();
    let (descriptor, layer) = blob("application/vnd.ocm.software.component-descriptor.v2+json", &descriptor);
    let config = json!({"componentDescriptorLayer": layer}).to_string();
    let (config, named) = blob("application/vnd.ocm.software.component.config.v1+json", &config);
    let manifest = json!({"schemaVersion": 2, "config": named, "layers": [layer]}).to_string();
    vec![descriptor, config, (format!("{repository}/manifests/1.0.0"), manifest.into_bytes())]
}

/// Registries that keep descriptors of so many bytes; this server speaks no TLS.
fn keeping(folder: &tempfile::TempDir, server: &str, bytes: u64, limits: PullLimits) -> Arc<Registries> {
    let cache = ContentCache::open(folder.path(), 1 << 20).expect("a cache");
    let plain_http = [server.trim_start_matches("http://").to_owned()].into();
    let version_memory = Arc::new(VersionMemory::new(1 << 20, &limits));
    let client = Client::new(RegistrySettings { plain_http, limits, ..RegistrySettings::default() }).expect("a client");
    Arc::new(Registries::new(client, (Arc::new(cache), version_memory), bytes))
}

/// Finds the component version; how many requests the source has a descriptor for afterwards.
async fn is_kept(registries: &Arc<Registries>, server: &str) -> bool {
    let source = RegistrySource::new(
        Arc::clone(registries),
        Arc::default(),
        &format!("{server}/components"),
        NameMapping::UrlPath,
    )
    .expect("a source");
    let memory = registries.version_memory.none_of(&None);
    let found = source.find(("example.org/a", "1.0.0"), &memory).await.expect("an answer").expect("a version");
    assert_eq!(memory.used(), found.bytes, "what is kept of it counts as what is open");
    let repository = source.versions.repository("example.org/a").expect("a repository");
    let asker = source.keyring.fingerprint(&repository);
    let key = (repository, asker, source.keyring.sources(), None, "1.0.0".to_owned());
    registries.versions.get(&key).is_some()
}

/// A manifest of nothing.
fn empty_manifest() -> Arc<Manifest> {
    let of = || ContentDigest::of(Algorithm::Sha256, b"");
    let config = OciDescriptor { media_type: String::new(), digest: of(), size: 0, annotations: BTreeMap::new() };
    let (media_type, artifact_type, layers, annotations) = (String::new(), None, Vec::new(), BTreeMap::new());
    Arc::new(Manifest { digest: of(), artifact: of(), media_type, artifact_type, config, layers, annotations })
}

#[tokio::test]
async fn c_320_what_is_kept_of_descriptors_and_manifests_counts_and_is_bounded() {
    let server = serving(component()).await;
    let folder = tempfile::tempdir().expect("a folder");
    for (bytes, expected) in [(1 << 20, true), (16, false)] {
        let registries = keeping(&folder, &server, bytes, PullLimits::default());
        assert_eq!(is_kept(&registries, &server).await, expected, "{bytes}");
    }
    // Manifests that fill what there is for them leave no room for one more, whether it comes from the server or is known from before.
    let reference: ArtifactReference =
        format!("{server}/components/component-descriptors/example.org/a:1.0.0").parse().expect("a reference");
    let filled = |registries: &Registries| {
        let of = |text: &str| ContentDigest::of(Algorithm::Sha256, text.as_bytes());
        let key = (reference.repository.artifact(ArtifactSelector::Digest(of("x"))), of("y"), Arc::default());
        registries.manifests.put_sized(key.clone(), empty_manifest(), MOST_OF_MANIFESTS - 16);
        key
    };
    let registries = keeping(&folder, &server, 1 << 20, PullLimits::default());
    let key = filled(&registries);
    registries.manifest(&reference, &Keyring::default()).await.expect("a manifest");
    assert!(registries.manifests.get(&key).is_none());
    // The same question, where there is no time for an answer.
    let limits = PullLimits { manifest_time: Duration::ZERO, ..PullLimits::default() };
    let registries = keeping(&folder, &server, 1 << 20, limits);
    let key = filled(&registries);
    registries.manifest(&reference, &Keyring::default()).await.expect("what it answered before");
    assert!(registries.manifests.get(&key).is_none());
}

#[tokio::test]
async fn c_320_two_are_read_at_once_and_an_index_keeps_its_share_until_it_is() {
    let memory = VersionMemory::new(0, &PullLimits::default());
    let (a, b, c) = (Some("a".into()), Some("b".into()), Some("c".into()));
    let both = (memory.turns.acquire(&a).await, memory.turns.acquire(&b).await);
    assert!(futures::poll!(Box::pin(memory.turns.acquire(&c))).is_pending());
    drop(both);

    let text = b"entries: {shop: [{version: 1.0.0, urls: [shop.tgz]}]}".to_vec();
    let at_once = text.len() as u64;
    let server = serving(vec![("/index.yaml".to_owned(), text)]).await;
    let folder = tempfile::tempdir().expect("a folder");
    let limits = PullLimits { at_once, wait: Duration::from_millis(50), ..PullLimits::default() };
    let registries = keeping(&folder, &server, 0, limits);
    let turns = [registries.turns().acquire(&a).await, registries.turns().acquire(&b).await];
    let index = FileRequest::new(&format!("{server}/index.yaml"), Consumer::Charts).expect("an address");
    let lent = watch::Sender::new(0);
    let mut told = lent.subscribe();
    let keyring = Keyring::default();
    let asked = in_slot(Arc::new(CountedSlot(lent)), registries.chart(&index, "shop", "1.0.0", &keyring));
    let beside = async {
        told.wait_for(|lent| *lent > 0).await.expect("it waits for its turn");
        assert!(registries.client.reserve(1, &c, "it").await.is_err(), "the text of the index holds all there is");
        drop(turns);
    };
    let (found, ()) = timeout(Duration::from_secs(20), async { tokio::join!(asked, beside) }).await.expect("in time");
    assert_eq!(found.expect("it is there").url, "shop.tgz");
    assert!(registries.client.reserve(1, &c, "it").await.is_ok());
}
