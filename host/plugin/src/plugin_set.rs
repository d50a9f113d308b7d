//! All registered components, by the types that they serve.

use std::{collections::BTreeMap, sync::Arc};

use orangery_blueprint::{
    BUNDLED_ENGINE,
    plugins::{CallQuotas, GateEngine, Plugins},
    template_engine::TemplateEngine,
};
use orangery_proposal::deployer::Deployer;

use crate::{
    bundled::BundledTerms,
    plugin::Plugin,
    registration::Registered,
    sandbox::{Occupancy, Sandbox},
};

/// The components of a host.
pub struct PluginSet {
    plugins: Vec<Arc<Plugin>>,
    deployers: BTreeMap<String, Arc<Plugin>>,
    renderers: BTreeMap<String, Arc<Plugin>>,
    gate_engines: BTreeMap<String, Arc<Plugin>>,
    own: BundledTerms,
    sandbox: Arc<Sandbox>,
}

/// Why registrations do not go together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PluginSetError {
    /// Two registrations have one name.
    #[error("the plugin {name} is registered twice, by {first} and by {second}; give one of them another name")]
    Name {
        /// The name.
        name: String,
        /// Where the first is registered.
        first: String,
        /// Where the second is registered.
        second: String,
    },
    /// Two registrations claim one type.
    #[error("the type {claimed} is claimed by two plugins, {first} and {second}; remove it from one of them")]
    Type {
        /// The deploy item type, template type or gate type.
        claimed: String,
        /// The name of the first.
        first: String,
        /// The name of the second.
        second: String,
    },
}

impl PluginSet {
    /// Takes registrations over. Nothing is compiled yet; see [`PluginSet::prepare`].
    ///
    /// # Errors
    ///
    /// Two registrations with one name, or that claim one type.
    pub fn load(registered: Vec<Registered>, sandbox: &Arc<Sandbox>) -> Result<Self, PluginSetError> {
        let mut set = Self {
            plugins: Vec::new(),
            deployers: BTreeMap::new(),
            renderers: BTreeMap::new(),
            gate_engines: BTreeMap::new(),
            own: BundledTerms::default(),
            sandbox: sandbox.clone(),
        };
        let mut origins: BTreeMap<String, String> = BTreeMap::new();
        for one in registered {
            let name = one.registration.metadata.name.clone();
            let origin = one.origin.clone();
            if let Some(first) = origins.insert(name.clone(), origin.clone()) {
                return Err(PluginSetError::Name { name, first, second: origin });
            }
            if one.registration.is_for_own() {
                if let Some(first) = set.own.registration {
                    return Err(PluginSetError::Type { claimed: BUNDLED_ENGINE.to_owned(), first, second: name });
                }
                set.own = BundledTerms::of(one.registration);
                continue;
            }
            let spec = one.registration.spec.clone();
            let plugin = Arc::new(Plugin::new(one, sandbox.clone()));
            for item_type in spec.deployer.map(|claim| claim.item_types).unwrap_or_default() {
                claim(&mut set.deployers, item_type, &plugin)?;
            }
            for template_type in spec.template.map(|claim| claim.types).unwrap_or_default() {
                claim(&mut set.renderers, template_type, &plugin)?;
            }
            for gate_type in spec.gate.map(|claim| claim.types).unwrap_or_default() {
                claim(&mut set.gate_engines, gate_type, &plugin)?;
            }
            set.plugins.push(plugin);
        }
        Ok(set)
    }

    /// The components, in the order registered.
    pub fn plugins(&self) -> &[Arc<Plugin>] {
        &self.plugins
    }

    /// Those that plan deploy items, in the order registered.
    pub fn deployers(&self) -> impl Iterator<Item = &Arc<Plugin>> {
        let plans = |plugin: &Arc<Plugin>| self.deployers.values().any(|deployer| Arc::ptr_eq(deployer, plugin));
        self.plugins.iter().filter(move |plugin| plans(plugin))
    }

    /// What calls of components hold at the moment.
    pub fn occupancy(&self) -> Occupancy {
        self.sandbox.occupancy()
    }

    /// Compiles and loads all of them, one after the other; a call meanwhile waits for its own. To be spawned at the start,
    /// so that the first item does not pay for it. What is unusable is logged once and stalls the items of its types. Large
    /// components wait for their first use: most hosts use few of them.
    pub async fn prepare(self: Arc<Self>) {
        for plugin in self.plugins.iter().filter(|plugin| !plugin.is_large()) {
            if let Err(error) = plugin.component().await {
                tracing::error!(plugin = %Deployer::identity(plugin.as_ref()), %error, "a component is unusable");
            }
        }
    }
}

fn claim(claims: &mut BTreeMap<String, Arc<Plugin>>, claimed: String, by: &Arc<Plugin>) -> Result<(), PluginSetError> {
    let name = |plugin: &Plugin| Deployer::identity(plugin).name.clone();
    match claims.insert(claimed.clone(), by.clone()) {
        Some(first) => Err(PluginSetError::Type { claimed, first: name(&first), second: name(by) }),
        None => Ok(()),
    }
}

impl Plugins for PluginSet {
    fn deployer(&self, item_type: &str) -> Option<Arc<dyn Deployer>> {
        self.deployers.get(item_type).map(|plugin| plugin.clone() as Arc<dyn Deployer>)
    }

    fn template_engine(&self, template_type: &str) -> Option<Arc<dyn TemplateEngine>> {
        self.renderers.get(template_type).map(|plugin| plugin.clone() as Arc<dyn TemplateEngine>)
    }

    fn bundled_engine(&self, name: &str, bytes: Vec<u8>) -> Arc<dyn TemplateEngine> {
        Arc::new(Plugin::of_blueprint(name, bytes, &self.own, self.sandbox.clone()))
    }

    fn bundled_memory_mib(&self) -> u64 {
        self.own.budget.memory_mib
    }

    fn limit_calls(&self, quotas: Arc<dyn CallQuotas>) {
        self.sandbox.limit_calls(quotas);
    }

    fn template_types(&self) -> Vec<String> {
        let mut types: Vec<String> = self.renderers.keys().cloned().chain([BUNDLED_ENGINE.to_owned()]).collect();
        types.sort();
        types
    }

    fn gate_engine(&self, gate_type: &str) -> Option<Arc<dyn GateEngine>> {
        self.gate_engines.get(gate_type).map(|plugin| plugin.clone() as Arc<dyn GateEngine>)
    }

    fn gate_types(&self) -> Vec<String> {
        self.gate_engines.keys().cloned().collect()
    }
}
