//! Jobs that start by themselves: what the spec says of them, and what the status keeps (`docs/wire.md` §3.4).

use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use orangery_core::automatic::{AutomaticRecord, JobOutcome, Schedule, ScheduleError, Terms};

use crate::installation::{AutomaticReconcile, AutomaticReconcileStatus};

impl AutomaticReconcile {
    /// When jobs start by themselves after one that ended so; `None` where none do.
    ///
    /// # Errors
    /// The schedule cannot be read.
    pub fn terms(&self, outcome: JobOutcome) -> Result<Option<Terms>, ScheduleError> {
        match outcome {
            JobOutcome::Succeeded => {
                let Some(spec) = &self.succeeded_reconcile else { return Ok(None) };
                let interval = spec.interval.as_ref().map(|interval| interval.0.as_str());
                let schedule = Schedule::parse(&spec.cron_spec, interval, Schedule::AFTER_SUCCESS)?;
                Ok(Some(Terms { most: None, schedule, least: SignedDuration::ZERO }))
            }
            JobOutcome::Failed => {
                let Some(spec) = &self.failed_reconcile else { return Ok(None) };
                let interval = spec.interval.as_ref().map(|interval| interval.0.as_str());
                let schedule = Schedule::parse(&spec.cron_spec, interval, Schedule::AFTER_FAILURE)?;
                let most = spec.number_of_reconciles.map(|most| u32::try_from(most).unwrap_or(0));
                Ok(Some(Terms { most, schedule, least: SignedDuration::ZERO }))
            }
        }
    }
}

impl AutomaticReconcileStatus {
    /// The same in words of the core; `None` without a time.
    pub fn record(&self) -> Option<AutomaticRecord> {
        Some(AutomaticRecord {
            generation: self.generation,
            jobs: u32::try_from(self.number_of_reconciles).unwrap_or(0),
            last: self.last_reconcile_time.as_ref()?.0,
            outcome: if self.on_failed { JobOutcome::Failed } else { JobOutcome::Succeeded },
        })
    }
}

impl From<AutomaticRecord> for AutomaticReconcileStatus {
    fn from(record: AutomaticRecord) -> Self {
        Self {
            generation: record.generation,
            number_of_reconciles: i32::try_from(record.jobs).unwrap_or(i32::MAX),
            last_reconcile_time: Some(Time(record.last)),
            on_failed: record.outcome == JobOutcome::Failed,
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    #[test]
    fn c_05_what_the_status_keeps_of_automatic_jobs_is_read_as_it_was_written() {
        for outcome in [JobOutcome::Succeeded, JobOutcome::Failed] {
            let last = Timestamp::from_second(7).unwrap();
            let record = AutomaticRecord { generation: 3, jobs: 2, last, outcome };
            assert_eq!(AutomaticReconcileStatus::from(record).record(), Some(record));
        }
        assert_eq!(AutomaticReconcileStatus::default().record(), None);
    }
}
