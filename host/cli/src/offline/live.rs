//! The objects of a namespace as a cluster has them now, in place of manifests: what the last job has left is what the next one
//! begins with.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Client, Resource, ResourceExt as _};
use orangery_api::{
    GROUP, annotation, context::Context, data_object::DataObject, deploy_item::DeployItem, installation::Installation,
    label, marks::Marks as _, overwrites::ComponentVersionOverwrites, target::Target,
};
use orangery_blueprint::DEEPEST_MADE;
use orangery_core::{
    name::{Namespace, ObjectName},
    phase::item::Item as Phase,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Given, GivenOrigin, NamespaceObjects};
use crate::{call::CallError, listed};

/// Objects that are asked for at once.
const PAGE: u32 = 500;

/// The key of exports in their Secret.
const CONTENT: &str = "config";

/// A namespace of a cluster.
pub struct LiveNamespace {
    /// What installations read there.
    pub objects: NamespaceObjects,
    installations: BTreeMap<ObjectName, Installation>,
    items: Vec<DeployItem>,
}

impl LiveNamespace {
    /// Lists what is there, with the rights of the client.
    ///
    /// # Errors
    /// A kind cannot be listed.
    pub async fn read(client: &Client, namespace: &Namespace) -> Result<Self, CallError> {
        let mut objects = NamespaceObjects::default();
        for object in list::<DataObject>(client, namespace, GROUP).await? {
            objects.add_data_object(object);
        }
        for target in list::<Target>(client, namespace, GROUP).await? {
            objects.add_target(target);
        }
        for context in list::<Context>(client, namespace, GROUP).await? {
            objects.add_context(context);
        }
        for overwrites in list::<ComponentVersionOverwrites>(client, namespace, GROUP).await? {
            objects.add_overwrites(overwrites);
        }
        for secret in list::<Secret>(client, namespace, "").await? {
            objects.add_secret(secret);
        }
        for map in list::<ConfigMap>(client, namespace, "").await? {
            objects.add_config_map(map);
        }
        let installations = list::<Installation>(client, namespace, GROUP).await?;
        installations.iter().for_each(|installation| objects.add_installation(&installation.name_any()));
        let installations = installations.into_iter().map(|of| (of.name_any().into(), of)).collect();
        let items = list::<DeployItem>(client, namespace, GROUP).await?;
        Ok(Self { objects, installations, items })
    }

    /// An Installation.
    pub fn installation(&self, name: &str) -> Option<&Installation> {
        self.installations.get(name)
    }

    /// The deploy items of an Installation, sorted by the names of their objects.
    pub fn items_of(&self, installation: &str) -> impl Iterator<Item = &DeployItem> {
        self.items.iter().filter(move |item| item.label(label::MANAGED_BY) == Some(installation))
    }

    /// The sub-installations of an Installation, each with its name in the blueprint.
    pub fn children_of(&self, installation: &str) -> impl Iterator<Item = (&str, &Installation)> {
        self.installations.values().filter_map(move |child| {
            let name = child.annotation(annotation::SUBINSTALLATION_NAME)?;
            (child.parent_installation() == Some(installation)).then_some((name, child))
        })
    }

    /// What the last job has left of an Installation and of those below it, down to the depth that there may be.
    pub fn given(&self, installation: &str) -> Given {
        self.given_above(installation, DEEPEST_MADE)
    }

    fn given_above(&self, installation: &str, depth: usize) -> Given {
        let mut given =
            Given { object_name: Some(installation.into()), origin: GivenOrigin::Cluster, ..Given::default() };
        let known =
            self.items_of(installation).filter_map(|item| Some((item.item_name()?.to_owned(), self.exports(item)?)));
        given.deploy_items = Some(known.collect());
        if depth > 0 {
            let children = self.children_of(installation);
            let children =
                children.map(|(name, child)| (name.to_owned(), self.given_above(&child.name_any(), depth - 1)));
            given.subinstallations = children.collect();
        }
        given
    }

    /// What an item has exported; `None` where that is not known: it has never succeeded, or its Secret is gone.
    fn exports(&self, item: &DeployItem) -> Option<Value> {
        let status = item.status.as_ref()?;
        match &status.export_ref {
            Some(reference) => serde_json::from_slice(self.objects.secret_key(&reference.name, CONTENT)?).ok(),
            None => (Phase::parse(&status.phase) == Some(Phase::Succeeded)).then_some(Value::Null),
        }
    }
}

async fn list<K>(client: &Client, namespace: &Namespace, group: &str) -> Result<Vec<K>, CallError>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned,
{
    let mut objects = Vec::new();
    listed::each(client, Some(namespace), (group, PAGE), |object| objects.push(object)).await?;
    Ok(objects)
}
