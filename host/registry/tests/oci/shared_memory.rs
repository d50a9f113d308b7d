//! Content that is on its way into memory shares its room by namespaces, whatever servers do: hang, drip and tell no length.

use std::{sync::Arc, time::Duration};

use axum::{body::Body, extract::Request, http::Response};
use orangery_core::{
    error::{Code, Fault},
    port::LendableSlot,
};
use orangery_ocm::{ComponentRequest, ComponentVersions as _, Credentials, ResourceReference};
use orangery_registry::oci::{
    Client, Consumer, FileRequest, Keyring, OciDescriptor, Pull as _, PullLimits, RegistrySettings,
};
use orangery_turns::in_slot;
use serde_json::json;
use tokio::time::timeout;

use crate::{
    filled_registry::{FilledRegistry, local, request, start_with},
    hostile::{CONTENT, Sort, message_of},
    server::{Server, limits, status, stuck_after},
};

/// A blob of this size, of which nothing but the size is known.
fn announced(size: u64) -> OciDescriptor {
    let digest = format!("sha256:{}", "0".repeat(64));
    serde_json::from_value(serde_json::json!({"digest": digest, "size": size})).expect("a descriptor")
}

/// Longer than any test takes.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// Whatever is to be had is there by then.
const SOON: Duration = Duration::from_secs(30);
/// How long content may be slow here while others wait.
const GRACE: Duration = Duration::from_millis(200);

/// A client whose content may hang as long as nobody else waits, with so much room for it.
fn patient(at_once: u64, wait: Duration, grace: Duration) -> Arc<Client> {
    let limits =
        PullLimits { blob: 128 << 20, at_once, wait, grace, idle: DAY, blob_time: DAY, manifest_time: DAY, ..limits() };
    Arc::new(Client::new(RegistrySettings { limits, ..RegistrySettings::default() }).expect("a client"))
}

type Fetching = tokio::task::JoinHandle<Result<Vec<u8>, Fault>>;

/// A Context without credentials.
fn credentials(namespace: &'static str) -> Credentials {
    Credentials { namespace: Some(namespace.into()), ..Credentials::default() }
}

/// Its keyring.
fn keyring(namespace: &'static str) -> Keyring {
    Keyring::of_context(&credentials(namespace)).expect("a keyring").0
}

/// Fetches a blob of this size for a namespace, of which nothing but the size is known.
fn fetch(client: &Arc<Client>, server: &Server, namespace: &'static str, size: u64) -> Fetching {
    let (client, repository) = (Arc::clone(client), server.repository());
    tokio::spawn(async move { client.small_blob(&repository, &announced(size), size, &keyring(namespace)).await })
}

/// A server whose blobs never end: a byte every 50 ms.
async fn dripping() -> Server {
    Server::start(|_: Request| async {
        let every = tokio::time::interval(Duration::from_millis(50));
        let drops = futures::stream::unfold(every, |mut every| async {
            every.tick().await;
            Some((Ok::<_, std::io::Error>(bytes::Bytes::from_static(b" ")), every))
        });
        status(200, Body::from_stream(drops))
    })
    .await
}

/// A server that has a blob, and the blob.
async fn sound() -> (Server, OciDescriptor) {
    let server = Server::start(|_: Request| async { status(200, CONTENT) }).await;
    let digest = orangery_core::digest::sha256(CONTENT);
    let blob = serde_json::json!({"digest": digest, "size": CONTENT.len()});
    (server, serde_json::from_value(blob).expect("a descriptor"))
}

/// Waits until a server was asked so often.
async fn asked(server: &Server, count: usize) -> usize {
    while server.seen().len() < count {
        tokio::task::yield_now().await;
    }
    server.seen().len()
}

#[tokio::test]
async fn c_88_limits_registry_blobs_that_are_fetched_at_once_share_their_bytes() {
    let server = Server::start(|_: Request| async { Response::new(stuck_after(b"")) }).await;
    let other = Server::start(|_: Request| async { Response::new(stuck_after(b"")) }).await;
    let client = patient(256 << 20, DAY, DAY);
    let first = fetch(&client, &server, "a", 100 << 20);
    assert_eq!(asked(&server, 1).await, 1);
    // What it gets beside leaves room for others, which a small one after it does not get around.
    let _second = fetch(&client, &server, "a", 100 << 20);
    let _small = fetch(&client, &server, "a", 1);
    let _of_another = fetch(&client, &other, "b", 50 << 20);
    assert_eq!(asked(&other, 1).await, 1);
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    assert_eq!(server.seen().len(), 1);
    first.abort();
    assert_eq!(asked(&server, 3).await, 3);
}

#[tokio::test]
async fn c_88_limits_registry_a_registry_that_drips_gives_its_room_back_and_one_that_hangs_is_waited_for_so_long() {
    let dripping = dripping().await;
    let (sound, blob) = sound().await;
    let client = patient(4 << 20, DAY, GRACE);
    let slow = fetch(&client, &dripping, "a", 4 << 20);
    assert_eq!(asked(&dripping, 1).await, 1);
    let got = client.small_blob(&sound.repository(), &blob, 1 << 20, &keyring("b")).await;
    assert_eq!(got, Ok(CONTENT.to_vec()));
    let (sort, code, message) = message_of(&slow.await.expect("no panic").expect_err("too slow"));
    assert_eq!((sort, code), (Sort::Later, Code::Timeout));
    assert!(message.ends_with(" while others waited for room; it is asked for again"), "{message}");
    // What has its grace is waited for so long.
    let hanging = Server::start(|_: Request| async { Response::new(stuck_after(b"")) }).await;
    let client = patient(4 << 20, Duration::from_millis(100), DAY);
    let _hangs = fetch(&client, &hanging, "a", 4 << 20);
    assert_eq!(asked(&hanging, 1).await, 1);
    let fault = client.small_blob(&sound.repository(), &blob, 1 << 20, &keyring("b")).await.expect_err("no room");
    let (sort, code, message) = message_of(&fault);
    assert_eq!((sort, code), (Sort::Later, Code::Timeout));
    assert!(message.contains("there was no room for it within "), "{message}");
}

#[tokio::test]
async fn c_133_content_that_has_come_holds_its_room_until_nobody_has_it() {
    let (sound, blob) = sound().await;
    let client = patient(CONTENT.len() as u64, Duration::from_millis(100), DAY);
    let held = client.content(&sound.repository(), &blob, 1 << 20, &keyring("a")).await.expect("content");
    let fetch = async || client.small_blob(&sound.repository(), &blob, 1 << 20, &keyring("b")).await;
    let (_, _, message) = message_of(&fetch().await.expect_err("no room"));
    assert!(message.contains("there was no room for it within "), "{message}");
    drop(held);
    assert_eq!(fetch().await, Ok(CONTENT.to_vec()));
}

#[tokio::test]
async fn c_133_a_manifest_that_drips_gives_its_room_back_where_others_wait() {
    let dripping = dripping().await;
    let (sound, blob) = sound().await;
    // As much as a manifest may have here.
    let client = patient(64 << 10, DAY, GRACE);
    let slow = {
        let (client, repository) = (Arc::clone(&client), dripping.repository());
        let digest = announced(1).digest;
        tokio::spawn(async move { client.manifest_bytes(&repository, &digest, &keyring("a")).await.map(drop) })
    };
    assert_eq!(asked(&dripping, 1).await, 1);
    // Whoever asks once its answer has begun waits for the room that it has.
    let others = async {
        while !slow.is_finished() {
            let got = client.small_blob(&sound.repository(), &blob, 1 << 20, &keyring("b")).await;
            assert_eq!(got, Ok(CONTENT.to_vec()));
        }
    };
    timeout(SOON, others).await.expect("it ends");
    let (sort, code, message) = message_of(&slow.await.expect("no panic").expect_err("too slow"));
    assert_eq!((sort, code), (Sort::Later, Code::Timeout));
    assert!(message.ends_with(" while others waited for room; it is asked for again"), "{message}");
}

/// How many requests a server is asked at once, at most, once nothing more comes.
async fn at_once(server: &Server, expected: usize) -> usize {
    assert_eq!(asked(server, expected).await, expected);
    let _ = timeout(Duration::from_millis(300), async {
        while server.seen().len() <= expected {
            tokio::task::yield_now().await;
        }
    })
    .await;
    server.seen().len()
}

#[tokio::test]
async fn c_323_limits_registry_exchanges_have_places_and_a_namespace_leaves_some_to_others() {
    let hanging = Server::start(|_: Request| async { Response::new(stuck_after(b"")) }).await;
    let (sound, blob) = sound().await;
    let client = patient(256 << 20, DAY, DAY);
    let tasks: Vec<_> = (0..200).map(|_| fetch(&client, &hanging, "a", 1)).collect();
    assert_eq!(at_once(&hanging, 56).await, 56, "it leaves as many, and those that are kept for who has none");
    let got = timeout(SOON, client.small_blob(&sound.repository(), &blob, 1 << 20, &keyring("b"))).await;
    assert_eq!(got, Ok(Ok(CONTENT.to_vec())));
    tasks.iter().for_each(tokio::task::JoinHandle::abort);
    let got = timeout(SOON, client.small_blob(&sound.repository(), &blob, 1 << 20, &keyring("a"))).await;
    assert_eq!(got, Ok(Ok(CONTENT.to_vec())), "what is dropped gives its place back");
}

/// One that hangs before it answers, or in the middle, holds no more than one that drips.
#[tokio::test]
async fn c_133_a_server_that_hangs_gives_its_room_back_where_others_wait() {
    let (sound, blob) = sound().await;
    for begins in [false, true] {
        let hanging = Server::start(move |_: Request| async move {
            if !begins {
                std::future::pending::<()>().await;
            }
            Response::new(stuck_after(b" "))
        })
        .await;
        let client = patient(4 << 20, DAY, GRACE);
        let slow = fetch(&client, &hanging, "a", 4 << 20);
        assert_eq!(asked(&hanging, 1).await, 1);
        let keyring = keyring("b");
        let got = timeout(SOON, client.small_blob(&sound.repository(), &blob, 1 << 20, &keyring)).await;
        assert_eq!(got, Ok(Ok(CONTENT.to_vec())), "begins: {begins}");
        let message = slow.await.expect("no panic").expect_err("too slow").to_string();
        assert!(message.contains(" bytes of it came within 0 s while others waited for room"), "{message}");
    }
}

#[tokio::test]
async fn c_133_a_namespace_that_names_many_slow_servers_takes_the_room_of_nobody_else_nor_its_own_for_long() {
    let servers = futures::future::join_all((0..8).map(|_| dripping())).await;
    let (sound, blob) = sound().await;
    let slow = |client: &Arc<Client>| -> Vec<Fetching> {
        servers.iter().map(|server| fetch(client, server, "a", 1 << 20)).collect()
    };
    let count = || servers.iter().map(|server| server.seen().len()).sum::<usize>();
    let client = patient(4 << 20, DAY, DAY);
    let fetching = slow(&client);
    while count() < 2 {
        tokio::task::yield_now().await;
    }
    let got = timeout(SOON, client.small_blob(&sound.repository(), &blob, 1 << 20, &keyring("b"))).await;
    assert_eq!(got, Ok(Ok(CONTENT.to_vec())));
    assert_eq!(count(), 2, "half of it, however many servers there are");
    fetching.iter().for_each(tokio::task::JoinHandle::abort);
    let client = patient(4 << 20, DAY, GRACE);
    let _fetching = slow(&client);
    while count() < 4 {
        tokio::task::yield_now().await;
    }
    let got = timeout(SOON, client.small_blob(&sound.repository(), &blob, 1 << 20, &keyring("a"))).await;
    assert_eq!(got, Ok(Ok(CONTENT.to_vec())), "its own sound registry has room soon as well");
}

/// What is kept of a component version that somebody opened is read with the memory of whoever reads it.
#[tokio::test]
async fn c_133_what_another_namespace_has_opened_is_read_without_room_of_that_one() {
    let (filled, dripping) = (FilledRegistry::open().await, dripping().await);
    let far = filled.blob("components/component-descriptors/example.org/a", "text/plain", b"far");
    filled.component("example.org/a", &json!([local("far", &far)]), &[far]);
    let plain_http = [dripping.address.to_string()].into();
    let limits = patient(2 << 20, DAY, DAY).settings().limits.clone();
    let folder = tempfile::tempdir().expect("a folder");
    let host = start_with(&folder, RegistrySettings { limits, plain_http, ..RegistrySettings::default() });
    let request =
        |namespace| ComponentRequest { credentials: credentials(namespace), ..filled.request("example.org/a") };
    host.open(&request("a")).await.expect("a component");
    let (artifacts, charts) = (host.artifacts(&credentials("a")), format!("http://{}", dripping.address));
    let artifacts = artifacts.expect("artifacts");
    let _drips = tokio::spawn(async move { artifacts.helm_repository(&charts, "shop", "1.0.0").await.map(drop) });
    assert_eq!(asked(&dripping, 1).await, 1);
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    let version = host.open(&request("b")).await.expect("a component");
    let far = timeout(SOON, version.content(&ResourceReference::named("far"))).await;
    assert_eq!(far.expect("room").expect("a blob").bytes.as_slice(), b"far");
}

/// Files of web servers are content like that of registries: one whose length is not told holds what has come, and more.
#[tokio::test]
async fn c_133_files_of_web_servers_share_the_room_with_blobs() {
    let dripping = dripping().await;
    let (sound, blob) = sound().await;
    let file = format!("http://{}/index.yaml", dripping.address);
    let limits = patient(1 << 20, DAY, GRACE).settings().limits.clone();
    let plain_http = [dripping.address.to_string()].into();
    let settings = RegistrySettings { limits, plain_http, ..RegistrySettings::default() };
    let client = Arc::new(Client::new(settings).expect("a client"));
    let slow = {
        let client = Arc::clone(&client);
        tokio::spawn(async move {
            let file = FileRequest::new(&file, Consumer::Charts).expect("an address");
            client.file(&file, &keyring("a")).await
        })
    };
    assert_eq!(asked(&dripping, 1).await, 1);
    while !slow.is_finished() {
        let got = timeout(SOON, client.small_blob(&sound.repository(), &blob, 1 << 20, &keyring("b"))).await;
        assert_eq!(got, Ok(Ok(CONTENT.to_vec())));
    }
    let message = slow.await.expect("no panic").expect_err("too slow").to_string();
    assert!(message.contains("while others waited for room"), "{message}");
}

/// A client for these servers, which speak no TLS, and a file of one of them for a namespace.
fn of_files(servers: &[&Server], at_once: u64, wait: Duration) -> Arc<Client> {
    let limits = patient(at_once, wait, DAY).settings().limits.clone();
    let plain_http = servers.iter().map(|server| server.address.to_string()).collect();
    Arc::new(Client::new(RegistrySettings { limits, plain_http, ..RegistrySettings::default() }).expect("a client"))
}

async fn file(client: Arc<Client>, address: String, namespace: &'static str) -> Result<Vec<u8>, Fault> {
    let file = FileRequest::new(&address, Consumer::Charts).expect("an address");
    client.file(&file, &keyring(namespace)).await.map(|received| received.bytes)
}

/// What has come of the requests so far is taken in.
async fn turn_over() {
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn c_133_files_of_web_servers_take_the_share_of_the_namespace_that_they_are_for() {
    let slow = futures::future::join_all((0..3).map(|_| dripping())).await;
    let sound = Server::start(|_: Request| async { status(200, "packed") }).await;
    let servers: Vec<&Server> = slow.iter().chain([&sound]).collect();
    let client = of_files(&servers, 4 << 20, DAY);
    let address = |server: &Server| format!("http://{}/a.tgz", server.address);
    let _slow: Vec<_> =
        slow.iter().map(|server| tokio::spawn(file(Arc::clone(&client), address(server), "a"))).collect();
    for server in &slow {
        asked(server, 1).await;
    }
    turn_over().await;
    let got = timeout(SOON, file(client, address(&sound), "b")).await;
    assert_eq!(got, Ok(Ok(b"packed".to_vec())));
}

/// One whose length is not told takes more room as more of it comes: three MiB take all of four, since room is doubled.
#[tokio::test]
async fn c_133_a_file_without_a_length_takes_room_for_what_has_come_of_it() {
    static CAME: [u8; 3 << 20] = [b' '; 3 << 20];
    let endless = Server::start(|_: Request| async { Response::new(stuck_after(&CAME)) }).await;
    let (sound, blob) = sound().await;
    let client = of_files(&[&endless], 4 << 20, Duration::from_millis(500));
    let _slow = tokio::spawn(file(Arc::clone(&client), format!("http://{}/a.tgz", endless.address), "a"));
    assert_eq!(asked(&endless, 1).await, 1);
    // As long as it has less, there is room for others.
    let ended = async {
        loop {
            let got = client.small_blob(&sound.repository(), &blob, 1 << 20, &keyring("b")).await;
            if let Err(fault) = got {
                break message_of(&fault).0;
            }
        }
    };
    assert_eq!(timeout(SOON, ended).await, Ok(Sort::Later), "no room is left");
}

#[tokio::test]
async fn c_133_an_index_that_another_namespace_reads_is_not_waited_for() {
    let is_first = Arc::new(std::sync::atomic::AtomicBool::new(true));
    let server = Server::start(move |request: Request| {
        let hangs = is_first.swap(false, std::sync::atomic::Ordering::SeqCst);
        async move {
            if hangs {
                std::future::pending::<()>().await;
            }
            let index = "entries: {shop: [{version: 1.0.0, urls: [shop.tgz]}]}";
            status(200, if request.uri().path().ends_with("index.yaml") { index } else { "packed" })
        }
    })
    .await;
    let folder = tempfile::tempdir().expect("a folder");
    let plain_http = [server.address.to_string()].into();
    let limits = patient(2 << 20, DAY, DAY).settings().limits.clone();
    let host = start_with(&folder, RegistrySettings { limits, plain_http, ..RegistrySettings::default() });
    let charts = format!("http://{}/stable", server.address);
    let (artifacts, of_a) = (host.artifacts(&credentials("a")).expect("artifacts"), charts.clone());
    let _hangs = tokio::spawn(async move { artifacts.helm_repository(&of_a, "shop", "1.0.0").await.map(drop) });
    assert_eq!(asked(&server, 1).await, 1);
    let artifacts = host.artifacts(&credentials("b")).expect("artifacts");
    let got = timeout(SOON, artifacts.helm_repository(&charts, "shop", "1.0.0")).await;
    assert_eq!(got.expect("in time").map(drop), Ok(()));
}

#[tokio::test]
async fn c_88_limits_registry_a_blob_is_no_larger_than_what_may_come_in_at_once() {
    let server = Server::start(|_: Request| async { Response::new(stuck_after(b"")) }).await;
    let limits = PullLimits { blob: 128 << 20, at_once: 4 << 20, ..limits() };
    let client = Client::new(RegistrySettings { limits, ..RegistrySettings::default() }).expect("a client");
    let fetch = async |size: u64| {
        let fetched = client.small_blob(&server.repository(), &announced(size), 128 << 20, &Keyring::default()).await;
        fetched.unwrap_err().to_string()
    };
    let refused = fetch((4 << 20) + 1).await;
    assert!(refused.contains("4194305") && refused.contains("4194304"), "{refused}");
    assert_eq!(server.seen().len(), 0, "it is not asked for");
    assert_ne!(fetch(4 << 20).await, refused);
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn c_323_a_small_blob_has_the_time_of_a_manifest() {
    let server = Server::start(|_: Request| async { Response::new(stuck_after(b"")) }).await;
    let times = (Duration::from_millis(100), Duration::from_millis(1_100));
    let limits = PullLimits { blob: 4 << 20, idle: DAY, manifest_time: times.0, blob_time: times.1, ..limits() };
    let client = Client::new(RegistrySettings { limits, ..RegistrySettings::default() }).expect("a client");
    let ends_after = async |size: u64| {
        let fetched = client.small_blob(&server.repository(), &announced(size), size, &Keyring::default()).await;
        let message = fetched.unwrap_err().to_string();
        message.rsplit(": ").next().unwrap_or_default().to_owned()
    };
    assert_eq!(ends_after(1 << 20).await, "it was not complete after 0 s");
    assert_eq!(ends_after((1 << 20) + 1).await, "it was not complete after 1 s");
}

/// The slot of a call.
struct Slot;

impl LendableSlot for Slot {
    fn lend(&self) {}

    fn take_back(&self) {}
}

/// A component version with many resources, one of which is a blob that is there.
async fn with_many_resources() -> (FilledRegistry, String) {
    let filled = FilledRegistry::open().await;
    let text = filled.blob("components/component-descriptors/example.org/a", "text/plain", b"hello");
    let resources: Vec<_> = (0..600).map(|index| local(&format!("r{index}"), &text)).collect();
    filled.component("example.org/a", &json!(resources), std::slice::from_ref(&text));
    (filled, text.get("digest").and_then(serde_json::Value::as_str).expect("a digest").to_owned())
}

#[tokio::test]
async fn c_326_a_component_version_is_given_back_while_its_blob_drips_where_others_wait() {
    let (filled, text) = with_many_resources().await;
    let filled = Arc::new(filled);
    let shared = Arc::clone(&filled);
    let server = Server::start(move |request: Request| {
        let (filled, path) = (Arc::clone(&shared), request.uri().path().to_owned());
        let drips = path.ends_with(&text);
        async move { if drips { Response::new(stuck_after(b"")) } else { filled.answer(&path) } }
    })
    .await;
    let request =
        |namespace| ComponentRequest { credentials: credentials(namespace), ..request("example.org/a", &server) };
    let host = |component_versions| {
        let limits = PullLimits {
            component_versions,
            grace: GRACE,
            wait: SOON,
            idle: DAY,
            blob_time: DAY,
            manifest_time: DAY,
            ..limits()
        };
        let folder = tempfile::tempdir().expect("a folder");
        (start_with(&folder, RegistrySettings { limits, ..RegistrySettings::default() }), folder)
    };
    // The least memory in which one namespace has room for it: two have not.
    let mut least = 0;
    while {
        least += 128 << 10;
        host(least).0.open(&request("a")).await.is_err()
    } {}
    let (host, _folder) = host(least);
    let before = server.seen().len();
    let drips = in_slot(Arc::new(Slot), async {
        let version = host.open(&request("a")).await.expect("there is room");
        version.content(&ResourceReference::named("r0")).await.map(drop)
    });
    let beside = async {
        // Manifest, configuration and descriptor, and then the blob.
        assert_eq!(asked(&server, before + 4).await, before + 4);
        host.open(&request("b")).await.map(drop)
    };
    let (drips, beside) = timeout(SOON, async { tokio::join!(drips, beside) }).await.expect("in time");
    assert_eq!(beside, Ok(()));
    let (sort, code, message) = message_of(&drips.expect_err("it drips"));
    assert_eq!((sort, code), (Sort::Later, Code::Timeout));
    assert!(message.contains(" while others waited for the memory that the component version holds"), "{message}");
}

#[tokio::test]
async fn c_133_a_manifest_that_another_namespace_waits_for_is_not_waited_for() {
    let is_first = Arc::new(std::sync::atomic::AtomicBool::new(true));
    let server = Server::start(move |_: Request| {
        let hangs = is_first.swap(false, std::sync::atomic::Ordering::SeqCst);
        async move {
            if hangs {
                std::future::pending::<()>().await;
            }
            status(404, "")
        }
    })
    .await;
    let client = patient(2 << 20, DAY, DAY);
    let of_a = (Arc::clone(&client), server.reference(":1"));
    let _hangs = tokio::spawn(async move { of_a.0.manifest(&of_a.1, &keyring("a")).await.map(drop) });
    assert_eq!(asked(&server, 1).await, 1);
    let got = timeout(SOON, client.manifest(&server.reference(":1"), &keyring("b"))).await;
    assert!(got.expect("in time").is_err(), "it is asked for, and there is none");
}
