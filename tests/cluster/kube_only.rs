//! Suites that run on a real server only; `cases.rs` says why.

mod garbage;
mod host_cluster;
mod lease;
mod panics;
mod policies;
mod restarts;
mod targets;
mod warnings;
mod webhooks;

use std::process::Command;

use orangery_tests::{
    binary::{Binary, Running},
    kube::Programs,
};

/// The binary under test, and the programs of the servers.
async fn programs() -> (Binary, Programs) {
    let programs = Programs::find_or_skip();
    (crate::binary().await, programs)
}

/// Sends a signal, such as `-STOP`, to a process.
fn signal(process: &Running, name: &str) {
    let id = process.id().expect("it runs").to_string();
    let sent = Command::new("kill").args([name, &id]).status().expect("kill can be run");
    assert!(sent.success());
}
