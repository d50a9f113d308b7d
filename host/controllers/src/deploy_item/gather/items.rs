//! Which deploy items there are, as the API server says: a cache may not have heard of one yet.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, ResourceExt};
use orangery_api::{deploy_item::DeployItem, label, marks::Marks};
use orangery_apply::{ClusterIdentity, DeployItems, Owner, ReachedCluster, Sameness};
use orangery_core::{
    error::Failure,
    name::ObjectName,
    port::BoxFuture,
    step::{Halt, Step},
};
use orangery_proposal::{
    ClusterRef, ObjectKey,
    check::{deployed_objects, ignored_objects, is_chart, named_objects, release_of, taken_over_objects},
    inventory::{Inventory, LocatedObject},
};
use orangery_reconcile::Key;
use serde_json::Value;

use super::GatheredItem;
use crate::{
    deploy_item::dependencies::EXECUTION,
    host_cluster::UNTOLD,
    object::{message_of, uid_of},
    tree::MANAGED_BY,
};

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

    fn named<'a>(
        &'a self,
        objects: &'a BTreeSet<LocatedObject>,
    ) -> BoxFuture<'a, Step<BTreeMap<LocatedObject, ObjectName>>> {
        Box::pin(async move {
            let mut named = BTreeMap::new();
            for item in self.beside() {
                let theirs = in_target(named_objects(config(&item)));
                let of_item: Vec<_> = objects.intersection(&theirs).cloned().collect();
                if !of_item.is_empty() && self.is_on_the_cluster_of(&item).await? {
                    named.extend(of_item.into_iter().map(|located| (located, ObjectName::from(item.name_any()))));
                }
            }
            Ok(named)
        })
    }

    fn successor(&self, object: &LocatedObject) -> Option<Owner> {
        self.successors.get(object).cloned()
    }

    fn ignored(&self, objects: &BTreeSet<LocatedObject>) -> BTreeSet<LocatedObject> {
        let ignored = in_target(ignored_objects(config(&self.item)));
        // What stands there once more is deployed (C-204).
        let deployed = in_target(deployed_objects(config(&self.item)));
        objects.iter().filter(|located| ignored.contains(located) && !deployed.contains(located)).cloned().collect()
    }
}

impl GatheredItem {
    /// The other items of the Execution that stay.
    fn beside(&self) -> impl Iterator<Item = Arc<DeployItem>> {
        let execution = self.item.label(label::MANAGED_BY);
        let items = execution.map(|name| MANAGED_BY.find(&self.host.stores.deploy_items, &self.key.namespace, name));
        let items = items.into_iter().flatten();
        items.filter(|item| Key::of(item.as_ref()) != self.key && !item.is_deleting())
    }

    /// Whether this item deploys to the cluster of another one: by the same Target, or by one of another name that leads there
    /// (C-169). As long as one of both cannot be asked, that is not known, and waited for.
    async fn is_on_the_cluster_of(&self, item: &DeployItem) -> Step<bool> {
        let (own, other) = (&self.item.spec.target, &item.spec.target);
        if own == other {
            return Ok(true);
        }
        let (Some(_), Some(other)) = (own, other) else { return Ok(false) };
        let Some(there) = self.identity_of(&ClusterRef::Named(other.name.to_string())).await? else { return Ok(false) };
        let here = self.identity_of(&ClusterRef::Target).await?;
        Ok(here.is_some_and(|here| here.beside(&there) == Sameness::Same))
    }

    /// By what a cluster is known: what answers there now is one cluster. `None` without such a Target.
    async fn identity_of(&self, on: &ClusterRef) -> Step<Option<ClusterIdentity>> {
        match self.clusters.cluster(on).await {
            Ok(cluster) => Ok(Some(ReachedCluster::of(&cluster).await?.identity())),
            Err(Halt::Stall(_)) => Ok(None),
            Err(halt @ (Halt::Wait(_) | Halt::Retry(_))) => Err(halt),
        }
    }

    /// Whether the item goes and its Execution stays.
    pub(in crate::deploy_item) async fn leaves_its_execution(&self) -> Step<bool> {
        let Some(execution) = self.item.label(label::MANAGED_BY) else { return Ok(false) };
        let key = Key { name: execution.into(), ..self.key.clone() };
        let execution = EXECUTION.find(&self.host, &key).await?;
        Ok(execution.is_some_and(|execution| !execution.is_deleting()))
    }

    /// The objects that other items of the Execution write over whoever has them, each with that item (C-174). What a cluster is, is
    /// asked for those that have one of these alone.
    pub(in crate::deploy_item) async fn taken_over(
        &self,
        inventory: &Inventory,
    ) -> Step<BTreeMap<LocatedObject, Owner>> {
        let mut taken = BTreeMap::new();
        for item in self.beside() {
            let theirs = in_target(taken_over_objects(config(&item)));
            let concerns = item.spec.target == self.item.spec.target
                || theirs.iter().any(|located| inventory.0.contains_key(located));
            if concerns && self.is_on_the_cluster_of(&item).await? {
                let successor = self.owner_beside(&item);
                taken.extend(theirs.into_iter().map(|located| (located, successor.clone())));
            }
        }
        Ok(taken)
    }

    /// The charts beside this item on the same cluster, each as an owner: nothing names their objects before they are rendered
    /// (C-205).
    pub(in crate::deploy_item) async fn charts_beside(&self) -> Step<Vec<(Key, Owner)>> {
        let mut charts = Vec::new();
        for item in self.beside() {
            if is_chart(config(&item)) && self.is_on_the_cluster_of(&item).await? {
                charts.push((Key::of(item.as_ref()), self.owner_beside(&item)));
            }
        }
        Ok(charts)
    }

    /// The objects that the configuration has under `ignore`, and once more under another policy, which counts (C-204).
    pub(in crate::deploy_item) fn named_twice(&self) -> Vec<ObjectKey> {
        let deployed = deployed_objects(config(&self.item));
        ignored_objects(config(&self.item)).into_iter().filter(|key| deployed.contains(key)).collect()
    }

    /// Another item of the Execution that makes the release that this one has made (C-175).
    pub(in crate::deploy_item) async fn successor_of_release(&self) -> Step<Option<Owner>> {
        let Some(release) = release_of(config(&self.item)) else { return Ok(None) };
        for item in self.beside() {
            let is_same =
                item.spec.type_ == self.item.spec.type_ && release_of(config(&item)).as_ref() == Some(&release);
            if is_same && self.is_on_the_cluster_of(&item).await? {
                return Ok(Some(self.owner_beside(&item)));
            }
        }
        Ok(None)
    }

    fn owner_beside(&self, item: &DeployItem) -> Owner {
        Owner { name: item.name_any().into(), uid: uid_of(item).to_owned(), ..self.owner.clone() }
    }

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

pub(in crate::deploy_item) fn config(item: &DeployItem) -> &Value {
    item.spec.config.as_ref().unwrap_or(&Value::Null)
}

/// Objects that a configuration names, on the Target. It may give a namespace to what has none, and an inventory does not (C-35):
/// each is there as one without a namespace, too.
fn in_target(keys: BTreeSet<ObjectKey>) -> BTreeSet<LocatedObject> {
    let both = |key: ObjectKey| [ObjectKey { namespace: None, ..key.clone() }, key];
    keys.into_iter().flat_map(both).map(|key| LocatedObject { on: ClusterRef::Target, key }).collect()
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
