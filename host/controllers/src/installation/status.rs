//! Where an Installation rests: the one place that writes its status.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use orangery_api::{
    condition::{self, Condition},
    convert::{is_requested, is_suspended},
    installation::Installation,
    job::Job as _,
    reference::LocalReference,
};
use orangery_core::{
    condition::{SUSPENDED, SUSPENDS},
    error::{Code, Failure},
    phase::installation::Installation as Phase,
    plan::{idle::IdlePlan, request::is_about_to_read},
    step::{Halt, Step},
    walk::{StatusUpdate, Transition},
};
use orangery_reconcile::{Key, NextCall};

use super::{
    apply::AppliedInstallation,
    gather::siblings,
    reconciliation::{InstallationReconciliation, InstallationWorker},
};
use crate::{
    awaited_uninstall,
    controller_context::ControllerContext,
    event,
    gates::release_at_rest,
    job::{self, JobStatus},
    namespace_policy::refused_under,
    object::generation_of,
    secret_values::masked,
    stores::StoredKind,
};

/// Writes what a call of the controller came to; and when it is called again.
pub(super) async fn finish(
    worker: &InstallationWorker,
    installation: &Installation,
    applied: AppliedInstallation<'_>,
) -> Result<NextCall, Halt> {
    let host = &worker.host;
    let (draft, operation, next) = match applied {
        AppliedInstallation::Again => return Ok(NextCall::Again),
        AppliedInstallation::Job(run, phase, transition) => return run.finish(phase, transition).await,
        AppliedInstallation::Status(draft, operation) => (Some(*draft), operation, NextCall::Again),
        AppliedInstallation::Idle(plan) => {
            let name = installation.name_any();
            awaited_uninstall::tell(host, &host.stores.installations, installation, &name, |draft| {
                draft.status.get_or_insert_default()
            })
            .await?;
            let (draft, next) = rest(host, installation, plan);
            (draft, "UpdateStatus", next)
        }
    };
    if let Some(draft) = draft {
        let writer = host.writer(&host.stores.installations);
        writer.update_status_as_read(installation, &draft).await.map_err(|error| error.halt(operation))?;
    }
    Ok(next)
}

/// What is kept and what the conditions say of an Installation without a job, where the status has it not; and when it is called
/// again.
fn rest(host: &ControllerContext, installation: &Installation, plan: IdlePlan) -> (Option<Installation>, NextCall) {
    let IdlePlan { record, state, until, refused, is_stretched, is_held } = plan;
    if let Some(error) = refused {
        // What the original's webhook refuses, and no rule of the API server can say.
        let message = format!("spec.automaticReconcile: {error}; no job starts by itself");
        let failure = Failure::new("AutomaticReconcile", "InvalidSchedule", message);
        let failure = failure.with_code(Code::ConfigurationProblem);
        event::warn_of_lasting(host, installation, &failure);
    }
    if is_stretched {
        tell_stretched(host, installation, "spec.automaticReconcile asks for jobs", "ask for a longer interval");
    }
    if is_held {
        tell_stretched(host, installation, "changes start jobs", "have what is imported change less often");
    }
    let now = host.now();
    let left = |at: Timestamp| Duration::try_from(at.duration_since(now.0)).unwrap_or(Duration::ZERO);
    let next = until.map_or(NextCall::Settled, |at| NextCall::After(left(at)));
    let before = installation.status.as_ref().map_or(&[][..], |status| &status.conditions);
    let generation = generation_of(installation);
    let conditions = state.map(|state| condition::following(&state, generation, before, &now).conditions);
    let conditions = suspension(installation, conditions.as_deref().unwrap_or(before), &now).or(conditions);
    let conditions = conditions.filter(|conditions| conditions != before);
    // Every wake of a finished installation comes here: it is copied only to be written.
    if record.is_none() && conditions.is_none() {
        return (None, next);
    }
    let mut draft = installation.clone();
    let status = draft.status.get_or_insert_default();
    status.automatic_reconcile_status = record.map(Into::into).or_else(|| status.automatic_reconcile_status.take());
    if let Some(conditions) = conditions {
        status.conditions = conditions;
    }
    (Some(draft), next)
}

/// The same conditions with what is said of a suspension; `None` where none is, or was, of which all is said (C-306).
fn suspension(installation: &Installation, conditions: &[Condition], now: &Time) -> Option<Vec<Condition>> {
    let is = installation.is_root() && is_suspended(installation);
    if !is && condition::find(conditions, SUSPENDED).is_none() {
        return None;
    }
    let key = Key::of(installation);
    let how = format!("{SUSPENDS}: orangery resume {} -n {}", key.name, key.namespace);
    let how = is.then_some(how.as_str());
    Some(condition::with_suspension(how, generation_of(installation), conditions, now))
}

/// Says that jobs start later than something asks for, by which line of a policy, and what to do (C-184, C-196).
fn tell_stretched(host: &ControllerContext, installation: &Installation, what: &str, mend: &str) {
    let policy = host.policies.of(&Key::of(installation).namespace);
    let Some(interval) = policy.ok().and_then(|policy| policy.min_reconcile_interval()) else { return };
    let message = format!(
        "{what} closer to each other than {} s, which is the least by {interval}; they start that late; {mend}, or have an \
         administrator set another one there",
        interval.seconds
    );
    let failure = Failure::new("AutomaticReconcile", "IntervalStretched", message).with_code(Code::PolicyViolation);
    event::warn_of_lasting(host, installation, &failure);
}

impl InstallationReconciliation<'_> {
    /// Writes where the walk through the phases rests: one write, in which an ended job also names the siblings to be triggered
    /// next, so that a crash between cannot lose them (C-14, C-25).
    async fn finish(mut self, phase: Phase, transition: Transition<Phase>) -> Result<NextCall, Halt> {
        let (host, shared) = (self.host, self.shared);
        let installation = (StoredKind::Installation, self.key.clone());
        release_at_rest(host, (&shared.pool, &shared.queue), installation, &transition, self.workflow.left);
        let Some(rest) = job::resting(host, self.before.as_ref(), phase, &transition)? else {
            shared.blueprints.forget(&self.before);
            job::release(host, &host.stores.installations, self.before.as_ref()).await?;
            return Ok(NextCall::Settled);
        };
        let dependents = if rest.ended { self.dependents(&rest) } else { Vec::new() };
        let triggers = !dependents.is_empty();
        self.note_answers();
        let status = self.draft.status.get_or_insert_default();
        status.rest(&rest, self.generation, &host.now());
        status.dependents_to_trigger = dependents;
        if rest.ended {
            let under = refused_under(&host.policies, &self.draft);
            self.draft.status.get_or_insert_default().refused_under = under;
            shared.blueprints.forget(&self.before);
        }
        let writer = host.writer(&host.stores.installations);
        let written = writer.update_status(&self.before, &self.draft).await;
        let written = written.map_err(|error| job::unwritten(&transition, error.halt("UpdateStatus")))?;
        if !rest.ended {
            self.handed_to_subinstallations.deliver(&host.stores.installations).await;
            self.handed_to_execution.deliver(&host.stores.executions).await;
        }
        let next = job::next(transition, None)?;
        Ok(if rest.ended && (triggers || is_requested(&written)) { NextCall::Again } else { next })
    }

    /// What gate expressions have answered so far, for the next write.
    fn note_answers(&mut self) {
        if let Some(workflow) = &mut self.draft.status.get_or_insert_default().workflow {
            let masker = self.host.secrets.masker(&self.key.namespace);
            workflow.write_records(&masked(&self.workflow.records, &masker));
        }
    }

    /// Writes what others have to see of a job before it goes on; where it rests is not said by that.
    pub(super) async fn show(&mut self) -> Step<()> {
        self.note_answers();
        let writer = self.host.writer(&self.host.stores.installations);
        let written = writer.update_status(&self.before, &self.draft).await;
        let written = written.map_err(|error| error.halt("UpdateStatus"))?;
        self.draft = Installation::clone(&written);
        self.before = written;
        Ok(())
    }

    /// The roots to be triggered after this job: those that import what this root exports, after a success only
    /// (INS-43, INS-44, C-14). Children are woken by the end of the job itself.
    fn dependents(&self, rest: &StatusUpdate<Phase>) -> Vec<LocalReference> {
        let promised = self.draft.spec.optimization.as_ref().is_some_and(|promise| promise.has_no_sibling_exports);
        if !self.draft.is_root() || rest.phase != Phase::Succeeded || promised {
            return Vec::new();
        }
        // One that waits for this job reads its imports when that has ended: it may have begun to by the time it is triggered.
        let reads =
            |sibling: &Arc<Installation>| is_about_to_read(!sibling.job_finished(), Phase::parse(sibling.phase()));
        let successors = siblings::successors(&self.host.stores, &self.draft).filter(|sibling| !reads(sibling));
        successors.map(|sibling| LocalReference { name: sibling.name_any() }).collect()
    }
}
