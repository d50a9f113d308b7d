//! Installation, Execution, DeployItem and Context on the job protocol.
//!
//! Every kind has the same three rooms: a driver with the phases in order, what it gathers, and what it applies.
//! Deciding is `orangery_core::plan`. Nothing here names a component runtime: components are reached through the ports
//! of the core.

mod again;
mod artifacts;
mod conditions;
mod dependency;
mod event;
mod guard;
mod host;
mod job;
mod object;
mod outdated;
mod record;
mod removed;
mod seed;
mod target;

pub mod context;
pub mod deploy_item;
pub mod execution;
pub mod installation;

pub use dependency::{DEPENDENCIES, Dependency, Queues, clusters, wire};
pub use guard::{ConfigMapMeta, GuardController, GuardQueues, Guarded, SecretMeta};
pub use host::{Host, PICK_UP_TIMEOUT, Stores};
pub use seed::{HostKey, HostKeyError};
pub use target::OwnAddress;
