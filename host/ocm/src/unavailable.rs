//! Ports behind which there is nothing.

use std::sync::Arc;

use serde_json::Value;

use super::{
    ArtifactFuture, Artifacts, ComponentReference, ComponentRequest, ComponentSource, ComponentVersion,
    ComponentVersions, Components, Credentials, Identity, ResourceKey, Resources, SignaturePolicy,
};
use orangery_core::{
    error::{Code, Fault},
    port::BoxFuture,
};

/// No component version, no registry and no credentials.
pub struct Unavailable;

impl Unavailable {
    fn component<T>() -> Result<T, Fault> {
        Err(Fault::invalid(
            Code::ConfigurationProblem,
            "the blueprint belongs to no component version; give the installation a componentDescriptor",
        ))
    }

    fn content<'a>(what: String) -> ArtifactFuture<'a> {
        let message = format!("{what} cannot be read: there is nothing here that fetches it");
        Box::pin(async move { Err(Fault::invalid(Code::ConfigurationProblem, message)) })
    }
}

impl Components for Unavailable {
    fn component<'a>(&'a self, _: Option<&'a Value>, _: &'a Identity) -> BoxFuture<'a, Result<Value, Fault>> {
        Box::pin(async { Self::component() })
    }

    fn resources<'a>(&'a self, _: Option<&'a Value>, _: &'a Identity) -> BoxFuture<'a, Result<Vec<Value>, Fault>> {
        Box::pin(async { Self::component() })
    }

    fn resource_key<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<String, Fault>> {
        Box::pin(async { Self::component() })
    }

    fn resource_content<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Vec<u8>, Fault>> {
        Box::pin(async { Self::component() })
    }
}

impl Artifacts for Unavailable {
    fn component<'a>(&'a self, reference: &'a ComponentReference) -> ArtifactFuture<'a> {
        Box::pin(async move {
            Err(Fault::invalid(
                Code::ConfigurationProblem,
                format!(
                    "{reference} cannot be read: there is no registry here; put the component into the blueprint and name it with `file`"
                ),
            ))
        })
    }

    fn oci<'a>(&'a self, reference: &'a str) -> ArtifactFuture<'a> {
        Self::content(format!("the artifact {reference}"))
    }

    fn url<'a>(&'a self, _: &'a str) -> ArtifactFuture<'a> {
        Self::content("a file of a web server".to_owned())
    }

    fn helm_repository<'a>(&'a self, _: &'a str, chart: &'a str, version: &'a str) -> ArtifactFuture<'a> {
        Self::content(format!("the chart {chart} {version}"))
    }
}

impl ComponentVersions for Unavailable {
    fn open<'a>(&'a self, _: &'a ComponentRequest) -> BoxFuture<'a, Result<Arc<dyn ComponentVersion>, Fault>> {
        let message = "this host reaches no repositories of component versions";
        Box::pin(async move { Err(Fault::invalid(Code::ConfigurationProblem, message)) })
    }

    fn artifacts(&self, _: &Credentials) -> Result<Arc<dyn Artifacts>, Fault> {
        Ok(Arc::new(Unavailable))
    }

    fn signature_policy(&self) -> SignaturePolicy {
        SignaturePolicy::default()
    }
}

impl Resources for Unavailable {
    fn resource<'a>(&'a self, key: &'a ResourceKey) -> ArtifactFuture<'a> {
        Self::content(key.to_string())
    }

    fn descriptors<'a>(&'a self, of: &'a ComponentSource) -> ArtifactFuture<'a> {
        Self::content(format!("the component version {}", of.name()))
    }
}
