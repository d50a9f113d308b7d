//! The ticks of the processor's clock, by which calls are measured and stopped.

use std::sync::atomic::{AtomicU64, Ordering};

/// Milliseconds of one tick of the processor's clock.
pub(crate) const TICK_MILLISECONDS: u64 = 10;

/// How often the clock has ticked.
#[derive(Debug, Default)]
pub(crate) struct Epochs(AtomicU64);

impl Epochs {
    /// Ticks since the start.
    pub(crate) fn passed(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// One tick.
    pub(crate) fn advance(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}
