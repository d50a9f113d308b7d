//! Jobs that the original has begun: its objects lie there in mid-job, as they were recorded, and the operator goes on with them
//! (C-178).

use std::{collections::BTreeSet, sync::Arc};

use orangery_tests::{
    history::History,
    proxy::Sound,
    recording::{
        folder,
        namespace::WatchedNamespace,
        restored::{identity, restore},
        steps::Recording,
    },
    tree::{API, in_phase},
    world::World,
};
use serde_json::{Value, json};

/// What a server has in every namespace.
const NOT_OF_THE_CASE: &str = "kube-root-ca.crt";

/// The kinds that have jobs.
const WITH_JOBS: [&str; 3] = ["Installation", "Execution", "DeployItem"];

/// An operator over what was recorded.
struct Takeover {
    world: World,
    recording: Recording,
    /// What lay there when it started.
    before: Vec<Value>,
    history: History,
    watched: WatchedNamespace,
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// What objects there are, and which ones: kind, name and uid.
fn identities(objects: &[Value]) -> BTreeSet<String> {
    let of_case = objects.iter().filter(|object| text(object, "/metadata/name") != NOT_OF_THE_CASE);
    let parts =
        |object: &Value| ["/kind", "/metadata/name", "/metadata/uid"].map(|pointer| text(object, pointer).to_owned());
    of_case.map(|object| parts(object).join(" ")).collect()
}

impl Takeover {
    async fn of(case: &str, label: &str) -> Takeover {
        Takeover::over(Recording::read(&folder(case)), label).await
    }

    async fn over(recording: Recording, label: &str) -> Takeover {
        let mut world = World::on(&crate::ground(), crate::binary().await, Arc::new(Sound)).await;
        let before = restore(&recording, label, &world.objects).await;
        let history = History::begin_in(world.objects.client(), &recording.namespace).await.with_statuses_of_others();
        let watched = WatchedNamespace::begin(world.objects.client(), &recording.namespace).await;
        world.start();
        Takeover { world, recording, before, history, watched }
    }

    /// An object of the case.
    fn named(&self, mut object: Value) -> Value {
        object["metadata"]["namespace"] = json!(self.recording.namespace);
        object
    }

    /// The object as it lay there.
    fn before(&self, kind: &str, name: &str) -> &Value {
        let is_it = |object: &&Value| text(object, "/kind") == kind && text(object, "/metadata/name").starts_with(name);
        self.before.iter().find(is_it).unwrap_or_else(|| panic!("there was no {kind} {name}"))
    }

    /// Waits until the item says that it waits for something of this name.
    async fn waits_for(&self, item: &str, what: &str) {
        let item = identity(self.before("DeployItem", item));
        let says = |object: &Value| {
            object["metadata"]["name"] == item["metadata"]["name"]
                && object["status"]["conditions"].to_string().contains(what)
        };
        self.world.objects.expect_that(&item, &format!("does not say that it waits for {what}"), says).await;
    }

    /// Waits until the job of this Installation, the one that it had, has ended in this phase.
    async fn ends(&self, name: &str, phase: &str) {
        let mut ended = self.named(in_phase("Installation", name, phase));
        let job = self.before("Installation", name)["status"]["jobID"].clone();
        ended["status"]["jobID"] = job.clone();
        ended["status"]["jobIDFinished"] = job;
        self.world.objects.expect(&ended).await;
    }

    /// Nothing was made twice, nothing was deleted, and nothing has begun another job than the one that it had. New are at most what
    /// is exported, and the credentials that are kept for deletions.
    async fn is_the_same(&self) {
        let before = identities(&self.before);
        assert!(self.watched.until(|objects| identities(&objects).is_superset(&before)).await);
        let now = self.watched.now();
        let new = identities(&now);
        let is_new_work = |of: &&String| !of.starts_with("DataObject ") && !of.starts_with("Secret ");
        let new: Vec<&String> = new.difference(&before).filter(is_new_work).collect();
        assert_eq!(new, Vec::<&String>::new());
        let seen = self.history.until_now().await;
        for version in seen.versions() {
            let before = self.before(version.kind, text(&version.object, "/metadata/name"));
            assert!(!version.gone, "{version:?}");
            assert_eq!(version.jobs().0, text(before, "/status/jobID"), "{version:?}");
        }
    }

    /// Deletes the Installations one after the other. Nothing is left but what its user made.
    async fn goes(self, installations: &[&str]) {
        for name in installations {
            let object = self.named(in_phase("Installation", name, ""));
            let object = identity(&object);
            self.world.objects.delete(&object).await;
            self.world.objects.expect_absent(&object).await;
        }
        let is_left = |object: &&Value| {
            let is_of_user = text(object, "/kind") == "Target" && object.pointer("/metadata/ownerReferences").is_none();
            is_of_user || text(object, "/kind") == "Context"
        };
        let left = identities(&self.before.iter().filter(is_left).cloned().collect::<Vec<_>>());
        self.watched.until(|objects| identities(&objects) == left).await;
        assert_eq!(identities(&self.watched.now()), left);
        self.world.end().await;
    }
}

#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn c_178_a_job_that_waits_for_a_check_ends_under_its_id() {
    let takeover = Takeover::of("interrupt", "before").await;
    takeover.waits_for("int-item", ".data.key").await;
    let config_map = takeover.named(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cm"}}));
    let mut ready = config_map.clone();
    ready["data"] = json!({"key": "other"});
    takeover.world.objects.merge(&ready).await;
    takeover.ends("int", "Succeeded").await;
    takeover.is_the_same().await;
    takeover.goes(&["int"]).await;
}

#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn c_178_a_job_that_waits_for_a_deployment_ends_under_its_id() {
    let takeover = Takeover::of("deployment-default-readiness", "not-ready").await;
    takeover.waits_for("dep-item", "Deployment").await;
    let deployment = takeover.named(json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}}));
    let present = takeover.world.objects.expect(&deployment).await;
    let observed = &present["metadata"]["generation"];
    let ready = json!({
        "observedGeneration": observed, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1,
        "conditions": [{"type": "Available", "status": "True"}],
    });
    takeover.world.objects.patch_status(&deployment, ready).await;
    takeover.ends("dep", "Succeeded").await;
    takeover.is_the_same().await;
    takeover.goes(&["dep"]).await;
}

#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn c_178_a_deletion_that_waits_for_a_sibling_goes_on_under_its_id() {
    let takeover = Takeover::of("export-manifest", "producer-deletion-blocked").await;
    let mut waits = takeover.named(in_phase("Installation", "producer", "InitDelete"));
    waits["status"]["jobID"] = takeover.before("Installation", "producer")["status"]["jobID"].clone();
    let says = |object: &Value| {
        object["metadata"]["name"] == "producer" && object["status"]["conditions"].to_string().contains("consumer")
    };
    takeover.world.objects.expect_that(&waits, "does not say that it waits for consumer", says).await;
    takeover.is_the_same().await;
    let producer = takeover.before("Installation", "producer").clone();
    let consumer = identity(takeover.before("Installation", "consumer"));
    takeover.world.objects.delete(&consumer).await;
    takeover.world.objects.expect_absent(&identity(&producer)).await;
    let seen = takeover.history.until_now().await;
    for version in seen.of("Installation", "producer") {
        assert_eq!(version.jobs().0, text(&producer, "/status/jobID"), "{version:?}");
    }
    takeover.goes(&[]).await;
}

#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn c_178_a_job_is_interrupted_under_its_id_and_one_that_has_ended_stays_as_it_is() {
    let takeover = Takeover::of("mock-phases", "final").await;
    let interrupt = json!({"landscaper.gardener.cloud/operation": "interrupt"});
    let installation = json!({"apiVersion": API, "kind": "Installation", "metadata": {"name": "progressing"}});
    takeover.world.objects.annotate(&takeover.named(installation), interrupt).await;
    takeover.ends("progressing", "Failed").await;
    takeover.is_the_same().await;
    for kind in WITH_JOBS {
        let before = takeover.before(kind, "withstatus");
        let now = takeover.world.objects.expect(&identity(before)).await;
        assert_eq!(
            (&now["status"]["phase"], &now["status"]["jobIDFinished"]),
            (&json!("Succeeded"), &before["status"]["jobID"])
        );
    }
    takeover.goes(&["progressing", "withstatus"]).await;
}

/// A tree whose job has ended well, with its root put back into a phase of the next job: what is below has that job in `Completing`
/// already, and not before.
fn put_back(recording: &mut Recording, root: &str, phase: &str) {
    for object in recording.dumps.values_mut().flatten() {
        let labels = object["metadata"]["labels"].as_object_mut();
        let copies = labels.filter(|labels| {
            labels.get("data.landscaper.gardener.cloud/context").is_some_and(|of| of == &format!("Inst.{root}"))
        });
        // `Init` has made the copies of the imports for its job.
        if let Some(labels) = copies.filter(|_| !["Init", "Completing"].contains(&phase)) {
            labels.insert("data.landscaper.gardener.cloud/jobid".to_owned(), json!("<the next job>"));
        }
        if object["kind"] != "Installation" || object["metadata"]["name"] != root {
            continue;
        }
        let status = object["status"].as_object_mut().unwrap();
        status.insert("phase".to_owned(), json!(phase));
        if phase == "Completing" {
            status.remove("jobIDFinished");
        } else {
            status.insert("jobID".to_owned(), json!("<the next job>"));
        }
    }
}

#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn c_178_a_job_goes_on_from_any_phase() {
    for phase in ["Init", "CleanupOrphaned", "ObjectsCreated", "Completing"] {
        let mut recording = Recording::read(&folder("export-manifest"));
        recording.dumps.retain(|label, _| label == "final");
        put_back(&mut recording, "producer", phase);
        let takeover = Takeover::over(recording, "final").await;
        takeover.ends("producer", "Succeeded").await;
        let now = takeover.world.objects.expect(&identity(takeover.before("DeployItem", "producer"))).await;
        let expected = &takeover.before("Installation", "producer")["status"]["jobID"];
        assert_eq!(&now["status"]["jobIDFinished"], expected, "{phase}");
        // What it exports is made anew in each job.
        let is_exported = |of: &&String| of.starts_with("DataObject my-out ");
        let before = identities(&takeover.before);
        let (exported, kept) = (before.iter().find(is_exported).cloned(), identities(&takeover.watched.now()));
        let gone: Vec<&String> = before.difference(&kept).filter(|of| Some(*of) != exported.as_ref()).collect();
        assert_eq!(gone, Vec::<&String>::new(), "{phase}");
        takeover.goes(&["consumer", "producer"]).await;
    }
}
