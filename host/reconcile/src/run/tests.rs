use std::{
    collections::VecDeque,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use k8s_openapi::api::core::v1::ConfigMap;
use orangery_core::{
    error::Failure,
    name::JobId,
    step::{Until, Wait},
};
use orangery_figures::DurationCounts;
use orangery_turns::slot;
use serde_json::json;
use tokio::sync::{Semaphore, mpsc};

use super::*;
use crate::{CallJournal, CallState, JournalEntry, QueueCounts, UnfinishedCalls, WrittenCall};

const PATIENCE: Duration = Duration::from_secs(10);

struct Half;

impl Rng for Half {
    fn job_id(&self) -> JobId {
        "00000000-0000-4000-8000-000000000000".into()
    }

    fn fraction(&self) -> f64 {
        0.5
    }

    fn secret(&self) -> [u8; 32] {
        [5; 32]
    }
}

fn object(name: &str, version: u64) -> ConfigMap {
    serde_json::from_value(json!({"metadata":
        {"namespace": "ns", "name": name, "uid": name, "resourceVersion": version.to_string()}}))
    .unwrap()
}

/// Answers what the script says, tells who was called, and, while the gate is closed, stays in its calls. That of an object
/// called `0-waits` lends its slot meanwhile.
struct Scripted {
    script: Mutex<VecDeque<Result<NextCall, Halt>>>,
    calls: mpsc::UnboundedSender<String>,
    gate: Semaphore,
    inside: AtomicUsize,
    most_inside: AtomicUsize,
}

impl Controller for Scripted {
    type Object = ConfigMap;
    const NAME: &'static str = "scripted";

    async fn reconcile(&self, object: Arc<ConfigMap>) -> Result<NextCall, Halt> {
        let inside = self.inside.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_inside.fetch_max(inside, Ordering::SeqCst);
        let meta = &object.metadata;
        self.calls
            .send(format!("{} {}", meta.name.as_ref().unwrap(), meta.resource_version.as_ref().unwrap()))
            .unwrap();
        let lent = slot().filter(|_| meta.name.as_deref() == Some("0-waits"));
        lent.iter().for_each(|slot| slot.lend());
        let pass = self.gate.acquire().await.unwrap();
        drop(pass);
        lent.iter().for_each(|slot| slot.take_back());
        self.inside.fetch_sub(1, Ordering::SeqCst);
        let answer = self.script.lock().unwrap().pop_front();
        match answer {
            Some(Err(Halt::Stall(failure))) if failure.reason == "Panic" => panic!("as scripted"),
            Some(answer) => answer,
            None => Ok(NextCall::Settled),
        }
    }

    async fn refresh(&self, object: Arc<ConfigMap>) -> Result<(), Halt> {
        self.calls.send(format!("{} again", object.metadata.name.as_ref().unwrap())).unwrap();
        Ok(())
    }

    async fn tell_of_crashes(&self, object: Arc<ConfigMap>, crash: Crash) {
        let what = match crash {
            Crash::Panicked => "panics".to_owned(),
            Crash::Killed(times) => format!("was killed {times} times"),
            Crash::KilledInNamespace(times) => format!("is set aside with its namespace after {times} times"),
        };
        self.calls.send(format!("{} {what}", object.metadata.name.as_ref().unwrap())).unwrap();
        panic!("as this does");
    }
}

struct Stage {
    controller: Arc<Scripted>,
    store: Store<ConfigMap>,
    queue: Queue,
    stop: CancellationToken,
    calls: mpsc::UnboundedReceiver<String>,
    panics: Arc<Mutex<Vec<Panicked>>>,
    running: tokio::task::JoinHandle<()>,
}

fn scripted(passes: usize, script: Vec<Result<NextCall, Halt>>) -> (Arc<Scripted>, mpsc::UnboundedReceiver<String>) {
    let (sender, calls) = mpsc::unbounded_channel();
    let controller = Scripted {
        script: Mutex::new(script.into()),
        calls: sender,
        gate: Semaphore::new(passes),
        inside: AtomicUsize::new(0),
        most_inside: AtomicUsize::new(0),
    };
    (Arc::new(controller), calls)
}

fn started(
    controller: Arc<Scripted>,
    calls: mpsc::UnboundedReceiver<String>,
    concurrency: usize,
    store: Store<ConfigMap>,
) -> Stage {
    started_after(None, controller, calls, concurrency, store)
}

/// The same in a process that comes after others.
fn started_after(
    unfinished: Option<Arc<UnfinishedCalls>>,
    controller: Arc<Scripted>,
    calls: mpsc::UnboundedReceiver<String>,
    concurrency: usize,
    store: Store<ConfigMap>,
) -> Stage {
    let (queue, stop) = (Queue::new(), CancellationToken::new());
    let panics = Arc::<Mutex<Vec<Panicked>>>::default();
    let message = Arc::clone(&panics);
    let panicked = Arc::new(move |panicked: &Panicked| message.lock().unwrap().push(panicked.clone()));
    let options = ControllerOptions { concurrency, rng: Arc::new(Half), panicked, unfinished };
    let running = run(Arc::clone(&controller), store.clone(), queue.clone(), options, stop.clone());
    Stage { controller, store, queue, stop, calls, panics, running: tokio::spawn(running) }
}

/// A loop over listed objects.
fn stage(names: &[&str], concurrency: usize, passes: usize, script: Vec<Result<NextCall, Halt>>) -> Stage {
    let store = Store::new();
    for name in names {
        store.upsert(object(name, 1));
    }
    store.mark_synced();
    let (controller, calls) = scripted(passes, script);
    started(controller, calls, concurrency, store)
}

impl Stage {
    async fn called(&mut self) -> String {
        tokio::time::timeout(PATIENCE, self.calls.recv()).await.expect("a call is due").unwrap()
    }

    /// Stops the loop, then says which calls nobody asked about.
    async fn end(mut self) -> Vec<String> {
        self.stop.cancel();
        tokio::time::timeout(PATIENCE, self.running).await.expect("the loop stops").unwrap();
        drop(self.controller);
        let mut rest = Vec::new();
        while let Ok(call) = self.calls.try_recv() {
            rest.push(call);
        }
        rest
    }
}

fn failure(reason: &str) -> Failure {
    Failure::new("Test", reason, "as scripted")
}

/// The counts once `calls` calls have ended.
async fn counts_after(queue: &Queue, calls: u64) -> QueueCounts {
    let settled = async {
        loop {
            let counts = queue.counts();
            if counts.settled + counts.conflicts + counts.retried + counts.stalled + counts.panicked >= calls {
                return QueueCounts { busy: DurationCounts::default(), waited: DurationCounts::default(), ..counts };
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, settled).await.expect("the calls end")
}

struct NoJournal;

impl CallJournal for NoJournal {
    fn capacity(&self) -> usize {
        0
    }

    fn write(&self, _place: usize, _entry: &JournalEntry) {}

    fn clear(&self, _place: usize) {}
}

#[tokio::test(start_paused = true)]
async fn c_283_what_was_under_way_when_two_processes_ended_is_told_and_called_when_its_time_is_over() {
    let key = Key { namespace: "ns".into(), name: "a".into() };
    let before = WrittenCall { controller: Scripted::NAME.to_owned(), key, state: CallState::Works, times: 1 };
    let gone = ["x", "y", "z"]
        .map(|name| WrittenCall { key: Key { name: name.into(), ..before.key.clone() }, ..before.clone() });
    let before = [vec![before], gone.to_vec()].concat().into_iter().map(JournalEntry::Call);
    let unfinished = UnfinishedCalls::new(Arc::new(NoJournal), before.collect());
    let store = Store::new();
    store.upsert(object("a", 1));
    store.upsert(object("b", 1));
    store.mark_synced();
    let (controller, calls) = scripted(8, vec![]);
    let mut stage = started_after(Some(unfinished), controller, calls, 1, store);
    assert_eq!([stage.called().await, stage.called().await], ["a was killed 2 times", "b 1"]);
    stage.store.upsert(object("a", 2));
    assert_eq!(stage.called().await, "a was killed 2 times", "an event does not change it");
    counts_after(&stage.queue, 3).await;
    tokio::time::advance(Duration::from_secs(60)).await;
    assert_eq!(stage.called().await, "a 2");
    stage.store.upsert(object("a", 3));
    assert_eq!(stage.called().await, "a 3");
    assert_eq!(stage.end().await, Vec::<String>::new());
}

#[tokio::test]
async fn every_object_is_called_at_the_start_and_again_only_by_an_event() {
    let mut stage = stage(&["a", "b"], 1, 1, vec![]);
    assert_eq!([stage.called().await, stage.called().await], ["a 1", "b 1"]);
    stage.store.upsert(object("b", 2));
    assert_eq!(stage.called().await, "b 2");
    counts_after(&stage.queue, 3).await;
    assert_eq!(stage.end().await, Vec::<String>::new());
}

#[tokio::test]
async fn nothing_is_called_before_the_first_list() {
    let (controller, calls) = scripted(1, vec![]);
    let mut stage = started(controller, calls, 1, Store::new());
    stage.store.upsert(object("a", 1));
    stage.queue.wake(Key::new("ns", "a"));
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    stage.store.upsert(object("a", 2));
    stage.store.mark_synced();
    assert_eq!(stage.called().await, "a 2");
    stage.end().await;
}

#[tokio::test]
async fn one_object_is_never_called_twice_at_once() {
    let mut stage = stage(&["a"], 8, 0, vec![]);
    assert_eq!(stage.called().await, "a 1");
    stage.store.upsert(object("a", 2));
    stage.controller.gate.add_permits(1);
    assert_eq!(stage.called().await, "a 2");
    assert_eq!(stage.controller.most_inside.load(Ordering::SeqCst), 1);
    assert_eq!(stage.end().await, Vec::<String>::new());
}

#[tokio::test]
async fn no_more_are_called_at_once_than_allowed() {
    let mut stage = stage(&["a", "b", "c"], 2, 0, vec![]);
    let first_two = [stage.called().await, stage.called().await];
    assert_eq!(first_two, ["a 1", "b 1"]);
    stage.controller.gate.add_permits(3);
    assert_eq!(stage.called().await, "c 1");
    assert_eq!(stage.controller.most_inside.load(Ordering::SeqCst), 2);
    stage.end().await;
}

/// What calls reserve is one sum for all tests of this process.
static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

#[tokio::test(start_paused = true)]
async fn c_130_limits_so_much_is_reserved_for_calls_of_long_objects_however_many_there_are() {
    let _alone = ALONE.lock().await;
    let store = Store::new();
    for number in 10..60 {
        let mut object = object(&format!("{number}"), 1);
        object.data = Some([("long".to_owned(), "x".repeat(1 << 20))].into());
        store.upsert(object);
    }
    store.upsert(object("small", 1));
    store.mark_synced();
    let (controller, calls) = scripted(0, vec![]);
    let mut stage = started(controller, calls, 32, store);
    let mut first = Vec::new();
    for _ in 0..8 {
        first.push(stage.called().await);
    }
    first.sort();
    // Seven of them, twice as values and six times as texts, take less than half; what is not long waits for none of them.
    let expected = (10..17).map(|number| format!("{number} 1")).chain(["small 1".to_owned()]);
    assert_eq!(first, expected.collect::<Vec<_>>());
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(stage.controller.most_inside.load(Ordering::SeqCst), 8);
    stage.controller.gate.add_permits(51);
    for number in 17..60 {
        assert_eq!(stage.called().await, format!("{number} 1"), "in the order in which they came");
    }
    assert_eq!(stage.controller.most_inside.load(Ordering::SeqCst), 8);
    assert_eq!(stage.end().await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn c_113_limits_objects_that_were_written_to_be_large_are_whole_one_after_the_other_and_small_ones_do_not_wait() {
    let _alone = ALONE.lock().await;
    let large = |name: &str| {
        let mut object = object(name, 1);
        // 3 MB of text that take over 64 MiB.
        object.data = Some((0..300_000).map(|number| (number.to_string(), String::new())).collect());
        object
    };
    let store = Store::new();
    for name in ["a", "b"] {
        store.upsert(large(name));
    }
    store.upsert(object("small", 1));
    store.mark_synced();
    let (controller, calls) = scripted(0, vec![]);
    let mut stage = started(controller, calls, 8, store);
    let mut first = [stage.called().await, stage.called().await];
    first.sort();
    assert_eq!(first, ["a 1", "small 1"]);
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(stage.controller.most_inside.load(Ordering::SeqCst), 2, "the other one waits for its turn");
    stage.controller.gate.add_permits(3);
    assert_eq!(stage.called().await, "b 1");
    assert_eq!(stage.end().await, Vec::<String>::new());
}

#[tokio::test]
async fn c_39_a_call_that_waits_on_a_cluster_makes_room_for_another_and_has_its_slot_back_when_it_goes_on() {
    assert!(slot().is_none(), "there is no slot outside of a call");
    let mut stage = stage(&["0-waits", "a", "b"], 1, 0, vec![]);
    assert_eq!([stage.called().await, stage.called().await], ["0-waits 1", "a 1"]);
    stage.controller.gate.add_permits(1);
    assert_eq!(stage.called().await, "b 1");
    counts_after(&stage.queue, 3).await;
    assert_eq!(stage.controller.most_inside.load(Ordering::SeqCst), 2);
    stage.end().await;
}

#[tokio::test]
async fn ins_49_orc_19_orc_21_a_failure_and_a_panic_are_called_again_and_a_stall_is_not() {
    let script = vec![
        Err(Halt::Retry(failure("Network"))),
        Err(Halt::Retry(failure(CONFLICT))),
        Err(Halt::Stall(failure("Panic"))),
        Err(Halt::Stall(failure("Invalid"))),
    ];
    let mut stage = stage(&["a"], 1, 1, script);
    for _ in 0..4 {
        assert_eq!(stage.called().await, "a 1");
    }
    let counts = counts_after(&stage.queue, 4).await;
    assert_eq!(
        counts,
        QueueCounts {
            retried: 1,
            conflicts: 1,
            panicked: 1,
            stalled: 1,
            by_event: 1,
            by_time: 3,
            ..QueueCounts::default()
        }
    );
    let panicked = Panicked { controller: "scripted", key: Key::new("ns", "a"), message: "as scripted".to_owned() };
    assert_eq!(*stage.panics.lock().unwrap(), [panicked]);
    assert_eq!(stage.end().await, Vec::<String>::new());
}

/// The owner hears of the third panic in a row and of each further one, and of none that another end stands before.
#[tokio::test]
async fn c_42_panics_in_a_row_are_told_and_the_object_is_called_again() {
    let panic = || Err(Halt::Stall(failure("Panic")));
    let script = vec![panic(), panic(), Err(Halt::Retry(failure("Network"))), panic(), panic(), panic(), panic()];
    let mut stage = stage(&["a"], 1, 1, script);
    let mut calls = Vec::new();
    for _ in 0..10 {
        calls.push(stage.called().await);
    }
    let called = "a 1";
    let told = "a panics";
    assert_eq!(calls, [called, called, called, called, called, called, told, called, told, called]);
    assert_eq!(counts_after(&stage.queue, 8).await.panicked, 6);
    assert_eq!(stage.end().await, Vec::<String>::new());
}

#[tokio::test]
async fn orc_09_c_11_a_wait_is_called_again_by_its_poll() {
    let poll = Wait::poll(Duration::from_millis(1));
    let script = vec![Err(Halt::Wait(poll)), Err(Halt::wait("ConfigMap", "b", Until::Exists))];
    let mut stage = stage(&["a"], 1, 1, script);
    assert_eq!([stage.called().await, stage.called().await], ["a 1", "a 1"]);
    counts_after(&stage.queue, 2).await;
    assert_eq!(stage.end().await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn c_11_what_waits_and_hears_nothing_looks_again_after_a_time_that_doubles_until_an_event() {
    let waits = || Err(Halt::wait("ConfigMap", "b", Until::Exists));
    let timer = Ok(NextCall::Waiting(Some(Duration::from_secs(30))));
    let script = vec![waits(), waits(), timer, waits(), waits()];
    let mut stage = stage(&["a"], 1, 1, script);
    let start = Instant::now();
    let mut calls = Vec::new();
    while calls.len() < 7 {
        calls.push((stage.calls.recv().await.unwrap(), start.elapsed().as_secs_f64()));
    }
    let call = |call: &str, second: f64| (call.to_owned(), (second * 1000.0).round() / 1000.0);
    let calls: Vec<_> = calls.iter().map(|(what, second)| call(what, *second)).collect();
    // The chance says a half: three quarters of 30 s, of 60 s, of 120 s. A timer of its own, at 97.5 s, is no event.
    let expected = [
        call("a 1", 0.0),
        call("a again", 22.5),
        call("a 1", 22.5),
        call("a again", 67.5),
        call("a 1", 67.5),
        call("a 1", 97.5),
        call("a again", 157.5),
    ];
    assert_eq!(calls, expected);
    assert_eq!(stage.calls.recv().await.unwrap(), "a 1");
    stage.store.upsert(object("a", 2));
    assert_eq!(stage.calls.recv().await.unwrap(), "a 2");
    let QueueCounts { by_event, by_time, by_stale_watch, .. } = stage.queue.counts();
    assert_eq!((by_event, by_time, by_stale_watch), (2, 1, 3));
    assert_eq!(stage.end().await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn c_11_what_is_where_it_should_be_is_never_looked_at_again() {
    let mut stage = stage(&["a"], 1, 1, vec![Ok(NextCall::Waiting(None)), Ok(NextCall::Settled)]);
    for expected in ["a 1", "a again", "a 1"] {
        assert_eq!(stage.calls.recv().await.unwrap(), expected);
    }
    tokio::time::advance(Duration::from_secs(24 * 3600)).await;
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(stage.end().await, Vec::<String>::new());
}

#[test]
fn flx_03_flx_06_flx_07_the_result_of_a_call_says_when_the_next_one_is() {
    let (hour, minute) = (Duration::from_secs(3600), Duration::from_secs(60));
    let timed = |result| match classify(Ok(result)).1 {
        Requeue::After(after) => ("after", after),
        Requeue::OnEvent(at_last) => ("on event", at_last),
        Requeue::Backoff => ("backoff", None),
    };
    let results = [
        Ok(NextCall::Settled),
        Ok(NextCall::After(hour)),
        Ok(NextCall::Again),
        Ok(NextCall::Waiting(Some(hour))),
        Err(Halt::Wait(Wait::on("ConfigMap", "b", Until::Exists).within(minute))),
        Err(Halt::Retry(failure("Network"))),
        Err(Halt::Stall(failure("Invalid"))),
    ];
    let expected = [
        ("after", None),
        ("after", Some(hour)),
        ("after", Some(Duration::ZERO)),
        ("on event", Some(hour)),
        ("on event", Some(minute)),
        ("backoff", None),
        ("after", None),
    ];
    assert_eq!(results.map(timed), expected);
}

#[tokio::test]
async fn orc_11_a_call_that_asks_for_more_is_called_again() {
    let script = vec![Ok(NextCall::Again), Ok(NextCall::After(Duration::from_millis(1))), Ok(NextCall::Settled)];
    let mut stage = stage(&["a"], 1, 1, script);
    for _ in 0..3 {
        assert_eq!(stage.called().await, "a 1");
    }
    counts_after(&stage.queue, 3).await;
    assert_eq!(stage.end().await, Vec::<String>::new());
}

#[tokio::test]
async fn an_object_that_is_gone_is_not_called() {
    let mut stage = stage(&["a"], 1, 1, vec![Ok(NextCall::After(Duration::from_secs(3600)))]);
    assert_eq!(stage.called().await, "a 1");
    counts_after(&stage.queue, 1).await;
    stage.store.forget(&object("a", 1));
    assert_eq!(counts_after(&stage.queue, 2).await, QueueCounts { settled: 2, by_event: 1, ..QueueCounts::default() });
    assert_eq!(stage.end().await, Vec::<String>::new());
}

#[tokio::test]
async fn a_stop_lets_the_calls_under_way_end() {
    let mut stage = stage(&["a", "b"], 1, 0, vec![]);
    assert_eq!(stage.called().await, "a 1");
    stage.stop.cancel();
    stage.controller.gate.add_permits(1);
    let queue = stage.queue.clone();
    assert_eq!(stage.end().await, Vec::<String>::new());
    assert_eq!(
        counts_after(&queue, 1).await,
        QueueCounts { settled: 1, queued: 1, by_event: 1, ..QueueCounts::default() }
    );
}

#[test]
fn c_12_ins_50_backoff_doubles_up_to_a_minute_and_has_full_jitter() {
    let times = |fraction: f64| -> Vec<u128> {
        [1, 2, 3, 10, 11, 40, u32::MAX].map(|failed| backoff(failed, fraction).as_millis()).to_vec()
    };
    assert_eq!(times(1.0), [100, 200, 400, 51_200, 60_000, 60_000, 60_000]);
    assert_eq!(times(0.5), [50, 100, 200, 25_600, 30_000, 30_000, 30_000]);
    assert_eq!(times(0.0), [0; 7]);
}

#[tokio::test]
async fn orc_23_a_waiting_object_holds_up_no_other_and_goes_on_as_soon_as_it_is_woken() {
    let script = vec![Err(Halt::wait("ConfigMap", "b", Until::Finished))];
    let mut stage = stage(&["a", "b"], 2, 0, script);
    // As an edge between two kinds does: what becomes of b wakes a.
    let queue = stage.queue.clone();
    stage.store.subscribe(move |change| {
        if change.key() == Some(Key::new("ns", "b")) {
            queue.wake(Key::new("ns", "a"));
        }
    });
    assert_eq!([stage.called().await, stage.called().await], ["a 1", "b 1"]);
    assert_eq!(stage.controller.most_inside.load(Ordering::SeqCst), 2);
    stage.controller.gate.add_permits(1);
    counts_after(&stage.queue, 2).await;
    stage.store.upsert(object("b", 2));
    let mut woken = [stage.called().await, stage.called().await];
    woken.sort_unstable();
    assert_eq!(woken, ["a 1", "b 2"]);
    // No timer had a part in it.
    assert_eq!(counts_after(&stage.queue, 4).await, QueueCounts { settled: 4, by_event: 4, ..QueueCounts::default() });
    assert_eq!(stage.end().await, Vec::<String>::new());
}
