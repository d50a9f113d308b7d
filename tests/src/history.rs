//! What a watch saw of the objects of a tree: every version of each, in the order in which they were written.
//!
//! The recorder also checks: a version whose conditions contradict its phase fails the test.

use std::{collections::BTreeMap, time::Duration};

use futures::StreamExt as _;
use kube::{
    Api, Client, ResourceExt as _,
    api::{ApiResource, DynamicObject, GroupVersionKind},
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

use crate::{
    fail, kstatus,
    long_wait::with_message,
    objects::{DEADLINE, NAMESPACE},
};

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

    /// Whether it is there and is being deleted.
    pub fn is_deleting(&self) -> bool {
        !self.gone && self.object.pointer("/metadata/deletionTimestamp").is_some()
    }

    /// Whether both are versions of one object.
    fn is_same(&self, other: &Version) -> bool {
        self.kind == other.kind && self.object["metadata"]["uid"] == other.object["metadata"]["uid"]
    }

    fn status(&self, field: &str) -> &str {
        self.object["status"][field].as_str().unwrap_or_default()
    }
}

/// The kinds of a tree.
const KINDS: [&str; 3] = ["Installation", "Execution", "DeployItem"];

/// Records from the moment it is begun until it is dropped.
pub struct History {
    client: Client,
    namespace: String,
    seen: watch::Sender<Vec<Version>>,
    /// Whether all that was seen has to tell the truth.
    is_checked: bool,
    /// Aborted when dropped.
    _watches: JoinSet<()>,
}

impl History {
    /// Begins to watch the three kinds in [`NAMESPACE`]; answers when all three watches are up.
    pub async fn begin(client: &Client) -> History {
        History::begin_in(client, NAMESPACE).await
    }

    /// The same in another namespace.
    pub async fn begin_in(client: &Client, namespace: &str) -> History {
        let seen = watch::Sender::new(Vec::new());
        let mut watches = JoinSet::new();
        for kind in KINDS {
            let (up, is_up) = oneshot::channel();
            watches.spawn(record(kind, of_kind(client, namespace, kind), seen.clone(), up));
            is_up.await.expect("the watch begins");
        }
        History { client: client.clone(), namespace: namespace.to_owned(), seen, is_checked: true, _watches: watches }
    }

    /// The same of objects with statuses of the original, which are no concern of ours.
    pub fn with_statuses_of_others(self) -> History {
        let mut history = self;
        history.is_checked = false;
        history
    }

    /// All that has been written until now: a watch may be behind what the test already knows by another one.
    pub async fn until_now(&self) -> Seen {
        let (mut present, mut listed) = (Vec::new(), u64::MAX);
        for kind in KINDS {
            let api = of_kind(&self.client, &self.namespace, kind);
            let list = api.list(&Default::default()).await.expect("the kind can be listed");
            let revision = list.metadata.resource_version.and_then(|version| version.parse().ok());
            listed = listed.min(revision.unwrap_or(listed));
            present.extend(list.items.into_iter().map(|object| version(kind, object, false)));
        }
        let is_seen = |seen: &[Version], of: &Version| {
            seen.iter().any(|version| version.is_same(of) && (version.gone || version.revision >= of.revision))
        };
        let is_accounted_for = |seen: &[Version], of: &Version| {
            // What was written since is of later.
            of.revision > listed
                || present.iter().any(|present| present.is_same(of))
                || seen.iter().any(|version| version.is_same(of) && version.gone)
        };
        let seen = self.wait_until(|seen| {
            present.iter().all(|of| is_seen(seen, of)) && seen.iter().all(|of| is_accounted_for(seen, of))
        });
        let mut seen = seen.await;
        seen.sort_by_key(|version| version.revision);
        Seen(seen)
    }

    /// What is made of all that was seen so far, in the order of arrival.
    pub fn with_seen<T>(&self, make: impl FnOnce(&[Version]) -> T) -> T {
        make(&self.seen.borrow())
    }

    /// How many versions were seen so far.
    pub fn count(&self) -> usize {
        self.seen.borrow().len()
    }

    /// Waits until what was seen, in the order of arrival, satisfies the condition.
    pub async fn wait_until(&self, holds: impl Fn(&[Version]) -> bool) -> Vec<Version> {
        match self.wait_within(DEADLINE, holds).await {
            Ok(seen) => seen,
            Err(seen) => fail(&format!("it was not seen in time: {:#?}", Seen(seen).message_of())),
        }
    }

    /// The same, with what was seen until the time was over where the condition did not come true.
    pub async fn wait_within(
        &self,
        patience: Duration,
        holds: impl Fn(&[Version]) -> bool,
    ) -> Result<Vec<Version>, Vec<Version>> {
        let mut seen = self.seen.subscribe();
        let last =
            || format!("something after {:?}", self.seen.borrow().last().map(|version| (version.kind, &version.name)));
        match with_message(last, timeout(patience, seen.wait_for(|seen| holds(seen)))).await {
            Ok(seen) => Ok(seen.expect("it is watched as long as the history is there").clone()),
            Err(_) => Err(self.seen.borrow().clone()),
        }
    }

    /// Fails where a version was seen of which kstatus, `kubectl wait` or Flux would think something else than its phase
    /// and its job say.
    fn check(&self) {
        let seen = Seen(self.seen.borrow().clone());
        let present = seen.versions().iter().filter(|version| !version.gone);
        let untrue: Vec<String> = present
            .flat_map(|version| {
                let untruths = kstatus::untruths(&version.object);
                untruths.into_iter().map(move |untruth| format!("{} {untruth}: {}", version.revision, version.object))
            })
            .collect();
        if !untrue.is_empty() {
            fail(&format!("versions that do not tell the truth:\n{}\n{:#?}", untrue.join("\n"), seen.message_of()));
        }
    }
}

/// The last versions of what is there after these.
pub fn present(versions: &[Version]) -> Vec<&Version> {
    let mut last: BTreeMap<&str, &Version> = BTreeMap::new();
    for version in versions {
        let uid = version.object["metadata"]["uid"].as_str().unwrap_or_default();
        last.insert(uid, version);
    }
    last.into_values().filter(|version| !version.gone).collect()
}

/// Versions in the order in which they were written.
pub struct Seen(Vec<Version>);

impl Seen {
    /// All of them.
    pub fn versions(&self) -> &[Version] {
        &self.0
    }

    /// Those of one object.
    pub fn of<'a>(&'a self, kind: &str, name: &str) -> impl Iterator<Item = &'a Version> {
        self.0.iter().filter(move |version| version.kind == kind && version.name == name)
    }

    /// The phases of one object, in order, each once.
    pub fn phases(&self, kind: &str, name: &str) -> Vec<String> {
        let mut phases: Vec<String> = self.of(kind, name).map(|version| version.phase().to_owned()).collect();
        phases.dedup();
        phases
    }

    /// When an object first was as asked.
    pub fn first(&self, kind: &str, name: &str, is: impl Fn(&Version) -> bool) -> Option<u64> {
        self.of(kind, name).find(|version| is(version)).map(|version| version.revision)
    }

    /// When an object first was in a phase.
    pub fn place(&self, kind: &str, name: &str, phase: &str) -> Option<u64> {
        self.first(kind, name, |version| version.phase() == phase)
    }

    /// What was seen, a line for each version, for messages.
    pub fn message_of(&self) -> Vec<String> {
        let message_of = |version: &Version| {
            let (job, finished) = version.jobs();
            format!(
                "{} {} {}: {:?}, job {job:?}, finished {finished:?}",
                version.revision,
                version.kind,
                version.name,
                version.phase()
            )
        };
        self.0.iter().map(message_of).collect()
    }
}

fn of_kind(client: &Client, namespace: &str, kind: &str) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("landscaper.gardener.cloud", "v1alpha1", kind));
    Api::namespaced_with(client.clone(), namespace, &resource)
}

impl Drop for History {
    fn drop(&mut self) {
        if self.is_checked && !std::thread::panicking() {
            self.check();
        }
    }
}

async fn record(
    kind: &'static str,
    api: Api<DynamicObject>,
    seen: watch::Sender<Vec<Version>>,
    up: oneshot::Sender<()>,
) {
    let mut up = Some(up);
    let mut events = watcher::watcher(api, watcher::Config::default()).default_backoff().boxed();
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
