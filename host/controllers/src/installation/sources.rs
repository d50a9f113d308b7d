//! What an Installation's imports stand for: read from the stores, Secrets and ConfigMaps from the API (INS-22).

use std::collections::BTreeMap;

use k8s_openapi::{
    ByteString,
    api::core::v1::{ConfigMap, Secret},
};
use kube::{Api, Client, core::NamespaceResourceScope};
use orangery_api::{label, marks::Marks};
use orangery_core::{
    binding::{DataSource, Imports},
    error::Failure,
    import::{DataValue, Sources, TargetObject},
    step::{Halt, Step},
};
use orangery_reconcile::{Key, Store, Watched};
use serde::de::DeserializeOwned;

use crate::host::{Host, Stores, index};

type Content = BTreeMap<String, Vec<u8>>;

/// The objects of one namespace, as far as imports go.
pub(super) struct Gathered<'a> {
    stores: &'a Stores,
    namespace: String,
    secrets: BTreeMap<String, Content>,
    config_maps: BTreeMap<String, Content>,
}

impl<'a> Gathered<'a> {
    /// Reads the Secrets and ConfigMaps that the imports name; everything else is known.
    pub(super) async fn read(host: &'a Host, namespace: &str, imports: &Imports) -> Step<Self> {
        let mut gathered = Self {
            stores: &host.stores,
            namespace: namespace.to_owned(),
            secrets: BTreeMap::new(),
            config_maps: BTreeMap::new(),
        };
        for import in &imports.data {
            match import.source() {
                Some(DataSource::Secret(reference)) => {
                    if let Some(secret) = get::<Secret>(&host.client, namespace, &reference.name).await? {
                        gathered.secrets.insert(reference.name.clone(), bytes(secret.data));
                    }
                }
                Some(DataSource::ConfigMap(reference)) => {
                    if let Some(map) = get::<ConfigMap>(&host.client, namespace, &reference.name).await? {
                        let texts = map.data.into_iter().flatten().map(|(key, text)| (key, text.into_bytes()));
                        let content = texts.chain(bytes(map.binary_data)).collect();
                        gathered.config_maps.insert(reference.name.clone(), content);
                    }
                }
                Some(DataSource::DataObject(_)) | None => {}
            }
        }
        Ok(gathered)
    }

    /// Asks the API for an object that its store lacks; whether it exists, and so is known now.
    pub(super) async fn ask_for(&self, host: &Host, kind: &str, name: &str) -> Step<bool> {
        let (client, namespace) = (&host.client, &self.namespace);
        Ok(match kind {
            "DataObject" => absorb(&host.stores.data_objects, get(client, namespace, name).await?),
            "Target" => absorb(&host.stores.targets, get(client, namespace, name).await?),
            _ => false,
        })
    }

    fn key(&self, name: &str) -> Key {
        Key { namespace: self.namespace.clone(), name: name.to_owned() }
    }
}

/// Makes what was read known.
pub(super) fn absorb<K: Watched>(store: &Store<K>, object: Option<K>) -> bool {
    object.map(|object| store.absorb(object)).is_some()
}

fn bytes(data: Option<BTreeMap<String, ByteString>>) -> Content {
    data.into_iter().flatten().map(|(key, ByteString(bytes))| (key, bytes)).collect()
}

/// One object of the host cluster.
pub(crate) async fn get<K>(client: &Client, namespace: &str, name: &str) -> Step<Option<K>>
where
    K: kube::Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned,
{
    let api: Api<K> = Api::namespaced(client.clone(), namespace);
    api.get_opt(name).await.map_err(|error| {
        let kind = K::kind(&());
        Halt::Retry(Failure::new(
            "ReadImports",
            "ReadFailed",
            format!("{kind} {namespace}/{name} could not be read: {error}"),
        ))
    })
}

impl Sources for Gathered<'_> {
    fn data_object(&self, name: &str) -> Option<DataValue> {
        self.stores.data_objects.get(&self.key(name)).map(|object| DataValue::from(object.as_ref()))
    }

    fn target(&self, name: &str) -> Option<TargetObject> {
        self.stores.targets.get(&self.key(name)).map(|target| TargetObject::from(target.as_ref()))
    }

    fn kept_targets(&self, context: &str, key: &str) -> Vec<TargetObject> {
        let targets = self.stores.targets.indexed(index::CONTEXT, &self.namespace, context);
        let kept = targets.iter().filter(|target| {
            target.label(label::KEY) == Some(key) && target.label(label::SOURCE_TYPE) == Some(label::SOURCE_TYPE_IMPORT)
        });
        kept.map(|target| TargetObject::from(target.as_ref())).collect()
    }

    fn secret(&self, name: &str) -> Option<Content> {
        self.secrets.get(name).cloned()
    }

    fn config_map(&self, name: &str) -> Option<Content> {
        self.config_maps.get(name).cloned()
    }

    fn installation_exists(&self, name: &str) -> bool {
        self.stores.installations.get(&self.key(name)).is_some()
    }
}
