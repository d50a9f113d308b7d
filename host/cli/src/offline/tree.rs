//! One installation after the other, each with its sub-installations, as far as the data flow allows.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use orangery_api::{
    convert,
    execution::DeployItemTemplate,
    installation::{ComponentDescriptorSource, InstallationSpec},
};
use orangery_blueprint::{
    Blueprint, DEEPEST_MADE, ImportDefinition, MOST_OF_A_TREE,
    binding::{ExportBindings, ImportBindings},
    export,
    import::{self, Imported},
    plugins::Plugins,
    record::{Record, RecordWriter},
    sibling::{self, Sibling},
    template_engine::JobRandomness,
};
use orangery_core::name::{JobId, Namespace, ObjectName};
use orangery_ocm::Files;
use orangery_render::{DeployItem, ExportValues, Rendering, Subinstallation, Warning};
use serde::Serialize;
use serde_json::{Map, Value};

use super::{
    BLUEPRINT, Given, GivenNames, GivenOrigin, NamespaceObjects, OfflineError, OfflineFault, OfflineVersions,
    OpaqueValues,
    component::BlueprintRequest,
    not_wanted::{not_wanted_items, not_wanted_subinstallations},
    states::{kept, states},
};

/// The id of the one job that there is.
const JOB: &JobId = &JobId::from_static("offline");

/// What is to be rendered.
pub struct RenderSubject {
    /// The installation's name; of a sub-installation, the one in the blueprint.
    pub name: String,
    /// What it is, as an Installation says it.
    pub spec: InstallationSpec,
    /// A blueprint that is here, whatever the spec says of it. Its imports are those given, by the names that they have
    /// in the blueprint.
    pub files: Option<Arc<dyn Files>>,
    /// What the command line gives of it.
    pub given: Given,
}

impl RenderSubject {
    /// The name of its object.
    fn object(&self) -> &str {
        self.given.object_name.as_deref().unwrap_or(&self.name)
    }
}

/// What came of an installation.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RenderedInstallation {
    /// Its name; of a sub-installation, the one in the blueprint.
    pub name: String,
    /// Why it is not rendered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<String>,
    /// Its deploy items as its Execution has them.
    pub deploy_items: Vec<DeployItemTemplate>,
    /// The deploy items that the imports alone leave out: not wanted, or depending on one that is not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_wanted: Vec<String>,
    /// The sub-installations that the imports alone leave out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_wanted_subinstallations: Vec<String>,
    /// Its sub-installations, in the order rendered.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub subinstallations: Vec<RenderedInstallation>,
    /// Its exports; absent where they are not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exports: Option<Map<String, Value>>,
    /// What its executions keep, by list and name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub state: BTreeMap<&'static str, BTreeMap<String, Value>>,
    /// What templates warn of.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The name of its object, where that is known: a sub-installation has none before it is made.
    #[serde(skip)]
    pub object: Option<ObjectName>,
    /// `spec.context`
    #[serde(skip)]
    pub context: String,
    /// Whether values stand for some of its imports.
    #[serde(skip)]
    pub has_opaque_imports: bool,
}

/// Renders installations over one world.
pub struct Offline<'a> {
    /// The engines.
    pub plugins: &'a dyn Plugins,
    /// Where component versions come from.
    pub versions: OfflineVersions,
    /// The time and the randomness that templates are given.
    pub rng: JobRandomness,
    /// The namespace of everything.
    pub namespace: Namespace,
    /// The objects that there are.
    pub world: NamespaceObjects,
    /// Imports that the command line gives, by the names that roots import them under.
    pub imports: BTreeMap<String, Imported>,
    /// How many were rendered.
    pub rendered: usize,
    /// What stands for exports that come in the job; `None` where those who import them wait.
    pub opaque: Option<OpaqueValues>,
}

/// Whose sub-installation it is.
#[derive(Clone, Copy)]
struct ParentInstallation<'a> {
    object: &'a str,
    path: &'a str,
    /// `spec.componentDescriptor` of the root.
    above: Option<&'a ComponentDescriptorSource>,
    /// How many stand above it, this one included.
    depth: usize,
}

impl Offline<'_> {
    /// Whether one more may be rendered below another: a blueprint that contains itself has no end (C-155).
    fn check_room(&mut self, parent: Option<ParentInstallation<'_>>) -> Result<(), OfflineFault> {
        self.rendered += 1;
        if parent.is_some_and(|parent| parent.depth >= DEEPEST_MADE) {
            return Err(OfflineFault::Endless(format!("{DEEPEST_MADE} installations stand in each other already")));
        }
        if self.rendered > MOST_OF_A_TREE && parent.is_some() {
            return Err(OfflineFault::Endless(format!("{MOST_OF_A_TREE} installations were rendered already")));
        }
        Ok(())
    }

    /// What a root imports, by the names of its imports, as it is there.
    ///
    /// # Errors
    /// [`OfflineError`]: an import cannot be read.
    pub fn imports_of(&self, root: &RenderSubject) -> Result<BTreeMap<String, Imported>, OfflineError> {
        let scope = RecordWriter { namespace: &self.namespace, installation: root.object(), parent: None, job: JOB };
        import::read(&ImportBindings::from(&root.spec.imports), &scope, &self.world)
            .map_err(|why| OfflineError { path: root.name.clone(), why: Box::new(why.into()) })
    }

    /// Renders roots, each after those that it imports from.
    ///
    /// # Errors
    /// [`OfflineError`]
    pub async fn roots(&mut self, subjects: Vec<RenderSubject>) -> Result<Vec<RenderedInstallation>, OfflineError> {
        if let [subject, ..] = subjects.as_slice()
            && subjects.iter().all(|subject| subject.files.is_none())
        {
            let imports = subjects.iter().map(|subject| &subject.spec.imports);
            let names: BTreeSet<&str> = imports
                .flat_map(|of| {
                    let data = of.data.iter().map(|import| import.name.as_str());
                    data.chain(of.targets.iter().map(|import| import.name.as_str()))
                })
                .collect();
            let names: Vec<&str> = names.into_iter().collect();
            let known = GivenNames { whose: "the installations do", ..import_names(&names) };
            known
                .check(self.imports.keys())
                .map_err(|why| OfflineError { path: subject.name.clone(), why: Box::new(why) })?;
        }
        self.siblings(subjects, None).await
    }

    /// What does not wait for an export that is not known is rendered; the rest says what it waits for.
    async fn siblings(
        &mut self,
        mut left: Vec<RenderSubject>,
        parent: Option<ParentInstallation<'_>>,
    ) -> Result<Vec<RenderedInstallation>, OfflineError> {
        let mut all = Vec::new();
        // Predecessors are looked for among all, also of those that are done.
        let known: Vec<(String, ImportBindings, ExportBindings)> = left
            .iter()
            .map(|of| {
                let promised = of.spec.optimization.as_ref().is_some_and(|promise| promise.has_no_sibling_imports);
                let imports = if promised { ImportBindings::default() } else { (&of.spec.imports).into() };
                (of.name.clone(), imports, (&of.spec.exports).into())
            })
            .collect();
        let siblings: Vec<Sibling<'_>> =
            known.iter().map(|(name, imports, exports)| Sibling { name, imports, exports }).collect();
        let mut done: BTreeSet<String> = BTreeSet::new();
        // Those whose exports are not known, and have values that stand for them.
        let mut opaque: BTreeSet<String> = BTreeSet::new();
        loop {
            let waits = |of: &RenderSubject| {
                let this = siblings.iter().find(|sibling| sibling.name == of.name)?;
                sibling::predecessors(*this, &siblings).into_iter().find(|name| !done.contains(*name))
            };
            let Some(next) = left.iter().position(|of| waits(of).is_none()) else {
                for of in &left {
                    let name = waits(of).unwrap_or_default();
                    all.push(RenderedInstallation {
                        name: of.name.clone(),
                        waits_for: Some(waits_for(of, name)),
                        object: of.given.object_name.clone(),
                        ..RenderedInstallation::default()
                    });
                }
                return Ok(all);
            };
            let subject = left.remove(next);
            let before = siblings.iter().find(|sibling| sibling.name == subject.name).map(|this| {
                let before = sibling::predecessors(*this, &siblings);
                before.into_iter().filter(|name| opaque.contains(*name)).map(str::to_owned).collect::<Vec<_>>()
            });
            let before = before.unwrap_or_default();
            let (name, object) = (subject.name.clone(), subject.given.object_name.clone());
            let values = self.opaque.as_ref().map_or(0, OpaqueValues::number);
            let rendered = match Box::pin(self.one(subject, parent)).await {
                Err(error) if !before.is_empty() => {
                    let waits_for = self.undecided(&before, &error);
                    RenderedInstallation { name, waits_for: Some(waits_for), object, ..RenderedInstallation::default() }
                }
                rendered => rendered?,
            };
            if rendered.exports.is_some() {
                done.insert(rendered.name.clone());
            }
            if self.opaque.as_ref().is_some_and(|opaque| opaque.number() > values || rendered.has_opaque_imports) {
                opaque.insert(rendered.name.clone());
            }
            all.push(rendered);
            if left.is_empty() {
                return Ok(all);
            }
        }
    }

    async fn one(
        &mut self,
        subject: RenderSubject,
        parent: Option<ParentInstallation<'_>>,
    ) -> Result<RenderedInstallation, OfflineError> {
        let path = parent.map_or_else(|| subject.name.clone(), |parent| format!("{}/{}", parent.path, subject.name));
        match self.rendered(subject, parent, &path).await {
            Ok(rendered) => Ok(rendered),
            Err(Failed::Here(why)) => Err(OfflineError { path, why: Box::new(why) }),
            Err(Failed::Below(error)) => Err(error),
        }
    }

    async fn rendered(
        &mut self,
        subject: RenderSubject,
        parent: Option<ParentInstallation<'_>>,
        path: &str,
    ) -> Result<RenderedInstallation, Failed> {
        self.check_room(parent)?;
        let (namespace, object, plugins) = (self.namespace.clone(), subject.object().to_owned(), self.plugins);
        let spec = &subject.spec;
        let scope = RecordWriter {
            namespace: &namespace,
            installation: &object,
            parent: parent.map(|parent| parent.object),
            job: JOB,
        };
        self.world.add_installation(&object);
        let above = parent.and_then(|parent| parent.above);
        let wanted = BlueprintRequest { spec, above, files: subject.files.clone() };
        let loaded = self.versions.load(&self.world, &namespace, wanted, self.rng.clone()).await?;
        let imported = self.imported(&subject, &loaded.blueprint, &scope)?;
        let states = states(&subject.given, &object, &loaded.blueprint, &self.world)?;
        let mut rendering = Rendering::new(loaded.subject(scope, plugins), states);
        let values = rendering.imports(&imported, &spec.import_data_mappings).await?;
        let copies = import::copies(&loaded.blueprint.imports, &values, &imported, &scope)?;
        self.world.write(&copies, &namespace, &object);
        let mut templates = rendering.subinstallations(&values, &imported).await?;
        let items = rendering.items(&values, &imported).await?;
        subject.given.check(&items, &templates)?;
        // What expressions say of values that only stand for others is not known.
        let known_values = self.opaque.as_ref().map_or_else(|| values.clone(), |opaque| opaque.known_of(&values));
        let has_opaque_imports = known_values.len() < values.len();
        let not_wanted_subinstallations = not_wanted_subinstallations(&templates, &known_values);
        templates.retain(|of| !not_wanted_subinstallations.contains(&of.template.name));
        let (above, depth) =
            (above.or(spec.component_descriptor.as_ref()), 1 + parent.map_or(0, |parent| parent.depth));
        let parent = ParentInstallation { object: &object, path, above, depth };
        let children = templates.iter().map(|template| child(template, &subject));
        let subinstallations = self.siblings(children.collect(), Some(parent)).await?;
        let is_exporting = !loaded.blueprint.export_executions.is_empty() || !spec.exports.is_empty();
        let exports = match self.export_values(&subject, &items, &subinstallations, &scope) {
            _ if !is_exporting => Some(Map::new()),
            None => self.opaque_exports(&loaded.blueprint.exports, spec, (path, &scope))?,
            Some(given) => {
                let exports = rendering.exports(&values, given, &spec.export_data_mappings).await?;
                let records = export::records(&(&spec.exports).into(), &exports, &scope)?;
                self.export(&records, &scope)?;
                Some(exports)
            }
        };
        let warning = |Warning { place, text }| format!("{place}: {text}");
        let item = |DeployItem { template, target, gates }: &DeployItem| {
            convert::deploy_item(template, target.as_deref(), gates, &namespace)
        };
        Ok(RenderedInstallation {
            name: subject.name.clone(),
            waits_for: None,
            deploy_items: items.iter().map(item).collect(),
            not_wanted: not_wanted_items(&items, &known_values),
            not_wanted_subinstallations,
            subinstallations,
            exports,
            state: kept(rendering.states()),
            warnings: rendering.take_warnings().into_iter().map(warning).collect(),
            object: subject.given.object_name.clone(),
            context: spec.context.clone(),
            has_opaque_imports,
        })
    }

    /// Exports belong to one installation.
    pub(super) fn export(&mut self, records: &[Record], scope: &RecordWriter<'_>) -> Result<(), OfflineFault> {
        for record in records {
            export::may_write(record, self.world.occupant(record), scope)?;
        }
        self.world.write(records, scope.namespace, scope.installation);
        Ok(())
    }

    /// What is imported: of a root, what the command line gives comes first.
    fn imported(
        &self,
        subject: &RenderSubject,
        blueprint: &Blueprint,
        scope: &RecordWriter<'_>,
    ) -> Result<BTreeMap<String, Imported>, OfflineFault> {
        if subject.files.is_some() {
            let mut known = Vec::new();
            names(&blueprint.imports, &mut known);
            import_names(&known).check(self.imports.keys())?;
            return Ok(self.imports.clone());
        }
        let mut left = ImportBindings::from(&subject.spec.imports);
        let data = left.data.iter().map(|import| &import.name);
        let wanted: BTreeSet<String> = data.chain(left.targets.iter().map(|import| &import.name)).cloned().collect();
        let is_given = |name: &String| scope.parent.is_none() && self.imports.contains_key(name);
        left.data.retain(|import| !is_given(&import.name));
        left.targets.retain(|import| !is_given(&import.name));
        let mut imported = import::read(&left, scope, &self.world)?;
        let given = self.imports.iter().filter(|(name, _)| wanted.contains(*name) && is_given(name));
        imported.extend(given.map(|(name, value)| (name.clone(), value.clone())));
        Ok(imported)
    }

    /// What export executions see; `None` where something of it is not known.
    fn export_values(
        &self,
        subject: &RenderSubject,
        items: &[DeployItem],
        subinstallations: &[RenderedInstallation],
        scope: &RecordWriter<'_>,
    ) -> Option<ExportValues> {
        let known = items.is_empty() || subject.given.has_exports_of(items);
        if !known || subinstallations.iter().any(|sub| sub.exports.is_none()) {
            return None;
        }
        let context = scope.own_context();
        let mut exported = subject.given.deploy_items.clone();
        if let Some(exported) = &mut exported {
            // An item without exports is there as null.
            for item in items {
                exported.entry(item.template.name.clone()).or_insert(Value::Null);
            }
        }
        Some(ExportValues {
            deploy_items: exported.filter(|_| !items.is_empty()).map(Value::Object),
            data_objects: self.world.data_of(&context),
            targets: self.world.targets_of(&context),
        })
    }
}

/// Where it failed: in the installation itself, or in one below it.
enum Failed {
    Here(OfflineFault),
    Below(OfflineError),
}

impl<E: Into<OfflineFault>> From<E> for Failed {
    fn from(why: E) -> Self {
        Failed::Here(why.into())
    }
}

impl From<OfflineError> for Failed {
    fn from(error: OfflineError) -> Self {
        Failed::Below(error)
    }
}

fn import_names<'a>(known: &'a [&'a str]) -> GivenNames<'a> {
    GivenNames { flag: "imports", what: "the import", whose: BLUEPRINT, known }
}

/// The names of all imports, conditional ones included.
fn names<'a>(of: &'a [ImportDefinition], all: &mut Vec<&'a str>) {
    for import in of {
        all.push(&import.name);
        names(&import.conditional, all);
    }
}

/// A sub-installation as it will be rendered.
fn child(of: &Subinstallation, parent: &RenderSubject) -> RenderSubject {
    RenderSubject {
        name: of.template.name.clone(),
        spec: convert::subinstallation(&parent.spec, &of.template, of.child.as_ref()),
        files: None,
        given: parent.given.subinstallation(&of.template.name),
    }
}

/// What an installation waits for, as a sentence goes on.
fn waits_for(of: &RenderSubject, exporting: &str) -> String {
    match of.given.origin {
        GivenOrigin::CommandLine => format!("the exports of {exporting}, which are not known; give them with --values"),
        GivenOrigin::Cluster => format!("the exports of {exporting}, which come in the job"),
    }
}

impl Given {
    /// Whether it is known what these items have exported.
    fn has_exports_of(&self, items: &[DeployItem]) -> bool {
        self.deploy_items.as_ref().is_some_and(|exported| {
            self.origin == GivenOrigin::CommandLine
                || items.iter().all(|item| exported.contains_key(&item.template.name))
        })
    }

    /// Refuses what is given of deploy items and sub-installations that are not there.
    fn check(&self, items: &[DeployItem], templates: &[Subinstallation]) -> Result<(), OfflineFault> {
        if self.origin == GivenOrigin::Cluster {
            return Ok(());
        }
        let items: Vec<&str> = items.iter().map(|item| item.template.name.as_str()).collect();
        let given = self.deploy_items.iter().flat_map(Map::keys);
        GivenNames { flag: "values", what: "exports of the deploy item", whose: BLUEPRINT, known: &items }
            .check(given)?;
        let templates: Vec<&str> = templates.iter().map(|of| of.template.name.as_str()).collect();
        let what = "values of the sub-installation";
        GivenNames { flag: "values", what, whose: BLUEPRINT, known: &templates }.check(self.subinstallations.keys())
    }
}
