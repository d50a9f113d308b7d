//! Large objects are whole one at a time: a store keeps their text. A process of its own, as it counts what is there.

use std::{
    borrow::Cow,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use http::{Request, Response};
use kube::{
    Client, Resource,
    client::Body,
    core::{NamespaceResourceScope, ObjectMeta},
};
use orangery_reconcile::{Key, Store, watch};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// Stores of one server, and the objects of each.
const STORES: usize = 4;
const OBJECTS: usize = 4;

/// How many values of objects are there now, and how many were at most.
static PRESENT: AtomicUsize = AtomicUsize::new(0);
static MOST_PRESENT: AtomicUsize = AtomicUsize::new(0);

/// A value that is counted from when its decoding begins to when it is dropped.
#[derive(Debug, Serialize)]
#[serde(transparent)]
struct Counted(Value);

impl Counted {
    fn new(value: impl FnOnce() -> Value) -> Self {
        MOST_PRESENT.fetch_max(PRESENT.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        Self(value())
    }
}

impl Clone for Counted {
    fn clone(&self) -> Self {
        Self::new(|| self.0.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        PRESENT.fetch_sub(1, Ordering::SeqCst);
    }
}

impl<'de> Deserialize<'de> for Counted {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut counted = Self::new(|| Value::Null);
        counted.0 = Value::deserialize(deserializer)?;
        Ok(counted)
    }
}

/// An object whose content anybody chooses.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Open {
    metadata: ObjectMeta,
    data: Counted,
}

impl Resource for Open {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "Open".into()
    }

    fn group((): &()) -> Cow<'_, str> {
        "tests.orangery.dev".into()
    }

    fn version((): &()) -> Cow<'_, str> {
        "v1".into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "opens".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// A server with objects of so many values, which has no news of them.
fn server(values: usize) -> Client {
    let data = format!("[{}0]", "{\"\":0},".repeat(values));
    let items: Vec<String> = (0..OBJECTS)
        .map(|number| {
            let name = number.to_string();
            let meta = json!({"name": name, "namespace": "n", "uid": name, "resourceVersion": "1"});
            format!(r#"{{"metadata": {meta}, "data": {data}}}"#)
        })
        .collect();
    let list = format!(r#"{{"metadata": {{"resourceVersion": "1"}}, "items": [{}]}}"#, items.join(","));
    let service = tower::service_fn(move |request: Request<Body>| {
        let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        let body = if is_watch { Body::empty() } else { Body::from(list.clone().into_bytes()) };
        async move { Ok::<_, std::io::Error>(Response::new(body)) }
    });
    Client::new(service, "n")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn c_99_limits_objects_what_a_store_keeps_is_bounded_by_text() {
    // 140 KB of text that take 12 MiB.
    let (client, stop) = (server(20_000), CancellationToken::new());
    let stores: Vec<Store<Open>> = std::iter::repeat_with(Store::new).take(STORES).collect();
    let watch = |store: &Store<Open>| {
        let (client, store, stop) = (client.clone(), store.clone(), stop.clone());
        tokio::spawn(async move { watch(client, &[], store, stop).await })
    };
    let watches: Vec<_> = stores.iter().map(watch).collect();
    for store in &stores {
        tokio::time::timeout(Duration::from_secs(60), store.synced()).await.expect("the list is in");
    }
    stop.cancel();
    for watch in watches {
        watch.await.expect("a watch");
    }
    let most = [PRESENT.load(Ordering::SeqCst), MOST_PRESENT.load(Ordering::SeqCst)];
    assert_eq!(most, [0, 1], "none is kept whole, and one at a time is decoded");
    for store in &stores {
        let kept = store.get(&Key::new("n", "3")).expect("an object");
        assert_eq!(kept.data.0.as_array().map(Vec::len), Some(20_001), "all of it is there");
    }
    MOST_PRESENT.store(0, Ordering::SeqCst);
    let mut found = stores[0].list(None);
    assert_eq!((found.len(), found.iter().rev().count(), found.iter().count()), (OBJECTS, OBJECTS, OBJECTS));
    found.retain(|object| object.metadata.name.as_deref() != Some("3"));
    assert_eq!(found.into_iter().count(), OBJECTS - 1);
    let all = |_: &Open| vec!["all".to_owned()];
    let indexed = stores[0].clone().with_index("all", all).indexed("all", &"n".into(), "all");
    assert_eq!(indexed.into_iter().count(), OBJECTS);
    let most = [PRESENT.load(Ordering::SeqCst), MOST_PRESENT.load(Ordering::SeqCst)];
    assert_eq!(most, [0, 1], "of what was found one at a time is whole (C-289)");
}
