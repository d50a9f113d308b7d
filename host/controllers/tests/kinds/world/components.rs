//! A repository that has each component version with one blueprint, and may be away.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering},
};

use orangery_core::{
    error::{Code, Fault},
    port::BoxFuture,
};
use orangery_ocm::{
    Artifact, Artifacts, Child, ComponentRequest, ComponentVersion, ComponentVersions, Components, Credentials,
    Descriptor, Files, ResourceContent, ResourceKey, ResourceReference, SignaturePolicy, Unavailable, VersionReference,
};
use serde_json::{Value, json};

/// What the repository says while it is away.
pub(crate) const AWAY: &str = "the repository does not answer";

#[derive(Default)]
pub(crate) struct TestComponents {
    blueprint: Mutex<Value>,
    is_away: AtomicBool,
}

impl TestComponents {
    /// From now on component versions have this blueprint.
    pub(crate) fn have(&self, blueprint: &Value) {
        *self.blueprint.lock().unwrap() = blueprint.clone();
    }

    /// Whether it is away from now on.
    pub(crate) fn be_away(&self, is_away: bool) {
        self.is_away.store(is_away, Ordering::SeqCst);
    }
}

fn unreachable_repository<T>() -> BoxFuture<'static, Result<T, Fault>> {
    Box::pin(async { Err(Fault::later(Code::Timeout, AWAY)) })
}

impl ComponentVersions for TestComponents {
    fn open<'a>(&'a self, _: &'a ComponentRequest) -> BoxFuture<'a, Result<Arc<dyn ComponentVersion>, Fault>> {
        if self.is_away.load(Ordering::SeqCst) {
            return unreachable_repository();
        }
        let component = json!({
            "name": "example.org/app", "version": "1.0.0", "provider": "us", "repositoryContexts": [], "sources": [],
            "componentReferences": [], "resources": [],
        });
        let descriptor = Descriptor::parse(&json!({"meta": {"schemaVersion": "v2"}, "component": component})).unwrap();
        let blueprint = self.blueprint.lock().unwrap().to_string();
        let version = Version { descriptor: Arc::new(descriptor), blueprint: Arc::new(BlueprintFile(blueprint)) };
        Box::pin(async { Ok(Arc::new(version) as Arc<dyn ComponentVersion>) })
    }

    fn artifacts(&self, _: &Credentials) -> Result<Arc<dyn Artifacts>, Fault> {
        Ok(Arc::new(Unavailable))
    }

    fn signature_policy(&self) -> SignaturePolicy {
        SignaturePolicy::default()
    }
}

struct BlueprintFile(String);

impl Files for BlueprintFile {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        if path == "blueprint.yaml" { Ok(self.0.clone().into_bytes()) } else { Err(format!("{path} does not exist")) }
    }

    fn list(&self, _: &str) -> Result<Vec<String>, String> {
        Ok(vec!["blueprint.yaml".to_owned()])
    }
}

struct Version {
    descriptor: Arc<Descriptor>,
    blueprint: Arc<BlueprintFile>,
}

impl ComponentVersion for Version {
    fn descriptor(&self) -> &Arc<Descriptor> {
        &self.descriptor
    }

    fn descriptors(&self) -> &[Arc<Descriptor>] {
        std::slice::from_ref(&self.descriptor)
    }

    fn replaced(&self) -> Option<&VersionReference> {
        None
    }

    fn blueprint<'a>(&'a self, _: &'a ResourceReference) -> BoxFuture<'a, Result<Arc<dyn Files>, Fault>> {
        let blueprint = Arc::clone(&self.blueprint);
        Box::pin(async { Ok(blueprint as Arc<dyn Files>) })
    }

    fn json_schema<'a>(&'a self, _: &'a ResourceReference) -> BoxFuture<'a, Result<Value, Fault>> {
        unreachable_repository()
    }

    fn content<'a>(&'a self, _: &'a ResourceReference) -> BoxFuture<'a, Result<ResourceContent, Fault>> {
        unreachable_repository()
    }

    fn keyed<'a>(&'a self, _: &'a ResourceKey) -> BoxFuture<'a, Result<Option<Arc<dyn Artifact>>, Fault>> {
        unreachable_repository()
    }

    fn child(&self, reference: &str) -> Result<Child, Fault> {
        Err(Fault::invalid(Code::ConfigurationProblem, format!("{reference} is no reference")))
    }

    fn templates(self: Arc<Self>) -> Arc<dyn Components> {
        Arc::new(Unavailable)
    }
}
