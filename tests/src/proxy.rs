//! A proxy before an API server that refuses, loses, holds and repeats what it is told to: the network and the server at
//! their worst, between an operator and any server that a kubeconfig leads to.

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use futures::{Stream, StreamExt as _, stream};
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::{Frame, Incoming};
use hyper_util::{rt::TokioIo, server::conn::auto::Builder};
use kube::{
    Client, Config,
    client::{Body, ClientBuilder},
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::{Value, json};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
};

use crate::write_log::WriteLog;

/// What is asked of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyRequest {
    /// The verb of HTTP.
    pub method: Method,
    /// Where.
    pub path: String,
    /// Whether it is a watch.
    pub watches: bool,
    /// The bearer token that it comes with, which the proxy replaces by the credentials of the server.
    pub token: Option<String>,
}

impl ProxyRequest {
    /// Whether it changes an object of the work. Events are told beside it, and the Lease says who may do it.
    pub fn is_write(&self) -> bool {
        self.method != Method::GET && !self.path.contains("/events") && !self.is_lease()
    }

    /// Whether it asks for the Lease of the operator.
    pub fn is_lease(&self) -> bool {
        self.path.contains("/leases")
    }
}

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The server answers it.
    Pass,
    /// It is answered with this status; the server never sees it.
    Refuse(StatusCode),
    /// It is answered that it is one too many, and may come again after so many seconds.
    Later(u32),
    /// The connection breaks before the server sees it.
    Cut,
    /// The server does it, and the connection breaks before its answer.
    Lose,
    /// Nothing happens, for ever.
    Hold,
    /// The server does it; its answer never comes.
    HoldAnswer,
}

/// What becomes of an event of a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Echo {
    /// It is told.
    Pass,
    /// It is not told, and nothing shows that.
    Drop,
    /// It is told twice.
    Double,
    /// The watch ends before it.
    Break,
    /// Instead of it the watch says that it is too old to go on.
    Expire,
}

/// Decides what goes wrong. Called for each request in the order of arrival.
pub trait Fates: Send + Sync + 'static {
    /// What becomes of a request.
    fn request(&self, asked: &ProxyRequest) -> Fate;

    /// What becomes of an event of a watch. Bookmarks are none.
    fn event(&self, _watch: &ProxyRequest) -> Echo {
        Echo::Pass
    }

    /// The server has done what [`Fate::HoldAnswer`] keeps the answer of.
    fn answered(&self, _asked: &ProxyRequest) {}

    /// While this says true, the connection of this request is there and nothing comes along it: no request, no answer, no event.
    fn frozen(&self, _asked: &ProxyRequest) -> Option<watch::Receiver<bool>> {
        None
    }

    /// Where writes and their answers are noted, if anywhere.
    fn write_log(&self) -> Option<&WriteLog> {
        None
    }
}

/// A network that works.
pub struct Sound;

impl Fates for Sound {
    fn request(&self, _: &ProxyRequest) -> Fate {
        Fate::Pass
    }
}

/// Where requests go, and what becomes of them on the way.
#[derive(Clone)]
struct Way {
    server: Client,
    fates: Arc<dyn Fates>,
    /// How many watches go on.
    watches: Arc<AtomicUsize>,
}

/// A watch that goes on, and is counted until it is dropped.
struct CountedWatch(Arc<AtomicUsize>);

impl CountedWatch {
    fn begin(count: &Arc<AtomicUsize>) -> CountedWatch {
        count.fetch_add(1, Ordering::SeqCst);
        CountedWatch(Arc::clone(count))
    }
}

impl Drop for CountedWatch {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A running proxy; ends when dropped.
pub struct Proxy {
    address: SocketAddr,
    watches: Arc<AtomicUsize>,
    /// Aborted when dropped.
    _task: JoinSet<()>,
}

type Answer = Response<UnsyncBoxBody<Bytes, kube::Error>>;

impl Proxy {
    /// Starts one before the server of a kubeconfig, on any free port.
    pub async fn start(kubeconfig: &str, fates: Arc<dyn Fates>) -> Proxy {
        Proxy::start_at(([127, 0, 0, 1], 0).into(), kubeconfig, fates).await
    }

    /// The same at this address.
    pub async fn start_at(address: SocketAddr, kubeconfig: &str, fates: Arc<dyn Fates>) -> Proxy {
        let kubeconfig = Kubeconfig::from_yaml(kubeconfig).expect("the kubeconfig is one");
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
        let mut config = config.expect("the kubeconfig is complete");
        config.default_retry = false;
        let server = ClientBuilder::try_from(config).expect("a client can be made of it").build();
        let listener = TcpListener::bind(address).await.expect("a free port");
        let address = listener.local_addr().expect("the listener has an address");
        let mut task = JoinSet::new();
        let watches = Arc::default();
        task.spawn(accept(listener, Way { server, fates, watches: Arc::clone(&watches) }));
        Proxy { address, watches, _task: task }
    }

    /// How many watches go on.
    pub fn watches(&self) -> usize {
        self.watches.load(Ordering::SeqCst)
    }

    /// The kubeconfig that leads through it. It has no credentials: the proxy has those of the server.
    pub fn kubeconfig(&self) -> String {
        Proxy::kubeconfig_at(self.address)
    }

    /// The same of one at this address.
    pub fn kubeconfig_at(address: SocketAddr) -> String {
        let context =
            json!({"name": "proxy", "context": {"cluster": "proxy", "user": "proxy", "namespace": "default"}});
        json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "proxy",
            "clusters": [{"name": "proxy", "cluster": {"server": format!("http://{address}")}}],
            "users": [{"name": "proxy", "user": {}}],
            "contexts": [context],
        })
        .to_string()
    }
}

async fn accept(listener: TcpListener, way: Way) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        connections.spawn(connection(stream, way.clone()));
        while connections.try_join_next().is_some() {}
    }
}

async fn connection(stream: TcpStream, way: Way) {
    let answer = |request| answer(request, way.clone());
    let builder = Builder::new(hyper_util::rt::TokioExecutor::new());
    // The request that breaks with the connection reports it.
    drop(builder.serve_connection(TokioIo::new(stream), hyper::service::service_fn(answer)).await);
}

async fn answer(request: Request<Incoming>, way: Way) -> Result<Answer, io::Error> {
    let watches = request.uri().query().unwrap_or_default().split('&').any(|part| part == "watch=true");
    let (method, path, token) = (request.method().clone(), request.uri().path().to_owned(), token(&request));
    let asked = ProxyRequest { method, path, watches, token };
    let Way { server, fates, .. } = &way;
    let came = fates.write_log().filter(|_| asked.is_write()).map(|log| log.came(asked.method.as_str(), &asked.path));
    let fate = fates.request(&asked);
    thawed(fates.as_ref(), &asked).await;
    match fate {
        Fate::Refuse(status) => Ok(refused(status)),
        Fate::Later(seconds) => {
            let mut answer = refused(StatusCode::TOO_MANY_REQUESTS);
            answer.headers_mut().insert(header::RETRY_AFTER, seconds.into());
            Ok(answer)
        }
        Fate::Cut => Err(broken()),
        Fate::Hold => std::future::pending().await,
        Fate::Pass => {
            let answer = forward(request, server).await?;
            thawed(fates.as_ref(), &asked).await;
            let answer = noted(answer, fates.as_ref(), came).await?;
            Ok(echoed(answer, asked, way))
        }
        Fate::Lose => {
            noted(forward(request, server).await?, fates.as_ref(), came).await?;
            Err(broken())
        }
        Fate::HoldAnswer => {
            forward(request, server).await?;
            fates.answered(&asked);
            std::future::pending().await
        }
    }
}

/// The answer, once it stands in the log of writes, where the write that came at this place does.
async fn noted(answer: Response<Body>, fates: &dyn Fates, came: Option<u64>) -> Result<Response<Body>, io::Error> {
    let (Some(log), Some(came)) = (fates.write_log(), came) else { return Ok(answer) };
    let (head, body) = answer.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let object: Value = serde_json::from_slice(&body).unwrap_or_default();
    let revision = object.pointer("/metadata/resourceVersion").and_then(Value::as_str);
    let is_done = head.status.is_success();
    log.answered(came, is_done, revision.and_then(|revision| revision.parse().ok()).filter(|_| is_done));
    Ok(Response::from_parts(head, Body::from(body.to_vec())))
}

/// Waits until something comes along the way.
async fn thawed(fates: &dyn Fates, asked: &ProxyRequest) {
    if let Some(mut frozen) = fates.frozen(asked) {
        // What froze it is gone with the test.
        drop(frozen.wait_for(|frozen| !frozen).await);
    }
}

fn token(request: &Request<Incoming>) -> Option<String> {
    let credentials = request.headers().get(header::AUTHORIZATION)?.to_str().ok()?;
    credentials.strip_prefix("Bearer ").map(str::to_owned)
}

fn broken() -> io::Error {
    io::Error::from(io::ErrorKind::ConnectionReset)
}

async fn forward(request: Request<Incoming>, server: &Client) -> Result<Response<Body>, io::Error> {
    let (mut head, body) = request.into_parts();
    head.headers.remove(header::HOST);
    head.headers.remove(header::AUTHORIZATION);
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    server.send(Request::from_parts(head, Body::from(body.to_vec()))).await.map_err(io::Error::other)
}

/// What the server itself would say.
fn refused(status: StatusCode) -> Answer {
    let reason = match status {
        StatusCode::CONFLICT => "Conflict",
        StatusCode::GONE => "Expired",
        StatusCode::TOO_MANY_REQUESTS => "TooManyRequests",
        StatusCode::UNAUTHORIZED => "Unauthorized",
        StatusCode::GATEWAY_TIMEOUT => "Timeout",
        StatusCode::SERVICE_UNAVAILABLE => "ServiceUnavailable",
        _ => "InternalError",
    };
    let body = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": reason,
        "code": status.as_u16(), "message": "the proxy of a test refuses it",
    });
    let body = Full::new(Bytes::from(body.to_string())).map_err(|never| match never {}).boxed_unsync();
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    answer.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    answer
}

/// The answer, with the echoes of its events where it is a watch.
fn echoed(answer: Response<Body>, asked: ProxyRequest, way: Way) -> Answer {
    let (mut head, body) = answer.into_parts();
    if !asked.watches || !head.status.is_success() {
        return Response::from_parts(head, body.boxed_unsync());
    }
    head.headers.remove(header::CONTENT_LENGTH);
    let counted = CountedWatch::begin(&way.watches);
    let message = lines(body).then(move |line| {
        let _goes_on = &counted;
        let (asked, fates) = (asked.clone(), Arc::clone(&way.fates));
        async move {
            thawed(fates.as_ref(), &asked).await;
            echo(line, &asked, fates.as_ref())
        }
    });
    let message = message
        .take_while(|echo| std::future::ready(echo.is_some()))
        .map(|echo| Ok(Frame::data(echo.unwrap_or_default())));
    Response::from_parts(head, StreamBody::new(message).boxed_unsync())
}

/// What is told instead of a line; `None` where the watch ends.
fn echo(line: Bytes, asked: &ProxyRequest, fates: &dyn Fates) -> Option<Bytes> {
    let kind = serde_json::from_slice::<Value>(&line).unwrap_or_default();
    if kind.get("type").is_none_or(|kind| kind == "BOOKMARK" || kind == "ERROR") {
        return Some(line);
    }
    match fates.event(asked) {
        Echo::Pass => Some(line),
        Echo::Drop => Some(Bytes::new()),
        Echo::Double => Some([line.clone(), line].concat().into()),
        Echo::Break => None,
        Echo::Expire => {
            let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                "reason": "Expired", "code": 410, "message": "too old resource version"});
            Some(format!("{}\n", json!({"type": "ERROR", "object": status})).into())
        }
    }
}

/// The lines of a body, each with its end.
fn lines(body: Body) -> impl Stream<Item = Bytes> + Send {
    stream::unfold((body.into_data_stream(), Vec::<u8>::new()), async |(mut data, mut rest)| {
        loop {
            if let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = rest.drain(..=end).collect();
                return Some((Bytes::from(line), (data, rest)));
            }
            match data.next().await {
                Some(Ok(more)) => rest.extend_from_slice(&more),
                Some(Err(_)) | None => return None,
            }
        }
    })
}
