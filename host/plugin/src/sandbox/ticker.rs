//! The processor's clock of guests: a thread that advances the engine's epoch every 10 ms while calls run, and sleeps else.

use std::{
    sync::{
        Arc, Condvar, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use wasmtime::Engine;

use crate::{
    epochs::{Epochs, TICK_MILLISECONDS},
    error::Error,
};

/// Ticks without a call after which the thread sleeps. Waking it costs a short call more than it takes itself.
const IDLE_TICKS: u32 = 20;

#[derive(Default)]
struct TickerState {
    epochs: Arc<Epochs>,
    calls: AtomicUsize,
    asleep: AtomicBool,
    ended: AtomicBool,
    /// Protects nothing but the moment between looking at `calls` and falling asleep.
    bed: Mutex<()>,
    wake: Condvar,
}

impl TickerState {
    fn rouse(&self) {
        let _bed = self.bed.lock().unwrap_or_else(PoisonError::into_inner);
        self.wake.notify_all();
    }

    fn sleep(&self) {
        let mut bed = self.bed.lock().unwrap_or_else(PoisonError::into_inner);
        self.asleep.store(true, Ordering::SeqCst);
        while self.calls.load(Ordering::SeqCst) == 0 && !self.ended.load(Ordering::SeqCst) {
            bed = self.wake.wait(bed).unwrap_or_else(PoisonError::into_inner);
        }
        self.asleep.store(false, Ordering::SeqCst);
    }

    fn run(&self, engine: &Engine) {
        let mut idle = 0;
        while !self.ended.load(Ordering::SeqCst) {
            if idle >= IDLE_TICKS {
                self.sleep();
                idle = 0;
            }
            thread::sleep(Duration::from_millis(TICK_MILLISECONDS));
            self.epochs.advance();
            engine.increment_epoch();
            idle = if self.calls.load(Ordering::SeqCst) == 0 { idle + 1 } else { 0 };
        }
    }
}

/// The thread, which ends with this value.
pub(crate) struct Ticker(Arc<TickerState>);

impl Ticker {
    pub(crate) fn start(engine: &Engine) -> Result<Self, Error> {
        let state = Arc::new(TickerState::default());
        let (ticking, engine) = (state.clone(), engine.clone());
        thread::Builder::new()
            .name("guest-clock".to_owned())
            .spawn(move || ticking.run(&engine))
            .map_err(|error| Error::Engine { why: format!("its clock has no thread: {error}") })?;
        Ok(Self(state))
    }

    /// Ticks until the answer is dropped.
    pub(crate) fn enter(&self) -> Ticking<'_> {
        self.0.calls.fetch_add(1, Ordering::SeqCst);
        if self.0.asleep.load(Ordering::SeqCst) {
            self.0.rouse();
        }
        Ticking(&self.0)
    }

    pub(crate) fn epochs(&self) -> &Arc<Epochs> {
        &self.0.epochs
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.0.ended.store(true, Ordering::SeqCst);
        self.0.rouse();
    }
}

/// A call that runs.
pub(crate) struct Ticking<'a>(&'a TickerState);

impl Drop for Ticking<'_> {
    fn drop(&mut self) {
        self.0.calls.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    /// Waits for a condition of another thread.
    #[track_caller]
    fn eventually(condition: impl Fn() -> bool) {
        let start = Instant::now();
        while !condition() {
            assert!(start.elapsed() < Duration::from_secs(10), "the condition did not come true");
            thread::yield_now();
        }
    }

    #[test]
    fn the_clock_ticks_while_a_call_runs_and_sleeps_when_none_does() {
        let ticker = Ticker::start(&Engine::default()).unwrap();
        eventually(|| ticker.0.asleep.load(Ordering::SeqCst));
        let before = ticker.epochs().passed();
        let call = ticker.enter();
        eventually(|| ticker.epochs().passed() > before + 2);
        drop(call);
        eventually(|| ticker.0.asleep.load(Ordering::SeqCst));
    }
}
