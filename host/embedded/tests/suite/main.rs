//! The server over HTTP, as clients see it: through TLS with the kube client, and in process for what that hides.

mod custom;
mod durable;
mod lifecycle;
mod objects;
mod patches;
mod scaffold;
mod surface;
mod watches;
