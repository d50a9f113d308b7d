//! Where figures are taken: on the embedded server, which is one process with the operator, or on a real one.

use orangery_tests::{
    binary::Binary,
    cluster::Cluster,
    kube::Programs,
    usage::{cpu_seconds, peak_resident_mebibytes},
};

/// A kind of server.
pub(crate) enum Place {
    /// That of `up`, its objects on disk.
    Embedded,
    /// kube-apiserver and etcd.
    Kube(Programs),
}

impl Place {
    /// A fresh server with an operator.
    pub(crate) async fn start(&self, binary: &Binary) -> Cluster {
        match self {
            Place::Embedded => Cluster::start(binary, &["--data", "state"]).await,
            Place::Kube(programs) => Cluster::start_on_kube(binary, programs, &[]).await,
        }
    }

    /// What the table calls it.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Place::Embedded => "embedded server",
            Place::Kube(_) => "kube-apiserver",
        }
    }
}

/// CpuTime seconds of a cluster so far.
#[derive(Clone, Copy)]
pub(crate) struct CpuTime {
    /// Of the operator, and of the embedded server.
    operator: f64,
    /// Of a real server and its store.
    server: f64,
}

impl CpuTime {
    /// Until now.
    pub(crate) fn used(cluster: &Cluster) -> CpuTime {
        let seconds = |process: u32| cpu_seconds(process).unwrap_or_default();
        let server = cluster.server_processes().iter().map(|process| seconds(*process)).sum();
        CpuTime { operator: seconds(cluster.process()), server }
    }

    /// That of the operator, and of the embedded server.
    pub(crate) fn operator(self) -> f64 {
        self.operator
    }

    /// What was used since an earlier moment.
    pub(crate) fn since(self, before: CpuTime) -> String {
        let (operator, server) = (self.operator - before.operator, self.server - before.server);
        if server > 0.0 {
            format!("{operator:.1} CPU s of the operator, {server:.1} of server and store: {:.2}", operator / server)
        } else {
            format!("{operator:.1} CPU s")
        }
    }
}

/// The most memory that the operator has had so far.
pub(crate) fn peak(cluster: &Cluster) -> String {
    format!("{:.0} MiB", peak_resident_mebibytes(cluster.process()).unwrap_or_default())
}
