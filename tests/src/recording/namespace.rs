//! The objects of a namespace as watches tell them.

use std::collections::BTreeMap;

use futures::StreamExt as _;
use kube::{
    Api, Client, ResourceExt as _,
    api::{ApiResource, DynamicObject, GroupVersionKind, TypeMeta},
    runtime::{
        WatchStreamExt as _,
        watcher::{self, Event},
    },
};
use serde_json::Value;
use tokio::{
    sync::{oneshot, watch},
    task::JoinSet,
    time::timeout,
};

use super::normal::KINDS;
use crate::objects::DEADLINE;

type Objects = BTreeMap<(&'static str, String), Value>;

/// The objects of the kinds that are compared, until it is dropped.
pub struct WatchedNamespace {
    objects: watch::Receiver<Objects>,
    /// Aborted when dropped.
    _watches: JoinSet<()>,
}

impl WatchedNamespace {
    /// Begins to watch; answers when all watches are up.
    pub async fn begin(client: &Client, namespace: &str) -> WatchedNamespace {
        let (sender, objects) = watch::channel(Objects::new());
        let mut watches = JoinSet::new();
        for (version, kind) in KINDS {
            let (resource, api) = of_kind(client, namespace, version, kind);
            let (up, is_up) = oneshot::channel();
            watches.spawn(keep(kind, resource, api, sender.clone(), up));
            is_up.await.expect("the watch begins");
        }
        WatchedNamespace { objects, _watches: watches }
    }

    /// Waits until the objects are as asked; whether they were in time.
    pub async fn until(&self, mut are: impl FnMut(Vec<Value>) -> bool) -> bool {
        let mut objects = self.objects.clone();
        let holds = objects.wait_for(|objects| are(objects.values().cloned().collect()));
        timeout(DEADLINE, holds).await.is_ok()
    }

    /// What is there, or was seen last.
    pub fn now(&self) -> Vec<Value> {
        self.objects.borrow().values().cloned().collect()
    }
}

/// The same as the server lists them now, whatever the watches know.
pub async fn listed(client: &Client, namespace: &str) -> Vec<Value> {
    let mut objects = Vec::new();
    for (version, kind) in KINDS {
        let (resource, api) = of_kind(client, namespace, version, kind);
        let list = api.list(&Default::default()).await.expect("the kind can be listed");
        objects.extend(list.items.into_iter().map(|object| typed(object, &resource)));
    }
    objects
}

fn of_kind(client: &Client, namespace: &str, version: &str, kind: &str) -> (ApiResource, Api<DynamicObject>) {
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    let api = Api::namespaced_with(client.clone(), namespace, &resource);
    (resource, api)
}

async fn keep(
    kind: &'static str,
    resource: ApiResource,
    api: Api<DynamicObject>,
    objects: watch::Sender<Objects>,
    up: oneshot::Sender<()>,
) {
    let mut up = Some(up);
    let mut events = watcher::watcher(api, watcher::Config::default()).default_backoff().boxed();
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Init) => objects.send_modify(|objects| objects.retain(|(of_kind, _), _| *of_kind != kind)),
            Ok(Event::InitDone) => drop(up.take().map(|up| up.send(()))),
            Ok(Event::Apply(object) | Event::InitApply(object)) => {
                let name = object.name_any();
                let object = typed(object, &resource);
                objects.send_modify(|objects| drop(objects.insert((kind, name), object)));
            }
            Ok(Event::Delete(object)) => {
                objects.send_modify(|objects| drop(objects.remove(&(kind, object.name_any()))));
            }
            // The watcher begins anew by itself.
            Err(_) => {}
        }
    }
}

/// kube-apiserver leaves the kind out of the objects of a list.
fn typed(mut object: DynamicObject, resource: &ApiResource) -> Value {
    let types = TypeMeta { api_version: resource.api_version.clone(), kind: resource.kind.clone() };
    object.types.get_or_insert(types);
    serde_json::to_value(object).expect("an object is JSON")
}
