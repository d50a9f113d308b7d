//! The rules of policies over what is about to be written (C-318, C-362).

use orangery_expression::Expression;
use serde_json::{Map, Value};

use crate::{
    effective::EffectivePolicy,
    plan_rule::{BrokenRule, PlanRule, RuleAction, RuleComponent, RuleScope},
    read::PolicyOrigin,
};

/// A rule, with the policy that has it.
#[derive(Clone, Copy, Debug)]
pub struct ScopedRule<'p> {
    of: &'p PolicyOrigin,
    scope: RuleScope,
    rule: &'p PlanRule,
}

impl EffectivePolicy {
    /// Whether there are rules over what an item, or a job, is about to write.
    pub fn has_plan_rules(&self, scope: RuleScope) -> bool {
        self.plan_rules(scope).next().is_some()
    }

    /// Each has to hold. A policy that cannot be used refuses everything by itself.
    pub fn plan_rules(&self, scope: RuleScope) -> impl Iterator<Item = ScopedRule<'_>> {
        let lines = self.policies().filter_map(|policy| Some((policy.origin(), policy.lines().ok()?)));
        lines.flat_map(move |(of, lines)| lines.plans.of(scope).iter().map(move |rule| ScopedRule { of, scope, rule }))
    }
}

impl ScopedRule<'_> {
    /// The component that says whether it holds; `None` where an expression does.
    pub fn component(&self) -> Option<&RuleComponent> {
        self.rule.component.as_ref()
    }

    /// The rule where its expression does not hold of these variables, or where nobody can tell: that denies.
    pub fn evaluate(&self, variables: &Map<String, Value>) -> Option<BrokenRule> {
        let expression = &self.rule.expression;
        let held = Expression::compile(expression).and_then(|expression| expression.holds_of(variables));
        self.broken(held, || format!("{expression:?} does not hold"))
    }

    /// The rule where a component said that it does not hold, or where nobody can tell: that denies. `why` is what the component said.
    pub fn answered(&self, held: Result<bool, String>, why: &str) -> Option<BrokenRule> {
        let type_ = self.component().map_or("", |component| component.type_.as_str());
        self.broken(held, || if why.is_empty() { format!("{type_} says no") } else { why.to_owned() })
    }

    fn broken(&self, held: Result<bool, String>, otherwise: impl FnOnce() -> String) -> Option<BrokenRule> {
        let PlanRule { name, message, action, .. } = self.rule;
        let told = |what: &str| format!("rule {name} of {}, line {}: {what}", self.of, self.scope.line());
        match held {
            Ok(true) => None,
            Ok(false) => {
                let what = if message.is_empty() { otherwise() } else { message.clone() };
                Some(BrokenRule { denies: *action == RuleAction::Deny, message: told(&what) })
            }
            Err(why) => Some(BrokenRule { denies: true, message: told(&format!("it cannot be evaluated: {why}")) }),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;
    use crate::{Policy, PolicySet, Profile};

    fn policy(name: &str, rules: Value) -> Policy {
        Policy::read(name, &json!({"namespaces": {"names": ["a"]}, "plans": {"rules": rules}}))
    }

    fn broken(policies: impl IntoIterator<Item = Policy>, variables: Value) -> Vec<(bool, String)> {
        let Value::Object(variables) = variables else { unreachable!() };
        let policy = PolicySet::new(Profile::Compatible, policies).of(&"a".into(), &BTreeMap::new());
        let broken = policy.plan_rules(RuleScope::Item).filter_map(|rule| rule.evaluate(&variables));
        broken.map(|rule| (rule.denies, rule.message)).collect()
    }

    #[test]
    fn c_318_every_rule_of_every_policy_has_to_hold_and_what_cannot_be_told_denies() {
        let claims = json!({"name": "claims", "message": "volumes stay",
            "expression": "!objects.exists(o, o.kind == 'PersistentVolumeClaim' && o.action == 'delete')"});
        let few = json!({"name": "few", "expression": "counts.delete <= 1", "action": "Warn"});
        let odd = json!({"name": "odd", "expression": "objects.all(o, o.missing == 1)", "action": "Warn"});
        let policies = || [policy("one", json!([claims, few])), policy("two", json!([odd]))];
        let variables = |kinds: &[&str]| {
            let object = |kind: &&str| json!({"kind": kind, "action": "delete"});
            json!({"objects": kinds.iter().map(object).collect::<Vec<_>>(), "counts": {"delete": kinds.len()}, "item": {}})
        };
        assert_eq!(broken(policies(), variables(&[])), []);
        let secret = variables(&["PersistentVolumeClaim", "Secret"]);
        let told = |name: &str, of: &str, what: &str| {
            format!("rule {name} of NamespacePolicy {of}, line spec.plans.rules: {what}")
        };
        assert_eq!(
            broken(policies(), secret),
            [
                (true, told("claims", "one", "volumes stay")),
                (false, told("few", "one", "\"counts.delete <= 1\" does not hold")),
                (true, told("odd", "two", "it cannot be evaluated: no such key: missing")),
            ]
        );
    }

    #[test]
    fn c_318_a_policy_with_a_rule_that_can_never_be_used_cannot_be_used_itself() {
        let fault = |rules: Value| policy("p", rules).lines().map(drop).map_err(str::to_owned);
        assert_eq!(fault(json!([{"name": "a", "expression": "size(objects) < 3"}])), Ok(()));
        let unknown = fault(json!([{"name": "a", "expression": "request.x"}])).unwrap_err();
        assert!(unknown.starts_with("spec.plans.rules[0] (a) has an expression that cannot be used: "), "{unknown}");
        assert_eq!(
            fault(json!([{"name": "", "expression": "true"}])),
            Err("spec.plans.rules[0] has no name; give it one".to_owned())
        );
    }

    #[test]
    fn c_318_limits_policy_rules_over_plans_have_a_number() {
        let rules = |number: usize| json!(vec![json!({"name": "a", "expression": "true"}); number]);
        let fault = |number| policy("p", rules(number)).lines().map(drop).map_err(str::to_owned);
        assert_eq!(fault(64), Ok(()));
        assert_eq!(fault(65), Err("spec.plans.rules has 65 entries; it may have 64".to_owned()));
    }

    #[test]
    fn c_362_rules_over_jobs_are_no_rules_over_items_and_have_variables_of_their_own() {
        let of = |plans: Value| Policy::read("p", &json!({"namespaces": {"names": ["a"]}, "plans": plans}));
        let few =
            json!({"name": "few", "expression": "counts.delete <= 50 && size(items) < 9 && job.installation != ''"});
        let policy = of(json!({"jobRules": [few]}));
        let policy = PolicySet::new(Profile::Compatible, [policy]).of(&"a".into(), &BTreeMap::new());
        assert!(policy.has_plan_rules(RuleScope::Job) && !policy.has_plan_rules(RuleScope::Item));
        let variables = |deleted: usize| {
            let variables =
                json!({"objects": [], "counts": {"delete": deleted}, "items": [], "job": {"installation": "web"}});
            let Value::Object(variables) = variables else { unreachable!() };
            variables
        };
        let broken = |deleted| policy.plan_rules(RuleScope::Job).find_map(|rule| rule.evaluate(&variables(deleted)));
        assert_eq!(broken(50), None);
        let message = "rule few of NamespacePolicy p, line spec.plans.jobRules: \"counts.delete <= 50 && size(items) < 9 && \
                       job.installation != ''\" does not hold";
        assert_eq!(broken(51), Some(BrokenRule { denies: true, message: message.to_owned() }));
        let other = of(json!({"jobRules": [{"name": "a", "expression": "item.name == 'x'"}]}));
        let other = other.lines().map(drop).map_err(str::to_owned).unwrap_err();
        assert!(other.starts_with("spec.plans.jobRules[0] (a) has an expression that cannot be used: "), "{other}");
    }

    #[test]
    fn c_363_a_rule_has_an_expression_or_a_component_and_what_a_component_says_is_told() {
        let fault = |rule: Value| policy("p", json!([rule])).lines().map(drop).map_err(str::to_owned);
        let component = json!({"type": "example.com/freeze", "config": {"until": "monday"}});
        assert_eq!(fault(json!({"name": "a", "component": component})), Ok(()));
        let both = "spec.plans.rules[0] (a) has an expression and a component; give it one of them";
        let rule = json!({"name": "a", "component": component, "expression": "true"});
        assert_eq!(fault(rule), Err(both.to_owned()));
        let untyped = "spec.plans.rules[0] (a) has a component without a type; name the gate type that it serves";
        assert_eq!(fault(json!({"name": "a", "component": {"type": ""}})), Err(untyped.to_owned()));
        assert!(fault(json!({"name": "a"})).is_err(), "it has neither");

        let said = |message: &str, action: &str, held: Result<bool, String>, why: &str| {
            let rule = json!({"name": "a", "component": component, "message": message, "action": action});
            let policies = [policy("p", json!([rule]))];
            let policy = PolicySet::new(Profile::Compatible, policies).of(&"a".into(), &BTreeMap::new());
            let broken = policy.plan_rules(RuleScope::Item).find_map(|rule| rule.answered(held.clone(), why));
            broken.map(|rule| (rule.denies, rule.message))
        };
        let told = |what: &str| format!("rule a of NamespacePolicy p, line spec.plans.rules: {what}");
        assert_eq!(said("", "Deny", Ok(true), "it is well"), None);
        assert_eq!(said("", "Deny", Ok(false), "it is frozen"), Some((true, told("it is frozen"))));
        assert_eq!(said("", "Warn", Ok(false), ""), Some((false, told("example.com/freeze says no"))));
        assert_eq!(said("later", "Deny", Ok(false), "it is frozen"), Some((true, told("later"))));
        let failed = Some((true, told("it cannot be evaluated: it trapped")));
        assert_eq!(said("later", "Warn", Err("it trapped".to_owned()), ""), failed);
    }
}
