//! Which writes need no approval by all policies of a namespace (C-370).

use orangery_expression::Expression;
use serde_json::{Map, Value};

use crate::{effective::EffectivePolicy, exemption::ApprovalExemption, spec::Approval};

/// The exemptions of all policies of a namespace.
#[derive(Default)]
pub struct ApprovalExemptions {
    /// Those of each policy that has to agree.
    each: Vec<Vec<Expression>>,
}

impl ApprovalExemptions {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.each.iter().all(Vec::is_empty)
    }

    /// Whether a write needs no approval: `object` and `item`. What cannot be told of needs one.
    pub fn cover(&self, variables: &Map<String, Value>) -> bool {
        let covers = |of: &Vec<Expression>| of.iter().any(|expression| expression.holds_of(variables) == Ok(true));
        !self.each.is_empty() && self.each.iter().all(covers)
    }
}

impl EffectivePolicy {
    /// Which writes need no approval. Where policies require approvals, each of them has to say so; where an Installation alone does, one
    /// policy is enough.
    pub fn approval_exemptions(&self) -> ApprovalExemptions {
        let lines: Result<Vec<_>, _> = self.policies().map(|policy| policy.lines()).collect();
        // A policy that cannot be used exempts nothing.
        let Ok(lines) = lines else { return ApprovalExemptions::default() };
        let compiled = |of: &[ApprovalExemption]| -> Vec<Expression> {
            of.iter().filter_map(|exemption| Expression::compile(&exemption.expression).ok()).collect()
        };
        let of = |requires: bool| {
            let asked = lines.iter().filter(move |lines| (lines.approval == Some(Approval::Required)) == requires);
            asked.map(|lines| compiled(lines.plans.without_approval.as_deref().unwrap_or_default()))
        };
        let mut each: Vec<Vec<Expression>> = of(true).collect();
        if each.is_empty() {
            each.push(of(false).flatten().collect());
        }
        ApprovalExemptions { each }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;
    use crate::{Policy, PolicySet, Profile};

    fn policy(name: &str, approval: &str, exemptions: Value) -> Policy {
        let plans = json!({"withoutApproval": exemptions});
        Policy::read(name, &json!({"namespaces": {"names": ["a"]}, "approval": approval, "plans": plans}))
    }

    fn covers(policies: &[(&str, &str)], kind: &str) -> bool {
        let of_kind = |kind: &str| json!([{"name": "n", "expression": format!("object.kind == '{kind}'")}]);
        let policies = policies.iter().enumerate().map(|(number, (approval, kind))| {
            policy(&format!("p{number}"), approval, if kind.is_empty() { json!([]) } else { of_kind(kind) })
        });
        let policy = PolicySet::new(Profile::Compatible, policies).of(&"a".into(), &BTreeMap::new());
        let Value::Object(variables) = json!({"object": {"kind": kind}, "item": {}}) else { unreachable!() };
        policy.approval_exemptions().cover(&variables)
    }

    #[test]
    fn c_370_each_policy_that_requires_approvals_has_to_exempt_a_write_and_one_where_none_does() {
        assert!(covers(&[("Required", "ConfigMap")], "ConfigMap"));
        assert!(!covers(&[("Required", "ConfigMap")], "Secret"));
        assert!(covers(&[("Required", "ConfigMap"), ("Required", "ConfigMap")], "ConfigMap"));
        assert!(!covers(&[("Required", "ConfigMap"), ("Required", "")], "ConfigMap"), "one says nothing");
        assert!(!covers(&[("Required", ""), ("None", "ConfigMap")], "ConfigMap"), "the one that requires it does not");
        assert!(covers(&[("None", ""), ("None", "ConfigMap")], "ConfigMap"), "the Installation requires it");
        assert!(!covers(&[], "ConfigMap"));
    }

    #[test]
    fn c_370_what_cannot_be_told_of_needs_an_approval() {
        let odd = policy("odd", "Required", json!([{"name": "n", "expression": "object.missing == 1"}]));
        let of =
            |policies: Vec<Policy>| PolicySet::new(Profile::Compatible, policies).of(&"a".into(), &BTreeMap::new());
        let Value::Object(variables) = json!({"object": {"kind": "ConfigMap"}, "item": {}}) else { unreachable!() };
        assert!(!of(vec![odd]).approval_exemptions().cover(&variables));
        let all = || policy("all", "Required", json!([{"name": "n", "expression": "true"}]));
        assert!(of(vec![all()]).approval_exemptions().cover(&variables));
        let broken = policy("broken", "None", json!([{"name": "n", "expression": "request.x"}]));
        let why = broken.lines().map(drop).map_err(str::to_owned).unwrap_err();
        assert!(why.starts_with("spec.plans.withoutApproval[0] (n) has an expression that cannot be used: "), "{why}");
        assert!(!of(vec![all(), broken]).approval_exemptions().cover(&variables), "it may have said otherwise");
        assert!(of(Vec::new()).approval_exemptions().is_empty());
    }

    #[test]
    fn c_370_limits_policy_exemptions_have_a_number_and_names() {
        let many = |number: usize| json!(vec![json!({"name": "a", "expression": "true"}); number]);
        let fault = |of: Value| policy("p", "None", of).lines().map(drop).map_err(str::to_owned);
        assert_eq!(fault(many(64)), Ok(()));
        assert_eq!(fault(many(65)), Err("spec.plans.withoutApproval has 65 entries; it may have 64".to_owned()));
        let unnamed = json!([{"name": "", "expression": "true"}]);
        assert_eq!(fault(unnamed), Err("spec.plans.withoutApproval[0] has no name; give it one".to_owned()));
    }
}
