//! Drift of many objects: how soon a change is seen and undone, what is asked while nothing changes, and what it takes of memory.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use futures::{StreamExt as _, stream};
use kube::{
    Api,
    api::{ApiResource, DynamicObject, GroupVersionKind},
    runtime::watcher::{self, Event},
};
use orangery_tests::{
    cluster::Cluster,
    objects::NAMESPACE,
    requests::Requests,
    tree::{blueprint, deploys, executions, imports_cluster, installation, on_cluster},
    usage::{forget_peak, peak_resident_mebibytes},
};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::{
    figures::{Figures, Samples},
    load::{self, Installations, Progress},
    place::Place,
};

/// Objects of an item.
const OF_AN_ITEM: usize = 100;
/// Items of an Installation.
const ITEMS: usize = 10;
const EDITS: usize = 500;
/// How many are under way at once.
const AT_ONCE: usize = 8;
const QUIET: Duration = Duration::from_secs(10);
const WRITTEN: &str = "as it was written";

/// So many objects, whose drift is ignored, then told, then corrected.
pub(crate) async fn measure(place: &Place, objects: usize, figures: &mut Figures) {
    let binary = crate::binary();
    let cluster = place.start(&binary).await;
    let title = |what: &str| format!("{}, drift of {objects} objects: {what}", place.name());
    deploy(&cluster, objects, "Ignore").await;
    deploy(&cluster, objects, "Ignore").await;
    let without = resident(&cluster);
    deploy(&cluster, objects, "Report").await;
    let with = resident(&cluster);
    let each = (with - without) * 1024.0 / objects as f64;
    figures.add(&title("memory"), &format!("{without:.0} MiB without, {with:.0} MiB with it: {each:.1} KiB an object"));

    let names = TellingWatch::watch(&cluster, &load::resource("DeployItem"), drifted).await;
    let seen = edit(&cluster, objects, &names, true).await;
    figures.add(&title("from an edit to the status that tells it"), &seen.text());

    // What was put back last is still being told.
    quiet().await;
    let before = Requests::counted(cluster.client()).await;
    quiet().await;
    let during = Requests::counted(cluster.client()).await - before;
    let figure = format!("{} reads, {} writes in {} s", during.reads(), during.writes(), QUIET.as_secs());
    figures.add(&title("requests while nothing changes"), &figure);

    deploy(&cluster, objects, "Correct").await;
    let config_maps = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "ConfigMap"));
    let names = TellingWatch::watch(&cluster, &config_maps, written).await;
    let corrected = edit(&cluster, objects, &names, false).await;
    figures.add(&title("from an edit to the object as it was written"), &corrected.text());
    cluster.kill().await;
}

/// Deploys all of them, and waits until that is done.
async fn deploy(cluster: &Cluster, objects: usize, policy: &str) {
    let mut seen = Installations::watch(cluster.client()).await;
    let jobs = seen.known().clone();
    let count = objects.div_ceil(OF_AN_ITEM * ITEMS);
    for number in 0..count {
        let items: Vec<Value> = (0..ITEMS).map(|item| self::item(number * ITEMS + item, objects, policy)).collect();
        let fields = json!({"imports": imports_cluster(), "deployExecutions": executions(&items)});
        cluster.apply(&on_cluster(installation(&format!("drift{number}"), &blueprint(fields)))).await;
    }
    let is_new = |name: &str, now: &Progress| jobs.get(name).is_none_or(|then| then.job != now.job);
    seen.until(count, |name, now| now.succeeded() && is_new(name, now)).await;
}

fn item(number: usize, objects: usize, policy: &str) -> Value {
    let mut item = deploys(&format!("i{number:04}"), &[], WRITTEN);
    let first = number * OF_AN_ITEM;
    let manifests = (first..objects.min(first + OF_AN_ITEM)).map(|object| {
        let metadata = json!({"name": name(object), "namespace": NAMESPACE, "labels": {"app": "drift"}});
        let data = json!({"content": WRITTEN, "greeting": "Good morning", "color": "orange"});
        json!({"policy": "manage", "manifest": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}})
    });
    let manifests: Vec<Value> = manifests.collect();
    orangery_proposal::overlay::overlay(
        &mut item,
        &json!({"drift": {"policy": policy}, "config": {"manifests": manifests}}),
    );
    item
}

fn name(object: usize) -> String {
    format!("object-{object:05}")
}

async fn quiet() {
    let _elapsed = tokio::time::timeout(QUIET, std::future::pending::<()>()).await;
}

/// What the operator's process has now.
fn resident(cluster: &Cluster) -> f64 {
    forget_peak(cluster.process());
    peak_resident_mebibytes(cluster.process()).unwrap_or_default()
}

/// Changes some of them here and there, and answers how long each took to be told; `undo` puts it back.
async fn edit(cluster: &Cluster, objects: usize, watch: &TellingWatch, undo: bool) -> Samples {
    let content = |object: usize, content: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name(object)}, "data": {"content": content}});
    let edits = (0..EDITS).map(|edit| async move {
        // A prime leads to another place each time.
        let object = edit * 7919 % objects;
        let begin = Instant::now();
        let seen = watch.expect(name(object));
        cluster.merge(&content(object, &format!("edit {edit}"))).await;
        let at = seen.await.expect("the watch goes on");
        if undo {
            cluster.merge(&content(object, WRITTEN)).await;
        }
        at.duration_since(begin)
    });
    Samples::new(stream::iter(edits).buffer_unordered(AT_ONCE).collect().await)
}

/// Names that a watch has told.
struct TellingWatch(Arc<Mutex<BTreeMap<String, oneshot::Sender<Instant>>>>);

impl TellingWatch {
    /// Begins to watch a kind whose objects tell names; answers after the first list.
    async fn watch(cluster: &Cluster, kind: &ApiResource, names: fn(&Value) -> Vec<String>) -> TellingWatch {
        let waiting: Arc<Mutex<BTreeMap<String, oneshot::Sender<Instant>>>> = Arc::default();
        let api: Api<DynamicObject> = Api::namespaced_with(cluster.client().clone(), NAMESPACE, kind);
        let mut events = watcher::watcher(api, watcher::Config::default()).boxed();
        while !matches!(events.next().await, Some(Ok(Event::InitDone)) | None) {}
        let names_told = Arc::clone(&waiting);
        tokio::spawn(async move {
            while let Some(Ok(event)) = events.next().await {
                let (Event::Apply(object) | Event::InitApply(object)) = event else { continue };
                for name in names(&json!(object)) {
                    let waiting = names_told.lock().unwrap_or_else(PoisonError::into_inner).remove(&name);
                    if let Some(waiting) = waiting {
                        let _nobody_waits = waiting.send(Instant::now());
                    }
                }
            }
        });
        Self(waiting)
    }

    fn expect(&self, name: String) -> oneshot::Receiver<Instant> {
        let (sender, receiver) = oneshot::channel();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(name, sender);
        receiver
    }
}

/// The objects that have drifted, as the status of an item says.
fn drifted(item: &Value) -> Vec<String> {
    let objects = item.pointer("/status/drift/objects").and_then(Value::as_array);
    objects.into_iter().flatten().filter_map(|one| Some(one.get("name")?.as_str()?.to_owned())).collect()
}

/// The name of an object that is as it was written.
fn written(object: &Value) -> Vec<String> {
    let is_written = object.pointer("/data/content").is_some_and(|content| content == WRITTEN);
    object
        .pointer("/metadata/name")
        .and_then(Value::as_str)
        .filter(|_| is_written)
        .map(str::to_owned)
        .into_iter()
        .collect()
}
