//! The Execution controller: keeps deploy items equal to the spec, triggers them in order, collects their exports
//! (EXE-01 … EXE-51).
//!
//! It renders nothing, starts no job by itself, and never touches what a deployer made. One call of it is one pipeline:
//! 1. `gather`: what is asked of the Execution;
//! 2. decide: [`orangery_core::plan::reconcile::execution`];
//! 3. `apply`: an interrupt, the begin of a deletion, or the phases of a job as far as it goes without waiting;
//! 4. `status`: one write says where it rests.

use std::sync::Arc;

use orangery_api::{execution::Execution, label};
use orangery_cluster::ClusterPool;
use orangery_core::{plan::reconcile, step::Halt};
use orangery_reconcile::{Controller, Crash, Key, NextCall, Queue, in_this_slot};

pub use self::apply::items::ItemOwner;
use self::{apply::apply, dependencies::deploy_items, gather::gather, reconciliation::ExecutionWorker};
use crate::{
    controller_context::{ControllerContext, waiter},
    gates::release_when_gone,
    refresh, refusal,
    stores::StoredKind,
};

mod apply;
pub(crate) mod dependencies;
mod gather;
mod phases;
mod reconciliation;
mod status;

/// Drives Executions.
pub struct ExecutionController {
    worker: ExecutionWorker,
}

impl ExecutionController {
    /// Over a host and its clusters. `queue` is the controller's own: deadlines of gate expressions wake Executions in it. In that
    /// of the installations gate expressions that answer otherwise wake the root.
    pub fn new(host: Arc<ControllerContext>, pool: Arc<ClusterPool>, queue: Queue, installations: Queue) -> Self {
        release_when_gone::<Execution>(&host, &pool);
        Self { worker: ExecutionWorker { host, pool, expressions: Arc::default(), queue, installations } }
    }
}

impl Controller for ExecutionController {
    type Object = Execution;
    const NAME: &'static str = "execution";

    async fn reconcile(&self, execution: Arc<Execution>) -> Result<NextCall, Halt> {
        let result = async {
            // Gather: what is asked of it.
            let facts = gather(&self.worker, &execution).await?;
            // Decide: what this call does.
            let action = reconcile::execution(&facts);
            // Apply: as far as it goes without waiting.
            let applied = apply(&self.worker, &execution, action).await?;
            // Status: where it rests.
            status::finish(&self.worker, &execution, applied).await
        };
        let (host, tenant) = (self.worker.host.as_ref(), Some(Key::of(execution.as_ref()).namespace));
        // Lists of items and gate expressions take as long as their authors like.
        let result = host.computations.run(&tenant, in_this_slot(result)).await;
        refusal::publish((host, &host.stores.executions), execution.as_ref(), result, |draft| {
            draft.status.get_or_insert_default()
        })
        .await
    }

    /// External deployers write to the items, anybody to what gate expressions look at.
    async fn refresh(&self, execution: Arc<Execution>) -> Result<(), Halt> {
        let (host, key) = (self.worker.host.as_ref(), Key::of(execution.as_ref()));
        self.worker.pool.renew(&waiter(StoredKind::Execution, &key));
        refresh::read(host, &host.stores.executions, &key).await?;
        let known = deploy_items(&host.stores, &key);
        refresh::list(host, &host.stores.deploy_items, known, &key.namespace, (label::MANAGED_BY, &key.name)).await
    }

    async fn tell_of_crashes(&self, object: Arc<Execution>, crash: Crash) {
        let (host, store) = (self.worker.host.as_ref(), &self.worker.host.stores.executions);
        refusal::publish_crash((host, store), object.as_ref(), crash, |draft| draft.status.get_or_insert_default())
            .await;
    }
}
