//! Docker's configuration file, as `kubernetes.io/dockerconfigjson` Secrets have it.

use std::{collections::BTreeMap, sync::Arc};

use data_encoding::BASE64;
use orangery_core::error::{Code, Fault};
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::Value;

use super::{Consumer, CredentialScope, KeyringEntry, Login, charts::display};
use crate::oci::reference::Scheme;

/// The credentials of one docker configuration.
#[derive(Clone, Debug, Default)]
pub struct DockerConfig {
    pub(super) keys: Vec<KeyringEntry>,
}

#[derive(Deserialize)]
struct DockerConfigFile {
    /// Empty for a file that only names programs that have the credentials: programs are never run.
    #[serde(default)]
    auths: BTreeMap<String, DockerAuth>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct DockerAuth {
    auth: Option<String>,
    username: Option<String>,
    password: Option<String>,
    identitytoken: Option<String>,
    registrytoken: Option<String>,
}

impl DockerConfig {
    /// Reads the text of a configuration file; `origin` names where it stands, such as `Secret team/pull`.
    pub fn read(text: &str, origin: &str) -> Result<Self, Fault> {
        let file = serde_json::from_str(text).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            unusable(origin, &format!("it is no docker configuration: see line {line}, column {column}"))
        })?;
        Self::of_file(file, origin)
    }

    /// The same for a configuration that was written into another file.
    pub(super) fn of_value(value: &Value, origin: &str) -> Result<Self, Fault> {
        let file = DockerConfigFile::deserialize(value);
        Self::of_file(file.map_err(|_| unusable(origin, "dockerConfig is no docker configuration"))?, origin)
    }

    fn of_file(file: DockerConfigFile, origin: &str) -> Result<Self, Fault> {
        let shared: Arc<str> = origin.into();
        let mut keys = Vec::new();
        for (server, auth) in file.auths {
            let named = || display(&server);
            let scope = scope(&server).ok_or_else(|| unusable(origin, &format!("{:?} is no registry", named())))?;
            if let Some(login) =
                login(auth).map_err(|why| unusable(origin, &format!("the entry {:?} {why}", named())))?
            {
                let (consumer, origin) = (Consumer::Registry, Arc::clone(&shared));
                keys.push(KeyringEntry { consumer, scope, login, origin, certificates: Vec::new() });
            }
        }
        Ok(Self { keys })
    }
}

fn unusable(origin: &str, why: &str) -> Fault {
    let message = format!(
        "the registry credentials in {origin} cannot be used: {why}; write them as `kubectl create secret \
         docker-registry` does"
    );
    Fault::invalid(Code::ConfigurationProblem, message)
}

/// `host`, `host:port`, `host/path`, each also as a URL; the paths of the API's versions are no paths of repositories.
fn scope(server: &str) -> Option<CredentialScope> {
    let (scheme, rest) = match server.split_once("://") {
        Some(("https", rest)) => (Some(Scheme::Https), rest),
        Some(("http", rest)) => (Some(Scheme::Http), rest),
        Some(_) => return None,
        None => (None, server),
    };
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let path = path.trim_matches('/');
    let path = ["v1", "v2"].iter().find_map(|version| path.strip_prefix(version)).map_or(path, |rest| {
        // Only a whole name is the version: `v1tools` is a repository.
        if rest.is_empty() || rest.starts_with('/') { rest.trim_matches('/') } else { path }
    });
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !host.ends_with(':') && !port.ends_with(']') => (host, Some(port.parse().ok()?)),
        _ => (authority, None),
    };
    let host = host.to_ascii_lowercase();
    let host = if host == "index.docker.io" || host == "registry-1.docker.io" { "docker.io".to_owned() } else { host };
    // A URL in a docker configuration says https for every registry: only http narrows.
    let scheme = scheme.filter(|scheme| *scheme == Scheme::Http);
    (!host.is_empty()).then(|| CredentialScope { host: Some(host), port, scheme, path: path.to_owned() })
}

/// What docker makes of an entry: tokens first, then `auth`, then user and password; nothing where all are empty.
fn login(auth: DockerAuth) -> Result<Option<Login>, &'static str> {
    let given =
        |text: Option<String>| text.map(|text| text.trim_end_matches('\n').to_owned()).filter(|t| !t.is_empty());
    if let Some(token) = given(auth.identitytoken) {
        return Ok(Some(Login::Identity(SecretString::from(token))));
    }
    if let Some(token) = given(auth.registrytoken) {
        return Ok(Some(Login::Bearer(SecretString::from(token))));
    }
    if let Some(encoded) = given(auth.auth) {
        let bytes = BASE64.decode(encoded.as_bytes()).map_err(|_| "has an auth that is not base64")?;
        let text = String::from_utf8(bytes).map_err(|_| "has an auth that is not UTF-8")?;
        let (user, password) = text.split_once(':').ok_or("has an auth without a colon between user and password")?;
        // Docker pads old entries with zero bytes.
        let password = SecretString::from(password.trim_end_matches('\0'));
        return Ok(Some(Login::Basic { user: user.to_owned(), password }));
    }
    let (Some(user), password) = (given(auth.username), given(auth.password)) else { return Ok(None) };
    Ok(Some(Login::Basic { user, password: SecretString::from(password.unwrap_or_default()) }))
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;

    fn logins(text: &str) -> Vec<String> {
        let show = |key: &KeyringEntry| match &key.login {
            Login::Basic { user, password } => format!("basic {user} {}", password.expose_secret()),
            Login::Identity(token) => format!("identity {}", token.expose_secret()),
            Login::Bearer(token) => format!("bearer {}", token.expose_secret()),
            Login::Elsewhere(kind) => format!("elsewhere {kind}"),
            Login::Anonymous => "anonymous".to_owned(),
        };
        DockerConfig::read(text, "Secret a/b").expect("a configuration").keys.iter().map(show).collect()
    }

    #[test]
    fn all_forms_of_an_entry_are_understood() {
        let text = r#"{"auths": {
            "a.example": {"auth": "dXNlcjpwYXNzOndvcmQ=", "username": "overridden"},
            "b.example": {"username": "user", "password": "pass\n"},
            "c.example": {"auth": "PHRva2VuPjo=", "identitytoken": "abc"},
            "d.example": {"registrytoken": "def", "email": "x@y.example"},
            "e.example": {},
            "f.example": {"username": "user"}
        }, "credsStore": "desktop", "HttpHeaders": {"User-Agent": "x"}}"#;
        assert_eq!(
            logins(text),
            ["basic user pass:word", "basic user pass", "identity abc", "bearer def", "basic user "]
        );
        assert_eq!(logins(r#"{"credsStore": "desktop"}"#), Vec::<String>::new());
    }

    #[test]
    fn scopes_are_read_from_hosts_and_urls() {
        let of = |host: &str, port, scheme, path: &str| {
            Some(CredentialScope { host: Some(host.to_owned()), port, scheme, path: path.to_owned() })
        };
        assert_eq!(scope("R.example"), of("r.example", None, None, ""));
        assert_eq!(scope("https://r.example:5000/v2/"), of("r.example", Some(5000), None, ""));
        assert_eq!(scope("http://r.example/v1/a/b/"), of("r.example", None, Some(Scheme::Http), "a/b"));
        assert_eq!(scope("r.example/v1tools"), of("r.example", None, None, "v1tools"));
        assert_eq!(scope("[::1]:5000"), of("[::1]", Some(5000), None, ""));
        assert_eq!(scope("[::1]"), of("[::1]", None, None, ""));
        assert_eq!(scope("https://index.docker.io/v1/"), of("docker.io", None, None, ""));
        assert_eq!([scope(""), scope("ftp://r.example"), scope("r.example:x")], [None, None, None]);
    }

    #[test]
    fn a_broken_configuration_is_told_by_place_and_never_by_content() {
        let cases = [
            (r#"{"auths": "hunter2"}"#, "line 1, column 19"),
            (
                r#"{"auths": {"a.example": {"auth": "hunter2!"}}}"#,
                "the entry \"a.example\" has an auth that is not base64",
            ),
            (r#"{"auths": {"a.example": {"auth": "aHVudGVyMg=="}}}"#, "an auth without a colon"),
            (r#"{"auths": {"a.example": {"password": ["hunter2"]}}}"#, "line 1, column"),
            ("hunter2", "line 1, column 1"),
        ];
        for (text, expected) in cases {
            let error = DockerConfig::read(text, "Secret team/pull").expect_err("broken").to_string();
            assert!(error.contains(expected) && error.contains("Secret team/pull"), "{error}");
            assert!(!error.contains("hunter"), "{error}");
        }
    }
}
