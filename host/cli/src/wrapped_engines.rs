//! Components whose template engines are wrapped, so that what they render is looked at as well.

use std::sync::Arc;

use orangery_blueprint::{plugins::Plugins, template_engine::TemplateEngine};
use orangery_core::name::Namespace;
use orangery_ocm::Artifact;
use orangery_proposal::deployer::Deployer;

/// Wraps the engine of a template type; of one that a blueprint brings along the type is empty.
pub(crate) type WrapEngine = Box<dyn Fn(Arc<dyn TemplateEngine>, String) -> Arc<dyn TemplateEngine> + Send + Sync>;

/// Components, with engines that are wrapped.
pub struct WrappedEngines<'a> {
    pub(crate) plugins: &'a dyn Plugins,
    pub(crate) wrap: WrapEngine,
}

impl Plugins for WrappedEngines<'_> {
    fn deployer(&self, item_type: &str, namespace: &Namespace) -> Option<Arc<dyn Deployer>> {
        self.plugins.deployer(item_type, namespace)
    }

    fn template_engine(&self, template_type: &str, namespace: Option<&Namespace>) -> Option<Arc<dyn TemplateEngine>> {
        let engine = self.plugins.template_engine(template_type, namespace)?;
        Some((self.wrap)(engine, template_type.to_owned()))
    }

    fn bundled_engine(&self, name: &str, component: Arc<dyn Artifact>) -> Arc<dyn TemplateEngine> {
        // Whatever it is called, its templates are of a type of its own.
        (self.wrap)(self.plugins.bundled_engine(name, component), String::new())
    }

    fn bundled_memory_mib(&self) -> u64 {
        self.plugins.bundled_memory_mib()
    }

    fn template_types(&self) -> Vec<String> {
        self.plugins.template_types()
    }

    fn gate_types(&self) -> Vec<String> {
        self.plugins.gate_types()
    }
}
