//! What lives for a job alone ends with it where it fails, its time is up, or it is interrupted (C-277).

use std::{sync::Arc, time::Duration};

use orangery_api::{deploy_item::DeployItem, job::Job as _, stored_state::StoredState};
use orangery_apply::{Purpose, end_ephemeral};
use orangery_cluster::ClusterPool;
use orangery_core::{
    phase::item::Item as Phase,
    step::{Halt, Step, Verdict},
};
use orangery_proposal::{check::MANAGED_RESOURCES, deployer::Deployer, inventory::Inventory};
use orangery_reconcile::Key;

use crate::{
    controller_context::ControllerContext,
    deploy_item::{
        gather::{GatheredItem, ItemReconciliation, request::ItemJob},
        on_record::JobState,
        status::StatusWriter,
        timeout::in_time,
    },
    object::uid_of,
};

/// How long the end of what lives for a job alone may take to begin.
const TIME_TO_END: Duration = Duration::from_secs(10);

impl ItemReconciliation {
    /// Ends what lives for the job alone where the job ends otherwise than well, before its status says so. What cannot be ended now
    /// is told, and ended by the next job.
    pub(super) async fn end_with_job(&mut self, result: &Step<Verdict>) {
        if !matches!(result, Ok(Verdict::Failed(_)) | Err(Halt::Stall(_))) {
            return;
        }
        let Some(mut state) = self.state.take() else { return };
        self.gathered.clusters.call().end_in(Some(TIME_TO_END));
        let is_current = self.status.fence();
        let job = self.gathered.job(Purpose::Install, &is_current);
        let ended = in_time(Some(TIME_TO_END), Box::pin(end_ephemeral(&job, &mut state))).await;
        if let Err(Halt::Retry(failure) | Halt::Stall(failure)) = ended {
            state.notes.push(failure.message);
        }
        self.tell_what_stays(&mut state);
        self.state = Some(state);
    }
}

/// Ends what lives for a job alone that somebody else has ended, as by an interrupt.
///
/// # Errors
/// The state of the item cannot be read or written. What cannot be ended now is left to the next job.
pub(in crate::deploy_item) async fn end_after_job(
    host: &Arc<ControllerContext>,
    pool: &Arc<ClusterPool>,
    item: &Arc<DeployItem>,
    deployer: Arc<dyn Deployer>,
) -> Step<()> {
    if !may_have_ephemeral(item) {
        return Ok(());
    }
    let (id, now) = (item.job_id().clone(), host.now());
    let cluster = host.host_cluster.uid(&host.client).await?;
    let mut status = StatusWriter::new(host, item, (&id, Phase::Progressing, false), deployer.identity(), &now);
    let ended = ItemJob { id, begun: now.0, limit: Some(TIME_TO_END) };
    let gathered = GatheredItem::new(host, pool, (Arc::clone(item), cluster), deployer, ended);
    let read = gathered.state().await?;
    let mut state = read.state;
    if read.seal_error.is_some() || state.inventory.ephemeral().is_empty() {
        return Ok(());
    }
    gathered.clusters.call().end_in(Some(TIME_TO_END));
    let is_current = has_ended(host, item);
    let job = gathered.job(Purpose::Install, &is_current);
    let ending = Box::pin(end_ephemeral(&job, &mut state));
    if let Err(Halt::Retry(failure) | Halt::Stall(failure)) = in_time(Some(TIME_TO_END), ending).await {
        tracing::warn!(item = %gathered.key, "what lives for a job alone is left to the next one: {}", failure.message);
    }
    gathered.put_on_record(JobState::after(item), Some(&state), (false, None)).await?;
    if is_current() { status.keep(&state).await } else { Ok(()) }
}

/// Whether the status of an item says that its job has ended otherwise than well, and may have left what lives for it alone.
fn may_have_ephemeral(item: &DeployItem) -> bool {
    let has_failed = matches!(Phase::parse(item.phase()), Some(Phase::Failed | Phase::DeleteFailed));
    if !has_failed || !item.job_finished() {
        return false;
    }
    let status = item.status.as_ref().and_then(|status| status.provider_status.as_ref());
    let shown = Inventory::read(status.and_then(|status| status.get(MANAGED_RESOURCES)));
    StoredState::is_said(status) || shown.is_ok_and(|shown| !shown.ephemeral().is_empty())
}

/// Whether no job of the item has begun since, asked before each write.
fn has_ended(host: &Arc<ControllerContext>, item: &Arc<DeployItem>) -> impl Fn() -> bool + Send + Sync + use<> {
    let (host, item) = (Arc::clone(host), Arc::clone(item));
    move || {
        let newest = host.stores.deploy_items.get(&Key::of(item.as_ref()));
        let is_so = newest.is_some_and(|newest| {
            uid_of(newest.as_ref()) == uid_of(item.as_ref())
                && newest.job_finished()
                && newest.job_id() == item.job_id()
        });
        host.may_write() && is_so
    }
}
