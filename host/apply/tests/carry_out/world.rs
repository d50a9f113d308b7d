//! An API server, a job on it, and a status that survives what the job does not.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{Router, body::Body};
use futures::{StreamExt, stream};
use jiff::Timestamp;
use kube::Client;
use orangery_apply::{
    DeployItems, DryRun, ItemState, Job, Outcome, Owner, ProgressStore, Purpose, carry_out, delete, dry_run, hand_over,
};
use orangery_cluster::{
    Cluster, ClusterPool, ClusterSet, Connections, MOST_OBJECT_BYTES, NamespacedName, Observed, Waiter,
};
use orangery_core::{
    digest::sha256,
    name::{JobId, Kind, ObjectName},
    port::{BoxFuture, Clock},
    step::{Halt, Step},
};
use orangery_embedded::{Options, Server, Storage, start};
use orangery_proposal::{
    ClusterRef, Proposal, SecretContent, deployer::ApiResource, executor::ExecutionStep, grant::Grants,
    inventory::LocatedObject, item::StoredProposal,
};
use serde_json::{Value, json};
use tokio::sync::{Notify, watch};
use tower::{BoxError, ServiceExt, service_fn};

/// The label that marks the objects of the item.
pub(crate) const LABEL: &str = "example.org/item";

/// How long a test waits for a wake.
const DEADLINE: Duration = Duration::from_secs(20);

/// Where a write breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Break {
    /// Before the server has it.
    Request,
    /// After the server has it: the answer is lost.
    Answer,
}

/// What was asked of the server and of the store, in order, and which write breaks.
#[derive(Default)]
pub(crate) struct Traffic {
    log: Mutex<Vec<String>>,
    breaks: Mutex<Option<(usize, Break)>>,
    /// Whether the credentials may not update anything.
    hides_identity: AtomicBool,
    forbids_updates: AtomicBool,
    /// Requests that are sent when something else has happened, by what is noted of them.
    order: Mutex<BTreeMap<String, String>>,
    /// What has happened: `asked REQUEST`, `read REQUEST`.
    happened: watch::Sender<BTreeSet<String>>,
}

impl Traffic {
    /// Counts a write down; `Some` where this one breaks.
    fn write(&self) -> Option<Break> {
        let mut breaks = self.breaks.lock().unwrap();
        match breaks.as_mut() {
            Some((0, how)) => {
                let how = *how;
                *breaks = None;
                Some(how)
            }
            Some((left, _)) => {
                *left -= 1;
                None
            }
            None => None,
        }
    }

    fn note(&self, line: String) {
        self.log.lock().unwrap().push(line);
    }

    /// What was noted since the last call, watches and discovery apart.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.log.lock().unwrap())
    }

    /// Whether the credentials may know which cluster it is, from now on.
    pub(crate) fn hide_identity(&self, hides: bool) {
        self.hides_identity.store(hides, Ordering::SeqCst);
    }

    /// From now on the credentials may not update anything.
    pub(crate) fn forbid_updates(&self) {
        self.forbids_updates.store(true, Ordering::SeqCst);
    }

    /// A request, `PUT configmaps/a`, is sent when from now on another one was `asked …`, or its answer `read …`.
    pub(crate) fn send_after(&self, request: &str, event: &str) {
        self.happened.send_modify(|happened| {
            happened.remove(event);
        });
        self.order.lock().unwrap().insert(request.to_owned(), event.to_owned());
    }

    fn happens(&self, event: String) {
        self.happened.send_modify(|happened| {
            happened.insert(event);
        });
    }

    async fn turn(&self, request: &str) {
        self.happens(format!("asked {request}"));
        let Some(event) = self.order.lock().unwrap().get(request).cloned() else { return };
        drop(self.happened.subscribe().wait_for(|happened| happened.contains(&event)).await.unwrap());
    }

    /// An answer that tells when all of it was read.
    async fn answered(self: Arc<Self>, request: String, answer: axum::response::Response) -> axum::response::Response {
        let (head, body) = answer.into_parts();
        let whole = axum::body::to_bytes(body, usize::MAX).await;
        let end = async move {
            self.happens(format!("read {request}"));
            Ok(axum::body::Bytes::new())
        };
        let pieces = stream::iter([whole]).chain(stream::once(end));
        axum::response::Response::from_parts(head, Body::from_stream(pieces))
    }

    pub(crate) fn break_at(&self, write: usize, how: Break) {
        *self.breaks.lock().unwrap() = Some((write, how));
    }

    /// Whether the break has happened.
    pub(crate) fn has_broken(&self) -> bool {
        self.breaks.lock().unwrap().take().is_none()
    }
}

/// What the item's status and Secrets hold.
#[derive(Default)]
pub(crate) struct Status {
    pub(crate) state: ItemState,
    proposals: BTreeMap<String, Proposal>,
    pub(crate) exports: Option<Value>,
    /// The job that has succeeded last, written with its last page.
    succeeded: Option<JobId>,
}

struct Settable(Mutex<Timestamp>);

impl Clock for Settable {
    fn now(&self) -> Timestamp {
        *self.0.lock().unwrap()
    }
}

/// The server, what has to survive, and what does not.
pub(crate) struct World {
    _server: Server,
    pub(crate) client: Client,
    pub(crate) traffic: Arc<Traffic>,
    pub(crate) status: Status,
    pub(crate) is_current: AtomicBool,
    /// For how many questions more it is.
    allowed: AtomicUsize,
    clock: Settable,
    pool: ClusterPool,
    /// Bytes that all objects share.
    memory: u64,
    woken: Arc<Notify>,
    /// Whose objects are written.
    pub(crate) owner: Owner,
    labels: [String; 1],
    /// What its component may reach.
    pub(crate) grants: Grants,
    /// Whether its stages remove what has its mark alone.
    pub(crate) removes_its_own_alone: bool,
    /// The marks of items that do not exist any more.
    pub(crate) items: KnownItems,
    /// What has to survive of the other items.
    others: BTreeMap<String, Status>,
    /// Another cluster that the target names.
    other: Option<(Server, Client)>,
}

struct Connected(Arc<Cluster>);

impl Connections for Connected {
    fn connect<'a>(&'a self, _on: &'a ClusterRef) -> BoxFuture<'a, Step<Arc<Cluster>>> {
        Box::pin(async { Ok(Arc::clone(&self.0)) })
    }

    fn content<'a>(&'a self, _content: &'a SecretContent) -> BoxFuture<'a, Step<String>> {
        Box::pin(async { Ok("secret content".to_owned()) })
    }
}

/// What is known of deploy items.
#[derive(Default)]
pub(crate) struct KnownItems {
    /// Those that an API server does not have any more.
    pub(crate) gone: Mutex<Vec<Owner>>,
    /// What the configurations of others name.
    pub(crate) named: Mutex<BTreeMap<LocatedObject, ObjectName>>,
    /// What the configuration of the item says to ignore.
    pub(crate) ignored: Mutex<BTreeSet<LocatedObject>>,
}

impl DeployItems for KnownItems {
    fn is_gone<'a>(&'a self, item: &'a Owner) -> BoxFuture<'a, Step<bool>> {
        Box::pin(async move { Ok(self.gone.lock().unwrap().contains(item)) })
    }

    fn named<'a>(
        &'a self,
        objects: &'a BTreeSet<LocatedObject>,
    ) -> BoxFuture<'a, Step<BTreeMap<LocatedObject, ObjectName>>> {
        let mut named = self.named.lock().unwrap().clone();
        named.retain(|located, _| objects.contains(located));
        Box::pin(async { Ok(named) })
    }

    fn ignored(&self, objects: &BTreeSet<LocatedObject>) -> BTreeSet<LocatedObject> {
        objects.intersection(&self.ignored.lock().unwrap()).cloned().collect()
    }
}

struct TestStore<'a> {
    status: &'a mut Status,
    traffic: &'a Traffic,
}

fn lost() -> Halt {
    Halt::Retry(orangery_core::error::Failure::new("Test", "Lost", "the process was killed"))
}

impl TestStore<'_> {
    fn write(&mut self, line: &str, change: impl FnOnce(&mut Status)) -> Step<()> {
        self.traffic.note(line.to_owned());
        match self.traffic.write() {
            None => {
                change(self.status);
                Ok(())
            }
            Some(Break::Request) => Err(lost()),
            Some(Break::Answer) => {
                change(self.status);
                Err(lost())
            }
        }
    }
}

impl ProgressStore for TestStore<'_> {
    fn record<'a>(&'a mut self, state: &'a ItemState) -> BoxFuture<'a, Step<()>> {
        Box::pin(async move { self.write("record", |status| status.state = state.clone()) })
    }

    fn persist<'a>(&'a mut self, proposal: &'a Proposal) -> BoxFuture<'a, Step<StoredProposal>> {
        Box::pin(async move {
            let digest = sha256(json!(proposal).to_string().as_bytes());
            let stored = StoredProposal { digest: digest.clone(), secrets: vec![] };
            self.write("persist", |status| drop(status.proposals.insert(digest, proposal.clone())))?;
            Ok(stored)
        })
    }

    fn export<'a>(&'a mut self, exports: &'a Value) -> BoxFuture<'a, Step<()>> {
        Box::pin(async move { self.write("export", |status| status.exports = Some(exports.clone())) })
    }
}

fn client(router: Router, traffic: Arc<Traffic>, name: &str) -> Client {
    let service = service_fn(move |request: axum::http::Request<kube::client::Body>| {
        let (router, traffic) = (router.clone(), Arc::clone(&traffic));
        async move {
            let (method, path) = (request.method().to_string(), request.uri().path().to_owned());
            let query = request.uri().query().unwrap_or_default().to_owned();
            let writes = method != "GET";
            let discovers = path.split('/').count() < 5 && !path.contains("namespaces") && !path.ends_with('s');
            let identifies = path.ends_with("/namespaces/kube-system");
            let short = path.rsplit("/").take(2).collect::<Vec<_>>();
            let line = format!("{method} {}", short.into_iter().rev().collect::<Vec<_>>().join("/"));
            if !query.contains("watch=") && !discovers && !identifies {
                traffic.note(line.clone());
            }
            traffic.turn(&line).await;
            let broken = if writes { traffic.write() } else { None };
            if broken == Some(Break::Request) {
                return Err(BoxError::from("the process was killed"));
            }
            if identifies && traffic.hides_identity.load(Ordering::SeqCst) {
                return Ok(forbidden());
            }
            if method == "PUT" && traffic.forbids_updates.load(Ordering::SeqCst) {
                return Ok(forbidden());
            }
            let response = router.oneshot(request.map(Body::new)).await.map_err(BoxError::from)?;
            if broken == Some(Break::Answer) {
                return Err(BoxError::from("the process was killed"));
            }
            let is_waited_for = traffic.order.lock().unwrap().values().any(|event| *event == format!("read {line}"));
            Ok(if is_waited_for { traffic.answered(line, response).await } else { response })
        }
    });
    Client::new(service, name)
}

/// What an API server answers to whoever lacks a right.
fn forbidden() -> axum::http::Response<Body> {
    let message = "configmaps \"x\" is forbidden: User \"u\" cannot update resource \"configmaps\" in API group \"\"";
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "reason": "Forbidden",
        "details": {"name": "x", "kind": "configmaps"}, "code": 403});
    let answer = axum::http::Response::builder().status(403).header("content-type", "application/json");
    answer.body(Body::from(status.to_string())).unwrap()
}

impl World {
    pub(crate) async fn new() -> Self {
        let server = server().await;
        let traffic = Arc::new(Traffic::default());
        let client = client(server.router(), Arc::clone(&traffic), "first");
        let woken = Arc::new(Notify::new());
        Self {
            client,
            traffic,
            status: Status::default(),
            is_current: AtomicBool::new(true),
            allowed: AtomicUsize::new(usize::MAX),
            clock: Settable(Mutex::new(Timestamp::UNIX_EPOCH)),
            pool: pool(MOST_OBJECT_BYTES, &woken),
            memory: MOST_OBJECT_BYTES,
            woken,
            labels: [LABEL.to_owned()],
            owner: Owner {
                namespace: "default".into(),
                name: "item".into(),
                uid: "uid-of-item".to_owned(),
                cluster: None,
            },
            grants: everything(),
            removes_its_own_alone: false,
            items: KnownItems::default(),
            others: BTreeMap::new(),
            other: None,
            _server: server,
        }
    }

    /// Goes on with another item of the same clusters.
    pub(crate) fn switch(&mut self, name: &str) {
        let (name, uid) = (name.to_owned(), format!("uid-of-{name}"));
        let status = self.others.remove(&name).unwrap_or_default();
        let owner = Owner { name: name.as_str().into(), uid, ..self.owner.clone() };
        let before = std::mem::replace(&mut self.owner, owner);
        self.others.insert(before.name.as_str().to_owned(), std::mem::replace(&mut self.status, status));
    }

    /// The target names another cluster from now on, which is asked by [`objects`](Self::objects) as well.
    pub(crate) async fn swap_cluster(&mut self) {
        let server = server().await;
        let other = client(server.router(), Arc::clone(&self.traffic), "second");
        let before = std::mem::replace(&mut self.client, other);
        let former = self.other.replace((server, before));
        assert!(former.is_none(), "the target was swapped once");
    }

    /// The target names the first cluster again.
    pub(crate) fn swap_back(&mut self) {
        let (_, first) = self.other.as_mut().unwrap();
        std::mem::swap(&mut self.client, first);
    }

    /// The process is killed: nothing but the server and the status is left.
    pub(crate) fn restart(&mut self) {
        self.pool = pool(self.memory, &self.woken);
    }

    /// The same, and all objects share so many bytes from now on.
    pub(crate) fn restart_with(&mut self, memory: u64) {
        self.memory = memory;
        self.restart();
    }

    pub(crate) fn pass(&self, time: Duration) {
        let mut now = self.clock.0.lock().unwrap();
        *now = now.checked_add(time).unwrap();
    }

    /// Stores a proposal as a job before this call has.
    pub(crate) fn store(&mut self, proposal: &Proposal) {
        let digest = sha256(json!(proposal).to_string().as_bytes());
        self.status.proposals.insert(digest.clone(), proposal.clone());
        self.status.state.stored = Some(StoredProposal { digest, secrets: vec![] });
    }

    /// A config map of the target.
    pub(crate) fn located(&self, name: &str) -> LocatedObject {
        LocatedObject { on: ClusterRef::Target, key: serde_json::from_value(key(name)).unwrap() }
    }

    /// The job is current for so many questions, and not any more then.
    pub(crate) fn allow(&self, questions: usize) {
        self.allowed.store(questions, Ordering::SeqCst);
    }

    pub(crate) fn clusters(&self) -> ClusterSet {
        let name = self.client_name();
        let cluster = self.pool.adopt(&name, &self.client);
        self.pool.set(Arc::new(Connected(cluster)), waiter())
    }

    fn client_name(&self) -> String {
        format!("the cluster of the test, {}", self.client.default_namespace())
    }

    /// One look. What is to be done again is the kept proposal, if there is progress, else `proposal`.
    pub(crate) async fn reconcile(&mut self, job: &str, proposal: &Proposal) -> Step<Outcome> {
        let mut state = self.status.state.clone();
        state.progress = state.progress.filter(|progress| progress.job == *job);
        let carried_on = state
            .progress
            .as_ref()
            .filter(|progress| !matches!(progress.step, ExecutionStep::Calling { .. } | ExecutionStep::Recovering(_)));
        let kept = carried_on.and(state.stored.as_ref());
        let proposal = kept.map_or(proposal, |kept| &self.status.proposals[&kept.digest]).clone();
        let clusters = self.clusters();
        let allowed =
            || self.allowed.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
        let is_current = || self.is_current.load(Ordering::SeqCst) && allowed();
        let (owner, labels) = (self.owner.clone(), [LABEL.to_owned()]);
        let job = Job {
            id: &job.into(),
            purpose: Purpose::Install,
            owner: &owner,
            labels: &labels,
            grants: &self.grants,
            clusters: &clusters,
            items: &self.items,
            clock: &self.clock,
            removes_its_own_alone: self.removes_its_own_alone,
            is_current: &is_current,
            recorded: None,
        };
        let mut store = TestStore { status: &mut self.status, traffic: &self.traffic };
        let result = carry_out(&job, &mut store, &proposal, &mut state).await;
        // Where a look ends that was not killed, the caller writes the page, and the end of the job with it.
        if !matches!(&result, Err(Halt::Retry(_))) {
            let ended = matches!(&result, Ok(Outcome::Finished)).then(|| job.id.to_owned());
            store.write("record", |status| {
                status.state = state;
                status.succeeded = ended;
            })?;
        }
        clusters.keep_waiting();
        result
    }

    /// Looks until the proposal is through, waiting where it waits.
    pub(crate) async fn run(&mut self, job: &str, proposal: &Proposal) -> Outcome {
        loop {
            match self.reconcile(job, proposal).await {
                Ok(outcome) => return outcome,
                Err(_) if self.status.succeeded.as_deref() == Some(job) => return Outcome::Finished,
                Err(Halt::Wait(_)) => self.wait().await,
                Err(Halt::Retry(failure)) if failure.message.contains("the process was killed") => self.restart(),
                Err(halt) => panic!("{halt:?}"),
            }
        }
    }

    /// Deletes the inventory until it is gone.
    pub(crate) async fn delete(&mut self) {
        loop {
            let result = self.look_at_deletion().await;
            match result {
                Ok(()) => return,
                Err(Halt::Wait(_)) => self.wait().await,
                Err(Halt::Retry(failure)) if failure.message.contains("the process was killed") => self.restart(),
                Err(halt) => panic!("{halt:?}"),
            }
        }
    }

    /// A job of the item.
    fn job<'a>(
        &'a self,
        id: &'a JobId,
        purpose: Purpose,
        clusters: &'a ClusterSet,
        is_current: &'a (dyn Fn() -> bool + Send + Sync),
    ) -> Job<'a> {
        Job {
            id,
            purpose,
            owner: &self.owner,
            labels: &self.labels,
            grants: &self.grants,
            clusters,
            items: &self.items,
            clock: &self.clock,
            removes_its_own_alone: false,
            is_current,
            recorded: None,
        }
    }

    pub(crate) async fn look_at_deletion(&mut self) -> Step<()> {
        let clusters = self.clusters();
        let is_current = || self.is_current.load(Ordering::SeqCst);
        let id = "deletion".into();
        let job = self.job(&id, Purpose::Uninstall, &clusters, &is_current);
        let mut state = self.status.state.clone();
        let result = delete(&job, &mut state).await;
        if !matches!(&result, Err(Halt::Retry(_))) {
            self.status.state = state;
        }
        clusters.keep_waiting();
        result
    }

    /// Hands objects over to another item.
    pub(crate) async fn hand_over(&self, names: &[&str], to: &Owner) -> Step<()> {
        let clusters = self.clusters();
        let allowed =
            || self.allowed.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
        let id = "deletion".into();
        let job = self.job(&id, Purpose::Uninstall, &clusters, &allowed);
        let objects: Vec<LocatedObject> = names.iter().map(|name| self.located(name)).collect();
        hand_over(&job, &objects, to).await
    }

    /// What a proposal would do, with what the item has now.
    pub(crate) async fn dry_run(&self, proposal: &Proposal) -> Step<DryRun> {
        let clusters = self.clusters();
        let id = "dry-run".into();
        let job = self.job(&id, Purpose::Install, &clusters, &|| true);
        dry_run(&job, proposal, &self.status.state).await
    }

    /// Waits until a watch has woken the item.
    pub(crate) async fn wait(&self) {
        tokio::time::timeout(DEADLINE, self.woken.notified()).await.expect("a watch wakes the item in time");
    }

    /// Waits until the watch of an object of namespace `default` knows what is asked for.
    pub(crate) async fn until_observed(&self, kind: &ApiResource, name: &str, wanted: impl Fn(&Observed) -> bool) {
        let cluster = self.clusters().cluster(&ClusterRef::Target).await.unwrap();
        let place = NamespacedName { namespace: Some("default".into()), name: name.into() };
        while !cluster.watches().observed(kind, &place).is_some_and(|observed| wanted(&observed)) {
            self.wait().await;
        }
    }

    /// The names and data of the config maps of namespace `default`.
    pub(crate) async fn config_maps(&self) -> BTreeMap<String, Value> {
        let list: Value = self.get("/api/v1/namespaces/default/configmaps").await.unwrap();
        let items = list["items"].as_array().unwrap();
        let named =
            items.iter().map(|item| (item["metadata"]["name"].as_str().unwrap().to_owned(), item["data"].clone()));
        named.filter(|(name, _)| name != "kube-root-ca.crt").collect()
    }

    /// The config maps of namespace `default` as objects, by name.
    pub(crate) async fn objects(&self) -> BTreeMap<String, Value> {
        let mut objects = BTreeMap::new();
        for name in self.config_maps().await.into_keys() {
            let object = self.get(&format!("/api/v1/namespaces/default/configmaps/{name}")).await;
            objects.extend(object.map(|object| (name, object)));
        }
        objects
    }

    pub(crate) async fn get(&self, path: &str) -> Option<Value> {
        let answer = self.client.request(axum::http::Request::get(path).body(vec![]).unwrap()).await;
        self.traffic.take();
        answer.ok()
    }

    /// Somebody else writes.
    pub(crate) async fn send(&self, method: &str, path: &str, body: &Value) -> Value {
        let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let request = axum::http::Request::builder().method(method).uri(path).header("content-type", kind);
        let answer = self.client.request(request.body(body.to_string().into_bytes()).unwrap()).await.unwrap();
        self.traffic.take();
        answer
    }

    /// The names in the inventory.
    pub(crate) fn inventory(&self) -> Vec<String> {
        self.status.state.inventory.0.keys().map(|located| located.key.name.to_string()).collect()
    }
}

async fn server() -> Server {
    let options = Options {
        storage: Storage::Memory,
        address: "127.0.0.1:0".parse().unwrap(),
        clock: Arc::new(|| Timestamp::UNIX_EPOCH),
    };
    start(options).await.unwrap()
}

/// Every cluster and every kind.
pub(crate) fn everything() -> Grants {
    let all = json!({"clusters": {"target": true, "host": true, "named": ["*"]}, "reads": [{}], "writes": [{}],
        "deleteUnmanaged": true});
    serde_json::from_value(all).unwrap()
}

fn pool(memory: u64, woken: &Arc<Notify>) -> ClusterPool {
    let woken = Arc::clone(woken);
    ClusterPool::with_memory(memory, move |_| woken.notify_one())
}

fn waiter() -> Waiter {
    Waiter { kind: Kind::from_static("DeployItem"), namespace: "default".into(), name: "item".into() }
}

/// A proposal in JSON, finishing with nothing unless it says otherwise.
pub(crate) fn proposal(fields: Value) -> Proposal {
    let mut whole = json!({"stages": [], "next": {"finish": {}}});
    orangery_proposal::overlay::overlay(&mut whole, &fields);
    serde_json::from_value(whole).unwrap()
}

/// A stage of writes that is through when they are accepted.
pub(crate) fn stage(writes: &[Value]) -> Value {
    json!({"name": "s", "writes": writes, "gate": "accepted"})
}

pub(crate) fn config_map(name: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": {"k": value}})
}

/// A config map that is replaced where it exists.
pub(crate) fn write(name: &str, value: &str) -> Value {
    json!({"object": config_map(name, value), "how": "replace"})
}

pub(crate) fn key(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": name})
}
