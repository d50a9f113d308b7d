//! Calls that were under way when a process ended without being asked to (C-283).
//!
//! A call may end the process: what it reads takes more memory than there is, or a library aborts. It would again after each
//! start. So calls are written down while they are under way. What a process finds written down by the one before is called
//! alone, one call at a time, and so is whatever else is of a namespace that has killed; and where the process ends once more
//! during such a call, while no other namespace has any, it is set aside for a while.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use orangery_core::name::Namespace;
use orangery_turns::Turns;
use tokio::time::Instant;

use self::blame::{AfterKill, SUSPECTED_AFTER};
use crate::{
    Key,
    slot::{SharedTurn, call_slot, lending},
    written::{CallJournal, CallRecord, CallState, JournalEntry, WrittenCall, WrittenNamespace},
};

mod blame;

/// How long a call has the turn of those that are alone; whatever it still does then, it most likely waits for others.
const LONGEST_ALONE: Duration = Duration::from_secs(10);

/// The same of a call that is alone for its namespace only.
const LONGEST_FOR_NAMESPACE: Duration = Duration::from_secs(1);

/// So many processes have to be killed during calls of an object before it is set aside.
const SET_ASIDE_AFTER: u32 = 2;

/// With so many killed during calls of ever other objects of a namespace, the namespace is set aside.
const NAMESPACE_SET_ASIDE_AFTER: u32 = 3;

/// How long a call is set aside at first; each time after that four times as long.
const FIRST_ASIDE: Duration = Duration::from_secs(60);

/// The longest time for an object.
const LONGEST_ASIDE: Duration = Duration::from_secs(24 * 60 * 60);

/// The longest time for a namespace: what kills the process may also be what nobody of it has done.
const LONGEST_NAMESPACE_ASIDE: Duration = Duration::from_secs(16 * 60);

/// So often it is told that something is set aside, each time after one kill more: the telling may be what kills.
const MOST_TOLD: u32 = 3;

/// For so long one namespace is called without all others after several were there at kills.
const FIRST_WINDOW: Duration = Duration::from_secs(30);

/// For so long no process is killed before calls of a namespace are as those of all others.
const SUSPECTED_FOR: Duration = Duration::from_secs(10 * 60);

/// For so long none is killed before it is forgotten how many were during calls of a namespace.
const REMEMBERED_FOR: Duration = Duration::from_secs(60 * 60);

/// What ended the last calls of an object without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crash {
    /// They panicked, [`TOLD_AFTER`](crate::TOLD_AFTER) times in a row or more often. It is called again all the same (C-42).
    Panicked,
    /// The process was killed, so many times. It is set aside for a while (C-283).
    Killed(u32),
    /// It was killed so many times during calls of ever other objects of the namespace: all of it is set aside.
    KilledInNamespace(u32),
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
    namespaces: BTreeMap<Namespace, SuspectedNamespace>,
    /// The one that is called without all others at first.
    first: Option<Namespace>,
    /// Until then; from the first call on it is known.
    first_until: Option<Instant>,
    /// Where calls are that are under way and no suspects.
    under_way: BTreeMap<usize, Arc<CallRecord>>,
    free: Vec<usize>,
}

/// A call that was under way when a process ended.
struct SuspectedCall {
    times: u32,
    /// Where it is written down; `None` where there was no place.
    place: Option<usize>,
    aside_until: Option<Instant>,
}

/// A namespace of such calls, whatever has become of their objects.
struct SuspectedNamespace {
    kills: u32,
    together: u32,
    place: Option<usize>,
    /// Until then nothing of it is called; in the past where it is not set aside.
    aside_until: Instant,
}

impl SuspectedNamespace {
    /// Whether its calls are alone.
    fn is_suspected(&self, now: Instant) -> bool {
        (self.kills > 0 || self.together >= SUSPECTED_AFTER) && self.aside_until + SUSPECTED_FOR > now
    }
}

/// How a call may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallAdmission {
    /// As others.
    Free,
    /// When nothing else is under way that is to be alone.
    Alone,
    /// Not before this time is over, in which another namespace is called without all others.
    Later(Duration),
    /// Not before this time is over.
    Aside(CallAside),
}

/// A call that is set aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CallAside {
    /// For how long from now on.
    pub(crate) left: Duration,
    /// What its owner is told; `None` where that was told often enough.
    pub(crate) told: Option<Crash>,
}

/// What is known of a suspected call once it has ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AfterCall {
    IsForgotten,
    IsSuspected,
}

/// A call that is written down until this is dropped.
struct CallUnderWay {
    of: Arc<UnfinishedCalls>,
    id: (String, Key),
    place: Option<usize>,
    /// How many kills count against it.
    times: u32,
    after: AfterCall,
}

/// How long what was the reason so often is set aside that is from so often on; `None` where it is called alone.
fn aside_for(times: u32, from: u32, longest: Duration) -> Option<Duration> {
    let further = times.checked_sub(from)?;
    let time = 4_u32.checked_pow(further).and_then(|factor| FIRST_ASIDE.checked_mul(factor));
    Some(time.map_or(longest, |time| time.min(longest)))
}

impl KnownCalls {
    fn keep(&mut self, entry: JournalEntry, place: Option<usize>, now: Instant) {
        match entry {
            JournalEntry::Call(WrittenCall { controller, key, times, .. }) => {
                let aside_until = aside_for(times, SET_ASIDE_AFTER, LONGEST_ASIDE).map(|time| now + time);
                self.suspects.insert((controller, key), SuspectedCall { times, place, aside_until });
            }
            JournalEntry::Namespace(WrittenNamespace { namespace, kills, together }) => {
                let aside = aside_for(kills, NAMESPACE_SET_ASIDE_AFTER, LONGEST_NAMESPACE_ASIDE);
                let aside_until = now + aside.unwrap_or_default();
                self.namespaces.insert(namespace, SuspectedNamespace { kills, together, place, aside_until });
            }
        }
    }

    fn admission(&self, id: &(String, Key), now: Instant) -> CallAdmission {
        let aside = |until: Instant, times: u32, from: u32, why: Crash| {
            let told = (times < from.saturating_add(MOST_TOLD)).then_some(why);
            CallAdmission::Aside(CallAside { left: until - now, told })
        };
        if let (Some(first), Some(until)) = (&self.first, self.first_until) {
            // What is set aside is called as well: it may be what kills.
            return if *first == id.1.namespace { CallAdmission::Alone } else { CallAdmission::Later(until - now) };
        }
        let (suspect, namespace) = (self.suspects.get(id), self.namespaces.get(&id.1.namespace));
        match (suspect, namespace) {
            (Some(SuspectedCall { times, aside_until: Some(until), .. }), _) if *until > now => {
                aside(*until, *times, SET_ASIDE_AFTER, Crash::Killed(*times))
            }
            (_, Some(SuspectedNamespace { kills, aside_until, .. })) if *aside_until > now => {
                aside(*aside_until, *kills, NAMESPACE_SET_ASIDE_AFTER, Crash::KilledInNamespace(*kills))
            }
            (Some(_), _) => CallAdmission::Alone,
            (_, Some(namespace)) if namespace.is_suspected(now) => CallAdmission::Alone,
            (None, _) => CallAdmission::Free,
        }
    }
}

impl UnfinishedCalls {
    /// With what the process before has written down, in its order.
    pub fn new(journal: Arc<dyn CallJournal>, before: Vec<JournalEntry>) -> Arc<Self> {
        let (now, filled) = (Instant::now(), before.len().min(journal.capacity()));
        let mut known = KnownCalls::default();
        let mut places = 0..journal.capacity();
        let AfterKill { entries, first } = blame::after_kill(before);
        for entry in entries {
            let place = places.next();
            place.iter().for_each(|place| journal.write(*place, &entry));
            known.keep(entry, place, now);
        }
        known.first = first;
        // What is known is written by now: what the process before wrote behind it goes.
        (places.start..filled).for_each(|place| journal.clear(place));
        known.free = places.rev().collect();
        Arc::new(Self { journal, known: Mutex::new(known), alone: Turns::new(1) })
    }

    /// How a call may begin.
    pub(crate) fn admit(&self, controller: &str, key: &Key, now: Instant) -> CallAdmission {
        let mut known = self.lock();
        if known.suspects.is_empty() && known.namespaces.is_empty() {
            return CallAdmission::Free;
        }
        let first_until = *known.first_until.get_or_insert(now + FIRST_WINDOW);
        if let Some(first) = known.first.take_if(|_| first_until <= now) {
            self.acquit(&mut known, &first);
        }
        let is_forgotten = |known: &SuspectedNamespace| known.aside_until + REMEMBERED_FOR <= now;
        if known.namespaces.get(&key.namespace).is_some_and(is_forgotten) {
            let forgotten = known.namespaces.remove(&key.namespace);
            self.give_back(&mut known, forgotten.and_then(|namespace| namespace.place));
        }
        known.admission(&(controller.to_owned(), key.clone()), now)
    }

    /// A namespace was called without all others and nothing was killed: at the kills before it was not the reason.
    fn acquit(&self, known: &mut KnownCalls, namespace: &Namespace) {
        let Some(SuspectedNamespace { kills, together, place, .. }) = known.namespaces.get_mut(namespace) else {
            return;
        };
        *together = 0;
        let entry = WrittenNamespace { namespace: namespace.clone(), kills: *kills, together: 0 };
        place.iter().for_each(|place| self.journal.write(*place, &JournalEntry::Namespace(entry.clone())));
    }

    /// Whether calls of a namespace are alone.
    pub(crate) fn suspects(&self, namespace: &Namespace, now: Instant) -> bool {
        self.lock().namespaces.get(namespace).is_some_and(|namespace| namespace.is_suspected(now))
    }

    /// The process ends as it was asked to: what is cut off then was no reason. Nothing more is written down.
    pub fn stop(&self) {
        let known = std::mem::take(&mut *self.lock());
        for (place, record) in &known.under_way {
            record.close();
            self.journal.clear(*place);
        }
        for (id, suspect) in &known.suspects {
            self.write_suspect(id, suspect);
        }
    }

    fn write_suspect(&self, (controller, key): &(String, Key), SuspectedCall { times, place, .. }: &SuspectedCall) {
        let (controller, key) = (controller.clone(), key.clone());
        let call = WrittenCall { controller, key, state: CallState::Suspected, times: *times };
        place.iter().for_each(|place| self.journal.write(*place, &JournalEntry::Call(call.clone())));
    }

    /// Forgets the calls of a controller whose objects are gone; of their namespaces it is known how often they killed a process.
    pub(crate) fn retain(&self, controller: &str, exists: impl Fn(&Key) -> bool) {
        let gone = |known: &KnownCalls| -> Vec<(String, Key)> {
            known.suspects.keys().filter(|(of, key)| of == controller && !exists(key)).cloned().collect()
        };
        let mut known = self.lock();
        for id in gone(&known) {
            self.forget(&mut known, &id);
        }
    }

    /// Forgets the call of a controller whose object is gone.
    pub(crate) fn gone(&self, controller: &str, key: &Key) {
        let mut known = self.lock();
        if !known.suspects.is_empty() {
            self.forget(&mut known, &(controller.to_owned(), key.clone()));
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
        if is_alone {
            return self.alone(controller, key, AfterCall::IsForgotten, call).await;
        }
        let _under_way = self.begin(controller, key, AfterCall::IsForgotten);
        call.await
    }

    /// Tells of what is set aside, written down and alone as its calls are: what it needs for that may be what kills.
    pub(crate) async fn tell(self: &Arc<Self>, controller: &str, key: &Key, telling: impl Future<Output = ()>) {
        self.alone(controller, key, AfterCall::IsSuspected, telling).await;
    }

    /// What is alone for its namespace only gives its turn back as soon as it waits on a server; what was itself under way when a
    /// process was killed keeps it for [`LONGEST_ALONE`], with all that it holds meanwhile.
    async fn alone<T>(
        self: &Arc<Self>,
        controller: &str,
        key: &Key,
        after: AfterCall,
        call: impl Future<Output = T>,
    ) -> T {
        let turn = SharedTurn::of(lending(self.alone.acquire(&Some(key.namespace.clone()))).await);
        let under_way = self.begin(controller, key, after);
        let is_suspected = under_way.times > 0;
        if let Some(slot) = call_slot().filter(|_| !is_suspected) {
            slot.give_back_when_it_waits(&turn);
        }
        let longest = if is_suspected { LONGEST_ALONE } else { LONGEST_FOR_NAMESPACE };
        let mut call = std::pin::pin!(call);
        let in_time = tokio::time::timeout(longest, call.as_mut()).await;
        turn.give_back();
        match in_time {
            Ok(ended) => ended,
            Err(_elapsed) => call.await,
        }
    }

    fn begin(self: &Arc<Self>, controller: &str, key: &Key, after: AfterCall) -> CallUnderWay {
        let id = (controller.to_owned(), key.clone());
        let mut known = self.lock();
        let (place, times) = match known.suspects.get(&id) {
            Some(suspect) => (suspect.place, suspect.times),
            None => (known.free.pop(), 0),
        };
        let record = place.map(|place| {
            let (controller, key) = id.clone();
            let call = WrittenCall { controller, key, state: CallState::Works, times };
            Arc::clone(known.under_way.entry(place).insert_entry(CallRecord::of(&self.journal, place, call)).get())
        });
        drop(known);
        if let Some(record) = record {
            record.write(CallState::Works);
            call_slot().iter().for_each(|slot| slot.write_down(&record));
        }
        CallUnderWay { of: Arc::clone(self), id, place, times, after }
    }

    fn forget(&self, known: &mut KnownCalls, id: &(String, Key)) {
        let forgotten = known.suspects.remove(id);
        self.give_back(known, forgotten.and_then(|suspect| suspect.place));
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
        let record = self.place.and_then(|place| known.under_way.remove(&place));
        record.iter().for_each(|record| record.close());
        match known.suspects.get(&self.id) {
            Some(suspect) if self.after == AfterCall::IsSuspected => self.of.write_suspect(&self.id, suspect),
            Some(_) | None => {
                known.suspects.remove(&self.id);
                self.of.give_back(&mut known, self.place.filter(|_| record.is_some()));
            }
        }
    }
}

#[cfg(test)]
mod tests;
