//! Accepting connections: TCP, TLS, HTTP/1.1 or HTTP/2.

use std::{sync::Arc, time::Duration};

use axum::Router;
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto::Builder,
    service::TowerToHyperService,
};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// How long a stopping server waits for answers under way.
const FAREWELL: Duration = Duration::from_secs(5);
/// How long the server waits before it accepts again after it could not.
const BREATH: Duration = Duration::from_millis(50);
/// How long a client may take for its TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// Serves connections until `stop`, then ends those that are idle and waits for the others a while.
pub(crate) async fn accept(listener: TcpListener, tls: TlsAcceptor, router: Router, stop: CancellationToken) {
    let connections = TaskTracker::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => break,
        };
        match accepted {
            Ok((stream, _)) => {
                connections.spawn(connection(stream, tls.clone(), router.clone(), stop.clone()));
            }
            // Out of file descriptors, most likely: others have to end first.
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(BREATH).await;
            }
        }
    }
    drop(listener);
    connections.close();
    if tokio::time::timeout(FAREWELL, connections.wait()).await.is_err() {
        tracing::warn!("some connections did not end in time and are cut off");
    }
}

async fn connection(stream: TcpStream, tls: TlsAcceptor, router: Router, stop: CancellationToken) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "the connection keeps its delay");
    }
    let stream = match tokio::time::timeout(HANDSHAKE, tls.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return tracing::debug!(%error, "a client did not complete TLS"),
        Err(_) => return tracing::debug!("a client took too long for TLS"),
    };
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http2().max_concurrent_streams(1000);
    let connection = Arc::new(builder);
    let served = connection.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    let mut served = std::pin::pin!(served);
    let ended = tokio::select! {
        ended = served.as_mut() => ended,
        () = stop.cancelled() => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection broke off");
    }
}
