//! One reconciliation of an Installation: the object as it will be written, and what it is worked on with.

use std::sync::Arc;

use orangery_api::{
    execution::Execution,
    installation::{Installation, SubinstallationWorkflow},
    job::Job,
    marks::Marks,
};
use orangery_blueprint::record::RecordWriter;
use orangery_cluster::{Call, ClusterPool};
use orangery_core::{job::JobEnd, name::JobId};
use orangery_reconcile::{Key, Queue};
use orangery_turns::slot;

use super::{
    gather::{blueprints::Blueprints, changes::ImportWatches, imports::ImportsTurn},
    items::items,
};
use crate::{
    controller_context::{ControllerContext, waiter},
    gates::Expressions,
    job::{HandedDown, JobStatus},
    object::{generation_of, uid_of},
    secret_data::{ImportsHolder, clear_imports},
    stores::StoredKind,
    target_access::TargetConnections,
    tree::end_of_tree,
    workflow::WorkflowState,
};

/// What all Installations are worked on with.
pub(super) struct InstallationWorker {
    pub(super) host: Arc<ControllerContext>,
    pub(super) pool: Arc<ClusterPool>,
    /// The controller's own: changes of imports and deadlines of gate expressions wake Installations in it.
    pub(super) queue: Queue,
    pub(super) blueprints: Blueprints,
    pub(super) imports: ImportWatches,
    pub(super) expressions: Arc<Expressions>,
}

impl InstallationWorker {
    pub(super) fn new(host: Arc<ControllerContext>, pool: Arc<ClusterPool>, queue: Queue) -> Self {
        let imports = ImportWatches::new(&host, &pool, queue.clone());
        Self { host, pool, queue, blueprints: Blueprints::default(), imports, expressions: Arc::default() }
    }
}

/// One reconciliation of an Installation.
pub(super) struct InstallationReconciliation<'a> {
    pub(super) host: &'a Arc<ControllerContext>,
    pub(super) shared: &'a InstallationWorker,
    pub(super) key: Key,
    /// The generation of the spec that was read.
    pub(super) generation: i64,
    /// As it was read.
    pub(super) before: Arc<Installation>,
    /// Spec and metadata as read; the status is the draft of the next write.
    pub(super) draft: Installation,
    /// The sub-installations, where gate expressions have a say in them.
    pub(super) workflow: WorkflowState<()>,
    /// While it keeps large imports in memory.
    pub(super) imports_turn: ImportsTurn,
    /// The sub-installations that get the job with the next write of the status.
    pub(super) handed_to_subinstallations: HandedDown<Installation>,
    /// The Execution, where it does.
    pub(super) handed_to_execution: HandedDown<Execution>,
}

impl<'a> InstallationReconciliation<'a> {
    /// Of an Installation without a job.
    pub(super) fn idle(shared: &'a InstallationWorker, installation: &Installation) -> Self {
        let job = installation.job_id().clone();
        Self::new(shared, Arc::new(installation.clone()), installation.clone(), job, false)
    }

    /// Of an Installation in a job; `begins` where that begins now.
    pub(super) fn of(
        shared: &'a InstallationWorker,
        before: Arc<Installation>,
        mut draft: Installation,
        job: JobId,
        begins: bool,
    ) -> Self {
        if begins {
            let generation = generation_of(&draft);
            draft.status.get_or_insert_default().begin(generation, &shared.host.now());
        }
        // A job that comes to its sub-installations forgets what was answered before, a deletion does at once.
        let forgets = begins && draft.is_deleting();
        Self::new(shared, before, draft, job, forgets)
    }

    fn new(
        shared: &'a InstallationWorker,
        before: Arc<Installation>,
        draft: Installation,
        job: JobId,
        forgets: bool,
    ) -> Self {
        let workflow = draft.status.as_ref().and_then(|status| status.workflow.as_ref());
        let records = workflow.filter(|_| !forgets).map(SubinstallationWorkflow::records).unwrap_or_default();
        let items = Arc::new(items(workflow, &records, &shared.expressions));
        let key = Key::of(&draft);
        let held = workflow.and_then(|workflow| {
            let holder = ImportsHolder { kind: StoredKind::Installation, key: &key };
            clear_imports(shared.host.key.encryption(), &holder, &[uid_of(&draft)], &workflow.imports)
        });
        let connections =
            TargetConnections::named(&shared.host, &shared.pool, &key.namespace, format!("Installation {}", key.name));
        Self {
            host: &shared.host,
            shared,
            generation: generation_of(&draft),
            workflow: WorkflowState {
                items,
                records,
                clusters: shared
                    .pool
                    .set(Arc::new(connections), waiter(StoredKind::Installation, &key))
                    .during(Call::new(slot())),
                expressions: Arc::clone(&shared.expressions),
                clear_imports: held,
                left: None,
                job,
            },
            imports_turn: ImportsTurn::default(),
            handed_to_subinstallations: HandedDown::default(),
            handed_to_execution: HandedDown::default(),
            key,
            before,
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
