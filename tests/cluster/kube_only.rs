//! Suites that run on a real server only; `cases.rs` says why.

mod lease;
mod panics;
mod targets;

use orangery_tests::{binary::Binary, kube::Programs};

/// The binary under test, and the programs of the servers.
async fn programs() -> (Binary, Programs) {
    let programs = Programs::find_or_skip();
    (crate::binary().await, programs)
}
