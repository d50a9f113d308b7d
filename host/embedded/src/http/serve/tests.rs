//! Connections without a token, which are few and short, and those with one, which stay.

use std::pin::pin;

use futures::poll;
use rustls::pki_types::{CertificateDer, ServerName, pem::PemObject as _};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, duplex},
    net::TcpStream,
    time::{Instant, timeout},
};
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::*;
use crate::{cluster::EmbeddedCluster, http::guarded, identity::ServerIdentity, store::ObjectStore};

/// How long a test waits for what has to come.
const PATIENCE: Duration = Duration::from_secs(20);
const HOUR: Duration = Duration::from_secs(3600);

/// The terms of a server with this longest time, its authority and its token.
fn terms(longest_anonymous: Duration) -> (ConnectionTerms, TlsConnector, String) {
    let identity = ServerIdentity::fresh().unwrap();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(identity.ca_pem().as_bytes()).unwrap()).unwrap();
    let client = rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
    let client = client.with_safe_default_protocol_versions().unwrap();
    let client = TlsConnector::from(Arc::new(client.with_root_certificates(roots).with_no_client_auth()));
    let (tls, token) = (TlsAcceptor::from(identity.tls().unwrap()), identity.token().to_owned());
    let clock = Arc::new(|| jiff::Timestamp::from_second(1_800_000_000).unwrap());
    let cluster = Arc::new(EmbeddedCluster::new(ObjectStore::in_memory().0, identity, clock));
    let (stop, router) = (cluster.stop.clone(), guarded(cluster));
    (ConnectionTerms { tls, router, stop, longest_anonymous }, client, token)
}

async fn secured<S: AsyncRead + AsyncWrite + Unpin>(client: &TlsConnector, stream: S) -> TlsStream<S> {
    client.connect(ServerName::try_from("localhost").unwrap(), stream).await.unwrap()
}

fn get(path: &str, token: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\r\n")
}

/// The status that a request is answered with, on a connection that stays.
async fn status(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), request: &str) -> String {
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut begin = [0; 12];
    stream.read_exact(&mut begin).await.unwrap();
    String::from_utf8_lossy(&begin).into_owned()
}

/// What comes until the connection ends.
async fn rest(stream: &mut (impl AsyncRead + Unpin)) -> usize {
    let mut rest = Vec::new();
    // A connection that is cut off has no farewell of TLS.
    let _cut_off = stream.read_to_end(&mut rest).await;
    rest.len()
}

#[tokio::test(start_paused = true)]
async fn c_300_limits_embedded_a_connection_without_a_token_ends_and_one_with_a_token_stays() {
    let (terms, client, token) = terms(LONGEST_ANONYMOUS);
    let open = || {
        let (client, server) = duplex(1 << 16);
        tokio::spawn(terms.clone().serve(server, Arc::new(Notify::new())));
        client
    };
    let begun = Instant::now();
    let (mut silent, mut idle) = (open(), secured(&client, open()).await);
    let (mut healthy, mut wrong) = (secured(&client, open()).await, secured(&client, open()).await);
    let (mut watching, mut listing) = (secured(&client, open()).await, secured(&client, open()).await);
    let statuses = [
        status(&mut healthy, &get("/healthz", "none")).await,
        status(&mut wrong, &get("/api/v1/namespaces", "wrong")).await,
        status(&mut listing, &get("/api/v1/namespaces", &token)).await,
        status(&mut watching, &get("/api/v1/namespaces?watch=true", &token)).await,
    ];
    assert_eq!(statuses, ["HTTP/1.1 200", "HTTP/1.1 401", "HTTP/1.1 200", "HTTP/1.1 200"]);
    assert_eq!(begun.elapsed().as_secs(), 0);
    let all = async { tokio::join!(rest(&mut silent), rest(&mut idle), rest(&mut healthy), rest(&mut wrong)) };
    timeout(HOUR, all).await.expect("those without a token end");
    assert_eq!(begun.elapsed().as_secs(), LONGEST_ANONYMOUS.as_secs());
    // One that asks for nothing more ends after a while, one that is answered does not.
    timeout(HOUR, rest(&mut listing)).await.expect("an idle one ends");
    assert_eq!(begun.elapsed().as_secs(), LONGEST_HEAD.as_secs());
    assert!(timeout(HOUR, rest(&mut watching)).await.is_err(), "a watch stays");
}

#[tokio::test]
async fn c_300_a_connection_counts_until_a_token_is_shown_on_it() {
    let (end, shown) = (Arc::new(Notify::new()), ShownToken::none());
    let counted = Arc::downgrade(&end);
    let mut connection = pin!(stay_anonymous(end, shown.clone(), HOUR));
    assert!(poll!(connection.as_mut()).is_pending());
    assert_eq!(counted.strong_count(), 1);
    shown.accept();
    assert!(poll!(connection.as_mut()).is_pending());
    assert_eq!(counted.strong_count(), 0);
}

#[tokio::test]
async fn c_300_limits_embedded_connections_without_a_token_have_a_number() {
    let (terms, client, token) = terms(HOUR);
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let (address, stop) = (listener.local_addr().unwrap(), terms.stop.clone());
    let accepting = tokio::spawn(terms.accept(listener));
    let mut known = secured(&client, TcpStream::connect(address).await.unwrap()).await;
    assert_eq!(status(&mut known, &get("/api/v1/namespaces?watch=true", &token)).await, "HTTP/1.1 200");
    let mut anonymous = Vec::new();
    for _ in 0..=MOST_ANONYMOUS {
        anonymous.push(TcpStream::connect(address).await.unwrap());
    }
    timeout(PATIENCE, rest(&mut anonymous[0])).await.expect("the oldest ends");
    let mut one = [0];
    let others: Vec<bool> = anonymous[1..].iter().map(|other| other.try_read(&mut one).is_err()).collect();
    assert_eq!(others, [true; MOST_ANONYMOUS], "the others are open, and nothing was said on them");
    stop.cancel();
    assert!(
        timeout(PATIENCE, rest(&mut known)).await.unwrap() > 0,
        "the one with a token is there, and had its answer"
    );
    drop(anonymous);
    accepting.await.unwrap();
}
