//! An API server with our kinds, one controller, and a component that says what the item's configuration says.

use std::{
    num::NonZeroU32,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering},
    },
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{
    api::core::v1::{ConfigMap, Secret},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, Config,
    api::{DeleteParams, Patch, PatchParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
    runtime::{conditions::is_crd_established, wait::await_condition},
};
use orangery_api::{deploy_item::DeployItem, job::Job, target::Target};
use orangery_blueprint::{plugins::Plugins, template_engine::TemplateEngine};
use orangery_controllers::{ControllerContext, HostKey, Queues, clusters, deploy_item::DeployItemController, stores};
use orangery_core::{
    error::{Code, Fault},
    name::JobId,
    port::{BoxFuture, Clock, Rng},
};
use orangery_embedded::{Options, Server, Storage, start};
use orangery_ocm::Unavailable;
use orangery_proposal::{
    Item, Proposal,
    deployer::{Deployer, PluginIdentity, Reads},
    grant::Grants,
};
use orangery_reconcile::{Pace, Panicked, Queue, run, watch};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// The type that the component claims.
pub(crate) const TYPE: &str = "example.org/scripted";

/// How long a test waits for a condition.
const DEADLINE: Duration = Duration::from_secs(30);

#[expect(clippy::disallowed_methods, reason = "a real server and a real controller need a real clock")]
fn now() -> Timestamp {
    Timestamp::now()
}

/// The machine's clock, which can be set wrong, and job ids that count.
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

/// Answers `config.proposals[n]` at the call whose checkpoint is `[n]`; the first has none.
pub(crate) struct Scripted {
    identity: PluginIdentity,
    grants: Grants,
    labels: Vec<String>,
    pub(crate) calls: Mutex<Vec<Item>>,
    /// The calls before an uninstall.
    pub(crate) uninstalls: Mutex<Vec<Item>>,
    /// Whether proposals that are held back are answered.
    pub(crate) is_open: AtomicBool,
    called: Arc<Notify>,
}

impl Scripted {
    fn new(called: Arc<Notify>) -> Self {
        let everything = json!({"clusters": {"target": true}, "reads": [{}], "writes": [{}]});
        Self {
            identity: PluginIdentity { name: "scripted".into(), version: "1.0".into(), digest: "sha256:0".into() },
            grants: serde_json::from_value(everything).unwrap(),
            labels: vec!["example.org/item".into()],
            calls: Mutex::default(),
            uninstalls: Mutex::default(),
            is_open: AtomicBool::new(false),
            called,
        }
    }

    fn answer(&self, item: &Item) -> Result<Proposal, Fault> {
        self.calls.lock().unwrap().push(item.clone());
        self.called.notify_one();
        let number = item.checkpoint.as_ref().and_then(|bytes| bytes.first()).copied().unwrap_or_default();
        let proposal = item.config.pointer(&format!("/proposals/{number}")).cloned();
        let proposal =
            proposal.ok_or_else(|| Fault::invalid(Code::ConfigurationProblem, "config.proposals is missing"))?;
        // The answer may have to be asked for several times: `{"later": COUNT, "then": PROPOSAL}`.
        let mut proposal = proposal;
        if let Some(count) = proposal.get("later").and_then(Value::as_u64) {
            if (self.calls.lock().unwrap().len() as u64) < count {
                return Err(Fault::later(Code::Unfinished, "not yet"));
            }
            proposal = proposal["then"].take();
        }
        // `{"closed": PROPOSAL}` is not answered before the component is open.
        if let Some(then) = proposal.get_mut("closed").map(Value::take) {
            if !self.is_open.load(Ordering::SeqCst) {
                return Err(Fault::later(Code::Unfinished, "closed"));
            }
            proposal = then;
        }
        Ok(serde_json::from_value(proposal).unwrap())
    }
}

impl Deployer for Scripted {
    fn identity(&self) -> &PluginIdentity {
        &self.identity
    }

    fn grants(&self) -> &Grants {
        &self.grants
    }

    fn ownership_labels(&self) -> &[String] {
        &self.labels
    }

    fn plan<'a>(&'a self, item: &'a Item, _: Reads) -> BoxFuture<'a, Result<Proposal, Fault>> {
        Box::pin(async move { self.answer(item) })
    }

    /// Answers `config.uninstalls[n]` like `plan`; nothing where there is none.
    fn uninstall<'a>(&'a self, item: &'a Item, _: Reads) -> BoxFuture<'a, Result<Option<Proposal>, Fault>> {
        Box::pin(async move {
            self.uninstalls.lock().unwrap().push(item.clone());
            let number = item.checkpoint.as_ref().and_then(|bytes| bytes.first()).copied().unwrap_or_default();
            let proposal = item.config.pointer(&format!("/uninstalls/{number}")).cloned();
            Ok(proposal.map(|proposal| serde_json::from_value(proposal).unwrap()))
        })
    }
}

struct OnlyScripted(Arc<Scripted>);

impl Plugins for OnlyScripted {
    fn deployer(&self, item_type: &str) -> Option<Arc<dyn Deployer>> {
        (item_type == TYPE).then(|| Arc::clone(&self.0) as Arc<dyn Deployer>)
    }

    fn template_engine(&self, _: &str) -> Option<Arc<dyn TemplateEngine>> {
        None
    }

    fn bundled_engine(&self, name: &str, _: Vec<u8>) -> Arc<dyn TemplateEngine> {
        unreachable!("{name}: no blueprint is rendered here")
    }

    fn template_types(&self) -> Vec<String> {
        Vec::new()
    }
}

/// The server and the controller.
pub(crate) struct World {
    server: Server,
    pub(crate) client: Client,
    pub(crate) plugin: Arc<Scripted>,
    /// Phase and `jobIDFinished` after each change of an item, as the store saw them.
    pub(crate) changes: Arc<Mutex<Vec<String>>>,
    changed: Arc<Notify>,
    /// The host of the controller that runs.
    pub(crate) host: Option<Arc<ControllerContext>>,
    max_parallel: Option<NonZeroU32>,
    stop: CancellationToken,
    /// By how many seconds the controller's clock is ahead.
    ahead: Arc<AtomicI64>,
}

impl Drop for World {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::begun(None).await
    }

    /// With a limit on the items that are under way at once.
    pub(crate) async fn limited(most: NonZeroU32) -> Self {
        Self::begun(Some(most)).await
    }

    async fn begun(max_parallel: Option<NonZeroU32>) -> Self {
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
        let changed = Arc::new(Notify::new());
        let mut world = Self {
            server,
            client,
            plugin: Arc::new(Scripted::new(Arc::clone(&changed))),
            changes: Arc::default(),
            changed,
            host: None,
            max_parallel,
            stop: CancellationToken::new(),
            ahead: Arc::default(),
        };
        let kubeconfig = world.server.kubeconfig();
        world
            .target(
                "cluster",
                json!({"type": "landscaper.gardener.cloud/kubernetes-cluster", "config": {"kubeconfig": kubeconfig}}),
            )
            .await;
        world.begin();
        world
    }

    pub(crate) async fn target(&self, name: &str, spec: Value) {
        let target = json!({"apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "Target",
            "metadata": {"name": name}, "spec": spec});
        let api: Api<Target> = Api::default_namespaced(self.client.clone());
        api.create(&PostParams::default(), &serde_json::from_value(target).unwrap()).await.unwrap();
    }

    /// Deletes a target, and waits until the controller knows: an item that needs it fails.
    pub(crate) async fn lose_target(&self, name: &str) {
        let api: Api<Target> = Api::default_namespaced(self.client.clone());
        api.delete(name, &DeleteParams::default()).await.unwrap();
        self.create("probe", &[proposal("probe", json!({}))], json!({"target": {"name": name}})).await;
        let mut job = 0;
        while self.job("probe", &format!("probe-{job}")).await["phase"] != "Failed" {
            job += 1;
        }
    }

    /// A controller that knows nothing begins.
    fn begin(&mut self) {
        self.stop = CancellationToken::new();
        let machine = Arc::new(Machine { jobs: AtomicU32::new(1), ahead: Arc::clone(&self.ahead) });
        let plugins = Arc::new(OnlyScripted(Arc::clone(&self.plugin)));
        let mut host = ControllerContext::new(
            (self.client.clone(), stores()),
            plugins,
            Arc::new(Unavailable),
            Arc::clone(&machine) as Arc<dyn Clock>,
            Arc::clone(&machine) as Arc<dyn Rng>,
            HostKey::new(&[0; 32]),
        );
        // Nobody here would take a guard away.
        host.guards = false;
        host.max_parallel = self.max_parallel;
        let host = Arc::new(host);
        self.host = Some(Arc::clone(&host));
        let (changes, changed) = (Arc::clone(&self.changes), Arc::clone(&self.changed));
        host.stores.deploy_items.subscribe(move |change| {
            let line = match change.after {
                Some(item) => format!("{} {}", item.phase(), item.job_id_finished()),
                None => "gone".to_owned(),
            };
            changes.lock().unwrap().push(line.trim().to_owned());
            changed.notify_one();
        });
        let (items, targets) = (host.stores.deploy_items.clone(), host.stores.targets.clone());
        tokio::spawn(watch_all(self.client.clone(), items.clone(), self.stop.clone()));
        tokio::spawn(watch_all(self.client.clone(), targets, self.stop.clone()));
        let queue = Queue::new();
        let queues = Queues { deploy_items: queue.clone(), ..Queues::default() };
        let controller = Arc::new(DeployItemController::new(host, clusters(&queues), queue.clone()));
        let panicked = Arc::new(|panicked: &Panicked| panic!("{panicked:?}"));
        let pace = Pace { concurrency: 4, rng: machine, panicked };
        tokio::spawn(run(controller, items, queue, pace, self.stop.clone()));
    }

    /// The clock of the controller jumps; what it timed before goes on as it was.
    pub(crate) fn jump(&self, seconds: i64) {
        self.ahead.fetch_add(seconds, Ordering::SeqCst);
    }

    /// The controller ends, and another one begins.
    pub(crate) fn restart(&mut self) {
        self.stop.cancel();
        self.begin();
    }

    pub(crate) fn items(&self) -> Api<DeployItem> {
        Api::default_namespaced(self.client.clone())
    }

    /// Creates an item with these proposals; `spec` is laid over.
    pub(crate) async fn create(&self, name: &str, proposals: &[Value], spec: Value) {
        let mut object = json!({"apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "DeployItem",
            "metadata": {"name": name}, "spec": {"type": TYPE, "target": {"name": "cluster", "namespace": "default"},
                "config": {"apiVersion": "example.org/v1", "kind": "Script", "proposals": proposals}}});
        orangery_proposal::overlay::overlay(&mut object["spec"], &spec);
        self.items().create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
    }

    pub(crate) async fn patch(&self, name: &str, patch: Value) {
        self.items().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    /// Sets the job, as an Execution does.
    pub(crate) async fn trigger(&self, name: &str, job: &str) {
        let status = json!({"status": {"jobID": job}});
        self.items().patch_status(name, &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    }

    /// Ends the job of an item, as an Execution does that is interrupted.
    pub(crate) async fn interrupt(&self, name: &str, job: &str) {
        let interrupted = json!({"status": {"phase": "Failed", "jobIDFinished": job}});
        self.items().patch_status(name, &PatchParams::default(), &Patch::Merge(interrupted)).await.unwrap();
    }

    pub(crate) async fn delete(&self, name: &str) {
        self.items().delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// Waits until the item is as wanted, and answers it; `None` where it is gone.
    pub(crate) async fn wait(&self, name: &str, wanted: impl Fn(Option<&DeployItem>) -> bool) -> Option<DeployItem> {
        let waiting = async {
            loop {
                let changed = self.changed.notified();
                let item = self.items().get_opt(name).await.unwrap();
                if wanted(item.as_ref()) {
                    return item;
                }
                changed.await;
            }
        };
        match tokio::time::timeout(DEADLINE, waiting).await {
            Ok(item) => item,
            Err(_) => panic!("{name} is {:#?}", self.items().get_opt(name).await.unwrap().map(|item| item.status)),
        }
    }

    /// Runs a job to its end, and answers the item's status as JSON.
    pub(crate) async fn job(&self, name: &str, job: &str) -> Value {
        self.trigger(name, job).await;
        self.finished(name, job).await
    }

    pub(crate) async fn finished(&self, name: &str, job: &str) -> Value {
        let item = self.wait(name, |item| item.is_some_and(|item| item.finished_job(&job.into()))).await;
        json!(item.unwrap().status)
    }

    pub(crate) async fn gone(&self, name: &str) {
        self.wait(name, |item| item.is_none()).await;
    }

    /// What somebody waits for, as the conditions tell it.
    pub(crate) async fn waiting(&self, name: &str, text: &str) {
        let says = |item: &DeployItem| item.conditions().iter().any(|condition| condition.message.contains(text));
        self.wait(name, |item| item.is_some_and(says)).await;
    }

    /// Where the job of an item stands in its proposal, as the status says it; `None` where it does not say.
    pub(crate) fn step(item: &DeployItem) -> Option<Value> {
        item.status.as_ref()?.provider_status.as_ref()?.pointer("/orangery/progress/at").cloned()
    }

    /// Waits until the job of an item waits in this step, and says so in these words.
    pub(crate) async fn waiting_in(&self, name: &str, step: &Value, text: &str) {
        let says = |item: &DeployItem| item.conditions().iter().any(|condition| condition.message.contains(text));
        self.wait(name, |item| item.is_some_and(|item| says(item) && Self::step(item).as_ref() == Some(step))).await;
    }

    pub(crate) fn config_maps(&self) -> Api<ConfigMap> {
        Api::default_namespaced(self.client.clone())
    }

    /// Changes a config map, as somebody else does.
    pub(crate) async fn patch_config_map(&self, name: &str, patch: Value) {
        self.config_maps().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    /// Has the controller look at an item.
    pub(crate) async fn touch(&self, name: &str, why: &str) {
        self.patch(name, json!({"metadata": {"annotations": {"look": why}}})).await;
    }

    /// The value of a config map; `None` where there is none.
    pub(crate) async fn value(&self, name: &str) -> Option<String> {
        let api: Api<ConfigMap> = Api::default_namespaced(self.client.clone());
        api.get_opt(name).await.unwrap()?.data?.remove("k")
    }

    pub(crate) async fn secrets(&self) -> Vec<Secret> {
        let api: Api<Secret> = Api::default_namespaced(self.client.clone());
        api.list(&Default::default()).await.unwrap().items
    }

    pub(crate) fn calls(&self) -> usize {
        self.plugin.calls.lock().unwrap().len()
    }
}

async fn watch_all<K: orangery_reconcile::Watched>(
    client: Client,
    store: orangery_reconcile::Store<K>,
    stop: CancellationToken,
) {
    watch(client, &[], store, stop).await;
}

/// Writes one config map; `fields` is laid over the proposal.
pub(crate) fn proposal(name: &str, fields: Value) -> Value {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": {"k": "v"}});
    let mut whole = json!({"stages": [{"name": "all", "gate": "accepted", "writes": [{"object": object, "how": "replace"}]}],
        "status": {"apiVersion": "example.org/v1", "kind": "Status"}});
    orangery_proposal::overlay::overlay(&mut whole, &fields);
    if whole.get("next").is_none() {
        whole["next"] = json!({"finish": {}});
    }
    whole
}

/// The key of a config map.
pub(crate) fn key(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": name})
}

/// A gate that holds when a config map has this value.
pub(crate) fn gate(name: &str, value: &str) -> Value {
    let key = key(name);
    json!({"ready": [{"name": "mine", "scope": {"keys": [key]},
        "rule": {"requirements": [{"path": ".data.k", "operator": "==", "values": [value]}]}}]})
}

/// A proposal whose only stage waits for a value of the config map that it writes.
pub(crate) fn gated_on(name: &str, value: &str) -> Value {
    let mut whole = proposal(name, json!({}));
    whole["stages"][0]["gate"] = gate(name, value);
    whole
}

/// A proposal whose only stage waits for a value of the config map `a`.
pub(crate) fn gated(value: &str) -> Value {
    gated_on("a", value)
}
