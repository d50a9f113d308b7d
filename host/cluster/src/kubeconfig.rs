//! Kubeconfigs of targets: what they may hold, and the client made from one (`docs/wire.md` §1.4).
//!
//! A target's kubeconfig comes from a user, and the host acts on it: nothing in it may read a file of the host, run a
//! program there, or act as somebody else.

use std::{sync::Arc, time::Duration};

use http::{HeaderValue, Uri};
use hyper_timeout::TimeoutConnector;
use hyper_util::rt::TokioExecutor;
use kube::{
    Client, Config,
    client::ConfigExt as _,
    config::{AuthInfo, KubeConfigOptions, Kubeconfig},
};
use orangery_core::{
    error::{Code, Failure},
    network::AllowedNetworks,
    step::Halt,
    yaml::{self, YamlError, YamlFault},
};
use orangery_egress::EgressConnector;
use orangery_turns::Tenant;
use secrecy::{ExposeSecret as _, SecretString};
use tower::{BoxError, ServiceBuilder};

use crate::answer::BoundedAnswers;

/// The most bytes of a kubeconfig.
pub const MOST_KUBECONFIG_BYTES: usize = 1 << 20;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Why a kubeconfig is not used. Never quotes it.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum KubeconfigError {
    /// It does not parse.
    #[error("the kubeconfig of the target cannot be read; it has to be a kubeconfig as YAML or JSON")]
    Unreadable,
    /// It has too many bytes.
    #[error(
        "the kubeconfig of the target has {bytes} bytes, {MOST_KUBECONFIG_BYTES} are allowed; leave out what its current context \
         does not name"
    )]
    TooLarge {
        /// How many it has.
        bytes: usize,
    },
    /// Its aliases unfold to too much, or it is too deep.
    #[error("the kubeconfig of the target is beyond what is allowed: {0}")]
    Unfolded(YamlFault),
    /// It holds what is not allowed.
    #[error(
        "{what} is not allowed in the kubeconfig of a target (user {user:?}); allowed are client-certificate-data, \
         client-key-data, token, username and password"
    )]
    User {
        /// The field.
        what: &'static str,
        /// The name of the user in the kubeconfig.
        user: String,
    },
    /// A certificate authority is a file of the host.
    #[error(
        "certificate-authority is not allowed in the kubeconfig of a target (cluster {cluster:?}), because it names a \
         file; use certificate-authority-data"
    )]
    AuthorityFile {
        /// The name of the cluster in the kubeconfig.
        cluster: String,
    },
    /// It names a proxy.
    #[error(
        "proxy-url is not allowed in the kubeconfig of a target (cluster {cluster:?}): the host connects to the cluster itself"
    )]
    Proxy {
        /// The name of the cluster in the kubeconfig.
        cluster: String,
    },
    /// The address of a server has more than where it is: messages show it.
    #[error(
        "a user, a password, a query or a fragment is not allowed in the server of a target (cluster {cluster:?}); credentials \
         are what its user has: token, username and password, or client-certificate-data and client-key-data"
    )]
    ServerAddress {
        /// The name of the cluster in the kubeconfig.
        cluster: String,
    },
    /// Its token cannot stand in a request.
    #[error(
        "the token in the kubeconfig of a target (user {user:?}) has characters that no token has, such as an end of line in the \
         middle; write the token as it was issued, on one line"
    )]
    Token {
        /// The name of the user in the kubeconfig.
        user: String,
    },
    /// It does not lead to a cluster.
    #[error(
        "the kubeconfig of the target leads to no cluster: its current context, cluster, user or their data is missing or wrong"
    )]
    Incomplete,
}

impl From<KubeconfigError> for Halt {
    fn from(error: KubeconfigError) -> Self {
        Halt::Stall(
            Failure::new("ConnectTarget", "InvalidKubeconfig", error.to_string()).with_code(Code::ConfigurationProblem),
        )
    }
}

/// What a kubeconfig leads to.
pub(crate) struct KubeconfigClient {
    pub(crate) client: Client,
    /// How messages name the cluster.
    pub(crate) address: String,
    /// How its server is reached: whoever has the same asks the same server, with whatever credentials. What is below the
    /// root of a server may be another one, and so may be one of another name in TLS.
    pub(crate) reached: String,
}

/// A client for a kubeconfig, whose connections go to these networks alone. The name of its server is looked up for `tenant`.
pub(crate) async fn client(
    text: &str,
    networks: &Arc<AllowedNetworks>,
    tenant: &Tenant,
) -> Result<KubeconfigClient, KubeconfigError> {
    let kubeconfig = read(text)?;
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .map_err(|_source| KubeconfigError::Incomplete)?;
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    // Of the environment, as the one of the kubeconfig is refused: it would be asked to connect where the host may not.
    config.proxy_url = None;
    // The loop tries again with backoff; the client's own retries would hold a reconcile for minutes.
    config.default_retry = false;
    let address = config.cluster_url.to_string();
    let address = address.trim_end_matches('/');
    let reached = format!("{address} {}", config.tls_server_name.as_deref().unwrap_or_default());
    let client = connected(&config, networks, tenant).map_err(|_source| KubeconfigError::Incomplete)?;
    Ok(KubeconfigClient { client, address: format!("cluster {address}"), reached })
}

/// A kubeconfig with nothing but what its current context names.
///
/// # Errors
/// The kubeconfig is not used.
pub fn in_use(text: &str) -> Result<String, KubeconfigError> {
    serde_json::to_string(&in_current_context(text)?).map_err(|_source| KubeconfigError::Incomplete)
}

fn in_current_context(text: &str) -> Result<Kubeconfig, KubeconfigError> {
    let mut kubeconfig = read(text)?;
    let current = kubeconfig.current_context.clone().ok_or(KubeconfigError::Incomplete)?;
    kubeconfig.contexts.retain(|named| named.name == current);
    let context =
        kubeconfig.contexts.first().and_then(|named| named.context.as_ref()).ok_or(KubeconfigError::Incomplete)?;
    kubeconfig.clusters.retain(|named| named.name == context.cluster);
    kubeconfig.auth_infos.retain(|named| Some(&named.name) == context.user.as_ref());
    (kubeconfig.preferences, kubeconfig.extensions) = (None, None);
    kubeconfig.other.clear();
    Ok(kubeconfig)
}

/// The address of the cluster that a kubeconfig leads to, as policies name it: scheme, host and port.
///
/// # Errors
/// The kubeconfig is not used.
pub fn server_of(text: &str) -> Result<String, KubeconfigError> {
    let named = in_current_context(text)?.clusters.into_iter().next();
    server_at(&named.and_then(|named| named.cluster?.server).ok_or(KubeconfigError::Incomplete)?)
}

/// The server at an address, as policies name it: scheme, host and port.
///
/// # Errors
/// It is no address of a server.
pub fn server_at(address: &str) -> Result<String, KubeconfigError> {
    let address: Uri = address.parse().map_err(|_source| KubeconfigError::Incomplete)?;
    let (Some(scheme), Some(host)) = (address.scheme_str(), address.host()) else {
        return Err(KubeconfigError::Incomplete);
    };
    let scheme = scheme.to_ascii_lowercase();
    let port = address.port_u16().unwrap_or(if scheme == "http" { 80 } else { 443 });
    Ok(format!("{scheme}://{}:{port}", host.to_ascii_lowercase().trim_end_matches('.')))
}

/// A client as kube makes it, whose connections go only where a client of the host may connect to, and whoever asks (C-101).
fn connected(config: &Config, networks: &Arc<AllowedNetworks>, tenant: &Tenant) -> Result<Client, kube::Error> {
    let egress = EgressConnector::new(config.connect_timeout, networks, tenant);
    let https = config.rustls_https_connector_with_connector(egress)?;
    let mut connector = TimeoutConnector::new(https);
    connector.set_connect_timeout(config.connect_timeout);
    let client = hyper_util::client::legacy::Client::builder(TokioExecutor::new()).build(connector);
    let service = ServiceBuilder::new()
        .layer(BoundedAnswers)
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(client);
    Ok(Client::new(service, config.default_namespace.clone()))
}

pub(crate) fn read(text: &str) -> Result<Kubeconfig, KubeconfigError> {
    if text.len() > MOST_KUBECONFIG_BYTES {
        return Err(KubeconfigError::TooLarge { bytes: text.len() });
    }
    // The client's own decoder has no limits; what is wrong otherwise it says itself.
    if let Err(YamlError { reason, .. }) = yaml::documents(text)
        && matches!(reason, YamlFault::Unfolded | YamlFault::TooDeep | YamlFault::TooLarge | YamlFault::RecursiveAlias)
    {
        return Err(KubeconfigError::Unfolded(reason));
    }
    let mut kubeconfig = Kubeconfig::from_yaml(text).map_err(|_source| KubeconfigError::Unreadable)?;
    for named in &kubeconfig.clusters {
        if named.cluster.as_ref().is_some_and(|cluster| cluster.certificate_authority.is_some()) {
            return Err(KubeconfigError::AuthorityFile { cluster: named.name.clone() });
        }
        if named.cluster.as_ref().and_then(|cluster| cluster.server.as_deref()).is_some_and(has_more_than_a_place) {
            return Err(KubeconfigError::ServerAddress { cluster: named.name.clone() });
        }
        if named.cluster.as_ref().is_some_and(|cluster| cluster.proxy_url.is_some()) {
            return Err(KubeconfigError::Proxy { cluster: named.name.clone() });
        }
    }
    for named in &kubeconfig.auth_infos {
        if let Some(what) = named.auth_info.as_ref().and_then(refused) {
            return Err(KubeconfigError::User { what, user: named.name.clone() });
        }
    }
    for named in &mut kubeconfig.auth_infos {
        if let Some(token) = named.auth_info.as_mut().and_then(|user| user.token.as_mut()) {
            *token = usable(token).ok_or_else(|| KubeconfigError::Token { user: named.name.clone() })?;
        }
    }
    Ok(kubeconfig)
}

/// Whether an address has a user, a query or a fragment.
fn has_more_than_a_place(server: &str) -> bool {
    server.contains(['?', '#'])
        || server.split("://").last().and_then(|rest| rest.split('/').next()).is_some_and(|it| it.contains('@'))
}

/// A token without the ends of line that a block of YAML puts behind it; `None` where it cannot stand in a header: the client would
/// panic (C-156).
fn usable(token: &SecretString) -> Option<SecretString> {
    let token = token.expose_secret().trim_end_matches(['\r', '\n']);
    HeaderValue::from_str(token).ok().map(|_| SecretString::from(token))
}

fn refused(user: &AuthInfo) -> Option<&'static str> {
    let impersonates = user.impersonate.is_some()
        || user.impersonate_uid.is_some()
        || user.impersonate_groups.is_some()
        || user.impersonate_user_extra.is_some();
    [
        (user.exec.is_some(), "exec"),
        (user.auth_provider.is_some(), "auth-provider"),
        (user.client_certificate.is_some(), "client-certificate"),
        (user.client_key.is_some(), "client-key"),
        (user.token_file.is_some(), "tokenFile"),
        (impersonates, "impersonation (as)"),
    ]
    .into_iter()
    .find(|(present, _)| *present)
    .map(|(_, what)| what)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn c_129_an_address_of_a_server_that_may_hold_credentials_is_refused_and_not_shown() {
        let with = |server: &str| {
            let text =
                format!("apiVersion: v1\nkind: Config\nclusters: [{{name: c, cluster: {{server: {server:?}}}}}]\n");
            read(&text).map(drop)
        };
        let secret = "s3cret";
        for server in [
            format!("https://user:{secret}@a.example:6443"),
            format!("https://{secret}@a.example/path"),
            format!("https://a.example/path?key={secret}"),
            format!("https://a.example/#{secret}"),
            format!("user:{secret}@a.example"),
        ] {
            let refused = with(&server).unwrap_err();
            assert_eq!(refused, KubeconfigError::ServerAddress { cluster: "c".to_owned() }, "{server}");
            assert!(!refused.to_string().contains(secret), "{refused}");
        }
        for server in ["https://a.example:6443", "https://a.example/k8s/clusters/c-1@2", "http://[::1]:80"] {
            assert_eq!(with(server), Ok(()), "{server}");
        }
    }

    #[test]
    fn c_129_of_a_kubeconfig_only_what_its_current_context_names_is_in_use() {
        let of = |part: fn(&str) -> Value| ["a", "b"].map(part);
        let contexts = of(|name| json!({"name": name, "context": {"cluster": name, "user": name, "namespace": "n"}}));
        let clusters = of(|name| {
            let server = format!("https://{name}");
            json!({"name": name, "cluster": {"server": server, "certificate-authority-data": "Q0E="}})
        });
        let users = of(|name| json!({"name": name, "user": {"token": format!("token-{name}")}}));
        let text = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "b", "padding": "x".repeat(1000),
            "preferences": {"colors": true}, "extensions": [{"name": "e", "extension": {"x": "y"}}],
            "contexts": contexts, "clusters": clusters, "users": users,
        });
        let used: Value = serde_json::from_str(&in_use(&text.to_string()).unwrap()).unwrap();
        let expected = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "b",
            "contexts": [{"name": "b", "context": {"cluster": "b", "user": "b", "namespace": "n"}}],
            "clusters": [{"name": "b", "cluster": {"server": "https://b", "certificate-authority-data": "Q0E="}}],
            "users": [{"name": "b", "user": {"token": "token-b"}}],
        });
        assert_eq!(used, expected);
        assert_eq!(in_use("{}"), Err(KubeconfigError::Incomplete));
    }

    #[test]
    fn limits_kubeconfig_size_and_depth_are_bounded() {
        let large = format!("apiVersion: v1\npreferences: {{a: {}}}\n", "x".repeat(MOST_KUBECONFIG_BYTES));
        assert_eq!(read(&large).map(drop), Err(KubeconfigError::TooLarge { bytes: large.len() }));
        let aliases = format!("a: &a {}\nextensions: [{}]\n", "x".repeat(50 << 10), "*a, ".repeat(12_000));
        assert_eq!(read(&aliases).map(drop), Err(KubeconfigError::Unfolded(YamlFault::Unfolded)));
        let deep = format!("preferences: {}{}", "[".repeat(200), "]".repeat(200));
        assert_eq!(read(&deep).map(drop), Err(KubeconfigError::Unfolded(YamlFault::TooDeep)));
        let message = KubeconfigError::Unfolded(YamlFault::TooDeep).to_string();
        assert_eq!(
            message,
            "the kubeconfig of the target is beyond what is allowed: values stand more than the 128 levels deep in each other \
             that are allowed"
        );
    }

    fn kubeconfig(user: &str) -> String {
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
             clusters: [{{name: k, cluster: {{server: 'https://127.0.0.1:1'}}}}]\n\
             contexts: [{{name: c, context: {{cluster: k, user: u}}}}]\n\
             users: [{{name: u, user: {user}}}]\n"
        )
    }

    #[test]
    fn the_address_of_a_cluster_has_scheme_host_and_port() {
        let with = |server: &str| server_of(&kubeconfig("{token: t}").replace("https://127.0.0.1:1", server));
        for (server, address) in [
            ("https://127.0.0.1:1", "https://127.0.0.1:1"),
            ("https://Example.ORG", "https://example.org:443"),
            ("http://example.org./api/x=.acme.org", "http://example.org:80"),
            ("https://example.org:6443/", "https://example.org:6443"),
            ("https://[::1]:6443", "https://[::1]:6443"),
        ] {
            assert_eq!(with(server).as_deref(), Ok(address), "{server}");
        }
        assert_eq!(with("/api"), Err(KubeconfigError::Incomplete));
        let other = kubeconfig("{token: t}").replace("current-context: c", "current-context: d");
        assert_eq!(server_of(&other), Err(KubeconfigError::Incomplete));
    }

    #[track_caller]
    fn check(user: &str, expected: Option<&'static str>) {
        let found = read(&kubeconfig(user)).err();
        assert_eq!(found, expected.map(|what| KubeconfigError::User { what, user: "u".into() }), "{user}");
    }

    #[test]
    fn files_programs_and_other_identities_are_refused() {
        check("{token: t}", None);
        check("{username: a, password: b}", None);
        check("{client-certificate-data: YQ==, client-key-data: YQ==}", None);
        check("{exec: {command: rm}}", Some("exec"));
        check("{auth-provider: {name: gcp}}", Some("auth-provider"));
        check("{client-certificate: /etc/cert}", Some("client-certificate"));
        check("{client-key: /etc/key}", Some("client-key"));
        check("{tokenFile: /var/run/token}", Some("tokenFile"));
        check("{as: root}", Some("impersonation (as)"));
        check("{as-groups: [system:masters]}", Some("impersonation (as)"));
    }

    #[tokio::test]
    async fn c_156_a_token_that_no_header_takes_is_refused_and_an_end_of_line_behind_it_is_none_of_it() {
        for token in [r"a\nb", r"a\0", r"\na", r"a\tb\u0001", r"\x7f", r"a\r\nx-other: b"] {
            let text = kubeconfig(&format!("{{token: \"{token}\"}}"));
            let refused = client(&text, &Arc::default(), &None).await.err();
            assert_eq!(refused, Some(KubeconfigError::Token { user: "u".into() }), "{token}");
        }
        assert_eq!(
            KubeconfigError::Token { user: "u".into() }.to_string(),
            "the token in the kubeconfig of a target (user \"u\") has characters that no token has, such as an end of line in \
             the middle; write the token as it was issued, on one line"
        );
        for token in [r"a\n", r"a\r\n\n", "a", ""] {
            let read = read(&kubeconfig(&format!("{{token: \"{token}\"}}"))).unwrap();
            let user = read.auth_infos[0].auth_info.as_ref().unwrap();
            assert_eq!(user.token.as_ref().unwrap().expose_secret(), token.get(..1).unwrap_or_default(), "{token}");
            assert!(client(&kubeconfig(&format!("{{token: \"{token}\"}}")), &Arc::default(), &None).await.is_ok());
        }
        // These are encoded before they stand in a header.
        assert!(client(&kubeconfig(r#"{username: "a\nb", password: "\0"}"#), &Arc::default(), &None).await.is_ok());
    }

    #[test]
    fn a_file_as_authority_is_refused() {
        let text = "clusters: [{name: k, cluster: {server: 'https://x', certificate-authority: /etc/ca}}]";
        assert_eq!(read(text).err(), Some(KubeconfigError::AuthorityFile { cluster: "k".into() }));
        let text = "clusters: [{name: k, cluster: {server: 'https://x', proxy-url: 'http://169.254.169.254'}}]";
        assert_eq!(read(text).err(), Some(KubeconfigError::Proxy { cluster: "k".into() }));
    }

    #[test]
    fn what_is_no_kubeconfig_is_not_quoted() {
        let error = read("token: [hunter2").unwrap_err();
        assert_eq!(error, KubeconfigError::Unreadable);
        assert!(!error.to_string().contains("hunter2"));
    }

    #[tokio::test]
    async fn a_kubeconfig_without_a_context_leads_nowhere() {
        assert_eq!(
            client("apiVersion: v1\nkind: Config\n", &Arc::default(), &None).await.err(),
            Some(KubeconfigError::Incomplete)
        );
    }

    #[tokio::test]
    async fn a_client_knows_its_address() {
        let connection = client(&kubeconfig("{token: t}"), &Arc::default(), &None).await.unwrap();
        assert_eq!(connection.address, "cluster https://127.0.0.1:1");
    }
}
