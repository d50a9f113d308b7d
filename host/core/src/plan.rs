//! Deciding: from what was gathered to what is to be done. Pure, and the only place that decides.

pub mod approval;
pub mod beginning;
pub mod changes;
pub mod concurrency;
pub mod execution;
pub mod guard;
pub mod idle;
pub mod installation;
pub mod pick_up;
pub mod plugin;
pub mod reconcile;
pub mod renamed;
pub mod request;
pub mod target_sync;
