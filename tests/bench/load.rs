//! The triples that are deployed: an installation, its execution, one deploy item with one ConfigMap.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use futures::{StreamExt as _, stream};
use kube::{
    Api, Client, ResourceExt as _,
    api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams},
    core::Object,
    runtime::watcher::{self, Event},
};
use orangery_tests::objects::NAMESPACE;
use serde::{Deserialize, Deserializer, Serialize, de::IgnoredAny};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

/// How long a run may take.
const DEADLINE: Duration = Duration::from_secs(900);
/// How many requests are under way at once.
const CONCURRENCY: usize = 16;

/// What is read of an installation: the load must not cost more than what it measures.
pub(crate) type Seen = Object<Skipped, Progress>;

/// A specification that is not kept.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Skipped;

impl<'de> Deserialize<'de> for Skipped {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Skipped)
    }
}

/// Where an object of ours stands.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Progress {
    pub(crate) phase: Option<String>,
    #[serde(rename = "jobID")]
    pub(crate) job: Option<String>,
    #[serde(rename = "jobIDFinished")]
    pub(crate) finished: Option<String>,
}

impl Progress {
    /// Whether the last job is done.
    pub(crate) fn has_ended(&self) -> bool {
        self.finished.is_some() && self.job == self.finished
    }

    /// Whether the last job is done and went well.
    pub(crate) fn succeeded(&self) -> bool {
        self.phase.as_deref() == Some("Succeeded") && self.has_ended()
    }
}

/// A kind of ours.
pub(crate) fn resource(kind: &str) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("landscaper.gardener.cloud", "v1alpha1", kind))
}

/// The name of the n-th triple of a run.
pub(crate) fn name(run: &str, number: usize) -> String {
    format!("{run}-{number:05}")
}

/// Many triples.
#[derive(Clone, Copy)]
pub(crate) struct Run<'a> {
    /// What their names begin with.
    pub(crate) name: &'a str,
    /// How many there are.
    pub(crate) size: usize,
    /// The engine of their templates.
    pub(crate) engine: &'a str,
    /// Where they are, in equal shares. Each has a Target `cluster`.
    pub(crate) namespaces: &'a [String],
}

impl<'a> Run<'a> {
    /// So many in the usual namespace.
    pub(crate) fn new(name: &'a str, size: usize) -> Run<'a> {
        Run { name, size, engine: "Jinja", namespaces: &[] }
    }

    fn namespace(&self, number: usize) -> &str {
        let count = self.namespaces.len().max(1);
        self.namespaces.get(number % count).map_or(NAMESPACE, String::as_str)
    }

    /// The n-th, which deploys a ConfigMap of its own name with this value.
    fn installation(&self, number: usize, value: &str) -> Value {
        let values = [
            ("${NAME}", name(self.name, number)),
            ("${NAMESPACE}", self.namespace(number).to_owned()),
            ("${ENGINE}", self.engine.to_owned()),
            ("${VALUE}", value.to_owned()),
        ];
        let text =
            values.iter().fold(include_str!("triple.yaml").to_owned(), |text, (key, value)| text.replace(key, value));
        orangery_tests::yaml::documents(&text).into_iter().next().unwrap_or_default()
    }

    async fn each(&self, client: &Client, deed: impl AsyncFn(usize, Api<DynamicObject>)) {
        let each = stream::iter(0..self.size).for_each_concurrent(CONCURRENCY, async |number| {
            let api = Api::namespaced_with(client.clone(), self.namespace(number), &resource("Installation"));
            deed(number, api).await;
        });
        each.await;
    }

    async fn patch(&self, client: &Client, patch: impl Fn(usize) -> Value) {
        let deed = async |number: usize, api: Api<DynamicObject>| {
            let patched =
                api.patch(&name(self.name, number), &PatchParams::default(), &Patch::Merge(patch(number))).await;
            patched.expect("an installation can be changed");
        };
        self.each(client, deed).await;
    }

    /// Creates all of them.
    pub(crate) async fn create(&self, client: &Client) {
        let deed = async |number: usize, api: Api<DynamicObject>| {
            let object = self.installation(number, "first");
            let object = serde_json::from_value(object).expect("an installation is an object");
            api.create(&PostParams::default(), &object).await.expect("an installation can be created");
        };
        self.each(client, deed).await;
    }

    /// Changes the value of all of them, and asks for a job.
    pub(crate) async fn update(&self, client: &Client, value: &str) {
        let patch = |number: usize| {
            let object = self.installation(number, value);
            let part = |pointer: &str| object.pointer(pointer).cloned().unwrap_or_default();
            json!({"metadata": {"annotations": part("/metadata/annotations")}, "spec": part("/spec")})
        };
        self.patch(client, patch).await;
    }

    /// Asks for a job, and changes nothing.
    pub(crate) async fn ask(&self, client: &Client) {
        let asks = json!({"metadata": {"annotations": {"landscaper.gardener.cloud/operation": "reconcile"}}});
        self.patch(client, |_| asks.clone()).await;
    }

    /// Deletes all of them.
    pub(crate) async fn delete(&self, client: &Client) {
        let deed = async |number: usize, api: Api<DynamicObject>| {
            let deleted = api.delete(&name(self.name, number), &DeleteParams::background()).await;
            deleted.expect("an installation can be deleted");
        };
        self.each(client, deed).await;
    }
}

/// The installations by name.
pub(crate) type Known = BTreeMap<String, Progress>;

/// What is known of the installations, kept current by a watch.
pub(crate) struct Installations {
    events: futures::stream::BoxStream<'static, watcher::Result<Event<Seen>>>,
    known: Known,
}

impl Installations {
    /// Begins to watch, and answers after the first list.
    pub(crate) async fn watch(client: &Client) -> Installations {
        Self::watch_with(client, watcher::Config::default()).await
    }

    /// Begins to watch one of them: beside many others the server has nothing else to tell.
    pub(crate) async fn watch_one(client: &Client, name: &str) -> Installations {
        Self::watch_with(client, watcher::Config::default().fields(&format!("metadata.name={name}"))).await
    }

    async fn watch_with(client: &Client, config: watcher::Config) -> Installations {
        let api: Api<Seen> = Api::all_with(client.clone(), &resource("Installation"));
        let events = watcher::watcher(api, config).boxed();
        let mut installations = Installations { events, known: Known::new() };
        while !matches!(installations.next(Instant::now() + DEADLINE).await, Event::InitDone) {}
        installations
    }

    /// What is known now.
    pub(crate) fn known(&self) -> &Known {
        &self.known
    }

    /// Waits until there are `size` installations and each of them satisfies the condition. Polled while requests are
    /// sent, so that no event is missed. Only what an event changed is looked at again: what is measured is the server.
    pub(crate) async fn until(&mut self, size: usize, holds: impl Fn(&str, &Progress) -> bool) {
        let deadline = Instant::now() + DEADLINE;
        let satisfied = |known: &Known| -> BTreeSet<String> {
            known.iter().filter(|(name, now)| holds(name, now)).map(|(name, _)| name.clone()).collect()
        };
        let mut done = satisfied(&self.known);
        while done.len() != size || self.known.len() != size {
            match self.next(deadline).await {
                Event::Apply(seen) | Event::InitApply(seen) | Event::Delete(seen) => {
                    let name = seen.name_any();
                    let holds = self.known.get(&name).is_some_and(|now| holds(&name, now));
                    if holds {
                        done.insert(name)
                    } else {
                        done.remove(&name)
                    };
                }
                Event::Init => done.clear(),
                Event::InitDone => {}
            }
        }
    }

    /// Waits until one installation has succeeded.
    pub(crate) async fn until_succeeded(&mut self, name: &str) {
        let deadline = Instant::now() + DEADLINE;
        while !self.known.get(name).is_some_and(Progress::succeeded) {
            self.next(deadline).await;
        }
    }

    async fn next(&mut self, deadline: Instant) -> Event<Seen> {
        let event = loop {
            let next = timeout_at(deadline, self.events.next()).await;
            // After an error the watcher lists anew by itself.
            if let Ok(event) = next.expect("the run ends in time").expect("the watch goes on") {
                break event;
            }
        };
        match &event {
            Event::Apply(seen) | Event::InitApply(seen) => {
                self.known.insert(seen.name_any(), seen.status.clone().unwrap_or_default());
            }
            Event::Delete(seen) => drop(self.known.remove(&seen.name_any())),
            Event::Init => self.known.clear(),
            Event::InitDone => {}
        }
        event
    }
}
