//! What calls of components came to, counted for metrics.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use orangery_figures::{ByName, DurationCounts, Durations};

use crate::{budget::BudgetLimit, error::Error};

/// The name under which calls of components are counted that blueprints bring along, whatever they are called (C-390).
pub(crate) const OF_BLUEPRINTS: &str = "of-blueprint";

/// What a call came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CallResult {
    /// The component has answered; what it says may be a fault.
    Answered,
    /// It was stopped at a limit.
    Limited,
    /// It crashed or ended itself.
    Crashed,
    /// There was no room for it.
    NoRoom,
    /// Anything else.
    Failed,
}

impl CallResult {
    const ALL: [Self; 5] = [Self::Answered, Self::Limited, Self::Crashed, Self::NoRoom, Self::Failed];

    /// As metrics name it.
    pub fn name(self) -> &'static str {
        match self {
            CallResult::Answered => "answered",
            CallResult::Limited => "limit",
            CallResult::Crashed => "crash",
            CallResult::NoRoom => "no_room",
            CallResult::Failed => "failed",
        }
    }

    fn of(error: &Error) -> Self {
        match error {
            Error::Limit { .. } => CallResult::Limited,
            Error::Trap { .. } | Error::StackOverflow { .. } | Error::Exit { .. } => CallResult::Crashed,
            Error::Busy { .. } | Error::NoPlace(_) => CallResult::NoRoom,
            _ => CallResult::Failed,
        }
    }
}

/// The calls of one component, or of several that are counted together.
#[derive(Debug, Default)]
pub(crate) struct CallFigures {
    results: [AtomicU64; CallResult::ALL.len()],
    limits: [AtomicU64; BudgetLimit::ALL.len()],
    durations: Durations,
}

impl CallFigures {
    /// None yet but those of components of blueprints, for which there is always room.
    pub(crate) fn by_name() -> ByName<Self> {
        let by_name = ByName::default();
        by_name.of(OF_BLUEPRINTS);
        by_name
    }

    /// A call has ended that took so long, room for it included.
    pub(crate) fn count<T>(&self, answer: &Result<T, Error>, took: Duration) {
        let result = answer.as_ref().map_or_else(CallResult::of, |_| CallResult::Answered);
        add(&CallResult::ALL, &self.results, result);
        if let Err(Error::Limit { limit, .. }) = answer {
            add(&BudgetLimit::ALL, &self.limits, *limit);
        }
        self.durations.add(took);
    }

    pub(crate) fn counts(&self) -> CallCounts {
        CallCounts {
            results: counted(&CallResult::ALL, &self.results),
            limits: counted(&BudgetLimit::ALL, &self.limits),
            durations: self.durations.counts(),
        }
    }
}

fn add<T: PartialEq>(all: &[T], counts: &[AtomicU64], one: T) {
    let counts = all.iter().zip(counts);
    counts.filter(|(of, _)| **of == one).for_each(|(_, count)| _ = count.fetch_add(1, Ordering::Relaxed));
}

/// What has not happened yet is told as well, so that the first time is seen as one more.
fn counted<T: Copy>(all: &[T], counts: &[AtomicU64]) -> Vec<(T, u64)> {
    all.iter().zip(counts).map(|(of, count)| (*of, count.load(Ordering::Relaxed))).collect()
}

/// The calls of a component so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallCounts {
    /// How often they came to what.
    pub results: Vec<(CallResult, u64)>,
    /// How often they met which limit.
    pub limits: Vec<(BudgetLimit, u64)>,
    /// How long they took, waiting for room included.
    pub durations: DurationCounts,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;

    #[test]
    fn a_call_is_counted_by_what_it_came_to_and_by_the_limit_that_it_met() {
        let figures = CallFigures::default();
        let crash = Error::Exit { status: 1, wrote: None, logged: None };
        let limit = Error::limit(BudgetLimit::Memory, &Budget::default());
        let ended = [
            Ok(()),
            Ok(()),
            Err(crash),
            Err(limit),
            Err(Error::Busy { what: "stack" }),
            Err(Error::of_another_function()),
        ];
        for answer in &ended {
            figures.count(answer, Duration::from_secs(1));
        }
        let mut durations = DurationCounts::default();
        ended.iter().for_each(|_| durations.add(Duration::from_secs(1)));
        let results = [
            (CallResult::Answered, 2),
            (CallResult::Limited, 1),
            (CallResult::Crashed, 1),
            (CallResult::NoRoom, 1),
            (CallResult::Failed, 1),
        ];
        let limits = BudgetLimit::ALL.map(|limit| (limit, u64::from(limit == BudgetLimit::Memory))).to_vec();
        let expected = CallCounts { results: results.to_vec(), limits, durations };
        assert_eq!(figures.counts(), expected);
    }
}
