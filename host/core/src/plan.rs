//! Deciding: from what was gathered to what is to be done. Pure, and the only place that decides.

pub mod changes;
pub mod concurrency;
pub mod execution;
pub mod guard;
pub mod installation;
pub mod pick_up;
pub mod request;
pub mod rest;
