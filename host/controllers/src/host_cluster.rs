//! Which cluster has the deploy items of this host: the uid of its Namespace `kube-system`, as of targets (C-35, C-137).

use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client, ResourceExt};
use orangery_core::{
    error::Failure,
    step::{Halt, Step},
};
use tokio::sync::OnceCell;

use crate::object::message_of;

/// What a server answers where it does not say what it has.
pub(crate) const UNTOLD: [u16; 2] = [401, 403];

/// What is known of it: asked for once.
#[derive(Default)]
pub(crate) struct HostCluster(OnceCell<Option<String>>);

impl HostCluster {
    /// The uid of the cluster of a client; `None` where that may not read it.
    ///
    /// # Errors
    /// The server does not answer.
    pub(crate) async fn uid(&self, client: &Client) -> Step<Option<String>> {
        let read = async || {
            let namespaces: Api<Namespace> = Api::all(client.clone());
            match namespaces.get_opt("kube-system").await {
                Ok(found) => Ok(found.and_then(|namespace| namespace.uid()).filter(|uid| !uid.is_empty())),
                Err(kube::Error::Api(status)) if UNTOLD.contains(&status.code) => Ok(None),
                Err(error) => {
                    let message =
                        format!("Namespace kube-system cannot be read: {}; it is tried again", message_of(&error));
                    Err(Halt::Retry(Failure::new("ReadCluster", "ReadFailed", message)))
                }
            }
        };
        self.0.get_or_try_init(read).await.cloned()
    }
}
