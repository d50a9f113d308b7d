//! Words, decisions and ports of Orangery.
//!
//! Nothing here reads a clock, a file, the environment or a cluster, takes a lock or is random: the same input gives
//! the same plan, the same digest and the same message. The rest of the host gathers what is needed, asks this crate
//! what to do, and does it.

pub mod condition;
pub mod dag;
pub mod error;
pub mod grant;
pub mod job;
pub mod phase;
pub mod plan;
pub mod port;
pub mod proposal;
pub mod step;
pub mod template;
pub mod walk;
