//! Grants: what a component may reach. A pure function of (what the operator allows, this argument), deny by default.

use serde::{Deserialize, Serialize};

use crate::{ClusterRef, ObjectKey, Selection};
use orangery_core::name::{ObjectName, is_api_version, is_path_segment};

/// What the operator allows one component. Everything is denied unless it stands here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Grants {
    /// Clusters that may be read and written.
    pub clusters: ClusterGrants,
    /// Kinds that may be read through `cluster`.
    pub reads: Vec<KindGrant>,
    /// Kinds that a proposal may write or remove.
    pub writes: Vec<KindGrant>,
    /// Whether a deletion group may take in objects that are not in the inventory (`deleteAllResources`).
    pub delete_unmanaged: bool,
    /// Artifact references by prefix, such as `ghcr.io/acme/`.
    pub artifacts: Vec<String>,
    /// Hosts of URLs, such as `charts.example.org`.
    pub hosts: Vec<String>,
    /// Kinds of credentials that a template may have issued, such as `serviceAccount` and `shootAdmin`, or `*`.
    pub kubeconfigs: Vec<String>,
}

/// Which clusters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ClusterGrants {
    /// The cluster behind the item's target.
    pub target: bool,
    /// The cluster the host runs in.
    pub host: bool,
    /// Other targets of the item's namespace: names, or `*`.
    pub named: Vec<String>,
}

/// A set of kinds and namespaces; `*` matches all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KindGrant {
    /// API groups; the core group is ``.
    #[serde(default = "any")]
    pub groups: Vec<String>,
    /// Kinds.
    #[serde(default = "any")]
    pub kinds: Vec<String>,
    /// Namespaces; cluster-scoped objects are matched by `*` only.
    #[serde(default = "any")]
    pub namespaces: Vec<String>,
}

fn any() -> Vec<String> {
    vec!["*".to_owned()]
}

/// A refused capability: one sentence naming the missing grant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refusal(pub String);

impl Grants {
    /// May this cluster be reached at all?
    pub fn cluster(&self, on: &ClusterRef) -> Result<(), Refusal> {
        let (granted, word) = match on {
            ClusterRef::Target => (self.clusters.target, "clusters.target".to_owned()),
            ClusterRef::Host => (self.clusters.host, "clusters.host".to_owned()),
            ClusterRef::Named(name) => (matches(&self.clusters.named, name), format!("clusters.named: [{name}]")),
        };
        if granted {
            return Ok(());
        }
        Err(Refusal(format!(
            "{on} is not granted to this component; have an administrator add `{word}` to the grants of its registration, or of its Plugin"
        )))
    }

    /// May this object be read?
    pub fn read(&self, on: &ClusterRef, key: &ObjectKey) -> Result<(), Refusal> {
        self.cluster(on)?;
        allowed(&self.reads, "reads", key)
    }

    /// May these objects be listed? A selection of all namespaces needs a grant of all namespaces.
    pub fn list(&self, on: &ClusterRef, what: &Selection) -> Result<(), Refusal> {
        self.cluster(on)?;
        allowed(&self.reads, "reads", &key_of(what))
    }

    /// May this object be written or removed?
    pub fn write(&self, on: &ClusterRef, key: &ObjectKey) -> Result<(), Refusal> {
        self.cluster(on)?;
        allowed(&self.writes, "writes", key)
    }

    /// May objects outside the inventory be deleted?
    pub fn delete_unmanaged(&self, on: &ClusterRef, what: &Selection) -> Result<(), Refusal> {
        self.cluster(on)?;
        if !self.delete_unmanaged {
            return Err(Refusal(format!(
                "deleting every {} whoever made it is not granted to this component; have an administrator add `deleteUnmanaged: true` to the grants of its registration, or of its Plugin",
                what.kind
            )));
        }
        allowed(&self.writes, "writes", &key_of(what))
    }

    /// May this artifact be read? A prefix matches up to a boundary (`/`, `:` or `@`), so that `ghcr.io/acme` does not match `ghcr.io/acme-evil`.
    pub fn artifact(&self, reference: &str) -> Result<(), Refusal> {
        if self.artifacts.iter().any(|prefix| has_prefix(reference, prefix)) {
            return Ok(());
        }
        Err(Refusal(format!(
            "the artifact {reference} is not granted to this component; have an administrator add it, or a prefix of it, to `artifacts` in the grants of its registration, or of its Plugin"
        )))
    }

    /// May a credential of this kind be issued?
    pub fn kubeconfig(&self, credential_kind: &str) -> Result<(), Refusal> {
        if matches(&self.kubeconfigs, credential_kind) {
            return Ok(());
        }
        Err(Refusal(format!(
            "issuing a credential of kind {credential_kind:?} is not granted to this component; have an administrator add it to `kubeconfigs` in the grants of its registration, or of its Plugin"
        )))
    }

    /// May this host be asked? The letters of a host may be of any case.
    pub fn host(&self, host: &str) -> Result<(), Refusal> {
        if self.hosts.iter().any(|granted| granted == "*" || granted.eq_ignore_ascii_case(host)) {
            return Ok(());
        }
        Err(Refusal(format!(
            "the host {host} is not granted to this component; have an administrator add it to `hosts` in the grants of its registration, or of its Plugin"
        )))
    }
}

fn has_prefix(reference: &str, prefix: &str) -> bool {
    match reference.strip_prefix(prefix) {
        Some(rest) => prefix == "*" || rest.is_empty() || prefix.ends_with('/') || rest.starts_with(['/', ':', '@']),
        None => prefix == "*",
    }
}

fn key_of(what: &Selection) -> ObjectKey {
    ObjectKey {
        api_version: what.api_version.clone(),
        kind: what.kind.clone(),
        namespace: what.namespace.clone(),
        name: ObjectName::default(),
    }
}

fn matches(patterns: &[String], value: &str) -> bool {
    patterns.iter().any(|pattern| pattern == "*" || pattern == value)
}

fn allowed(grants: &[KindGrant], field: &str, key: &ObjectKey) -> Result<(), Refusal> {
    let namespace = key.namespace.as_deref();
    // A selection has no name of its own.
    let names = namespace.into_iter().chain(Some(key.name.as_str()).filter(|name| !name.is_empty()));
    if let Some(name) = names.into_iter().find(|name| !is_path_segment(name)) {
        return Err(Refusal(format!(
            "{} {name:?} is refused: no object and no namespace can have this name",
            key.kind
        )));
    }
    if !is_api_version(&key.api_version) {
        return Err(Refusal(format!("{} of {:?} is refused: no kind has this apiVersion", key.kind, key.api_version)));
    }
    let granted = grants.iter().any(|grant| {
        matches(&grant.groups, key.group())
            && matches(&grant.kinds, &key.kind)
            && match namespace {
                Some(namespace) => matches(&grant.namespaces, namespace),
                None => grant.namespaces.iter().any(|pattern| pattern == "*"),
            }
    });
    if granted {
        return Ok(());
    }
    let place = match namespace {
        Some(namespace) => format!("in namespace {namespace}"),
        None => "in all namespaces or cluster-wide".to_owned(),
    };
    Err(Refusal(format!(
        "{} {} {place} is not granted to this component; have an administrator add it to `{field}` in the grants of its registration, or of its Plugin",
        key.api_version, key.kind
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    mod refusals;

    fn grants(json: serde_json::Value) -> Grants {
        serde_json::from_value(json).unwrap()
    }

    fn key(api_version: &str, kind: &str, namespace: Option<&str>) -> ObjectKey {
        ObjectKey {
            api_version: api_version.into(),
            kind: kind.into(),
            namespace: namespace.map(Into::into),
            name: "x".into(),
        }
    }

    fn selection(namespace: Option<&str>) -> Selection {
        Selection {
            api_version: "v1".into(),
            kind: "Secret".into(),
            namespace: namespace.map(Into::into),
            names: vec![],
            labels: None,
            fields: None,
        }
    }

    #[test]
    fn everything_is_denied_unless_it_is_granted() {
        let none = Grants::default();
        let config_map = key("v1", "ConfigMap", Some("a"));
        assert_eq!(
            none.read(&ClusterRef::Target, &config_map).unwrap_err().to_string(),
            "the target cluster is not granted to this component; have an administrator add `clusters.target` to the grants of its registration, or of its Plugin"
        );
        let cluster_only = grants(serde_json::json!({"clusters": {"target": true}}));
        assert_eq!(
            cluster_only.write(&ClusterRef::Target, &config_map).unwrap_err().to_string(),
            "v1 ConfigMap in namespace a is not granted to this component; have an administrator add it to `writes` in the grants of its registration, or of its Plugin"
        );
        assert!(none.artifact("ghcr.io/a").is_err() && none.host("example.org").is_err());
    }

    #[test]
    fn a_grant_names_groups_kinds_and_namespaces() {
        let some = grants(serde_json::json!({
            "clusters": {"target": true},
            "reads": [{"groups": ["apps"], "kinds": ["Deployment"], "namespaces": ["a"]}, {"groups": [""], "kinds": ["Namespace"]}],
        }));
        let may = |key: ObjectKey| some.read(&ClusterRef::Target, &key).is_ok();
        assert!(may(key("apps/v1", "Deployment", Some("a"))));
        assert!(may(key("v1", "Namespace", None)));
        assert!(!may(key("apps/v1", "Deployment", Some("b"))));
        assert!(!may(key("apps/v1", "Deployment", None)));
        assert!(!may(key("v1", "Deployment", Some("a"))));
        assert!(!may(key("apps/v1", "StatefulSet", Some("a"))));
        assert!(some.write(&ClusterRef::Target, &key("apps/v1", "Deployment", Some("a"))).is_err());
    }

    #[test]
    fn listing_all_namespaces_needs_a_grant_of_all() {
        let one = grants(serde_json::json!({"clusters": {"target": true}, "reads": [{"namespaces": ["a"]}]}));
        assert!(one.list(&ClusterRef::Target, &selection(Some("a"))).is_ok());
        assert!(one.list(&ClusterRef::Target, &selection(None)).is_err());
    }

    #[test]
    fn other_clusters_have_grants_of_their_own() {
        let named = grants(serde_json::json!({"clusters": {"named": ["b"]}}));
        assert!(named.cluster(&ClusterRef::Named("b".into())).is_ok());
        assert!(named.cluster(&ClusterRef::Named("c".into())).is_err());
        assert!(named.cluster(&ClusterRef::Host).is_err() && named.cluster(&ClusterRef::Target).is_err());
    }

    #[test]
    fn deleting_what_is_not_in_the_inventory_has_a_grant_of_its_own() {
        let writes = grants(serde_json::json!({"clusters": {"target": true}, "writes": [{}]}));
        assert!(writes.delete_unmanaged(&ClusterRef::Target, &selection(None)).is_err());
        let all = Grants { delete_unmanaged: true, ..writes };
        assert!(all.delete_unmanaged(&ClusterRef::Target, &selection(None)).is_ok());
    }

    #[test]
    fn an_artifact_prefix_ends_at_a_boundary() {
        let some = grants(
            serde_json::json!({"artifacts": ["ghcr.io/acme", "example.org/x/"], "hosts": ["charts.example.org"]}),
        );
        for granted in
            ["ghcr.io/acme", "ghcr.io/acme/a:1", "ghcr.io/acme:1", "ghcr.io/acme@sha256:0", "example.org/x/y"]
        {
            assert!(some.artifact(granted).is_ok(), "{granted}");
        }
        for refused in ["ghcr.io/acme-evil", "ghcr.io/acm", "example.org/xy", "evil/ghcr.io/acme"] {
            assert!(some.artifact(refused).is_err(), "{refused}");
        }
        assert!(grants(serde_json::json!({"hosts": ["Charts.Example.org"]})).host("charts.example.org").is_ok());
        assert!(some.host("charts.example.org").is_ok() && some.host("x.charts.example.org").is_err());
        assert!(grants(serde_json::json!({"artifacts": ["*"]})).artifact("anything").is_ok());
    }

    #[test]
    fn a_credential_is_granted_by_its_kind() {
        let some = grants(serde_json::json!({"kubeconfigs": ["serviceAccount"]}));
        assert!(some.kubeconfig("serviceAccount").is_ok());
        assert_eq!(
            some.kubeconfig("shootAdmin\n").unwrap_err().to_string(),
            "issuing a credential of kind \"shootAdmin\\n\" is not granted to this component; have an administrator add it to `kubeconfigs` in the grants of its registration, or of its Plugin"
        );
        assert!(Grants::default().kubeconfig("serviceAccount").is_err());
        assert!(grants(serde_json::json!({"kubeconfigs": ["*"]})).kubeconfig("shootAdmin").is_ok());
    }

    #[test]
    fn a_name_that_leads_elsewhere_is_refused_whatever_is_granted() {
        let all = grants(serde_json::json!({"clusters": {"target": true}, "reads": [{}], "writes": [{}]}));
        let escape = ObjectKey { name: "../../secrets/x".into(), ..key("v1", "ConfigMap", Some("a")) };
        assert_eq!(
            all.read(&ClusterRef::Target, &escape).unwrap_err().to_string(),
            "ConfigMap \"../../secrets/x\" is refused: no object and no namespace can have this name"
        );
        assert!(all.write(&ClusterRef::Target, &key("v1", "ConfigMap", Some("a/b"))).is_err());
        assert_eq!(
            all.write(&ClusterRef::Target, &key("../v1", "ConfigMap", Some("a"))).unwrap_err().to_string(),
            "ConfigMap of \"../v1\" is refused: no kind has this apiVersion"
        );
        assert!(all.list(&ClusterRef::Target, &selection(Some(".."))).is_err());
        assert!(all.list(&ClusterRef::Target, &selection(Some("a"))).is_ok());
    }

    #[test]
    fn a_misspelt_grant_is_refused() {
        assert!(serde_json::from_value::<Grants>(serde_json::json!({"read": [{}]})).is_err());
    }
}
