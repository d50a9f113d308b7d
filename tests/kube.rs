//! The suite `cluster` once more, as far as it looks at the controllers: on a real kube-apiserver with etcd, the operator with
//! no more rights than the chart gives it. `tests/kube/build.sh` builds the servers; without them everything is skipped.

#[cfg(test)]
#[path = "cluster/admission.rs"]
mod admission;
#[cfg(test)]
#[path = "cluster/automatic.rs"]
mod automatic;
#[cfg(test)]
#[path = "cluster/away.rs"]
mod away;
#[cfg(test)]
#[path = "cluster/cases.rs"]
mod cases;
#[cfg(test)]
#[path = "cluster/charts.rs"]
mod charts;
#[cfg(test)]
#[path = "cluster/conditions.rs"]
mod conditions;
#[cfg(test)]
#[path = "cluster/crashes.rs"]
mod crashes;
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
#[path = "kube/lease.rs"]
mod lease;
#[cfg(test)]
#[path = "cluster/on_change.rs"]
mod on_change;
#[cfg(test)]
#[path = "cluster/order.rs"]
mod order;
#[cfg(test)]
#[path = "kube/panics.rs"]
mod panics;
#[cfg(test)]
#[path = "cluster/policies.rs"]
mod policies;
#[cfg(test)]
#[path = "cluster/releases.rs"]
mod releases;
#[cfg(test)]
#[path = "cluster/removed.rs"]
mod removed;
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
#[path = "kube/targets.rs"]
mod targets;

/// The binary under test, in a folder of its own.
#[cfg(test)]
async fn binary() -> orangery_tests::binary::Binary {
    let program = env!("CARGO_BIN_EXE_orangery-under-test");
    orangery_tests::binary::Binary::prepared(program, env!("CARGO_TARGET_TMPDIR")).await
}

/// The same, with the servers' programs.
#[cfg(test)]
async fn programs() -> (orangery_tests::binary::Binary, orangery_tests::kube::Programs) {
    let programs = orangery_tests::kube::Programs::find_or_skip();
    (binary().await, programs)
}

/// What serves the worlds in which an operator is cut off.
#[cfg(test)]
fn ground() -> orangery_tests::world::Ground {
    orangery_tests::world::Ground::Kube(orangery_tests::kube::Programs::find_or_skip())
}

/// A server of its own, with an operator.
#[cfg(test)]
async fn cluster() -> orangery_tests::cluster::Cluster {
    cluster_with(&[]).await
}

/// The same, with these arguments for the operator.
#[cfg(test)]
async fn cluster_with(arguments: &[&str]) -> orangery_tests::cluster::Cluster {
    let (binary, programs) = programs().await;
    orangery_tests::cluster::Cluster::start_on_kube(&binary, &programs, arguments).await
}

/// A server on which workloads come to their end, and what sees to that.
#[cfg(test)]
async fn cluster_with_workloads() -> (orangery_tests::cluster::Cluster, orangery_tests::kubelet::Kubelet) {
    let cluster = cluster().await;
    let kubelet = orangery_tests::kubelet::Kubelet::start(cluster.client()).await;
    (cluster, kubelet)
}
