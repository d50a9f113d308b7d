//! Writes that nobody has to look at, where an approval is required otherwise (C-370).

use orangery_expression::{Expression, Type};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The variables of an expression.
const VARIABLES: [&str; 2] = ["object", "item"];

/// The most exemptions of a policy (C-370).
const MOST_EXEMPTIONS: usize = 64;

/// Writes that need no approval.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ApprovalExemption {
    /// What it is called in messages.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// Which writes they are, in CEL: over `object` and `item`.
    #[schemars(length(min = 1, max = 16384))]
    pub expression: String,
}

impl ApprovalExemption {
    /// What is wrong with a list of them.
    pub(crate) fn fault_of(exemptions: &[Self]) -> Option<String> {
        if exemptions.len() > MOST_EXEMPTIONS {
            let number = exemptions.len();
            return Some(format!("spec.plans.withoutApproval has {number} entries; it may have {MOST_EXEMPTIONS}"));
        }
        let faults = exemptions.iter().enumerate().filter_map(|(number, of)| Some((number, of.fault()?)));
        faults.map(|(number, why)| format!("spec.plans.withoutApproval[{number}] {why}")).next()
    }

    fn fault(&self) -> Option<String> {
        if self.name.is_empty() {
            return Some("has no name; give it one".to_owned());
        }
        let variables = VARIABLES.map(|name| (name, Type::Any));
        let checked = Expression::compile(&self.expression).and_then(|expression| expression.check(&variables));
        checked.err().map(|why| format!("({}) has an expression that cannot be used: {why}", self.name))
    }
}
