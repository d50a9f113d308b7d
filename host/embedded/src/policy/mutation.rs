//! What mutating admission policies make of an object, before others judge it.

use orangery_expression::Expression;
use serde_json::{Value, json};

use super::{Attempt, BoundPolicy, Objection};
use crate::{
    object::{self, text},
    patch::{Shape, json_patch, strategic},
    refusal::{Refusal, RefusalReason, StatusCause},
};

/// What makes the change.
#[derive(Debug)]
pub(super) enum Mutation {
    /// An object with the fields that are to be so: lists of named entries are merged entry by entry, as by server-side apply.
    Apply(Expression),
    /// A list of the operations of a JSON patch.
    Patch(Expression),
}

/// What a policy cannot make another one of.
const KEPT: [&[&str]; 11] = [
    &["apiVersion"],
    &["kind"],
    &["metadata", "name"],
    &["metadata", "generateName"],
    &["metadata", "namespace"],
    &["metadata", "uid"],
    &["metadata", "resourceVersion"],
    &["metadata", "generation"],
    &["metadata", "creationTimestamp"],
    &["metadata", "deletionTimestamp"],
    &["metadata", "managedFields"],
];

impl Mutation {
    /// That of one entry of a policy, whose field is named in what is wrong with it.
    pub(super) fn read(mutation: &Value, field: &str) -> Result<Self, StatusCause> {
        let (name, make): (&str, fn(Expression) -> Self) = match text(mutation, &["patchType"]) {
            Some("ApplyConfiguration") => ("applyConfiguration", Self::Apply),
            Some("JSONPatch") => ("jsonPatch", Self::Patch),
            other => {
                let why = "must be ApplyConfiguration or JSONPatch";
                return Err(StatusCause::invalid(format!("{field}.patchType"), &json!(other), why));
            }
        };
        let source = text(mutation, &[name, "expression"]).unwrap_or_default();
        let compiled = Expression::compile_object(source);
        let invalid = |why: String| StatusCause::invalid(format!("{field}.{name}.expression"), &json!(source), &why);
        compiled.map(make).map_err(invalid)
    }

    /// The changed object, or why there is none.
    fn changed(&self, attempt: &Attempt<'_>, bound: &BoundPolicy, shape: Shape<'_>) -> Result<Value, String> {
        let scope = bound.policy.scope(attempt);
        let (Self::Apply(expression) | Self::Patch(expression)) = self;
        let made = expression
            .json(&scope)
            .map_err(|why| format!("expression '{}' resulted in error: {why}", expression.source()))?;
        let changed = match self {
            Self::Apply(_) if !made.is_object() => return Err(format!("'{}' makes no Object", expression.source())),
            Self::Apply(_) => strategic(attempt.new, &made, shape),
            Self::Patch(_) => json_patch(attempt.new, &made),
        };
        let mut changed = changed.map_err(|refusal| refusal.message)?;
        for path in KEPT {
            object::carry(attempt.new, &mut changed, path);
        }
        Ok(changed)
    }
}

/// What policies that select a write make of its object, one after the other; `None` where they leave it as it is.
pub(super) fn mutate(
    selected: &[&BoundPolicy],
    attempt: &Attempt<'_>,
    shape: Shape<'_>,
) -> Result<Option<Value>, Refusal> {
    let mut object = attempt.new.clone();
    for &bound in selected {
        let asked = Attempt { new: &object, ..*attempt };
        match bound.mutated(&asked, shape) {
            Ok(changed) => object = changed,
            Err(_) if bound.policy.lenient => {}
            Err(message) => {
                return Err(Objection { message, reason: RefusalReason::Invalid, bound }.refusal(attempt));
            }
        }
    }
    Ok((object != *attempt.new).then_some(object))
}

impl BoundPolicy {
    fn mutated(&self, attempt: &Attempt<'_>, shape: Shape<'_>) -> Result<Value, String> {
        let mut object = attempt.new.clone();
        for condition in &self.policy.conditions {
            if !condition.holds(&attempt.scope())? {
                return Ok(object);
            }
        }
        for mutation in &self.policy.mutations {
            object = mutation.changed(&Attempt { new: &object, ..*attempt }, self, shape)?;
        }
        Ok(object)
    }
}
