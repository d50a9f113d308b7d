//! Which component serves a type, in which namespace: of those that are registered at the start, and of those that are installed
//! while the host runs.

use std::{collections::BTreeMap, sync::Arc};

use orangery_blueprint::plugins::ClaimTerms;
use orangery_core::{name::Namespace, pattern, plan::plugin::ClaimRank};
use orangery_proposal::deployer::Deployer;

use crate::{claim::ClaimKind, plugin::Plugin, registration::Registration};

/// The components that are registered at the start, by the types that they claim.
#[derive(Clone, Default)]
pub(crate) struct TypeClaims(BTreeMap<ClaimKind, BTreeMap<String, Arc<Plugin>>>);

/// Types that nobody claims.
static NONE: BTreeMap<String, Arc<Plugin>> = BTreeMap::new();

impl TypeClaims {
    pub(crate) fn of(&self, kind: ClaimKind) -> &BTreeMap<String, Arc<Plugin>> {
        self.0.get(&kind).unwrap_or(&NONE)
    }

    pub(crate) fn of_mut(&mut self, kind: ClaimKind) -> &mut BTreeMap<String, Arc<Plugin>> {
        self.0.entry(kind).or_default()
    }
}

/// One that was installed or announced.
pub(crate) struct InstalledPlugin {
    pub(crate) plugin: Arc<Plugin>,
    /// Whether its bytes are there.
    pub(crate) is_there: bool,
    pub(crate) claims: Vec<(ClaimKind, String)>,
    pub(crate) terms: ClaimTerms,
}

/// One that may serve a type.
struct TypeServer {
    rank: ClaimRank,
    /// Patterns of the namespaces that it is for; none stands for all.
    patterns: Vec<String>,
    plugin: Arc<Plugin>,
    /// Its name among those that are installed.
    installed: Option<String>,
}

impl TypeServer {
    fn is_for(&self, namespace: Option<&Namespace>) -> bool {
        let matches = |name: &Namespace| self.patterns.iter().any(|one| pattern::matches(one, name));
        self.patterns.is_empty() || namespace.is_some_and(matches)
    }
}

/// One that is registered by a file, or ships with the host.
#[derive(Clone)]
pub(crate) struct RegisteredPlugin {
    pub(crate) registration: Registration,
    pub(crate) plugin: Arc<Plugin>,
}

/// All components of a host by the types that they serve, the first of each list first.
#[derive(Default)]
pub(crate) struct InstalledTable {
    registered: TypeClaims,
    /// What is registered, by its name; but for the terms of components of blueprints.
    pub(crate) registrations: BTreeMap<String, RegisteredPlugin>,
    pub(crate) installed: BTreeMap<String, InstalledPlugin>,
    /// Of the types that something installed claims.
    servers: BTreeMap<ClaimKind, BTreeMap<String, Vec<TypeServer>>>,
}

impl InstalledTable {
    /// Nothing is installed beside what is registered.
    pub(crate) fn beside(registered: TypeClaims, registrations: BTreeMap<String, RegisteredPlugin>) -> Self {
        Self { registered, registrations, ..Self::default() }
    }

    /// Other ones are registered from now on.
    pub(crate) fn register(&mut self, registered: TypeClaims, registrations: BTreeMap<String, RegisteredPlugin>) {
        self.registered = registered;
        self.registrations = registrations;
        self.rank();
    }

    /// The one that serves a type in a namespace.
    pub(crate) fn find(&self, kind: ClaimKind, claimed: &str, namespace: Option<&Namespace>) -> Option<Arc<Plugin>> {
        match self.servers.get(&kind).and_then(|servers| servers.get(claimed)) {
            Some(servers) => servers.iter().find(|server| server.is_for(namespace)).map(|server| server.plugin.clone()),
            None => self.registered.of(kind).get(claimed).cloned(),
        }
    }

    /// The types that are served somewhere, sorted.
    pub(crate) fn types(&self, kind: ClaimKind) -> Vec<String> {
        let installed = self.servers.get(&kind).into_iter().flat_map(BTreeMap::keys);
        let mut types: Vec<String> = self.registered.of(kind).keys().chain(installed).cloned().collect();
        types.sort();
        types.dedup();
        types
    }

    /// Puts one in the place of what had its name.
    pub(crate) fn put(&mut self, name: &str, plugin: InstalledPlugin) {
        self.installed.insert(name.to_owned(), plugin);
        self.rank();
    }

    /// Finds anew which one comes first.
    pub(crate) fn rank(&mut self) {
        let mut servers = BTreeMap::<ClaimKind, BTreeMap<String, Vec<TypeServer>>>::new();
        for (name, installed) in &self.installed {
            for (kind, claimed) in &installed.claims {
                let of_type = servers.entry(*kind).or_default().entry(claimed.clone()).or_default();
                let ClaimTerms { rank, patterns } = installed.terms.clone();
                let (plugin, installed) = (installed.plugin.clone(), Some(name.clone()));
                of_type.push(TypeServer { rank, patterns, plugin, installed });
            }
        }
        for (kind, types) in &mut servers {
            for (claimed, of_type) in types {
                if let Some(plugin) = self.registered.of(*kind).get(claimed).cloned() {
                    let (rank, patterns, installed) = (ClaimRank::of_registration(), Vec::new(), None);
                    of_type.push(TypeServer { rank, patterns, plugin, installed });
                }
                of_type.sort_by(|one, other| one.rank.cmp(&other.rank));
            }
        }
        self.servers = servers;
    }

    /// What serves a type everywhere instead of an installed component, where something does.
    pub(crate) fn taken(&self, name: &str, kind: ClaimKind, claimed: &str) -> Option<String> {
        let servers = self.servers.get(&kind)?.get(claimed)?;
        let before = servers.iter().take_while(|server| server.installed.as_deref() != Some(name));
        let first = before.into_iter().find(|server| server.patterns.is_empty())?;
        let by = &Deployer::identity(first.plugin.as_ref()).name;
        Some(if first.installed.is_some() { format!("the Plugin {by}") } else { format!("the registered plugin {by}") })
    }

    /// The one that serves deploy items of a type in a namespace, by its name among those that are installed.
    pub(crate) fn server_of(&self, item_type: &str, namespace: &Namespace) -> Option<&str> {
        let servers = self.servers.get(&ClaimKind::Deployer)?.get(item_type)?;
        servers.iter().find(|server| server.is_for(Some(namespace)))?.installed.as_deref()
    }
}
