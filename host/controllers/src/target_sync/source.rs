//! What a TargetSync is made from: its kubeconfig, and what the cluster behind that has (gather).

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use data_encoding::BASE64;
use orangery_api::{label, reference::LocalSecretReference};
use orangery_cluster::{Cluster, NamespacedName, Observed, server_of, unobserved};
use orangery_core::{
    name::{ObjectName, can_be_name},
    plan::target_sync::selected,
    step::{Halt, Step, Until, Waiting},
};
use orangery_proposal::deployer::ApiResource;
use serde_json::Value;

use super::{SyncCall, all_of, apply::MarkedSecrets, name_filter::NameFilter, name_of, secrets, shoots::shoots, stall};
use crate::{secret_values::SecretSource, target_kubeconfig::TargetKubeconfig};

/// The key of a Secret that holds a kubeconfig, where nothing else is said.
pub(super) const KUBECONFIG: &str = "kubeconfig";

/// Where it is in a Secret.
const COPIED: &str = "/data/kubeconfig";

/// The kubeconfig that a TargetSync names.
pub(super) struct ReferencedKubeconfig {
    pub(super) text: String,
    /// The Secret that has it.
    pub(super) secret: Arc<Value>,
    /// The key in that.
    pub(super) key: String,
}

/// What a Target is made from.
pub(super) enum WantedTarget {
    /// A kubeconfig, which is copied.
    Copy(String),
    /// A shoot, for which one is issued.
    Shoot,
    /// The kubeconfig of the TargetSync itself.
    Source,
}

/// The Targets that there should be.
#[derive(Default)]
pub(super) struct WantedTargets {
    pub(super) by_name: BTreeMap<ObjectName, WantedTarget>,
    /// The names for which there is something, be it usable or not: what has one of them is not taken away.
    pub(super) names: BTreeSet<ObjectName>,
}

impl SyncCall<'_> {
    /// The Secret that the TargetSync names, which is watched from now on.
    pub(super) fn reference(&self) -> Step<ReferencedKubeconfig> {
        let LocalSecretReference { name, key } = &self.sync.spec.secret_ref;
        let namespace = &self.key.namespace;
        if !can_be_name(name) {
            return Err(stall(
                "InvalidSpec",
                format!("spec.secretRef.name {name:?} is no name of a Secret; correct it"),
            ));
        }
        let key = if key.is_empty() { KUBECONFIG } else { key };
        let place = NamespacedName { namespace: Some(namespace.clone()), name: name.as_str().into() };
        let missing = |what: &str| {
            let message = format!("Secret {namespace}/{name}, which spec.secretRef names, {what}");
            stall("NoKubeconfig", message)
        };
        let secret = match self.clusters.watch(&self.here, &secrets(), &place) {
            Observed::Present(secret) => secret,
            Observed::Absent | Observed::Gone(_) => return Err(missing("does not exist; create it")),
            observed => {
                let waiting = Waiting::selected(&secrets().kind, Some(namespace.clone()), name.clone(), Until::Exists);
                return Err(unobserved(&self.here, &secrets(), observed, waiting));
            }
        };
        let text = text_in(&secret, key).filter(|text| !text.is_empty()).ok_or_else(|| {
            missing(&format!(
                "has no kubeconfig as text under the key {key}; add it, or name its key in spec.secretRef.key"
            ))
        })?;
        let source = SecretSource::Issued(format!("TargetSync {}", self.key.name));
        self.host.secrets.learn_kubeconfig(namespace, source, &text);
        Ok(ReferencedKubeconfig { text, secret, key: key.to_owned() })
    }

    /// The cluster of the kubeconfig, which is reached as that of a Target is: where the policy of the namespace allows its server, in
    /// its networks, without programs and files (C-371).
    pub(super) async fn source(&self, reference: &ReferencedKubeconfig) -> Step<Cluster> {
        let (namespace, text) = (&self.key.namespace, &reference.text);
        self.host.policies.check_server(namespace, text)?;
        let networks = self.host.policies.networks(namespace, &TargetKubeconfig::from(text.clone()))?;
        let connected = self.pool.connect(text, &networks, &Some(namespace.clone())).await;
        Ok(connected.map_err(Halt::from)?.during(self.clusters.call()))
    }

    /// The Targets that there should be by what the other cluster has, which is watched from now on.
    pub(super) fn wanted(&mut self, source: &Cluster, own: &MarkedSecrets) -> Step<WantedTargets> {
        let spec = &self.sync.spec;
        let mut wanted = WantedTargets::default();
        let mut errors = Vec::new();
        for (field, expression, resource) in [
            ("spec.secretNameExpression", &spec.secret_name_expression, secrets()),
            ("spec.shootNameExpression", &spec.shoot_name_expression, shoots()),
        ] {
            if expression.is_empty() {
                continue;
            }
            let filter = NameFilter::of(field, expression).map_err(|why| stall("InvalidSpec", why))?;
            let what = all_of(&resource, &spec.source_namespace, None);
            let there = self.clusters.watch_all(source, &resource, &what)?;
            take((&resource, &there), &filter, own, &mut wanted, &mut errors);
        }
        if spec.create_target_to_source {
            let name = match spec.target_to_source_name.as_str() {
                "" => spec.source_namespace.as_str(),
                name => name,
            };
            if !can_be_name(name) {
                return Err(stall("InvalidSpec", format!("spec.targetToSourceName {name:?} is no name; correct it")));
            }
            wanted.names.insert(name.into());
            wanted.by_name.insert(name.into(), WantedTarget::Source);
        }
        self.outcome.errors.append(&mut errors);
        Ok(wanted)
    }

    /// The Secrets with the mark of TargetSyncs in the namespace, whoever has made them; they are watched from now on.
    pub(super) fn own_secrets(&self) -> Step<MarkedSecrets> {
        let marked = format!("{}={}", label::TARGET_SYNC, label::TARGET_SYNC_OK);
        let what = all_of(&secrets(), &self.key.namespace, Some(marked));
        let there = self.clusters.watch_all(&self.here, &secrets(), &what)?;
        Ok(there.into_iter().map(|secret| (name_of(&secret).into(), secret)).collect())
    }
}

/// Takes what matches into what there should be. A kubeconfig that no Target could use is told and not copied: it may hold programs
/// that whoever reads the copy would run.
fn take(
    (resource, there): (&ApiResource, &[Arc<Value>]),
    filter: &NameFilter,
    own: &MarkedSecrets,
    wanted: &mut WantedTargets,
    errors: &mut Vec<String>,
) {
    let names = there.iter().map(|object| name_of(object));
    let chosen = selected(&resource.kind, names, |name| filter.matches(name));
    errors.extend(chosen.errors);
    for object in there.iter().filter(|object| chosen.names.contains(name_of(object))) {
        let name = name_of(object);
        wanted.names.insert(name.into());
        if *resource.kind != *"Secret" {
            wanted.by_name.insert(name.into(), WantedTarget::Shoot);
            continue;
        }
        let usable = text_in(object, KUBECONFIG)
            .ok_or_else(|| format!("has no text under the key {KUBECONFIG}; add the kubeconfig there"))
            .and_then(|text| {
                // What is copied already was read then.
                let is_known = || own.get(name).is_some_and(|copy| copy.pointer(COPIED) == object.pointer(COPIED));
                let usable = if is_known() { Ok(()) } else { server_of(&text).map(drop) };
                usable.map(|()| text).map_err(|why| format!("is not copied: {why}"))
            });
        match usable {
            Ok(text) => drop(wanted.by_name.insert(name.into(), WantedTarget::Copy(text))),
            Err(why) => errors.push(format!("Secret {name} of the other cluster {why}")),
        }
    }
}

/// The text under a key of a Secret, as the server has it.
pub(super) fn text_in(secret: &Value, key: &str) -> Option<String> {
    let encoded = secret.get("data")?.get(key)?.as_str()?;
    String::from_utf8(BASE64.decode(encoded.as_bytes()).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_text_under_a_key_is_that_of_base64_which_is_utf_8() {
        let secret = json!({"data": {"text": "YQ==", "binary": "/w==", "clear": "::", "number": 1, "a/b": "Yg=="}});
        assert_eq!(text_in(&secret, "text"), Some("a".to_owned()));
        assert_eq!(text_in(&secret, "a/b"), Some("b".to_owned()));
        for key in ["binary", "clear", "number", "missing", ""] {
            assert_eq!(text_in(&secret, key), None, "{key}");
        }
        assert_eq!(text_in(&json!({"data": "text"}), "text"), None);
        assert_eq!(text_in(&json!({}), "text"), None);
    }

    #[test]
    fn c_371_what_no_target_could_use_is_told_and_not_copied() {
        let kubeconfig = |user: Value| {
            let text = json!({
                "apiVersion": "v1", "kind": "Config", "current-context": "c",
                "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                "clusters": [{"name": "c", "cluster": {"server": "https://a.example"}}],
                "users": [{"name": "u", "user": user}],
            });
            text.to_string()
        };
        let secret = |name: &str, data: Value| Arc::new(json!({"metadata": {"name": name}, "data": data}));
        let with = |name: &str, text: &str| secret(name, json!({"kubeconfig": BASE64.encode(text.as_bytes())}));
        let good = kubeconfig(json!({"token": "t"}));
        let there = [
            with("good", &good),
            with("runs", &kubeconfig(json!({"exec": {"command": "sh", "apiVersion": "v1"}}))),
            with("unread", "::"),
            secret("none", json!({"config": "YQ=="})),
            secret("binary", json!({"kubeconfig": "/w=="})),
            with("other", &good),
        ];
        let (mut wanted, mut errors) = (WantedTargets::default(), Vec::new());
        let filter = NameFilter::of("f", "^[^o]").unwrap();
        take((&secrets(), &there), &filter, &MarkedSecrets::new(), &mut wanted, &mut errors);
        let copied: Vec<(&str, Option<&str>)> = wanted
            .by_name
            .iter()
            .map(|(name, wanted)| {
                (name.as_str(), if let WantedTarget::Copy(text) = wanted { Some(text.as_str()) } else { None })
            })
            .collect();
        assert_eq!(copied, [("good", Some(good.as_str()))]);
        let known: Vec<&str> = wanted.names.iter().map(|name| name.as_str()).collect();
        assert_eq!(known, ["binary", "good", "none", "runs", "unread"], "none of these is taken away");
        let begins: Vec<String> = errors.iter().map(|why| why.chars().take(48).collect()).collect();
        let expected = [
            "Secret runs of the other cluster is not copied: ",
            "Secret unread of the other cluster is not copied",
            "Secret none of the other cluster has no text und",
            "Secret binary of the other cluster has no text u",
        ];
        assert_eq!(begins, expected);
    }
}
