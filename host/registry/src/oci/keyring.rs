//! Credentials of one Context: which of them are for a registry and a repository, the closest first.
//!
//! Reading is strict about what would be tried in vain and silent about content: a message names the Secret or ConfigMap,
//! the key and the place in it, never what stands there.

mod charts;
mod context;
mod docker;
mod ocm;

use std::sync::Arc;

use orangery_core::{
    digest::content::{Algorithm, ContentDigest, Hasher},
    error::{Code, Fault},
    memory,
};
use orangery_ocm::{AllowedSources, FetchQuota, SourceNetworks};
use orangery_turns::Tenant;
use rustls::pki_types::CertificateDer;
use secrecy::{ExposeSecret, SecretString};
use url::Url;

use super::reference::{OciRepository, Registry, Scheme};
use crate::version_memory::HeldVersionMemory;
pub use {
    docker::DockerConfig,
    ocm::{OcmConfig, Resolver},
};

/// How to prove who is asking. Its debug output hides what is secret.
#[derive(Clone, Debug)]
pub(super) enum Login {
    /// User and password, as they are or exchanged for a token.
    Basic {
        /// Not secret, but not told either.
        user: String,
        /// Secret.
        password: SecretString,
    },
    /// A token that the registry's token service exchanges for others (`identitytoken`).
    Identity(SecretString),
    /// A token for the registry itself (`registrytoken`).
    Bearer(SecretString),
    /// Credentials that are kept elsewhere, by the name of their type: told where they would have been needed.
    Elsewhere(String),
    /// Nobody in particular: the entry only says whose certificates are trusted.
    Anonymous,
}

/// Where credentials are for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CredentialScope {
    /// A label may have one `*`; nothing stands for every host.
    host: Option<String>,
    port: Option<u16>,
    scheme: Option<Scheme>,
    /// Whole names of the repository from the left, without slashes at the ends.
    path: String,
}

/// What credentials are for, as the identities of an OCM configuration say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consumer {
    /// Registries (`OCIRegistry`).
    Registry,
    /// Repositories of charts (`HelmChartRepository`).
    Charts,
    /// Any files (`wget`).
    Files,
    /// GitHub (`Github`).
    GitHub,
}

impl Consumer {
    fn named(consumer_type: &str) -> Option<Self> {
        match consumer_type {
            "OCIRegistry" => Some(Consumer::Registry),
            "HelmChartRepository" => Some(Consumer::Charts),
            "wget" => Some(Consumer::Files),
            "Github" => Some(Consumer::GitHub),
            _ => None,
        }
    }
}

/// One entry.
#[derive(Clone, Debug)]
pub(super) struct KeyringEntry {
    consumer: Consumer,
    scope: CredentialScope,
    pub(super) login: Login,
    /// Where it stands, such as `Secret team/pull`.
    pub(super) origin: Arc<str>,
    /// Authorities that are trusted as well while it is used.
    pub(super) certificates: Vec<CertificateDer<'static>>,
}

/// Where credentials come from, and better ones may.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CredentialsOwner {
    /// A Context.
    #[default]
    Context,
    /// Whoever runs a command.
    Command,
    /// A Plugin.
    Plugin,
}

impl CredentialsOwner {
    /// The begin of what it has.
    pub(super) fn has(self) -> &'static str {
        match self {
            CredentialsOwner::Context => "the Context has",
            CredentialsOwner::Command => "you have",
            CredentialsOwner::Plugin => "the Plugin has",
        }
    }

    /// What is to be done where credentials are refused.
    pub(super) fn advice(self) -> &'static str {
        match self {
            CredentialsOwner::Context => {
                "give the Context a registryPullSecret or an ocmConfig whose credentials may read it"
            }
            CredentialsOwner::Command => {
                "log in with `docker login`, or name a file with other credentials with --registry-config"
            }
            CredentialsOwner::Plugin => {
                "name a Secret whose credentials may read it in spec.source.oci.pullSecrets, in the namespace of the operator"
            }
        }
    }
}

/// All credentials of one Context. Empty: everything is asked for without.
#[derive(Clone, Debug, Default)]
pub struct Keyring {
    keys: Vec<KeyringEntry>,
    /// Why there are no credentials for chart repositories though some are given.
    unusable_charts: Option<Arc<str>>,
    /// Where content may come from, whoever asks for it.
    allowed: Arc<AllowedSources>,
    /// For which namespace content is fetched, whose share of memory it takes.
    tenant: Tenant,
    owner: CredentialsOwner,
    /// What holds the memory of long ones.
    #[expect(dead_code, reason = "it is held for as long as they are there")]
    held: Option<Arc<HeldVersionMemory>>,
}

impl Keyring {
    /// Adds the entries of a docker configuration (`.dockerconfigjson` of `registryPullSecrets`).
    pub fn with_docker_config(mut self, config: DockerConfig) -> Self {
        self.keys.extend(config.keys);
        self
    }

    /// Adds the credentials of an OCM configuration (`ocmConfig`, or `.ocmcredentialconfig` of `registryPullSecrets`).
    pub fn with_ocm_config(mut self, config: &OcmConfig) -> Self {
        self.keys.extend(config.keys.iter().cloned());
        self
    }

    /// Bytes of memory that it takes.
    pub(crate) fn memory(&self) -> u64 {
        self.keys.iter().map(KeyringEntry::memory).sum()
    }

    /// The same credentials, with what holds their memory for as long as they are there.
    pub(crate) fn holding(self, memory: Arc<HeldVersionMemory>) -> Self {
        Self { held: Some(memory), ..self }
    }

    /// The same credentials, which somebody else has given.
    pub fn owned_by(self, owner: CredentialsOwner) -> Self {
        Self { owner, ..self }
    }

    /// Where the credentials come from.
    pub(super) fn owner(&self) -> CredentialsOwner {
        self.owner
    }

    /// Whether content may come from a repository.
    pub(crate) fn allows(&self, repository: &OciRepository) -> Result<(), Fault> {
        self.allowed.registry(&repository.source())
    }

    /// Whether content may come from a host.
    pub(super) fn allows_host(&self, host: &str) -> Result<(), Fault> {
        self.allowed.host(host)
    }

    /// For which namespace content is fetched: it takes its share of what may be on its way at once (C-133).
    pub(crate) fn tenant(&self) -> &Tenant {
        &self.tenant
    }

    /// How much may come from elsewhere for the namespace of its Context; `None` for any number.
    pub(super) fn quota(&self) -> Option<&FetchQuota> {
        self.allowed.fetched.as_ref()
    }

    /// What the policies of its namespace say, and the namespace where it has a quota: requests are shared, and what came of
    /// them is used again, where these are the same, so that what one is refused is told to nobody else.
    pub(crate) fn sources(&self) -> Arc<AllowedSources> {
        Arc::clone(&self.allowed)
    }

    /// What requests with it may reach, and whose turns they take.
    pub(super) fn asks_as(&self) -> (Arc<AllowedSources>, Tenant) {
        (self.sources(), self.tenant.clone())
    }

    /// Whether chart repositories can be asked: not where what is given for them cannot be used.
    pub(crate) fn can_ask_charts(&self) -> Result<(), Fault> {
        let message_of = |why: &Arc<str>| Err(Fault::invalid(Code::ConfigurationProblem, why.to_string()));
        self.unusable_charts.as_ref().map_or(Ok(()), message_of)
    }

    /// What keeps entries from a repository that they would be for, as they name no port and it has another one than the
    /// usual (C-214): where they stand, and the line. A sentence without its begin; `None` where nothing does.
    pub(super) fn withheld(&self, repository: &OciRepository) -> Option<String> {
        self.withheld_of(Consumer::Registry, repository)
    }

    /// The same for a file of a web server.
    pub(super) fn withheld_file(&self, consumer: Consumer, url: &Url) -> Option<String> {
        self.withheld_of(consumer, &repository_of(url)?)
    }

    fn withheld_of(&self, consumer: Consumer, repository: &OciRepository) -> Option<String> {
        let keys = self.keys.iter().filter(|key| key.consumer == consumer);
        let mut close = keys.filter(|key| key.scope.closeness(repository).is_some());
        close.find_map(|key| {
            let line = self.withholds(key, repository)?;
            let origin = &key.origin;
            Some(format!(
                "those in {origin} name no port, which {line} has go to the usual port alone; name the port there"
            ))
        })
    }

    /// The line that keeps an entry from a repository that it would be for. Certificates that are trusted are no secret.
    fn withholds(&self, key: &KeyringEntry, repository: &OciRepository) -> Option<&str> {
        let registry = &repository.registry;
        let port = registry.port.filter(|port| *port != registry.scheme.unwrap_or(Scheme::Https).port())?;
        let is_named = key.scope.port.is_some() || matches!(key.login, Login::Anonymous);
        if is_named { None } else { self.allowed.withholds_from_port(&repository.source(), port) }
    }

    /// The entries for a repository, the closest first; of equally close ones the first that was added, and in one file the first by name.
    pub(super) fn matching(&self, repository: &OciRepository) -> Vec<&KeyringEntry> {
        self.matching_of(Consumer::Registry, repository)
    }

    /// The same for a file of a web server.
    pub(super) fn matching_file(&self, consumer: Consumer, url: &Url) -> Vec<&KeyringEntry> {
        repository_of(url).map_or_else(Vec::new, |repository| self.matching_of(consumer, &repository))
    }

    fn matching_of(&self, consumer: Consumer, repository: &OciRepository) -> Vec<&KeyringEntry> {
        let keys = self.keys.iter().filter(|key| key.consumer == consumer);
        let close = keys.filter_map(|key| Some((key.scope.closeness(repository)?, key)));
        let mut found: Vec<_> = close.filter(|(_, key)| self.withholds(key, repository).is_none()).collect();
        found.sort_by_key(|(closeness, _)| std::cmp::Reverse(*closeness));
        found.into_iter().map(|(_, key)| key).collect()
    }

    /// The same for two keyrings exactly when they would ask for a repository with the same credentials, and may connect to the
    /// same networks (C-102): what was fetched with the one may be shown to the other. Not a secret, but it can be guessed
    /// against: keep it in memory.
    pub fn fingerprint(&self, repository: &OciRepository) -> ContentDigest {
        fingerprint(&self.matching(repository), &self.allowed.networks)
    }
}

/// The place of a file, as credentials name it.
fn repository_of(url: &Url) -> Option<OciRepository> {
    let scheme = if url.scheme() == "http" { Scheme::Http } else { Scheme::Https };
    let registry = Registry { host: url.host_str()?.to_owned(), port: url.port(), scheme: Some(scheme) };
    Some(OciRepository { registry, path: url.path().trim_matches('/').to_owned() })
}

/// Of all credentials that would be tried, and of the networks that may be connected to.
pub(super) fn fingerprint(keys: &[&KeyringEntry], networks: &SourceNetworks) -> ContentDigest {
    let mut hasher = Hasher::new(Algorithm::Sha256);
    for key in keys {
        hasher.update(key.fingerprint().hex().as_bytes());
    }
    hasher.update(networks.extent().as_bytes());
    hasher.finish()
}

impl KeyringEntry {
    /// Bytes of memory that it takes.
    pub(super) fn memory(&self) -> u64 {
        let CredentialScope { host, path, .. } = &self.scope;
        let of_login = match &self.login {
            Login::Basic { user, password } => user.len() + password.expose_secret().len(),
            Login::Identity(token) | Login::Bearer(token) => token.expose_secret().len(),
            Login::Elsewhere(kind) => kind.len(),
            Login::Anonymous => 0,
        };
        let of_certificates = self.certificates.iter().map(|certificate| certificate.len()).sum::<usize>();
        let texts = [host.as_deref().map_or(0, str::len), path.len(), of_login, of_certificates];
        size_of::<Self>() as u64 + texts.map(memory::of_text).iter().sum::<u64>()
    }

    /// Where it stands, for messages.
    pub(super) fn message_of(&self) -> String {
        match &self.login {
            Login::Elsewhere(kind) => format!("{} (of type {kind}, which is not supported)", self.origin),
            _ => self.origin.to_string(),
        }
    }

    /// Of the credentials alone, wherever they stand and whatever they are for.
    pub(super) fn fingerprint(&self) -> ContentDigest {
        let mut hasher = Hasher::new(Algorithm::Sha256);
        let parts = match &self.login {
            Login::Basic { user, password } => ["basic", user.as_str(), password.expose_secret()],
            Login::Identity(token) => ["identity", "", token.expose_secret()],
            Login::Bearer(token) => ["bearer", "", token.expose_secret()],
            Login::Elsewhere(kind) => ["elsewhere", "", kind.as_str()],
            Login::Anonymous => ["anonymous", "", ""],
        };
        for part in parts {
            hasher.update(&(part.len() as u64).to_be_bytes());
            hasher.update(part.as_bytes());
        }
        for certificate in &self.certificates {
            hasher.update(&(certificate.len() as u64).to_be_bytes());
            hasher.update(certificate);
        }
        hasher.finish()
    }
}

impl CredentialScope {
    /// Whether an entry is for a repository, and how closely: an exact host before a pattern before none, then the
    /// longer path, then a given port and scheme.
    fn closeness(&self, repository: &OciRepository) -> Option<(u8, usize, bool, bool)> {
        let registry = &repository.registry;
        let host = match &self.host {
            None => 0,
            Some(host) if *host == registry.host => 2,
            Some(pattern) if matches(pattern, &registry.host) => 1,
            Some(_) => return None,
        };
        let scheme = registry.scheme.unwrap_or(Scheme::Https);
        let port = registry.port.unwrap_or(scheme.port());
        if self.port.is_some_and(|wanted| wanted != port) || self.scheme.is_some_and(|wanted| wanted != scheme) {
            return None;
        }
        if !self.path.is_empty() {
            let rest = repository.path.strip_prefix(&self.path)?;
            if !rest.is_empty() && !rest.starts_with('/') {
                return None;
            }
        }
        Some((host, self.path.len(), self.port.is_some(), self.scheme.is_some()))
    }
}

/// Label by label; a `*` stands for any part of one label.
fn matches(pattern: &str, host: &str) -> bool {
    let (patterns, labels): (Vec<_>, Vec<_>) = (pattern.split('.').collect(), host.split('.').collect());
    let one = |pattern: &str, label: &str| match pattern.split_once('*') {
        Some((before, after)) => {
            label.len() >= before.len() + after.len() && label.starts_with(before) && label.ends_with(after)
        }
        None => pattern == label,
    };
    patterns.len() == labels.len() && patterns.iter().zip(&labels).all(|(pattern, label)| one(pattern, label))
}

#[cfg(test)]
mod tests {
    use orangery_core::network::{AllowedNetworks, NetworkRule};
    use orangery_ocm::SourceList;

    use super::*;

    fn keyring(scopes: &[&str]) -> Keyring {
        let auths: Vec<_> = scopes
            .iter()
            .enumerate()
            .map(|(index, scope)| format!(r#""{scope}": {{"username": "{index}", "password": "p"}}"#))
            .collect();
        let text = format!(r#"{{"auths": {{{}}}}}"#, auths.join(","));
        Keyring::default().with_docker_config(DockerConfig::read(&text, "Secret a/b").expect("a configuration"))
    }

    fn users(keyring: &Keyring, repository: &str) -> Vec<String> {
        let repository = repository.parse().expect("a repository");
        let user = |key: &&KeyringEntry| match &key.login {
            Login::Basic { user, .. } => user.clone(),
            other => format!("{other:?}"),
        };
        keyring.matching(&repository).iter().map(user).collect()
    }

    #[test]
    fn the_longest_path_of_the_most_exact_host_comes_first() {
        let keyring = keyring(&[
            "*.example",
            "registry.example",
            "registry.example/team",
            "https://registry.example/v2/",
            "registry.example/team/app",
            "registry.example:5000",
            "other.example",
        ]);
        assert_eq!(users(&keyring, "registry.example/team/app"), ["4", "2", "3", "1", "0"]);
        assert_eq!(users(&keyring, "registry.example/teams"), ["3", "1", "0"]);
        assert_eq!(users(&keyring, "registry.example:5000/team"), ["2", "5", "3", "1", "0"]);
        assert_eq!(users(&keyring, "a.b.example/x"), Vec::<String>::new());
        assert_eq!(users(&keyring, "example/x"), Vec::<String>::new());
    }

    #[test]
    fn c_214_credentials_without_a_port_are_for_another_one_where_nothing_keeps_them() {
        let line = "NamespacePolicy team, line spec.sources.registries";
        let mut keyring = keyring(&["r.example", "r.example:5000", "https://r.example/v2/", "*.example"]);
        assert_eq!(users(&keyring, "r.example:5001/a"), ["2", "0", "3"]);
        keyring.allowed =
            Arc::new(AllowedSources { usual_port_by: vec![line.to_owned()], ..AllowedSources::default() });
        assert_eq!(users(&keyring, "r.example:5001/a"), Vec::<String>::new());
        assert_eq!(users(&keyring, "r.example:5000/a"), ["1"]);
        assert_eq!(users(&keyring, "r.example/a"), ["2", "0", "3"]);
        assert_eq!(users(&keyring, "r.example:443/a"), ["2", "0", "3"], "the usual one, written out");
        let withheld = |repository: &str| keyring.withheld(&repository.parse().expect("a repository"));
        let told = format!(
            "those in Secret a/b name no port, which {line} has go to the usual port alone; name the port there"
        );
        assert_eq!((withheld("r.example:5001/a"), withheld("r.example/a")), (Some(told), None));
        let names = SourceList { patterns: vec!["r.example:5001/*".to_owned()], line: line.to_owned() };
        let usual_port_by = vec![line.to_owned()];
        let allowed = AllowedSources { registries: vec![names], usual_port_by, ..AllowedSources::default() };
        keyring.allowed = Arc::new(allowed);
        assert_eq!(users(&keyring, "r.example:5001/a"), ["2", "0", "3"]);
    }

    #[test]
    fn docker_hub_has_one_name_in_references_and_credentials() {
        let keyring = keyring(&["https://index.docker.io/v1/"]);
        assert_eq!(users(&keyring, "alpine"), ["0"]);
        assert_eq!(users(&keyring, "docker.io/team/app"), ["0"]);
    }

    #[test]
    fn a_fingerprint_tells_credentials_apart_and_not_where_they_stand() {
        let read = |origin: &str, password: &str| {
            let text = format!(r#"{{"auths": {{"r.example": {{"username": "u", "password": "{password}"}}}}}}"#);
            Keyring::default().with_docker_config(DockerConfig::read(&text, origin).expect("a configuration"))
        };
        let repository: OciRepository = "r.example/a".parse().expect("a repository");
        let of = |keyring: &Keyring| keyring.fingerprint(&repository);
        assert_eq!(of(&read("Secret a/b", "p")), of(&read("Secret c/d", "p")));
        assert_ne!(of(&read("Secret a/b", "p")), of(&read("Secret a/b", "q")));
        assert_ne!(of(&read("Secret a/b", "p")), of(&Keyring::default()));
    }

    #[test]
    fn c_102_a_fingerprint_tells_allowances_apart() {
        let repository: OciRepository = "r.example/a".parse().expect("a repository");
        let of = |networks: SourceNetworks| {
            let allowed = Arc::new(AllowedSources { networks, ..AllowedSources::default() });
            Keyring { allowed, ..Keyring::default() }.fingerprint(&repository)
        };
        let networks = |network: &str, line: &str| {
            let networks = vec![network.parse().expect("a network")];
            Arc::new(AllowedNetworks {
                rules: vec![NetworkRule { networks, servers: Vec::new(), line: line.to_owned() }],
            })
        };
        let all = of(SourceNetworks::default());
        assert_eq!(all, Keyring::default().fingerprint(&repository));
        let ten =
            |line: &str| of(SourceNetworks { redirects: networks("10.0.0.0/8", line), ..SourceNetworks::default() });
        assert_eq!(ten("line a"), ten("line b"));
        let other = of(SourceNetworks { redirects: networks("10.0.0.0/16", "line a"), ..SourceNetworks::default() });
        assert!(all != ten("line a") && other != ten("line a") && other != all);
    }

    #[test]
    fn debug_output_has_no_password() {
        let text = r#"{"auths": {"r.example": {"username": "u", "password": "hunter2", "identitytoken": "hunter3"}}}"#;
        let keyring = Keyring::default().with_docker_config(DockerConfig::read(text, "Secret a/b").expect("read"));
        assert!(!format!("{keyring:?}").contains("hunter"), "{keyring:?}");
    }
}
