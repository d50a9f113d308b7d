//! A deployer, one sample for it, and the calls that cases make.

use std::{collections::BTreeMap, sync::Arc};

use orangery_core::{
    error::{Fault, Problem},
    port::BoxFuture,
};
use orangery_plugin::Plugin;
use orangery_proposal::{
    Item, Next, ObjectWrite, Ownership, Proposal,
    check::key_of,
    deployer::{Clusters, Deployer, Reads},
    grant::Grants,
    inventory::LocatedObject,
};
use serde_json::{Value, json};

use super::Sample;
use crate::authoring::{cases::MOST_CALLS, fake_cluster::FakeCluster};

/// The time of the first job.
const NOW: &str = "2026-01-02T03:04:05Z";

/// How a call ended: with an answer, or with the host's reason why there is none, such as a crash or a limit.
pub type DeployerAnswer = Result<Result<Proposal, Fault>, String>;

/// What cases are asked of.
pub trait DeployerUnderTest: Send + Sync {
    /// What it may reach.
    fn grants(&self) -> &Grants;
    /// Plans an item.
    fn plan<'a>(&'a self, item: &'a Item, clusters: Arc<dyn Clusters>) -> BoxFuture<'a, DeployerAnswer>;
    /// The JSON Schema of its configuration; `None` where it says nothing of configurations.
    fn schema(&self) -> BoxFuture<'_, Option<Result<Value, String>>> {
        Box::pin(async { None })
    }
    /// What is wrong with a configuration; empty where nothing is.
    fn problems<'a>(&'a self, _: &'a Value) -> BoxFuture<'a, Result<Vec<Problem>, String>> {
        Box::pin(async { Ok(Vec::new()) })
    }
    /// Plans what comes before the deletion of an item; `None` where it has nothing to say about that.
    fn uninstall<'a>(&'a self, item: &'a Item, clusters: Arc<dyn Clusters>) -> BoxFuture<'a, Option<DeployerAnswer>>;
}

impl DeployerUnderTest for Plugin {
    fn grants(&self) -> &Grants {
        Deployer::grants(self)
    }

    fn plan<'a>(&'a self, item: &'a Item, clusters: Arc<dyn Clusters>) -> BoxFuture<'a, DeployerAnswer> {
        Box::pin(async move {
            Plugin::plan(self, item, Reads::of_clusters(clusters)).await.map_err(|error| error.to_string())
        })
    }

    fn schema(&self) -> BoxFuture<'_, Option<Result<Value, String>>> {
        Box::pin(async { self.configuration_schema().await.map_err(|fault| fault.to_string()).transpose() })
    }

    fn problems<'a>(&'a self, config: &'a Value) -> BoxFuture<'a, Result<Vec<Problem>, String>> {
        Box::pin(async move {
            let found = Plugin::problems(self, config).await.map_err(|fault| fault.to_string());
            found.map(Option::unwrap_or_default)
        })
    }

    fn uninstall<'a>(&'a self, item: &'a Item, clusters: Arc<dyn Clusters>) -> BoxFuture<'a, Option<DeployerAnswer>> {
        Box::pin(async move {
            let answer = Plugin::uninstall(self, item, Reads::of_clusters(clusters)).await;
            answer.map_err(|error| error.to_string()).transpose()
        })
    }
}

/// Why a case does not pass.
pub(super) enum Shortfall {
    /// The deployer does not do what is asked.
    Failed(String),
    /// The sample does not reach what is asked about.
    NotApplicable(String),
}

impl From<String> for Shortfall {
    fn from(reason: String) -> Self {
        Shortfall::Failed(reason)
    }
}

/// One sample, and a target for it.
pub(super) struct ConformanceSession<'a> {
    pub(super) deployer: &'a dyn DeployerUnderTest,
    /// The item in its first job.
    pub(super) item: Item,
    target: FakeCluster,
}

impl<'a> ConformanceSession<'a> {
    pub(super) fn new(
        deployer: &'a dyn DeployerUnderTest,
        item_type: &str,
        sample: &Sample,
        target: &[Value],
    ) -> Result<Self, String> {
        let item = Item {
            namespace: "default".into(),
            name: sample.name.as_str().into(),
            uid: "5ccce2ed-e75a-457a-8dc3-7f9b3150818a".to_owned(),
            item_type: item_type.to_owned(),
            generation: 1,
            context: "default".to_owned(),
            target: Some("target".to_owned()),
            job: "5d5ac0da-df31-4cb2-8a3c-003944f84db9".into(),
            config: sample.config.clone(),
            annotations: BTreeMap::new(),
            configuration: None,
            status: None,
            checkpoint: None,
            failed: None,
            now: NOW.to_owned(),
            seed: 7,
            secret: None,
            timeout: 600_000,
        };
        Ok(Self { deployer, item, target: FakeCluster::of(target)? })
    }

    /// The same item with another configuration.
    pub(super) fn with(&self, config: Value) -> Item {
        Item { config, ..self.item.clone() }
    }

    /// A target of its own.
    pub(super) fn cluster(&self) -> Arc<FakeCluster> {
        Arc::new(self.target.copy())
    }

    /// The answer to an item, in a cluster of its own where none is given.
    ///
    /// # Errors
    /// There is none.
    pub(super) async fn answer(
        &self,
        item: &Item,
        clusters: Option<Arc<dyn Clusters>>,
    ) -> Result<Result<Proposal, Fault>, String> {
        let clusters = clusters.unwrap_or_else(|| self.cluster());
        self.deployer.plan(item, clusters).await.map_err(|error| format!("there is no answer: {error}"))
    }

    /// The proposal of the sample in its first call.
    ///
    /// # Errors
    /// There is no answer, or the sample is refused.
    pub(super) async fn proposal(&self) -> Result<Proposal, String> {
        proposed(self.answer(&self.item, None).await?)
    }

    /// Plays a job to its end: carries each proposal out, and calls as it asks for. Answers all of them.
    ///
    /// # Errors
    /// There is no answer, or the item is refused.
    pub(super) async fn job(&self, item: &Item, cluster: &Arc<FakeCluster>) -> Result<Vec<Proposal>, String> {
        let mut item = item.clone();
        let mut proposals = Vec::new();
        while proposals.len() < MOST_CALLS {
            let proposal = proposed(self.answer(&item, Some(cluster.clone())).await?)?;
            cluster.carry_out(&proposal);
            let goes_on = checkpoint(&proposal);
            item.status = proposal.status.clone().or(item.status);
            proposals.push(proposal);
            match goes_on {
                Some(checkpoint) => item.checkpoint = Some(checkpoint),
                None => break,
            }
        }
        Ok(proposals)
    }

    /// Plays a deletion to where the host deletes the inventory; `None` where the component has nothing to say about it.
    ///
    /// # Errors
    /// There is no answer, the deletion is refused, or it fails.
    pub(super) async fn deletion(&self, item: &Item, cluster: &Arc<FakeCluster>) -> Result<Option<()>, String> {
        let mut item = item.clone();
        for _ in 0..MOST_CALLS {
            let Some(end) = self.deployer.uninstall(&item, cluster.clone()).await else { return Ok(None) };
            let proposal = match end.map_err(|error| format!("there is no answer: {error}"))? {
                Ok(proposal) => proposal,
                Err(fault) => return Err(format!("the deletion is refused: {fault}")),
            };
            cluster.carry_out(&proposal);
            if let Next::Fail(problem) = &proposal.next {
                return Err(format!("the deletion fails: {problem}"));
            }
            match checkpoint(&proposal) {
                Some(checkpoint) => item.checkpoint = Some(checkpoint),
                None => return Ok(Some(())),
            }
        }
        Err(format!("the deletion has not come to its end after {MOST_CALLS} calls"))
    }
}

fn checkpoint(proposal: &Proposal) -> Option<Vec<u8>> {
    match &proposal.next {
        Next::ContinueWith(checkpoint) | Next::AgainIn { checkpoint, .. } => Some(checkpoint.clone()),
        Next::Finish(_) | Next::Fail(_) => None,
    }
}

fn proposed(answer: Result<Proposal, Fault>) -> Result<Proposal, String> {
    answer.map_err(|fault| format!("the sample is refused: {fault}; a sample is a configuration that is planned"))
}

/// The objects that an item is made of by these proposals: what is updated and deleted with it.
pub(super) fn managed<'p>(proposals: impl IntoIterator<Item = &'p Proposal>) -> Vec<LocatedObject> {
    let of = |proposal: &'p Proposal| {
        let afterwards = match &proposal.next {
            Next::Finish(completion) => completion.afterwards.as_slice(),
            Next::Fail(_) | Next::ContinueWith(_) | Next::AgainIn { .. } => &[],
        };
        proposal.stages.iter().chain(afterwards).flat_map(|stage| &stage.writes)
    };
    let is_managed = |write: &&ObjectWrite| matches!(write.owned, Ownership::Managed | Ownership::Fallback);
    let writes = proposals.into_iter().flat_map(of).filter(is_managed);
    let located = |write: &ObjectWrite| Some(LocatedObject { on: write.on.clone(), key: key_of(&write.object).ok()? });
    let mut all: Vec<LocatedObject> = writes.filter_map(located).collect();
    all.sort();
    all.dedup();
    all
}

/// A provider status that no version of the deployer has written.
pub(super) fn foreign_status() -> Value {
    json!({"apiVersion": "example.org/v99", "kind": "SomethingElse", "unknown": [1, {"deep": null}], "release": 7})
}
