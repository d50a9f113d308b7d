//! The DataObjects and Targets of an Installation: import copies, exports, and those of earlier jobs that go
//! (`landscaper.md` §3.2, §5.4, §5.5).

use std::collections::{BTreeMap, BTreeSet};

use kube::ResourceExt;
use orangery_api::{installation::Installation, label, marks::Marks};
use orangery_blueprint::{
    binding,
    export::{self, ExportError},
    import::{self, ImportError, ImportFault, Imported},
    record::{Content, Record, Scope},
};
use orangery_core::{
    error::{Code, Failure},
    step::{Halt, Step, Until},
};
use orangery_reconcile::{Key, Store, Watched};
use serde_json::Value;

use super::{Run, on_change, sources::Gathered};
use crate::{
    host::{Host, index},
    object::owner_reference,
    record,
};

/// A fatal failure of the data flow.
pub(super) fn import_failed(operation: &str, error: &ImportError) -> Halt {
    Halt::Stall(Failure::new(operation, error.fault.reason(), error.to_string()).with_code(Code::ConfigurationProblem))
}

pub(super) fn export_failed(operation: &str, error: &ExportError) -> Halt {
    Halt::Stall(Failure::new(operation, error.reason(), error.to_string()).with_code(Code::ConfigurationProblem))
}

/// The names that a [`Scope`] borrows.
pub(super) struct Names {
    namespace: String,
    installation: String,
    parent: Option<String>,
    job: String,
}

impl Names {
    pub(super) fn of(installation: &Installation, job: &str) -> Self {
        Self {
            namespace: installation.namespace().unwrap_or_default(),
            installation: installation.name_any(),
            parent: installation.parent_installation().map(str::to_owned),
            job: job.to_owned(),
        }
    }

    pub(super) fn scope(&self) -> Scope<'_> {
        Scope {
            namespace: &self.namespace,
            installation: &self.installation,
            parent: self.parent.as_deref(),
            job: &self.job,
        }
    }
}

/// Every import of an Installation in a job, by its name there.
///
/// The stores of two kinds are not in step: an object applied just before its Installation may not be known yet. So what a
/// store lacks is asked for once before it counts as missing.
pub(super) async fn read_imports(
    host: &Host,
    installation: &Installation,
    job: &str,
) -> Step<BTreeMap<String, Imported>> {
    let imports = binding::Imports::from(&installation.spec.imports);
    let names = Names::of(installation, job);
    let gathered = Gathered::read(host, &names.namespace, &imports).await?;
    let mut asked = BTreeSet::new();
    loop {
        let error = match import::read(&imports, &names.scope(), &gathered) {
            Ok(imported) => return Ok(imported),
            Err(error) => error,
        };
        let ImportFault::NotFound { kind, name, .. } = error.fault.as_ref() else {
            return Err(import_failed("ReadImports", &error));
        };
        if !asked.insert((*kind, name.clone())) || !gathered.ask_for(host, kind, name).await? {
            return Err(if on_change::awaits(installation) {
                Halt::wait(*kind, name, Until::Exists)
            } else {
                import_failed("ReadImports", &error)
            });
        }
    }
}

impl Run<'_> {
    pub(super) fn names(&self) -> Names {
        Names::of(&self.draft, &self.job)
    }

    /// Every import, by its name in the Installation. What may be waited for is watched before it is read.
    pub(super) async fn read_imports(&self) -> Step<BTreeMap<String, Imported>> {
        self.on_change.watch(self.host, &self.draft);
        read_imports(self.host, &self.draft, &self.job).await
    }

    /// Writes import copies or exports of this Installation.
    pub(super) async fn write_records(&self, records: &[Record]) -> Step<()> {
        record::write(self.host, &self.namespace(), &owner_reference(&self.draft), records).await
    }

    /// Exports belong to one Installation: refuses to overwrite those of another.
    pub(super) fn check_owners(&self, records: &[Record]) -> Step<()> {
        let names = self.names();
        let stores = &self.host.stores;
        for record in records {
            let key = Key { namespace: names.namespace.clone(), name: record.name.clone() };
            let owner = match &record.content {
                Content::Data(_) => {
                    stores.data_objects.get(&key).and_then(|object| object.parent_installation().map(str::to_owned))
                }
                Content::Target(_) => {
                    stores.targets.get(&key).and_then(|object| object.parent_installation().map(str::to_owned))
                }
            };
            export::may_write(record, owner.as_deref(), &names.scope())
                .map_err(|error| export_failed("WriteExports", &error))?;
        }
        Ok(())
    }

    /// `Init`: the exports of the job before go, so that nobody takes them for those of this one.
    pub(super) async fn delete_old_exports(&self) -> Step<()> {
        let source = self.names().scope().own_context();
        let exported = |object: &dyn Labelled| object.value(label::SOURCE_TYPE) == Some(label::SOURCE_TYPE_EXPORT);
        self.delete_matching(index::SOURCE, &source, exported).await
    }

    /// `Completing`: what earlier jobs left in the own context goes.
    pub(super) async fn delete_stale_objects(&self) -> Step<()> {
        let context = self.names().scope().own_context();
        let job = self.job.clone();
        self.delete_matching(index::CONTEXT, &context, |object| object.value(label::JOB_ID) != Some(&job)).await
    }

    async fn delete_matching(
        &self,
        index: &'static str,
        value: &str,
        matches: impl Fn(&dyn Labelled) -> bool,
    ) -> Step<()> {
        let stores = &self.host.stores;
        self.delete_from(&stores.data_objects, index, value, |object| matches(object)).await?;
        self.delete_from(&stores.targets, index, value, |object| matches(object)).await
    }

    async fn delete_from<K: Watched>(
        &self,
        store: &Store<K>,
        index: &'static str,
        value: &str,
        matches: impl Fn(&K) -> bool,
    ) -> Step<()> {
        let writer = self.host.writer(store);
        for object in store.indexed(index, &self.namespace(), value).iter().filter(|object| matches(object)) {
            writer.delete(object).await.map_err(|error| error.halt("DeleteStaleObject"))?;
        }
        Ok(())
    }

    /// What lives in the own context, by key: the `dataobjects` and `targets` of export executions.
    pub(super) fn context_values(&self) -> (BTreeMap<String, Value>, BTreeMap<String, Value>) {
        let context = self.names().scope().own_context();
        let namespace = self.namespace();
        let stores = &self.host.stores;
        let data = stores.data_objects.indexed(index::CONTEXT, &namespace, &context);
        let targets = stores.targets.indexed(index::CONTEXT, &namespace, &context);
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
    pub(super) fn item_exports(&self) -> Option<Value> {
        let execution = self.execution()?;
        let reference = execution.status.as_ref()?.export_ref.clone()?;
        let key = Key { namespace: self.namespace(), name: reference.name };
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
