//! The steps of rendering one blueprint, in the order of an installation's phases.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use orangery_blueprint::{
    Blueprint, InstallationTemplate, ItemTemplate, TemplateBlueprint, TemplateExecution, export,
    gate::{self, GateExpressions},
    import::{self, Imported},
    plugins::Plugins,
    record::RecordWriter,
    rendering::{ExecutionKind, MAPPING_ENGINE},
    schema::{SchemaError, Schemas},
    template_engine::TemplateContext,
};
use orangery_core::{
    digest,
    error::{Code, Fault},
    memory,
};
use orangery_ocm::{Child, ComponentVersion, ResourceReference};
use serde_json::{Map, Value};

use crate::{
    error::{ExecutionError, ExecutionFault, RenderError},
    execution::{self, ExecutionOutput},
    inputs::{ExportValues, InputDefinitions},
    state::{MOST_ANSWERED_BYTES, States},
};

/// What is rendered, and with what.
#[derive(Clone, Copy)]
pub struct RenderedSubject<'a> {
    /// The blueprint.
    pub blueprint: &'a Blueprint,
    /// Whose it is, and in which job.
    pub scope: RecordWriter<'a>,
    /// The engines.
    pub plugins: &'a dyn Plugins,
    /// What templates may reach.
    pub context: &'a TemplateContext,
    /// What templates see of the installation.
    pub definitions: &'a InputDefinitions,
    /// The component version that the blueprint belongs to.
    pub component: Option<&'a dyn ComponentVersion>,
}

/// One rendered deploy item.
#[derive(Clone, Debug, PartialEq)]
pub struct DeployItem {
    /// As the template has it.
    pub template: ItemTemplate,
    /// The Target object that it deploys to.
    pub target: Option<String>,
    /// Its gate expressions, with the Target objects that they look at.
    pub gates: GateExpressions,
}

/// One sub-installation.
#[derive(Clone, Debug, PartialEq)]
pub struct Subinstallation {
    /// As the template has it.
    pub template: InstallationTemplate,
    /// The component version and resource of its blueprint; `None` where the blueprint is written out, and then the
    /// component version is that of the parent.
    pub child: Option<Child>,
    /// Its gate expressions, with the Target objects that they look at.
    pub gates: GateExpressions,
}

/// Something to be told that fails nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// What it is about, such as an execution.
    pub place: String,
    /// One sentence.
    pub text: String,
}

/// The most warnings that are kept until they are asked for; engines choose how many there are.
const MOST_WARNINGS: usize = 20;

/// The most schemas of a component version that one rendering needs: each that is fetched has those before it looked at again.
const MOST_SCHEMAS: usize = 100;
/// The most bytes of memory that these take.
const MOST_SCHEMA_BYTES: u64 = 48 << 20;

/// Holds so many bytes of memory in all from now on; whether there is room for them.
pub type HoldMemory<'a> = Box<dyn FnMut(u64) -> bool + Send + 'a>;

/// The rendering of one blueprint in one job.
pub struct Rendering<'a> {
    subject: RenderedSubject<'a>,
    states: States,
    /// The memory of what executions get and have answered.
    bytes: u64,
    hold: HoldMemory<'a>,
    warnings: Vec<Warning>,
    /// How many more there were.
    omitted: usize,
    /// The schemas of the component version that were needed so far.
    schemas: FetchedSchemas,
}

/// Schemas of a component version, with the memory that they take.
#[derive(Default)]
struct FetchedSchemas {
    schemas: BTreeMap<ResourceReference, Value>,
    bytes: u64,
}

impl FetchedSchemas {
    /// # Errors
    /// There are too many, or they take too much.
    fn insert(&mut self, resource: ResourceReference, schema: Value) -> Result<(), Fault> {
        self.bytes = self.bytes.saturating_add(memory::of(&schema));
        if self.schemas.len() >= MOST_SCHEMAS || self.bytes > MOST_SCHEMA_BYTES {
            let message = format!(
                "the blueprint refers to more schemas of its component version than the {MOST_SCHEMAS}, of {MOST_SCHEMA_BYTES} bytes of \
                 memory together, that are allowed; refer to fewer or smaller ones"
            );
            return Err(Fault::invalid(Code::LimitExceeded, message));
        }
        self.schemas.insert(resource, schema);
        Ok(())
    }
}

impl<'a> Rendering<'a> {
    /// Nothing rendered yet. `states` are those that the last job left.
    pub fn new(subject: RenderedSubject<'a>, states: States) -> Self {
        let (bytes, hold) = (0, Box::new(|_| true));
        Self { subject, states, bytes, hold, warnings: Vec::new(), omitted: 0, schemas: FetchedSchemas::default() }
    }

    /// Shares the memory of what executions answer with other renderings; it is free when this is dropped.
    pub fn sharing(self, hold: HoldMemory<'a>) -> Self {
        Self { hold, ..self }
    }

    /// What executions keep, also of a job that failed.
    pub fn states(&mut self) -> &mut States {
        &mut self.states
    }

    /// What is to be told since it was asked last, in the order in which it came up; of more than there is room for, how many there
    /// were (C-322).
    pub fn take_warnings(&mut self) -> Vec<Warning> {
        let mut warnings = std::mem::take(&mut self.warnings);
        let omitted = std::mem::take(&mut self.omitted);
        if omitted > 0 {
            warnings.push(Warning {
                place: "the blueprint".to_owned(),
                text: format!("there are {omitted} more warnings"),
            });
        }
        warnings
    }

    fn warn(&mut self, warnings: impl Iterator<Item = Warning>) {
        for warning in warnings {
            if self.warnings.len() < MOST_WARNINGS { self.warnings.push(warning) } else { self.omitted += 1 }
        }
    }

    /// The imports as the blueprint asks for them: mappings, defaults, schemas, then the import executions.
    pub async fn imports(
        &mut self,
        imported: &BTreeMap<String, Imported>,
        mappings: &BTreeMap<String, Value>,
    ) -> Result<Map<String, Value>, RenderError> {
        let RenderedSubject { blueprint, scope, definitions, .. } = self.subject;
        let before = definitions.memory().saturating_add(self.states.bytes());
        self.count("what templates get of component descriptors and states", before).map_err(RenderError::Memory)?;
        let mapped = self.mapped(ExecutionKind::ImportMapping, mappings, &import::values(imported)).await?;
        let mut values = loop {
            match import::bind(&blueprint.imports, imported, &mapped, &self.schemas(), &scope) {
                Ok(values) => break values,
                Err(error) => {
                    let missing = error.schema().and_then(SchemaError::not_fetched).cloned();
                    self.fetch(missing, RenderError::Imports(error)).await?;
                }
            }
        };
        for execution in &blueprint.import_executions {
            let inputs = self.subject.definitions.inputs(&values);
            let document = self.render(ExecutionKind::Import, execution, inputs).await?;
            let output = orangery_blueprint::decode_imports(&document.document)
                .map_err(|error| document.error(ExecutionKind::Import, execution, ExecutionFault::Output(error)))?;
            if !output.errors.is_empty() {
                return Err(RenderError::Refused { execution: execution.name.clone(), errors: output.errors });
            }
            values.extend(output.bindings);
        }
        Ok(values)
    }

    /// The sub-installations: rendered ones first, then those that need no rendering, checked together.
    pub async fn subinstallations(
        &mut self,
        imports: &Map<String, Value>,
        imported: &BTreeMap<String, Imported>,
    ) -> Result<Vec<Subinstallation>, RenderError> {
        let blueprint = self.subject.blueprint;
        let inputs = self.subject.definitions.inputs(imports);
        let mut templates = Vec::new();
        for execution in &blueprint.subinstallation_executions {
            let document = self.render(ExecutionKind::Subinstallation, execution, inputs.clone()).await?;
            templates.extend(orangery_blueprint::decode_subinstallations(&document.document).map_err(|error| {
                document.error(ExecutionKind::Subinstallation, execution, ExecutionFault::Output(error))
            })?);
        }
        templates.extend(blueprint.subinstallations.iter().cloned());
        let given: BTreeSet<&str> = imports.keys().map(String::as_str).collect();
        orangery_blueprint::without_unsatisfied(&mut templates, &blueprint.imports, &given);
        orangery_blueprint::check_templates(&templates, &blueprint.imports).map_err(RenderError::Subinstallations)?;
        let types = Arc::new(gate::import_types(&blueprint.imports, imports));
        if let Some(fault) = orangery_blueprint::faults_of_gate_expressions(&templates, Some(&types)).into_iter().next()
        {
            return Err(RenderError::Subinstallations(fault));
        }
        templates.into_iter().map(|template| self.subinstallation(template, imported)).collect()
    }

    /// Where the blueprint of a sub-installation comes from, and what its gate expressions look at.
    fn subinstallation(
        &mut self,
        template: InstallationTemplate,
        imported: &BTreeMap<String, Imported>,
    ) -> Result<Subinstallation, RenderError> {
        let gates = template.resolve_gates(imported).map_err(RenderError::Subinstallations)?;
        let child = match (&template.blueprint, self.subject.component) {
            (TemplateBlueprint::Inline(_), _) => None,
            (TemplateBlueprint::Reference(reference), Some(component)) => {
                let child = component.child(reference).map_err(RenderError::Component)?;
                let what = format!("the component version of sub-installation {:?}", template.name);
                self.count(&what, child.bytes()).map_err(RenderError::Memory)?;
                Some(child)
            }
            (TemplateBlueprint::Reference(reference), None) => {
                let (name, reference) = (template.name, reference.clone());
                return Err(RenderError::NoComponent { name, reference });
            }
        };
        Ok(Subinstallation { template, child, gates })
    }

    /// The deploy items, checked together, each with its target.
    pub async fn items(
        &mut self,
        imports: &Map<String, Value>,
        imported: &BTreeMap<String, Imported>,
    ) -> Result<Vec<DeployItem>, RenderError> {
        let inputs = self.subject.definitions.inputs(imports);
        let mut items = Vec::new();
        for execution in &self.subject.blueprint.deploy_executions {
            let document = self.render(ExecutionKind::Deploy, execution, inputs.clone()).await?;
            items.extend(
                orangery_blueprint::decode_items(&document.document)
                    .map_err(|error| document.error(ExecutionKind::Deploy, execution, ExecutionFault::Items(error)))?,
            );
        }
        let types = Arc::new(gate::import_types(&self.subject.blueprint.imports, imports));
        orangery_blueprint::check_items(&items, &types).map_err(RenderError::Items)?;
        let resolved = |template: ItemTemplate| {
            let (target, gates) = (template.resolve_target(imported)?, template.resolve_gates(imported)?);
            Ok(DeployItem { template, target, gates })
        };
        items.into_iter().map(resolved).collect::<Result<_, _>>().map_err(RenderError::Items)
    }

    /// The exports of the blueprint, checked, with the results of the mappings over them.
    pub async fn exports(
        &mut self,
        imports: &Map<String, Value>,
        values: ExportValues,
        mappings: &BTreeMap<String, Value>,
    ) -> Result<Map<String, Value>, RenderError> {
        let RenderedSubject { blueprint, scope, .. } = self.subject;
        let mut inputs = self.subject.definitions.inputs(imports);
        inputs.extend(values.inputs());
        let mut exports = Map::new();
        for execution in &blueprint.export_executions {
            let document = self.render(ExecutionKind::Export, execution, inputs.clone()).await?;
            let answered = orangery_blueprint::decode_exports(&document.document)
                .map_err(|error| document.error(ExecutionKind::Export, execution, ExecutionFault::Output(error)))?;
            orangery_blueprint::merge_exports(&mut exports, answered);
        }
        let dropped = loop {
            match export::check(&blueprint.exports, &mut exports, &self.schemas(), &scope) {
                Ok(dropped) => break dropped,
                Err(error) => {
                    let missing = error.schema().and_then(SchemaError::not_fetched).cloned();
                    self.fetch(missing, RenderError::Exports(error)).await?;
                }
            }
        };
        self.warn(dropped.into_iter().map(|name| Warning {
            place: format!("export {name:?}"),
            text: "the blueprint does not define it, so it is dropped; add it to `exports` of the blueprint".to_owned(),
        }));
        if !mappings.is_empty() {
            let mut inputs = exports.clone();
            inputs.insert("exports".to_owned(), Value::Object(exports.clone()));
            exports.extend(self.mapped(ExecutionKind::ExportMapping, mappings, &inputs).await?);
        }
        Ok(exports)
    }

    /// The results of data mappings, by name; all of them see the same inputs.
    async fn mapped(
        &mut self,
        list: ExecutionKind,
        mappings: &BTreeMap<String, Value>,
        inputs: &Map<String, Value>,
    ) -> Result<Map<String, Value>, RenderError> {
        let mut mapped = Map::new();
        for (name, template) in mappings {
            let execution = TemplateExecution {
                name: name.clone(),
                engine: MAPPING_ENGINE.to_owned(),
                file: None,
                template: digest::compact(template),
            };
            mapped.insert(name.clone(), self.render(list, &execution, inputs.clone()).await?.document);
        }
        Ok(mapped)
    }

    async fn render(
        &mut self,
        list: ExecutionKind,
        execution: &TemplateExecution,
        inputs: Map<String, Value>,
    ) -> Result<ExecutionOutput, RenderError> {
        let with = (self.subject.plugins, self.subject.context);
        let mut rendered = execution::render(with, list, execution, inputs, &mut self.states).await?;
        let file = execution.file.as_deref();
        let place = ExecutionError::place(list, &execution.name, &execution.engine, file);
        let message = std::mem::take(&mut rendered.warnings);
        self.warn(message.into_iter().map(|text| Warning { place: place.clone(), text }));
        self.count(&format!("the answer of {place}"), rendered.bytes).map_err(RenderError::Memory)?;
        Ok(rendered)
    }

    /// Counts what executions get beside the imports, before it is made.
    ///
    /// # Errors
    /// It has no room, with what was read and answered before.
    pub fn reserve(&mut self, what: &str, bytes: u64) -> Result<(), RenderError> {
        self.count(what, bytes).map_err(RenderError::Memory)
    }

    /// Counts what an execution has answered, or gets, for as long as the rendering is there (C-324).
    fn count(&mut self, what: &str, bytes: u64) -> Result<(), Fault> {
        self.bytes = self.bytes.saturating_add(bytes);
        let sum = self.bytes;
        if sum > MOST_ANSWERED_BYTES {
            let message = format!(
                "{what} takes more than the {MOST_ANSWERED_BYTES} bytes of memory that are allowed, with what was read and answered \
                 before; use less, or divide the blueprint"
            );
            return Err(Fault::invalid(Code::LimitExceeded, message));
        }
        if (self.hold)(sum) {
            return Ok(());
        }
        let message = format!(
            "{what} takes {sum} bytes of memory, with what was read and answered before, and others have what is left; it is tried again"
        );
        Err(Fault::later(Code::LimitExceeded, message))
    }

    fn schemas(&self) -> Schemas<'_> {
        let RenderedSubject { blueprint, context, .. } = self.subject;
        Schemas { local_types: &blueprint.local_types, files: context.files.as_ref(), resources: &self.schemas.schemas }
    }

    /// Fetches the schema that a check missed, so that it can be tried again; without one the error stands.
    async fn fetch(&mut self, missing: Option<ResourceReference>, error: RenderError) -> Result<(), RenderError> {
        let (Some(resource), Some(component)) = (missing, self.subject.component) else { return Err(error) };
        let schema = component.json_schema(&resource).await.map_err(RenderError::Component)?;
        self.schemas.insert(resource, schema).map_err(RenderError::Component)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn c_320_limits_blueprint_the_schemas_of_a_component_version_have_a_sum() {
        let of = |number: usize| ResourceReference::named(&format!("s{number}"));
        let mut many = FetchedSchemas::default();
        for number in 0..MOST_SCHEMAS {
            assert!(many.insert(of(number), json!({})).is_ok());
        }
        let why = "the blueprint refers to more schemas of its component version than the 100, of 50331648 bytes of memory together, \
                   that are allowed; refer to fewer or smaller ones";
        assert_eq!(many.insert(of(MOST_SCHEMAS), json!({})).unwrap_err().to_string(), why);
        let mut large = FetchedSchemas::default();
        let schema = json!({"description": "x".repeat(25 << 20)});
        assert!(large.insert(of(0), schema.clone()).is_ok());
        assert_eq!(large.insert(of(1), schema).unwrap_err().to_string(), why);
    }
}
