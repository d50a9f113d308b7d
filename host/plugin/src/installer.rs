//! Installs components while the host runs: compiled before they take the place of what was there.

use std::sync::{Arc, PoisonError, RwLockWriteGuard};

use orangery_blueprint::plugins::{
    CandidateComponent, ClaimTerms, ClaimedType, ImportOffer, InstalledInterfaces, PluginInstallation, PluginInstaller,
};
use orangery_core::{
    error::{Code, Fault},
    name::Namespace,
    port::BoxFuture,
};
use orangery_proposal::{deployer::Deployer, grant::Grants};
use orangery_turns::off_the_executor;
use serde_json::Value;

use crate::{
    claim::ClaimKind,
    component::Component,
    error::Error,
    inspect::Need,
    installed::{InstalledPlugin, InstalledTable},
    plugin::Plugin,
    plugin_set::PluginSet,
    registration::{ComponentBytes, Registered, Registration},
};

impl PluginSet {
    pub(crate) fn change(&self) -> RwLockWriteGuard<'_, InstalledTable> {
        self.installed.write().unwrap_or_else(PoisonError::into_inner)
    }

    async fn install_now(
        &self,
        installation: PluginInstallation,
        terms: ClaimTerms,
    ) -> Result<InstalledInterfaces, Fault> {
        let name = installation.plugin.clone();
        let (plugin, claims, interfaces) = self.loaded(installation, |plugin| plugin).await?;
        self.change().put(&name, InstalledPlugin { plugin, is_there: true, claims, terms });
        Ok(interfaces)
    }

    /// A component that is compiled, and is what it says it is.
    async fn loaded(
        &self,
        installation: PluginInstallation,
        role: fn(Plugin) -> Plugin,
    ) -> Result<(Arc<Plugin>, Vec<(ClaimKind, String)>, InstalledInterfaces), Fault> {
        let PluginInstallation { plugin: name, registration, content, is_pinned } = installation;
        let registration = read(&name, &registration)?;
        let (claims, grants) = (registration.claims(), registration.spec.grants.clone());
        let content = off_the_executor(|| ComponentBytes::read(content));
        let registered = Registered::installed(registration, content, is_pinned, origin(&name));
        let plugin = role(Plugin::new(registered, self.sandbox.clone()));
        let (plugin, loaded) = checked(plugin, &claims, "the Plugin").await?;
        let interfaces = interfaces(&loaded, &grants);
        Ok((plugin, claims, interfaces))
    }

    /// One that is compiled, and is what its registration claims it is. `whose` says whose claim that is.
    pub(crate) async fn usable(
        &self,
        registered: Registered,
        whose: &str,
    ) -> Result<(Arc<Plugin>, Arc<Component>), Fault> {
        let claims = registered.registration.claims();
        checked(Plugin::new(registered, self.sandbox.clone()), &claims, whose).await
    }
}

async fn checked(
    plugin: Plugin,
    claims: &[(ClaimKind, String)],
    whose: &str,
) -> Result<(Arc<Plugin>, Arc<Component>), Fault> {
    let plugin = Arc::new(plugin);
    let loaded = plugin.component().await.map_err(|error| error.fault(Deployer::identity(plugin.as_ref())))?;
    if let Some((kind, _)) = claims.iter().find(|(kind, _)| !loaded.exports(kind.interface())) {
        let message = format!(
            "{}: the component exports nothing of a {}, which {whose} claims it is; correct one of them",
            Deployer::identity(plugin.as_ref()),
            kind.word()
        );
        return Err(Fault::invalid(Code::ConfigurationProblem, message));
    }
    Ok((plugin, loaded))
}

fn origin(name: &str) -> String {
    format!("the Plugin {name}")
}

fn read(name: &str, registration: &Value) -> Result<Registration, Fault> {
    Registration::of_spec(name, registration, &origin(name))
        .map_err(|error| Fault::invalid(Code::ConfigurationProblem, error.to_string()))
}

fn interfaces(component: &Component, grants: &Grants) -> InstalledInterfaces {
    let inspection = component.inspection();
    let offer = |Need { interface, offer }: Need| {
        let (offer, grant) = offer.words();
        ImportOffer { interface, offer, grant }
    };
    let imports = inspection.needs(grants).into_iter().map(offer).collect();
    InstalledInterfaces { digest: inspection.digest.clone(), exports: inspection.exports.clone(), imports }
}

impl PluginInstaller for PluginSet {
    fn install(
        &self,
        installation: PluginInstallation,
        terms: ClaimTerms,
    ) -> BoxFuture<'_, Result<InstalledInterfaces, Fault>> {
        Box::pin(self.install_now(installation, terms))
    }

    fn beside(&self, installation: PluginInstallation) -> BoxFuture<'_, Result<CandidateComponent, Fault>> {
        Box::pin(async move {
            let (plugin, claims, _) = self.loaded(installation, Plugin::into_candidate).await?;
            Ok(match claims.first() {
                Some((ClaimKind::Template, _)) => CandidateComponent::TemplateEngine(plugin),
                Some((ClaimKind::Gate, _)) => CandidateComponent::GateEngine(plugin),
                Some((ClaimKind::Deployer, _)) | None => CandidateComponent::Deployer(plugin),
            })
        })
    }

    fn announce(&self, name: &str, registration: &Value, why: Fault, terms: ClaimTerms) -> Result<(), Fault> {
        let registration = read(name, registration)?;
        let claims = registration.claims();
        let content = ComponentBytes::Missing(Arc::new(Error::NotInstalled(why)));
        let registered = Registered::installed(registration, content, false, origin(name));
        let plugin = Arc::new(Plugin::new(registered, self.sandbox.clone()));
        let mut table = self.change();
        match table.installed.get(name) {
            Some(known) if known.is_there => {}
            Some(_) | None => table.put(name, InstalledPlugin { plugin, is_there: false, claims, terms }),
        }
        Ok(())
    }

    fn arrange(&self, name: &str, terms: ClaimTerms) {
        let mut table = self.change();
        if let Some(known) = table.installed.get_mut(name)
            && known.terms != terms
        {
            known.terms = terms;
            table.rank();
        }
    }

    fn remove(&self, name: &str) {
        let mut table = self.change();
        if table.installed.remove(name).is_some() {
            table.rank();
        }
    }

    fn serves(&self, plugin: &str, item_type: &str, namespace: &Namespace) -> bool {
        let table = self.installed.read().unwrap_or_else(PoisonError::into_inner);
        table.server_of(item_type, namespace) == Some(plugin)
    }

    fn claimed(&self, name: &str) -> Vec<ClaimedType> {
        let table = self.installed.read().unwrap_or_else(PoisonError::into_inner);
        let claims = table.installed.get(name).map(|installed| installed.claims.as_slice()).unwrap_or_default();
        claims.iter().map(|(kind, claimed)| (claimed.clone(), table.taken(name, *kind, claimed))).collect()
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use orangery_blueprint::plugins::Plugins as _;
    use orangery_core::plan::plugin::ClaimRank;
    use serde_json::json;

    use super::*;
    use crate::{Sandbox, SandboxConfig, WorkerCommand};

    const FILE: &str = "apiVersion: orangery.dev/v1alpha1\nkind: Plugin\nmetadata: {name: file}\nspec: {version: 1.0.0, \
                        component: {file: a.wasm}, deployer: {itemTypes: [t]}}";

    /// A host with one registration of the type `t`.
    fn host() -> PluginSet {
        let worker = WorkerCommand { program: "/nowhere".into(), args: vec![] };
        let sandbox = Sandbox::start(SandboxConfig::new(worker, None)).unwrap();
        let registered = Registered::new(Registration::parse(FILE, "file.yaml").unwrap(), Vec::new(), String::new());
        PluginSet::load(vec![registered], &sandbox).unwrap()
    }

    fn terms(priority: i32, second: i64, name: &str, namespaces: &[&str]) -> ClaimTerms {
        let rank = ClaimRank::of_installed(false, priority, Timestamp::from_second(second).unwrap(), name);
        ClaimTerms { patterns: namespaces.iter().map(|one| (*one).to_owned()).collect(), rank }
    }

    fn announce(set: &PluginSet, name: &str, terms: ClaimTerms) {
        let spec = json!({"version": "1.0.0", "deployer": {"itemTypes": ["t", name]}});
        let why = Fault::later(Code::Unfinished, format!("{name} is not there"));
        set.announce(name, &spec, why, terms).unwrap();
    }

    fn server(set: &PluginSet, item_type: &str, namespace: &str) -> Option<String> {
        Some(set.deployer(item_type, &namespace.into())?.identity().name.clone())
    }

    #[test]
    fn c_261_the_first_that_is_for_a_namespace_serves_a_type_there() {
        let set = host();
        assert_eq!(server(&set, "t", "n").as_deref(), Some("file"));
        assert_eq!(server(&set, "one", "n"), None);
        announce(&set, "one", terms(5, 1, "one", &["team-*", "x"]));
        announce(&set, "two", terms(0, 2, "two", &[]));
        let of = |item_type, namespace| server(&set, item_type, namespace).unwrap_or_default();
        assert_eq!([of("t", "team-a"), of("t", "x"), of("t", "n")], ["one", "one", "file"]);
        assert_eq!([of("one", "x"), of("one", "n"), of("two", "n")], ["one", "", "two"]);
        assert!(set.serves("one", "t", &"x".into()) && !set.serves("one", "t", &"n".into()));
        assert!(!set.serves("two", "t", &"n".into()) && set.serves("two", "two", &"n".into()));
        let taken = |name: &str| {
            set.claimed(name).into_iter().map(|(claimed, by)| format!("{claimed} {}", by.unwrap_or_default()))
        };
        assert_eq!(taken("one").collect::<Vec<_>>(), ["t ", "one "]);
        assert_eq!(taken("two").collect::<Vec<_>>(), ["t the registered plugin file", "two "]);
        set.arrange("two", terms(9, 2, "two", &[]));
        assert_eq!(of("t", "team-a"), "two");
        assert_eq!(taken("one").collect::<Vec<_>>(), ["t the Plugin two", "one "]);
        set.remove("two");
        set.remove("one");
        assert_eq!((of("t", "team-a"), of("two", "n")), ("file".to_owned(), String::new()));
        assert_eq!(set.template_types(), ["Wasm"]);
    }

    #[tokio::test]
    async fn c_262_what_is_not_there_yet_says_so_and_what_cannot_be_registered_claims_nothing() {
        let set = host();
        announce(&set, "one", terms(5, 1, "one", &[]));
        let plugin = set.installed.read().unwrap().find(ClaimKind::Deployer, "t", None).unwrap();
        let why = plugin.component().await.err().unwrap().fault(Deployer::identity(plugin.as_ref()));
        assert_eq!(why, Fault::later(Code::Unfinished, "one is not there"));
        let refused = |spec: Value| {
            let refused = set.announce("two", &spec, Fault::denied("x"), terms(0, 1, "two", &[])).unwrap_err();
            refused.to_string()
        };
        assert_eq!(
            refused(json!({"version": "1"})),
            "the Plugin two: plugin two must have exactly one of `deployer` with item types, `template` with types and `gate` with types"
        );
        assert_eq!(
            refused(json!({"version": "1", "deployer": {"itemTypes": ["u"]}, "limits": {"memoryMiB": 513}})),
            "the Plugin two: `limits.memoryMiB` of plugin two is at most 512; lower it"
        );
        let misspelt = refused(json!({"version": "1", "deployer": {"itemTypes": ["u"]}, "grants": {"reeds": []}}));
        assert!(
            misspelt.starts_with("the Plugin two: spec.grants.reeds cannot be used: unknown field `reeds`"),
            "{misspelt}"
        );
        assert_eq!((set.claimed("two"), server(&set, "u", "n")), (Vec::new(), None));
        let installation = PluginInstallation {
            plugin: "one".to_owned(),
            registration: json!({"version": "2", "deployer": {"itemTypes": ["t"]}}),
            content: b"\0asm\x01\0\0\0".to_vec(),
            is_pinned: false,
        };
        let refused = set.install(installation, terms(0, 1, "one", &[])).await.unwrap_err();
        assert!(
            refused.to_string().starts_with("one 2: the file is not a WebAssembly component: it is a core module"),
            "{refused}"
        );
        assert_eq!(set.claimed("one").len(), 2, "what was announced stays");
    }
}
