//! Which deploy items there are, as the API server says: a cache may not have heard of one yet.

use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, ResourceExt};
use orangery_api::deploy_item::DeployItem;
use orangery_apply::{DeployItems, Owner};
use orangery_core::{
    error::Failure,
    port::BoxFuture,
    step::{Halt, Step},
};

use super::GatheredItem;
use crate::{host_cluster::UNTOLD, object::message_of};

impl DeployItems for GatheredItem {
    fn is_gone<'a>(&'a self, item: &'a Owner) -> BoxFuture<'a, Step<bool>> {
        Box::pin(async move {
            let api: Api<DeployItem> = Api::namespaced(self.host.client.clone(), &item.namespace);
            match api.get_opt(&item.name).await {
                Ok(Some(found)) => Ok(found.uid().as_deref() != Some(item.uid.as_str())),
                Ok(None) => self.has_namespace(item).await,
                Err(kube::Error::Api(status)) if UNTOLD.contains(&status.code) => Ok(false),
                Err(error) => Err(unread(item, &error)),
            }
        })
    }
}

impl GatheredItem {
    /// Whether the namespace of an item is one of this host. An item of a namespace that is not here may be there, in that of
    /// another operator which deploys to the same cluster. Whoever may read items there and no namespaces has been given it.
    async fn has_namespace(&self, item: &Owner) -> Step<bool> {
        let api: Api<Namespace> = Api::all(self.host.client.clone());
        match api.get_opt(&item.namespace).await {
            Ok(found) => Ok(found.is_some()),
            Err(kube::Error::Api(status)) if UNTOLD.contains(&status.code) => Ok(true),
            Err(error) => Err(unread(item, &error)),
        }
    }
}

fn unread(item: &Owner, error: &kube::Error) -> Halt {
    let message = format!(
        "DeployItem {}/{}, whose mark an object has, cannot be read: {}; it is tried again",
        item.namespace,
        item.name,
        message_of(error)
    );
    Halt::Retry(Failure::new("Apply", "ReadFailed", message))
}
