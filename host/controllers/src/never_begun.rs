//! Whether a deployer has ever begun with an item (`docs/wire.md` §7.1).

use orangery_api::{
    deploy_item::{DeployItem, DeployerInformation},
    error::LastError,
    job::Job,
};
use orangery_core::plan::pick_up::PICK_UP_OPERATION;

use crate::controller_context::ControllerContext;

/// Whether no deployer has ever begun with an item, no component claims it, and no job of it is under way: nothing is there to be
/// uninstalled (C-159). What a deployer writes first stays in the status; where one begins at this very moment, either write
/// meets a conflict.
pub(crate) fn was_never_begun(host: &ControllerContext, item: &DeployItem) -> bool {
    item.job_finished() && host.deployer_of(item).is_none() && is_untouched(item)
}

/// Whether only the host has written the status.
fn is_untouched(item: &DeployItem) -> bool {
    let Some(status) = &item.status else { return true };
    let by_host = |error: &LastError| error.operation == PICK_UP_OPERATION;
    let is_of_host = status.phase.is_empty() || status.last_error.as_ref().is_some_and(by_host);
    let has_begun = status.transition_times.as_ref().is_some_and(|times| times.init_time.is_some());
    is_of_host
        && !has_begun
        && status.last_reconcile_time.is_none()
        && status.deployer == DeployerInformation::default()
        && status.provider_status.is_none()
        && status.export_ref.is_none()
}

#[cfg(test)]
mod tests {
    use orangery_core::{job::JobEnd, plan::pick_up::too_late};
    use serde_json::{Value, json};

    use super::*;

    fn is(status: Value) -> bool {
        let item = json!({"metadata": {"name": "x"}, "spec": {"type": "t"}, "status": status});
        is_untouched(&serde_json::from_value(item).unwrap())
    }

    fn failed(operation: &str) -> Value {
        let time = "2026-01-01T00:00:00Z";
        let error = json!({"operation": operation, "reason": "R", "message": "m", "lastTransitionTime": time,
            "lastUpdateTime": time});
        json!({"phase": "Failed", "jobID": "a", "jobIDFinished": "a", "lastError": error})
    }

    #[test]
    fn c_159_what_a_deployer_writes_says_that_it_has_begun() {
        let late = too_late("t", std::time::Duration::ZERO, None).operation;
        assert_eq!([is(Value::Null), is(json!({})), is(failed(&late))], [true; 3]);
        let time = "2026-01-01T00:00:00Z";
        let begun = [
            json!({"phase": "Progressing"}),
            json!({"phase": "Succeeded"}),
            failed("Deploy"),
            // What was interrupted may have been under way.
            failed(&JobEnd::Interrupted.failure(None).operation),
            json!({"lastReconcileTime": time}),
            json!({"transitionTimes": {"triggerTime": time, "initTime": time}}),
            json!({"deployer": {"name": "theirs"}}),
            json!({"providerStatus": {"managedResources": []}}),
            json!({"exportRef": {"name": "x", "namespace": "n"}}),
        ];
        let mut failed_afterwards = failed(&late);
        failed_afterwards["lastReconcileTime"] = json!(time);
        for status in begun.into_iter().chain([failed_afterwards]) {
            assert!(!is(status.clone()), "{status}");
        }
    }
}
