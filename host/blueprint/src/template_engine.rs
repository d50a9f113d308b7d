//! Renderers: components that render template executions, and what the templates of one job may reach. Implemented by
//! `plugin`.

use std::sync::Arc;

use serde_json::Value;

use crate::rendering::{Findings, RenderFailure, RenderRequest, Rendered};
use orangery_core::{error::Fault, name::Namespace, port::BoxFuture};
use orangery_ocm::{Artifacts, Components, Files, Unavailable};
use orangery_proposal::deployer::PluginIdentity;

/// Credentials for the clusters behind targets (`wit/template/0.1.0/kubeconfigs.wit`). Grants are checked by the caller.
pub trait Kubeconfigs: Send + Sync {
    /// Issues a credential of a kind. The answer is a secret.
    fn issue_credential<'a>(
        &'a self,
        credential_kind: &'a str,
        arguments: &'a Value,
    ) -> BoxFuture<'a, Result<Value, Fault>>;
}

/// The time and the randomness of one job: rendering it again, also after a restart, gives the same.
#[derive(Clone)]
pub struct JobRandomness {
    /// When the job began.
    pub now: jiff::Timestamp,
    /// What all randomness of the job is derived from. A secret: who knows it knows the passwords that templates make.
    pub seed: [u8; 32],
}

/// All that templates of one job may reach.
#[derive(Clone)]
pub struct TemplateContext {
    /// For which namespace is rendered; `None` outside of a cluster. Namespaces take turns (C-43).
    pub namespace: Option<Namespace>,
    /// The blueprint's files.
    pub files: Arc<dyn Files>,
    /// The component versions behind the blueprint.
    pub components: Arc<dyn Components>,
    /// Components in registries.
    pub artifacts: Arc<dyn Artifacts>,
    /// Credentials.
    pub kubeconfigs: Arc<dyn Kubeconfigs>,
    /// Time and randomness.
    pub rng: JobRandomness,
}

impl TemplateContext {
    /// Files and nothing else: every other call answers that there is nothing behind it.
    pub fn of_files(files: Arc<dyn Files>) -> Self {
        Self {
            namespace: None,
            files,
            components: Arc::new(Unavailable),
            artifacts: Arc::new(Unavailable),
            kubeconfigs: Arc::new(Unavailable),
            rng: JobRandomness { now: jiff::Timestamp::UNIX_EPOCH, seed: [0; 32] },
        }
    }
}

impl Kubeconfigs for Unavailable {
    fn issue_credential<'a>(&'a self, credential_kind: &'a str, _: &'a Value) -> BoxFuture<'a, Result<Value, Fault>> {
        Box::pin(
            async move { Err(Fault::denied(format!("no credentials of kind {credential_kind:?} can be had here"))) },
        )
    }
}

/// A component that renders template executions.
pub trait TemplateEngine: Send + Sync {
    /// Its identity.
    fn identity(&self) -> &PluginIdentity;
    /// The memory that one call may take, in MiB.
    fn memory_mib(&self) -> u64 {
        0
    }
    /// Renders one execution.
    fn render<'a>(
        &'a self,
        request: &'a RenderRequest,
        context: &'a TemplateContext,
    ) -> BoxFuture<'a, Result<Rendered, RenderFailure>>;
    /// Looks at one execution without rendering it; `None` where the component cannot tell. The error is
    /// the host's: the component could not be asked.
    fn check<'a>(
        &'a self,
        _: &'a RenderRequest,
        _: &'a TemplateContext,
    ) -> BoxFuture<'a, Result<Option<Findings>, RenderFailure>> {
        Box::pin(async { Ok(None) })
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use super::*;

    struct NoFiles;

    impl Files for NoFiles {
        fn read(&self, path: &str) -> Result<Vec<u8>, String> {
            Err(format!("{path} does not exist"))
        }

        fn list(&self, _: &str) -> Result<Vec<String>, String> {
            Ok(Vec::new())
        }
    }

    /// The answer of a call that waits for nothing.
    fn answer<T>(mut call: BoxFuture<'_, Result<T, Fault>>) -> Result<T, Fault> {
        match call.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(answer) => answer,
            Poll::Pending => panic!("the call waits"),
        }
    }

    #[test]
    fn a_blueprint_of_its_own_reaches_no_component_version_and_no_credential() {
        let around = TemplateContext::of_files(Arc::new(NoFiles));
        let none = "the blueprint belongs to no component version; give the installation a componentDescriptor";
        let message = [
            answer(around.components.component(None, &[])).unwrap_err().to_string(),
            answer(around.components.resources(None, &[])).unwrap_err().to_string(),
            answer(around.components.resource_key("r")).unwrap_err().to_string(),
            answer(around.components.resource_content("r")).unwrap_err().to_string(),
        ];
        assert_eq!(message, [none; 4]);
        assert_eq!(
            answer(around.kubeconfigs.issue_credential("serviceAccount", &Value::Null)).unwrap_err(),
            Fault::denied("no credentials of kind \"serviceAccount\" can be had here")
        );
        assert_eq!(around.files.read("a"), Err("a does not exist".to_owned()));
        assert_eq!((around.rng.now, around.rng.seed), (jiff::Timestamp::UNIX_EPOCH, [0; 32]));
    }
}
