//! Connections of whoever can reach the port of health and metrics: so many at once, and none for long.

use std::{
    collections::{BTreeMap, VecDeque},
    io,
    net::{IpAddr, SocketAddr},
    pin::Pin,
    sync::{Arc, Weak},
    task::{Context, Poll},
    time::Duration,
};

use axum::serve::Listener;
use futures::FutureExt as _;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::Notify,
    time::timeout,
};

/// The most connections at once: with one more the oldest one ends of the address that has the most, so that a probe is answered
/// however many are held open or opened by others (C-165).
pub(super) const MOST_CONNECTIONS: usize = 64;

/// How long a connection lasts, whatever is said on it.
pub(super) const LONGEST_CONNECTION: Duration = Duration::from_secs(30);

/// Accepts connections of which none keeps others away.
pub(super) struct BoundedListener {
    listener: TcpListener,
    /// Where each that lives is from, and how it is told to end; the oldest first.
    open: VecDeque<(IpAddr, Weak<Notify>)>,
}

impl BoundedListener {
    pub(super) fn new(listener: TcpListener) -> Self {
        Self { listener, open: VecDeque::new() }
    }

    /// Ends one connection, so that there is room for another one.
    fn make_room(&mut self) {
        let mut by_address: BTreeMap<IpAddr, usize> = BTreeMap::new();
        self.open.iter().for_each(|(address, _)| *by_address.entry(*address).or_default() += 1);
        let most = by_address.into_iter().max_by_key(|(_, count)| *count).map(|(address, _)| address);
        let oldest = self.open.iter().position(|(address, _)| Some(*address) == most);
        if let Some((_, told)) = oldest.and_then(|oldest| self.open.remove(oldest))
            && let Some(told) = told.upgrade()
        {
            told.notify_one();
        }
    }
}

impl Listener for BoundedListener {
    type Io = BoundedStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (BoundedStream, SocketAddr) {
        let (stream, address) = Listener::accept(&mut self.listener).await;
        self.open.retain(|(_, told)| told.strong_count() > 0);
        if self.open.len() >= MOST_CONNECTIONS {
            self.make_room();
        }
        let told = Arc::new(Notify::new());
        self.open.push_back((address.ip(), Arc::downgrade(&told)));
        (BoundedStream::new(stream, told), address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection that breaks off when its time is over, or when it is told to make room.
pub(super) struct BoundedStream {
    stream: TcpStream,
    end: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl BoundedStream {
    fn new(stream: TcpStream, told: Arc<Notify>) -> Self {
        let end = async move { drop(timeout(LONGEST_CONNECTION, told.notified()).await) };
        Self { stream, end: Some(Box::pin(end)) }
    }

    /// The stream, as long as it lasts; whoever reads or writes is woken when it does not any more.
    fn lasting(self: Pin<&mut Self>, context: &mut Context<'_>) -> io::Result<Pin<&mut TcpStream>> {
        let Self { stream, end } = self.get_mut();
        if end.as_mut().is_none_or(|end| end.poll_unpin(context).is_ready()) {
            *end = None;
            return Err(io::ErrorKind::TimedOut.into());
        }
        Ok(Pin::new(stream))
    }
}

impl AsyncRead for BoundedStream {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.lasting(context)?.poll_read(context, into)
    }
}

impl AsyncWrite for BoundedStream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.lasting(context)?.poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.lasting(context)?.poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}
