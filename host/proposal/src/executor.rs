//! The states of the execution of a proposal, and what each event leads to. [`next`] is the whole table: pure, so that it
//! can be read and tested on its own. `host/apply` performs the effect of a step and reports the event.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::{
    Gate, Next, ObjectKey, ObjectWrite, Ownership, Proposal, Readiness, ReadinessRule, ReadinessScope, Stage,
    StageFailure, check::key_of, health::has_rule, inventory::LocatedObject,
};
use orangery_core::error::Problem;

/// Where the execution of a proposal stands. Stored in the status of the item.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ExecutionStep {
    /// In a stage, or behind the last one.
    Stage(Position),
    /// What left the plan is deleted.
    Pruning,
    /// Exports are collected.
    Exporting,
    /// In a stage after the exports, or behind the last one.
    Afterwards(Position),
    /// What lives for the job only is deleted.
    Tidying,
    /// The component is to be called again. A struct, because a null on the wire would be no value.
    Calling {
        /// Not before this time.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<Timestamp>,
    },
    /// The component is to be called again with the failure of a stage.
    Recovering(StageFailure),
    /// Nothing is left to do but deleting the inventory.
    Deleting,
}

/// Where in a list of stages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Position {
    /// The index of the stage; the number of stages stands for the end of the list.
    pub stage: usize,
    /// The step in it.
    pub step: StageStep,
}

/// Where in a stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StageStep {
    /// Removals.
    #[default]
    Removing,
    /// Definitions of kinds.
    Defining,
    /// All other writes.
    Writing,
    /// The gate.
    Waiting,
}

/// What has happened.
#[derive(Clone, Debug, PartialEq)]
pub enum ExecutionEvent {
    /// The objects that the stage removes are gone.
    Removed,
    /// The kinds that the stage defines are served.
    Defined,
    /// All other objects of the stage are written.
    Written,
    /// The gate of the stage is passed.
    GatePassed,
    /// No stage is left in the list.
    StagesPassed {
        /// The time.
        now: Timestamp,
    },
    /// The stage has failed: a write, its gate or its timeout.
    StageFailed {
        /// The object that is to blame, if one is.
        key: Option<ObjectKey>,
        /// What happened.
        problem: Problem,
    },
    /// What left the plan is deleted.
    Pruned,
    /// The exports are written.
    Exported,
    /// What lives for the job only is deleted.
    Tidied,
    /// The component has been called again and has answered this proposal.
    GateResult,
    /// The time of the item is up.
    TimedOut(Problem),
    /// The inventory is deleted.
    Deleted,
}

/// What an event leads to.
#[derive(Clone, Debug, PartialEq)]
pub enum ExecutionTransition {
    /// The execution goes on with this step.
    Continue(ExecutionStep),
    /// The proposal is carried out.
    Finish,
    /// The item fails as the proposal asks.
    Fail(Problem),
    /// The item fails with what was reported: the component does not recover from it.
    Unrecovered,
    /// The event does not happen in this step.
    Impossible,
}

use ExecutionEvent as Event;
use ExecutionStep as Step;
use ExecutionTransition::{Continue, Fail, Finish, Impossible, Unrecovered};

/// The step that follows `step` of a proposal when `event` has happened.
pub fn next(proposal: &Proposal, step: &Step, event: Event) -> ExecutionTransition {
    match (step, event) {
        (Step::Stage(_) | Step::Afterwards(_), event) => in_stages(proposal, step, event),
        (Step::Pruning, Event::Pruned) => Continue(Step::Exporting),
        (Step::Exporting, Event::Exported) => Continue(Step::Afterwards(Position::default())),
        (Step::Tidying, Event::Tidied) | (Step::Deleting, Event::Deleted) => Finish,
        (Step::Calling { .. } | Step::Recovering(_), Event::GateResult) => Continue(Step::Stage(Position::default())),
        (_, Event::TimedOut(_)) => Unrecovered,
        (
            Step::Pruning
            | Step::Exporting
            | Step::Tidying
            | Step::Calling { .. }
            | Step::Recovering(_)
            | Step::Deleting,
            _,
        ) => Impossible,
    }
}

fn in_stages(proposal: &Proposal, step: &Step, event: Event) -> ExecutionTransition {
    let (Some(position), Some(list)) = (step.position(), StageList::of(step)) else { return Impossible };
    let Some(stage) = stage(proposal, step) else {
        return match (event, list) {
            (Event::StagesPassed { now }, StageList::Before) => after_stages(&proposal.next, now),
            (Event::StagesPassed { .. }, StageList::After) => Continue(Step::Tidying),
            (Event::TimedOut(_), _) => Unrecovered,
            (_, _) => Impossible,
        };
    };
    match (position.step, event) {
        (StageStep::Removing, Event::Removed) => Continue(list.at(position.step(StageStep::Defining))),
        (StageStep::Defining, Event::Defined) => Continue(list.at(position.step(StageStep::Writing))),
        (StageStep::Writing, Event::Written) => Continue(list.at(position.step(StageStep::Waiting))),
        (StageStep::Waiting, Event::GatePassed) => Continue(list.at(Position::stage(position.stage + 1))),
        (_, Event::StageFailed { key, problem }) => recover(proposal, stage, key, problem),
        (_, Event::TimedOut(problem)) => recover(proposal, stage, None, problem),
        (_, _) => Impossible,
    }
}

fn after_stages(next: &Next, now: Timestamp) -> ExecutionTransition {
    match next {
        Next::Finish(_) => Continue(Step::Pruning),
        Next::Fail(problem) => Fail(problem.clone()),
        Next::ContinueWith(_) => Continue(Step::Calling { after: None }),
        Next::AgainIn { after, .. } => {
            let span = SignedDuration::from_millis(i64::try_from(*after).unwrap_or(i64::MAX));
            Continue(Step::Calling { after: Some(now.checked_add(span).unwrap_or(Timestamp::MAX)) })
        }
    }
}

fn recover(proposal: &Proposal, stage: &Stage, key: Option<ObjectKey>, problem: Problem) -> ExecutionTransition {
    match proposal.recover {
        Some(_) => Continue(Step::Recovering(StageFailure { stage: stage.name.clone(), key, problem })),
        None => Unrecovered,
    }
}

/// The two lists of stages of a proposal.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StageList {
    /// Before the exports.
    Before,
    /// After the exports.
    After,
}

impl StageList {
    fn of(step: &Step) -> Option<Self> {
        match step {
            Step::Stage(_) => Some(Self::Before),
            Step::Afterwards(_) => Some(Self::After),
            Step::Pruning
            | Step::Exporting
            | Step::Tidying
            | Step::Calling { .. }
            | Step::Recovering(_)
            | Step::Deleting => None,
        }
    }

    fn at(self, position: Position) -> Step {
        match self {
            Self::Before => Step::Stage(position),
            Self::After => Step::Afterwards(position),
        }
    }
}

impl ExecutionStep {
    /// Where the step stands in its list of stages; `None` outside of stages.
    pub fn position(&self) -> Option<Position> {
        match self {
            Self::Stage(position) | Self::Afterwards(position) => Some(*position),
            Self::Pruning
            | Self::Exporting
            | Self::Tidying
            | Self::Calling { .. }
            | Self::Recovering(_)
            | Self::Deleting => None,
        }
    }

    /// Whether both steps belong to one stage of one list.
    pub fn is_in_stage_of(&self, other: &Self) -> bool {
        let stage = |step: &Self| step.position().map(|position| position.stage);
        self.position().is_some() && StageList::of(self) == StageList::of(other) && stage(self) == stage(other)
    }
}

impl Position {
    /// The beginning of a stage.
    pub fn stage(stage: usize) -> Self {
        Self { stage, step: StageStep::Removing }
    }

    /// Another step of the same stage.
    pub fn step(self, step: StageStep) -> Self {
        Self { step, ..self }
    }
}

/// The stage of a step; `None` outside of stages and behind the last one.
pub fn stage<'p>(proposal: &'p Proposal, step: &ExecutionStep) -> Option<&'p Stage> {
    let (before, after) = stages(proposal);
    let list = match StageList::of(step)? {
        StageList::Before => before,
        StageList::After => after,
    };
    list.get(step.position()?.stage)
}

/// The stages of a proposal before its exports, and those after them.
pub fn stages(proposal: &Proposal) -> (&[Stage], &[Stage]) {
    let afterwards = match &proposal.next {
        Next::Finish(completion) => completion.afterwards.as_slice(),
        Next::Fail(_) | Next::ContinueWith(_) | Next::AgainIn { .. } => &[],
    };
    (&proposal.stages, afterwards)
}

/// Every write of a proposal with its place. Objects without an identity are left out: the check has refused them.
pub fn writes(proposal: &Proposal) -> impl Iterator<Item = (LocatedObject, &ObjectWrite)> {
    let (stages, afterwards) = stages(proposal);
    stages.iter().chain(afterwards).flat_map(|stage| &stage.writes).filter_map(|write| {
        let key = key_of(&write.object).ok()?;
        Some((LocatedObject { on: write.on.clone(), key }, write))
    })
}

/// Whether the status has to say that a step of a stored proposal was entered from another one, before anything is done in
/// it: where a stage begins, where what was removed may be written again, and before what ends with the job is deleted. After
/// a crash nothing must be removed once more, or waited for that was (INV-6).
pub fn must_be_recorded(proposal: &Proposal, from: &ExecutionStep, to: &ExecutionStep) -> bool {
    if *to == Step::Tidying {
        return writes(proposal).any(|(_, write)| write.owned == Ownership::Ephemeral);
    }
    let Some(entered) = stage(proposal, to) else { return false };
    // Exports may be written twice.
    let Some(before) = from.position() else { return !entered.removals.is_empty() };
    let removed = before.step == StageStep::Removing && !entered.removals.is_empty() && !entered.writes.is_empty();
    !to.is_in_stage_of(from) || removed
}

/// Whether a proposal must be stored before its first write: where it may wait, go on with another call or do something
/// after its exports, a crash or a new leader has to go on with exactly it. Others are asked for again.
pub fn must_be_stored(proposal: &Proposal) -> bool {
    let done_at_once = match &proposal.next {
        Next::Finish(completion) => completion.afterwards.is_empty(),
        Next::Fail(_) => true,
        Next::ContinueWith(_) | Next::AgainIn { .. } => false,
    };
    !done_at_once || proposal.recover.is_some() || proposal.stages.iter().any(may_wait)
}

fn may_wait(stage: &Stage) -> bool {
    if !stage.removals.is_empty() {
        return true;
    }
    match &stage.gate {
        Gate::Accepted | Gate::Gone => false,
        Gate::Completed(keys) => !keys.is_empty(),
        Gate::Ready(checks) => checks.iter().any(|check| check_may_wait(check, stage)),
    }
}

fn check_may_wait(check: &Readiness, stage: &Stage) -> bool {
    let (ReadinessScope::Stage, ReadinessRule::Usual) = (&check.scope, &check.rule) else { return true };
    stage.writes.iter().any(|write| key_of(&write.object).map_or(true, |key| has_rule(key.group(), &key.kind)))
}

#[cfg(test)]
mod tests;
