//! Simulated workloads: what the controllers of Kubernetes and a kubelet would say of workloads, said without running any.
//!
//! An actor for each kind, woken by the bell of its collection, and by a timer while something is due. It keeps nothing but
//! what waits for its time: what is to become of an object follows from the object (`course`), so that after a restart
//! everything is judged anew, and only a delay under way begins once more.

mod course;
mod jobs;
mod pods;
mod replicas;
mod simulation_spec;
mod supply;

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use futures::{FutureExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio_util::time::{DelayQueue, delay_queue};

use self::{
    course::{Course, Scene},
    simulation_spec::{Delay, SimulationSpec},
};
use super::{AT_ONCE, call, waits_for_disk};
use crate::{
    cluster::EmbeddedCluster,
    object::{self, meta},
    operation::{ObjectPart, WriteRequest},
    refusal::{Refusal, RefusalReason},
    store::{EventType, ObjectName, ObjectVersion, StoreKey},
};

/// How many changes are looked at together.
const BATCH: usize = 256;
/// How much of an object's name stands in the name of its event.
const NAME_MOST: usize = 200;
/// The reporter of the events.
const REPORTER: &str = "workload-simulation";

/// What becomes of the objects of a kind.
type WorkloadRule = fn(&Scene<'_>) -> Course;

const RULES: [(&str, WorkloadRule); 9] = [
    ("deployments.apps", replicas::deployment),
    ("statefulsets.apps", replicas::stateful_set),
    ("daemonsets.apps", replicas::daemon_set),
    ("replicasets.apps", replicas::replica_set),
    ("replicationcontrollers", replicas::replica_set),
    ("pods", pods::pod),
    ("jobs.batch", jobs::job),
    ("persistentvolumeclaims", supply::claim),
    ("services", supply::service),
];

/// Simulates workloads until the cluster stops.
pub(crate) async fn simulate(cluster: Arc<EmbeddedCluster>) {
    let actors = RULES.iter().map(|(collection, rule)| Actor::new(Arc::clone(&cluster), collection, *rule).run());
    futures::future::join_all(actors).await;
}

/// What it does for one kind.
struct Actor {
    cluster: Arc<EmbeddedCluster>,
    collection: Arc<str>,
    rule: WorkloadRule,
    /// The last revision that was looked at.
    seen: u64,
    /// What waits for its time, and the timer that tells.
    waiting: HashMap<ObjectName, WaitingWorkload>,
    due: DelayQueue<ObjectName>,
}

/// An object whose work is under way.
struct WaitingWorkload {
    timer: delay_queue::Key,
    form: WorkloadGeneration,
    delay: Duration,
}

/// What the delay is counted for: the object in this generation.
#[derive(PartialEq, Eq)]
struct WorkloadGeneration {
    uid: Box<str>,
    generation: Option<i64>,
}

/// What is to be written about an object.
#[derive(Clone)]
struct StatusChange {
    object: Value,
    status: Value,
    /// Told in an event.
    failure: Option<String>,
}

impl WorkloadGeneration {
    fn of(object: &Value) -> Self {
        let generation = object::at(object, &["metadata", "generation"]).and_then(Value::as_i64);
        Self { uid: meta(object, "uid").into(), generation }
    }
}

impl Actor {
    fn new(cluster: Arc<EmbeddedCluster>, collection: &str, rule: WorkloadRule) -> Self {
        let (waiting, due) = (HashMap::new(), DelayQueue::new());
        Self { cluster, collection: collection.into(), rule, seen: 0, waiting, due }
    }

    async fn run(mut self) {
        let mut bell = self.cluster.store.bell(&self.collection);
        loop {
            bell.mark_unchanged();
            let news = self.news();
            if !news.is_empty() {
                self.follow(news).await;
                continue;
            }
            tokio::select! {
                rung = bell.changed() => if rung.is_err() { return },
                Some(expired) = self.due.next(), if !self.due.is_empty() => self.finish(expired.into_inner()).await,
                () = self.cluster.stop.cancelled() => return,
            }
        }
    }

    /// What has changed since the last look: the newest form of each object, none for one that is gone.
    fn news(&mut self) -> BTreeMap<ObjectName, Option<Arc<ObjectVersion>>> {
        let Ok(changes) = self.cluster.store.changes_after(&self.collection, self.seen, BATCH) else {
            return self.all();
        };
        let mut news = BTreeMap::new();
        for change in changes {
            self.seen = change.entry.revision;
            let entry = (change.event_type != EventType::Deleted).then(|| Arc::clone(&change.entry));
            news.insert(change.name.clone(), entry);
        }
        news
    }

    /// Everything there is, where the history does not reach back so far.
    fn all(&mut self) -> BTreeMap<ObjectName, Option<Arc<ObjectVersion>>> {
        let page = self.cluster.store.list(&self.collection, None, None);
        self.seen = page.revision;
        let gone = self.waiting.keys().map(|name| (name.clone(), None));
        gone.chain(page.entries.into_iter().map(|(name, entry)| (name, Some(entry)))).collect()
    }

    async fn follow(&mut self, news: BTreeMap<ObjectName, Option<Arc<ObjectVersion>>>) {
        let verdicts: Vec<StatusChange> =
            news.into_iter().filter_map(|(name, entry)| self.classify(&name, entry.as_deref())).collect();
        // What somebody else changed meanwhile is heard of again, and judged then.
        let written = futures::stream::iter(verdicts).map(|verdict| self.carry_out(verdict));
        written.buffer_unordered(AT_ONCE).for_each(|_| std::future::ready(())).await;
    }

    /// What is to be said of an object now. Begins to wait for what takes its time.
    fn classify(&mut self, name: &ObjectName, entry: Option<&ObjectVersion>) -> Option<StatusChange> {
        let Some(object) = entry.map(ObjectVersion::value).filter(|object| !object::deleting(object)) else {
            self.forget(name);
            return None;
        };
        let simulation = SimulationSpec::read(&object);
        let (begun, done, simulation) = match self.course(&object, simulation) {
            Course::Rest => {
                self.forget(name);
                return None;
            }
            Course::Now(status) => {
                self.forget(name);
                return differing(object, status, None);
            }
            Course::Work { begun, done, simulation } => (begun, done, simulation),
        };
        let settled = object.get("status") == Some(&done) && self.is_told(&object, simulation.failure.as_deref());
        match simulation.delay {
            _ if settled => {
                self.forget(name);
                None
            }
            Delay::For(Duration::ZERO) => {
                self.forget(name);
                Some(StatusChange { object, status: done, failure: simulation.failure })
            }
            Delay::For(delay) => {
                self.wait_for(name, &object, delay);
                differing(object, begun?, None)
            }
            Delay::Forever => {
                self.forget(name);
                differing(object, begun?, None)
            }
        }
    }

    fn course(&self, object: &Value, simulation: SimulationSpec) -> Course {
        (self.rule)(&Scene { object, simulation, now: &self.cluster.stamp() })
    }

    fn wait_for(&mut self, name: &ObjectName, object: &Value, delay: Duration) {
        let form = WorkloadGeneration::of(object);
        let waits = |waiting: &WaitingWorkload| waiting.form == form && waiting.delay == delay;
        if self.waiting.get(name).is_some_and(waits) {
            return;
        }
        self.forget(name);
        let timer = self.due.insert(name.clone(), delay);
        self.waiting.insert(name.clone(), WaitingWorkload { timer, form, delay });
    }

    fn forget(&mut self, name: &ObjectName) {
        if let Some(waiting) = self.waiting.remove(name) {
            self.due.remove(&waiting.timer);
        }
    }

    /// The time of an object has come, and of all whose time has come too.
    async fn finish(&mut self, first: ObjectName) {
        let mut names = vec![first];
        while let Some(Some(expired)) = self.due.next().now_or_never() {
            names.push(expired.into_inner());
        }
        let over: Vec<(ObjectName, WorkloadGeneration)> =
            names.into_iter().filter_map(|name| Some((name.clone(), self.waiting.remove(&name)?.form))).collect();
        let finished = futures::stream::iter(over).map(|(name, form)| self.finish_one(name, form));
        finished.buffer_unordered(AT_ONCE).for_each(|()| std::future::ready(())).await;
    }

    /// Says of an object that its work is done, as long as it is the one that was waited for.
    async fn finish_one(&self, name: ObjectName, form: WorkloadGeneration) {
        let key = StoreKey { collection: Arc::clone(&self.collection), name };
        loop {
            let Some(object) = self.cluster.store.latest(&key).map(|entry| entry.value()) else { return };
            if object::deleting(&object) || WorkloadGeneration::of(&object) != form {
                return;
            }
            let Course::Work { done, simulation, .. } = self.course(&object, SimulationSpec::read(&object)) else {
                return;
            };
            if self.carry_out(StatusChange { object, status: done, failure: simulation.failure }).await {
                return;
            }
        }
    }

    /// Writes a verdict; false when the object has changed meanwhile.
    async fn carry_out(&self, verdict: StatusChange) -> bool {
        let name = format!("{}/{}", meta(&verdict.object, "namespace"), meta(&verdict.object, "name"));
        let mut written = self.write(verdict.clone()).await;
        while written.as_ref().is_err_and(|refusal| refusal.reason.is_of_the_disk())
            && waits_for_disk(&self.cluster).await
        {
            written = self.write(verdict.clone()).await;
        }
        match written {
            Err(refusal) if refusal.reason == RefusalReason::Conflict => false,
            // The object is gone, or its namespace goes.
            Err(refusal) if matches!(refusal.reason, RefusalReason::NotFound | RefusalReason::Forbidden) => true,
            Err(refusal) => {
                tracing::error!(collection = %self.collection, %name, %refusal, "the status of a simulated workload cannot be written");
                true
            }
            Ok(()) => true,
        }
    }

    async fn write(&self, verdict: StatusChange) -> Result<(), Refusal> {
        let StatusChange { mut object, status, failure } = verdict;
        let event = failure.map(|failure| self.event(&object, &failure));
        let (namespace, name) = (meta(&object, "namespace").to_owned(), meta(&object, "name").to_owned());
        object::set(&mut object, &["status"], status);
        let Some(call) = self.call(&self.collection, &namespace) else { return Ok(()) };
        self.cluster.update(&WriteRequest { part: ObjectPart::Status, ..call }, &name, object).await?;
        if let (Some(event), Some(call)) = (event, self.call("events", &namespace)) {
            match self.cluster.create(&call, event).await {
                Err(refusal) if refusal.reason != RefusalReason::AlreadyExists => return Err(refusal),
                _ => {}
            }
        }
        Ok(())
    }

    fn call(&self, collection: &str, namespace: &str) -> Option<WriteRequest> {
        Some(call(self.cluster.catalog().in_collection(collection)?, namespace))
    }

    /// Whether there is nothing to tell of this form of the object, or it has been told.
    fn is_told(&self, object: &Value, failure: Option<&str>) -> bool {
        let Some(failure) = failure else { return true };
        let event = self.event(object, failure);
        let name = ObjectName::new(meta(&event, "namespace"), meta(&event, "name"));
        self.cluster.store.latest(&StoreKey { collection: "events".into(), name }).is_some()
    }

    /// The event that tells of a failure. Its name follows from what it tells, so that it is told once.
    fn event(&self, object: &Value, failure: &str) -> Value {
        let field = |field: &str| object.get(field).cloned().unwrap_or_default();
        let (name, namespace, uid) = (meta(object, "name"), meta(object, "namespace"), meta(object, "uid"));
        let stem = name.get(..name.len().min(NAME_MOST)).unwrap_or_default();
        let id = course::hash(&json!([uid, object::at(object, &["metadata", "generation"]), failure]));
        let now = self.cluster.stamp();
        json!({
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": format!("{stem}.{id}"), "namespace": namespace},
            "involvedObject": {
                "apiVersion": field("apiVersion"), "kind": field("kind"), "name": name, "namespace": namespace, "uid": uid,
            },
            "type": "Warning", "reason": "SimulatedFailure", "message": failure, "source": {"component": REPORTER},
            "firstTimestamp": now, "lastTimestamp": now, "count": 1, "reportingComponent": REPORTER, "reportingInstance": "",
        })
    }
}

/// A verdict, unless the object says so already.
fn differing(object: Value, status: Value, failure: Option<String>) -> Option<StatusChange> {
    (object.get("status") != Some(&status)).then_some(StatusChange { object, status, failure })
}
