//! What a waiting object reads from the server when it has heard nothing for long (C-11).
//!
//! Every change is absorbed by its store, which wakes whoever waits for it, as an event of a watch would have.

use std::{collections::BTreeSet, sync::Arc};

use kube::{Api, api::ListParams};
use orangery_core::{
    error::Failure,
    name::{Namespace, is_path_segment},
    step::{Halt, Step},
};
use orangery_reconcile::{Key, Store, Watched};

use crate::{controller_context::ControllerContext, object::message_of};

/// Reads one object again. One that is gone is forgotten, and none has a name that is a path (C-74).
pub(crate) async fn read<K: Watched>(host: &ControllerContext, store: &Store<K>, key: &Key) -> Step<()> {
    if !is_path_segment(&key.name) {
        return Ok(());
    }
    let known = store.get(key);
    let api: Api<K> = Api::namespaced(host.client.clone(), &key.namespace);
    let read = api.get_opt(&key.name).await.map_err(|error| unread::<K>(&key.to_string(), &error))?;
    match (read, known) {
        (Some(newest), _) => drop(store.upsert(newest)),
        // Known before the server was asked: it was there once.
        (None, Some(gone)) => store.forget(&gone),
        (None, None) => {}
    }
    Ok(())
}

/// Reads all objects that a label marks, and those of `known`, found in the store before, that are not among them.
pub(crate) async fn list<K: Watched>(
    host: &ControllerContext,
    store: &Store<K>,
    known: Vec<Arc<K>>,
    namespace: &Namespace,
    (label, value): (&str, &str),
) -> Step<()> {
    let api: Api<K> = Api::namespaced(host.client.clone(), namespace);
    let marked = ListParams::default().labels(&format!("{label}={value}"));
    let listed = api.list(&marked).await.map_err(|error| unread::<K>(&format!("{namespace}/*"), &error))?;
    let there: BTreeSet<Option<String>> = listed.items.iter().map(|object| object.meta().uid.clone()).collect();
    for object in listed.items {
        store.upsert(object);
    }
    for unlisted in known.iter().filter(|known| !there.contains(&known.meta().uid)) {
        read(host, store, &Key::of(unlisted.as_ref())).await?;
    }
    Ok(())
}

fn unread<K: Watched>(name: &str, error: &kube::Error) -> Halt {
    let message = format!("{} {name} cannot be read: {}; it is tried again", K::kind(&()), message_of(error));
    Halt::Retry(Failure::new("LookAgain", "ReadFailed", message))
}
