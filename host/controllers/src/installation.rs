//! The Installation controller: binds a blueprint to imports, creates the subobjects, collects exports (INS-01 … INS-81).
//!
//! It deploys nothing and calls no deployer; templates are rendered through the port of the core.

use std::{sync::Arc, time::Duration};

use kube::ResourceExt;
use orangery_api::{
    annotation,
    context::DEFAULT_CONTEXT,
    execution::Records,
    installation::{AutomaticReconcileStatus, Installation, SubinstallationWorkflow},
    job::Job,
    marks::Marks,
};
use orangery_apply::{ClusterPool, ClusterSet};
use orangery_core::{
    job::{JobIds, Situation, Work, interrupted, work},
    phase::installation::Installation as Phase,
    step::{Halt, Step, Verdict},
    walk::{Transition, advance, beside_children},
};
use orangery_reconcile::{Controller, Key, Next, Queue};

use self::{idle::Idle, on_change::OnChange};
use crate::{
    again,
    conditions::{Expressions, Items, after_walk, release_with},
    host::{Host, key_of, waiter},
    job::{self, JobStatus, standing_phase, walk},
    object::{hold, is_bereft},
    outdated::observing_root,
    target::TargetConnections,
};

mod blueprints;
mod children;
mod completing;
pub(crate) mod component;
mod deletion;
mod execution;
mod idle;
mod init;
mod kubeconfigs;
mod objects;
pub(crate) mod on_change;
mod render;
mod request;
pub(crate) mod sibling;
mod sources;
mod state;
mod subinstallations;
mod workflow;

pub(crate) use self::{blueprints::Blueprints, sources::get};

/// Drives Installations.
pub struct InstallationController {
    host: Arc<Host>,
    pool: Arc<ClusterPool>,
    queue: Queue,
    blueprints: Blueprints,
    on_change: OnChange,
    expressions: Expressions,
}

/// Who waits on clusters.
pub(crate) const KIND: &str = "Installation";

/// One job's walk over an Installation: the object as it will be written where the walk rests.
struct Run<'a> {
    host: &'a Arc<Host>,
    blueprints: &'a Blueprints,
    on_change: &'a OnChange,
    /// Spec and metadata as read; the status is the draft of the next write.
    draft: Installation,
    /// The sub-installations, where conditions have a say in them.
    items: Arc<Items<()>>,
    /// What conditions answered in this job.
    records: Records,
    /// The clusters that conditions look at.
    clusters: ClusterSet,
    expressions: &'a Expressions,
    /// The time until the first condition that is waited for is given up.
    left: Option<Duration>,
    job: String,
}

impl InstallationController {
    /// Over a host and its clusters. `queue` is the controller's own: watches on what is imported and deadlines of conditions
    /// wake installations in it.
    pub fn new(host: Arc<Host>, pool: Arc<ClusterPool>, queue: Queue) -> Self {
        release_with(&host, &host.stores.installations, KIND, &pool);
        let on_change = OnChange::new(&host, queue.clone());
        let (blueprints, expressions) = (Blueprints::default(), Expressions::default());
        Self { host, pool, queue, blueprints, on_change, expressions }
    }
}

impl Controller for InstallationController {
    type Object = Installation;
    const NAME: &'static str = "installation";

    async fn reconcile(&self, installation: Arc<Installation>) -> Result<Next, Halt> {
        let host = self.host.as_ref();
        if let Some(next) = request::before(host, &installation).await? {
            return Ok(next);
        }
        let ids = JobIds::new(installation.job_id(), installation.job_id_finished());
        let phase = Phase::parse(installation.phase());
        let deleting = installation.is_deleting();
        let root = is_root(host, &installation);
        let situation = Situation {
            ids: &ids,
            root,
            requested: request::is_requested(&installation),
            deleting,
            in_deletion: phase.is_some_and(orangery_core::phase::Phase::is_deletion),
        };
        match work(situation) {
            Work::None => match self.rest_look(&installation).await? {
                Idle::Rest(next) => Ok(next),
                Idle::Start(record) => self.start(&installation, record).await,
            },
            Work::Start => self.start(&installation, None).await,
            Work::Continue { job } => {
                let installation = adopt(host, &installation).await?;
                self.run(&installation, job, standing_phase(phase, deleting)).await
            }
        }
    }

    /// Subobjects work, and look again for themselves; siblings and the Context may be at rest.
    async fn look_again(&self, installation: Arc<Installation>) -> Result<(), Halt> {
        let (host, stores) = (self.host.as_ref(), &self.host.stores);
        let key = key_of(installation.as_ref());
        let near = |name: &str| Key::new(key.namespace.clone(), name);
        self.pool.renew(&waiter(KIND, &key));
        again::read(host, &stores.installations, &key).await?;
        again::read(host, &stores.contexts, &near(&installation.spec.context)).await?;
        let siblings =
            sibling::predecessors(host, &installation).into_iter().chain(sibling::successors(host, &installation));
        for sibling in siblings {
            again::read(host, &stores.installations, &key_of(sibling.as_ref())).await?;
        }
        Ok(())
    }
}

impl InstallationController {
    /// An Installation at rest. Where its root starts jobs by changes, what decided about its sub-installations is watched.
    async fn rest_look(&self, installation: &Installation) -> Result<Idle, Halt> {
        let (host, key) = (&self.host, key_of(installation));
        let workflow = installation.status.as_ref().and_then(|status| status.workflow.as_ref());
        let root = workflow.filter(|_| !installation.is_deleting()).and_then(|_| observing_root(&host.stores, &key));
        let changed = match &root {
            Some(_) => self.walk_from(installation.clone(), installation.job_id().to_owned(), false).changed().await,
            None => {
                self.pool.release(&waiter(KIND, &key));
                Ok(Vec::new())
            }
        };
        if let Ok(changed) = &changed
            && host.outdated.set(&(KIND, key.clone()), changed.clone())
            && let Some(root) = root.filter(|root| key_of(root.as_ref()) != key)
        {
            self.queue.wake(key_of(root.as_ref()));
        }
        let idle = idle::look(host, &self.on_change, installation).await?;
        match (idle, changed) {
            (Idle::Rest(_), Err(halt)) => Err(halt),
            (idle, _) => Ok(idle),
        }
    }
}

/// Whether jobs begin at an Installation: nobody is above it, or nobody any more.
fn is_root(host: &Host, installation: &Installation) -> bool {
    installation.is_root() || is_bereft(&host.stores.installations, installation)
}

/// What a job needs before its first phase, in one write: the finalizer, the default context, and the request removed
/// (INS-14), so that it can be made again.
async fn adopt(host: &Host, before: &Arc<Installation>) -> Result<Arc<Installation>, Halt> {
    let mut after = Installation::clone(before);
    if after.spec.context.is_empty() {
        DEFAULT_CONTEXT.clone_into(&mut after.spec.context);
    }
    hold(&mut after);
    // A request that came after this job began stays for the next one.
    if request::belongs_to_job(before) {
        request::remove(&mut after);
    }
    if after == **before {
        return Ok(Arc::clone(before));
    }
    let writer = host.writer(&host.stores.installations);
    writer.update(before, &after).await.map_err(|error| error.halt("AdoptInstallation"))
}

impl InstallationController {
    /// Starts a job at a root: the id goes to the status before any child gets it, so that a request is never lost
    /// (INS-12 … INS-14). `record` is that of a job which starts on a schedule; a person's request begins to count anew, as
    /// does a change.
    async fn start(&self, before: &Installation, record: Option<AutomaticReconcileStatus>) -> Result<Next, Halt> {
        use orangery_core::phase::Phase as _;
        let host = self.host.as_ref();
        let mark = self.on_change.mark(host, before).await;
        let job = host.chance.job_id();
        let mut after = before.clone();
        let first = if before.is_deleting() { Phase::INIT_DELETE } else { Phase::INIT };
        let generation = before.metadata.generation.unwrap_or_default();
        let status = after.status.get_or_insert_default();
        status.trigger(&job, first, generation, &host.now());
        before.annotation(annotation::TRIGGER).unwrap_or_default().clone_into(&mut status.last_handled_trigger);
        status.pending_operation.clear();
        mark.put(status);
        if record.is_some() || !request::is_retry(before) {
            status.automatic_reconcile_status = record;
        }
        if before.is_deleting() {
            return self.start_deletion(before, after, job).await;
        }
        let writer = host.writer(&host.stores.installations);
        writer.update_status(before, &after).await.map_err(|error| error.halt("StartJob"))?;
        Ok(Next::Again)
    }

    /// The delete calls for subobjects hand no job down, so they come before the id is written: one write says that the job
    /// began and where it rests. The next look passes it to the subobjects.
    async fn start_deletion(&self, before: &Installation, draft: Installation, job: String) -> Result<Next, Halt> {
        let mut run = self.walk_from(draft, job, true);
        let (phase, transition) = match advance(Phase::InitDelete, job::Run::phase(&mut run, Phase::InitDelete).await) {
            Transition::Next(_) => (Phase::Deleting, advance(Phase::Deleting, run.until_gone())),
            other => (Phase::InitDelete, other),
        };
        run.rest(before, phase, transition).await
    }

    async fn run(&self, before: &Installation, job: String, (phase, fresh): (Phase, bool)) -> Result<Next, Halt> {
        let mut run = self.walk_from(before.clone(), job, fresh);
        let (phase, transition) = walk(&mut run, phase).await;
        after_walk(&self.host, (&self.pool, &self.queue), (KIND, key_of(before)), &transition, run.left);
        run.rest(before, phase, transition).await
    }

    /// A walk over an Installation; `fresh` where its job begins.
    fn walk_from(&self, mut draft: Installation, job: String, fresh: bool) -> Run<'_> {
        if fresh {
            draft.status.get_or_insert_default().begin(&self.host.now());
        }
        let workflow = draft.status.as_ref().and_then(|status| status.workflow.as_ref());
        // A job that comes to its sub-installations forgets what was answered before, a deletion does at once.
        let forgets = fresh && draft.is_deleting();
        let records = workflow.filter(|_| !forgets).map(SubinstallationWorkflow::records).unwrap_or_default();
        let items = Arc::new(workflow::items(workflow, &records, &self.expressions));
        let key = key_of(&draft);
        let whose = format!("Installation {}", key.name);
        let connections = TargetConnections::named(&self.host, &self.pool, &key.namespace, whose);
        Run {
            host: &self.host,
            blueprints: &self.blueprints,
            on_change: &self.on_change,
            items,
            records,
            clusters: self.pool.set(Arc::new(connections), waiter(KIND, &key)),
            expressions: &self.expressions,
            left: None,
            draft,
            job,
        }
    }
}

impl job::Run for Run<'_> {
    type Phase = Phase;

    async fn phase(&mut self, phase: Phase) -> Step<Verdict> {
        if self.begins_nothing(phase) {
            return Ok(Verdict::Failed(interrupted()));
        }
        let result = match phase {
            Phase::Init => self.init().await,
            Phase::CleanupOrphaned => self.cleanup_orphaned().await,
            Phase::ObjectsCreated => self.objects_created().await,
            Phase::Progressing => self.progressing().await,
            Phase::Completing => self.completing().await,
            Phase::InitDelete => self.init_delete().await,
            Phase::TriggerDelete => self.trigger_delete().await,
            Phase::Deleting => self.deleting().await,
            Phase::Succeeded | Phase::Failed | Phase::DeleteFailed => Ok(Verdict::Done),
        };
        beside_children(result, || self.has_working_children())
    }
}

impl Run<'_> {
    fn namespace(&self) -> String {
        self.draft.namespace().unwrap_or_default()
    }

    fn name(&self) -> String {
        self.draft.name_any()
    }

    /// Whether the job was interrupted before it came to its subobjects, none of which works for it then (C-32).
    fn begins_nothing(&self, phase: Phase) -> bool {
        let begins = match phase {
            Phase::Init | Phase::ObjectsCreated | Phase::InitDelete | Phase::TriggerDelete => true,
            Phase::CleanupOrphaned | Phase::Progressing | Phase::Completing | Phase::Deleting => false,
            Phase::Succeeded | Phase::Failed | Phase::DeleteFailed => false,
        };
        begins && self.is_interrupted() && !self.has_working_children()
    }

    /// Whether the job was interrupted: nothing is waited for any longer, and nothing more is made.
    fn is_interrupted(&self) -> bool {
        self.draft.status.as_ref().is_some_and(|status| status.interrupted_job == self.job)
    }

    /// Whether a subobject works for this job.
    fn has_working_children(&self) -> bool {
        self.peers().iter().any(|peer| peer.ids.running() == Some(self.job.as_str()))
    }

    /// Writes where the walk rests: one write, in which an ended job also names the siblings to be triggered next, so
    /// that a crash between cannot lose them (C-14, C-25).
    async fn rest(mut self, before: &Installation, phase: Phase, transition: Transition<Phase>) -> Result<Next, Halt> {
        let store = &self.host.stores.installations;
        let Some(rest) = job::resting(self.host, before, phase, &transition)? else {
            self.blueprints.forget(before);
            job::release(self.host, store, before).await?;
            return Ok(Next::Settled);
        };
        let dependents = if rest.ended { self.dependents(&rest) } else { Vec::new() };
        let triggers = !dependents.is_empty();
        let generation = self.draft.metadata.generation.unwrap_or_default();
        let now = self.host.now();
        let status = self.draft.status.get_or_insert_default();
        if let Some(workflow) = &mut status.workflow {
            workflow.write_records(&self.records);
        }
        status.rest(&rest, generation, &now);
        status.dependents_to_trigger = dependents;
        if rest.ended {
            self.blueprints.forget(before);
        }
        let writer = self.host.writer(store);
        let written = writer.update_status(before, &self.draft).await;
        let written = written.map_err(|error| job::unwritten(&transition, error.halt("UpdateStatus")))?;
        let next = job::next(transition, None)?;
        Ok(if rest.ended && (triggers || request::is_requested(&written)) { Next::Again } else { next })
    }
}
