//! Keeps a store current from the server's watch.

use std::{collections::BTreeSet, future::poll_fn, pin::pin, task::Context};

use futures::{StreamExt, stream::select_all};
use kube::{
    Api, Client, Resource as _,
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};
use orangery_core::name::Namespace;
use orangery_turns::off_the_executor;
use tokio_util::sync::CancellationToken;

use crate::{Store, Watched, watched_object::WatchedObject};

/// Objects a page of a list holds. Of each kind one page is in memory, twice while it is decoded, and each of its objects may
/// have 1.5 MiB.
const PAGE: u32 = 20;

/// Keeps `store` current until `stop`: lists, then watches with bookmarks, each of `namespaces`, or all where none is
/// named. The store is synced when every first list is in.
///
/// Never ends by itself: errors are logged and backed off (0.8 s to 30 s), an expired resource version lists again,
/// and an object that does not decode is told ([`Store::on_unreadable`]) and left as it was last known.
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
    let config = watcher::Config {
        label_selector: label.map(str::to_owned),
        page_size: Some(PAGE),
        ..watcher::Config::default()
    };
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
    // Where a list is coming in, that is a page of objects of any size; else it is one object.
    let mut listing: BTreeSet<usize> = unlisted.clone();
    let mut next = |context: &mut Context<'_>, is_listing: bool| {
        let mut next = || events.poll_next_unpin(context);
        if is_listing { off_the_executor(next) } else { next() }
    };
    while let Some((number, event)) = poll_fn(|context| next(context, !listing.is_empty())).await {
        let scope = scopes.get(number).copied().flatten();
        match event {
            Ok(event) => {
                match where_there_is_time(event, |event| follow(store, scope, event)) {
                    WatchProgress::Listing => {
                        listing.insert(number);
                    }
                    WatchProgress::Listed => {
                        listing.remove(&number);
                        unlisted.remove(&number);
                    }
                    WatchProgress::Following => {}
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
    /// A list begins.
    Listing,
    /// A list is complete.
    Listed,
    /// An event of a list or after it.
    Following,
}

/// Decodes a large object off the executor, and tells of it there (C-112).
fn where_there_is_time<K: Watched>(
    event: Event<WatchedObject<K>>,
    follow: impl FnOnce(Event<WatchedObject<K>>) -> WatchProgress,
) -> WatchProgress {
    match &event {
        Event::InitApply(message) | Event::Apply(message) if message.is_long() => off_the_executor(|| follow(event)),
        Event::Init | Event::InitApply(_) | Event::InitDone | Event::Apply(_) | Event::Delete(_) => follow(event),
    }
}

fn follow<K: Watched>(
    store: &Store<K>,
    namespace: Option<&Namespace>,
    event: Event<WatchedObject<K>>,
) -> WatchProgress {
    match event {
        Event::Init => {
            store.begin_list(namespace);
            return WatchProgress::Listing;
        }
        Event::InitApply(message) => {
            if let Some(authors) = store.authors() {
                authors.listed(&message.authors);
            }
            decoded(store, &message, store.hear_listed(namespace, &message));
        }
        Event::Apply(message) => {
            if let Some(authors) = store.authors() {
                authors.changed(&message.authors, || message.object_ref(&()));
            }
            decoded(store, &message, store.hear(&message));
        }
        Event::InitDone => {
            store.end_list(namespace);
            return WatchProgress::Listed;
        }
        Event::Delete(message) => store.forget_meta(&message.meta),
    }
    WatchProgress::Following
}

fn decoded<K: Watched>(store: &Store<K>, message: &WatchedObject<K>, heard: Result<(), serde_json::Error>) {
    if let Err(error) = heard {
        store.unread(message, &error);
    }
}

#[cfg(test)]
mod tests;
