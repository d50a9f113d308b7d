//! Drift of deploy items between their jobs (C-55 to C-61): what an item has written is watched as long as its job has
//! succeeded and it wants that, told in its status, and written again where it says so. Nothing is rendered, no component is
//! called, and nothing is asked while nothing changes.
//!
//! 1. `watch`: the manifest of the last job is held against the feeds of its clusters;
//! 2. what differs is asked about once, since a server has its own notation;
//! 3. `correct`: what differs is written again, with all checks of a job;
//! 4. one write says what is left of it.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use orangery_api::{condition, deploy_item::DeployItem, job::Job as _, marks::Marks};
use orangery_apply::{DriftedSince, Purpose, TrackedManifest, ask};
use orangery_cluster::ClusterPool;
use orangery_core::{
    condition::{DRIFTED, DriftReport},
    name::JobId,
    network::AllowedNetworks,
    phase::item::Item as Phase,
    step::{Halt, Step},
};
use orangery_proposal::{
    drift_rules::{DriftPolicy, DriftRules},
    inventory::LocatedObject,
};
use orangery_reconcile::{Controller, Key, NextCall, Queue};

use super::gather::{GatheredItem, request::ItemJob};
use crate::{controller_context::ControllerContext, event, object::uid_of};

mod correct;
mod on_demand;
mod report;
mod watch;

pub use self::on_demand::{ItemDrift, drift_of};

/// Watches what DeployItems have written.
pub struct DriftController {
    host: Arc<ControllerContext>,
    pool: Arc<ClusterPool>,
    queue: Queue,
    /// Protects the items that are watched. Held for one look-up or one change; what leaves is dropped outside.
    tracked: Arc<Mutex<BTreeMap<Key, Tracked>>>,
}

/// One item that is watched.
struct Tracked {
    what: TrackedFor,
    manifest: Arc<TrackedManifest>,
}

/// What an item is watched for.
#[derive(Clone, Debug, PartialEq)]
struct TrackedFor {
    uid: String,
    /// The job whose manifest counts.
    job: JobId,
    rules: DriftRules,
    /// Which networks its clusters may be in: with others it is watched anew (C-102).
    networks: AllowedNetworks,
}

impl DriftController {
    /// Over a host and its clusters. `queue` is the controller's own: changes of clusters wake items in it.
    pub fn new(host: Arc<ControllerContext>, pool: Arc<ClusterPool>, queue: Queue) -> Self {
        let controller = Self { host, pool, queue, tracked: Arc::default() };
        controller.follow();
        controller
    }

    /// Items that are gone are watched no more; what a policy refused may be allowed now.
    fn follow(&self) {
        let tracked = Arc::downgrade(&self.tracked);
        self.host.stores.deploy_items.subscribe(move |change| {
            if let (None, Some(key), Some(tracked)) = (change.after, change.key(), tracked.upgrade()) {
                drop(tracked.lock().unwrap_or_else(PoisonError::into_inner).remove(&key));
            }
        });
        let (host, queue) = (Arc::downgrade(&self.host), self.queue.clone());
        self.host.policies.subscribe(move |changed| {
            let Some(host) = host.upgrade() else { return };
            for namespace in changed {
                let items = host.stores.deploy_items.list(Some(namespace));
                items.iter().filter(|item| rules(item).is_some()).for_each(|item| queue.wake(Key::of(item.as_ref())));
            }
        });
    }

    fn forget(&self, key: &Key) {
        let gone = self.tracked.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
        drop(gone);
    }

    fn current(&self, key: &Key, what: &TrackedFor) -> Option<Arc<TrackedManifest>> {
        let tracked = self.tracked.lock().unwrap_or_else(PoisonError::into_inner);
        tracked.get(key).filter(|tracked| tracked.what == *what).map(|tracked| Arc::clone(&tracked.manifest))
    }

    fn gather(&self, item: &Arc<DeployItem>) -> Step<GatheredItem> {
        gather(&self.host, &self.pool, item)
    }

    async fn work(&self, item: &Arc<DeployItem>) -> Step<NextCall> {
        let key = Key::of(item.as_ref());
        let Some(rules) = watched(&self.host, item) else {
            self.forget(&key);
            if item.job_finished() && tells(item) {
                self.tell(item, &BTreeMap::new(), DriftReport::Unwatched).await?;
            }
            return Ok(NextCall::Settled);
        };
        match self.look_after(item, &key, rules).await {
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
        let networks = self.host.policies.of(&key.namespace)?.target_networks();
        let what = TrackedFor { uid: uid_of(item.as_ref()).to_owned(), job: item.job_id().clone(), rules, networks };
        let tracked = match self.current(key, &what) {
            Some(tracked) if !tracked.is_broken() => tracked,
            Some(_) | None => {
                self.forget(key);
                self.watch(item, key, what).await?
            }
        };
        if tracked.is_unasked() {
            ask(&self.gather(item)?.job(Purpose::Install, &|| false), &tracked).await?;
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
    let is_ours = || host.plugins.deployer(&item.spec.type_).is_some();
    rules(item).filter(|_| has_succeeded && !item.is_deleting() && is_ours())
}

/// The item with its clusters, as in a job, after its last one.
fn gather(host: &Arc<ControllerContext>, pool: &Arc<ClusterPool>, item: &Arc<DeployItem>) -> Step<GatheredItem> {
    let deployer = host.plugins.deployer(&item.spec.type_).ok_or_else(|| super::dry_run::unclaimed(item))?;
    let job = ItemJob { id: item.job_id().clone(), begun: host.clock.now(), limit: None };
    Ok(GatheredItem::new(host, pool, Arc::clone(item), deployer, job))
}

impl Controller for DriftController {
    type Object = DeployItem;
    const NAME: &'static str = "drift";

    async fn reconcile(&self, item: Arc<DeployItem>) -> Result<NextCall, Halt> {
        Box::pin(self.work(&item)).await
    }

    /// Nothing that waits here is waited for by anybody: feeds list anew by themselves.
    async fn refresh(&self, _: Arc<DeployItem>) -> Result<(), Halt> {
        Ok(())
    }
}
