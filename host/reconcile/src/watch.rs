//! Keeps a store current from the server's watch.

use std::{collections::BTreeSet, pin::pin};

use futures::{StreamExt, stream::select_all};
use kube::{
    Api, Client,
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};
use orangery_core::name::Namespace;
use tokio_util::sync::CancellationToken;

use crate::{Key, Store, Watched, watched_object::WatchedObject};

/// Keeps `store` current until `stop`: lists, then watches with bookmarks, each of `namespaces`, or all where none is
/// named. The store is synced when every first list is in.
///
/// Never ends by itself: errors are logged and backed off (0.8 s to 30 s), an expired resource version lists again,
/// and an object that does not decode is logged and left as it was last known.
pub async fn watch<K: Watched>(client: Client, namespaces: &[Namespace], store: Store<K>, stop: CancellationToken) {
    watch_labelled(client, namespaces, None, store, stop).await;
}

/// The same for the objects that have a label alone.
pub async fn watch_labelled<K: Watched>(
    client: Client,
    namespaces: &[Namespace],
    label: Option<&str>,
    store: Store<K>,
    stop: CancellationToken,
) {
    let config = watcher::Config { label_selector: label.map(str::to_owned), ..watcher::Config::default() };
    let scopes = if namespaces.is_empty() { vec![None] } else { namespaces.iter().map(Some).collect() };
    let mut restorations = store.restorations();
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            Ok(()) = restorations.changed() => {}
            () = follow_all(&client, &scopes, &config, &store) => return,
        }
    }
}

/// Lists and follows all scopes.
async fn follow_all<K: Watched>(
    client: &Client,
    scopes: &[Option<&Namespace>],
    config: &watcher::Config,
    store: &Store<K>,
) {
    let mut unlisted: BTreeSet<usize> = (0..scopes.len()).collect();
    let streams = scopes.iter().enumerate().map(|(number, namespace)| {
        let api: Api<WatchedObject<K>> = match namespace {
            Some(namespace) => Api::namespaced(client.clone(), namespace),
            None => Api::all(client.clone()),
        };
        let events = watcher(api, config.clone()).default_backoff();
        events.map(move |event| (number, event)).boxed()
    });
    let mut events = pin!(select_all(streams));
    while let Some((number, event)) = events.next().await {
        let scope = scopes.get(number).copied().flatten();
        match event {
            Ok(event) => {
                if follow(store, scope, event) == WatchProgress::Listed {
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

fn follow<K: Watched>(
    store: &Store<K>,
    namespace: Option<&Namespace>,
    event: Event<WatchedObject<K>>,
) -> WatchProgress {
    match event {
        Event::Init => store.begin_list(namespace),
        Event::InitApply(message) => decoded(&message, store.hear_listed(namespace, &message)),
        Event::Apply(message) => decoded(&message, store.hear(&message)),
        Event::InitDone => {
            store.end_list(namespace);
            return WatchProgress::Listed;
        }
        Event::Delete(message) => store.forget_meta(&message.meta),
    }
    WatchProgress::Following
}

fn decoded<K: Watched>(message: &WatchedObject<K>, heard: Result<(), serde_json::Error>) {
    if let Err(error) = heard {
        let key = Key::of_meta(&message.meta);
        tracing::warn!(kind = %K::kind(&()), object = %key, %error, "an object does not decode and is ignored");
    }
}

#[cfg(test)]
mod tests;
