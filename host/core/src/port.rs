//! What the core asks of the rest of the host: traits, implemented by `plugin`, `apply` and `registry`.

use std::{fmt, future::Future, pin::Pin, sync::Arc};

use serde_json::{Map, Value};

mod artifact;

pub use self::artifact::{Artifact, Found, KeyComponent, Layer, Reads, ResourceKey, Resources};
use crate::{
    blueprint::ComponentReference,
    component::{ComponentRequest, ComponentVersion, ComponentVersions, Credentials, SignaturePolicy},
    error::{Code, Fault},
    grant::Grants,
    proposal::{ClusterRef, Item, ObjectKey, Proposal, Selection},
    template::{Findings, RenderFailure, RenderRequest, Rendered},
    workflow::condition::{Answered, Point},
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
    /// The server's version as it says it, such as `v1.33.4` or `v1.33.4-gke.1`.
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
    fn plan<'a>(&'a self, item: &'a Item, reads: Reads) -> BoxFuture<'a, Result<Proposal, Fault>>;
    /// What must happen before the host deletes the inventory; `None` where the component does not export `uninstall`.
    fn uninstall<'a>(&'a self, item: &'a Item, reads: Reads) -> BoxFuture<'a, Result<Option<Proposal>, Fault>>;
}

/// The files of one blueprint, by slash-separated path without a leading slash.
pub trait Files: Send + Sync {
    /// A file's content. The error is one sentence.
    fn read(&self, path: &str) -> Result<Vec<u8>, String>;
    /// The names in a folder, sorted; `` is the root.
    fn list(&self, path: &str) -> Result<Vec<String>, String>;
}

/// Names and values that all have to match; several may be alike but for their value.
pub type Identity = [(String, String)];

/// The component version that a blueprint belongs to, as templates reach it (`wit/template/components.wit`). Descriptors
/// are JSON in the schema that the blueprint asks for (`landscaper.md` §4.4); both schemas are understood.
pub trait Components: Send + Sync {
    /// The descriptor of the component that `from` references under this identity; without `from`, the blueprint's own.
    fn component<'a>(&'a self, from: Option<&'a Value>, select: &'a Identity) -> BoxFuture<'a, Result<Value, Fault>>;
    /// The resources of a descriptor that match an identity, in the descriptor's order.
    fn resources<'a>(
        &'a self,
        from: Option<&'a Value>,
        select: &'a Identity,
    ) -> BoxFuture<'a, Result<Vec<Value>, Fault>>;
    /// The global identity of a resource, as text that deployers hand back.
    fn resource_key<'a>(&'a self, reference: &'a str) -> BoxFuture<'a, Result<String, Fault>>;
    /// A resource's content.
    fn resource_content<'a>(&'a self, reference: &'a str) -> BoxFuture<'a, Result<Vec<u8>, Fault>>;
}

/// Content of registries and web servers, asked for with the credentials of one Context. Grants are checked by the caller.
pub trait Artifacts: Send + Sync {
    /// The WebAssembly component of an artifact: its layer of media type `application/wasm`. The manifest has the digest
    /// of the reference, and the layer the digest that the manifest says, or the answer is a fault.
    fn component<'a>(&'a self, reference: &'a ComponentReference) -> BoxFuture<'a, Result<Vec<u8>, Fault>>;
    /// An artifact of a registry, as it is now: a chart where it has one, else its first layer.
    fn oci<'a>(&'a self, reference: &'a str) -> Found<'a>;
    /// A file of a web server.
    fn url<'a>(&'a self, url: &'a str) -> Found<'a>;
    /// A chart of a classic repository, or of the registry where the address begins with `oci://`.
    fn helm_repository<'a>(&'a self, url: &'a str, chart: &'a str, version: &'a str) -> Found<'a>;
}

/// Credentials for the clusters behind targets (`wit/template/kubeconfigs.wit`). Grants are checked by the caller.
pub trait Kubeconfigs: Send + Sync {
    /// Mints a credential of a kind. The answer is a secret.
    fn mint<'a>(&'a self, kind: &'a str, arguments: &'a Value) -> BoxFuture<'a, Result<Value, Fault>>;
}

/// The time and the randomness of one job: rendering it again, also after a restart, gives the same.
#[derive(Clone)]
pub struct JobChance {
    /// When the job began.
    pub now: jiff::Timestamp,
    /// What all randomness of the job is derived from. A secret: who knows it knows the passwords that templates make.
    pub seed: [u8; 32],
}

/// All that templates of one job may reach.
#[derive(Clone)]
pub struct Surroundings {
    /// The blueprint's files.
    pub files: Arc<dyn Files>,
    /// The component versions behind the blueprint.
    pub components: Arc<dyn Components>,
    /// Components in registries.
    pub artifacts: Arc<dyn Artifacts>,
    /// Credentials.
    pub kubeconfigs: Arc<dyn Kubeconfigs>,
    /// Time and randomness.
    pub chance: JobChance,
}

impl Surroundings {
    /// Files and nothing else: every other call answers that there is nothing behind it.
    pub fn of_files(files: Arc<dyn Files>) -> Self {
        Self {
            files,
            components: Arc::new(Nothing),
            artifacts: Arc::new(Nothing),
            kubeconfigs: Arc::new(Nothing),
            chance: JobChance { now: jiff::Timestamp::UNIX_EPOCH, seed: [0; 32] },
        }
    }
}

/// No component version, no registry and no credentials.
pub struct Nothing;

impl Nothing {
    fn component<T>() -> Result<T, Fault> {
        Err(Fault::invalid(
            Code::ConfigurationProblem,
            "the blueprint belongs to no component version; give the installation a componentDescriptor",
        ))
    }
}

impl Components for Nothing {
    fn component<'a>(&'a self, _: Option<&'a Value>, _: &'a Identity) -> BoxFuture<'a, Result<Value, Fault>> {
        Box::pin(async { Self::component() })
    }

    fn resources<'a>(&'a self, _: Option<&'a Value>, _: &'a Identity) -> BoxFuture<'a, Result<Vec<Value>, Fault>> {
        Box::pin(async { Self::component() })
    }

    fn resource_key<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<String, Fault>> {
        Box::pin(async { Self::component() })
    }

    fn resource_content<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Vec<u8>, Fault>> {
        Box::pin(async { Self::component() })
    }
}

impl Artifacts for Nothing {
    fn component<'a>(&'a self, reference: &'a ComponentReference) -> BoxFuture<'a, Result<Vec<u8>, Fault>> {
        Box::pin(async move {
            Err(Fault::invalid(
                Code::ConfigurationProblem,
                format!(
                    "{reference} cannot be read: there is no registry here; put the component into the blueprint and name it with `file`"
                ),
            ))
        })
    }

    fn oci<'a>(&'a self, reference: &'a str) -> Found<'a> {
        Self::content(format!("the artifact {reference}"))
    }

    fn url<'a>(&'a self, _: &'a str) -> Found<'a> {
        Self::content("a file of a web server".to_owned())
    }

    fn helm_repository<'a>(&'a self, _: &'a str, chart: &'a str, version: &'a str) -> Found<'a> {
        Self::content(format!("the chart {chart} {version}"))
    }
}

impl ComponentVersions for Nothing {
    fn open<'a>(&'a self, _: &'a ComponentRequest) -> BoxFuture<'a, Result<Arc<dyn ComponentVersion>, Fault>> {
        let message = "this host reaches no repositories of component versions";
        Box::pin(async move { Err(Fault::invalid(Code::ConfigurationProblem, message)) })
    }

    fn artifacts(&self, _: &Credentials) -> Result<Arc<dyn Artifacts>, Fault> {
        Ok(Arc::new(Nothing))
    }

    fn signature_policy(&self) -> SignaturePolicy {
        SignaturePolicy::default()
    }
}

impl Kubeconfigs for Nothing {
    fn mint<'a>(&'a self, kind: &'a str, _: &'a Value) -> BoxFuture<'a, Result<Value, Fault>> {
        Box::pin(async move { Err(Fault::denied(format!("no credentials of kind {kind:?} can be had here"))) })
    }
}

/// A component that renders template executions.
pub trait Renderer: Send + Sync {
    /// Who it is.
    fn identity(&self) -> &PluginIdentity;
    /// Renders one execution.
    fn render<'a>(
        &'a self,
        request: &'a RenderRequest,
        surroundings: &'a Surroundings,
    ) -> BoxFuture<'a, Result<Rendered, RenderFailure>>;
    /// Looks at one execution without rendering it; `None` where the component cannot tell. The error is
    /// the host's: the component could not be asked.
    fn check<'a>(
        &'a self,
        _: &'a RenderRequest,
        _: &'a Surroundings,
    ) -> BoxFuture<'a, Result<Option<Findings>, RenderFailure>> {
        Box::pin(async { Ok(None) })
    }
}

/// What a condition asks of a component.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// The deploy item.
    pub item: String,
    /// Which of its conditions.
    pub point: Point,
    /// What the condition tells the component.
    pub config: Value,
    /// The values that an expression would have as variables: imports, items, item and objects.
    pub inputs: Map<String, Value>,
    /// When it is asked.
    pub now: jiff::Timestamp,
}

/// A component that answers conditions.
pub trait Evaluator: Send + Sync {
    /// Who it is.
    fn identity(&self) -> &PluginIdentity;
    /// Whether the condition holds. A trap, a limit met and an unusable component are faults.
    fn evaluate<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Result<Answered, Fault>>;
}

/// Which component serves a deploy item type, a template type or a condition type.
pub trait Plugins: Send + Sync {
    /// The deployer of an item type; `None` where no component claims it: such items belong to external deployers.
    fn deployer(&self, item_type: &str) -> Option<Arc<dyn Deployer>>;
    /// The engine of a template type, such as `Jinja`.
    fn renderer(&self, template_type: &str) -> Option<Arc<dyn Renderer>>;
    /// The engine that an execution of type `Wasm` brings along. `name` is where the component comes from: a file of the
    /// blueprint, or a reference. Whether the bytes are an engine is found out when it is called.
    fn own_renderer(&self, name: &str, bytes: Vec<u8>) -> Arc<dyn Renderer>;
    /// The template types served, sorted, for messages.
    fn template_types(&self) -> Vec<String>;
    /// The component of a condition type.
    fn evaluator(&self, _condition_type: &str) -> Option<Arc<dyn Evaluator>> {
        None
    }
    /// The condition types served, sorted, for messages.
    fn condition_types(&self) -> Vec<String> {
        Vec::new()
    }
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
    /// Bytes that nobody can guess.
    fn secret(&self) -> [u8; 32];
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use super::*;

    struct NoFiles;

    impl Files for NoFiles {
        fn read(&self, path: &str) -> Result<Vec<u8>, String> {
            Err(format!("{path} does not exist"))
        }

        fn list(&self, _: &str) -> Result<Vec<String>, String> {
            Ok(Vec::new())
        }
    }

    /// The answer of a call that waits for nothing.
    fn answer<T>(mut call: BoxFuture<'_, Result<T, Fault>>) -> Result<T, Fault> {
        match call.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(answer) => answer,
            Poll::Pending => panic!("the call waits"),
        }
    }

    #[test]
    fn a_blueprint_of_its_own_reaches_no_component_version_and_no_credential() {
        let around = Surroundings::of_files(Arc::new(NoFiles));
        let none = "the blueprint belongs to no component version; give the installation a componentDescriptor";
        let told = [
            answer(around.components.component(None, &[])).unwrap_err().to_string(),
            answer(around.components.resources(None, &[])).unwrap_err().to_string(),
            answer(around.components.resource_key("r")).unwrap_err().to_string(),
            answer(around.components.resource_content("r")).unwrap_err().to_string(),
        ];
        assert_eq!(told, [none; 4]);
        assert_eq!(
            answer(around.kubeconfigs.mint("serviceAccount", &Value::Null)).unwrap_err(),
            Fault::denied("no credentials of kind \"serviceAccount\" can be had here")
        );
        assert_eq!(around.files.read("a"), Err("a does not exist".to_owned()));
        assert_eq!((around.chance.now, around.chance.seed), (jiff::Timestamp::UNIX_EPOCH, [0; 32]));
    }
}
