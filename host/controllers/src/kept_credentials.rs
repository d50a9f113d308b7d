//! How a cluster is reached that the Target of an item does not name any more: its kubeconfig is kept, as long as an item has
//! objects there (C-35). In Secrets of the operator's own namespace, where no tenant reads them.

mod orphans;
mod renewal;
mod source;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams, PostParams},
    core::{ObjectMeta, PartialObjectMetaExt as _},
};
use orangery_api::{annotation::GUARD, deploy_item::DeployItem};
use orangery_apply::ItemState;
use orangery_cluster::in_use;
use orangery_core::{digest::sha256, name::Namespace, step::Step};
use orangery_proposal::ClusterRef;
use orangery_reconcile::Key;
use serde_json::{Map, Value, json};
use tokio::sync::{OwnedRwLockReadGuard, RwLock};

pub(crate) use self::renewal::renew_from_secret;
use self::source::Annotations;
use crate::{
    controller_context::ControllerContext,
    index::Index,
    object_access::get,
    secret_values::SecretSource,
    stores::Stores,
    target_kubeconfig::{LeftCluster, TargetKubeconfig},
};

/// The most bytes of a kubeconfig that is kept: the Secrets of all Targets lie in one namespace, which is not the tenants'.
const MOST_KEPT_BYTES: usize = 128 << 10;

/// The key of the kubeconfig in its Secret.
const CONTENT: &str = "kubeconfig";
/// The key beside it, where the operator itself has made the kubeconfig for the cluster that it runs in.
const OWN: &str = "own";

/// The Secrets that this process knows to be there, with the digest of what they hold.
#[derive(Default)]
pub(crate) struct KnownCredentials {
    /// Held for one look-up or one change, never across an await.
    by_secret: Mutex<BTreeMap<String, String>>,
    /// What this process has deleted and not kept again. Held like the others.
    released: Mutex<BTreeSet<String>>,
    /// One for each Secret that is being kept or deleted. Held like the others.
    locks: Mutex<BTreeMap<String, Weak<RwLock<()>>>>,
    /// The items that go and need none of them any more. Held like the others.
    leaving: Mutex<BTreeSet<Key>>,
}

/// As long as this lives, nobody deletes the Secret for which it was given.
#[must_use]
pub(crate) struct KeptSecret {
    _lock: OwnedRwLockReadGuard<()>,
}

/// As long as this lives, an item counts as one that refers to nothing.
#[must_use]
pub(crate) struct LeavingItem<'h> {
    known: &'h KnownCredentials,
    key: Key,
}

impl Drop for LeavingItem<'_> {
    fn drop(&mut self) {
        self.known.leaving().remove(&self.key);
    }
}

impl KnownCredentials {
    /// Read by items whose statuses are about to refer to a Secret, written by one that deletes it.
    fn lock(&self, secret: &str) -> Arc<RwLock<()>> {
        let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lock) = locks.get(secret).and_then(Weak::upgrade) {
            return lock;
        }
        locks.retain(|_, lock| lock.strong_count() > 0);
        let lock = Arc::default();
        locks.insert(secret.to_owned(), Arc::downgrade(&lock));
        lock
    }

    fn leaving(&self) -> MutexGuard<'_, BTreeSet<Key>> {
        self.leaving.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An item is about to go, and what its status refers to is recorded: of two that go at the same time, none holds what the
    /// other one leaves.
    pub(crate) fn leave(&self, item: &DeployItem) -> LeavingItem<'_> {
        let key = Key::of(item);
        self.leaving().insert(key.clone());
        LeavingItem { known: self, key }
    }

    fn has(&self, secret: &str, digest: &str) -> bool {
        let by_secret = self.by_secret.lock().unwrap_or_else(PoisonError::into_inner);
        by_secret.get(secret).is_some_and(|known| known == digest)
    }

    /// It is deleted now.
    fn release(&self, secret: &str) {
        self.forget(secret);
        self.released.lock().unwrap_or_else(PoisonError::into_inner).insert(secret.to_owned());
    }

    fn is_released(&self, secret: &str) -> bool {
        self.released.lock().unwrap_or_else(PoisonError::into_inner).contains(secret)
    }

    fn insert(&self, secret: &str, digest: String) {
        self.released.lock().unwrap_or_else(PoisonError::into_inner).remove(secret);
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

/// Hears of what is deleted: what was kept is kept again by the next job that needs it, and what a Target had last is kept.
pub(crate) fn watch_deletions(host: &Arc<ControllerContext>) {
    renewal::renew_from_deleted(host);
    orphans::forget_with_items(host);
    let (namespace, known) = (Namespace::from(host.client.default_namespace()), Arc::downgrade(host));
    host.stores.secrets.subscribe(move |change| {
        if let (None, Some(key), Some(host)) = (change.after, change.key(), known.upgrade())
            && key.namespace == namespace
        {
            host.kept_credentials.forget(&key.name);
        }
    });
}

/// Keeps a kubeconfig, as far as it is in use, until a status refers to it: what is answered is let go then. Where it cannot be kept
/// the job goes on without: what is left in the cluster, should the Target name another one, can only be told then. Several are kept
/// in the order of their names, each once: items that wait for one another would do so for ever.
pub(crate) async fn keep(host: &ControllerContext, secret: &str, kubeconfig: &TargetKubeconfig) -> KeptSecret {
    let kept = KeptSecret { _lock: host.kept_credentials.lock(secret).read_owned().await };
    write(host, secret, kubeconfig).await;
    kept
}

/// Writes the Secret, with the label by which Secrets are watched. What this process knows to be there is not written again.
async fn write(host: &ControllerContext, secret: &str, kubeconfig: &TargetKubeconfig) {
    let TargetKubeconfig { text, is_own, source } = kubeconfig;
    let annotations: Annotations = source.iter().flat_map(source::annotations).collect();
    let digest = sha256(json!([text, annotations]).to_string().as_bytes());
    if host.kept_credentials.has(secret, &digest) {
        return;
    }
    let Some(text) = kept_text(text) else {
        tracing::warn!(
            secret,
            "the credentials of a target cluster are not kept: they have more than {MOST_KEPT_BYTES} bytes"
        );
        return;
    };
    let api: Api<Secret> = Api::default_namespaced(host.client.clone());
    let (content, own) = (ByteString(text.into_bytes()), is_own.then(|| ByteString(Vec::new())));
    let mut data = BTreeMap::from([(CONTENT.to_owned(), content.clone())]);
    data.extend(own.iter().map(|own| (OWN.to_owned(), own.clone())));
    let labels = BTreeMap::from([(GUARD.to_owned(), "credentials".to_owned())]);
    let metadata = ObjectMeta {
        name: Some(secret.to_owned()),
        labels: Some(labels.clone()),
        annotations: Some(source::present(annotations.clone())),
        ..ObjectMeta::default()
    };
    let object =
        Secret { metadata, data: Some(data), type_: Some("orangery.dev/kubeconfig".to_owned()), ..Secret::default() };
    let kept = match api.create(&PostParams::default(), &object).await {
        Err(kube::Error::Api(status)) if status.is_already_exists() => {
            let metadata = json!({"labels": labels, "annotations": annotations});
            let patch = json!({"metadata": metadata, "data": {CONTENT: content, OWN: own}});
            api.patch(secret, &PatchParams::default(), &Patch::Merge(patch)).await
        }
        answer => answer,
    };
    match kept {
        Ok(kept) => {
            // Its Target may go before the watch tells of it.
            drop(host.stores.secrets.upsert(kept.metadata.into_response_partial()));
            host.kept_credentials.insert(secret, digest);
        }
        Err(error) => tracing::warn!(%error, secret, "the credentials of a target cluster cannot be kept"),
    }
}

/// Keeps another kubeconfig in a Secret that is there: one that has gone meanwhile, or that nobody needs any more, is not made anew.
async fn rewrite(host: &ControllerContext, secret: &str, text: &str) {
    let _kept = host.kept_credentials.lock(secret).read_owned().await;
    let Some(text) = kept_text(text).filter(|_| !host.kept_credentials.is_released(secret)) else { return };
    let api: Api<Secret> = Api::default_namespaced(host.client.clone());
    let patch = Patch::Merge(json!({"data": {CONTENT: ByteString(text.into_bytes())}}));
    match api.patch(secret, &PatchParams::default(), &patch).await {
        // What the next job uses is compared with it.
        Ok(_) => host.kept_credentials.forget(secret),
        Err(kube::Error::Api(status)) if status.is_not_found() => {}
        Err(error) => tracing::warn!(%error, secret, "the last credentials of a target cluster are not kept"),
    }
}

/// What is kept of a kubeconfig; `None` where that is too much.
fn kept_text(text: &str) -> Option<String> {
    in_use(text).ok().filter(|text| text.len() <= MOST_KEPT_BYTES)
}

/// A kubeconfig that was kept.
async fn find(host: &ControllerContext, secret: &str) -> Step<Option<TargetKubeconfig>> {
    let kept: Option<Secret> =
        get(&host.client, &Namespace::from(host.client.default_namespace()), &secret.into()).await?;
    let source = kept.as_ref().and_then(source::read);
    let Some(mut data) = kept.and_then(|secret| secret.data) else { return Ok(None) };
    let is_own = data.contains_key(OWN);
    Ok(data.remove(CONTENT).map(|ByteString(content)| {
        let text = String::from_utf8_lossy(&content).into_owned();
        TargetKubeconfig { text, is_own, source }
    }))
}

/// The same, where the policy of a namespace allows its server. Its credentials are shown nowhere from now on.
pub(crate) async fn usable(
    host: &ControllerContext,
    namespace: &Namespace,
    secret: &str,
) -> Step<Option<TargetKubeconfig>> {
    let Some(kubeconfig) = find(host, secret).await? else { return Ok(None) };
    host.secrets.learn_kubeconfig(namespace, SecretSource::Kept(secret.into()), &kubeconfig.text);
    host.policies.check_server(namespace, &kubeconfig.text)?;
    Ok(Some(kubeconfig))
}

/// The clusters of the Targets of these items, with the Secrets that were kept of them, by the name of the Target. `cluster` is the
/// uid of the cluster that an item has its objects in, as far as the operator vouches for it. Where the items of one Target are in
/// several clusters none of these is that of the Target (C-120).
pub(crate) fn of_targets(
    items: impl IntoIterator<Item = Arc<DeployItem>>,
    cluster: impl Fn(&DeployItem) -> Option<String>,
) -> BTreeMap<ClusterRef, LeftCluster> {
    let mut by_target: BTreeMap<ClusterRef, BTreeSet<(String, String)>> = BTreeMap::new();
    for item in items {
        if let Some((target, uid)) = item.spec.target.as_ref().zip(cluster(&item)) {
            let secret = secret_of(&Key { name: target.name.clone(), ..Key::of(item.as_ref()) }, &uid);
            by_target.entry(ClusterRef::Named(target.name.to_string())).or_default().insert((uid, secret));
        }
    }
    let only = |(on, mut secrets): (ClusterRef, BTreeSet<(String, String)>)| {
        let (uid, secret) = secrets.pop_first().filter(|_| secrets.is_empty())?;
        Some((on, LeftCluster { uid, kept: Some(secret) }))
    };
    by_target.into_iter().filter_map(only).collect()
}

/// Clusters for which a status that nothing vouches for may have a kubeconfig looked for.
const MOST_CLAIMED: usize = 32;

/// The Secrets by which what a state says of clusters could be proven, by the uid of the cluster.
fn claimed(item: &DeployItem, state: &ItemState) -> BTreeMap<String, String> {
    let secret = |on: &ClusterRef, uid: &str| {
        let target = match on {
            ClusterRef::Target => item.spec.target.as_ref()?.name.clone(),
            ClusterRef::Named(name) => name.as_str().into(),
            ClusterRef::Host => return None,
        };
        Some((uid.to_owned(), secret_of(&Key { name: target, ..Key::of(item) }, uid)))
    };
    let present = state.cluster_uids().filter_map(|(on, uid)| secret(on, uid));
    let former =
        state.former.iter().filter_map(|(uid, inventory)| inventory.0.keys().find_map(|at| secret(&at.on, uid)));
    present.chain(former).take(MOST_CLAIMED).collect()
}

/// Nothing vouches for a state: which clusters its objects are in counts where the operator has kept a kubeconfig for the Target
/// and that cluster. Nobody else writes such Secrets, and their names follow from both (C-110).
///
/// # Errors
/// What was kept cannot be read now.
pub(crate) async fn prove(host: &ControllerContext, item: &DeployItem, state: &mut ItemState) -> Step<()> {
    for (uid, secret) in claimed(item, state) {
        if find(host, &secret).await?.is_some() {
            state.credentials.insert(uid, secret);
        }
    }
    let ItemState { clusters, credentials, .. } = state;
    clusters.retain(|_, identity| identity.uid().is_none_or(|uid| credentials.contains_key(uid)));
    Ok(())
}

/// Removes what no item but this one refers to, or is about to. What cannot be removed is only logged: it is kept for longer than
/// needed.
pub(crate) async fn release<'s>(
    host: &ControllerContext,
    item: &DeployItem,
    secrets: impl IntoIterator<Item = &'s String>,
) {
    let api: Api<Secret> = Api::default_namespaced(host.client.clone());
    for secret in secrets {
        // Where one is left that needs it nobody has to be waited for.
        if is_needed(host, item, secret) {
            continue;
        }
        // An item that is about to refer to it does so first.
        let _alone = host.kept_credentials.lock(secret).write_owned().await;
        if is_needed(host, item, secret) || host.kept_credentials.is_released(secret) {
            continue;
        }
        host.kept_credentials.release(secret);
        if let Err(error) = api.delete(secret, &DeleteParams::default()).await {
            tracing::debug!(%error, secret, "credentials that are not needed any more stay");
        }
    }
}

/// Whether another item refers to a Secret, and does not go as well. The Secrets are those of Targets of the item's namespace, and so
/// are all items that may need them.
fn is_needed(host: &ControllerContext, item: &DeployItem, secret: &str) -> bool {
    let (leaving, key) = (host.kept_credentials.leaving(), Key::of(item));
    let users = CREDENTIALS.keys(&host.stores.deploy_items, &key.namespace, secret);
    users.iter().any(|other| *other != key && !leaving.contains(other))
}

/// Deploy items by the Secrets that they refer to.
static CREDENTIALS: Index<DeployItem> = Index { name: "credentials", values: referred_to };

/// Deploy items for which something was kept, by their Targets.
static BY_TARGET: Index<DeployItem> = Index {
    name: "kept-by-target",
    values: |item| {
        let has_kept = credentials_of(item).is_some_and(|kept| !kept.is_empty());
        item.spec.target.iter().filter(|_| has_kept).map(|target| target.name.to_string()).collect()
    },
};

/// Gives the stores the indexes by which what was kept is found.
pub(crate) fn index(stores: &Stores) {
    CREDENTIALS.register(&stores.deploy_items);
    BY_TARGET.register(&stores.deploy_items);
    source::OF_TARGET.register(&stores.secrets);
    source::OF_SECRET.register(&stores.secrets);
}

/// The Secrets that an item refers to, as far as its status says so.
fn referred_to(item: &DeployItem) -> Vec<String> {
    credentials_of(item).into_iter().flat_map(|all| all.values()).filter_map(Value::as_str).map(str::to_owned).collect()
}

/// What the status of an item says of Secrets, by the uids of the clusters.
fn credentials_of(item: &DeployItem) -> Option<&Map<String, Value>> {
    item.status.as_ref()?.provider_status.as_ref()?.pointer("/orangery/credentials")?.as_object()
}

#[cfg(test)]
mod tests {
    use orangery_apply::ClusterIdentity;
    use orangery_proposal::inventory::Inventory;

    use super::*;

    #[test]
    fn c_129_limits_kubeconfig_of_what_is_kept() {
        let with = |token: usize, unused: usize| {
            let kubeconfig = json!({
                "apiVersion": "v1", "kind": "Config", "current-context": "c",
                "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                "clusters": [{"name": "c", "cluster": {"server": "https://c"}}, {"name": "x".repeat(unused), "cluster": {}}],
                "users": [{"name": "u", "user": {"token": "t".repeat(token)}}],
            });
            kept_text(&kubeconfig.to_string()).map(|text| text.len())
        };
        let short = with(1, 0).unwrap();
        assert_eq!(with(1, 500 << 10), Some(short), "what is not in use takes nothing");
        assert_eq!(with(MOST_KEPT_BYTES + 1 - short, 0), Some(MOST_KEPT_BYTES));
        assert_eq!(with(MOST_KEPT_BYTES + 2 - short, 0), None);
    }

    #[test]
    fn c_120_a_target_whose_items_are_in_several_clusters_is_none_of_them() {
        let item = |name: &str, target: &str| -> Arc<DeployItem> {
            let object = json!({"metadata": {"namespace": "n", "name": name}, "spec": {"type": "t", "target": {"name": target}}});
            Arc::new(serde_json::from_value(object).unwrap())
        };
        let items = [item("one", "a"), item("one-too", "a"), item("one", "b"), item("two", "b"), item("none", "c")];
        let cluster = |item: &DeployItem| match item.metadata.name.as_deref() {
            Some("one" | "one-too") => Some("1".to_owned()),
            Some("two") => Some("2".to_owned()),
            _ => None,
        };
        let kept = Some(secret_of(&Key::new("n", "a"), "1"));
        let a = (ClusterRef::Named("a".to_owned()), LeftCluster { uid: "1".to_owned(), kept });
        assert_eq!(of_targets(items, cluster), BTreeMap::from([a]));
    }

    #[test]
    fn c_110_limits_state_so_many_clusters_are_looked_for_and_each_by_its_target() {
        let item = |target: Value| -> DeployItem {
            serde_json::from_value(
                json!({"metadata": {"namespace": "n", "name": "i"}, "spec": {"type": "t", "target": target}}),
            )
            .unwrap()
        };
        let inventory = |cluster: Value| {
            let resource = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "namespace": "n"});
            Inventory::read(Some(&json!([{"policy": "manage", "resource": resource, "cluster": cluster}]))).unwrap()
        };
        let state = ItemState {
            clusters: BTreeMap::from([
                (ClusterRef::Target, ClusterIdentity::Uid("now".to_owned())),
                (ClusterRef::Host, ClusterIdentity::Uid("host".to_owned())),
                (ClusterRef::Named("c".to_owned()), ClusterIdentity::Address("https://c".to_owned())),
            ]),
            former: BTreeMap::from([
                ("old".to_owned(), inventory(json!("target"))),
                ("other".to_owned(), inventory(json!({"named": "b"}))),
                ("here".to_owned(), inventory(json!("host"))),
            ]),
            ..ItemState::default()
        };
        let expected = [("now", "a"), ("old", "a"), ("other", "b")];
        let expected = expected.map(|(uid, target)| (uid.to_owned(), secret_of(&Key::new("n", target), uid)));
        assert_eq!(claimed(&item(json!({"name": "a", "namespace": "elsewhere"})), &state), BTreeMap::from(expected));
        assert_eq!(claimed(&item(Value::Null), &state).into_keys().collect::<Vec<_>>(), ["other"]);
        let many = (0..=MOST_CLAIMED).map(|number| (format!("{number}"), inventory(json!("target")))).collect();
        let many = ItemState { former: many, ..ItemState::default() };
        assert_eq!(claimed(&item(json!({"name": "a"})), &many).len(), MOST_CLAIMED);
    }
}
