//! What goes without the items that still need it: a Target that a job wrote goes at once when its namespace is deleted, also one that
//! copies were made of, and its credentials may have changed since the last job. What it has last is kept for them (C-190).

use std::{collections::BTreeSet, sync::Arc};

use k8s_openapi::api::core::v1::Secret;
use orangery_api::{convert::original, target::Target};
use orangery_cluster::server_of;
use orangery_core::{name::Namespace, step::Step};
use orangery_reconcile::Key;

use super::{
    BY_TARGET, find,
    orphans::own_credentials,
    rewrite,
    source::{OF_SECRET, OF_TARGET},
};
use crate::{
    controller_context::ControllerContext,
    object_access::get,
    target_access::{content_of_secret, kubeconfig_of},
    target_kubeconfig::TargetKubeconfig,
};

/// Where what was kept is.
fn own_namespace(host: &ControllerContext) -> Namespace {
    Namespace::from(host.client.default_namespace())
}

/// A Target that is gone may have had newer credentials than the last job of its items, and of those on copies of it.
pub(super) fn renew_from_deleted(host: &Arc<ControllerContext>) {
    let known = Arc::downgrade(host);
    host.stores.targets.subscribe(move |change| {
        let (None, Some(target), Some(host)) = (change.after, change.before, known.upgrade()) else { return };
        let of = Key::of(target.as_ref());
        let (kept, kubeconfig) = match original(target) {
            None => {
                let kept = OF_TARGET.keys(&host.stores.secrets, &own_namespace(&host), &of.to_string());
                (kept.into_iter().map(|kept| kept.name.to_string()).collect(), inline(target))
            }
            // What a copy had may be older than what was kept when its original went. Other copies of that have what is theirs.
            Some(original) => {
                let items = BY_TARGET.find(&host.stores.deploy_items, &of.namespace, &of.name);
                let kept: BTreeSet<String> = items.into_iter().flat_map(|item| own_credentials(&item)).collect();
                let original = Key { name: original.into(), ..of.clone() };
                let has_items = !kept.is_empty();
                (kept, host.stores.targets.get(&original).filter(|_| has_items).and_then(|original| inline(&original)))
            }
        };
        let Some(kubeconfig) = kubeconfig.filter(|_| !kept.is_empty()) else { return };
        tokio::spawn(async move {
            for kept in kept {
                if let Err(halt) = renew(&host, &kept, |_| Some(kubeconfig.clone())).await {
                    tracing::warn!(of = %of, ?halt, "the last credentials of a Target that is gone are not kept");
                }
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
    let kept = OF_SECRET.keys(&host.stores.secrets, &own_namespace(host), &key.to_string());
    if kept.is_empty() {
        return Ok(());
    }
    let Some(secret) = get::<Secret>(&host.client, &key.namespace, &key.name).await? else { return Ok(()) };
    let newest = |before: &TargetKubeconfig| {
        let (_, key) = before.source.as_ref()?.secret.as_ref()?;
        content_of_secret(secret.clone(), key).as_ref().and_then(kubeconfig_of)
    };
    for kept in kept {
        renew(host, &kept.name, newest).await?;
    }
    Ok(())
}

/// Keeps what is newest in the place of what was kept. Which cluster it leads to is looked at in use.
async fn renew(host: &ControllerContext, kept: &str, newest: impl Fn(&TargetKubeconfig) -> Option<String>) -> Step<()> {
    let Some(before) = find(host, kept).await? else { return Ok(()) };
    if let Some(text) = newest(&before).filter(|text| replaces(text, &before)) {
        rewrite(host, kept, &text).await;
    }
    Ok(())
}

/// Whether a kubeconfig may take the place of one that was kept: it leads to the same server, and the operator has not made the one
/// that was kept itself, for its own cluster (C-103).
fn replaces(newest: &str, kept: &TargetKubeconfig) -> bool {
    let server = server_of(newest);
    !kept.is_own && server.is_ok() && server == server_of(&kept.text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn c_190_c_103_only_what_leads_to_the_same_server_takes_the_place_of_what_others_have_written() {
        let kubeconfig = |server: &str, token: &str| {
            let kubeconfig = json!({
                "apiVersion": "v1", "kind": "Config", "current-context": "c",
                "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                "clusters": [{"name": "c", "cluster": {"server": server}}],
                "users": [{"name": "u", "user": {"token": token}}],
            });
            kubeconfig.to_string()
        };
        let kept = |is_own: bool| TargetKubeconfig { is_own, ..TargetKubeconfig::from(kubeconfig("https://a", "old")) };
        assert!(replaces(&kubeconfig("https://a", "new"), &kept(false)));
        assert!(!replaces(&kubeconfig("https://a", "new"), &kept(true)));
        assert!(!replaces(&kubeconfig("https://b", "new"), &kept(false)));
        let unreadable = TargetKubeconfig::from("none".to_owned());
        assert!(!replaces("none", &unreadable) && !replaces("none", &kept(false)));
    }
}
