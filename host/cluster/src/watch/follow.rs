//! The task of one watch: lists, then follows, and takes up again what breaks off.

use std::{borrow::Cow, fmt, pin::pin, sync::Arc, time::Duration};

use futures::{FutureExt as _, Stream, StreamExt};
use kube::{
    Api, Client, Resource,
    core::{ApiResource as KubeResource, DynamicResourceScope, ObjectMeta, WatchEvent},
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};
use orangery_core::{levels::DEEPEST_OBJECT, memory};
use orangery_proposal::deployer::ApiResource;
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep, sleep_until};

use super::{Scope, Shared, Waiter, known::KnownObjects};
use crate::{
    answer::check_events,
    answer_room::{AnswerRoom, held_in},
    pace::EventPace,
    path::segment,
};

/// Objects a page of a list holds: as large as objects can be, they fit into one answer.
pub(crate) const PAGE: u32 = 100;

/// What may be watched no longer is listed again after this, and after twice as long each time up to the ceiling.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const PAUSE_CEILING: Duration = Duration::from_secs(30);

/// What is told of a scope, from the first list on, which is read in pages of so many objects. What comes is held in a room until
/// it is taken in (C-88). Errors are backed off (0.8 s to 30 s) by the watcher.
pub(super) fn events(
    (client, room): (&Client, &Arc<AnswerRoom>),
    scope: &Scope,
    page: u32,
) -> impl Stream<Item = Result<Event<Watched>, watcher::Error>> + use<> {
    let config = watcher::Config {
        label_selector: scope.labels.clone(),
        field_selector: scope.fields.clone(),
        page_size: Some(page),
        ..watcher::Config::default()
    };
    watcher(api(held_in(room, client), scope), config).default_backoff()
}

/// The requests for a scope, by the same path as those for its objects.
fn api(client: Client, scope: &Scope) -> Api<Watched> {
    let resource = kube_resource(&scope.resource);
    match &scope.namespace {
        Some(namespace) if scope.resource.namespaced => Api::namespaced_with(client, &segment(namespace), &resource),
        Some(_) | None => Api::all_with(client, &resource),
    }
}

/// Why a list has to say anew what there is.
enum FollowEnd {
    /// The server does not let the scope be watched any longer.
    Refused,
    /// There is no room for what it tells.
    NoRoom,
}

/// Follows a scope until it is aborted, as the follower of this number.
pub(super) async fn follow(client: Client, scope: Scope, known: Arc<Shared>, number: u64) {
    let mut pause = FIRST_PAUSE;
    loop {
        let begun = Instant::now();
        let end = follow_until_lost((client.clone(), &scope), &known, number).await;
        // What had no room may have none again, however late that shows.
        if matches!(end, FollowEnd::Refused) && begun.elapsed() > PAUSE_CEILING {
            pause = FIRST_PAUSE;
        }
        // Whoever may list and not watch would be asked without end.
        sleep(pause).await;
        pause = pause.saturating_mul(2).min(PAUSE_CEILING);
    }
}

/// Follows a scope until the server lets it be watched no longer, where it did, or until there is no room for what it tells, or for
/// what writes have answered.
async fn follow_until_lost((client, scope): (Client, &Scope), known: &Shared, number: u64) -> FollowEnd {
    let room = known.answers();
    let mut events = pin!(events((&client, &room), scope, PAGE));
    // What was given up meanwhile is listed now.
    let _was_given_up = known.without_room.notified().now_or_never();
    loop {
        let event = tokio::select! {
            biased;
            () = known.without_room.notified() => return FollowEnd::NoRoom,
            event = events.next() => event,
        };
        let Some(event) = event else { return FollowEnd::Refused };
        let mut is_lost = false;
        if let Some(turn) = turn_of(&event, &known.pace) {
            sleep_until(turn).await;
        }
        // What it knows would not be told of any more, and takes the room: a list says anew what there is.
        if let Some(trouble) = event.as_ref().err().and_then(|_| room.failed()) {
            tracing::debug!(kind = %scope.resource.kind, "a watch broke off and begins anew: {trouble}");
            known.give_up(&trouble);
            return FollowEnd::NoRoom;
        }
        let bytes = bytes_of(&event);
        known.change_by(number, |known| match event {
            Ok(event) => take_in(known, event, &scope.resource),
            Err(error) => {
                tracing::debug!(kind = %scope.resource.kind, %error, "a watch broke off and is taken up again");
                match refusal(&error) {
                    None => known.failed(error.to_string(), is_lasting(&error)),
                    Some(refusal) => {
                        let (was_known, concerned) = known.refused(refusal);
                        is_lost = was_known;
                        concerned
                    }
                }
            }
        });
        room.taken_in(bytes);
        if let Some(trouble) = known.give_up_without_room() {
            tracing::warn!(kind = %scope.resource.kind, "a watch begins anew: {trouble}");
            return FollowEnd::NoRoom;
        }
        // The one before this one may have heard of it.
        if known.is_given_up() {
            return FollowEnd::NoRoom;
        }
        if is_lost {
            return FollowEnd::Refused;
        }
    }
}

/// From when on an event may be taken in, where that is not now (C-273).
pub(super) fn turn_of(event: &Result<Event<Watched>, watcher::Error>, pace: &EventPace) -> Option<Instant> {
    match event {
        Ok(Event::Apply(watched) | Event::Delete(watched)) => pace.changed(&watched.object),
        Ok(Event::InitApply(watched)) => pace.listed(&watched.object),
        Ok(Event::Init | Event::InitDone) | Err(_) => None,
    }
}

/// Bytes of memory of the object that an event tells of.
pub(super) fn bytes_of(event: &Result<Event<Watched>, watcher::Error>) -> u64 {
    match event {
        Ok(Event::Apply(watched) | Event::Delete(watched) | Event::InitApply(watched)) => memory::of(&watched.object),
        Ok(Event::Init | Event::InitDone) | Err(_) => 0,
    }
}

/// The status that the server has answered with.
fn code_of(error: &watcher::Error) -> Option<u16> {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status) => Some(status.code),
        watcher::Error::InitialListFailed(_)
        | watcher::Error::WatchStartFailed(_)
        | watcher::Error::WatchFailed(_)
        | watcher::Error::NoResourceVersion => None,
    }
}

/// Whether the server does not know what is watched, which does not pass by itself.
fn is_lasting(error: &watcher::Error) -> bool {
    matches!(code_of(error), Some(404 | 405))
}

/// What to say where the server refuses it for whom it is asked: the credentials or the rights of that one have gone.
fn refusal(error: &watcher::Error) -> Option<String> {
    match code_of(error)? {
        401 => Some("it does not accept the credentials; renew them".to_owned()),
        403 => Some(error.to_string()),
        _ => None,
    }
}

fn take_in(known: &mut KnownObjects, event: Event<Watched>, resource: &ApiResource) -> Vec<Waiter> {
    match event {
        Event::Init => known.begin_list(),
        Event::InitApply(watched) => known.listed(watched.typed(resource)),
        Event::InitDone => return known.end_list(),
        Event::Apply(watched) => return known.changed(watched.typed(resource)),
        Event::Delete(watched) => return known.removed(&watched.typed(resource)),
    }
    Vec::new()
}

/// Takes in what a server tells a watch, one event a line, as watches do. Answers the memory that the objects take, in bytes. For
/// who tries what a server could say.
///
/// # Errors
/// An event is too large, none, or an error.
pub fn read_events(bytes: &[u8]) -> Result<u64, String> {
    check_events(bytes).map_err(|error| error.to_string())?;
    let (text, mut known) = (str::to_owned, KnownObjects::of(None));
    let (api_version, kind) = ("v1".into(), "ConfigMap".into());
    let resource = ApiResource { api_version, kind, plural: text("configmaps"), namespaced: true };
    for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let event = match serde_json::from_slice(line).map_err(|error| error.to_string())? {
            WatchEvent::<Watched>::Added(object) | WatchEvent::Modified(object) => Event::Apply(object),
            WatchEvent::Deleted(object) => Event::Delete(object),
            WatchEvent::Bookmark(_) => continue,
            WatchEvent::Error(error) => return Err(format!("{error:?}")),
        };
        drop(take_in(&mut known, event, &resource));
    }
    Ok(known.bytes())
}

/// The resource with each part as one segment of a path.
fn kube_resource(resource: &ApiResource) -> KubeResource {
    KubeResource {
        group: segment(resource.api_version.group()),
        version: segment(resource.api_version.version()),
        api_version: resource.api_version.to_string(),
        kind: resource.kind.to_string(),
        plural: segment(&resource.plural),
    }
}

/// An object as the watch tells it.
#[derive(Clone, Debug)]
pub(super) struct Watched {
    meta: ObjectMeta,
    pub(super) object: Value,
}

impl Watched {
    /// Elements of a list lack their kind.
    pub(super) fn typed(mut self, resource: &ApiResource) -> Value {
        if let Some(map) = self.object.as_object_mut() {
            map.entry("apiVersion").or_insert_with(|| json!(resource.api_version));
            map.entry("kind").or_insert_with(|| json!(resource.kind));
        }
        self.object
    }
}

/// What the watcher reads of metadata. The rest may be long, and is in the object.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WatchedMeta {
    name: Option<String>,
    resource_version: Option<String>,
}

impl<'de> Deserialize<'de> for Watched {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // One object of somebody else that is too deep is seen without what is so, and keeps nothing from the others (C-153).
        let object = Levels(DEEPEST_OBJECT).deserialize(deserializer)?;
        let meta = object.get("metadata").map_or(Ok(WatchedMeta::default()), WatchedMeta::deserialize);
        let WatchedMeta { name, resource_version } = meta.map_err(D::Error::custom)?;
        let meta = ObjectMeta { name, resource_version, ..ObjectMeta::default() };
        Ok(Self { meta, object })
    }
}

impl Resource for Watched {
    type DynamicType = KubeResource;
    type Scope = DynamicResourceScope;

    fn kind(resource: &KubeResource) -> Cow<'_, str> {
        Cow::Borrowed(&resource.kind)
    }
    fn group(resource: &KubeResource) -> Cow<'_, str> {
        Cow::Borrowed(&resource.group)
    }
    fn version(resource: &KubeResource) -> Cow<'_, str> {
        Cow::Borrowed(&resource.version)
    }
    fn plural(resource: &KubeResource) -> Cow<'_, str> {
        Cow::Borrowed(&resource.plural)
    }
    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }
    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.meta
    }
}

/// A value of so many levels of lists and objects in each other; what is deeper is read over, and stands there as null.
#[derive(Clone, Copy)]
struct Levels(usize);

impl<'de> DeserializeSeed<'de> for Levels {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        match self.0 {
            0 => IgnoredAny::deserialize(deserializer).map(|IgnoredAny| Value::Null),
            _ => deserializer.deserialize_any(self),
        }
    }
}

impl<'de> Visitor<'de> for Levels {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Value, A::Error> {
        let mut read = Vec::new();
        while let Some(element) = elements.next_element_seed(Levels(self.0 - 1))? {
            read.push(element);
        }
        Ok(read.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut read = Map::new();
        while let Some(name) = members.next_key()? {
            read.insert(name, members.next_value_seed(Levels(self.0 - 1))?);
        }
        Ok(read.into())
    }
}

#[cfg(test)]
mod tests;
