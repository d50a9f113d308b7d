//! What charts have of the objects of an item that goes while its Execution stays: they are asked, as nobody knows it before they
//! are rendered (C-205).

use std::{collections::BTreeMap, sync::Arc};

use orangery_api::deploy_item::DeployItem;
use orangery_apply::{ItemState, Owner, Purpose, hand_over};
use orangery_core::{
    error::Failure,
    step::{Halt, Step},
};
use orangery_proposal::{
    ClusterRef, Ownership, Write,
    check::created_namespace,
    executor::{ExecutionStep, writes},
    inventory::{Inventory, InventoryEntry, InventoryPolicy, LocatedObject},
    item::{NextCall, Progress},
};

use crate::deploy_item::{
    dry_run::unclaimed,
    gather::{GatheredItem, ItemReconciliation, items::config, request::ItemJob},
    timeout::limit,
};

/// The charts that are asked what they write, for one item that goes: each is rendered for it.
const MOST_CHARTS: usize = 32;

impl ItemReconciliation {
    /// Leaves to charts beside this item what they would write over now, before anything of it is deleted. What a chart would write
    /// that cannot be planned is not known, and told.
    pub(super) async fn leave_to_charts(&mut self, state: &mut ItemState) -> Step<()> {
        let is_deleting = matches!(state.progress, Some(Progress { step: ExecutionStep::Deleting, .. }));
        if is_deleting || state.inventory.0.is_empty() {
            return Ok(());
        }
        let mut charts = self.gathered.charts_beside().await?;
        charts.sort_by(|(_, one), (_, other)| one.name.cmp(&other.name));
        if let Some((_, first)) = charts.get(MOST_CHARTS) {
            self.tell("ObjectsMadeAnew", &unasked(first, charts.len()));
        }
        for (chart, owner) in charts.into_iter().take(MOST_CHARTS) {
            let Some(chart) = self.gathered.host.stores.deploy_items.get(&chart) else { continue };
            match Box::pin(self.gathered.written_by(&chart)).await {
                Ok(written) => self.leave_to_chart(&owner, &written, state).await?,
                Err(Halt::Stall(failure)) => self.tell("ObjectsMadeAnew", &unplanned(&owner, &failure)),
                // What it waits for wakes its own item.
                Err(Halt::Wait(wait)) => return Err(not_yet_planned(&owner, &wait.to_string())),
                Err(Halt::Retry(failure)) => return Err(not_yet_planned(&owner, &failure.message)),
            }
        }
        self.tell_what_stays(state);
        Ok(())
    }

    /// What one of them writes over is its own at once (C-271).
    async fn leave_to_chart(
        &self,
        chart: &Owner,
        written: &BTreeMap<LocatedObject, InventoryPolicy>,
        state: &mut ItemState,
    ) -> Step<()> {
        let theirs = |(located, entry): (&LocatedObject, &InventoryEntry)| {
            let policy = *written.get(located)?;
            Some((located.clone(), InventoryEntry { policy, ..entry.clone() }))
        };
        let left = Inventory(state.inventory.0.iter().filter_map(theirs).collect());
        if left.0.is_empty() {
            return Ok(());
        }
        self.list_with(chart, &left, state).await?;
        let is_current = self.status.fence();
        hand_over(&self.gathered.job(Purpose::Uninstall, &is_current), left.0.keys(), chart).await?;
        for located in left.0.keys() {
            state.inventory.0.remove(located);
            let LocatedObject { on, key } = located;
            state.notes.push(format!(
                "{key} of {on} stays: DeployItem {} has it in its chart, and goes on with it",
                chart.name
            ));
        }
        Ok(())
    }
}

impl GatheredItem {
    /// The objects that a chart beside this item would write over in a job that begins now, each with what becomes of it there; and
    /// the namespace that is made with it.
    async fn written_by(&self, chart: &Arc<DeployItem>) -> Step<BTreeMap<LocatedObject, InventoryPolicy>> {
        let host = &self.host;
        let deployer = host.deployer_of(chart).ok_or_else(|| unclaimed(chart))?;
        let limit = limit(chart).map_err(Halt::Stall)?;
        let job = ItemJob { id: host.rng.job_id(), begun: host.clock.now(), limit };
        let chart = (Arc::clone(chart), self.owner.cluster.clone());
        let planned = Self::new(host, &self.pool, chart, deployer, job);
        let state = planned.state_with_target().await?.state;
        let proposal = planned.ask(Purpose::Install, NextCall::default(), &state).await?;
        let namespace = created_namespace(config(&planned.item));
        let namespace = namespace.map(|key| (LocatedObject { on: ClusterRef::Target, key }, InventoryPolicy::Keep));
        let mut written: BTreeMap<_, _> = namespace.into_iter().collect();
        for (located, write) in proposal.iter().flat_map(|proposal| writes(proposal)) {
            let writes_over = write.how != Write::Create && matches!(write.owned, Ownership::Managed | Ownership::Kept);
            if writes_over && located.on == ClusterRef::Target {
                written.insert(located, InventoryPolicy::of(write));
            }
        }
        Ok(written)
    }
}

fn not_yet_planned(chart: &Owner, why: &str) -> Halt {
    let message = format!(
        "what DeployItem {} beside this item writes is not known yet, and nothing of this item is deleted before: {why}; it is tried again",
        chart.name
    );
    Halt::Retry(Failure::new("Uninstall", "ChartNotPlanned", message))
}

/// What to say of the charts that are not asked, of which this is the first by name.
fn unasked(first: &Owner, charts: usize) -> String {
    format!(
        "of the {charts} charts beside this item {MOST_CHARTS} are asked what they write; what those from DeployItem {} on have of the \
         objects of this item is deleted, and made anew",
        first.name
    )
}

fn unplanned(chart: &Owner, failure: &Failure) -> String {
    format!(
        "what DeployItem {} writes is not known, as its chart cannot be planned: {}; what it has of the objects of this item is deleted, \
         and made anew",
        chart.name, failure.message
    )
}
