//! The inventory: which objects an item has brought about, as `status.providerStatus.managedResources` holds them
//! (`docs/wire.md` §8.1), and which of them go when the plan or the item goes.
//!
//! The form is the one that Landscaper's deployers have always written, so that items of a running Landscaper are
//! adopted as they are; what is ours is added and left out where it says nothing.

mod takers;

use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet},
};

use orangery_core::name::{ApiVersion, Kind, Namespace, ObjectName};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use self::takers::Takers;
use crate::{
    ClusterRef, DeletionGroup, DeletionScope, ObjectKey, ObjectWrite, Ownership, Selection, Write,
    default_deletion_order, overlay::overlay,
};

/// An object of one of the item's clusters. Two of them are equal where they mean the same object: the version of the
/// key says how it is read and written, and is no part of what it is (C-35).
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LocatedObject {
    /// Where.
    #[serde(default, skip_serializing_if = "is_target")]
    pub on: ClusterRef,
    /// Which.
    #[serde(flatten)]
    pub key: ObjectKey,
}

impl LocatedObject {
    fn order(&self, other: &Self) -> Ordering {
        let group = self.key.group().cmp(other.key.group());
        let (own, others) = (&self.key, &other.key);
        self.on
            .cmp(&other.on)
            .then(group)
            .then_with(|| own.kind.cmp(&others.kind))
            .then_with(|| own.namespace.cmp(&others.namespace))
            .then_with(|| own.name.cmp(&others.name))
    }
}

impl PartialEq for LocatedObject {
    fn eq(&self, other: &Self) -> bool {
        self.order(other) == Ordering::Equal
    }
}

impl Eq for LocatedObject {}

impl PartialOrd for LocatedObject {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for LocatedObject {
    fn cmp(&self, other: &Self) -> Ordering {
        self.order(other)
    }
}

fn is_target(on: &ClusterRef) -> bool {
    *on == ClusterRef::Target
}

/// What becomes of an object of the inventory; the words of the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum InventoryPolicy {
    /// Pruned and deleted with the item.
    #[default]
    Manage,
    /// As managed, as long as the object carries the item's label.
    Fallback,
    /// Never deleted.
    Keep,
    /// Created, never updated; pruned and deleted.
    Immutable,
    /// Goes at the end of the job that wrote it.
    Ephemeral,
}

const POLICIES: [(InventoryPolicy, &str); 5] = [
    (InventoryPolicy::Manage, "manage"),
    (InventoryPolicy::Fallback, "fallback"),
    (InventoryPolicy::Keep, "keep"),
    (InventoryPolicy::Immutable, "immutable"),
    (InventoryPolicy::Ephemeral, "ephemeral"),
];

impl InventoryPolicy {
    /// The policy of a write.
    pub fn of(write: &ObjectWrite) -> Self {
        match (write.owned, &write.how) {
            (Ownership::Managed, Write::Create) => InventoryPolicy::Immutable,
            (Ownership::Managed, _) => InventoryPolicy::Manage,
            (Ownership::Fallback, _) => InventoryPolicy::Fallback,
            (Ownership::Kept, _) => InventoryPolicy::Keep,
            (Ownership::Ephemeral, _) => InventoryPolicy::Ephemeral,
        }
    }

    fn word(self) -> &'static str {
        POLICIES.iter().find(|(policy, _)| *policy == self).map_or("manage", |(_, word)| word)
    }

    /// A word that is not known means the default, as in the original.
    fn read(word: &str) -> Self {
        POLICIES.iter().find(|(_, known)| *known == word).map_or(InventoryPolicy::Manage, |(policy, _)| *policy)
    }
}

/// What is known of one object of the inventory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InventoryEntry {
    /// What becomes of it.
    pub policy: InventoryPolicy,
    /// Its uid, once a write has answered it.
    pub uid: Option<String>,
    /// Laid over the live object right before it is deleted.
    pub before_deletion: Option<Value>,
}

/// The objects of an item.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inventory(pub BTreeMap<LocatedObject, InventoryEntry>);

/// One element of `managedResources`.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ManagedResource {
    #[serde(default)]
    policy: String,
    resource: InventoryResource,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    annotate_before_delete: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    patch_before_delete: Option<Value>,
    #[serde(default, skip_serializing_if = "is_target")]
    cluster: ClusterRef,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct InventoryResource {
    api_version: ApiVersion,
    kind: Kind,
    name: ObjectName,
    #[serde(default, skip_serializing_if = "str::is_empty")]
    namespace: Namespace,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    uid: Option<String>,
}

/// A `managedResources` that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("status.providerStatus.managedResources cannot be read: {0}; mend it, or delete the item without uninstall")]
pub struct UnreadableInventory(String);

impl Inventory {
    /// Reads the list of a provider status; an absent one is empty.
    ///
    /// # Errors
    /// [`UnreadableInventory`]: guessing would leak or delete objects.
    pub fn read(list: Option<&Value>) -> Result<Self, UnreadableInventory> {
        let Some(list) = list.filter(|list| !list.is_null()) else { return Ok(Self::default()) };
        let list: Vec<ManagedResource> =
            Deserialize::deserialize(list).map_err(|error| UnreadableInventory(error.to_string()))?;
        Ok(Self(list.into_iter().map(ManagedResource::entry).collect()))
    }

    /// The list for a provider status, sorted; `None` for an empty inventory.
    pub fn list(&self) -> Option<Value> {
        let list: Vec<Value> =
            self.0.iter().map(|(located, entry)| json!(ManagedResource::of(located, entry))).collect();
        (!list.is_empty()).then_some(Value::Array(list))
    }

    /// Takes a write in, keeping the uid that was known: the union of what was there and what is to come. From now on the
    /// object is named in the version of the write.
    pub fn plan(&mut self, located: LocatedObject, write: &ObjectWrite) {
        let uid = self.0.remove(&located).and_then(|entry| entry.uid);
        let entry =
            InventoryEntry { policy: InventoryPolicy::of(write), uid, before_deletion: write.before_deletion.clone() };
        self.0.insert(located, entry);
    }

    /// The objects that are not planned any more, but for kept ones: those are to be deleted.
    pub fn leaving(&self, planned: &BTreeSet<LocatedObject>) -> BTreeSet<LocatedObject> {
        let gone = self
            .0
            .iter()
            .filter(|(located, entry)| !planned.contains(located) && entry.policy != InventoryPolicy::Keep);
        gone.map(|(located, _)| located.clone()).collect()
    }

    /// The objects that end with the item.
    pub fn ending(&self) -> BTreeSet<LocatedObject> {
        self.leaving(&BTreeSet::new())
    }

    /// The objects that end with the job.
    pub fn ephemeral(&self) -> BTreeSet<LocatedObject> {
        let of_job = self.0.iter().filter(|(_, entry)| entry.policy == InventoryPolicy::Ephemeral);
        of_job.map(|(located, _)| located.clone()).collect()
    }
}

impl ManagedResource {
    fn of(located: &LocatedObject, entry: &InventoryEntry) -> Self {
        Self {
            policy: entry.policy.word().to_owned(),
            resource: InventoryResource {
                api_version: located.key.api_version.clone(),
                kind: located.key.kind.clone(),
                name: located.key.name.clone(),
                namespace: located.key.namespace.clone().unwrap_or_default(),
                uid: entry.uid.clone(),
            },
            annotate_before_delete: Map::new(),
            patch_before_delete: entry.before_deletion.clone(),
            cluster: located.on.clone(),
        }
    }

    fn entry(self) -> (LocatedObject, InventoryEntry) {
        let mut before_deletion = self.patch_before_delete;
        if !self.annotate_before_delete.is_empty() {
            let annotations = json!({"metadata": {"annotations": self.annotate_before_delete}});
            overlay(before_deletion.get_or_insert(json!({})), &annotations);
        }
        let InventoryResource { api_version, kind, name, namespace, uid } = self.resource;
        let namespace = (!namespace.is_empty()).then_some(namespace);
        let key = ObjectKey { api_version, kind, namespace, name };
        (
            LocatedObject { on: self.cluster, key },
            InventoryEntry { policy: InventoryPolicy::read(&self.policy), uid, before_deletion },
        )
    }
}

/// What is deleted together.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Where.
    pub on: ClusterRef,
    /// Objects of the inventory.
    pub members: BTreeSet<LocatedObject>,
    /// Whatever matches, managed or not.
    pub matching: Vec<Selection>,
    /// Remove finalizers of others while waiting.
    pub force: bool,
}

/// Divides objects of the inventory among the groups of an order, each into the first that takes it in; what no group
/// takes in is not deleted. An empty order means the default, for every cluster that is concerned.
pub fn groups(order: &[DeletionGroup], leaving: &BTreeSet<LocatedObject>) -> Vec<Group> {
    let clusters: BTreeSet<&ClusterRef> = leaving.iter().map(|located| &located.on).collect();
    let usual = clusters
        .into_iter()
        .flat_map(|on| default_deletion_order().into_iter().map(|group| DeletionGroup { on: on.clone(), ..group }));
    let order: Vec<DeletionGroup> = if order.is_empty() { usual.collect() } else { order.to_vec() };
    let mut members: Vec<BTreeSet<LocatedObject>> = vec![BTreeSet::new(); order.len()];
    let takers = Takers::of(&order);
    for located in leaving {
        if let Some(members) = takers.first(located).and_then(|place| members.get_mut(place)) {
            members.insert(located.clone());
        }
    }
    let mut groups = Vec::new();
    for (DeletionGroup { on, what, force }, members) in order.into_iter().zip(members) {
        let matching: Vec<Selection> = what
            .into_iter()
            .filter_map(|scope| match scope {
                DeletionScope::Matching(selection) => Some(selection),
                DeletionScope::Namespaced
                | DeletionScope::ClusterScoped
                | DeletionScope::CustomResourceDefinitions
                | DeletionScope::Managed(_) => None,
            })
            .collect();
        if !members.is_empty() || !matching.is_empty() {
            groups.push(Group { on, members, matching, force });
        }
    }
    groups
}

/// Whether an object defines a kind.
pub fn is_definition(key: &ObjectKey) -> bool {
    key.group() == "apiextensions.k8s.io" && key.kind == "CustomResourceDefinition"
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
