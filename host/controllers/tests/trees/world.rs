//! An API server with our kinds, all controllers, and an external deployer that the test plays.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU32, Ordering},
    },
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client, Config,
    api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
    runtime::{conditions::is_crd_established, wait::await_condition},
};
use orangery_api::{annotation::GUARD, context::Context, target::Target};
use orangery_blueprint::{
    plugins::Plugins,
    rendering::{Output, RenderFailure, RenderRequest, Rendered},
    template_engine::{TemplateContext, TemplateEngine},
};
use orangery_controllers::{
    ConfigMapMeta, ControllerContext, GuardController, Guarded, HostKey, Queues, SecretMeta, Stores, clusters,
    context::keep_default_contexts, execution::ExecutionController, installation::InstallationController, stores, wire,
};
use orangery_core::{
    name::JobId,
    port::{BoxFuture, Clock, Rng},
};
use orangery_embedded::{Options, Server, Storage, start};
use orangery_ocm::Unavailable;
use orangery_proposal::deployer::{Deployer, PluginIdentity};
use orangery_reconcile::{Controller, Pace, Panicked, Queue, Store, Watched, run, watch_labelled};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::objects::{API, ENGINE};

/// How long a test waits for a condition.
const DEADLINE: Duration = Duration::from_secs(60);
const FINALIZER: &str = "finalizer.landscaper.gardener.cloud";

#[expect(clippy::disallowed_methods, reason = "a real server and real controllers need a real clock")]
fn now() -> Timestamp {
    Timestamp::now()
}

/// The machine's clock, which can be set ahead, and job ids that count.
struct Machine {
    jobs: AtomicU32,
    /// Seconds.
    ahead: Arc<AtomicI64>,
}

impl Clock for Machine {
    fn now(&self) -> Timestamp {
        now() + SignedDuration::from_secs(self.ahead.load(Ordering::SeqCst))
    }
}

impl Rng for Machine {
    fn job_id(&self) -> JobId {
        format!("job-{}", self.jobs.fetch_add(1, Ordering::SeqCst)).into()
    }

    fn fraction(&self) -> f64 {
        0.1
    }

    fn secret(&self) -> [u8; 32] {
        [1; 32]
    }
}

/// An engine whose templates are JSON documents: `{"$input": POINTER}` is replaced by that value of the inputs. A document
/// `{"$fail": MESSAGE}` fails, `$state` is kept for the next job.
pub(crate) struct Renders {
    identity: PluginIdentity,
}

/// The value with all inputs in their places.
fn filled(value: &Value, inputs: &Value) -> Value {
    match value {
        Value::Object(members) => match members.get("$input").and_then(Value::as_str) {
            Some(pointer) => inputs.pointer(pointer).cloned().unwrap_or_default(),
            None => Value::Object(members.iter().map(|(key, value)| (key.clone(), filled(value, inputs))).collect()),
        },
        Value::Array(elements) => elements.iter().map(|element| filled(element, inputs)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

impl TemplateEngine for Renders {
    fn identity(&self) -> &PluginIdentity {
        &self.identity
    }

    fn render<'a>(
        &'a self,
        request: &'a RenderRequest,
        _: &'a TemplateContext,
    ) -> BoxFuture<'a, Result<Rendered, RenderFailure>> {
        let template: Value = serde_json::from_str(&request.template).unwrap();
        let mut inputs = request.inputs.clone();
        inputs["state"] = request.state.clone().unwrap_or_default();
        let mut document = filled(&template, &inputs);
        let state = document.as_object_mut().and_then(|members| members.remove("$state"));
        let failure = template.get("$fail").and_then(Value::as_str).map(|message| RenderFailure {
            message: message.to_owned(),
            file: None,
            line: None,
            column: None,
            snippet: None,
            transient: false,
            reads: Vec::new(),
        });
        let rendered = Rendered { output: Output::Document(document), state, warnings: Vec::new() };
        Box::pin(async move { failure.map_or(Ok(rendered), Err) })
    }
}

/// No deployers, one engine.
struct OneEngine(Arc<Renders>);

impl Plugins for OneEngine {
    fn deployer(&self, _: &str) -> Option<Arc<dyn Deployer>> {
        None
    }

    fn template_engine(&self, template_type: &str) -> Option<Arc<dyn TemplateEngine>> {
        (template_type == ENGINE).then(|| Arc::clone(&self.0) as Arc<dyn TemplateEngine>)
    }

    fn bundled_engine(&self, name: &str, _: Vec<u8>) -> Arc<dyn TemplateEngine> {
        unreachable!("{name}: no blueprint brings an engine along")
    }

    fn template_types(&self) -> Vec<String> {
        vec![ENGINE.to_owned()]
    }
}

/// The server and the controllers.
pub(crate) struct World {
    server: Server,
    client: Client,
    /// Told of every change that the controllers see.
    changed: Arc<Notify>,
    stop: CancellationToken,
    /// By how many seconds the controllers' clock is ahead.
    ahead: Arc<AtomicI64>,
    /// The number of the next job.
    jobs: u32,
    /// Whether what is in use is guarded against deletion.
    guards: bool,
}

impl Drop for World {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl World {
    /// Without guards against the deletion of what is in use.
    pub(crate) async fn new() -> Self {
        Self::with(false).await
    }

    /// With them.
    pub(crate) async fn guarded() -> Self {
        Self::with(true).await
    }

    async fn with(guards: bool) -> Self {
        let options =
            Options { storage: Storage::Memory, address: "127.0.0.1:0".parse().unwrap(), clock: Arc::new(now) };
        let server = start(options).await.unwrap();
        let kubeconfig = Kubeconfig::from_yaml(&server.kubeconfig()).unwrap();
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
        let client = Client::try_from(config).unwrap();
        let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
        for definition in orangery_api::crds() {
            definitions.create(&PostParams::default(), &definition).await.unwrap();
            let name = definition.metadata.name.unwrap();
            await_condition(definitions.clone(), &name, is_crd_established()).await.unwrap();
        }
        let mut world = Self {
            server,
            client,
            changed: Arc::default(),
            stop: CancellationToken::new(),
            ahead: Arc::default(),
            jobs: 0,
            guards,
        };
        world.begin();
        world.expect("Context", "default", |_| true).await;
        world
    }

    /// Controllers that know nothing begin.
    fn begin(&mut self) {
        self.stop = CancellationToken::new();
        self.jobs += 100;
        let machine = Arc::new(Machine { jobs: AtomicU32::new(self.jobs), ahead: Arc::clone(&self.ahead) });
        let identity = PluginIdentity { name: "paths".into(), version: "1.0".into(), digest: "sha256:0".into() };
        let mut host = ControllerContext::new(
            (self.client.clone(), stores()),
            Arc::new(OneEngine(Arc::new(Renders { identity }))),
            Arc::new(Unavailable),
            Arc::clone(&machine) as Arc<dyn Clock>,
            Arc::clone(&machine) as Arc<dyn Rng>,
            HostKey::new(&[0; 32]),
        );
        host.guards = self.guards;
        let host = Arc::new(host);
        let queues = Queues::default();
        wire(&host.stores, &queues);
        self.watch_all(&host.stores);
        let panicked = Arc::new(|panicked: &Panicked| panic!("{panicked:?}"));
        let pace = Pace { concurrency: 8, rng: machine, panicked };
        let pool = clusters(&queues);
        let (installations, executions) = (queues.installations.clone(), queues.executions.clone());
        let controller = InstallationController::new(Arc::clone(&host), Arc::clone(&pool), installations.clone());
        self.control(controller, &host.stores, host.stores.installations.clone(), installations.clone(), &pace);
        let controller = ExecutionController::new(Arc::clone(&host), pool, executions.clone(), installations);
        self.control(controller, &host.stores, host.stores.executions.clone(), executions, &pace);
        self.guard::<Target>(&host, queues.target_guards.clone(), &pace);
        self.guard::<SecretMeta>(&host, queues.secret_guards.clone(), &pace);
        self.guard::<Context>(&host, queues.context_guards.clone(), &pace);
        self.guard::<ConfigMapMeta>(&host, queues.config_map_guards.clone(), &pace);
        let stop = self.stop.clone();
        tokio::spawn(async move { stop.run_until_cancelled(keep_default_contexts(host, BTreeSet::new())).await });
    }

    fn watch_all(&self, stores: &Stores) {
        let Stores { installations, executions, deploy_items, targets, data_objects, contexts, secrets, config_maps } =
            stores.clone();
        self.watch(installations);
        self.watch(executions);
        self.watch(deploy_items);
        self.watch(targets);
        self.watch(data_objects);
        self.watch(contexts);
        self.watch_labelled(Some(GUARD), secrets);
        self.watch_labelled(Some(GUARD), config_maps);
    }

    fn watch<K: Watched>(&self, store: Store<K>) {
        self.watch_labelled(None, store);
    }

    fn watch_labelled<K: Watched>(&self, label: Option<&'static str>, store: Store<K>) {
        let changed = Arc::clone(&self.changed);
        store.subscribe(move |_| changed.notify_one());
        let (client, stop) = (self.client.clone(), self.stop.clone());
        tokio::spawn(async move { watch_labelled(client, &[], label, store, stop).await });
    }

    fn guard<K: Guarded>(&self, host: &Arc<ControllerContext>, queue: Queue, pace: &Pace) {
        let store = K::store(&host.stores).clone();
        self.control(GuardController::<K>::new(Arc::clone(host)), &host.stores, store, queue, pace);
    }

    fn control<C: Controller>(
        &self,
        controller: C,
        stores: &Stores,
        store: Store<C::Object>,
        queue: Queue,
        pace: &Pace,
    ) {
        let (stores, stop, pace) = (stores.clone(), self.stop.clone(), pace.clone());
        tokio::spawn(async move {
            tokio::join!(
                stores.installations.synced(),
                stores.executions.synced(),
                stores.deploy_items.synced(),
                stores.targets.synced(),
                stores.data_objects.synced(),
                stores.contexts.synced()
            );
            run(Arc::new(controller), store, queue, pace, stop).await;
        });
    }

    /// The controllers' clock jumps; what they timed before goes on as it was.
    pub(crate) fn jump(&self, seconds: i64) {
        self.ahead.fetch_add(seconds, Ordering::SeqCst);
    }

    /// The controllers end, and others begin.
    pub(crate) fn restart(&mut self) {
        self.stop.cancel();
        self.begin();
    }

    /// What a Target needs to reach the server.
    pub(crate) fn kubeconfig(&self) -> String {
        self.server.kubeconfig()
    }

    fn api(&self, kind: &str) -> Api<DynamicObject> {
        let (group, version) = match kind {
            "Secret" | "ConfigMap" | "Event" => ("", "v1"),
            _ => API.split_once('/').unwrap(),
        };
        Api::default_namespaced_with(
            self.client.clone(),
            &ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind)),
        )
    }

    /// Applies an object as a user does.
    pub(crate) async fn apply(&self, object: &Value) {
        let api = self.api(object["kind"].as_str().unwrap());
        let name = object["metadata"]["name"].as_str().unwrap();
        api.patch(name, &PatchParams::apply("user").force(), &Patch::Apply(object)).await.unwrap();
    }

    pub(crate) async fn patch(&self, kind: &str, name: &str, patch: &Value) {
        self.api(kind).patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    pub(crate) async fn patch_status(&self, kind: &str, name: &str, status: &Value) {
        let patch = Patch::Merge(json!({"status": status}));
        self.api(kind).patch_status(name, &PatchParams::default(), &patch).await.unwrap();
    }

    /// Sets an annotation with the prefix of Landscaper.
    pub(crate) async fn annotate(&self, kind: &str, name: &str, key: &str, value: &str) {
        let annotations = json!({(format!("landscaper.gardener.cloud/{key}")): value});
        self.patch(kind, name, &json!({"metadata": {"annotations": annotations}})).await;
    }

    /// Asks for another job of an Installation.
    pub(crate) async fn request(&self, name: &str) {
        self.annotate("Installation", name, "operation", "reconcile").await;
    }

    pub(crate) async fn delete(&self, kind: &str, name: &str) {
        self.api(kind).delete(name, &DeleteParams::background()).await.unwrap();
    }

    /// Takes an object away at any price: its finalizers go too.
    pub(crate) async fn delete_by_force(&self, kind: &str, name: &str) {
        self.delete(kind, name).await;
        self.patch(kind, name, &json!({"metadata": {"finalizers": null}})).await;
        self.gone(kind, name).await;
    }

    pub(crate) async fn find(&self, kind: &str, name: &str) -> Option<Value> {
        self.api(kind).get_opt(name).await.unwrap().map(|object| json!(object))
    }

    pub(crate) async fn list(&self, kind: &str) -> Vec<Value> {
        self.api(kind).list(&Default::default()).await.unwrap().items.into_iter().map(|object| json!(object)).collect()
    }

    /// Waits until the answer is there; it is asked for after every change that the controllers see.
    async fn wait<T>(&self, what: &str, answer: impl AsyncFn() -> Option<T>) -> T {
        let waiting = async {
            loop {
                let changed = self.changed.notified();
                if let Some(answer) = answer().await {
                    return answer;
                }
                changed.await;
            }
        };
        match tokio::time::timeout(DEADLINE, waiting).await {
            Ok(answer) => answer,
            Err(_) => panic!(
                "{what}\n{:#?}",
                (self.list("Installation").await, self.list("Execution").await, self.list("DeployItem").await)
            ),
        }
    }

    /// Waits until an object is there and as wanted, and answers it.
    pub(crate) async fn expect(&self, kind: &str, name: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let answer = async || self.find(kind, name).await.filter(&wanted);
        self.wait(&format!("{kind} {name} is not as wanted"), answer).await
    }

    pub(crate) async fn gone(&self, kind: &str, name: &str) {
        let gone = async || self.find(kind, name).await.is_none().then_some(());
        self.wait(&format!("{kind} {name} is still there"), gone).await;
    }

    /// Waits until the job of an object has ended in this phase, and answers the object.
    pub(crate) async fn ended(&self, kind: &str, name: &str, phase: &str) -> Value {
        let is = |object: &Value| object["status"]["phase"] == phase && job_ended(object);
        self.expect(kind, name, is).await
    }

    /// Waits until another job than this one has ended in this phase, and answers the object.
    pub(crate) async fn ended_after(&self, kind: &str, name: &str, phase: &str, before: &Value) -> Value {
        let is = |object: &Value| {
            object["status"]["phase"] == phase
                && job_ended(object)
                && object["status"]["jobID"] != before["status"]["jobID"]
        };
        self.expect(kind, name, is).await
    }

    /// Waits until a condition of an object has a message with this text, and answers the object.
    pub(crate) async fn says(&self, kind: &str, name: &str, text: &str) -> Value {
        self.expect(kind, name, |object| object["status"]["conditions"].to_string().contains(text)).await
    }

    /// The sub-installation of a template, if it is there.
    pub(crate) async fn find_sub(&self, template: &str) -> Option<Value> {
        let key = "landscaper.gardener.cloud/subinstallation-name";
        let list = self.list("Installation").await;
        list.into_iter().find(|object| object["metadata"]["annotations"][key] == template)
    }

    /// Waits until the sub-installation of a template is as wanted, and answers its name.
    pub(crate) async fn sub(&self, template: &str, wanted: impl Fn(&Value) -> bool) -> String {
        let answer = async || self.find_sub(template).await.filter(&wanted);
        name_of(&self.wait(&format!("sub-installation {template} is not as wanted"), answer).await)
    }

    /// The deploy item of this name, if it is there.
    pub(crate) async fn find_item(&self, item: &str) -> Option<Value> {
        let key = "execution.landscaper.gardener.cloud/name";
        let list = self.list("DeployItem").await;
        list.into_iter().find(|object| object["metadata"]["labels"][key] == item)
    }

    /// Waits until a deploy item is as wanted, and answers it.
    pub(crate) async fn item(&self, item: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let answer = async || self.find_item(item).await.filter(&wanted);
        self.wait(&format!("deploy item {item} is not as wanted"), answer).await
    }

    /// Waits until a deploy item is triggered, and answers it.
    pub(crate) async fn triggered(&self, item: &str) -> Value {
        self.item(item, |object| !job_ended(object) && object["status"]["jobID"].is_string()).await
    }

    /// The deployer ends the job of an item well: what is being deleted is released.
    pub(crate) async fn succeed(&self, item: &str) {
        let object = self.triggered(item).await;
        if is_deleting(&object) {
            self.patch("DeployItem", &name_of(&object), &json!({"metadata": {"finalizers": null}})).await;
        } else {
            self.answer(&object, "Succeeded", &Value::Null).await;
        }
    }

    /// The deployer ends the job of an item with an error.
    pub(crate) async fn fail(&self, item: &str, message: &str) {
        let object = self.triggered(item).await;
        let phase = if is_deleting(&object) { "DeleteFailed" } else { "Failed" };
        let time = "2026-01-01T00:00:00Z";
        let error = json!({"operation": "Deploy", "reason": "Broken", "message": message,
            "lastTransitionTime": time, "lastUpdateTime": time});
        self.answer(&object, phase, &error).await;
    }

    /// The deployer gives a triggered item exports.
    pub(crate) async fn export(&self, item: &str, exports: &Value) {
        let object = self.triggered(item).await;
        let name = format!("{}-export", name_of(&object));
        self.apply(&json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name},
            "stringData": {"config": exports.to_string()}}))
            .await;
        let reference = json!({"exportRef": {"name": name, "namespace": "default"}});
        self.patch_status("DeployItem", &name_of(&object), &reference).await;
    }

    async fn answer(&self, object: &Value, phase: &str, error: &Value) {
        let name = name_of(object);
        if !is_deleting(object) {
            self.patch("DeployItem", &name, &json!({"metadata": {"finalizers": [FINALIZER]}})).await;
        }
        let (job, generation) = (&object["status"]["jobID"], &object["metadata"]["generation"]);
        let status =
            json!({"phase": phase, "jobIDFinished": job, "observedGeneration": generation, "lastError": error});
        self.patch_status("DeployItem", &name, &status).await;
    }
}

pub(crate) fn name_of(object: &Value) -> String {
    object["metadata"]["name"].as_str().unwrap().to_owned()
}

pub(crate) fn is_deleting(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

pub(crate) fn job_ended(object: &Value) -> bool {
    object["status"]["jobID"].is_string() && object["status"]["jobID"] == object["status"]["jobIDFinished"]
}

/// The last error's message.
pub(crate) fn message(object: &Value) -> &str {
    object["status"]["lastError"]["message"].as_str().unwrap_or_default()
}
