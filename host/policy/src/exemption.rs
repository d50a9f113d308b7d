//! Writes that nobody has to look at, where an approval is required otherwise (C-370).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::named_expression::{NamedExpression, fault};

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
        let entries =
            exemptions.iter().map(|Self { name, expression }| NamedExpression { name, expression: Some(expression) });
        fault("spec.plans.withoutApproval", MOST_EXEMPTIONS, entries, &VARIABLES)
    }
}
