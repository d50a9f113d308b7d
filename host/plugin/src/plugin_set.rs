//! All registered components, by the types that they serve.

use std::{
    collections::BTreeMap,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard},
};

use orangery_blueprint::{
    BUNDLED_ENGINE,
    plugins::{CallQuotas, GateEngine, PluginInstaller, Plugins},
    template_engine::TemplateEngine,
};
use orangery_core::name::Namespace;
use orangery_ocm::Artifact;
use orangery_proposal::deployer::Deployer;

use crate::{
    bundled::BundledTerms,
    claim::ClaimKind,
    installed::{InstalledTable, RegisteredPlugin, TypeClaims},
    plugin::Plugin,
    registration::Registered,
    sandbox::{Sandbox, SandboxFigures},
};

/// The components of a host.
pub struct PluginSet {
    plugins: Vec<Arc<Plugin>>,
    registered: TypeClaims,
    /// Protects what is installed while the host runs. Held for one look-up or one change, never across an await.
    pub(crate) installed: RwLock<InstalledTable>,
    own: BundledTerms,
    pub(crate) sandbox: Arc<Sandbox>,
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
            registered: TypeClaims::default(),
            installed: RwLock::default(),
            own: BundledTerms::default(),
            sandbox: sandbox.clone(),
        };
        let mut origins: BTreeMap<String, String> = BTreeMap::new();
        let mut registrations = BTreeMap::new();
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
            let (claims, registration) = (one.registration.claims(), one.registration.clone());
            let plugin = Arc::new(Plugin::new(one, sandbox.clone()));
            for (kind, claimed) in claims {
                claim(set.registered.of_mut(kind), claimed, &plugin)?;
            }
            registrations.insert(name, RegisteredPlugin { registration, plugin: Arc::clone(&plugin) });
            set.plugins.push(plugin);
        }
        let installed = InstalledTable::beside(set.registered.clone(), registrations);
        Ok(Self { installed: RwLock::new(installed), ..set })
    }

    /// The components that were registered at the start, in that order.
    pub fn plugins(&self) -> &[Arc<Plugin>] {
        &self.plugins
    }

    /// Those that plan deploy items, in the order registered.
    pub fn deployers(&self) -> impl Iterator<Item = &Arc<Plugin>> {
        let deployers = self.registered.of(ClaimKind::Deployer);
        let plans = move |plugin: &Arc<Plugin>| deployers.values().any(|deployer| Arc::ptr_eq(deployer, plugin));
        self.plugins.iter().filter(move |plugin| plans(plugin))
    }

    pub(crate) fn table(&self) -> RwLockReadGuard<'_, InstalledTable> {
        self.installed.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was counted of calls of components, and what they hold at the moment.
    pub fn figures(&self) -> SandboxFigures {
        self.sandbox.figures()
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

pub(crate) fn claim(
    claims: &mut BTreeMap<String, Arc<Plugin>>,
    claimed: String,
    by: &Arc<Plugin>,
) -> Result<(), PluginSetError> {
    let name = |plugin: &Plugin| Deployer::identity(plugin).name.clone();
    match claims.insert(claimed.clone(), by.clone()) {
        Some(first) => Err(PluginSetError::Type { claimed, first: name(&first), second: name(by) }),
        None => Ok(()),
    }
}

impl Plugins for PluginSet {
    fn deployer(&self, item_type: &str, namespace: &Namespace) -> Option<Arc<dyn Deployer>> {
        let found = self.table().find(ClaimKind::Deployer, item_type, Some(namespace));
        found.map(|plugin| plugin as Arc<dyn Deployer>)
    }

    fn template_engine(&self, template_type: &str, namespace: Option<&Namespace>) -> Option<Arc<dyn TemplateEngine>> {
        let found = self.table().find(ClaimKind::Template, template_type, namespace);
        found.map(|plugin| plugin as Arc<dyn TemplateEngine>)
    }

    fn bundled_engine(&self, name: &str, component: Arc<dyn Artifact>) -> Arc<dyn TemplateEngine> {
        Arc::new(Plugin::of_blueprint(name, component, &self.own, self.sandbox.clone()))
    }

    fn bundled_memory_mib(&self) -> u64 {
        self.own.budget.memory_mib
    }

    fn limit_calls(&self, quotas: Arc<dyn CallQuotas>) {
        self.sandbox.limit_calls(quotas);
    }

    fn template_types(&self) -> Vec<String> {
        let mut types = self.table().types(ClaimKind::Template);
        types.push(BUNDLED_ENGINE.to_owned());
        types.sort();
        types
    }

    fn gate_engine(&self, gate_type: &str, namespace: &Namespace) -> Option<Arc<dyn GateEngine>> {
        let found = self.table().find(ClaimKind::Gate, gate_type, Some(namespace));
        found.map(|plugin| plugin as Arc<dyn GateEngine>)
    }

    fn gate_types(&self) -> Vec<String> {
        self.table().types(ClaimKind::Gate)
    }

    fn installer(&self) -> Option<&dyn PluginInstaller> {
        Some(self)
    }
}
