//! The trigger: whether a job of an item is to be worked on. A job comes from the Execution, or from the item's own
//! `operation: test-reconcile`; items of external deployers have none here.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use orangery_api::{
    FINALIZER, annotation,
    deploy_item::DeployItem,
    job::Job,
    marks::{Marks, Operation},
};
use orangery_core::{
    job::{JobIds, Situation, Work, work},
    name::JobId,
    phase::{Phase as _, item::Item as Phase},
    step::Step,
};
use orangery_proposal::deployer::Deployer;
use orangery_reconcile::NextCall;

use crate::{controller_context::ControllerContext, job::JobStatus};

pub(super) mod concurrency;
mod pick_up;
mod quota;

/// What an item is called for.
pub(super) enum ItemTrigger {
    /// Nothing: no job is under way.
    None,
    /// All is done already.
    Done(NextCall),
    /// A job is to be worked on.
    Job(TriggeredJob),
}

/// A job that is to be worked on.
pub(super) struct TriggeredJob {
    /// Its id.
    pub(super) id: JobId,
    /// Its item, with the finalizer.
    pub(super) item: Arc<DeployItem>,
    /// The component that claims the item.
    pub(super) deployer: Arc<dyn Deployer>,
}

/// What an item is called for at this time.
pub(super) async fn trigger(host: &ControllerContext, item: &Arc<DeployItem>, now: &Time) -> Step<ItemTrigger> {
    let Some(deployer) = host.plugins.deployer(&item.spec.type_) else {
        return Ok(ItemTrigger::Done(pick_up::await_deployer(host, item, now).await?));
    };
    if item.operation() == Some(Operation::TestReconcile) && item.job_finished() {
        return Ok(ItemTrigger::Done(start_test(host, item, now).await?));
    }
    let ids = JobIds::new(item.job_id(), item.job_id_finished());
    let situation = Situation {
        ids: &ids,
        root: false,
        requested: false,
        deleting: item.is_deleting(),
        in_deletion: Phase::parse(item.phase()).is_some_and(Phase::is_deletion),
    };
    Ok(match work(situation) {
        Work::None | Work::Start => ItemTrigger::None,
        Work::Continue { job } => {
            ItemTrigger::Job(TriggeredJob { id: job, item: add_finalizer(host, item).await?, deployer })
        }
    })
}

/// `operation: test-reconcile`: a job without an Execution (`docs/wire.md` §2.1).
async fn start_test(host: &ControllerContext, item: &DeployItem, now: &Time) -> Step<NextCall> {
    let writer = host.writer(&host.stores.deploy_items);
    let mut triggered = item.clone();
    let status = triggered.status.get_or_insert_default();
    let first = if item.is_deleting() { Phase::INIT_DELETE } else { Phase::INIT };
    status.trigger(&host.rng.job_id(), first, item.metadata.generation.unwrap_or(0), now);
    status.job_id_generation_time = Some(now.clone());
    // An unchanged item is processed as well: no phase of an earlier job stands for this one.
    status.phase.clear();
    let triggered = writer.update_status(item, &triggered).await.map_err(|error| error.halt("TestReconcile"))?;
    let mut plain = DeployItem::clone(&triggered);
    plain.metadata.annotations.get_or_insert_default().remove(annotation::OPERATION);
    writer.update(&triggered, &plain).await.map_err(|error| error.halt("RemoveOperation"))?;
    Ok(NextCall::Again)
}

/// The item with the finalizer that holds it until it is uninstalled.
async fn add_finalizer(host: &ControllerContext, item: &Arc<DeployItem>) -> Step<Arc<DeployItem>> {
    if item.has_finalizer(FINALIZER) || item.is_deleting() {
        return Ok(Arc::clone(item));
    }
    let mut held = DeployItem::clone(item);
    held.metadata.finalizers.get_or_insert_default().push(FINALIZER.to_owned());
    host.writer(&host.stores.deploy_items).update(item, &held).await.map_err(|error| error.halt("AddFinalizer"))
}
