//! What is known of the writes of a job goes when it has ended (C-362).

use std::sync::Arc;

use orangery_api::{deploy_item::DeployItem, job::Job as _, label, marks::Marks as _};
use orangery_reconcile::{Key, Queue};

use crate::controller_context::ControllerContext;

/// What is known of a job goes with it: with that of its root, of an Execution that has no Installation, and of an item that has no
/// Execution. Items are called in this queue.
pub(crate) fn forget_ended(host: &Arc<ControllerContext>, queue: Queue) {
    host.job_writes.call_in(queue);
    let weak = Arc::downgrade(host);
    host.stores.installations.subscribe(move |change| {
        let Some(of) = change.after.or(change.before).filter(|of| of.is_root()) else { return };
        if change.after.is_none_or(|after| after.job_finished())
            && let Some(host) = weak.upgrade()
        {
            host.job_writes.forget(&(Key::of(of.as_ref()).namespace, of.job_id().clone()));
        }
    });
    let weak = Arc::downgrade(host);
    host.stores.executions.subscribe(move |change| {
        let Some(of) = change.after.or(change.before) else { return };
        let Some(host) = weak.upgrade() else { return };
        let key = Key::of(of.as_ref());
        let is_alone = host.stores.installations.get(&key).is_none();
        if is_alone && change.after.is_none_or(|after| after.job_finished()) {
            host.job_writes.forget(&(key.namespace, of.job_id().clone()));
        }
    });
    let weak = Arc::downgrade(host);
    host.stores.deploy_items.subscribe(move |change| {
        let is_alone = |of: &&Arc<DeployItem>| of.label(label::MANAGED_BY).is_none();
        let Some(of) = change.after.or(change.before).filter(is_alone) else { return };
        if change.after.is_none_or(|after| after.job_finished())
            && let Some(host) = weak.upgrade()
        {
            host.job_writes.forget(&(Key::of(of.as_ref()).namespace, of.job_id().clone()));
        }
    });
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{controller_context::tests::host, job_writes::TreeJob};

    #[tokio::test]
    async fn c_362_what_is_known_of_a_job_goes_when_it_has_ended_at_its_root() {
        let host = host();
        let of = Key::new("n", "item");
        forget_ended(&host, Queue::default());
        let status = |finished: &str| json!({"jobID": "j", "jobIDFinished": finished});
        let metadata = |name: &str| json!({"name": name, "namespace": "n", "uid": name, "resourceVersion": "1"});
        let job: TreeJob = ("n".into(), "j".into());
        let is_known = || host.job_writes.knows(&job, &of);
        let installation = |name: &str, owner: Option<&str>, finished: &str| {
            let mut metadata = metadata(name);
            metadata["resourceVersion"] = json!(if finished.is_empty() { "1" } else { "2" });
            if let Some(owner) = owner {
                metadata["ownerReferences"] = json!([{"apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "Installation",
                    "name": owner, "uid": owner, "controller": true}]);
                metadata["labels"] = json!({(label::ENCOMPASSED_BY): owner});
            }
            let object = json!({"metadata": metadata, "spec": {"blueprint": {}}, "status": status(finished)});
            drop(host.stores.installations.upsert(serde_json::from_value(object).unwrap()));
        };
        let execution = |name: &str| {
            let object = json!({"metadata": metadata(name), "spec": {}, "status": status("j")});
            drop(host.stores.executions.upsert(serde_json::from_value(object).unwrap()));
        };
        let item = |name: &str, labels: Value| {
            let mut metadata = metadata(name);
            metadata["labels"] = labels;
            let object = json!({"metadata": metadata, "spec": {"type": "t"}, "status": status("j")});
            drop(host.stores.deploy_items.upsert(serde_json::from_value(object).unwrap()));
        };
        installation("web", None, "");
        host.job_writes.note(&job, &of, None);
        installation("below", Some("web"), "j");
        execution("web");
        item("item", json!({(label::MANAGED_BY): "web"}));
        assert!(is_known(), "the root is under way");
        installation("web", None, "j");
        assert!(!is_known());
        host.job_writes.note(&job, &of, None);
        execution("alone");
        assert!(!is_known());
        host.job_writes.note(&job, &of, None);
        item("alone", json!({}));
        assert!(!is_known());
    }
}
