//! What the core asks of the rest of the host: traits, implemented by `plugin`, `apply` and `registry`.

use std::{fmt, future::Future, pin::Pin, sync::Arc};

use serde_json::Value;

use crate::{
    error::Fault,
    grant::Grants,
    proposal::{ClusterRef, Item, ObjectKey, Proposal, Selection},
    template::{RenderFailure, RenderRequest, Rendered},
};

/// A future that can be held behind a trait object.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// One kind that a cluster serves.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ApiResource {
    /// Group and version.
    pub api_version: String,
    /// The kind.
    pub kind: String,
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
    /// The server's version as `major.minor` text.
    fn version<'a>(&'a self, on: &'a ClusterRef) -> BoxFuture<'a, Result<String, Fault>>;
    /// The kinds that the cluster serves.
    fn discover<'a>(&'a self, on: &'a ClusterRef) -> BoxFuture<'a, Result<Vec<ApiResource>, Fault>>;
}

/// Who a component is, as status and logs name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginIdentity {
    /// The registration's name.
    pub name: String,
    /// The component's version, as its registration gives it.
    pub version: String,
    /// `sha256:…` of the component's bytes.
    pub digest: String,
}

impl fmt::Display for PluginIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.version)
    }
}

/// A component that plans deploy items.
pub trait Deployer: Send + Sync {
    /// Who it is.
    fn identity(&self) -> &PluginIdentity;
    /// What it may reach.
    fn grants(&self) -> &Grants;
    /// The labels that mark an object on a target cluster as belonging to a deploy item; the value is the item's name.
    fn ownership_labels(&self) -> &[String];
    /// What the item needs. Same item, same reads, same proposal.
    ///
    /// A trap, a limit met and an unusable component are faults as well, each with its own sentence.
    fn plan<'a>(&'a self, item: &'a Item, clusters: Arc<dyn Clusters>) -> BoxFuture<'a, Result<Proposal, Fault>>;
    /// What must happen before the host deletes the inventory; `None` where the component does not export `uninstall`.
    fn uninstall<'a>(
        &'a self,
        item: &'a Item,
        clusters: Arc<dyn Clusters>,
    ) -> BoxFuture<'a, Result<Option<Proposal>, Fault>>;
}

/// The files of one blueprint, by slash-separated path without a leading slash.
pub trait Files: Send + Sync {
    /// A file's content. The error is one sentence.
    fn read(&self, path: &str) -> Result<Vec<u8>, String>;
    /// The names in a folder, sorted; `` is the root.
    fn list(&self, path: &str) -> Result<Vec<String>, String>;
}

/// A component that renders template executions.
pub trait Renderer: Send + Sync {
    /// Who it is.
    fn identity(&self) -> &PluginIdentity;
    /// Renders one execution.
    fn render<'a>(
        &'a self,
        request: &'a RenderRequest,
        files: Arc<dyn Files>,
    ) -> BoxFuture<'a, Result<Rendered, RenderFailure>>;
}

/// Which component serves a deploy item type or a template type.
pub trait Plugins: Send + Sync {
    /// The deployer of an item type; `None` where no component claims it: such items belong to external deployers.
    fn deployer(&self, item_type: &str) -> Option<Arc<dyn Deployer>>;
    /// The engine of a template type, such as `Jinja`.
    fn renderer(&self, template_type: &str) -> Option<Arc<dyn Renderer>>;
    /// The template types served, sorted, for messages.
    fn template_types(&self) -> Vec<String>;
}

/// The one source of time. Implemented in `runtime`.
pub trait Clock: Send + Sync {
    /// Now.
    fn now(&self) -> jiff::Timestamp;
}

/// The one source of randomness. Implemented in `runtime`.
pub trait Chance: Send + Sync {
    /// A new job id: a UUID of version 4.
    fn job_id(&self) -> String;
    /// A number between 0 and 1, for the jitter of intervals.
    fn fraction(&self) -> f64;
}
