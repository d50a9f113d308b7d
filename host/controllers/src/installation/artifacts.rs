//! Components in registries, for executions of type `Wasm`: read with the credentials of the Installation's Context,
//! which are only looked up when the first one is asked for.

use std::sync::Arc;

use orangery_core::{
    blueprint::ComponentReference,
    error::{Code, Fault},
    port::{Artifacts, BoxFuture},
    step::Halt,
};
use orangery_reconcile::Key;
use tokio::sync::OnceCell;

use super::component;
use crate::host::Host;

/// The components that one Installation may read in one job.
pub(super) struct ContextArtifacts {
    host: Arc<Host>,
    context: Key,
    opened: OnceCell<Arc<dyn Artifacts>>,
}

impl ContextArtifacts {
    pub(super) fn new(host: &Arc<Host>, context: Key) -> Self {
        Self { host: Arc::clone(host), context, opened: OnceCell::new() }
    }

    async fn open(&self) -> Result<Arc<dyn Artifacts>, Fault> {
        let credentials = component::credentials(&self.host, &self.context).await.map_err(|halt| fault(&halt))?;
        self.host.components.artifacts(&credentials)
    }
}

impl Artifacts for ContextArtifacts {
    fn component<'a>(&'a self, reference: &'a ComponentReference) -> BoxFuture<'a, Result<Vec<u8>, Fault>> {
        Box::pin(async move { self.opened.get_or_try_init(|| self.open()).await?.component(reference).await })
    }
}

/// What ends a walk, told to who asked on behalf of a template.
fn fault(halt: &Halt) -> Fault {
    let message = match halt.failure() {
        Some(failure) => failure.message.clone(),
        None => "the Context of the installation cannot be read yet".to_owned(),
    };
    match halt {
        Halt::Stall(_) => Fault::invalid(Code::ConfigurationProblem, message),
        Halt::Retry(_) | Halt::Wait(_) => Fault::later(Code::ConfigurationProblem, message),
    }
}
