//! What an Installation reads: what is asked of it, its siblings and subobjects, its imports, and its blueprint.

use orangery_api::{convert::request_facts, installation::Installation, job::Job, marks::Marks};
use orangery_core::{
    job::JobIds,
    phase::installation::Installation as Phase,
    plan::reconcile::{InstallationFacts, JobFacts},
    step::Halt,
};

use super::reconciliation::InstallationWorker;
use crate::{job::told_phase, tree::is_orphaned};

pub(super) mod beginning;
pub(super) mod blueprints;
pub(super) mod changes;
pub(super) mod data_sources;
pub(super) mod idle;
pub(super) mod imports;
pub(super) mod inputs;
pub(super) mod kubeconfigs;
pub(super) mod related;
pub(super) mod rendering;
pub(super) mod siblings;
pub(super) mod subobjects;

/// What is observed of an Installation in one call of its controller.
pub(super) struct ObservedInstallation {
    /// What is decided from.
    pub(super) facts: InstallationFacts,
    /// Why gate expressions could not be asked whose answers may start a job.
    pub(super) unanswered: Option<Halt>,
}

/// Reads what one call of the controller is decided from.
pub(super) async fn gather(worker: &InstallationWorker, installation: &Installation) -> ObservedInstallation {
    let job = JobFacts {
        root: installation.is_root() || is_orphaned(&worker.host.stores, installation),
        ids: JobIds::new(installation.job_id(), installation.job_id_finished()),
        phase: Phase::parse(installation.phase()),
        deleting: installation.is_deleting(),
        began: installation.status.as_ref().and_then(|status| Phase::parse(told_phase(&status.conditions)?)),
    };
    let facts = InstallationFacts { job, request: request_facts(installation), rest: None };
    if !facts.is_idle() {
        return ObservedInstallation { facts, unanswered: None };
    }
    let (rest, unanswered) = idle::gather(worker, installation).await;
    ObservedInstallation { facts: InstallationFacts { rest, ..facts }, unanswered }
}
