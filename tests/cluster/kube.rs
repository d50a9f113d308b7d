//! The same [`cases`] on a real kube-apiserver with etcd, the operator with no more rights than the chart gives it.
//! `tests/kube/build.sh` builds the servers; without them everything is skipped.

#[cfg(test)]
mod cases;
#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod kube_only;

#[cfg(test)]
use fixtures::{binary, cluster, cluster_of, cluster_with, cluster_with_workloads};

/// What serves the cases.
#[cfg(test)]
fn ground() -> orangery_tests::world::Ground {
    orangery_tests::world::Ground::Kube(orangery_tests::kube::Programs::find_or_skip())
}
