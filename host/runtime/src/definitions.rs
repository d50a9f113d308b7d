//! The definitions of our kinds in the cluster, and the policies for them: brought there, or expected to be there.

use std::fmt::Debug;

use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::{
    ClusterResourceScope, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{Patch, PatchParams},
};
use orangery_api::{
    API_VERSION, Admission, GROUP,
    namespace_policy::{POLICY_API_VERSION, POLICY_GROUP},
};
use orangery_cli::crds::{AppliedCrd, CRD_AUTHOR, CrdError, apply_crd};
use serde::{Serialize, de::DeserializeOwned};

/// Sent at the same time: enough to hide the way, too few to burden a cluster.
const AT_ONCE: usize = 4;

/// Whether an operator brings the definitions of its kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Definitions {
    /// Installed, and brought up to date, by server-side apply.
    Install,
    /// Somebody else installs them: they are looked for at the start.
    Expect,
}

/// Why the definitions are not there.
#[derive(Debug, thiserror::Error)]
pub enum DefinitionsError {
    /// A definition is not there.
    #[error(transparent)]
    Definition(#[from] CrdError),
    /// A policy could not be applied.
    #[error("the policy {name} cannot be installed in the cluster: {source}")]
    Policy {
        /// Its name.
        name: String,
        /// What the client says.
        source: kube::Error,
    },
    /// Nobody has installed them.
    #[error(
        "the cluster does not know the kinds of {group}; install them first: orangery crd | kubectl apply --server-side -f -"
    )]
    Missing {
        /// The group.
        group: &'static str,
    },
    /// The cluster did not say which kinds it knows.
    #[error(
        "the cluster cannot be asked for the kinds it knows: {0}; check that it runs and that the kubeconfig is its own"
    )]
    Unreachable(#[source] kube::Error),
}

impl Definitions {
    /// Installs the definitions, or looks for them. They are served when this is done.
    pub(crate) async fn ensure(self, client: &Client) -> Result<(), DefinitionsError> {
        match self {
            Definitions::Install => {
                let applied = stream::iter(orangery_api::crds()).map(|crd| install(client, crd));
                applied.buffer_unordered(AT_ONCE).try_collect::<()>().await?;
                install_policies(client).await
            }
            Definitions::Expect => {
                // Without policies nothing would be known of what may be done.
                let groups = [(GROUP, API_VERSION), (POLICY_GROUP, POLICY_API_VERSION)];
                for (group, version) in groups {
                    match client.list_api_group_resources(version).await {
                        Ok(_) => {}
                        Err(kube::Error::Api(status)) if status.code == 404 => {
                            return Err(DefinitionsError::Missing { group });
                        }
                        Err(error) => return Err(DefinitionsError::Unreachable(error)),
                    }
                }
                Ok(())
            }
        }
    }
}

/// A definition of a newer version stays, so that objects keep what is only in that one (C-410).
async fn install(client: &Client, crd: CustomResourceDefinition) -> Result<(), DefinitionsError> {
    if let AppliedCrd::Newer { version } = apply_crd(client, &crd).await? {
        let name = crd.name_any();
        tracing::warn!(definition = %name, version, "the cluster has the definition of a newer version, which stays");
    }
    Ok(())
}

/// A cluster before Kubernetes 1.30 has no policies; there the controllers alone find what is wrong.
async fn install_policies(client: &Client) -> Result<(), DefinitionsError> {
    for Admission { policy, binding } in orangery_api::admission() {
        let name = policy.name_any();
        let put = async {
            put(client, &policy).await?;
            put(client, &binding).await.map(drop)
        };
        match put.await {
            Ok(()) => {}
            Err(kube::Error::Api(status)) if status.code == 404 => {
                tracing::warn!("the cluster has no admission policies; what is wrong is found in the course of jobs");
                return Ok(());
            }
            Err(source) => return Err(DefinitionsError::Policy { name, source }),
        }
    }
    Ok(())
}

async fn put<K>(client: &Client, object: &K) -> Result<K, kube::Error>
where
    K: Resource<DynamicType = (), Scope = ClusterResourceScope> + Clone + Debug + DeserializeOwned + Serialize,
{
    let params = PatchParams::apply(CRD_AUTHOR).force();
    Api::all(client.clone()).patch(&object.name_any(), &params, &Patch::Apply(object)).await
}

#[cfg(test)]
mod tests {
    use http::{Request, Response};
    use kube::client::Body;
    use serde_json::json;

    use super::*;

    fn answering(status: u16) -> Client {
        let service = tower::service_fn(move |_: Request<Body>| async move {
            let body = json!({"kind": "Status", "status": "Failure", "code": status, "message": "as scripted"});
            let body = Body::from(body.to_string().into_bytes());
            Response::builder().status(status).body(body)
        });
        Client::new(service, "default")
    }

    async fn sentence(definitions: Definitions, status: u16) -> String {
        definitions.ensure(&answering(status)).await.unwrap_err().to_string()
    }

    #[tokio::test]
    async fn a_cluster_without_our_kinds_is_told_how_to_get_them() {
        assert_eq!(
            sentence(Definitions::Expect, 404).await,
            "the cluster does not know the kinds of landscaper.gardener.cloud; install them first: orangery crd | kubectl \
             apply --server-side -f -"
        );
    }

    #[tokio::test]
    async fn a_definition_that_is_refused_is_named() {
        let message = sentence(Definitions::Install, 403).await;
        assert!(message.starts_with("the definition "), "{message}");
        assert!(message.contains(".landscaper.gardener.cloud cannot be installed in the cluster: "), "{message}");
    }
}
