//! The trigger: whether a job of an item is to be worked on. A job comes from the Execution, or from the item's own
//! `operation: test-reconcile`; items of external deployers have none here.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{OwnerReference, Time};
use orangery_api::{
    FINALIZER, annotation,
    deploy_item::DeployItem,
    job::Job,
    label,
    marks::{Marks, Operation},
};
use orangery_core::{
    error::Failure,
    job::{JobIds, Situation, Work, work},
    name::JobId,
    phase::{Phase as _, item::Item as Phase},
    step::{Halt, Step, Verdict},
};
use orangery_proposal::deployer::Deployer;
use orangery_reconcile::{Key, NextCall};

use super::dependencies::EXECUTION;
use crate::{
    awaited_uninstall,
    controller_context::ControllerContext,
    job::{self, JobStatus},
    never_begun::was_never_begun,
    object::uid_of,
    stores::StoredKind,
};

pub(super) mod concurrency;
mod pick_up;
mod quota;

/// What an item is called for.
pub(super) enum ItemTrigger {
    /// No job is under way; with the component that claims the item.
    None(Arc<dyn Deployer>),
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
    /// Whether nobody hands another job down to it.
    pub(super) is_orphaned: bool,
}

/// What an item is called for at this time.
pub(super) async fn trigger(host: &ControllerContext, item: &Arc<DeployItem>, now: &Time) -> Step<ItemTrigger> {
    let ids = JobIds::new(item.job_id(), item.job_id_finished());
    let is_orphaned = is_orphaned(host, item).await?;
    let situation = Situation {
        ids: &ids,
        root: is_orphaned,
        requested: item.operation() == Some(Operation::Reconcile),
        deleting: item.is_deleting(),
        in_deletion: Phase::parse(item.phase()).is_some_and(Phase::is_deletion),
    };
    let work = work(situation);
    if work == Work::Start {
        if item.is_deleting() && was_never_begun(host, item) {
            job::release(host, &host.stores.deploy_items, item.as_ref()).await?;
            return Ok(ItemTrigger::Done(NextCall::Settled));
        }
        return Ok(ItemTrigger::Done(start(host, item, now).await?));
    }
    if let (Work::None, Some(execution)) = (&work, item.label(label::MANAGED_BY)) {
        awaited_uninstall::tell(host, &host.stores.deploy_items, item.as_ref(), execution, |draft| {
            draft.status.get_or_insert_default()
        })
        .await?;
    }
    let deployer = match &work {
        Work::Continue { job } => {
            host.job_deployers.began_with(&Key::of(item.as_ref()), job, || host.deployer_of(item))
        }
        Work::None | Work::Start => host.deployer_of(item),
    };
    let Some(deployer) = deployer else {
        let is_asked = matches!(work, Work::Continue { .. });
        if is_asked && item.is_deleting() && item.flag(annotation::DELETE_WITHOUT_UNINSTALL) {
            // Its deployer may be gone for good (INS-81).
            job::release(host, &host.stores.deploy_items, item.as_ref()).await?;
            return Ok(ItemTrigger::Done(NextCall::Settled));
        }
        return Ok(ItemTrigger::Done(pick_up::await_deployer(host, item, now).await?));
    };
    if item.operation() == Some(Operation::TestReconcile) && item.job_finished() {
        return Ok(ItemTrigger::Done(start(host, item, now).await?));
    }
    Ok(match work {
        Work::None | Work::Start => ItemTrigger::None(deployer),
        Work::Continue { job } => {
            let item = add_finalizer(host, item).await?;
            ItemTrigger::Job(TriggeredJob { id: job, item, deployer, is_orphaned })
        }
    })
}

/// Whether an item is being deleted and its Execution is gone already, as is then one of its name that was made since, or it never
/// had one (C-161): nobody hands a job down to it, so it starts its own.
async fn is_orphaned(host: &ControllerContext, item: &DeployItem) -> Step<bool> {
    if !item.is_deleting() {
        return Ok(false);
    }
    let mut owners = item.metadata.owner_references.iter().flatten();
    let owner = owners.find(|owner| owner.kind == StoredKind::Execution.name()).map(|owner| owner.name.as_str());
    let Some(name) = item.label(label::MANAGED_BY).or(owner) else { return Ok(true) };
    let key = Key { name: name.into(), ..Key::of(item) };
    let Some(execution) = EXECUTION.find(host, &key).await? else { return Ok(true) };
    let is_former = |owner: &OwnerReference| {
        owner.kind == StoredKind::Execution.name() && owner.name == name && owner.uid != uid_of(execution.as_ref())
    };
    Ok(item.metadata.owner_references.iter().flatten().any(is_former))
}

/// A job without an Execution: of an orphaned item, or for `operation: test-reconcile` (`docs/wire.md` §2.1). What asked for it is
/// taken off.
async fn start(host: &ControllerContext, item: &DeployItem, now: &Time) -> Step<NextCall> {
    let triggered = begin(host, item, now).await?;
    if matches!(triggered.operation(), Some(Operation::Reconcile | Operation::TestReconcile)) {
        let mut plain = DeployItem::clone(&triggered);
        plain.metadata.annotations.get_or_insert_default().remove(annotation::OPERATION);
        let writer = host.writer(&host.stores.deploy_items);
        writer.update(&triggered, &plain).await.map_err(|error| error.halt("RemoveOperation"))?;
    }
    Ok(NextCall::Again)
}

/// What the end of a job of an orphaned item says as well: it begins by itself once, and then when it is asked for.
pub(super) fn of_an_orphan(result: Step<Verdict>) -> Step<Verdict> {
    let asked = |mut failure: Failure| {
        failure.message.push_str(
            "; it has no Execution, so nobody tries again unasked: set the annotation landscaper.gardener.cloud/operation: \
             reconcile on this DeployItem when that is mended",
        );
        failure
    };
    match result {
        Ok(Verdict::Failed(failure)) => Ok(Verdict::Failed(asked(failure))),
        Err(Halt::Stall(failure)) => Err(Halt::Stall(asked(failure))),
        result => result,
    }
}

/// Begins a job of an item that no Execution hands one down to.
async fn begin(host: &ControllerContext, item: &DeployItem, now: &Time) -> Step<Arc<DeployItem>> {
    let mut triggered = item.clone();
    let status = triggered.status.get_or_insert_default();
    let first = if item.is_deleting() { Phase::INIT_DELETE } else { Phase::INIT };
    status.trigger(&host.rng.job_id(), first, item.metadata.generation.unwrap_or(0), now);
    status.job_id_generation_time = Some(now.clone());
    // An unchanged item is processed as well: no phase of an earlier job stands for this one.
    status.phase.clear();
    let writer = host.writer(&host.stores.deploy_items);
    writer.update_status(item, &triggered).await.map_err(|error| error.halt("BeginJob"))
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

#[cfg(test)]
mod tests {
    use orangery_api::execution::Execution;
    use serde_json::{Value, json};

    use super::*;
    use crate::controller_context::tests::host;

    #[tokio::test]
    async fn c_161_an_item_that_goes_is_an_orphan_where_its_execution_is_another_one_or_it_has_none() {
        let host = host();
        let execution =
            json!({"metadata": {"name": "tree", "namespace": "n", "uid": "new", "resourceVersion": "1"}, "spec": {}});
        drop(host.stores.executions.upsert(serde_json::from_value::<Execution>(execution).unwrap()));
        let is = async |metadata: Value| {
            let mut whole = json!({"name": "item", "namespace": "n", "deletionTimestamp": "2026-01-01T00:00:00Z"});
            orangery_proposal::overlay::overlay(&mut whole, &metadata);
            let item = serde_json::from_value(json!({"metadata": whole, "spec": {"type": "t"}})).unwrap();
            is_orphaned(&host, &item).await.unwrap()
        };
        let of = |kind: &str, name: &str, uid: &str| {
            let owner = json!({"apiVersion": orangery_api::API_VERSION, "kind": kind, "name": name, "uid": uid});
            json!({"labels": {(label::MANAGED_BY): "tree"}, "ownerReferences": [owner]})
        };
        assert!(!is(of("Execution", "tree", "new")).await);
        assert!(is(of("Execution", "tree", "old")).await, "another one of its name was made since");
        assert!(
            !is(of("Other", "tree", "old")).await && !is(of("Execution", "other", "old")).await,
            "another owner says nothing"
        );
        assert!(is(json!({})).await, "it never had one");
        let mut lives = of("Execution", "tree", "old");
        lives["deletionTimestamp"] = Value::Null;
        assert!(!is(lives).await, "it is not deleted");
    }
}
