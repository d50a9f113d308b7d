//! Jobs that start by themselves (`docs/wire.md` §3.4): after a failure to try again, after a success to keep up.

mod schedule;

use jiff::{SignedDuration, Timestamp};

pub use self::schedule::{Schedule, ScheduleError};

/// When jobs of one outcome start by themselves.
#[derive(Clone, Debug)]
pub struct Terms {
    /// How many in a row; `None` for no limit. Only failures have one.
    pub most: Option<u32>,
    /// When.
    pub schedule: Schedule,
    /// The least time from one job to the next one, whatever the schedule says (C-184).
    pub least: SignedDuration,
}

impl Terms {
    /// When a job starts after one that started at a time; `None` where none does before the end of time.
    pub fn after(&self, time: Timestamp) -> Option<Timestamp> {
        self.schedule.no_sooner_after(time, self.least)
    }

    /// Whether it starts later than the schedule says.
    pub fn is_stretched(&self, time: Timestamp) -> bool {
        self.after(time) != self.schedule.after(time)
    }
}

/// How the last job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobOutcome {
    /// `Succeeded`
    Succeeded,
    /// `Failed` or `DeleteFailed`
    Failed,
}

/// What the status keeps of automatic jobs. It counts for one generation and one outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AutomaticRecord {
    /// The generation.
    pub generation: i64,
    /// How many jobs have started by themselves.
    pub jobs: u32,
    /// When the last one did; of none, when the outcome was first seen.
    pub last: Timestamp,
    /// The outcome.
    pub outcome: JobOutcome,
}

/// What is to be done about an installation whose job has ended, and whom nobody asks for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AutomaticPlan {
    /// Nothing starts by itself. A record that is there says nothing any more.
    Nothing,
    /// A job starts at this time.
    At(Timestamp),
    /// The outcome is new: it is recorded, and a job starts at the time.
    Note(AutomaticRecord, Timestamp),
    /// A job starts now, and is recorded.
    Start(AutomaticRecord),
}

/// Decides. `terms` are those of the outcome. A failure that is new is tried again at once; a success that is new is only
/// noted.
pub fn plan(
    terms: Option<&Terms>,
    outcome: JobOutcome,
    generation: i64,
    record: Option<AutomaticRecord>,
    now: Timestamp,
) -> AutomaticPlan {
    let Some(terms) = terms else { return AutomaticPlan::Nothing };
    let fresh = |jobs| AutomaticRecord { generation, jobs, last: now, outcome };
    let record = record.filter(|record| record.generation == generation && record.outcome == outcome);
    let jobs = record.map_or(0, |record| record.jobs);
    if terms.most.is_some_and(|most| jobs >= most) {
        return AutomaticPlan::Nothing;
    }
    let last = match (record, outcome) {
        (Some(record), _) => record.last,
        (None, JobOutcome::Failed) => return AutomaticPlan::Start(fresh(1)),
        (None, JobOutcome::Succeeded) => now,
    };
    match (terms.after(last), record) {
        (Some(next), Some(_)) if next <= now => AutomaticPlan::Start(fresh(jobs.saturating_add(1))),
        (Some(next), Some(_)) => AutomaticPlan::At(next),
        (Some(next), None) => AutomaticPlan::Note(fresh(0), next),
        (None, _) => AutomaticPlan::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn terms(most: Option<u32>) -> Terms {
        let schedule = Schedule::parse("@every 100s", None, Schedule::AFTER_FAILURE).unwrap();
        Terms { most, schedule, least: SignedDuration::ZERO }
    }

    fn record(outcome: JobOutcome, jobs: u32, last: i64) -> AutomaticRecord {
        AutomaticRecord { generation: 1, jobs, last: at(last), outcome }
    }

    use JobOutcome::{Failed, Succeeded};

    #[test]
    fn a_first_failure_is_tried_again_at_once_and_further_ones_after_the_interval() {
        let failed = |record, now| plan(Some(&terms(None)), Failed, 1, record, at(now));
        assert_eq!(failed(None, 50), AutomaticPlan::Start(record(Failed, 1, 50)));
        assert_eq!(failed(Some(record(Failed, 1, 50)), 149), AutomaticPlan::At(at(150)));
        assert_eq!(failed(Some(record(Failed, 1, 50)), 150), AutomaticPlan::Start(record(Failed, 2, 150)));
    }

    #[test]
    fn c_27_a_success_is_noted_and_followed_by_a_job_after_the_interval() {
        let succeeded = |record, now| plan(Some(&terms(None)), Succeeded, 1, record, at(now));
        assert_eq!(succeeded(None, 50), AutomaticPlan::Note(record(Succeeded, 0, 50), at(150)));
        assert_eq!(succeeded(Some(record(Succeeded, 0, 50)), 60), AutomaticPlan::At(at(150)));
        assert_eq!(succeeded(Some(record(Succeeded, 0, 50)), 200), AutomaticPlan::Start(record(Succeeded, 1, 200)));
    }

    #[test]
    fn a_limit_ends_them_and_none_is_allowed_by_zero() {
        let failed = |most, jobs| plan(Some(&terms(Some(most))), Failed, 1, Some(record(Failed, jobs, 0)), at(1000));
        assert_eq!(failed(2, 1), AutomaticPlan::Start(record(Failed, 2, 1000)));
        assert_eq!(failed(2, 2), AutomaticPlan::Nothing);
        assert_eq!(plan(Some(&terms(Some(0))), Failed, 1, None, at(0)), AutomaticPlan::Nothing);
        assert_eq!(plan(None, Failed, 1, None, at(0)), AutomaticPlan::Nothing);
    }

    #[test]
    fn another_generation_or_outcome_begins_to_count_anew() {
        let failed = |record| plan(Some(&terms(Some(1))), Failed, 1, Some(record), at(10));
        assert_eq!(
            failed(AutomaticRecord { generation: 0, ..record(Failed, 1, 0) }),
            AutomaticPlan::Start(record(Failed, 1, 10))
        );
        assert_eq!(failed(record(Succeeded, 1, 0)), AutomaticPlan::Start(record(Failed, 1, 10)));
    }
}
