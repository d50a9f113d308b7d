//! What an Installation's imports stand for: read from the stores, Secrets and ConfigMaps from the API (INS-22).

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use orangery_api::{convert, installation::Installation, marks::Marks};
use orangery_blueprint::plan::import::{Unread, unread};
use orangery_blueprint::{
    binding::{DataImport, ImportBindings},
    import::{self, DataValue, ImportError, ImportFault, Imported, MOST_IMPORTED_BYTES, Sources, TargetObject},
    record::{RecordWriter, UndecryptableData},
    sibling::{exported, imported},
};
use orangery_core::{
    error::{Code, Failure},
    name::{JobId, Kind, Namespace, ObjectName},
    step::{Halt, Step},
};
use orangery_reconcile::{Key, MOST_VALUES, give_reading_back, reserve_for_reading};
use orangery_turns::{LentSlot, Turn, lending, slot};
use serde_json::Value;
use tokio::sync::OnceCell;

use super::{
    super::dependencies::{CONFIG_MAPS, DATA_OBJECTS, KEPT_TARGETS, SECRETS, TARGETS, awaits_imports, kept_under},
    data_sources::{Content, DataSourceKind, DataSourceName},
};
use crate::{
    controller_context::ControllerContext, encryption::EncryptionKey, secret_data::clear_data, stores::Stores,
};

/// The most memory, in bytes, that imports may take that wait for no turn.
const MOST_SMALL_BYTES: u64 = 4 << 20;

/// Bytes of memory that are made of each byte of imports that were read, such as the input of templates.
const MADE_OF_IMPORTS: u64 = 4;

/// The turn of whoever keeps imports in memory that take much of it, from when that is found out to when it is dropped (C-99).
#[derive(Default)]
pub(in crate::installation) struct ImportsTurn(OnceCell<Turn>);

impl ImportsTurn {
    /// Waits for the turn, with nothing in memory, and lends the slot meanwhile.
    async fn take(&self, host: &ControllerContext, namespace: &Namespace) {
        let wait = async {
            let _lent = LentSlot::of(slot());
            host.large_imports.acquire(&Some(namespace.clone())).await
        };
        self.0.get_or_init(|| wait).await;
    }

    /// The bytes of memory that imports may take now.
    fn most(&self) -> u64 {
        if self.0.initialized() { MOST_IMPORTED_BYTES } else { MOST_SMALL_BYTES }
    }
}

/// The objects of one namespace, as far as imports go.
pub(in crate::installation) struct GatheredImports<'a> {
    stores: &'a Stores,
    encryption: &'a EncryptionKey,
    namespace: Namespace,
    data_sources: BTreeMap<DataSourceName, Content>,
    /// The Secret or ConfigMap whose text has no room any more, and the bytes that there are.
    beyond: Option<(DataSourceName, u64)>,
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

/// Whether an Installation imports and exports no more than the indexes have (C-296): by more it would not hear of changes.
///
/// # Errors
/// It does, and how many there are.
fn check_number(installation: &Installation) -> Step<()> {
    let references = imported(&(&installation.spec.imports).into()).len();
    let counted = [
        ("imports", references + data_source_names(installation).len()),
        ("exports", exported(&(&installation.spec.exports).into()).len()),
    ];
    let Some((what, number)) = counted.into_iter().find(|(_, number)| *number > MOST_VALUES) else { return Ok(()) };
    let message = format!(
        "Installation {} {what} {number} objects, and may have {MOST_VALUES}; put values together, or divide it",
        Key::of(installation)
    );
    Err(Halt::Stall(Failure::new("ReadImports", "TooManyReferences", message).with_code(Code::ConfigurationProblem)))
}

/// Every import of an Installation in a job, by its name there; large ones when it is their `turn`.
pub(in crate::installation) async fn read_imports(
    host: &ControllerContext,
    installation: &Installation,
    job: &JobId,
    turn: &ImportsTurn,
) -> Step<BTreeMap<String, Imported>> {
    check_number(installation)?;
    if let Some(imported) = read_in_turn(host, installation, job, turn).await? {
        return Ok(imported);
    }
    // A call that holds some waits for nothing.
    give_reading_back().await;
    turn.take(host, &Key::of(installation).namespace).await;
    Ok(read_in_turn(host, installation, job, turn).await?.unwrap_or_default())
}

/// The same; `None` for large ones that have no turn.
async fn read_in_turn(
    host: &ControllerContext,
    installation: &Installation,
    job: &JobId,
    turn: &ImportsTurn,
) -> Step<Option<BTreeMap<String, Imported>>> {
    let imports = ImportBindings::from(&installation.spec.imports);
    let names = ImportNames::of(installation, job);
    let most = turn.most();
    let gathered = GatheredImports::read(host, installation, most).await?;
    let mut asked = BTreeSet::new();
    loop {
        let read = gathered
            .fits(&imports, &names)
            .and_then(|()| import::read_within(&imports, &names.scope(), &gathered, most));
        let error = match read {
            Ok(imported) => return Ok(Some(imported)),
            Err(error) => error,
        };
        if most < MOST_IMPORTED_BYTES && matches!(*error.fault, ImportFault::TooLarge { .. }) {
            return Ok(None);
        }
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
    async fn read(host: &'a ControllerContext, installation: &Installation, most: u64) -> Step<Self> {
        let namespace = Key::of(installation).namespace;
        let (mut data_sources, mut beyond, mut texts) = (BTreeMap::new(), None, 0);
        let named = data_source_names(installation);
        // Large ones have their turn instead, and what was read before is read anew.
        give_reading_back().await;
        let has_sum = most < MOST_IMPORTED_BYTES && !named.is_empty();
        let reserved = if has_sum { Some(reserve_for_reading(&namespace, most).await) } else { None };
        // Thousands of them take long, and nobody waits for that who has a slot to wait for.
        let read = async {
            let _turn =
                if named.is_empty() { None } else { Some(host.named_reads.acquire(&Some(namespace.clone())).await) };
            for (kind, name) in named {
                if let Some(content) = kind.read(&host.client, &namespace, &name).await? {
                    if kind == DataSourceKind::Secret {
                        host.secrets.learn_secret(&Key::new(&namespace, &name), content.values());
                    }
                    texts += length(&content);
                    if texts > most {
                        beyond = Some(((kind, name), most));
                        break;
                    }
                    data_sources.insert((kind, name), content);
                }
            }
            Ok::<_, Halt>(())
        };
        lending(read).await?;
        if let Some(reserved) = reserved {
            reserved.takes(texts.saturating_mul(MADE_OF_IMPORTS)).await;
        }
        Ok(Self { stores: &host.stores, encryption: host.key.encryption(), namespace, data_sources, beyond })
    }

    /// Whether the texts had room; else the first import whose text had none.
    fn fits(&self, imports: &ImportBindings, names: &ImportNames) -> Result<(), ImportError> {
        let Some((beyond, most)) = &self.beyond else { return Ok(()) };
        let is_beyond = |import: &&DataImport| import.source().and_then(DataSourceKind::named).as_ref() == Some(beyond);
        let import = imports.data.iter().find(is_beyond).map(|import| import.name.clone()).unwrap_or_default();
        let installation = format!("{}/{}", names.key.namespace, names.key.name);
        Err(ImportError { import, installation, fault: Box::new(ImportFault::TooLarge { most: *most }) })
    }

    /// With these Secrets and ConfigMaps, as a watch knows them; nothing is read.
    pub(in crate::installation) fn seen(
        host: &'a ControllerContext,
        namespace: &Namespace,
        data_sources: impl IntoIterator<Item = (DataSourceName, Arc<Value>)>,
    ) -> Self {
        let data_sources =
            data_sources.into_iter().filter_map(|(of, object)| Some((of.clone(), of.0.content(&object)?)));
        let mut texts = 0;
        // Those beyond are missing, and nothing binds then.
        let data_sources = data_sources.take_while(|(_, content)| {
            texts += length(content);
            texts <= MOST_IMPORTED_BYTES
        });
        Self {
            stores: &host.stores,
            encryption: host.key.encryption(),
            namespace: namespace.to_owned(),
            data_sources: data_sources.collect(),
            beyond: None,
        }
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

/// Bytes of the texts of a Secret or ConfigMap.
fn length(content: &Content) -> u64 {
    content.values().map(|text| text.len() as u64).sum()
}

impl Sources for GatheredImports<'_> {
    fn data_object(&self, name: &str) -> Result<Option<DataValue>, UndecryptableData> {
        let Some(object) = self.stores.data_objects.get(&self.key(name)) else { return Ok(None) };
        let data = clear_data(self.encryption, &object)?.into_owned();
        Ok(Some(convert::data_value(&object, data)))
    }

    fn target(&self, name: &str) -> Option<TargetObject> {
        self.stores.targets.get(&self.key(name)).map(|target| TargetObject::from(target.as_ref()))
    }

    fn kept_targets<'a>(&'a self, context: &'a str, key: &'a str) -> Box<dyn Iterator<Item = TargetObject> + 'a> {
        let kept = KEPT_TARGETS.find(&self.stores.targets, &self.namespace, &kept_under(context, key));
        Box::new(kept.into_iter().map(|target| TargetObject::from(target.as_ref())))
    }

    fn secret(&self, name: &str) -> Option<Content> {
        self.data_sources.get(&(DataSourceKind::Secret, name.into())).cloned()
    }

    fn config_map(&self, name: &str) -> Option<Content> {
        self.data_sources.get(&(DataSourceKind::ConfigMap, name.into())).cloned()
    }

    fn installation_exists(&self, name: &str) -> bool {
        self.stores.installations.knows(&self.key(name))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn c_296_limits_references_of_an_installation_have_a_number() {
        let of = |imports: usize, exports: usize| {
            let named = |count: usize| {
                (0..count).map(|at| json!({"name": format!("n{at}"), "dataRef": format!("d{at}")})).collect::<Value>()
            };
            let spec =
                json!({"blueprint": {}, "imports": {"data": named(imports)}, "exports": {"data": named(exports)}});
            let metadata = json!({"namespace": "n", "name": "x"});
            let checked = check_number(&serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap());
            checked.map_err(|halt| match halt {
                Halt::Stall(failure) => failure.message,
                other => panic!("{other:?}"),
            })
        };
        let refused = |what| {
            Err(format!("Installation n/x {what} 2001 objects, and may have 2000; put values together, or divide it"))
        };
        assert_eq!(of(MOST_VALUES, MOST_VALUES), Ok(()));
        assert_eq!(of(MOST_VALUES + 1, 0), refused("imports"));
        assert_eq!(of(0, MOST_VALUES + 1), refused("exports"));
        let secrets: Value =
            (0..=MOST_VALUES).map(|at| json!({"name": "n", "secretRef": {"name": format!("s{at}")}})).collect();
        let object = json!({"metadata": {"namespace": "n", "name": "x"}, "spec": {"blueprint": {}, "imports": {"data": secrets}}});
        assert!(check_number(&serde_json::from_value(object).unwrap()).is_err(), "Secrets count");
    }
}
