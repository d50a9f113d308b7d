//! What is done for an Installation: what comes before a job, the begin of one, and its phases. What they write: subobjects,
//! DataObjects and Targets, and the states of templates.

use std::sync::Arc;

use orangery_api::installation::Installation;
use orangery_core::{
    phase::installation::Installation as Phase,
    plan::{idle::IdlePlan, reconcile::InstallationAction},
    step::Step,
    walk::Transition,
};

use super::reconciliation::{InstallationReconciliation, InstallationWorker};

pub(super) mod children;
pub(super) mod deletion;
pub(super) mod execution;
mod job;
pub(super) mod records;
mod requests;
pub(super) mod states;
pub(super) mod subinstallations;

/// What a call of the controller came to.
pub(super) enum AppliedInstallation<'a> {
    /// All is written; there is more to do.
    Again,
    /// The status is to be written so, by this operation; there is more to do then.
    Status(Box<Installation>, &'static str),
    /// There is no job.
    Idle(IdlePlan),
    /// A job, the phase that it came to, and what follows from that.
    Job(Box<InstallationReconciliation<'a>>, Phase, Transition<Phase>),
}

/// Does what was decided.
pub(super) async fn apply<'a>(
    worker: &'a InstallationWorker,
    installation: &Arc<Installation>,
    action: InstallationAction,
) -> Step<AppliedInstallation<'a>> {
    match action {
        InstallationAction::Before(before) => requests::carry_out(before, &worker.host, installation).await,
        InstallationAction::Continue { running, answers_request } => {
            job::go_on(worker, installation, running, answers_request).await
        }
        InstallationAction::Start(by) => Ok(job::start(worker, installation, by).await),
        InstallationAction::Idle(plan) => Ok(AppliedInstallation::Idle(plan)),
    }
}
