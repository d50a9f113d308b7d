//! What is compiled, loaded and kept, and for whom.

use std::{fs, path::Path};

use orangery_core::{
    digest,
    error::Fault,
    name::Namespace,
    port::{BoxFuture, LendableSlot},
};
use orangery_ocm::{Artifact, LayerFuture};
use orangery_turns::in_slot;
use tokio::sync::watch;

use super::{
    load::{LONGEST_READ, LONGEST_ROOM, MOST_CODE_OF_ONE},
    *,
};
use crate::{
    bundled::BundledTerms,
    component::{CallPlace, Component, UncheckedCode},
    inspect,
    meter::MemorySource as _,
    plugin::Plugin,
    registration::{ReadBytes, StoredBytes},
    worker::CompiledCode,
};

#[test]
fn c_88_as_many_large_calls_run_at_once_as_have_memory() {
    let rooms = [(64, 1 << 30), (64, 512 << 20), (64, 96 << 20), (8, 1 << 30), (1, 1 << 30)];
    assert_eq!(rooms.map(|(calls, memory)| large_rooms(calls, memory)), [8, 4, 1, 1, 1]);
}

/// What is compiled, in its order, where one namespace has four components in its blueprints and another has one. The
/// first takes as long as the registered component where both are compiled at once.
async fn compiled(compilers: usize) -> String {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let waits = "n=0; until /bin/grep -q registered $0 || [ $n = 500 ]; do n=$((n+1)); /bin/sleep 0.01; done";
    let script = format!("t=$(/bin/cat); if [ \"$t\" = first ]; then {waits}; fi; echo $t >> $0");
    let args = vec!["-c".into(), script.into(), log.clone().into()];
    let worker = WorkerCommand { program: "/bin/sh".into(), args };
    let sandbox = Sandbox::start(SandboxConfig { compilers, ..SandboxConfig::new(worker, None) }).unwrap();
    let (greedy, other) = (Some(Namespace::from_static("greedy")), Some(Namespace::from_static("other")));
    let first = if compilers == 1 { "only" } else { "first" };
    let of_blueprints = [(&greedy, first), (&greedy, "2"), (&greedy, "3"), (&greedy, "4"), (&other, "other")];
    let compile = async |of_origin: &OriginCompiler, tenant: &Tenant, text: &str| {
        let _turn = of_origin.compiling.acquire(&of_origin.origin.whose(tenant)).await;
        sandbox.compile(of_origin, tenant, "a component", text.as_bytes()).await
    };
    let of_blueprints = of_blueprints.map(|(tenant, text)| compile(&sandbox.own, tenant, text));
    let registered = compile(&sandbox.registered, &greedy, "registered");
    let (of_blueprints, registered) = futures::join!(futures::future::join_all(of_blueprints), registered);
    assert!(of_blueprints.iter().chain([&registered]).all(Result::is_ok));
    fs::read_to_string(log).unwrap().lines().collect::<Vec<_>>().join(" ")
}

#[tokio::test]
async fn c_43_a_namespace_waits_for_one_compilation_of_another_and_a_registered_component_for_at_most_one() {
    assert_eq!(compiled(1).await, "only registered other 2 3 4");
    assert_eq!(compiled(2).await, "registered first other 2 3 4");
}

#[tokio::test]
async fn c_43_a_registered_component_waits_for_no_place_of_the_namespace_that_asked_first() {
    let worker = WorkerCommand { program: "/bin/sh".into(), args: vec!["-c".into(), "exit 1".into()] };
    let sandbox = Sandbox::start(SandboxConfig { memory: 0, ..SandboxConfig::new(worker, None) }).unwrap();
    let greedy = Some(Namespace::from_static("greedy"));
    let empty = b"\0asm\x0d\0\x01\0";
    let budget = Budget::default();
    let code = || {
        let code = CompiledCode::new("sha256:0", Vec::new(), b"").unwrap();
        UncheckedCode::Worker(Arc::new(code))
    };
    let load = |origin| sandbox.link(origin, &greedy, &budget, inspect::inspect(empty).unwrap(), code());
    // As many as one namespace gets of four.
    let held = [sandbox.workers.place(&greedy).await, sandbox.workers.place(&greedy).await];
    let mut own = Box::pin(load(ComponentOrigin::Blueprint));
    assert!(futures::poll!(&mut own).is_pending());
    let registered = load(ComponentOrigin::Registered).await;
    assert!(matches!(registered, Err(Error::WorkerStart { .. })), "it did not wait");
    assert!(futures::poll!(&mut own).is_pending());
    drop(held);
    assert!(matches!(own.await, Err(Error::WorkerStart { .. })));
}

/// A component that two namespaces ask for at once is compiled once, by whichever has its turn first; and one whose compiler was
/// killed is not compiled again when it is next asked for.
#[tokio::test]
async fn c_134_what_was_compiled_or_could_not_be_is_not_compiled_again_for_the_next_call() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let script = "t=$(/bin/cat); echo $t >> $0; if [ \"$t\" = killed ]; then kill -KILL $$; fi; echo code";
    let worker =
        WorkerCommand { program: "/bin/sh".into(), args: vec!["-c".into(), script.into(), log.clone().into()] };
    let sandbox = Sandbox::start(SandboxConfig::new(worker, None)).unwrap();
    let (a, b) = (Some(Namespace::from_static("a")), Some(Namespace::from_static("b")));
    let who = PluginIdentity { name: "it".into(), version: "1".into(), digest: String::new(), is_pinned: true };
    let inspection = inspect::inspect(b"\0asm\x0d\0\x01\0").unwrap();
    let (slot, budget) = (Slot::default(), Budget::default());
    let compiled = async |tenant: &Option<Namespace>, text: &str, digest: &str| {
        let bytes = StoredBytes::Plain(Arc::new(text.into()));
        let asked = AskedComponent {
            slot: &slot,
            origin: ComponentOrigin::Blueprint,
            tenant,
            identity: &who,
            budget: &budget,
            bytes: &bytes,
        };
        let inspection = inspect::Inspection { digest: digest.to_owned(), ..inspection.clone() };
        let ended = slot.get_or_load(tenant, async || {
            let ended = sandbox.compiled(asked, &inspection, false).await;
            Err(ended.err().unwrap_or(Error::Busy { what: "end" }))
        });
        ended.await.err().unwrap().to_string()
    };
    let usable = "the host has no end left for another call; it is made again when there is";
    let both = futures::join!(compiled(&a, "usable", "sha256:aa"), compiled(&b, "usable", "sha256:aa"));
    assert_eq!(both, (usable.to_owned(), usable.to_owned()));
    let both = futures::join!(compiled(&a, "killed", "sha256:bb"), compiled(&b, "killed", "sha256:bb"));
    assert!(both.0.starts_with("the compiler of the component was killed") && both.0 == both.1, "{both:?}");
    assert_eq!(compiled(&b, "killed", "sha256:bb").await, both.0);
    assert_eq!(fs::read_to_string(&log).unwrap(), "usable\nkilled\n");
    tokio::time::pause();
    tokio::time::advance(std::time::Duration::from_secs(5 * 60)).await;
    tokio::time::resume();
    assert!(compiled(&b, "killed", "sha256:bb").await.contains("later than 10 min"));
    assert_eq!(fs::read_to_string(&log).unwrap(), "usable\nkilled\nkilled\n");
}

#[test]
fn c_263_with_the_last_of_a_version_goes_what_is_kept_of_it() {
    let worker = WorkerCommand { program: "/nowhere".into(), args: vec![] };
    let sandbox = Sandbox::start(SandboxConfig::new(worker, None)).unwrap();
    let slot = |digest: &str| sandbox.slot(ComponentOrigin::Registered, digest);
    let (old, again) = (slot("old"), slot("old"));
    assert!(Arc::ptr_eq(&old, &again));
    drop((old, again));
    let new = slot("new");
    assert_eq!(sandbox.components.lock().unwrap().len(), 1);
    assert!(Arc::ptr_eq(&slot("new"), &new));
}

#[test]
fn the_version_of_the_engine_is_the_locked_one() {
    let lock = include_str!("../../../../Cargo.lock");
    assert!(lock.contains(&format!("name = \"wasmtime\"\nversion = \"{WASMTIME_VERSION}\"\n")));
}

#[tokio::test]
async fn limits_components_so_much_code_of_blueprints_is_kept_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let worker = WorkerCommand { program: "/nowhere".into(), args: vec![] };
    let sandbox = Sandbox::start(SandboxConfig::new(worker, Some(folder.path().join("cache")))).unwrap();
    let cache = sandbox.own.cache.as_ref().unwrap();
    let put = |digest: &str, length: u64, age: u64| {
        cache.put(digest, &None, b"").unwrap();
        // A hole takes no room on the disk.
        let file = fs::File::options().write(true).open(cache.file(digest)).unwrap();
        file.set_len(length).unwrap();
        let now = file.metadata().unwrap().modified().unwrap();
        file.set_modified(now - std::time::Duration::from_secs(age)).unwrap();
    };
    put("sha256:aa", MOST_OF_BLUEPRINTS - 1, 200);
    put("sha256:bb", 1, 100);
    put("sha256:cc", 0, 50);
    assert!(cache.file("sha256:aa").exists(), "so much stays");
    cache.put("sha256:dd", &None, b"x").unwrap();
    let there = ["aa", "bb", "cc"].map(|name| cache.file(&format!("sha256:{name}")).exists());
    assert_eq!(there, [false, true, true], "a byte more does not");
}

/// A component of a blueprint that tells how often it was read, and whether its bytes are still in memory.
struct CountedComponent {
    digest: String,
    bytes: Option<Vec<u8>>,
    read: Mutex<Vec<Weak<Vec<u8>>>>,
}

impl CountedComponent {
    fn new(bytes: &[u8]) -> Self {
        Self { digest: digest::sha256(bytes), bytes: Some(bytes.to_vec()), read: Mutex::default() }
    }

    /// How often it was read, and how often of these it is in memory.
    fn read(&self) -> (usize, usize) {
        let read = self.read.lock().unwrap();
        (read.len(), read.iter().filter(|bytes| bytes.strong_count() > 0).count())
    }
}

impl Artifact for CountedComponent {
    fn digest(&self) -> &str {
        &self.digest
    }

    fn media_type(&self) -> &str {
        unreachable!("it is a component")
    }

    fn size(&self) -> u64 {
        self.bytes.as_ref().map_or(1, Vec::len) as u64
    }

    fn content(&self) -> BoxFuture<'_, Result<Arc<Vec<u8>>, Fault>> {
        let bytes = self.bytes.clone().map(Arc::new).ok_or_else(|| Fault::denied("it is not for you"));
        if let Ok(bytes) = &bytes {
            self.read.lock().unwrap().push(Arc::downgrade(bytes));
        }
        Box::pin(async { bytes })
    }

    fn layer<'a>(&'a self, _: &'a str) -> LayerFuture<'a> {
        unreachable!("it is a component")
    }
}

/// A component that exports the templates of the contract, and has so many bytes of a section of its own.
fn component(bytes: u8) -> Vec<u8> {
    let name = b"orangery:template/template@0.1.0";
    let export = [&[1, 0, name.len() as u8][..], name, &[5, 0, 0]].concat();
    let (of_exports, own) = ([11, export.len() as u8], [0, bytes + 1, 0]);
    [&b"\0asm\x0d\0\x01\0"[..], &of_exports, &export, &own, &vec![bytes; bytes.into()]].concat()
}

/// Loads components whose compiler answers a word, which is no code, and for which no process makes calls.
fn compiling(cache: &Path) -> Arc<Sandbox> {
    let args = vec!["-c".into(), r#"[ "$0" = compile-worker ] || exit 1; /bin/cat > /dev/null; echo code"#.into()];
    let worker = WorkerCommand { program: "/bin/sh".into(), args };
    let config = SandboxConfig { compilers: 1, ..SandboxConfig::new(worker, Some(cache.to_path_buf())) };
    Sandbox::start(config).unwrap()
}

async fn load(sandbox: &Sandbox, tenant: &Tenant, component: &CountedComponent) -> String {
    let digest = component.digest.clone();
    let identity = PluginIdentity { name: "it".into(), version: "1".into(), digest, is_pinned: true };
    let (identity, budget) = (&identity, &Budget::default());
    let loaded = sandbox.load_bundled(BundledComponent { tenant, identity, budget, content: component }).await;
    loaded.err().expect("it is no code").to_string()
}

#[tokio::test]
async fn c_302_those_that_wait_for_the_compiler_have_neither_bytes_nor_code_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    let sandbox = compiling(&folder.path().join("cache"));
    let (tenant, components) =
        (Some(Namespace::from_static("a")), [1, 2, 3].map(|one| CountedComponent::new(&component(one))));
    let busy = sandbox.own.compiling.acquire(&None).await;
    let mut loads: Vec<_> = components.iter().map(|component| Box::pin(load(&sandbox, &tenant, component))).collect();
    for load in &mut loads {
        assert!(futures::poll!(load).is_pending());
    }
    assert_eq!([0, 1, 2].map(|one| components[one].read()), [(1, 0); 3], "each is fetched before it waits");
    assert_eq!(sandbox.of_blueprints.taken(), 0);
    drop(busy);
    for ended in futures::future::join_all(loads).await {
        assert!(ended.contains("process for the component's calls did not start"), "{ended}");
    }
    assert_eq!([0, 1, 2].map(|one| components[one].read()), [(3, 0); 3], "to be fetched, compiled and loaded");
    assert_eq!(sandbox.of_blueprints.taken(), 0);
}

#[tokio::test]
async fn c_302_a_namespace_loads_what_has_room_beside_what_it_has_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let sandbox = compiling(&folder.path().join("cache"));
    let (greedy, other) = (Some(Namespace::from_static("greedy")), Some(Namespace::from_static("other")));
    let component = CountedComponent::new(&component(1));
    sandbox.own.cache.as_ref().unwrap().put(&component.digest, &greedy, b"code").unwrap();
    let share = &sandbox.of_blueprints;
    assert_eq!(share.most_of_one(), sandbox.memory.total() as u64 / 8 * 3, "half of three quarters");
    let held = share.acquire(&greedy, share.most_of_one()).await;
    let mut waits = Box::pin(load(&sandbox, &greedy, &component));
    assert!(futures::poll!(&mut waits).is_pending());
    assert_eq!(component.read(), (0, 0), "it is not read while there is no room for it");
    assert!(load(&sandbox, &other, &component).await.contains("did not start"));
    drop(held);
    assert!(waits.await.contains("did not start"));
    assert_eq!((share.taken(), sandbox.memory.used()), (0, 0));
    assert!(sandbox.memory.take(sandbox.memory.total()));
    assert_eq!(load(&sandbox, &other, &component).await, Error::Busy { what: "memory" }.to_string());
}

#[tokio::test]
async fn c_302_a_loaded_component_is_called_with_the_right_to_read_it() {
    let folder = tempfile::tempdir().unwrap();
    let sandbox = compiling(&folder.path().join("cache"));
    let (tenant, known) = (Some(Namespace::from_static("a")), CountedComponent::new(b"no component"));
    let what_is_known = load(&sandbox, &tenant, &known).await;
    assert!(what_is_known.starts_with("the file is not a WebAssembly component"), "{what_is_known}");
    assert!(sandbox.recent.knows(&known.digest));
    let denied = CountedComponent { bytes: None, digest: known.digest.clone(), read: Mutex::default() };
    assert_eq!(load(&sandbox, &tenant, &denied).await, "it is not for you");
    assert_eq!(load(&sandbox, &tenant, &known).await, what_is_known);
    assert_eq!(known.read(), (4, 0), "to be fetched, compiled and loaded, and once more");
}

#[tokio::test]
async fn c_302_limits_components_of_a_blueprint_have_so_much_code() {
    let identity = PluginIdentity { name: "it".into(), version: "1".into(), digest: String::new(), is_pinned: true };
    let compiled = async |bytes: u64| {
        let script = format!("/bin/cat > /dev/null; /usr/bin/head -c {bytes} /dev/zero");
        let worker = WorkerCommand { program: "/bin/sh".into(), args: vec!["-c".into(), script.into()] };
        let sandbox = Sandbox::start(SandboxConfig::new(worker, None)).unwrap();
        let bytes = ReadBytes::Plain(Arc::default());
        let compiled = sandbox.compile_and_keep(&sandbox.own, (&None, &identity), "sha256:aa", bytes).await;
        compiled.map(|code| code.len() as u64).map_err(|error| error.to_string())
    };
    assert_eq!(compiled(MOST_CODE_OF_ONE).await, Ok(MOST_CODE_OF_ONE));
    let refused = "compiling the component was stopped: it needs more than 128 MiB of code; make it smaller";
    assert_eq!(compiled(MOST_CODE_OF_ONE + 1).await, Err(refused.to_owned()));
}

/// A component whose server does not answer, once the compiler or memory is there for it.
struct DrippingComponent<'a> {
    component: CountedComponent,
    /// How often it answers.
    answers: usize,
    sandbox: &'a Sandbox,
    /// What components of blueprints held whenever it did not answer.
    held: Mutex<Vec<u64>>,
}

impl Artifact for DrippingComponent<'_> {
    fn digest(&self) -> &str {
        self.component.digest()
    }

    fn media_type(&self) -> &str {
        self.component.media_type()
    }

    fn size(&self) -> u64 {
        self.component.size()
    }

    fn content(&self) -> BoxFuture<'_, Result<Arc<Vec<u8>>, Fault>> {
        if self.component.read().0 < self.answers {
            return self.component.content();
        }
        self.held.lock().unwrap().push(self.sandbox.of_blueprints.taken());
        Box::pin(std::future::pending())
    }

    fn layer<'a>(&'a self, media_type: &'a str) -> LayerFuture<'a> {
        self.component.layer(media_type)
    }
}

#[tokio::test(start_paused = true)]
async fn c_302_limits_components_memory_waits_for_no_server() {
    let folder = tempfile::tempdir().unwrap();
    let sandbox = compiling(&folder.path().join("cache"));
    let dripping = |answers: usize| DrippingComponent {
        component: CountedComponent::new(&component(1)),
        answers,
        sandbox: &sandbox,
        held: Mutex::default(),
    };
    let digest = digest::sha256(&component(1));
    let identity = PluginIdentity { name: "it".into(), version: "1".into(), digest, is_pinned: true };
    let (identity, budget, tenant) = (&identity, &Budget::default(), &None);
    let load = async |content: &DrippingComponent<'_>| {
        let asked = BundledComponent { tenant, identity, budget, content };
        tokio::time::timeout(3 * LONGEST_READ, sandbox.load_bundled(asked))
            .await
            .map(|loaded| loaded.err().map(|error| error.to_string()))
    };
    let busy = Some(Error::Busy { what: "memory" }.to_string());
    // It was fetched, and is not there any more when it has the turn of the compiler.
    assert_eq!(load(&dripping(1)).await, Ok(busy));
    assert_eq!(sandbox.own.compiling.taken(), 0);
    sandbox.own.cache.as_ref().unwrap().put(&identity.digest, tenant, b"code").unwrap();
    let slow = dripping(0);
    assert!(load(&slow).await.is_err(), "it is waited for");
    let held = slow.held.lock().unwrap().iter().map(|held| *held > 0).collect::<Vec<_>>();
    assert_eq!(held, [true, false], "with memory for a while, and then without");
    assert_eq!(sandbox.of_blueprints.taken(), 0);
}

#[tokio::test]
async fn c_302_a_component_is_compiled_once_whatever_digest_its_registry_has() {
    let folder = tempfile::tempdir().unwrap();
    let sandbox = compiling(&folder.path().join("cache"));
    let component =
        CountedComponent { digest: format!("sha512:{}", "0".repeat(128)), ..CountedComponent::new(&component(1)) };
    assert!(load(&sandbox, &None, &component).await.contains("did not start"));
    assert!(sandbox.own.cache.as_ref().unwrap().size(&digest::sha256(&super::tests::component(1))).is_some());
    assert_eq!(
        fs::read_dir(folder.path().join("cache/of-blueprints/compiled")).unwrap().count(),
        2,
        "code and its seal"
    );
}

/// How often a call lends its slot at the moment.
struct CountedSlot(watch::Sender<usize>);

impl LendableSlot for CountedSlot {
    fn lend(&self) {
        self.0.send_modify(|lent| *lent += 1);
    }

    fn take_back(&self) {
        self.0.send_modify(|lent| *lent -= 1);
    }
}

/// What waits in a call until its slot is lent, and is given up then.
async fn until_lent<T>(wait: impl Future<Output = T>) {
    let lent = watch::Sender::new(0);
    let mut told = lent.subscribe();
    tokio::select! {
        _ = in_slot(Arc::new(CountedSlot(lent)), wait) => unreachable!("nothing has room"),
        () = async { drop(told.wait_for(|lent| *lent == 1).await.unwrap()) } => {}
    }
}

#[tokio::test(start_paused = true)]
async fn c_43_a_call_that_waits_for_its_turn_lends_its_slot() {
    let folder = tempfile::tempdir().unwrap();
    let sandbox = compiling(&folder.path().join("cache"));
    let who = PluginIdentity { name: "it".into(), version: "1".into(), digest: String::new(), is_pinned: true };
    let [a, b, c] = ["a", "b", "c"].map(|name| Some(Namespace::from_static(name)));
    let large = Budget { memory_mib: LARGE_MEMORY_MIB, ..Budget::default() };
    let mut rooms = Vec::new();
    for tenant in [&a, &b, &c].into_iter().cycle().take(64) {
        let mut room = Box::pin(sandbox.enter(tenant, &who, &large));
        if let std::task::Poll::Ready(room) = futures::poll!(&mut room) {
            rooms.push(room.unwrap());
        }
    }
    until_lent(sandbox.enter(&a, &who, &large)).await;
    let mut places = Vec::new();
    loop {
        let mut place = Box::pin(sandbox.workers.place(&a));
        match futures::poll!(&mut place) {
            std::task::Poll::Ready(place) => places.push(place),
            std::task::Poll::Pending => break,
        }
    }
    until_lent(sandbox.workers.place(&a)).await;
    let component = CountedComponent::new(&component(1));
    let digest = component.digest.clone();
    let identity = PluginIdentity { digest, ..who };
    let asked = BundledComponent { tenant: &a, identity: &identity, budget: &Budget::default(), content: &component };
    let of_compiler = sandbox.own.compiling.acquire(&b).await;
    until_lent(sandbox.load_bundled(asked)).await;
    drop(of_compiler);
    let shared = sandbox.compilers.acquire(&b).await;
    until_lent(sandbox.load_bundled(asked)).await;
    drop(shared);
    let some = sandbox.of_blueprints.acquire(&b, 1).await;
    until_lent(sandbox.bundled_memory(&a, u64::MAX)).await;
    drop(some);
}

#[tokio::test(start_paused = true)]
async fn c_302_limits_components_memory_waits_so_long_for_the_turn_of_a_call() {
    let folder = tempfile::tempdir().unwrap();
    let sandbox = compiling(&folder.path().join("cache"));
    let code = Arc::new(CompiledCode::new("sha256:0", Vec::new(), b"").unwrap());
    let inspection = inspect::inspect(&component(1)).unwrap();
    let component = Arc::new(Component { inspection, code: 0, place: CallPlace::Worker(code) });
    let never = || std::future::pending::<Result<(), Error>>();
    let memory = Some(sandbox.bundled_memory(&None, 1).await.unwrap());
    let held = HeldComponent { component: Arc::clone(&component), memory };
    let begun = tokio::time::Instant::now();
    assert_eq!(held.waited_for(never()).await.unwrap_err().to_string(), Error::Busy { what: "room" }.to_string());
    assert_eq!(begun.elapsed(), LONGEST_ROOM);
    let registered = HeldComponent::registered(component);
    assert!(tokio::time::timeout(100 * LONGEST_ROOM, registered.waited_for(never())).await.is_err());
}

/// Whoever has blueprints chooses what they bring along, and whoever installs Plugins their names.
#[tokio::test]
async fn c_390_components_of_blueprints_are_counted_together_and_a_hundred_others_apart() {
    let folder = tempfile::tempdir().unwrap();
    let sandbox = compiling(&folder.path().join("cache"));
    let (component, terms) = (Arc::new(CountedComponent::new(&component(1))), BundledTerms::default());
    for number in 0..10_000 {
        drop(Plugin::of_blueprint(&format!("engine-{number}"), component.clone(), &terms, sandbox.clone()));
    }
    let names = || sandbox.figures().calls.into_iter().map(|(name, _)| name.to_string()).collect::<Vec<_>>();
    assert_eq!(names(), ["of-blueprint"]);
    for number in 0..10_000 {
        sandbox.call_figures().of(&format!("plugin-{number}"));
    }
    assert_eq!(names().len(), orangery_figures::MOST_NAMES + 1);
    assert!(names().contains(&"other".to_owned()) && !names().contains(&"plugin-5000".to_owned()));
}
