//! Warnings: a write is done, and its answer says what to mind.

use k8s_openapi::api::admissionregistration::v1::{
    MatchCondition, ValidatingAdmissionPolicy, ValidatingAdmissionPolicySpec, Validation,
};
use kube::core::ObjectMeta;

use super::{Admission, binding, constraints};
use crate::GROUP;

/// Whether a Target that is being deleted is written, and not let go of: an apply that ends well, and does not bring it back.
const WRITTEN_UNDER_DELETION: &str = "has(object.metadata.deletionTimestamp) && (has(object.metadata.finalizers) ? object.metadata.finalizers : []) == \
     (has(oldObject.metadata.finalizers) ? oldObject.metadata.finalizers : [])";

/// What the warning says (C-66).
const GOES: &str = "this Target is being deleted, and goes with what is written now as soon as nothing uses it; apply it again \
                    when it is gone";

/// The warning about a write to a Target that is being deleted (C-66).
pub(super) fn of_targets_under_deletion() -> Admission {
    let name = format!("targets.warning.{GROUP}");
    let policy = ValidatingAdmissionPolicy {
        metadata: ObjectMeta { name: Some(name.clone()), ..ObjectMeta::default() },
        spec: Some(ValidatingAdmissionPolicySpec {
            failure_policy: Some("Ignore".to_owned()),
            match_conditions: Some(vec![MatchCondition {
                name: "written-under-deletion".to_owned(),
                expression: WRITTEN_UNDER_DELETION.to_owned(),
            }]),
            match_constraints: Some(constraints("targets", &["UPDATE"])),
            validations: Some(vec![Validation {
                expression: "false".to_owned(),
                message: Some(GOES.to_owned()),
                ..Validation::default()
            }]),
            ..ValidatingAdmissionPolicySpec::default()
        }),
        status: None,
    };
    Admission { policy, binding: binding(name, "Warn") }
}
