//! How a cluster is reached that the Target of an item does not name any more: its kubeconfig is kept, as long as an item has
//! objects there (C-35). In Secrets of the operator's own namespace, where no tenant reads them.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams, PostParams},
    core::ObjectMeta,
};
use orangery_api::deploy_item::DeployItem;
use orangery_core::{digest::sha256, name::Namespace, step::Step};
use orangery_reconcile::Key;
use serde_json::{Value, json};

use crate::{controller_context::ControllerContext, object_access::get};

/// The key of the kubeconfig in its Secret.
const CONTENT: &str = "kubeconfig";

/// The Secrets that this process knows to be there, with the digest of what they hold.
#[derive(Default)]
pub(crate) struct KnownCredentials {
    /// Held for one look-up or one change, never across an await.
    by_secret: Mutex<BTreeMap<String, String>>,
}

impl KnownCredentials {
    fn has(&self, secret: &str, digest: &str) -> bool {
        let by_secret = self.by_secret.lock().unwrap_or_else(PoisonError::into_inner);
        by_secret.get(secret).is_some_and(|known| known == digest)
    }

    fn insert(&self, secret: &str, digest: String) {
        self.by_secret.lock().unwrap_or_else(PoisonError::into_inner).insert(secret.to_owned(), digest);
    }

    fn forget(&self, secret: &str) {
        self.by_secret.lock().unwrap_or_else(PoisonError::into_inner).remove(secret);
    }
}

/// The name of the Secret for a Target and the cluster that it names: items of one Target share it.
pub(crate) fn secret_of(target: &Key, cluster: &str) -> String {
    let digest = sha256(format!("{}/{}/{cluster}", target.namespace, target.name).as_bytes());
    let short = digest.rsplit(':').next().and_then(|hex| hex.get(..20)).unwrap_or_default();
    format!("orangery-cluster-{short}")
}

/// Keeps a kubeconfig. What this process knows to be there is not written again. Where it cannot be kept the job goes on
/// without: what is left in the cluster, should the Target name another one, can only be told then.
pub(crate) async fn keep(host: &ControllerContext, secret: &str, kubeconfig: &str) {
    let digest = sha256(kubeconfig.as_bytes());
    if host.kept_credentials.has(secret, &digest) {
        return;
    }
    let api: Api<Secret> = Api::default_namespaced(host.client.clone());
    let data = ByteString(kubeconfig.as_bytes().to_vec());
    let object = Secret {
        metadata: ObjectMeta { name: Some(secret.to_owned()), ..ObjectMeta::default() },
        data: Some([(CONTENT.to_owned(), data.clone())].into()),
        type_: Some("orangery.dev/kubeconfig".to_owned()),
        ..Secret::default()
    };
    let kept = match api.create(&PostParams::default(), &object).await {
        Err(kube::Error::Api(status)) if status.is_already_exists() => {
            let patch = json!({"data": {CONTENT: data}});
            api.patch(secret, &PatchParams::default(), &Patch::Merge(patch)).await
        }
        answer => answer,
    };
    match kept {
        Ok(_) => host.kept_credentials.insert(secret, digest),
        Err(error) => tracing::warn!(%error, secret, "the credentials of a target cluster cannot be kept"),
    }
}

/// A kubeconfig that was kept.
pub(crate) async fn find(host: &ControllerContext, secret: &str) -> Step<Option<String>> {
    let kept: Option<Secret> =
        get(&host.client, &Namespace::from(host.client.default_namespace()), &secret.into()).await?;
    let content = kept.and_then(|secret| secret.data).and_then(|mut data| data.remove(CONTENT));
    Ok(content.map(|ByteString(content)| String::from_utf8_lossy(&content).into_owned()))
}

/// Removes what no item but this one refers to. What cannot be removed is only logged: it is kept for longer than needed.
pub(crate) async fn release<'s>(
    host: &ControllerContext,
    item: &DeployItem,
    secrets: impl IntoIterator<Item = &'s String>,
) {
    let api: Api<Secret> = Api::default_namespaced(host.client.clone());
    for secret in secrets {
        let mut is_needed = false;
        host.stores.deploy_items.for_each(|other| {
            is_needed |= other.metadata.uid != item.metadata.uid && refers_to(other, secret);
        });
        if is_needed {
            continue;
        }
        host.kept_credentials.forget(secret);
        if let Err(error) = api.delete(secret, &DeleteParams::default()).await {
            tracing::debug!(%error, secret, "credentials that are not needed any more stay");
        }
    }
}

/// The Secrets that an item refers to, as far as its status says so.
fn refers_to(item: &DeployItem, secret: &str) -> bool {
    let status = item.status.as_ref().and_then(|status| status.provider_status.as_ref());
    let credentials = status.and_then(|status| status.pointer("/orangery/credentials")).and_then(Value::as_object);
    credentials.is_some_and(|credentials| credentials.values().any(|known| known == secret))
}
