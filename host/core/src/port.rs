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
