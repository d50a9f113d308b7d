//! The whole system: the binary under test, an API server over HTTP, components in their sandbox.

#[cfg(test)]
#[path = "cluster/cases.rs"]
mod cases;
#[cfg(test)]
#[path = "cluster/crashes.rs"]
mod crashes;
#[cfg(test)]
#[path = "cluster/examples.rs"]
mod examples;
#[cfg(test)]
#[path = "cluster/foreign.rs"]
mod foreign;
#[cfg(test)]
#[path = "cluster/order.rs"]
mod order;
#[cfg(test)]
#[path = "cluster/requests.rs"]
mod requests;
#[cfg(test)]
#[path = "cluster/usage.rs"]
mod usage;

/// The binary under test, in a folder of its own.
#[cfg(test)]
fn binary() -> orangery_tests::binary::Binary {
    orangery_tests::binary::Binary::new(env!("CARGO_BIN_EXE_orangery-under-test"), env!("CARGO_TARGET_TMPDIR"))
}

/// A server and operator that keep everything in memory.
#[cfg(test)]
async fn cluster() -> orangery_tests::cluster::Cluster {
    orangery_tests::cluster::Cluster::start(&binary(), &["--ephemeral"]).await
}
