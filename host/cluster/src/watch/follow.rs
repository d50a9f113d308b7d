//! The task of one watch: lists, then follows, and takes up again what breaks off.

use std::{borrow::Cow, fmt, pin::pin, sync::Arc, time::Duration};

use futures::{Stream, StreamExt};
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

/// Follows a scope until it is aborted.
pub(super) async fn follow(client: Client, scope: Scope, known: Arc<Shared>) {
    let mut pause = FIRST_PAUSE;
    loop {
        let begun = Instant::now();
        if !follow_until_refused(client.clone(), &scope, &known).await {
            return;
        }
        if begun.elapsed() > PAUSE_CEILING {
            pause = FIRST_PAUSE;
        }
        // Whoever may list and not watch would be asked without end.
        sleep(pause).await;
        pause = pause.saturating_mul(2).min(PAUSE_CEILING);
    }
}

/// Follows a scope until the server lets it be watched no longer, where it did, or until there is no room for what it tells; then a
/// list has to say anew what there is. `false` where it is given up.
async fn follow_until_refused(client: Client, scope: &Scope, known: &Shared) -> bool {
    let room = known.answers();
    let mut events = pin!(events((&client, &room), scope, PAGE));
    while let Some(event) = events.next().await {
        let mut is_lost = false;
        if let Some(turn) = turn_of(&event, &known.pace) {
            sleep_until(turn).await;
        }
        // What it knows would not be told of any more, and takes the room: a list says anew what there is.
        if let Some(trouble) = event.as_ref().err().and_then(|_| room.failed()) {
            tracing::debug!(kind = %scope.resource.kind, "a watch broke off and begins anew: {trouble}");
            known.without_room(&trouble);
            return true;
        }
        let bytes = bytes_of(&event);
        known.change(|known| match event {
            Ok(event) => take_in(known, event, &scope.resource),
            Err(error) => {
                tracing::debug!(kind = %scope.resource.kind, %error, "a watch broke off and is taken up again");
                let Some(refusal) = refusal(&error) else { return known.failed(error.to_string()) };
                let (was_known, concerned) = known.refused(refusal);
                is_lost = was_known;
                concerned
            }
        });
        room.taken_in(bytes);
        if let Some(trouble) = known.give_up_without_room() {
            tracing::warn!(kind = %scope.resource.kind, "a watch is given up: {trouble}");
            return false;
        }
        if is_lost {
            return true;
        }
    }
    false
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

/// What to say where the server refuses it for whom it is asked: the credentials or the rights of that one have gone.
fn refusal(error: &watcher::Error) -> Option<String> {
    let code = match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status) => status.code,
        watcher::Error::InitialListFailed(_)
        | watcher::Error::WatchStartFailed(_)
        | watcher::Error::WatchFailed(_)
        | watcher::Error::NoResourceVersion => return None,
    };
    match code {
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
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use http::{Request, Response};
    use kube::{Config, client::Body};
    use tokio::{sync::Semaphore, time::advance};
    use tower::{BoxError, service_fn};

    use super::*;
    use crate::{
        cluster::at,
        shares::ClusterShares,
        watch::{NamespacedName, Observed, Watches},
    };

    fn config_maps() -> ApiResource {
        ApiResource {
            api_version: "v1".into(),
            kind: "ConfigMap".into(),
            plural: "configmaps".into(),
            namespaced: true,
        }
    }

    /// A client that is told of one ConfigMap in a list, and of another one after it.
    fn client() -> Client {
        let named = |name: &str| json!({"metadata": {"namespace": "n", "name": name, "resourceVersion": "2"}});
        let list = json!({"apiVersion": "v1", "kind": "ConfigMapList", "metadata": {"resourceVersion": "1"}, "items": [named("x")]});
        let mut added = named("y");
        (added["apiVersion"], added["kind"]) = (json!("v1"), json!("ConfigMap"));
        let event = format!("{}\n", json!({"type": "ADDED", "object": added}));
        let service = service_fn(move |request: Request<Body>| {
            let is_watch = request.uri().query().unwrap_or_default().contains("watch=");
            let answer = if is_watch { event.clone() } else { list.to_string() };
            async move { Ok::<_, BoxError>(Response::new(Body::from(answer.into_bytes()))) }
        });
        Client::new(service, "default")
    }

    #[tokio::test(start_paused = true)]
    async fn c_273_a_watch_is_read_on_when_its_namespace_has_its_turn() {
        let shares = ClusterShares::new(1 << 30);
        let spent = shares.paces.of(&Some("n".into()));
        assert_eq!((0..30_000).filter(|_| spent.changed(&json!({})).is_some()).count(), 10_000);
        let resource = config_maps();
        let watches = Watches::new(Arc::new(|_| {}), shares);
        let waiter = Waiter { kind: "DeployItem".into(), namespace: "n".into(), name: "item".into() };
        let begun = Instant::now();
        let _handle = watches.watch(&client(), Scope::all(&resource, Some("n".into())), &waiter, None);
        for name in ["x", "y"] {
            let place = NamespacedName { namespace: Some("n".into()), name: name.into() };
            while !matches!(watches.observed(&resource, &place), Some(Observed::Present(_))) {
                advance(Duration::from_millis(10)).await;
            }
            assert!(begun.elapsed() > Duration::from_secs(9), "{name}: {:?}", begun.elapsed());
        }
    }

    /// A client that is told of one ConfigMap of a MiB in a list.
    fn client_of_large() -> Client {
        let service = service_fn(move |request: Request<Body>| async move {
            if request.uri().query().unwrap_or_default().contains("watch=") {
                std::future::pending::<()>().await;
            }
            let metadata = json!({"namespace": "n", "name": "x", "resourceVersion": "2"});
            let item = json!({"metadata": metadata, "data": {"text": "x".repeat(1 << 20)}});
            let list = json!({"apiVersion": "v1", "kind": "ConfigMapList", "metadata": {"resourceVersion": "1"}, "items": [item]});
            Ok::<_, BoxError>(Response::new(Body::from(list.to_string().into_bytes())))
        });
        Client::new(service, "default")
    }

    #[tokio::test(start_paused = true)]
    async fn c_88_what_waits_for_the_pace_of_its_namespace_is_counted_and_once_only_when_it_is_taken_in() {
        let shares = ClusterShares::new(16 << 20);
        let spent = shares.paces.of(&Some("n".into()));
        assert_eq!((0..30_000).filter(|_| spent.changed(&json!({})).is_some()).count(), 10_000);
        let resource = config_maps();
        let watches = Watches::new(Arc::new(|_| {}), shares.clone());
        let waiter = Waiter { kind: "DeployItem".into(), namespace: "n".into(), name: "item".into() };
        let _handle = watches.watch(&client_of_large(), Scope::all(&resource, Some("n".into())), &waiter, None);
        let place = NamespacedName { namespace: Some("n".into()), name: "x".into() };
        let is_known = || matches!(watches.observed(&resource, &place), Some(Observed::Present(_)));
        while shares.objects.taken() == 0 {
            advance(Duration::from_millis(10)).await;
        }
        assert!(!is_known(), "it waits");
        let counted = shares.objects.taken();
        while !is_known() {
            advance(Duration::from_millis(10)).await;
        }
        assert!((1 << 20..1_100_000).contains(&counted), "{counted}");
        assert!((1 << 20..1_100_000).contains(&shares.objects.taken()), "{}", shares.objects.taken());
    }

    #[tokio::test(start_paused = true)]
    async fn c_88_a_watch_without_room_for_what_it_is_told_forgets_what_it_knew_and_says_so() {
        let list = json!({"apiVersion": "v1", "kind": "ConfigMapList", "metadata": {"resourceVersion": "1"},
            "items": [{"metadata": {"namespace": "n", "name": "x", "resourceVersion": "1"}}]});
        let large = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"text": "x".repeat(600 << 10)},
            "metadata": {"namespace": "n", "name": "y", "resourceVersion": "2"}});
        let (lists, events) = (Arc::new(AtomicUsize::new(0)), Arc::new(Semaphore::new(0)));
        let (asked, permits) = (Arc::clone(&lists), Arc::clone(&events));
        let service = service_fn(move |request: Request<Body>| {
            let is_watch = request.uri().query().unwrap_or_default().contains("watch=");
            asked.fetch_add(usize::from(!is_watch), Ordering::SeqCst);
            let event = json!({"type": "ADDED", "object": large});
            let answer = if is_watch { format!("{event}\n") } else { list.to_string() };
            let permits = Arc::clone(&permits);
            async move {
                if is_watch {
                    permits.acquire().await.unwrap().forget();
                }
                Ok::<_, BoxError>(Response::new(Body::from(answer.into_bytes())))
            }
        });
        let shares = ClusterShares::new(1 << 20);
        let watches = Watches::new(Arc::new(|_| {}), shares.clone());
        let waiter = Waiter { kind: "DeployItem".into(), namespace: "n".into(), name: "item".into() };
        let scope = Scope::all(&config_maps(), Some("n".into()));
        let handle = watches.watch(&Client::new(service, "default"), scope, &waiter, None);
        let place = NamespacedName { namespace: Some("n".into()), name: "x".into() };
        let told = async |known: bool| {
            while known != matches!(handle.observed(&place), Observed::Present(_)) {
                advance(Duration::from_millis(10)).await;
            }
            (handle.observed(&place), shares.objects.taken(), lists.load(Ordering::SeqCst))
        };
        assert!(matches!(told(true).await, (Observed::Present(_), _, 1)));
        events.add_permits(1);
        let why = "its objects take more than the 524288 bytes of memory, shared with other namespaces, that are allowed; select \
                   fewer, or delete some";
        assert_eq!(told(false).await, (Observed::Forbidden(why.to_owned()), 0, 1));
        assert!(matches!(told(true).await, (Observed::Present(_), _, 2)), "it is listed anew after a while");
    }

    #[tokio::test]
    async fn c_167_a_watch_takes_the_path_of_the_requests_for_its_objects() {
        let client = Client::try_from(Config::new("http://127.0.0.1:1".parse().unwrap())).unwrap();
        let parts = [
            ("v1", "configmaps", "a"),
            ("g.example.org/v1", "../secrets", "a"),
            ("../v1", "things?x#", "../b"),
            ("a/../../api/v1", "secrets", "a/.."),
        ];
        for (api_version, plural, namespace) in parts {
            for namespaced in [true, false] {
                let (api_version, plural) = (api_version.into(), plural.to_owned());
                let resource = ApiResource { api_version, kind: "K".into(), plural, namespaced };
                for namespace in [Some(namespace.into()), None] {
                    let expected = at(&resource, namespace.as_ref()).url_path;
                    let scope = Scope::all(&resource, namespace);
                    assert_eq!(api(client.clone(), &scope).resource_url(), expected);
                }
            }
        }
    }

    #[test]
    fn c_153_an_object_that_is_too_deep_is_seen_without_what_is_so() {
        let deep = format!("{}1{}", "[".repeat(3_000), "]".repeat(3_000));
        let text = format!(
            "{{\"metadata\": {{\"name\": \"a\", \"managedFields\": [{{\"fieldsV1\": {deep}}}]}}, \"data\": {{\"k\": \"v\"}}}}"
        );
        let watched: Watched = serde_json::from_str(&text).unwrap();
        assert_eq!((watched.meta().name.as_deref(), &watched.object["data"]), (Some("a"), &json!({"k": "v"})));
        let whole =
            json!({"metadata": {"name": "a"}, "n": [null, true, -1, 18_446_744_073_709_551_615_u64, 1.5, "x", {}]});
        let watched: Watched = serde_json::from_str(&whole.to_string()).unwrap();
        assert_eq!(watched.object, whole);
    }
}
