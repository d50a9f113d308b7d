//! Grants: what a component may reach. A pure function of (what the operator allows, this argument), deny by default.

use serde::{Deserialize, Serialize};

use crate::proposal::{ClusterRef, ObjectKey, Selection};

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
        Err(Refusal(format!("{on} is not granted to this component; add `{word}` to the grants of its registration")))
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
                "deleting every {} whoever made it is not granted to this component; add `deleteUnmanaged: true` to the grants of its registration",
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
            "the artifact {reference} is not granted to this component; add it, or a prefix of it, to `artifacts` in the grants of its registration"
        )))
    }

    /// May this host be asked?
    pub fn host(&self, host: &str) -> Result<(), Refusal> {
        if matches(&self.hosts, host) {
            return Ok(());
        }
        Err(Refusal(format!(
            "the host {host} is not granted to this component; add it to `hosts` in the grants of its registration"
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
        name: String::new(),
    }
}

fn matches(patterns: &[String], value: &str) -> bool {
    patterns.iter().any(|pattern| pattern == "*" || pattern == value)
}

fn allowed(grants: &[KindGrant], field: &str, key: &ObjectKey) -> Result<(), Refusal> {
    let namespace = key.namespace.as_deref();
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
        "{} {} {place} is not granted to this component; add it to `{field}` in the grants of its registration",
        key.api_version, key.kind
    )))
}
