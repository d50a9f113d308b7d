use std::sync::atomic::{AtomicUsize, Ordering};

use orangery_turns::{LentSlot, slot};

use super::*;
use crate::slot::CallSlots;

/// How many entries a journal holds.
const PLACES: usize = 128;

/// What is written down, as the next process would read it.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<BTreeMap<usize, JournalEntry>>>);

impl Written {
    fn entries(&self) -> Vec<JournalEntry> {
        self.0.lock().unwrap().values().cloned().collect()
    }

    fn texts(&self) -> Vec<String> {
        let text = |entry: JournalEntry| match entry {
            JournalEntry::Call(WrittenCall { controller, key, state, times }) => {
                format!("{controller} {key} {times} {state:?}")
            }
            JournalEntry::Namespace(WrittenNamespace { namespace, kills, together: 0 }) => {
                format!("{namespace} {kills}")
            }
            JournalEntry::Namespace(WrittenNamespace { namespace, kills, together }) => {
                format!("{namespace} {kills} together {together}")
            }
        };
        self.entries().into_iter().map(text).collect()
    }
}

impl CallJournal for Written {
    fn capacity(&self) -> usize {
        PLACES
    }

    fn write(&self, place: usize, entry: &JournalEntry) {
        self.0.lock().unwrap().insert(place, entry.clone());
    }

    fn clear(&self, place: usize) {
        self.0.lock().unwrap().remove(&place);
    }
}

fn key(name: &str) -> Key {
    Key::new("ns", name)
}

impl UnfinishedCalls {
    fn begin_call(self: &Arc<Self>, key: &Key) -> CallUnderWay {
        self.begin("c", key, AfterCall::IsForgotten)
    }
}

/// The process that comes after one that has ended with this written down.
fn after(before: &Written) -> (Written, Arc<UnfinishedCalls>) {
    let written = Written::default();
    // As a file: what the process before wrote is there until it is written over.
    *written.0.lock().unwrap() = before.entries().into_iter().enumerate().collect();
    let calls = UnfinishedCalls::new(Arc::new(written.clone()), before.entries());
    (written, calls)
}

/// The process that comes after one that was killed during these calls.
fn killed_during(calls: &Arc<UnfinishedCalls>, written: &Written, names: &[&str]) -> (Written, Arc<UnfinishedCalls>) {
    // Nothing of it is dropped.
    names.iter().for_each(|name| std::mem::forget(calls.begin_call(&key(name))));
    after(written)
}

fn aside(left: u64, why: Crash) -> CallAdmission {
    CallAdmission::Aside(CallAside { left: Duration::from_secs(left), told: Some(why) })
}

#[tokio::test(start_paused = true)]
async fn c_283_a_call_that_ends_process_after_process_is_called_alone_and_then_set_aside_for_longer_and_longer() {
    let (mut written, mut calls) = after(&Written::default());
    assert_eq!(calls.admit("c", &key("bomb"), Instant::now()), CallAdmission::Free);
    let mut seen = Vec::new();
    for _ in 0..9 {
        let under_way = calls.begin_call(&key("bomb"));
        seen.extend(written.texts());
        std::mem::forget(under_way);
        (written, calls) = after(&written);
        seen.extend(written.texts());
        match calls.admit("c", &key("bomb"), Instant::now()) {
            CallAdmission::Aside(aside) => {
                let told = aside.told.map(|why| format!(", {why:?}")).unwrap_or_default();
                seen.push(format!("aside {} s{told}", aside.left.as_secs()));
                tokio::time::advance(aside.left).await;
                assert_eq!(calls.admit("c", &key("bomb"), Instant::now()), CallAdmission::Alone);
            }
            other => seen.push(format!("{other:?}")),
        }
        let elsewhere = Key::new("other", "bomb");
        assert_eq!(calls.admit("c", &elsewhere, Instant::now()), CallAdmission::Free, "of another namespace");
    }
    assert_eq!(seen[..4], ["c ns/bomb 0 Works", "ns 1", "c ns/bomb 1 Suspected", "Alone"]);
    let asides: Vec<&str> = seen.iter().filter(|text| text.starts_with("aside")).map(String::as_str).collect();
    let told = [(60, 2), (240, 3), (960, 4)].map(|(left, times)| format!("aside {left} s, Killed({times})"));
    let untold = [3_840, 15_360, 61_440, 86_400, 86_400].map(|left| format!("aside {left} s"));
    assert_eq!(asides, [told.as_slice(), &untold].concat());
}

#[tokio::test(start_paused = true)]
async fn c_283_a_call_that_ends_is_as_all_others_of_its_namespace_and_these_are_as_all_others_after_a_while() {
    let (written, calls) = after(&Written::default());
    let (written, calls) = killed_during(&calls, &written, &["a", "b"]);
    assert_eq!(written.texts(), ["ns 1", "c ns/a 1 Suspected", "c ns/b 1 Suspected"]);
    let works = async { assert_eq!(written.texts()[1], "c ns/a 1 Works") };
    calls.carry_out("c", &key("a"), true, works).await;
    assert_eq!(written.texts(), ["ns 1", "c ns/b 1 Suspected"]);
    calls.retain("d", |_| false);
    calls.gone("d", &key("b"));
    calls.retain("c", |_| true);
    assert_eq!(written.texts(), ["ns 1", "c ns/b 1 Suspected"]);
    calls.gone("c", &key("b"));
    assert_eq!(written.texts(), ["ns 1"]);
    assert_eq!(calls.admit("c", &key("a"), Instant::now()), CallAdmission::Alone);
    let suspects = |namespace: &'static str| calls.suspects(&namespace.into(), Instant::now());
    assert_eq!((suspects("ns"), suspects("other")), (true, false));
    tokio::time::advance(SUSPECTED_FOR).await;
    assert!(!suspects("ns"));
    assert_eq!(calls.admit("c", &key("a"), Instant::now()), CallAdmission::Free);
    assert_eq!(written.texts(), ["ns 1"], "a kill within the hour still counts");
    tokio::time::advance(REMEMBERED_FOR - SUSPECTED_FOR).await;
    assert_eq!(calls.admit("c", &key("a"), Instant::now()), CallAdmission::Free);
    assert_eq!((written.texts(), calls.lock().free.len()), (Vec::<String>::new(), PLACES));
}

#[tokio::test(start_paused = true)]
async fn c_283_what_was_written_last_is_not_read_twice() {
    let (written, calls) = after(&Written::default());
    std::mem::forget((calls.begin_call(&key("a")), calls.begin_call(&key("b"))));
    let ended = calls.begin_call(&key("d"));
    let (written, calls) = after(&written);
    drop(ended);
    calls.retain("c", |_| false);
    assert_eq!(written.texts(), ["ns 1"]);
    let (written, _calls) = after(&written);
    assert_eq!(written.texts(), ["ns 1"], "what is gone was written over");
}

#[tokio::test(start_paused = true)]
async fn c_283_those_that_were_under_way_are_called_one_after_the_other_unless_one_takes_long() {
    let (written, calls) = after(&Written::default());
    let (_written, calls) = killed_during(&calls, &written, &["a", "b"]);
    let inside = AtomicUsize::new(0);
    let call = async |name, takes| {
        let work = async {
            inside.fetch_add(1, Ordering::SeqCst);
            drop(tokio::time::timeout(takes, std::future::pending::<()>()).await);
            inside.fetch_sub(1, Ordering::SeqCst)
        };
        calls.carry_out("c", &key(name), true, work).await
    };
    let (first, second) = tokio::join!(call("a", LONGEST_ALONE / 2), call("b", LONGEST_ALONE / 2));
    assert_eq!((first, second), (1, 1), "each was alone");
    let (long, second) = tokio::join!(call("a", LONGEST_ALONE * 3), call("b", LONGEST_ALONE));
    assert_eq!((long, second), (1, 2), "what takes long does not hold up the others");
}

#[tokio::test(start_paused = true)]
async fn c_283_what_is_alone_for_its_namespace_only_gives_its_turn_back_when_it_waits_on_a_server() {
    let (written, calls) = after(&Written::default());
    let (_written, calls) = killed_during(&calls, &written, &["suspect"]);
    for (name, seconds) in [("suspect", 10), ("new", 0)] {
        let slots = Arc::<CallSlots>::default();
        let waits = async {
            let lent = LentSlot::of(slot());
            std::future::pending::<()>().await;
            drop(lent);
        };
        let first = key(name);
        let mut first = std::pin::pin!(Arc::clone(&slots).carry_out(calls.carry_out("c", &first, true, waits)));
        assert!(futures::poll!(first.as_mut()).is_pending());
        let began = Instant::now();
        let elsewhere = Key::new("other", "a");
        let other = calls.carry_out("c", &elsewhere, true, async { began.elapsed().as_secs() });
        let waited = tokio::select! { () = first => panic!("it waits"), waited = other => waited };
        assert_eq!(waited, seconds, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn c_283_limits_calls_with_three_kills_by_ever_new_names_all_of_a_namespace_is_set_aside() {
    let (mut written, mut calls) = after(&Written::default());
    let mut seen = Vec::new();
    for name in ["b1", "b2", "b3", "b4", "b5", "b6"] {
        (written, calls) = killed_during(&calls, &written, &[name]);
        // The tenant deletes what has killed.
        calls.gone("c", &key(name));
        seen.push(calls.admit("c", &key("new"), Instant::now()));
    }
    let killed = |times, left| aside(left, Crash::KilledInNamespace(times));
    let untold = CallAdmission::Aside(CallAside { left: LONGEST_NAMESPACE_ASIDE, told: None });
    let asides = [killed(3, 60), killed(4, 240), killed(5, 960), untold];
    assert_eq!(seen, [[CallAdmission::Alone; 2].as_slice(), &asides].concat());
    assert_eq!(calls.admit("d", &key("b1"), Instant::now()), untold, "of any controller");
    assert_eq!(calls.admit("c", &Key::new("other", "new"), Instant::now()), CallAdmission::Free);
    tokio::time::advance(LONGEST_NAMESPACE_ASIDE).await;
    assert_eq!(calls.admit("c", &key("new"), Instant::now()), CallAdmission::Alone, "it is tried again");
    assert_eq!(written.texts(), ["ns 6"]);
}

#[tokio::test(start_paused = true)]
async fn c_283_what_is_alone_for_its_namespace_only_has_its_turn_for_a_second() {
    let (written, calls) = after(&Written::default());
    let (_written, calls) = killed_during(&calls, &written, &["suspect"]);
    for (name, seconds) in [("suspect", 10), ("new", 1)] {
        let first = key(name);
        let mut first = std::pin::pin!(calls.carry_out("c", &first, true, std::future::pending::<()>()));
        assert!(futures::poll!(first.as_mut()).is_pending());
        let began = Instant::now();
        let elsewhere = Key::new("other", "a");
        let other = calls.carry_out("c", &elsewhere, true, async { began.elapsed().as_secs() });
        let waited = tokio::select! { () = first => panic!("it takes for ever"), waited = other => waited };
        assert_eq!(waited, seconds, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn c_283_what_tells_of_a_call_that_is_set_aside_is_written_down_and_alone() {
    let (mut written, mut calls) = after(&Written::default());
    for _ in 0..2 {
        (written, calls) = killed_during(&calls, &written, &["bomb"]);
    }
    let admitted = |calls: &Arc<UnfinishedCalls>| calls.admit("c", &key("bomb"), Instant::now());
    let (bomb, new) = (key("bomb"), key("new"));
    let other = calls.carry_out("c", &new, true, std::future::ready(Instant::now()));
    let telling = async {
        assert_eq!(written.texts(), ["ns 1", "c ns/bomb 2 Works"]);
        tokio::task::yield_now().await;
        assert_eq!(written.texts().len(), 2, "nothing else is called meanwhile");
    };
    tokio::join!(calls.tell("c", &bomb, telling), other);
    assert_eq!(written.texts(), ["ns 1", "c ns/bomb 2 Suspected"], "it is set aside all the same");
    assert_eq!(admitted(&calls), aside(60, Crash::Killed(2)));
    for (times, left) in [(3, 240), (4, 960)] {
        (written, calls) = killed_during(&calls, &written, &["bomb"]);
        assert_eq!(admitted(&calls), aside(left, Crash::Killed(times)));
    }
    let (_written, calls) = killed_during(&calls, &written, &["bomb"]);
    let untold = CallAdmission::Aside(CallAside { left: Duration::from_secs(3_840), told: None });
    assert_eq!(admitted(&calls), untold, "the telling may be what kills");
}

#[tokio::test(start_paused = true)]
async fn c_283_it_is_written_down_whether_a_call_works_or_waits_on_a_server() {
    let (written, calls) = after(&Written::default());
    let (written, calls) = killed_during(&calls, &written, &["a"]);
    for (name, times, is_alone) in [("a", 1, true), ("b", 0, false)] {
        let slots = Arc::<CallSlots>::default();
        let of = |written: &Written| written.texts().into_iter().filter(|text| text.contains(name)).collect::<Vec<_>>();
        let call = async {
            let mut seen = of(&written);
            let lent = LentSlot::of(slot());
            seen.extend(of(&written));
            drop(lent);
            seen.extend(of(&written));
            // What goes on beyond the call writes nowhere.
            (seen, LentSlot::of(slot()))
        };
        let (seen, lent) = slots.carry_out(calls.carry_out("c", &key(name), is_alone, call)).await;
        let expected = ["Works", "WaitsOnServer", "Works"].map(|state| format!("c ns/{name} {times} {state}"));
        assert_eq!(seen, expected);
        drop(lent);
        assert_eq!(written.texts(), ["ns 1"]);
    }
}

#[tokio::test]
async fn c_283_what_an_orderly_end_cuts_off_is_no_reason_and_nothing_is_written_after_it() {
    let (written, calls) = after(&Written::default());
    let (written, calls) = killed_during(&calls, &written, &["bomb"]);
    let under_way = [calls.begin_call(&key("bomb")), calls.begin_call(&key("a"))];
    assert_eq!(written.texts(), ["ns 1", "c ns/bomb 1 Works", "c ns/a 0 Works"]);
    calls.stop();
    let stopped = ["ns 1", "c ns/bomb 1 Suspected"];
    assert_eq!(written.texts(), stopped);
    let late = calls.begin_call(&key("late"));
    assert_eq!(written.texts(), stopped, "a call that begins after it");
    drop((under_way, late));
    calls.stop();
    assert_eq!(written.texts(), stopped);
}

#[test]
fn c_283_without_a_place_a_call_is_not_written_down_and_goes_on() {
    let (written, calls) = after(&Written::default());
    let under_way: Vec<_> = (0..=PLACES).map(|number| calls.begin_call(&key(&number.to_string()))).collect();
    assert_eq!(written.texts().len(), PLACES);
    drop(under_way);
    assert_eq!((written.texts().len(), calls.lock().free.len()), (0, PLACES));
}

mod plays;
