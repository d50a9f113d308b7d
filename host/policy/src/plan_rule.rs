//! Rules over what is about to be written (C-318, C-362): expressions and components of administrators, each of which has to hold.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    exemption::ApprovalExemption,
    named_expression::{NamedExpression, fault},
};

/// The most rules of a line of a policy.
const MOST_RULES: usize = 64;

/// Rules over what is about to be written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PlanRules {
    /// Each has to hold of what a deploy item is about to write. Of several policies those of all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub rules: Option<Vec<PlanRule>>,
    /// Each has to hold of what a whole job is about to write, with all its deploy items. Of several policies those of all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub job_rules: Option<Vec<PlanRule>>,
    /// Whether somebody else has to approve a Plan than has changed the Installation at the root, as its annotation
    /// `orangery.dev/changed-by` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub require_other_approver: Option<bool>,
    /// Writes that need no approval, where one is required otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub without_approval: Option<Vec<ApprovalExemption>>,
}

/// A rule over what is about to be written: an expression, or a component.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PlanRule {
    /// What it is called in messages.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// What has to hold, in CEL: in `rules` over `objects`, `counts` and `item`, in `jobRules` over `objects`, `counts`, `items` and `job`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 16384))]
    pub expression: String,
    /// The component that says whether it holds, in place of an expression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub component: Option<RuleComponent>,
    /// What it means that it does not hold. Without one the expression is told, or what the component says.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 1024))]
    pub message: String,
    /// What becomes of the item then.
    #[serde(default)]
    pub action: RuleAction,
}

/// A component that says whether a rule holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RuleComponent {
    /// The gate type that it serves.
    #[serde(rename = "type")]
    #[schemars(length(min = 1, max = 253))]
    pub type_: String,
    /// What it is told beside what is about to be written.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    #[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
    pub config: Value,
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

/// What rules are over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleScope {
    /// What one deploy item is about to write (C-318).
    Item,
    /// What a whole job is about to write (C-362).
    Job,
}

/// A rule that does not hold, or of which nobody can tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenRule {
    /// Whether the item fails.
    pub denies: bool,
    /// A sentence without values of objects: which rule, and what it means.
    pub message: String,
}

impl RuleScope {
    /// The line of a policy that has such rules.
    pub fn line(self) -> &'static str {
        match self {
            RuleScope::Item => "spec.plans.rules",
            RuleScope::Job => "spec.plans.jobRules",
        }
    }

    /// The variables of an expression.
    fn variables(self) -> &'static [&'static str] {
        match self {
            RuleScope::Item => &["objects", "counts", "item"],
            RuleScope::Job => &["objects", "counts", "items", "job"],
        }
    }
}

impl PlanRules {
    /// What is wrong with them.
    pub(crate) fn fault(&self) -> Option<String> {
        let of = |scope| fault_of(scope, self.of(scope));
        of(RuleScope::Item)
            .or_else(|| of(RuleScope::Job))
            .or_else(|| ApprovalExemption::fault_of(self.without_approval.as_deref().unwrap_or_default()))
    }

    /// Those over one or the other.
    pub(crate) fn of(&self, scope: RuleScope) -> &[PlanRule] {
        let rules = match scope {
            RuleScope::Item => &self.rules,
            RuleScope::Job => &self.job_rules,
        };
        rules.as_deref().unwrap_or_default()
    }
}

fn fault_of(scope: RuleScope, rules: &[PlanRule]) -> Option<String> {
    let line = scope.line();
    let named = rules.iter().map(|PlanRule { name, expression, component, .. }| NamedExpression {
        name,
        expression: component.is_none().then_some(expression.as_str()),
    });
    let other = || {
        let both = |(_, rule): &(usize, &PlanRule)| rule.component.is_some() && !rule.expression.is_empty();
        let untyped = |rule: &PlanRule| rule.component.as_ref().is_some_and(|component| component.type_.is_empty());
        let mut rules = rules.iter().enumerate();
        if let Some((number, rule)) = rules.clone().find(both) {
            let name = &rule.name;
            return Some(format!("{line}[{number}] ({name}) has an expression and a component; give it one of them"));
        }
        let (number, rule) = rules.find(|(_, rule)| untyped(rule))?;
        Some(format!(
            "{line}[{number}] ({}) has a component without a type; name the gate type that it serves",
            rule.name
        ))
    };
    fault(line, MOST_RULES, named, scope.variables()).or_else(other)
}
