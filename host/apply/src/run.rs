//! Carrying a proposal out: stage by stage, each step resumed from where the page says the job stands.

use std::collections::BTreeSet;

use jiff::Timestamp;
use orangery_core::{
    error::{Failure, Problem},
    step::{Halt, Step},
};
use orangery_proposal::{
    Next, ObjectWrite, Ownership, Proposal, Stage, StageFailure, Write,
    check::key_of,
    inventory::{Located, groups},
    item::{At, Kept, Position, Progress, must_be_kept, stages, writes},
};

use crate::{
    Job, Ledger, Outcome, Page, Purpose,
    error::{NOT_SERVED, Setback, all, code},
    site::Site,
    write::is_of_item,
};

mod stage;

/// Objects of one group that are written or deleted at the same time.
pub(crate) const AT_ONCE: usize = 16;

/// Takes a proposal as far as it goes without waiting. A page without progress begins it; one with progress goes on
/// with it. The proposal has been checked.
///
/// Before the first object is written, the ledger has the whole inventory; before anything waits, it has the proposal.
/// On a halt, the page says where the job stands and is the caller's to write.
///
/// # Errors
/// A wait for what a watch tells, a failure that may pass, or one that ends the job.
pub async fn carry_out(job: &Job<'_>, ledger: &mut dyn Ledger, proposal: &Proposal, page: &mut Page) -> Step<Outcome> {
    let beginning = (At::Stage(Position::default()), job.clock.now());
    let recovers_until = page.progress.as_ref().and_then(|progress| progress.recovers_until);
    let (entry, (at, since), planned) = match page.progress.take() {
        Some(Progress { at: At::Calling { .. } | At::Recovering(_) | At::Deleting, planned, .. }) => {
            (Entrance::NextCall, beginning, planned)
        }
        Some(Progress { at, since, planned, .. }) => (Entrance::Resumed, (at, since), planned),
        None => (Entrance::FirstCall, beginning, BTreeSet::new()),
    };
    let kept = page.kept.take().filter(|_| entry == Entrance::Resumed);
    let site = Site::new(job, Some(proposal));
    let mut run = Run { site, ledger, proposal, page, kept, at, since, planned, recovers_until };
    let begun = match entry {
        Entrance::Resumed => Ok(()),
        Entrance::FirstCall => run.begin(must_be_kept(proposal)).await,
        // A crash must not begin the job's calls again.
        Entrance::NextCall => run.begin(true).await,
    };
    let result = match begun {
        Ok(()) => run.drive().await,
        Err(setback) => Err(setback.halt),
    };
    match result {
        Ok(outcome) => Ok(outcome),
        Err(halt) => Err(run.rest(halt).await),
    }
}

/// How a look comes to its proposal.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Entrance {
    /// The first call of the job has just answered it.
    FirstCall,
    /// A later call has.
    NextCall,
    /// An earlier look has begun it.
    Resumed,
}

struct Run<'a> {
    site: Site<'a>,
    ledger: &'a mut dyn Ledger,
    proposal: &'a Proposal,
    page: &'a mut Page,
    kept: Option<Kept>,
    at: At,
    since: Timestamp,
    /// What the proposals before this one have planned.
    planned: BTreeSet<Located>,
    /// Until when the component may put things right; `None` while the item has time.
    recovers_until: Option<Timestamp>,
}

impl Run<'_> {
    /// Joins what is to come to the inventory and has it recorded.
    async fn begin(&mut self, keeps: bool) -> Result<(), Setback> {
        if let Some(first) = self.proposal.stages.first() {
            self.refuse_unplaced(first).await?;
        }
        for (located, write) in writes(self.proposal) {
            if self.page.inventory.0.contains_key(&located) || !self.is_foreign(&located, write).await? {
                self.page.inventory.plan(located, write);
            }
        }
        if let Some(status) = &self.proposal.status {
            self.page.status = Some(status.clone());
        }
        self.page.deletion_order.clone_from(&self.proposal.deletion_order);
        if keeps {
            self.keep().await?;
        }
        let touches = self.proposal.stages.iter().any(|stage| !stage.writes.is_empty() || !stage.removals.is_empty());
        let prunes = self.prunes() && !self.page.inventory.leaving(&self.all_planned()).is_empty();
        if touches || prunes || self.kept.is_some() {
            self.record().await?;
        }
        Ok(())
    }

    /// Objects of the first stage that can be written nowhere fail the job before anything is recorded or written.
    async fn refuse_unplaced(&self, stage: &Stage) -> Result<(), Setback> {
        let mut results = Vec::new();
        for write in &stage.writes {
            results.push(self.site.spot(&located(write)?).await.map(drop));
        }
        all(results).map(drop)
    }

    /// Whether an object that only may be created, or held where nobody else does, belongs to somebody else.
    async fn is_foreign(&self, located: &Located, write: &ObjectWrite) -> Result<bool, Setback> {
        if write.how != Write::Create && write.owned != Ownership::Fallback {
            return Ok(false);
        }
        let spot = match self.site.spot(located).await {
            Ok(spot) => spot,
            // A later stage may bring the kind about: then there is no such object yet.
            Err(setback) if setback.halt.failure().is_some_and(|failure| failure.reason == NOT_SERVED) => {
                return Ok(false);
            }
            Err(setback) => return Err(setback),
        };
        Ok(spot.get().await?.is_some_and(|live| !is_of_item(&live, self.site.job)))
    }

    async fn drive(&mut self) -> Step<Outcome> {
        let (stages, afterwards) = stages(self.proposal);
        loop {
            match self.at.clone() {
                At::Stage(position) => match stages.get(position.stage) {
                    Some(stage) => match self.stage(stage, position, At::Stage).await {
                        Ok(()) => self.move_on(At::Stage(Position::stage(position.stage + 1))).await?,
                        Err(setback) => return self.failed(stage, setback),
                    },
                    None => match self.after_stages() {
                        Some(outcome) => return Ok(outcome),
                        None => self.enter(At::Pruning),
                    },
                },
                At::Pruning => {
                    self.prune().await?;
                    self.enter(At::Exporting);
                }
                At::Exporting => {
                    self.export().await?;
                    self.enter(At::Afterwards(Position::default()));
                }
                At::Afterwards(position) => match afterwards.get(position.stage) {
                    Some(stage) => match self.stage(stage, position, At::Afterwards).await {
                        Ok(()) => self.move_on(At::Afterwards(Position::stage(position.stage + 1))).await?,
                        Err(setback) => return self.failed(stage, setback),
                    },
                    None => self.enter(At::Tidying),
                },
                At::Tidying => {
                    let ephemeral = groups(&[], &self.page.inventory.ephemeral());
                    self.site.delete_groups(ephemeral, &mut self.page.inventory).await.map_err(halt)?;
                    return Ok(self.finished(Outcome::Finished));
                }
                At::Calling { .. } | At::Recovering(_) | At::Deleting => return Ok(Outcome::Call),
            }
        }
    }

    /// Where the proposal leads after its last stage; `None` for its completion.
    fn after_stages(&mut self) -> Option<Outcome> {
        match &self.proposal.next {
            Next::Finish(_) => None,
            Next::Fail(problem) => {
                let problem = problem.clone();
                Some(self.finished(Outcome::Failed(problem)))
            }
            Next::ContinueWith(_) => Some(self.call(At::Calling { after: None })),
            Next::AgainIn { after, .. } => {
                let span = jiff::SignedDuration::from_millis(i64::try_from(*after).unwrap_or(i64::MAX));
                let now = self.site.job.clock.now();
                let after = Some(now.checked_add(span).unwrap_or(Timestamp::MAX));
                Some(self.call(At::Calling { after }))
            }
        }
    }

    fn prunes(&self) -> bool {
        self.site.job.purpose == Purpose::Install && matches!(self.proposal.next, Next::Finish(_))
    }

    /// What is in the inventory and in none of this job's proposals goes.
    async fn prune(&mut self) -> Step<()> {
        if !self.prunes() {
            return Ok(());
        }
        let planned = self.all_planned();
        let groups = groups(&self.proposal.pruning_order, &self.page.inventory.leaving(&planned));
        self.site.delete_groups(groups, &mut self.page.inventory).await.map_err(halt)?;
        // Kept objects, and what no group takes in, stay in the cluster and are forgotten.
        self.page.inventory.0.retain(|located, _| planned.contains(located));
        Ok(())
    }

    async fn export(&mut self) -> Step<()> {
        let Next::Finish(completion) = &self.proposal.next else { return Ok(()) };
        if completion.exports.is_empty() {
            return Ok(());
        }
        let exports = self.site.collect(&completion.exports).await.map_err(halt)?;
        self.site.job.fence().map_err(Halt::from)?;
        self.ledger.export(&exports).await
    }

    fn all_planned(&self) -> BTreeSet<Located> {
        let now = writes(self.proposal).map(|(located, _)| located);
        now.chain(self.planned.iter().cloned()).collect()
    }

    /// A failed stage: the component recovers if it wants to, else the item fails.
    fn failed(&mut self, stage: &Stage, setback: Setback) -> Step<Outcome> {
        let Setback { halt, key } = setback;
        match (halt, &self.proposal.recover) {
            (Halt::Stall(failure), Some(_)) => {
                let problem = Problem { code: code(&failure), message: failure.message, at: None };
                Ok(self.call(At::Recovering(StageFailure {
                    stage: stage.name.clone(),
                    key: key.map(|key| *key),
                    problem,
                })))
            }
            (halt, _) => Err(halt),
        }
    }

    fn call(&mut self, at: At) -> Outcome {
        self.planned = self.all_planned();
        self.enter(at);
        self.page.progress = self.progress();
        self.page.kept.clone_from(&self.kept);
        Outcome::Call
    }

    fn finished(&mut self, outcome: Outcome) -> Outcome {
        self.page.progress = None;
        self.page.kept.clone_from(&self.kept);
        outcome
    }

    /// The job stops here for now: what waits is kept, so that exactly it is gone on with.
    async fn rest(&mut self, halt: Halt) -> Halt {
        if self.site.job.fence().is_err() {
            return halt;
        }
        if matches!(halt, Halt::Wait(_))
            && let Err(unkept) = self.keep().await
        {
            return unkept;
        }
        self.page.progress = self.progress();
        self.page.kept.clone_from(&self.kept);
        halt
    }

    fn enter(&mut self, at: At) {
        self.since = self.site.job.clock.now();
        self.at = at;
    }

    /// Into the next stage: recorded where a crash has to find it.
    async fn move_on(&mut self, at: At) -> Step<()> {
        let (stages, afterwards) = stages(self.proposal);
        let begins = match &at {
            At::Stage(position) => position.stage < stages.len(),
            At::Afterwards(position) => position.stage < afterwards.len(),
            At::Pruning | At::Exporting | At::Tidying | At::Calling { .. } | At::Recovering(_) | At::Deleting => false,
        };
        self.enter(at);
        if begins && self.kept.is_some() { self.record().await } else { Ok(()) }
    }

    async fn keep(&mut self) -> Step<()> {
        if self.kept.is_none() {
            self.kept = Some(self.ledger.keep(self.proposal).await?);
        }
        Ok(())
    }

    async fn record(&mut self) -> Step<()> {
        self.site.job.fence().map_err(Halt::from)?;
        self.page.progress = self.progress();
        self.page.kept.clone_from(&self.kept);
        self.ledger.record(self.page).await
    }

    /// Only what is kept can be gone on with.
    fn progress(&self) -> Option<Progress> {
        self.kept.as_ref()?;
        Some(Progress {
            job: self.site.job.id.to_owned(),
            at: self.at.clone(),
            since: self.since,
            planned: self.planned.clone(),
            recovers_until: self.recovers_until,
        })
    }
}

fn halt(setback: Setback) -> Halt {
    setback.halt
}

pub(crate) fn located(write: &ObjectWrite) -> Result<Located, Setback> {
    let key = key_of(&write.object).map_err(|message| Halt::Stall(Failure::new("Apply", "InvalidObject", message)))?;
    Ok(Located { on: write.on.clone(), key })
}
