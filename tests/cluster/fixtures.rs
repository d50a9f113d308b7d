//! What the cases begin with, whatever serves them: the binary under test and a server with an operator.

use orangery_tests::{binary::Binary, cluster::Cluster, kubelet::Kubelet, world::Ground};

/// The binary under test, in a folder of its own.
pub(crate) async fn binary() -> Binary {
    let program = env!("CARGO_BIN_EXE_orangery-under-test");
    Binary::prepared(program, env!("CARGO_TARGET_TMPDIR")).await
}

/// A server of its own with an operator, which has these arguments.
pub(crate) async fn cluster_of(binary: &Binary, arguments: &[&str]) -> Cluster {
    match crate::ground() {
        Ground::Embedded => Cluster::start(binary, &[&["--ephemeral"], arguments].concat()).await,
        Ground::Kube(programs) => Cluster::start_on_kube(binary, &programs, arguments).await,
    }
}

/// The same, of a binary in a folder that nothing else needs.
pub(crate) async fn cluster_with(arguments: &[&str]) -> Cluster {
    cluster_of(&binary().await, arguments).await
}

/// The same, without arguments.
pub(crate) async fn cluster() -> Cluster {
    cluster_with(&[]).await
}

/// A server on which workloads come to their end. Where the operator does not simulate them, a kubelet does.
pub(crate) async fn cluster_with_workloads() -> (Cluster, Option<Kubelet>) {
    match crate::ground() {
        Ground::Embedded => (cluster_with(&["--simulate-workloads"]).await, None),
        Ground::Kube(_) => {
            let cluster = cluster().await;
            let kubelet = Kubelet::start(cluster.client()).await;
            (cluster, Some(kubelet))
        }
    }
}
