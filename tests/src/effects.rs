//! What deployers did: every version of every ConfigMap, which is all that the trees of these tests deploy.

use std::collections::BTreeMap;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, ResourceExt as _,
    runtime::{
        WatchStreamExt as _,
        watcher::{self, Event},
    },
};
use serde_json::json;
use tokio::{
    sync::{oneshot, watch},
    task::JoinSet,
    time::timeout,
};

use crate::{
    fail,
    objects::{DEADLINE, NAMESPACE, Objects},
};

/// Something that was done to an object that is deployed.
#[derive(Clone, Debug, PartialEq)]
pub struct Effect {
    /// The place in the order of all writes.
    pub revision: u64,
    /// Its name.
    pub name: String,
    /// What it says since; none where it is gone.
    pub content: Option<String>,
}

/// Records from the moment it is begun until it is dropped.
pub struct Effects {
    seen: watch::Sender<Vec<Effect>>,
    /// Aborted when dropped.
    _watch: JoinSet<()>,
}

/// The name of the ConfigMap by which the watch is seen to be up to date.
const MARK: &str = "until-now";

impl Effects {
    /// Begins to watch; answers when the watch is up. What is there already is no effect.
    pub async fn begin(client: &Client) -> Effects {
        let seen = watch::Sender::new(Vec::new());
        let (up, is_up) = oneshot::channel();
        let mut task = JoinSet::new();
        task.spawn(record(Api::namespaced(client.clone(), NAMESPACE), seen.clone(), up));
        is_up.await.expect("the watch begins");
        Effects { seen, _watch: task }
    }

    /// All that was done until now.
    pub async fn until_now(&self, objects: &Objects) -> Vec<Effect> {
        let mark = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": MARK}});
        objects.apply(&mark).await;
        let mut seen = self.seen.subscribe();
        let marked = timeout(DEADLINE, seen.wait_for(|seen| seen.iter().any(|effect| effect.name == MARK))).await;
        let Ok(Ok(seen)) = marked else { fail("the watch of what is deployed is behind") };
        let effects = seen.iter().filter(|effect| effect.name != MARK).cloned().collect();
        drop(seen);
        // The next one that is asked has to see it come.
        objects.delete(&mark).await;
        effects
    }
}

/// What each object came to say, in order.
pub fn by_name(effects: &[Effect]) -> BTreeMap<String, Vec<Option<String>>> {
    let mut by_name: BTreeMap<String, Vec<Option<String>>> = BTreeMap::new();
    for effect in effects {
        by_name.entry(effect.name.clone()).or_default().push(effect.content.clone());
    }
    by_name
}

async fn record(api: Api<ConfigMap>, seen: watch::Sender<Vec<Effect>>, up: oneshot::Sender<()>) {
    let mut up = Some(up);
    let mut events = watcher::watcher(api, watcher::Config::default()).default_backoff().boxed();
    while let Some(event) = events.next().await {
        let (object, gone) = match event {
            Ok(Event::Apply(object)) => (object, false),
            Ok(Event::Delete(object)) => (object, true),
            Ok(Event::InitDone) => {
                up.take().map(|up| up.send(()));
                continue;
            }
            Ok(Event::Init | Event::InitApply(_)) | Err(_) => continue,
        };
        let revision = object.resource_version().and_then(|version| version.parse().ok()).unwrap_or_default();
        let content = object.data.as_ref().and_then(|data| data.get("content")).cloned();
        let content = (!gone).then(|| content.unwrap_or_default());
        seen.send_modify(|seen| seen.push(Effect { revision, name: object.name_any(), content }));
    }
}
