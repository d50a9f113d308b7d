//! Which deploy items there are, as the API server says: a cache may not have heard of one yet.

use kube::{Api, ResourceExt};
use orangery_api::deploy_item::DeployItem;
use orangery_apply::{DeployItems, Owner};
use orangery_core::{
    error::Failure,
    port::BoxFuture,
    step::{Halt, Step},
};

use super::GatheredItem;
use crate::object::message_of;

/// What a server answers where it does not say what it has.
const UNTOLD: [u16; 2] = [401, 403];

impl DeployItems for GatheredItem {
    fn is_gone<'a>(&'a self, item: &'a Owner) -> BoxFuture<'a, Step<bool>> {
        Box::pin(async move {
            let api: Api<DeployItem> = Api::namespaced(self.host.client.clone(), &item.namespace);
            match api.get_opt(&item.name).await {
                Ok(found) => Ok(found.is_none_or(|found| found.uid().as_deref() != Some(item.uid.as_str()))),
                Err(kube::Error::Api(status)) if UNTOLD.contains(&status.code) => Ok(false),
                Err(error) => {
                    let message = format!(
                        "DeployItem {}/{}, whose mark an object has, cannot be read: {}; it is tried again",
                        item.namespace,
                        item.name,
                        message_of(&error)
                    );
                    Err(Halt::Retry(Failure::new("Apply", "ReadFailed", message)))
                }
            }
        })
    }
}
