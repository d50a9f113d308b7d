//! Component versions and blueprints offline: what a Context and the objects that it names are for the controller, the
//! manifests are here.

use std::sync::Arc;

use orangery_api::{
    context::Context,
    convert::{ContextInputs, ContextNames},
    installation::{ComponentDescriptorSource, InstallationSpec},
};
use orangery_blueprint::template_engine::JobRandomness;
use orangery_core::{error::Fault, name::Namespace};
use orangery_ocm::{
    ArtifactFuture, Artifacts, ComponentReference, ComponentSource, ComponentVersions, Files, Unavailable,
};
use orangery_render::{BlueprintSource, LoadError, LoadedBlueprint, OpenedComponent, TemplateAccess};
use serde_json::Value;

use super::{NamespaceObjects, OfflineFault};

/// Where component versions come from.
#[derive(Clone)]
pub struct OfflineVersions {
    /// What opens them.
    pub repositories: Arc<dyn ComponentVersions>,
    /// The repository that counts where neither an installation nor its Context names one.
    pub repository_context: Option<Value>,
}

/// What an installation says of its blueprint.
pub(super) struct BlueprintRequest<'a> {
    /// What it is.
    pub(super) spec: &'a InstallationSpec,
    /// Of a sub-installation: `spec.componentDescriptor` of the root.
    pub(super) above: Option<&'a ComponentDescriptorSource>,
    /// A blueprint that is here whatever the spec says.
    pub(super) files: Option<Arc<dyn Files>>,
}

impl OfflineVersions {
    /// The blueprint of an installation.
    pub(super) async fn load(
        &self,
        world: &NamespaceObjects,
        namespace: &Namespace,
        request: BlueprintRequest<'_>,
        rng: JobRandomness,
    ) -> Result<LoadedBlueprint, OfflineFault> {
        let spec = request.spec;
        let context = self.context(world, &spec.context)?;
        let opened = self.open(world, namespace, &context, &request).await?;
        let files = match request.files {
            Some(files) => files,
            None => {
                let source = BlueprintSource {
                    inline: spec.blueprint.inline.as_ref().map(|inline| &inline.filesystem),
                    resource: spec.blueprint.reference.as_ref().map(|reference| reference.resource_name.as_str()),
                };
                orangery_render::files(source, opened.as_ref().map(|opened| opened.version.as_ref())).await?
            }
        };
        let artifacts = self.artifacts(world, namespace, &context);
        let namespace = namespace.clone();
        let reach = TemplateAccess { namespace, artifacts, kubeconfigs: Arc::new(Unavailable), rng };
        let blueprint = serde_json::to_value(&spec.blueprint).unwrap_or_default();
        Ok(LoadedBlueprint::new(files, blueprint, opened, reach)?)
    }

    fn context(&self, world: &NamespaceObjects, name: &str) -> Result<Context, OfflineFault> {
        let mut context = world.context(name).ok_or_else(|| OfflineFault::NoContext(name.to_owned()))?;
        if context.spec.repository_context.is_none() {
            context.spec.repository_context.clone_from(&self.repository_context);
        }
        Ok(context)
    }

    async fn open(
        &self,
        world: &NamespaceObjects,
        namespace: &Namespace,
        context: &Context,
        request: &BlueprintRequest<'_>,
    ) -> Result<Option<OpenedComponent>, OfflineFault> {
        let spec = request.spec;
        let policy = self.repositories.signature_policy();
        let verifies = policy.verifies(spec.component_descriptor.is_some(), spec.verification.is_some())?;
        let Some(source) = &spec.component_descriptor else { return Ok(None) };
        let source = ComponentSource::try_from(source)?;
        let above = request.above.map(ComponentSource::try_from).transpose()?;
        let verification = spec.verification.as_ref().filter(|_| verifies);
        let objects = world.context_objects(&ContextNames::of(context, namespace, verification));
        let inputs = ContextInputs { context, namespace, objects: &objects };
        let request = inputs.request(source, verification, above)?;
        let version = self.repositories.open(&request).await.map_err(LoadError::Component)?;
        let source = ComponentDescriptorSource::from(&request.followed(version.replaced()));
        let source = serde_json::to_value(source).unwrap_or_default();
        Ok(Some(OpenedComponent { version, source, overwritten: request.overwritten() }))
    }

    /// Components in registries; what is wrong with the Context is told to who asks for one.
    fn artifacts(&self, world: &NamespaceObjects, namespace: &Namespace, context: &Context) -> Arc<dyn Artifacts> {
        let objects = world.context_objects(&ContextNames::of_credentials(context, namespace));
        let inputs = ContextInputs { context, namespace, objects: &objects };
        let credentials = inputs.credentials();
        let opened = match credentials {
            Ok(credentials) => self.repositories.artifacts(&credentials),
            Err(error) => Err(Fault::invalid(
                orangery_core::error::Code::ConfigurationProblem,
                OfflineFault::from(error).to_string(),
            )),
        };
        opened.unwrap_or_else(|fault| Arc::new(Refused(fault)))
    }
}

/// Components that cannot be reached, and why.
struct Refused(Fault);

impl Artifacts for Refused {
    fn component<'a>(&'a self, _: &'a ComponentReference) -> ArtifactFuture<'a> {
        Box::pin(async { Err(self.0.clone()) })
    }

    fn oci<'a>(&'a self, _: &'a str) -> ArtifactFuture<'a> {
        Box::pin(async { Err(self.0.clone()) })
    }

    fn url<'a>(&'a self, _: &'a str) -> ArtifactFuture<'a> {
        Box::pin(async { Err(self.0.clone()) })
    }

    fn helm_repository<'a>(&'a self, _: &'a str, _: &'a str, _: &'a str) -> ArtifactFuture<'a> {
        Box::pin(async { Err(self.0.clone()) })
    }
}
