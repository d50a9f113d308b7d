//! One reconciliation of an Execution: the object as it will be written, and the workflow of its items.

use std::{collections::BTreeMap, sync::Arc};

use orangery_api::{
    execution::{DeployItemTemplate, Execution, records},
    job::Job,
    marks::Marks,
};
use orangery_cluster::ClusterPool;
use orangery_core::{job::JobEnd, name::JobId, phase::execution::Execution as Phase};
use orangery_reconcile::Key;

use crate::{
    controller_context::{ControllerContext, waiter},
    gates::Expressions,
    job::{JobStatus, standing_phase},
    object::generation_of,
    stores::Kind,
    target_access::TargetConnections,
    tree::end_of_tree,
    workflow::WorkflowState,
};

/// What conditions are asked with, shared by all Executions.
pub(super) struct Clusters {
    pub(super) pool: Arc<ClusterPool>,
    pub(super) expressions: Arc<Expressions>,
}

/// One reconciliation of an Execution.
pub(super) struct ExecutionReconciliation<'a> {
    pub(super) host: &'a ControllerContext,
    pub(super) key: Key,
    /// The generation of the spec that was read.
    pub(super) generation: i64,
    /// Spec and metadata as read; the status is the draft of the next write.
    pub(super) draft: Execution,
    /// Without items until a phase needs them.
    pub(super) workflow: WorkflowState<DeployItemTemplate>,
}

impl<'a> ExecutionReconciliation<'a> {
    /// Of an Execution in a job.
    pub(super) fn of(host: &'a Arc<ControllerContext>, clusters: &Clusters, execution: &Execution, job: JobId) -> Self {
        let key = Key::of(execution);
        let connections =
            TargetConnections::named(host, &clusters.pool, &key.namespace, format!("Execution {}", key.name));
        Self {
            host,
            generation: generation_of(execution),
            draft: execution.clone(),
            workflow: WorkflowState {
                items: Arc::default(),
                records: execution.status.as_ref().map_or_else(BTreeMap::new, |status| records(&status.items)),
                clusters: clusters.pool.set(Arc::new(connections), waiter(Kind::Execution, &key)),
                expressions: Arc::clone(&clusters.expressions),
                left: None,
                job,
            },
            key,
        }
    }

    /// The phase in which the job rests. One that begins forgets what conditions answered in the last, and takes the generation
    /// that it works on.
    pub(super) fn begin(&mut self) -> Phase {
        let (phase, fresh) = standing_phase(Phase::parse(self.draft.phase()), self.draft.is_deleting());
        if fresh {
            self.draft.status.get_or_insert_default().begin(self.generation, &self.host.now());
            self.workflow.records.clear();
            // The root has counted them.
            self.host.changed_answers.set(&(Kind::Execution, self.key.clone()), Vec::new());
        }
        phase
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
