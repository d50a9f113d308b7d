//! What runs workloads where a test has a real API server and nobody who runs them: each one is copied to an embedded server
//! that simulates it, and what that says of it is written into the status here. So the real server judges what is simulated.

use std::sync::Arc;

use futures::{StreamExt as _, stream::BoxStream};
use jiff::Timestamp;
use kube::{
    Api, Client, ResourceExt as _,
    api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams},
    runtime::{WatchStreamExt as _, wait::await_condition, watcher},
};
use orangery_embedded::{Options, Storage, start};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::{
    fail,
    objects::{NAMESPACE, connect},
};

/// The kinds that it cares for.
const KINDS: [(&str, &str, &str); 3] = [("apps", "v1", "Deployment"), ("batch", "v1", "Job"), ("", "v1", "Pod")];

/// It works until it is dropped.
pub struct Kubelet {
    task: JoinHandle<()>,
}

impl Drop for Kubelet {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Kubelet {
    /// Takes up work on the server of this client.
    pub async fn start(of: &Client) -> Kubelet {
        let address = ([127, 0, 0, 1], 0).into();
        // It stands still: nothing here asks how late it is.
        let clock = Arc::new(|| Timestamp::UNIX_EPOCH);
        let started = start(Options { storage: Storage::Memory, address, clock }).await;
        let mut stage = started.unwrap_or_else(|error| fail(&error.to_string()));
        stage.simulate_workloads();
        let there = connect(&stage.kubeconfig()).await;
        let watches = KINDS.map(|(group, version, kind)| {
            let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
            changes(of.clone(), there.clone(), resource)
        });
        let mut work = futures::stream::select_all(watches);
        let task = tokio::spawn(async move {
            let _stage = stage;
            while work.next().await.is_some() {}
        });
        Kubelet { task }
    }
}

/// Carries each new generation of the objects of a kind to the stage, and its status back.
fn changes(here: Client, there: Client, resource: ApiResource) -> BoxStream<'static, ()> {
    let all: Api<DynamicObject> = Api::all_with(here.clone(), &resource);
    let objects = watcher::watcher(all, watcher::Config::default()).applied_objects();
    let news = objects.filter_map(async |object| object.ok()).map(move |object| {
        let (here, there, resource) = (here.clone(), there.clone(), resource.clone());
        async move {
            if object.metadata.deletion_timestamp.is_none() && !is_seen_to(&object) {
                see_to(&here, &there, &resource, &object).await;
            }
        }
    });
    news.buffer_unordered(16).boxed()
}

/// Whether the status speaks of the present form already.
fn is_seen_to(object: &DynamicObject) -> bool {
    let status = |field: &str| object.data.get("status").and_then(|status| status.get(field));
    match status("observedGeneration").and_then(Value::as_i64) {
        Some(observed) => Some(observed) == object.metadata.generation,
        None => status("startTime").is_some(),
    }
}

/// Lets a copy of the object come to its end, and says the same of the object.
async fn see_to(here: &Client, there: &Client, resource: &ApiResource, object: &DynamicObject) {
    let stage: Api<DynamicObject> = Api::namespaced_with(there.clone(), NAMESPACE, resource);
    let copy = json!({
        "apiVersion": resource.api_version, "kind": resource.kind,
        "metadata": {"generateName": "copy-", "annotations": object.metadata.annotations}, "spec": object.data.get("spec"),
    });
    let copy = serde_json::from_value(copy).expect("a copy of an object is one");
    let copy = stage.create(&PostParams::default(), &copy).await;
    let name = copy.unwrap_or_else(|error| fail(&format!("the stage refuses a copy: {error}"))).name_any();
    let ended = await_condition(stage, &name, |copy: Option<&DynamicObject>| copy.is_some_and(is_seen_to)).await;
    let mut status = ended.ok().flatten().and_then(|copy| copy.data.get("status").cloned()).unwrap_or_default();
    if let Some(observed) = status.get_mut("observedGeneration") {
        *observed = json!(object.metadata.generation);
    }
    let of_kind: Api<DynamicObject> =
        Api::namespaced_with(here.clone(), object.metadata.namespace.as_deref().unwrap_or(NAMESPACE), resource);
    let patch = Patch::Merge(json!({"metadata": {"uid": object.metadata.uid}, "status": status}));
    match of_kind.patch_status(&object.name_any(), &PatchParams::default(), &patch).await {
        // It is gone, or another one has come.
        Err(kube::Error::Api(refusal)) if matches!(refusal.code, 404 | 409) => {}
        Err(error) => fail(&format!("the server refuses a status that is simulated: {error}")),
        Ok(_) => {}
    }
}
