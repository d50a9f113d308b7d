//! Which cluster a command talks to, and the sentences for when it cannot.

use std::{collections::BTreeSet, error::Error as _, io, path::PathBuf};

use clap::Args;
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig, KubeconfigError},
};

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
pub struct Scope {
    /// Namespace [default: that of the context]
    #[arg(short, long, value_name = "NAMESPACE")]
    pub namespace: Option<String>,
}

impl Scope {
    /// The namespace meant.
    pub fn namespace<'a>(&'a self, client: &'a Client) -> &'a str {
        self.namespace.as_deref().unwrap_or_else(|| client.default_namespace())
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
        Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(ConnectionError::Unusable)
    }
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

/// Why a call to the cluster did not do what it was for.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// No answer.
    #[error("the cluster cannot be reached: {cause}; check that it runs, and that this is its kubeconfig")]
    Unreachable {
        /// The deepest cause.
        cause: String,
    },
    /// Not known to the cluster.
    #[error("the cluster does not accept the credentials of the kubeconfig; log in again, or choose another context")]
    Unauthorized,
    /// Not allowed.
    #[error("{message}; ask for that permission, or choose another user")]
    Forbidden {
        /// What the server says: who may not do what.
        message: String,
    },
    /// The kind is not served.
    #[error(
        "the cluster does not know {kind} of {group}; install the kinds: orangery crd | kubectl apply --server-side -f -"
    )]
    NotServed {
        /// The kind.
        kind: String,
        /// Its API group.
        group: String,
    },
    /// There is no such object.
    #[error("there is no {kind} {name} in namespace {namespace}; orangery inspect -A shows all there are")]
    NotFound {
        /// The kind, in lower case.
        kind: String,
        /// The namespace looked into.
        namespace: String,
        /// The name.
        name: String,
    },
    /// Somebody else changed the object in between.
    #[error("{message}; somebody else changes the same object, try again")]
    Conflict {
        /// What the server says.
        message: String,
    },
    /// The server refuses for another reason.
    #[error("the cluster refuses: {message} (HTTP {code})")]
    Refused {
        /// What the server says.
        message: String,
        /// The HTTP status.
        code: u16,
    },
    /// The answer is not what was asked for.
    #[error(
        "the cluster's answer cannot be read: {0}; the kinds may be of another version: orangery crd | kubectl apply --server-side -f -"
    )]
    Answer(#[source] serde_json::Error),
}

/// What a call was about, for its errors.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The kind.
    pub kind: &'a str,
    /// Its API group.
    pub group: &'a str,
    /// The namespace.
    pub namespace: &'a str,
    /// The name; empty for a list.
    pub name: &'a str,
}

impl CallError {
    /// Classifies an error of the client.
    pub fn of(subject: Subject<'_>, error: kube::Error) -> Self {
        let status = match error {
            kube::Error::Api(status) => status,
            kube::Error::SerdeError(error) => return CallError::Answer(error),
            other => return CallError::Unreachable { cause: deepest(&other) },
        };
        let message = status.message.clone();
        match status.code {
            401 => CallError::Unauthorized,
            403 => CallError::Forbidden { message },
            404 if status.details.as_ref().is_some_and(|details| !details.name.is_empty()) => CallError::NotFound {
                kind: subject.kind.to_lowercase(),
                namespace: subject.namespace.to_owned(),
                name: subject.name.to_owned(),
            },
            404 => CallError::NotServed { kind: subject.kind.to_owned(), group: subject.group.to_owned() },
            409 => CallError::Conflict { message },
            code => CallError::Refused { message, code },
        }
    }

    /// Whether asking again may help: a server that starts or is busy.
    pub fn may_pass(&self) -> bool {
        match self {
            CallError::Unreachable { .. } => true,
            CallError::Refused { code, .. } => *code == 429 || *code >= 500,
            CallError::Unauthorized
            | CallError::Forbidden { .. }
            | CallError::NotServed { .. }
            | CallError::NotFound { .. }
            | CallError::Conflict { .. }
            | CallError::Answer(_) => false,
        }
    }
}

/// The deepest cause says what is wrong; those above only say where.
fn deepest(error: &kube::Error) -> String {
    let mut cause = error.source();
    let mut text = error.to_string();
    while let Some(error) = cause {
        text = error.to_string();
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use kube::core::Status;
    use serde_json::json;

    use super::*;

    const SUBJECT: Subject<'_> =
        Subject { kind: "Installation", group: "landscaper.gardener.cloud", namespace: "default", name: "hello" };

    fn sentence(status: serde_json::Value) -> String {
        let status: Status = serde_json::from_value(status).unwrap();
        CallError::of(SUBJECT, kube::Error::Api(Box::new(status))).to_string()
    }

    #[test]
    fn a_missing_object_and_a_missing_kind_are_told_apart() {
        assert_eq!(
            sentence(json!({"code": 404, "message": "x", "reason": "NotFound", "details": {"name": "hello"}})),
            "there is no installation hello in namespace default; orangery inspect -A shows all there are"
        );
        assert_eq!(
            sentence(json!({"code": 404, "message": "404 page not found"})),
            "the cluster does not know Installation of landscaper.gardener.cloud; install the kinds: orangery crd | \
             kubectl apply --server-side -f -"
        );
    }

    #[test]
    fn refusals_carry_what_the_server_says() {
        assert_eq!(
            sentence(json!({"code": 403, "message": "user x may not list installations"})),
            "user x may not list installations; ask for that permission, or choose another user"
        );
        assert_eq!(
            sentence(json!({"code": 422, "message": "spec: Required"})),
            "the cluster refuses: spec: Required (HTTP 422)"
        );
    }

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
