//! What is done for an Execution: an interrupt, the begin of a deletion, and the phases of a job. What they write: deploy items.

use std::sync::Arc;

use orangery_api::execution::Execution;
use orangery_core::{
    phase::execution::Execution as Phase,
    plan::reconcile::{ExecutionAction, RunningJob},
    step::Step,
    walk::Transition,
};

use super::reconciliation::{ExecutionReconciliation, ExecutionWorker};
use crate::{
    job::{JobStatus, walk},
    object::generation_of,
};

mod interrupt;
pub(super) mod items;

/// What a call of the controller came to.
pub(super) enum AppliedExecution<'a> {
    /// There is no job.
    Idle,
    /// All is written; there is more to do.
    Again,
    /// The status is to be written so, by this operation; there is more to do then.
    Status(Box<Execution>, &'static str),
    /// A job, the phase that it came to, and what follows from that.
    Job(Box<ExecutionReconciliation<'a>>, Phase, Transition<Phase>),
}

/// Does what was decided.
pub(super) async fn apply<'a>(
    worker: &'a ExecutionWorker,
    execution: &Arc<Execution>,
    action: ExecutionAction,
) -> Step<AppliedExecution<'a>> {
    match action {
        ExecutionAction::Idle => Ok(AppliedExecution::Idle),
        ExecutionAction::NoteInterrupt => Ok(interrupt::noted(execution)),
        ExecutionAction::Interrupt => interrupt::carry_out(&worker.host, execution).await,
        ExecutionAction::StartDeletion => Ok(start_deletion(worker, execution)),
        ExecutionAction::Continue(running) => Ok(go_on(worker, execution, running).await),
    }
}

/// The deletion of an Execution whose Installation is gone: nobody but itself starts it.
fn start_deletion<'a>(worker: &'a ExecutionWorker, execution: &Execution) -> AppliedExecution<'a> {
    let (host, mut draft) = (&worker.host, Box::new(execution.clone()));
    let status = draft.status.get_or_insert_default();
    status.trigger(&host.rng.job_id(), Phase::InitDelete, generation_of(execution), &host.now());
    AppliedExecution::Status(draft, "StartJob")
}

/// From the phase in which the job rests as far as it goes without waiting.
async fn go_on<'a>(
    worker: &'a ExecutionWorker,
    execution: &Arc<Execution>,
    running: RunningJob<Phase>,
) -> AppliedExecution<'a> {
    let RunningJob { job, phase, begins } = running;
    let mut run = ExecutionReconciliation::of(worker, execution, job);
    if begins {
        run.begin();
    }
    let (phase, transition) = walk(&mut run, phase).await;
    AppliedExecution::Job(Box::new(run), phase, transition)
}
