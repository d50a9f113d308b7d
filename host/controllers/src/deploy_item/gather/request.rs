//! What a component is called with, and what it may ask then.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use orangery_api::{deploy_item::DeployItem, job::Job as _, label, marks::Marks as _};
use orangery_cluster::ClusterSet;
use orangery_proposal::{
    Item,
    deployer::Reads,
    item::{NextCall, seed},
};
use orangery_reconcile::Key;
use serde_json::Value;

use super::resources::ItemResources;
use crate::{artifacts::ContextArtifacts, controller_context::ControllerContext, seed::HostKey, stores::Stores};
use orangery_core::name::JobId;

/// The Context of an item that names none.
const USUAL_CONTEXT: &str = "default";

/// The job that a component is called for.
pub(in crate::deploy_item) struct ItemJob {
    /// Its id.
    pub(in crate::deploy_item) id: JobId,
    /// When it began.
    pub(in crate::deploy_item) begun: Timestamp,
    /// How long it may take; `None` for ever.
    pub(in crate::deploy_item) limit: Option<Duration>,
}

/// The Context of an item.
pub(in crate::deploy_item) fn context(of: &DeployItem) -> Key {
    let named = &of.spec.context;
    let name = if named.is_empty() { USUAL_CONTEXT.to_owned() } else { named.clone() };
    Key { name: name.into(), ..Key::of(of) }
}

/// The item as the component sees it; `status` is what the component keeps there.
pub(super) fn item(of: &DeployItem, job: &ItemJob, call: NextCall, status: Option<&Value>, key: &HostKey) -> Item {
    let Key { namespace, name } = Key::of(of);
    let uid = of.uid().unwrap_or_default();
    let spec = &of.spec;
    Item {
        namespace,
        name,
        seed: seed(&uid, &job.id),
        secret: key.of_item(&uid, &job.id),
        uid,
        item_type: spec.type_.clone(),
        generation: of.metadata.generation.and_then(|number| u64::try_from(number).ok()).unwrap_or(0),
        context: context(of).name.into(),
        target: spec.target.as_ref().map(|target| target.name.clone()).map(String::from),
        job: job.id.clone(),
        config: spec.config.clone().unwrap_or(Value::Null),
        annotations: of.metadata.annotations.clone().unwrap_or_default(),
        // Of the registration, which the component's own side knows.
        configuration: None,
        status: status.cloned(),
        checkpoint: call.checkpoint,
        failed: call.failed,
        now: job.begun.to_string(),
        timeout: job.limit.and_then(|limit| u64::try_from(limit.as_millis()).ok()).unwrap_or(u64::MAX),
    }
}

/// When a job was handed down to the Execution of an item, which is the same before it is the turn of the item; else to the item.
pub(super) fn handed_down(stores: &Stores, item: &DeployItem, job: &JobId) -> Option<Time> {
    let of_execution = || {
        let key = Key { name: item.label(label::MANAGED_BY)?.into(), ..Key::of(item) };
        let execution = stores.executions.get(&key).filter(|of| of.job_id() == job)?;
        execution.status.as_ref()?.transition_times.as_ref()?.trigger_time.clone()
    };
    of_execution().or_else(|| item.status.as_ref()?.job_id_generation_time.clone())
}

/// What the component may ask, as far as it is granted.
pub(super) fn reads(host: &Arc<ControllerContext>, of: &Arc<DeployItem>, clusters: &Arc<ClusterSet>) -> Reads {
    Reads {
        clusters: Arc::<ClusterSet>::clone(clusters),
        artifacts: Arc::new(ContextArtifacts::of_item(host, context(of), &of.spec.type_)),
        resources: Arc::new(ItemResources::new(host, of, context(of))),
    }
}

#[cfg(test)]
mod tests {
    use orangery_api::execution::Execution;
    use serde_json::json;

    use super::*;
    use crate::stores;

    /// A component that is asked ahead of its turn is told the same time as at its turn, or its answer would be another one.
    #[test]
    fn c_366_an_item_is_told_when_its_execution_got_the_job_and_without_one_when_it_got_it_itself() {
        let stores = stores();
        let (early, late) = ("2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z");
        let execution = json!({"metadata": {"name": "web", "namespace": "n", "uid": "u", "resourceVersion": "1"}, "spec": {},
            "status": {"jobID": "two", "transitionTimes": {"triggerTime": early}}});
        drop(stores.executions.upsert(serde_json::from_value::<Execution>(execution).unwrap()));
        let item = |labels: Value| -> DeployItem {
            let metadata = json!({"name": "item", "namespace": "n", "labels": labels});
            let status = json!({"jobID": "two", "jobIDGenerationTime": late});
            serde_json::from_value(json!({"metadata": metadata, "spec": {"type": "t"}, "status": status})).unwrap()
        };
        let told =
            |item: &DeployItem, job: &str| handed_down(&stores, item, &job.into()).map(|time| time.0.to_string());
        let of_web = item(json!({(label::MANAGED_BY): "web"}));
        assert_eq!(told(&of_web, "two").as_deref(), Some(early));
        assert_eq!(told(&of_web, "one").as_deref(), Some(late), "its Execution has another job");
        assert_eq!(told(&item(json!({(label::MANAGED_BY): "gone"})), "two").as_deref(), Some(late));
        assert_eq!(told(&item(json!({})), "two").as_deref(), Some(late), "nobody has it");
        assert_eq!(told(&DeployItem::default(), "two"), None);
    }
}
