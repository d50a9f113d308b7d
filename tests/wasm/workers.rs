//! The processes that make calls: what they can reach, and what it costs when one of them dies.

use std::{
    fs,
    os::{
        fd::OwnedFd,
        unix::{ffi::OsStrExt, net::UnixStream},
    },
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use orangery_core::{error::Fault, name::Namespace};
use orangery_plugin::{
    CallIsolation, Error, Occupancy, Plugin, Registered, Sandbox, SandboxConfig, WorkerCommand, unpack,
};
use orangery_proposal::{Item, Proposal, deployer::Reads};
use orangery_tests::empty::Empty;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::{
    compiler_process::status,
    in_workers::fixtures::{bytes, cache, deployer_of, ended, item, plan, worker},
};

/// A sandbox whose processes can be told from those of others: by a word on their command line.
pub(crate) struct MarkedSandbox {
    pub(crate) sandbox: Arc<Sandbox>,
    mark: String,
}

/// A sandbox whose workers have these further arguments.
pub(crate) fn marked(arguments: &[&str], isolation: CallIsolation, memory: usize) -> MarkedSandbox {
    static LAST: AtomicU32 = AtomicU32::new(0);
    let mark = format!("mark-{}-{}", std::process::id(), LAST.fetch_add(1, Ordering::Relaxed));
    let WorkerCommand { program, .. } = worker();
    let args = arguments.iter().copied().chain([mark.as_str()]).map(Into::into).collect();
    let config = SandboxConfig::new(WorkerCommand { program, args }, Some(cache()));
    MarkedSandbox { sandbox: Sandbox::start(SandboxConfig { isolation, memory, ..config }).unwrap(), mark }
}

impl MarkedSandbox {
    /// The processes that call for it.
    pub(crate) fn workers(&self) -> Vec<u32> {
        let processes =
            fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
        let is_of_it = |process: &u32| {
            let line = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
            let words: Vec<_> = line.split(|byte| *byte == 0).collect();
            words.contains(&self.mark.as_bytes()) && words.contains(&"call-worker".as_bytes())
        };
        processes.filter(is_of_it).collect()
    }

    async fn until_workers_are(&self, number: usize) -> Vec<u32> {
        let begin = Instant::now();
        loop {
            let found = self.workers();
            if found.len() == number {
                return found;
            }
            assert!(begin.elapsed() < Duration::from_secs(30), "there are {found:?}");
            tokio::task::yield_now().await;
        }
    }
}

const MEMORY: usize = 1 << 30;

fn signal(process: u32, signal: Signal) {
    kill_process(Pid::from_raw(process as i32).unwrap(), signal).unwrap();
}

/// How many filters of system calls the process has.
fn filters(process: u32) -> u32 {
    status(process, "Seccomp_filters").parse().unwrap()
}

async fn plan_in(plugin: &Plugin, namespace: &'static str) -> Result<Result<Proposal, Fault>, Arc<Error>> {
    let item = Item { namespace: Namespace::from_static(namespace), ..item() };
    plugin.plan(&item, Reads::of_clusters(Arc::new(Empty))).await
}

#[tokio::test]
async fn c_70_a_worker_has_nothing_of_its_host_and_reaches_nothing() {
    let marked = marked(&[], CallIsolation::All, MEMORY);
    let answers = deployer_of(marked.sandbox.clone(), "answers", bytes("answers"), json!({}));
    plan(&answers).await.unwrap().unwrap();
    let [process] = marked.workers()[..] else { panic!("{:?}", marked.workers()) };
    assert_eq!(fs::read(format!("/proc/{process}/environ")).unwrap(), b"MIMALLOC_ARENA_EAGER_COMMIT=0\0");
    let of = |descriptor: fs::DirEntry| fs::read_link(descriptor.path()).unwrap();
    let open = fs::read_dir(format!("/proc/{process}/fd")).unwrap().map(|entry| of(entry.unwrap()));
    let kinds = open.map(|target| {
        let target = String::from_utf8_lossy(target.as_os_str().as_bytes()).into_owned();
        let kind = target.split(':').next().unwrap().to_owned();
        if target.contains("orangery-component") {
            "code".to_owned()
        } else {
            kind.replace(&process.to_string(), "PID")
        }
    });
    let kinds: std::collections::BTreeSet<_> = kinds.collect();
    // The socket to the host, the pipe for last words, the code, and which pages of its own were written.
    let expected = ["/proc/PID/pagemap", "code", "pipe", "socket"].map(str::to_owned);
    assert!(kinds.iter().all(|kind| expected.contains(kind)), "{kinds:?}");
    assert_eq!(status(process, "NoNewPrivs"), "1");
    assert_eq!(filters(process), filters(std::process::id()) + 2);
    assert_eq!(fs::read_to_string(format!("/proc/{process}/oom_score_adj")).unwrap().trim(), "1000");
    let limits = fs::read_to_string(format!("/proc/{process}/limits")).unwrap();
    let limit = |name: &str| limits.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next());
    let found = ["Max core file size", "Max file size", "Max open files", "Max cpu time"].map(limit);
    assert_eq!(found, [Some("0"), Some("0"), Some("3"), Some("602")]);
    let data: u64 = limit("Max data size").unwrap().parse().unwrap();
    assert!(data < 512 << 20, "{data} bytes for a component that is allowed 64 MiB");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_70_a_worker_that_is_killed_costs_its_call_and_the_next_one_gets_another() {
    let marked = marked(&[], CallIsolation::All, MEMORY);
    let waits =
        Arc::new(deployer_of(marked.sandbox.clone(), "waits", bytes("waits"), json!({"wallMilliseconds": 10_000})));
    let answers = deployer_of(marked.sandbox.clone(), "answers", bytes("answers"), json!({}));
    let expected = plan_in(&answers, "neighbour").await.unwrap().unwrap();
    let [neighbour] = marked.workers()[..] else { panic!("{:?}", marked.workers()) };
    let mut killed = 0;
    while killed < 3 {
        let call = tokio::spawn({
            let waits = waits.clone();
            async move { plan(&waits).await }
        });
        while marked.sandbox.occupancy().calls < 1 {
            tokio::task::yield_now().await;
        }
        let both = marked.until_workers_are(2).await;
        let victim = *both.iter().find(|process| **process != neighbour).unwrap();
        // It is confined when it has loaded the code; the call comes next, and sleeps.
        while filters(victim) < filters(neighbour) || !status(victim, "State").starts_with('S') {
            tokio::task::yield_now().await;
        }
        signal(victim, Signal::KILL);
        let error = ended(call.await.unwrap());
        let how = match &*error {
            // It died before the call began, and another one waited for ever. The neighbour may have had no call for too long.
            Error::WorkerStart { .. } | Error::Limit { .. } => {
                plan_in(&answers, "neighbour").await.unwrap().unwrap();
                continue;
            }
            other => other.to_string(),
        };
        assert_eq!(how, "the process that the component ran in was killed, as by the system where memory ends");
        assert!(matches!(
            error.fault(&orangery_proposal::deployer::PluginIdentity {
                name: "waits".into(),
                version: "1".into(),
                digest: "d".into(),
                is_pinned: true
            }),
            Fault::Later(_)
        ));
        assert_eq!(plan_in(&answers, "neighbour").await.unwrap().unwrap(), expected);
        killed += 1;
    }
    assert_eq!(marked.until_workers_are(1).await, [neighbour]);
    assert_eq!(marked.sandbox.occupancy(), Occupancy::default());
}

#[tokio::test]
async fn c_70_a_worker_that_dies_between_calls_costs_none() {
    let marked = marked(&[], CallIsolation::All, MEMORY);
    let answers = deployer_of(marked.sandbox.clone(), "answers", bytes("answers"), json!({}));
    let expected = plan(&answers).await.unwrap().unwrap();
    let [first] = marked.workers()[..] else { panic!("{:?}", marked.workers()) };
    signal(first, Signal::KILL);
    // Whether the system is done with it or not.
    assert_eq!(plan(&answers).await.unwrap().unwrap(), expected);
    let [second] = marked.until_workers_are(1).await[..] else { unreachable!() };
    signal(second, Signal::KILL);
    while status(second, "State").starts_with(['R', 'S', 'D']) {
        tokio::task::yield_now().await;
    }
    assert_eq!(plan(&answers).await.unwrap().unwrap(), expected);
}

#[tokio::test]
async fn c_70_a_frozen_worker_ends_with_the_wall_clock_of_its_call() {
    let marked = marked(&[], CallIsolation::All, MEMORY);
    let limits = json!({"wallMilliseconds": 1500});
    let answers = deployer_of(marked.sandbox.clone(), "answers", bytes("answers"), limits);
    let expected = plan(&answers).await.unwrap().unwrap();
    let [frozen] = marked.workers()[..] else { panic!("{:?}", marked.workers()) };
    signal(frozen, Signal::STOP);
    let error = ended(plan(&answers).await);
    let limit = "the call was stopped: it needs more than 1500 ms; have an administrator raise `limits.wallMilliseconds` of its registration, or of its Plugin";
    assert!(error.to_string().starts_with(limit), "{error}");
    marked.until_workers_are(0).await;
    assert_eq!(plan(&answers).await.unwrap().unwrap(), expected);
}

#[tokio::test]
async fn c_72_a_worker_serves_one_component_for_one_namespace() {
    let marked = marked(&[], CallIsolation::All, MEMORY);
    let answers = deployer_of(marked.sandbox.clone(), "answers", bytes("answers"), json!({}));
    let exits = deployer_of(marked.sandbox.clone(), "exits", bytes("exits"), json!({}));
    for (namespace, workers) in [("a", 1), ("b", 2), ("a", 2), ("b", 2)] {
        plan_in(&answers, namespace).await.unwrap().unwrap();
        assert_eq!(marked.workers().len(), workers, "{namespace}");
    }
    // A call that ended badly, but as calls do, leaves its worker to the next one.
    for _ in 0..2 {
        assert!(matches!(*ended(plan_in(&exits, "a").await), Error::Exit { .. }));
        assert_eq!(marked.workers().len(), 3);
    }
}

#[tokio::test]
async fn c_72_limits_workers_there_are_no_more_than_memory_allows_and_those_that_wait_make_room() {
    let of = |memory| {
        let marked = marked(&[], CallIsolation::All, memory);
        let answers =
            deployer_of(marked.sandbox.clone(), "answers", bytes("answers"), json!({"wallMilliseconds": 60_000}));
        (marked, answers)
    };
    let (few, answers) = of(64 << 20);
    for (namespace, workers) in [("a", 1), ("b", 2), ("c", 3), ("d", 4), ("e", 4), ("f", 4)] {
        plan_in(&answers, namespace).await.unwrap().unwrap();
        // One that made room was killed, and is there until the system has taken it away.
        few.until_workers_are(workers).await;
    }
    // Nothing is left of what all calls share.
    let (_none, answers) = of(0);
    assert!(matches!(*ended(plan_in(&answers, "a").await), Error::Busy { what: "memory" }));
}

#[tokio::test]
async fn c_73_what_ships_with_the_host_is_called_inside_and_all_else_in_workers() {
    let marked = marked(&[], CallIsolation::Untrusted, MEMORY);
    let manifest = orangery_builtin::components().iter().find(|one| one.name == "manifest").unwrap();
    let builtin = Registered::builtin(manifest.name, manifest.registration, manifest.component).unwrap();
    let builtin = Plugin::new(builtin, marked.sandbox.clone());
    // What it makes of the item does not matter.
    let _planned = plan(&builtin).await.unwrap();
    assert_eq!(marked.workers(), [0; 0]);
    let (packed, size, _) = manifest.component.unwrap();
    let outside = deployer_of(marked.sandbox.clone(), "manifest", unpack(packed, size).unwrap(), json!({}));
    let _planned = plan(&outside).await.unwrap();
    assert_eq!(marked.workers().len(), 1, "the same bytes from outside");
}

#[test]
fn c_72_limits_workers_one_that_gets_no_call_ends_by_itself() {
    let (host, its) = UnixStream::pair().unwrap();
    let seen = its.try_clone().unwrap();
    let mut process = Command::new(worker().program).arg("call-worker").stdin(OwnedFd::from(its)).spawn().unwrap();
    let begin = Instant::now();
    while seen.read_timeout().unwrap() != Some(Duration::from_secs(60)) {
        assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", seen.read_timeout());
        std::thread::yield_now();
    }
    drop((host, seen));
    assert!(process.wait().unwrap().success());
}
