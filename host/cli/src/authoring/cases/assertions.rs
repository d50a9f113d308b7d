//! What a case asserts of an answer beside the whole of it: expressions in CEL.

use orangery_expression::{Expression, Type};
use serde::Deserialize;
use serde_json::{Map, Value};

/// The file of a case's assertions: a list of `{assert, message}`.
pub(super) const FILE: &str = "assertions.yaml";

/// What is to hold.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Assertion {
    /// An expression over the answer.
    assert: String,
    /// What it means that it does not hold.
    #[serde(default)]
    message: Option<String>,
}

impl Assertion {
    /// A sentence where it does not hold of these variables, or where that cannot be told.
    pub(crate) fn problem(&self, variables: &Map<String, Value>) -> Option<String> {
        let Self { assert, message } = self;
        let known: Vec<(&str, Type)> = variables.keys().map(|name| (name.as_str(), Type::Any)).collect();
        let held = Expression::compile(assert).and_then(|expression| {
            expression.check(&known)?;
            expression.holds_of(variables)
        });
        match (held, message) {
            (Ok(true), _) => None,
            (Ok(false), Some(message)) => Some(format!("{message}: `{assert}` does not hold")),
            (Ok(false), None) => Some(format!("`{assert}` does not hold")),
            (Err(why), _) => Some(format!("`{assert}` cannot be told: {why}")),
        }
    }
}

/// The assertions of a file's documents that do not hold of these variables, a sentence each.
///
/// # Errors
/// One sentence about a file that is no list of assertions.
pub(super) fn check(documents: Vec<Value>, variables: Value) -> Result<Vec<String>, String> {
    let Value::Object(variables) = variables else { return Ok(Vec::new()) };
    let mut problems = Vec::new();
    for document in documents {
        let assertions: Vec<Assertion> = serde_json::from_value(document)
            .map_err(|error| format!("{FILE} is no list of {{assert, message}}: {error}"))?;
        problems.extend(assertions.iter().filter_map(|assertion| assertion.problem(&variables)));
    }
    Ok(problems)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn c_254_an_assertion_holds_of_the_answer_or_is_named() {
        let variables = json!({"proposal": {"stages": [{"name": "a"}]}, "objects": []});
        let of = |assertions: Value| check(vec![assertions], variables.clone());
        assert_eq!(of(json!([{"assert": "proposal.stages[0].name == 'a' && size(objects) == 0"}])), Ok(vec![]));
        let problems = of(json!([
            {"assert": "size(proposal.stages) == 2", "message": "a stage for each part"},
            {"assert": "size(objects) > 0"},
            {"assert": "proposal.steps == 1"},
        ]));
        let expected = [
            "a stage for each part: `size(proposal.stages) == 2` does not hold",
            "`size(objects) > 0` does not hold",
            "`proposal.steps == 1` cannot be told: no such key: steps",
        ];
        assert_eq!(problems.unwrap(), expected);
        assert!(of(json!({"assert": "true"})).unwrap_err().starts_with("assertions.yaml is no list of"));
    }
}
