//! An Installation without a job: its conditions say what it waits for, and jobs start by themselves
//! (C-05, C-27, ORC-33).

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use orangery_api::{
    condition,
    installation::{AutomaticReconcileStatus, Installation},
    job::Job,
    marks::Marks,
};
use orangery_core::{
    automatic::{self, AutomaticPlan, AutomaticRecord, JobOutcome, Schedule, ScheduleError, Terms},
    condition::ConditionInput,
    error::{Code, Failure},
    phase::installation::Installation as Phase,
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

/// Looks at a root whose last job has ended, or that never had one, and for which nobody asks for another one; writes its
/// status where it is not what it should be.
pub(in crate::installation) async fn at_rest(
    host: &ControllerContext,
    imports: &ImportWatches,
    installation: &Installation,
) -> Result<AtRest, Halt> {
    if installation.is_root() && installation.job_id().is_empty() {
        note(host, installation, None, Some(&ConditionInput::AwaitingTrigger)).await?;
        return Ok(AtRest::Rest(NextCall::Settled));
    }
    let (Some(outcome), Some(status)) = (outcome(installation), &installation.status) else {
        return Ok(AtRest::Rest(NextCall::Settled));
    };
    let now = host.now();
    let generation = generation_of(installation);
    let changed = status.observed_generation != generation;
    // Asked in any case: who gives the policy up watches nothing any more.
    let due = imports.is_due(host, installation);
    let plan = if changed || installation.operation().is_some() {
        AutomaticPlan::Nothing
    } else if due {
        return Ok(AtRest::Start(None));
    } else {
        match terms(installation, outcome) {
            Ok(terms) => automatic::plan(
                terms.as_ref(),
                outcome,
                generation,
                record(status.automatic_reconcile_status.as_ref()),
                now.0,
            ),
            Err(error) => {
                refuse(host, installation, &error);
                AutomaticPlan::Nothing
            }
        }
    };
    let (again, noted, state) = match plan {
        AutomaticPlan::Start(record) => return Ok(AtRest::Start(Some(kept(record)))),
        AutomaticPlan::Note(record, at) => (Some(at), Some(kept(record)), None),
        // Whoever waits for the object sees that it is not over (C-27).
        AutomaticPlan::At(at) => (Some(at), None, retry(installation, outcome)),
        AutomaticPlan::Nothing if changed && outcome == JobOutcome::Succeeded => {
            (None, None, Some(ConditionInput::AwaitingTrigger))
        }
        AutomaticPlan::Nothing => (None, None, None),
    };
    note(host, installation, noted, state.as_ref()).await?;
    let left = |at: jiff::Timestamp| Duration::try_from(at.duration_since(now.0)).unwrap_or(Duration::ZERO);
    Ok(AtRest::Rest(again.map_or(NextCall::Settled, |at| NextCall::After(left(at)))))
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

/// How the last job of a root ended; `None` where none has.
fn outcome(installation: &Installation) -> Option<JobOutcome> {
    if !installation.is_root() || installation.job_id().is_empty() {
        return None;
    }
    match Phase::parse(installation.phase())? {
        Phase::Succeeded => Some(JobOutcome::Succeeded),
        Phase::Failed | Phase::DeleteFailed => Some(JobOutcome::Failed),
        _ => None,
    }
}

/// A failure that another job follows by itself.
fn retry(installation: &Installation, outcome: JobOutcome) -> Option<ConditionInput> {
    let failure = failure_of(installation.last_error()).filter(|_| outcome == JobOutcome::Failed)?;
    (!installation.is_deleting()).then_some(ConditionInput::Failed { failure, retry: true })
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
