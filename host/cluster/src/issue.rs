//! Credentials that templates ask for: kubeconfigs with a token of a service account, or of a Gardener shoot's
//! administrator (`docs/wire.md` §4.5).

use std::sync::Arc;

use data_encoding::BASE64;
use kube::config::{AuthInfo, Context, Kubeconfig, NamedAuthInfo, NamedContext};
use orangery_core::{
    error::{Code, Fault},
    name::{Namespace, ObjectName, is_path_segment},
    network::AllowedNetworks,
    step::Halt,
};
use orangery_proposal::{ObjectKey, deployer::ApiResource};
use orangery_turns::Tenant;
use serde_json::{Value, json};

use crate::{Cluster, Error, cluster::at, error, kubeconfig};

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Credential {
    /// For whom.
    pub subject: Subject,
    /// The name of the service account or shoot.
    pub name: ObjectName,
    /// Its namespace on the cluster.
    pub namespace: Namespace,
    /// How long it is good, in seconds.
    pub seconds: i64,
}

/// For whom a credential is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// A service account of the cluster, by TokenRequest.
    ServiceAccount,
    /// The administrator of a Gardener shoot, by its subresource `adminkubeconfig`; the cluster is the garden.
    ShootAdmin,
}

/// A kubeconfig with a credential that ends. A secret: it has no `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct IssuedCredential {
    /// The kubeconfig, in base64.
    pub kubeconfig: String,
    /// When the credential ends, RFC 3339.
    pub expires: String,
}

impl Subject {
    /// The resource, the subresource and what is sent to it.
    fn request(self) -> (ApiResource, &'static str, Value) {
        let (api_version, kind, plural, below, of) = match self {
            Subject::ServiceAccount => {
                let of = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"});
                ("v1", "ServiceAccount", "serviceaccounts", "token", of)
            }
            Subject::ShootAdmin => {
                let of =
                    json!({"apiVersion": "authentication.gardener.cloud/v1alpha1", "kind": "AdminKubeconfigRequest"});
                ("core.gardener.cloud/v1beta1", "Shoot", "shoots", "adminkubeconfig", of)
            }
        };
        let (api_version, kind, plural) = (api_version.into(), kind.into(), plural.to_owned());
        (ApiResource { api_version, kind, plural, namespaced: true }, below, of)
    }
}

/// Issues a credential on the cluster of a kubeconfig, which has to be in these networks.
///
/// # Errors
/// A fault of the kubeconfig, of the cluster, or of what is asked for: one sentence without any secret.
pub async fn issue_credential(
    text: &str,
    networks: &Arc<AllowedNetworks>,
    tenant: &Tenant,
    wanted: &Credential,
) -> Result<IssuedCredential, Fault> {
    let connection = kubeconfig::client(text, networks, tenant).await;
    let connection = connection.map_err(|refused| error::fault(Halt::from(refused)))?;
    let cluster = Cluster::new(connection.client, connection.address, Arc::new(|_| {}));
    let (resource, below, mut body) = wanted.subject.request();
    let Credential { name, namespace, seconds, .. } = wanted;
    for (what, text) in [("name", name.as_str()), ("namespace", namespace.as_str())] {
        if !is_path_segment(text) {
            let message = format!("{text:?} is no {what} of a {}; correct the template", resource.kind);
            return Err(Fault::invalid(Code::ConfigurationProblem, message));
        }
    }
    let key = ObjectKey {
        api_version: resource.api_version.clone(),
        kind: resource.kind.clone(),
        namespace: Some(namespace.clone()),
        name: name.clone(),
    };
    if let Some(object) = body.as_object_mut() {
        object.insert("metadata".to_owned(), json!({"name": name, "namespace": namespace}));
        object.insert("spec".to_owned(), json!({"expirationSeconds": seconds}));
    }
    let request = at(&resource, Some(namespace)).create_subresource(
        below,
        name,
        &kube::api::PostParams::default(),
        body.to_string().into_bytes(),
    );
    let answer: Value = cluster.ask(&key, request).await.map_err(unminted)?;
    let status = |field: &str| {
        let found = answer.pointer(&format!("/status/{field}")).and_then(Value::as_str);
        found.map(str::to_owned).ok_or_else(|| {
            let message = format!("{} answered a credential for {key} without status.{field}", cluster.address());
            Fault::invalid(Code::InternalProblem, message)
        })
    };
    let kubeconfig = match wanted.subject {
        Subject::ShootAdmin => status("kubeconfig")?,
        Subject::ServiceAccount => BASE64.encode(with_token(text, name, &status("token")?)?.as_bytes()),
    };
    Ok(IssuedCredential { kubeconfig, expires: status("expirationTimestamp")? })
}

/// What does not exist does not come by itself: rendering fails, as in the original.
fn unminted(error: Error) -> Fault {
    match &error {
        Error::Missing { key, message } => {
            let message = format!("no credential can be had for {key}: {message}; create it and reconcile again");
            Fault::invalid(Code::ConfigurationProblem, message)
        }
        _ => error::fault(Halt::from(error)),
    }
}

/// The current context of a kubeconfig and nothing else, with a token for its user.
fn with_token(text: &str, user: &str, token: &str) -> Result<String, Fault> {
    let refused = |error| error::fault(Halt::from(error));
    let mut config = kubeconfig::read(text).map_err(refused)?;
    let incomplete = || refused(kubeconfig::KubeconfigError::Incomplete);
    let current = config.current_context.clone().ok_or_else(incomplete)?;
    let context = config.contexts.iter().find(|named| named.name == current);
    let context = context.and_then(|named| named.context.clone()).ok_or_else(incomplete)?;
    config.clusters.retain(|named| named.name == context.cluster);
    let context = Context { user: Some(user.to_owned()), ..context };
    let secret = AuthInfo { token: Some(token.to_owned().into()), ..AuthInfo::default() };
    let issued = Kubeconfig {
        contexts: vec![NamedContext { name: current, context: Some(context), ..NamedContext::default() }],
        auth_infos: vec![NamedAuthInfo { name: user.to_owned(), auth_info: Some(secret), ..NamedAuthInfo::default() }],
        preferences: None,
        extensions: None,
        kind: Some("Config".to_owned()),
        api_version: Some("v1".to_owned()),
        ..config
    };
    // JSON is YAML: every reader of kubeconfigs takes it.
    serde_json::to_string(&issued).map_err(|_| incomplete())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "
apiVersion: v1
kind: Config
current-context: c
clusters:
- {name: other, cluster: {server: 'https://elsewhere'}}
- {name: k, cluster: {server: 'https://127.0.0.1:1', certificate-authority-data: YQ==}}
contexts:
- {name: d, context: {cluster: other, user: v}}
- {name: c, context: {cluster: k, user: u, namespace: n}}
users:
- {name: u, user: {token: administrator}}
- {name: v, user: {token: another}}
";

    #[test]
    fn an_issued_kubeconfig_has_the_cluster_and_the_token_and_nothing_of_its_issuer() {
        let issued: Value = serde_json::from_str(&with_token(TEXT, "robot", "t").unwrap()).unwrap();
        let expected = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "k", "cluster": {"server": "https://127.0.0.1:1", "certificate-authority-data": "YQ=="}}],
            "contexts": [{"name": "c", "context": {"cluster": "k", "user": "robot", "namespace": "n"}}],
            "users": [{"name": "robot", "user": {"token": "t"}}],
        });
        assert_eq!(issued, expected);
    }

    #[test]
    fn a_kubeconfig_without_a_context_is_told() {
        let fault = with_token("clusters: []", "robot", "t").unwrap_err();
        assert!(fault.to_string().contains("leads to no cluster"), "{fault}");
    }

    #[tokio::test]
    async fn a_name_that_leads_elsewhere_is_refused_before_anything_is_asked() {
        let wanted = Credential {
            subject: Subject::ServiceAccount,
            name: "../secrets/x".into(),
            namespace: "ns".into(),
            seconds: 600,
        };
        let fault = issue_credential(TEXT, &Arc::default(), &None, &wanted).await.err().unwrap();
        assert_eq!(fault.to_string(), "\"../secrets/x\" is no name of a ServiceAccount; correct the template");
    }
}
