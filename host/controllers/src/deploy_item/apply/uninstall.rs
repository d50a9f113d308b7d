//! The deletion of what an item has deployed (INS-80, C-24, C-28). It needs the component only where that wants something
//! done before.

use orangery_api::{annotation, marks::Marks};
use orangery_apply::{ItemState, ProgressStore as _, Purpose, delete};
use orangery_core::step::{Halt, Step, Verdict};
use orangery_proposal::{
    ClusterRef,
    executor::ExecutionStep,
    item::{NextCall, Progress},
};

use crate::{
    deploy_item::gather::{GatheredItem, ItemReconciliation},
    removed,
    target_kubeconfig::LeftCluster,
};

impl ItemReconciliation {
    /// Takes the item away.
    pub(super) async fn uninstall(&mut self) -> Step<Verdict> {
        if self.gathered.item.flag(annotation::DELETE_WITHOUT_UNINSTALL) {
            return Ok(Verdict::Done);
        }
        let read = self.gathered.state().await?;
        let mut state = self.vouched(read).await?;
        let GatheredItem { host, item, .. } = &self.gathered;
        let is_usable = |on: &ClusterRef| match on {
            ClusterRef::Named(name) => !removed::was_users(host, item, name),
            ClusterRef::Target | ClusterRef::Host => true,
        };
        let left = state.cluster_uids().map(|(on, uid)| {
            let kept = state.credentials.get(uid).filter(|_| is_usable(on)).cloned();
            (on.clone(), LeftCluster { uid: uid.to_owned(), kept })
        });
        self.gathered.targets.fall_back_on(left.collect(), self.gathered.clusters.call());
        let result = Box::pin(self.take_away(&mut state)).await;
        self.state = Some(state);
        match result {
            Err(halt) => Err(self.without_its_namespace(halt).await),
            done @ Ok(_) => done,
        }
    }

    /// What the item has in the clusters of its targets, then what it has left in former ones.
    pub(super) async fn take_away(&mut self, state: &mut ItemState) -> Step<Verdict> {
        let verdict = Box::pin(self.take_inventory_away(state)).await?;
        // What lies in another cluster is not what another item goes on with in this one.
        self.gathered.successors.clear();
        if verdict == Verdict::Done {
            self.clean_up_all(state).await?;
        }
        Ok(verdict)
    }

    async fn take_inventory_away(&mut self, state: &mut ItemState) -> Step<Verdict> {
        if Box::pin(self.leave_to_successors(state)).await? {
            return Ok(Verdict::Done);
        }
        if state.inventory.0.is_empty() && !self.has_more(state).await {
            return Ok(Verdict::Done);
        }
        // Asked at every call: the Target may be deleted while its cluster is asked in vain.
        let (host, item) = (&self.gathered.host, &self.gathered.item);
        if let Some(without_target) = removed::check(host, item).await? {
            match without_target {
                Ok(note) => {
                    removed::tell(host, item, &note);
                    return Ok(Verdict::Done);
                }
                // With its Target a user has taken the cluster away, as with the original.
                Err(failure) if removed::was_users_own(host, item) => return Err(Halt::Stall(failure)),
                // Copies go before the items where a namespace is deleted, or a tree in the foreground (C-28).
                Err(failure) => {
                    let kept = self.gathered.targets.kept_kubeconfig(&ClusterRef::Target).await?;
                    kept.ok_or(Halt::Stall(failure))?;
                }
            }
        }
        if !matches!(state.progress, Some(Progress { step: ExecutionStep::Deleting, .. })) {
            self.adopt_order(state).await;
            Box::pin(self.check_rules_of_deletion(state)).await?;
            if let failed @ Verdict::Failed(_) = Box::pin(self.carry_on(Purpose::Uninstall, state)).await? {
                return Ok(failed);
            }
            let now = self.gathered.host.clock.now();
            state.progress = Some(Progress::deleting(&self.gathered.job.id, now));
            // A stored proposal is gone on with after a crash: it must not wait for what is deleted from here on (INV-6).
            if state.stored.is_some() {
                self.status.record(state).await?;
            }
        }
        state.notes.extend(self.gathered.retain_allowed(&mut state.deletion_order));
        Box::pin(self.check_approval_of_deletion(state)).await?;
        let is_current = self.status.fence();
        let result = Box::pin(delete(&self.gathered.job(Purpose::Uninstall, &is_current), state)).await;
        self.tell_what_stays(state);
        result.map(|()| Verdict::Done)
    }

    /// Whether the component has something to take away that no inventory tells of: the original's Helm deployer lists
    /// workloads alone, and of a release without any it lists nothing (C-118). Where it cannot say, it has. What it answers is
    /// what is carried out then.
    async fn has_more(&mut self, state: &ItemState) -> bool {
        if state.status.is_none() || state.progress.is_some() {
            return state.progress.as_ref().is_some_and(|progress| progress.step != ExecutionStep::Deleting);
        }
        match self.gathered.ask(Purpose::Uninstall, NextCall::default(), state).await {
            Ok(answer) => {
                self.answered = answer.filter(|proposal| !proposal.stages.is_empty());
                self.answered.is_some()
            }
            Err(_) => true,
        }
    }

    /// An item that another deployer brought about has its deletion order in the configuration alone. A component that
    /// cannot say it leaves the default.
    async fn adopt_order(&self, state: &mut ItemState) {
        let gathered = &self.gathered;
        let by = gathered.item.status.as_ref().map_or("", |status| status.deployer.name.as_str());
        if by == gathered.deployer.identity().name {
            return;
        }
        if let Ok(Some(proposal)) = gathered.ask(Purpose::Install, NextCall::default(), state).await {
            state.deletion_order.clone_from(&proposal.deletion_order);
        }
    }
}
