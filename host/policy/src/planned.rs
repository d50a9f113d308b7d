//! The rules of policies over what deploy items are about to write (C-318).

use serde_json::{Map, Value};

use crate::{
    effective::EffectivePolicy,
    plan_rule::{BrokenRule, PlanRule},
    read::PolicyOrigin,
};

impl EffectivePolicy {
    /// Whether there are rules over what deploy items are about to write.
    pub fn has_plan_rules(&self) -> bool {
        self.plan_rules().next().is_some()
    }

    /// The rules that do not hold of what a deploy item is about to write: `objects`, `counts` and `item`.
    pub fn broken_plan_rules(&self, variables: &Map<String, Value>) -> Vec<BrokenRule> {
        self.plan_rules().filter_map(|(of, rule)| rule.broken(&of.to_string(), variables)).collect()
    }

    /// A policy that cannot be used refuses everything by itself.
    fn plan_rules(&self) -> impl Iterator<Item = (&PolicyOrigin, &PlanRule)> {
        let lines = self.policies().filter_map(|policy| Some((policy.origin(), policy.lines().ok()?)));
        lines.flat_map(|(of, lines)| lines.plans.rules.iter().flatten().map(move |rule| (of, rule)))
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
        let broken = policy.broken_plan_rules(&variables);
        broken.into_iter().map(|rule| (rule.denies, rule.message)).collect()
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
}
