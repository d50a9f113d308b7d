//! Installation templates: sub-installations as a blueprint writes them, and the rules over all of one blueprint
//! (`docs/wire.md` §4.2).

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use orangery_expression::Type;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{
    ImportDefinition,
    choice::{ChoiceError, TargetChoice, gates},
};
use crate::{
    binding::{self, BindingError, BindingFault, DataSource, ExportBindings, ImportBindings, TargetSource},
    gate::{self, ExpressionScope, GateExpressions, Predecessors},
    import::Imported,
    sibling::{self, Sibling, SiblingReference},
};
use orangery_core::{
    dag::{Dag, DagError},
    duration::{self, InvalidDuration},
    lenient::{self, DecodeError},
    listing, name,
    name::Kind,
    workflow::GateKind,
};

/// A sub-installation before it is an object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InstallationTemplate {
    /// Unique among its siblings.
    pub name: String,
    /// Where its blueprint comes from.
    pub blueprint: TemplateBlueprint,
    /// Where its imports come from.
    pub imports: ImportBindings,
    /// Templates of import values.
    pub import_data_mappings: BTreeMap<String, Value>,
    /// Where its exports go.
    pub exports: ExportBindings,
    /// Templates of export values.
    pub export_data_mappings: BTreeMap<String, Value>,
    /// Promises that spare looking at siblings.
    pub optimization: Option<Optimization>,
    /// How long each of its gate expressions is waited for, in Go's notation, checked.
    pub timeout: Option<String>,
    /// Whether it takes part, is wanted, is ready and is gone (WF-02 … WF-05).
    pub gates: GateExpressions<TargetChoice>,
}

/// Where the blueprint of a template comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum TemplateBlueprint {
    /// `cd://componentReferences/<ref>/…/resources/<name>`
    Reference(String),
    /// A file system, as [`super::FileSystem::parse`] reads it.
    Inline(Value),
}

impl Default for TemplateBlueprint {
    fn default() -> Self {
        TemplateBlueprint::Inline(Value::Object(Map::new()))
    }
}

/// Promises that spare looking at siblings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Optimization {
    /// No import comes from a sibling's export.
    pub has_no_sibling_imports: bool,
    /// No sibling imports one of the exports.
    pub has_no_sibling_exports: bool,
}

/// Why installation templates cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// Not the form of an installation template.
    #[error("a sub-installation has a wrong form: {0}")]
    Form(DecodeError),
    /// A rendered template says nothing, or something else, of its kind.
    #[error(
        "the sub-installation {name:?} has kind {found:?}; write apiVersion: landscaper.gardener.cloud/v1alpha1 and kind: InstallationTemplate"
    )]
    Kind {
        /// Its name.
        name: String,
        /// What stands there.
        found: String,
    },
    /// No usable name.
    #[error(
        "the name {name:?} of a sub-installation is not one of at most {} lower-case letters, digits and `-`",
        name::LONGEST_TEMPLATE
    )]
    Name {
        /// The name.
        name: String,
    },
    /// None or several sources of its blueprint.
    #[error("the sub-installation {name:?} needs exactly one of blueprint.ref and blueprint.filesystem")]
    Blueprint {
        /// Its name.
        name: String,
    },
    /// Its imports or exports break a rule.
    #[error("the sub-installation {name:?}: {source}")]
    Binding {
        /// Its name.
        name: String,
        /// The rule.
        source: BindingError,
    },
    /// Two templates of one name.
    #[error("two sub-installations are named {name:?}; give every one its own name")]
    Duplicate {
        /// The name.
        name: String,
    },
    /// Several templates export the same.
    #[error(
        "{reference} is exported by several sub-installations: {}; let one of them export it",
        listing::joined(exporters)
    )]
    SeveralExporters {
        /// What.
        reference: SiblingReference,
        /// By whom.
        exporters: Vec<String>,
    },
    /// A template exports what the parent imports.
    #[error(
        "the sub-installation {name:?} exports {reference}, which is already an import of the blueprint; rename the export"
    )]
    ExportIsImport {
        /// The template.
        name: String,
        /// What.
        reference: SiblingReference,
    },
    /// An import comes from nowhere.
    #[error(
        "the sub-installation {name:?} imports {reference}, which neither the blueprint imports nor a sibling exports; known are: {known}"
    )]
    Unsatisfied {
        /// The template.
        name: String,
        /// What.
        reference: SiblingReference,
        /// What there is.
        known: String,
    },
    /// The timeout of its gate expressions cannot be read.
    #[error("the sub-installation {name:?}: timeout {source}")]
    Timeout {
        /// Its name.
        name: String,
        /// Why.
        source: InvalidDuration,
    },
    /// A gate expression cannot be asked.
    #[error("the sub-installation {name:?}: {gate}: {why}")]
    Gate {
        /// Its name.
        name: String,
        /// Which one.
        gate: GateKind,
        /// What is wrong with it.
        why: String,
    },
    /// A gate expression looks at no target.
    #[error("the sub-installation {name:?}: {source}")]
    Target {
        /// Its name.
        name: String,
        /// Why.
        source: ChoiceError,
    },
    /// Templates wait for each other.
    #[error("the sub-installations import from each other: {0}")]
    Order(DagError),
}

impl TemplateError {
    /// The field at fault of the document that the template stands in at `place`.
    pub fn field(&self, place: &str) -> String {
        let below = |field: &str| if place.is_empty() { field.to_owned() } else { format!("{place}.{field}") };
        match self {
            TemplateError::Form(source) => source.path.clone(),
            TemplateError::Kind { .. } => below("kind"),
            TemplateError::Name { .. } | TemplateError::Duplicate { .. } => below("name"),
            TemplateError::Blueprint { .. } => below("blueprint"),
            TemplateError::Binding { source, .. } => below(&source.path),
            TemplateError::SeveralExporters { .. } | TemplateError::ExportIsImport { .. } => below("exports"),
            TemplateError::Unsatisfied { .. } | TemplateError::Order(_) => below("imports"),
            TemplateError::Timeout { .. } => below("timeout"),
            TemplateError::Gate { gate, .. } => below(gate.name()),
            TemplateError::Target { .. } => place.to_owned(),
        }
    }

    /// The template at fault: of several that do not go together the last.
    pub fn template(&self) -> Option<&str> {
        match self {
            TemplateError::Form(_) => None,
            TemplateError::Kind { name, .. }
            | TemplateError::Name { name }
            | TemplateError::Blueprint { name }
            | TemplateError::Binding { name, .. }
            | TemplateError::Duplicate { name }
            | TemplateError::ExportIsImport { name, .. }
            | TemplateError::Timeout { name, .. }
            | TemplateError::Gate { name, .. }
            | TemplateError::Target { name, .. }
            | TemplateError::Unsatisfied { name, .. } => Some(name),
            TemplateError::SeveralExporters { exporters, .. } => exporters.last().map(String::as_str),
            TemplateError::Order(DagError::Cycle { members }) => members.first().map(String::as_str),
            TemplateError::Order(DagError::Duplicate { name } | DagError::Unknown { node: name, .. }) => Some(name),
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct InstallationTemplateFields {
    // Known, and nothing depends on it.
    #[serde(rename = "apiVersion")]
    _api_version: Value,
    kind: Kind,
    name: String,
    blueprint: TemplateBlueprintFields,
    imports: ImportBindings,
    import_data_mappings: BTreeMap<String, Value>,
    exports: ExportBindings,
    export_data_mappings: BTreeMap<String, Value>,
    optimization: Option<Optimization>,
    timeout: Option<String>,
    activate_when: Option<Value>,
    when: Option<Value>,
    ready_when: Option<Value>,
    deleted_when: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct TemplateBlueprintFields {
    #[serde(rename = "ref")]
    reference: String,
    filesystem: Option<Value>,
}

impl InstallationTemplate {
    /// Reads one template, which stands at `place` of its document.
    pub fn parse(value: &Value, place: &str) -> Result<Self, TemplateError> {
        Self::parse_noting(value, place).0
    }

    /// As [`InstallationTemplate::parse`], with the fields of the document that nobody knows.
    pub fn parse_noting(value: &Value, place: &str) -> (Result<Self, TemplateError>, Vec<String>) {
        let below = |field: &str| match (place, field) {
            ("", field) => field.to_owned(),
            (place, "") => place.to_owned(),
            (place, field) => format!("{place}.{field}"),
        };
        let (form, unknown) = lenient::decode_noting(value);
        let form = form.map_err(|error: DecodeError| {
            TemplateError::Form(DecodeError { path: below(&error.path), reason: error.reason })
        });
        (form.and_then(Self::of), unknown.iter().map(|field| below(field)).collect())
    }

    fn of(form: InstallationTemplateFields) -> Result<Self, TemplateError> {
        if !matches!(form.kind.as_str(), "" | "InstallationTemplate") {
            return Err(TemplateError::Kind { name: form.name, found: form.kind.into() });
        }
        if !name::is_label(&form.name, name::LONGEST_TEMPLATE) {
            return Err(TemplateError::Name { name: form.name });
        }
        let blueprint = match (form.blueprint.reference.as_str(), form.blueprint.filesystem) {
            ("", Some(filesystem)) => TemplateBlueprint::Inline(filesystem),
            (reference, None) if !reference.is_empty() => TemplateBlueprint::Reference(reference.to_owned()),
            _ => return Err(TemplateError::Blueprint { name: form.name }),
        };
        let binding = |source| TemplateError::Binding { name: form.name.clone(), source };
        binding::check(&form.imports, &form.exports).map_err(binding)?;
        for (index, import) in form.imports.data.iter().enumerate() {
            match import.source() {
                Some(DataSource::Secret(_) | DataSource::ConfigMap(_)) => {
                    let path = format!("imports.data[{index}]");
                    return Err(binding(BindingError { path, fault: BindingFault::RootsOnly }));
                }
                Some(DataSource::DataObject(_)) | None => {}
            }
        }
        if let Some(timeout) = &form.timeout {
            duration::limit(timeout).map_err(|source| TemplateError::Timeout { name: form.name.clone(), source })?;
        }
        let written = [
            (GateKind::Activate, form.activate_when),
            (GateKind::When, form.when),
            (GateKind::Ready, form.ready_when),
            (GateKind::Deleted, form.deleted_when),
        ];
        let gates = gates(written).map_err(|(gate, why)| TemplateError::Gate { name: form.name.clone(), gate, why })?;
        Ok(Self {
            name: form.name,
            blueprint,
            imports: form.imports,
            import_data_mappings: form.import_data_mappings,
            exports: form.exports,
            export_data_mappings: form.export_data_mappings,
            optimization: form.optimization,
            timeout: form.timeout,
            gates,
        })
    }
}

/// Drops data imports that refer to optional or conditional imports of the parent that got no value
/// (`docs/wire.md` §5.8). `given` are the names of the parent's imports that have one.
pub fn without_unsatisfied(
    templates: &mut [InstallationTemplate],
    definitions: &[ImportDefinition],
    given: &BTreeSet<&str>,
) {
    let mut optional = BTreeSet::new();
    collect_optional(definitions, false, &mut optional);
    for template in templates {
        template.imports.data.retain(|import| {
            let name = import.data_ref.as_str();
            given.contains(name) || !optional.contains(name)
        });
    }
}

fn collect_optional<'d>(definitions: &'d [ImportDefinition], conditional: bool, names: &mut BTreeSet<&'d str>) {
    for definition in definitions {
        if conditional || !definition.required {
            names.insert(&definition.name);
        }
        collect_optional(&definition.conditional, true, names);
    }
}

/// Faults of templates that are told at once.
const MOST_FAULTS: usize = 100;

/// The rules over all templates of one blueprint: unique names and exports, every import satisfied by the parent or a
/// sibling, no circle.
pub fn check_templates(templates: &[InstallationTemplate], parent: &[ImportDefinition]) -> Result<(), TemplateError> {
    match faults_within(templates, parent, 1).pop() {
        None => Ok(()),
        Some(fault) => Err(fault),
    }
}

/// All that [`check_templates`] finds, so many at most. Circles are looked for where everything else is right.
pub fn faults_of_templates(templates: &[InstallationTemplate], parent: &[ImportDefinition]) -> Vec<TemplateError> {
    faults_within(templates, parent, MOST_FAULTS)
}

fn faults_within(templates: &[InstallationTemplate], parent: &[ImportDefinition], most: usize) -> Vec<TemplateError> {
    let mut faults = Vec::new();
    let mut names = BTreeSet::new();
    for template in templates {
        if !names.insert(template.name.as_str()) {
            faults.push(TemplateError::Duplicate { name: template.name.clone() });
        }
    }
    let siblings = siblings(templates);
    let exporters = sibling::exporters(&siblings);
    for (reference, names) in exporters.iter().filter(|(_, names)| names.len() > 1) {
        let exporters = names.iter().map(|name| (*name).to_owned()).collect();
        faults.push(TemplateError::SeveralExporters { reference: reference.clone(), exporters });
    }
    let own = sibling::defined(parent);
    for (reference, names) in &exporters {
        if let (true, Some(name)) = (own.contains(reference), names.first()) {
            faults.push(TemplateError::ExportIsImport { name: (*name).to_owned(), reference: reference.clone() });
        }
    }
    for template in templates {
        let left = most.saturating_sub(faults.len());
        faults.extend(unsatisfied(template, &own, &exporters).take(left));
    }
    if faults.is_empty() {
        faults.extend(sibling::order(&siblings).err().map(TemplateError::Order));
    }
    faults.truncate(most);
    faults
}

fn siblings<'a>(templates: impl IntoIterator<Item = &'a InstallationTemplate>) -> Vec<Sibling<'a>> {
    templates
        .into_iter()
        .map(|InstallationTemplate { name, imports, exports, .. }| Sibling { name, imports, exports })
        .collect()
}

/// The names of the templates, each with those that it imports from: what it depends on.
pub fn edges_of_templates<'a>(
    templates: impl IntoIterator<Item = &'a InstallationTemplate>,
) -> Vec<(&'a str, Vec<&'a str>)> {
    sibling::edges(&siblings(templates))
}

/// The gate expressions of templates that cannot be asked. `imports` are those of the blueprint, with their types; `None` where
/// it is not known which there are.
pub fn faults_of_gate_expressions(
    templates: &[InstallationTemplate],
    imports: Option<&Arc<BTreeMap<String, Type>>>,
) -> Vec<TemplateError> {
    if templates.iter().all(|template| template.gates.is_empty()) {
        return Vec::new();
    }
    let Ok(dag) = Dag::unchecked(edges_of_templates(templates)) else { return Vec::new() };
    let mut faults = Vec::new();
    for InstallationTemplate { name, gates, .. } in templates {
        let around = ExpressionScope { imports: imports.cloned(), predecessors: Some(Predecessors::Of(&dag, name)) };
        let checked = gate::check_all(gates, &around);
        if let Err((gate, why)) = checked.and_then(|()| without_target(gates).map_or(Ok(()), Err)) {
            faults.push(TemplateError::Gate { name: name.clone(), gate, why });
        }
    }
    faults
}

/// The first gate expression that looks at a cluster and does not say at which: a sub-installation has no target of its own.
fn without_target(gates: &GateExpressions<TargetChoice>) -> Option<(GateKind, String)> {
    gates.iter().find_map(|(gate, gate_expression)| {
        let named = gate_expression.objects.iter().find(|(_, object)| object.target.is_none());
        let object = named.map(|(name, _)| format!("objects.{name}"));
        let definition = gate_expression.crd_present.as_ref().filter(|definition| definition.target.is_none());
        let what = object.or(definition.map(|_| "crdPresent".to_owned()))?;
        Some((gate, format!("{what} names no target, and a sub-installation has none of its own; set target")))
    })
}

impl InstallationTemplate {
    /// Its gate expressions, with the Target objects that they look at.
    pub fn resolve_gates(&self, imports: &BTreeMap<String, Imported>) -> Result<GateExpressions, TemplateError> {
        let message = |source| TemplateError::Target { name: self.name.clone(), source };
        self.gates.clone().try_map(|choice| choice.resolve(imports)).map_err(message)
    }
}

/// What a template imports from nowhere.
fn unsatisfied<'a>(
    template: &'a InstallationTemplate,
    own: &'a BTreeSet<SiblingReference>,
    exporters: &'a BTreeMap<SiblingReference, Vec<&str>>,
) -> impl Iterator<Item = TemplateError> + use<'a> {
    // `#name` is an object of the namespace, which nobody here can know.
    let known = move |reference: &SiblingReference| {
        reference.key().starts_with('#')
            || own.contains(reference)
            || exporters.contains_key(reference)
            || reference.container().is_some_and(|container| own.contains(&container))
    };
    let of_parent = template.imports.targets.iter().filter_map(|import| match import.source() {
        Some(TargetSource::ListOf(name)) => Some(SiblingReference::TargetList(name.to_owned())),
        Some(TargetSource::MapOf(name)) => Some(SiblingReference::TargetMap(name.to_owned())),
        Some(TargetSource::Target(_) | TargetSource::List(_) | TargetSource::Map(_)) | None => None,
    });
    let missing = sibling::imported(&template.imports).into_iter().chain(of_parent);
    missing.filter(move |reference| !known(reference)).map(|reference| TemplateError::Unsatisfied {
        name: template.name.clone(),
        reference,
        known: listing::listed_sorted(own.iter().chain(exporters.keys().filter(|reference| !own.contains(*reference)))),
    })
}
