//! What may take long is done off the executor, which goes on with all requests that do not.

use std::{
    future::poll_fn,
    num::NonZeroUsize,
    pin::pin,
    sync::Arc,
    task::{Context, Poll},
    thread::available_parallelism,
};

use tokio::{
    runtime::{Handle, RuntimeFlavor},
    sync::Semaphore,
};

/// How many are carried out at once for each processor. The others wait until it is their turn, in the order in which they came.
const AT_ONCE_EACH: usize = 2;

/// Bytes from which on a body, or objects that are read and written anew, may take longer than a millisecond.
pub(crate) const LARGE: u64 = 64 << 10;

/// The places of requests that may take long.
#[derive(Debug)]
pub(crate) struct LargeRequests(Arc<Semaphore>);

impl Default for LargeRequests {
    fn default() -> Self {
        let processors = available_parallelism().map_or(1, NonZeroUsize::get);
        Self(Arc::new(Semaphore::new(processors * AT_ONCE_EACH)))
    }
}

impl LargeRequests {
    /// Carries a request out. It has a place whenever it goes on, and none while it waits for its body or the disk.
    pub(crate) async fn carry_out<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        loop {
            // The places are never closed.
            let place = self.0.acquire().await;
            let went_on = poll_fn(|context| {
                let waker = context.waker();
                Poll::Ready(off_the_executor(|| work.as_mut().poll(&mut Context::from_waker(waker))))
            });
            let went_on = went_on.await;
            drop(place);
            match went_on {
                Poll::Ready(answer) => return answer,
                Poll::Pending => woken().await,
            }
        }
    }
}

/// Pending until the task is polled again: what it waits for has its waker.
async fn woken() {
    let mut is_polled_again = false;
    poll_fn(|_| if std::mem::replace(&mut is_polled_again, true) { Poll::Ready(()) } else { Poll::Pending }).await;
}

/// Another thread goes on with what the executor has to do. An executor of one thread has no other.
pub(crate) fn off_the_executor<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|executor| executor.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}
