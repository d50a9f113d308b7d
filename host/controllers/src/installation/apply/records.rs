//! The DataObjects and Targets of an Installation: import copies, exports, and those of earlier jobs that are deleted.

use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

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
        for record in records {
            let key = Key { namespace: self.key.namespace.clone(), name: record.name.clone() };
            let (data, target) = (stores.data_objects.get(&key), stores.targets.get(&key));
            // What an Installation has left that does not exist any more, or exports it no more, is written by who exports it now.
            let is_there = |owner: &OwnerReference| {
                let known = stores.installations.get(&Key::new(&self.key.namespace, owner.name.as_str()));
                known.is_some_and(|known| uid_of(known.as_ref()) == owner.uid && self.exports_beside(&known, record))
            };
            let occupant = match &record.content {
                RecordContent::Data(_) => data.as_deref().map(|object| export_occupant(object, is_there)),
                RecordContent::Target(_) => target.as_deref().map(|object| export_occupant(object, is_there)),
            };
            export::may_write(record, occupant, &self.scope())
                .map_err(|error| export_failed("WriteExports", &error))?;
        }
        Ok(())
    }

    /// Whether another Installation exports to the name of a record by its spec as it is (C-160).
    fn exports_beside(&self, other: &Installation, record: &Record) -> bool {
        let key = record.key.clone();
        let reference = match &record.content {
            RecordContent::Data(_) => SiblingReference::Data(key),
            RecordContent::Target(_) => SiblingReference::Target(key),
        };
        let theirs = exports(other);
        edges(&self.draft, [reference]).iter().all(|edge| theirs.contains(edge))
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
        for object in DATA_OF_CONTEXT.find(&stores.data_objects, &self.key.namespace, &context) {
            let exports = sub.spec.exports.data.iter().filter(|export| object.data_key() == Some(&export.data_ref));
            for export in exports {
                let data = self.clear(&object)?;
                memory.take(memory::of(&data)).await?;
                exported.insert(export.name.clone(), data.into_owned());
            }
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

/// Any object with labels.
trait Labelled {
    fn value(&self, label: &str) -> Option<&str>;
}

impl<K: Watched> Labelled for K {
    fn value(&self, label: &str) -> Option<&str> {
        self.labels().get(label).map(String::as_str)
    }
}
