//! Words, decisions and ports of Orangery.
//!
//! Nothing here reads a clock, a file, the environment or a cluster, takes a lock or is random: the same input gives
//! the same plan, the same digest and the same message. The rest of the host gathers what is needed, asks this crate
//! what to do, and does it.

pub mod automatic;
pub mod condition;
pub mod dag;
pub mod digest;
pub mod duration;
pub mod error;
pub mod job;
pub mod jsonpath;
pub mod lenient;
pub mod levels;
pub mod listing;
pub mod masking;
pub mod memory;
pub mod name;
pub mod network;
pub mod pattern;
pub mod phase;
pub mod plan;
pub mod port;
pub mod step;
pub mod walk;
pub mod workflow;
pub mod yaml;
