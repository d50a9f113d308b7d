//! Reading objects of the host cluster that no store knows.

use kube::{Api, Client, core::NamespaceResourceScope};
use orangery_core::{
    error::Failure,
    name::{Namespace, ObjectName},
    step::{Halt, Step},
};
use serde::de::DeserializeOwned;

/// One object of the host cluster; `None` where it does not exist.
///
/// # Errors
/// The server could not be asked; it is tried again.
pub(crate) async fn get<K>(client: &Client, namespace: &Namespace, name: &ObjectName) -> Step<Option<K>>
where
    K: kube::Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned,
{
    let api: Api<K> = Api::namespaced(client.clone(), namespace);
    api.get_opt(name).await.map_err(|error| {
        let kind = K::kind(&());
        Halt::Retry(Failure::new(
            "ReadImports",
            "ReadFailed",
            format!("{kind} {namespace}/{name} could not be read: {error}"),
        ))
    })
}
