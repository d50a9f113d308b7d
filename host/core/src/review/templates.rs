//! The templates of a blueprint, and what their engines say of them.

use std::{collections::BTreeSet, fmt, sync::Arc};

use super::{Finding, Review, Severity, Text, origin::Source};
use crate::{
    blueprint::{FILE, ImportDefinition, Reading, TemplateExecution},
    port::Files,
    template::{ExecutionKind, Findings, InputReference},
    yaml::Place,
};

/// A template that an engine is to look at.
pub struct ToCheck {
    /// Its list.
    pub list: ExecutionKind,
    list_name: &'static str,
    /// The execution.
    pub execution: TemplateExecution,
    /// The files of its blueprint.
    pub files: Arc<dyn Files>,
    /// The execution's place in the blueprint.
    execution_at: (Text, Place),
    /// The template's text, where it is written in the blueprint.
    template: Text,
    /// The text of the blueprint's other files: what stands before their names, or the document that they are in.
    texts: super::Origin,
    /// The imports there are; `None` where import executions may add some.
    imports: Option<BTreeSet<String>>,
}

impl fmt::Debug for ToCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToCheck").field("list", &self.list).field("execution", &self.execution).finish_non_exhaustive()
    }
}

/// The templates of a blueprint in the order in which they are rendered.
pub(super) fn of(
    source: &mut Source<'_>,
    files: &Arc<dyn Files>,
    Reading { blueprint, executions: fields, .. }: &Reading,
) -> Vec<ToCheck> {
    let lists = [
        (ExecutionKind::Import, "importExecutions", &blueprint.import_executions),
        (ExecutionKind::Subinstallation, "subinstallationExecutions", &blueprint.subinstallation_executions),
        (ExecutionKind::Deploy, "deployExecutions", &blueprint.deploy_executions),
        (ExecutionKind::Export, "exportExecutions", &blueprint.export_executions),
    ];
    let mut imports = BTreeSet::new();
    names(&blueprint.imports, &mut imports);
    let places = source.places(FILE);
    let mut all = Vec::new();
    for (list, name, executions) in lists {
        for execution in executions {
            let field = fields.get(&(name, execution.name.clone())).map_or(name, String::as_str);
            let may_be_bound = !all.is_empty() && !blueprint.import_executions.is_empty();
            all.push(ToCheck {
                list,
                list_name: name,
                execution: execution.clone(),
                files: Arc::clone(files),
                execution_at: (source.text(FILE), places.find(field)),
                template: source.text(FILE).within(places.text(&format!("{field}.template"))),
                texts: source.origin().clone(),
                imports: (!may_be_bound).then(|| imports.clone()),
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
        let Self { list_name, execution, .. } = self;
        let message = format!("{list_name} {:?} ({}): {message}", execution.name, execution.engine);
        Finding { spot: text.spot(*place), severity, message }
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
        let place = Place { line: number(line), column: column.map_or(1, number) };
        let text = match file.or(self.execution.file.as_deref()) {
            Some(file) => self.texts.text(file),
            None => self.template.clone(),
        };
        Finding { spot: text.spot(place), severity, message }
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
        let known: Vec<&str> = imports.iter().map(String::as_str).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        Some(format!(
            "the blueprint has no import {name:?}, so `imports.{name}` never has a value; correct the name, or add it to the imports; known are: {known}"
        ))
    }
}

/// What the findings of an engine say to the author of the blueprint.
pub fn judge(of: &ToCheck, findings: Findings) -> Review {
    let mut review = Review::default();
    for failure in findings.failures {
        let place = (failure.line, failure.column);
        review.findings.push(of.at(Severity::Error, failure.file.as_deref(), place, failure.message));
    }
    for reference in findings.references {
        if let Some(told) = of.unknown(&reference) {
            let place = (reference.line, reference.column);
            review.findings.push(of.at(Severity::Warning, reference.file.as_deref(), place, told));
        }
    }
    review
}
