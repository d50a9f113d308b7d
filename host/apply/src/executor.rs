//! Carrying a proposal out: the effect of the current step is performed, and the table of
//! [`orangery_proposal::executor`] says which step follows. A crash is resumed from the step that the status names.

use std::collections::BTreeSet;

use jiff::Timestamp;
use orangery_core::{
    error::{Failure, Problem},
    step::{Halt, Step},
};
use orangery_proposal::{
    Next, ObjectWrite, Proposal,
    check::key_of,
    executor::{
        ExecutionEvent, ExecutionStep, ExecutionTransition, Position, must_be_recorded, must_be_stored, next, stage,
        writes,
    },
    inventory::{LocatedObject, groups},
    item::{Progress, StoredProposal},
};

use crate::{
    ItemState, Job, Outcome, ProgressStore, Purpose, apply_error::ApplyError, job_objects::JobObjects,
    writer::ObjectWriter,
};
use orangery_cluster::code;

mod begin;
mod pruning;
mod stage;

/// Objects of one group that are written or deleted at the same time.
pub(crate) const AT_ONCE: usize = 16;

/// Takes a proposal as far as it goes without waiting. A state without progress begins it; one with progress goes on with it.
/// The proposal has been checked.
///
/// Before the first object is written, the store has the whole inventory; before anything waits, it has the proposal.
/// On a halt, the state says where the job stands and is the caller's to write.
///
/// # Errors
/// A wait for what a watch reports, a failure that may pass, or one that ends the job.
pub async fn carry_out(
    job: &Job<'_>,
    store: &mut dyn ProgressStore,
    proposal: &Proposal,
    state: &mut ItemState,
) -> Step<Outcome> {
    execute(JobObjects::new(job, &ObjectWriter::Server, Some(proposal)), store, proposal, state).await
}

/// The one path of a run and of a dry run: the writer of the objects tells them apart.
pub(crate) async fn execute(
    objects: JobObjects<'_>,
    store: &mut dyn ProgressStore,
    proposal: &Proposal,
    state: &mut ItemState,
) -> Step<Outcome> {
    let (mut executor, start) = Executor::new(objects, store, proposal, state);
    // Boxed, as is what it waits for: it would stand on the stack once for each function above.
    match Box::pin(executor.run(start)).await {
        Ok(outcome) => Ok(outcome),
        Err(halt) => Err(executor.halt(halt).await),
    }
}

/// How the execution comes to its proposal.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Start {
    /// The first call of the job has just answered it.
    FirstCall,
    /// A later call has.
    NextCall,
    /// It has begun before.
    Resumed,
}

struct Executor<'a> {
    objects: JobObjects<'a>,
    store: &'a mut dyn ProgressStore,
    proposal: &'a Proposal,
    state: &'a mut ItemState,
    stored: Option<StoredProposal>,
    step: ExecutionStep,
    since: Timestamp,
    /// What the proposals before this one have planned.
    planned: BTreeSet<LocatedObject>,
    /// Until when the component may recover; `None` while the item has time.
    recovers_until: Option<Timestamp>,
}

impl<'a> Executor<'a> {
    fn new(
        objects: JobObjects<'a>,
        store: &'a mut dyn ProgressStore,
        proposal: &'a Proposal,
        state: &'a mut ItemState,
    ) -> (Self, Start) {
        let now = objects.job.clock.now();
        let recovers_until = state.progress.as_ref().and_then(|progress| progress.recovers_until);
        let (start, step, since, planned) = match state.progress.take() {
            None => (Start::FirstCall, ExecutionStep::Stage(Position::default()), now, BTreeSet::new()),
            Some(progress) => match next(proposal, &progress.step, ExecutionEvent::GateResult) {
                ExecutionTransition::Continue(step) => (Start::NextCall, step, now, progress.planned),
                ExecutionTransition::Finish
                | ExecutionTransition::Fail(_)
                | ExecutionTransition::Unrecovered
                | ExecutionTransition::Impossible => (Start::Resumed, progress.step, progress.since, progress.planned),
            },
        };
        let stored = state.stored.take().filter(|_| start == Start::Resumed);
        (Self { objects, store, proposal, state, stored, step, since, planned, recovers_until }, start)
    }

    async fn run(&mut self, start: Start) -> Step<Outcome> {
        match start {
            // What was written is in another cluster than the target names by now: the proposal begins anew in that one.
            Start::Resumed => {
                if self.check_clusters().await.map_err(|error| error.halt)? {
                    self.step = ExecutionStep::Stage(Position::default());
                    self.since = self.objects.job.clock.now();
                    Box::pin(self.begin(true)).await?;
                }
            }
            Start::FirstCall => Box::pin(self.begin(must_be_stored(self.proposal))).await?,
            // A crash must not begin the job's calls again.
            Start::NextCall => Box::pin(self.begin(true)).await?,
        }
        loop {
            match Box::pin(self.transition()).await? {
                None => return Ok(self.call()),
                Some(ExecutionTransition::Continue(step)) => Box::pin(self.enter(step)).await?,
                Some(ExecutionTransition::Finish) => return Ok(self.finish(Outcome::Finished)),
                Some(ExecutionTransition::Fail(problem)) => return Ok(self.finish(Outcome::Failed(problem))),
                Some(ExecutionTransition::Unrecovered | ExecutionTransition::Impossible) => return Err(self.stuck()),
            }
        }
    }

    /// Performs the effect of the step, and looks up what its event leads to; `None` where the component is to be called.
    async fn transition(&mut self) -> Step<Option<ExecutionTransition>> {
        let (failure, key) = match Box::pin(self.perform()).await {
            Ok(event) => return Ok(event.map(|event| next(self.proposal, &self.step, event))),
            Err(ApplyError { halt: Halt::Stall(failure), key }) => (failure, key.map(|key| *key)),
            Err(ApplyError { halt, .. }) => return Err(halt),
        };
        let problem = Problem { code: code(&failure), message: failure.message.clone(), at: None };
        match next(self.proposal, &self.step, ExecutionEvent::StageFailed { key, problem }) {
            ExecutionTransition::Unrecovered | ExecutionTransition::Impossible => Err(Halt::Stall(failure)),
            transition => Ok(Some(transition)),
        }
    }

    /// The effect of the step. A dry run takes what would be waited for as given, and reads no exports.
    async fn perform(&mut self) -> Result<Option<ExecutionEvent>, ApplyError> {
        let (proposal, dry_run) = (self.proposal, self.objects.is_dry_run());
        Ok(Some(match self.step {
            ExecutionStep::Stage(position) | ExecutionStep::Afterwards(position) => match stage(proposal, &self.step) {
                Some(stage) => Box::pin(self.perform_in(stage, position.step)).await?,
                None => ExecutionEvent::StagesPassed { now: self.objects.job.clock.now() },
            },
            ExecutionStep::Pruning => {
                self.prune().await?;
                ExecutionEvent::Pruned
            }
            ExecutionStep::Exporting => {
                if !dry_run {
                    self.export().await?;
                }
                ExecutionEvent::Exported
            }
            ExecutionStep::Tidying => {
                if !dry_run {
                    let ephemeral = groups(&[], &self.state.inventory.ephemeral());
                    self.objects.delete_groups(ephemeral, self.state).await?;
                }
                ExecutionEvent::Tidied
            }
            ExecutionStep::Calling { .. } | ExecutionStep::Recovering(_) | ExecutionStep::Deleting => return Ok(None),
        }))
    }

    fn prunes(&self) -> bool {
        self.objects.job.purpose == Purpose::Install && matches!(self.proposal.next, Next::Finish(_))
    }

    async fn export(&mut self) -> Result<(), ApplyError> {
        let Next::Finish(completion) = &self.proposal.next else { return Ok(()) };
        if completion.exports.is_empty() {
            return Ok(());
        }
        let collected = self.objects.collect(&completion.exports, &self.state.inventory).await?;
        self.objects.job.fence()?;
        Ok(self.store.export(&collected.exports).await?)
    }

    fn all_planned(&self) -> BTreeSet<LocatedObject> {
        let now = writes(self.proposal).map(|(located, _)| located);
        now.chain(self.planned.iter().cloned()).collect()
    }

    /// Enters a step. The time of a stage goes on in all of its steps.
    async fn enter(&mut self, step: ExecutionStep) -> Step<()> {
        let must_be_recorded = must_be_recorded(self.proposal, &self.step, &step);
        if !step.is_in_stage_of(&self.step) {
            self.since = self.objects.job.clock.now();
        }
        self.step = step;
        if must_be_recorded && self.stored.is_some() { self.record().await } else { Ok(()) }
    }

    fn call(&mut self) -> Outcome {
        self.planned = self.all_planned();
        self.update_state();
        Outcome::Call
    }

    fn finish(&mut self, outcome: Outcome) -> Outcome {
        self.state.progress = None;
        self.state.stored.clone_from(&self.stored);
        outcome
    }

    /// The job stops here for now: a proposal that waits is stored, so that exactly it is gone on with.
    async fn halt(&mut self, halt: Halt) -> Halt {
        if self.objects.job.fence().is_err() {
            return halt;
        }
        if matches!(halt, Halt::Wait(_))
            && let Err(not_stored) = self.persist().await
        {
            return not_stored;
        }
        self.update_state();
        halt
    }

    /// What the table answers to no event that a step of the executor has.
    fn stuck(&self) -> Halt {
        let message = format!("the execution of the proposal does not go on from {:?}", self.step);
        Halt::Stall(Failure::new("Apply", "ImpossibleTransition", message))
    }

    async fn persist(&mut self) -> Step<()> {
        if self.stored.is_none() {
            self.stored = Some(self.store.persist(self.proposal).await?);
        }
        Ok(())
    }

    async fn record(&mut self) -> Step<()> {
        self.objects.job.fence().map_err(|error| error.halt)?;
        self.update_state();
        self.store.record(self.state).await
    }

    fn update_state(&mut self) {
        self.state.progress = self.progress();
        self.state.stored.clone_from(&self.stored);
    }

    /// Only a stored proposal can be gone on with.
    fn progress(&self) -> Option<Progress> {
        self.stored.as_ref()?;
        Some(Progress {
            job: self.objects.job.id.clone(),
            step: self.step.clone(),
            since: self.since,
            planned: self.planned.clone(),
            recovers_until: self.recovers_until,
        })
    }
}

pub(crate) fn located(write: &ObjectWrite) -> Result<LocatedObject, ApplyError> {
    let key = key_of(&write.object).map_err(|message| Halt::Stall(Failure::new("Apply", "InvalidObject", message)))?;
    Ok(LocatedObject { on: write.on.clone(), key })
}
