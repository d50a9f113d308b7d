//! What the next job of an item would do, without a job: nothing is written, neither to the item nor to its clusters.

use std::sync::Arc;

use kube::ResourceExt;
use orangery_api::{deploy_item::DeployItem, label, marks::Marks};
use orangery_apply::{DryRun, Effect, Outcome, Purpose, dry_run as try_out};
use orangery_cluster::ClusterPool;
use orangery_core::{
    error::{Code, Failure, Problem},
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

/// Asks the component of an item what it would do, and tries that on its clusters.
///
/// # Errors
/// No component claims the item, its component has a fault, a cluster cannot be read, or a policy that the host knows refuses
/// what the job would do: classified as in a job.
pub async fn dry_run(host: &Arc<ControllerContext>, item: DeployItem) -> Step<ItemDryRun> {
    let deployer = host.deployer_of(&item).ok_or_else(|| unclaimed(&item))?;
    // What a running host knows from its watches.
    refresh::read(host, &host.stores.contexts, &context(&item)).await?;
    if let Some(name) = item.label(label::MANAGED_BY).filter(|name| !name.is_empty()) {
        let installation = Key { name: name.into(), ..Key::of(&item) };
        refresh::read(host, &host.stores.installations, &installation).await?;
    }
    let limit = limit(&item).map_err(Halt::Stall)?;
    let job = ItemJob { id: host.rng.job_id(), begun: host.clock.now(), limit };
    let pool = Arc::new(ClusterPool::new(|_| {}));
    let cluster = host.host_cluster.uid(&host.client).await?;
    let gathered = GatheredItem::new(host, &pool, (Arc::new(item), cluster), deployer, job);
    let mut run = ItemDryRun {
        plugin: gathered.deployer.identity().to_string(),
        effects: Vec::new(),
        unfinished: false,
        notes: Vec::new(),
        failure: None,
    };
    let state = gathered.state_with_target().await?.state;
    run.notes.extend(gathered.unverified_origin());
    let Some(proposal) = gathered.ask(Purpose::Install, NextCall::default(), &state).await? else { return Ok(run) };
    let DryRun { outcome, effects, notes } =
        try_out(&gathered.job(Purpose::Install, &|| true), &proposal, &state).await?;
    run.effects = effects;
    run.notes.extend(notes);
    match outcome {
        Outcome::Finished => {}
        Outcome::Failed(problem) => run.failure = Some(problem),
        Outcome::Call => run.unfinished = true,
    }
    Ok(run)
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
