//! Items of external deployers: nothing is done to them, but one that nobody begins ends its job (`docs/wire.md` §3.5).

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use orangery_api::{deploy_item::DeployItem, job::Job, marks::Marks};
use orangery_core::{
    phase::item::Item as Phase,
    plan::pick_up::{PickUp, pick_up, too_late},
    step::Step,
    walk::{StatusUpdate, Transition},
};
use orangery_reconcile::{Key, NextCall};

use crate::{
    controller_context::ControllerContext,
    job::{self, JobStatus},
};

/// What is done for an item whose type no component claims.
pub(super) async fn await_deployer(host: &ControllerContext, item: &DeployItem, now: &Time) -> Step<NextCall> {
    if item.job_finished() {
        return Ok(NextCall::Settled);
    }
    let store = &host.stores.deploy_items;
    if store.has_deferred(item) {
        // Its component has gone since it got the job, which whoever works on it now has to see (C-216).
        let written = host.writer(store).update_status(item, item).await;
        return written.map(|_| NextCall::Again).map_err(|error| error.halt("TriggerDeployItem"));
    }
    let time = |time: &Option<Time>| time.as_ref().map(|time| time.0);
    let status = item.status.as_ref();
    let triggered = status.and_then(|status| time(&status.job_id_generation_time));
    let picked_up = status.and_then(|status| time(&status.last_reconcile_time));
    match pick_up(triggered, picked_up, host.pick_up_timeout, now.0) {
        PickUp::Until(deadline) => {
            Ok(NextCall::After(Duration::try_from(deadline.duration_since(now.0)).unwrap_or(Duration::ZERO)))
        }
        PickUp::TooLate(limit) => fail(host, item, limit, now).await,
        PickUp::NotAwaited => Ok(NextCall::Settled),
    }
}

/// Ends the job: one write. A deployer that begins at the same moment meets a conflict, or we do.
async fn fail(host: &ControllerContext, item: &DeployItem, limit: Duration, now: &Time) -> Step<NextCall> {
    let failure = too_late(&item.spec.type_, limit, missing_target(host, item));
    let phase = if item.is_deleting() { Phase::DeleteFailed } else { Phase::Failed };
    let transition = Transition::End(phase, Some(failure));
    let Some(rest): Option<StatusUpdate<Phase>> = job::resting(host, item, phase, &transition)? else {
        return Ok(NextCall::Settled);
    };
    let mut after = item.clone();
    let generation = item.metadata.generation.unwrap_or(0);
    after.status.get_or_insert_default().rest(&rest, generation, now);
    let writer = host.writer(&host.stores.deploy_items);
    writer.update_status(item, &after).await.map_err(|error| error.halt("PickupTimeout"))?;
    Ok(NextCall::Settled)
}

/// The name of the item's Target, where it does not exist.
fn missing_target<'a>(host: &ControllerContext, item: &'a DeployItem) -> Option<&'a str> {
    let name = &item.spec.target.as_ref()?.name;
    let key = Key { name: name.clone(), ..Key::of(item) };
    host.stores.targets.get(&key).is_none().then_some(name)
}
