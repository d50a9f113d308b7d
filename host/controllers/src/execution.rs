//! The Execution controller: keeps deploy items equal to the spec, triggers them in order, collects their exports
//! (EXE-01 … EXE-51).
//!
//! It renders nothing, starts no job by itself, and never touches what a deployer made.

use std::{sync::Arc, time::Duration};

use orangery_api::{
    deploy_item::DeployItem,
    execution::{DeployItemTemplate, Execution, Records, records, write_records},
    job::Job,
    label,
    marks::{Marks, Operation},
};
use orangery_apply::{ClusterPool, ClusterSet};
use orangery_core::{
    job::{JobIds, Situation, Work, interrupted, work},
    phase::execution::Execution as Phase,
    step::{Halt, Step, Verdict},
    walk::{Transition, beside_children},
};
use orangery_reconcile::{Controller, Next, Queue};

use crate::{
    again,
    conditions::{Expressions, Items, after_walk, release_with},
    host::{Host, index, key_of, waiter},
    job::{self, JobStatus, standing_phase, walk},
    object::is_bereft,
    outdated::observing_root,
    target::TargetConnections,
};

mod conditions;
mod deletion;
mod exports;
mod interrupt;
mod items;

/// Who waits on clusters.
pub(crate) const KIND: &str = "Execution";

/// Drives Executions.
pub struct ExecutionController {
    host: Arc<Host>,
    pool: Arc<ClusterPool>,
    queue: Queue,
    installations: Queue,
    expressions: Expressions,
}

/// One job's walk over an Execution: the object as it will be written where the walk rests.
struct Run<'a> {
    host: &'a Host,
    /// Spec and metadata as read; the status is the draft of the next write.
    draft: Execution,
    /// Empty until a phase needs them.
    items: Arc<Items<DeployItemTemplate>>,
    /// What conditions answered in this job.
    records: Records,
    /// The clusters that conditions look at.
    clusters: ClusterSet,
    expressions: &'a Expressions,
    /// The time until the first condition that is waited for is given up.
    left: Option<Duration>,
    job: String,
}

impl ExecutionController {
    /// Over a host and its clusters. `queue` is the controller's own: deadlines of conditions wake Executions in it. In that of the
    /// installations conditions that answer otherwise wake the root.
    pub fn new(host: Arc<Host>, pool: Arc<ClusterPool>, queue: Queue, installations: Queue) -> Self {
        release_with(&host, &host.stores.executions, KIND, &pool);
        Self { host, pool, queue, installations, expressions: Expressions::default() }
    }

    /// A walk over an Execution.
    fn walk_from(&self, before: &Execution, job: String) -> Run<'_> {
        let key = key_of(before);
        let whose = format!("Execution {}", key.name);
        let connections = TargetConnections::named(&self.host, &self.pool, &key.namespace, whose);
        Run {
            host: &self.host,
            draft: before.clone(),
            items: Arc::default(),
            records: records(before.status.as_ref().map(|status| status.items.as_slice()).unwrap_or_default()),
            clusters: self.pool.set(Arc::new(connections), waiter(KIND, &key)),
            expressions: &self.expressions,
            left: None,
            job,
        }
    }

    async fn run(&self, before: &Execution, job: String, (phase, fresh): (Phase, bool)) -> Result<Next, Halt> {
        let key = key_of(before);
        let mut run = self.walk_from(before, job);
        if fresh {
            let now = self.host.now();
            let generation = before.metadata.generation;
            let status = run.draft.status.get_or_insert_default();
            status.begin(&now);
            status.job_generation = generation;
            run.records.clear();
            // The root has counted them.
            self.host.outdated.set(&(KIND, key.clone()), Vec::new());
        }
        let (phase, transition) = walk(&mut run, phase).await;
        after_walk(&self.host, (&self.pool, &self.queue), (KIND, key), &transition, run.left);
        run.rest(before, phase, transition).await
    }
}

impl ExecutionController {
    /// An Execution at rest whose root starts jobs by changes: what decided about its items is watched, and the root is woken where
    /// that answers otherwise now.
    async fn rest_look(&self, execution: &Execution) -> Result<Next, Halt> {
        let (host, key) = (&self.host, key_of(execution));
        let answered = execution.status.as_ref().is_some_and(|status| !status.items.is_empty());
        let root = if answered && !execution.is_deleting() { observing_root(&host.stores, &key) } else { None };
        let changed = match &root {
            Some(_) => self.walk_from(execution, execution.job_id().to_owned()).changed().await?,
            None => {
                self.pool.release(&waiter(KIND, &key));
                Vec::new()
            }
        };
        if host.outdated.set(&(KIND, key), changed)
            && let Some(root) = root
        {
            self.installations.wake(key_of(root.as_ref()));
        }
        Ok(Next::Settled)
    }
}

impl Controller for ExecutionController {
    type Object = Execution;
    const NAME: &'static str = "execution";

    async fn reconcile(&self, execution: Arc<Execution>) -> Result<Next, Halt> {
        let host = self.host.as_ref();
        if execution.operation() == Some(Operation::Interrupt) {
            return interrupt::interrupt(host, &execution).await;
        }
        let ids = JobIds::new(execution.job_id(), execution.job_id_finished());
        let phase = Phase::parse(execution.phase());
        let deleting = execution.is_deleting();
        let situation = Situation {
            ids: &ids,
            root: is_bereft(&host.stores.installations, execution.as_ref()),
            requested: false,
            deleting,
            in_deletion: phase.is_some_and(orangery_core::phase::Phase::is_deletion),
        };
        match work(situation) {
            Work::None => self.rest_look(&execution).await,
            Work::Start => start_deletion(host, &execution).await,
            Work::Continue { job } => self.run(&execution, job, standing_phase(phase, deleting)).await,
        }
    }

    /// Deployers elsewhere write to the items, anybody to what conditions look at.
    async fn look_again(&self, execution: Arc<Execution>) -> Result<(), Halt> {
        let (host, key) = (self.host.as_ref(), key_of(execution.as_ref()));
        self.pool.renew(&waiter(KIND, &key));
        again::read(host, &host.stores.executions, &key).await?;
        let items = &host.stores.deploy_items;
        let known = items.indexed(index::MANAGED_BY, &key.namespace, &key.name);
        again::list(host, items, known, &key.namespace, (label::MANAGED_BY, &key.name)).await
    }
}

/// The deletion of an Execution whose Installation is gone: nobody but itself starts it.
async fn start_deletion(host: &Host, before: &Execution) -> Result<Next, Halt> {
    let mut after = before.clone();
    let generation = before.metadata.generation.unwrap_or_default();
    let status = after.status.get_or_insert_default();
    status.trigger(&host.chance.job_id(), Phase::InitDelete, generation, &host.now());
    let writer = host.writer(&host.stores.executions);
    writer.update_status(before, &after).await.map_err(|error| error.halt("StartJob"))?;
    Ok(Next::Again)
}

impl job::Run for Run<'_> {
    type Phase = Phase;

    async fn phase(&mut self, phase: Phase) -> Step<Verdict> {
        let result = match phase {
            Phase::Init | Phase::InitDelete if self.is_interrupted() => Ok(Verdict::Failed(interrupted())),
            Phase::Init => self.init().await,
            Phase::Progressing => self.progressing().await,
            Phase::Completing => self.completing().await,
            Phase::InitDelete => self.init_delete().await,
            Phase::Deleting => self.deleting().await,
            Phase::Succeeded | Phase::Failed | Phase::DeleteFailed => Ok(Verdict::Done),
        };
        beside_children(result, || self.has_working_items())
    }
}

impl Run<'_> {
    /// Whether an item works for this job.
    fn has_working_items(&self) -> bool {
        let running =
            |item: &DeployItem| JobIds::new(item.job_id(), item.job_id_finished()).running() == Some(&self.job);
        self.objects().iter().any(|item| running(item))
    }

    /// Writes where the walk rests: one write.
    async fn rest(mut self, before: &Execution, phase: Phase, transition: Transition<Phase>) -> Result<Next, Halt> {
        let store = &self.host.stores.executions;
        let Some(rest) = job::resting(self.host, before, phase, &transition)? else {
            job::release(self.host, store, before).await?;
            return Ok(Next::Settled);
        };
        let generation = before.metadata.generation.unwrap_or_default();
        let now = self.host.now();
        let status = self.draft.status.get_or_insert_default();
        status.items = write_records(&self.records);
        status.rest(&rest, generation, &now);
        let writer = self.host.writer(store);
        let written = writer.update_status(before, &self.draft).await;
        written.map_err(|error| job::unwritten(&transition, error.halt("UpdateStatus")))?;
        job::next(transition, None)
    }
}
