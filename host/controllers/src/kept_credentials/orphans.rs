//! Kept kubeconfigs whose items are gone by another way than an uninstall, as with finalizers that somebody took off (C-200).

use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use kube::{Api, api::DeleteParams};
use orangery_api::deploy_item::DeployItem;
use orangery_reconcile::Key;

use super::{credentials_of, is_needed, secret_of};
use crate::{controller_context::ControllerContext, object::uid_of};

/// What an item that is gone still referred to goes with it, unless another one refers to it.
pub(super) fn forget_with_items(host: &Arc<ControllerContext>) {
    let known = Arc::downgrade(host);
    host.stores.deploy_items.subscribe(move |change| {
        let (None, Some(item), Some(host)) = (change.after, change.before, known.upgrade()) else { return };
        let secrets = own_credentials(item);
        if secrets.is_empty() {
            return;
        }
        let item = Arc::clone(item);
        tokio::spawn(async move {
            for secret in secrets {
                forget(&host, &item, &secret).await;
            }
        });
    });
}

/// The Secrets for the Target of an item, as its status names them: what else that names is somebody's word.
pub(super) fn own_credentials(item: &DeployItem) -> Vec<String> {
    let Some(target) = &item.spec.target else { return Vec::new() };
    let target = Key { name: target.name.clone(), ..Key::of(item) };
    let named = credentials_of(item).into_iter().flatten();
    let own = named.filter(|(uid, secret)| secret.as_str() == Some(secret_of(&target, uid).as_str()));
    own.map(|(uid, _)| secret_of(&target, uid)).collect()
}

/// Deletes what was kept for an item, where that is gone and no other one refers to it or is about to. What an uninstall has deleted
/// costs nothing.
async fn forget(host: &ControllerContext, item: &DeployItem, secret: &str) {
    let _alone = host.kept_credentials.lock(secret).write_owned().await;
    if host.kept_credentials.is_released(secret) || is_needed(host, item, secret) || !is_gone(host, item).await {
        return;
    }
    host.kept_credentials.release(secret);
    let api: Api<Secret> = Api::default_namespaced(host.client.clone());
    if let Err(error) = api.delete(secret, &DeleteParams::default()).await {
        tracing::debug!(%error, secret, "credentials that are not needed any more stay");
    }
}

/// Whether the server does not have the item any more: one that cannot be read is not known either.
async fn is_gone(host: &ControllerContext, item: &DeployItem) -> bool {
    let key = Key::of(item);
    let api: Api<DeployItem> = Api::namespaced(host.client.clone(), &key.namespace);
    match api.get_metadata_opt(&key.name).await {
        Ok(found) => found.is_none_or(|found| found.metadata.uid.as_deref() != Some(uid_of(item))),
        Err(_) => false,
    }
}
