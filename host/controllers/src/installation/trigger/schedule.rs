//! An Installation without a job: its conditions say what it waits for, and jobs start by themselves
//! (C-05, C-27, ORC-33).

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use orangery_api::{
    condition,
    installation::{AutomaticReconcileStatus, Installation},
    job::Job,
    marks::Marks,
};
use orangery_core::{
    automatic::{AutomaticRecord, JobOutcome, Schedule, ScheduleError, Terms},
    condition::ConditionInput,
    error::{Code, Failure},
    phase::installation::Installation as Phase,
    plan::rest::{RestFacts, RootAtRest, outcome, root_at_rest},
    step::Halt,
};
use orangery_reconcile::NextCall;

use super::changes::ImportWatches;
use crate::{controller_context::ControllerContext, event, job::failure_of, object::generation_of};

/// What is to be done now.
pub(in crate::installation) enum AtRest {
    /// Nothing before this.
    Rest(NextCall),
    /// A job starts by itself, with this record where it starts on a schedule.
    Start(Option<AutomaticReconcileStatus>),
}

/// An Installation whose last job has ended, or that never had one, and for which nobody asks for another one; its status is
/// written where it is not what it should be. Only roots start jobs by themselves.
pub(in crate::installation) async fn at_rest(
    host: &ControllerContext,
    imports: &ImportWatches,
    installation: &Installation,
) -> Result<AtRest, Halt> {
    if !installation.is_root() {
        return Ok(AtRest::Rest(NextCall::Settled));
    }
    // Gather.
    let now = host.now().0;
    let facts = facts(host, imports, installation);
    // Decide.
    let (record, state, until, refused) = match root_at_rest(facts, now) {
        RootAtRest::Start(record) => return Ok(AtRest::Start(record.map(kept))),
        RootAtRest::Rest { record, state, until, refused } => (record, state, until, refused),
    };
    // Apply.
    if let Some(error) = refused {
        refuse(host, installation, &error);
    }
    note(host, installation, record.map(kept), state.as_ref()).await?;
    let left = |at: Timestamp| Duration::try_from(at.duration_since(now)).unwrap_or(Duration::ZERO);
    Ok(AtRest::Rest(until.map_or(NextCall::Settled, |at| NextCall::After(left(at)))))
}

fn facts(host: &ControllerContext, imports: &ImportWatches, installation: &Installation) -> RestFacts {
    let had_job = !installation.job_id().is_empty();
    let outcome = Phase::parse(installation.phase()).filter(|_| had_job).and_then(outcome);
    let status = installation.status.as_ref();
    RestFacts {
        had_job,
        outcome,
        generations: (generation_of(installation), status.map_or(0, |status| status.observed_generation)),
        has_operation: installation.operation().is_some(),
        deleting: installation.is_deleting(),
        failure: failure_of(installation.last_error()),
        // Asked in any case: a root that gives the policy up watches nothing any more.
        due: outcome.is_some() && imports.is_due(host, installation),
        terms: outcome.map_or(Ok(None), |outcome| terms(installation, outcome)),
        record: record(status.and_then(|status| status.automatic_reconcile_status.as_ref())),
    }
}

/// Writes what is noted and what the conditions say in this state, where the status has it not.
async fn note(
    host: &ControllerContext,
    installation: &Installation,
    noted: Option<AutomaticReconcileStatus>,
    state: Option<&ConditionInput>,
) -> Result<(), Halt> {
    let generation = generation_of(installation);
    let before = installation.status.as_ref().map_or(&[][..], |status| &status.conditions);
    let conditions = state.map(|state| condition::following(state, generation, before, &host.now()).conditions);
    let conditions = conditions.filter(|conditions| conditions != before);
    // Every wake of a finished installation comes here: it is copied only to be written.
    if noted.is_none() && conditions.is_none() {
        return Ok(());
    }
    let mut after = installation.clone();
    let status = after.status.get_or_insert_default();
    status.automatic_reconcile_status = noted.or_else(|| status.automatic_reconcile_status.take());
    if let Some(conditions) = conditions {
        status.conditions = conditions;
    }
    let writer = host.writer(&host.stores.installations);
    writer.update_status(installation, &after).await.map(drop).map_err(|error| error.halt("UpdateStatus"))
}

fn terms(installation: &Installation, outcome: JobOutcome) -> Result<Option<Terms>, ScheduleError> {
    let Some(automatic) = &installation.spec.automatic_reconcile else { return Ok(None) };
    match outcome {
        JobOutcome::Succeeded => {
            let Some(spec) = &automatic.succeeded_reconcile else { return Ok(None) };
            let interval = spec.interval.as_ref().map(|interval| interval.0.as_str());
            let schedule = Schedule::parse(&spec.cron_spec, interval, Schedule::AFTER_SUCCESS)?;
            Ok(Some(Terms { most: None, schedule }))
        }
        JobOutcome::Failed => {
            let Some(spec) = &automatic.failed_reconcile else { return Ok(None) };
            let interval = spec.interval.as_ref().map(|interval| interval.0.as_str());
            let schedule = Schedule::parse(&spec.cron_spec, interval, Schedule::AFTER_FAILURE)?;
            let most = spec.number_of_reconciles.map(|most| u32::try_from(most).unwrap_or(0));
            Ok(Some(Terms { most, schedule }))
        }
    }
}

/// What the original's webhook refuses, and no rule of the API server can say.
fn refuse(host: &ControllerContext, installation: &Installation, error: &ScheduleError) {
    let message = format!("spec.automaticReconcile: {error}; no job starts by itself");
    let failure = Failure::new("AutomaticReconcile", "InvalidSchedule", message).with_code(Code::ConfigurationProblem);
    event::failed(&host.recorder, installation, None, Some(&failure));
}

fn record(kept: Option<&AutomaticReconcileStatus>) -> Option<AutomaticRecord> {
    let kept = kept?;
    Some(AutomaticRecord {
        generation: kept.generation,
        jobs: u32::try_from(kept.number_of_reconciles).unwrap_or(0),
        last: kept.last_reconcile_time.as_ref()?.0,
        outcome: if kept.on_failed { JobOutcome::Failed } else { JobOutcome::Succeeded },
    })
}

fn kept(record: AutomaticRecord) -> AutomaticReconcileStatus {
    AutomaticReconcileStatus {
        generation: record.generation,
        number_of_reconciles: i32::try_from(record.jobs).unwrap_or(i32::MAX),
        last_reconcile_time: Some(Time(record.last)),
        on_failed: record.outcome == JobOutcome::Failed,
    }
}
