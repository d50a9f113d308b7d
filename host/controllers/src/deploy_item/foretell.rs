//! What the next job of an item would do, without a job: nothing is written, neither to the item nor to its clusters.

use std::sync::Arc;

use kube::ResourceExt;
use orangery_api::{deploy_item::DeployItem, label, marks::Marks};
use orangery_apply::{ClusterPool, Effect, Job, Purpose, preview};
use orangery_core::{
    error::{Code, Failure, Problem},
    step::{Halt, Step},
};
use orangery_proposal::{
    Next,
    check::{Bounds, check},
    item::judge,
};
use orangery_reconcile::Key;

use super::{limit, provider_status, request};
use crate::{
    controller_context::{ControllerContext, waiter},
    refresh,
    stores::Kind,
    target_access::TargetConnections,
};

/// What a job would do.
#[derive(Debug)]
pub struct Foretold {
    /// The component that was asked.
    pub plugin: String,
    /// What would become of each object.
    pub effects: Vec<Effect>,
    /// Whether the component is called again afterwards.
    pub unfinished: bool,
    /// What the item would fail with.
    pub failure: Option<Problem>,
}

/// Asks the component of an item what it would do, and holds that against the live objects.
///
/// # Errors
/// No component claims the item, its component has a fault, or a cluster cannot be read: judged as in a job.
pub async fn foretell(host: &Arc<ControllerContext>, item: DeployItem) -> Step<Foretold> {
    let item = Arc::new(item);
    let deployer = host.plugins.deployer(&item.spec.type_).ok_or_else(|| {
        let message = format!(
            "no component of this host claims the type {:?} of DeployItem {}; name the folder with its registration, with \
             --plugins",
            item.spec.type_,
            item.name_any()
        );
        Halt::Stall(Failure::new("Plan", "UnknownType", message).with_code(Code::ConfigurationProblem))
    })?;
    // What a running host knows from its watches.
    let namespace = item.namespace().unwrap_or_default();
    let installation = Key::new(namespace, item.label(label::MANAGED_BY).unwrap_or_default());
    refresh::read(host, &host.stores.contexts, &request::context(&item)).await?;
    if !installation.name.is_empty() {
        refresh::read(host, &host.stores.installations, &installation).await?;
    }
    let pool = Arc::new(ClusterPool::new(|_| {}));
    let connections = TargetConnections::of(host, &pool, &item);
    connections.exist().await?;
    let clusters = Arc::new(pool.set(Arc::new(connections), waiter(Kind::DeployItem, &Key::of(item.as_ref()))));

    let id = host.chance.job_id();
    let limit = limit(&item).map_err(Halt::Stall)?;
    let status = item.status.as_ref().and_then(|status| status.provider_status.as_ref());
    let page = provider_status::read(status, &id)?;
    let begin = request::Begin { job: &id, now: host.clock.now(), limit };
    let request = request::item(&item, &begin, request::Call::default(), page.status.as_ref());
    let answer = deployer.plan(&request, request::reads(host, &item, &clusters)).await;
    let proposal = answer.map_err(|fault| judge(fault, deployer.identity()))?;
    check(&proposal, deployer.grants(), Bounds::default()).map_err(|fault| judge(fault, deployer.identity()))?;
    let job = Job {
        id: &id,
        purpose: Purpose::Install,
        owner: &item.name_any(),
        labels: deployer.ownership_labels(),
        clusters: &clusters,
        clock: host.clock.as_ref(),
        is_current: &|| false,
    };
    let effects = preview(&job, &proposal, &page.inventory).await?;
    let failure = if let Next::Fail(problem) = &proposal.next { Some(problem.clone()) } else { None };
    let unfinished = matches!(proposal.next, Next::ContinueWith(_) | Next::AgainIn { .. });
    Ok(Foretold { plugin: deployer.identity().to_string(), effects, unfinished, failure })
}
