//! What a watch saw of the objects of a tree: every version of each, in the order in which they were written.

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

use crate::objects::{DEADLINE, NAMESPACE};

/// One version of an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Version {
    /// The place in the order of all writes: both servers count them all in one row.
    pub revision: u64,
    /// `Installation`, `Execution` or `DeployItem`.
    pub kind: &'static str,
    /// The item's or sub-installation's name in its blueprint, else the object's own.
    pub name: String,
    /// The object; its last version where it is gone.
    pub object: Value,
    /// Whether it vanished with this version.
    pub gone: bool,
}

impl Version {
    /// The phase, or `gone`.
    pub fn phase(&self) -> &str {
        if self.gone { "gone" } else { self.status("phase") }
    }

    /// The job that is asked for, and the one finished last.
    pub fn jobs(&self) -> (&str, &str) {
        (self.status("jobID"), self.status("jobIDFinished"))
    }

    /// Whether a job is asked for and not finished.
    pub fn is_running(&self) -> bool {
        let (job, finished) = self.jobs();
        !self.gone && job != finished
    }

    /// Whether it is there and is to go.
    pub fn is_deleting(&self) -> bool {
        !self.gone && self.object.pointer("/metadata/deletionTimestamp").is_some()
    }

    fn status(&self, field: &str) -> &str {
        self.object["status"][field].as_str().unwrap_or_default()
    }
}

/// Records from the moment it is begun until it is dropped.
pub struct History {
    seen: watch::Sender<Vec<Version>>,
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

    /// What was seen so far, in the order in which it was written.
    pub fn versions(&self) -> Vec<Version> {
        let mut versions = self.seen.borrow().clone();
        versions.sort_by_key(|version| version.revision);
        versions
    }

    /// Waits until what was seen, in the order of arrival, satisfies the condition.
    pub async fn wait_until(&self, holds: impl Fn(&[Version]) -> bool) {
        let mut seen = self.seen.subscribe();
        let waited = timeout(DEADLINE, seen.wait_for(|seen| holds(seen))).await;
        assert!(waited.is_ok(), "it was not seen in time: {:#?}", self.told());
    }

    /// Waits until this many objects were seen to vanish.
    pub async fn wait_until_gone(&self, count: usize) {
        self.wait_until(|seen| seen.iter().filter(|version| version.gone).count() >= count).await;
    }

    /// The versions of one object.
    pub fn of(&self, kind: &str, name: &str) -> Vec<Version> {
        self.versions().into_iter().filter(|version| version.kind == kind && version.name == name).collect()
    }

    /// The phases of one object, in order, each once.
    pub fn phases(&self, kind: &str, name: &str) -> Vec<String> {
        let mut phases: Vec<String> = self.of(kind, name).iter().map(|version| version.phase().to_owned()).collect();
        phases.dedup();
        phases
    }

    /// When an object first was as asked.
    pub fn first(&self, kind: &str, name: &str, is: impl Fn(&Version) -> bool) -> Option<u64> {
        self.of(kind, name).iter().find(|version| is(version)).map(|version| version.revision)
    }

    /// When an object first was in a phase.
    pub fn place(&self, kind: &str, name: &str, phase: &str) -> Option<u64> {
        self.first(kind, name, |version| version.phase() == phase)
    }

    /// What was seen, a line for each version, for messages.
    pub fn told(&self) -> Vec<String> {
        let told = |version: &Version| {
            let (job, finished) = version.jobs();
            format!(
                "{} {} {}: {:?}, job {job:?}, finished {finished:?}",
                version.revision,
                version.kind,
                version.name,
                version.phase()
            )
        };
        self.versions().iter().map(told).collect()
    }
}

async fn record(
    kind: &'static str,
    api: Api<DynamicObject>,
    seen: watch::Sender<Vec<Version>>,
    up: oneshot::Sender<()>,
) {
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
        seen.send_modify(|seen| seen.push(version(kind, object, gone)));
    }
}

fn version(kind: &'static str, object: DynamicObject, gone: bool) -> Version {
    let revision = object.resource_version().and_then(|version| version.parse().ok());
    Version {
        revision: revision.expect("a resource version is a number on both servers"),
        kind,
        name: name_in_blueprint(&object).unwrap_or_else(|| object.name_any()),
        object: serde_json::to_value(object).expect("an object is JSON"),
        gone,
    }
}

fn name_in_blueprint(object: &DynamicObject) -> Option<String> {
    let item = object.labels().get("execution.landscaper.gardener.cloud/name");
    item.or_else(|| object.annotations().get("landscaper.gardener.cloud/subinstallation-name")).cloned()
}
