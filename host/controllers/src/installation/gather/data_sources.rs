//! Secrets and ConfigMaps that data is imported from. They have no store: each is watched by its name, or read.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use k8s_openapi::{
    ByteString,
    api::core::v1::{ConfigMap, Secret},
};
use kube::Client;
use orangery_api::installation::Installation;
use orangery_blueprint::binding::{DataSource, ImportBindings};
use orangery_core::{
    name::{Namespace, ObjectName, can_be_name},
    step::Step,
};
use orangery_proposal::deployer::ApiResource;
use serde::Deserialize as _;
use serde_json::Value;

use crate::object_access::get;

/// The entries of a Secret or ConfigMap.
pub(in crate::installation) type Content = BTreeMap<String, Vec<u8>>;

/// A kind without a store that data is imported from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::installation) enum DataSourceKind {
    Secret,
    ConfigMap,
}

/// A Secret or ConfigMap that imports name.
pub(in crate::installation) type DataSourceName = (DataSourceKind, ObjectName);

impl DataSourceKind {
    /// The Secret or ConfigMap that a source is.
    pub(in crate::installation) fn named(source: DataSource<'_>) -> Option<DataSourceName> {
        match source {
            DataSource::Secret(reference) => Some((Self::Secret, reference.name.as_str().into())),
            DataSource::ConfigMap(reference) => Some((Self::ConfigMap, reference.name.as_str().into())),
            DataSource::DataObject(_) => None,
        }
    }

    /// The names of those of this kind that an Installation imports, each once. What cannot be a name names nothing.
    pub(in crate::installation) fn names(self, installation: &Installation) -> Vec<String> {
        let imports = ImportBindings::from(&installation.spec.imports);
        let named = imports.data.iter().filter_map(|import| Self::named(import.source()?));
        let names = named.filter(|(kind, _)| *kind == self).map(|(_, name)| name.to_string());
        let names: BTreeSet<String> = names.filter(|name| can_be_name(name)).collect();
        names.into_iter().collect()
    }

    /// How the API serves it.
    pub(in crate::installation) fn resource(self) -> ApiResource {
        fn resource<K: kube::Resource<DynamicType = ()>>() -> ApiResource {
            let text = |text: Cow<'_, str>| text.into_owned();
            let (api_version, kind, plural) = (K::api_version(&()), K::kind(&()), K::plural(&()));
            ApiResource {
                api_version: text(api_version).into(),
                kind: text(kind).into(),
                plural: text(plural),
                namespaced: true,
            }
        }
        match self {
            DataSourceKind::Secret => resource::<Secret>(),
            DataSourceKind::ConfigMap => resource::<ConfigMap>(),
        }
    }

    /// Reads one; `None` where it does not exist.
    pub(in crate::installation) async fn read(
        self,
        client: &Client,
        namespace: &Namespace,
        name: &ObjectName,
    ) -> Step<Option<Content>> {
        Ok(match self {
            DataSourceKind::Secret => get::<Secret>(client, namespace, name).await?.map(secret),
            DataSourceKind::ConfigMap => get::<ConfigMap>(client, namespace, name).await?.map(config_map),
        })
    }

    /// Of an object as the API has it; `None` where it is something else.
    pub(in crate::installation) fn content(self, object: &Value) -> Option<Content> {
        match self {
            DataSourceKind::Secret => Secret::deserialize(object).map(secret).ok(),
            DataSourceKind::ConfigMap => ConfigMap::deserialize(object).map(config_map).ok(),
        }
    }
}

fn secret(secret: Secret) -> Content {
    bytes(secret.data).collect()
}

fn config_map(map: ConfigMap) -> Content {
    let texts = map.data.into_iter().flatten().map(|(key, text)| (key, text.into_bytes()));
    texts.chain(bytes(map.binary_data)).collect()
}

fn bytes(data: Option<BTreeMap<String, ByteString>>) -> impl Iterator<Item = (String, Vec<u8>)> {
    data.into_iter().flatten().map(|(key, ByteString(bytes))| (key, bytes))
}
