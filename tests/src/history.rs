//! What a watch saw of the phases of a tree, in order of arrival.

use futures::StreamExt as _;
use kube::{
    Api, Client, ResourceExt as _,
    api::{ApiResource, DynamicObject, GroupVersionKind},
    runtime::watcher::{self, Event},
};
use serde_json::Value;
use tokio::{
    sync::{oneshot, watch},
    task::JoinSet,
    time::timeout,
};

use crate::cluster::{DEADLINE, NAMESPACE};

/// One sight of an object, noted when its phase has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sight {
    /// `Installation`, `Execution` or `DeployItem`.
    pub kind: String,
    /// The item's or sub-installation's name in its blueprint, else the object's own.
    pub name: String,
    /// The phase, or `gone`.
    pub phase: String,
}

/// Records from the moment it is begun until it is dropped.
pub struct History {
    seen: watch::Sender<Vec<Sight>>,
    /// Aborted when dropped.
    _watches: JoinSet<()>,
}

impl History {
    /// Begins to watch the three kinds; answers when all three watches are up.
    pub async fn begin(client: &Client) -> History {
        let seen = watch::Sender::new(Vec::new());
        let mut watches = JoinSet::new();
        for kind in ["Installation", "Execution", "DeployItem"] {
            let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("landscaper.gardener.cloud", "v1alpha1", kind));
            let api = Api::namespaced_with(client.clone(), NAMESPACE, &resource);
            let (up, is_up) = oneshot::channel();
            watches.spawn(record(kind, api, seen.clone(), up));
            is_up.await.expect("the watch begins");
        }
        History { seen, _watches: watches }
    }

    /// What was seen so far.
    pub fn sights(&self) -> Vec<Sight> {
        self.seen.borrow().clone()
    }

    /// Waits until what was seen satisfies the condition.
    pub async fn wait_until(&self, holds: impl Fn(&[Sight]) -> bool) {
        let mut seen = self.seen.subscribe();
        let waited = timeout(DEADLINE, seen.wait_for(|seen| holds(seen))).await;
        assert!(waited.is_ok(), "it was not seen in time: {:#?}", self.sights());
    }

    /// The phases of one object, in order.
    pub fn phases(&self, kind: &str, name: &str) -> Vec<String> {
        let sights = self.sights().into_iter().filter(|sight| sight.kind == kind && sight.name == name);
        sights.map(|sight| sight.phase).collect()
    }

    /// When an object was first seen in a phase, as a place in the order of arrival.
    pub fn place(&self, kind: &str, name: &str, phase: &str) -> Option<usize> {
        self.sights().iter().position(|sight| sight.kind == kind && sight.name == name && sight.phase == phase)
    }
}

async fn record(kind: &'static str, api: Api<DynamicObject>, seen: watch::Sender<Vec<Sight>>, up: oneshot::Sender<()>) {
    let mut up = Some(up);
    let mut events = watcher::watcher(api, watcher::Config::default()).boxed();
    while let Some(event) = events.next().await {
        let (object, gone) = match event {
            Ok(Event::Apply(object) | Event::InitApply(object)) => (object, false),
            Ok(Event::Delete(object)) => (object, true),
            Ok(Event::InitDone) => {
                up.take().map(|up| up.send(()));
                continue;
            }
            Ok(Event::Init) | Err(_) => continue,
        };
        seen.send_modify(|seen| note(seen, kind, &object, gone));
    }
}

fn note(seen: &mut Vec<Sight>, kind: &str, object: &DynamicObject, gone: bool) {
    let phase = object.data.pointer("/status/phase").and_then(Value::as_str).unwrap_or_default();
    let phase = if gone { "gone" } else { phase };
    let name = name_in_blueprint(object).unwrap_or_else(|| object.name_any());
    let last = seen.iter().rev().find(|sight| sight.kind == kind && sight.name == name);
    if last.is_none_or(|sight| sight.phase != phase) {
        seen.push(Sight { kind: kind.to_owned(), name, phase: phase.to_owned() });
    }
}

fn name_in_blueprint(object: &DynamicObject) -> Option<String> {
    let item = object.labels().get("execution.landscaper.gardener.cloud/name");
    item.or_else(|| object.annotations().get("landscaper.gardener.cloud/subinstallation-name")).cloned()
}
