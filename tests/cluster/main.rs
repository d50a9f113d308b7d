//! The whole system on the embedded API server: the binary under test, the server over HTTP, components in their sandbox.
//!
//! [`cases`] run on a real kube-apiserver as well (`kube.rs`); [`embedded_only`] says why its suites do not.

#[cfg(test)]
mod cases;
#[cfg(test)]
mod embedded_only;
#[cfg(test)]
mod fixtures;

#[cfg(test)]
use fixtures::{binary, cluster, cluster_of, cluster_with, cluster_with_workloads};

/// What serves the cases.
#[cfg(test)]
fn ground() -> orangery_tests::world::Ground {
    orangery_tests::world::Ground::Embedded
}
