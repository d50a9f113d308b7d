//! The job of an Installation: it begins (INS-12 … INS-14), and goes on through its phases.

use std::sync::Arc;

use orangery_api::{
    annotation,
    context::DEFAULT_CONTEXT,
    installation::Installation,
    marks::{Marks, Operation},
};
use orangery_core::{
    phase::{Phase as _, installation::Installation as Phase},
    plan::{idle::SelfStart, reconcile::RunningJob},
    step::Step,
};

use super::{
    super::{
        gather::imports::ImportsTurn,
        reconciliation::{InstallationReconciliation, InstallationWorker},
    },
    AppliedInstallation,
};
use crate::{
    controller_context::ControllerContext,
    job::{JobStatus, walk},
    object::{add_finalizer, generation_of, remove_request},
};

/// From the phase in which the job rests as far as it goes without waiting.
pub(super) async fn go_on<'a>(
    worker: &'a InstallationWorker,
    installation: &Arc<Installation>,
    running: RunningJob<Phase>,
    answers_request: bool,
) -> Step<AppliedInstallation<'a>> {
    let RunningJob { job, phase, begins } = running;
    let before = adopt(&worker.host, installation, answers_request).await?;
    let draft = Installation::clone(&before);
    let mut run = InstallationReconciliation::of(worker, before, draft, job, begins);
    let (phase, transition) = walk(&mut run, phase).await;
    Ok(AppliedInstallation::Job(Box::new(run), phase, transition))
}

/// What a job needs before its first phase, in one write: the finalizer, the default context, and the request removed
/// (INS-14), so that it can be made again.
async fn adopt(host: &ControllerContext, before: &Arc<Installation>, answers_request: bool) -> Step<Arc<Installation>> {
    let mut after = Installation::clone(before);
    if after.spec.context.is_empty() {
        DEFAULT_CONTEXT.clone_into(&mut after.spec.context);
    }
    add_finalizer(&mut after);
    // A request that came after this job began stays for the next one.
    if answers_request {
        remove_request(&mut after);
    }
    if after == **before {
        return Ok(Arc::clone(before));
    }
    let writer = host.writer(&host.stores.installations);
    writer.update(before, &after).await.map_err(|error| error.halt("AdoptInstallation"))
}

/// Starts a job at a root: the id is written before any child gets it, so that a request is never lost. Of a deletion without a
/// request one write says that the job began and where it rests. `by` is what starts a job that nobody asks for. A person's request
/// begins to count anew what a schedule has started, as does a change.
pub(super) async fn start<'a>(
    worker: &'a InstallationWorker,
    installation: &Arc<Installation>,
    by: Option<SelfStart>,
) -> AppliedInstallation<'a> {
    let (host, deletes) = (&worker.host, installation.is_deleting());
    let job = host.rng.job_id();
    let mark = worker.imports.mark(host, installation, &ImportsTurn::default()).await;
    let mut draft = Installation::clone(installation);
    let status = draft.status.get_or_insert_default();
    let first = if deletes { Phase::INIT_DELETE } else { Phase::INIT };
    status.trigger(&job, first, generation_of(installation.as_ref()), &host.now());
    installation.annotation(annotation::TRIGGER).unwrap_or("").clone_into(&mut status.last_handled_trigger);
    status.pending_operation.clear();
    mark.put(status);
    if by == Some(SelfStart::Change) {
        status.started_by_change_time = Some(host.now());
    }
    let record = match by {
        Some(SelfStart::Schedule(record)) => Some(record),
        Some(SelfStart::Allowed | SelfStart::Change) | None => None,
    };
    // A program asks once more for what has failed, and not a person.
    let retries = installation.annotation(annotation::RECONCILE_REASON) == Some(annotation::RETRY);
    if record.is_some() || !retries {
        status.automatic_reconcile_status = record.map(Into::into);
    }
    // The job rests before its first phase where a request is to be removed: `go_on` answers it then (INS-14, INS-59).
    if !deletes || installation.operation() == Some(Operation::Reconcile) {
        return AppliedInstallation::Status(Box::new(draft), "StartJob");
    }
    let mut run = InstallationReconciliation::of(worker, Arc::clone(installation), draft, job, true);
    let (phase, transition) = run.begin_deletion().await;
    AppliedInstallation::Job(Box::new(run), phase, transition)
}
