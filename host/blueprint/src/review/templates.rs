//! The templates of a blueprint, and what their engines say of them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use serde_json::{Map, Value};

use super::{FilePosition, Finding, Review, Severity, Text, origin::BlueprintFiles};
use crate::{
    BlueprintReading, FILE, FileSystem, ImportDefinition, TemplateExecution, check_gate_expression,
    gate::{self, Type},
    rendering::{ExecutionKind, Findings, InputReference, MAPPING_ENGINE},
};
use orangery_core::{
    digest, listing,
    workflow::GateKind,
    yaml::{self, Embedded, LocatedDocument, SourcePosition, SourcePositions},
};
use orangery_ocm::Files;

/// A template that an engine is to look at.
pub struct ToCheck {
    /// Its list.
    pub list: ExecutionKind,
    /// The execution.
    pub execution: TemplateExecution,
    /// The files of its blueprint.
    pub files: Arc<dyn Files>,
    /// The execution's place in the blueprint.
    execution_at: (Text, SourcePosition),
    /// The template's text, where it is written in the blueprint.
    template: Text,
    /// The text of the blueprint's other files: what stands before their names, or the document that they are in.
    texts: super::BlueprintOrigin,
    /// The imports there are; `None` where import executions may add some.
    imports: Option<BTreeSet<String>>,
    /// Their types, as far as gate expressions of deploy items go.
    types: Arc<BTreeMap<String, Type>>,
}

impl fmt::Debug for ToCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToCheck").field("list", &self.list).field("execution", &self.execution).finish_non_exhaustive()
    }
}

/// The templates of a blueprint in the order in which they are rendered.
pub(super) fn of(
    source: &mut BlueprintFiles<'_>,
    files: &Arc<dyn Files>,
    BlueprintReading { blueprint, executions: fields, .. }: &BlueprintReading,
) -> Vec<ToCheck> {
    let lists = [
        (ExecutionKind::Import, &blueprint.import_executions),
        (ExecutionKind::Subinstallation, &blueprint.subinstallation_executions),
        (ExecutionKind::Deploy, &blueprint.deploy_executions),
        (ExecutionKind::Export, &blueprint.export_executions),
    ];
    let mut imports = BTreeSet::new();
    names(&blueprint.imports, &mut imports);
    let types = Arc::new(gate::import_types(&blueprint.imports, &Map::new()));
    let positions = source.positions(FILE);
    let mut all = Vec::new();
    for (list, executions) in lists {
        let name = list.list();
        for (execution, field) in executions.iter().zip(fields.get(name).into_iter().flatten()) {
            let may_be_bound = !all.is_empty() && !blueprint.import_executions.is_empty();
            all.push(ToCheck {
                list,
                execution: execution.clone(),
                files: Arc::clone(files),
                execution_at: (source.text(FILE), positions.find(field)),
                template: source.text(FILE).within(positions.text(&format!("{field}.template"))),
                texts: source.origin().clone(),
                imports: (!may_be_bound).then(|| imports.clone()),
                types: Arc::clone(&types),
            });
        }
    }
    all
}

/// The data mappings of an installation, in the order of their names. `field` is where such a list stands.
pub(super) fn of_mappings<'a>(
    (document, positions): (&'a Text, &'a SourcePositions),
    lists: [(ExecutionKind, &'a BTreeMap<String, Value>); 2],
    field: impl Fn(&str) -> String,
) -> Vec<ToCheck> {
    let mut all = Vec::new();
    for (list, mappings) in lists {
        for (name, value) in mappings {
            let place = positions.find(&field(&format!("{}.{name}", list.list())));
            let execution = TemplateExecution {
                name: name.clone(),
                engine: MAPPING_ENGINE.to_owned(),
                file: None,
                template: digest::compact(value),
            };
            all.push(ToCheck {
                list,
                execution,
                files: Arc::new(FileSystem::default()),
                execution_at: (document.clone(), place),
                // It is written as a structure, which has no lines of its own.
                template: document.within(Embedded::At(place)),
                texts: super::BlueprintOrigin::Files(String::new()),
                imports: None,
                types: Arc::default(),
            });
        }
    }
    all
}

fn names(imports: &[ImportDefinition], into: &mut BTreeSet<String>) {
    for import in imports {
        into.insert(import.name.clone());
        names(&import.conditional, into);
    }
}

/// What templates of every list have as inputs.
const INPUTS: [&str; 7] =
    ["imports", "cd", "components", "blueprint", "blueprintDef", "componentDescriptorDef", "state"];
/// What those of exports have besides.
const EXPORT_INPUTS: [&str; 4] = ["values", "deployitems", "dataobjects", "targets"];

impl ToCheck {
    /// The finding about the execution as a whole.
    pub fn finding(&self, severity: Severity, message: impl fmt::Display) -> Finding {
        let (text, place) = &self.execution_at;
        let Self { list, execution, .. } = self;
        let message = format!("{} {:?} ({}): {message}", list.list(), execution.name, execution.engine);
        Finding { position: text.position(*place), severity, message }
    }

    /// Where a line of the template stands, from 1.
    pub fn position(&self, line: u32) -> FilePosition {
        self.at(Severity::Note, None, (Some(line), None), String::new()).position
    }

    fn at(
        &self,
        severity: Severity,
        file: Option<&str>,
        place: (Option<u32>, Option<u32>),
        message: String,
    ) -> Finding {
        let (Some(line), column) = place else { return self.finding(severity, message) };
        let number = |number: u32| usize::try_from(number).unwrap_or(usize::MAX).max(1);
        let place = SourcePosition { line: number(line), column: column.map_or(1, number) };
        let text = match file.or(self.execution.file.as_deref()) {
            Some(file) => self.texts.text(file),
            None => self.template.clone(),
        };
        Finding { position: text.position(place), severity, message }
    }

    /// What is wrong with the gate expressions of what the template makes, as far as they stand there as they will be
    /// rendered: what the engine computes is left to the rendering.
    pub fn gates(&self) -> Vec<Finding> {
        let (list, noun) = match self.list {
            ExecutionKind::Deploy => ("deployItems", "deploy item"),
            ExecutionKind::Subinstallation => ("subinstallations", "the sub-installation"),
            ExecutionKind::Import
            | ExecutionKind::Export
            | ExecutionKind::ImportMapping
            | ExecutionKind::ExportMapping => return Vec::new(),
        };
        let Some(LocatedDocument { value, positions }) = self.document() else { return Vec::new() };
        let items = value.get(list).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let before = if list == "deployItems" { Before::of(items) } else { Before::default() };
        let mut findings = Vec::new();
        for (number, item) in items.iter().enumerate() {
            let Some(name) = item.get("name").and_then(literal) else { continue };
            for gate in GateKind::ALL {
                let Some(written) = item.get(gate.name()).filter(|written| is_literal(&written.to_string())) else {
                    continue;
                };
                let imports = self.imports.is_some().then(|| Arc::clone(&self.types));
                let around =
                    gate::ExpressionScope { imports, predecessors: before.all(&name).map(gate::Predecessors::Named) };
                if let Err(why) = check_gate_expression(written, gate, &around) {
                    let SourcePosition { line, column } = positions.find(&format!("{list}[{number}].{}", gate.name()));
                    let at = |number: usize| u32::try_from(number).ok();
                    let message = format!("{noun} {name:?}: {gate}: {why}");
                    findings.push(self.at(Severity::Error, None, (at(line), at(column)), message));
                }
            }
        }
        findings
    }

    /// The template as the document that it makes, where it is one before it is rendered.
    fn document(&self) -> Option<LocatedDocument> {
        let text = match &self.execution.file {
            None => self.execution.template.clone(),
            Some(file) => String::from_utf8_lossy(&self.files.read(file).ok()?).into_owned(),
        };
        yaml::locate(&text).ok()
    }

    /// What is wrong with a reference to an input, if anything is.
    fn unknown(&self, reference: &InputReference) -> Option<String> {
        let mut path = reference.path.iter().map(String::as_str);
        let first = path.next()?;
        let of_exports = || self.list == ExecutionKind::Export && EXPORT_INPUTS.contains(&first);
        if !INPUTS.contains(&first) && !of_exports() {
            let more = if self.list == ExecutionKind::Export { EXPORT_INPUTS.as_slice() } else { &[] };
            let known: Vec<&str> = INPUTS.iter().chain(more).copied().collect();
            return Some(format!("there is no input {first:?}; correct the name; inputs are: {}", known.join(", ")));
        }
        let (imports, name) = (self.imports.as_ref()?, path.next()?);
        if first != "imports" || imports.contains(name) {
            return None;
        }
        let known = listing::listed(imports);
        Some(format!(
            "the blueprint has no import {name:?}, so `imports.{name}` never has a value; correct the name, or add it to the imports; known are: {known}"
        ))
    }
}

/// What comes before deploy items, as far as it stands there.
#[derive(Default)]
struct Before {
    named: BTreeMap<String, Vec<String>>,
}

impl Before {
    fn of(items: &[Value]) -> Self {
        let dependencies = |item: &Value| -> Option<Vec<String>> {
            item.get("dependsOn").and_then(Value::as_array).into_iter().flatten().map(literal).collect()
        };
        let named = items.iter().filter_map(|item| Some((item.get("name").and_then(literal)?, dependencies(item)?)));
        Self { named: named.collect() }
    }

    /// All that comes before an item; `None` where some of it is computed.
    fn all(&self, name: &str) -> Option<BTreeSet<&str>> {
        let mut all = BTreeSet::new();
        let mut ahead: Vec<&String> = self.named.get(name)?.iter().collect();
        while let Some(before) = ahead.pop() {
            if all.insert(before.as_str()) {
                ahead.extend(self.named.get(before)?);
            }
        }
        Some(all)
    }
}

fn literal(value: &Value) -> Option<String> {
    value.as_str().filter(|text| is_literal(text)).map(str::to_owned)
}

/// Whether no engine changes a text: it has no mark of Jinja, GoTemplate or Spiff.
fn is_literal(text: &str) -> bool {
    !["{{", "{%", "{#", "(("].iter().any(|mark| text.contains(mark))
}

/// What the findings of an engine say to the author of the blueprint.
pub fn classify(of: &ToCheck, findings: Findings) -> Review {
    let mut review = Review::default();
    for failure in findings.failures {
        let place = (failure.line, failure.column);
        let fix = if failure.message.contains("; ") { "" } else { "; correct the template" };
        let text = format!("{}{fix}", failure.message);
        review.findings.push(of.at(Severity::Error, failure.file.as_deref(), place, text));
    }
    for reference in findings.references {
        if let Some(text) = of.unknown(&reference) {
            let place = (reference.line, reference.column);
            review.findings.push(of.at(Severity::Warning, reference.file.as_deref(), place, text));
        }
    }
    review
}
