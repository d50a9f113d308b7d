//! Suites that run on a real server only; `cases.rs` says why.

mod approvals;
mod canaries;
mod chart;
mod components;
mod garbage;
mod host_cluster;
mod lease;
mod metrics;
mod panics;
mod policies;
mod quotas;
mod restarts;
mod targets;
mod webhooks;

use orangery_tests::{binary::Binary, kube::Programs};

/// The binary under test, and the programs of the servers.
async fn programs() -> (Binary, Programs) {
    let programs = Programs::find();
    (crate::binary().await, programs)
}
