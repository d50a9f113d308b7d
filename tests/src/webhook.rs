//! An admission webhook behind TLS on loopback, as a kube-apiserver asks one: it answers as a test says.

use std::{convert::Infallible, net::SocketAddr, sync::Arc};

use bytes::Bytes;
use data_encoding::BASE64;
use http::{Request, Response, header};
use http_body_util::{BodyExt as _, Full};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto::Builder,
};
use rustls::{ServerConfig, pki_types::PrivateKeyDer};
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinSet};
use tokio_rustls::TlsAcceptor;

/// What it answers to a request of admission.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// It is let through.
    Allow,
    /// It is refused with this message.
    Deny(String),
    /// It is let through with these operations of JSON patch.
    Patch(Value),
}

type Review = dyn Fn(&Value) -> Verdict + Send + Sync;

/// A webhook that is asked until it is dropped.
pub struct Webhook {
    address: SocketAddr,
    certificate: String,
    /// Aborted when dropped.
    _task: JoinSet<()>,
}

impl Webhook {
    /// Starts one on a free port; `review` judges the `request` of each review.
    pub async fn start(review: impl Fn(&Value) -> Verdict + Send + Sync + 'static) -> Webhook {
        let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).expect("a certificate");
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("a key");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.expect("versions of TLS").with_no_client_auth();
        let config = config.with_single_cert(vec![made.cert.der().clone()], key).expect("a certificate of the key");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("the listener has an address");
        let mut task = JoinSet::new();
        task.spawn(accept(listener, TlsAcceptor::from(Arc::new(config)), Arc::new(review)));
        Webhook { address, certificate: BASE64.encode(made.cert.pem().as_bytes()), _task: task }
    }

    /// The `clientConfig` by which an API server reaches it.
    pub fn client_config(&self) -> Value {
        json!({"url": format!("https://{}/", self.address), "caBundle": self.certificate})
    }
}

async fn accept(listener: TcpListener, tls: TlsAcceptor, review: Arc<Review>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let (tls, review) = (tls.clone(), Arc::clone(&review));
        connections.spawn(async move {
            let Ok(stream) = tls.accept(stream).await else { return };
            let answer = service_fn(|request| answer(request, Arc::clone(&review)));
            // A client that ends its connection is no failure.
            drop(Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), answer).await);
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn answer(request: Request<Incoming>, review: Arc<Review>) -> Result<Response<Full<Bytes>>, Infallible> {
    let body = request.into_body().collect().await.expect("the review comes whole").to_bytes();
    let asked: Value = serde_json::from_slice(&body).expect("a review is JSON");
    let request = asked.get("request").cloned().unwrap_or_default();
    let mut response = json!({"uid": request.get("uid"), "allowed": true});
    let verdict = match review(&request) {
        Verdict::Allow => json!({}),
        Verdict::Deny(message) => json!({"allowed": false, "status": {"message": message}}),
        Verdict::Patch(patch) => {
            json!({"patchType": "JSONPatch", "patch": BASE64.encode(patch.to_string().as_bytes())})
        }
    };
    if let (Some(response), Some(verdict)) = (response.as_object_mut(), verdict.as_object()) {
        response.extend(verdict.clone());
    }
    let answer = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
    let mut answer = Response::new(Full::new(Bytes::from(answer.to_string())));
    answer.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    Ok(answer)
}
