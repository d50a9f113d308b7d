//! Drift of deploy items between their jobs (C-55 to C-61): what an item has written is watched as long as its job has
//! succeeded and it wants that, told in its status, and written again where it says so. Nothing is rendered, no component is
//! called, and nothing is asked while nothing changes.
//!
//! 1. `watch`: the manifest of the last job is held against the feeds of its clusters;
//! 2. what differs is asked about once, since a server has its own notation;
//! 3. `correct`: what differs is written again, with all checks of a job;
//! 4. one write says what is left of it.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use orangery_api::{condition, deploy_item::DeployItem, job::Job as _, marks::Marks};
use orangery_apply::{DriftedSince, Purpose, ask};
use orangery_cluster::ClusterPool;
use orangery_core::{
    condition::{DRIFTED, DriftReport},
    phase::item::Item as Phase,
    step::{Halt, Step},
};
use orangery_proposal::{
    drift_rules::{DriftPolicy, DriftRules},
    inventory::LocatedObject,
};
use orangery_reconcile::{CONFLICT, Controller, Key, NextCall, Queue, in_this_slot};

use self::tracked_items::{TrackedFor, TrackedItems};
use super::gather::{GatheredItem, request::ItemJob};
use crate::{
    controller_context::ControllerContext, event, index::Index, object::uid_of, target_access::NO_TARGET_SECRET,
};

mod correct;
mod on_demand;
mod report;
mod tracked_items;
mod watch;

pub use self::on_demand::{ItemDrift, drift_of};

/// Watches what DeployItems have written.
pub struct DriftController {
    host: Arc<ControllerContext>,
    pool: Arc<ClusterPool>,
    queue: Queue,
    tracked: Arc<TrackedItems>,
}

impl DriftController {
    /// Over a host and its clusters. `queue` is the controller's own: changes of clusters wake items in it.
    pub fn new(host: Arc<ControllerContext>, pool: Arc<ClusterPool>, queue: Queue) -> Self {
        let tracked = Arc::new(TrackedItems::new(host.memory.manifests, queue.clone()));
        let controller = Self { host, pool, queue, tracked };
        controller.follow();
        controller
    }

    /// Items that are gone are watched no more; what a policy refused may be allowed now, and what a Target lacked may be there.
    fn follow(&self) {
        let tracked = Arc::downgrade(&self.tracked);
        self.host.stores.deploy_items.subscribe(move |change| {
            if let (None, Some(key), Some(tracked)) = (change.after, change.key(), tracked.upgrade()) {
                tracked.forget(&key);
            }
        });
        let (host, queue) = (Arc::downgrade(&self.host), self.queue.clone());
        self.host.policies.subscribe(move |changed| {
            let Some(host) = host.upgrade() else { return };
            for namespace in changed {
                let items = host.stores.deploy_items.list(Some(namespace));
                items
                    .into_iter()
                    .filter(|item| rules(item).is_some())
                    .for_each(|item| queue.wake(Key::of(item.as_ref())));
            }
        });
        UNKNOWN.register(&self.host.stores.deploy_items);
        let (items, queue) = (self.host.stores.deploy_items.clone(), self.queue.clone());
        self.host.stores.targets.subscribe(move |change| {
            if let (Some(_), Some(key)) = (change.after, change.key()) {
                UNKNOWN.keys(&items, &key.namespace, "").into_iter().for_each(|item| queue.wake(item));
            }
        });
    }

    async fn gather(&self, item: &Arc<DeployItem>) -> Step<GatheredItem> {
        gather(&self.host, &self.pool, item).await
    }

    async fn work(&self, item: &Arc<DeployItem>) -> Step<NextCall> {
        let key = Key::of(item.as_ref());
        let Some(rules) = watched(&self.host, item) else {
            self.tracked.forget(&key);
            if item.job_finished() && tells(item) {
                self.tell(item, &BTreeMap::new(), DriftReport::Unwatched).await?;
            }
            return Ok(NextCall::Settled);
        };
        match self.look_after(item, &key, rules).await.map_err(retried) {
            // What is told is looked at again at once.
            Err(Halt::Retry(failure)) if failure.reason == CONFLICT => Err(Halt::Retry(failure)),
            Err(halt @ (Halt::Retry(_) | Halt::Stall(_))) => {
                let why = halt.failure().map_or_else(String::new, |failure| failure.message.clone());
                self.tell(item, &BTreeMap::new(), DriftReport::Unknown(why)).await?;
                Err(halt)
            }
            next => next,
        }
    }

    async fn look_after(&self, item: &Arc<DeployItem>, key: &Key, rules: DriftRules) -> Step<NextCall> {
        let corrects = rules.policy == DriftPolicy::Correct;
        let policy = self.host.policies.of(&key.namespace)?;
        let (networks, clusters) = (policy.target_networks(), policy.cluster_lines());
        let (uid, job) = (uid_of(item.as_ref()).to_owned(), item.job_id().clone());
        let what = TrackedFor { uid, job, rules, networks, clusters };
        let current = self.tracked.current(key, &what).filter(|tracked| !tracked.is_broken());
        let tracked = match current {
            Some(tracked) => tracked,
            None => {
                let before = self.tracked.take_out(key);
                let tracked = self.watch(item, key, what).await;
                let now = tracked.as_ref().map_or(0, |tracked| tracked.bytes());
                if before.is_some_and(|before| now < before) {
                    self.tracked.wake();
                }
                tracked?
            }
        };
        if tracked.is_unasked() {
            ask(&self.gather(item).await?.job(Purpose::Install, &|| false), &tracked).await?;
        }
        let next = if corrects { self.correct(item, &tracked).await? } else { None };
        let drifted = tracked.drifted();
        if let Some(trouble) = tracked.trouble() {
            self.tell(item, &drifted, DriftReport::Unknown(trouble)).await?;
        } else if tracked.is_complete() {
            self.tell(item, &drifted, report::condition(&drifted)).await?;
        }
        Ok(next.map_or(NextCall::Settled, |next| {
            let left = Duration::try_from(next.duration_since(self.host.clock.now()));
            NextCall::After(left.unwrap_or(Duration::ZERO))
        }))
    }

    /// Says in the status what is known, where it says something else.
    async fn tell(
        &self,
        item: &Arc<DeployItem>,
        drifted: &BTreeMap<LocatedObject, DriftedSince>,
        report: DriftReport,
    ) -> Step<()> {
        let now = self.host.now();
        let masker = self.host.secrets.masker(&Key::of(item.as_ref()).namespace);
        let report = report::masked(report, &masker);
        let mut draft = DeployItem::clone(item);
        let Some(status) = draft.status.as_mut() else { return Ok(()) };
        let generation = status.observed_generation;
        status.drift = report::status(drifted, &masker);
        status.conditions = condition::with_drift(&report, generation, &status.conditions, &now);
        if draft == **item {
            return Ok(());
        }
        let before = item.status.as_ref().and_then(|status| condition::find(&status.conditions, DRIFTED));
        let after = draft.status.as_ref().and_then(|status| condition::find(&status.conditions, DRIFTED)).cloned();
        let is_news =
            after.as_ref().map(|now| (&now.status, &now.message)) != before.map(|was| (&was.status, &was.message));
        let written = self.host.writer(&self.host.stores.deploy_items).update_status(item, &draft).await;
        written.map_err(|error| error.halt("UpdateStatus"))?;
        if let (Some(after), true) = (after, is_news)
            && after.status != "False"
        {
            event::warn(&self.host, item.as_ref(), &after.reason, &after.message);
        }
        Ok(())
    }
}

/// Nothing tells of a Secret that comes: it is looked for again.
fn retried(halt: Halt) -> Halt {
    match halt {
        Halt::Stall(failure) if failure.reason == NO_TARGET_SECRET => Halt::Retry(failure),
        halt => halt,
    }
}

/// The items whose status says that their drift is not known: what they lack may come.
static UNKNOWN: Index<DeployItem> = Index {
    name: "unknown-drift",
    values: |item| {
        let status = item.status.as_ref();
        let drifted = status.and_then(|status| condition::find(&status.conditions, DRIFTED));
        drifted.filter(|condition| condition.status == "Unknown").map(|_| String::new()).into_iter().collect()
    },
};

/// Whether the status of an item says something of drift.
fn tells(item: &DeployItem) -> bool {
    let status = item.status.as_ref();
    status.is_some_and(|status| status.drift.is_some() || condition::find(&status.conditions, DRIFTED).is_some())
}

/// The rules of an item.
fn rules(item: &DeployItem) -> Option<DriftRules> {
    DriftRules::of(item.spec.drift.as_ref(), item.spec.config.as_ref())
}

/// The rules of an item that is to be watched: its last job has succeeded, no other one has begun, and a component of this
/// host has done it.
fn watched(host: &ControllerContext, item: &DeployItem) -> Option<DriftRules> {
    let has_succeeded = item.job_finished() && Phase::parse(item.phase()) == Some(Phase::Succeeded);
    let is_ours = || host.deployer_of(item).is_some();
    rules(item).filter(|_| has_succeeded && !item.is_deleting() && is_ours())
}

/// The item with its clusters, as in a job, after its last one.
async fn gather(host: &Arc<ControllerContext>, pool: &Arc<ClusterPool>, item: &Arc<DeployItem>) -> Step<GatheredItem> {
    let deployer = host.deployer_of(item).ok_or_else(|| super::dry_run::unclaimed(item))?;
    let job = ItemJob { id: item.job_id().clone(), begun: host.clock.now(), limit: None };
    let cluster = host.host_cluster.uid(&host.client).await?;
    Ok(GatheredItem::new(host, pool, (Arc::clone(item), cluster), deployer, job))
}

impl Controller for DriftController {
    type Object = DeployItem;
    const NAME: &'static str = "drift";

    async fn reconcile(&self, item: Arc<DeployItem>) -> Result<NextCall, Halt> {
        // What was written is read, checked and compared: as much as in a job (C-45).
        let tenant = Some(Key::of(item.as_ref()).namespace);
        let work = in_this_slot(Box::pin(self.work(&item)));
        self.host.computations.run(&tenant, work).await
    }

    /// Nothing that waits here is waited for by anybody: feeds list anew by themselves.
    async fn refresh(&self, _: Arc<DeployItem>) -> Result<(), Halt> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use orangery_core::error::Failure;

    use super::*;

    #[test]
    fn c_59_of_what_keeps_drift_from_being_looked_for_only_a_missing_secret_is_looked_for_again() {
        let failure = |reason: &str| Failure::new("Gather", reason, "it is not there");
        let [missing, other] = [NO_TARGET_SECRET, "InvalidTarget"].map(|reason| retried(Halt::Stall(failure(reason))));
        assert_eq!((missing, other), (Halt::Retry(failure(NO_TARGET_SECRET)), Halt::Stall(failure("InvalidTarget"))));
    }
}
