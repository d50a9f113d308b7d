//! Events of `events.k8s.io`: what is said again soon is counted in the event that says it already.

use std::{
    collections::{HashMap, VecDeque, hash_map::DefaultHasher},
    hash::{Hash as _, Hasher as _},
    sync::{Arc, Mutex, PoisonError},
};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{
    api::{
        core::v1::ObjectReference,
        events::v1::{Event, EventSeries},
    },
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
};
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
    runtime::events::EventType,
};
use serde_json::json;

/// How long an event counts what is said again, since it was said last. As in kube and client-go.
const COUNTED_FOR: SignedDuration = SignedDuration::from_mins(6);

/// The most of an object's name in the name of an event: it is 253 letters long at most, with a dot and sixteen digits.
const LONGEST_NAME: usize = 236;

/// Publishes events. Instead of the one of kube, which takes two that are told at once for two events, and of two that
/// differ in their notes tells the first one twice: a server lets nobody change a note.
#[derive(Clone)]
pub struct EventRecorder {
    client: Client,
    controller: String,
    recent: Arc<Mutex<RecentEvents>>,
}

/// What has happened.
#[derive(Clone)]
pub struct Notice {
    /// Whether it may need somebody.
    pub type_: EventType,
    /// One word in `PascalCase`, at most 128 letters.
    pub reason: String,
    /// What kubectl shows, at most 1024 bytes.
    pub note: String,
    /// What was being done, one word.
    pub action: String,
    /// What becomes of it where it has been said already.
    pub repeated: Repeated,
}

/// What becomes of what is said again of an object within six minutes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeated {
    /// It has happened again: the event counts it.
    Counted,
    /// It still is so: nothing is sent.
    Passed,
    /// It still is so, whatever the note says by now: nothing is sent.
    PassedWhateverItSays,
}

/// The events that were told lately, by object and what was said. A key is a hash, so that many failures take little memory.
#[derive(Default)]
struct RecentEvents {
    known: HashMap<u64, RecentEvent>,
    /// The keys in the order in which they may be forgotten, with the time they were told when they were put here.
    oldest: VecDeque<(Timestamp, u64)>,
}

struct RecentEvent {
    last: Timestamp,
    /// Held while it is sent: who says the same meanwhile waits.
    event: Arc<tokio::sync::Mutex<Option<SentEvent>>>,
}

struct SentEvent {
    name: String,
    count: i32,
}

impl RecentEvents {
    /// The event of a key, told now.
    fn at(&mut self, key: u64, now: Timestamp) -> Arc<tokio::sync::Mutex<Option<SentEvent>>> {
        while let Some((time, old)) = self.oldest.pop_front_if(|(time, _)| *time + COUNTED_FOR <= now) {
            match self.known.get(&old) {
                Some(recent) if recent.last > time => self.oldest.push_back((recent.last, old)),
                Some(_) | None => drop(self.known.remove(&old)),
            }
        }
        let recent = self.known.entry(key).or_insert_with(|| {
            self.oldest.push_back((now, key));
            RecentEvent { last: now, event: Arc::default() }
        });
        recent.last = now;
        Arc::clone(&recent.event)
    }
}

impl EventRecorder {
    /// A recorder of this controller.
    pub fn new(client: Client, controller: &str) -> Self {
        Self { client, controller: controller.to_owned(), recent: Arc::default() }
    }

    /// Says it of an object: by a new event, or by the count of the one that says the same already.
    ///
    /// # Errors
    /// The server takes it not; it is not tried again.
    pub async fn publish(&self, notice: &Notice, of: &ObjectReference, now: Timestamp) -> Result<(), kube::Error> {
        let key = key(notice, of);
        let event = self.recent.lock().unwrap_or_else(PoisonError::into_inner).at(key, now);
        let mut sent = event.lock().await;
        let events: Api<Event> = Api::namespaced(self.client.clone(), of.namespace.as_deref().unwrap_or("default"));
        if let Some(sent) = sent.as_mut() {
            if notice.repeated != Repeated::Counted {
                return Ok(());
            }
            sent.count = sent.count.saturating_add(1);
            let series = EventSeries { count: sent.count, last_observed_time: MicroTime(now) };
            let patch = Patch::Merge(json!({ "series": series }));
            match events.patch(&sent.name, &PatchParams::default(), &patch).await {
                // A server keeps events for an hour, and anybody may delete them: it is told anew.
                Err(kube::Error::Api(status)) if status.code == 404 => {}
                answer => return answer.map(drop),
            }
        }
        let name = name(of, key, now);
        *sent = None;
        events.create(&PostParams::default(), &self.event(notice, of, name.clone(), now)).await?;
        *sent = Some(SentEvent { name, count: 1 });
        Ok(())
    }

    fn event(&self, notice: &Notice, of: &ObjectReference, name: String, now: Timestamp) -> Event {
        Event {
            action: Some(notice.action.clone()),
            reason: Some(notice.reason.clone()),
            note: Some(notice.note.clone()),
            type_: Some(type_of(notice).to_owned()),
            event_time: Some(MicroTime(now)),
            regarding: Some(of.clone()),
            reporting_controller: Some(self.controller.clone()),
            reporting_instance: Some(self.controller.clone()),
            metadata: ObjectMeta { name: Some(name), namespace: of.namespace.clone(), ..ObjectMeta::default() },
            ..Event::default()
        }
    }
}

fn type_of(notice: &Notice) -> &'static str {
    match notice.type_ {
        EventType::Normal => "Normal",
        EventType::Warning => "Warning",
    }
}

/// Two notices with the same key say the same of the same object.
fn key(notice: &Notice, of: &ObjectReference) -> u64 {
    let mut hasher = DefaultHasher::new();
    (&of.api_version, &of.kind, &of.namespace, &of.name, &of.uid).hash(&mut hasher);
    (type_of(notice), &notice.reason, &notice.action).hash(&mut hasher);
    if notice.repeated != Repeated::PassedWhateverItSays {
        notice.note.hash(&mut hasher);
    }
    hasher.finish()
}

/// The name of a new event: that of its object, and when what was said.
fn name(of: &ObjectReference, key: u64, now: Timestamp) -> String {
    let mut object = of.name.as_deref().unwrap_or("unknown");
    object = object.get(..object.floor_char_boundary(LONGEST_NAME)).unwrap_or_default();
    let object = object.trim_end_matches(['.', '-']);
    let mut hasher = DefaultHasher::new();
    (key, now.as_nanosecond()).hash(&mut hasher);
    format!("{object}.{:016x}", hasher.finish())
}

#[cfg(test)]
mod tests;
