//! A web server on loopback that answers as a test says, and counts.

use std::{
    future::Future,
    io,
    net::SocketAddr,
    pin::Pin,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Router,
    body::Body,
    extract::Request,
    http::{HeaderMap, Response, StatusCode, header},
};
use bytes::Bytes;
use futures::{StreamExt, stream};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto::Builder,
    service::TowerToHyperService,
};
use orangery_core::{
    digest::content::{Algorithm, ContentDigest},
    error::Fault,
};
use orangery_registry::oci::{
    ArtifactReference, Client, Keyring, Manifest, OciRepository, PullLimits, RegistrySettings,
};
use rustls::{ServerConfig, pki_types::PrivateKeyDer};
use serde_json::json;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
    task::JoinHandle,
};
use tokio_rustls::TlsAcceptor;

type Answering = Pin<Box<dyn Future<Output = Response<Body>> + Send>>;

/// One request that came.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
}

/// Answers until it is dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    pub(crate) async fn start<A, F>(answer: A) -> Self
    where
        A: Fn(Request) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Response<Body>> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (app, seen) = counting(answer);
        let task = tokio::spawn(async move { axum::serve(listener, app).await.expect("a server") });
        Self { address, seen, task }
    }

    /// The same with TLS, and without for who speaks without; the second answer is what an operator writes to trust it.
    pub(crate) async fn start_with_tls<A, F>(answer: A) -> (Self, RegistrySettings)
    where
        A: Fn(Request) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Response<Body>> + Send + 'static,
    {
        let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).expect("a certificate");
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("a key");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.expect("versions").with_no_client_auth();
        let config = config.with_single_cert(vec![made.cert.der().clone()], key).expect("a certificate");
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (app, seen) = counting(answer);
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.expect("a connection");
                let service = TowerToHyperService::new(app.clone());
                let mut first = [0];
                // What a client with TLS says first.
                if stream.peek(&mut first).await.is_ok_and(|_| first != [0x16]) {
                    tokio::spawn(serve(stream, service));
                } else if let Ok(stream) = acceptor.accept(stream).await {
                    tokio::spawn(serve(stream, service));
                }
            }
        });
        let settings = RegistrySettings { limits: limits(), ..RegistrySettings::default() };
        let settings = settings.with_certificates(made.cert.pem().as_bytes()).expect("a certificate");
        (Self { address, seen, task }, settings)
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().expect("a lock").clone()
    }

    pub(crate) fn repository(&self) -> OciRepository {
        format!("http://{}/team/app", self.address).parse().expect("a repository")
    }

    pub(crate) fn reference(&self, selector: &str) -> ArtifactReference {
        format!("http://{}/team/app{selector}", self.address).parse().expect("a reference")
    }
}

async fn serve(stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static, service: TowerToHyperService<Router>) {
    let served = Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
    served.unwrap_or_else(|error| eprintln!("a connection of a test ended: {error}"));
}

/// Notes every request and answers it.
fn counting<A, F>(answer: A) -> (Router, Arc<Mutex<Vec<Seen>>>)
where
    A: Fn(Request) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    let seen = Arc::<Mutex<Vec<Seen>>>::default();
    let kept = Arc::clone(&seen);
    let fallback = move |request: Request| -> Answering {
        let (path, headers) = (request.uri().to_string(), request.headers().clone());
        kept.lock().expect("a lock").push(Seen { path, headers });
        Box::pin(answer(request))
    };
    (Router::new().fallback(fallback), seen)
}

/// Limits that a test reaches soon.
pub(crate) fn limits() -> PullLimits {
    PullLimits {
        manifest: 64 * 1024,
        blob: 256 * 1024,
        at_once: 256 << 20,
        component_versions: 256 << 20,
        wait: Duration::from_secs(2),
        grace: Duration::from_secs(1),
        of_a_mib: Duration::from_secs(1),
        connect: Duration::from_secs(5),
        idle: Duration::from_secs(1),
        manifest_time: Duration::from_secs(2),
        blob_time: Duration::from_secs(2),
        redirects: 3,
    }
}

pub(crate) fn client() -> Client {
    Client::new(RegistrySettings { limits: limits(), ..RegistrySettings::default() }).expect("a client")
}

pub(crate) async fn manifest(client: &Client, server: &Server) -> Result<Arc<Manifest>, Fault> {
    client.manifest(&server.reference(":1"), &Keyring::default()).await
}

/// What has come of a blob, and its size or why not.
pub(crate) async fn blob(
    client: &Client,
    server: &Server,
    content: &[u8],
    size: Option<u64>,
) -> Result<Vec<u8>, Fault> {
    fetched(client, server, content, size, &Keyring::default()).await
}

/// The same with credentials, of any size.
pub(crate) async fn blob_with(
    client: &Client,
    server: &Server,
    content: &[u8],
    keyring: &Keyring,
) -> Result<Vec<u8>, Fault> {
    fetched(client, server, content, None, keyring).await
}

async fn fetched(
    client: &Client,
    server: &Server,
    content: &[u8],
    size: Option<u64>,
    keyring: &Keyring,
) -> Result<Vec<u8>, Fault> {
    let mut all = Vec::new();
    let digest = ContentDigest::of(Algorithm::Sha256, content);
    let got = client.blob(&server.repository(), &digest, size, keyring, &mut all).await?;
    assert_eq!(got, all.len() as u64);
    Ok(all)
}

pub(crate) fn status(status: u16, body: impl Into<Body>) -> Response<Body> {
    let status = StatusCode::from_u16(status).expect("a status");
    Response::builder().status(status).body(body.into()).expect("an answer")
}

pub(crate) fn with(mut answer: Response<Body>, name: header::HeaderName, value: &str) -> Response<Body> {
    answer.headers_mut().append(name, value.parse().expect("a header"));
    answer
}

/// A manifest without layers.
pub(crate) fn small_manifest() -> String {
    let empty = ContentDigest::of(Algorithm::Sha256, b"{}").to_string();
    let config = json!({"mediaType": "application/vnd.oci.empty.v1+json", "digest": empty, "size": 2});
    json!({"schemaVersion": 2, "config": config, "layers": []}).to_string()
}

/// A body that never ends.
pub(crate) fn endless() -> Body {
    Body::from_stream(stream::repeat_with(|| Ok::<_, io::Error>(Bytes::from_static(&[b' '; 4096]))))
}

/// A body that says these bytes and then nothing more, without ending.
pub(crate) fn stuck_after(bytes: &'static [u8]) -> Body {
    Body::from_stream(stream::iter([Ok::<_, io::Error>(Bytes::from_static(bytes))]).chain(stream::pending()))
}

/// A body that ends as a connection does that breaks: after what came before has been sent.
pub(crate) fn broken_after(bytes: &'static [u8]) -> Body {
    let broken = stream::once(async {
        tokio::task::yield_now().await;
        Err(io::Error::other("the test breaks the connection"))
    });
    Body::from_stream(stream::iter([Ok(Bytes::from_static(bytes))]).chain(broken))
}
