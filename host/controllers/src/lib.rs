//! Installation, Execution, DeployItem and Context on the job protocol.
//!
//! Every kind has the same three rooms: a driver with the phases in order, what it gathers, and what it applies.
//! Deciding is `orangery_core::plan`. Nothing here names a component runtime: components are reached through the ports
//! of the core.

mod again;
mod event;
mod host;
mod job;
mod object;
mod record;
mod removed;
mod seed;
mod target;
mod wake;

pub mod context;
pub mod deploy_item;
pub mod execution;
pub mod installation;

pub use host::{Host, PICK_UP_TIMEOUT, Stores};
pub use seed::{HostKey, HostKeyError};
pub use target::OwnAddress;
pub use wake::{Queues, clusters, wire};
