//! Kubeconfigs of Targets, and whose they are.

/// A kubeconfig by which a cluster is reached.
#[derive(Clone)]
pub(crate) struct TargetKubeconfig {
    /// As a client takes it.
    pub(crate) text: String,
    /// Whether the operator itself made it for the cluster that it runs in: that one is where it is, and nobody else chose its
    /// address (C-103).
    pub(crate) is_own: bool,
}

impl From<String> for TargetKubeconfig {
    /// One that others have written, whatever it names.
    fn from(text: String) -> Self {
        Self { text, is_own: false }
    }
}
