//! What the core asks of the rest of the host: time and randomness, implemented in `runtime`.

use std::{future::Future, pin::Pin};

use crate::name::JobId;

/// A future that can be held behind a trait object.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The one source of time. Implemented in `runtime`.
pub trait Clock: Send + Sync {
    /// Now.
    fn now(&self) -> jiff::Timestamp;
}

/// The one source of randomness. Implemented in `runtime`.
pub trait Rng: Send + Sync {
    /// A new job id: a UUID of version 4.
    fn job_id(&self) -> JobId;
    /// A number between 0 and 1, for the jitter of intervals.
    fn fraction(&self) -> f64;
    /// Bytes that nobody can guess.
    fn secret(&self) -> [u8; 32];
}

/// The slot of a call, of which only so many are under way at once. One that waits on somebody else's server lends its slot
/// to others meanwhile. Implemented in `reconcile`.
pub trait LendableSlot: Send + Sync {
    /// The call waits: others may have its slot. Asked for as often as [`take_back`](Self::take_back).
    fn lend(&self);
    /// The call goes on, whether or not there is room.
    fn take_back(&self);
}
