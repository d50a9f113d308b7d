//! What an Installation's imports stand for: read from the stores, Secrets and ConfigMaps from the API (INS-22).

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use k8s_openapi::{
    ByteString,
    api::core::v1::{ConfigMap, Secret},
};
use kube::{Api, Client, core::NamespaceResourceScope};
use orangery_api::{label, marks::Marks};
use orangery_blueprint::{
    binding::{DataSource, Imports},
    import::{DataValue, Sources, TargetObject},
};
use orangery_core::{
    error::Failure,
    name::can_be_name,
    step::{Halt, Step},
};
use orangery_proposal::deployer::ApiResource;
use orangery_reconcile::{Key, Store, Watched};
use serde::{Deserialize as _, de::DeserializeOwned};
use serde_json::Value;

use crate::host::{Host, Stores, index};

/// The entries of a Secret or ConfigMap.
type Content = BTreeMap<String, Vec<u8>>;

/// A kind without a store that data is imported from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Plain {
    Secret,
    ConfigMap,
}

/// A Secret or ConfigMap that imports name.
pub(super) type PlainName = (Plain, String);

/// The objects of one namespace, as far as imports go.
pub(super) struct Gathered<'a> {
    stores: &'a Stores,
    namespace: String,
    plain: BTreeMap<PlainName, Content>,
}

impl Plain {
    /// Those that imports name, each once. What cannot be a name names nothing.
    pub(super) fn named(imports: &Imports) -> BTreeSet<PlainName> {
        let named = imports.data.iter().filter_map(|import| match import.source()? {
            DataSource::Secret(reference) => Some((Plain::Secret, reference.name.clone())),
            DataSource::ConfigMap(reference) => Some((Plain::ConfigMap, reference.name.clone())),
            DataSource::DataObject(_) => None,
        });
        named.filter(|(_, name)| can_be_name(name)).collect()
    }

    /// How the API serves it.
    pub(super) fn resource(self) -> ApiResource {
        fn resource<K: kube::Resource<DynamicType = ()>>() -> ApiResource {
            let text = |text: Cow<'_, str>| text.into_owned();
            let (api_version, kind, plural) = (K::api_version(&()), K::kind(&()), K::plural(&()));
            ApiResource { api_version: text(api_version), kind: text(kind), plural: text(plural), namespaced: true }
        }
        match self {
            Plain::Secret => resource::<Secret>(),
            Plain::ConfigMap => resource::<ConfigMap>(),
        }
    }

    async fn read(self, client: &Client, namespace: &str, name: &str) -> Step<Option<Content>> {
        Ok(match self {
            Plain::Secret => get::<Secret>(client, namespace, name).await?.map(secret),
            Plain::ConfigMap => get::<ConfigMap>(client, namespace, name).await?.map(config_map),
        })
    }

    /// Of an object as the API has it; `None` where it is something else.
    fn content(self, object: &Value) -> Option<Content> {
        match self {
            Plain::Secret => Secret::deserialize(object).map(secret).ok(),
            Plain::ConfigMap => ConfigMap::deserialize(object).map(config_map).ok(),
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

impl<'a> Gathered<'a> {
    /// Reads the Secrets and ConfigMaps that the imports name; everything else is known.
    pub(super) async fn read(host: &'a Host, namespace: &str, imports: &Imports) -> Step<Self> {
        let mut plain = BTreeMap::new();
        for (kind, name) in Plain::named(imports) {
            if let Some(content) = kind.read(&host.client, namespace, &name).await? {
                plain.insert((kind, name), content);
            }
        }
        Ok(Self { stores: &host.stores, namespace: namespace.to_owned(), plain })
    }

    /// With these Secrets and ConfigMaps, as a watch knows them; nothing is read.
    pub(super) fn seen(
        host: &'a Host,
        namespace: &str,
        plain: impl IntoIterator<Item = (PlainName, Arc<Value>)>,
    ) -> Self {
        let plain = plain.into_iter().filter_map(|(of, object)| Some((of.clone(), of.0.content(&object)?)));
        Self { stores: &host.stores, namespace: namespace.to_owned(), plain: plain.collect() }
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
        self.plain.get(&(Plain::Secret, name.to_owned())).cloned()
    }

    fn config_map(&self, name: &str) -> Option<Content> {
        self.plain.get(&(Plain::ConfigMap, name.to_owned())).cloned()
    }

    fn installation_exists(&self, name: &str) -> bool {
        self.stores.installations.get(&self.key(name)).is_some()
    }
}
