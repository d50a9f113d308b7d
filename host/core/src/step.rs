//! Why a reconcile stops early, and what a phase concluded.
//!
//! A step of a reconcile either yields its value or halts, and there are exactly three reasons to halt. The reasons
//! join: [`all`] runs every step and keeps what all of them need.

use crate::error::{Failure, add_cause};
use crate::name::Kind;
pub use crate::step::wait::{Awaited, BEFORE_DELETION, LISTED, Location, Until, Wait, Waiting};

mod wait;

/// A step of a reconcile: its value, or why it stops here.
pub type Step<T> = Result<T, Halt>;

/// Why a reconcile stops early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Halt {
    /// Somebody else must act; a watch calls again (ORC-09, ORC-10).
    Wait(Wait),
    /// May succeed unchanged: called again with backoff (ORC-13, INS-49).
    Retry(Failure),
    /// Only a new spec or a new trigger helps (ORC-14, INS-51).
    Stall(Failure),
}

impl From<Waiting> for Halt {
    fn from(waiting: Waiting) -> Self {
        Halt::Wait(waiting.into())
    }
}

impl Halt {
    /// Waiting for one object beside the one that waits.
    pub fn wait(kind: impl Into<Kind>, name: impl Into<String>, until: Until) -> Self {
        Halt::Wait(Wait::on(kind, name, until))
    }

    /// The failure, unless it only waits.
    pub fn failure(&self) -> Option<&Failure> {
        match self {
            Halt::Wait(_) => None,
            Halt::Retry(failure) | Halt::Stall(failure) => Some(failure),
        }
    }

    /// Joins two reasons: waits merge, otherwise the graver kind wins and keeps the messages of its kind.
    pub fn join(self, other: Halt) -> Halt {
        match (self, other) {
            (Halt::Wait(mut left), Halt::Wait(right)) => {
                left.join(right);
                Halt::Wait(left)
            }
            (Halt::Retry(left), Halt::Retry(right)) => Halt::Retry(join_failures(left, right)),
            (Halt::Stall(left), Halt::Stall(right)) => Halt::Stall(join_failures(left, right)),
            (stall @ Halt::Stall(_), _) | (_, stall @ Halt::Stall(_)) => stall,
            (retry @ Halt::Retry(_), _) | (_, retry @ Halt::Retry(_)) => retry,
        }
    }
}

fn join_failures(mut left: Failure, right: Failure) -> Failure {
    if left.message != right.message {
        add_cause(&mut left.message, &right.message);
    }
    left.codes.extend(right.codes);
    left
}

/// Runs every step: all values, or all reasons to halt joined (WF-44: several failures are told together).
pub fn all<T>(steps: impl IntoIterator<Item = Step<T>>) -> Step<Vec<T>> {
    let mut values = Vec::new();
    let mut halted: Option<Halt> = None;
    for step in steps {
        match step {
            Ok(value) => values.push(value),
            Err(halt) => {
                halted = Some(match halted.take() {
                    Some(before) => before.join(halt),
                    None => halt,
                });
            }
        }
    }
    halted.map_or(Ok(values), Err)
}

/// What a phase concluded. A failed deploy item is a verdict, not an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// On to the next phase.
    Done,
    /// The job ends here.
    Failed(Failure),
}

/// The outcome of several parts of one phase: what is waited for first, then all that failed.
pub fn together(parts: impl IntoIterator<Item = Step<Verdict>>) -> Step<Verdict> {
    let verdicts = all(parts)?;
    let failures = verdicts.into_iter().filter_map(|verdict| match verdict {
        Verdict::Done => None,
        Verdict::Failed(failure) => Some(failure),
    });
    let together = failures.reduce(|mut all, failure| {
        all.message = format!("{}; {}", all.message, failure.message);
        all.codes.extend(failure.codes);
        all
    });
    Ok(together.map_or(Verdict::Done, Verdict::Failed))
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, time::Duration};

    use super::*;

    fn retry(message: &str) -> Halt {
        Halt::Retry(Failure::new("Op", "Reason", message))
    }

    fn stall(message: &str) -> Halt {
        Halt::Stall(Failure::new("Op", "Reason", message))
    }

    #[test]
    fn all_keeps_values_in_order() {
        assert_eq!(all([Ok(1), Ok(2)]), Ok(vec![1, 2]));
    }

    #[test]
    fn waits_merge_and_the_shortest_poll_wins() {
        let poll = |seconds, name: &str| {
            Halt::Wait(Wait::on("Target", name, Until::Exists).within(Duration::from_secs(seconds)))
        };
        let joined =
            all([Err::<(), _>(poll(9, "b")), Err(poll(5, "a")), Err(Halt::wait("Context", "c", Until::Ready))]);
        let Err(Halt::Wait(wait)) = joined else { panic!("{joined:?}") };
        assert_eq!(wait.again_in(), Some(Duration::from_secs(5)));
        assert_eq!(wait.to_string(), "waiting for Context c to become ready, Target a to exist, Target b to exist");
        assert_eq!(wait.reason(), "WaitingForContext");
    }

    #[test]
    fn orc_08_orc_09_a_wait_names_an_object_or_a_time() {
        assert_eq!(Wait::each([]), None);
        let named = Waiting::beside("Target", "a", Until::Exists);
        assert_eq!(Wait::on("Target", "a", Until::Exists).objects(), &BTreeSet::from([named]));
        let polled = Wait::poll(Duration::from_secs(7)).within(Duration::from_secs(9));
        assert_eq!((polled.again_in(), polled.objects().len()), (Some(Duration::from_secs(7)), 0));
        assert_eq!(
            (polled.reason(), polled.to_string()),
            ("Waiting".to_owned(), "waiting for the next attempt".to_owned())
        );
    }

    #[test]
    fn orc_12_the_graver_kind_wins() {
        let wait = || Halt::wait("Target", "a", Until::Exists);
        assert_eq!(wait().join(retry("x")), retry("x"));
        assert_eq!(retry("x").join(stall("y")), stall("y"));
        assert_eq!(stall("y").join(wait()), stall("y"));
    }

    #[test]
    fn a_wait_is_no_failure() {
        let failure = Failure::new("Op", "Reason", "x");
        assert_eq!(retry("x").failure(), Some(&failure));
        assert_eq!(stall("x").failure(), Some(&failure));
        assert_eq!(Halt::wait("Target", "a", Until::Exists).failure(), None);
    }

    #[test]
    fn wf_44_several_failures_are_told_together() {
        assert_eq!(retry("x").join(retry("y")), retry("x; y"));
        assert_eq!(stall("x").join(stall("x")), stall("x"));
    }

    #[test]
    fn a_long_wait_is_cut() {
        let wait = all((0..7).map(|n| Err::<(), _>(Halt::wait("DeployItem", format!("i{n}"), Until::Finished))));
        let Err(Halt::Wait(wait)) = wait else { panic!("{wait:?}") };
        assert!(wait.to_string().ends_with("DeployItem i4 to finish and 2 more"), "{wait}");
    }
}
