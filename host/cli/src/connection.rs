//! Which cluster a command talks to, and the sentences for when it cannot.

pub(crate) mod reads;

use std::{collections::BTreeSet, io, path::PathBuf};

use clap::Args;
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig, KubeconfigError},
};
use orangery_core::name::Namespace;

/// Which cluster: kubectl's own options.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Cluster")]
pub struct Connection {
    /// Kubeconfig file [default: $KUBECONFIG, ~/.kube/config, or the cluster this runs in]
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig [default: its current one]
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
}

/// One namespace.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Cluster")]
pub struct NamespaceScope {
    /// Namespace [default: that of the context]
    #[arg(short, long, value_name = "NAMESPACE", value_parser = str::parse::<Namespace>)]
    pub namespace: Option<Namespace>,
}

impl NamespaceScope {
    /// The namespace meant.
    pub fn namespace(&self, client: &Client) -> Namespace {
        self.namespace.clone().unwrap_or_else(|| client.default_namespace().into())
    }
}

/// Why no connection can be made.
#[derive(Debug, thiserror::Error)]
pub enum ConnectionError {
    /// No kubeconfig, and not inside a cluster.
    #[error(
        "no cluster is configured: there is no kubeconfig and this is no pod; set KUBECONFIG or pass --kubeconfig FILE \
         (orangery up prints the path of its own)"
    )]
    NoCluster,
    /// A named kubeconfig does not exist.
    #[error("the kubeconfig {} does not exist; correct --kubeconfig or KUBECONFIG", path.display())]
    NoFile {
        /// The file.
        path: PathBuf,
    },
    /// The kubeconfig does not have the context.
    #[error("the kubeconfig has no context {name:?}; {}", known(contexts))]
    NoContext {
        /// The context asked for.
        name: String,
        /// Those that it has.
        contexts: BTreeSet<String>,
    },
    /// The kubeconfig has no current context, and none was asked for.
    #[error("the kubeconfig has no current context; pass --context NAME; {}", known(contexts))]
    NoCurrentContext {
        /// The contexts that it has.
        contexts: BTreeSet<String>,
    },
    /// The kubeconfig cannot be used.
    #[error("the kubeconfig cannot be used: {0}; correct it, or choose another with --kubeconfig")]
    Unusable(#[source] KubeconfigError),
    /// The client cannot be made of it.
    #[error("no client can be made of the kubeconfig: {0}; correct its certificates and users")]
    Client(#[source] kube::Error),
}

fn known(contexts: &BTreeSet<String>) -> String {
    if contexts.is_empty() {
        return "it has none".to_owned();
    }
    let names: Vec<&str> = contexts.iter().map(String::as_str).collect();
    format!("it has {}", names.join(", "))
}

impl Connection {
    /// The configuration of the cluster meant: the file and context named, else `KUBECONFIG`, else `~/.kube/config`,
    /// else the cluster that the process runs in.
    pub async fn config(&self) -> Result<Config, ConnectionError> {
        let kubeconfig = match &self.kubeconfig {
            Some(path) => Kubeconfig::read_from(path),
            None => Kubeconfig::read(),
        };
        match kubeconfig {
            Ok(kubeconfig) => self.in_context(kubeconfig).await,
            Err(error) if self.kubeconfig.is_none() && self.context.is_none() && is_absent(&error) => {
                Config::incluster().map_err(|_| ConnectionError::NoCluster)
            }
            Err(KubeconfigError::FindPath) => Err(ConnectionError::NoCluster),
            Err(KubeconfigError::ReadConfig(error, path)) if error.kind() == io::ErrorKind::NotFound => {
                Err(ConnectionError::NoFile { path })
            }
            Err(error) => Err(ConnectionError::Unusable(error)),
        }
    }

    /// A client of the cluster meant. Nothing is sent yet.
    pub async fn client(&self) -> Result<Client, ConnectionError> {
        Client::try_from(self.config().await?).map_err(ConnectionError::Client)
    }

    async fn in_context(&self, kubeconfig: Kubeconfig) -> Result<Config, ConnectionError> {
        let contexts: BTreeSet<String> = kubeconfig.contexts.iter().map(|context| context.name.clone()).collect();
        match self.context.as_ref().or(kubeconfig.current_context.as_ref()) {
            None => return Err(ConnectionError::NoCurrentContext { contexts }),
            Some(name) if !contexts.contains(name) => {
                return Err(ConnectionError::NoContext { name: name.clone(), contexts });
            }
            Some(_) => {}
        }
        let options = KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
        let names_proxy = names_proxy(&kubeconfig, self.context.as_deref());
        let mut config =
            Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(ConnectionError::Unusable)?;
        // Those that the environment names are for others, and no client could be made with one.
        config.proxy_url = config.proxy_url.filter(|_| names_proxy);
        Ok(config)
    }
}

/// Whether the cluster of the context asked for, else of the current one, names a proxy.
fn names_proxy(kubeconfig: &Kubeconfig, context: Option<&str>) -> bool {
    let context = context.or(kubeconfig.current_context.as_deref());
    let context = kubeconfig.contexts.iter().find(|of| Some(of.name.as_str()) == context);
    let cluster = context.and_then(|of| of.context.as_ref()).map(|of| of.cluster.as_str());
    let cluster = kubeconfig.clusters.iter().find(|of| Some(of.name.as_str()) == cluster);
    cluster.and_then(|of| of.cluster.as_ref()).is_some_and(|of| of.proxy_url.is_some())
}

/// Whether there is simply no kubeconfig: nobody named one.
fn is_absent(error: &KubeconfigError) -> bool {
    match error {
        KubeconfigError::FindPath => true,
        KubeconfigError::ReadConfig(error, _) => {
            error.kind() == io::ErrorKind::NotFound && std::env::var_os("KUBECONFIG").is_none()
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn a_kubeconfig_that_does_not_exist_is_named() {
        let connection = Connection { kubeconfig: Some(PathBuf::from("/no/such/file")), context: None };
        let error = connection.config().await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "the kubeconfig /no/such/file does not exist; correct --kubeconfig or KUBECONFIG"
        );
    }

    #[tokio::test]
    async fn an_unknown_context_is_told_with_the_known_ones() {
        let kubeconfig: Kubeconfig = serde_json::from_value(json!({
            "current-context": "a",
            "contexts": [
                {"name": "b", "context": {"cluster": "c", "user": "u"}},
                {"name": "a", "context": {"cluster": "c", "user": "u"}},
            ],
            "clusters": [{"name": "c", "cluster": {"server": "https://localhost:1"}}],
            "users": [{"name": "u", "user": {}}],
        }))
        .unwrap();
        let named = |context: &str| Connection { kubeconfig: None, context: Some(context.to_owned()) };
        let error = named("z").in_context(kubeconfig.clone()).await.unwrap_err();
        assert_eq!(error.to_string(), "the kubeconfig has no context \"z\"; it has a, b");
        let config = named("b").in_context(kubeconfig).await.unwrap();
        assert_eq!(config.cluster_url.to_string(), "https://localhost:1/");
    }
}
