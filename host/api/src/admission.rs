//! What is refused at admission: the rules of the original's validating webhooks (`docs/wire.md` §3.8) as policies that
//! the API server itself carries out (Kubernetes 1.30 and later).
//!
//! Policies and not rules in the definitions: a policy sees labels, so that one can skip the validation; it is not held
//! against what it may cost at most, so that no list needs a bound that the original did not have; and what lies in a
//! cluster already stays writable, since a rule looks only at parts that a write changes. What CEL cannot say, such as
//! cycles of three items and more and the form of a cron expression, is found by the controllers and stands in the status;
//! so is what would take it too long, as two items of hundreds that depend on each other.

mod rules;
mod warning;

use k8s_openapi::{
    api::admissionregistration::v1::{
        MatchCondition, MatchResources, NamedRuleWithOperations, ValidatingAdmissionPolicy,
        ValidatingAdmissionPolicyBinding, ValidatingAdmissionPolicyBindingSpec, ValidatingAdmissionPolicySpec,
        Validation, Variable,
    },
    apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement},
};
use kube::core::ObjectMeta;

use self::rules::{AdmissionRule, KINDS, KindRules};
use crate::{GROUP, VERSION, label};

/// A policy, and the binding that puts it into force for the whole cluster. Both have the same name.
#[derive(Clone, Debug, PartialEq)]
pub struct Admission {
    /// The rules of one kind.
    pub policy: ValidatingAdmissionPolicy,
    /// Where they hold.
    pub binding: ValidatingAdmissionPolicyBinding,
}

/// The policies of all kinds that have rules, and those that warn, each list sorted by name.
pub fn admission() -> Vec<Admission> {
    let rules = KINDS.iter().map(|kind| Admission { policy: policy(kind), binding: binding(name(kind), "Deny") });
    rules.chain(warning::warnings()).collect()
}

fn name(kind: &KindRules) -> String {
    format!("{}.validation.{GROUP}", kind.plural)
}

fn policy(kind: &KindRules) -> ValidatingAdmissionPolicy {
    let own = kind.variables.iter().map(|(name, expression)| variable(name, (*expression).to_owned()));
    let broken = kind.rules.iter().map(|rule| variable(rule.name, rule.breakers.to_owned()));
    ValidatingAdmissionPolicy {
        metadata: ObjectMeta { name: Some(name(kind)), ..ObjectMeta::default() },
        spec: Some(ValidatingAdmissionPolicySpec {
            failure_policy: Some("Fail".to_owned()),
            match_conditions: Some(vec![MatchCondition {
                name: "spec-changes".to_owned(),
                expression: "request.operation == 'CREATE' || object.spec != oldObject.spec".to_owned(),
            }]),
            match_constraints: Some(constraints(kind.plural, &["CREATE", "UPDATE"])),
            variables: Some(own.chain(broken).collect()),
            validations: Some(kind.rules.iter().map(validation).collect()),
            ..ValidatingAdmissionPolicySpec::default()
        }),
        status: None,
    }
}

fn variable(name: &str, expression: String) -> Variable {
    Variable { name: name.to_owned(), expression }
}

/// A rule holds when nothing breaks it; its sentence names what does.
fn validation(rule: &AdmissionRule) -> Validation {
    let (before, after) = rule.sentence;
    Validation {
        expression: format!("size(variables.{}) == 0", rule.name),
        message: Some(format!("{before}…{after}")),
        message_expression: Some(format!("\"{before}\" + variables.{}.join(\", \") + \"{after}\"", rule.name)),
        reason: Some("Invalid".to_owned()),
    }
}

fn constraints(plural: &str, operations: &[&str]) -> MatchResources {
    let texts = |texts: &[&str]| Some(texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>());
    MatchResources {
        match_policy: Some("Equivalent".to_owned()),
        namespace_selector: Some(LabelSelector::default()),
        object_selector: Some(LabelSelector {
            match_expressions: Some(vec![LabelSelectorRequirement {
                key: label::SKIP_VALIDATION.to_owned(),
                operator: "NotIn".to_owned(),
                values: texts(&["true"]),
            }]),
            match_labels: None,
        }),
        resource_rules: Some(vec![NamedRuleWithOperations {
            api_groups: texts(&[GROUP]),
            api_versions: texts(&[VERSION]),
            operations: texts(operations),
            resources: texts(&[plural]),
            scope: Some("*".to_owned()),
            resource_names: None,
        }]),
        exclude_resource_rules: None,
    }
}

fn binding(policy: String, action: &str) -> ValidatingAdmissionPolicyBinding {
    ValidatingAdmissionPolicyBinding {
        metadata: ObjectMeta { name: Some(policy.clone()), ..ObjectMeta::default() },
        spec: Some(ValidatingAdmissionPolicyBindingSpec {
            policy_name: Some(policy),
            validation_actions: Some(vec![action.to_owned()]),
            ..ValidatingAdmissionPolicyBindingSpec::default()
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_that_the_original_validates_has_a_policy_of_the_webhooks_name_and_three_warn() {
        let names: Vec<_> = admission().into_iter().filter_map(|admission| admission.policy.metadata.name).collect();
        assert_eq!(
            names,
            [
                "deployitems.validation.landscaper.gardener.cloud",
                "executions.validation.landscaper.gardener.cloud",
                "installations.validation.landscaper.gardener.cloud",
                "targets.validation.landscaper.gardener.cloud",
                "deployitems.warning.landscaper.gardener.cloud",
                "in-use.warning.landscaper.gardener.cloud",
                "targets.warning.landscaper.gardener.cloud",
            ]
        );
    }

    /// A sentence with a quotation mark or a line break would be no expression, and none for a cluster.
    #[test]
    fn every_sentence_can_stand_in_an_expression() {
        for rule in KINDS.iter().flat_map(|kind| kind.rules) {
            let (before, after) = rule.sentence;
            assert!(![before, after].iter().any(|text| text.contains(['"', '\\', '\n'])), "{}", rule.name);
            assert!(before.starts_with("spec") || before.starts_with("metadata"), "{}", rule.name);
            assert!(after.contains("; "), "{} does not say how to mend it", rule.name);
        }
    }

    #[test]
    fn a_rule_has_a_name_of_its_own() {
        for kind in KINDS {
            let mut names: Vec<&str> = kind.rules.iter().map(|rule| rule.name).collect();
            names.extend(kind.variables.iter().map(|(name, _)| *name));
            let all = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), all, "{}", kind.plural);
        }
    }
}
