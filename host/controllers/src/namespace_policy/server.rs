//! The servers that a namespace may reach.

use orangery_cluster::server_of;
use orangery_core::{
    name::Namespace,
    step::{Halt, Step},
};
use orangery_policy::{PolicyRequest, PolicySubject};

use super::{NamespacePolicies, refused};

impl NamespacePolicies {
    /// Whether the policy of a namespace allows the server of a kubeconfig.
    ///
    /// # Errors
    /// The line that does not; or the kubeconfig names no server.
    pub(crate) fn check_server(&self, namespace: &Namespace, kubeconfig: &str) -> Step<()> {
        let policy = self.of(namespace)?;
        // Reading a kubeconfig costs more than all checks of a job.
        if policy.allows_any_server() {
            return Ok(());
        }
        let address = server_of(kubeconfig).map_err(Halt::from)?;
        policy
            .check(PolicySubject::Installation, PolicyRequest::Server(&address))
            .map_err(|violation| refused(&violation))
    }
}
