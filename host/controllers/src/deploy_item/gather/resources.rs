//! Resources of component versions for deployers, by their key: looked for in the component version of the installation
//! that the item belongs to, which is verified as for its blueprint, and else in the repositories of its Context.

use std::sync::Arc;

use orangery_api::{deploy_item::DeployItem, label, marks::Marks};
use orangery_core::error::{Code, Fault};
use orangery_ocm::{
    Artifact, ArtifactFuture, ComponentSource, ComponentVersion, Descriptor, DescriptorSchema, Document, ResourceKey,
    Resources, VersionReference, list,
};
use orangery_policy::PolicySubject;
use orangery_reconcile::Key;

use crate::{artifacts::fault, component, controller_context::ControllerContext};

/// The resources that one item may name.
pub(super) struct ItemResources {
    host: Arc<ControllerContext>,
    item: Arc<DeployItem>,
    context: Key,
}

impl ItemResources {
    pub(super) fn new(host: &Arc<ControllerContext>, item: &Arc<DeployItem>, context: Key) -> Self {
        Self { host: Arc::clone(host), item: Arc::clone(item), context }
    }

    async fn find(&self, key: &ResourceKey) -> Result<Arc<dyn Artifact>, Fault> {
        if let Some(version) = self.installed().await?
            && let Some(found) = version.keyed(key).await?
        {
            return Ok(found);
        }
        let reference = VersionReference {
            repository_context: None,
            name: key.component.name.clone(),
            version: key.component.version.clone(),
        };
        let source = ComponentSource::Reference(reference);
        let subject = PolicySubject::Item(&self.item.spec.type_);
        let request =
            component::request(&self.host, &self.context, source, subject).await.map_err(|halt| fault(&halt))?;
        let version = self.host.components.open(&request).await?;
        let missing = || Fault::invalid(Code::ConfigurationProblem, format!("{key} was not found"));
        version.keyed(key).await?.ok_or_else(missing)
    }
}

impl ItemResources {
    /// Those of the component version of the installation where that is meant, which is verified as for its blueprint.
    async fn describe(&self, of: &ComponentSource) -> Result<Arc<dyn Artifact>, Fault> {
        if let Some(version) = self.installed().await?
            && is_meant(of, version.descriptor())
        {
            return Ok(described(version.as_ref()));
        }
        let subject = PolicySubject::Item(&self.item.spec.type_);
        let request =
            component::request(&self.host, &self.context, of.clone(), subject).await.map_err(|halt| fault(&halt))?;
        Ok(described(self.host.components.open(&request).await?.as_ref()))
    }

    /// The component version of the installation that the item belongs to. An Execution has the name of its Installation.
    async fn installed(&self) -> Result<Option<Arc<dyn ComponentVersion>>, Fault> {
        let name = self.item.label(label::MANAGED_BY).unwrap_or("").to_owned();
        let key = Key { name: name.into(), ..Key::of(self.item.as_ref()) };
        let Some(installation) = self.host.stores.installations.get(&key) else { return Ok(None) };
        let opened = component::open(&self.host, &installation).await.map_err(|halt| fault(&halt))?;
        Ok(opened.map(|opened| opened.opened.version))
    }
}

/// Whether this is the component version that is meant. What is written inline may say anything under a name.
fn is_meant(source: &ComponentSource, descriptor: &Descriptor) -> bool {
    match source {
        ComponentSource::Reference(reference) => {
            (&reference.name, &reference.version) == (&descriptor.name, &descriptor.version)
        }
        ComponentSource::Inline(written) => Descriptor::parse(written).is_ok_and(|written| written == *descriptor),
    }
}

fn described(version: &dyn ComponentVersion) -> Arc<dyn Artifact> {
    let descriptors = version.descriptors().iter().map(AsRef::as_ref);
    Arc::new(Document::json(&list(descriptors, DescriptorSchema::V2)))
}

impl Resources for ItemResources {
    fn descriptors<'a>(&'a self, of: &'a ComponentSource) -> ArtifactFuture<'a> {
        Box::pin(self.describe(of))
    }

    fn resource<'a>(&'a self, key: &'a ResourceKey) -> ArtifactFuture<'a> {
        Box::pin(self.find(key))
    }
}
