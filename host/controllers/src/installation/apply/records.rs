//! The DataObjects and Targets of an Installation: import copies, exports, and those of earlier jobs that are deleted.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt;
use orangery_api::{
    convert::export_occupant, data_object::DataObject, installation::Installation, label, marks::Marks,
};
use orangery_blueprint::{
    export::{self, ExportError},
    import::Imported,
    record::{Record, RecordContent, UndecryptableData},
    sibling::SiblingReference,
};
use orangery_core::{
    error::{Code, Failure},
    memory,
    name::object_name,
    step::{Halt, Step},
};
use orangery_reconcile::{Key, Watched};
use orangery_render::ExportValues;
use serde_json::{Map, Value};

use super::super::{
    dependencies::{DATA_OF_CONTEXT, DATA_OF_SOURCE, TARGETS_OF_CONTEXT, TARGETS_OF_SOURCE, edges, exports},
    reconciliation::InstallationReconciliation,
};
use crate::{
    exported_memory::ExportedMemory,
    index::Index,
    object::{owner_reference, uid_of},
    record::{self, RecordOwner},
    secret_data::clear_data,
    stores::Stored,
};

/// A fatal failure of the exports.
pub(in crate::installation) fn export_failed(operation: &str, error: &ExportError) -> Halt {
    Halt::Stall(Failure::new(operation, error.reason(), error.to_string()).with_code(Code::ConfigurationProblem))
}

impl InstallationReconciliation<'_> {
    /// Writes exports of this Installation, which imports this.
    pub(in crate::installation) async fn write_exports(
        &self,
        imported: &BTreeMap<String, Imported>,
        records: &[Record],
    ) -> Step<()> {
        let reference = owner_reference(&self.draft);
        record::write(self.host, &RecordOwner { namespace: &self.key.namespace, reference, imported }, records).await
    }

    /// Exports belong to one Installation: refuses to overwrite those of another.
    pub(in crate::installation) fn check_owners(&self, records: &[Record]) -> Step<()> {
        let stores = &self.host.stores;
        let edges: Vec<Vec<String>> = records.iter().map(|record| self.edges_of(record)).collect();
        let mut known = BTreeMap::new();
        for (record, edges_of) in records.iter().zip(&edges) {
            let key = Key { namespace: self.key.namespace.clone(), name: record.name.clone() };
            // What an Installation has left that does not exist any more, or exports it no more, is written by who exports it now.
            let is_there = |owner: &OwnerReference| {
                let exporter = known.entry(owner.name.clone()).or_insert_with(|| self.exporter(&owner.name, &edges));
                exporter.as_ref().is_some_and(|exporter: &Exporter<'_>| exporter.exports(&owner.uid, edges_of))
            };
            let (data, target) = match &record.content {
                RecordContent::Data(_) => (stores.data_objects.get(&key), None),
                RecordContent::Target(_) => (None, stores.targets.get(&key)),
            };
            let occupant = match (&data, &target) {
                (Some(object), _) => Some(export_occupant(object.as_ref(), is_there)),
                (None, Some(object)) => Some(export_occupant(object.as_ref(), is_there)),
                (None, None) => None,
            };
            export::may_write(record, occupant, &self.scope())
                .map_err(|error| export_failed("WriteExports", &error))?;
        }
        Ok(())
    }

    /// Under which edges a record is exported.
    fn edges_of(&self, record: &Record) -> Vec<String> {
        let key = record.key.clone();
        let reference = match &record.content {
            RecordContent::Data(_) => SiblingReference::Data(key),
            RecordContent::Target(_) => SiblingReference::Target(key),
        };
        edges(&self.draft, [reference])
    }

    /// Another Installation, and which of these edges it exports under by its spec as it is (C-160). `None` where there is none of
    /// this name.
    fn exporter<'e>(&self, name: &str, edges: &'e [Vec<String>]) -> Option<Exporter<'e>> {
        let other = self.host.stores.installations.get(&Key::new(&self.key.namespace, name))?;
        let theirs: BTreeSet<String> = exports(&other).into_iter().collect();
        let edges = edges.iter().flatten().filter(|edge| theirs.contains(*edge)).map(String::as_str).collect();
        Some(Exporter { uid: uid_of(other.as_ref()).to_owned(), edges })
    }

    /// `Init`: the exports of the job before go, so that nobody takes them for those of this one.
    pub(in crate::installation) async fn delete_old_exports(&self) -> Step<()> {
        let source = self.scope().own_context();
        let exported = |object: &dyn Labelled| object.value(label::SOURCE_TYPE) == Some(label::SOURCE_TYPE_EXPORT);
        self.delete_from(&DATA_OF_SOURCE, &source, |object| exported(object)).await?;
        self.delete_from(&TARGETS_OF_SOURCE, &source, |target| exported(target)).await
    }

    /// `Completing`: what earlier jobs left in the own context goes.
    pub(in crate::installation) async fn delete_stale_objects(&self) -> Step<()> {
        let context = self.scope().own_context();
        let stale = |object: &dyn Labelled| object.value(label::JOB_ID) != Some(&self.workflow.job);
        self.delete_from(&DATA_OF_CONTEXT, &context, |object| stale(object)).await?;
        self.delete_from(&TARGETS_OF_CONTEXT, &context, |target| stale(target)).await
    }

    async fn delete_from<K: Stored>(&self, index: &Index<K>, value: &str, matches: impl Fn(&K) -> bool) -> Step<()> {
        let store = K::store(&self.host.stores);
        let writer = self.host.writer(store);
        for object in index.find(store, &self.key.namespace, value).into_iter().filter(|object| matches(object)) {
            writer.delete(&object).await.map_err(|error| error.halt("DeleteStaleObject"))?;
        }
        Ok(())
    }

    /// What templates of exports see beside the imports: what lives in the own context, and the exports of the deploy items. `take`
    /// takes room for each before it is copied.
    pub(in crate::installation) fn exported_values(
        &self,
        mut take: impl FnMut(&Value) -> Step<()>,
    ) -> Step<ExportValues> {
        let mut copied = |object: &DataObject| -> Step<Value> {
            let data = self.clear(object)?;
            take(&data)?;
            Ok(data.into_owned())
        };
        let (stores, context) = (&self.host.stores, self.scope().own_context());
        let deploy_items = self.item_exports().map(|object| copied(&object)).transpose()?;
        let mut data_objects = BTreeMap::new();
        for object in DATA_OF_CONTEXT.find(&stores.data_objects, &self.key.namespace, &context) {
            let Some(key) = object.data_key() else { continue };
            data_objects.insert(key.to_owned(), copied(&object)?);
        }
        let mut targets = BTreeMap::new();
        for target in TARGETS_OF_CONTEXT.find(&stores.targets, &self.key.namespace, &context) {
            let Some((key, value)) = target.data_key().zip(serde_json::to_value(target.as_ref()).ok()) else {
                continue;
            };
            take(&value)?;
            targets.insert(key.to_owned(), value);
        }
        Ok(ExportValues { deploy_items, data_objects, targets })
    }

    /// What a sub-installation has exported into the own context, by the names of its exports.
    pub(in crate::installation) async fn exported_by(&self, sub: &Installation) -> Step<Map<String, Value>> {
        let (stores, context) = (&self.host.stores, self.scope().own_context());
        let what = format!("the exports of sub-installation {}", sub.name_any());
        let mut memory = ExportedMemory::new(&self.key.namespace, &what);
        let mut exported = Map::new();
        for export in &sub.spec.exports.data {
            let key = Key { namespace: self.key.namespace.clone(), name: object_name(&context, &export.data_ref) };
            let Some(object) = stores.data_objects.get(&key).filter(|object| is_of(object, &context, &export.data_ref))
            else {
                continue;
            };
            let data = self.clear(&object)?;
            memory.take(memory::of(&data)).await?;
            exported.insert(export.name.clone(), data.into_owned());
        }
        memory.gathered().await;
        Ok(exported)
    }

    /// The exports of the deploy items, by item.
    fn item_exports(&self) -> Option<Arc<DataObject>> {
        let reference = self.execution().and_then(|execution| execution.status.as_ref()?.export_ref.clone())?;
        let key = Key { namespace: self.key.namespace.clone(), name: reference.name };
        self.host.stores.data_objects.get(&key)
    }

    fn clear<'o>(&self, object: &'o DataObject) -> Step<Cow<'o, Value>> {
        let unread = |error: UndecryptableData| {
            let failure = Failure::new("ReadExports", UndecryptableData::REASON, error.to_string());
            Halt::Stall(failure.with_code(Code::ConfigurationProblem))
        };
        clear_data(self.host.key.encryption(), object).map_err(unread)
    }
}

/// An Installation that may export what another one would write.
struct Exporter<'e> {
    uid: String,
    edges: BTreeSet<&'e str>,
}

impl Exporter<'_> {
    /// Whether it is the one of this uid, and exports under these edges.
    fn exports(&self, uid: &str, edges: &[String]) -> bool {
        self.uid == uid && edges.iter().all(|edge| self.edges.contains(edge.as_str()))
    }
}

/// Whether an object says that it is the one of a key in a context.
fn is_of(object: &DataObject, context: &str, key: &str) -> bool {
    object.label(label::CONTEXT) == Some(context) && object.data_key() == Some(key)
}

/// Any object with labels.
trait Labelled {
    fn value(&self, label: &str) -> Option<&str>;
}

impl<K: Watched> Labelled for K {
    fn value(&self, label: &str) -> Option<&str> {
        self.labels().get(label).map(String::as_str)
    }
}
