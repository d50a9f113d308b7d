//! One installation after the other, each with its sub-installations, as far as the data flow allows.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use orangery_api::{
    deploy_item::OnDelete, duration::Duration, execution::DeployItemTemplate, reference::ObjectReference,
};
use orangery_core::{
    binding::{Exports, Imports},
    blueprint::{Blueprint, FileSystem, InstallationTemplate, TemplateBlueprint},
    export,
    import::{self, Imported},
    port::{Files, JobChance, Plugins, Surroundings},
    record::Scope,
    sibling::{self, Sibling},
    template::ExecutionKind,
};
use orangery_render::{Definitions, DeployItem, ExportValues, Rendering, StateKey, States, Warning};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{Given, OfflineError, Why, World};

/// The id of the one job that there is.
const JOB: &str = "offline";

/// The lists whose executions keep a state.
const LISTS: [(ExecutionKind, &str); 3] = [
    (ExecutionKind::Subinstallation, "subinstallationExecutions"),
    (ExecutionKind::Deploy, "deployExecutions"),
    (ExecutionKind::Export, "exportExecutions"),
];

/// What is to be rendered.
pub struct Subject {
    /// The installation's name.
    pub name: String,
    /// Its blueprint's files; `None` for a blueprint that is not here.
    pub files: Option<Arc<dyn Files>>,
    /// What templates see of the installation.
    pub definitions: Definitions,
    /// Where imports come from; `None` takes what is given, by the names of the blueprint's imports.
    pub imports: Option<Imports>,
    /// Templates of import values.
    pub import_mappings: BTreeMap<String, Value>,
    /// Where exports go.
    pub exports: Exports,
    /// Templates of export values.
    pub export_mappings: BTreeMap<String, Value>,
    /// What the command line gives of it.
    pub given: Given,
}

/// What came of an installation.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Rendered {
    /// Its name; of a sub-installation, the one in the blueprint.
    pub name: String,
    /// Why it is not rendered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<String>,
    /// Its deploy items as its Execution has them.
    pub deploy_items: Vec<DeployItemTemplate>,
    /// Its sub-installations, in the order rendered.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub subinstallations: Vec<Rendered>,
    /// Its exports; absent where they are not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exports: Option<Map<String, Value>>,
    /// What its executions keep, by list and name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub state: BTreeMap<&'static str, BTreeMap<String, Value>>,
    /// What templates warn of.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// Renders installations over one world.
pub struct Offline<'a> {
    /// The engines.
    pub plugins: &'a dyn Plugins,
    /// The time and the randomness that templates are given.
    pub chance: JobChance,
    /// The namespace of everything.
    pub namespace: String,
    /// The objects that there are.
    pub world: World,
    /// Imports that the command line gives, by the names that roots import them under.
    pub imports: BTreeMap<String, Imported>,
}

/// Whose sub-installation it is.
#[derive(Clone, Copy)]
struct Parent<'a> {
    name: &'a str,
    path: &'a str,
}

impl Offline<'_> {
    /// Renders roots, each after those that it imports from.
    ///
    /// # Errors
    /// [`OfflineError`]
    pub async fn roots(&mut self, subjects: Vec<Subject>) -> Result<Vec<Rendered>, OfflineError> {
        self.siblings(subjects, None).await
    }

    /// What does not wait for an export that is not known is rendered; the rest says what it waits for.
    async fn siblings(
        &mut self,
        mut left: Vec<Subject>,
        parent: Option<Parent<'_>>,
    ) -> Result<Vec<Rendered>, OfflineError> {
        let mut all = Vec::new();
        // Who has to come before is asked of all, also of those that are done.
        let known: Vec<(String, Imports, Exports)> = left
            .iter()
            .map(|of| (of.name.clone(), of.imports.clone().unwrap_or_default(), of.exports.clone()))
            .collect();
        let siblings: Vec<Sibling<'_>> =
            known.iter().map(|(name, imports, exports)| Sibling { name, imports, exports }).collect();
        let mut done: BTreeSet<String> = BTreeSet::new();
        loop {
            let waits = |of: &Subject| {
                let this = siblings.iter().find(|sibling| sibling.name == of.name)?;
                sibling::predecessors(*this, &siblings).into_iter().find(|name| !done.contains(*name))
            };
            let Some(next) = left.iter().position(|of| waits(of).is_none()) else {
                for of in &left {
                    let name = waits(of).unwrap_or_default();
                    all.push(Rendered {
                        name: of.name.clone(),
                        waits_for: Some(format!("the exports of {name}, which are not known; give them with --values")),
                        ..Rendered::default()
                    });
                }
                return Ok(all);
            };
            let subject = left.remove(next);
            let rendered = Box::pin(self.one(subject, parent)).await?;
            if rendered.exports.is_some() {
                done.insert(rendered.name.clone());
            }
            all.push(rendered);
            if left.is_empty() {
                return Ok(all);
            }
        }
    }

    async fn one(&mut self, subject: Subject, parent: Option<Parent<'_>>) -> Result<Rendered, OfflineError> {
        let path = parent.map_or_else(|| subject.name.clone(), |parent| format!("{}/{}", parent.path, subject.name));
        let scope = (self.namespace.clone(), parent.map(|parent| parent.name.to_owned()));
        let scope = Scope { namespace: &scope.0, installation: &subject.name, parent: scope.1.as_deref(), job: JOB };
        let failed = |why: Why| OfflineError { path: path.clone(), why };
        let files = subject.files.clone().ok_or_else(|| failed(Why::NotHere))?;
        let blueprint = Blueprint::parse(files.as_ref()).map_err(|error| failed(Box::new(error).into()))?;
        let imported = self.imported(&subject, &scope, parent.is_none()).map_err(failed)?;
        let surroundings = Surroundings { chance: self.chance.clone(), ..Surroundings::of_files(files) };
        let of = orangery_render::Subject {
            blueprint: &blueprint,
            scope,
            plugins: self.plugins,
            surroundings: &surroundings,
            definitions: &subject.definitions,
            component: None,
        };
        let mut rendering = Rendering::new(of, states(&subject.given).map_err(failed)?);
        let render = |error| failed(Why::Render(Box::new(error)));
        let values = rendering.imports(&imported, &subject.import_mappings).await.map_err(render)?;
        let copies = import::copies(&blueprint.imports, &values, &scope).map_err(|error| failed(error.into()))?;
        self.world.write(&copies, &self.namespace);
        let templates = rendering.subinstallations(&values).await.map_err(render)?;
        let items = rendering.items(&values, &imported).await.map_err(render)?;
        let children = templates.into_iter().map(|of| child(of.template, &subject)).collect();
        let parent = Parent { name: &subject.name, path: &path };
        let subinstallations = self.siblings(children, Some(parent)).await?;
        let exports = match self.export_values(&subject, &items, &subinstallations, &scope) {
            None => None,
            Some(given) => {
                let exports = rendering.exports(&values, given, &subject.export_mappings).await.map_err(render)?;
                let records = export::records(&subject.exports, &exports, &scope)
                    .map_err(|error| render(orangery_render::RenderError::Exports(error)))?;
                self.world.write(&records, &self.namespace);
                Some(exports)
            }
        };
        let warnings = rendering.take_warnings().into_iter().map(|Warning { place, text }| format!("{place}: {text}"));
        let warnings = warnings.collect();
        Ok(Rendered {
            name: subject.name.clone(),
            waits_for: None,
            deploy_items: items.into_iter().map(|item| item_template(item, &self.namespace)).collect(),
            subinstallations,
            exports,
            state: kept(rendering.states()),
            warnings,
        })
    }

    /// What is imported: of a root, what the command line gives comes first.
    fn imported(&self, subject: &Subject, scope: &Scope<'_>, is_root: bool) -> Result<BTreeMap<String, Imported>, Why> {
        let Some(imports) = &subject.imports else { return Ok(self.imports.clone()) };
        let given = |name: &str| is_root.then(|| self.imports.get(name)).flatten();
        let mut left = imports.clone();
        left.data.retain(|import| given(&import.name).is_none());
        left.targets.retain(|import| given(&import.name).is_none());
        let mut imported = import::read(&left, scope, &self.world)?;
        let data = imports.data.iter().map(|import| &import.name);
        for name in data.chain(imports.targets.iter().map(|import| &import.name)) {
            if let Some(value) = given(name) {
                imported.insert(name.clone(), value.clone());
            }
        }
        Ok(imported)
    }

    /// What export executions see; `None` where something of it is not known.
    fn export_values(
        &self,
        subject: &Subject,
        items: &[DeployItem],
        subinstallations: &[Rendered],
        scope: &Scope<'_>,
    ) -> Option<ExportValues> {
        let known = items.is_empty() || subject.given.deploy_items.is_some();
        if !known || subinstallations.iter().any(|sub| sub.exports.is_none()) {
            return None;
        }
        let context = scope.own_context();
        let mut exported = subject.given.deploy_items.clone();
        if let Some(Value::Object(exported)) = &mut exported {
            // An item without exports is there as null.
            for item in items {
                exported.entry(item.template.name.clone()).or_insert(Value::Null);
            }
        }
        Some(ExportValues {
            deploy_items: exported,
            data_objects: self.world.data_of(&context),
            targets: self.world.targets_of(&context),
        })
    }
}

/// A sub-installation as it will be rendered.
fn child(template: InstallationTemplate, parent: &Subject) -> Subject {
    let given = parent.given.subinstallation(&template.name);
    let (files, blueprint) = match &template.blueprint {
        TemplateBlueprint::Inline(tree) => {
            let files = FileSystem::parse(tree).ok().map(|files| Arc::new(files) as Arc<dyn Files>);
            (files, json!({"inline": {"filesystem": tree}}))
        }
        TemplateBlueprint::Reference(reference) => (None, json!({"ref": reference})),
    };
    Subject {
        name: template.name,
        files,
        definitions: Definitions { blueprint, ..parent.definitions.clone() },
        imports: Some(template.imports),
        import_mappings: template.import_data_mappings,
        exports: template.exports,
        export_mappings: template.export_data_mappings,
        given,
    }
}

/// A deploy item as its Execution lists it.
fn item_template(DeployItem { template, target }: DeployItem, namespace: &str) -> DeployItemTemplate {
    DeployItemTemplate {
        name: template.name,
        type_: template.type_,
        target: target.map(|name| ObjectReference { name, namespace: namespace.to_owned() }),
        labels: template.labels,
        config: Some(template.config),
        depends_on: template.depends_on,
        timeout: template.timeout.map(Duration),
        update_on_change_only: template.update_on_change_only,
        on_delete: template
            .skip_uninstall_if_cluster_removed
            .then_some(OnDelete { skip_uninstall_if_cluster_removed: true }),
    }
}

/// The states that the command line gives.
fn states(given: &Given) -> Result<States, Why> {
    let mut states = States::default();
    for (name, executions) in &given.state {
        let Some((list, _)) = LISTS.iter().find(|(_, list)| list == name) else {
            let known: Vec<&str> = LISTS.iter().map(|(_, list)| *list).collect();
            return Err(Why::State(format!("there is no list {name:?} with states; lists are: {}", known.join(", "))));
        };
        for (execution, value) in executions {
            let key = StateKey { list: *list, execution: execution.clone() };
            states.load(key, value.to_string().as_bytes()).map_err(|error| Why::State(error.to_string()))?;
        }
    }
    Ok(states)
}

fn kept(states: &States) -> BTreeMap<&'static str, BTreeMap<String, Value>> {
    let mut kept: BTreeMap<&'static str, BTreeMap<String, Value>> = BTreeMap::new();
    for (key, value) in states.values() {
        if let Some((_, list)) = LISTS.iter().find(|(list, _)| *list == key.list) {
            kept.entry(*list).or_default().insert(key.execution.clone(), value.clone());
        }
    }
    kept
}
