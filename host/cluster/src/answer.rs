//! Answers of clusters, bounded: whoever has a target chooses what its server answers.
//!
//! Bytes are counted by the memory of the values that they are decoded to, while they come in. A watch never ends, so each
//! of its events is counted for itself.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use futures::{FutureExt, future::BoxFuture};
use http::{Request, Response, Uri};
use http_body::{Body as HttpBody, Frame, SizeHint};
use kube::client::Body;
use orangery_core::memory::JsonMeter;
use tower::{BoxError, Layer, Service};

/// The most memory, in bytes, that the values of one answer, or of one event of a watch, may take.
pub const MOST_ANSWER_BYTES: u64 = 128 << 20;

/// The answer is larger than that.
#[derive(Debug, thiserror::Error)]
#[error(
    "the answer of the cluster takes more than the {MOST_ANSWER_BYTES} bytes of memory that are allowed; ask for fewer objects, \
     or make them smaller"
)]
pub(crate) struct AnswerTooLarge;

/// Bounds the answers of a client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BoundedAnswers;

impl<S> Layer<S> for BoundedAnswers {
    type Service = BoundedService<S>;

    fn layer(&self, inner: S) -> BoundedService<S> {
        BoundedService { inner }
    }
}

/// See [`BoundedAnswers`].
#[derive(Clone, Debug)]
pub(crate) struct BoundedService<S> {
    inner: S,
}

impl<S, B> Service<Request<Body>> for BoundedService<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Future: Send + 'static,
{
    type Response = Response<BoundedBody<B>>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Self::Response, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let kind = AnswerKind::of(request.uri());
        let bounded =
            move |response: Response<B>| response.map(|inner| BoundedBody { inner, kind, meter: JsonMeter::default() });
        self.inner.call(request).map(move |answer| answer.map(bounded)).boxed()
    }
}

/// What is counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerKind {
    /// All of it.
    Whole,
    /// Each line.
    Events,
}

impl AnswerKind {
    /// Of what is answered to a request.
    pub(crate) fn of(request: &Uri) -> Self {
        let query = request.query().unwrap_or_default();
        match query.split('&').any(|part| part == "watch=true" || part == "watch=1") {
            true => Self::Events,
            false => Self::Whole,
        }
    }
}

/// Whether so many bytes of a watch are within the limits.
pub(crate) fn check_events(bytes: &[u8]) -> Result<(), AnswerTooLarge> {
    BoundedBody { inner: (), kind: AnswerKind::Events, meter: JsonMeter::default() }.take(bytes)
}

/// A body that fails where it gets too large.
#[derive(Debug)]
pub(crate) struct BoundedBody<B> {
    inner: B,
    kind: AnswerKind,
    meter: JsonMeter,
}

impl<B> BoundedBody<B> {
    fn take(&mut self, bytes: &[u8]) -> Result<(), AnswerTooLarge> {
        let mut lines = bytes.split(|byte| *byte == b'\n' && self.kind == AnswerKind::Events).peekable();
        while let Some(line) = lines.next() {
            self.meter.read(line);
            if self.meter.bytes() > MOST_ANSWER_BYTES {
                return Err(AnswerTooLarge);
            }
            if lines.peek().is_some() {
                self.meter = JsonMeter::default();
            }
        }
        Ok(())
    }
}

impl<B> HttpBody for BoundedBody<B>
where
    B: HttpBody<Data = bytes::Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    type Data = bytes::Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<bytes::Bytes>, BoxError>>> {
        let frame = match ready!(Pin::new(&mut self.inner).poll_frame(context)) {
            Some(Ok(frame)) => frame,
            Some(Err(error)) => return Poll::Ready(Some(Err(error.into()))),
            None => return Poll::Ready(None),
        };
        match frame.data_ref().cloned().map_or(Ok(()), |bytes| self.take(&bytes)) {
            Ok(()) => Poll::Ready(Some(Ok(frame))),
            Err(error) => Poll::Ready(Some(Err(error.into()))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
