//! The server over HTTP, as clients see it: through TLS with the kube client, and in process for what that hides.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "the helpers of tests fail as tests do"
)]

mod clients;
mod custom;
mod durable;
mod executor;
mod lifecycle;
mod objects;
mod patches;
mod policies;
mod scaffold;
mod surface;
mod watches;
mod workloads;
