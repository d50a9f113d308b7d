//! What an Installation's imports stand for: read from the stores, Secrets and ConfigMaps from the API (INS-22).

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use orangery_api::{installation::Installation, label, marks::Marks};
use orangery_blueprint::plan::import::{Unread, unread};
use orangery_blueprint::{
    binding::ImportBindings,
    import::{self, DataValue, Imported, Sources, TargetObject},
    record::RecordWriter,
};
use orangery_core::{
    name::{JobId, Kind, Namespace, ObjectName},
    step::Step,
};
use orangery_reconcile::Key;
use serde_json::Value;

use super::{
    super::dependencies::{CONFIG_MAPS, DATA_OBJECTS, SECRETS, TARGETS, TARGETS_OF_CONTEXT, awaits_imports},
    data_sources::{Content, DataSourceKind, DataSourceName},
};
use crate::{controller_context::ControllerContext, stores::Stores};

/// The objects of one namespace, as far as imports go.
pub(in crate::installation) struct GatheredImports<'a> {
    stores: &'a Stores,
    namespace: Namespace,
    data_sources: BTreeMap<DataSourceName, Content>,
}

/// The Secrets and ConfigMaps that an Installation imports.
pub(in crate::installation) fn data_source_names(installation: &Installation) -> Vec<DataSourceName> {
    let secrets = SECRETS.names(installation).into_iter().map(|name| (DataSourceKind::Secret, ObjectName::from(name)));
    secrets
        .chain(
            CONFIG_MAPS.names(installation).into_iter().map(|name| (DataSourceKind::ConfigMap, ObjectName::from(name))),
        )
        .collect()
}

/// The names that a [`RecordWriter`] borrows.
pub(in crate::installation) struct ImportNames {
    key: Key,
    parent: Option<String>,
    job: JobId,
}

impl ImportNames {
    pub(in crate::installation) fn of(installation: &Installation, job: &JobId) -> Self {
        Self {
            key: Key::of(installation),
            parent: installation.parent_installation().map(str::to_owned),
            job: job.clone(),
        }
    }

    pub(in crate::installation) fn scope(&self) -> RecordWriter<'_> {
        let Key { namespace, name: installation } = &self.key;
        RecordWriter { namespace, installation, parent: self.parent.as_deref(), job: &self.job }
    }
}

/// Every import of an Installation in a job, by its name there.
pub(in crate::installation) async fn read_imports(
    host: &ControllerContext,
    installation: &Installation,
    job: &JobId,
) -> Step<BTreeMap<String, Imported>> {
    let imports = ImportBindings::from(&installation.spec.imports);
    let names = ImportNames::of(installation, job);
    let gathered = GatheredImports::read(host, installation).await?;
    let mut asked = BTreeSet::new();
    loop {
        let error = match import::read(&imports, &names.scope(), &gathered) {
            Ok(imported) => return Ok(imported),
            Err(error) => error,
        };
        match unread(&error, &asked, awaits_imports(installation)) {
            Unread::AskFor(named) => {
                gathered.ask_for(host, &named.0, &named.1).await?;
                asked.insert(named);
            }
            Unread::Halt(halt) => return Err(halt),
        }
    }
}

impl<'a> GatheredImports<'a> {
    /// Reads the Secrets and ConfigMaps that an Installation imports; everything else is known.
    async fn read(host: &'a ControllerContext, installation: &Installation) -> Step<Self> {
        let namespace = Key::of(installation).namespace;
        let mut data_sources = BTreeMap::new();
        for (kind, name) in data_source_names(installation) {
            if let Some(content) = kind.read(&host.client, &namespace, &name).await? {
                if kind == DataSourceKind::Secret {
                    host.secrets.learn_secret(&Key::new(&namespace, &name), content.values());
                }
                data_sources.insert((kind, name), content);
            }
        }
        Ok(Self { stores: &host.stores, namespace, data_sources })
    }

    /// With these Secrets and ConfigMaps, as a watch knows them; nothing is read.
    pub(in crate::installation) fn seen(
        host: &'a ControllerContext,
        namespace: &Namespace,
        data_sources: impl IntoIterator<Item = (DataSourceName, Arc<Value>)>,
    ) -> Self {
        let data_sources =
            data_sources.into_iter().filter_map(|(of, object)| Some((of.clone(), of.0.content(&object)?)));
        Self { stores: &host.stores, namespace: namespace.to_owned(), data_sources: data_sources.collect() }
    }

    /// Asks the server for an object that its store lacks; one that exists is known from then on.
    async fn ask_for(&self, host: &ControllerContext, kind: &Kind, name: &str) -> Step<()> {
        match kind.as_str() {
            "DataObject" => DATA_OBJECTS.find(host, &self.key(name)).await.map(drop),
            "Target" => TARGETS.find(host, &self.key(name)).await.map(drop),
            _ => Ok(()),
        }
    }

    fn key(&self, name: &str) -> Key {
        Key { namespace: self.namespace.clone(), name: name.into() }
    }
}

impl Sources for GatheredImports<'_> {
    fn data_object(&self, name: &str) -> Option<DataValue> {
        self.stores.data_objects.get(&self.key(name)).map(|object| DataValue::from(object.as_ref()))
    }

    fn target(&self, name: &str) -> Option<TargetObject> {
        self.stores.targets.get(&self.key(name)).map(|target| TargetObject::from(target.as_ref()))
    }

    fn kept_targets(&self, context: &str, key: &str) -> Vec<TargetObject> {
        let targets = TARGETS_OF_CONTEXT.find(&self.stores.targets, &self.namespace, context);
        let kept = targets.iter().filter(|target| {
            target.label(label::KEY) == Some(key) && target.label(label::SOURCE_TYPE) == Some(label::SOURCE_TYPE_IMPORT)
        });
        kept.map(|target| TargetObject::from(target.as_ref())).collect()
    }

    fn secret(&self, name: &str) -> Option<Content> {
        self.data_sources.get(&(DataSourceKind::Secret, name.into())).cloned()
    }

    fn config_map(&self, name: &str) -> Option<Content> {
        self.data_sources.get(&(DataSourceKind::ConfigMap, name.into())).cloned()
    }

    fn installation_exists(&self, name: &str) -> bool {
        self.stores.installations.get(&self.key(name)).is_some()
    }
}
