//! Resources of component versions for deployers, by their key: looked for in the component version of the installation
//! that the item belongs to, which is verified as for its blueprint, and else in the repositories of its Context.

use std::sync::Arc;

use orangery_api::{deploy_item::DeployItem, label, marks::Marks};
use orangery_core::error::{Code, Fault};
use orangery_ocm::{Artifact, ArtifactFuture, ComponentSource, ResourceKey, Resources, VersionReference};
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
        // An Execution has the name of its Installation.
        let name = self.item.label(label::MANAGED_BY).unwrap_or("").to_owned();
        let of = Key { name: name.into(), ..Key::of(self.item.as_ref()) };
        if let Some(installation) = self.host.stores.installations.get(&of) {
            let opened = component::open(&self.host, &installation).await.map_err(|halt| fault(&halt))?;
            if let Some(opened) = opened
                && let Some(found) = opened.opened.version.keyed(key).await?
            {
                return Ok(found);
            }
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

impl Resources for ItemResources {
    fn resource<'a>(&'a self, key: &'a ResourceKey) -> ArtifactFuture<'a> {
        Box::pin(self.find(key))
    }
}
