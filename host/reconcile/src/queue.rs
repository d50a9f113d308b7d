//! The keys to be reconciled next: every key once, none twice at a time, none forgotten, no namespace starved.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use orangery_core::name::{Namespace, ObjectName};
use orangery_figures::DurationCounts;
use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};

use crate::Key;

/// The keys of one controller that are to be called. Cheap to clone: clones share the keys.
///
/// - A key that is woken many times before it is called is called once.
/// - A key that is woken while it is called is called again afterwards.
/// - Of several [`wake_in`](Self::wake_in), the earliest counts; a call settles all that were made before it.
/// - Namespaces take turns; within one, the first woken is the first called. One that has [`MOST_CALLS_OF_A_NAMESPACE`] calls
///   under way waits until one of them ends.
#[derive(Clone, Default)]
pub struct Queue {
    shared: Arc<SharedQueue>,
}

#[derive(Default)]
struct SharedQueue {
    /// Protects who waits for what. Held for one step of one key, never across an await.
    plan: Mutex<CallPlan>,
    /// Rung when the next key may have changed.
    bell: Notify,
}

/// The most calls of one namespace that are under way, those included that wait on somebody else's server.
pub const MOST_CALLS_OF_A_NAMESPACE: usize = 256;

/// The same of a namespace during whose calls a process was killed (C-283).
pub(crate) const MOST_CALLS_OF_A_SUSPECTED_NAMESPACE: usize = 16;

/// What a queue has counted since it was made, and how full it is: the figures of `orangery_reconcile_*` and
/// `orangery_queue_*`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueCounts {
    /// Keys that wait for their call.
    pub queued: usize,
    /// Keys that are being called.
    pub running: usize,
    /// Calls that ended well, waits included.
    pub settled: u64,
    /// Calls that are tried again after a conflict.
    pub conflicts: u64,
    /// Calls that failed and are tried again.
    pub retried: u64,
    /// Calls that failed for good.
    pub stalled: u64,
    /// Calls that panicked.
    pub panicked: u64,
    /// Calls that an event made.
    pub by_event: u64,
    /// Calls that a timer made: of a failure, a poll or a deadline.
    pub by_time: u64,
    /// Calls of objects that waited and heard nothing for long (C-11).
    pub by_stale_watch: u64,
    /// Time spent in calls.
    pub busy: DurationCounts,
    /// Time that keys waited for their call.
    pub waited: DurationCounts,
}

/// How a call ended, for the counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Settled,
    Conflict,
    Retried,
    Stalled,
    Panicked,
}

/// What made a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallCause {
    /// A change, or a call before it.
    Event,
    /// Its time has come.
    Time,
}

#[derive(Default)]
struct CallPlan {
    entries: BTreeMap<Key, QueueEntry>,
    /// The namespaces that have keys to call, in turn.
    turns: VecDeque<Namespace>,
    /// The names to call, by namespace, first woken first. Never empty.
    lanes: BTreeMap<Namespace, VecDeque<ObjectName>>,
    /// Calls that are under way, by namespace. Never zero.
    running: BTreeMap<Namespace, usize>,
    /// The keys with a time, earliest first.
    due: BTreeSet<(Instant, Key)>,
    counts: QueueCounts,
}

#[derive(Default)]
struct QueueEntry {
    state: KeyState,
    due: Option<Instant>,
}

#[derive(Clone, Copy, Default)]
enum KeyState {
    #[default]
    Idle,
    Queued {
        since: Instant,
        cause: CallCause,
    },
    Running {
        since: Instant,
        woken: bool,
    },
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Queue({:?})", self.counts())
    }
}

impl Queue {
    /// An empty queue.
    pub fn new() -> Self {
        Self::default()
    }

    /// Has a key called as soon as there is room.
    pub fn wake(&self, key: Key) {
        self.plan().wake(key, CallCause::Event, Instant::now());
        self.shared.bell.notify_one();
    }

    /// Has a key called after a time, unless it is called earlier.
    pub fn wake_in(&self, key: Key, after: Duration) {
        let Some(at) = Instant::now().checked_add(after) else { return };
        self.plan().wake_at(key, at);
        self.shared.bell.notify_one();
    }

    /// The figures so far.
    pub fn counts(&self) -> QueueCounts {
        self.plan().counts.clone()
    }

    /// The keys that wait for their call, sorted.
    pub fn queued(&self) -> Vec<Key> {
        let plan = self.plan();
        let waits = plan.entries.iter().filter(|(_, entry)| matches!(entry.state, KeyState::Queued { .. }));
        let mut keys: Vec<Key> = waits.map(|(key, _)| key.clone()).collect();
        keys.sort();
        keys
    }

    /// Waits for the next key and marks it as being called, until [`finish`](Self::finish); says also what made the call. Of
    /// namespaces that are suspected fewer are called at once. For one caller at a time; may be dropped without losing a key.
    pub(crate) async fn next(&self, is_suspected: impl Fn(&Namespace) -> bool) -> (Key, CallCause) {
        loop {
            let due = {
                let mut plan = self.plan();
                let now = Instant::now();
                plan.promote(now);
                if let Some(called) = plan.take(now, &is_suspected) {
                    return called;
                }
                plan.due.first().map(|(at, _)| *at)
            };
            match due {
                None => self.shared.bell.notified().await,
                Some(at) => tokio::select! {
                    () = self.shared.bell.notified() => {}
                    () = sleep_until(at) => {}
                },
            }
        }
    }

    /// A call begins, for the counts.
    pub(crate) fn count(&self, cause: CallCause, silence: bool) {
        let counts = &mut self.plan().counts;
        *match (cause, silence) {
            (_, true) => &mut counts.by_stale_watch,
            (CallCause::Time, false) => &mut counts.by_time,
            (CallCause::Event, false) => &mut counts.by_event,
        } += 1;
    }

    /// The call of a key has ended. If it was woken meanwhile, it is queued again; but one that failed is left to the
    /// time of its next attempt, as what woke it may be its own write.
    pub(crate) fn finish(&self, key: &Key, ended: Ended) {
        self.plan().finish(key, ended, Instant::now());
        self.shared.bell.notify_one();
    }

    /// The key's object is gone: its times are dropped.
    pub(crate) fn forget(&self, key: &Key) {
        self.plan().forget(key);
    }

    fn plan(&self) -> MutexGuard<'_, CallPlan> {
        self.shared.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CallPlan {
    fn wake(&mut self, key: Key, by: CallCause, now: Instant) {
        let entry = self.entries.entry(key.clone()).or_default();
        match &mut entry.state {
            KeyState::Queued { cause, .. } if by == CallCause::Event => *cause = by,
            KeyState::Queued { .. } => {}
            KeyState::Running { woken, .. } => *woken = true,
            KeyState::Idle => {
                entry.state = KeyState::Queued { since: now, cause: by };
                self.enqueue(key);
            }
        }
    }

    fn wake_at(&mut self, key: Key, at: Instant) {
        let entry = self.entries.entry(key.clone()).or_default();
        match entry.due {
            Some(earlier) if earlier <= at => return,
            Some(later) => {
                self.due.remove(&(later, key.clone()));
            }
            None => {}
        }
        entry.due = Some(at);
        self.due.insert((at, key));
    }

    /// Queues the keys whose time has come.
    fn promote(&mut self, now: Instant) {
        while let Some((at, _)) = self.due.first()
            && *at <= now
            && let Some((_, key)) = self.due.pop_first()
        {
            if let Some(entry) = self.entries.get_mut(&key) {
                entry.due = None;
            }
            self.wake(key, CallCause::Time, now);
        }
    }

    fn enqueue(&mut self, key: Key) {
        self.counts.queued += 1;
        match self.lanes.get_mut(&key.namespace) {
            Some(lane) => lane.push_back(key.name),
            None => {
                self.turns.push_back(key.namespace.clone());
                self.lanes.insert(key.namespace, VecDeque::from([key.name]));
            }
        }
    }

    fn take(&mut self, now: Instant, is_suspected: impl Fn(&Namespace) -> bool) -> Option<(Key, CallCause)> {
        let has_room = |namespace: &Namespace| match self.running.get(namespace) {
            Some(running) if *running >= MOST_CALLS_OF_A_SUSPECTED_NAMESPACE => {
                *running < MOST_CALLS_OF_A_NAMESPACE && !is_suspected(namespace)
            }
            Some(_) | None => true,
        };
        let turn = self.turns.iter().position(has_room)?;
        let namespace = self.turns.remove(turn)?;
        let lane = self.lanes.get_mut(&namespace)?;
        let key = Key { name: lane.pop_front()?, namespace };
        if lane.is_empty() {
            self.lanes.remove(&key.namespace);
        } else {
            self.turns.push_back(key.namespace.clone());
        }
        let entry = self.entries.entry(key.clone()).or_default();
        let mut by = CallCause::Event;
        if let KeyState::Queued { since, cause } = entry.state {
            self.counts.waited.add(now.saturating_duration_since(since));
            by = cause;
        }
        entry.state = KeyState::Running { since: now, woken: false };
        if let Some(at) = entry.due.take() {
            self.due.remove(&(at, key.clone()));
        }
        self.counts.queued -= 1;
        self.counts.running += 1;
        *self.running.entry(key.namespace.clone()).or_default() += 1;
        Some((key, by))
    }

    fn finish(&mut self, key: &Key, ended: Ended, now: Instant) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        let KeyState::Running { since, woken } = entry.state else { return };
        entry.state = KeyState::Idle;
        let timed = entry.due.is_some();
        self.counts.running -= 1;
        match self.running.get_mut(&key.namespace) {
            Some(running) if *running > 1 => *running -= 1,
            Some(_) | None => {
                self.running.remove(&key.namespace);
            }
        }
        self.counts.busy.add(now.saturating_duration_since(since));
        *match ended {
            Ended::Settled => &mut self.counts.settled,
            Ended::Conflict => &mut self.counts.conflicts,
            Ended::Retried => &mut self.counts.retried,
            Ended::Stalled => &mut self.counts.stalled,
            Ended::Panicked => &mut self.counts.panicked,
        } += 1;
        let failed = matches!(ended, Ended::Retried | Ended::Panicked);
        if woken && !failed {
            self.wake(key.clone(), CallCause::Event, now);
        } else if !timed {
            self.entries.remove(key);
        }
    }

    fn forget(&mut self, key: &Key) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        if let Some(at) = entry.due.take() {
            self.due.remove(&(at, key.clone()));
        }
        if matches!(entry.state, KeyState::Idle) {
            self.entries.remove(key);
        }
    }
}

#[cfg(test)]
mod tests;
