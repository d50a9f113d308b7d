use std::sync::{Mutex, PoisonError};

use k8s_openapi::{
    api::{core::v1::Namespace, events::v1::Event},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    apimachinery::pkg::apis::meta::v1::Time,
};
use kube::{
    Api, CustomResourceExt as _,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    runtime::{conditions::is_deleted, wait::await_condition},
};
use orangery_api::{
    context::Context,
    deploy_item::DeployItem,
    health::{CRITICAL_PROBLEMS, CriticalProblem, CriticalProblems},
    installation::Installation,
    job::Job as _,
};
use orangery_blueprint::template_engine::TemplateEngine;
use orangery_ocm::Artifact;
use orangery_proposal::deployer::Deployer;
use orangery_reconcile::Key;
use serde_json::json;
use tokio::sync::mpsc;

use super::*;
use crate::fixture::{Still, server};

const PATIENCE: Duration = Duration::from_secs(30);

/// No components: nothing is deployed.
struct Bare;

impl Plugins for Bare {
    fn deployer(&self, _: &str, _: &orangery_core::name::Namespace) -> Option<Arc<dyn Deployer>> {
        None
    }

    fn template_engine(&self, _: &str, _: Option<&orangery_core::name::Namespace>) -> Option<Arc<dyn TemplateEngine>> {
        None
    }

    fn bundled_engine(&self, name: &str, _: Arc<dyn Artifact>) -> Arc<dyn TemplateEngine> {
        unreachable!("{name}: no blueprint is rendered here")
    }

    fn template_types(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Panics once for each type of items, or always, and claims none.
#[derive(Default)]
struct Panicking {
    always: bool,
    asked: Mutex<BTreeSet<String>>,
}

impl Plugins for Panicking {
    fn deployer(&self, item_type: &str, _: &orangery_core::name::Namespace) -> Option<Arc<dyn Deployer>> {
        let is_new = self.asked.lock().unwrap_or_else(PoisonError::into_inner).insert(item_type.to_owned());
        assert!(!self.always && !is_new, "as asked by {item_type}");
        None
    }

    fn template_engine(
        &self,
        name: &str,
        _: Option<&orangery_core::name::Namespace>,
    ) -> Option<Arc<dyn TemplateEngine>> {
        Bare.template_engine(name, None)
    }

    fn bundled_engine(&self, name: &str, component: Arc<dyn Artifact>) -> Arc<dyn TemplateEngine> {
        Bare.bundled_engine(name, component)
    }

    fn template_types(&self) -> Vec<String> {
        Bare.template_types()
    }
}

/// Computes in each call until the other end is dropped, and claims no items.
struct Computing {
    began: mpsc::UnboundedSender<()>,
    ends: Mutex<std::sync::mpsc::Receiver<()>>,
}

impl Plugins for Computing {
    fn deployer(&self, _: &str, _: &orangery_core::name::Namespace) -> Option<Arc<dyn Deployer>> {
        // Nobody listens any more once the first has begun.
        let _ = self.began.send(());
        let _ended = self.ends.lock().unwrap_or_else(PoisonError::into_inner).recv();
        None
    }

    fn template_engine(
        &self,
        name: &str,
        _: Option<&orangery_core::name::Namespace>,
    ) -> Option<Arc<dyn TemplateEngine>> {
        Bare.template_engine(name, None)
    }

    fn bundled_engine(&self, name: &str, component: Arc<dyn Artifact>) -> Arc<dyn TemplateEngine> {
        Bare.bundled_engine(name, component)
    }

    fn template_types(&self) -> Vec<String> {
        Bare.template_types()
    }
}

/// An item that makes the operator panic once.
async fn panic(client: &Client, name: &str) {
    let spec = json!({"type": format!("example.org/{name}")});
    let item = serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec})).unwrap();
    Api::<DeployItem>::default_namespaced(client.clone()).create(&PostParams::default(), &item).await.unwrap();
}

/// What is written down of it.
fn problem(name: &str) -> CriticalProblem {
    let description = format!("the reconcile of deploy-item default/{name} panicked: as asked by example.org/{name}");
    CriticalProblem { pod_name: "the-pod".to_owned(), creation_time: Some(Time(Still::TIME)), description }
}

/// Waits until the calls of the DeployItem controller have ended so: panicked, and well.
async fn ended(operator: &Operator, panicked: u64, settled: u64) {
    let (_, queue) = operator.queues().iter().find(|(name, _)| *name == "deploy-item").unwrap();
    let ended = async {
        while (queue.counts().panicked, queue.counts().settled) != (panicked, settled) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, ended).await.unwrap_or_else(|_| panic!("{:?}", queue.counts()));
}

/// Waits until the operator knows a Context.
async fn context(operator: &Operator, namespace: &str) {
    let (sender, mut known) = tokio::sync::mpsc::unbounded_channel();
    let contexts = operator.stores().contexts.clone();
    // Nobody listens any more once the Context is there.
    contexts.subscribe(move |_| {
        let _ = sender.send(());
    });
    let key = Key::new(namespace, "default");
    let appeared = async {
        while contexts.get(&key).is_none() {
            known.recv().await;
        }
    };
    tokio::time::timeout(PATIENCE, appeared).await.expect("the Context is made");
}

#[tokio::test]
async fn c_330_an_operator_with_another_lease_that_writes_the_same_objects_is_told() {
    let (_server, client) = server().await;
    let lease = Some(NamedLease { namespace: "default".into(), name: "one".into(), since: None });
    let config = OperatorConfig { lease, ..OperatorConfig::new(client.clone(), Arc::new(Bare)) };
    let operator = Operator::start(config).await.unwrap();
    tokio::time::timeout(PATIENCE, operator.ready()).await.expect("the first lists come in");
    let writes_of_others = operator.writes_of_others();
    let installations: Api<Installation> = Api::default_namespaced(client.clone());
    let asked = json!({"landscaper.gardener.cloud/operation": "reconcile"});
    let metadata = json!({"name": "x", "annotations": asked});
    let written =
        serde_json::from_value(json!({"metadata": metadata, "spec": {"blueprint": {"inline": {"filesystem": {}}}}}))
            .unwrap();
    installations.create(&PostParams::default(), &written).await.unwrap();
    let has_ended =
        |object: Option<&Installation>| object.is_some_and(|object| object.status.is_some() && object.job_finished());
    let ended = await_condition(installations.clone(), "x", has_ended);
    let ended = tokio::time::timeout(PATIENCE, ended).await.expect("the job ends").unwrap().unwrap();
    let managers = ended.metadata.managed_fields.unwrap_or_default().into_iter();
    let of_status = managers.filter(|entry| entry.subresource.as_deref() == Some("status"));
    let of_status: Vec<String> = of_status.filter_map(|entry| entry.manager).collect();
    assert_eq!((of_status, writes_of_others()), (vec!["orangery/default/one".to_owned()], 0));

    let by = PatchParams { field_manager: Some("orangery/elsewhere/two".to_owned()), ..PatchParams::default() };
    let patch = Patch::Merge(json!({"status": {"observedGeneration": 7}}));
    installations.patch_status("x", &by, &patch).await.unwrap();
    let events: Api<Event> = Api::default_namespaced(client);
    let told = async {
        loop {
            let found = events.list(&ListParams::default()).await.unwrap();
            let told = found.items.into_iter().find(|event| event.reason.as_deref() == Some("AnotherOperator"));
            if let Some(told) = told {
                return told.note;
            }
        }
    };
    let note = "another operator, with the Lease elsewhere/two, writes the status of the same objects, so that every job is done twice: \
                stop one of them, or give each namespaces of its own (--namespace; namespaces of the chart)";
    let told = tokio::time::timeout(PATIENCE, told).await.expect("it is told");
    assert_eq!((told.as_deref(), writes_of_others()), (Some(note), 1));
}

#[tokio::test]
async fn an_operator_of_one_namespace_leaves_the_others_alone_and_stops_when_told() {
    let (server, client) = server().await;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    for name in ["mine", "other"] {
        let namespace = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
        namespaces.create(&PostParams::default(), &namespace).await.unwrap();
    }
    let config = OperatorConfig::new(client.clone(), Arc::new(Bare));
    let config = OperatorConfig { namespaces: BTreeSet::from(["mine".into()]), ..config };
    let operator = Operator::start(config).await.unwrap();
    tokio::time::timeout(PATIENCE, operator.ready()).await.expect("the first lists come in");
    context(&operator, "mine").await;
    let made = Api::<Context>::all(client).list(&ListParams::default()).await.unwrap();
    let places: Vec<Key> = made.items.iter().map(Key::of).collect();
    assert_eq!(places, [Key::new("mine", "default")]);
    let names: Vec<&str> = operator.queues().iter().map(|(name, _)| *name).collect();
    assert_eq!(
        names,
        [
            "installation",
            "execution",
            "target-sync",
            "deploy-item",
            "drift",
            "target-guard",
            "secret-guard",
            "context-guard",
            "config-map-guard",
        ]
    );
    tokio::time::timeout(PATIENCE, operator.stop()).await.expect("it stops");
    server.stop().await;
}

#[tokio::test]
async fn panics_are_tried_again_and_the_last_ten_are_written_down_with_the_pod() {
    let (server, client) = server().await;
    let config = OperatorConfig::new(client.clone(), Arc::new(Panicking::default()));
    let config = OperatorConfig { clock: Arc::new(Still), pod: "the-pod".to_owned(), ..config };
    let operator = Operator::start(config).await.unwrap();
    context(&operator, "default").await;
    let kept: Api<CriticalProblems> = Api::default_namespaced(client.clone());
    assert_eq!(kept.list(&ListParams::default()).await.unwrap().items, [], "who never panics writes nothing");
    let names: Vec<String> = (1..=11).map(|number| format!("item-{number}")).collect();
    for (last, name) in names.iter().enumerate() {
        panic(&client, name).await;
        let first = (last + 1).saturating_sub(10);
        let expected: Vec<CriticalProblem> = names[first..=last].iter().map(|name| problem(name)).collect();
        let message = await_condition(kept.clone(), CRITICAL_PROBLEMS, |object: Option<&CriticalProblems>| {
            object.is_some_and(|object| object.spec.critical_problem == expected)
        });
        if tokio::time::timeout(PATIENCE, message).await.is_err() {
            assert_eq!(kept.get(CRITICAL_PROBLEMS).await.unwrap().spec.critical_problem, expected);
        }
    }
    ended(&operator, 11, 11).await;
    operator.stop().await;
    server.stop().await;
}

#[tokio::test]
async fn c_157_a_job_whose_calls_panic_ends_when_its_time_is_up() {
    let (server, client) = server().await;
    let items: Api<DeployItem> = Api::default_namespaced(client.clone());
    let operator =
        Operator::start(OperatorConfig::new(client, Arc::new(Panicking { always: true, ..Panicking::default() })))
            .await
            .unwrap();
    let item = json!({"metadata": {"name": "a"}, "spec": {"type": "example.org/a", "timeout": "2s"}});
    let made = items.create(&PostParams::default(), &serde_json::from_value(item).unwrap()).await.unwrap();
    let mut handed = serde_json::to_value(made).unwrap();
    handed["status"] = json!({"jobID": "j", "transitionTimes": {"triggerTime": SystemClock.now().to_string()}});
    let handed: DeployItem = serde_json::from_value(handed).unwrap();
    items.replace_status("a", &PostParams::default(), &handed).await.unwrap();
    let ended =
        await_condition(items, "a", |item: Option<&DeployItem>| item.is_some_and(|item| item.phase() == "Failed"));
    let ended = tokio::time::timeout(PATIENCE, ended).await.expect("it ends").unwrap().unwrap();
    let status = ended.status.unwrap();
    let message = "the operator panicked each time that it worked on this, until the time for it was up, which is a mistake of its \
                   program; report it with what its log and the CriticalProblems of its namespace say";
    assert_eq!(
        (status.job_id_finished.as_str(), status.last_error.unwrap().failure().message.as_str()),
        ("j", message)
    );
    operator.stop().await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn c_283_an_operator_that_is_dropped_leaves_no_call_as_under_way() {
    let (_server, client) = server().await;
    let folder = tempfile::tempdir().unwrap();
    let (began, mut computes) = mpsc::unbounded_channel();
    let (end, ends) = std::sync::mpsc::channel();
    let plugins = Arc::new(Computing { began, ends: Mutex::new(ends) });
    let config = OperatorConfig::new(client.clone(), plugins);
    let config = OperatorConfig { journal: Some(folder.path().to_owned()), ..config };
    let operator = Operator::start(config).await.unwrap();
    panic(&client, "a").await;
    tokio::time::timeout(PATIENCE, computes.recv()).await.expect("it is called");
    let is_under_way = || {
        let written = std::fs::read(folder.path().join("calls-under-way")).unwrap();
        written.split(|byte| *byte == 0).any(|line| line.starts_with(b"runs "))
    };
    assert!(is_under_way());
    // As where the Lease is lost. The call goes on.
    drop(operator);
    assert!(!is_under_way());
    drop::<std::sync::mpsc::Sender<()>>(end);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_215_an_operator_that_is_told_to_stop_waits_for_the_calls_under_way_no_longer_than_it_may() {
    let (_server, client) = server().await;
    let (began, mut computes) = mpsc::unbounded_channel();
    let (end, ends) = std::sync::mpsc::channel();
    let plugins = Arc::new(Computing { began, ends: Mutex::new(ends) });
    let config = OperatorConfig { grace: Duration::from_millis(1), ..OperatorConfig::new(client.clone(), plugins) };
    let operator = Operator::start(config).await.unwrap();
    panic(&client, "a").await;
    tokio::time::timeout(PATIENCE, computes.recv()).await.expect("it is called");
    // The call goes on until this test lets it end.
    tokio::time::timeout(GRACE, operator.stop()).await.expect("it stops before what others are given");
    drop::<std::sync::mpsc::Sender<()>>(end);
}

#[tokio::test]
async fn a_panic_that_cannot_be_written_down_is_tried_again_all_the_same() {
    let (server, client) = server().await;
    let operator = Operator::start(OperatorConfig::new(client.clone(), Arc::new(Panicking::default()))).await.unwrap();
    context(&operator, "default").await;
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let name = CriticalProblems::crd_name();
    let uid = definitions.get(name).await.unwrap().metadata.uid.unwrap();
    definitions.delete(name, &DeleteParams::default()).await.unwrap();
    let deleted = await_condition(definitions, name, is_deleted(&uid));
    tokio::time::timeout(PATIENCE, deleted).await.expect("the kind goes").unwrap();
    for (panics, name) in ["first", "second"].into_iter().enumerate() {
        panic(&client, name).await;
        let calls = u64::try_from(panics).unwrap() + 1;
        ended(&operator, calls, calls).await;
    }
    operator.stop().await;
    server.stop().await;
}

#[tokio::test]
async fn a_second_operator_finds_the_definitions_of_the_first() {
    let (server, client) = server().await;
    let expecting =
        || OperatorConfig { definitions: Definitions::Expect, ..OperatorConfig::new(client.clone(), Arc::new(Bare)) };
    let refused = Operator::start(expecting()).await.map(drop);
    assert!(matches!(refused, Err(OperatorError::Definitions(DefinitionsError::Missing { .. }))), "{refused:?}");
    let installing = OperatorConfig::new(client.clone(), Arc::new(Bare));
    Operator::start(installing).await.unwrap().stop().await;
    let second = Operator::start(expecting()).await.unwrap();
    tokio::time::timeout(PATIENCE, second.ready()).await.expect("the first lists come in");
    context(&second, "default").await;
    second.stop().await;
    server.stop().await;
}

#[test]
fn c_88_where_there_is_enough_memory_the_caches_of_controllers_have_what_they_have_anywhere() {
    assert_eq!(cache_memory(&MemoryShares::of(None)), CacheMemory::default());
    let caches = MemoryShares::of(Some(2 << 30)).caches;
    let expected = CacheMemory {
        objects: caches.objects,
        manifests: caches.manifests,
        proposals: caches.proposals,
        secret_values: caches.secret_values,
    };
    assert_eq!(cache_memory(&MemoryShares::of(Some(2 << 30))), expected);
}
