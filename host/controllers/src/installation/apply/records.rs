//! The DataObjects and Targets of an Installation: import copies, exports, and those of earlier jobs that are deleted.

use std::collections::BTreeMap;

use kube::ResourceExt;
use orangery_api::{label, marks::Marks};
use orangery_blueprint::{
    export::{self, ExportError},
    record::{Record, RecordContent},
};
use orangery_core::{
    error::{Code, Failure},
    step::{Halt, Step},
};
use orangery_reconcile::{Key, Watched};
use serde_json::Value;

use super::super::{
    dependencies::{DATA_OF_CONTEXT, DATA_OF_SOURCE, TARGETS_OF_CONTEXT, TARGETS_OF_SOURCE},
    reconciliation::InstallationReconciliation,
};
use crate::{index::Index, object::owner_reference, record, stores::Stored};

/// A fatal failure of the exports.
pub(in crate::installation) fn export_failed(operation: &str, error: &ExportError) -> Halt {
    Halt::Stall(Failure::new(operation, error.reason(), error.to_string()).with_code(Code::ConfigurationProblem))
}

impl InstallationReconciliation<'_> {
    /// Writes import copies or exports of this Installation.
    pub(in crate::installation) async fn write_records(&self, records: &[Record]) -> Step<()> {
        record::write(self.host, &self.key.namespace, &owner_reference(&self.draft), records).await
    }

    /// Exports belong to one Installation: refuses to overwrite those of another.
    pub(in crate::installation) fn check_owners(&self, records: &[Record]) -> Step<()> {
        let stores = &self.host.stores;
        for record in records {
            let key = Key { namespace: self.key.namespace.clone(), name: record.name.clone() };
            let owner = match &record.content {
                RecordContent::Data(_) => {
                    stores.data_objects.get(&key).and_then(|object| object.parent_installation().map(str::to_owned))
                }
                RecordContent::Target(_) => {
                    stores.targets.get(&key).and_then(|object| object.parent_installation().map(str::to_owned))
                }
            };
            export::may_write(record, owner.as_deref(), &self.scope())
                .map_err(|error| export_failed("WriteExports", &error))?;
        }
        Ok(())
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
        for object in index.find(store, &self.key.namespace, value).iter().filter(|object| matches(object)) {
            writer.delete(object).await.map_err(|error| error.halt("DeleteStaleObject"))?;
        }
        Ok(())
    }

    /// What lives in the own context, by key: the `dataobjects` and `targets` of export executions.
    pub(in crate::installation) fn context_values(&self) -> (BTreeMap<String, Value>, BTreeMap<String, Value>) {
        let context = self.scope().own_context();
        let (stores, namespace) = (&self.host.stores, &self.key.namespace);
        let data = DATA_OF_CONTEXT.find(&stores.data_objects, namespace, &context);
        let targets = TARGETS_OF_CONTEXT.find(&stores.targets, namespace, &context);
        let key = |object: &dyn Labelled| object.value(label::KEY).map(str::to_owned);
        (
            data.iter().filter_map(|object| Some((key(object.as_ref())?, object.spec.data.clone()))).collect(),
            targets
                .iter()
                .filter_map(|object| Some((key(object.as_ref())?, serde_json::to_value(object.as_ref()).ok()?)))
                .collect(),
        )
    }

    /// The exports of the deploy items, by item.
    pub(in crate::installation) fn item_exports(&self) -> Option<Value> {
        let execution = self.execution()?;
        let reference = execution.status.as_ref()?.export_ref.clone()?;
        let key = Key { namespace: self.key.namespace.clone(), name: reference.name };
        self.host.stores.data_objects.get(&key).map(|object| object.spec.data.clone())
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
