//! Accepting connections: TCP, TLS, HTTP/1.1 or HTTP/2.

use std::{
    collections::VecDeque,
    future::pending,
    sync::{Arc, Weak},
    time::Duration,
};

use axum::{Extension, Router};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto::Builder,
    service::TowerToHyperService,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
    sync::{Notify, watch},
    time::sleep,
};
use tokio_rustls::TlsAcceptor;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// How long a stopping server waits for answers under way.
const FAREWELL: Duration = Duration::from_secs(5);
/// How long the server waits before it accepts again after it could not.
const BREATH: Duration = Duration::from_millis(50);
/// The most connections at once on which nobody has shown a token: with one more the oldest of them ends (C-300).
const MOST_ANONYMOUS: usize = 128;
/// How long such a connection lasts, TLS handshake and requests for health included.
const LONGEST_ANONYMOUS: Duration = Duration::from_secs(10);
/// How long a client takes for the head of a request, from the answer to the one before on. Clients end what is idle after 90
/// seconds themselves, and so send no request into a connection that ends.
const LONGEST_HEAD: Duration = Duration::from_secs(120);
/// How often a client of HTTP/2 is asked whether it is still there.
const ASKED_EVERY: Duration = Duration::from_secs(60);

/// Whether somebody has shown a token on a connection.
#[derive(Clone, Debug)]
pub(super) struct ShownToken(watch::Sender<bool>);

impl ShownToken {
    fn none() -> Self {
        Self(watch::Sender::new(false))
    }

    /// From now on the connection stays for as long as its client likes.
    pub(super) fn accept(&self) {
        self.0.send_if_modified(|shown| !std::mem::replace(shown, true));
    }

    async fn wait(&self) {
        let mut shown = self.0.subscribe();
        // It fails where no sender is left, and here is one.
        drop(shown.wait_for(|shown| *shown).await);
    }
}

/// The connections on which nobody has shown a token, the oldest first: how each is told to end.
#[derive(Debug, Default)]
struct AnonymousConnections(VecDeque<Weak<Notify>>);

impl AnonymousConnections {
    /// Takes one more in, which counts as long as somebody has what is answered.
    fn take_in(&mut self) -> Arc<Notify> {
        self.0.retain(|end| end.strong_count() > 0);
        if self.0.len() >= MOST_ANONYMOUS
            && let Some(oldest) = self.0.pop_front().and_then(|end| end.upgrade())
        {
            oldest.notify_one();
        }
        let end = Arc::new(Notify::new());
        self.0.push_back(Arc::downgrade(&end));
        end
    }
}

/// Serves connections until `stop`, then ends those that are idle and waits for the others a while.
pub(crate) async fn accept(listener: TcpListener, tls: TlsAcceptor, router: Router, stop: CancellationToken) {
    ConnectionTerms { tls, router, stop, longest_anonymous: LONGEST_ANONYMOUS }.accept(listener).await;
}

/// How connections are served.
#[derive(Clone)]
struct ConnectionTerms {
    tls: TlsAcceptor,
    router: Router,
    stop: CancellationToken,
    longest_anonymous: Duration,
}

impl ConnectionTerms {
    async fn accept(self, listener: TcpListener) {
        let (connections, mut anonymous) = (TaskTracker::new(), AnonymousConnections::default());
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = self.stop.cancelled() => break,
            };
            match accepted {
                Ok((stream, _)) => {
                    if let Err(error) = stream.set_nodelay(true) {
                        tracing::debug!(%error, "the connection keeps its delay");
                    }
                    connections.spawn(self.clone().serve(stream, anonymous.take_in()));
                }
                // Out of file descriptors, most likely: others have to end first.
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    sleep(BREATH).await;
                }
            }
        }
        drop(listener);
        connections.close();
        if tokio::time::timeout(FAREWELL, connections.wait()).await.is_err() {
            tracing::warn!("some connections did not end in time and are cut off");
        }
    }

    /// Serves a connection that ends when it is told to, or when its time is over, unless somebody shows a token on it.
    async fn serve<S>(self, stream: S, end: Arc<Notify>)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let shown = ShownToken::none();
        let longest = self.longest_anonymous;
        tokio::select! {
            () = self.answer(stream, shown.clone()) => {}
            () = stay_anonymous(end, shown, longest) => tracing::debug!("nobody showed a token on a connection"),
        }
    }

    async fn answer<S>(self, stream: S, shown: ShownToken)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let stream = match self.tls.accept(stream).await {
            Ok(stream) => stream,
            Err(error) => return tracing::debug!(%error, "a client did not complete TLS"),
        };
        let mut builder = Builder::new(TokioExecutor::new());
        builder.http1().timer(TokioTimer::new()).header_read_timeout(LONGEST_HEAD);
        builder.http2().timer(TokioTimer::new()).keep_alive_interval(ASKED_EVERY).max_concurrent_streams(1000);
        let service = TowerToHyperService::new(self.router.layer(Extension(shown)));
        let mut served = std::pin::pin!(builder.serve_connection(TokioIo::new(stream), service));
        let ended = tokio::select! {
            ended = served.as_mut() => ended,
            () = self.stop.cancelled() => {
                served.as_mut().graceful_shutdown();
                served.await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "a connection broke off");
        }
    }
}

/// Answers when a connection has to end on which nobody has shown a token; never where somebody does.
async fn stay_anonymous(end: Arc<Notify>, shown: ShownToken, longest: Duration) {
    tokio::select! {
        biased;
        () = shown.wait() => {}
        () = end.notified() => return,
        () = sleep(longest) => return,
    }
    drop(end);
    pending().await
}

#[cfg(test)]
mod tests;
