//! The Installation controller: binds a blueprint to imports, creates the subobjects, collects exports (INS-01 … INS-81).
//!
//! It deploys nothing and calls no deployer; templates are rendered through the port of the core. One call of it is one
//! pipeline:
//! 1. `gather`: what is asked of the Installation, and of one without a job what may start one;
//! 2. decide: [`orangery_core::plan::reconcile::installation`];
//! 3. `apply`: what comes before a job, the begin of one, or its phases as far as it goes without waiting;
//! 4. `status`: one write says where it rests.

use std::sync::Arc;

use orangery_api::installation::Installation;
use orangery_cluster::ClusterPool;
use orangery_core::{plan::reconcile, step::Halt};
use orangery_reconcile::{Controller, Crash, Key, NextCall, Queue, in_this_slot};

use self::{
    apply::{AppliedInstallation, apply},
    gather::{gather, siblings},
    reconciliation::InstallationWorker,
};
use crate::{
    controller_context::{ControllerContext, waiter},
    gates::release_when_gone,
    namespace_policy::{wake_refused, wake_watching},
    refresh, refusal,
    stores::StoredKind,
    tree,
};

mod apply;
pub(crate) mod dependencies;
mod gather;
mod items;
mod phases;
mod reconciliation;
mod status;

/// Drives Installations.
pub struct InstallationController {
    worker: InstallationWorker,
}

impl InstallationController {
    /// Over a host and its clusters. In `queue`, its own, changes of imports and deadlines of gate expressions wake
    /// installations.
    pub fn new(host: Arc<ControllerContext>, pool: Arc<ClusterPool>, queue: Queue) -> Self {
        release_when_gone::<Installation>(&host, &pool);
        forget_seals(&host);
        wake_refused(&host, queue.clone());
        wake_watching(&host, &pool);
        Self { worker: InstallationWorker::new(host, pool, queue) }
    }
}

/// Of an Installation that is gone no state is compared with another one any more.
fn forget_seals(host: &Arc<ControllerContext>) {
    let weak = Arc::downgrade(host);
    host.stores.installations.subscribe(move |change| {
        let gone = change.before.filter(|_| change.after.is_none());
        let uid = gone.and_then(|gone| gone.metadata.uid.as_deref());
        if let (Some(host), Some(uid)) = (weak.upgrade(), uid) {
            host.newest_seals.forget(uid);
        }
    });
}

impl Controller for InstallationController {
    type Object = Installation;
    const NAME: &'static str = "installation";

    async fn reconcile(&self, installation: Arc<Installation>) -> Result<NextCall, Halt> {
        let worker = &self.worker;
        let tenant = Some(Key::of(installation.as_ref()).namespace);
        // Gather: what is asked of it, and what may start a job by itself.
        let observed = worker.host.computations.run(&tenant, in_this_slot(gather(worker, &installation))).await;
        // Decide: what this call does.
        let action = reconcile::installation(observed.facts, worker.host.now().0);
        let (mut rests, store) = (false, &worker.host.stores.installations);
        let result = async {
            // Apply: as far as it goes without waiting.
            let applied = apply(worker, &installation, action).await?;
            // Status: where it rests.
            rests = matches!(applied, AppliedInstallation::Idle(_));
            status::finish(worker, &installation, applied).await
        };
        let result = Box::pin(result).await;
        let next = refusal::publish((&worker.host, store), installation.as_ref(), result, |draft| {
            draft.status.get_or_insert_default()
        })
        .await?;
        observed.unanswered.filter(|_| rests).map_or(Ok(next), Err)
    }

    /// Subobjects that work are refreshed for themselves too, but not those that are gone; siblings and the Context may be at
    /// rest.
    async fn refresh(&self, installation: Arc<Installation>) -> Result<(), Halt> {
        let (host, stores) = (self.worker.host.as_ref(), &self.worker.host.stores);
        let key = Key::of(installation.as_ref());
        self.worker.pool.renew(&waiter(StoredKind::Installation, &key));
        refresh::read(host, &stores.installations, &key).await?;
        refresh::read(host, &stores.executions, &key).await?;
        for child in tree::children(stores, &key) {
            refresh::read(host, &stores.installations, &Key::of(child.as_ref())).await?;
        }
        let context = Key { name: installation.spec.context.clone().into(), ..key };
        refresh::read(host, &stores.contexts, &context).await?;
        let before = siblings::predecessors(stores, &installation);
        for sibling in before.chain(siblings::successors(stores, &installation)) {
            refresh::read(host, &stores.installations, &Key::of(sibling.as_ref())).await?;
        }
        Ok(())
    }

    async fn tell_of_crashes(&self, object: Arc<Installation>, crash: Crash) {
        let (host, store) = (self.worker.host.as_ref(), &self.worker.host.stores.installations);
        refusal::publish_crash((host, store), object.as_ref(), crash, |draft| draft.status.get_or_insert_default())
            .await;
    }
}
