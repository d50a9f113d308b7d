//! Warnings: a request is done, and its answer says what to mind.

use k8s_openapi::{
    api::admissionregistration::v1::{
        MatchCondition, MatchResources, NamedRuleWithOperations, ValidatingAdmissionPolicy,
        ValidatingAdmissionPolicySpec, Validation,
    },
    apimachinery::pkg::apis::meta::v1::LabelSelector,
};
use kube::core::ObjectMeta;

use super::{Admission, binding, constraints};
use crate::{GROUP, VERSION, annotation::GUARD};

/// Whether a Target that is being deleted is written, and not let go of: an apply that ends well, and does not bring it back.
const WRITTEN_UNDER_DELETION: &str = "has(object.metadata.deletionTimestamp) && (has(object.metadata.finalizers) ? object.metadata.finalizers : []) == \
     (has(oldObject.metadata.finalizers) ? oldObject.metadata.finalizers : [])";

/// What the warning says (C-66).
const GOES: &str = "this Target is being deleted, and goes with what is written now as soon as nothing uses it; apply it again \
                    when it is gone";

/// Whether a write names a Target of another namespace.
const ELSEWHERE: &str = "(request.operation == 'CREATE' || object.spec != oldObject.spec) && has(object.spec.target) && \
     has(object.spec.target.namespace) && object.spec.target.namespace != '' && \
     object.spec.target.namespace != object.metadata.namespace";

/// What the warning says.
const LOOKED_UP_HERE: &str = "spec.target.namespace has no effect: the Target is looked up by its name in the namespace of the item; \
                              name that one, or make the Target there";

/// Whether what is deleted has a guard.
const IS_GUARDED: &str =
    "has(oldObject.metadata.finalizers) && oldObject.metadata.finalizers.exists(f, f == 'orangery.dev/in-use')";

/// What the warning says (C-151). A guard stays when nothing uses its object any more.
const IN_USE: (&str, &str) = (
    "it is or was in use, and stays until nothing uses it; its events say what does",
    "'this ' + request.kind.kind + ' is or was in use, and stays until nothing uses it; what does say its events: kubectl \
     describe ' + request.kind.kind.lowerAscii() + ' ' + oldObject.metadata.name",
);

/// Those of all kinds, sorted by name.
pub(super) fn warnings() -> [Admission; 3] {
    let elsewhere = ("elsewhere", ELSEWHERE);
    let under_deletion = ("written-under-deletion", WRITTEN_UNDER_DELETION);
    [
        warning("deployitems", constraints("deployitems", &["CREATE", "UPDATE"]), elsewhere, (LOOKED_UP_HERE, None)),
        warning("in-use", of_guarded(), ("guarded", IS_GUARDED), (IN_USE.0, Some(IN_USE.1))),
        warning("targets", constraints("targets", &["UPDATE"]), under_deletion, (GOES, None)),
    ]
}

/// Deletions of what can have a guard, and bears the label beside it: of all Secrets few do.
fn of_guarded() -> MatchResources {
    let texts = |texts: &[&str]| Some(texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>());
    let rule = |group: &str, version: &str, resources: &[&str]| NamedRuleWithOperations {
        api_groups: texts(&[group]),
        api_versions: texts(&[version]),
        operations: texts(&["DELETE"]),
        resources: texts(resources),
        scope: Some("*".to_owned()),
        resource_names: None,
    };
    let labels = [(GUARD.to_owned(), "true".to_owned())];
    MatchResources {
        match_policy: Some("Equivalent".to_owned()),
        namespace_selector: Some(LabelSelector::default()),
        object_selector: Some(LabelSelector { match_labels: Some(labels.into()), match_expressions: None }),
        resource_rules: Some(vec![
            rule(GROUP, VERSION, &["contexts", "targets"]),
            rule("", "v1", &["configmaps", "secrets"]),
        ]),
        exclude_resource_rules: None,
    }
}

/// A policy that warns where `condition`, a name and an expression, holds: of a sentence, and an expression for a better one.
fn warning(
    name: &str,
    constraints: MatchResources,
    condition: (&str, &str),
    (sentence, expression): (&str, Option<&str>),
) -> Admission {
    let name = format!("{name}.warning.{GROUP}");
    let policy = ValidatingAdmissionPolicy {
        metadata: ObjectMeta { name: Some(name.clone()), ..ObjectMeta::default() },
        spec: Some(ValidatingAdmissionPolicySpec {
            failure_policy: Some("Ignore".to_owned()),
            match_conditions: Some(vec![MatchCondition {
                name: condition.0.to_owned(),
                expression: condition.1.to_owned(),
            }]),
            match_constraints: Some(constraints),
            validations: Some(vec![Validation {
                expression: "false".to_owned(),
                message: Some(sentence.to_owned()),
                message_expression: expression.map(str::to_owned),
                ..Validation::default()
            }]),
            ..ValidatingAdmissionPolicySpec::default()
        }),
        status: None,
    };
    Admission { policy, binding: binding(name, "Warn") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c_151_the_guard_that_is_looked_for_is_the_one_that_is_put() {
        assert!(IS_GUARDED.contains(&format!("'{GUARD}'")));
    }
}
