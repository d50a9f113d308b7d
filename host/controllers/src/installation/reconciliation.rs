//! One reconciliation of an Installation: the object as it will be written, and what it is worked on with.

use std::sync::Arc;

use orangery_api::{
    installation::{Installation, SubinstallationWorkflow},
    marks::Marks,
};
use orangery_blueprint::record::RecordWriter;
use orangery_cluster::ClusterPool;
use orangery_core::job::JobEnd;
use orangery_reconcile::Key;

use super::{gather::blueprints::Blueprints, items::items, trigger::changes::ImportWatches};
use crate::{
    controller_context::{ControllerContext, waiter},
    gates::Expressions,
    job::JobStatus,
    object::generation_of,
    stores::Kind,
    target_access::TargetConnections,
    tree::end_of_tree,
    workflow::WorkflowState,
};
use orangery_core::name::JobId;

/// What all Installations are worked on with.
pub(super) struct InstallationWorker {
    pub(super) host: Arc<ControllerContext>,
    pub(super) pool: Arc<ClusterPool>,
    pub(super) blueprints: Blueprints,
    pub(super) imports: ImportWatches,
    pub(super) expressions: Arc<Expressions>,
}

/// One reconciliation of an Installation.
pub(super) struct InstallationReconciliation<'a> {
    pub(super) host: &'a Arc<ControllerContext>,
    pub(super) shared: &'a InstallationWorker,
    pub(super) key: Key,
    /// The generation of the spec that was read.
    pub(super) generation: i64,
    /// Spec and metadata as read; the status is the draft of the next write.
    pub(super) draft: Installation,
    /// The sub-installations, where conditions have a say in them.
    pub(super) workflow: WorkflowState<()>,
}

impl<'a> InstallationReconciliation<'a> {
    /// Of an Installation in a job; `fresh` where the job begins.
    pub(super) fn of(shared: &'a InstallationWorker, mut draft: Installation, job: JobId, fresh: bool) -> Self {
        if fresh {
            let generation = generation_of(&draft);
            draft.status.get_or_insert_default().begin(generation, &shared.host.now());
        }
        let workflow = draft.status.as_ref().and_then(|status| status.workflow.as_ref());
        // A job that comes to its sub-installations forgets what was answered before, a deletion does at once.
        let forgets = fresh && draft.is_deleting();
        let records = workflow.filter(|_| !forgets).map(SubinstallationWorkflow::records).unwrap_or_default();
        let items = Arc::new(items(workflow, &records, &shared.expressions));
        let key = Key::of(&draft);
        let connections =
            TargetConnections::named(&shared.host, &shared.pool, &key.namespace, format!("Installation {}", key.name));
        Self {
            host: &shared.host,
            shared,
            generation: generation_of(&draft),
            workflow: WorkflowState {
                items,
                records,
                clusters: shared.pool.set(Arc::new(connections), waiter(Kind::Installation, &key)),
                expressions: Arc::clone(&shared.expressions),
                left: None,
                job,
            },
            key,
            draft,
        }
    }

    /// The names that records are made under.
    pub(super) fn scope(&self) -> RecordWriter<'_> {
        RecordWriter {
            namespace: &self.key.namespace,
            installation: &self.key.name,
            parent: self.draft.parent_installation(),
            job: &self.workflow.job,
        }
    }

    /// Why the job ends where it would wait or try again.
    pub(super) fn end(&self) -> Option<JobEnd> {
        if self.interrupted() { Some(JobEnd::Interrupted) } else { end_of_tree(&self.host.stores, &self.key) }
    }

    /// Whether the job was interrupted: nothing is waited for any longer, and nothing more is made.
    pub(super) fn interrupted(&self) -> bool {
        self.draft.status.as_ref().is_some_and(|status| status.interrupted_job == self.workflow.job)
    }
}
