//! The configuration of the Open Component Model's tools: credentials, and where component versions are looked for.
//!
//! Read are `generic.config.ocm.software` (a list of the others), `credentials.config.ocm.software` and
//! `ocm.config.ocm.software`, each with or without `/v1`; other types are for other tools and passed over.

use std::{cmp::Reverse, collections::BTreeMap, sync::Arc};

use orangery_core::{
    error::{Code, Fault},
    memory, yaml,
};
use orangery_ocm::MOST_CREDENTIAL_BYTES;
use secrecy::SecretString;
use serde_json::{Value, json};

use super::{Consumer, CredentialScope, DockerConfig, KeyringEntry, Login};
use crate::oci::reference::Scheme;

/// Configurations inside of configurations.
const MOST_LEVELS: usize = 8;
/// What a resolver without a priority has.
const USUAL_PRIORITY: i64 = 10;

/// One OCM configuration.
#[derive(Clone, Debug, Default)]
pub struct OcmConfig {
    pub(super) keys: Vec<KeyringEntry>,
    resolvers: Vec<Resolver>,
    aliases: BTreeMap<String, Arc<Value>>,
    /// Bytes of memory that all of it takes.
    bytes: u64,
}

/// A repository that has the component versions below a name.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolver {
    /// Whole names of components from the left; every component where it is empty.
    pub prefix: String,
    /// The greater is asked first.
    pub priority: i64,
    /// The specification of the repository, aliases replaced. What is behind an alias is there once.
    pub repository: Arc<Value>,
}

struct OcmConfigReader<'a> {
    origin: Arc<str>,
    credentials_only: bool,
    config: &'a mut OcmConfig,
}

impl OcmConfig {
    /// Reads the key `.ocmconfig` of a ConfigMap; `origin` names where it stands, such as `ConfigMap team/ocm`.
    pub fn read(text: &str, origin: &str) -> Result<Self, Fault> {
        Self::parse(text, origin, false)
    }

    /// Reads the key `.ocmcredentialconfig` of a Secret: its credentials and nothing else.
    pub fn read_credentials(text: &str, origin: &str) -> Result<Self, Fault> {
        Self::parse(text, origin, true)
    }

    fn parse(text: &str, origin: &str, credentials_only: bool) -> Result<Self, Fault> {
        let mut config = Self::default();
        let mut reading = OcmConfigReader { origin: origin.into(), credentials_only, config: &mut config };
        let value = yaml::decode(text).map_err(|error| {
            // The reason may quote the text.
            reading.unusable(&format!("it is no YAML: see line {}, column {}", error.line, error.column))
        })?;
        reading.configuration(&value, 0)?;
        let aliases = &config.aliases;
        for resolver in &mut config.resolvers {
            if let Some(repository) = resolved(&resolver.repository, aliases) {
                resolver.repository = repository;
            }
        }
        config.resolvers.sort_by_key(|resolver| (Reverse(resolver.priority), Reverse(resolver.prefix.len())));
        Ok(config)
    }

    /// The repositories that may have a component, in the order in which they are asked.
    pub fn repositories(&self, component: &str) -> Vec<&Value> {
        let is_for = |resolver: &&Resolver| match component.strip_prefix(resolver.prefix.as_str()) {
            Some(rest) => resolver.prefix.is_empty() || rest.is_empty() || rest.starts_with('/'),
            None => false,
        };
        self.resolvers.iter().filter(is_for).map(|resolver| &*resolver.repository).collect()
    }

    /// Bytes of memory that it takes, its credentials included.
    pub(crate) fn memory(&self) -> u64 {
        self.bytes
    }

    /// The resolvers, in the order in which they are asked.
    pub fn resolvers(&self) -> &[Resolver] {
        &self.resolvers
    }
}

/// A specification as it is used where only a name stands: the one behind an alias, or a registry of that address.
fn resolved(specification: &Value, aliases: &BTreeMap<String, Arc<Value>>) -> Option<Arc<Value>> {
    let name = specification.as_str()?;
    let registry = || Arc::new(json!({"type": "OCIRegistry", "baseUrl": name}));
    Some(aliases.get(name).cloned().unwrap_or_else(registry))
}

/// Bytes of a resolver that is a name alone, when it is a registry.
const RESOLVER: u64 = 1 << 10;

/// A type without its version.
fn type_of(value: &Value) -> &str {
    let versioned = value.get("type").and_then(Value::as_str).unwrap_or_default();
    versioned.split('/').next().unwrap_or_default()
}

fn list<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value.get(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Texts, and the numbers that people write where texts are wanted.
fn text(value: &Value, field: &str) -> Option<String> {
    match value.get(field)? {
        Value::String(text) => Some(text.trim_end_matches('\n').to_owned()).filter(|text| !text.is_empty()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

impl OcmConfigReader<'_> {
    fn unusable(&self, why: &str) -> Fault {
        let message = format!(
            "the OCM configuration in {} cannot be used: {why}; write it as the file .ocmconfig of the OCM tools is",
            self.origin
        );
        Fault::invalid(Code::ConfigurationProblem, message)
    }

    /// Counts what is about to be added.
    fn count(&mut self, bytes: u64) -> Result<(), Fault> {
        self.config.bytes = self.config.bytes.saturating_add(bytes);
        if self.config.bytes <= MOST_CREDENTIAL_BYTES {
            return Ok(());
        }
        let message = format!(
            "the OCM configuration in {} takes more than {MOST_CREDENTIAL_BYTES} bytes of memory as it is read, where \
             credentials count once for each identity; keep it shorter",
            self.origin
        );
        Err(Fault::invalid(Code::LimitExceeded, message))
    }

    fn configuration(&mut self, value: &Value, level: usize) -> Result<(), Fault> {
        if level > MOST_LEVELS {
            return Err(self.unusable(&format!("more than {MOST_LEVELS} configurations stand in one another")));
        }
        if !value.is_object() {
            return Err(self.unusable("it is no object with a type"));
        }
        match type_of(value) {
            "generic.config.ocm.software" if !self.credentials_only => {
                list(value, "configurations").iter().try_for_each(|inner| self.configuration(inner, level + 1))
            }
            "credentials.config.ocm.software" => self.credentials(value),
            "ocm.config.ocm.software" if !self.credentials_only => self.repositories(value),
            "" => Err(self.unusable("a configuration in it has no type")),
            _ => Ok(()),
        }
    }

    fn repositories(&mut self, value: &Value) -> Result<(), Fault> {
        if let Some(aliases) = value.get("aliases").and_then(Value::as_object) {
            for (name, specification) in aliases {
                self.count(memory::of_text(name.len()) + memory::of(specification))?;
                self.config.aliases.insert(name.clone(), Arc::new(specification.clone()));
            }
        }
        for (index, rule) in list(value, "resolvers").iter().enumerate() {
            let repository = rule.get("repository").filter(|specification| !specification.is_null());
            let repository = repository.ok_or_else(|| self.unusable(&format!("resolver {index} has no repository")))?;
            let prefix = text(rule, "prefix").unwrap_or_default().trim_end_matches('/').to_owned();
            let priority = rule.get("priority").and_then(Value::as_i64).unwrap_or(USUAL_PRIORITY);
            self.count(RESOLVER + memory::of_text(prefix.len()) + memory::of(repository))?;
            self.config.resolvers.push(Resolver { prefix, priority, repository: Arc::new(repository.clone()) });
        }
        Ok(())
    }

    fn credentials(&mut self, value: &Value) -> Result<(), Fault> {
        for (index, consumer) in list(value, "consumers").iter().enumerate() {
            let identities = consumer.get("identity").into_iter().chain(list(consumer, "identities"));
            for identity in identities {
                let Some(consumer_kind) = Consumer::named(type_of(identity)) else { continue };
                let login = self.login(consumer, consumer_kind, index)?;
                let scope = self.scope(identity, index)?;
                let origin = Arc::clone(&self.origin);
                let entry = KeyringEntry { consumer: consumer_kind, scope, login, origin, certificates: Vec::new() };
                self.count(entry.memory())?;
                self.config.keys.push(entry);
            }
        }
        for entry in list(value, "repositories") {
            let repository = entry.get("repository").unwrap_or(&Value::Null);
            let is_told = repository.get("propagateConsumerIdentity").and_then(Value::as_bool).unwrap_or(true);
            if type_of(repository) != "DockerConfig" || !is_told {
                continue;
            }
            let inline = repository.get("dockerConfig").ok_or_else(|| {
                self.unusable("it names a docker configuration by file; put the file's content into dockerConfig")
            })?;
            let keys = DockerConfig::of_value(inline, &self.origin)?.keys;
            self.count(keys.iter().map(KeyringEntry::memory).sum())?;
            self.config.keys.extend(keys);
        }
        Ok(())
    }

    fn scope(&self, identity: &Value, index: usize) -> Result<CredentialScope, Fault> {
        let refused = |field: &str| self.unusable(&format!("the identity of consumer {index} has no usable {field}"));
        let port = text(identity, "port").map(|port| port.parse::<u16>().map_err(|_| refused("port"))).transpose()?;
        let scheme = match text(identity, "scheme").as_deref() {
            None => None,
            Some("https") => Some(Scheme::Https),
            Some("http") => Some(Scheme::Http),
            Some(_) => return Err(refused("scheme")),
        };
        let path = text(identity, "pathprefix").unwrap_or_default().trim_matches('/').to_owned();
        let host = text(identity, "hostname").map(|host| host.to_ascii_lowercase());
        let host = host.map(|host| if host == "index.docker.io" { "docker.io".to_owned() } else { host });
        Ok(CredentialScope { host, port, scheme, path })
    }

    /// The first of a chain: the others are for reaching it.
    fn login(&self, consumer: &Value, kind_of: Consumer, index: usize) -> Result<Login, Fault> {
        let Some(first) = list(consumer, "credentials").first() else {
            return Err(self.unusable(&format!("consumer {index} has no credentials")));
        };
        if !matches!(type_of(first), "Credentials" | "DirectCredentials") {
            return Ok(Login::Elsewhere(type_of(first).chars().take(60).collect()));
        }
        let properties = first.get("properties").unwrap_or(&Value::Null);
        // A file server takes a token as it is; a registry's token service exchanges it.
        let (token, is_exchanged) = match kind_of {
            Consumer::Registry => (text(properties, "identityToken"), true),
            Consumer::Charts | Consumer::Files => (text(properties, "identityToken"), false),
            Consumer::GitHub => (text(properties, "token"), false),
        };
        if let Some(token) = token.map(SecretString::from) {
            return Ok(if is_exchanged { Login::Identity(token) } else { Login::Bearer(token) });
        }
        if let Some(token) = text(properties, "registryToken") {
            return Ok(Login::Bearer(SecretString::from(token)));
        }
        let user = match text(properties, "username") {
            Some(user) => user,
            // Certificates and the like: told where they would have been needed.
            None if kind_of != Consumer::Registry => return Ok(Login::Elsewhere("client certificate".to_owned())),
            None => {
                let why = format!("the credentials of consumer {index} have neither username nor identityToken");
                return Err(self.unusable(&why));
            }
        };
        Ok(Login::Basic { user, password: SecretString::from(text(properties, "password").unwrap_or_default()) })
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;
    use crate::oci::Keyring;

    const CONFIG: &str = r#"
type: generic.config.ocm.software/v1
configurations:
- type: credentials.config.ocm.software
  consumers:
  - identity: {type: OCIRegistry, hostname: r.example, pathprefix: /team/, port: 5000, scheme: https}
    credentials:
    - type: Credentials
      properties: {username: user, password: hunter2}
  - identity: {type: OCIRegistry, hostname: v.example}
    credentials: [{type: HashiCorpVault/v1alpha1, serverURL: "https://vault.example"}]
  - identity: {type: HelmChartRepository, hostname: charts.example}
    credentials:
    - type: Credentials
      properties: {username: charts, password: hunter4}
  - identity: {type: Github, hostname: github.com}
    credentials: [{type: Credentials, properties: {token: hunter5}}]
  - identity: {type: Buildcredentials.ocm.software, hostname: r.example}
    credentials: []
  repositories:
  - repository:
      type: DockerConfig/v1
      dockerConfig: {auths: {d.example: {auth: dXNlcjpodW50ZXIz}}}
  - repository: {type: DockerConfig/v1, dockerConfigFile: ~/.docker/config.json, propagateConsumerIdentity: false}
- type: ocm.config.ocm.software/v1
  aliases:
    main: {type: OCIRegistry, baseUrl: main.example, subPath: ocm}
  resolvers:
  - {repository: main, prefix: example.org/a}
  - {repository: {type: CommonTransportFormat, filePath: ./ctf}, prefix: example.org/a/b/}
  - {repository: first.example, priority: 20, prefix: example.org}
  - {repository: last.example, priority: 1}
- type: attributes.config.ocm.software
  attributes: {cache: ~/.ocm/cache}
"#;

    fn logins(config: OcmConfig, repository: &str) -> Vec<String> {
        let keyring = Keyring::default().with_ocm_config(&config);
        let repository = repository.parse().expect("a repository");
        let show = |login: &Login| match login {
            Login::Basic { user, password } => format!("{user} {}", password.expose_secret()),
            other => format!("{other:?}"),
        };
        keyring.matching(&repository).iter().map(|key| show(&key.login)).collect()
    }

    #[test]
    fn credentials_are_found_by_host_port_scheme_and_path() {
        let config = OcmConfig::read(CONFIG, "ConfigMap a/b").expect("a configuration");
        assert_eq!(logins(config.clone(), "r.example:5000/team/app"), ["user hunter2"]);
        assert_eq!(logins(config.clone(), "d.example/x"), ["user hunter3"]);
        assert_eq!(logins(config.clone(), "v.example/x"), ["Elsewhere(\"HashiCorpVault\")"]);
        let keyring = Keyring::default().with_ocm_config(&config);
        let of_file = |consumer, url: &str| {
            let found = keyring.matching_file(consumer, &url.parse().expect("an address"));
            found.iter().map(|key| format!("{:?}", key.consumer)).collect::<Vec<_>>()
        };
        assert_eq!(of_file(Consumer::Charts, "https://charts.example/stable/index.yaml"), ["Charts"]);
        assert_eq!(of_file(Consumer::GitHub, "https://github.com/a/b"), ["GitHub"]);
        assert_eq!(of_file(Consumer::Files, "https://charts.example/x"), Vec::<String>::new());
        assert_eq!(of_file(Consumer::Charts, "https://r.example:5000/team/"), Vec::<String>::new());
        for other in [
            "r.example/team/app",
            "charts.example/x",
            "r.example:5000/teams",
            "http://r.example:5000/team",
            "o.example/x",
        ] {
            assert_eq!(logins(config.clone(), other), Vec::<String>::new(), "{other}");
        }
    }

    #[test]
    fn resolvers_are_asked_by_priority_and_then_by_length() {
        let config = OcmConfig::read(CONFIG, "ConfigMap a/b").expect("a configuration");
        let registry = |base: &str| json!({"type": "OCIRegistry", "baseUrl": base});
        let main = json!({"type": "OCIRegistry", "baseUrl": "main.example", "subPath": "ocm"});
        let archive = json!({"type": "CommonTransportFormat", "filePath": "./ctf"});
        assert_eq!(
            config.repositories("example.org/a/b/c"),
            [&registry("first.example"), &archive, &main, &registry("last.example")]
        );
        assert_eq!(config.repositories("example.org/ab"), [&registry("first.example"), &registry("last.example")]);
        assert_eq!(config.repositories("other.org/a"), [&registry("last.example")]);
    }

    #[test]
    fn c_280_what_is_behind_an_alias_is_there_once() {
        let long = "x".repeat(400 << 10);
        let resolvers = vec![json!({"repository": "a"}); 1_000];
        let aliases = json!({"a": {"type": "OCIRegistry", "baseUrl": long}});
        let config = json!({"type": "ocm.config.ocm.software", "aliases": aliases, "resolvers": resolvers}).to_string();
        let config = OcmConfig::read(&config, "ConfigMap a/b").expect("a configuration");
        let [first, others @ ..] = config.resolvers() else { panic!("no resolver") };
        assert!(others.len() == 999 && others.iter().all(|other| Arc::ptr_eq(&other.repository, &first.repository)));
    }

    #[test]
    fn c_280_limits_registry_an_ocm_configuration_takes_so_much_memory() {
        let identity = json!({"type": "OCIRegistry", "hostname": "r.example"});
        let consumers = |identities: usize, password: usize| {
            let credentials =
                json!([{"type": "Credentials", "properties": {"username": "u", "password": "p".repeat(password)}}]);
            let consumer = json!({"identities": vec![identity.clone(); identities], "credentials": credentials});
            json!({"type": "credentials.config.ocm.software", "consumers": [consumer]})
        };
        let auths: serde_json::Map<_, _> =
            (0..20_000).map(|n| (format!("r{n}.example"), json!({"auth": "Og=="}))).collect();
        let docker = json!({"type": "DockerConfig", "dockerConfig": {"auths": auths}});
        let cases = [
            (consumers(6, 400 << 10), true),
            (consumers(4, 400 << 10), false),
            (consumers(20_000, 1), true),
            (json!({"type": "credentials.config.ocm.software", "repositories": [{"repository": docker}]}), true),
            (json!({"type": "ocm.config.ocm.software", "resolvers": vec![json!({"repository": "a"}); 2_000]}), true),
            (json!({"type": "ocm.config.ocm.software", "resolvers": vec![json!({"repository": "a"}); 1_000]}), false),
            (json!({"type": "ocm.config.ocm.software", "aliases": {"a": vec![0; 40_000]}}), true),
        ];
        for (config, is_refused) in cases {
            let read = OcmConfig::read(&config.to_string(), "ConfigMap team/ocm").map(drop);
            let why = "the OCM configuration in ConfigMap team/ocm takes more than 2097152 bytes of memory as it is read, where \
                       credentials count once for each identity; keep it shorter";
            let expected = if is_refused { Err(why.to_owned()) } else { Ok(()) };
            assert_eq!(read.map_err(|fault| fault.to_string()), expected);
        }
    }

    #[test]
    fn a_secret_adds_credentials_and_nothing_else() {
        let config = OcmConfig::read_credentials(CONFIG, "Secret a/b").expect("passed over");
        assert!(config.keys.is_empty() && config.resolvers.is_empty());
        let text = r#"{"type": "credentials.config.ocm.software", "consumers": [{"identity": {"type": "OCIRegistry",
            "hostname": "r.example"}, "credentials": [{"type": "Credentials", "properties": {"identityToken": "t"}}]}]}"#;
        let config = OcmConfig::read_credentials(text, "Secret a/b").expect("credentials");
        assert_eq!(config.keys.len(), 1);
    }

    #[test]
    fn a_broken_configuration_is_told_by_place_and_never_by_content() {
        let consumer = |identity: &str, credentials: &str| {
            let identity = format!("{{type: OCIRegistry, hostname: r.example{identity}}}");
            let consumer = format!("{{identity: {identity}, credentials: {credentials}}}");
            format!("{{type: credentials.config.ocm.software, consumers: [{consumer}]}}")
        };
        let direct = "[{type: Credentials, properties: {username: u, password: hunter2}}]";
        let mut nested = "{type: ocm.config.ocm.software}".to_owned();
        for _ in 0..10 {
            nested = format!("{{type: generic.config.ocm.software, configurations: [{nested}]}}");
        }
        let cases = [
            ("type: {hunter2".to_owned(), "no YAML: see line 1"),
            ("hunter2".to_owned(), "no object with a type"),
            ("{}".to_owned(), "has no type"),
            (consumer(", port: hunter2", direct), "consumer 0 has no usable port"),
            (consumer(", scheme: hunter2", direct), "consumer 0 has no usable scheme"),
            (consumer("", "[]"), "consumer 0 has no credentials"),
            (consumer("", "[{type: Credentials, properties: {password: hunter2}}]"), "neither username"),
            ("{type: ocm.config.ocm.software, resolvers: [{prefix: a}]}".to_owned(), "resolver 0 has no repository"),
            (nested, "more than 8 configurations"),
        ];
        for (text, expected) in cases {
            let error = OcmConfig::read(&text, "ConfigMap team/ocm").expect_err("broken").to_string();
            assert!(error.contains(expected) && error.contains("ConfigMap team/ocm"), "{text}: {error}");
            assert!(!error.contains("hunter"), "{error}");
        }
    }
}
