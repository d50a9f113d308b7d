//! One reconciliation of an Execution: the object as it will be written, and the workflow of its items.

use std::{collections::BTreeMap, sync::Arc};

use orangery_api::{
    deploy_item::DeployItem,
    execution::{DeployItemTemplate, Execution, records},
    marks::Marks as _,
};
use orangery_cluster::{Call, ClusterPool};
use orangery_core::{job::JobEnd, name::JobId};
use orangery_reconcile::{Key, Queue};
use orangery_turns::slot;

use super::dependencies::deploy_items;
use crate::{
    controller_context::{ControllerContext, waiter},
    gates::Expressions,
    job::{HandedDown, JobStatus},
    kept_credentials,
    object::generation_of,
    removed,
    seal::Sealer,
    sealed_state,
    secret_data::{ImportsHolder, clear_imports},
    stores::StoredKind,
    target_access::TargetConnections,
    tree::end_of_tree,
    workflow::WorkflowState,
};

/// What all Executions are worked on with.
pub(super) struct ExecutionWorker {
    pub(super) host: Arc<ControllerContext>,
    pub(super) pool: Arc<ClusterPool>,
    pub(super) expressions: Arc<Expressions>,
    /// The controller's own: deadlines of gate expressions wake Executions in it.
    pub(super) queue: Queue,
    /// That of the Installations: gate expressions that answer otherwise wake the root in it.
    pub(super) installations: Queue,
}

/// One reconciliation of an Execution.
pub(super) struct ExecutionReconciliation<'a> {
    pub(super) host: &'a Arc<ControllerContext>,
    pub(super) worker: &'a ExecutionWorker,
    pub(super) key: Key,
    /// The generation of the spec that was read.
    pub(super) generation: i64,
    /// As it was read.
    pub(super) before: Arc<Execution>,
    /// Spec and metadata as read; the status is the draft of the next write.
    pub(super) draft: Execution,
    /// Without items until a phase needs them.
    pub(super) workflow: WorkflowState<DeployItemTemplate>,
    /// Whether the job comes to its items in this reconciliation, so that the status is written where it rests.
    pub(super) passes_to_items: bool,
    /// The items that get the job with that.
    pub(super) handed_down: HandedDown<DeployItem>,
}

/// The cluster of an item's own target, as far as the operator vouches for it. An item that it has written since it was looked
/// for is known in a newer version by now: that of before counts as replayed.
fn cluster_of_target(host: &ControllerContext, item: &DeployItem) -> Option<String> {
    let mut known: Option<Arc<DeployItem>> = None;
    loop {
        let newest = host.stores.deploy_items.get(&Key::of(item))?;
        if known.is_some_and(|known| known.metadata.resource_version == newest.metadata.resource_version) {
            return None;
        }
        let cluster = sealed_state::cluster_of_target(&newest, Sealer::of(host, &newest));
        if cluster.is_some() {
            return cluster;
        }
        known = Some(newest);
    }
}

impl<'a> ExecutionReconciliation<'a> {
    /// Of an Execution in a job.
    pub(super) fn of(worker: &'a ExecutionWorker, execution: &Arc<Execution>, job: JobId) -> Self {
        let (host, pool, key) = (&worker.host, &worker.pool, Key::of(execution.as_ref()));
        let connections = TargetConnections::named(host, pool, &key.namespace, format!("Execution {}", key.name));
        let call = Call::new(slot()).of(&key.namespace);
        if execution.is_deleting() {
            // Copies of Targets may go before the items, of which gate expressions ask whether they are gone. With a Target of
            // his own a user has taken the cluster away (C-28). Which cluster that was is the operator's word alone (C-120).
            let mut items = deploy_items(&host.stores, &key);
            items.retain(|item| !removed::was_users_own(host, item));
            let left = kept_credentials::of_targets(items, |item| cluster_of_target(host, item));
            connections.fall_back_on(left, &call);
        }
        let holder = ImportsHolder { kind: StoredKind::Execution, key: &key };
        let owners: Vec<&str> =
            execution.metadata.owner_references.iter().flatten().map(|owner| owner.uid.as_str()).collect();
        let clear_imports = clear_imports(host.key.encryption(), &holder, &owners, &execution.spec.imports);
        Self {
            host,
            worker,
            generation: generation_of(execution.as_ref()),
            before: Arc::clone(execution),
            draft: Execution::clone(execution),
            workflow: WorkflowState {
                items: Arc::default(),
                records: execution.status.as_ref().map_or_else(BTreeMap::new, |status| records(&status.items)),
                clusters: pool.set(Arc::new(connections), waiter(StoredKind::Execution, &key)).during(call),
                expressions: Arc::clone(&worker.expressions),
                clear_imports,
                left: None,
                job,
            },
            passes_to_items: false,
            handed_down: HandedDown::default(),
            key,
        }
    }

    /// A job that begins forgets what gate expressions answered in the last, and takes the generation that it works on.
    pub(super) fn begin(&mut self) {
        self.draft.status.get_or_insert_default().begin(self.generation, &self.host.now());
        self.workflow.records.clear();
        // The root has counted them.
        self.host.changed_answers.set(&(StoredKind::Execution, self.key.clone()), Vec::new());
    }

    /// Why the job ends where it would wait or try again.
    pub(super) fn end(&self) -> Option<JobEnd> {
        if self.interrupted() { Some(JobEnd::Interrupted) } else { end_of_tree(&self.host.stores, &self.key) }
    }

    /// Whether the job was interrupted.
    pub(super) fn interrupted(&self) -> bool {
        self.draft.status.as_ref().is_some_and(|status| status.interrupted_job == self.workflow.job)
    }
}
