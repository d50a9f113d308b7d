//! What the imports alone leave out of an installation.

use std::collections::BTreeMap;

use orangery_blueprint::{
    edges_of_templates,
    gate::{self, GateExpressions},
};
use orangery_core::{
    dag::Direction,
    workflow::{Answers, DesiredAction, Facts, GateKind, Workflow, WorkflowItemState, WorkflowPolicy},
};
use orangery_render::{DeployItem, Subinstallation};
use serde_json::{Map, Value};

/// The names of deploy items that the imports alone leave out.
pub(super) fn not_wanted_items(items: &[DeployItem], imports: &Map<String, Value>) -> Vec<String> {
    let nodes = items.iter().map(|item| {
        let before = item.template.depends_on.iter().map(String::as_str).collect();
        (item.template.name.as_str(), before, &item.gates)
    });
    not_wanted(&nodes.collect::<Vec<_>>(), imports)
}

/// The names of sub-installations that the imports alone leave out.
pub(super) fn not_wanted_subinstallations(templates: &[Subinstallation], imports: &Map<String, Value>) -> Vec<String> {
    let edges = edges_of_templates(templates.iter().map(|of| &of.template)).into_iter().zip(templates);
    let nodes: Vec<_> = edges.map(|((name, before), of)| (name, before, &of.gates)).collect();
    not_wanted(&nodes, imports)
}

/// What the workflow of these items would delete, and never make, for what their gate expressions say of the imports. Gate
/// expressions that read more than imports may hold. Each item has what it depends on, and its gate expressions.
fn not_wanted(items: &[(&str, Vec<&str>, &GateExpressions)], imports: &Map<String, Value>) -> Vec<String> {
    let document = Map::from_iter([(gate::IMPORTS.to_owned(), Value::Object(imports.clone()))]);
    let says = |gates: &GateExpressions, gate: GateKind| {
        let gate_expression = gates.get(gate)?;
        let expression = gate::compile(gate_expression.expression.as_ref()?).ok()?;
        let alone = gate::reads_imports_alone(gate_expression, &expression);
        alone.then(|| gate::evaluate(&expression, &document).answer)
    };
    let edges = items.iter().map(|(name, before, _)| (*name, before.clone()));
    let Ok(workflow) = Workflow::new(edges) else { return Vec::new() };
    let by_name: BTreeMap<&str, &GateExpressions> = items.iter().map(|(name, _, gates)| (*name, *gates)).collect();
    let evaluation = workflow.evaluate(Direction::Forward, WorkflowPolicy::default(), |name| {
        let says = |gate| by_name.get(name).and_then(|gates| says(gates, gate)).unwrap_or_default();
        let answers = Answers { activate: says(GateKind::Activate), when: says(GateKind::When), ..Answers::default() };
        Facts { answers, ..Facts::of(WorkflowItemState::Absent) }
    });
    let left =
        evaluation.items().iter().filter(|item| matches!(item.desired, DesiredAction::Delete | DesiredAction::Leave));
    left.map(|item| item.name.to_owned()).collect()
}
