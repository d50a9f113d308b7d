//! A real API server on loopback: etcd, kube-apiserver and kube-controller-manager as `tests/kube/build.sh` builds them, with
//! RBAC and throw-away certificates, for one test at a time.

mod pool;
mod stored;

use std::{
    collections::BTreeMap,
    fs,
    net::{Ipv4Addr, TcpListener},
    path::{Path, PathBuf},
    process::{self, Child, ChildStdin, Command, Stdio},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    thread,
    time::Duration,
};

use data_encoding::BASE64;
use http::Request;
use rcgen::KeyPair;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::{Instant, interval};

pub use pool::SharedKube;

use crate::{
    binary::{Binary, Running},
    canary::{Canaries, ShownText, published_at_the_end},
    fail, machine,
    objects::{self, Objects},
    repository,
    tree::API,
    yaml,
};

/// How long the servers may take until they serve.
const DEADLINE: Duration = Duration::from_secs(180);

/// The namespace that the chart of the host would be installed into.
pub const HOST_NAMESPACE: &str = "orangery-system";

/// The folder of what etcd stores, and of what it had stored once.
const STORAGE: &str = "storage";
const BACKUP: &str = "backup";

/// Where kube-apiserver puts the certificate that it makes for itself.
const CERTIFICATE: &str = "certificates/apiserver.crt";

/// The user that may do everything.
const ADMIN: &str = "admin";
/// The group of the kinds that say who may do what.
const RBAC: &str = "rbac.authorization.k8s.io";
/// The group of the operators: they may do what the chart lets them do.
const OPERATORS: &str = "orangery";
/// Users that may do nothing, unless a test lets them.
const TENANTS: [&str; 2] = ["alice", "bob"];
/// The users of this group.
pub const OPERATOR: [&str; 2] = ["first-operator", "second-operator"];

/// What the servers write down of each request that changes something: who asked for what, and how it was answered.
const AUDIT: &str = "\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  verbs: [get, list, watch]
- level: Metadata
";

/// The servers' folder is their working directory. An answer is there when it is in the log.
const AUDITED: [&str; 3] =
    ["--audit-policy-file=audit.yaml", "--audit-log-path=audit.log", "--audit-log-mode=blocking-strict"];

/// The folder of the built programs.
pub struct Programs(PathBuf);

impl Programs {
    /// Those that are built.
    ///
    /// # Panics
    /// They are not: a test that needs them says so, and is ignored then (`machine`).
    pub fn find() -> Programs {
        Programs(machine::built(repository(), "kube").unwrap_or_else(|why| fail(&why)))
    }
}

/// The three servers; killed when dropped.
pub struct Kube {
    port: u16,
    /// That of etcd.
    etcd: u16,
    folder: TempDir,
    /// How those of [`SERVERS`] are started, each after those before it.
    servers: [(&'static str, Vec<String>); 2],
    processes: BTreeMap<&'static str, Child>,
    /// What nothing may show of what its clients apply (C-82).
    canaries: Canaries,
    /// Protects the logs of the operators of a test, and whether its end has looked at what nothing may show. Held for one change.
    search: Mutex<EndSearch>,
    /// The standard inputs of all that were started: the end of one takes the folder away.
    inputs: Vec<ChildStdin>,
}

/// What the end of a test searches.
#[derive(Default)]
struct EndSearch {
    logs: Vec<PathBuf>,
    is_done: bool,
}

/// The servers of objects. The third program only cleans up after them.
pub const SERVERS: [&str; 2] = ["etcd", "kube-apiserver"];

/// Copies a folder with all that is in it.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder can be made");
    for entry in fs::read_dir(from).expect("a folder can be read") {
        let entry = entry.expect("a folder can be read");
        let (path, to) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy(&path, &to);
        } else {
            fs::copy(&path, &to).expect("a file can be copied");
        }
    }
}

impl Kube {
    /// Servers with our kinds and with the rights that the chart gives to the operator, which serve already: those of an
    /// earlier test, with nothing of it left, or new ones.
    pub async fn shared(programs: &Programs, binary: &Binary) -> SharedKube {
        pool::take(programs, binary).await
    }

    /// Starts such servers for one test, which may kill them; answers when they serve.
    pub async fn start(programs: &Programs, binary: &Binary) -> Kube {
        Kube::start_with(programs, binary, &[]).await
    }

    /// Starts servers that write down what is asked of them, for [`Kube::writes`]; each request takes longer by that.
    pub async fn start_audited(programs: &Programs, binary: &Binary) -> Kube {
        Kube::start_with(programs, binary, &AUDITED.map(str::to_owned)).await
    }

    /// Starts servers that trust the tokens of another one for this audience, whose users are called `oidc:…` here.
    pub async fn start_trusting(programs: &Programs, binary: &Binary, issuer: &Kube, audience: &str) -> Kube {
        let flags = [
            format!("--oidc-issuer-url={}", issuer.address()),
            format!("--oidc-client-id={audience}"),
            format!("--oidc-ca-file={}", issuer.path(CERTIFICATE)),
            "--oidc-username-prefix=oidc:".to_owned(),
            "--oidc-signing-algs=ES256".to_owned(),
        ];
        Kube::start_with(programs, binary, &flags).await
    }

    async fn start_with(programs: &Programs, binary: &Binary, flags: &[String]) -> Kube {
        let folder = TempDir::new().expect("a temporary folder");
        let [etcd, peers, port] = free_ports();
        let key = KeyPair::generate().expect("a key");
        write(&folder, "service-accounts.key", &key.serialize_pem());
        write(&folder, "service-accounts.pub", &key.public_key_pem());
        let user = |name: &str, group: &str| format!("{name},{name},{name},{group}\n");
        let operators = OPERATOR.map(|name| user(name, OPERATORS)).concat();
        let tenants = TENANTS.map(|name| user(name, "tenants")).concat();
        write(&folder, "tokens.csv", &(user(ADMIN, "system:masters") + &operators + &tenants));
        write(&folder, "audit.yaml", AUDIT);
        let [etcd_name, api_name] = SERVERS;
        let mut kube = Kube {
            port,
            etcd,
            folder,
            servers: [(etcd_name, Vec::new()), (api_name, Vec::new())],
            processes: BTreeMap::new(),
            canaries: Canaries::begin(&format!("https://127.0.0.1:{port}")),
            search: Mutex::default(),
            inputs: Vec::new(),
        };
        kube.servers = [(etcd_name, kube.etcd(etcd, peers)), (api_name, [&kube.api_server(etcd), flags].concat())];
        kube.start_servers(programs);
        let objects = kube.ready().await;
        let definitions = binary.run(&["crd"]).await.stdout;
        for object in yaml::documents(&definitions).into_iter().chain(rights()) {
            objects.apply(&object).await;
        }
        kube.admits(&objects).await;
        // Only now: what the garbage collector does not find at its start it looks for half a minute later.
        write(&kube.folder, "admin.kubeconfig", &kube.kubeconfig());
        kube.start_controllers(programs);
        kube
    }

    /// Starts the controllers that clean up, which must not run.
    pub fn start_controllers(&mut self, programs: &Programs) {
        self.run(programs, "kube-controller-manager", &self.controllers());
    }

    /// Lets the operators ask for tokens of any service account, as the chart does with `targetAccounts: any`.
    pub async fn allow_any_target_account(&self) {
        let objects = Objects::of(self.kubeconfig()).await;
        for object in cluster_wide("any-target-account", &["any-target-account-rules"]) {
            objects.apply(&object).await;
        }
    }

    /// The folder of their files.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// For who may do everything.
    pub fn kubeconfig(&self) -> String {
        self.kubeconfig_of(ADMIN, objects::NAMESPACE)
    }

    /// For one of the two operators, in their namespace.
    pub fn kubeconfig_of_operator(&self, user: &str) -> String {
        self.kubeconfig_of(user, HOST_NAMESPACE)
    }

    /// Those of etcd and kube-apiserver.
    pub fn processes(&self) -> Vec<u32> {
        SERVERS.iter().filter_map(|program| self.processes.get(program)).map(Child::id).collect()
    }

    /// Whether no test has killed what serves.
    pub(crate) fn is_served(&self) -> bool {
        SERVERS.iter().all(|program| self.processes.contains_key(program))
    }

    /// Kills some of the servers as `kill -9` does, all of them before the first has ended.
    pub fn kill(&mut self, programs: &[&'static str]) {
        let mut killed: Vec<Child> = programs.iter().filter_map(|program| self.processes.remove(program)).collect();
        end(&mut killed);
    }

    /// Starts again those of [`SERVERS`] that do not run, over what they had stored; answers when they serve.
    pub async fn start_again(&mut self, programs: &Programs) {
        self.start_servers(programs);
        self.ready().await;
    }

    /// Keeps what etcd has stored, for [`Kube::restore`]. It must not run.
    pub fn back_up(&self) {
        copy(Path::new(&self.path(STORAGE)), Path::new(&self.path(BACKUP)));
    }

    /// Puts what etcd had stored then in the place of what it has now. It must not run.
    pub fn restore(&self) {
        fs::remove_dir_all(self.path(STORAGE)).expect("the storage is there");
        copy(Path::new(&self.path(BACKUP)), Path::new(&self.path(STORAGE)));
    }

    fn start_servers(&mut self, programs: &Programs) {
        for (program, arguments) in self.servers.clone() {
            if !self.processes.contains_key(program) {
                self.run(programs, program, &arguments);
            }
        }
    }

    /// Starts an operator as one of the two users, with these arguments, which has the mock deployer.
    pub fn operator(&self, binary: &Binary, user: &str, arguments: &[&str]) -> Running {
        self.plain_operator(binary, user, &[&["--mock-deployer"], arguments].concat())
    }

    /// The same with nothing but what `run` has by itself.
    pub fn plain_operator(&self, binary: &Binary, user: &str, arguments: &[&str]) -> Running {
        let kubeconfig = self.path(&format!("{user}.kubeconfig"));
        write(&self.folder, &format!("{user}.kubeconfig"), &self.kubeconfig_of_operator(user));
        let chosen = arguments.iter().any(|argument| argument.starts_with("--default-policy"));
        let policy: &[&str] = if chosen { &[] } else { &["--default-policy=compatible"] };
        let started = [&["run", "--kubeconfig", &kubeconfig], policy, arguments].concat();
        self.logging(binary.start_logging(&started))
    }

    /// An operator whose log is searched at the end (C-82).
    pub fn logging(&self, operator: Running) -> Running {
        self.search().logs.extend(operator.log_file().map(Path::to_owned));
        operator
    }

    fn search(&self) -> MutexGuard<'_, EndSearch> {
        self.search.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whoever has the operator of a test has searched for all that nothing may show.
    pub(crate) fn is_searched(&self) {
        self.search().is_done = true;
    }

    /// What an earlier test has applied is gone.
    fn begin_test(&self) {
        self.canaries.forget();
    }

    /// The end of a test: nothing shows a value of a Secret (C-82). One that fails already is not searched.
    fn end_test(&self) {
        let EndSearch { logs, is_done } = std::mem::take(&mut *self.search());
        if is_done || thread::panicking() {
            return;
        }
        let log = |path: &PathBuf| fs::read_to_string(path).unwrap_or_default();
        let log = |path| ShownText { what: "the log".to_owned(), text: log(path) };
        let mut texts: Vec<ShownText> = logs.iter().map(log).collect();
        if self.is_served() {
            texts.extend(published_at_the_end(self.kubeconfig(), &self.canaries));
        }
        self.canaries.check(&texts);
    }

    /// What a user has written so far, or tried to, in order: the verb, the kind's plural name, the object and the answer.
    /// Only of servers that were started to write it down.
    pub fn writes(&self, user: &str) -> Vec<String> {
        let log = fs::read_to_string(self.folder.path().join("audit.log")).expect("an audited server writes it");
        let events = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let text = |event: &Value, pointer: &str| {
            event.pointer(pointer).map(|value| value.to_string().replace('"', "")).unwrap_or_default()
        };
        let of_user = events.filter(|event| text(event, "/user/username") == user);
        let message = of_user.map(|event| {
            let of = ["/verb", "/objectRef/resource", "/objectRef/name", "/responseStatus/code"];
            of.map(|pointer| text(&event, pointer)).join(" ")
        });
        message.collect()
    }

    /// `https://…`
    pub fn address(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    /// The certificate that it shows, in base64.
    pub fn authority(&self) -> String {
        BASE64.encode(&fs::read(self.path(CERTIFICATE)).expect("it has a certificate"))
    }

    /// For a user, in a namespace.
    pub fn kubeconfig_of(&self, user: &str, namespace: &str) -> String {
        let cluster = json!({"server": self.address(), "certificate-authority-data": self.authority()});
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "kube", "cluster": cluster}],
            "users": [{"name": user, "user": {"token": user}}],
            "contexts": [{"name": "kube", "context": {"cluster": "kube", "user": user, "namespace": namespace}}],
            "current-context": "kube",
        });
        config.to_string()
    }

    fn run(&mut self, programs: &Programs, program: &'static str, arguments: &[String]) {
        let log = |mode: &str| {
            let file = self.folder.path().join(format!("{program}.{mode}"));
            fs::File::options().create(true).append(true).open(file).expect("a log")
        };
        // Its standard input is a pipe that ends with the process of the tests, whatever ends that.
        let started = Command::new("sh")
            .args(["-c", WITH_THE_TESTS])
            .arg(self.folder.path())
            .arg(programs.0.join(program))
            .args(arguments)
            .current_dir(self.folder.path())
            .stdin(Stdio::piped())
            .stdout(log("out"))
            .stderr(log("err"))
            .spawn();
        let mut started = started.expect("the program starts");
        // Whoever waits for a process closes its input before.
        self.inputs.extend(started.stdin.take());
        self.processes.insert(program, started);
    }

    /// Waits until the API server says that it is ready: nothing can be watched before.
    async fn ready(&mut self) -> Objects {
        let mut tries = interval(Duration::from_millis(100));
        let until = Instant::now() + DEADLINE;
        while Instant::now() < until && self.processes.values_mut().all(is_running) {
            tries.tick().await;
            if !Path::new(&self.path(CERTIFICATE)).exists() {
                continue;
            }
            let objects = Objects::of(self.kubeconfig()).await;
            let ready = Request::get("/readyz").body(Vec::new()).expect("a request");
            if objects.client().request_text(ready).await.is_ok() {
                return objects;
            }
        }
        let message = fs::read_to_string(self.folder.path().join("kube-apiserver.err")).unwrap_or_default();
        let last: Vec<&str> = message.lines().rev().take(20).collect();
        fail(&format!("kube-apiserver does not serve; the last lines first:\n{}", last.join("\n")))
    }

    /// Waits until what must not be is refused: a policy takes effect some time after it is there, and nothing tells when.
    async fn admits(&mut self, objects: &Objects) {
        // That of Targets is the last one of `orangery crd`.
        let both = json!({"type": "a", "config": {}, "secretRef": {"name": "a"}});
        let target = json!({"apiVersion": API, "kind": "Target", "metadata": {"name": "a"}, "spec": both});
        let mut tries = interval(Duration::from_millis(100));
        let until = Instant::now() + DEADLINE;
        while !objects.is_refused(&target).await {
            assert!(Instant::now() < until, "the policies do not take effect");
            tries.tick().await;
        }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_string_lossy().into_owned()
    }

    fn etcd(&self, port: u16, peers: u16) -> Vec<String> {
        let (clients, peers) = (loopback(port), loopback(peers));
        vec![
            format!("--data-dir={}", self.path(STORAGE)),
            format!("--listen-client-urls={clients}"),
            format!("--advertise-client-urls={clients}"),
            format!("--listen-peer-urls={peers}"),
            format!("--initial-advertise-peer-urls={peers}"),
            format!("--initial-cluster=default={peers}"),
            "--log-level=error".to_owned(),
            // Nobody reads its files after the test.
            "--unsafe-no-fsync".to_owned(),
        ]
    }

    fn api_server(&self, etcd: u16) -> Vec<String> {
        let issuer = self.address();
        vec![
            format!("--etcd-servers={}", loopback(etcd)),
            "--bind-address=127.0.0.1".to_owned(),
            "--advertise-address=127.0.0.1".to_owned(),
            format!("--secure-port={}", self.port),
            format!("--cert-dir={}", self.path("certificates")),
            format!("--token-auth-file={}", self.path("tokens.csv")),
            "--authorization-mode=RBAC".to_owned(),
            format!("--service-account-key-file={}", self.path("service-accounts.pub")),
            format!("--service-account-signing-key-file={}", self.path("service-accounts.key")),
            format!("--service-account-issuer={issuer}"),
            format!("--api-audiences={issuer}"),
            "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
            // There is nobody who makes the service accounts of new namespaces.
            "--disable-admission-plugins=ServiceAccount".to_owned(),
            "--endpoint-reconciler-type=none".to_owned(),
        ]
    }

    fn controllers(&self) -> Vec<String> {
        vec![
            format!("--kubeconfig={}", self.path("admin.kubeconfig")),
            "--leader-elect=false".to_owned(),
            "--secure-port=0".to_owned(),
            "--controllers=garbage-collector-controller,namespace-controller".to_owned(),
        ]
    }
}

/// Runs a program in the process of the shell; kills it, and takes its folder away, when the standard input ends.
const WITH_THE_TESTS: &str =
    r#"exec 3<&0; (cat <&3; kill -9 $$; rm -rf "$0") >/dev/null 2>&1 & exec "$@" </dev/null 3<&-"#;

impl Drop for Kube {
    fn drop(&mut self) {
        self.end_test();
        end(self.processes.values_mut());
    }
}

/// Kills processes, all of them before the first has ended.
fn end<'p>(processes: impl IntoIterator<Item = &'p mut Child>) {
    let mut processes: Vec<&mut Child> = processes.into_iter().collect();
    // One that has ended by itself cannot be killed, and is waited for all the same.
    for process in &mut processes {
        let _ = process.kill();
    }
    for process in &mut processes {
        process.wait().expect("a killed process ends");
    }
}

fn is_running(process: &mut Child) -> bool {
    matches!(process.try_wait(), Ok(None))
}

fn loopback(port: u16) -> String {
    format!("http://127.0.0.1:{port}")
}

fn write(folder: &TempDir, name: &str, content: &str) {
    fs::write(folder.path().join(name), content).expect("a file of the servers");
}

/// Ports that nobody uses now, below those that the system gives to connections: they stay free until they are bound.
fn free_ports<const COUNT: usize>() -> [u16; COUNT] {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let mut next = || {
        let number = process::id().wrapping_mul(61).wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        10_000 + u16::try_from(number % 20_000).unwrap_or_default()
    };
    [(); COUNT].map(|()| {
        let free = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
        std::iter::repeat_with(&mut next).find(free).expect("a free port")
    })
}

/// The namespace of the host, and the rights that the chart gives it.
fn rights() -> Vec<Value> {
    let (api, version, subjects) = (RBAC, format!("{RBAC}/v1"), operators());
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOST_NAMESPACE}});
    let [role, binding] = cluster_wide(OPERATORS, &["rules", "cluster-rules", "policy-rules", "metrics-rules"]);
    vec![
        namespace,
        role,
        binding,
        json!({
            "apiVersion": version,
            "kind": "Role",
            "metadata": {"name": OPERATORS, "namespace": HOST_NAMESPACE},
            "rules": rules(&["own-namespace-rules"]),
        }),
        json!({
            "apiVersion": version,
            "kind": "RoleBinding",
            "metadata": {"name": OPERATORS, "namespace": HOST_NAMESPACE},
            "roleRef": {"apiGroup": api, "kind": "Role", "name": OPERATORS},
            "subjects": subjects,
        }),
    ]
}

/// The operators, as subjects of a binding.
fn operators() -> Value {
    json!([{"apiGroup": RBAC, "kind": "Group", "name": OPERATORS}])
}

/// What the operators may do everywhere: rules in files of the chart.
fn cluster_wide(name: &str, files: &[&str]) -> [Value; 2] {
    let version = format!("{RBAC}/v1");
    [
        json!({"apiVersion": version, "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules(files)}),
        json!({
            "apiVersion": version,
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": name},
            "subjects": operators(),
        }),
    ]
}

/// The rules in files of the chart.
fn rules(names: &[&str]) -> Vec<Value> {
    let files = names.iter().map(|name| repository().join(format!("charts/orangery/files/{name}.yaml")));
    let lists = files.flat_map(|file| yaml::read(&file));
    lists.flat_map(|list| list.as_array().cloned().unwrap_or_default()).collect()
}
