//! Rules over what a deploy item is about to write (C-318): expressions of administrators, each of which has to hold.

use orangery_expression::Expression;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    exemption::ApprovalExemption,
    named_expression::{NamedExpression, fault},
};

/// The most rules of a policy.
const MOST_RULES: usize = 64;

/// The variables of an expression.
const VARIABLES: [&str; 3] = ["objects", "counts", "item"];

/// Rules over what deploy items are about to write.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PlanRules {
    /// Each has to hold. Of several policies those of all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub rules: Option<Vec<PlanRule>>,
    /// Whether somebody else has to approve a Plan than has changed the Installation at the root, as its annotation
    /// `orangery.dev/changed-by` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub require_other_approver: Option<bool>,
    /// Writes that need no approval, where one is required otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub without_approval: Option<Vec<ApprovalExemption>>,
}

/// A rule over what a deploy item is about to write.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PlanRule {
    /// What it is called in messages.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// What has to hold, in CEL: over `objects`, `counts` and `item`.
    #[schemars(length(min = 1, max = 16384))]
    pub expression: String,
    /// What it means that it does not hold. Without one the expression is told.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 1024))]
    pub message: String,
    /// What becomes of the item then.
    #[serde(default)]
    pub action: RuleAction,
}

/// What becomes of a deploy item where a rule does not hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RuleAction {
    /// It fails before it writes anything.
    #[default]
    Deny,
    /// It goes on, and an event says so.
    Warn,
}

/// A rule that does not hold, or of which nobody can tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenRule {
    /// Whether the item fails.
    pub denies: bool,
    /// A sentence without values of objects: which rule, and what it means.
    pub message: String,
}

impl PlanRules {
    /// What is wrong with them.
    pub(crate) fn fault(&self) -> Option<String> {
        let rules = self.rules.as_deref().unwrap_or_default().iter();
        let rules = rules.map(|PlanRule { name, expression, .. }| NamedExpression { name, expression });
        fault("spec.plans.rules", MOST_RULES, rules, &VARIABLES)
            .or_else(|| ApprovalExemption::fault_of(self.without_approval.as_deref().unwrap_or_default()))
    }
}

impl PlanRule {
    /// The rule where it does not hold of these variables, or where nobody can tell: that denies.
    pub(crate) fn broken(&self, of: &str, variables: &Map<String, Value>) -> Option<BrokenRule> {
        let Self { name, expression, message, action } = self;
        let told = |what: &str| format!("rule {name} of {of}, line spec.plans.rules: {what}");
        match Expression::compile(expression).and_then(|expression| expression.holds_of(variables)) {
            Ok(true) => None,
            Ok(false) => {
                let what = if message.is_empty() { format!("{expression:?} does not hold") } else { message.clone() };
                Some(BrokenRule { denies: *action == RuleAction::Deny, message: told(&what) })
            }
            Err(why) => Some(BrokenRule { denies: true, message: told(&format!("it cannot be evaluated: {why}")) }),
        }
    }
}
