//! Workflows: which items of a graph may start now, which have to go, and what came of all of them (WF-01 … WF-55).
//!
//! The engine knows neither objects nor jobs nor time. It is given what became of each item so far and what its gate expressions
//! answer, and says what to do next. It keeps nothing between two evaluations, so it may be asked as often as one likes (WF-52,
//! WF-54). An Execution is such a workflow (WF-10); so is anything else that is built with [`Workflow::new`] and run by
//! whoever calls [`Workflow::evaluate`] (WF-11).
//!
//! ```
//! use orangery_core::{dag::Direction, workflow::{Ending, Facts, Workflow, WorkflowItemState, WorkflowPolicy}};
//!
//! let workflow = Workflow::new([("database", vec![]), ("app", vec!["database"])])?;
//! let facts = |name: &str| match name {
//!     "database" => Facts::of(WorkflowItemState::Reconciled),
//!     _ => Facts::of(WorkflowItemState::Idle),
//! };
//! let decision = workflow.evaluate(Direction::Forward, WorkflowPolicy::default(), facts);
//! assert_eq!(decision.starts(), ["app"]);
//! assert_eq!(decision.ending(), None);
//!
//! let decision = workflow.evaluate(Direction::Forward, WorkflowPolicy::default(), |_| Facts::of(WorkflowItemState::Reconciled));
//! assert_eq!(decision.ending(), Some(Ending::Done));
//! assert!(decision.all_ready());
//! # Ok::<(), orangery_core::dag::DagError>(())
//! ```

use std::{collections::BTreeMap, fmt, mem, num::NonZeroU32};

use crate::dag::{Dag, DagError, Direction};

/// Which gate expression of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GateKind {
    /// Whether the item takes part at all (WF-05).
    Activate,
    /// Whether the item is wanted (WF-02).
    When,
    /// Whether a reconciled item is ready (WF-03).
    Ready,
    /// Whether an item that is no longer there is gone in every respect (WF-04).
    Deleted,
}

impl GateKind {
    /// All of them, in the order in which they are asked.
    pub const ALL: [Self; 4] = [Self::Activate, Self::When, Self::Ready, Self::Deleted];

    /// Its field.
    pub fn name(self) -> &'static str {
        match self {
            Self::Activate => "activateWhen",
            Self::When => "when",
            Self::Ready => "readyWhen",
            Self::Deleted => "deletedWhen",
        }
    }

    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|gate| gate.name() == name)
    }
}

impl fmt::Display for GateKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a gate expression answers. Doubt is an answer of its own: it waits, and never deletes (C-07).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Answer {
    /// It holds; so does a gate expression that was not set.
    #[default]
    Met,
    /// It is known not to hold.
    NotMet,
    /// It cannot be told now.
    Unknown,
}

/// What the gate expressions of an item answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answers {
    /// Whether the item takes part at all (WF-05). One that does not is left as it is (WF-24).
    pub activate: Answer,
    /// Whether the item is wanted (WF-02). One that is not has to go, with everything that depends on it (WF-20, WF-21).
    pub when: Answer,
    /// Whether a reconciled item is ready: what depends on it waits for that (WF-03, WF-19).
    pub ready: Answer,
    /// Whether an item that is no longer there is gone in every respect (WF-04, WF-28).
    pub deleted: Answer,
}

/// What became of an item in this run so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WorkflowItemState {
    /// It is not there.
    Absent,
    /// It is there, and nothing was asked of it yet.
    Idle,
    /// It is being reconciled.
    Reconciling,
    /// It was reconciled.
    Reconciled,
    /// It could not be reconciled.
    ReconcileFailed,
    /// It is being deleted.
    Deleting,
    /// It could not be deleted.
    DeleteFailed,
}

/// All that an evaluation has to know of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// What became of it.
    pub state: WorkflowItemState,
    /// What its gate expressions answer.
    pub answers: Answers,
    /// Whether what it made stays when it is deleted: nothing has to wait until it is gone (WF-27).
    pub keep: bool,
}

impl Facts {
    /// Of an item without gate expressions.
    pub fn of(state: WorkflowItemState) -> Self {
        Self { state, answers: Answers::default(), keep: false }
    }
}

/// What is to become of an item in this run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DesiredAction {
    /// It is to be reconciled.
    Reconcile,
    /// It has to be deleted.
    Delete,
    /// It takes no part, and is left as it is (WF-24).
    Leave,
    /// A gate expression that decides it cannot be told yet.
    Undecided,
}

/// The class of an item: A to E of the rules, and F. Every item is in exactly one (EXE-23, C-01).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// A: it is what it is to be (EXE-19); one that is deleted is gone (EXE-46), one that takes no part is left alone.
    Succeeded,
    /// B: it failed (EXE-20, EXE-46).
    Failed,
    /// C: it is under way, which is over only when its last gate expression holds (EXE-21, C-03).
    Running,
    /// D: it may start (EXE-22, EXE-47).
    Runnable,
    /// E: something has to come before it (EXE-22, EXE-47).
    Pending,
    /// F: something that has to come before it failed (C-01).
    Blocked,
}

/// What a failure does to the others (C-01).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailurePolicy {
    /// Nothing more is started (EXE-25, EXE-49).
    #[default]
    StopTriggering,
    /// It holds up only what depends on it, in a deletion what it depends on (WF-13, WF-43).
    ContinueIndependent,
}

impl FailurePolicy {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::StopTriggering, Self::ContinueIndependent];

    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::StopTriggering => "StopTriggering",
            Self::ContinueIndependent => "ContinueIndependent",
        }
    }

    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.name() == name)
    }
}

/// How a workflow is run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkflowPolicy {
    /// What a failure does to the others.
    pub failure: FailurePolicy,
    /// How many items may be under way at once; all of them where it is not set (WF-14, WF-15).
    pub max_parallel: Option<NonZeroU32>,
}

/// How a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Every item is what it is to be.
    Done,
    /// Nothing can be done any more, and some items failed.
    Failed,
    /// Nothing can be done any more though nothing failed: the rest wait for each other, or for what does not exist
    /// (EXE-29).
    Stuck,
}

/// A graph of items.
#[derive(Clone, Debug, Default)]
pub struct Workflow {
    names: Vec<String>,
    /// For each item those right before it, forward and backward; `None` stands for a name that is no item's.
    dependencies: Vec<Vec<Option<usize>>>,
    dependents: Vec<Vec<Option<usize>>>,
}

/// What a look at a workflow found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkflowDecision<'a> {
    items: Vec<WorkflowItem<'a>>,
    starts: Vec<usize>,
    queued: Vec<usize>,
    ending: Option<Ending>,
}

/// One item in a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkflowItem<'a> {
    /// Its name.
    pub name: &'a str,
    /// What is to become of it.
    pub desired: DesiredAction,
    /// Its class.
    pub class: Class,
    /// The gate expression of its own that alone is waited for: its class would be another one if that were known. It is the
    /// one to be asked now.
    pub awaits: Option<GateKind>,
}

impl Workflow {
    /// A workflow of these items, each with what it depends on; refused where the graph is not sound (WF-16).
    pub fn new<'a>(items: impl IntoIterator<Item = (&'a str, Vec<&'a str>)>) -> Result<Self, DagError> {
        Dag::new(items).map(|dag| Self::from(&dag))
    }

    /// What to do now. `facts` are asked for once for each item, in the order of declaration.
    pub fn evaluate(
        &self,
        direction: Direction,
        policy: WorkflowPolicy,
        mut facts: impl FnMut(&str) -> Facts,
    ) -> WorkflowDecision<'_> {
        let facts: Vec<Facts> = self.names.iter().map(|name| facts(name)).collect();
        let desired = match direction {
            Direction::Forward => self.desired(&facts),
            Direction::Backward => vec![DesiredAction::Delete; facts.len()],
        };
        let mut seen = WorkflowEvaluation { workflow: self, facts: &facts, desired: &desired, classes: Vec::new() };
        seen.classes = facts.iter().zip(&desired).map(|(facts, desired)| standing(facts, *desired)).collect();
        seen.classes = (0..facts.len()).map(|item| seen.class(item)).collect();
        if policy.failure == FailurePolicy::ContinueIndependent {
            seen.block();
        }
        seen.decide(policy)
    }

    /// What is to become of each item in a run forward. What its gate expressions say counts until it was asked for something;
    /// afterwards it stays with that, however often they change.
    fn desired(&self, facts: &[Facts]) -> Vec<DesiredAction> {
        let mut desired: Vec<DesiredAction> = facts.iter().map(own_desired_action).collect();
        // WF-21, WF-25: all that depends on what goes or takes no part goes too, in whatever order that is found.
        let mut ahead: Vec<usize> = Vec::new();
        ahead.extend(
            (0..desired.len())
                .filter(|item| matches!(desired.get(*item), Some(DesiredAction::Delete | DesiredAction::Leave))),
        );
        let mut reached = vec![false; desired.len()];
        while let Some(item) = ahead.pop() {
            for dependent in self.dependents.get(item).into_iter().flatten().flatten().copied() {
                let (Some(reached), Some(desired), Some(facts)) =
                    (reached.get_mut(dependent), desired.get_mut(dependent), facts.get(dependent))
                else {
                    continue;
                };
                if mem::replace(reached, true) {
                    continue;
                }
                ahead.push(dependent);
                // Whether it takes part at all comes first.
                if facts.answers.activate == Answer::Met || *desired == DesiredAction::Reconcile {
                    *desired = DesiredAction::Delete;
                }
            }
        }
        desired
    }
}

impl From<&Dag> for Workflow {
    /// Of a graph that may have cycles and unknown names: such a run ends [`Ending::Stuck`].
    fn from(dag: &Dag) -> Self {
        let names: Vec<String> = dag.nodes().map(str::to_owned).collect();
        let index: BTreeMap<&str, usize> = names.iter().map(String::as_str).zip(0..).collect();
        let before = |direction| {
            let of = |name: &String| dag.before(name, direction).map(|other| index.get(other).copied()).collect();
            names.iter().map(of).collect()
        };
        let (dependencies, dependents) = (before(Direction::Forward), before(Direction::Backward));
        Self { names, dependencies, dependents }
    }
}

/// What an item's own gate expressions and its state make of it.
fn own_desired_action(facts: &Facts) -> DesiredAction {
    match (facts.state, facts.answers.activate, facts.answers.when) {
        (WorkflowItemState::Reconciling | WorkflowItemState::Reconciled | WorkflowItemState::ReconcileFailed, _, _) => {
            DesiredAction::Reconcile
        }
        (WorkflowItemState::Deleting | WorkflowItemState::DeleteFailed, _, _) => DesiredAction::Delete,
        (WorkflowItemState::Absent | WorkflowItemState::Idle, Answer::NotMet, _) => DesiredAction::Leave,
        (WorkflowItemState::Absent | WorkflowItemState::Idle, Answer::Met, Answer::NotMet) => DesiredAction::Delete,
        (WorkflowItemState::Absent | WorkflowItemState::Idle, Answer::Met, Answer::Met) => DesiredAction::Reconcile,
        (WorkflowItemState::Absent | WorkflowItemState::Idle, Answer::Unknown, _)
        | (WorkflowItemState::Absent | WorkflowItemState::Idle, Answer::Met, Answer::Unknown) => {
            DesiredAction::Undecided
        }
    }
}

/// The class as far as it follows from the item alone; `Pending` where that depends on others.
fn standing(facts: &Facts, desired: DesiredAction) -> Class {
    let settled = |answer| if answer == Answer::Met { Class::Succeeded } else { Class::Running };
    match (desired, facts.state) {
        (DesiredAction::Leave, _) => Class::Succeeded,
        (
            DesiredAction::Reconcile | DesiredAction::Delete,
            WorkflowItemState::ReconcileFailed | WorkflowItemState::DeleteFailed,
        ) => Class::Failed,
        (
            DesiredAction::Reconcile | DesiredAction::Delete,
            WorkflowItemState::Reconciling | WorkflowItemState::Deleting,
        ) => Class::Running,
        (DesiredAction::Reconcile, WorkflowItemState::Reconciled) => settled(facts.answers.ready),
        (DesiredAction::Delete, WorkflowItemState::Absent) => settled(facts.answers.deleted),
        (DesiredAction::Reconcile, WorkflowItemState::Absent | WorkflowItemState::Idle)
        | (DesiredAction::Delete, WorkflowItemState::Idle | WorkflowItemState::Reconciled) => Class::Pending,
        (DesiredAction::Undecided, _) => Class::Pending,
    }
}

fn count(most: NonZeroU32) -> usize {
    usize::try_from(most.get()).unwrap_or(usize::MAX)
}

/// Facts and desired actions of one evaluation, and the classes found so far.
struct WorkflowEvaluation<'w, 'f> {
    workflow: &'w Workflow,
    facts: &'f [Facts],
    desired: &'f [DesiredAction],
    classes: Vec<Class>,
}

impl<'w> WorkflowEvaluation<'w, '_> {
    fn desired(&self, item: usize) -> Option<DesiredAction> {
        self.desired.get(item).copied()
    }

    fn is(&self, item: usize, class: Class) -> bool {
        self.classes.get(item) == Some(&class)
    }

    /// The class of an item, given what all others are by themselves.
    fn class(&self, item: usize) -> Class {
        let own = self.classes.get(item).copied().unwrap_or(Class::Pending);
        if own == Class::Pending && self.desired(item) != Some(DesiredAction::Undecided) && self.is_free(item) {
            Class::Runnable
        } else {
            own
        }
    }

    /// Whether nothing has to come before the item any more.
    fn is_free(&self, item: usize) -> bool {
        let (before, has_passed): (_, fn(&Self, usize) -> bool) = match self.desired(item) {
            Some(DesiredAction::Delete) => (&self.workflow.dependents, Self::has_gone),
            _ => (&self.workflow.dependencies, Self::is_ready),
        };
        before.get(item).into_iter().flatten().all(|other| other.is_some_and(|other| has_passed(self, other)))
    }

    /// WF-18: what depends on it may be reconciled (C-02).
    fn is_ready(&self, item: usize) -> bool {
        self.desired(item) == Some(DesiredAction::Reconcile) && self.is(item, Class::Succeeded)
    }

    /// WF-38: what it depends on may be deleted.
    fn has_gone(&self, item: usize) -> bool {
        let Some(facts) = self.facts.get(item) else { return false };
        match self.desired(item) {
            Some(DesiredAction::Leave) => true,
            Some(DesiredAction::Delete) => facts.keep || self.is(item, Class::Succeeded),
            Some(DesiredAction::Reconcile | DesiredAction::Undecided) | None => {
                facts.state == WorkflowItemState::Absent
            }
        }
    }

    /// Class F: what waits for something that failed.
    fn block(&mut self) {
        let mut ahead: Vec<usize> = (0..self.classes.len()).filter(|item| self.is(*item, Class::Failed)).collect();
        while let Some(item) = ahead.pop() {
            let goes = self.desired(item) == Some(DesiredAction::Delete);
            let after = if goes { &self.workflow.dependencies } else { &self.workflow.dependents };
            for other in after.get(item).into_iter().flatten().flatten().copied() {
                let same_way = goes == (self.desired(other) == Some(DesiredAction::Delete));
                if let Some(class @ Class::Pending) = self.classes.get_mut(other).filter(|_| same_way) {
                    *class = Class::Blocked;
                    ahead.push(other);
                }
            }
        }
    }

    /// The gate expression of its own that alone is waited for, and not what has to come before the item anyway. Nothing is
    /// decided about items that are not started any more.
    fn awaits(&self, item: usize, stops: bool) -> Option<GateKind> {
        let facts = self.facts.get(item)?;
        match (self.desired(item), self.classes.get(item)) {
            (Some(DesiredAction::Undecided), Some(Class::Pending)) if !stops => {
                let goes =
                    |other: &usize| matches!(self.desired(*other), Some(DesiredAction::Delete | DesiredAction::Leave));
                let mut dependencies = self.workflow.dependencies.get(item).into_iter().flatten().flatten();
                let gate = if facts.answers.activate == Answer::Met { GateKind::When } else { GateKind::Activate };
                (self.is_free(item) || dependencies.any(goes)).then_some(gate)
            }
            (_, Some(Class::Running)) => match facts.state {
                WorkflowItemState::Reconciled => Some(GateKind::Ready),
                WorkflowItemState::Absent => Some(GateKind::Deleted),
                WorkflowItemState::Idle
                | WorkflowItemState::Reconciling
                | WorkflowItemState::ReconcileFailed
                | WorkflowItemState::Deleting
                | WorkflowItemState::DeleteFailed => None,
            },
            (_, Some(_) | None) => None,
        }
    }

    fn decide(self, policy: WorkflowPolicy) -> WorkflowDecision<'w> {
        let every = || 0..self.classes.len();
        let has = |class| every().any(|item| self.is(item, class));
        let stops = policy.failure == FailurePolicy::StopTriggering && has(Class::Failed);
        let items = every().zip(&self.workflow.names).map(|(item, name)| WorkflowItem {
            name,
            desired: self.desired(item).unwrap_or(DesiredAction::Undecided),
            class: self.classes.get(item).copied().unwrap_or(Class::Pending),
            awaits: self.awaits(item, stops),
        });
        let items: Vec<WorkflowItem<'w>> = items.collect();
        let mut starts: Vec<usize> = every().filter(|item| !stops && self.is(*item, Class::Runnable)).collect();
        let under_way = every().filter(|item| self.is(*item, Class::Running)).count();
        let room = policy.max_parallel.map_or(starts.len(), |most| count(most).saturating_sub(under_way));
        let queued = starts.split_off(room.min(starts.len()));
        let waits = items.iter().any(|item| item.awaits.is_some());
        let ending = if under_way > 0 || !starts.is_empty() || waits {
            None
        } else if has(Class::Failed) {
            Some(Ending::Failed)
        } else if has(Class::Pending) {
            Some(Ending::Stuck)
        } else {
            Some(Ending::Done)
        };
        WorkflowDecision { items, starts, queued, ending }
    }
}

impl<'a> WorkflowDecision<'a> {
    /// All items, in the order of declaration.
    pub fn items(&self) -> &[WorkflowItem<'a>] {
        &self.items
    }

    /// The names of the items in a class, in the order of declaration.
    pub fn in_class(&self, class: Class) -> impl Iterator<Item = &'a str> {
        self.items.iter().filter(move |item| item.class == class).map(|item| item.name)
    }

    /// The items to be started now, each towards its desired action, in the order of declaration.
    pub fn starting(&self) -> impl Iterator<Item = &WorkflowItem<'a>> {
        self.starts.iter().filter_map(|item| self.items.get(*item))
    }

    /// The names of the items to be started now.
    pub fn starts(&self) -> Vec<&'a str> {
        self.names(&self.starts)
    }

    /// The names of the items that could start if more were allowed to be under way at once (WF-15).
    pub fn queued(&self) -> Vec<&'a str> {
        self.names(&self.queued)
    }

    fn names(&self, items: &[usize]) -> Vec<&'a str> {
        items.iter().filter_map(|item| self.items.get(*item)).map(|item| item.name).collect()
    }

    /// How the run ends; `None` while something is under way or waited for.
    pub fn ending(&self) -> Option<Ending> {
        self.ending
    }

    /// Whether every item is what it is to be (WF-12).
    pub fn all_ready(&self) -> bool {
        self.items.iter().all(|item| item.class == Class::Succeeded)
    }
}

#[cfg(test)]
mod tests;
