//! What goes without the items that still need it: a Target that a job wrote goes at once when its namespace is deleted, and its
//! credentials may have changed since the last job. What it has last is kept for them (C-190).

use std::{collections::BTreeSet, sync::Arc};

use k8s_openapi::api::core::v1::Secret;
use orangery_api::{deploy_item::DeployItem, target::Target};
use orangery_cluster::server_of;
use orangery_core::{name::Namespace, step::Step, yaml::decode_or_text};
use orangery_reconcile::Key;

use super::{credentials_of, find, secret_of, write};
use crate::{
    controller_context::ControllerContext, object_access::get, target_access::kubeconfig_of,
    target_kubeconfig::TargetKubeconfig,
};

/// A Target that is gone may have had newer credentials than the last job of its items.
pub(super) fn renew_from_deleted(host: &Arc<ControllerContext>) {
    let known = Arc::downgrade(host);
    host.stores.targets.subscribe(move |change| {
        let (None, Some(target), Some(host)) = (change.after, change.before, known.upgrade()) else { return };
        let namespace = Key::of(target.as_ref()).namespace;
        let Some(kubeconfig) = inline(target) else { return };
        tokio::spawn(async move {
            if let Err(halt) = renew(&host, &namespace, &[kubeconfig]).await {
                tracing::warn!(%namespace, ?halt, "the last credentials of a Target that is gone are not kept");
            }
        });
    });
}

fn inline(target: &Target) -> Option<String> {
    kubeconfig_of(target.spec.config.as_ref()?)
}

/// Keeps what a Secret behind Targets has last, before it goes.
///
/// # Errors
/// The Secret, or what was kept, cannot be read now.
pub(crate) async fn renew_from_secret(host: &ControllerContext, key: &Key) -> Step<()> {
    if needing(host, &key.namespace).is_empty() {
        return Ok(());
    }
    let secret: Option<Secret> = get(&host.client, &key.namespace, &key.name).await?;
    let data = secret.and_then(|secret| secret.data).unwrap_or_default();
    let content = data.values().map(|content| decode_or_text(&String::from_utf8_lossy(&content.0)));
    let kubeconfigs: Vec<String> = content.filter_map(|content| kubeconfig_of(&content)).collect();
    renew(host, &key.namespace, &kubeconfigs).await
}

/// The Secrets with what was kept for items of this namespace whose Targets are gone.
fn needing(host: &ControllerContext, namespace: &Namespace) -> BTreeSet<String> {
    let mut secrets = BTreeSet::new();
    for item in host.stores.deploy_items.list(Some(namespace)) {
        if target_of(&item).is_some_and(|target| host.stores.targets.get(&target).is_none()) {
            secrets.extend(own_credentials(&item));
        }
    }
    secrets
}

fn target_of(item: &DeployItem) -> Option<Key> {
    Some(Key { name: item.spec.target.as_ref()?.name.clone(), ..Key::of(item) })
}

/// The Secrets for the Target of an item, as its status names them: what else that names is somebody's word.
pub(super) fn own_credentials(item: &DeployItem) -> Vec<String> {
    let Some(target) = target_of(item) else { return Vec::new() };
    let named = credentials_of(item).into_iter().flatten();
    let own = named.filter(|(uid, secret)| secret.as_str() == Some(secret_of(&target, uid).as_str()));
    own.map(|(uid, _)| secret_of(&target, uid)).collect()
}

/// Keeps each of these kubeconfigs in the place of one that leads to the same server. Which cluster that is, is looked at in use.
async fn renew(host: &ControllerContext, namespace: &Namespace, kubeconfigs: &[String]) -> Step<()> {
    for secret in needing(host, namespace) {
        let Some(kept) = find(host, &secret).await?.filter(|kept| !kept.is_own) else { continue };
        let Ok(server) = server_of(&kept.text) else { continue };
        let newest = kubeconfigs.iter().find(|text| server_of(text).as_ref() == Ok(&server));
        if let Some(newest) = newest {
            write(host, &secret, &TargetKubeconfig::from(newest.clone())).await;
        }
    }
    Ok(())
}
