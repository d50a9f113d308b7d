//! Content that is changed on its way to a component.

use std::sync::Arc;

use orangery_core::{digest, error::Fault, port::BoxFuture};

use crate::{
    Artifact, ArtifactFuture, Artifacts, ComponentReference, ComponentSource, LayerFuture, ResourceKey, Resources,
};

/// What becomes of fetched content; `None` where it stays as it is.
pub type ChangeContent = Arc<dyn Fn(&[u8]) -> Option<Vec<u8>> + Send + Sync>;

/// Content of registries and web servers, of which some is changed on its way: for calls of which nothing comes but what they say.
pub struct ChangedContent {
    /// Where it comes from.
    pub artifacts: Arc<dyn Artifacts>,
    /// Where resources come from.
    pub resources: Arc<dyn Resources>,
    /// What becomes of it.
    pub change: ChangeContent,
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

#[cfg(test)]
mod tests {
    use std::{
        pin::pin,
        task::{Context, Poll, Waker},
    };

    use serde_json::json;

    use super::*;
    use crate::{Document, Unavailable};

    /// What waits for nothing.
    fn now<T>(future: impl Future<Output = T>) -> T {
        match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(value) => value,
            Poll::Pending => panic!("it waits"),
        }
    }

    /// Answers everything by a document, whatever is asked for.
    struct Fetched;

    impl Artifacts for Fetched {
        fn component<'a>(&'a self, _: &'a ComponentReference) -> ArtifactFuture<'a> {
            Box::pin(async { Ok(Arc::new(Document::json(&json!("component"))) as Arc<dyn Artifact>) })
        }

        fn oci<'a>(&'a self, reference: &'a str) -> ArtifactFuture<'a> {
            Box::pin(async move { Ok(Arc::new(Document::json(&json!(reference))) as Arc<dyn Artifact>) })
        }

        fn url<'a>(&'a self, url: &'a str) -> ArtifactFuture<'a> {
            self.oci(url)
        }

        fn helm_repository<'a>(&'a self, _: &'a str, chart: &'a str, _: &'a str) -> ArtifactFuture<'a> {
            self.oci(chart)
        }
    }

    #[test]
    fn c_247_what_is_fetched_is_changed_on_its_way_and_has_its_own_digest() {
        let change: ChangeContent = Arc::new(|content| (content == b"\"chart\"").then(|| b"marked".to_vec()));
        let content = ChangedContent { artifacts: Arc::new(Fetched), resources: Arc::new(Unavailable), change };
        for fetched in [content.oci("chart"), content.url("chart"), content.helm_repository("u", "chart", "1")] {
            let artifact = now(fetched).unwrap();
            assert_eq!(*now(artifact.content()).unwrap(), b"marked");
            assert_eq!((artifact.digest(), artifact.size()), (digest::sha256(b"marked").as_str(), 6));
            assert_eq!((artifact.media_type(), artifact.is_in_memory()), ("application/json", true));
            assert!(now(artifact.layer("x")).unwrap().is_none());
        }
        assert_eq!(*now(now(content.oci("other")).unwrap().content()).unwrap(), b"\"other\"", "left as it is");
    }
}
