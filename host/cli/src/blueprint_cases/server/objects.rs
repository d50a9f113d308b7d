//! The objects of one case: an Installation with a name that the server makes up, what it imports, and what it exports. Nothing
//! that is there is written over.

use std::{collections::BTreeMap, fmt::Debug};

use kube::{
    Api, Resource, ResourceExt as _,
    api::{DeleteParams, ObjectMeta, Patch, PatchParams, PostParams, Preconditions},
    core::NamespaceResourceScope,
};
use orangery_api::{
    GROUP, annotation,
    data_object::{DataObject, DataObjectContent},
    installation::{DataExport, DataImport, Exports, Imports, Installation, TargetExport, TargetImport},
    job::Job as _,
    label,
    marks::{Marks, Operation},
    target::Target,
};
use orangery_blueprint::{
    ExportKind,
    import::{Imported, TargetObject},
};
use orangery_core::{
    error::cleaned,
    name::{Kind, ObjectName},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::json;

use super::{BlueprintCase, ServerBlueprint};
use crate::{
    call::{CallError, CallSubject},
    command::inspect,
    timeout::within,
    watched,
};

/// The longest beginning of a name, in bytes: what is added to it has to leave it a label.
const LONGEST_BEGINNING: usize = 40;

/// The objects of one case.
pub(super) struct CaseObjects<'a> {
    blueprint: &'a ServerBlueprint<'a>,
    /// The name of the Installation, with which all other names begin.
    pub(super) name: ObjectName,
    uid: String,
}

impl<'a> CaseObjects<'a> {
    /// Creates the Installation, of which no job begins yet.
    pub(super) async fn begin(blueprint: &'a ServerBlueprint<'a>, case: &BlueprintCase) -> Result<Self, CallError> {
        let beginning = beginning(&case.name);
        let metadata = ObjectMeta {
            generate_name: Some(format!("{beginning}-")),
            labels: Some(BTreeMap::from([(label::BLUEPRINT_TEST.to_owned(), String::new())])),
            ..ObjectMeta::default()
        };
        let installation = Installation { metadata, spec: blueprint.spec.clone(), status: None };
        let created = blueprint.installations().create(&PostParams::default(), &installation).await;
        let created = created.map_err(|error| CallError::of(blueprint.subject(&case.name), error))?;
        Ok(Self { blueprint, name: created.name_any().into(), uid: created.uid().unwrap_or_default() })
    }

    /// The Installation, as a sentence names it.
    pub(super) fn place(&self) -> String {
        format!("Installation {}/{}", self.blueprint.namespace, self.name)
    }

    /// Creates what the case imports, binds imports and exports, and asks for the job.
    pub(super) async fn fill(&self, case: &BlueprintCase) -> Result<(), CallError> {
        let imports = self.imports(case).await?;
        let patch = json!({
            "metadata": {"uid": self.uid, "annotations": {(annotation::OPERATION): Operation::Reconcile.to_string()}},
            "spec": {"imports": imports, "exports": self.exports()},
        });
        self.patch(&patch).await
    }

    async fn patch(&self, patch: &serde_json::Value) -> Result<(), CallError> {
        let patched =
            self.blueprint.installations().patch(&self.name, &PatchParams::default(), &Patch::Merge(patch)).await;
        patched.map(drop).map_err(|error| CallError::of(self.blueprint.subject(&self.name), error))
    }

    async fn imports(&self, case: &BlueprintCase) -> Result<Imports, CallError> {
        let mut imports = Imports::default();
        for (name, target) in &self.blueprint.targets {
            imports.targets.push(TargetImport {
                name: name.clone(),
                target: target.to_string(),
                ..TargetImport::default()
            });
        }
        let left = case.imports.iter().filter(|(name, _)| !self.blueprint.targets.contains_key(*name));
        for (number, (name, imported)) in left.enumerate() {
            let (name, key) = (name.clone(), format!("{}-i{number}", self.name));
            match imported {
                Imported::Data(data) => {
                    let content = DataObjectContent { data: data.value.clone() };
                    self.create(DataObject { metadata: self.metadata(&key), spec: content }).await?;
                    imports.data.push(DataImport { name, data_ref: key, ..DataImport::default() });
                }
                Imported::Target(target) => {
                    self.create_target(&key, target).await?;
                    imports.targets.push(TargetImport { name, target: key, ..TargetImport::default() });
                }
                Imported::TargetList(targets) => {
                    let mut keys = Vec::new();
                    for (place, target) in targets.iter().enumerate() {
                        let key = format!("{key}-{place}");
                        self.create_target(&key, target).await?;
                        keys.push(key);
                    }
                    imports.targets.push(TargetImport { name, targets: Some(keys), ..TargetImport::default() });
                }
                Imported::TargetMap(targets) => {
                    let mut keys = BTreeMap::new();
                    for (place, (entry, target)) in targets.iter().enumerate() {
                        let key = format!("{key}-{place}");
                        self.create_target(&key, target).await?;
                        keys.insert(entry.clone(), key);
                    }
                    imports.targets.push(TargetImport { name, target_map: Some(keys), ..TargetImport::default() });
                }
            }
        }
        Ok(imports)
    }

    fn exports(&self) -> Exports {
        let mut exports = Exports::default();
        for (number, export) in self.blueprint.exports.iter().enumerate() {
            let (name, key) = (export.name.clone(), format!("{}-e{number}", self.name));
            match export.kind {
                ExportKind::Data { .. } => exports.data.push(DataExport { name, data_ref: key }),
                ExportKind::Target { .. } => exports.targets.push(TargetExport { name, target: key }),
            }
        }
        exports
    }

    fn metadata(&self, name: &str) -> ObjectMeta {
        ObjectMeta {
            name: Some(name.to_owned()),
            labels: Some(BTreeMap::from([(label::BLUEPRINT_TEST.to_owned(), self.name.to_string())])),
            ..ObjectMeta::default()
        }
    }

    /// A Target with what the case says of it, under another name.
    async fn create_target(&self, name: &str, target: &TargetObject) -> Result<(), CallError> {
        let mut object: Target = serde_json::from_value(target.object.clone()).map_err(CallError::Answer)?;
        let ObjectMeta { labels, annotations, .. } = object.metadata;
        let mut metadata = self.metadata(name);
        let own = metadata.labels.take().unwrap_or_default();
        metadata.labels = Some(labels.unwrap_or_default().into_iter().chain(own).collect());
        object.metadata = ObjectMeta { annotations, ..metadata };
        self.create(object).await
    }

    fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.blueprint.client.clone(), &self.blueprint.namespace)
    }

    async fn create<K>(&self, object: K) -> Result<(), CallError>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Serialize + DeserializeOwned + Debug,
    {
        let (kind, name) = (Kind::from(K::kind(&()).into_owned()), ObjectName::from(object.name_any()));
        let subject = CallSubject { kind: &kind, group: GROUP, namespace: &self.blueprint.namespace, name: &name };
        let created = self.api::<K>().create(&PostParams::default(), &object).await;
        created.map(drop).map_err(|error| CallError::of(subject, error))
    }

    /// Deletes all of it, waits until it is gone, and says what is left. A job that has not ended is ended first.
    pub(super) async fn remove(self, is_finished: bool) -> Vec<String> {
        let timeout = &self.blueprint.timeout;
        match within(timeout, self.remove_installation(is_finished)).await {
            Some(Ok(None)) => {}
            Some(Ok(Some(why))) => return vec![self.left(&why)],
            Some(Err(error)) => return vec![self.left(&error.to_string())],
            None => {
                let chain = self.blueprint.chain(&self.name).await.unwrap_or_default();
                let mut lines = vec![self.left(&format!("it is not gone within {timeout}"))];
                lines.extend(chain);
                return lines;
            }
        }
        let others = async {
            self.remove_all::<DataObject>().await?;
            self.remove_all::<Target>().await
        };
        match within(timeout, others).await {
            Some(Ok(())) => Vec::new(),
            Some(Err(error)) => vec![self.left(&error.to_string())],
            None => vec![self.left(&format!("what it imported or exported is not gone within {timeout}"))],
        }
    }

    /// That something is left, and how to delete it.
    fn left(&self, why: &str) -> String {
        let (namespace, name) = (&self.blueprint.namespace, &self.name);
        format!(
            "not all of {} is deleted: {why}; then: kubectl -n {namespace} delete installation {name} && kubectl -n {namespace} delete \
             dataobjects,targets -l {}={name}",
            self.place(),
            label::BLUEPRINT_TEST
        )
    }

    /// Deletes the Installation, and with it what it has deployed. Answers why it stays, where it does.
    async fn remove_installation(&self, is_finished: bool) -> Result<Option<String>, CallError> {
        if !is_finished {
            let metadata =
                json!({"uid": self.uid, "annotations": {(annotation::OPERATION): Operation::Interrupt.to_string()}});
            match self.patch(&json!({"metadata": metadata})).await {
                // It is another one, or gone.
                Ok(()) | Err(CallError::NotFound { .. } | CallError::Conflict { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        let subject = self.blueprint.subject(&self.name);
        delete(&self.blueprint.installations(), subject, &self.uid).await?;
        let seen = |seen: Option<Installation>| match seen {
            Some(installation) if installation.uid().as_deref() == Some(&self.uid) => {
                let has_failed = installation.phase() == "DeleteFailed" && installation.job_finished();
                let why = installation.last_error().map(|error| cleaned(&error.message, usize::MAX));
                has_failed.then(|| Some(why.unwrap_or_else(|| "its deletion failed".to_owned())))
            }
            _ => Some(None),
        };
        watched::until(&self.blueprint.installations(), subject, seen).await
    }

    /// Deletes the objects of a kind that are the case's, and waits until they are gone.
    async fn remove_all<K>(&self) -> Result<(), CallError>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Marks
            + Clone
            + DeserializeOwned
            + Debug
            + Send
            + 'static,
    {
        let kind = Kind::from(K::kind(&()).into_owned());
        for object in inspect::list::<K>(self.blueprint.client, &self.blueprint.namespace).await? {
            if !self.is_ours(object.as_ref()) {
                continue;
            }
            let (name, uid) = (ObjectName::from(object.name_any()), object.uid().unwrap_or_default());
            let subject = CallSubject { kind: &kind, group: GROUP, namespace: &self.blueprint.namespace, name: &name };
            delete(&self.api::<K>(), subject, &uid).await?;
            let gone = |seen: Option<K>| seen.is_none_or(|seen| seen.uid().as_deref() != Some(&uid)).then_some(());
            watched::until(&self.api::<K>(), subject, gone).await?;
        }
        Ok(())
    }

    /// Whether the case imports an object, or its Installation has exported it.
    fn is_ours<K: Marks>(&self, object: &K) -> bool {
        let is_imported = object.label(label::BLUEPRINT_TEST) == Some(self.name.as_str());
        is_imported || object.owner_installations().any(|owner| owner.uid == self.uid)
    }
}

/// What a name that the server makes up begins with.
fn beginning(name: &str) -> &str {
    name.get(..name.floor_char_boundary(LONGEST_BEGINNING.min(name.len()))).unwrap_or_default()
}

/// Deletes this very object. Its absence is no failure.
async fn delete<K>(api: &Api<K>, subject: CallSubject<'_>, uid: &str) -> Result<(), CallError>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    let only = Preconditions { uid: Some(uid.to_owned()), resource_version: None };
    match api.delete(subject.name, &DeleteParams::background().preconditions(only)).await {
        Ok(_) => Ok(()),
        Err(error) => match CallError::of(subject, error) {
            CallError::NotFound { .. } | CallError::Conflict { .. } => Ok(()),
            error => Err(error),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c_248_limits_names_begin_with_so_much_of_the_name_of_the_case() {
        assert_eq!(beginning("blueprint"), "blueprint");
        assert_eq!(beginning(&"a".repeat(LONGEST_BEGINNING + 1)), "a".repeat(LONGEST_BEGINNING));
        assert_eq!(beginning(&"ä".repeat(LONGEST_BEGINNING)), "ä".repeat(LONGEST_BEGINNING / 2));
    }
}
