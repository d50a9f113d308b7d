//! A server without an operator, and an operator that reaches it only through a [`Proxy`]: it can be killed and started again
//! while the server and its objects stay.

use std::{
    collections::BTreeMap,
    env, fs,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::Duration,
};

use kube::{Client, Config};
use orangery_core::port::Clock as _;
use orangery_embedded::{Options, Server, Storage};
use orangery_runtime::machine::SystemClock;
use serde_json::{Value, json};
use tokio::{
    process::Child,
    time::{Instant, interval, timeout},
};

use crate::{
    binary::{Binary, signal},
    canary::{ShownText, published},
    cluster::own_target,
    kube::{Kube, Programs, SharedKube},
    objects::{DEADLINE, NAMESPACE, Objects},
    proxy::{Fates, Proxy},
    soak::{COUNTED, Held},
    tree::API,
    usage,
};

/// A server, a proxy before it, and the operator behind the proxy.
pub struct World {
    /// The server's objects, past the proxy.
    pub objects: Objects,
    binary: Binary,
    proxy: Proxy,
    operator: Option<Child>,
    /// An operator that stands still, and does not know it.
    frozen: Option<Child>,
    /// The embedded server, where it is one.
    server: Option<Server>,
    /// The real one, where it is one; of this test.
    _kube: Option<SharedKube>,
    end: ExpectedEnd,
}

/// Fails where it is dropped before its world has ended: nothing was searched then (C-82).
struct ExpectedEnd {
    has_come: bool,
}

impl Drop for ExpectedEnd {
    fn drop(&mut self) {
        assert!(self.has_come || thread::panicking(), "a World is dropped without its end");
    }
}

/// Where a proxy listens that nothing has to find again.
const ANY_ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
/// Where that of a server listens whose objects were kept: Targets name it. A loopback address that nothing else takes.
const KEPT_ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(127, 79, 82, 71)), 6443);

/// What a World ends with (C-82).
const SEARCHED: &str = "the objects are listed that are searched for values of Secrets";

/// The argument that gives an operator the mock deployer.
pub const MOCK: &str = "--mock-deployer";

/// How long the Lease of an operator lasts: one that cannot renew it for two thirds of that ends, also where the machine is slow.
const LEASE: &str = "--lease-duration=45";

/// Lines of the operator's log that a failure shows.
const LAST_LINES: usize = 40;

/// What serves a world.
pub enum Ground {
    /// An embedded server in this process.
    Embedded,
    /// A real kube-apiserver.
    Kube(Programs),
}

impl World {
    /// A server of its own, with our kinds. Nobody works on them until [`start`](Self::start).
    pub async fn on(ground: &Ground, binary: Binary, fates: Arc<dyn Fates>) -> World {
        let Ground::Kube(programs) = ground else {
            return World::embedded(Storage::Memory, ANY_ADDRESS, binary, fates).await;
        };
        let kube = Kube::shared(programs, &binary).await;
        // By the end of this world.
        kube.is_searched();
        let world = World::over(&kube.kubeconfig(), ANY_ADDRESS, binary, fates).await;
        World { _kube: Some(kube), ..world }
    }

    /// An embedded server whose objects lie in this folder. The Targets that are there already lead to it as before.
    pub async fn in_folder(folder: &Path, binary: Binary, fates: Arc<dyn Fates>) -> World {
        World::embedded(Storage::Folder(folder.to_owned()), KEPT_ADDRESS, binary, fates).await
    }

    async fn embedded(storage: Storage, proxy: SocketAddr, binary: Binary, fates: Arc<dyn Fates>) -> World {
        let clock = Arc::new(|| SystemClock.now());
        let options = Options { storage, address: ([127, 0, 0, 1], 0).into(), clock };
        let server = orangery_embedded::start(options).await.expect("the server starts");
        let world = World::over(&server.kubeconfig(), proxy, binary, fates).await;
        World { server: Some(server), ..world }
    }

    /// The same over the server of a kubeconfig.
    async fn over(kubeconfig: &str, proxy: SocketAddr, binary: Binary, fates: Arc<dyn Fates>) -> World {
        let objects = Objects::of(kubeconfig.to_owned()).await;
        for definition in orangery_api::crds() {
            let definition = serde_json::to_value(definition).expect("a definition is JSON");
            objects.apply(&definition).await;
            let is = |object: &Value| {
                let conditions = object.pointer("/status/conditions").map(Value::to_string).unwrap_or_default();
                object.pointer("/metadata/name") == definition.pointer("/metadata/name")
                    && conditions.contains(r#""Established""#)
            };
            objects.expect_that(&definition, "is not served", is).await;
        }
        let proxy = Proxy::start_at(proxy, kubeconfig, fates).await;
        objects.apply(&own_target(&proxy.kubeconfig())).await;
        let end = ExpectedEnd { has_come: false };
        let world = World { objects, binary, proxy, operator: None, frozen: None, server: None, _kube: None, end };
        fs::write(world.kubeconfig(), world.proxy.kubeconfig()).expect("the file can be written");
        world
    }

    fn kubeconfig(&self) -> PathBuf {
        self.binary.folder().join("kubeconfig")
    }

    /// Starts the operator, or starts it again.
    pub fn start(&mut self) {
        self.start_with(&[MOCK]);
    }

    /// The same with these arguments. Without [`MOCK`] it has no mock deployer.
    pub fn start_with(&mut self, more: &[&str]) {
        self.operator = Some(self.started(None, more));
    }

    /// The same of the older binary, where `OLDER` names one.
    pub fn start_older(&mut self, more: &[&str]) {
        let older = env::var_os("OLDER").map(PathBuf::from);
        self.operator = Some(self.started(older.as_deref(), more));
    }

    fn started(&self, program: Option<&Path>, more: &[&str]) -> Child {
        let kubeconfig = self.kubeconfig();
        let kubeconfig = kubeconfig.to_string_lossy();
        let kubeconfig = ["run", "--kubeconfig", &kubeconfig];
        let others = ["--default-policy=compatible", "--pickup-timeout", "none", "--metrics-address", "127.0.0.1:0"];
        // Earlier builds know no such flag, and ask nobody who they are.
        let is_asked =
            program.is_some() || more.iter().any(|argument| argument.starts_with("--metrics-authentication"));
        let metrics: &[&str] = if is_asked { &[] } else { &["--metrics-authentication=none"] };
        let is_leased = more.iter().any(|argument| argument.starts_with("--lease-duration"));
        let lease: &[&str] = if is_leased { &[] } else { &[LEASE] };
        let arguments = [&kubeconfig[..], &others[..], metrics, lease, more].concat();
        match program {
            Some(program) => self.binary.start_other_into(program, &arguments, &self.log_file()),
            None => self.binary.start_into(&arguments, &self.log_file()),
        }
    }

    /// Waits until a started operator has done what it does by itself: it gives every namespace a Context.
    pub async fn ready(&self) {
        for namespace in self.objects.list(&json!({"apiVersion": "v1", "kind": "Namespace"})).await {
            let metadata = json!({"name": "default", "namespace": namespace.pointer("/metadata/name")});
            self.objects.expect(&json!({"apiVersion": API, "kind": "Context", "metadata": metadata})).await;
        }
    }

    /// What is held once no more is than before, where that comes within the deadline: connections end by themselves, and
    /// nothing tells when.
    pub async fn held_at_rest(&self, before: Option<&Held>) -> Held {
        let mut tries = interval(Duration::from_millis(250));
        let until = Instant::now() + DEADLINE;
        loop {
            tries.tick().await;
            let now = self.held().await;
            if Instant::now() >= until || before.is_none_or(|before| now.exceeds(before).is_empty()) {
                return now;
            }
        }
    }

    async fn held(&self) -> Held {
        let mut objects = BTreeMap::new();
        for (api_version, kind) in COUNTED {
            let count = self.objects.list_everywhere(&json!({"apiVersion": api_version, "kind": kind})).await.len();
            objects.insert(kind, count);
        }
        let process = self.operator.as_ref().and_then(Child::id).expect("an operator works");
        Held {
            resident_mebibytes: usage::resident_mebibytes(process).expect("it has memory"),
            threads: usage::threads(process).expect("it has threads"),
            descriptors: usage::descriptors(process).expect("it has descriptors"),
            watches: self.proxy.watches(),
            objects,
        }
    }

    /// How many calls of its controllers the operator counts that were made by an `event`, by a `timer` or by `silence`.
    pub async fn calls(&self, by: &str) -> u64 {
        let by = format!(r#"by="{by}""#);
        self.sum("orangery_reconcile_called_total", |line| line.contains(&by)).await
    }

    /// The figure of this name that the operator shows, in all its samples together.
    pub async fn figure(&self, name: &str) -> u64 {
        self.sum(name, |_| true).await
    }

    async fn sum(&self, name: &str, counts: impl Fn(&str) -> bool) -> u64 {
        let text = self.metrics(None).await.expect("the operator answers its metrics");
        let of_name = |line: &&str| line.split(['{', ' ']).next() == Some(name) && counts(line);
        text.lines().filter(of_name).filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok()).sum()
    }

    /// Where the operator serves its metrics: the address with the port.
    pub fn metrics_address(&self) -> String {
        let log = self.log();
        let served = log.lines().rev().find(|line| line.contains("metrics and health are served"));
        let address =
            served.and_then(|line| line.split("address=").nth(1)).and_then(|rest| rest.split_whitespace().next());
        address.expect("the operator logs where its metrics are").to_owned()
    }

    /// What the operator answers to who asks for its metrics with a token, or with none.
    pub async fn metrics(&self, token: Option<&str>) -> kube::Result<String> {
        let address = self.metrics_address();
        let config = Config::new(format!("http://{address}").parse().expect("an address is one of an URL"));
        let client = Client::try_from(config).expect("a client can be made of it");
        let mut request = http::Request::get("/metrics");
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        client.request_text(request.body(Vec::new()).expect("a request")).await
    }

    /// Ends the operator as a power cut does. Its Lease is taken away, as if its time had passed already.
    pub async fn kill(&mut self) {
        if let Some(mut operator) = self.operator.take() {
            operator.kill().await.expect("it can be killed");
            let metadata = json!({"name": "orangery", "namespace": NAMESPACE});
            let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata});
            self.objects.delete(&lease).await;
        }
    }

    /// Stops the operator as a machine does that hangs: it is there, and does nothing.
    pub fn freeze(&mut self) {
        self.frozen = self.operator.take();
        signal(self.frozen.as_ref().and_then(Child::id), "-STOP");
    }

    /// The operator that stood still goes on once another one has its Lease, and ends.
    ///
    /// # Panics
    /// It does not end, or not because of the Lease.
    pub async fn thaw(&mut self) {
        let metadata = json!({"name": "orangery", "namespace": NAMESPACE});
        let (api_version, spec) = ("coordination.k8s.io/v1", json!({"leaseTransitions": 1}));
        self.objects
            .expect(&json!({"apiVersion": api_version, "kind": "Lease", "metadata": metadata, "spec": spec}))
            .await;
        let mut frozen = self.frozen.take().expect("an operator stands still");
        signal(frozen.id(), "-CONT");
        let ended = timeout(DEADLINE, frozen.wait()).await.expect("it ends in time").expect("it can be waited for");
        assert_eq!(ended.code(), Some(1), "{}", self.log());
        assert!(self.log().contains("Lease orangery is held by "), "{}", self.log());
    }

    /// What a command of the binary says against the server, on both outputs, whatever it ends with.
    pub async fn run(&self, arguments: &[&str]) -> String {
        let kubeconfig = self.kubeconfig();
        let ended = self.binary.run(&[arguments, &["--kubeconfig", &kubeconfig.to_string_lossy()]].concat()).await;
        ended.stdout + &ended.stderr
    }

    fn log_file(&self) -> PathBuf {
        self.binary.folder().join("operator.log")
    }

    /// All that the operators have written to their logs.
    pub fn log(&self) -> String {
        fs::read_to_string(self.log_file()).unwrap_or_default()
    }

    /// Whether the operator is at work, and the end of what it has logged, for messages.
    pub fn last_words(&mut self) -> String {
        let ended = self.operator.as_mut().map(|operator| operator.try_wait());
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        let last = lines.get(lines.len().saturating_sub(LAST_LINES)..).unwrap_or_default().join("\n");
        format!("the operator has ended: {ended:?}; its last words:\n{last}")
    }

    /// Ends all of it. Nothing may show a value of a Secret then (C-82).
    ///
    /// # Panics
    /// Something does.
    pub async fn end(mut self) {
        let mut texts = self.binary.answers().all();
        texts.push(ShownText { what: "the log".to_owned(), text: self.log() });
        texts.extend(published(self.objects.client(), self.objects.canaries()).await.expect(SEARCHED));
        if let Some(Ok(None)) = self.operator.as_mut().map(Child::try_wait)
            && self.log().contains("metrics and health are served")
            && let Ok(text) = self.metrics(None).await
        {
            texts.push(ShownText { what: "the metrics".to_owned(), text });
        }
        self.end.has_come = true;
        self.objects.canaries().check(&texts);
        self.kill().await;
        drop((self.proxy, self.objects));
        if let Some(server) = self.server {
            server.stop().await;
        }
    }
}
