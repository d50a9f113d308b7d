//! Keeps a store current from the server's watch.

use std::{borrow::Cow, collections::BTreeSet, marker::PhantomData, pin::pin, sync::Arc};

use futures::{StreamExt, stream::select_all};
use kube::{
    Api, Client, Resource,
    core::ObjectMeta,
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};
use serde::{Deserialize, Deserializer, de::Error};
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use crate::{Key, Store, Watched};

/// Keeps `store` current until `stop`: lists, then watches with bookmarks, each of `namespaces`, or all where none is
/// named. The store is synced when every first list is in.
///
/// Never ends by itself: errors are logged and backed off (0.8 s to 30 s), an expired resource version lists again,
/// and an object that does not decode is logged and left as it was last known.
pub async fn watch<K: Watched>(client: Client, namespaces: &[String], store: Store<K>, stop: CancellationToken) {
    watch_labelled(client, namespaces, None, store, stop).await;
}

/// The same for the objects that have a label alone.
pub async fn watch_labelled<K: Watched>(
    client: Client,
    namespaces: &[String],
    label: Option<&str>,
    store: Store<K>,
    stop: CancellationToken,
) {
    let config = watcher::Config { label_selector: label.map(str::to_owned), ..watcher::Config::default() };
    let scopes = if namespaces.is_empty() { vec![None] } else { namespaces.iter().map(Some).collect() };
    let mut unlisted: BTreeSet<usize> = (0..scopes.len()).collect();
    let streams = scopes.iter().enumerate().map(|(number, namespace)| {
        let api: Api<WatchedObject<K>> = match namespace {
            Some(namespace) => Api::namespaced(client.clone(), namespace),
            None => Api::all(client.clone()),
        };
        let events = watcher(api, config.clone()).default_backoff();
        events.map(move |event| (number, event)).boxed()
    });
    let mut events = pin!(select_all(streams).take_until(stop.cancelled_owned()));
    while let Some((number, event)) = events.next().await {
        let scope = scopes.get(number).copied().flatten().map(String::as_str);
        match event {
            Ok(event) => {
                if follow(&store, scope, event) == WatchProgress::Listed {
                    unlisted.remove(&number);
                }
                if unlisted.is_empty() {
                    store.mark_synced();
                }
            }
            Err(error) => tracing::warn!(kind = %K::kind(&()), %error, "the watch broke off and is taken up again"),
        }
    }
}

/// How far a watch is.
#[derive(PartialEq, Eq)]
enum WatchProgress {
    /// A list is complete.
    Listed,
    /// An event of a list or after it.
    Following,
}

fn follow<K: Watched>(store: &Store<K>, namespace: Option<&str>, event: Event<WatchedObject<K>>) -> WatchProgress {
    match event {
        Event::Init => store.begin_list(namespace),
        Event::InitApply(told) | Event::Apply(told) => {
            if let Err(error) = store.hear(&told) {
                let key = Key::of_meta(&told.meta);
                tracing::warn!(kind = %K::kind(&()), object = %key, %error, "an object does not decode and is ignored");
            }
        }
        Event::InitDone => {
            store.end_list(namespace);
            return WatchProgress::Listed;
        }
        Event::Delete(told) => store.forget_meta(&told.meta),
    }
    WatchProgress::Following
}

/// An object as the watch tells it: its metadata, and its text for those who have not heard of this version yet.
///
/// Most events are echoes of our own writes, which the store knows already: they are never decoded.
#[derive(Clone, Debug)]
pub(crate) struct WatchedObject<K> {
    pub(crate) meta: ObjectMeta,
    text: Arc<RawValue>,
    kind: PhantomData<fn() -> K>,
}

impl<K: Watched> WatchedObject<K> {
    pub(crate) fn decode(&self) -> Result<K, serde_json::Error> {
        serde_json::from_str(self.text.get())
    }
}

#[derive(Deserialize)]
struct EventHead {
    #[serde(default)]
    metadata: ObjectMeta,
}

impl<'de, K> Deserialize<'de> for WatchedObject<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        let head: EventHead = serde_json::from_str(text.get()).map_err(D::Error::custom)?;
        Ok(Self { meta: head.metadata, text: text.into(), kind: PhantomData })
    }
}

impl<K: Resource<DynamicType = ()>> Resource for WatchedObject<K> {
    type DynamicType = ();
    type Scope = K::Scope;

    fn kind(dt: &()) -> Cow<'_, str> {
        K::kind(dt)
    }

    fn group(dt: &()) -> Cow<'_, str> {
        K::group(dt)
    }

    fn version(dt: &()) -> Cow<'_, str> {
        K::version(dt)
    }

    fn plural(dt: &()) -> Cow<'_, str> {
        K::plural(dt)
    }

    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.meta
    }
}

#[cfg(test)]
mod tests;
