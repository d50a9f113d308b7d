//! Work of which it shows only while it comes in that it will take long: from then on it goes on off the executor.

use std::{
    cell::Cell,
    pin::Pin,
    task::{Context, Poll},
};

use futures::Stream;
use tokio::runtime::{Handle, RuntimeFlavor};

thread_local! {
    static PLACE: Cell<PollPlace> = const { Cell::new(PollPlace::Fixed) };
}

/// Where a thread polls something.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PollPlace {
    /// Where it has to stay: off the executor, or with nobody who would move it.
    Fixed,
    /// On the executor, which it may leave.
    Executor,
    /// The same; it wants to leave.
    Leaving,
}

/// Sets the place of this thread until it is dropped.
struct InPlace(PollPlace);

impl InPlace {
    fn new(place: PollPlace) -> Self {
        Self(PLACE.replace(place))
    }
}

impl Drop for InPlace {
    fn drop(&mut self) {
        PLACE.set(self.0);
    }
}

/// Does some work while another thread goes on with what the executor has to do. An executor of one thread has no other.
pub fn off_the_executor<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|executor| executor.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}

/// Asked by what is polled, before it works on what is large: whether it has to answer that it is pending, and is polled again at
/// once off the executor (C-112).
pub fn leaves_the_executor(context: &Context<'_>) -> bool {
    match PLACE.get() {
        PollPlace::Fixed => false,
        PollPlace::Executor | PollPlace::Leaving => {
            PLACE.set(PollPlace::Leaving);
            // Whoever is polled among others is polled again only where it was woken.
            context.waker().wake_by_ref();
            true
        }
    }
}

/// A stream that is polled on the executor until it [leaves](leaves_the_executor): what is small, as nearly all is, pays nothing.
#[derive(Debug)]
pub struct LeavingStream<S>(S);

impl<S> LeavingStream<S> {
    /// Over another stream.
    pub fn new(stream: S) -> Self {
        Self(stream)
    }
}

impl<S: Stream + Unpin> Stream for LeavingStream<S> {
    type Item = S::Item;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<S::Item>> {
        let mut poll = |place| {
            let _in_place = InPlace::new(place);
            let polled = Pin::new(&mut self.0).poll_next(context);
            (polled, PLACE.get() == PollPlace::Leaving)
        };
        match poll(PollPlace::Executor) {
            (Poll::Pending, true) => off_the_executor(|| poll(PollPlace::Fixed).0),
            (polled, _) => polled,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::mpsc::{Receiver, sync_channel},
        time::Duration,
    };

    use futures::{
        StreamExt,
        stream::{once, poll_fn, select},
    };
    use tokio::time::timeout;

    use super::*;

    const DEADLINE: Duration = Duration::from_secs(20);

    /// Whether somebody else on the executor goes on while this thread computes.
    fn others_go_on() -> impl FnOnce() -> bool + Send {
        let (sender, receiver): (_, Receiver<()>) = sync_channel(1);
        let executor = Handle::current();
        move || {
            executor.spawn(async move { sender.send(()) });
            receiver.recv_timeout(DEADLINE / 4).is_ok()
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn c_112_what_turns_out_to_be_large_goes_on_off_the_executor_and_what_is_small_stays() {
        let went_on = tokio::spawn(async {
            let mut work = vec![(false, others_go_on()), (true, others_go_on())].into_iter();
            let mut next = work.next();
            let events = poll_fn(move |context| {
                if next.as_ref().is_some_and(|(is_large, _)| *is_large) && leaves_the_executor(context) {
                    return Poll::Pending;
                }
                let went_on = next.take().map(|(_, work)| work());
                next = work.next();
                Poll::Ready(went_on)
            });
            LeavingStream::new(events).collect::<Vec<bool>>().await
        });
        let went_on = timeout(DEADLINE, went_on).await.expect("in time").unwrap();
        assert_eq!(went_on, [false, true]);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn c_112_one_among_others_leaves_as_well_and_one_that_nobody_moves_stays() {
        let went_on = tokio::spawn(async {
            let large = |work: Box<dyn FnOnce() -> bool + Send>| {
                let mut work = Some(work);
                poll_fn(move |context| match leaves_the_executor(context) {
                    true => Poll::Pending,
                    false => Poll::Ready(work.take().map(|work| work())),
                })
            };
            let among = select(large(Box::new(others_go_on())), once(async { true }).boxed());
            let moved = LeavingStream::new(among).collect::<Vec<bool>>().await;
            (moved, large(Box::new(|| true)).collect::<Vec<bool>>().await)
        });
        let went_on = timeout(DEADLINE, went_on).await.expect("in time").unwrap();
        assert_eq!(went_on, (vec![true, true], vec![true]));
    }
}
