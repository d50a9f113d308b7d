//! What the next job of an item would do, without a job: nothing is written, neither to the item nor to its clusters.

pub mod proposals;
pub(super) mod remembered;

use std::sync::Arc;

use jiff::Timestamp;
use kube::ResourceExt;
use orangery_api::{deploy_item::DeployItem, label, marks::Marks};
use orangery_apply::{
    DryRun, Effect, ItemState, Outcome, Purpose, dry_run as try_out, dry_run_of_deletion as try_deletion,
};
use orangery_cluster::ClusterPool;
use orangery_core::{
    error::{Code, Failure, Problem},
    name::JobId,
    step::{Halt, Step},
};
use orangery_proposal::item::NextCall;
use orangery_reconcile::Key;

use super::{
    gather::{
        GatheredItem,
        request::{ItemJob, context},
    },
    timeout::limit,
};
use crate::{controller_context::ControllerContext, refresh};

/// What a job of an item would do.
#[derive(Debug)]
pub struct ItemDryRun {
    /// The component that was asked.
    pub plugin: String,
    /// What would become of each object.
    pub effects: Vec<Effect>,
    /// Whether the component is called again afterwards.
    pub unfinished: bool,
    /// What would be left as it is although the item has it, and why; and what is not known here.
    pub notes: Vec<String>,
    /// What the item would fail with.
    pub failure: Option<Problem>,
}

/// What the deletion of an item would take away, as its inventory has it. What its component does before is not known here.
///
/// # Errors
/// As [`dry_run`].
pub async fn dry_run_of_deletion(host: &Arc<ControllerContext>, item: DeployItem) -> Step<ItemDryRun> {
    let is_kept = item.is_kept();
    let (gathered, mut run) = begin(host, item).await?;
    let state = gathered.state().await?.state;
    if is_kept {
        run.notes.push("what it has deployed stays".to_owned());
        return Ok(run);
    }
    let tried = try_deletion(&gathered.job(Purpose::Uninstall, &|| true), &state).await?;
    run.take(&gathered, tried, &state).await;
    Ok(run)
}

/// Asks the component of an item what it would do, and tries that on its clusters.
///
/// # Errors
/// No component claims the item, its component has a fault, a cluster cannot be read, or a policy that the host knows refuses
/// what the job would do: classified as in a job.
pub async fn dry_run(host: &Arc<ControllerContext>, item: DeployItem) -> Step<ItemDryRun> {
    let (gathered, mut run) = begin(host, item).await?;
    let state = gathered.state_with_target().await?.state;
    run.notes.extend(gathered.unverified_origin());
    let Some(proposal) = gathered.ask(Purpose::Install, NextCall::default(), &state).await? else { return Ok(run) };
    let tried = try_out(&gathered.job(Purpose::Install, &|| true), &proposal, &state).await?;
    run.take(&gathered, tried, &state).await;
    Ok(run)
}

impl ItemDryRun {
    async fn take(&mut self, gathered: &GatheredItem, run: DryRun, state: &ItemState) {
        let broken = gathered.broken_plan_rules(&run, state).await;
        let DryRun { outcome, effects, notes, former: _ } = run;
        let (denies, warns): (Vec<_>, Vec<_>) = broken.into_iter().partition(|rule| rule.denies);
        self.effects = effects;
        self.notes.extend(notes);
        self.notes.extend(warns.into_iter().map(|rule| rule.message));
        if !denies.is_empty() {
            let told: Vec<String> = denies.into_iter().map(|rule| rule.message).collect();
            self.failure = Some(Problem { code: Code::PolicyViolation, message: told.join("; "), at: None });
            return;
        }
        match outcome {
            Outcome::Finished => {}
            Outcome::Failed(problem) => self.failure = Some(problem),
            Outcome::Call => self.unfinished = true,
        }
    }
}

/// What an item is gathered with, and a dry run in which nothing is known yet.
async fn begin(host: &Arc<ControllerContext>, item: DeployItem) -> Step<(GatheredItem, ItemDryRun)> {
    let pool = Arc::new(ClusterPool::new(|_| {}));
    let gathered = gather(host, &pool, item, (host.rng.job_id(), host.clock.now())).await?;
    let run = ItemDryRun {
        plugin: gathered.deployer.identity().to_string(),
        effects: Vec::new(),
        unfinished: false,
        notes: Vec::new(),
        failure: None,
    };
    Ok((gathered, run))
}

/// An item with all that a job of this id, and of this time, would have. Nothing is written.
///
/// # Errors
/// No component claims the item, its timeout cannot be read, or the cluster cannot be asked for what belongs to it.
async fn gather(
    host: &Arc<ControllerContext>,
    pool: &Arc<ClusterPool>,
    item: DeployItem,
    (id, begun): (JobId, Timestamp),
) -> Step<GatheredItem> {
    let deployer = host.deployer_of(&item).ok_or_else(|| unclaimed(&item))?;
    // What a running host knows from its watches.
    refresh::read(host, &host.stores.contexts, &context(&item)).await?;
    if let Some(name) = item.label(label::MANAGED_BY).filter(|name| !name.is_empty()) {
        let installation = Key { name: name.into(), ..Key::of(&item) };
        refresh::read(host, &host.stores.installations, &installation).await?;
    }
    let limit = limit(&item).map_err(Halt::Stall)?;
    let job = ItemJob { id, begun, limit };
    let cluster = host.host_cluster.uid(&host.client).await?;
    Ok(GatheredItem::new(host, pool, (Arc::new(item), cluster), deployer, job))
}

pub(super) fn unclaimed(item: &DeployItem) -> Halt {
    let message = format!(
        "no component of this host claims the type {:?} of DeployItem {}; name the folder with its registration, with \
         --plugins",
        item.spec.type_,
        item.name_any()
    );
    Halt::Stall(Failure::new("Plan", "UnknownType", message).with_code(Code::ConfigurationProblem))
}
