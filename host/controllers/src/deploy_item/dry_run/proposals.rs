//! What the component of an item proposes, asked for again and again for an item as it might be: nothing is tried out, and nothing is
//! written.

use std::sync::Arc;

use jiff::Timestamp;
use orangery_api::deploy_item::DeployItem;
use orangery_apply::Purpose;
use orangery_cluster::ClusterPool;
use orangery_core::{name::JobId, step::Step};
use orangery_ocm::{ChangeContent, ChangedContent};
use orangery_proposal::{
    ClusterRef, Next, ObjectKey, ObjectWrite, Proposal,
    check::key_of,
    deployer::{Clusters as _, Reads},
    item::{NextCall, classify},
};
use serde_json::Value;

use super::{super::gather::GatheredItem, gather, remembered::RememberedReads};
use crate::controller_context::ControllerContext;

/// Asks the component of an item. The time, what it may draw at random, and what it reads of clusters are the same in each call.
pub struct ItemProposals {
    host: Arc<ControllerContext>,
    pool: Arc<ClusterPool>,
    job: (JobId, Timestamp),
    /// What clusters have answered.
    known: Arc<RememberedReads>,
}

/// What a component proposes.
#[derive(Debug)]
pub struct ItemProposal {
    /// The component.
    pub plugin: String,
    /// The objects that it would write, in the order of its stages.
    pub objects: Vec<ProposedObject>,
    /// Whether the component is called again afterwards, and may propose more.
    pub unfinished: bool,
}

/// An object that would be written.
#[derive(Debug)]
pub struct ProposedObject {
    /// Where.
    pub on: ClusterRef,
    /// Which.
    pub key: ObjectKey,
    /// The form that is asked for.
    pub object: Value,
}

impl ItemProposal {
    fn of(plugin: String, proposal: &Proposal) -> Self {
        let proposed = |ObjectWrite { object, on, .. }: &ObjectWrite| {
            Some(ProposedObject { on: on.clone(), key: key_of(object).ok()?, object: object.clone() })
        };
        let objects = proposal.stages.iter().flat_map(|stage| &stage.writes).filter_map(proposed).collect();
        let unfinished = matches!(proposal.next, Next::ContinueWith(_) | Next::AgainIn { .. });
        Self { plugin, objects, unfinished }
    }
}

impl ItemProposals {
    /// As of a job with this id, and of this time.
    pub fn new(host: &Arc<ControllerContext>, job: (JobId, Timestamp)) -> Self {
        Self { host: Arc::clone(host), pool: Arc::new(ClusterPool::new(|_| {})), job, known: Arc::default() }
    }

    async fn gathered(&self, item: DeployItem) -> Step<GatheredItem> {
        let mut gathered = gather(&self.host, &self.pool, item, self.job.clone()).await?;
        gathered.remembered = Some(Arc::clone(&self.known));
        Ok(gathered)
    }

    /// What the component proposes for an item.
    ///
    /// # Errors
    /// No component claims the item, its component has a fault, a cluster cannot be read, or a policy refuses what is proposed:
    /// classified as in a job.
    pub async fn of(&self, item: DeployItem) -> Step<ItemProposal> {
        let gathered = self.gathered(item).await?;
        let state = gathered.state_with_target().await?.state;
        let plugin = gathered.deployer.identity().to_string();
        let Some(proposal) = gathered.ask(Purpose::Install, NextCall::default(), &state).await? else {
            return Ok(ItemProposal { plugin, objects: Vec::new(), unfinished: false });
        };
        Ok(ItemProposal::of(plugin, &proposal))
    }

    /// The same where what is fetched for it is changed on its way: a chart, as its bytes; `None` leaves it as it is. Policies are not
    /// asked, as nothing comes of it.
    ///
    /// # Errors
    /// As of [`of`](Self::of), without policies.
    pub async fn of_changed(&self, item: DeployItem, change: ChangeContent) -> Step<ItemProposal> {
        let gathered = self.gathered(item).await?;
        let state = gathered.state_with_target().await?.state;
        let Reads { clusters, artifacts, resources } = gathered.reads();
        let changed = Arc::new(ChangedContent { artifacts, resources, change });
        let reads = Reads { clusters, artifacts: Arc::<ChangedContent>::clone(&changed), resources: changed };
        let (deployer, request) = (&gathered.deployer, gathered.request(NextCall::default(), &state));
        let proposal = deployer.plan(&request, reads).await.map_err(|fault| classify(fault, deployer.identity()))?;
        Ok(ItemProposal::of(deployer.identity().to_string(), &proposal))
    }

    /// An object of a cluster of the item, as it is there.
    ///
    /// # Errors
    /// The cluster cannot be read: classified as in a job.
    pub async fn live(&self, item: DeployItem, on: &ClusterRef, key: &ObjectKey) -> Step<Option<Value>> {
        let gathered = self.gathered(item).await?;
        gathered.clusters.get(on, key).await.map_err(|fault| classify(fault, gathered.deployer.identity()))
    }
}
