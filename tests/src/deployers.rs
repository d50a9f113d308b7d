//! Components in the process of the test: deployers alone.

use std::sync::Arc;

use orangery_blueprint::{plugins::Plugins, template_engine::TemplateEngine};
use orangery_ocm::Artifact;
use orangery_proposal::deployer::Deployer;

/// The deployers that a function answers by the type of items, and no template engine.
pub struct Deployers<F>(pub F);

impl<F: Fn(&str) -> Option<Arc<dyn Deployer>> + Send + Sync> Plugins for Deployers<F> {
    fn deployer(&self, item_type: &str, _: &orangery_core::name::Namespace) -> Option<Arc<dyn Deployer>> {
        self.0(item_type)
    }

    fn template_engine(&self, _: &str, _: Option<&orangery_core::name::Namespace>) -> Option<Arc<dyn TemplateEngine>> {
        None
    }

    fn bundled_engine(&self, name: &str, _: Arc<dyn Artifact>) -> Arc<dyn TemplateEngine> {
        unreachable!("{name}: no blueprint is rendered here")
    }

    fn template_types(&self) -> Vec<String> {
        Vec::new()
    }
}
