//! The whole system: the binary under test, an API server over HTTP, components in their sandbox.

#[cfg(test)]
#[path = "cluster/admission.rs"]
mod admission;
#[cfg(test)]
#[path = "cluster/alike.rs"]
mod alike;
#[cfg(test)]
#[path = "cluster/automatic.rs"]
mod automatic;
#[cfg(test)]
#[path = "cluster/away.rs"]
mod away;
#[cfg(test)]
#[path = "cluster/blueprints.rs"]
mod blueprints;
#[cfg(test)]
#[path = "cluster/cases.rs"]
mod cases;
#[cfg(test)]
#[path = "cluster/chart_sources.rs"]
mod chart_sources;
#[cfg(test)]
#[path = "cluster/charts.rs"]
mod charts;
#[cfg(test)]
#[path = "cluster/components.rs"]
mod components;
#[cfg(test)]
#[path = "cluster/conditions.rs"]
mod conditions;
#[cfg(test)]
#[path = "cluster/crashes.rs"]
mod crashes;
#[cfg(test)]
#[path = "cluster/examples.rs"]
mod examples;
#[cfg(test)]
#[path = "cluster/executions.rs"]
mod executions;
#[cfg(test)]
#[path = "cluster/foreign.rs"]
mod foreign;
#[cfg(test)]
#[path = "cluster/golden.rs"]
mod golden;
#[cfg(test)]
#[path = "cluster/guards.rs"]
mod guards;
#[cfg(test)]
#[path = "cluster/helm_cli.rs"]
mod helm_cli;
#[cfg(test)]
#[path = "cluster/hostile.rs"]
mod hostile;
#[cfg(test)]
#[path = "cluster/installations.rs"]
mod installations;
#[cfg(test)]
#[path = "cluster/offline.rs"]
mod offline;
#[cfg(test)]
#[path = "cluster/offline_components.rs"]
mod offline_components;
#[cfg(test)]
#[path = "cluster/offline_examples.rs"]
mod offline_examples;
#[cfg(test)]
#[path = "cluster/on_change.rs"]
mod on_change;
#[cfg(test)]
#[path = "cluster/order.rs"]
mod order;
#[cfg(test)]
#[path = "cluster/plans.rs"]
mod plans;
#[cfg(test)]
#[path = "cluster/policies.rs"]
mod policies;
#[cfg(test)]
#[path = "../host/registry/tests/oci/registry.rs"]
#[expect(dead_code, reason = "the suite of the room reads the same fixture in more ways")]
mod real_registry;
#[cfg(test)]
#[path = "cluster/registry.rs"]
mod registry;
#[cfg(test)]
#[path = "cluster/release_tests.rs"]
mod release_tests;
#[cfg(test)]
#[path = "cluster/releases.rs"]
mod releases;
#[cfg(test)]
#[path = "cluster/removed.rs"]
mod removed;
#[cfg(test)]
#[path = "cluster/requests.rs"]
mod requests;
#[cfg(test)]
#[path = "cluster/round_trips.rs"]
mod round_trips;
#[cfg(test)]
#[path = "cluster/schedules.rs"]
mod schedules;
#[cfg(test)]
#[path = "cluster/silence.rs"]
mod silence;
#[cfg(test)]
#[path = "cluster/stock_charts.rs"]
mod stock_charts;
#[cfg(test)]
#[path = "cluster/truth.rs"]
mod truth;
#[cfg(test)]
#[path = "cluster/usage.rs"]
mod usage;
#[cfg(test)]
#[path = "cluster/workloads.rs"]
mod workloads;

/// The binary under test, in a folder of its own.
#[cfg(test)]
async fn binary() -> orangery_tests::binary::Binary {
    let program = env!("CARGO_BIN_EXE_orangery-under-test");
    orangery_tests::binary::Binary::prepared(program, env!("CARGO_TARGET_TMPDIR")).await
}

/// What serves the worlds in which an operator is cut off.
#[cfg(test)]
fn ground() -> orangery_tests::world::Ground {
    orangery_tests::world::Ground::Embedded
}

/// A server and operator that keep everything in memory.
#[cfg(test)]
async fn cluster() -> orangery_tests::cluster::Cluster {
    cluster_with(&[]).await
}

/// The same, with these arguments for the operator.
#[cfg(test)]
async fn cluster_with(arguments: &[&str]) -> orangery_tests::cluster::Cluster {
    orangery_tests::cluster::Cluster::start(&binary().await, &[&["--ephemeral"], arguments].concat()).await
}

/// A server on which workloads come to their end, and what sees to that.
#[cfg(test)]
async fn cluster_with_workloads() -> (orangery_tests::cluster::Cluster, ()) {
    (cluster_with(&["--simulate-workloads"]).await, ())
}
