//! The servers that a namespace may reach.

use std::sync::Arc;

use orangery_cluster::server_of;
use orangery_core::{
    name::Namespace,
    network::AllowedNetworks,
    step::{Halt, Step},
};
use orangery_policy::{PolicyRequest, PolicySubject};

use super::{NamespacePolicies, refused};
use crate::target_kubeconfig::TargetKubeconfig;

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

    /// Which networks the cluster of a kubeconfig may be in, for a namespace. What an address or a name leads to is held against
    /// them where it is connected to (C-101).
    ///
    /// # Errors
    /// It is not known yet what counts.
    pub(crate) fn networks(&self, namespace: &Namespace, kubeconfig: &TargetKubeconfig) -> Step<Arc<AllowedNetworks>> {
        let own_server = self.shared.own_server.as_deref().filter(|_| self.has_default(namespace));
        if kubeconfig.is_own || own_server.is_some_and(|own| server_of(&kubeconfig.text).as_deref() == Ok(own)) {
            return Ok(Arc::default());
        }
        Ok(Arc::new(self.of(namespace)?.target_networks()))
    }
}
