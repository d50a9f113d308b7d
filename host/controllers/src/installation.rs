//! The Installation controller: binds a blueprint to imports, creates the subobjects, collects exports (INS-01 … INS-81).
//!
//! It deploys nothing and calls no deployer; templates are rendered through the port of the core.

use std::sync::Arc;

use orangery_api::{
    installation::{AutomaticReconcileStatus, Installation},
    job::Job,
    marks::Marks,
};
use orangery_cluster::ClusterPool;
use orangery_core::{name::JobId, phase::installation::Installation as Phase, step::Halt};
use orangery_reconcile::{Controller, Key, NextCall, Queue};

use self::{
    apply::requests::carry_out,
    gather::{blueprints::Blueprints, siblings},
    reconciliation::{InstallationReconciliation, InstallationWorker},
    trigger::{
        changes::ImportWatches,
        request::{self, InstallationTrigger},
        schedule::{self, AtRest},
        start,
    },
};
use crate::{
    controller_context::{ControllerContext, waiter},
    gates::{Expressions, release_at_rest, release_when_gone},
    job::{standing_phase, walk},
    refresh,
    stores::Kind,
    tree::observing_root,
    workflow::changed_answers,
};

mod apply;
pub(crate) mod dependencies;
mod gather;
mod items;
mod phases;
mod reconciliation;
mod status;
mod trigger;

/// Drives Installations.
pub struct InstallationController {
    shared: InstallationWorker,
    queue: Queue,
}

impl InstallationController {
    /// Over a host and its clusters. In `queue`, its own, changes of imports and deadlines of conditions wake installations.
    pub fn new(host: Arc<ControllerContext>, pool: Arc<ClusterPool>, queue: Queue) -> Self {
        release_when_gone::<Installation>(&host, &pool);
        let imports = ImportWatches::new(&host, queue.clone());
        let (blueprints, expressions) = (Blueprints::default(), Arc::new(Expressions::default()));
        Self { shared: InstallationWorker { host, pool, blueprints, imports, expressions }, queue }
    }

    /// An Installation at rest. Where its root starts jobs by changes, what decided about its sub-installations is watched.
    async fn rest(&self, installation: &Installation) -> Result<NextCall, Halt> {
        let (host, key) = (&self.shared.host, Key::of(installation));
        let workflow = installation.status.as_ref().and_then(|status| status.workflow.as_ref());
        let root = workflow.filter(|_| !installation.is_deleting()).and_then(|_| observing_root(&host.stores, &key));
        let changed = match &root {
            Some(_) => {
                let job = installation.job_id().clone();
                changed_answers(&InstallationReconciliation::of(&self.shared, installation.clone(), job, false)).await
            }
            None => {
                self.shared.pool.release(&waiter(Kind::Installation, &key));
                Ok(Vec::new())
            }
        };
        if let Ok(changed) = &changed
            && host.changed_answers.set(&(Kind::Installation, key.clone()), changed.clone())
            && let Some(root) = root.map(|root| Key::of(root.as_ref())).filter(|root| *root != key)
        {
            self.queue.wake(root);
        }
        match (schedule::at_rest(host, &self.shared.imports, installation).await?, changed) {
            (AtRest::Start(record), _) => self.start(installation, record).await,
            (AtRest::Rest(next), changed) => changed.map(|_| next),
        }
    }

    /// Starts a job at a root. Of a deletion one write says that the job began and where it rests.
    async fn start(&self, before: &Installation, record: Option<AutomaticReconcileStatus>) -> Result<NextCall, Halt> {
        let host = &self.shared.host;
        let job = host.rng.job_id();
        let draft = start::begun((host, &self.shared.imports), before, &job, record).await;
        if !before.is_deleting() {
            start::write(host, before, &draft).await?;
            return Ok(NextCall::Again);
        }
        let mut run = InstallationReconciliation::of(&self.shared, draft, job, true);
        let (phase, transition) = run.begin_deletion().await;
        run.rest(before, phase, transition).await
    }

    /// A job goes on: from the phase in which it rests as far as it goes without waiting, then one write.
    async fn go_on(&self, before: &Installation, job: JobId) -> Result<NextCall, Halt> {
        // Trigger: a job that begins.
        let (phase, fresh) = standing_phase(Phase::parse(before.phase()), before.is_deleting());
        let mut run = InstallationReconciliation::of(&self.shared, before.clone(), job, fresh);
        // Gather, decide, apply: phase by phase.
        let (phase, transition) = walk(&mut run, phase).await;
        // Status.
        let key = (Kind::Installation, Key::of(before));
        release_at_rest(&self.shared.host, (&self.shared.pool, &self.queue), key, &transition, run.workflow.left);
        run.rest(before, phase, transition).await
    }
}

impl Controller for InstallationController {
    type Object = Installation;
    const NAME: &'static str = "installation";

    async fn reconcile(&self, installation: Arc<Installation>) -> Result<NextCall, Halt> {
        let host = self.shared.host.as_ref();
        match request::gather(&host.stores, &installation) {
            InstallationTrigger::Before(before) => {
                carry_out(before, host, &installation).await?;
                Ok(NextCall::Again)
            }
            InstallationTrigger::Rest => self.rest(&installation).await,
            InstallationTrigger::Start => self.start(&installation, None).await,
            InstallationTrigger::GoOn { job, answers_request } => {
                let installation = start::adopt(host, installation, answers_request).await?;
                self.go_on(&installation, job).await
            }
        }
    }

    /// Subobjects work, and are refreshed for themselves; siblings and the Context may be at rest.
    async fn refresh(&self, installation: Arc<Installation>) -> Result<(), Halt> {
        let (host, stores) = (self.shared.host.as_ref(), &self.shared.host.stores);
        let key = Key::of(installation.as_ref());
        self.shared.pool.renew(&waiter(Kind::Installation, &key));
        refresh::read(host, &stores.installations, &key).await?;
        let context = Key { name: installation.spec.context.clone(), ..key };
        refresh::read(host, &stores.contexts, &context).await?;
        let before = siblings::predecessors(stores, &installation);
        for sibling in before.into_iter().chain(siblings::successors(stores, &installation)) {
            refresh::read(host, &stores.installations, &Key::of(sibling.as_ref())).await?;
        }
        Ok(())
    }
}
