//! The subobjects of an Installation: its Execution and its sub-installations. They get the job, and are waited for
//! (INS-27 … INS-35).

use std::sync::Arc;

use kube::ResourceExt;
use orangery_api::{execution::Execution, installation::Installation, job::Job, marks::Marks};
use orangery_core::{
    job::JobIds,
    phase::{Phase as _, execution::Execution as ExecutionPhase, installation::Installation as Phase},
    plan::installation::{self as plan, Peer, Standing},
    step::{Halt, Step, Until, Verdict},
};
use orangery_reconcile::Key;

use super::{Run, request};
use crate::{
    host::{Host, index, key_of},
    job::{JobStatus, failure_of},
};

/// The sub-installations of an Installation, sorted by name.
pub(super) fn subinstallations(host: &Host, of: &Key) -> Vec<Arc<Installation>> {
    host.stores.installations.indexed(index::PARENT, &of.namespace, &of.name)
}

/// How an Installation stands, for whoever waits for it.
pub(super) fn peer(installation: &Installation) -> Peer {
    Peer {
        kind: "Installation",
        name: installation.name_any(),
        ids: JobIds::new(installation.job_id(), installation.job_id_finished()),
        standing: Standing::of(Phase::parse(installation.phase())),
        failure: failure_of(installation.last_error()),
        requested: request::is_requested(installation),
        deleting: installation.is_deleting(),
    }
}

fn execution_peer(execution: &Execution) -> Peer {
    Peer {
        kind: "Execution",
        name: execution.name_any(),
        ids: JobIds::new(execution.job_id(), execution.job_id_finished()),
        standing: Standing::of(ExecutionPhase::parse(execution.phase())),
        failure: failure_of(execution.last_error()),
        requested: false,
        deleting: execution.is_deleting(),
    }
}

impl Run<'_> {
    pub(super) fn subinstallations(&self) -> Vec<Arc<Installation>> {
        subinstallations(self.host, &key_of(&self.draft))
    }

    /// The Execution of this Installation, which has its name (`landscaper.md` §2.4).
    pub(super) fn execution(&self) -> Option<Arc<Execution>> {
        self.host.stores.executions.get(&key_of(&self.draft))
    }

    pub(super) fn peers(&self) -> Vec<Peer> {
        self.subinstallations().iter().map(|sub| peer(sub)).chain(self.execution_peer()).collect()
    }

    pub(super) fn execution_peer(&self) -> Option<Peer> {
        self.execution().map(|execution| execution_peer(&execution))
    }

    /// `CleanupOrphaned`: orphans get the job and are waited for until they are gone.
    pub(super) async fn cleanup_orphaned(&mut self) -> Step<Verdict> {
        let mut subs = self.subinstallations();
        subs.retain(|sub| sub.is_deleting());
        let peers: Vec<Peer> = subs.iter().map(|sub| peer(sub)).collect();
        let (trigger, outcome) = plan::orphans(&peers, &self.job);
        for sub in subs.iter().filter(|sub| trigger.contains(&sub.name_any())) {
            self.trigger_subinstallation(sub, Phase::INIT_DELETE).await?;
        }
        if let Some(execution) = self.execution().filter(|execution| execution.is_deleting()) {
            // The Execution of a blueprint that deploys nothing any more.
            self.trigger_execution(&execution, ExecutionPhase::INIT_DELETE).await?;
            let (_, execution_outcome) = plan::orphans(&[execution_peer(&execution)], &self.job);
            return orangery_core::step::all([outcome, execution_outcome]).map(|verdicts| {
                verdicts.into_iter().find(|verdict| *verdict != Verdict::Done).unwrap_or(Verdict::Done)
            });
        }
        outcome
    }

    /// `ObjectsCreated`: the job goes to all subobjects (INS-32).
    pub(super) async fn objects_created(&mut self) -> Step<Verdict> {
        for sub in self.subinstallations().iter().filter(|sub| !self.is_late(sub)) {
            self.trigger_subinstallation(sub, Phase::INIT).await?;
        }
        if let Some(execution) = self.execution() {
            self.trigger_execution(&execution, ExecutionPhase::INIT).await?;
        }
        Ok(Verdict::Done)
    }

    /// `Progressing`: all subobjects finished, and well?
    pub(super) async fn progressing(&mut self) -> Step<Verdict> {
        if self.is_conditional() {
            return self.progressing_by_conditions().await;
        }
        plan::progressing(&self.peers(), &self.missing(), &self.job)
    }

    /// The subobjects that this job made and that are there no more, each with its kind.
    fn missing(&self) -> Vec<String> {
        let Some(status) = &self.draft.status else { return Vec::new() };
        let subs: Vec<String> = self.subinstallations().iter().map(|sub| sub.name_any()).collect();
        let made = status.sub_inst_cache.iter().flat_map(|cache| &cache.active_subs);
        let lost = made.filter(|made| !subs.contains(&made.object_name));
        let lost = lost.map(|lost| format!("installation {}", lost.object_name));
        lost.chain(self.missing_execution()).collect()
    }

    /// The Execution, with its kind, if this job made it and it is there no more.
    pub(super) fn missing_execution(&self) -> Vec<String> {
        let made = self.draft.status.iter().filter_map(|status| status.execution_ref.as_ref());
        made.filter(|_| self.execution().is_none()).map(|lost| format!("execution {}", lost.name)).collect()
    }

    /// `TriggerDelete`: the job goes to all subobjects and so starts their deletion (INS-65).
    pub(super) async fn trigger_delete(&mut self) -> Step<Verdict> {
        // Where a condition says when something is gone, what comes after it is asked to go then.
        if !self.is_deletion_conditional() {
            for sub in self.subinstallations() {
                self.trigger_subinstallation(&sub, Phase::INIT_DELETE).await?;
            }
        }
        self.delete_by_execution().await?;
        Ok(Verdict::Done)
    }

    /// The job goes to the Execution and so starts its deletion.
    pub(super) async fn delete_by_execution(&self) -> Step<()> {
        match self.execution() {
            Some(execution) => self.trigger_execution(&execution, ExecutionPhase::INIT_DELETE).await,
            None => Ok(()),
        }
    }

    /// `Deleting`: all subobjects gone? One that was still deploying in this very job when it was to go gets the job once
    /// more as soon as it has ended.
    pub(super) async fn deleting(&mut self) -> Step<Verdict> {
        if self.is_deletion_conditional() {
            return self.deleting_by_conditions().await;
        }
        self.trigger_delete().await?;
        self.until_gone()
    }

    /// Whether all subobjects are gone, and if not, for which it waits.
    pub(super) fn until_gone(&self) -> Step<Verdict> {
        match plan::deleting(&self.peers(), &self.job) {
            // Conditions are asked at the next look.
            Ok(Verdict::Done) if self.is_deletion_conditional() => {
                Err(Halt::wait("Condition", "deletedWhen", Until::Met))
            }
            outcome => outcome,
        }
    }

    pub(super) async fn trigger_subinstallation(&self, sub: &Arc<Installation>, first: Phase) -> Step<()> {
        let ids = JobIds::new(sub.job_id(), sub.job_id_finished());
        if !ids.wants(&self.job, Phase::parse(sub.phase()), first) {
            return Ok(());
        }
        let mut after = Installation::clone(sub);
        let generation = sub.metadata.generation.unwrap_or_default();
        after.status.get_or_insert_default().trigger(&self.job, first, generation, &self.host.now());
        let writer = self.host.writer(&self.host.stores.installations);
        writer.update_status(sub, &after).await.map(drop).map_err(|error| error.halt("TriggerSubinstallation"))
    }

    pub(super) async fn trigger_execution(&self, execution: &Arc<Execution>, first: ExecutionPhase) -> Step<()> {
        let ids = JobIds::new(execution.job_id(), execution.job_id_finished());
        if !ids.wants(&self.job, ExecutionPhase::parse(execution.phase()), first) {
            return Ok(());
        }
        let mut after = Execution::clone(execution);
        let generation = execution.metadata.generation.unwrap_or_default();
        after.status.get_or_insert_default().trigger(&self.job, first, generation, &self.host.now());
        let writer = self.host.writer(&self.host.stores.executions);
        writer.update_status(execution, &after).await.map(drop).map_err(|error| error.halt("TriggerExecution"))
    }
}
