//! Why a reconcile stops early, and what a phase concluded.
//!
//! A step of a reconcile either yields its value or halts, and there are exactly three reasons to halt. The reasons
//! join: [`all`] runs every step and keeps what all of them need.

use std::{collections::BTreeSet, fmt, time::Duration};

use crate::error::Failure;

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

/// What a waiting object waits for: objects, a time, or both. There is no wait for nothing (ORC-08).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    on: BTreeSet<Waiting>,
    poll: Option<Duration>,
}

/// One object waited for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Waiting {
    /// Its kind.
    pub kind: String,
    /// Its name, with the namespace where it differs from the waiter's.
    pub name: String,
    /// What must become of it.
    pub until: Until,
}

/// What must become of an object that is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Until {
    /// It exists.
    Exists,
    /// It is ready.
    Ready,
    /// It has finished its job.
    Finished,
    /// It is gone.
    Gone,
    /// It is met, as a condition is.
    Met,
    /// It has room for one more.
    Room,
}

impl fmt::Display for Until {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Until::Exists => "to exist",
            Until::Ready => "to become ready",
            Until::Finished => "to finish",
            Until::Gone => "to be gone",
            Until::Met => "to be met",
            Until::Room => "to have room",
        })
    }
}

impl Until {
    const ALL: [Until; 6] = [Until::Exists, Until::Ready, Until::Finished, Until::Gone, Until::Met, Until::Room];
}

impl Waiting {
    fn read(text: &str) -> Option<Self> {
        let (kind, rest) = text.split_once(' ')?;
        let (name, until) = rest.split_once(' ')?;
        let until = Until::ALL.into_iter().find(|word| word.to_string() == until)?;
        Some(Self { kind: kind.to_owned(), name: name.to_owned(), until })
    }
}

impl Wait {
    /// The wait that a condition's message tells of; none where it tells of something else. What the message only counts
    /// is not in it.
    pub fn read(message: &str) -> Option<Self> {
        let mut list = message.strip_prefix("waiting for ")?;
        if let Some((shown, _)) = list.strip_suffix(" more").and_then(|list| list.rsplit_once(" and ")) {
            list = shown;
        }
        Self::each(list.split(", ").map(Waiting::read).collect::<Option<BTreeSet<_>>>()?)
    }

    /// Waiting for one object.
    pub fn on(kind: impl Into<String>, name: impl Into<String>, until: Until) -> Self {
        Self { on: BTreeSet::from([Waiting { kind: kind.into(), name: name.into(), until }]), poll: None }
    }

    /// Waiting for each of these objects; `None` where there are none.
    pub fn each(on: impl IntoIterator<Item = Waiting>) -> Option<Self> {
        let on: BTreeSet<Waiting> = on.into_iter().collect();
        (!on.is_empty()).then_some(Self { on, poll: None })
    }

    /// Waiting for what nobody can watch: called again after this long (ORC-09).
    pub fn poll(after: Duration) -> Self {
        Self { on: BTreeSet::new(), poll: Some(after) }
    }

    /// The same wait, called again after this long at the latest.
    pub fn within(mut self, limit: Duration) -> Self {
        self.poll = Some(self.poll.map_or(limit, |poll| poll.min(limit)));
        self
    }

    /// The objects, and what must become of them.
    pub fn objects(&self) -> &BTreeSet<Waiting> {
        &self.on
    }

    /// After how long it is called again, an event apart.
    pub fn again_in(&self) -> Option<Duration> {
        self.poll
    }

    /// The reason of the conditions: `WaitingFor<Kind>` of the first object.
    pub fn reason(&self) -> String {
        match self.on.first() {
            Some(waiting) => format!("WaitingFor{}", waiting.kind),
            None => "Waiting".to_owned(),
        }
    }

    fn join(&mut self, other: Wait) {
        self.on.extend(other.on);
        self.poll = [self.poll, other.poll].into_iter().flatten().min();
    }
}

/// Stable between reconciles: sorted, no times.
impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 5;
        f.write_str("waiting for ")?;
        for (index, waiting) in self.on.iter().take(SHOWN).enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{} {} {}", waiting.kind, waiting.name, waiting.until)?;
        }
        match self.on.len().saturating_sub(SHOWN) {
            0 if self.on.is_empty() => f.write_str("the next attempt"),
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

impl Halt {
    /// Waiting for one object.
    pub fn wait(kind: impl Into<String>, name: impl Into<String>, until: Until) -> Self {
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
        left.message = format!("{}; {}", left.message, right.message);
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
        let named = Waiting { kind: "Target".to_owned(), name: "a".to_owned(), until: Until::Exists };
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
    fn who_only_waits_has_not_failed() {
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
    fn what_is_waited_for_can_be_read_from_the_message() {
        let wait = |names: &[&str]| {
            let on = names.iter().map(|name| Waiting {
                kind: "Target".to_owned(),
                name: (*name).to_owned(),
                until: if *name == "a" { Until::Exists } else { Until::Gone },
            });
            Wait::each(on).unwrap()
        };
        for names in [["a"].as_slice(), &["a", "b"], &["a", "b", "c", "d", "e"]] {
            assert_eq!(Wait::read(&wait(names).to_string()), Some(wait(names)));
        }
        let long = wait(&["a", "b", "c", "d", "e", "f", "g"]).to_string();
        assert_eq!(Wait::read(&long), Some(wait(&["a", "b", "c", "d", "e"])));
        for other in
            ["waiting for the next attempt", "waiting for Target", "could not be read", "waiting for A b to vanish"]
        {
            assert_eq!(Wait::read(other), None, "{other}");
        }
    }

    #[test]
    fn a_long_wait_is_cut() {
        let wait = all((0..7).map(|n| Err::<(), _>(Halt::wait("DeployItem", format!("i{n}"), Until::Finished))));
        let Err(Halt::Wait(wait)) = wait else { panic!("{wait:?}") };
        assert!(wait.to_string().ends_with("DeployItem i4 to finish and 2 more"), "{wait}");
    }
}
