//! What a watch is told, counted while it comes: a server sends it without being asked, and it waits until it is taken in.

use std::{
    mem,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::Request;
use http_body::{Body as HttpBody, Frame, SizeHint};
use kube::{Client, client::Body};
use orangery_core::memory::JsonMeter;
use orangery_turns::HeldBytes;
use tokio::time::{Instant, Sleep, sleep_until};
use tower::{BoxError, service_fn};

use crate::{
    answer::AnswerKind,
    object_memory::{VALUES_HELD_BY_NOBODY, share_of},
    pace::EventPace,
};

/// What the answers to one watch take of the memory that the objects of all clusters share: a page, or an event, from before it is
/// decoded until its objects were taken in (C-88). One answer at a time; small ones take nothing of it.
pub(crate) struct AnswerRoom {
    /// Protects what is held. Held for one change.
    state: Mutex<RoomState>,
    /// That of the namespace.
    pace: Arc<EventPace>,
}

struct RoomState {
    held: HeldBytes,
    /// The limit, where there was no room.
    refused: Option<String>,
    /// Whether what has come since something was asked for has told of no object so far.
    is_empty: bool,
}

/// There is no room for what a watch is told.
#[derive(Debug, thiserror::Error)]
#[error("its objects take more than the {limit} that are allowed; select fewer, or delete some")]
pub(crate) struct NoRoomToWatch {
    pub(crate) limit: String,
}

impl AnswerRoom {
    /// Nothing has come; `none` holds none yet for who has begun the watch, whose pace it is.
    pub(crate) fn new(none: HeldBytes, pace: &Arc<EventPace>) -> Arc<Self> {
        let state = RoomState { held: none, refused: None, is_empty: false };
        Arc::new(Self { state: Mutex::new(state), pace: Arc::clone(pace) })
    }

    /// What has come takes so many bytes from now on.
    fn set(&self, bytes: u64) -> Result<(), NoRoomToWatch> {
        let mut state = self.state();
        let bytes = if bytes > VALUES_HELD_BY_NOBODY { bytes } else { 0 };
        if bytes == state.held.bytes() || state.held.set(bytes) {
            return Ok(());
        }
        let limit = share_of(state.held.of());
        state.refused = Some(limit.clone());
        Err(NoRoomToWatch { limit })
    }

    /// An object of so many bytes was taken in; 0 where it was none.
    pub(crate) fn taken_in(&self, bytes: u64) {
        let mut state = self.state();
        let left = state.held.bytes().saturating_sub(bytes);
        state.held.put(left);
        state.is_empty &= bytes == 0;
    }

    /// More is asked for: what came before was taken in. Answers from when on it may be asked for, where that is not now: what told of
    /// no object counts for the pace by itself (C-273).
    fn asked(&self) -> Option<Instant> {
        let mut state = self.state();
        state.held.put(0);
        let was_empty = mem::replace(&mut state.is_empty, true);
        drop(state);
        was_empty.then(|| self.pace.empty()).flatten()
    }

    /// The answer has failed, and nothing of it is left. Answers what to say where there was no room for it.
    pub(crate) fn failed(&self) -> Option<String> {
        let mut state = self.state();
        state.held.put(0);
        state.refused.take().map(|limit| NoRoomToWatch { limit }.to_string())
    }

    fn state(&self) -> MutexGuard<'_, RoomState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A client by which one watch asks, one request after the other. What the answers take is held in its room.
pub(crate) fn held_in(room: &Arc<AnswerRoom>, client: &Client) -> Client {
    let (room, through) = (Arc::clone(room), client.clone());
    let service = service_fn(move |request: Request<Body>| {
        let (room, through, kind) = (Arc::clone(&room), through.clone(), AnswerKind::of(request.uri()));
        async move {
            if let Some(until) = room.asked() {
                sleep_until(until).await;
            }
            let answer = through.send(request).await?;
            Ok::<_, kube::Error>(answer.map(|inner| HeldBody::new(inner, kind, room)))
        }
    });
    Client::new(service, client.default_namespace().to_owned())
}

/// A body that holds what its values take before anybody decodes them, and fails where there is no room. Events are handed on one
/// by one: who asks for more has taken in the one before.
struct HeldBody<B> {
    inner: B,
    kind: AnswerKind,
    room: Arc<AnswerRoom>,
    meter: JsonMeter,
    /// Whether an event has ended.
    is_over: bool,
    /// What has come behind it.
    rest: Bytes,
    /// Nothing is read before this is over.
    pause: Option<Pin<Box<Sleep>>>,
}

impl<B> HeldBody<B> {
    fn new(inner: B, kind: AnswerKind, room: Arc<AnswerRoom>) -> Self {
        Self { inner, kind, room, meter: JsonMeter::default(), is_over: false, rest: Bytes::new(), pause: None }
    }

    /// What is handed on next of what has come.
    fn next(&mut self, mut come: Bytes) -> Result<Bytes, NoRoomToWatch> {
        let end = come.iter().position(|byte| *byte == b'\n').filter(|_| self.kind == AnswerKind::Events);
        let next = come.split_to(end.map_or(come.len(), |at| at + 1));
        (self.rest, self.is_over) = (come, end.is_some());
        self.meter.read(&next);
        self.room.set(self.meter.bytes())?;
        Ok(next)
    }
}

impl<B> HttpBody for HeldBody<B>
where
    B: HttpBody<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if mem::take(&mut self.is_over) {
            self.meter = JsonMeter::default();
            self.pause = self.room.asked().map(|until| Box::pin(sleep_until(until)));
        }
        if let Some(pause) = &mut self.pause {
            ready!(pause.as_mut().poll(context));
            self.pause = None;
        }
        let mut come = mem::take(&mut self.rest);
        if come.is_empty() {
            let frame = match ready!(Pin::new(&mut self.inner).poll_frame(context)) {
                Some(Ok(frame)) => frame,
                Some(Err(error)) => return Poll::Ready(Some(Err(error.into()))),
                None => return Poll::Ready(None),
            };
            come = match frame.into_data() {
                Ok(data) => data,
                Err(frame) => return Poll::Ready(Some(Ok(frame))),
            };
        }
        Poll::Ready(Some(self.next(come).map(Frame::data).map_err(BoxError::from)))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        if self.rest.is_empty() { self.inner.size_hint() } else { SizeHint::default() }
    }
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, future::poll_fn};

    use futures::{StreamExt as _, stream};
    use orangery_turns::SharedBytes;

    use super::*;
    use crate::pace::EventPaces;

    /// A text of values that take some KiB, all of them in one line.
    fn line(kib: usize) -> String {
        format!("\"{}\"\n", "x".repeat(kib << 10))
    }

    /// What has come is sent in these pieces.
    struct Pieces(stream::Iter<std::vec::IntoIter<Bytes>>);

    impl HttpBody for Pieces {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            self.0.poll_next_unpin(context).map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
        }
    }

    fn body(kind: AnswerKind, memory: u64, pieces: &[&str]) -> (Arc<SharedBytes>, HeldBody<Pieces>) {
        let shared = SharedBytes::new(memory);
        let pieces: Vec<Bytes> = pieces.iter().map(|piece| Bytes::copy_from_slice(piece.as_bytes())).collect();
        let room = AnswerRoom::new(shared.none_of(&None), &EventPaces::default().of(&None));
        (shared, HeldBody::new(Pieces(stream::iter(pieces)), kind, room))
    }

    /// What is handed on next, in bytes; `None` at the end.
    async fn next(body: &mut HeldBody<Pieces>) -> Result<Option<usize>, String> {
        let frame = poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await;
        let frame = frame.transpose().map_err(|error| error.to_string())?;
        Ok(frame.map(|frame| frame.into_data().expect("bytes").len()))
    }

    #[tokio::test]
    async fn c_88_an_event_is_held_before_it_is_decoded_and_until_the_next_one_is_asked_for() {
        let (long, short) = (line(200), line(1));
        let (begin, end) = long.split_at(150 << 10);
        let pieces = [format!("{long}{long}{short}"), begin.to_owned(), end.to_owned()];
        let (shared, mut body) = body(AnswerKind::Events, 1 << 20, &pieces.each_ref().map(String::as_str));
        let mut seen = Vec::new();
        while let Some(bytes) = next(&mut body).await.unwrap() {
            seen.push((bytes >> 10, shared.taken() >> 10));
        }
        assert_eq!(seen, [(200, 200), (200, 200), (1, 0), (150, 150), (50, 200)], "one at a time, however they come");
        assert_eq!(shared.taken(), 0, "who asks for more has taken in the last one");
    }

    #[tokio::test(start_paused = true)]
    async fn c_273_lines_and_answers_without_an_object_have_a_pace_and_others_have_that_of_their_objects() {
        // The first one follows nothing.
        let lines = "{\"type\":\"BOOKMARK\"}\n".repeat(25_000);
        let seconds = async |bytes: u64| {
            let (_shared, mut body) = body(AnswerKind::Events, 1 << 20, &[&lines]);
            let begun = Instant::now();
            while next(&mut body).await.unwrap().is_some() {
                body.room.taken_in(bytes);
            }
            begun.elapsed().as_secs()
        };
        assert_eq!((seconds(0).await, seconds(1).await), (4, 0), "a change each, 20,000 of them at once");
        let answer = service_fn(|_: Request<Body>| async { Ok::<_, BoxError>(http::Response::new(Body::empty())) });
        let seconds = async |bytes: u64| {
            let (shared, pace) = (SharedBytes::new(0), EventPaces::default().of(&None));
            let room = AnswerRoom::new(shared.none_of(&None), &pace);
            let client = held_in(&room, &Client::new(answer, "default"));
            let begun = Instant::now();
            for _ in 0..25_000 {
                drop(client.send(Request::new(Body::empty())).await.unwrap());
                room.taken_in(bytes);
            }
            begun.elapsed().as_secs()
        };
        assert_eq!((seconds(0).await, seconds(1).await), (4, 0), "the same of answers");
    }

    #[tokio::test]
    async fn c_88_a_page_is_held_until_its_objects_were_taken_in() {
        let values = "{},".repeat(1_000);
        let (shared, mut body) = body(AnswerKind::Whole, 4 << 20, &["[", &values, "\n0]"]);
        while next(&mut body).await.unwrap().is_some() {}
        let page = shared.taken();
        assert!(page > 700 * 1_000, "the values count and not their text: {page}");
        body.room.taken_in(page / 2);
        assert_eq!(shared.taken(), page - page / 2);
        drop(body);
        assert_eq!(shared.taken(), 0);
    }

    #[tokio::test]
    async fn c_88_what_has_no_room_fails_and_holds_nothing_then() {
        let (shared, mut body) = body(AnswerKind::Events, 1 << 20, &[&line(400), &line(600)]);
        assert_eq!(next(&mut body).await, Ok(Some((400 << 10) + 3)));
        let why = "its objects take more than the 524288 bytes of memory, shared with other namespaces, that are allowed; select \
                   fewer, or delete some";
        assert_eq!(next(&mut body).await, Err(why.to_owned()));
        assert_eq!((body.room.failed().as_deref(), body.room.failed(), shared.taken()), (Some(why), None, 0));
    }
}
