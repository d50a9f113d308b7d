//! Content of registries and web servers, for executions of type `Wasm` and for deployers: read with the credentials of a
//! Context, which are only looked up when something is asked for.

use std::sync::Arc;

use orangery_core::{
    error::{Code, Fault},
    step::Halt,
};
use orangery_ocm::{ArtifactFuture, Artifacts, ComponentReference};
use orangery_policy::PolicySubject;
use orangery_reconcile::Key;
use tokio::sync::OnceCell;

use crate::{component, controller_context::ControllerContext};

/// What one object may read in one job.
pub(crate) struct ContextArtifacts {
    host: Arc<ControllerContext>,
    context: Key,
    /// The type of the item that they are for; `None` for an Installation.
    item_type: Option<String>,
    opened: OnceCell<Arc<dyn Artifacts>>,
}

impl ContextArtifacts {
    /// For an Installation.
    pub(crate) fn new(host: &Arc<ControllerContext>, context: Key) -> Self {
        Self { host: Arc::clone(host), context, item_type: None, opened: OnceCell::new() }
    }

    /// For an item of this type.
    pub(crate) fn of_item(host: &Arc<ControllerContext>, context: Key, item_type: &str) -> Self {
        Self { item_type: Some(item_type.to_owned()), ..Self::new(host, context) }
    }

    async fn opened(&self) -> Result<&Arc<dyn Artifacts>, Fault> {
        self.opened.get_or_try_init(|| self.open()).await
    }

    async fn open(&self) -> Result<Arc<dyn Artifacts>, Fault> {
        let subject = self.item_type.as_deref().map_or(PolicySubject::Installation, PolicySubject::Item);
        let credentials =
            component::credentials(&self.host, &self.context, subject).await.map_err(|halt| fault(&halt))?;
        self.host.components.artifacts(&credentials)
    }
}

impl Artifacts for ContextArtifacts {
    fn component<'a>(&'a self, reference: &'a ComponentReference) -> ArtifactFuture<'a> {
        Box::pin(async move { self.opened().await?.component(reference).await })
    }

    fn oci<'a>(&'a self, reference: &'a str) -> ArtifactFuture<'a> {
        Box::pin(async move { self.opened().await?.oci(reference).await })
    }

    fn url<'a>(&'a self, url: &'a str) -> ArtifactFuture<'a> {
        Box::pin(async move { self.opened().await?.url(url).await })
    }

    fn helm_repository<'a>(&'a self, url: &'a str, chart: &'a str, version: &'a str) -> ArtifactFuture<'a> {
        Box::pin(async move { self.opened().await?.helm_repository(url, chart, version).await })
    }
}

/// What ends a walk, told to who asked on behalf of a component.
pub(crate) fn fault(halt: &Halt) -> Fault {
    let message = match halt.failure() {
        Some(failure) => failure.message.clone(),
        None => "the Context cannot be read yet".to_owned(),
    };
    match halt {
        Halt::Stall(_) => Fault::invalid(Code::ConfigurationProblem, message),
        Halt::Retry(_) | Halt::Wait(_) => Fault::later(Code::ConfigurationProblem, message),
    }
}
