//! The loop: takes keys from the queue and calls the controller, as many at once as it may.

use std::{any::Any, collections::BTreeMap, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures::FutureExt;
use orangery_core::{name::Namespace, port::Rng, step::Halt};
use orangery_turns::HeldBytes;
use tokio::{task::JoinSet, time::Instant};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::{
    CONFLICT, Key, Queue, Store, Watched,
    call_memory::reserve_for_object,
    queue::Ended,
    slot::CallSlots,
    stale_watch::StaleWatchTimer,
    unfinished::{CallAdmission, CallAside, Crash, UnfinishedCalls},
};

/// When a controller wants to be called again after a call that ended well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextCall {
    /// It is where it should be: only an event calls again.
    Settled,
    /// It waits: an event calls again, and a timer after this long, if there is one. Hears it nothing for longer than
    /// 15 to 30 seconds, it [looks again](Controller::look_again) (C-11).
    Waiting(Option<Duration>),
    /// At once, after those who wait already.
    Again,
    /// After this long, unless an event calls earlier.
    After(Duration),
}

/// Brings the objects of one kind to where they should be, one at a time.
pub trait Controller: Send + Sync + 'static {
    /// The kind.
    type Object: Watched;
    /// Names the controller in logs and metrics, such as `installation`.
    const NAME: &'static str;

    /// Takes one object a step further. `object` is the newest version known. Called again after every change of the
    /// object, our own included, and never twice at once for one object.
    ///
    /// # Errors
    /// [`Halt::Wait`]: called again by an event, or after its poll. [`Halt::Retry`]: called again with growing
    /// backoff, silently for a failure with the reason [`CONFLICT`]. [`Halt::Stall`]: called again by an event.
    fn reconcile(&self, object: Arc<Self::Object>) -> impl Future<Output = Result<NextCall, Halt>> + Send;

    /// Reads from the server what a waiting object would otherwise hear from watches: what it waits for, and itself. Called
    /// before [`reconcile`](Self::reconcile) when no event came for long; with growing intervals, so that a watch that lost
    /// something costs time and no more.
    ///
    /// # Errors
    /// As of `reconcile`, which is not called then.
    fn refresh(&self, object: Arc<Self::Object>) -> impl Future<Output = Result<(), Halt>> + Send;

    /// Tells the owner of an object what has ended its calls: these could not say so themselves.
    fn tell_of_crashes(&self, object: Arc<Self::Object>, crash: Crash) -> impl Future<Output = ()> + Send {
        let _ = (object, crash);
        std::future::ready(())
    }
}

/// How often in a row calls of an object panic before its owner is told.
pub const TOLD_AFTER: u32 = 3;

/// A call that panicked. A panic is a mistake of the program: whoever reads of it can report it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Panicked {
    /// The controller that was called: [`Controller::NAME`].
    pub controller: &'static str,
    /// For which object.
    pub key: Key,
    /// What the panic said.
    pub message: String,
}

/// How a loop calls its controller, and who hears of panics.
#[derive(Clone)]
pub struct ControllerOptions {
    /// Objects that are worked on at the same time; at least one is. Calls that wait on somebody else's server do not count.
    pub concurrency: usize,
    /// Spreads what is tried again.
    pub rng: Arc<dyn Rng>,
    /// Told of each call that panicked; must not block.
    pub panicked: Arc<dyn Fn(&Panicked) + Send + Sync>,
    /// Where calls are written down; `None` where nothing is left of a process that is killed.
    pub unfinished: Option<Arc<UnfinishedCalls>>,
}

/// Calls `controller` for every object of `store` that is woken in `queue`, until `stop`; then waits for the calls
/// that are under way. Dropping the future ends them.
///
/// A call that lends its slot makes room for another one; so many as [`MOST_CALLS`] are under way at most.
///
/// Waits for the first list, wakes all objects once, and from then on every object that changes. A panic ends only
/// its own call, which is tried again. Failures are tried again after a random time under a ceiling that doubles from
/// 0.1 s to 1 min (C-12: full jitter, capped; no throttling in the client).
pub async fn run<C: Controller>(
    controller: Arc<C>,
    store: Store<C::Object>,
    queue: Queue,
    options: ControllerOptions,
    stop: CancellationToken,
) {
    if stop.run_until_cancelled(store.synced()).await.is_none() {
        return;
    }
    let ControllerOptions { concurrency, rng, panicked, unfinished } = options;
    unfinished.iter().for_each(|unfinished| unfinished.retain(C::NAME, |key| store.knows(key)));
    wake_on_change(&store, &queue);
    let mut calls = JoinSet::new();
    let slots = Arc::<CallSlots>::default();
    let mut failures = BTreeMap::<Key, FailuresInARow>::new();
    let mut stale_watch = StaleWatchTimer::default();
    let is_suspected = |namespace: &Namespace| {
        unfinished.as_deref().is_some_and(|unfinished| unfinished.suspects(namespace, Instant::now()))
    };
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            Some(ended) = calls.join_next() => {
                tell(&ended, panicked.as_ref());
                finish_call(ended, &queue, &mut failures, &mut stale_watch, rng.as_ref());
            }
            () = slots.one_more() => {}
            (key, cause) = queue.next(is_suspected), if has_room(&calls, &slots, concurrency) => {
                if store.knows(&key) {
                    let silence = stale_watch.is_stale(&key, cause, Instant::now());
                    queue.count(cause, silence);
                    let panicked = failures.get(&key).map_or(0, |failures| failures.panicked);
                    let called = (Arc::clone(&controller), panicked);
                    // On the heap: calls are large, and would be on the stack once for each function that polls them.
                    let call = Box::pin(written_down(unfinished.clone(), called, key, store.clone(), silence));
                    calls.spawn(Arc::clone(&slots).carry_out(call));
                } else {
                    failures.remove(&key);
                    stale_watch.release(&key);
                    unfinished.iter().for_each(|unfinished| unfinished.gone(C::NAME, &key));
                    queue.finish(&key, Ended::Settled);
                    queue.forget(&key);
                }
            }
        }
    }
    while let Some(ended) = calls.join_next().await {
        tell(&ended, panicked.as_ref());
        finish_call(ended, &queue, &mut failures, &mut stale_watch, rng.as_ref());
    }
}

/// The most calls of one loop that are under way, those included that wait on somebody else's server.
pub const MOST_CALLS: usize = 1_024;

fn has_room(calls: &JoinSet<EndedCall>, slots: &CallSlots, concurrency: usize) -> bool {
    calls.len() < MOST_CALLS && calls.len().saturating_sub(slots.lent()) < concurrency.max(1)
}

fn wake_on_change<K: Watched>(store: &Store<K>, queue: &Queue) {
    let woken = queue.clone();
    // An object that is gone is woken as well: its times and failures are dropped when its turn comes.
    store.subscribe(move |change| {
        if let Some(key) = change.key() {
            woken.wake(key);
        }
    });
    for key in store.keys(None) {
        queue.wake(key);
    }
}

/// A call that has ended: whose it was, and how.
type EndedCall = (Key, Result<Result<NextCall, Halt>, Panicked>);

/// The last calls of an object, as far as they have failed.
#[derive(Default)]
struct FailuresInARow {
    failed: u32,
    /// Of these the last ones, as far as they have panicked.
    panicked: u32,
}

/// An object about to be called, with what is reserved for the call; `None` where it is gone, or its text cannot be decoded, which
/// was logged. A long one waits for its turn as text alone, and is decoded off the executor.
async fn unfolded<K: Watched>(store: &Store<K>, key: &Key) -> Option<(Arc<K>, Option<HeldBytes>)> {
    let form = store.form(key)?;
    let Some(long) = form.long() else { return Some((form.object()?, None)) };
    drop(form);
    let held = reserve_for_object(&key.namespace, long).await;
    // It may have changed meanwhile.
    let form = store.form(key)?;
    Some((form.object()?, Some(held)))
}

/// The same written down while it is under way, and not at all for now where that has ended processes (C-283).
async fn written_down<C: Controller>(
    unfinished: Option<Arc<UnfinishedCalls>>,
    called: (Arc<C>, u32),
    key: Key,
    store: Store<C::Object>,
    is_stale: bool,
) -> EndedCall {
    let Some(unfinished) = unfinished else { return Box::pin(call(called, key, store, is_stale)).await };
    let is_alone = match unfinished.admit(C::NAME, &key, Instant::now()) {
        CallAdmission::Free => false,
        CallAdmission::Alone => true,
        CallAdmission::Later(time) => return (key, Ok(Ok(NextCall::After(time)))),
        CallAdmission::Aside(CallAside { left, told }) => {
            if let Some(why) = told {
                let tell = async {
                    if let Some((object, _reserved)) = unfolded(&store, &key).await {
                        tell_of_crashes(called.0.as_ref(), object, why).await;
                    }
                };
                unfinished.tell(C::NAME, &key, Box::pin(tell.instrument(span::<C>(&key)))).await;
            }
            return (key, Ok(Ok(NextCall::After(left))));
        }
    };
    let of = key.clone();
    unfinished.carry_out(C::NAME, &of, is_alone, Box::pin(call(called, key, store, is_stale))).await
}

fn span<C: Controller>(key: &Key) -> tracing::Span {
    tracing::info_span!("reconcile", controller = C::NAME, object = %key)
}

async fn tell_of_crashes<C: Controller>(controller: &C, object: Arc<C::Object>, crash: Crash) {
    let key = Key::of(object.as_ref());
    if AssertUnwindSafe(controller.tell_of_crashes(object, crash)).catch_unwind().await.is_err() {
        tracing::error!(object = %key, "telling of crashes panicked as well");
    }
}

/// Calls the controller, whose calls for this object have panicked so often in a row; one that heard nothing for long is read again
/// before.
async fn call<C: Controller>(
    (controller, panicked): (Arc<C>, u32),
    key: Key,
    store: Store<C::Object>,
    is_stale: bool,
) -> EndedCall {
    let Some((object, _reserved)) = unfolded(&store, &key).await else { return (key, Ok(Ok(NextCall::Settled))) };
    let span = span::<C>(&key);
    let work = async {
        if !is_stale {
            return controller.reconcile(Arc::clone(&object)).await;
        }
        tracing::debug!("it waits and heard nothing for long: what it waits for is read again");
        controller.refresh(Arc::clone(&object)).await?;
        match store.get(&key) {
            Some(object) => controller.reconcile(object).await,
            None => Ok(NextCall::Settled),
        }
    };
    let ended = AssertUnwindSafe(work).catch_unwind().instrument(span.clone()).await;
    let ended =
        ended.map_err(|panic| Panicked { controller: C::NAME, key: key.clone(), message: report(panic.as_ref()) });
    span.in_scope(|| log(&ended));
    if ended.is_err() && panicked.saturating_add(1) >= TOLD_AFTER {
        tell_of_crashes(controller.as_ref(), object, Crash::Panicked).instrument(span).await;
    }
    (key, ended)
}

/// Errors are logged once, here; what an object's status tells its owner as well is no warning.
fn log(ended: &Result<Result<NextCall, Halt>, Panicked>) {
    match ended {
        Ok(Ok(_) | Err(Halt::Wait(_))) => {}
        Ok(Err(Halt::Retry(failure))) if failure.reason == CONFLICT => {
            tracing::debug!("met a conflict and is called again: {failure}");
        }
        Ok(Err(Halt::Retry(failure))) => {
            tracing::warn!(reason = failure.reason, "failed and is called again: {failure}");
        }
        Ok(Err(Halt::Stall(failure))) => {
            tracing::debug!(reason = failure.reason, "stalled until it changes: {failure}");
        }
        Err(panicked) => tracing::error!("a reconcile panicked and is called again: {}", panicked.message),
    }
}

fn report(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}

fn tell(ended: &Result<EndedCall, tokio::task::JoinError>, panicked: &dyn Fn(&Panicked)) {
    if let Ok((_, Err(panic))) = ended {
        panicked(panic);
    }
}

/// Says when the key of an ended call is called again.
fn finish_call(
    ended: Result<EndedCall, tokio::task::JoinError>,
    queue: &Queue,
    failures: &mut BTreeMap<Key, FailuresInARow>,
    stale_watch: &mut StaleWatchTimer,
    rng: &dyn Rng,
) {
    // A task that is cancelled belongs to a runtime that is shutting down; panics are caught within the task.
    let Ok((key, result)) = ended else { return };
    let (how, again) = match classify(result) {
        (how, Requeue::After(again)) => {
            failures.remove(&key);
            stale_watch.release(&key);
            (how, again)
        }
        (how, Requeue::OnEvent(timer)) => {
            failures.remove(&key);
            let silence = stale_watch.wait(&key, Instant::now(), rng.fraction());
            (how, Some(timer.map_or(silence, |timer| timer.min(silence))))
        }
        (how, Requeue::Backoff) => {
            let failures = failures.entry(key.clone()).or_default();
            failures.failed = failures.failed.saturating_add(1);
            failures.panicked = if how == Ended::Panicked { failures.panicked.saturating_add(1) } else { 0 };
            (how, Some(backoff(failures.failed, rng.fraction())))
        }
    };
    queue.finish(&key, how);
    match again {
        None => {}
        Some(Duration::ZERO) => queue.wake(key),
        Some(after) => queue.wake_in(key, after),
    }
}

/// When a key is called again, an event apart.
enum Requeue {
    After(Option<Duration>),
    /// It waits for one; at the latest after this long.
    OnEvent(Option<Duration>),
    Backoff,
}

fn classify(result: Result<Result<NextCall, Halt>, Panicked>) -> (Ended, Requeue) {
    match result {
        Ok(Ok(NextCall::Settled)) => (Ended::Settled, Requeue::After(None)),
        Ok(Ok(NextCall::Again)) => (Ended::Settled, Requeue::After(Some(Duration::ZERO))),
        Ok(Ok(NextCall::After(time))) => (Ended::Settled, Requeue::After(Some(time))),
        Ok(Ok(NextCall::Waiting(timer))) => (Ended::Settled, Requeue::OnEvent(timer)),
        Ok(Err(Halt::Wait(wait))) => (Ended::Settled, Requeue::OnEvent(wait.again_in())),
        Ok(Err(Halt::Retry(failure))) if failure.reason == CONFLICT => (Ended::Conflict, Requeue::Backoff),
        Ok(Err(Halt::Retry(_))) => (Ended::Retried, Requeue::Backoff),
        Ok(Err(Halt::Stall(_))) => (Ended::Stalled, Requeue::After(None)),
        Err(_) => (Ended::Panicked, Requeue::Backoff),
    }
}

const FIRST_CEILING: Duration = Duration::from_millis(100);
const LAST_CEILING: Duration = Duration::from_secs(60);

/// A random part of a ceiling that doubles with every failure in a row.
fn backoff(failed: u32, fraction: f64) -> Duration {
    let doubled = 2_u32.saturating_pow(failed.saturating_sub(1));
    let ceiling = FIRST_CEILING.checked_mul(doubled).map_or(LAST_CEILING, |ceiling| ceiling.min(LAST_CEILING));
    ceiling.mul_f64(fraction.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests;
