//! The begin of a proposal: what it plans joins the inventory, which is recorded before anything is written.

use orangery_cluster::is_being_deleted;
use orangery_core::step::Step;
use orangery_proposal::{ObjectWrite, Ownership, Stage, Write, executor::writes, inventory::LocatedObject};

use super::{Executor, located};
use crate::{
    apply_error::{ApplyError, all},
    scope::{clusters_of, without_namespace},
};

impl Executor<'_> {
    /// Joins what is planned to the inventory, and has it recorded where anything will be written, or is to be resumed.
    pub(super) async fn begin(&mut self, stores: bool) -> Step<()> {
        Box::pin(self.plan()).await.map_err(|error| error.halt)?;
        if let Some(status) = &self.proposal.status {
            self.state.status = Some(status.clone());
        }
        self.state.deletion_order.clone_from(&self.proposal.deletion_order);
        if stores {
            self.persist().await?;
        }
        let touches = self.proposal.stages.iter().any(|stage| !stage.writes.is_empty() || !stage.removals.is_empty());
        let prunes = self.prunes() && !self.state.inventory.leaving(&self.all_planned()).is_empty();
        if touches || prunes || self.stored.is_some() { self.record().await } else { Ok(()) }
    }

    async fn plan(&mut self) -> Result<(), ApplyError> {
        if let Some(first) = self.proposal.stages.first() {
            self.refuse_unplaced(first).await?;
        }
        self.check_clusters().await?;
        for (located, write) in writes(self.proposal) {
            if self.state.inventory.0.contains_key(&located) || !self.is_foreign(&located, write).await? {
                self.state.inventory.plan(located, write);
            }
        }
        Ok(())
    }

    /// Whether the clusters of the proposal are other ones than those that the inventory is about: what it has of them is
    /// moved away.
    pub(super) async fn check_clusters(&mut self) -> Result<bool, ApplyError> {
        let check = self.objects.check_clusters(clusters_of(&self.all_planned()), self.state).await?;
        // What has moved is planned anew, and looked at when it is written.
        if !check.is_moved {
            self.refuse_strays(&check.strays)?;
        }
        Ok(check.is_moved)
    }

    /// A kind that came to be served after the proposal was put in order has no namespaces: the inventory knows its objects as they
    /// are by now, and under the names of the proposal none of them would be its own. All is checked anew (C-78).
    pub(super) fn refuse_strays(&mut self, strays: &[LocatedObject]) -> Result<(), ApplyError> {
        for stray in strays {
            if self.planned.remove(stray) {
                self.planned.insert(without_namespace(stray));
            }
        }
        match writes(self.proposal).find(|(located, _)| strays.contains(located)) {
            Some((located, _)) => Err(ApplyError::without_namespace(&located.key)),
            None => Ok(()),
        }
    }

    /// Objects of the first stage that can be written nowhere fail the job before anything is recorded or written.
    async fn refuse_unplaced(&self, stage: &Stage) -> Result<(), ApplyError> {
        let mut results = Vec::new();
        for write in &stage.writes {
            results.push(self.objects.is_placed(&located(write)?).await);
        }
        all(results).map(drop)
    }

    /// Whether an object that only may be created, or held where nobody else does, belongs to somebody else.
    async fn is_foreign(&self, located: &LocatedObject, write: &ObjectWrite) -> Result<bool, ApplyError> {
        if write.how != Write::Create && write.owned != Ownership::Fallback {
            return Ok(false);
        }
        let handle = match self.objects.handle(located).await {
            Ok(handle) => handle,
            // A later stage may bring the kind about: then there is no such object yet.
            Err(error) if error.is_not_served() => return Ok(false),
            Err(error) => return Err(error),
        };
        // One on its way out is waited for, and then made anew.
        Ok(handle.get().await?.is_some_and(|live| !is_being_deleted(&live) && !self.objects.job.owns(&live)))
    }
}
