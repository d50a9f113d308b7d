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

/// The most bytes of a token. Those of service accounts have one or two thousand; the server of a tenant answers what it likes.
const LONGEST_TOKEN: usize = 64 << 10;
/// The most bytes of a kubeconfig that is issued, its token and its certificate authority among them.
const LONGEST_ISSUED: usize = 128 << 10;
/// The most bytes of the time at which a credential ends.
const LONGEST_TIME: usize = 64;

/// A kubeconfig with a credential that ends. A secret: it has no `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct IssuedCredential {
    /// The kubeconfig as a client takes it.
    pub kubeconfig: String,
    /// When the credential ends, RFC 3339.
    pub expires: String,
}

impl IssuedCredential {
    /// The kubeconfig in base64, as templates get it.
    pub fn encoded(&self) -> String {
        BASE64.encode(self.kubeconfig.as_bytes())
    }
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
    read_issued(&answer, text, wanted, &format!("{} answered a credential for {key}", cluster.address()))
}

/// What a server has issued. A message about it begins with `answered`.
fn read_issued(answer: &Value, text: &str, wanted: &Credential, answered: &str) -> Result<IssuedCredential, Fault> {
    let wrong = |what: String| Fault::invalid(Code::InternalProblem, format!("{answered} {what}"));
    let status = |field: &str, longest: usize| {
        let found = answer.pointer(&format!("/status/{field}")).and_then(Value::as_str);
        let found = found.ok_or_else(|| wrong(format!("without status.{field}")))?;
        if found.len() > longest {
            let bytes = found.len();
            let what =
                format!("with a status.{field} of {bytes} bytes, of which {longest} are allowed; correct its server");
            return Err(wrong(what));
        }
        Ok(found)
    };
    let expires = status("expirationTimestamp", LONGEST_TIME)?.to_owned();
    let kubeconfig = match wanted.subject {
        Subject::ShootAdmin => {
            let encoded = status("kubeconfig", BASE64.encode_len(LONGEST_ISSUED))?;
            let clear = BASE64.decode(encoded.as_bytes()).ok().and_then(|bytes| String::from_utf8(bytes).ok());
            clear.ok_or_else(|| {
                wrong("with a status.kubeconfig that is no text in base64; correct its server".to_owned())
            })?
        }
        Subject::ServiceAccount => with_token(text, &wanted.name, status("token", LONGEST_TOKEN)?)?,
    };
    Ok(IssuedCredential { kubeconfig, expires })
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
    let issued = serde_json::to_string(&issued).map_err(|_| incomplete())?;
    if issued.len() > LONGEST_ISSUED {
        let message = format!(
            "the kubeconfig of the target has {} bytes with a token, and one that is issued has {LONGEST_ISSUED} at most; leave out of its \
             cluster what is not needed",
            issued.len()
        );
        return Err(Fault::invalid(Code::LimitExceeded, message));
    }
    Ok(issued)
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

    #[test]
    fn c_286_limits_kubeconfig_what_a_server_issues_has_a_length() {
        let of = |subject, status: Value| {
            let wanted = Credential { subject, name: "robot".into(), namespace: "ns".into(), seconds: 600 };
            let text = TEXT.replace("YQ==", &"a".repeat(100));
            let issued = read_issued(&json!({"status": status}), &text, &wanted, "it came");
            issued.map(|issued| (issued.kubeconfig.len(), issued.encoded().len())).map_err(|fault| fault.to_string())
        };
        let token = |length: usize, expires: &str| {
            of(Subject::ServiceAccount, json!({"token": "t".repeat(length), "expirationTimestamp": expires}))
        };
        assert!(token(LONGEST_TOKEN, "now").is_ok());
        let too_long = "it came with a status.token of 65537 bytes, of which 65536 are allowed; correct its server";
        assert_eq!(token(LONGEST_TOKEN + 1, "now"), Err(too_long.to_owned()));
        let too_long =
            "it came with a status.expirationTimestamp of 65 bytes, of which 64 are allowed; correct its server";
        assert_eq!(token(1, &"x".repeat(LONGEST_TIME + 1)), Err(too_long.to_owned()));
        let kubeconfig =
            |encoded: String| of(Subject::ShootAdmin, json!({"kubeconfig": encoded, "expirationTimestamp": "now"}));
        let encoded = |length: usize| BASE64.encode("k".repeat(length).as_bytes());
        let longest = encoded(LONGEST_ISSUED).len();
        assert_eq!(kubeconfig(encoded(LONGEST_ISSUED)), Ok((LONGEST_ISSUED, longest)));
        assert!(
            kubeconfig(encoded(LONGEST_ISSUED + 3))
                .unwrap_err()
                .starts_with("it came with a status.kubeconfig of 1747")
        );
        let clear = "it came with a status.kubeconfig that is no text in base64; correct its server";
        assert_eq!(kubeconfig("kind: Config".to_owned()), Err(clear.to_owned()));
        assert_eq!(token(0, "now").map(|(clear, _)| clear < 1_000), Ok(true));
        assert_eq!(
            of(Subject::ServiceAccount, json!({"token": "t"})),
            Err("it came without status.expirationTimestamp".to_owned())
        );
    }

    #[test]
    fn c_286_limits_kubeconfig_the_cluster_of_one_that_is_issued_counts() {
        let fault = with_token(&TEXT.replace("YQ==", &"a".repeat(LONGEST_ISSUED)), "robot", "t").unwrap_err();
        assert!(fault.to_string().contains("and one that is issued has 131072 at most"), "{fault}");
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
