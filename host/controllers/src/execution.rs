//! The Execution controller: keeps deploy items equal to the spec, triggers them in order, collects their exports
//! (EXE-01 … EXE-51).
//!
//! It renders nothing, starts no job by itself, and never touches what a deployer made.

use std::sync::Arc;

use orangery_api::{execution::Execution, label};
use orangery_cluster::ClusterPool;
use orangery_core::{job::Work, name::JobId, step::Halt};
use orangery_reconcile::{Controller, Key, NextCall, Queue};

use self::{
    dependencies::deploy_items,
    reconciliation::{Clusters, ExecutionReconciliation},
    trigger::ExecutionTrigger,
};
use crate::{
    controller_context::{ControllerContext, waiter},
    gates::{Expressions, release_at_rest, release_when_gone},
    job::walk,
    refresh,
    stores::Kind,
    workflow::changed_answers,
};

mod apply;
pub(crate) mod dependencies;
mod gather;
mod phases;
mod reconciliation;
mod status;
mod trigger;

/// Drives Executions.
pub struct ExecutionController {
    host: Arc<ControllerContext>,
    clusters: Clusters,
    queue: Queue,
    installations: Queue,
}

impl ExecutionController {
    /// Over a host and its clusters. `queue` is the controller's own: deadlines of conditions wake Executions in it. In that of the
    /// installations conditions that answer otherwise wake the root.
    pub fn new(host: Arc<ControllerContext>, pool: Arc<ClusterPool>, queue: Queue, installations: Queue) -> Self {
        release_when_gone::<Execution>(&host, &pool);
        let clusters = Clusters { pool, expressions: Arc::new(Expressions::default()) };
        Self { host, clusters, queue, installations }
    }

    /// A job goes on: from the phase in which it rests as far as it goes without waiting, then one write.
    async fn go_on(&self, execution: &Execution, job: JobId) -> Result<NextCall, Halt> {
        let mut run = ExecutionReconciliation::of(&self.host, &self.clusters, execution, job);
        // Trigger: a job that begins.
        let phase = run.begin();
        // Gather, decide, apply: phase by phase.
        let (phase, transition) = walk(&mut run, phase).await;
        // Status.
        let key = (Kind::Execution, Key::of(execution));
        release_at_rest(&self.host, (&self.clusters.pool, &self.queue), key, &transition, run.workflow.left);
        run.rest(execution, phase, transition).await
    }

    /// An Execution at rest whose root starts jobs by changes: what decided about its items is watched, and the root is woken where
    /// that answers otherwise now.
    async fn rest(&self, execution: &Execution) -> Result<NextCall, Halt> {
        let (host, key) = (&self.host, Key::of(execution));
        let root = trigger::observing_root_of_answers(&host.stores, execution);
        let changed = match &root {
            Some(_) => {
                let mut run =
                    ExecutionReconciliation::of(host, &self.clusters, execution, trigger::last_job(execution));
                run.load_items()?;
                changed_answers(&run).await?
            }
            None => {
                self.clusters.pool.release(&waiter(Kind::Execution, &key));
                Vec::new()
            }
        };
        if host.changed_answers.set(&(Kind::Execution, key), changed)
            && let Some(root) = root
        {
            self.installations.wake(Key::of(root.as_ref()));
        }
        Ok(NextCall::Settled)
    }
}

impl Controller for ExecutionController {
    type Object = Execution;
    const NAME: &'static str = "execution";

    async fn reconcile(&self, execution: Arc<Execution>) -> Result<NextCall, Halt> {
        match trigger::gather(&self.host.stores, &execution) {
            ExecutionTrigger::Interrupt => trigger::interrupt(&self.host, &execution).await,
            ExecutionTrigger::Work(Work::None) => self.rest(&execution).await,
            ExecutionTrigger::Work(Work::Start) => trigger::start_deletion(&self.host, &execution).await,
            ExecutionTrigger::Work(Work::Continue { job }) => self.go_on(&execution, job).await,
        }
    }

    /// External deployers write to the items, anybody to what conditions look at.
    async fn refresh(&self, execution: Arc<Execution>) -> Result<(), Halt> {
        let (host, key) = (self.host.as_ref(), Key::of(execution.as_ref()));
        self.clusters.pool.renew(&waiter(Kind::Execution, &key));
        refresh::read(host, &host.stores.executions, &key).await?;
        let known = deploy_items(&host.stores, &key);
        refresh::list(host, &host.stores.deploy_items, known, &key.namespace, (label::MANAGED_BY, &key.name)).await
    }
}
