//! The content of a Plugin: from a registry, or from a ConfigMap. Secrets and ConfigMaps are those of the operator's own namespace: a
//! Plugin is of no namespace, and reads none of a tenant.

use k8s_openapi::{
    ByteString,
    api::core::v1::{ConfigMap, Secret},
};
use orangery_api::plugin::{ConfigMapSource, PluginContent, PluginOciSource, PluginStatus, UpdatePolicy};
use orangery_core::{
    digest,
    error::{Code, Failure, Fault},
    name::Namespace,
    step::{Halt, Step},
};
use orangery_ocm::{Credentials, RegistryComponentRequest};
use orangery_reconcile::Key;

use crate::{component, controller_context::ControllerContext, object_access::get};

/// The content of a Plugin.
pub(super) struct FetchedContent {
    /// The component; `None` where it is what is in use already.
    pub(super) bytes: Option<Vec<u8>>,
    /// The reference that it was resolved from, and the artifact by its digest.
    pub(super) artifact: Option<(String, String)>,
    /// The tag, where there is one: a version for people.
    pub(super) tag: Option<String>,
}

/// What is known before something is fetched.
#[derive(Clone, Copy)]
pub(super) struct FetchTerms<'a> {
    pub(super) name: &'a str,
    pub(super) spec: &'a PluginContent,
    pub(super) status: &'a PluginStatus,
    /// Whether what the status names is wanted, whatever the source has now.
    pub(super) recorded: bool,
    /// The artifact that is in use for this very spec.
    pub(super) in_use: Option<&'a str>,
}

/// Fetches the content of a Plugin.
///
/// # Errors
/// The source cannot be reached, does not have it, has something else than was recorded, or nobody of those who have to has signed it.
pub(super) async fn fetch(host: &ControllerContext, terms: FetchTerms<'_>) -> Step<FetchedContent> {
    match (&terms.spec.source.oci, &terms.spec.source.config_map) {
        (Some(oci), _) => of_registry(host, terms, oci).await,
        (None, Some(map)) => of_config_map(host, terms, map).await,
        (None, None) => Err(stalled("InvalidSpec", "spec.source names nothing".to_owned())),
    }
}

async fn of_registry(host: &ControllerContext, terms: FetchTerms<'_>, oci: &PluginOciSource) -> Step<FetchedContent> {
    let namespace = namespace_of(host);
    let mut credentials = Credentials::default();
    for name in &oci.pull_secrets {
        let secret: Option<Secret> = get(&host.client, &namespace, &name.into()).await?;
        let secret = secret.ok_or_else(|| {
            let message = format!(
                "the Secret {name} that spec.source.oci.pullSecrets names is not in namespace {namespace}, that of the operator; make \
                 it there with kubectl create secret docker-registry"
            );
            retried("SecretMissing", message)
        })?;
        let content = component::content(secret);
        let values = content.values().map(|orangery_ocm::Secret(bytes)| bytes);
        host.secrets.learn_secret(&Key::new(&namespace, name), values);
        credentials.pull_secrets.push((name.clone(), content));
    }
    let keys = terms.spec.verification.iter().flat_map(|verification| &verification.keys).enumerate();
    let request = RegistryComponentRequest {
        reference: wanted(terms, oci).to_owned(),
        credentials,
        keys: keys
            .map(|(at, pem)| (format!("spec.verification.keys[{at}] of the Plugin {}", terms.name), pem.clone()))
            .collect(),
        known: terms.in_use.map(str::to_owned),
    };
    let found = host.components.registry_component(&request).await.map_err(|fault| halted("FetchFailed", &fault))?;
    let tag = oci.reference.split_once('@').map_or(oci.reference.as_str(), |(before, _)| before);
    let tag = tag.rsplit('/').next().and_then(|last| last.split_once(':')).map(|(_, tag)| tag.to_owned());
    Ok(FetchedContent { bytes: found.content, artifact: Some((oci.reference.clone(), found.artifact)), tag })
}

/// The reference that is asked for: of a tag that is not followed, what it stood for first.
fn wanted<'a>(terms: FetchTerms<'a>, oci: &'a PluginOciSource) -> &'a str {
    let PluginStatus { reference, artifact, .. } = terms.status;
    let is_resolved = reference.as_ref() == Some(&oci.reference) && oci.updates == UpdatePolicy::Never;
    match artifact {
        Some(artifact) if terms.recorded || is_resolved => artifact,
        Some(_) | None => &oci.reference,
    }
}

async fn of_config_map(host: &ControllerContext, terms: FetchTerms<'_>, map: &ConfigMapSource) -> Step<FetchedContent> {
    let namespace = namespace_of(host);
    let ConfigMapSource { name, key, digest: wanted } = map;
    let found: Option<ConfigMap> = get(&host.client, &namespace, &name.into()).await?;
    let place = format!("the ConfigMap {name} in namespace {namespace}, that of the operator,");
    let found =
        found.ok_or_else(|| retried("SourceMissing", format!("{place} does not exist; put the component into it")))?;
    let content = found.binary_data.and_then(|mut data| data.remove(key));
    let ByteString(bytes) = content.ok_or_else(|| {
        stalled("SourceMissing", format!("{place} has no binaryData[{key}]; put the component there"))
    })?;
    let digest = digest::sha256(&bytes);
    if let Some(wanted) = wanted.as_ref().filter(|wanted| **wanted != digest) {
        let message = format!(
            "{place} has a component with the digest {digest}, and the Plugin names {wanted}; correct one of them"
        );
        return Err(stalled("OtherDigest", message));
    }
    let recorded = terms.status.digest.as_ref().filter(|recorded| terms.recorded && **recorded != digest);
    if let Some(recorded) = recorded {
        let message = format!(
            "{place} has a component with the digest {digest}, and {recorded} was in use before the operator was started, which nobody \
             has any more; let it be used by spec.suspend: false, or put that one back"
        );
        return Err(stalled("OtherDigest", message));
    }
    Ok(FetchedContent { bytes: Some(bytes), artifact: None, tag: None })
}

/// The namespace of the operator.
pub(super) fn namespace_of(host: &ControllerContext) -> Namespace {
    host.client.default_namespace().into()
}

/// A fault of somebody else, as it ends a call.
pub(super) fn halted(reason: &str, fault: &Fault) -> Halt {
    let problem = fault.problem();
    let failure = Failure::new("LoadPlugin", reason, problem.message.clone()).with_code(problem.code.clone());
    match fault {
        Fault::Later(_) => Halt::Retry(failure),
        Fault::Invalid(_) | Fault::Denied(_) => Halt::Stall(failure),
    }
}

fn retried(reason: &str, message: String) -> Halt {
    Halt::Retry(Failure::new("LoadPlugin", reason, message).with_code(Code::ConfigurationProblem))
}

pub(super) fn stalled(reason: &str, message: String) -> Halt {
    Halt::Stall(Failure::new("LoadPlugin", reason, message).with_code(Code::ConfigurationProblem))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const FIRST: &str = "r.example/a@sha256:first";

    fn asked(oci: Value, status: Value, recorded: bool) -> String {
        let spec: PluginContent = serde_json::from_value(json!({"source": {"oci": oci}})).unwrap();
        let status: PluginStatus = serde_json::from_value(status).unwrap();
        let terms = FetchTerms { name: "mine", spec: &spec, status: &status, recorded, in_use: None };
        wanted(terms, spec.source.oci.as_ref().unwrap()).to_owned()
    }

    #[test]
    fn c_260_a_tag_that_moves_changes_nothing_unless_it_is_followed_or_another_one_is_named() {
        let (never, follow) =
            (json!({"reference": "r.example/a:1"}), json!({"reference": "r.example/a:1", "updates": "Follow"}));
        let known = json!({"reference": "r.example/a:1", "artifact": FIRST});
        assert_eq!(asked(never.clone(), json!({}), false), "r.example/a:1");
        assert_eq!(asked(never.clone(), known.clone(), false), FIRST);
        assert_eq!(asked(follow.clone(), known.clone(), false), "r.example/a:1");
        let other = json!({"reference": "r.example/a:2"});
        assert_eq!(asked(other, known.clone(), false), "r.example/a:2");
        // After a restart what was in use comes first.
        for oci in [never, follow] {
            assert_eq!(asked(oci, known.clone(), true), FIRST);
        }
    }
}
