//! What jobs write and delete in clusters, with all their items, where policies have rules over whole jobs (C-362).

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use orangery_core::name::{JobId, Namespace};
use orangery_proposal::{Action, ClusterRef, ObjectKey, PlannedObject};
use orangery_reconcile::{Key, Queue};
use serde_json::{Map, Value, json};
use tokio::sync::OnceCell;

/// The most objects of a job that rules are over (C-362): of more nobody can tell whether they hold, which denies.
const MOST_OBJECTS_OF_A_JOB: usize = 100_000;

/// An object that a job writes or deletes, without what is in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct JobObject {
    /// What becomes of it.
    pub action: Action,
    /// Its cluster, in words.
    pub cluster: String,
    /// Which one it is.
    pub key: ObjectKey,
    /// Whether it goes with the job that made it.
    pub ephemeral: bool,
}

impl JobObject {
    /// As a plan has it.
    pub fn of(planned: &PlannedObject) -> Self {
        let PlannedObject { action, cluster, api_version, kind, namespace, name, ephemeral, .. } = planned;
        Self {
            action: *action,
            cluster: cluster.clone().unwrap_or_else(|| ClusterRef::Target.to_string()),
            key: ObjectKey {
                api_version: api_version.clone(),
                kind: kind.clone(),
                namespace: namespace.clone(),
                name: name.clone(),
            },
            ephemeral: *ephemeral,
        }
    }
}

/// A deploy item of a job, with what it writes and deletes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobItem {
    /// Its name.
    pub name: String,
    /// Each of them once.
    pub objects: BTreeSet<JobObject>,
}

/// The variables of rules over a job.
///
/// # Errors
/// It writes and deletes more objects than rules are over.
pub(crate) fn variables(
    namespace: &Namespace,
    installation: &str,
    items: &[JobItem],
) -> Result<Map<String, Value>, String> {
    let all = || items.iter().flat_map(|item| item.objects.iter().map(move |object| (item, object)));
    let number = all().count();
    if number > MOST_OBJECTS_OF_A_JOB {
        return Err(format!(
            "the job writes or deletes {number} objects, and rules are over {MOST_OBJECTS_OF_A_JOB}; split it"
        ));
    }
    let counts = |objects: &mut dyn Iterator<Item = &JobObject>| {
        let mut counts = BTreeMap::from([("create", 0), ("change", 0), ("replace", 0), ("delete", 0)]);
        for object in objects {
            let word = match object.action {
                Action::Create => "create",
                Action::Change => "change",
                Action::Replace => "replace",
                Action::Delete => "delete",
                Action::None | Action::Foreign => continue,
            };
            counts.entry(word).and_modify(|number| *number += 1);
        }
        counts
    };
    let object = |(item, object): (&JobItem, &JobObject)| {
        let JobObject { action, cluster, key, ephemeral } = object;
        json!({
            "item": item.name, "action": action, "cluster": cluster, "apiVersion": key.api_version, "group": key.group(), "kind": key.kind,
            "namespace": key.namespace.as_deref().map_or("", |namespace| namespace), "name": key.name, "ephemeral": ephemeral,
        })
    };
    let item = |item: &JobItem| json!({"name": item.name, "counts": counts(&mut item.objects.iter())});
    Ok(Map::from_iter([
        ("objects".to_owned(), all().map(object).collect()),
        ("counts".to_owned(), json!(counts(&mut all().map(|(_, object)| object)))),
        ("items".to_owned(), items.iter().map(item).collect()),
        ("job".to_owned(), json!({"namespace": namespace, "installation": installation})),
    ]))
}

/// A job of a tree: the namespace, and the id that all of it has.
pub(crate) type TreeJob = (Namespace, JobId);

/// What is known of jobs under way.
#[derive(Default)]
pub(crate) struct JobWrites {
    /// Protects the jobs. Held for one look-up or one change.
    jobs: Mutex<BTreeMap<TreeJob, PlannedJob>>,
    /// Where items are called.
    queue: OnceLock<Queue>,
}

#[derive(Default)]
struct PlannedJob {
    /// Set when what another process knew of it has been read.
    read: Arc<OnceCell<()>>,
    items: BTreeMap<Key, KnownItem>,
    /// Items of an Execution that others of it wait for, and those that wait.
    waits: BTreeMap<Key, ItemWait>,
    /// Another one whenever something else is known.
    version: u64,
    /// The digest of rules that hold, and of which version.
    passed: Option<(String, u64)>,
}

#[derive(Default)]
struct ItemWait {
    awaited: BTreeSet<Key>,
    waiting: BTreeSet<Key>,
}

#[derive(Default)]
struct KnownItem {
    /// What it has begun to write.
    begun: BTreeSet<JobObject>,
    /// What it is about to write.
    next: BTreeSet<JobObject>,
}

impl PlannedJob {
    /// Nobody waits for an item any more. Items that only waited for this one are answered.
    fn end_wait(&mut self, item: &Key) -> BTreeSet<Key> {
        let mut goes_on = BTreeSet::new();
        self.waits.retain(|_, wait| {
            wait.awaited.remove(item);
            if wait.awaited.is_empty() {
                goes_on.append(&mut wait.waiting);
            }
            !wait.awaited.is_empty()
        });
        goes_on
    }
}

impl JobWrites {
    /// What says whether it has been read what another process knew of a job.
    pub(crate) fn read(&self, job: &TreeJob) -> Arc<OnceCell<()>> {
        Arc::clone(&self.lock().entry(job.clone()).or_default().read)
    }

    /// What an item is about to write; `None` where nobody can tell before it is its turn, which takes nothing away that is known. Items
    /// that only waited for this one are called.
    pub(crate) fn note(&self, job: &TreeJob, item: &Key, next: Option<BTreeSet<JobObject>>) {
        let mut jobs = self.lock();
        let known = jobs.entry(job.clone()).or_default();
        let of_item = known.items.entry(item.clone()).or_default();
        if let Some(next) = next.filter(|next| *next != of_item.next) {
            known.version += 1;
            of_item.next = next;
        }
        let goes_on = known.end_wait(item);
        drop(jobs);
        self.call(goes_on);
    }

    /// An item rests, with or without anything known of what it is about to write. Nothing is kept of jobs that have no rules.
    pub(crate) fn rest(&self, job: &TreeJob, item: &Key) {
        let is_unknown = self.lock().get(job).is_some_and(|known| !known.items.contains_key(item));
        if is_unknown {
            self.note(job, item, None);
        }
    }

    /// An item is gone: nobody waits for it any more.
    pub(crate) fn release(&self, item: &Key) {
        let mut jobs = self.lock();
        let of_namespace = jobs.iter_mut().filter(|((namespace, _), _)| *namespace == item.namespace);
        let goes_on: BTreeSet<Key> = of_namespace.flat_map(|(_, known)| known.end_wait(item)).collect();
        drop(jobs);
        self.call(goes_on);
    }

    /// What an item had begun to write before this process.
    pub(crate) fn note_begun(&self, job: &TreeJob, item: &Key, begun: impl Iterator<Item = JobObject>) {
        let mut jobs = self.lock();
        let known = jobs.entry(job.clone()).or_default();
        known.version += 1;
        known.items.entry(item.clone()).or_default().begun.extend(begun);
    }

    /// Whether it is known what an item is about to write, or that nobody can tell.
    pub(crate) fn knows(&self, job: &TreeJob, item: &Key) -> bool {
        self.lock().get(job).is_some_and(|known| known.items.contains_key(item))
    }

    /// The items among these of which nothing is known yet. `waiting`, of this Execution, is called when something is of all of them.
    pub(crate) fn wait_for(
        &self,
        job: &TreeJob,
        (execution, waiting): (&Key, &Key),
        items: impl Iterator<Item = Key>,
    ) -> BTreeSet<Key> {
        let mut jobs = self.lock();
        let known = jobs.entry(job.clone()).or_default();
        let awaited: BTreeSet<Key> = items.filter(|item| !known.items.contains_key(item)).collect();
        if !awaited.is_empty() {
            let wait = known.waits.entry(execution.clone()).or_default();
            wait.awaited.clone_from(&awaited);
            wait.waiting.insert(waiting.clone());
        }
        awaited
    }

    /// An item begins to write what it was about to.
    pub(crate) fn begin(&self, job: &TreeJob, item: &Key) {
        if let Some(of_item) = self.lock().get_mut(job).and_then(|known| known.items.get_mut(item)) {
            let next = of_item.next.clone();
            of_item.begun.extend(next);
        }
    }

    /// Whether rules of this digest have held of all that is known now.
    pub(crate) fn has_passed(&self, job: &TreeJob, rules: &str) -> bool {
        let held =
            |known: &PlannedJob| known.passed.as_ref().is_some_and(|(of, at)| of == rules && *at == known.version);
        self.lock().get(job).is_some_and(held)
    }

    /// Rules of this digest hold of what was known in this version.
    pub(crate) fn pass(&self, job: &TreeJob, rules: String, version: u64) {
        self.lock().entry(job.clone()).or_default().passed = Some((rules, version));
    }

    /// All that is known of a job, and its version.
    pub(crate) fn items(&self, job: &TreeJob, name: impl Fn(&Key) -> String) -> (Vec<JobItem>, u64) {
        let jobs = self.lock();
        let Some(known) = jobs.get(job) else { return (Vec::new(), 0) };
        let item = |(key, KnownItem { begun, next }): (&Key, &KnownItem)| JobItem {
            name: name(key),
            objects: begun.union(next).cloned().collect(),
        };
        (known.items.iter().map(item).collect(), known.version)
    }

    /// Where items are called, from now on.
    pub(crate) fn call_in(&self, queue: Queue) {
        self.queue.get_or_init(|| queue);
    }

    /// The job has ended. What waits is called, should there be any.
    pub(crate) fn forget(&self, job: &TreeJob) {
        let Some(known) = self.lock().remove(job) else { return };
        self.call(known.waits.into_values().flat_map(|wait| wait.waiting));
    }

    /// Has items called.
    pub(crate) fn call(&self, items: impl IntoIterator<Item = Key>) {
        if let Some(queue) = self.queue.get() {
            items.into_iter().for_each(|item| queue.wake(item));
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<TreeJob, PlannedJob>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(action: Action, name: &str) -> JobObject {
        let key = ObjectKey {
            api_version: "apps/v1".into(),
            kind: "Deployment".into(),
            namespace: Some("n".into()),
            name: name.into(),
        };
        JobObject { action, cluster: ClusterRef::Target.to_string(), key, ephemeral: false }
    }

    fn writes() -> (JobWrites, Queue) {
        let (writes, queue) = (JobWrites::default(), Queue::default());
        writes.call_in(queue.clone());
        (writes, queue)
    }

    fn job() -> TreeJob {
        ("n".into(), "j".into())
    }

    #[test]
    fn c_362_rules_over_a_job_have_each_object_of_each_item_and_their_numbers() {
        let of = |name: &str, objects: &[JobObject]| JobItem {
            name: name.to_owned(),
            objects: objects.iter().cloned().collect(),
        };
        let items = [
            of("a", &[object(Action::Delete, "x"), object(Action::Create, "x"), object(Action::None, "y")]),
            of("b", &[object(Action::Delete, "x")]),
        ];
        let variables = variables(&"n".into(), "web", &items).unwrap();
        let counts = |create: u32, delete: u32| json!({"create": create, "change": 0, "replace": 0, "delete": delete});
        assert_eq!(variables["counts"], counts(1, 2));
        let of_items = json!([{"name": "a", "counts": counts(1, 1)}, {"name": "b", "counts": counts(0, 1)}]);
        assert_eq!(variables["items"], of_items);
        assert_eq!(variables["job"], json!({"namespace": "n", "installation": "web"}));
        let last = json!({"item": "b", "action": "delete", "cluster": "the target cluster", "apiVersion": "apps/v1", "group": "apps",
            "kind": "Deployment", "namespace": "n", "name": "x", "ephemeral": false});
        assert_eq!(variables["objects"].as_array().unwrap().last(), Some(&last));
    }

    #[test]
    fn c_362_limits_rules_over_a_job_with_more_objects_cannot_be_told_of() {
        let with = |number: usize| {
            let objects = (0..number).map(|of| object(Action::Delete, &of.to_string())).collect();
            variables(&"n".into(), "web", &[JobItem { name: "a".to_owned(), objects }]).map(drop)
        };
        assert_eq!(with(100_000), Ok(()));
        let why = "the job writes or deletes 100001 objects, and rules are over 100000; split it";
        assert_eq!(with(100_001), Err(why.to_owned()));
    }

    #[test]
    fn c_362_items_wait_until_something_is_known_of_all_that_they_wait_for() {
        let (writes, queue) = writes();
        let key = |name: &str| Key::new("n", name);
        let next = |name: &str| Some(BTreeSet::from([object(Action::Delete, name)]));
        writes.note(&job(), &key("a"), next("x"));
        let wait = |waiting: &str| {
            let items = ["a", "b", "c"].map(key).into_iter();
            let awaited = writes.wait_for(&job(), (&key("execution"), &key(waiting)), items);
            awaited.iter().map(|key| key.name.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(wait("a"), ["b", "c"]);
        writes.note(&job(), &key("b"), None);
        assert_eq!((queue.queued(), wait("b")), (Vec::new(), vec!["c".to_owned()]));
        writes.note(&job(), &key("c"), next("z"));
        assert_eq!(queue.queued(), [key("a"), key("b")]);
        assert_eq!(wait("a"), [""; 0]);
        let others = [key("d"), key("e"), key("f")].into_iter();
        assert_eq!(writes.wait_for(&job(), (&key("execution"), &key("a")), others).len(), 3);
        writes.rest(&job(), &key("d"));
        writes.rest(&("n".into(), "another".into()), &key("e"));
        writes.release(&key("e"));
        assert_eq!(queue.queued(), [key("a"), key("b")], "both are called already");
        let other = [key("f")].into_iter();
        assert_eq!(writes.wait_for(&job(), (&key("execution"), &key("g")), other), BTreeSet::from([key("f")]));
        writes.release(&key("f"));
        assert_eq!(queue.queued(), [key("a"), key("b"), key("g")], "nobody waits for what is gone");
        assert!(!writes.knows(&("n".into(), "another".into()), &key("e")), "nothing is kept of a job without rules");
    }

    #[test]
    fn c_362_what_was_begun_counts_until_the_job_ends_and_what_has_passed_until_something_else_is_known() {
        let (writes, queue) = writes();
        let key = Key::new("n", "a");
        let next = |names: &[&str]| Some(names.iter().map(|name| object(Action::Delete, name)).collect());
        let known = || {
            let (items, _) = writes.items(&job(), |key| key.name.to_string());
            items.iter().flat_map(|item| &item.objects).map(|object| object.key.name.to_string()).collect::<Vec<_>>()
        };
        writes.note(&job(), &key, next(&["x", "y"]));
        writes.note(&job(), &key, next(&["y"]));
        assert_eq!(known(), ["y"], "nothing was begun");
        writes.begin(&job(), &key);
        writes.note(&job(), &key, next(&["z"]));
        assert_eq!(known(), ["y", "z"]);
        writes.note(&job(), &key, None);
        assert_eq!(known(), ["y", "z"], "what is known stays");
        let (_, version) = writes.items(&job(), |key| key.name.to_string());
        writes.pass(&job(), "rules".to_owned(), version);
        writes.note(&job(), &key, next(&["z"]));
        assert!(writes.has_passed(&job(), "rules") && !writes.has_passed(&job(), "others"));
        writes.note_begun(&job(), &Key::new("n", "b"), [object(Action::Delete, "w")].into_iter());
        assert!(!writes.has_passed(&job(), "rules"));
        assert_eq!(known(), ["y", "z", "w"]);
        let wait = Key::new("n", "c");
        writes.wait_for(&job(), (&wait, &key), [wait.clone()].into_iter());
        writes.forget(&job());
        assert_eq!(queue.queued(), std::slice::from_ref(&key), "nothing waits for ever");
        assert_eq!((known(), writes.knows(&job(), &key)), (Vec::new(), false));
    }
}
