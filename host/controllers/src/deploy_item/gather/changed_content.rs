//! Content that is changed on its way to a component: for calls of which nothing comes but what they say.

use std::sync::Arc;

use orangery_apply::ItemState;
use orangery_core::{digest, error::Fault, port::BoxFuture, step::Step};
use orangery_ocm::{
    Artifact, ArtifactFuture, Artifacts, ComponentReference, ComponentSource, LayerFuture, ResourceKey, Resources,
};
use orangery_proposal::{
    Proposal,
    deployer::Reads,
    item::{NextCall, classify},
};

use super::GatheredItem;

/// What becomes of fetched content; `None` where it stays as it is.
pub type ChangeContent = Arc<dyn Fn(&[u8]) -> Option<Vec<u8>> + Send + Sync>;

impl GatheredItem {
    /// What the component would propose over content that is changed. It is not checked, and nothing may come of it.
    pub(in crate::deploy_item) async fn plan_over(&self, change: ChangeContent, state: &ItemState) -> Step<Proposal> {
        let item = self.request(NextCall::default(), state);
        let Reads { clusters, artifacts, resources } = self.reads();
        let changed = Arc::new(ChangedContent { artifacts, resources, change });
        let reads = Reads { clusters, artifacts: Arc::<ChangedContent>::clone(&changed), resources: changed };
        self.deployer.plan(&item, reads).await.map_err(|fault| classify(fault, self.deployer.identity()))
    }
}

struct ChangedContent {
    artifacts: Arc<dyn Artifacts>,
    resources: Arc<dyn Resources>,
    change: ChangeContent,
}

impl ChangedContent {
    async fn changed(&self, fetched: Arc<dyn Artifact>) -> Result<Arc<dyn Artifact>, Fault> {
        let content = fetched.content().await?;
        Ok(match (self.change)(&content) {
            Some(changed) => {
                Arc::new(ChangedArtifact { fetched, digest: digest::sha256(&changed), changed: Arc::new(changed) })
            }
            None => fetched,
        })
    }

    fn then_changed<'a>(&'a self, fetched: ArtifactFuture<'a>) -> BoxFuture<'a, Result<Arc<dyn Artifact>, Fault>> {
        Box::pin(async move { self.changed(fetched.await?).await })
    }
}

impl Artifacts for ChangedContent {
    fn component<'a>(&'a self, reference: &'a ComponentReference) -> ArtifactFuture<'a> {
        self.artifacts.component(reference)
    }

    fn oci<'a>(&'a self, reference: &'a str) -> ArtifactFuture<'a> {
        self.then_changed(self.artifacts.oci(reference))
    }

    fn url<'a>(&'a self, url: &'a str) -> ArtifactFuture<'a> {
        self.then_changed(self.artifacts.url(url))
    }

    fn helm_repository<'a>(&'a self, url: &'a str, chart: &'a str, version: &'a str) -> ArtifactFuture<'a> {
        self.then_changed(self.artifacts.helm_repository(url, chart, version))
    }
}

impl Resources for ChangedContent {
    fn resource<'a>(&'a self, key: &'a ResourceKey) -> ArtifactFuture<'a> {
        self.then_changed(self.resources.resource(key))
    }

    fn descriptors<'a>(&'a self, of: &'a ComponentSource) -> ArtifactFuture<'a> {
        self.resources.descriptors(of)
    }
}

/// Another content of what was fetched.
struct ChangedArtifact {
    fetched: Arc<dyn Artifact>,
    digest: String,
    changed: Arc<Vec<u8>>,
}

impl Artifact for ChangedArtifact {
    fn digest(&self) -> &str {
        &self.digest
    }

    fn media_type(&self) -> &str {
        self.fetched.media_type()
    }

    fn size(&self) -> u64 {
        self.changed.len().try_into().unwrap_or(u64::MAX)
    }

    fn content(&self) -> BoxFuture<'_, Result<Arc<Vec<u8>>, Fault>> {
        Box::pin(async { Ok(Arc::clone(&self.changed)) })
    }

    fn is_in_memory(&self) -> bool {
        true
    }

    fn layer<'a>(&'a self, media_type: &'a str) -> LayerFuture<'a> {
        self.fetched.layer(media_type)
    }
}
