//! What is on record of a job is what it has sent to the server, and nothing else (C-331 … C-338).

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use orangery_tests::{
    objects::{NAMESPACE, Objects},
    proxy::{Fate, Fates, ProxyRequest},
    tree::{
        another_job_ended, any, blueprint, deploys, executions, imports_cluster, installation, on_cluster,
        wait_until_idle,
    },
    world::{MOCK, World},
    write_log::WriteLog,
};
use serde_json::{Value, json};
use tokio::sync::watch;

const ON_RECORD: &str = "--job-records=9";

/// A request, by its verb and path.
type Request = (String, String);

/// Logs writes, and cuts the operator off after one of them.
#[derive(Default)]
struct Recorder {
    log: WriteLog,
    /// After how many writes with this in their path.
    cut: Mutex<Option<(&'static str, usize)>>,
    is_cut: AtomicBool,
    reached: watch::Sender<bool>,
    /// The write that was done, whose answer nobody has seen.
    held: Mutex<Vec<Request>>,
}

impl Recorder {
    /// From now on writes are logged anew.
    fn begin(&self, cut: Option<(&'static str, usize)>) {
        self.log.begin();
        *self.cut.lock().unwrap_or_else(PoisonError::into_inner) = cut;
        self.is_cut.store(false, Ordering::SeqCst);
    }

    async fn is_reached(&self) {
        self.reached.subscribe().wait_for(|reached| *reached).await.unwrap();
    }

    /// The writes to ConfigMaps that the server has done.
    fn done(&self) -> Vec<Request> {
        let logged = self.log.all().into_iter();
        let done = logged.filter(|write| write.answer.is_some_and(|answer| answer.is_done));
        let done = done.map(|write| (write.method, write.path));
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut done: Vec<Request> = done.chain(held).filter(|(_, path)| path.contains("/configmaps")).collect();
        done.sort();
        done
    }
}

impl Fates for Recorder {
    fn request(&self, asked: &ProxyRequest) -> Fate {
        if !asked.is_write() {
            return Fate::Pass;
        }
        if self.is_cut.load(Ordering::SeqCst) {
            return Fate::Hold;
        }
        let mut cut = self.cut.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *cut {
            Some((path, left)) if asked.path.contains(*path) => *left -= 1,
            Some(_) | None => return Fate::Pass,
        }
        if cut.is_some_and(|(_, left)| left > 0) {
            return Fate::Pass;
        }
        *cut = None;
        self.is_cut.store(true, Ordering::SeqCst);
        let request = (asked.method.to_string(), asked.path.clone());
        self.held.lock().unwrap_or_else(PoisonError::into_inner).push(request);
        Fate::HoldAnswer
    }

    fn answered(&self, _: &ProxyRequest) {
        self.reached.send_replace(true);
    }

    fn write_log(&self) -> Option<&WriteLog> {
        Some(&self.log)
    }
}

/// An Installation `tree` of items that each write a ConfigMap of their name.
fn tree(items: &[(&str, &str)]) -> Value {
    let items: Vec<Value> = items.iter().map(|(name, content)| deploys(name, &[], content)).collect();
    of_items(&items)
}

fn of_items(items: &[Value]) -> Value {
    let blueprint = blueprint(json!({"imports": imports_cluster(), "deployExecutions": executions(items)}));
    on_cluster(installation("tree", &blueprint))
}

/// Waits until a job other than this one has ended, and answers its id and phase.
async fn ended(objects: &Objects, before: &str) -> (String, String) {
    let found = another_job_ended(objects, before).await;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (text(&found["status"]["jobID"]), text(&found["status"]["phase"]))
}

/// The records of a job, as the command shows them.
async fn records_of(world: &World, job: &str) -> Vec<Value> {
    let text = world.run(&["show", job, "-n", NAMESPACE, "-o", "json"]).await;
    let shown: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    shown["items"].as_array().cloned().unwrap_or_default()
}

fn writes(records: &[Value]) -> impl Iterator<Item = &Value> {
    records.iter().flat_map(|record| record["writes"].as_array().into_iter().flatten())
}

/// The requests that records tell of, which were answered.
fn recorded(records: &[Value]) -> Vec<Request> {
    let request = |write: &Value| {
        let text = |field: &str| write[field].as_str().unwrap_or_default().to_owned();
        let method = match text("verb").as_str() {
            "create" => "POST",
            "replace" => "PUT",
            "apply" | "patch" => "PATCH",
            _ => "DELETE",
        };
        let name = if method == "POST" { String::new() } else { format!("/{}", text("name")) };
        (method.to_owned(), format!("/api/v1/namespaces/{}/configmaps{name}", text("namespace")))
    };
    let mut requests: Vec<Request> =
        writes(records).filter(|write| write["isUnanswered"] != true).map(request).collect();
    requests.sort();
    requests
}

/// What is said of an object before and after the last write of it.
fn of_object(records: &[Value], name: &str) -> Option<(String, String)> {
    let text = |write: &Value, field: &str| write[field].as_str().unwrap_or_default().to_owned();
    writes(records)
        .filter(|write| write["name"] == name)
        .last()
        .map(|write| (text(write, "before"), text(write, "after")))
}

#[tokio::test]
async fn c_331_c_336_c_338_what_is_on_record_of_each_job_is_what_the_server_was_sent() {
    let recorder = Arc::new(Recorder::default());
    let mut world = World::on(&crate::ground(), crate::binary().await, Arc::clone(&recorder) as Arc<dyn Fates>).await;
    world.start_with(&[MOCK, ON_RECORD]);
    let mut broken = deploys("b", &[], "canary-of-b");
    broken["config"]["manifests"][0]["manifest"]["data"]["content"] = json!({"no": "text"});
    let deeds = [
        (tree(&[("a", "1"), ("b", "canary-of-b")]), "Succeeded"),
        (tree(&[("a", "2"), ("b", "canary-of-b")]), "Succeeded"),
        (tree(&[("a", "2"), ("b", "canary-of-b")]), "Succeeded"),
        (of_items(&[deploys("a", &[], "3"), broken]), "Failed"),
    ];
    let (mut jobs, mut records) = (vec![String::new()], vec![Vec::new()]);
    for (deed, phase) in deeds {
        recorder.begin(None);
        world.objects.apply(&deed).await;
        let (job, found) = ended(&world.objects, &jobs[jobs.len() - 1]).await;
        assert_eq!(found, phase);
        let told = records_of(&world, &job).await;
        assert_eq!(recorded(&told), recorder.done(), "{told:#?}");
        jobs.push(job);
        records.push(told);
    }
    let digests = |job: usize| of_object(&records[job], "a").unwrap_or_default();
    assert_eq!(recorded(&records[1]).len(), 2);
    assert_eq!(digests(1).0, "absent");
    assert_eq!(digests(2).0, digests(1).1, "nobody else has written it");
    assert_ne!(digests(2).1, digests(1).1);
    assert_eq!(recorded(&records[3]), [], "nothing has changed");
    assert_eq!(digests(4).0, digests(2).1);
    let errors: BTreeSet<String> = records[4].iter().map(|record| record["errors"].to_string()).collect();
    assert_eq!(errors.len(), 2, "one has failed, and one has not: {errors:?}");
    for told in &records[1..] {
        assert!(
            told.iter().all(|record| record["trigger"] == json!({"cause": "Request", "manager": "suite"})),
            "{told:#?}"
        );
        let inputs = |field: &str| {
            told.iter().all(|record| record["inputs"][field].as_str().is_some_and(|text| !text.is_empty()))
        };
        assert!(
            ["installation", "spec", "imports", "item", "plugin", "pluginDigest"].into_iter().all(inputs),
            "{told:#?}"
        );
        assert!(!json!(told).to_string().contains("canary-of-b"), "values are on no record");
    }
    let differs = world.run(&["diff", &jobs[1], &jobs[2], "-n", NAMESPACE]).await;
    let object = format!("  object ConfigMap {NAMESPACE}/a in target: {} → {}", digests(1).1, digests(2).1);
    assert!(differs.contains(&object), "{differs}");
    assert!(differs.contains("  input item: "), "{differs}");
    // What is on record of what is gone stays.
    recorder.begin(None);
    world.objects.delete(&any("Installation", "tree")).await;
    world.objects.expect_absent(&any("Installation", "tree")).await;
    let history = world.run(&["history", "tree", "-n", NAMESPACE, "-o", "json"]).await;
    let history: Value = serde_json::from_str(&history).unwrap_or_else(|error| panic!("{error}: {history}"));
    let told: Vec<&Value> = history["jobs"].as_array().into_iter().flatten().map(|job| &job["job"]).collect();
    assert_eq!(told.len(), 5, "{history:#}");
    assert!(told.iter().zip(&jobs[1..]).all(|(told, job)| *told == job), "{history:#}");
    let last = told[4].as_str().unwrap_or_default();
    let told = records_of(&world, last).await;
    assert_eq!(recorded(&told), recorder.done());
    assert_eq!(of_object(&told, "a"), Some((digests(4).1, "absent".to_owned())));
    let statement = world.run(&["show", last, "-n", NAMESPACE, "-o", "statement"]).await;
    let statement: Value = serde_json::from_str(&statement).unwrap_or_else(|error| panic!("{error}: {statement}"));
    let hash = told[0]["hash"].as_str().unwrap_or_default().trim_start_matches("sha256:").to_owned();
    let name = format!("deployitem/{NAMESPACE}/{}", told[0]["item"]["name"].as_str().unwrap_or_default());
    assert_eq!(statement["subject"][0], json!({"name": name, "digest": {"sha256": hash}}));
    assert_eq!(statement["predicate"]["items"], json!(told));
    world.end().await;
}

/// The objects that records tell of, in whatever way, by how often they are told of.
fn objects_of(records: &[Value]) -> BTreeMap<String, usize> {
    let unaccounted = records.iter().flat_map(|record| record["unaccounted"].as_array().into_iter().flatten());
    let mut objects = BTreeMap::new();
    for object in writes(records).chain(unaccounted) {
        *objects.entry(object["name"].as_str().unwrap_or_default().to_owned()).or_default() += 1;
    }
    objects
}

#[tokio::test]
async fn c_333_a_kill_leaves_no_write_without_a_word_and_makes_none_up() {
    for cut in [("/configmaps", 1), ("/configmaps", 3), ("/jobhistories", 1)] {
        let recorder = Arc::new(Recorder::default());
        let fates = Arc::clone(&recorder) as Arc<dyn Fates>;
        let mut world = World::on(&crate::ground(), crate::binary().await, fates).await;
        world.start_with(&[MOCK, ON_RECORD]);
        world.objects.apply(&tree(&[("a", "1"), ("b", "1")])).await;
        let (first, _) = ended(&world.objects, "").await;
        wait_until_idle(&world.objects).await;
        recorder.begin(Some(cut));
        // One is changed, one is deleted, one is new.
        world.objects.apply(&tree(&[("a", "2"), ("c", "2")])).await;
        recorder.is_reached().await;
        world.kill().await;
        recorder.is_cut.store(false, Ordering::SeqCst);
        world.start_with(&[MOCK, ON_RECORD]);
        let (job, phase) = ended(&world.objects, &first).await;
        assert_eq!(phase, "Succeeded");
        let (told, done) = (records_of(&world, &job).await, recorder.done());
        let mut left = done.clone();
        for request in recorded(&told) {
            let place = left.iter().position(|done| *done == request);
            left.remove(place.unwrap_or_else(|| panic!("{cut:?}: {request:?} is made up; done were {done:?}")));
        }
        // What is not told as answered is told as what may have been done.
        let objects = objects_of(&told);
        let told_of = |(method, path): &Request| {
            let name = path.rsplit('/').next().unwrap_or_default();
            objects.contains_key(if method == "POST" { "c" } else { name })
        };
        assert!(left.iter().all(told_of), "{cut:?}: nothing is said of one of {left:?}: {told:#?}");
        // Two items write at the same time: what one was answered may be on no record yet when the other one is cut off.
        assert!(left.len() <= 2 && left.len() < done.len(), "{cut:?}: of {done:?} {left:?} are not told as done");
        let texts: Vec<String> = ["a", "b", "c"].map(|name| format!("{name}: {:?}", objects.get(name))).to_vec();
        assert!(["a", "b", "c"].iter().all(|name| objects.contains_key(*name)), "{cut:?}: {texts:?}");
        world.end().await;
    }
}
