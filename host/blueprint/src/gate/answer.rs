//! What a gate expression answers.

use serde_json::{Map, Value};

use super::{Definition, Expression, GateExpression, IMPORTS, check::display};
use orangery_core::workflow::Answer;

/// What came of asking a gate expression.
#[derive(Clone, Debug, PartialEq)]
pub struct GateResult {
    /// The answer.
    pub answer: Answer,
    /// Why, as one word.
    pub reason: String,
    /// Why, as one sentence.
    pub message: String,
    /// More, for programs (WF-08).
    pub details: Option<Value>,
}

impl GateResult {
    /// An answer with its reason.
    pub fn new(answer: Answer, reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self { answer, reason: reason.into(), message: message.into(), details: None }
    }

    /// Nobody can tell, and why.
    pub fn unknown(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Answer::Unknown, reason, message)
    }
}

/// Whether an expression is answered by imports alone: whatever happens in a job, it says the same.
pub fn reads_imports_alone<T>(gate_expression: &GateExpression<T>, expression: &Expression) -> bool {
    !gate_expression.looks_at_clusters() && expression.reads().iter().all(|path| path.first() == Some(&IMPORTS))
}

/// What an expression says of a document. An evaluation that fails answers nothing (C-07).
pub fn evaluate(expression: &Expression, document: &Map<String, Value>) -> GateResult {
    let source = display(expression.source());
    match expression.holds_of(document) {
        Ok(true) => GateResult::new(Answer::Met, "ExpressionHolds", format!("`{source}` holds")),
        Ok(false) => GateResult::new(Answer::NotMet, "ExpressionDoesNotHold", format!("`{source}` does not hold")),
        Err(why) => GateResult::unknown("EvaluationFailed", format!("`{source}` cannot be evaluated: {why}")),
    }
}

/// Whether a CustomResourceDefinition among these defines a kind.
pub fn is_defined<'a, T>(definition: &Definition<T>, known: impl IntoIterator<Item = &'a Value>) -> GateResult {
    let Definition { group, kind, version, .. } = definition;
    let display = if version.is_empty() { format!("{kind}.{group}") } else { format!("{kind}.{version}.{group}") };
    fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
        value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }
    let of_kind = |crd: &&Value| text(crd, "/spec/group") == group && text(crd, "/spec/names/kind") == kind.as_str();
    let Some(crd) = known.into_iter().find(of_kind) else {
        return GateResult::new(Answer::NotMet, "CrdAbsent", format!("no CustomResourceDefinition defines {display}"));
    };
    let list = |pointer: &str| crd.pointer(pointer).and_then(Value::as_array).into_iter().flatten();
    let serves = |one: &Value| one.get("served") != Some(&Value::Bool(false));
    let wanted = |one: &Value| version.is_empty() || one.get("name").and_then(Value::as_str) == Some(version);
    if !list("/spec/versions").any(|one| serves(one) && wanted(one)) {
        return GateResult::new(
            Answer::NotMet,
            "CrdVersionAbsent",
            format!("the definition of {kind}.{group} does not serve {version}"),
        );
    }
    let established = |one: &Value| {
        one.get("type").and_then(Value::as_str) == Some("Established")
            && one.get("status").and_then(Value::as_str) == Some("True")
    };
    if list("/status/conditions").any(established) {
        GateResult::new(Answer::Met, "CrdPresent", format!("{display} is defined"))
    } else {
        GateResult::unknown("CrdNotEstablished", format!("{display} is defined, but not served yet"))
    }
}
