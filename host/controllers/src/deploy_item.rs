//! The DeployItem controller: the deployer contract (`landscaper.md` §7.1), kept once by the host for every component.
//!
//! It works only on types that a component claims; others belong to external deployers and are left untouched. What is
//! to be done is the component's to say, and how it is carried out is `orangery_apply`'s: here the job begins, rests and
//! ends. Files: `look` is one look at an item, `ledger` writes what has to survive,
//! `keep` stores proposals, `provider_status` is the form on the wire, `request` what the component is called with;
//! `foretell` asks it without a job.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use kube::ResourceExt;
use orangery_api::{
    FINALIZER, annotation,
    deploy_item::DeployItem,
    job::Job,
    label,
    marks::{Marks, Operation},
};
use orangery_apply::ClusterPool;
use orangery_core::{
    duration::deadline,
    error::{Code, Failure},
    job::{JobIds, Situation, Work, work},
    phase::{Phase as _, item::Item as Phase},
    step::{Halt, Step, Verdict, Wait},
    walk::{Rest, Transition, advance},
};
use orangery_proposal::deployer::Deployer;
use orangery_reconcile::{Controller, Key, Next, Queue};

use self::{keep::Shelf, ledger::Book, look::Look, places::Places};
use crate::{
    controller_context::{ControllerContext, waiter},
    job::{self, JobStatus, standing_phase},
    refresh,
    stores::Kind,
    timeout::limit_of,
};

pub(crate) mod dependencies;
mod foretell;
mod keep;
mod ledger;
mod look;
mod pick_up;
mod places;
mod provider_status;
mod request;
mod resources;

pub use self::foretell::{Foretold, foretell};

/// Drives DeployItems.
pub struct DeployItemController {
    host: Arc<ControllerContext>,
    pool: Arc<ClusterPool>,
    queue: Queue,
    shelf: Arc<Shelf>,
    places: Arc<Places>,
}

impl DeployItemController {
    /// Over a host and its clusters. `queue` is the controller's own: deadlines wake items in it.
    pub fn new(host: Arc<ControllerContext>, pool: Arc<ClusterPool>, queue: Queue) -> Self {
        let places = Arc::new(Places::new(host.max_parallel, queue.clone()));
        let controller = Self { host, pool, queue, shelf: Arc::default(), places };
        controller.forget_the_gone();
        controller
    }

    /// An item that others released is not looked at again: what it holds goes with it.
    fn forget_the_gone(&self) {
        let (pool, shelf, places) = (Arc::clone(&self.pool), Arc::clone(&self.shelf), Arc::clone(&self.places));
        self.host.stores.deploy_items.subscribe(move |change| {
            if let (None, Some(key)) = (change.after, change.key()) {
                pool.release(&waiter(Kind::DeployItem, &key));
                shelf.forget(&key);
                places.leave(&key);
            }
        });
    }

    /// Nothing is waited for any more: watches and what was kept in memory go.
    fn forget(&self, key: &Key) {
        self.pool.release(&waiter(Kind::DeployItem, key));
        self.shelf.forget(key);
        self.places.leave(key);
    }

    /// `operation: test-reconcile`: a job without an Execution (`landscaper.md` §2.1).
    async fn test(&self, item: &DeployItem) -> Result<Next, Halt> {
        let writer = self.host.writer(&self.host.stores.deploy_items);
        let now = self.host.now();
        let mut triggered = item.clone();
        let status = triggered.status.get_or_insert_default();
        let first = if item.is_deleting() { Phase::INIT_DELETE } else { Phase::INIT };
        status.trigger(&self.host.chance.job_id(), first, item.metadata.generation.unwrap_or_default(), &now);
        status.job_id_generation_time = Some(now);
        // An unchanged item is processed as well: no phase of an earlier job stands for this one.
        status.phase.clear();
        let triggered = writer.update_status(item, &triggered).await.map_err(|error| error.halt("TestReconcile"))?;
        let mut plain = DeployItem::clone(&triggered);
        plain.metadata.annotations.get_or_insert_default().remove(annotation::OPERATION);
        writer.update(&triggered, &plain).await.map_err(|error| error.halt("RemoveOperation"))?;
        Ok(Next::Again)
    }

    /// The item with the finalizer that keeps it until it is uninstalled.
    async fn held(&self, item: Arc<DeployItem>) -> Step<Arc<DeployItem>> {
        if item.has_finalizer(FINALIZER) || item.is_deleting() {
            return Ok(item);
        }
        let mut held = DeployItem::clone(&item);
        held.metadata.finalizers.get_or_insert_default().push(FINALIZER.to_owned());
        let writer = self.host.writer(&self.host.stores.deploy_items);
        writer.update(&item, &held).await.map_err(|error| error.halt("AddFinalizer"))
    }

    async fn go_on(&self, item: Arc<DeployItem>, job: String, deployer: Arc<dyn Deployer>) -> Result<Next, Halt> {
        let item = self.held(item).await?;
        let (phase, fresh) = standing_phase(Phase::parse(item.phase()), item.is_deleting());
        let limit = limit(&item);
        let mut book = Book::open(&self.host, &item, &deployer, &job);
        if fresh {
            if is_unchanged(&item) {
                return self.end_unchanged(&item, book).await;
            }
            self.places.count(&self.host);
            if let Err(wait) = self.places.enter(&Key::of(item.as_ref())) {
                return self.queue_up(&item, book, wait).await;
            }
            book.pick_up();
            if !item.is_deleting() {
                dependencies::guard(&self.host, &item).await?;
            }
        } else {
            self.places.stay(&Key::of(item.as_ref()));
        }
        let phase = if phase.is_deletion() { Phase::Deleting } else { Phase::Progressing };
        book.phase = phase;
        let begun = book.begun();
        let deadline = limit.as_ref().ok().and_then(|limit| deadline(begun, *limit));
        let mut look = Look::new(self, deployer, book, limit.clone().unwrap_or_default());
        let result = match limit {
            Err(failure) => Err(Halt::Stall(failure)),
            Ok(_) if phase.is_deletion() => look.delete().await,
            Ok(_) => look.install(deadline).await,
        };
        if !look.book.is_current() {
            return Ok(Next::Settled);
        }
        let now = self.host.clock.now();
        let result = match (result, look.ends(deadline)) {
            (Err(halt @ (Halt::Wait(_) | Halt::Retry(_))), Some(end)) if now >= end => look.overdue(&halt).await,
            (result, _) => result,
        };
        let (now, deadline) = (self.host.clock.now(), look.ends(deadline));
        let left = deadline.and_then(|deadline| Duration::try_from(deadline.duration_since(now)).ok());
        self.rest(&item, look, phase, result, left).await
    }

    /// Writes where the look rests: one write.
    async fn rest(
        &self,
        item: &DeployItem,
        look: Look<'_>,
        phase: Phase,
        result: Step<Verdict>,
        left: Option<Duration>,
    ) -> Result<Next, Halt> {
        let key = Key::of(item);
        let transition = advance(phase, result);
        let Some(rest) = job::resting(&self.host, item, phase, &transition)? else {
            look.book.release().await?;
            self.forget(&key);
            return Ok(Next::Settled);
        };
        if rest.ended {
            self.forget(&key)
        } else {
            look.clusters.keep_waiting()
        }
        look.rest(&rest).await.map_err(|write| job::unwritten(&transition, write))?;
        if let (Transition::Retry(_), Some(left)) = (&transition, left) {
            self.queue.wake_in(key, left);
        }
        job::next(transition, left)
    }

    /// The item waits for a place; its job has not begun.
    async fn queue_up(&self, item: &DeployItem, book: Book, wait: Wait) -> Result<Next, Halt> {
        let transition = Transition::Wait(wait);
        let phase = if item.is_deleting() { Phase::Deleting } else { Phase::Progressing };
        if let Some(rest) = job::resting(&self.host, item, phase, &transition)? {
            book.queue_up(&rest).await?;
        }
        job::next(transition, None)
    }

    /// `updateOnChangeOnly`: the job ends with nothing done (`landscaper.md` §3.6).
    async fn end_unchanged(&self, item: &DeployItem, mut book: Book) -> Result<Next, Halt> {
        book.pick_up();
        let rest = Rest { phase: Phase::Succeeded, ended: true, failure: None, wait: None };
        book.rest(&rest, None).await?;
        self.forget(&Key::of(item));
        Ok(Next::Settled)
    }
}

impl Controller for DeployItemController {
    type Object = DeployItem;
    const NAME: &'static str = "deploy-item";

    async fn reconcile(&self, item: Arc<DeployItem>) -> Result<Next, Halt> {
        let Some(deployer) = self.host.plugins.deployer(&item.spec.type_) else {
            return pick_up::look(&self.host, &item).await;
        };
        if item.operation() == Some(Operation::TestReconcile) && item.job_finished() {
            return self.test(&item).await;
        }
        let ids = JobIds::new(item.job_id(), item.job_id_finished());
        let situation = Situation {
            ids: &ids,
            root: false,
            requested: false,
            deleting: item.is_deleting(),
            in_deletion: Phase::parse(item.phase()).is_some_and(Phase::is_deletion),
        };
        match work(situation) {
            Work::None | Work::Start => {
                self.forget(&Key::of(item.as_ref()));
                Ok(Next::Settled)
            }
            Work::Continue { job } => self.go_on(item, job, deployer).await,
        }
    }

    /// Its clusters; itself only where no Execution does it.
    async fn look_again(&self, item: Arc<DeployItem>) -> Result<(), Halt> {
        let (host, key) = (self.host.as_ref(), Key::of(item.as_ref()));
        self.pool.renew(&waiter(Kind::DeployItem, &key));
        let execution = Key::new(key.namespace.clone(), item.label(label::MANAGED_BY).unwrap_or_default());
        if host.stores.executions.get(&execution).is_none() {
            refresh::read(host, &host.stores.deploy_items, &key).await?;
        }
        Ok(())
    }
}

/// How long the item may take; `None` for ever.
fn limit(item: &DeployItem) -> Result<Option<Duration>, Failure> {
    limit_of(item.spec.timeout.as_ref()).map_err(|error| {
        let message = format!("spec.timeout of DeployItem {}: {error}", item.name_any());
        Failure::new("PickUp", "InvalidTimeout", message).with_code(Code::ConfigurationProblem)
    })
}

/// Whether the item asks to be left alone while it is as it was when it succeeded.
fn is_unchanged(item: &DeployItem) -> bool {
    let status = item.status.as_ref();
    item.spec.update_on_change_only
        && !item.is_deleting()
        && Phase::parse(item.phase()) == Some(Phase::Succeeded)
        && status.is_some_and(|status| Some(status.observed_generation) == item.metadata.generation)
}

/// What a look came to hold in memory, by item.
type ByItem<T> = BTreeMap<Key, T>;
