//! What a job has made of a blueprint, as rendering tells it: from the objects of the tree.

use std::collections::BTreeSet;

use kube::{Client, ResourceExt as _};
use orangery_api::{
    annotation, data_object::DataObject, execution::Execution, installation::Installation, label, marks::Marks as _,
    target::Target,
};
use orangery_blueprint::{
    DEEPEST_MADE,
    binding::{DataImport, ExportBindings, ImportBindings, TargetImport},
    import,
    record::RecordWriter,
};
use orangery_core::name::{JobId, Namespace};
use serde_json::{Map, Value};

use crate::{
    call::CallError,
    command::inspect,
    offline::{NamespaceObjects, RenderedInstallation},
    tree::Objects,
};

/// What came of an Installation whose job has succeeded.
///
/// # Errors
/// Its objects cannot be listed.
pub(super) async fn of(
    client: &Client,
    namespace: &Namespace,
    installation: &Installation,
) -> Result<RenderedInstallation, CallError> {
    let objects = inspect::read(client, namespace).await?;
    let mut values = NamespaceObjects::default();
    for object in inspect::list::<DataObject>(client, namespace).await? {
        values.add_data_object(DataObject::clone(&object));
    }
    for target in inspect::list::<Target>(client, namespace).await? {
        values.add_target(Target::clone(&target));
    }
    objects.installations.iter().for_each(|of| values.add_installation(&of.name_any()));
    Ok(JobView { namespace, objects: &objects, values: &values }.installation(installation, None, DEEPEST_MADE))
}

/// The objects of a namespace.
struct JobView<'a> {
    namespace: &'a Namespace,
    objects: &'a Objects,
    values: &'a NamespaceObjects,
}

impl JobView<'_> {
    fn installation(&self, of: &Installation, parent: Option<&str>, depth: usize) -> RenderedInstallation {
        let name = of.name_any();
        let mut rendered = RenderedInstallation {
            name: of.annotation(annotation::SUBINSTALLATION_NAME).unwrap_or(&name).to_owned(),
            exports: Some(self.exports(of, parent)),
            object: Some(name.as_str().into()),
            ..RenderedInstallation::default()
        };
        let is_own = |execution: &&Execution| execution.parent_installation() == Some(&name);
        if let Some(execution) = self.objects.executions.iter().map(AsRef::as_ref).find(is_own) {
            rendered.deploy_items = execution.spec.items().unwrap_or_default();
            let made = self.made(&execution.name_any());
            let items = rendered.deploy_items.iter().map(|item| &item.name);
            rendered.not_wanted = items.filter(|item| !made.contains(item.as_str())).cloned().collect();
        }
        let children = self.objects.installations.iter().filter(|child| child.parent_installation() == Some(&name));
        if let Some(depth) = depth.checked_sub(1) {
            rendered.subinstallations = children.map(|child| self.installation(child, Some(&name), depth)).collect();
        }
        let workflow = of.status.as_ref().and_then(|status| status.workflow.as_ref());
        let known = workflow.into_iter().flat_map(|workflow| &workflow.subinstallations).map(|sub| &sub.name);
        let made: BTreeSet<&String> = rendered.subinstallations.iter().map(|sub| &sub.name).collect();
        rendered.not_wanted_subinstallations = known.filter(|sub| !made.contains(sub)).cloned().collect();
        rendered
    }

    /// The names of the items of an Execution that there are.
    fn made(&self, execution: &str) -> BTreeSet<&str> {
        let items = self.objects.deploy_items.iter();
        let items = items.filter(|item| item.label(label::MANAGED_BY) == Some(execution));
        items.filter_map(|item| item.item_name()).collect()
    }

    /// What an Installation has exported; null for what only the operator can read.
    fn exports(&self, of: &Installation, parent: Option<&str>) -> Map<String, Value> {
        let name = of.name_any();
        let job = JobId::default();
        let writer = RecordWriter { namespace: self.namespace, installation: &name, parent, job: &job };
        let ExportBindings { data, targets } = ExportBindings::from(&of.spec.exports);
        let data = data.into_iter().map(|export| {
            let import = DataImport { name: export.name, data_ref: export.data_ref, ..DataImport::default() };
            ImportBindings { data: vec![import], targets: Vec::new() }
        });
        let targets = targets.into_iter().map(|export| {
            let import = TargetImport { name: export.name, target: export.target, ..TargetImport::default() };
            ImportBindings { data: Vec::new(), targets: vec![import] }
        });
        let names = of.spec.exports.data.iter().map(|export| &export.name);
        let names = names.chain(of.spec.exports.targets.iter().map(|export| &export.name));
        let value = |bindings: ImportBindings| {
            let read = import::read(&bindings, &writer, self.values).unwrap_or_default();
            read.into_values().next().map_or(Value::Null, |imported| imported.value())
        };
        names.cloned().zip(data.chain(targets).map(value)).collect()
    }
}
