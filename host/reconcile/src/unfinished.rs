//! Calls that were under way when a process ended without being asked to (C-283).
//!
//! A call may end the process: what it reads takes more memory than there is, or a library aborts. It would again after each
//! start. So calls are written down while they are under way. What a process finds written down by the one before is called
//! alone, one call at a time; and where the process ends once more during such a call, it is set aside for a while.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use orangery_turns::Turns;
use tokio::time::Instant;

use crate::{
    Key,
    slot::{call_slot, lending},
    written::{CallJournal, CallRecord, WrittenCall},
};

/// How long a call has the turn of those that are alone; whatever it still does then, it most likely waits for others.
const LONGEST_ALONE: Duration = Duration::from_secs(10);

/// In so many processes in a row a call has to be under way at their end before it is set aside.
const SET_ASIDE_AFTER: u32 = 2;

/// With so many calls of a namespace set aside all others of it are.
const MOST_ASIDE_OF_A_NAMESPACE: usize = 3;

/// How long a call is set aside at first; each time after that four times as long.
const FIRST_ASIDE: Duration = Duration::from_secs(60);

/// The longest time.
const LONGEST_ASIDE: Duration = Duration::from_secs(24 * 60 * 60);

/// What ended the last calls of an object without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crash {
    /// They panicked, [`TOLD_AFTER`](crate::TOLD_AFTER) times in a row or more often. It is called again all the same (C-42).
    Panicked,
    /// The process was killed, so many times in a row. It is set aside for a while (C-283).
    Killed(u32),
    /// It was killed during calls of so many other objects of the namespace: all of them are set aside.
    KilledByOthers(usize),
}

/// Calls that are under way, and those that were when processes before this one ended.
pub struct UnfinishedCalls {
    journal: Arc<dyn CallJournal>,
    /// Protects what is known and which places are free; held for one decision.
    known: Mutex<KnownCalls>,
    alone: Arc<Turns>,
}

#[derive(Default)]
struct KnownCalls {
    suspects: BTreeMap<(String, Key), SuspectedCall>,
    free: Vec<usize>,
}

/// A call that was under way when a process ended.
struct SuspectedCall {
    times: u32,
    /// Where it is written down; `None` where there was no place.
    place: Option<usize>,
    aside_until: Option<Instant>,
}

/// How a call may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallAdmission {
    /// As others.
    Free,
    /// When nothing else is under way that was when a process ended.
    Alone,
    /// Not before this time is over.
    Aside(CallAside),
}

/// A call that is set aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CallAside {
    /// For how long from now on.
    pub(crate) left: Duration,
    /// Why.
    pub(crate) why: Crash,
}

/// A call that is written down until this is dropped.
pub(crate) struct CallUnderWay {
    of: Arc<UnfinishedCalls>,
    id: (String, Key),
    place: Option<usize>,
    record: Option<CallRecord>,
}

/// How long a call is set aside that was under way at the end of so many processes in a row; `None` where it is called alone.
fn aside_for(times: u32) -> Option<Duration> {
    let further = times.checked_sub(SET_ASIDE_AFTER)?;
    Some(
        4_u32
            .checked_pow(further)
            .and_then(|factor| FIRST_ASIDE.checked_mul(factor))
            .map_or(LONGEST_ASIDE, |time| time.min(LONGEST_ASIDE)),
    )
}

impl KnownCalls {
    /// Where so many objects of a namespace are set aside, all others of it are as well, until the first of them is tried again: who
    /// writes what kills the operator can write it under many names.
    fn aside_with_others(&self, key: &Key, now: Instant) -> Option<CallAside> {
        let of_namespace = self.suspects.iter().filter(|((_, of), _)| of.namespace == key.namespace);
        let until: Vec<Instant> =
            of_namespace.filter_map(|(_, call)| call.aside_until.filter(|until| *until > now)).collect();
        let first = until.iter().min().filter(|_| until.len() >= MOST_ASIDE_OF_A_NAMESPACE)?;
        Some(CallAside { left: *first - now, why: Crash::KilledByOthers(until.len()) })
    }
}

impl UnfinishedCalls {
    /// With what the process before has written down.
    pub fn new(journal: Arc<dyn CallJournal>, before: Vec<WrittenCall>) -> Arc<Self> {
        let now = Instant::now();
        let before = before.into_iter().filter(|call| call.under_way || call.times > 0);
        let mut known = KnownCalls { free: (0..journal.capacity()).rev().collect(), ..KnownCalls::default() };
        for call in before {
            let times = call.times.saturating_add(u32::from(call.under_way));
            let place = known.free.pop();
            let written = WrittenCall { under_way: false, times, ..call };
            place.iter().for_each(|place| journal.write(*place, &written));
            let aside_until = aside_for(times).map(|time| now + time);
            let suspect = SuspectedCall { times, place, aside_until };
            known.suspects.insert((written.controller, written.key), suspect);
        }
        Arc::new(Self { journal, known: Mutex::new(known), alone: Turns::new(1) })
    }

    /// How a call may begin.
    pub(crate) fn admit(&self, controller: &str, key: &Key, now: Instant) -> CallAdmission {
        let known = self.lock();
        if known.suspects.is_empty() {
            return CallAdmission::Free;
        }
        let suspect = known.suspects.get(&(controller.to_owned(), key.clone()));
        match suspect {
            Some(SuspectedCall { times, aside_until: Some(until), .. }) if *until > now => {
                CallAdmission::Aside(CallAside { left: *until - now, why: Crash::Killed(*times) })
            }
            Some(_) => CallAdmission::Alone,
            None => known.aside_with_others(key, now).map_or(CallAdmission::Free, CallAdmission::Aside),
        }
    }

    /// The process ends as it was asked to: what is cut off then was no reason.
    pub fn stop(&self) {
        let known = self.lock();
        let kept: BTreeMap<usize, WrittenCall> = known
            .suspects
            .iter()
            .filter_map(|((controller, key), suspect)| {
                let (controller, key, times) = (controller.clone(), key.clone(), suspect.times);
                Some((suspect.place?, WrittenCall { controller, key, under_way: false, times }))
            })
            .collect();
        for place in 0..self.journal.capacity() {
            match kept.get(&place) {
                Some(call) => self.journal.write(place, call),
                None => self.journal.clear(place),
            }
        }
    }

    /// Forgets the calls of a controller whose objects are gone.
    pub(crate) fn retain(&self, controller: &str, exists: impl Fn(&Key) -> bool) {
        let mut known = self.lock();
        let gone = known.suspects.keys().filter(|(of, key)| of == controller && !exists(key));
        for id in gone.cloned().collect::<Vec<_>>() {
            let forgotten = known.suspects.remove(&id);
            self.give_back(&mut known, forgotten.and_then(|suspect| suspect.place));
        }
    }

    /// Carries a call out. What is alone waits for its turn with the slot of the call lent.
    pub(crate) async fn carry_out<T>(
        self: &Arc<Self>,
        controller: &str,
        key: &Key,
        is_alone: bool,
        call: impl Future<Output = T>,
    ) -> T {
        if !is_alone {
            let _under_way = self.begin(controller, key);
            return call.await;
        }
        let turn = lending(self.alone.acquire(&Some(key.namespace.clone()))).await;
        let under_way = self.begin(controller, key);
        let mut call = std::pin::pin!(call);
        match tokio::time::timeout(LONGEST_ALONE, call.as_mut()).await {
            Ok(ended) => ended,
            Err(_elapsed) => {
                drop(turn);
                // It is not alone from here on: while it waits on somebody else's server it is no reason.
                if let (Some(slot), Some(record)) = (call_slot(), &under_way.record) {
                    slot.write_down(record);
                }
                call.await
            }
        }
    }

    fn begin(self: &Arc<Self>, controller: &str, key: &Key) -> CallUnderWay {
        let id = (controller.to_owned(), key.clone());
        let (place, times) = {
            let mut known = self.lock();
            match known.suspects.get(&id) {
                Some(suspect) => (suspect.place, suspect.times),
                None => (known.free.pop(), 0),
            }
        };
        let record = place.map(|place| {
            let (controller, key) = id.clone();
            let record = CallRecord::of(&self.journal, place, WrittenCall { controller, key, under_way: true, times });
            record.write(true);
            record
        });
        CallUnderWay { of: Arc::clone(self), id, place, record }
    }

    fn give_back(&self, known: &mut KnownCalls, place: Option<usize>) {
        if let Some(place) = place {
            self.journal.clear(place);
            known.free.push(place);
        }
    }

    fn lock(&self) -> MutexGuard<'_, KnownCalls> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for CallUnderWay {
    /// It has ended, and the process goes on.
    fn drop(&mut self) {
        let mut known = self.of.lock();
        known.suspects.remove(&self.id);
        self.of.give_back(&mut known, self.place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is written down, as the next process would read it.
    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<BTreeMap<usize, WrittenCall>>>);

    impl Written {
        fn calls(&self) -> Vec<WrittenCall> {
            self.0.lock().unwrap().values().cloned().collect()
        }

        fn texts(&self) -> Vec<String> {
            let text = |call: WrittenCall| {
                format!(
                    "{} {} {} {}",
                    call.controller,
                    call.key,
                    call.times,
                    if call.under_way { "runs" } else { "waits" }
                )
            };
            self.calls().into_iter().map(text).collect()
        }
    }

    impl CallJournal for Written {
        fn capacity(&self) -> usize {
            3
        }

        fn write(&self, place: usize, call: &WrittenCall) {
            self.0.lock().unwrap().insert(place, call.clone());
        }

        fn clear(&self, place: usize) {
            self.0.lock().unwrap().remove(&place);
        }
    }

    fn key(name: &str) -> Key {
        Key { namespace: "ns".into(), name: name.into() }
    }

    /// The process that comes after one that has ended with this written down.
    fn after(before: &Written) -> (Written, Arc<UnfinishedCalls>) {
        let written = Written::default();
        let calls = UnfinishedCalls::new(Arc::new(written.clone()), before.calls());
        (written, calls)
    }

    #[tokio::test(start_paused = true)]
    async fn c_283_a_call_that_ends_process_after_process_is_called_alone_and_then_set_aside_for_longer_and_longer() {
        let (mut written, mut calls) = after(&Written::default());
        assert_eq!(calls.admit("c", &key("bomb"), Instant::now()), CallAdmission::Free);
        let mut seen = Vec::new();
        for _ in 0..9 {
            let under_way = calls.begin("c", &key("bomb"));
            seen.extend(written.texts());
            // The process ends here, and nothing of it is dropped.
            std::mem::forget(under_way);
            (written, calls) = after(&written);
            seen.extend(written.texts());
            match calls.admit("c", &key("bomb"), Instant::now()) {
                CallAdmission::Aside(aside) => {
                    seen.push(format!("aside {} s, {:?}", aside.left.as_secs(), aside.why));
                    tokio::time::advance(aside.left).await;
                    assert_eq!(calls.admit("c", &key("bomb"), Instant::now()), CallAdmission::Alone);
                }
                other => seen.push(format!("{other:?}")),
            }
            assert_eq!(calls.admit("d", &key("bomb"), Instant::now()), CallAdmission::Free, "of another controller");
        }
        let asides: Vec<&str> = seen.iter().filter(|text| !text.starts_with("c ")).map(String::as_str).collect();
        let times = [(60, 2), (240, 3), (960, 4), (3_840, 5), (15_360, 6), (61_440, 7), (86_400, 8), (86_400, 9)];
        let expected: Vec<String> =
            times.iter().map(|(left, times)| format!("aside {left} s, Killed({times})")).collect();
        assert_eq!((asides[0], &asides[1..]), ("Alone", &expected.iter().map(String::as_str).collect::<Vec<_>>()[..]));
        assert_eq!(seen[..3], ["c ns/bomb 0 runs", "c ns/bomb 1 waits", "Alone"]);
    }

    #[tokio::test(start_paused = true)]
    async fn c_283_a_call_that_ends_is_as_all_others_from_then_on() {
        let (written, calls) = after(&Written::default());
        std::mem::forget((calls.begin("c", &key("a")), calls.begin("c", &key("b"))));
        let (written, calls) = after(&written);
        assert_eq!(
            written.texts(),
            ["c ns/b 1 waits", "c ns/a 1 waits"].map(str::to_owned).into_iter().rev().collect::<Vec<_>>()
        );
        calls.carry_out("c", &key("a"), true, async { assert_eq!(written.texts()[0], "c ns/a 1 runs") }).await;
        assert_eq!(written.texts(), ["c ns/b 1 waits"]);
        assert_eq!(calls.admit("c", &key("a"), Instant::now()), CallAdmission::Free);
        calls.retain("d", |_| false);
        calls.retain("c", |_| true);
        assert_eq!(written.texts(), ["c ns/b 1 waits"]);
        calls.retain("c", |of| *of != key("b"));
        assert_eq!(calls.admit("c", &key("b"), Instant::now()), CallAdmission::Free);
        assert_eq!(written.texts(), Vec::<String>::new());
    }

    #[tokio::test(start_paused = true)]
    async fn c_283_those_that_were_under_way_are_called_one_after_the_other_unless_one_takes_long() {
        let (written, calls) = after(&Written::default());
        std::mem::forget((calls.begin("c", &key("a")), calls.begin("c", &key("b"))));
        let (_written, calls) = after(&written);
        let inside = std::sync::atomic::AtomicUsize::new(0);
        let call = async |name, takes| {
            let work = async {
                inside.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                drop(tokio::time::timeout(takes, std::future::pending::<()>()).await);
                inside.fetch_sub(1, std::sync::atomic::Ordering::SeqCst)
            };
            calls.carry_out("c", &key(name), true, work).await
        };
        let (first, second) = tokio::join!(call("a", LONGEST_ALONE / 2), call("b", LONGEST_ALONE / 2));
        assert_eq!((first, second), (1, 1), "each was alone");
        let (long, second) = tokio::join!(call("a", LONGEST_ALONE * 3), call("b", LONGEST_ALONE));
        assert_eq!((long, second), (1, 2), "what takes long does not hold up the others");
    }

    #[tokio::test(start_paused = true)]
    async fn c_283_limits_calls_with_three_of_a_namespace_set_aside_all_of_it_is_until_the_first_is_tried_again() {
        let killed =
            |name: &str, times| WrittenCall { controller: "c".to_owned(), key: key(name), under_way: true, times };
        let now = Instant::now();
        let of = |before| UnfinishedCalls::new(Arc::new(Written::default()), before);
        let two = of(vec![killed("a", 1), killed("b", 1), killed("d", 0)]);
        assert_eq!(two.admit("c", &key("new"), now), CallAdmission::Free);
        let three = of(vec![killed("a", 1), killed("b", 2), killed("d", 1)]);
        let aside = |left, why| CallAdmission::Aside(CallAside { left: Duration::from_secs(left), why });
        assert_eq!(three.admit("c", &key("new"), now), aside(60, Crash::KilledByOthers(3)));
        assert_eq!(three.admit("c", &key("b"), now), aside(240, Crash::Killed(3)));
        let elsewhere = Key { namespace: "other".into(), name: "new".into() };
        assert_eq!(three.admit("c", &elsewhere, now), CallAdmission::Free);
        tokio::time::advance(Duration::from_secs(60)).await;
        let now = Instant::now();
        assert_eq!(
            (three.admit("c", &key("new"), now), three.admit("c", &key("a"), now)),
            (CallAdmission::Free, CallAdmission::Alone)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn c_283_what_is_alone_no_more_and_waits_on_a_server_is_no_reason() {
        let (written, calls) = after(&Written::default());
        std::mem::forget(calls.begin("c", &key("a")));
        let (written, calls) = after(&written);
        let slots = Arc::<crate::slot::CallSlots>::default();
        let wait = || tokio::time::timeout(LONGEST_ALONE, std::future::pending::<()>());
        let call = async {
            let lent = orangery_turns::LentSlot::of(orangery_turns::slot());
            let mut seen = written.texts();
            drop(wait().await);
            drop(wait().await);
            seen.extend(written.texts());
            drop(lent);
            seen.extend(written.texts());
            let lent = orangery_turns::LentSlot::of(orangery_turns::slot());
            seen.extend(written.texts());
            drop(lent);
            seen
        };
        let seen = Arc::clone(&slots).carry_out(calls.carry_out("c", &key("a"), true, call)).await;
        assert_eq!(seen, ["c ns/a 1 runs", "c ns/a 1 waits", "c ns/a 1 runs", "c ns/a 1 waits"]);
        assert_eq!(written.texts(), Vec::<String>::new());
    }

    #[tokio::test]
    async fn c_283_what_an_orderly_end_cuts_off_is_no_reason() {
        let (written, calls) = after(&Written::default());
        std::mem::forget(calls.begin("c", &key("bomb")));
        let (written, calls) = after(&written);
        std::mem::forget((calls.begin("c", &key("bomb")), calls.begin("c", &key("a"))));
        assert_eq!(written.texts(), ["c ns/bomb 1 runs", "c ns/a 0 runs"]);
        calls.stop();
        assert_eq!(written.texts(), ["c ns/bomb 1 waits"]);
    }

    #[test]
    fn c_283_without_a_place_a_call_is_not_written_down_and_goes_on() {
        let (written, calls) = after(&Written::default());
        let under_way: Vec<_> = ["a", "b", "c", "d"].iter().map(|name| calls.begin("c", &key(name))).collect();
        assert_eq!(written.texts().len(), 3);
        drop(under_way);
        assert_eq!((written.texts().len(), calls.lock().free.len()), (0, 3));
    }
}
