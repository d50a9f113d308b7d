//! Targets of a namespace: that they exist, what they hold, and their kubeconfigs (`docs/wire.md` §1.4).

mod account;
mod connections;

use std::sync::Arc;

use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::ResourceExt;
use orangery_api::{
    reference::LocalSecretReference,
    target::{KUBERNETES_CLUSTER, Target},
};
use orangery_core::{
    error::{Code, Failure},
    name::Namespace,
    step::{Halt, Step},
    yaml::decode_or_text,
};
use orangery_policy::{PolicyRequest, PolicySubject};
use orangery_reconcile::Key;
use serde_json::{Map, Value, json};

pub(crate) use self::connections::TargetConnections;
use crate::{
    controller_context::ControllerContext,
    object_access::get,
    secret_values::SecretSource,
    target_kubeconfig::{KubeconfigSource, TargetKubeconfig, has_config},
};

/// The reason of a failure: the Secret that a Target refers to does not exist, or has not what is needed.
pub(crate) const NO_TARGET_SECRET: &str = "NoTargetSecret";

/// The targets that an object of this namespace may reach, by name.
pub(crate) struct Targets<'a> {
    pub(crate) host: &'a ControllerContext,
    pub(crate) namespace: &'a Namespace,
    /// The object that needs them, in messages: kind and name.
    pub(crate) whose: &'a str,
}

impl Targets<'_> {
    /// A target, if it exists. Absence is a positive answer (C-07): what the store does not know is asked of the server.
    pub(crate) async fn find(&self, name: &str) -> Step<Option<Arc<Target>>> {
        if let Some(target) = self.host.stores.targets.get(&Key::new(self.namespace, name)) {
            return Ok(Some(target));
        }
        let target: Option<Target> = get(&self.host.client, self.namespace, &name.into()).await?;
        Ok(target.map(|target| self.host.stores.targets.upsert(target)))
    }

    /// A target, which has to exist.
    pub(crate) async fn target(&self, name: &str) -> Step<Arc<Target>> {
        self.find(name).await?.ok_or_else(|| {
            let message = format!(
                "{} needs Target {}/{name}, which does not exist; create it and reconcile again",
                self.whose, self.namespace
            );
            stall("NoTargetFound", message)
        })
    }

    /// Whether the policy of the namespace allows something.
    pub(crate) fn allowed(&self, request: PolicyRequest<'_>) -> Step<()> {
        self.host.policies.check(self.namespace, PolicySubject::Installation, request)
    }

    /// The kubeconfig of a target, whose server the policy of the namespace allows. Its credentials are shown nowhere from now
    /// on.
    pub(crate) async fn kubeconfig(&self, name: &str) -> Step<TargetKubeconfig> {
        let target = self.target(name).await?;
        let mut kubeconfig = self.found_kubeconfig(&target).await?;
        kubeconfig.source = Some(KubeconfigSource::of(&target));
        self.host.secrets.learn_kubeconfig(self.namespace, SecretSource::Target(name.into()), &kubeconfig.text);
        self.host.policies.check_server(self.namespace, &kubeconfig.text)?;
        Ok(kubeconfig)
    }

    async fn found_kubeconfig(&self, target: &Target) -> Step<TargetKubeconfig> {
        let named = format!("Target {}/{}", self.namespace, target.name_any());
        if target.spec.type_ != KUBERNETES_CLUSTER {
            let message = format!(
                "{named} is of type {}, but a cluster is needed; use a Target of type {KUBERNETES_CLUSTER}",
                target.spec.type_
            );
            return Err(stall("TargetTypeMismatch", message));
        }
        let content = self.content_of(target).await?;
        if let Some(kubeconfig) = kubeconfig_in(&content) {
            return Ok(kubeconfig.into());
        }
        if let Some(kubeconfig) = account::kubeconfig(self.host, self.namespace, &named, &content).await? {
            return Ok(kubeconfig);
        }
        whole(&content).map(TargetKubeconfig::from).ok_or_else(|| {
            let message = format!("{named} cannot be used: it has neither config nor secretRef; give it a kubeconfig");
            stall("InvalidTarget", message)
        })
    }

    /// The content of a target, resolved.
    async fn content_of(&self, target: &Target) -> Step<Value> {
        match (&target.spec.config, &target.spec.secret_ref) {
            (Some(config), _) if has_config(target) => Ok(config.clone()),
            (_, Some(reference)) => {
                let secret = self.secret(target, reference).await?;
                let content = content_of_secret(secret, &reference.key);
                content.ok_or_else(|| no_key(self.namespace, target, reference))
            }
            (_, None) => Ok(Value::Null),
        }
    }

    async fn secret(&self, target: &Target, LocalSecretReference { name, .. }: &LocalSecretReference) -> Step<Secret> {
        let secret: Option<Secret> = get(&self.host.client, self.namespace, &name.into()).await?;
        secret.ok_or_else(|| {
            let named = format!("Target {}/{}", self.namespace, target.name_any());
            stall(NO_TARGET_SECRET, format!("{named} refers to Secret {name}, which does not exist; create it"))
        })
    }

    /// The target as it is handed to what runs in the cluster: the object and its resolved content.
    pub(crate) async fn document(&self, name: &str) -> Step<String> {
        let target = self.target(name).await?;
        let (content, text) = match (&target.spec.config, &target.spec.secret_ref) {
            (Some(config), _) if has_config(&target) => (config.clone(), config.to_string()),
            (_, Some(reference)) => {
                let secret = self.secret(&target, reference).await?;
                let text = text_of_secret(&secret, &reference.key);
                let content = content_of_secret(secret, &reference.key);
                content.zip(text).ok_or_else(|| no_key(self.namespace, &target, reference))?
            }
            (_, None) => (Value::Null, String::new()),
        };
        if let Some(kubeconfig) = kubeconfig_of(&content) {
            self.host.secrets.learn_kubeconfig(self.namespace, SecretSource::Target(name.into()), &kubeconfig);
        }
        Ok(json!({"target": *target, "content": text}).to_string())
    }
}

/// What a Secret is for a target that refers to this key of it, or to all of it where the key is empty.
pub(crate) fn content_of_secret(secret: Secret, key: &str) -> Option<Value> {
    let mut data = secret.data.unwrap_or_default();
    if !key.is_empty() {
        return data.remove(key).map(|content| decode_or_text(&text(&content)));
    }
    let members = data.into_iter().map(|(key, content)| (key, decode_or_text(&text(&content))));
    Some(Value::Object(members.collect::<Map<_, _>>()))
}

/// The same as text: that of the key as it stands, or a JSON object of all keys (C-279).
fn text_of_secret(secret: &Secret, key: &str) -> Option<String> {
    if key.is_empty() {
        return content_of_secret(secret.clone(), key).map(|content| content.to_string());
    }
    secret.data.as_ref()?.get(key).map(text)
}

fn no_key(namespace: &Namespace, target: &Target, LocalSecretReference { name, key }: &LocalSecretReference) -> Halt {
    let named = format!("Target {namespace}/{}", target.name_any());
    stall(NO_TARGET_SECRET, format!("{named} refers to the key {key} of Secret {name}, which has no such key; add it"))
}

/// The kubeconfig that the content of a target has or is, whatever else could be made of it.
pub(crate) fn kubeconfig_of(content: &Value) -> Option<String> {
    kubeconfig_in(content).or_else(|| whole(content))
}

/// The kubeconfig that stands in the content of a target under its name.
fn kubeconfig_in(content: &Value) -> Option<String> {
    content.get("kubeconfig").filter(|value| !value.is_null()).map(as_text)
}

/// Content with none of the known keys is the kubeconfig itself.
fn whole(content: &Value) -> Option<String> {
    Some(content).filter(|content| !content.is_null()).map(as_text)
}

fn as_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn text(content: &ByteString) -> String {
    String::from_utf8_lossy(&content.0).into_owned()
}

fn stall(reason: &str, message: String) -> Halt {
    Halt::Stall(Failure::new("ResolveTarget", reason, message).with_code(Code::ConfigurationProblem))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c_279_the_text_of_a_secret_is_that_of_its_key_or_an_object_of_all() {
        let data = [("a", "x: 1\n"), ("b", "plain")].map(|(key, value)| (key.to_owned(), ByteString(value.into())));
        let secret = Secret { data: Some(data.into()), ..Secret::default() };
        assert_eq!(text_of_secret(&secret, "a"), Some("x: 1\n".to_owned()));
        assert_eq!(text_of_secret(&secret, ""), Some(r#"{"a":{"x":1},"b":"plain"}"#.to_owned()));
        assert_eq!(text_of_secret(&secret, "c"), None);
    }

    #[test]
    fn a_kubeconfig_is_text_or_an_object_or_the_whole_content() {
        assert_eq!(kubeconfig_in(&json!({"kubeconfig": "a: b"})), Some("a: b".into()));
        assert_eq!(kubeconfig_in(&json!({"kubeconfig": {"a": "b"}})), Some(r#"{"a":"b"}"#.into()));
        assert_eq!(kubeconfig_in(&json!({"apiVersion": "v1"})), None);
        assert_eq!(whole(&json!({"apiVersion": "v1"})), Some(r#"{"apiVersion":"v1"}"#.into()));
        assert_eq!(whole(&json!("apiVersion: v1")), Some("apiVersion: v1".into()));
        assert_eq!(whole(&Value::Null), None);
    }
}
