//! The deletion of what an item has deployed (INS-80, C-24, C-28). It needs the component only where that wants something
//! done before.

use orangery_api::{annotation, marks::Marks};
use orangery_apply::{ItemState, Purpose, delete};
use orangery_core::step::{Halt, Step, Verdict};
use orangery_proposal::{
    executor::ExecutionStep,
    item::{NextCall, Progress},
};

use crate::{deploy_item::gather::ItemReconciliation, removed};

impl ItemReconciliation {
    /// Takes the item away.
    pub(super) async fn uninstall(&mut self) -> Step<Verdict> {
        if self.gathered.item.flag(annotation::DELETE_WITHOUT_UNINSTALL) {
            return Ok(Verdict::Done);
        }
        let read = self.gathered.state()?;
        let mut state = self.vouched(read).await?;
        let result = self.take_away(&mut state).await;
        self.state = Some(state);
        result
    }

    /// What the item has in the clusters of its targets, then what it has left in former ones.
    pub(super) async fn take_away(&mut self, state: &mut ItemState) -> Step<Verdict> {
        let verdict = self.take_inventory_away(state).await?;
        if verdict == Verdict::Done {
            self.clean_up_all(state).await?;
        }
        Ok(verdict)
    }

    async fn take_inventory_away(&mut self, state: &mut ItemState) -> Step<Verdict> {
        if state.inventory.0.is_empty() {
            return Ok(Verdict::Done);
        }
        // Asked at every call: the Target may be deleted while its cluster is asked in vain.
        let (host, item) = (&self.gathered.host, &self.gathered.item);
        if let Some(without_target) = removed::check(host, item).await? {
            let note = without_target.map_err(Halt::Stall)?;
            removed::tell(host, item, &note);
            return Ok(Verdict::Done);
        }
        if !matches!(state.progress, Some(Progress { step: ExecutionStep::Deleting, .. })) {
            self.adopt_order(state).await;
            if let failed @ Verdict::Failed(_) = self.carry_on(Purpose::Uninstall, state).await? {
                return Ok(failed);
            }
            let now = self.gathered.host.clock.now();
            state.progress = Some(Progress::deleting(&self.gathered.job.id, now));
        }
        state.notes.extend(self.gathered.retain_allowed(&mut state.deletion_order));
        let is_current = self.status.fence();
        let result = delete(&self.gathered.job(Purpose::Uninstall, &is_current), state).await;
        self.tell_what_stays(state);
        result.map(|()| Verdict::Done)
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
