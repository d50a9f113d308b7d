//! Deployers: components that plan deploy items, and what they may read. Implemented by `plugin` and `apply`.

use std::{fmt, sync::Arc};

use serde_json::Value;

use crate::{ClusterRef, Item, ObjectKey, Proposal, Selection, grant::Grants};
use orangery_core::{
    error::Fault,
    name::{ApiVersion, Kind},
    port::BoxFuture,
};
use orangery_ocm::{Artifacts, Resources, Unavailable};

/// One kind that a cluster serves.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ApiResource {
    /// Group and version.
    pub api_version: ApiVersion,
    /// The kind.
    pub kind: Kind,
    /// The plural name in URLs.
    pub plural: String,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
}

/// Reading clusters on behalf of one call. Grants are checked by the caller of this port, before it is asked.
pub trait Clusters: Send + Sync {
    /// One object, or `None` where it does not exist. A kind that the cluster does not serve is `Fault::Invalid`.
    fn get<'a>(&'a self, on: &'a ClusterRef, key: &'a ObjectKey) -> BoxFuture<'a, Result<Option<Value>, Fault>>;
    /// Many objects, read concurrently, answered in the order asked.
    fn get_many<'a>(
        &'a self,
        on: &'a ClusterRef,
        keys: &'a [ObjectKey],
    ) -> BoxFuture<'a, Result<Vec<Option<Value>>, Fault>>;
    /// All objects of a selection.
    fn list<'a>(&'a self, on: &'a ClusterRef, what: &'a Selection) -> BoxFuture<'a, Result<Vec<Value>, Fault>>;
    /// The server's version as it says it, such as `v1.33.4` or `v1.33.4-gke.1`.
    fn version<'a>(&'a self, on: &'a ClusterRef) -> BoxFuture<'a, Result<String, Fault>>;
    /// The kinds that the cluster serves.
    fn discover<'a>(&'a self, on: &'a ClusterRef) -> BoxFuture<'a, Result<Vec<ApiResource>, Fault>>;
}

/// All that one call of a deployer may ask. Grants are checked before.
#[derive(Clone)]
pub struct Reads {
    /// Objects of clusters.
    pub clusters: Arc<dyn Clusters>,
    /// Content of registries and web servers.
    pub artifacts: Arc<dyn Artifacts>,
    /// Resources of component versions.
    pub resources: Arc<dyn Resources>,
}

impl Reads {
    /// Clusters, and no content anywhere.
    pub fn of_clusters(clusters: Arc<dyn Clusters>) -> Self {
        Self { clusters, artifacts: Arc::new(Unavailable), resources: Arc::new(Unavailable) }
    }
}

/// The identity of a component, as status and logs name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginIdentity {
    /// The registration's name.
    pub name: String,
    /// The component's version, as its registration gives it.
    pub version: String,
    /// `sha256:…` of the component's bytes.
    pub digest: String,
    /// Whether these are the bytes that whoever registered the component has named by their digest: in its registration, in the
    /// build of the host, or in a blueprint that is verified as a whole (C-77).
    pub is_pinned: bool,
}

impl fmt::Display for PluginIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.version)
    }
}

/// A component that plans deploy items.
pub trait Deployer: Send + Sync {
    /// Its identity.
    fn identity(&self) -> &PluginIdentity;
    /// The memory that one call may take, in MiB.
    fn memory_mib(&self) -> u64 {
        0
    }
    /// What it may reach.
    fn grants(&self) -> &Grants;
    /// The labels that mark an object on a target cluster as belonging to a deploy item; the value is the item's name.
    fn ownership_labels(&self) -> &[String];
    /// What the item needs. Same item, same reads, same proposal.
    ///
    /// A trap, a limit met and an unusable component are faults as well, each with its own sentence.
    fn plan<'a>(&'a self, item: &'a Item, reads: Reads) -> BoxFuture<'a, Result<Proposal, Fault>>;
    /// What must happen before the host deletes the inventory; `None` where the component does not export `uninstall`.
    fn uninstall<'a>(&'a self, item: &'a Item, reads: Reads) -> BoxFuture<'a, Result<Option<Proposal>, Fault>>;
}
