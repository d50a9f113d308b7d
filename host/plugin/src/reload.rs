//! Registrations by files that change while the host runs: compiled before they take the place of what was there.

use std::collections::{BTreeMap, BTreeSet};

use orangery_core::error::Fault;
use orangery_proposal::deployer::{Deployer, PluginIdentity};

use crate::{
    installed::{RegisteredPlugin, TypeClaims},
    plugin_set::{PluginSet, PluginSetError, claim},
    registration::Registered,
};

/// What became of a registration that is another one than before, or has another component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reloaded {
    /// It is in use from now on.
    Used(PluginIdentity),
    /// It cannot be used, for this reason. What had its name before stays in use.
    Refused {
        /// The name of the registration.
        name: String,
        /// Why.
        why: Fault,
    },
    /// There is no registration of this name any more.
    Removed(String),
}

/// What became of registrations, and the types that others serve from now on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReloadOutcome {
    /// Of each that is not what it was.
    pub plugins: Vec<Reloaded>,
    /// Types that are served from now on, by another component, or no more.
    pub types: BTreeSet<String>,
}

impl PluginSet {
    /// Has these registrations count instead of those before. Components that are other ones are compiled first; calls and jobs
    /// under way end with those that they began with (C-263). The terms of components of blueprints stay what they were at the start.
    ///
    /// # Errors
    ///
    /// Two registrations with one name, or that claim one type: everything stays as it was.
    pub async fn reload(&self, registered: Vec<Registered>) -> Result<ReloadOutcome, PluginSetError> {
        let mut outcome = ReloadOutcome::default();
        let (mut claims, mut registrations) = (TypeClaims::default(), BTreeMap::<String, RegisteredPlugin>::new());
        let mut origins = BTreeMap::<String, String>::new();
        for one in registered.into_iter().filter(|one| !one.registration.is_for_own()) {
            let (name, origin) = (one.registration.metadata.name.clone(), one.origin.clone());
            if let Some(first) = origins.insert(name.clone(), origin.clone()) {
                return Err(PluginSetError::Name { name, first, second: origin });
            }
            let known = self.table().registrations.get(&name).cloned();
            let Some(used) = self.used(one, known, &mut outcome).await else { continue };
            for (kind, claimed) in used.registration.claims() {
                claim(claims.of_mut(kind), claimed, &used.plugin)?;
            }
            registrations.insert(name, used);
        }
        let mut table = self.change();
        let removed = table.registrations.iter().filter(|(name, _)| !origins.contains_key(*name));
        for (name, known) in removed {
            outcome.types.extend(known.types());
            outcome.plugins.push(Reloaded::Removed(name.clone()));
        }
        if !outcome.plugins.is_empty() {
            table.register(claims, registrations);
        }
        Ok(outcome)
    }

    /// What serves the types of a registration from now on: itself, or what had its name before.
    async fn used(
        &self,
        one: Registered,
        known: Option<RegisteredPlugin>,
        outcome: &mut ReloadOutcome,
    ) -> Option<RegisteredPlugin> {
        if let Some(known) = &known
            && known.is(&one)
        {
            return Some(known.clone());
        }
        let registration = one.registration.clone();
        match self.usable(one, "its registration").await {
            Ok((plugin, _)) => {
                let used = RegisteredPlugin { registration, plugin };
                outcome.types.extend(known.iter().flat_map(RegisteredPlugin::types).chain(used.types()));
                outcome.plugins.push(Reloaded::Used(Deployer::identity(used.plugin.as_ref()).clone()));
                Some(used)
            }
            Err(why) => {
                outcome.plugins.push(Reloaded::Refused { name: registration.metadata.name, why });
                known
            }
        }
    }
}

impl RegisteredPlugin {
    /// Whether it is the very same registration of the very same component.
    fn is(&self, other: &Registered) -> bool {
        let identity = Deployer::identity(self.plugin.as_ref());
        self.registration == other.registration && identity.digest == other.content.digest()
    }

    /// The types that it claims.
    fn types(&self) -> Vec<String> {
        self.registration.claims().into_iter().map(|(_, claimed)| claimed).collect()
    }
}

#[cfg(test)]
mod tests {
    use orangery_blueprint::plugins::Plugins as _;

    use super::*;
    use crate::{Registration, Sandbox, SandboxConfig, WorkerCommand};

    fn registered(name: &str, types: &str, bytes: &[u8]) -> Registered {
        let text = format!(
            "apiVersion: orangery.dev/v1alpha1\nkind: Plugin\nmetadata: {{name: {name}}}\nspec: {{version: 1.0.0, component: \
             {{file: a.wasm}}, deployer: {{itemTypes: [{types}]}}}}"
        );
        Registered::new(Registration::parse(&text, "file").unwrap(), bytes.to_vec(), format!("{name}.yaml"))
    }

    fn host(registered: Vec<Registered>) -> PluginSet {
        let worker = WorkerCommand { program: "/nowhere".into(), args: vec![] };
        PluginSet::load(registered, &Sandbox::start(SandboxConfig::new(worker, None)).unwrap()).unwrap()
    }

    fn server(set: &PluginSet, item_type: &str) -> Option<String> {
        Some(set.deployer(item_type, &"n".into())?.identity().digest.clone())
    }

    #[tokio::test]
    async fn c_352_what_is_as_it_was_is_not_loaded_again_and_what_is_gone_serves_no_more() {
        let set = host(vec![registered("a", "t", b"one"), registered("b", "u", b"one")]);
        let same = set.reload(vec![registered("a", "t", b"one"), registered("b", "u", b"one")]).await.unwrap();
        assert_eq!(same, ReloadOutcome::default());
        let less = set.reload(vec![registered("a", "t", b"one")]).await.unwrap();
        let (plugins, types) = (vec![Reloaded::Removed("b".to_owned())], BTreeSet::from(["u".to_owned()]));
        assert_eq!(less, ReloadOutcome { plugins, types });
        assert_eq!((server(&set, "t").is_some(), server(&set, "u")), (true, None));
    }

    #[tokio::test]
    async fn c_352_what_cannot_be_used_changes_nothing() {
        let set = host(vec![registered("a", "t", b"one")]);
        let before = server(&set, "t");
        let outcome =
            set.reload(vec![registered("a", "t", b"\0asm\x01\0\0\0"), registered("b", "u", b"two")]).await.unwrap();
        let refused = |reloaded: &Reloaded| match reloaded {
            Reloaded::Refused { name, why: Fault::Invalid(problem) } => format!("{name} {}", problem.message),
            other => format!("{other:?}"),
        };
        let told: Vec<String> = outcome.plugins.iter().map(refused).collect();
        assert!(
            told[0].starts_with("a a 1.0.0: the file is not a WebAssembly component: it is a core module"),
            "{told:?}"
        );
        assert!(told[1].starts_with("b b 1.0.0: the file is not a WebAssembly component"), "{told:?}");
        assert_eq!((outcome.types, server(&set, "t"), server(&set, "u")), (BTreeSet::new(), before, None));
    }

    #[tokio::test]
    async fn c_352_registrations_that_do_not_go_together_change_nothing() {
        let set = host(vec![registered("a", "t", b"one"), registered("b", "u", b"one")]);
        let twice = set.reload(vec![registered("a", "t", b"one"), registered("a", "t", b"one")]).await.unwrap_err();
        assert_eq!(
            twice.to_string(),
            "the plugin a is registered twice, by a.yaml and by a.yaml; give one of them another name"
        );
        assert!(server(&set, "u").is_some());
    }
}
