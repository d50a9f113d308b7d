//! The objects of a server, as a test deals with them: applied, deleted, waited for.

use std::{collections::BTreeMap, time::Duration};

use futures::StreamExt as _;
use kube::{
    Api, Client, Config, ResourceExt as _,
    api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams, TypeMeta},
    config::{KubeConfigOptions, Kubeconfig},
    discovery::{self, Scope},
    runtime::watcher::{self, Event},
};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use crate::{canary::Canaries, fail, long_wait::with_message, matching::differences, yaml};

/// How long a test waits for a condition before it fails: servers on two processors that others use as well are slow.
pub const DEADLINE: Duration = Duration::from_secs(150);

/// The namespace that tests work in; a Target `cluster` is there.
pub const NAMESPACE: &str = "default";

/// The objects of a server.
pub struct Objects {
    kubeconfig: String,
    client: Client,
    /// What is secret of what was applied.
    canaries: Canaries,
}

impl Objects {
    /// Those of the server of a kubeconfig.
    pub async fn of(kubeconfig: String) -> Objects {
        let client = connect(&kubeconfig).await;
        let canaries = Canaries::of_server(&kubeconfig);
        canaries.learn_text(&kubeconfig);
        Objects { kubeconfig, client, canaries }
    }

    /// A client of the server.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The values of the Secrets that were applied, and the credentials of the kubeconfig.
    pub fn canaries(&self) -> &Canaries {
        &self.canaries
    }

    /// What a Target needs to reach the server.
    pub fn kubeconfig(&self) -> &str {
        &self.kubeconfig
    }

    /// Applies one object; objects without a namespace go into [`NAMESPACE`].
    pub async fn apply(&self, object: &Value) -> DynamicObject {
        let applied = self.try_apply(object).await;
        applied.unwrap_or_else(|error| refused("apply", object, &error))
    }

    /// Applies one object, which the server may refuse.
    pub async fn try_apply(&self, object: &Value) -> kube::Result<DynamicObject> {
        self.canaries.learn(object);
        self.patch(object, &PatchParams::apply("suite").force()).await
    }

    /// Creates an object, which is not there yet, and answers it.
    pub async fn create(&self, object: &Value) -> Value {
        self.canaries.learn(object);
        let content = serde_json::from_value(object.clone()).expect("it is an object");
        let created = self.api(object).await.create(&PostParams::default(), &content).await;
        of_kind_of(object, created.unwrap_or_else(|error| refused("create", object, &error)))
    }

    /// Whether the server would refuse an object.
    pub async fn is_refused(&self, object: &Value) -> bool {
        self.patch(object, &PatchParams::apply("suite").force().dry_run()).await.is_err()
    }

    /// What the server says of an object that it is asked to take, and not to keep; a field that it does not know is an error.
    ///
    /// # Errors
    /// As the server answers.
    pub async fn would_take(&self, object: &Value) -> kube::Result<DynamicObject> {
        self.patch(object, &PatchParams::apply("suite").force().dry_run().validation_strict()).await
    }

    async fn patch(&self, object: &Value, parameters: &PatchParams) -> kube::Result<DynamicObject> {
        self.api(object).await.patch(text(object, "/metadata/name"), parameters, &Patch::Apply(object)).await
    }

    /// Applies every document of a YAML text.
    pub async fn apply_yaml(&self, text: &str) {
        for object in yaml::documents(text) {
            self.apply(&object).await;
        }
    }

    /// Merges into the status of an object, as an external deployer does.
    pub async fn patch_status(&self, object: &Value, status: Value) -> DynamicObject {
        let patched = self.try_patch_status(object, status).await;
        patched.unwrap_or_else(|error| refused("patch the status of", object, &error))
    }

    /// Merges into the status of an object, or says why the server does not.
    ///
    /// # Errors
    /// As the server answers.
    pub async fn try_patch_status(&self, object: &Value, status: Value) -> kube::Result<DynamicObject> {
        let api = self.api(object).await;
        let patch = Patch::Merge(json!({"status": status}));
        api.patch_status(text(object, "/metadata/name"), &PatchParams::default(), &patch).await
    }

    /// Merges annotations into those of an object; a null removes one.
    pub async fn annotate(&self, object: &Value, annotations: Value) {
        let field = |field: &str| object.get(field).cloned();
        let mut metadata = json!({"name": object.pointer("/metadata/name"), "annotations": annotations});
        if let (Some(namespace), Some(metadata)) = (object.pointer("/metadata/namespace"), metadata.as_object_mut()) {
            metadata.insert("namespace".to_owned(), namespace.clone());
        }
        self.merge(&json!({"apiVersion": field("apiVersion"), "kind": field("kind"), "metadata": metadata})).await;
    }

    /// Merges into an object that is there.
    pub async fn merge(&self, patch: &Value) {
        assert!(self.merge_where_there(patch).await, "there is nothing to merge {patch} into");
    }

    /// Merges into an object; whether it is there.
    pub async fn merge_where_there(&self, patch: &Value) -> bool {
        match self.try_merge(patch).await {
            Ok(_) => true,
            Err(kube::Error::Api(status)) if status.code == 404 => false,
            Err(error) => refused("patch", patch, &error),
        }
    }

    /// Merges into an object, or says why the server does not.
    ///
    /// # Errors
    /// As the server answers.
    pub async fn try_merge(&self, patch: &Value) -> kube::Result<DynamicObject> {
        let api = self.api(patch).await;
        api.patch(text(patch, "/metadata/name"), &PatchParams::default(), &Patch::Merge(patch)).await
    }

    /// Deletes the object of this kind and name, and in the background what it owns. Its absence is no failure.
    pub async fn delete(&self, object: &Value) {
        self.delete_with(object, &DeleteParams::background()).await;
    }

    /// The same, in another way.
    pub async fn delete_with(&self, object: &Value, how: &DeleteParams) {
        let deleted = self.api(object).await.delete(text(object, "/metadata/name"), how).await;
        let gone = matches!(&deleted, Err(kube::Error::Api(status)) if status.code == 404);
        assert!(gone || deleted.is_ok(), "cannot delete {object}: {deleted:?}");
    }

    /// Waits until an object is there that has all that is expected, and answers it.
    ///
    /// Without `metadata.name` every object of the kind is looked at.
    pub async fn expect(&self, expected: &Value) -> Value {
        let is = |objects: &[Value]| nearest(expected, objects).filter(|(lines, _)| lines.is_empty());
        match self.wait(expected, "to be as expected", is).await {
            Ok((_, object)) => object,
            Err(objects) => report("was not there in time", expected, &objects),
        }
    }

    /// Waits until an object of the kind of this one holds what is asked, and answers it.
    pub async fn expect_that(&self, of_kind: &Value, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let find = |objects: &[Value]| objects.iter().find(|object| holds(object)).cloned();
        let found = self.wait(of_kind, &format!("which {what}"), find).await;
        found.unwrap_or_else(|objects| report(what, of_kind, &objects))
    }

    /// Waits until no object is there that has all of this.
    pub async fn expect_absent(&self, expected: &Value) {
        let has = |objects: &[Value]| objects.iter().any(|object| differences(expected, object).is_empty());
        let gone = self.wait(expected, "to be gone", |objects| (!has(objects)).then_some(())).await;
        if let Err(objects) = gone {
            report("was still there", expected, &objects);
        }
    }

    /// All objects of the kind of this one, sorted by name.
    pub async fn list(&self, of_kind: &Value) -> Vec<Value> {
        let list = self.api(of_kind).await.list(&Default::default()).await.expect("the kind can be listed");
        list.items.into_iter().map(|object| of_kind_of(of_kind, object)).collect()
    }

    /// The same of all namespaces.
    pub async fn list_everywhere(&self, of_kind: &Value) -> Vec<Value> {
        let (resource, _) = self.resource(of_kind).await;
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource);
        let list = api.list(&Default::default()).await.expect("the kind can be listed");
        list.items.into_iter().map(|object| of_kind_of(of_kind, object)).collect()
    }

    /// Watches the kind until the answer is there, or the deadline has passed; then what was there is answered.
    async fn wait<T>(
        &self,
        of_kind: &Value,
        what: &str,
        answer: impl FnMut(&[Value]) -> Option<T>,
    ) -> Result<T, Vec<Value>> {
        let of_object = || {
            let status = of_kind.get("status").map(|status| format!(" {status}")).unwrap_or_default();
            let parts = ["/kind", "/metadata/namespace", "/metadata/name"].map(|pointer| text(of_kind, pointer));
            let named: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
            format!("{}{status} {what}", named.join(" "))
        };
        with_message(of_object, self.watch(of_kind, answer)).await
    }

    async fn watch<T>(&self, of_kind: &Value, mut answer: impl FnMut(&[Value]) -> Option<T>) -> Result<T, Vec<Value>> {
        let deadline = Instant::now() + DEADLINE;
        let mut events = watcher::watcher(self.api(of_kind).await, watcher::Config::default()).boxed();
        let mut objects: BTreeMap<String, Value> = BTreeMap::new();
        let mut listed = false;
        while let Ok(Some(event)) = timeout_at(deadline, events.next()).await {
            match event {
                Ok(Event::Init) => (listed, objects) = (false, BTreeMap::new()),
                Ok(Event::InitDone) => listed = true,
                Ok(Event::Apply(object) | Event::InitApply(object)) => {
                    objects.insert(object.name_any(), of_kind_of(of_kind, object));
                }
                Ok(Event::Delete(object)) => {
                    objects.remove(&object.name_any());
                }
                // The watcher begins anew by itself; the deadline ends it.
                Err(_) => continue,
            }
            // What is listed is looked at as a whole: there may be thousands.
            if !listed {
                continue;
            }
            let present: Vec<Value> = objects.values().cloned().collect();
            if let Some(found) = answer(&present) {
                return Ok(found);
            }
        }
        Err(objects.into_values().collect())
    }

    async fn api(&self, object: &Value) -> Api<DynamicObject> {
        let (resource, scope) = self.resource(object).await;
        let namespace = object.pointer("/metadata/namespace").and_then(Value::as_str).unwrap_or(NAMESPACE);
        match scope {
            Scope::Namespaced => Api::namespaced_with(self.client.clone(), namespace, &resource),
            Scope::Cluster => Api::all_with(self.client.clone(), &resource),
        }
    }

    async fn resource(&self, object: &Value) -> (ApiResource, Scope) {
        let (group, version) = match text(object, "/apiVersion").split_once('/') {
            Some((group, version)) => (group, version),
            None => ("", text(object, "/apiVersion")),
        };
        let kind = GroupVersionKind::gvk(group, version, text(object, "/kind"));
        let found = discovery::pinned_kind(&self.client, &kind).await;
        let (resource, capabilities) = found.unwrap_or_else(|error| refused("find the kind of", object, &error));
        (resource, capabilities.scope)
    }
}

/// A client of the server of a kubeconfig.
pub async fn connect(kubeconfig: &str) -> Client {
    let kubeconfig = Kubeconfig::from_yaml(kubeconfig).expect("the kubeconfig is one");
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    Client::try_from(config.expect("the kubeconfig is complete")).expect("a client can be made of it")
}

/// The object that differs least, with its differences; candidates are those of the expected name, or all.
fn nearest(expected: &Value, objects: &[Value]) -> Option<(Vec<String>, Value)> {
    let name = expected.pointer("/metadata/name");
    let candidates = objects.iter().filter(|object| name.is_none() || object.pointer("/metadata/name") == name);
    let compared = candidates.map(|object| (differences(expected, object), object.clone()));
    compared.min_by_key(|(lines, _)| lines.len())
}

fn report(what: &str, expected: &Value, objects: &[Value]) -> ! {
    let names: Vec<_> = objects.iter().map(|object| text(object, "/metadata/name")).collect();
    let (lines, object) = nearest(expected, objects).unwrap_or_default();
    let mut object = object;
    if let Some(metadata) = object.pointer_mut("/metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    let object = serde_json::to_string_pretty(&object).unwrap_or_default();
    fail(&format!(
        "{expected}\n{what}; the kind has {names:?}; the nearest differs in\n  {}\n{object}",
        lines.join("\n  ")
    ))
}

fn refused<T>(verb: &str, object: &Value, error: &kube::Error) -> T {
    fail(&format!("cannot {verb} {object}: {error}"))
}

/// An object as a test sees it: kube-apiserver leaves the kind out of the objects of a list.
fn of_kind_of(other: &Value, mut object: DynamicObject) -> Value {
    object.types.get_or_insert_with(|| TypeMeta {
        api_version: text(other, "/apiVersion").to_owned(),
        kind: text(other, "/kind").to_owned(),
    });
    serde_json::to_value(object).expect("an object is JSON")
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}
