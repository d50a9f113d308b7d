//! The DeployItem controller: the deployer contract (`docs/wire.md` §7.1), kept once by the host for every component.
//!
//! Types that no component claims belong to external deployers and are left untouched. The component says what is to be
//! done, and `orangery_apply` carries it out: here the job begins, rests and ends, in one pipeline:
//! 1. `trigger`: whether a job of the item is to be worked on;
//! 2. `gather`: the item, its component, its clusters and its state, and what a component is asked and may ask;
//! 3. decide: [`orangery_proposal::item::decide`];
//! 4. `apply`: the component is called, and its proposal is carried out as far as it goes without waiting;
//! 5. `status`: one write says where the job rests.
//!
//! `dry_run` takes the same path without a job: nothing is written.

use std::sync::Arc;

use orangery_api::{deploy_item::DeployItem, label, marks::Marks as _};
use orangery_cluster::ClusterPool;
use orangery_core::{
    step::Halt,
    walk::{Transition, advance},
};
use orangery_proposal::item::decide;
use orangery_reconcile::{Controller, Crash, Key, NextCall, Queue, in_this_slot};

use self::{
    apply::{Applied, apply, approval::end_plans, former::release},
    gather::ItemReconciliation,
    plan_ahead::{between_jobs, wake_items as wake_planned},
    status::proposal_cache::ProposalCache,
    trigger::{ItemTrigger, concurrency::ConcurrencyLimiter, trigger},
};
use crate::{
    controller_context::{ControllerContext, waiter},
    ended_jobs::forget_ended,
    job, kept_credentials,
    namespace_policy::wake_items,
    plugins, refresh, refusal,
    stores::StoredKind,
};

mod apply;
mod crashes;
pub(crate) mod dependencies;
mod drift;
mod dry_run;
mod forgotten;
mod gather;
mod on_record;
mod plan_ahead;
mod planned;
mod status;
mod timeout;
mod trigger;

pub use self::{
    drift::{DriftController, ItemDrift, drift_of},
    dry_run::{ItemDryRun, dry_run, dry_run_of_deletion, proposals},
};

/// Drives DeployItems.
pub struct DeployItemController {
    host: Arc<ControllerContext>,
    pool: Arc<ClusterPool>,
    queue: Queue,
    cache: Arc<ProposalCache>,
    limiter: Arc<ConcurrencyLimiter>,
}

impl DeployItemController {
    /// Over a host and its clusters. `queue` is the controller's own: deadlines wake items in it.
    pub fn new(host: Arc<ControllerContext>, pool: Arc<ClusterPool>, queue: Queue) -> Self {
        let limiter = Arc::new(ConcurrencyLimiter::new(host.max_parallel, queue.clone()));
        let cache = Arc::new(ProposalCache::new(host.memory.proposals));
        let controller = Self { host, pool, queue, cache, limiter };
        controller.forget_deleted();
        kept_credentials::watch_deletions(&controller.host);
        wake_items(&controller.host, controller.queue.clone());
        plugins::wake_items(&controller.host, controller.queue.clone());
        wake_planned(&controller.host, controller.queue.clone());
        forget_ended(&controller.host, controller.queue.clone());
        controller
    }

    /// Where the job rests, in one write; and when the item is looked at again.
    async fn finish(&self, reconciliation: ItemReconciliation, applied: Applied) -> Result<NextCall, Halt> {
        let Applied { result, now, left } = applied;
        self.host.job_writes.rest(&reconciliation.gathered.tree_job(), &reconciliation.gathered.key);
        let transition = advance(reconciliation.phase, result);
        let Some(rest) = reconciliation.rest_on_record(&transition).await? else { return Ok(NextCall::Settled) };
        let ItemReconciliation { gathered, phase, mut status, state, awaited_approval, .. } = reconciliation;
        match rest {
            Some(rest) => {
                if rest.ended {
                    self.forget(&gathered.key);
                } else {
                    gathered.clusters.keep_waiting();
                    self.limiter.leave_while(&gathered.key, &transition);
                }
                let mut written = status.finish(&rest, state, now).await;
                if let (Err(Halt::Stall(refused)), true) = (&written, rest.ended) {
                    // As the job would have it, it cannot end: it fails, with the state that was accepted last (C-42).
                    let refused = Halt::Stall(refused.clone());
                    let failure = rest.failure.map_or(refused.clone(), |failure| Halt::Stall(failure).join(refused));
                    let failed = advance(phase, Err(failure));
                    if let Some(rest) = job::resting(&self.host, gathered.item.as_ref(), phase, &failed)? {
                        status.keep_state();
                        written = status.finish(&rest, None, now).await;
                    }
                }
                written.map_err(|write| job::unwritten(&transition, write))?;
                end_plans(&gathered, rest.ended, awaited_approval).await;
            }
            None => {
                release(&gathered, &mut status, state).await?;
                self.forget(&gathered.key);
            }
        }
        if let (Transition::Retry(_), Some(left)) = (&transition, left) {
            self.queue.wake_in(gathered.key, timeout::look_again_in(left));
        }
        job::next(transition, left)
    }

    /// One call, from the trigger to the status.
    async fn work(&self, item: &Arc<DeployItem>) -> Result<NextCall, Halt> {
        let now = self.host.now();
        // Trigger: the job that is to be worked on.
        let job = match trigger(&self.host, item, &now).await? {
            // It is called when what is being written of its drift is written.
            ItemTrigger::Job(_) if self.host.corrected_items.wait(&Key::of(item.as_ref()), &self.queue) => {
                return Ok(NextCall::Settled);
            }
            ItemTrigger::Job(job) => job,
            ItemTrigger::Done(next) => return Ok(next),
            ItemTrigger::None(deployer) => {
                let ended = between_jobs(&self.host, &self.pool, item, deployer).await;
                self.forget(&Key::of(item.as_ref()));
                return ended.map(|()| NextCall::Settled);
            }
        };
        // Gather: the item, its component, its clusters, and where its job stands.
        let mut reconciliation = ItemReconciliation::gather(&self.host, &self.pool, &self.cache, job, &now).await?;
        // Decide: what this call does.
        let action = decide(reconciliation.facts(&self.limiter));
        // Apply: the component's proposal, as far as it goes without waiting.
        // Answers of components, readiness and exports of objects take as long as their authors like.
        let applied = in_this_slot(apply(&mut reconciliation, action));
        let applied = self.host.computations.run(&Some(Key::of(item.as_ref()).namespace), applied).await?;
        // Status: where the job rests.
        self.finish(reconciliation, applied).await
    }
}

impl Controller for DeployItemController {
    type Object = DeployItem;
    const NAME: &'static str = "deploy-item";

    async fn reconcile(&self, item: Arc<DeployItem>) -> Result<NextCall, Halt> {
        let (result, of) = (Box::pin(self.work(&item)).await, (self.host.as_ref(), &self.host.stores.deploy_items));
        refusal::publish(of, item.as_ref(), result, |draft| draft.status.get_or_insert_default()).await
    }

    /// Its clusters; itself only where no Execution does it.
    async fn refresh(&self, item: Arc<DeployItem>) -> Result<(), Halt> {
        let (host, key) = (self.host.as_ref(), Key::of(item.as_ref()));
        self.pool.renew(&waiter(StoredKind::DeployItem, &key));
        let execution = Key::new(&key.namespace, item.label(label::MANAGED_BY).unwrap_or(""));
        if host.stores.executions.get(&execution).is_none() {
            refresh::read(host, &host.stores.deploy_items, &key).await?;
        }
        Ok(())
    }

    async fn tell_of_crashes(&self, object: Arc<DeployItem>, crash: Crash) {
        crashes::tell(&self.host, &self.queue, &object, crash).await;
    }
}
