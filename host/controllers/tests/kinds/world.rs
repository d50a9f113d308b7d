//! An API server with our kinds, and all controllers as an operator runs them. Components and the deployer of others are played.

use std::{
    collections::BTreeSet,
    fmt::Debug,
    num::NonZeroU32,
    sync::{
        Arc, Mutex,
        atomic::{AtomicI64, AtomicU32, Ordering},
    },
    time::Duration,
};

use futures::StreamExt;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{
    NamespaceResourceScope,
    api::{core::v1::Secret, events::v1::Event},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, Config, Resource, ResourceExt,
    api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
    runtime::{WatchStreamExt, conditions::is_crd_established, wait::await_condition, watcher},
};
use orangery_api::{annotation::GUARD, context::Context, job::Job, target::Target};
use orangery_cluster::ClusterPool;
use orangery_controllers::{
    CacheMemory, ConfigMapMeta, ControllerContext, GuardController, Guarded, HostKey, NamespacePolicies, OwnAddress,
    PICK_UP_TIMEOUT, Queues, SecretMeta, Stores, clusters,
    context::keep_default_contexts,
    deploy_item::{DeployItemController, DriftController},
    execution::ExecutionController,
    installation::InstallationController,
    stores,
    target_sync::TargetSyncController,
    wire,
};
use orangery_core::{
    name::JobId,
    port::{Clock, Rng},
};
use orangery_embedded::{Options, Server, Storage, start};
use orangery_policy::Profile;
use orangery_reconcile::{Controller, ControllerOptions, Key, Panicked, Queue, Store, Watched, run, watch_labelled};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use self::{
    components::TestComponents,
    plugins::{Scripted, TestPlugins},
    traffic::Traffic,
};
use crate::objects::API;

pub(crate) use self::traffic::SentRequest;

pub(crate) mod components;
mod deployer;
mod plugins;
mod traffic;
mod whole;

/// How long a test waits for a condition.
pub(crate) const DEADLINE: Duration = Duration::from_secs(120);
pub(crate) const FINALIZER: &str = "finalizer.landscaper.gardener.cloud";

#[expect(clippy::disallowed_methods, reason = "a real server and real controllers need a real clock")]
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

/// How the controllers are set up.
#[derive(Clone, Copy)]
pub(crate) struct Setup {
    /// Whether what is in use is guarded against deletion.
    pub(crate) guards: bool,
    /// How many items of components may be under way at once.
    pub(crate) max_parallel: Option<NonZeroU32>,
    /// How long an item waits for an external deployer.
    pub(crate) pick_up_timeout: Duration,
    /// What counts for all namespaces.
    pub(crate) profile: Profile,
    /// Each byte of the operator's key.
    pub(crate) key: u8,
    /// What caches may take.
    pub(crate) memory: CacheMemory,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            guards: false,
            max_parallel: None,
            pick_up_timeout: PICK_UP_TIMEOUT,
            profile: Profile::Compatible,
            key: 0,
            memory: CacheMemory::default(),
        }
    }
}

/// The server and the controllers.
pub(crate) struct World {
    server: Server,
    pub(crate) client: Client,
    pub(crate) plugin: Arc<Scripted>,
    pub(crate) components: Arc<TestComponents>,
    /// Phase and `jobIDFinished` after each change of a deploy item, as the store saw them.
    pub(crate) changes: Arc<Mutex<Vec<String>>>,
    /// Told of every change that the controllers see, and of every call of a component.
    pub(crate) changed: Arc<Notify>,
    /// The context of the controllers that run.
    pub(crate) host: Option<Arc<ControllerContext>>,
    /// What the controllers keep in memory.
    kept: Option<KeptInMemory>,
    traffic: Arc<Traffic>,
    queues: Queues,
    setup: Setup,
    stop: CancellationToken,
    /// By how many seconds the controllers' clock is ahead.
    ahead: Arc<AtomicI64>,
    /// The number of the next job.
    jobs: u32,
}

/// What items keep in memory while they wait.
struct KeptInMemory {
    proposals: Box<dyn Fn() -> u64 + Send + Sync>,
    clusters: Arc<ClusterPool>,
}

impl Drop for World {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl World {
    /// Without guards and limits.
    pub(crate) async fn new() -> Self {
        Self::with(Setup::default()).await
    }

    /// With guards against the deletion of what is in use.
    pub(crate) async fn guarded() -> Self {
        Self::with(Setup { guards: true, ..Setup::default() }).await
    }

    pub(crate) async fn with(setup: Setup) -> Self {
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
        tokio::spawn(hear_of::<Event>(client.clone(), Arc::clone(&changed)));
        tokio::spawn(hear_of::<Secret>(client.clone(), Arc::clone(&changed)));
        let mut world = Self {
            server,
            client,
            plugin: Arc::new(Scripted::new(Arc::clone(&changed))),
            components: Arc::default(),
            changes: Arc::default(),
            traffic: Traffic::new(Arc::clone(&changed)),
            changed,
            host: None,
            kept: None,
            queues: Queues::default(),
            setup,
            stop: CancellationToken::new(),
            ahead: Arc::default(),
            jobs: 0,
        };
        world.begin();
        world.expect("Context", "default", |_| true).await;
        world
    }

    /// Controllers that know nothing begin.
    fn begin(&mut self) {
        self.stop = CancellationToken::new();
        self.traffic = Traffic::new(Arc::clone(&self.changed));
        self.jobs += 100;
        let machine = Arc::new(Machine { jobs: AtomicU32::new(self.jobs), ahead: Arc::clone(&self.ahead) });
        let mut host = ControllerContext::new(
            (Arc::clone(&self.traffic).client(self.client.clone()), stores()),
            Arc::new(TestPlugins::new(Arc::clone(&self.plugin))),
            Arc::<TestComponents>::clone(&self.components),
            Arc::clone(&machine) as Arc<dyn Clock>,
            Arc::clone(&machine) as Arc<dyn Rng>,
            HostKey::new(&[self.setup.key; 32]),
        );
        host.policies = NamespacePolicies::new(self.setup.profile);
        host.guards = self.setup.guards;
        host.memory = self.setup.memory;
        host.max_parallel = self.setup.max_parallel;
        host.pick_up_timeout = Some(self.setup.pick_up_timeout);
        let authority = data_encoding::BASE64.encode(self.server.ca_pem().as_bytes());
        host.own_address = Some(OwnAddress { server: self.server.url(), authority: Some(authority) });
        let host = Arc::new(host);
        self.host = Some(Arc::clone(&host));
        let queues = Queues::default();
        self.queues = queues.clone();
        wire(&host.stores, &queues);
        self.log_changes(&host.stores);
        self.watch_all(&host.stores);
        let panicked = Arc::new(|panicked: &Panicked| panic!("{panicked:?}"));
        let options = ControllerOptions { concurrency: 8, rng: machine, panicked, unfinished: None };
        let pool = clusters(&queues, self.setup.memory.objects);
        let (installations, executions) = (queues.installations.clone(), queues.executions.clone());
        let controller = InstallationController::new(Arc::clone(&host), Arc::clone(&pool), installations.clone());
        self.control(controller, &host.stores, host.stores.installations.clone(), installations.clone(), &options);
        let controller =
            ExecutionController::new(Arc::clone(&host), Arc::clone(&pool), executions.clone(), installations);
        self.control(controller, &host.stores, host.stores.executions.clone(), executions, &options);
        let items = queues.deploy_items.clone();
        let controller = DeployItemController::new(Arc::clone(&host), Arc::clone(&pool), items.clone());
        self.kept =
            Some(KeptInMemory { proposals: Box::new(controller.proposal_bytes()), clusters: Arc::clone(&pool) });
        self.control(controller, &host.stores, host.stores.deploy_items.clone(), items, &options);
        let controller = TargetSyncController::new(Arc::clone(&host), Arc::clone(&pool));
        self.control(controller, &host.stores, host.stores.target_syncs.clone(), queues.target_syncs.clone(), &options);
        let drift = Queue::default();
        let controller = DriftController::new(Arc::clone(&host), pool, drift.clone());
        self.control(controller, &host.stores, host.stores.deploy_items.clone(), drift, &options);
        self.guard::<Target>(&host, queues.target_guards.clone(), &options);
        self.guard::<SecretMeta>(&host, queues.secret_guards.clone(), &options);
        self.guard::<Context>(&host, queues.context_guards.clone(), &options);
        self.guard::<ConfigMapMeta>(&host, queues.config_map_guards.clone(), &options);
        let stop = self.stop.clone();
        let excluded = BTreeSet::from(["kube-system".into()]);
        tokio::spawn(async move { stop.run_until_cancelled(keep_default_contexts(host, excluded)).await });
    }

    /// Bytes of proposals under way, and of objects of clusters, that are in memory.
    pub(crate) fn kept_in_memory(&self) -> (u64, u64) {
        let kept = self.kept.as_ref().unwrap();
        ((kept.proposals)(), kept.clusters.object_bytes())
    }

    fn log_changes(&self, stores: &Stores) {
        let changes = Arc::clone(&self.changes);
        stores.deploy_items.subscribe(move |change| {
            let line = match change.after {
                Some(item) => format!("{} {}", item.phase(), item.job_id_finished()),
                None => "gone".to_owned(),
            };
            changes.lock().unwrap().push(line.trim().to_owned());
        });
    }

    fn watch_all(&self, stores: &Stores) {
        let Stores {
            installations,
            executions,
            deploy_items,
            targets,
            data_objects,
            contexts,
            secrets,
            config_maps,
            target_syncs,
        } = stores.clone();
        self.watch(None, installations);
        self.watch(None, executions);
        self.watch(None, deploy_items);
        self.watch(None, targets);
        self.watch(None, data_objects);
        self.watch(None, contexts);
        self.watch(None, target_syncs);
        self.watch(Some(GUARD), secrets);
        self.watch(Some(GUARD), config_maps);
    }

    fn watch<K: Watched>(&self, label: Option<&'static str>, store: Store<K>) {
        let changed = Arc::clone(&self.changed);
        store.subscribe(move |_| changed.notify_one());
        let (client, stop) = (self.client.clone(), self.stop.clone());
        tokio::spawn(async move { watch_labelled(client, &[], label, store, stop).await });
    }

    fn guard<K: Guarded>(&self, host: &Arc<ControllerContext>, queue: Queue, options: &ControllerOptions) {
        let store = K::store(&host.stores).clone();
        self.control(GuardController::<K>::new(Arc::clone(host)), &host.stores, store, queue, options);
    }

    fn control<C: Controller>(
        &self,
        controller: C,
        stores: &Stores,
        store: Store<C::Object>,
        queue: Queue,
        options: &ControllerOptions,
    ) {
        let (stores, stop, options) = (stores.clone(), self.stop.clone(), options.clone());
        tokio::spawn(async move {
            tokio::join!(
                stores.installations.synced(),
                stores.executions.synced(),
                stores.deploy_items.synced(),
                stores.targets.synced(),
                stores.data_objects.synced(),
                stores.contexts.synced()
            );
            run(Arc::new(controller), store, queue, options, stop).await;
        });
    }

    /// The controllers' clock jumps; what they timed before goes on as it was.
    pub(crate) fn jump(&self, seconds: i64) {
        self.ahead.fetch_add(seconds, Ordering::SeqCst);
    }

    /// The controllers end, with nothing more written.
    pub(crate) fn stop(&self) {
        self.traffic.cut_after(0);
        self.stop.cancel();
    }

    /// The same, and others begin.
    pub(crate) fn restart(&mut self) {
        self.stop();
        self.begin();
    }

    /// The same after so many seconds, of which the controllers that end have seen nothing.
    pub(crate) fn restart_after(&mut self, seconds: i64) {
        self.ahead = Arc::new(AtomicI64::new(self.ahead.load(Ordering::SeqCst) + seconds));
        self.restart();
    }

    /// The controllers end, and others begin that are set up like this.
    pub(crate) fn restart_with(&mut self, setup: Setup) {
        self.setup = setup;
        self.restart();
    }

    /// The controllers end, and others begin whose component may reach this only.
    pub(crate) fn restart_granting(&mut self, grants: Value) {
        self.plugin = Arc::new(Scripted::granted(Arc::clone(&self.changed), grants));
        self.restart();
    }

    /// From now on so many writes of the controllers pass, and then none.
    pub(crate) fn cut_after(&self, writes: usize) {
        self.traffic.cut_after(writes);
    }

    /// How many requests the controllers have sent to the host cluster.
    pub(crate) fn requests(&self) -> usize {
        self.traffic.requests()
    }

    /// The requests of the controllers to the host cluster whose path has this in it.
    pub(crate) fn asked_about(&self, part: &str) -> Vec<SentRequest> {
        self.traffic.about(part)
    }

    /// How often controllers have come to an end of their work, for Installations, Executions and deploy items; `None` while
    /// one works or is to.
    pub(crate) fn at_rest(&self) -> Option<[u64; 3]> {
        let queues = [&self.queues.installations, &self.queues.executions, &self.queues.deploy_items];
        let counts = queues.map(|queue| queue.counts());
        counts.iter().all(|count| count.queued == 0 && count.running == 0).then(|| counts.map(|count| count.settled))
    }

    /// How many Installations, Executions and deploy items are worked on.
    pub(crate) fn running(&self) -> [u64; 3] {
        let queues = [&self.queues.installations, &self.queues.executions, &self.queues.deploy_items];
        queues.map(|queue| queue.counts().running as u64)
    }

    /// Holds the next write of the controllers back whose path ends like this, until it is let through.
    pub(crate) fn delay_write(&self, path: &str) {
        self.traffic.delay_write(path);
    }

    /// The same, and once the server has done it the answer is lost.
    pub(crate) fn delay_write_and_lose_answer(&self, path: &str) {
        self.traffic.delay_write_and_lose_answer(path);
    }

    /// Holds the next write of the controllers back whose path ends like this, and lets the one through that was held back before.
    pub(crate) fn delay_next_write(&self, path: &str) {
        self.traffic.delay_next_write(path);
    }

    /// Waits until that write is on its way.
    pub(crate) async fn held(&self) {
        self.wait("nothing is held back", async || self.traffic.is_held().then_some(())).await;
    }

    /// Holds all reads of the controllers back whose path has this in it.
    pub(crate) fn hold_reads(&self, part: &str) {
        self.traffic.hold_reads(part);
    }

    /// How many of them are on their way.
    pub(crate) fn reads_held(&self) -> usize {
        self.traffic.reads_held()
    }

    /// Lets so many of them go on.
    pub(crate) fn let_reads_pass(&self, reads: usize) {
        self.traffic.let_reads_pass(reads);
    }

    /// Lets it through.
    pub(crate) fn let_pass(&self) {
        self.traffic.let_pass();
    }

    /// Whether a write was held back.
    pub(crate) fn is_cut(&self) -> bool {
        self.traffic.is_cut()
    }

    /// What a Target needs to reach the server.
    pub(crate) fn kubeconfig(&self) -> String {
        self.server.kubeconfig()
    }

    fn api(&self, kind: &str) -> Api<DynamicObject> {
        let (group, version) = match kind {
            "Secret" | "ConfigMap" | "ServiceAccount" => ("", "v1"),
            "Event" => ("events.k8s.io", "v1"),
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

    /// The same with `--cascade=orphan`.
    pub(crate) async fn delete_and_free(&self, kind: &str, name: &str) {
        self.api(kind).delete(name, &DeleteParams::orphan()).await.unwrap();
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

    /// Waits until the controllers know of no guard on what has this name: until then they would add none.
    pub(crate) async fn sees_no_guard(&self, name: &str) {
        let free = async || (!self.knows_guard(name)).then_some(());
        self.wait(&format!("the controllers know a guard on {name}"), free).await;
    }

    /// Waits until they know of one: until then they would look for it.
    pub(crate) async fn sees_guard(&self, name: &str) {
        let held = async || self.knows_guard(name).then_some(());
        self.wait(&format!("the controllers know no guard on {name}"), held).await;
    }

    fn knows_guard(&self, name: &str) -> bool {
        let (stores, key) = (&self.host.as_ref().unwrap().stores, Key::new("default", name));
        let finalizers = [
            stores.targets.get(&key).map(|object| object.finalizers().to_vec()),
            stores.contexts.get(&key).map(|object| object.finalizers().to_vec()),
            stores.secrets.get(&key).map(|object| object.finalizers().to_vec()),
            stores.config_maps.get(&key).map(|object| object.finalizers().to_vec()),
        ];
        finalizers.iter().flatten().flatten().any(|finalizer| finalizer == GUARD)
    }

    /// The answer, which is asked for after every change that the controllers see; `None` where it does not come in time.
    pub(crate) async fn in_time<T>(&self, answer: impl AsyncFn() -> Option<T>) -> Option<T> {
        let waiting = async {
            loop {
                let changed = self.changed.notified();
                if let Some(answer) = answer().await {
                    return answer;
                }
                changed.await;
            }
        };
        tokio::time::timeout(DEADLINE, waiting).await.ok()
    }

    /// Waits until the answer is there.
    pub(crate) async fn wait<T>(&self, what: &str, answer: impl AsyncFn() -> Option<T>) -> T {
        match self.in_time(answer).await {
            Some(answer) => answer,
            None => panic!(
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
}

/// Events are written in the background, and Secrets with proposals go in it: nothing else tells of them.
async fn hear_of<K>(client: Client, changed: Arc<Notify>)
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let objects: Api<K> = Api::default_namespaced(client);
    let events = watcher(objects, watcher::Config::default()).default_backoff();
    events.for_each(|_| async { changed.notify_one() }).await;
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
